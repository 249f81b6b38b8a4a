//! Parses DuckDB's JSON form of a statement.
//!
//! Invariant: nesting is bounded here, by [`TREE_DEPTH_MAX`]; `serde_json` stops at 128 levels, which a sum of sixty
//! terms already exceeds.

/// JSON levels to parse; each level of an expression takes two JSON levels.
pub const TREE_DEPTH_MAX: usize = 1_000;

/// A JSON value.
#[derive(Debug, Clone, PartialEq)]
pub enum Tree {
    Null,
    Bool(bool),
    /// The text of a number.
    Number(String),
    Text(String),
    List(Vec<Tree>),
    Object(Vec<(String, Tree)>),
}

/// Why a text can't be parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TreeError {
    #[error("nested too deep")]
    TooDeep,
    #[error("malformed at byte {at}")]
    Malformed { at: usize },
}

impl Tree {
    /// Parses one JSON text.
    ///
    /// # Errors
    /// See [`TreeError`].
    pub fn parse(text: &str) -> Result<Self, TreeError> {
        let mut reader = Reader { text, at: 0 };
        let tree = reader.value(0)?;
        reader.blanks();
        if reader.at == text.len() { Ok(tree) } else { Err(TreeError::Malformed { at: reader.at }) }
    }

    /// The member `key` of an object; `Null` where there is none.
    pub fn get(&self, key: &str) -> &Self {
        match self {
            Self::Object(members) => members.iter().find(|(k, _)| k == key).map_or(&Self::Null, |(_, v)| v),
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::Text(_) | Self::List(_) => &Self::Null,
        }
    }

    /// The text of member `key`; `""` where there is none.
    pub fn text(&self, key: &str) -> &str {
        if let Self::Text(text) = self.get(key) { text } else { "" }
    }

    /// The elements of member `key`.
    pub fn list(&self, key: &str) -> &[Self] {
        if let Self::List(items) = self.get(key) { items } else { &[] }
    }

    /// The node's byte in the parsed text.
    pub fn location(&self) -> Option<usize> {
        let Self::Number(number) = self.get("query_location") else { return None };
        number.parse::<u64>().ok().filter(|n| *n < 1 << 32).map(|n| n as usize)
    }

    /// Whether it is null, false, or empty.
    pub fn is_blank(&self) -> bool {
        match self {
            Self::Null | Self::Bool(false) => true,
            Self::Bool(true) | Self::Number(_) => false,
            Self::Text(text) => text.is_empty(),
            Self::List(items) => items.is_empty(),
            Self::Object(members) => members.is_empty(),
        }
    }

    /// Whether it contains `text`, ignoring case.
    pub fn has_text(&self, text: &str) -> bool {
        match self {
            Self::Text(own) => own.eq_ignore_ascii_case(text),
            Self::List(items) => items.iter().any(|item| item.has_text(text)),
            Self::Object(members) => members.iter().any(|(_, value)| value.has_text(text)),
            Self::Null | Self::Bool(_) | Self::Number(_) => false,
        }
    }

    /// Equality without locations.
    pub fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::List(a), Self::List(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.same(b)),
            (Self::Object(a), Self::Object(b)) => {
                a.len() == b.len()
                    && a.iter().zip(b).all(|((ka, a), (kb, b))| ka == kb && (ka == "query_location" || a.same(b)))
            }
            (a, b) => a == b,
        }
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn malformed<T>(&self) -> Result<T, TreeError> {
        Err(TreeError::Malformed { at: self.at })
    }

    fn expect(&mut self, byte: u8) -> Result<(), TreeError> {
        self.blanks();
        if self.peek() == Some(byte) {
            self.at += 1;
            return Ok(());
        }
        self.malformed()
    }

    /// Consumes `byte` if it comes next.
    fn accept(&mut self, byte: u8) -> bool {
        self.expect(byte).is_ok()
    }

    fn value(&mut self, depth: usize) -> Result<Tree, TreeError> {
        if depth > TREE_DEPTH_MAX {
            return Err(TreeError::TooDeep);
        }
        self.blanks();
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.items(depth),
            Some(b'"') => self.string().map(Tree::Text),
            Some(_) => self.word(),
            None => self.malformed(),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Tree, TreeError> {
        self.expect(b'{')?;
        let mut members = Vec::new();
        if self.accept(b'}') {
            return Ok(Tree::Object(members));
        }
        loop {
            self.blanks();
            let key = self.string()?;
            self.expect(b':')?;
            members.push((key, self.value(depth + 1)?));
            if !self.accept(b',') {
                self.expect(b'}')?;
                return Ok(Tree::Object(members));
            }
        }
    }

    fn items(&mut self, depth: usize) -> Result<Tree, TreeError> {
        self.expect(b'[')?;
        let mut items = Vec::new();
        if self.accept(b']') {
            return Ok(Tree::List(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            if !self.accept(b',') {
                self.expect(b']')?;
                return Ok(Tree::List(items));
            }
        }
    }

    fn string(&mut self) -> Result<String, TreeError> {
        let start = self.at;
        self.expect(b'"')?;
        loop {
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => self.at += 2,
                Some(_) => self.at += 1,
                None => return self.malformed(),
            }
        }
        self.at += 1;
        let quoted = self.text.get(start..self.at).ok_or(TreeError::Malformed { at: start })?;
        serde_json::from_str(quoted).map_err(|_| TreeError::Malformed { at: start })
    }

    fn word(&mut self) -> Result<Tree, TreeError> {
        let rest = &self.text[self.at..];
        let end = rest.find([',', '}', ']', ' ', '\n', '\r', '\t']).unwrap_or(rest.len());
        let word = &rest[..end];
        self.at += end;
        match word {
            "null" => Ok(Tree::Null),
            "true" => Ok(Tree::Bool(true)),
            "false" => Ok(Tree::Bool(false)),
            // Constants may be `Infinity` and `NaN`.
            number if number.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '-') => {
                Ok(Tree::Number(number.to_owned()))
            }
            _ => self.malformed(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_parsed_exactly() {
        let tree = Tree::parse(r#" {"a": [1, -2.5e3, "x\"\u00e9]", true, null, {}], "query_location": 7} "#).unwrap();
        assert_eq!(tree.list("a").len(), 6);
        assert_eq!(tree.list("a")[2], Tree::Text("x\"é]".into()));
        assert_eq!(tree.location(), Some(7));
        assert!(tree.list("a")[5].is_blank());
    }

    #[test]
    fn deep_and_malformed_texts_are_refused() {
        let deep = |n| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert!(Tree::parse(&deep(TREE_DEPTH_MAX)).is_ok());
        assert_eq!(Tree::parse(&deep(TREE_DEPTH_MAX + 2)), Err(TreeError::TooDeep));
        for bad in ["", "{", "[1,", "{\"a\" 1}", "\"x", "[1]]", "\"\\", "{\"a\":\"\\é\"}"] {
            assert!(matches!(Tree::parse(bad), Err(TreeError::Malformed { .. })), "{bad}");
        }
    }

    #[test]
    fn comparison_ignores_locations() {
        let a = Tree::parse(r#"{"x": 1, "query_location": 3}"#).unwrap();
        let b = Tree::parse(r#"{"x": 1, "query_location": 9}"#).unwrap();
        let c = Tree::parse(r#"{"x": 2, "query_location": 3}"#).unwrap();
        assert!(a.same(&b) && !a.same(&c));
    }
}

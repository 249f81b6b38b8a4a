//! Splits a text into tokens, to strip a statement's surroundings: `EXPLAIN`, semicolons, comments.
//!
//! Invariant: safety doesn't depend on this module. Only the extracted part is prepared, after DuckDB parsed it and the
//! allow-list passed it; a wrong cut yields another part, not a bypass.

use super::verdict::{Refusal, RefusalKind, StatementKind};

/// A piece of the text that is neither white space nor comment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    pub kind: TokenKind,
    /// Start, and exclusive end, in bytes.
    pub start: usize,
    pub end: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    Word,
    Semicolon,
    /// A whole quoted name or text.
    Quoted,
    /// One character.
    Other,
}

/// First words of queries that `EXPLAIN` accepts.
const EXPLAINED: &[&str] =
    &["SELECT", "WITH", "FROM", "VALUES", "TABLE", "PIVOT", "PIVOT_WIDER", "UNPIVOT", "PIVOT_LONGER"];
/// First words of the writing part of a `WITH` statement.
pub const WRITE_STATEMENTS: &[&str] = &["INSERT", "UPDATE", "DELETE", "MERGE"];
/// First words of other statements that only read.
const READ_STATEMENTS: &[&str] = &["DESCRIBE", "DESC", "SUMMARIZE", "SHOW"];

/// One statement within its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatementCut<'a> {
    /// The complete text.
    text: &'a str,
    /// The word `EXPLAIN`, if there is one.
    explain: Option<Token>,
    /// The statement without its surroundings.
    pub core: &'a str,
    /// Bytes of the text before it.
    pub offset: usize,
}

/// The tokens of `text`; unterminated text is one token.
pub fn tokens(text: &str) -> Vec<Token> {
    let mut scanner = Scanner { text, at: 0 };
    std::iter::from_fn(|| scanner.next_token()).collect()
}

/// Finds the one statement of `text`.
pub fn cut<'a>(text: &'a str, tokens: &[Token]) -> Result<StatementCut<'a>, Refusal> {
    let body = match tokens {
        [body @ .., last] if last.kind == TokenKind::Semicolon => body,
        all => all,
    };
    let (Some(first), Some(last)) = (body.first(), body.last()) else {
        return Err(Refusal::new(RefusalKind::Statement, "there is no statement"));
    };
    if let Some(semicolon) = body.iter().find(|token| token.kind == TokenKind::Semicolon) {
        let message = "several statements; write one query, with at most one `;` at its end";
        return Err(Refusal::new(RefusalKind::Statement, message).at(text, semicolon.start));
    }
    if !is(text, first, "EXPLAIN") {
        return Ok(StatementCut { text, explain: None, core: &text[first.start..last.end], offset: first.start });
    }
    let Some(next) = body.get(1) else {
        return Err(Refusal::new(RefusalKind::Statement, "`EXPLAIN` requires a query").at(text, first.start));
    };
    if EXPLAINED.iter().any(|word| is(text, next, word)) {
        return Ok(StatementCut { text, explain: Some(*first), core: &text[next.start..last.end], offset: next.start });
    }
    let message = if is(text, next, "ANALYZE") || is(text, next, "ANALYSE") {
        "`EXPLAIN ANALYZE` can't be used; `EXPLAIN` shows the plan".to_owned()
    } else {
        "`EXPLAIN` supports queries that begin with `SELECT`, `WITH`, `FROM`, `VALUES`, `PIVOT` or `UNPIVOT`".to_owned()
    };
    Err(Refusal::new(RefusalKind::Statement, message).at(text, next.start))
}

/// The first byte of the first of these words.
pub fn first_of(text: &str, tokens: &[Token], words: &[&str]) -> Option<usize> {
    tokens.iter().find(|token| words.iter().any(|word| is(text, token, word))).map(|token| token.start)
}

/// Refuses a statement that doesn't only read.
pub fn not_a_query(text: &str, tokens: &[Token]) -> Refusal {
    let pivot = tokens.iter().find(|token| ["PIVOT", "PIVOT_WIDER"].iter().any(|word| is(text, token, word)));
    let first = tokens.iter().find(|token| !is(text, token, "EXPLAIN"));
    let Some(first) = first else { return Refusal::new(RefusalKind::Statement, "there is no statement") };
    let reads =
        EXPLAINED.iter().chain(READ_STATEMENTS).any(|word| is(text, first, word)) || first.kind != TokenKind::Word;
    if let (Some(pivot), true) = (pivot, reads) {
        let message = "`PIVOT` requires the values that become columns: `ON column IN ('a', 'b')`";
        return Refusal::new(RefusalKind::Clause, message).at(text, pivot.start);
    }
    let writing = tokens.iter().find(|token| WRITE_STATEMENTS.iter().any(|word| is(text, token, word)));
    let culprit = if reads { writing } else { Some(first) };
    let Some(culprit) = culprit else {
        let message = "this statement can't be used; a query only reads tables";
        return Refusal::new(RefusalKind::Statement, message).at(text, first.start);
    };
    let word = text.get(culprit.start..culprit.end).unwrap_or_default().to_ascii_uppercase();
    let message = format!("`{word}` can't be used; a query only reads tables");
    Refusal::new(RefusalKind::Statement, message).at(text, culprit.start)
}

impl StatementCut<'_> {
    /// The text to prepare: the core at its original position, after blanks and `EXPLAIN`.
    pub fn statement(&self) -> String {
        let Some(explain) = self.explain else { return blank(&self.text[..self.offset]) + self.core };
        let (before, between) = (&self.text[..explain.start], &self.text[explain.end..self.offset]);
        format!("{}EXPLAIN{}{}", blank(before), blank(between), self.core)
    }

    /// The kind of the whole statement, given the kind of its core.
    pub fn kind(&self, inner: StatementKind) -> StatementKind {
        if self.explain.is_some() { StatementKind::Explain } else { inner }
    }
}

/// Blanks with the same lines and characters.
fn blank(text: &str) -> String {
    text.chars().map(|c| if c == '\n' { c } else { ' ' }).collect()
}

fn is(text: &str, token: &Token, word: &str) -> bool {
    token.kind == TokenKind::Word && text.get(token.start..token.end).is_some_and(|w| w.eq_ignore_ascii_case(word))
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$' || (!c.is_ascii() && !c.is_whitespace())
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl Scanner<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn next_token(&mut self) -> Option<Token> {
        self.blanks();
        let start = self.at;
        let first = self.rest().chars().next()?;
        let kind = match first {
            ';' => self.one(first, TokenKind::Semicolon),
            '\'' | '"' => self.quoted(first, false),
            'e' | 'E' if self.rest()[1..].starts_with('\'') => {
                self.at += 1;
                self.quoted('\'', true)
            }
            '$' => self.dollar(),
            '/' if self.rest().starts_with("/*") => self.skip_unterminated(),
            c if is_word(c) => {
                let rest = self.rest();
                self.at += rest.find(|c| !is_word(c)).unwrap_or(rest.len());
                TokenKind::Word
            }
            c => self.one(c, TokenKind::Other),
        };
        Some(Token { kind, start, end: self.at })
    }

    fn one(&mut self, c: char, kind: TokenKind) -> TokenKind {
        self.at += c.len_utf8();
        kind
    }

    /// Skips a comment without an end.
    fn skip_unterminated(&mut self) -> TokenKind {
        self.at = self.text.len();
        TokenKind::Quoted
    }

    /// Skips white space and comments.
    fn blanks(&mut self) {
        loop {
            let rest = self.rest();
            let before = rest.len();
            let mut rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
            if rest.starts_with("--") {
                rest = rest.find(['\n', '\r']).map_or("", |end| &rest[end..]);
            } else if let Some(end) = comment(rest) {
                rest = &rest[end..];
            }
            let passed = before - rest.len();
            self.at += passed;
            if passed == 0 {
                return;
            }
        }
    }

    /// Skips a quoted text; a doubled quote is one of its characters.
    fn quoted(&mut self, quote: char, escapes: bool) -> TokenKind {
        let mut chars = self.text[self.at + 1..].char_indices().peekable();
        let start = self.at + 1;
        self.at = self.text.len();
        while let Some((at, c)) = chars.next() {
            if escapes && c == '\\' {
                chars.next();
            } else if c == quote && chars.next_if(|(_, next)| *next == quote).is_none() {
                self.at = start + at + 1;
                break;
            }
        }
        TokenKind::Quoted
    }

    /// Skips `$tag$ … $tag$`, or the name of a parameter.
    fn dollar(&mut self) -> TokenKind {
        let rest = self.rest();
        let tag =
            rest[1..].find(|c: char| !(c.is_alphanumeric() || c == '_' || !c.is_ascii())).map_or(rest.len(), |n| n + 1);
        if rest[tag..].starts_with('$') && !rest[1..].starts_with(|c: char| c.is_ascii_digit()) {
            let quote = &rest[..=tag];
            let end = rest[quote.len()..].find(quote).map_or(rest.len(), |at| at + 2 * quote.len());
            self.at += end;
            return TokenKind::Quoted;
        }
        self.at += tag;
        TokenKind::Other
    }
}

/// Length in bytes of the comment at the start of `text`; `None` if there is none, or it isn't closed. Comments nest.
fn comment(text: &str) -> Option<usize> {
    let bytes = text.strip_prefix("/*").map(|_| text.as_bytes())?;
    let (mut at, mut depth) = (2, 1_usize);
    while at < bytes.len() {
        match bytes.get(at..at + 2) {
            Some(b"/*") => (at, depth) = (at + 2, depth + 1),
            Some(b"*/") => (at, depth) = (at + 2, depth - 1),
            Some(_) | None => at += 1,
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn core(text: &str) -> Result<(bool, &str), String> {
        cut(text, &tokens(text)).map(|cut| (cut.explain.is_some(), cut.core)).map_err(|refusal| refusal.message)
    }

    #[test]
    fn surroundings_of_a_statement_are_removed() {
        for (text, found) in [
            (" SELECT 1 ; ", "SELECT 1"),
            ("-- a; b\nSELECT ';' /* ; /* ; */ ; */;-- end", "SELECT ';'"),
            ("SELECT ';', \";\", $$;$$, $a$;$$;$a$, E'\\';' ;", "SELECT ';', \";\", $$;$$, $a$;$$;$a$, E'\\';'"),
            ("SELECT 'it''s;', $1;", "SELECT 'it''s;', $1"),
            ("*/ SELECT 1 /* */", "*/ SELECT 1"),
            ("\u{feff}SELECT\u{a0}'é'", "SELECT\u{a0}'é'"),
        ] {
            assert_eq!(core(text), Ok((false, found)), "{text}");
        }
        assert_eq!(core("explain -- x\n select 1;"), Ok((true, "select 1")));
    }

    #[test]
    fn zero_and_several_statements_are_refused() {
        for text in ["", ";", "-- x", "SELECT 1;;", ";SELECT 1", "SELECT 1; SELECT 2", "SELECT 1;/**/;", "SELECT 1;'"] {
            assert!(core(text).is_err(), "{text}");
        }
        for text in ["EXPLAIN", "EXPLAIN ANALYZE SELECT 1", "EXPLAIN (FORMAT json) SELECT 1", "EXPLAIN COPY t TO 'x'"] {
            assert!(core(text).unwrap_err().contains("EXPLAIN"), "{text}");
        }
    }

    #[test]
    fn unterminated_text_is_one_token() {
        for text in ["'a", "\"a;", "$x$ ; $y$", "/* ; /* */", "E'\\", "'", "$", "E'", "$é$", "/*", "--"] {
            assert!(tokens(text).len() <= 1, "{text}: {:?}", tokens(text));
        }
    }
}

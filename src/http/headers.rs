//! The fields of a request head.

/// Fields in order of arrival. Names are case-insensitive, values are bytes without control characters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Headers(Vec<(String, Vec<u8>)>);

impl Headers {
    pub(crate) fn push(&mut self, name: &str, value: &[u8]) {
        self.0.push((name.to_owned(), value.to_owned()));
    }

    /// The first field of that name, if it is UTF-8.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.bytes(name).and_then(|value| std::str::from_utf8(value).ok())
    }

    /// The first field of that name.
    pub fn bytes(&self, name: &str) -> Option<&[u8]> {
        self.all(name).next()
    }

    /// Every field of that name, in order.
    pub fn all<'a, 'n>(&'a self, name: &'n str) -> impl DoubleEndedIterator<Item = &'a [u8]> + use<'a, 'n> {
        self.0.iter().filter(move |(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_slice())
    }

    /// The only field of that name; none if there are several.
    pub fn only(&self, name: &str) -> Option<&[u8]> {
        let mut all = self.all(name);
        match (all.next(), all.next()) {
            (Some(value), None) => Some(value),
            (None | Some(_), _) => None,
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_slice()))
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_case_insensitive_and_repeated_fields_are_not_unique() {
        let mut headers = Headers::default();
        headers.push("X-A", b"1");
        headers.push("x-a", b"2");
        headers.push("B", b"\xe9");
        assert_eq!(headers.get("X-a"), Some("1"));
        assert_eq!(headers.all("x-A").collect::<Vec<_>>(), [b"1", b"2"]);
        assert_eq!(headers.only("X-A"), None);
        assert_eq!((headers.get("b"), headers.only("b")), (None, Some(&b"\xe9"[..])));
        assert_eq!(headers.only("c"), None);
    }
}

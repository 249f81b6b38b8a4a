//! The query of a request target.

use super::refusal::{RefusedRequest, decode, refuse};

/// Parameters of a query.
const PARAMETERS_MAX: usize = 1_024;

/// Names and values in order, decoded once; `+` is a space. Names may repeat.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueryString(Vec<(String, String)>);

impl QueryString {
    pub(super) fn parse(text: &str) -> Result<Self, RefusedRequest> {
        let pairs: Vec<&str> = text.split('&').filter(|pair| !pair.is_empty()).take(PARAMETERS_MAX + 1).collect();
        if pairs.len() > PARAMETERS_MAX {
            return refuse(400, "the query has too many parameters");
        }
        let decoded = |text: &str| decode(&text.replace('+', " "));
        let pair = |pair: &str| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((decoded(name)?, decoded(value)?))
        };
        pairs.into_iter().map(pair).collect::<Result<_, _>>().map(Self)
    }

    /// The first value of that name; empty if it came without `=`.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// Every value of that name, in order.
    pub fn all<'a, 'n>(&'a self, name: &'n str) -> impl Iterator<Item = &'a str> + use<'a, 'n> {
        self.0.iter().filter(move |(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(&str, &str)]) {
        let query = QueryString::parse(text).unwrap();
        assert_eq!(query.iter().collect::<Vec<_>>(), expected, "{text}");
    }

    #[test]
    fn queries_are_decoded_once() {
        check("", &[]);
        check("&a&&", &[("a", "")]);
        check("a=1&b=x+y&a=%2B%26%3D&c=%2525", &[("a", "1"), ("b", "x y"), ("a", "+&="), ("c", "%25")]);
        check("a=b=c&%C3%A9=1", &[("a", "b=c"), ("é", "1")]);
        for malformed in ["a=%", "a=%zz", "%00=1", "a=%ff"] {
            assert_eq!(QueryString::parse(malformed).map_err(|r| r.status).err(), Some(400), "{malformed}");
        }
        assert!(QueryString::parse(&"a&".repeat(PARAMETERS_MAX)).is_ok());
        assert!(QueryString::parse(&"a&".repeat(PARAMETERS_MAX + 1)).is_err());
    }

    #[test]
    fn names_may_repeat() {
        let query = QueryString::parse("f=1&g=2&f=3").unwrap();
        assert_eq!((query.get("f"), query.all("f").collect::<Vec<_>>()), (Some("1"), vec!["1", "3"]));
        assert_eq!(query.get("h"), None);
    }
}

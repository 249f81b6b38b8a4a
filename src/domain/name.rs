//! Names of pipelines, tables and columns, checked when they are parsed.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::limits::{COLUMN_NAME_BYTES_MAX, QUERY_ID_BYTES_MAX, SLUG_BYTES_MAX, TABLE_NAME_BYTES_MAX};

/// A name that violates the rule for its kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{found}` is not a {kind}: expected {expected}")]
pub struct NameError {
    pub kind: &'static str,
    pub found: String,
    pub expected: &'static str,
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $kind:literal, $expected:literal, $ok:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// # Errors
            /// A [`NameError`] that quotes what was found and says what was expected.
            pub fn parse(text: &str) -> Result<Self, NameError> {
                let ok: fn(&str) -> bool = $ok;
                if ok(text) {
                    Ok(Self(text.to_owned()))
                } else {
                    Err(NameError { kind: $kind, found: super::text::clipped(text), expected: $expected })
                }
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl TryFrom<String> for $name {
            type Error = NameError;
            fn try_from(text: String) -> Result<Self, NameError> {
                Self::parse(&text)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.0
            }
        }
    };
}

/// The characters of a [`Slug`], as a regular expression.
pub const SLUG_PATTERN: &str = "^[a-z0-9][a-z0-9_-]*$";

name!(
    /// Identifies a pipeline; also the form of a dashboard's name.
    Slug,
    "slug",
    "1 to 63 of a-z, 0-9, `_` and `-`, starting with a letter or digit",
    |text| {
        let mut bytes = text.bytes();
        text.len() <= SLUG_BYTES_MAX
            && bytes.next().is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
            && bytes.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-')
    }
);

name!(
    /// Names a table in a config; names that start with `_` are reserved.
    TableName,
    "table name",
    "1 to 63 of a-z, 0-9 and `_`, starting with a letter",
    |text| {
        let mut bytes = text.bytes();
        text.len() <= TABLE_NAME_BYTES_MAX
            && bytes.next().is_some_and(|b| b.is_ascii_lowercase())
            && bytes.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
    }
);

name!(
    /// Names a column; unique in its table without regard to case.
    ColumnName,
    "column name",
    "1 to 128 bytes of printable text",
    |text| {
        !text.is_empty()
            && text.len() <= COLUMN_NAME_BYTES_MAX
            && !text.trim().is_empty()
            && !text.chars().any(|c| c.is_control() || super::text::is_bidi_control(c))
    }
);

name!(
    /// Identifies a running query, so that it can be cancelled; chosen by the client.
    QueryId,
    "query id",
    "1 to 64 of A-Z, a-z, 0-9, `_` and `-`",
    |text| {
        (1..=QUERY_ID_BYTES_MAX).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
    }
);

impl ColumnName {
    /// Two names are equal if this form is.
    pub fn folded(&self) -> String {
        self.0.to_lowercase()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_take_the_documented_alphabet_only() {
        for good in ["a", "0", "flights", "a-b_c9", &"x".repeat(63)] {
            assert!(Slug::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "-a", "_a", "A", "a.b", "a/b", "é", "a b", "..", &"x".repeat(64)] {
            assert!(Slug::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn ids_of_queries_are_short_and_plain() {
        for good in ["a", "Q-1_b", &"x".repeat(64)] {
            assert!(QueryId::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "a b", "a:b", "*", "é", "a\n", &"x".repeat(65)] {
            assert!(QueryId::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn system_tables_cannot_be_declared() {
        assert!(TableName::parse("_rejected_rows").is_err());
        assert!(TableName::parse("9lives").is_err());
        assert!(TableName::parse("trips_2024").is_ok());
    }

    #[test]
    fn column_names_are_printable_and_bounded() {
        for good in ["id", "Größe (cm)", "a b", "-x", &"y".repeat(128)] {
            assert!(ColumnName::parse(good).is_ok(), "{good}");
        }
        for bad in ["", " ", "a\nb", "a\u{202e}b", "a\0", &"y".repeat(129)] {
            assert!(ColumnName::parse(bad).is_err(), "{bad:?}");
        }
    }
}

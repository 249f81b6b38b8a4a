//! Parts of a CSV's path that are the values of a column.

use std::collections::HashSet;
use std::ops::Range;

use crate::domain::source_name::without_endings;

/// What a column takes from the path of a CSV, relative to the pipeline's folder of the lake and without its endings.
/// Compares without regard to case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathPart {
    Pattern(PathPattern),
    /// The longest of these texts that the path contains.
    OneOf(Vec<String>),
}

impl PathPart {
    /// The value in the path of a source.
    pub fn value(&self, path: &str) -> Option<String> {
        let path = without_endings(path);
        match self {
            Self::Pattern(pattern) => pattern.value(path),
            Self::OneOf(texts) => {
                let folded = path.to_lowercase();
                let contained = texts.iter().filter(|text| folded.contains(&text.to_lowercase()));
                // The first of equal length.
                contained.rev().max_by_key(|text| text.chars().count()).cloned()
            }
        }
    }

    /// What a path without a value lacks.
    pub fn lacks(&self) -> String {
        match self {
            Self::Pattern(pattern) => format!("it doesn't match `{}`", pattern.text),
            Self::OneOf(texts) => {
                const SHOWN: usize = 5;
                let shown: Vec<String> = texts.iter().take(SHOWN).map(|text| format!("`{text}`")).collect();
                let more = if texts.len() > SHOWN { ", …" } else { "" };
                format!("it contains none of {}{more}", shown.join(", "))
            }
        }
    }
}

/// A pattern with one `{}`, which is the value, and `*` for any text. Both take as few characters as possible, and none
/// that is a `/`. A pattern without `/` is that of the file's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathPattern {
    text: String,
    parts: Vec<Part>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Literal(char),
    Any,
    /// At least one character.
    Value,
}

impl PathPattern {
    /// # Errors
    /// What is wrong with the pattern.
    pub fn parse(text: &str) -> Result<Self, String> {
        let values = text.matches("{}").count();
        if values != 1 {
            return Err(format!("expected one `{{}}`, which stands for the value, found {values}"));
        }
        let (before, after) = text.split_once("{}").unwrap_or((text, ""));
        let parts = |text: &str| -> Vec<Part> {
            text.chars().map(|c| if c == '*' { Part::Any } else { Part::Literal(c) }).collect()
        };
        let mut all = parts(before);
        all.push(Part::Value);
        all.extend(parts(after));
        Ok(Self { text: text.to_owned(), parts: all })
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    fn value(&self, path: &str) -> Option<String> {
        let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
        let text: Vec<char> = if self.text.contains('/') { path } else { name }.chars().collect();
        let value = self.rest(&text, (0, 0), None, &mut HashSet::new())?;
        Some(text[value].iter().collect())
    }

    /// Matches the parts from `at.0` on with the text from `at.1` on; returns the value's range. `failed`: what is known
    /// not to match, so that each pair is tried once.
    fn rest(
        &self,
        text: &[char],
        at: (usize, usize),
        value: Option<Range<usize>>,
        failed: &mut HashSet<(usize, usize)>,
    ) -> Option<Range<usize>> {
        let (mut part, mut from) = at;
        while let Some(Part::Literal(c)) = self.parts.get(part) {
            if !text.get(from).is_some_and(|found| found.to_lowercase().eq(c.to_lowercase())) {
                return None;
            }
            (part, from) = (part + 1, from + 1);
        }
        let Some(open) = self.parts.get(part) else {
            return value.filter(|_| from == text.len());
        };
        if failed.contains(&(part, from)) {
            return None;
        }
        let longest = text[from..].iter().take_while(|c| **c != '/').count();
        for taken in usize::from(*open == Part::Value)..=longest {
            let value = if *open == Part::Value { Some(from..from + taken) } else { value.clone() };
            if let Some(found) = self.rest(text, (part + 1, from + taken), value, failed) {
                return Some(found);
            }
        }
        failed.insert((part, from));
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(pattern: &str, path: &str) -> Option<String> {
        PathPart::Pattern(PathPattern::parse(pattern).unwrap()).value(path)
    }

    #[test]
    fn pattern_takes_the_value_from_the_name_or_the_path() {
        for (pattern, path, expected) in [
            ("{}", "in/sales 1.csv", Some("sales 1")),
            ("sales_{}", "in/sales_2024-03.csv.gz", Some("2024-03")),
            ("SALES_{}", "sales_north.TXT", Some("north")),
            ("* {} *", "rentals north 2026-01.csv", Some("north")),
            ("*-{}", "a-b-c.csv", Some("b-c")),
            ("{}-*", "a-b-c.csv", Some("a")),
            ("region={}/*", "region=north/1.csv", Some("north")),
            ("*/{}/*", "in/west/2024.csv", Some("west")),
            ("{}/*", "in/west/2024.csv", None),
            ("sales_{}", "sales_.csv", None),
            ("sales_{}", "other.csv", None),
            ("{}.v2", "a.v2.csv", Some("a")),
            ("{}", "without an ending", Some("without an ending")),
            ("größe_{}", "GRÖSSE_1.csv", None),
            ("größe_{}", "GRÖßE_1.csv", Some("1")),
        ] {
            assert_eq!(value(pattern, path).as_deref(), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn pattern_of_many_stars_ends_soon() {
        let pattern = format!("{}{{}}x", "*a".repeat(60));
        assert_eq!(value(&pattern, &"a".repeat(900)), None);
    }

    #[test]
    fn pattern_needs_one_value() {
        for wrong in ["", "sales", "{}{}", "*"] {
            assert!(PathPattern::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn longest_contained_text_is_the_value_as_it_is_listed() {
        let part = PathPart::OneOf(["north", "South", "northwest", "süd"].map(String::from).to_vec());
        for (path, expected) in [
            ("rentals NORTH 2026.csv", Some("north")),
            ("south/2026.csv", Some("South")),
            ("northwest_1.csv", Some("northwest")),
            ("SÜD.csv", Some("süd")),
            ("east.csv", None),
        ] {
            assert_eq!(part.value(path).as_deref(), expected, "{path}");
        }
    }
}

//! Where in a text the nodes of a document stand, and the places within a text that a node holds.

use serde_saphyr::granit_parser::ScalarStyle;

use super::examine::Source;
use super::problem::{Place, ProblemKind};
use super::yaml::Content;

impl Source {
    /// Where a problem of a node is shown: at its value, or, for a name that shouldn't be there, at the name.
    pub(super) fn place(&self, kind: ProblemKind, pointer: &str) -> Place {
        let Some(root) = &self.root else { return Place::START };
        let (node, name) = root.find(pointer);
        match kind {
            ProblemKind::UnknownField | ProblemKind::Duplicate | ProblemKind::Unused => name.unwrap_or(node.place),
            ProblemKind::Syntax
            | ProblemKind::UnsupportedVersion
            | ProblemKind::MissingField
            | ProblemKind::WrongType
            | ProblemKind::InvalidValue
            | ProblemKind::Limit
            | ProblemKind::UnknownQuery
            | ProblemKind::UnknownParam
            | ProblemKind::UnknownColumn
            | ProblemKind::TypeMismatch
            | ProblemKind::InvalidSql => node.place,
        }
    }

    /// Where the name of a member stands.
    pub(super) fn name_place(&self, pointer: &str) -> Place {
        let Some(root) = &self.root else { return Place::START };
        let (node, name) = root.find(pointer);
        name.unwrap_or(node.place)
    }

    /// Where a place within the text of a node (line and column from 1) stands in the document; the node's own if that
    /// can't be told.
    pub(super) fn place_within(&self, pointer: &str, line: u32, column: u32) -> Place {
        let Some(root) = &self.root else { return Place::START };
        let (node, _) = root.find(pointer);
        let Content::Scalar(_, style) = &node.content else { return node.place };
        let inner = match style {
            ScalarStyle::Literal => self.place_in_block(node.place, line, column),
            // A quoted text of one line without escapes has its places where they seem to be; the rest is a guess.
            ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted if line == 1 => {
                Some(Place { line: node.place.line, column: node.place.column + column })
            }
            ScalarStyle::Plain if line == 1 => {
                Some(Place { line: node.place.line, column: node.place.column + column - 1 })
            }
            ScalarStyle::Plain | ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted | ScalarStyle::Folded => None,
        };
        inner.filter(|place| self.has(*place)).unwrap_or(node.place)
    }

    /// In a `|` block: its lines follow the indicator's, indented alike.
    fn place_in_block(&self, at: Place, line: u32, column: u32) -> Option<Place> {
        let lines = || self.text.lines().enumerate().skip((at.line as usize).saturating_sub(1));
        // The node's place may be that of the indicator or that of the first character.
        let header = lines().next().filter(|(_, text)| is_block_header(text)).map(|(index, _)| index);
        let first = header.map_or(at.line as usize - 1, |index| index + 1);
        let filled = self.text.lines().skip(first).find(|text| !text.trim().is_empty())?;
        let indent = filled.chars().take_while(|c| *c == ' ').count();
        let number = |n: usize| u32::try_from(n).ok();
        Some(Place { line: number(first)? + line, column: number(indent)? + column })
    }

    fn has(&self, place: Place) -> bool {
        let line = self.text.lines().nth((place.line as usize).saturating_sub(1));
        line.is_some_and(|line| (place.column as usize) <= line.chars().count() + 1)
    }
}

/// Whether a line ends in the indicator of a block: `sql: |`, `- |2-  # comment`.
fn is_block_header(line: &str) -> bool {
    let line = line.split(" #").next().unwrap_or_default().trim_end();
    line.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-')).ends_with('|')
}

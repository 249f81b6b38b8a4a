//! Positions of a document's nodes in its text, and of offsets within a node's text.

use serde_saphyr::granit_parser::ScalarStyle;

use super::examined::SourceText;
use super::problem::DashboardProblemKind;
use super::yaml::NodeContent;
use crate::domain::text::Position;

impl SourceText {
    /// The position of a node's problem: its value, or its name if that is wrong.
    pub(super) fn position(&self, kind: DashboardProblemKind, pointer: &str) -> Position {
        let Some(root) = &self.root else { return Position::START };
        let (node, name) = root.find(pointer);
        match kind {
            DashboardProblemKind::UnknownField | DashboardProblemKind::Duplicate | DashboardProblemKind::Unused => {
                name.unwrap_or(node.position)
            }
            DashboardProblemKind::Syntax
            | DashboardProblemKind::UnsupportedVersion
            | DashboardProblemKind::MissingField
            | DashboardProblemKind::WrongType
            | DashboardProblemKind::InvalidValue
            | DashboardProblemKind::Limit
            | DashboardProblemKind::UnknownQuery
            | DashboardProblemKind::UnknownParam
            | DashboardProblemKind::UnknownColumn
            | DashboardProblemKind::TypeMismatch
            | DashboardProblemKind::InvalidSql => node.position,
        }
    }

    /// The position of a member's name.
    pub(super) fn name_position(&self, pointer: &str) -> Position {
        let Some(root) = &self.root else { return Position::START };
        let (node, name) = root.find(pointer);
        name.unwrap_or(node.position)
    }

    /// Maps an offset within a node's text to a position in the document; the node's own position if that is unknown.
    pub(super) fn position_within(&self, pointer: &str, line: u32, column: u32) -> Position {
        let Some(root) = &self.root else { return Position::START };
        let (node, _) = root.find(pointer);
        let NodeContent::Scalar(_, style) = &node.content else { return node.position };
        let inner = match style {
            ScalarStyle::Literal => self.position_in_block(node.position, line, column),
            // Exact for a quoted text of one line without escapes, approximate for others.
            ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted if line == 1 => {
                Some(Position { line: node.position.line, column: node.position.column + column })
            }
            ScalarStyle::Plain if line == 1 => {
                Some(Position { line: node.position.line, column: node.position.column + column - 1 })
            }
            ScalarStyle::Plain | ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted | ScalarStyle::Folded => None,
        };
        inner.filter(|position| self.has(*position)).unwrap_or(node.position)
    }

    /// Within a `|` block, whose lines follow the indicator with equal indentation.
    fn position_in_block(&self, at: Position, line: u32, column: u32) -> Option<Position> {
        let lines = || self.text.lines().enumerate().skip((at.line as usize).saturating_sub(1));
        // The node's position may be that of the indicator or of the first character.
        let header = lines().next().filter(|(_, text)| is_block_header(text)).map(|(index, _)| index);
        let first = header.map_or(at.line as usize - 1, |index| index + 1);
        let filled = self.text.lines().skip(first).find(|text| !text.trim().is_empty())?;
        let indent = filled.chars().take_while(|c| *c == ' ').count();
        let number = |n: usize| u32::try_from(n).ok();
        Some(Position { line: number(first)? + line, column: number(indent)? + column })
    }

    fn has(&self, position: Position) -> bool {
        let line = self.text.lines().nth((position.line as usize).saturating_sub(1));
        line.is_some_and(|line| (position.column as usize) <= line.chars().count() + 1)
    }
}

/// Whether a line ends in the indicator of a block: `sql: |`, `- |2-  # comment`.
fn is_block_header(line: &str) -> bool {
    let line = line.split(" #").next().unwrap_or_default().trim_end();
    line.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-')).ends_with('|')
}

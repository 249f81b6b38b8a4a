//! Collects problems, and drops those that follow from another.

use std::collections::BTreeSet;
use std::fmt;

use crate::domain::limits::PROBLEMS_MAX;
use crate::domain::problem::{Problem, ProblemKind};

/// A JSON Pointer under construction.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Pointer(String);

impl Pointer {
    pub(super) fn key(&self, name: &str) -> Self {
        Self(format!("{}/{}", self.0, name.replace('~', "~0").replace('/', "~1")))
    }

    pub(super) fn index(&self, index: usize) -> Self {
        Self(format!("{}/{index}", self.0))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Pointer {
    fn from(pointer: &str) -> Self {
        Self(pointer.to_owned())
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The problems found so far.
#[derive(Debug, Default)]
pub(super) struct Report {
    problems: Vec<Problem>,
    warnings: Vec<Problem>,
    /// Nodes that a default replaces, because they are missing or invalid.
    replaced: BTreeSet<String>,
}

impl Report {
    /// Adds a problem, unless the node was replaced, so that its problem is reported already.
    pub(super) fn push(&mut self, kind: ProblemKind, at: &Pointer, message: impl Into<String>) {
        if !self.is_replaced(at) {
            self.push_always(kind, at, message);
        }
    }

    /// Adds a problem about the shape of the document.
    pub(super) fn push_always(&mut self, kind: ProblemKind, at: &Pointer, message: impl Into<String>) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(Problem::new(kind, at.as_str(), message));
        }
    }

    /// Adds a warning.
    pub(super) fn warn(&mut self, kind: ProblemKind, at: &Pointer, message: impl Into<String>) {
        if self.warnings.len() < PROBLEMS_MAX {
            self.warnings.push(Problem::new(kind, at.as_str(), message));
        }
    }

    pub(super) fn replace(&mut self, at: &Pointer) {
        self.replaced.insert(at.0.clone());
    }

    /// Whether the node or one around it was replaced.
    pub(super) fn is_replaced(&self, at: &Pointer) -> bool {
        let ends = at.0.match_indices('/').map(|(i, _)| i).skip(1).chain([at.0.len()]);
        std::iter::once(0).chain(ends).any(|end| self.replaced.contains(&at.0[..end]))
    }

    /// Whether the node or one within it has a problem.
    pub(super) fn has_problem_within(&self, at: &Pointer) -> bool {
        self.problems
            .iter()
            .any(|p| p.path.strip_prefix(at.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
    }

    /// Problems and warnings.
    pub(super) fn finish(self) -> (Vec<Problem>, Vec<Problem>) {
        (self.problems, self.warnings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_problem_is_reported_within_a_replaced_node() {
        let mut report = Report::default();
        report.replace(&Pointer::from("/a/1"));
        for quiet in ["/a/1", "/a/1/b", "/a/1/b/2"] {
            assert!(report.is_replaced(&Pointer::from(quiet)), "{quiet}");
        }
        for loud in ["", "/a", "/a/10", "/a/2", "/b"] {
            assert!(!report.is_replaced(&Pointer::from(loud)), "{loud}");
        }
    }

    #[test]
    fn pointers_escape_what_rfc_6901_escapes() {
        assert_eq!(Pointer::default().key("a/b~c").index(0).as_str(), "/a~1b~0c/0");
    }
}

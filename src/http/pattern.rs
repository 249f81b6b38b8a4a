//! Path patterns of routes.

use std::cmp::Ordering;

/// A part of a pattern, the most specific first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Exact(&'static str),
    /// `{name}`: one segment, not empty.
    Named(&'static str),
    /// `{name...}`: the rest of the path, at least one segment, joined by `/`.
    Rest(&'static str),
}

/// A parsed pattern such as `/api/p/{pipeline}/queries/{id}` or `/assets/{path...}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pattern(Vec<Part>);

impl Pattern {
    /// Parses `text`, which starts with `/`.
    pub(super) fn new(text: &'static str) -> Self {
        let part = |segment: &'static str| match segment.strip_prefix('{').and_then(|s| s.strip_suffix('}')) {
            Some(name) => name.strip_suffix("...").map_or(Part::Named(name), Part::Rest),
            None => Part::Exact(segment),
        };
        Self(text.strip_prefix('/').unwrap_or(text).split('/').map(part).collect())
    }

    /// The values of the names, if the pattern matches.
    pub(super) fn matches(&self, segments: &[String]) -> Option<Vec<(&'static str, String)>> {
        let mut params = Vec::new();
        let mut left = segments.iter();
        for part in &self.0 {
            let segment = left.next()?;
            match part {
                Part::Exact(text) if segment == text => {}
                Part::Exact(_) => return None,
                Part::Named(name) if !segment.is_empty() => params.push((*name, segment.clone())),
                Part::Named(_) => return None,
                Part::Rest(name) => {
                    let mut rest = segment.clone();
                    for segment in left.by_ref() {
                        rest.push('/');
                        rest.push_str(segment);
                    }
                    params.push((*name, rest));
                }
            }
        }
        left.next().is_none().then_some(params)
    }

    /// `Less`: the more specific of two patterns that match the same path.
    pub(super) fn precedence(&self, other: &Self) -> Ordering {
        let rank = |part: &Part| match part {
            Part::Exact(_) => 0,
            Part::Named(_) => 1,
            Part::Rest(_) => 2,
        };
        self.0.iter().map(rank).cmp(other.0.iter().map(rank))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &'static str, path: &str, expected: Option<&[(&str, &str)]>) {
        let segments: Vec<String> = path[1..].split('/').map(str::to_owned).collect();
        let found = Pattern::new(pattern).matches(&segments);
        let found: Option<Vec<(&str, &str)>> =
            found.as_ref().map(|params| params.iter().map(|(name, value)| (*name, value.as_str())).collect());
        assert_eq!(found.as_deref(), expected, "{pattern} {path}");
    }

    #[test]
    fn patterns_match_whole_paths() {
        check("/", "/", Some(&[]));
        check("/", "/a", None);
        check("/a", "/", None);
        check("/a", "/a", Some(&[]));
        check("/a", "/a/", None);
        check("/a/{x}", "/a/b", Some(&[("x", "b")]));
        check("/a/{x}", "/a/", None);
        check("/a/{x}", "/a/b/c", None);
        check("/a/{x}/c/{y}", "/a/1/c/2", Some(&[("x", "1"), ("y", "2")]));
        check("/a/{x...}", "/a/b/c", Some(&[("x", "b/c")]));
        check("/a/{x...}", "/a/", Some(&[("x", "")]));
        check("/a/{x...}", "/a", None);
    }

    #[test]
    fn more_specific_pattern_wins() {
        let order = ["/a/b", "/a/{x}", "/a/{x...}", "/{x}/b", "/{x...}"].map(Pattern::new);
        assert!(order.windows(2).all(|pair| pair[0].precedence(&pair[1]) == Ordering::Less));
    }
}

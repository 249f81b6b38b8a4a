//! Globs of a mapping's `files`.

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};

/// Marks a glob of files that are left out.
const LEAVES_OUT: char = '!';

/// Compiles a glob: `*` and `?` stay within a segment, `**` crosses segments.
///
/// # Errors
/// The problem.
pub fn compile_glob(glob: &str) -> Result<Glob, globset::Error> {
    GlobBuilder::new(glob).literal_separator(true).build()
}

/// The pattern of one of a mapping's `files`, and whether it leaves the files out that match it.
pub fn left_out(glob: &str) -> (&str, bool) {
    glob.strip_prefix(LEAVES_OUT).map_or((glob, false), |pattern| (pattern, true))
}

/// A glob that matches this text alone.
pub fn escape_glob(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '*' | '?' | '[' | ']' | '{' | '}' => out.extend(['[', c, ']']),
            // `[!]` would be an open class.
            LEAVES_OUT => out.extend(['{', c, '}']),
            _ => out.push(c),
        }
    }
    out
}

/// The globs of several mappings. A mapping reads a file that one of its globs matches, unless one of those that start
/// with `!` matches it, too.
#[derive(Debug)]
pub struct SourceGlobs {
    set: GlobSet,
    /// Of each glob: the position of its mapping, and whether it leaves files out.
    of: Vec<(usize, bool)>,
}

impl SourceGlobs {
    /// # Errors
    /// The first problem.
    pub fn compile<'g, G>(mappings: impl IntoIterator<Item = G>) -> Result<Self, globset::Error>
    where
        G: IntoIterator<Item = &'g String>,
    {
        let (mut set, mut of) = (GlobSetBuilder::new(), Vec::new());
        for (at, globs) in mappings.into_iter().enumerate() {
            for glob in globs {
                let (pattern, leaves_out) = left_out(glob);
                set.add(compile_glob(pattern)?);
                of.push((at, leaves_out));
            }
        }
        Ok(Self { set: set.build()?, of })
    }

    /// The positions of the mappings that read a file, ascending, and whether a mapping leaves it out.
    pub fn reading(&self, key: &str) -> (Vec<usize>, bool) {
        let found: Vec<(usize, bool)> =
            self.set.matches(key).into_iter().filter_map(|glob| self.of.get(glob).copied()).collect();
        let mut reading: Vec<usize> =
            found.iter().filter(|(at, out)| !out && !found.contains(&(*at, true))).map(|(at, _)| *at).collect();
        reading.sort_unstable();
        reading.dedup();
        (reading, found.iter().any(|(_, out)| *out))
    }

    /// Whether a mapping reads the file.
    pub fn is_match(&self, key: &str) -> bool {
        !self.reading(key).0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn globs(mappings: &[&[&str]]) -> SourceGlobs {
        let owned: Vec<Vec<String>> =
            mappings.iter().map(|globs| globs.iter().map(|glob| (*glob).to_owned()).collect()).collect();
        SourceGlobs::compile(&owned).unwrap()
    }

    #[test]
    fn files_are_left_out_wherever_the_glob_stands() {
        let found = globs(&[&["!in/bad*.csv", "in/*.csv"], &["in/*", "*"]]);
        assert_eq!(found.reading("in/a.csv"), (vec![0, 1], false));
        assert_eq!(found.reading("in/bad-1.csv"), (vec![1], true));
        assert_eq!(found.reading("x/a.csv"), (vec![], false));
        assert!(!globs(&[&["*.csv", "!a.csv"]]).is_match("a.csv"));
    }

    #[test]
    fn escaped_text_matches_itself_alone() {
        for name in ["!a.csv", "a!b.csv", "[a]{b,c}*?.csv"] {
            let found = globs(&[&[&escape_glob(name)]]);
            assert!(found.is_match(name), "{name}");
            assert!(!found.is_match("a.csv") && !found.is_match("ab.csv"));
        }
    }
}

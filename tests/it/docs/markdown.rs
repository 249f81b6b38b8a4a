//! Parses a page of the docs: its fenced blocks with the comments before them, its headings, its links.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A page, by its path from the root of the repository.
pub struct Page {
    pub path: String,
    pub text: String,
}

/// A fenced block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Line number of the opening fence, from 1.
    pub line: usize,
    /// The first word after the fence; empty if there is none.
    pub language: String,
    pub text: String,
    /// The comments (`<!-- … -->`) on lines of their own directly before it, blank lines between allowed.
    pub notes: Vec<String>,
}

impl Block {
    /// The text after `name:` in a note of that name.
    pub fn note(&self, name: &str) -> Option<&str> {
        self.notes.iter().find_map(|note| note.strip_prefix(name)?.strip_prefix(':').map(str::trim))
    }
}

/// A link: its line and its target.
#[derive(Debug, PartialEq, Eq)]
pub struct Link {
    pub line: usize,
    pub target: String,
}

pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

impl Page {
    pub fn read(path: &str) -> Self {
        let text = std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        Self { path: path.to_owned(), text }
    }

    /// The fenced blocks, in their order.
    pub fn blocks(&self) -> Vec<Block> {
        let (mut blocks, mut notes): (Vec<Block>, Vec<String>) = (Vec::new(), Vec::new());
        let mut lines = self.text.lines().enumerate();
        while let Some((at, line)) = lines.next() {
            if let Some(info) = line.strip_prefix("```") {
                let text: String = lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```").fold(
                    String::new(),
                    |mut text, line| {
                        text.push_str(line);
                        text.push('\n');
                        text
                    },
                );
                let language = info.split_whitespace().next().unwrap_or_default().to_owned();
                blocks.push(Block { line: at + 1, language, text, notes: std::mem::take(&mut notes) });
            } else if let Some(note) = comment(line) {
                notes.push(note.to_owned());
            } else if !line.trim().is_empty() {
                notes.clear();
            }
        }
        blocks
    }

    /// The lines of prose, with their numbers: without fenced blocks, and with code spans blanked.
    pub fn prose(&self) -> Vec<(usize, String)> {
        let mut within = false;
        let mut prose = Vec::new();
        for (at, line) in self.text.lines().enumerate() {
            if line.starts_with("```") {
                within = !within;
            } else if !within && !line.starts_with("    ") {
                prose.push((at + 1, without_code(line)));
            }
        }
        prose
    }

    /// The anchors of its headings, as GitHub generates them.
    pub fn anchors(&self) -> Vec<String> {
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        let mut within = false;
        let mut anchors = Vec::new();
        for line in self.text.lines() {
            within ^= line.starts_with("```");
            let level = line.len() - line.trim_start_matches('#').len();
            if within || level == 0 || level > 6 || !line[level..].starts_with(' ') {
                continue;
            }
            let anchor = anchor(line[level..].trim());
            let count = seen.entry(anchor.clone()).and_modify(|count| *count += 1).or_default();
            anchors.push(if *count == 0 { anchor } else { format!("{anchor}-{count}") });
        }
        anchors
    }

    pub fn links(&self) -> Vec<Link> {
        let mut links = Vec::new();
        for (line, text) in self.prose() {
            for (at, _) in text.match_indices("](") {
                let rest = &text[at + 2..];
                let target = rest.split_once(')').map_or(rest, |(target, _)| target);
                links.push(Link { line, target: target.trim().to_owned() });
            }
        }
        links
    }
}

/// The text of a line that is one comment.
fn comment(line: &str) -> Option<&str> {
    Some(line.trim().strip_prefix("<!--")?.strip_suffix("-->")?.trim())
}

/// The line with the contents of its code spans blanked.
fn without_code(line: &str) -> String {
    line.split('`').enumerate().map(|(at, part)| if at % 2 == 0 { part.to_owned() } else { "``".into() }).collect()
}

/// The anchor of a heading, as GitHub generates it.
pub fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// The README, the changelog, the architecture, and every page below `docs`, in order.
pub fn pages() -> Vec<Page> {
    fn walk(folder: &Path, prefix: &str, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            if entry.path().is_dir() {
                walk(&entry.path(), &format!("{name}/"), found);
            } else if name.ends_with(".md") {
                found.push(name);
            }
        }
    }
    let mut paths = vec!["ARCHITECTURE.md".to_owned(), "CHANGELOG.md".to_owned(), "README.md".to_owned()];
    walk(&root().join("docs"), "docs/", &mut paths);
    paths.sort();
    paths.iter().map(|path| Page::read(path)).collect()
}

#[test]
fn blocks_come_with_their_language_their_line_and_the_comments_before_them() {
    let text =
        "# A b, `c`!\n\n<!-- file: x.json -->\n\n```json {1}\n{}\n```\ntext\n<!-- other -->\ntext\n```sh\nls\n```\n";
    let page = Page { path: "x.md".into(), text: format!("{text}## A b c\n[x](y.md#z) `[no](no)` ![p](q.png)\n") };
    let blocks = page.blocks();
    assert_eq!(blocks.len(), 2);
    assert_eq!((blocks[0].line, blocks[0].language.as_str(), blocks[0].text.as_str()), (5, "json", "{}\n"));
    assert_eq!((blocks[0].note("file"), blocks[1].notes.len()), (Some("x.json"), 0));
    assert_eq!(page.anchors(), ["a-b-c", "a-b-c-1"]);
    let links: Vec<String> = page.links().into_iter().map(|link| link.target).collect();
    assert_eq!(links, ["y.md#z", "q.png"]);
}

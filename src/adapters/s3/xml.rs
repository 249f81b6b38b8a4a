//! The XML that stores answer with, as a tree, and the little that is sent to them.
//!
//! Text is kept to the byte: no space is cut off, since keys may begin and end with it. Namespaces are ignored.

use quick_xml::Reader;
use quick_xml::events::{BytesRef, Event};

/// Elements within one another, at most.
const DEPTH_MAX: usize = 32;

/// An element.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Node {
    /// Without a namespace prefix.
    pub(super) name: String,
    pub(super) text: String,
    pub(super) children: Vec<Node>,
}

impl Node {
    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Node> {
        self.children.iter().filter(move |child| child.name == name)
    }

    pub(super) fn child(&self, name: &str) -> Option<&Node> {
        self.children.iter().find(|child| child.name == name)
    }

    pub(super) fn text_of(&self, name: &str) -> Option<&str> {
        self.child(name).map(|child| child.text.as_str())
    }
}

/// Why a document can't be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum XmlError {
    #[error("expected an XML document, found {found}")]
    Malformed { found: String },
    #[error("expected XML at most {DEPTH_MAX} elements deep, found a deeper one")]
    TooDeep,
    #[error("expected an XML document, found an entity `&{name};`")]
    UnknownEntity { name: String },
}

fn malformed(found: impl std::fmt::Display) -> XmlError {
    XmlError::Malformed { found: found.to_string() }
}

/// Parses a document and gives its root.
pub(super) fn parse(bytes: &[u8]) -> Result<Node, XmlError> {
    let text = std::str::from_utf8(bytes).map_err(|_| malformed("bytes that are no UTF-8"))?;
    let mut reader = Reader::from_str(text);
    let mut open: Vec<Node> = Vec::new();
    loop {
        let done = match reader.read_event().map_err(malformed)? {
            Event::Start(start) => {
                if open.len() == DEPTH_MAX {
                    return Err(XmlError::TooDeep);
                }
                open.push(Node { name: name_of(start.local_name().as_ref()), ..Node::default() });
                None
            }
            Event::Empty(empty) => {
                close(&mut open, Node { name: name_of(empty.local_name().as_ref()), ..Node::default() })
            }
            // The reader checks that names match.
            Event::End(_) => open.pop().and_then(|node| close(&mut open, node)),
            Event::Text(piece) => append(&mut open, &piece.xml10_content().map_err(malformed)?),
            Event::CData(piece) => append(&mut open, &piece.xml10_content().map_err(malformed)?),
            Event::GeneralRef(reference) => append(&mut open, &resolve(&reference)?.to_string()),
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => None,
            Event::Eof => return Err(malformed(if open.is_empty() { "nothing" } else { "its end before its root's" })),
        };
        if let Some(root) = done {
            return Ok(root);
        }
    }
}

fn name_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Puts a finished element into the one around it; gives it back if it is the root.
fn close(open: &mut [Node], node: Node) -> Option<Node> {
    match open.last_mut() {
        Some(parent) => {
            parent.children.push(node);
            None
        }
        None => Some(node),
    }
}

fn append(open: &mut [Node], text: &str) -> Option<Node> {
    if let Some(node) = open.last_mut() {
        node.text.push_str(text);
    }
    None
}

fn resolve(reference: &BytesRef<'_>) -> Result<char, XmlError> {
    if let Some(c) = reference.resolve_char_ref().map_err(malformed)? {
        return Ok(c);
    }
    let name = reference.decode().map_err(malformed)?;
    match name.as_ref() {
        "amp" => Ok('&'),
        "lt" => Ok('<'),
        "gt" => Ok('>'),
        "quot" => Ok('"'),
        "apos" => Ok('\''),
        name => Err(XmlError::UnknownEntity { name: name.chars().take(50).collect() }),
    }
}

/// Text as it stands between tags.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\t' | '\n' | '\r' => escaped.push_str(&format!("&#{};", u32::from(c))),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Whether XML 1.0 has a way to hold the text.
pub(super) fn can_hold(text: &str) -> bool {
    text.chars().all(|c| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..) && c != '\u{7f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_kept_to_the_byte() {
        let document =
            "<?xml version=\"1.0\"?>\n<a xmlns=\"u\"> <k> x &amp;&#233;&#x1F986;<![CDATA[ <y> ]]>\t</k><e/></a>";
        let root = parse(document.as_bytes()).unwrap();
        assert_eq!(root.name, "a");
        assert_eq!(root.text_of("k"), Some(" x &é🦆 <y> \t"));
        assert_eq!(root.text_of("e"), Some(""));
        assert_eq!(root.text_of("none"), None);
    }

    #[test]
    fn what_was_escaped_is_read_back() {
        let text = " a&b<c>\"d'\t\n\r é";
        let document = format!("<k>{}</k>", escape(text));
        assert_eq!(parse(document.as_bytes()).unwrap().text, text);
    }

    #[test]
    fn garbage_is_an_error() {
        let deep = "<a>".repeat(1_000);
        for bad in ["", "hello", "<a>", "<a><b></a>", "<a>&nope;</a>", "<a>&#0;</a>", "<a", deep.as_str()] {
            assert!(parse(bad.as_bytes()).is_err(), "{}", &bad[..bad.len().min(20)]);
        }
        assert!(parse(b"<a>\xff</a>").is_err());
    }

    #[test]
    fn what_xml_cannot_hold_is_known() {
        assert!(can_hold("a b\t\r\né🦆"));
        for c in ['\0', '\u{1}', '\u{1f}', '\u{fffe}', '\u{ffff}', '\u{7f}'] {
            assert!(!can_hold(&c.to_string()), "{c:?}");
        }
    }
}

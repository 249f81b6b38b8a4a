//! Parses XML responses by serde, and escapes text for requests.
//!
//! Invariant: text is kept byte for byte, since keys may begin and end with spaces. Namespaces are ignored.

use std::num::NonZeroUsize;

use quick_xml::Reader;
use quick_xml::de::{DeError, Deserializer};
use quick_xml::events::Event;
use serde::de::DeserializeOwned;

/// Maximum number of other elements and texts between two elements of one list.
const EVENTS_BETWEEN_MAX: NonZeroUsize = NonZeroUsize::new(1 << 20).expect("not 0");

/// Maximum nesting of elements.
const DEPTH_MAX: usize = 32;

/// Why a document can't be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum XmlError {
    #[error("expected an XML document, found {0}")]
    Malformed(String),
    #[error("expected XML at most {DEPTH_MAX} elements deep, found a deeper one")]
    TooDeep,
}

impl From<DeError> for XmlError {
    fn from(error: DeError) -> Self {
        Self::Malformed(error.to_string())
    }
}

impl From<quick_xml::Error> for XmlError {
    fn from(error: quick_xml::Error) -> Self {
        Self::Malformed(error.to_string())
    }
}

/// A document, checked to be well-formed, and the name of its root.
pub(super) struct Document<'a> {
    pub(super) root: String,
    text: &'a str,
}

impl<'a> Document<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, XmlError> {
        let text =
            std::str::from_utf8(bytes).map_err(|_| XmlError::Malformed("bytes that are not UTF-8".to_owned()))?;
        let mut reader = Reader::from_str(text);
        let (mut root, mut depth) = (None, 0_usize);
        loop {
            match reader.read_event()? {
                Event::Start(start) => {
                    depth += 1;
                    root.get_or_insert_with(|| String::from_utf8_lossy(start.local_name().as_ref()).into_owned());
                }
                Event::Empty(empty) => {
                    root.get_or_insert_with(|| String::from_utf8_lossy(empty.local_name().as_ref()).into_owned());
                }
                Event::End(_) => depth -= 1,
                Event::Eof if depth > 0 => {
                    return Err(XmlError::Malformed("an unclosed root element".to_owned()));
                }
                Event::Eof => break,
                Event::Text(_)
                | Event::CData(_)
                | Event::GeneralRef(_)
                | Event::Comment(_)
                | Event::Decl(_)
                | Event::PI(_)
                | Event::DocType(_) => {}
            }
            if depth > DEPTH_MAX {
                return Err(XmlError::TooDeep);
            }
            if depth == 0 && root.is_some() {
                break;
            }
        }
        let root = root.ok_or_else(|| XmlError::Malformed("nothing".to_owned()))?;
        Ok(Self { root, text })
    }

    pub(super) fn read<T: DeserializeOwned>(&self) -> Result<T, XmlError> {
        let mut deserializer = Deserializer::from_str(self.text);
        deserializer.event_buffer_size(Some(EVENTS_BETWEEN_MAX));
        Ok(T::deserialize(&mut deserializer)?)
    }
}

/// Text escaped for use between tags.
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

/// Whether XML 1.0 can represent the text.
pub(super) fn can_represent(text: &str) -> bool {
    text.chars().all(|c| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..) && c != '\u{7f}')
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Default, Deserialize, PartialEq)]
    #[serde(default)]
    struct Element {
        k: Vec<String>,
        e: Option<String>,
        none: Option<String>,
    }

    fn read(document: &str) -> Result<Element, XmlError> {
        Document::parse(document.as_bytes())?.read()
    }

    #[test]
    fn text_is_kept_byte_for_byte() {
        let document = "<?xml version=\"1.0\"?>\n<a xmlns=\"u\"> <k> x &amp;&#233;&#x1F986;<![CDATA[ <y> ]]>\t</k><e/><k> </k></a>";
        assert_eq!(Document::parse(document.as_bytes()).unwrap().root, "a");
        let root = read(document).unwrap();
        assert_eq!(root.k, [" x &é🦆 <y> \t", " "]);
        assert_eq!((root.e.as_deref(), root.none), (Some(""), None));
    }

    #[test]
    fn escaped_text_is_read_back() {
        let text = " a&b<c>\"d'\t\n\r é";
        assert_eq!(read(&format!("<a><k>{}</k></a>", escape(text))).unwrap().k, [text]);
    }

    #[test]
    fn unknown_elements_are_ignored_at_any_position() {
        let document = "<s:a xmlns:s=\"u\">\n<s:k>1</s:k><x><k>2</k></x> <s:k>3</s:k><y/></s:a>";
        assert_eq!(read(document).unwrap().k, ["1", "3"]);
    }

    #[test]
    fn malformed_documents_are_errors() {
        let deep = "<a>".repeat(1_000);
        let closed = format!("{}{}", "<a>".repeat(100), "</a>".repeat(100));
        for bad in [
            "",
            "hello",
            "<a>",
            "<a><b></a>",
            "<a><k>&nope;</k></a>",
            "<a><k>&#0;</k></a>",
            "<a",
            deep.as_str(),
            closed.as_str(),
        ] {
            assert!(read(bad).is_err(), "{}", &bad[..bad.len().min(20)]);
        }
        assert!(Document::parse(b"<a>\xff</a>").is_err());
    }

    #[test]
    fn characters_outside_xml_are_recognized() {
        assert!(can_represent("a b\t\r\né🦆"));
        for c in ['\0', '\u{1}', '\u{1f}', '\u{fffe}', '\u{ffff}', '\u{7f}'] {
            assert!(!can_represent(&c.to_string()), "{c:?}");
        }
    }
}

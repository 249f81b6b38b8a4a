//! Reads lines of a source by number.
//!
//! Invariant: lines are counted as in rejected rows: by LF, with or without a CR before it, or by CR if the start of
//! the source has only CRs. Memory is bounded by the shown lines, wherever they are.

use std::io::Read;

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};
use memchr::{memchr, memchr_iter};

use super::decode::{Decode, DecodeNotes};
use super::error::ReadError;
use super::inflate::Inflate;

/// Text buffered while lines are skipped.
const BUFFER_BYTES: usize = 256 << 10;
/// Characters after which a shown line is truncated.
pub const LINE_CHARS_MAX: usize = 4_096;
/// Bytes kept of a line: a character has at most four.
const LINE_BYTES_MAX: usize = 4 * LINE_CHARS_MAX;

/// The lines to read, and the limits for reading.
#[derive(Debug, Clone, Copy)]
pub struct LinesWanted {
    /// Counted from 1.
    pub first: u64,
    pub count: usize,
    /// Overridden by a byte order mark; `None`: UTF-8, or detected from the lines.
    pub encoding: Option<&'static Encoding>,
    /// Approximate limit of decompressed bytes to read.
    pub bytes_max: u64,
    /// Limit for the bytes of all lines together.
    pub text_bytes_max: usize,
}

/// The limit that ended the reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinesLimit {
    Bytes,
    Time,
    Text,
}

/// Lines of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceLines {
    /// Without line endings.
    pub lines: Vec<String>,
    /// Indexes in `lines` of truncated lines.
    pub cut: Vec<usize>,
    pub encoding: &'static str,
    /// Whether something follows, or may follow, the last line.
    pub more: bool,
    /// Decompressed.
    pub bytes_read: u64,
    pub limit: Option<LinesLimit>,
}

/// Reads the wanted lines. `body` is decompressed by the key's extension; `keep_going` is called between reads.
///
/// # Errors
/// See [`ReadError`].
pub fn lines(
    key: &str,
    body: Box<dyn Read + Send>,
    stored_size: u64,
    wanted: &LinesWanted,
    keep_going: &dyn Fn() -> bool,
) -> Result<SourceLines, ReadError> {
    let inflate = Inflate::open(key, body, stored_size)?;
    let mut decode = Decode::open(inflate, wanted.encoding.unwrap_or(UTF_8), b'\n')?;
    let mut collector = LineCollector::new(wanted);
    let (mut buffer, mut filled, mut notes) = (vec![0; BUFFER_BYTES], 0, DecodeNotes::default());
    let mut ended = false;
    // The first buffer is filled completely, to detect the line ending.
    while !ended && collector.limit.is_none() && !collector.is_full() {
        let read = decode.read(&mut buffer[filled..], &mut notes)?;
        (notes.lines, notes.invalid) = (Vec::new(), Vec::new());
        filled += read;
        ended = read == 0;
        if !ended && collector.newline.is_none() && buffer.len() - filled >= super::decode::DECODE_BYTES_MIN {
            continue;
        }
        collector.take(&buffer[..filled]);
        filled = 0;
        if decode.inflate().bytes() >= wanted.bytes_max {
            collector.limit = collector.limit.or(Some(LinesLimit::Bytes));
        } else if !keep_going() {
            collector.limit = collector.limit.or(Some(LinesLimit::Time));
        }
    }
    let (bytes_read, by_decoder) = (decode.inflate().bytes(), decode.encoding());
    Ok(collector.finish(ended, bytes_read, by_decoder, wanted.encoding.is_some() || decode.bom_bytes() > 0))
}

/// Counts lines and keeps the wanted ones.
struct LineCollector {
    wanted: LinesWanted,
    /// `None` until detected.
    newline: Option<u8>,
    /// The number of the current line.
    line: u64,
    /// The current line has bytes already.
    begun: bool,
    kept: Vec<CollectedLine>,
    text_bytes: usize,
    /// Something follows the last wanted line.
    behind: bool,
    limit: Option<LinesLimit>,
}

#[derive(Default)]
struct CollectedLine {
    text: Vec<u8>,
    cut: bool,
}

impl LineCollector {
    fn new(wanted: &LinesWanted) -> Self {
        let kept = Vec::new();
        let wanted = LinesWanted { first: wanted.first.max(1), ..*wanted };
        Self { wanted, newline: None, line: 1, begun: false, kept, text_bytes: 0, behind: false, limit: None }
    }

    fn end(&self) -> u64 {
        self.wanted.first.saturating_add(self.wanted.count as u64)
    }

    fn is_full(&self) -> bool {
        self.behind
    }

    fn take(&mut self, text: &[u8]) {
        let newline = *self.newline.get_or_insert_with(|| match memchr(b'\n', text) {
            None if memchr(b'\r', text).is_some() => b'\r',
            Some(_) | None => b'\n',
        });
        let mut rest = text;
        if self.line < self.wanted.first {
            rest = self.pass(rest, newline);
        }
        while !rest.is_empty() && self.limit.is_none() {
            if self.line >= self.end() {
                self.behind = true;
                return;
            }
            let end = memchr(newline, rest);
            self.keep(&rest[..end.unwrap_or(rest.len())]);
            self.begun = end.is_none();
            self.line += u64::from(end.is_some());
            rest = end.map_or(&[][..], |end| &rest[end + 1..]);
        }
    }

    /// The text after the lines before the first wanted one.
    fn pass<'t>(&mut self, text: &'t [u8], newline: u8) -> &'t [u8] {
        for end in memchr_iter(newline, text) {
            self.line += 1;
            if self.line == self.wanted.first {
                return &text[end + 1..];
            }
        }
        &[]
    }

    /// Keeps a part of the current line.
    fn keep(&mut self, part: &[u8]) {
        if !self.begun {
            if self.text_bytes >= self.wanted.text_bytes_max {
                self.limit = Some(LinesLimit::Text);
                return;
            }
            self.kept.push(CollectedLine::default());
        }
        let Some(kept) = self.kept.last_mut() else { return };
        let room = LINE_BYTES_MAX - kept.text.len();
        kept.cut |= part.len() > room;
        kept.text.extend_from_slice(&part[..part.len().min(room)]);
        self.text_bytes += part.len().min(room);
    }

    fn finish(self, ended: bool, bytes_read: u64, decoder: &'static Encoding, is_given: bool) -> SourceLines {
        let encoding = match is_given || decoder != UTF_8 || is_utf8(&self.kept) {
            true => decoder,
            false => WINDOWS_1252,
        };
        // Other encodings were already decoded to UTF-8.
        let latin = encoding == WINDOWS_1252 && decoder == UTF_8;
        let (mut lines, mut cut) = (Vec::with_capacity(self.kept.len()), Vec::new());
        for (at, CollectedLine { mut text, cut: was_cut }) in self.kept.into_iter().enumerate() {
            if !was_cut && self.newline == Some(b'\n') && text.last() == Some(&b'\r') {
                text.pop();
            }
            let whole = match latin {
                true => WINDOWS_1252.decode_without_bom_handling(&text).0.into_owned(),
                false => String::from_utf8_lossy(&text).into_owned(),
            };
            let end = whole.char_indices().nth(LINE_CHARS_MAX).map(|(end, _)| end);
            if was_cut || end.is_some() {
                cut.push(at);
            }
            lines.push(end.map_or_else(|| whole.clone(), |end| whole[..end].to_owned()));
        }
        let more = self.behind || !ended;
        SourceLines { lines, cut, encoding: encoding.name(), more, bytes_read, limit: self.limit }
    }
}

/// Whether the bytes beyond ASCII are mostly valid UTF-8. The end of a truncated line is ignored.
fn is_utf8(kept: &[CollectedLine]) -> bool {
    let (mut valid, mut invalid) = (0_usize, 0_usize);
    for line in kept {
        let mut chunks = line.text.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            valid += chunk.valid().bytes().filter(|byte| *byte >= 0xc0).count();
            let at_cut = line.cut && chunks.peek().is_none();
            invalid += usize::from(!chunk.invalid().is_empty() && !at_cut);
        }
    }
    invalid <= valid
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use encoding_rs::UTF_16LE;

    use super::*;

    fn of(bytes: &[u8], first: u64, count: usize) -> SourceLines {
        let wanted = LinesWanted { first, count, encoding: None, bytes_max: 1 << 30, text_bytes_max: 1 << 20 };
        read(bytes, &wanted)
    }

    fn read(bytes: &[u8], wanted: &LinesWanted) -> SourceLines {
        lines("a.csv", Box::new(Cursor::new(bytes.to_vec())), bytes.len() as u64, wanted, &|| true).unwrap()
    }

    #[test]
    fn lines_are_found_by_number_with_any_line_ending() {
        for (text, all) in [
            ("a\nb\nc\n", &["a", "b", "c"][..]),
            ("a\r\nb\r\nc", &["a", "b", "c"]),
            ("a\rb\rc\r", &["a", "b", "c"]),
            ("a\rb\nc", &["a\rb", "c"]),
            ("a\n\n\"x\ny\"\n", &["a", "", "\"x", "y\""]),
            ("", &[]),
            ("\n", &[""]),
        ] {
            for first in 1..=all.len() as u64 + 2 {
                for count in 1..=all.len() + 1 {
                    let from = (first as usize - 1).min(all.len());
                    let to = (from + count).min(all.len());
                    let found = of(text.as_bytes(), first, count);
                    assert_eq!(found.lines, all[from..to], "{text:?} {first} {count}");
                    assert_eq!(found.more, to < all.len(), "{text:?} {first} {count}");
                }
            }
        }
    }

    #[test]
    fn lines_deep_in_a_source_are_found() {
        let text: String = (1..=200_000).map(|n| format!("line {n}\n")).collect();
        let found = of(text.as_bytes(), 123_456, 3);
        assert_eq!(found.lines, ["line 123456", "line 123457", "line 123458"]);
        assert!(found.more && found.bytes_read < text.len() as u64);
    }

    #[test]
    fn encoding_is_detected_from_the_shown_lines() {
        let utf8 = of("Zoë\n".as_bytes(), 1, 1);
        assert_eq!((utf8.lines[0].as_str(), utf8.encoding), ("Zoë", "UTF-8"));
        let latin = of(b"x\nZo\xeb \x80\n", 1, 9);
        assert_eq!((latin.lines[1].as_str(), latin.encoding), ("Zoë €", "windows-1252"));
        let mostly = of(b"\xc3\xa9\xc3\xa9\xff\n", 1, 9);
        assert_eq!((mostly.lines[0].as_str(), mostly.encoding), ("éé\u{fffd}", "UTF-8"));
        let utf16: Vec<u8> = "a\r\nZoë\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let marked = of(&[b"\xff\xfe", &utf16[..]].concat(), 2, 1);
        assert_eq!((marked.lines[0].as_str(), marked.encoding), ("Zoë", "UTF-16LE"));
        let wanted =
            LinesWanted { first: 2, count: 9, encoding: Some(UTF_16LE), bytes_max: 1 << 20, text_bytes_max: 1 << 20 };
        assert_eq!(read(&utf16, &wanted).lines, ["Zoë"]);
    }

    #[test]
    fn long_lines_are_truncated_at_a_character_and_marked() {
        let text = format!("{}\n{}\r\nx\n", "é".repeat(LINE_CHARS_MAX + 1), "€".repeat(LINE_CHARS_MAX));
        let found = of(text.as_bytes(), 1, 9);
        assert_eq!(found.lines[0], "é".repeat(LINE_CHARS_MAX));
        assert_eq!(found.lines[1], "€".repeat(LINE_CHARS_MAX));
        assert_eq!((found.lines[2].as_str(), found.cut.as_slice()), ("x", &[0][..]));
        let huge = of(&[&b"\xf0\x9f\x98\x80"[..]; 50_000].concat(), 1, 1);
        assert_eq!((huge.lines[0].chars().count(), huge.cut.len(), huge.encoding), (LINE_CHARS_MAX, 1, "UTF-8"));
    }

    #[test]
    fn reached_limit_is_reported() {
        let text = "0123456789\n".repeat(1 << 17);
        let wanted = |bytes_max, text_bytes_max| LinesWanted {
            first: 1,
            count: 1 << 17,
            encoding: None,
            bytes_max,
            text_bytes_max,
        };
        let bytes = read(text.as_bytes(), &wanted(300 << 10, 1 << 30));
        assert_eq!((bytes.limit, bytes.more), (Some(LinesLimit::Bytes), true));
        assert!(bytes.lines.len() < 1 << 17);
        let room = read(text.as_bytes(), &wanted(1 << 30, 100));
        assert_eq!((room.limit, room.more, room.lines.len()), (Some(LinesLimit::Text), true, 10));
        let body = Box::new(Cursor::new(text.clone().into_bytes()));
        let late = lines("a.csv", body, 0, &wanted(1 << 30, 1 << 30), &|| false).unwrap();
        assert_eq!((late.limit, late.more), (Some(LinesLimit::Time), true));
    }
}

//! Decodes a source to UTF-8, by its byte order mark or the dialect's encoding.

use encoding_rs::{Decoder, DecoderResult, Encoding, UTF_8, UTF_16BE, UTF_16LE};

use super::chunk::OffsetMapping;
use super::error::ReadError;
use super::inflate::Inflate;
use super::stored::StoredBody;

const RAW_BYTES: usize = 64 << 10;
/// Minimal size of a read: a few characters of any encoding.
pub(super) const DECODE_BYTES_MIN: usize = 64;
const REPLACEMENT: &[u8] = "\u{fffd}".as_bytes();

/// Offsets noted while decoding; positions count the text from the start of the source.
#[derive(Debug, Default)]
pub(super) struct DecodeNotes {
    /// (text, source) after each line and at the end, for encodings whose byte counts don't follow from the text.
    pub lines: Vec<(u64, u64)>,
    /// (text, source) of each malformed sequence.
    pub invalid: Vec<(u64, u64)>,
    /// The source's length once everything is decoded: half a UTF-16 unit at its end doesn't show in the text.
    pub end: Option<u64>,
}

/// The decoded bytes of an object.
pub(super) struct Decode {
    inflate: Inflate,
    encoding: &'static Encoding,
    kind: DecodeKind,
    bom_bytes: u64,
}

enum DecodeKind {
    /// Bytes pass unchanged; `head` was read to detect the mark and comes first.
    Utf8 {
        head: Vec<u8>,
    },
    Transcoded(Box<Transcoded>),
}

struct Transcoded {
    decoder: Decoder,
    raw: Vec<u8>,
    raw_at: usize,
    raw_end: usize,
    raw_ended: bool,
    finished: bool,
    /// Source bytes decoded.
    consumed: u64,
    /// Text bytes returned.
    given: u64,
    /// The line terminator, if line ends are noted.
    note_lines: Option<u8>,
}

impl Decode {
    pub fn open(mut inflate: Inflate, label: &'static Encoding, newline: u8) -> Result<Self, ReadError> {
        let mut head = vec![0; 3];
        let mut filled = 0;
        while filled < head.len() {
            match inflate.read(&mut head[filled..])? {
                0 => break,
                read => filled += read,
            }
        }
        head.truncate(filled);
        let (encoding, bom) = Encoding::for_bom(&head).unwrap_or((label, 0));
        if encoding == encoding_rs::REPLACEMENT {
            return Err(ReadError::Undecodable { key: inflate.key().to_owned(), encoding: encoding.name() });
        }
        head.drain(..bom);
        let kind = if encoding == UTF_8 {
            DecodeKind::Utf8 { head }
        } else {
            let mut raw = vec![0; RAW_BYTES];
            raw[..head.len()].copy_from_slice(&head);
            DecodeKind::Transcoded(Box::new(Transcoded {
                decoder: encoding.new_decoder_without_bom_handling(),
                raw,
                raw_at: 0,
                raw_end: head.len(),
                raw_ended: false,
                finished: false,
                consumed: bom as u64,
                given: 0,
                note_lines: matches!(mapping_of(encoding), OffsetMapping::Lines(_)).then_some(newline),
            }))
        };
        Ok(Self { inflate, encoding, kind, bom_bytes: bom as u64 })
    }

    pub fn inflate(&self) -> &Inflate {
        &self.inflate
    }

    /// The object, if further reads return its stored bytes.
    pub fn as_stored(&mut self) -> Option<&mut StoredBody> {
        match &self.kind {
            DecodeKind::Utf8 { head } if head.is_empty() => self.inflate.as_stored(),
            DecodeKind::Utf8 { .. } | DecodeKind::Transcoded(_) => None,
        }
    }

    pub fn encoding(&self) -> &'static Encoding {
        self.encoding
    }

    pub fn offset_mapping(&self) -> OffsetMapping {
        mapping_of(self.encoding)
    }

    /// Bytes of the byte order mark.
    pub fn bom_bytes(&self) -> u64 {
        self.bom_bytes
    }

    /// Reads text into `out`, which holds at least `DECODE_BYTES_MIN` bytes; 0 at the end of the object.
    pub fn read(&mut self, out: &mut [u8], notes: &mut DecodeNotes) -> Result<usize, ReadError> {
        match &mut self.kind {
            DecodeKind::Utf8 { head } if head.is_empty() => self.inflate.read(out),
            DecodeKind::Utf8 { head } => {
                let length = head.len();
                out[..length].copy_from_slice(head);
                head.clear();
                Ok(length)
            }
            DecodeKind::Transcoded(transcoded) => transcoded.read(&mut self.inflate, out, notes),
        }
    }
}

fn mapping_of(encoding: &'static Encoding) -> OffsetMapping {
    if encoding == UTF_8 {
        OffsetMapping::Identity
    } else if encoding == UTF_16LE || encoding == UTF_16BE {
        OffsetMapping::Utf16
    } else if encoding.is_single_byte() {
        OffsetMapping::SingleByte
    } else {
        OffsetMapping::Lines(Vec::new())
    }
}

impl Transcoded {
    fn read(&mut self, inflate: &mut Inflate, out: &mut [u8], notes: &mut DecodeNotes) -> Result<usize, ReadError> {
        let mut written = 0;
        while !self.finished && out.len() - written >= DECODE_BYTES_MIN {
            if self.raw_at == self.raw_end && !self.raw_ended {
                if written > 0 {
                    break;
                }
                self.raw_at = 0;
                self.raw_end = inflate.read(&mut self.raw)?;
                self.raw_ended = self.raw_end == 0;
            }
            written += self.piece(&mut out[written..], notes);
        }
        Ok(written)
    }

    /// Decodes up to the end of a line if line ends are noted, otherwise everything available.
    fn piece(&mut self, out: &mut [u8], notes: &mut DecodeNotes) -> usize {
        let raw = &self.raw[self.raw_at..self.raw_end];
        let line = self.note_lines.and_then(|newline| memchr::memchr(newline, raw));
        let source = line.map_or(raw, |end| &raw[..=end]);
        let room = out.len() - REPLACEMENT.len();
        let (result, read, mut written) =
            self.decoder.decode_to_utf8_without_replacement(source, &mut out[..room], self.raw_ended);
        let whole = read == source.len();
        self.raw_at += read;
        self.consumed += read as u64;
        match result {
            DecoderResult::InputEmpty => {
                self.finished = self.raw_ended;
                let is_end = self.finished && self.note_lines.is_some();
                if is_end || (line.is_some() && whole) {
                    notes.lines.push((self.given + written as u64, self.consumed));
                }
            }
            DecoderResult::OutputFull => {}
            DecoderResult::Malformed(length, after) => {
                let start = self.consumed - u64::from(length) - u64::from(after);
                notes.invalid.push((self.given + written as u64, start));
                out[written..written + REPLACEMENT.len()].copy_from_slice(REPLACEMENT);
                written += REPLACEMENT.len();
            }
        }
        self.given += written as u64;
        notes.end = self.finished.then_some(self.consumed);
        written
    }
}

//! Detects the encoding of a file by its first bytes, and whether it is text.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

/// The detected encoding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodingGuess {
    pub encoding: &'static Encoding,
    pub bom: bool,
    pub why: String,
    pub warning: Option<String>,
}

/// Maximal share of control characters, in per mille.
const CONTROLS_PER_MILLE_MAX: usize = 10;
/// Minimal share of two-byte units with a zero byte for UTF-16 without a byte order mark, in per mille.
const ZEROS_PER_MILLE_MIN: usize = 400;
/// Magic bytes of other formats.
const MAGICS: [(&[u8], &str); 10] = [
    (b"PAR1", "a Parquet file"),
    (b"%PDF", "a PDF file"),
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"\xd0\xcf\x11\xe0", "an old Excel or Word file"),
    (b"SQLite format 3", "an SQLite database"),
    (b"ARROW1", "an Arrow file"),
    (b"\x7fELF", "a program"),
    (b"BZh", "bzip2 data"),
];

/// Examines the head of a file; `whole`: the whole file.
///
/// # Errors
/// Why it is not text.
pub fn guess(bytes: &[u8], whole: bool) -> Result<EncodingGuess, String> {
    if let Some((_, what)) = MAGICS.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        return Err(format!("it is {what}"));
    }
    let guess = by_bytes(bytes, whole);
    let (text, _, _) = guess.encoding.decode(bytes);
    let (mut all, mut controls) = (0, 0);
    for c in text.chars() {
        all += 1;
        if c == '\0' {
            return Err("it has NUL characters, so it is not text (or UTF-16 without a byte order mark)".into());
        }
        // Some exports use ASCII's separator characters.
        controls += usize::from(
            c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\x01'..='\x03' | '\x0b' | '\x0c' | '\x1c'..='\x1f'),
        );
    }
    if controls * 1_000 > all * CONTROLS_PER_MILLE_MAX {
        return Err(format!("{controls} of its first {all} characters are control characters, so it is not text"));
    }
    Ok(guess)
}

fn by_bytes(bytes: &[u8], whole: bool) -> EncodingGuess {
    let sure =
        |encoding: &'static Encoding, bom, why: &str| EncodingGuess { encoding, bom, why: why.into(), warning: None };
    if let Some((encoding, _)) = Encoding::for_bom(bytes) {
        return sure(encoding, true, "it starts with a byte order mark");
    }
    let units = (bytes.len() / 2).max(1);
    let zeros = |at: usize| bytes.iter().skip(at).step_by(2).filter(|b| **b == 0).count();
    for (at, encoding) in [(1, UTF_16LE), (0, UTF_16BE)] {
        if zeros(at) * 1_000 >= units * ZEROS_PER_MILLE_MIN && zeros(1 - at) * 1_000 < units * ZEROS_PER_MILLE_MIN {
            return sure(encoding, false, "every other byte is zero, as in UTF-16 of western text");
        }
    }
    let (valid, invalid) = sequences(bytes, whole);
    match (valid, invalid) {
        (0, 0) => sure(UTF_8, false, "plain ASCII"),
        (_, 0) => sure(UTF_8, false, "all characters beyond ASCII are valid UTF-8"),
        (valid, invalid) if valid > invalid => EncodingGuess {
            warning: Some(format!(
                "{invalid} sequences are not valid UTF-8, {valid} are; records with invalid ones are rejected"
            )),
            ..sure(UTF_8, false, "most of its characters beyond ASCII are valid UTF-8")
        },
        (_, invalid) => latin(invalid),
    }
}

/// The proposal for text that is not UTF-8.
pub fn latin(invalid: usize) -> EncodingGuess {
    EncodingGuess {
        encoding: WINDOWS_1252,
        bom: false,
        why: format!("{invalid} sequences are not UTF-8; windows-1252 (a superset of latin-1) reads every byte"),
        warning: Some(
            "the encoding is a guess: other single-byte encodings read these bytes as different letters; check some \
             values beyond ASCII"
                .into(),
        ),
    }
}

/// Valid and invalid sequences beyond ASCII. A sequence truncated at the end of the head is not counted.
fn sequences(bytes: &[u8], whole: bool) -> (usize, usize) {
    let (mut valid, mut invalid) = (0, 0);
    let mut chunks = bytes.utf8_chunks().peekable();
    while let Some(chunk) = chunks.next() {
        valid += chunk.valid().bytes().filter(|b| *b >= 0xc0).count();
        let cut = chunks.peek().is_none() && !whole && chunk.invalid().len() < 4;
        invalid += usize::from(!chunk.invalid().is_empty() && !cut);
    }
    (valid, invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoding_is_detected_by_mark_zero_bytes_or_validity() {
        let utf16: Vec<u8> = "id,name\n1,Zoë\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(guess(&utf16, true).unwrap().encoding, UTF_16LE);
        let marked = [b"\xff\xfe", &utf16[..]].concat();
        assert_eq!(guess(&marked, true).unwrap().encoding, UTF_16LE);
        assert_eq!(guess("a,Zoë\n".as_bytes(), true).unwrap().encoding, UTF_8);
        assert_eq!(guess(b"a,Zo\xeb\n", true).unwrap().encoding, WINDOWS_1252);
        assert_eq!(guess("é é é \u{e9}".as_bytes(), true).unwrap().encoding, UTF_8);
        let mostly = ["é é é ".as_bytes(), b"\xff"].concat();
        let damaged = guess(&mostly, true).unwrap();
        assert_eq!(damaged.encoding, UTF_8);
        assert!(damaged.warning.is_some());
    }

    #[test]
    fn truncated_character_at_the_end_of_the_head_is_valid_utf_8() {
        let text = "Zoë é".as_bytes();
        assert_eq!(guess(&text[..text.len() - 1], false).unwrap().encoding, UTF_8);
    }

    #[test]
    fn binary_data_is_refused_with_a_reason() {
        assert!(guess(b"\x89PNG\r\n\x1a\n", true).unwrap_err().contains("PNG"));
        assert!(guess(b"a,b\nc,\0\n", true).unwrap_err().contains("NUL"));
        let noise: Vec<u8> = (0..400).map(|i| (i * 7 % 31 + 1) as u8).collect();
        assert!(guess(&noise, true).is_err());
    }
}

//! SHA-256 and HMAC-SHA256 in hex, as in manifests, keys and signatures, and base64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use sha2::{Digest, Sha256};

/// The SHA-256 of `bytes`, 64 hex digits.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// The HMAC-SHA256 of the parts, one after the other, 64 hex digits. The key may have any length.
pub fn hmac_sha256_hex(key: &[u8], parts: &[&[u8]]) -> String {
    let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, key));
    for part in parts {
        context.update(part);
    }
    hex(context.sign().as_ref())
}

/// Lowercase hex.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes.iter().flat_map(|b| [DIGITS[usize::from(b >> 4)] as char, DIGITS[usize::from(b & 15)] as char]).collect()
}

/// The bytes of hex in lower case; `None` if the text isn't hex.
pub fn decode_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |c: u8| char::from(c).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pair = |pair: &[u8]| Some(digit(*pair.first()?)? << 4 | digit(*pair.get(1)?)?);
    text.as_bytes().chunks(2).map(pair).collect()
}

/// Base64 with padding.
pub fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// The bytes of base64 with padding; `None` if the text isn't that.
pub fn decode_base64(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_padded() {
        for (bytes, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")] {
            assert_eq!(base64(bytes.as_bytes()), text);
            assert_eq!(decode_base64(text).as_deref(), Some(bytes.as_bytes()));
        }
        assert_eq!(
            (decode_base64("Zg"), decode_base64("Zg=="), decode_base64("Z g=")),
            (None, Some(b"f".to_vec()), None)
        );
        assert_eq!(base64(&[0xfb, 0xff]), "+/8=");
    }

    /// Test case 2 of RFC 4231.
    #[test]
    fn hmac_matches_the_specification() {
        let expected = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(hmac_sha256_hex(b"Jefe", &[b"what do ya want for nothing?"]), expected);
        assert_eq!(hmac_sha256_hex(b"Jefe", &[b"what do ya ", b"want for nothing?"]), expected);
    }

    #[test]
    fn hex_round_trips() {
        assert_eq!(decode_hex(&hex(&[0, 0x7f, 0xff])), Some(vec![0, 0x7f, 0xff]));
        for bad in ["0", "0g", "é"] {
            assert_eq!(decode_hex(bad), None, "{bad}");
        }
    }

    #[test]
    fn digest_of_empty_input_is_known() {
        assert_eq!(sha256_hex(b""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }
}

//! Writes Avro object container files, the form of manifests and manifest lists.
//!
//! Invariant: equal records give equal bytes. `apache-avro` writes the entries of a header in random order, and has no
//! other use here, since these files are never read back.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::DeflateEncoder;
use sha2::{Digest, Sha256};

const MAGIC: &[u8] = b"Obj\x01";
const SYNC_BYTES: usize = 16;

/// Encodes values one after the other, in the order of the schema.
#[derive(Debug, Default)]
pub(super) struct Encoder(Vec<u8>);

impl Encoder {
    /// An `int` or `long`.
    pub(super) fn long(&mut self, value: i64) {
        let mut rest = ((value << 1) ^ (value >> 63)) as u64;
        while rest >= 0x80 {
            self.0.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.0.push(rest as u8);
    }

    /// A count, which is a `long`.
    pub(super) fn count(&mut self, value: u64) {
        self.long(i64::try_from(value).unwrap_or(i64::MAX));
    }

    pub(super) fn boolean(&mut self, value: bool) {
        self.0.push(u8::from(value));
    }

    /// A `fixed`.
    pub(super) fn fixed(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// A `bytes` or `string`.
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.count(bytes.len() as u64);
        self.fixed(bytes);
    }

    /// The branch of a union of null and another type. The value of the other type follows if `is_some`.
    pub(super) fn branch(&mut self, is_some: bool) {
        self.long(i64::from(is_some));
    }

    /// An array.
    pub(super) fn array<T>(&mut self, items: &[T], mut each: impl FnMut(&mut Self, &T)) {
        if !items.is_empty() {
            self.count(items.len() as u64);
            items.iter().for_each(|item| each(self, item));
        }
        self.long(0);
    }
}

/// A whole file with these records, in one deflated block. `metadata`: entries of the header besides schema and codec.
pub(super) fn container(schema: &str, metadata: &[(&str, &str)], records: u64, body: &Encoder) -> Vec<u8> {
    let own = [("avro.schema", schema), ("avro.codec", "deflate")];
    let mut file = Encoder(MAGIC.to_vec());
    let entries: Vec<(&str, &str)> = own.into_iter().chain(metadata.iter().copied()).collect();
    file.array(&entries, |file, (key, value)| {
        file.bytes(key.as_bytes());
        file.bytes(value.as_bytes());
    });
    // A marker between blocks, which must differ from what the blocks contain.
    let sync = Sha256::digest(&body.0);
    let sync = sync.get(..SYNC_BYTES).unwrap_or_default();
    file.fixed(sync);
    if records > 0 {
        file.count(records);
        file.bytes(&deflated(&body.0));
        file.fixed(sync);
    }
    file.0
}

fn deflated(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    // Writing to memory can't fail.
    let written = encoder.write_all(bytes).and_then(|()| encoder.finish());
    written.unwrap_or_default()
}

/// A name that Avro allows for any column name. Readers identify fields by their ids.
pub(super) fn avro_name(name: &str) -> String {
    let mut made = String::with_capacity(name.len() + 1);
    for c in name.chars() {
        match c {
            '0'..='9' if made.is_empty() => made.extend(['_', c]),
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' => made.push(c),
            _ => made.push_str(&format!("_x{:X}", u32::from(c))),
        }
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_encoded_as_the_specification_says() {
        let encoded = |encode: &dyn Fn(&mut Encoder)| {
            let mut encoder = Encoder::default();
            encode(&mut encoder);
            encoder.0
        };
        for (value, bytes) in [(0, &[0][..]), (-1, &[1]), (1, &[2]), (-64, &[0x7f]), (64, &[0x80, 1])] {
            assert_eq!(encoded(&|encoder| encoder.long(value)), bytes, "{value}");
        }
        assert_eq!(encoded(&|encoder| encoder.long(i64::MIN)), [&[0xff; 9][..], &[1]].concat());
        assert_eq!(encoded(&|encoder| encoder.bytes(b"foo")), b"\x06foo");
        assert_eq!(encoded(&|encoder| encoder.array(&[3, 27], |encoder, value| encoder.long(*value))), [4, 6, 54, 0]);
        assert_eq!(encoded(&|encoder| encoder.array(&[0; 0], |encoder, value| encoder.long(*value))), [0]);
    }

    #[test]
    fn names_are_made_valid() {
        for (name, made) in [("a_1", "a_1"), ("1a", "_1a"), ("a b", "a_x20b"), ("é", "_xE9")] {
            assert_eq!(avro_name(name), made);
        }
    }
}

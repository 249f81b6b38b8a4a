//! Pages as stored in a file: the header in Thrift's compact form, then the compressed body.

use parquet::basic::{Encoding, PageType};

use super::bits::put_zigzag;

/// Field types of Thrift.
const BOOL_FALSE: u8 = 2;
const I32: u8 = 5;
const STRUCT: u8 = 12;

/// Maximum length of a header, in bytes.
const HEAD_BYTES_MAX: usize = 64;

/// Writes the fields of a struct in ascending order.
struct ThriftFields<'a> {
    out: &'a mut Vec<u8>,
    last: u8,
}

impl ThriftFields<'_> {
    fn field(&mut self, number: u8, kind: u8) {
        self.out.push((number - self.last) << 4 | kind);
        self.last = number;
    }

    fn int(&mut self, number: u8, value: usize) {
        self.field(number, I32);
        put_zigzag(value as i64, self.out);
    }

    fn inner(&mut self, number: u8, write: impl FnOnce(&mut ThriftFields<'_>)) {
        self.field(number, STRUCT);
        write(&mut ThriftFields { out: self.out, last: 0 });
        self.out.push(0);
    }
}

/// A data page of version 1: levels (run lengths) and values, compressed together.
pub(super) fn data_page(encoding: Encoding, rows: usize, body_bytes: usize, compressed: &[u8]) -> Box<[u8]> {
    page(PageType::DATA_PAGE, body_bytes, compressed, |fields| {
        fields.inner(5, |data| {
            data.int(1, rows);
            data.int(2, encoding as usize);
            data.int(3, Encoding::RLE as usize);
            data.int(4, Encoding::RLE as usize);
        });
    })
}

/// A dictionary page of `values` values in plain form.
pub(super) fn dictionary_page(values: usize, body_bytes: usize, compressed: &[u8]) -> Box<[u8]> {
    page(PageType::DICTIONARY_PAGE, body_bytes, compressed, |fields| {
        fields.inner(7, |dictionary| {
            dictionary.int(1, values);
            dictionary.int(2, Encoding::PLAIN as usize);
            dictionary.field(3, BOOL_FALSE);
        });
    })
}

fn page(kind: PageType, body_bytes: usize, compressed: &[u8], write: impl FnOnce(&mut ThriftFields<'_>)) -> Box<[u8]> {
    let mut head = Vec::with_capacity(HEAD_BYTES_MAX);
    let mut fields = ThriftFields { out: &mut head, last: 0 };
    fields.int(1, kind as usize);
    fields.int(2, body_bytes);
    fields.int(3, compressed.len());
    write(&mut fields);
    head.push(0);
    let mut page = Vec::with_capacity(head.len() + compressed.len());
    page.extend_from_slice(&head);
    page.extend_from_slice(compressed);
    page.into_boxed_slice()
}

/// Appends the definition levels of `rows`, of which `values` are present; `bits` says which, unless all or none are.
pub(super) fn put_levels(rows: usize, values: usize, bits: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    if values == rows || values == 0 {
        super::hybrid::put_run(u32::from(values > 0), rows, 1, out);
    } else {
        // A bitmap is a packed section of 1-bit levels.
        super::hybrid::put_packed_head(rows, out);
        out.extend_from_slice(&bits[..rows.div_ceil(8)]);
    }
    let length = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_match_the_format() {
        let page = data_page(Encoding::PLAIN, 3, 300, &[7, 8]);
        assert_eq!(*page, [0x15, 0, 0x15, 0xd8, 4, 0x15, 4, 0x2c, 0x15, 6, 0x15, 0, 0x15, 6, 0x15, 6, 0, 0, 7, 8]);
        let page = dictionary_page(1, 2, &[9]);
        assert_eq!(*page, [0x15, 4, 0x15, 4, 0x15, 2, 0x4c, 0x15, 2, 0x15, 0, 0x12, 0, 0, 9]);
    }

    #[test]
    fn levels_without_nulls_are_one_run() {
        let of = |rows, values, bits: &[u8]| {
            let mut out = vec![1];
            put_levels(rows, values, bits, &mut out);
            out
        };
        assert_eq!(of(100, 100, &[]), [1, 3, 0, 0, 0, 200, 1, 1]);
        assert_eq!(of(10, 0, &[]), [1, 2, 0, 0, 0, 20, 0]);
        assert_eq!(of(10, 3, &[0b111, 0]), [1, 3, 0, 0, 0, 5, 0b111, 0]);
    }
}

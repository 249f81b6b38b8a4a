//! Chooses the encoding of a column.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, StringArray};
use parquet::basic::{Encoding, PageType};

use super::super::ColumnChunk;
use super::support::{Rng, encode, file, read, schema_of};
use crate::domain::pipeline::Compression;
use crate::domain::pipeline::types::DataType as Declared;

const ROWS: usize = 20_480;

fn slabs(values: &[i64]) -> Vec<Vec<ArrayRef>> {
    values.chunks(ROWS).map(|some| vec![Arc::new(Int64Array::from(some.to_vec())) as ArrayRef]).collect()
}

/// The encodings of data pages, with their number.
fn encodings(chunk: &ColumnChunk) -> Vec<(Encoding, i32)> {
    let stats = chunk.close.metadata.page_encoding_stats().unwrap();
    stats.iter().filter(|s| s.page_type == PageType::DATA_PAGE).map(|s| (s.encoding, s.count)).collect()
}

fn integer_encodings(values: &[i64]) -> Vec<(Encoding, i32)> {
    let schema = schema_of(Declared::Int64, false);
    let chunk = encode(&schema, &slabs(values), Compression::Zstd(1));
    let encodings = encodings(&chunk);
    let read = read(&schema, &file(&schema, chunk));
    assert_eq!(read.as_ref(), &Int64Array::from(values.to_vec()) as &dyn arrow::array::Array);
    encodings
}

#[test]
fn integers_get_the_smallest_encoding() {
    let mut rng = Rng(1);
    let few: Vec<i64> = (0..3 * ROWS).map(|_| rng.below(300) as i64).collect();
    assert_eq!(integer_encodings(&few), [(Encoding::RLE_DICTIONARY, 3)]);
    let scattered: Vec<i64> = (0..3 * ROWS).map(|_| (rng.below(300) as i64) << 50).collect();
    assert_eq!(integer_encodings(&scattered), [(Encoding::RLE_DICTIONARY, 3)]);
    let rising: Vec<i64> = (0..2 * ROWS as i64).map(|row| row * 1_000_000).collect();
    assert_eq!(integer_encodings(&rising), [(Encoding::DELTA_BINARY_PACKED, 2)]);
    let narrow: Vec<i64> = (0..ROWS).map(|_| rng.below(1 << 31) as i64).collect();
    assert_eq!(integer_encodings(&narrow), [(Encoding::DELTA_BINARY_PACKED, 1)]);
    let any: Vec<i64> = (0..ROWS).map(|_| rng.next_u64() as i64).collect();
    assert_eq!(integer_encodings(&any), [(Encoding::PLAIN, 1)]);
}

#[test]
fn whole_second_times_are_packed_only_if_smaller_when_compressed() {
    let mut rng = Rng(3);
    let base = 1_700_000_000_000_000_i64;
    let about = |row: usize, rng: &mut Rng| base + (row as i64 / 2 + rng.below(1_800) as i64) * 1_000_000;
    let nearly_rising: Vec<i64> = (0..2 * ROWS).map(|row| about(row, &mut rng)).collect();
    assert_eq!(integer_encodings(&nearly_rising), [(Encoding::PLAIN, 2)]);
    // The same with microseconds: compression finds nothing.
    let exact: Vec<i64> = nearly_rising.iter().map(|time| time + rng.below(1_000_000) as i64).collect();
    assert_eq!(integer_encodings(&exact), [(Encoding::DELTA_BINARY_PACKED, 2)]);
    let mut at = base;
    let steps = (0..2 * ROWS).map(|_| {
        at += rng.below(2) as i64 * 1_000;
        at
    });
    assert_eq!(integer_encodings(&steps.collect::<Vec<_>>()), [(Encoding::DELTA_BINARY_PACKED, 2)]);
}

#[test]
fn dictionary_grows_across_pages_until_it_is_too_large() {
    let mut rng = Rng(2);
    // Increasingly many distinct values: more bits per code from page to page, then too many for a dictionary.
    let mut values = Vec::new();
    for page in 0..18 {
        let distinct = 100 << page;
        values.extend((0..ROWS).map(|_| rng.below(distinct).wrapping_mul(0x1234_5678_9abc_def1) as i64));
    }
    let found = integer_encodings(&values);
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(found[0].0, Encoding::RLE_DICTIONARY);
    assert_eq!(found[1].0, Encoding::PLAIN);
    assert!(found[0].1 > 9, "{found:?}");
}

#[test]
fn integers_outside_the_first_range_keep_their_codes() {
    let mut rng = Rng(3);
    let mut values: Vec<i64> = (0..ROWS).map(|_| 50 + rng.below(10) as i64).collect();
    values.extend((0..ROWS).map(|_| rng.below(100) as i64 - 20));
    values.extend((0..ROWS).map(|_| rng.below(100) as i64 * 1_000_003 - 20));
    values.extend([i64::MIN, i64::MAX, 0, 55]);
    assert_eq!(integer_encodings(&values), [(Encoding::RLE_DICTIONARY, 4)]);
}

#[test]
fn colliding_values_cost_at_most_one_page() {
    // These values have small hashes, so that all of them are probed from one slot.
    let inverse = {
        let multiplier = 0x9e37_79b9_7f4a_7c15_u64;
        (0..6).fold(multiplier, |inverse, _| inverse.wrapping_mul(2_u64.wrapping_sub(multiplier.wrapping_mul(inverse))))
    };
    let value = |hash: u64| {
        let folded = hash.wrapping_mul(inverse);
        (folded ^ folded >> 32) as i64
    };
    let values: Vec<i64> = (0..2 * ROWS as u64).map(|row| value(row / 2 % 10_000)).collect();
    let found = integer_encodings(&values);
    assert!(found.iter().all(|(encoding, _)| *encoding != Encoding::RLE_DICTIONARY), "{found:?}");
}

fn text_encodings(texts: &[String]) -> (Vec<(Encoding, i32)>, usize) {
    let schema = schema_of(Declared::String, false);
    let slabs: Vec<Vec<ArrayRef>> =
        texts.chunks(ROWS).map(|some| vec![Arc::new(StringArray::from(some.to_vec())) as ArrayRef]).collect();
    let chunk = encode(&schema, &slabs, Compression::Zstd(1));
    let (encodings, pages) = (encodings(&chunk), chunk.close.offset_index.clone().unwrap().page_locations.len());
    let read = read(&schema, &file(&schema, chunk));
    assert_eq!(read.as_ref(), &StringArray::from(texts.to_vec()) as &dyn arrow::array::Array);
    (encodings, pages)
}

#[test]
fn repeated_text_gets_a_dictionary() {
    let mut rng = Rng(4);
    let few: Vec<String> = (0..2 * ROWS).map(|_| format!("city-{}", rng.below(40))).collect();
    assert_eq!(text_encodings(&few).0, [(Encoding::RLE_DICTIONARY, 2)]);
    let unique: Vec<String> = (0..ROWS).map(|_| format!("{:016x}", rng.next_u64())).collect();
    assert_eq!(text_encodings(&unique).0, [(Encoding::DELTA_LENGTH_BYTE_ARRAY, 1)]);
}

#[test]
fn text_dictionary_is_abandoned_when_too_large() {
    let mut rng = Rng(5);
    let long = |of| format!("{0:016x}{1:016x}{2:.8}", Rng(of).next_u64(), Rng(!of).next_u64(), format!("{:08x}", of));
    let texts: Vec<String> =
        (0..8 * ROWS as u64).map(|row| long(rng.below(if row < 20_480 { 3_000 } else { 40_000 }))).collect();
    let (found, _) = text_encodings(&texts);
    let kinds: BTreeSet<String> = found.iter().map(|(encoding, _)| encoding.to_string()).collect();
    assert_eq!(kinds, BTreeSet::from(["DELTA_LENGTH_BYTE_ARRAY".to_owned(), "RLE_DICTIONARY".to_owned()]), "{found:?}");
}

#[test]
fn large_text_is_split_into_bounded_pages() {
    let mut rng = Rng(6);
    let texts: Vec<String> = (0..700).map(|_| format!("{:x}", rng.next_u64()).repeat(400)).collect();
    let bytes: usize = texts.iter().map(String::len).sum();
    let (_, pages) = text_encodings(&texts);
    assert_eq!(pages, bytes.div_ceil((1 << 20) + 6_400));
    let (_, pages) = text_encodings(&[texts.concat(), "b".into(), texts.concat()]);
    assert_eq!(pages, 2);
}

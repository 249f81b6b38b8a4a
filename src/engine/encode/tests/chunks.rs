use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringArray};
use arrow::datatypes::{Float32Type, Float64Type};
use parquet::basic::{Compression as Codec, Encoding};
use parquet::file::reader::{ChunkReader, Length};

use super::support::{
    Rng, SHAPES, array, by_crate, cut, declared, encode, encoder, encoder_of, file, metadata, numbers, presence, read,
    schema_of,
};
use crate::domain::digest::sha256_hex;
use crate::domain::pipeline::types::DataType as Declared;
use crate::domain::pipeline::{Compression, Encodings};
use crate::domain::plan::WRITER_FORMAT_VERSION;
use crate::engine::encode::PageSpill;

const PAGE_ROWS: usize = 1_000;

fn slabs(array: &ArrayRef, rng: &mut Rng) -> Vec<Vec<ArrayRef>> {
    let starts = (0..array.len()).step_by(PAGE_ROWS);
    starts.map(|start| cut(&array.slice(start, PAGE_ROWS.min(array.len() - start)), rng)).collect()
}

/// Compares floats by their bits, since NaN equals nothing.
fn assert_same(found: &ArrayRef, expected: &ArrayRef, what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let bits64 = |a: &ArrayRef| a.as_primitive::<Float64Type>().iter().map(|v| v.map(f64::to_bits)).collect::<Vec<_>>();
    let bits32 = |a: &ArrayRef| a.as_primitive::<Float32Type>().iter().map(|v| v.map(f32::to_bits)).collect::<Vec<_>>();
    match expected.data_type() {
        arrow::datatypes::DataType::Float64 => assert_eq!(bits64(found), bits64(expected), "{what}"),
        arrow::datatypes::DataType::Float32 => assert_eq!(bits32(found), bits32(expected), "{what}"),
        _ => assert_eq!(found.as_ref(), expected.as_ref(), "{what}"),
    }
}

/// If this fails, tables have other bytes than before: increment the version, and update the hash here.
#[test]
fn encoded_bytes_are_stable_within_a_format_version() {
    let mut rng = Rng(2);
    let mut all = Vec::new();
    for (ty, shape) in declared().into_iter().flat_map(|ty| SHAPES.map(|shape| (ty, shape))) {
        let numbers = numbers(shape, 12_000, &mut rng);
        let valid = presence(2, 12_000, &mut rng);
        let slabs = slabs(&array(ty, &numbers, valid.as_deref(), 0), &mut rng);
        let chunk = encode(&schema_of(ty, true), &slabs, Compression::Zstd(1));
        all.extend(chunk.pages.get_bytes(0, chunk.pages.len() as usize).unwrap());
    }
    // Pages that are large enough to be sampled.
    let id = |_| format!("{:016x}{:016x}", rng.next_u64(), rng.next_u64());
    let ids = Arc::new(StringArray::from_iter_values((0..36_000).map(id))) as ArrayRef;
    let slabs: Vec<_> = (0..3).map(|nth| vec![ids.slice(nth * 12_000, 12_000)]).collect();
    let chunk = encode(&schema_of(Declared::String, false), &slabs, Compression::Zstd(1));
    all.extend(chunk.pages.get_bytes(0, chunk.pages.len() as usize).unwrap());
    assert_eq!(
        (WRITER_FORMAT_VERSION, sha256_hex(&all).as_str()),
        (6, "de603b79bcb7cc81b0a4c2707ea48b210421610db0b83e5bc97841aa7c9d5f02")
    );
}

#[test]
fn every_type_reads_back_with_its_indexes() {
    let mut rng = Rng(1);
    for ty in declared() {
        for shape in SHAPES {
            for nulls in 0..5 {
                let rows = [1, 7, 999, 1_000, 3_333][rng.below(5) as usize];
                let what = format!("{ty:?} {shape:?} nulls {nulls} rows {rows}");
                let numbers = numbers(shape, rows, &mut rng);
                let valid = presence(nulls, rows, &mut rng);
                let schema = schema_of(ty, valid.is_some());
                let whole = array(ty, &numbers, valid.as_deref(), 0);
                let compression = [Compression::None, Compression::Zstd(1)][rng.below(2) as usize];
                let chunk = encode(&schema, &slabs(&whole, &mut rng), compression);
                let bytes = chunk.pages.get_bytes(0, chunk.pages.len() as usize).unwrap();

                let junk = array(ty, &numbers, valid.as_deref(), !0);
                let again = encode(&schema, &slabs(&junk, &mut rng), compression);
                assert_eq!(again.pages.get_bytes(0, again.pages.len() as usize).unwrap(), bytes, "{what}");
                assert_eq!(again.close.metadata, chunk.close.metadata, "{what}");

                let file = file(&schema, chunk);
                assert_same(&read(&schema, &file), &whole, &what);
                assert_told_as_by_the_crate(ty, &schema, &file, &whole, &what);
            }
        }
    }
}

fn assert_told_as_by_the_crate(
    ty: Declared,
    schema: &arrow::datatypes::SchemaRef,
    file: &bytes::Bytes,
    whole: &ArrayRef,
    what: &str,
) {
    let (ours, theirs) = (metadata(file), metadata(&by_crate(schema, whole, PAGE_ROWS)));
    let column = |of: &parquet::arrow::arrow_reader::ArrowReaderMetadata| of.metadata().row_group(0).column(0).clone();
    let (a, b) = (column(&ours), column(&theirs));
    assert_eq!(a.num_values(), b.num_values(), "{what}");
    assert_eq!(a.unencoded_byte_array_data_bytes(), b.unencoded_byte_array_data_bytes(), "{what}");
    assert_eq!(a.definition_level_histogram(), b.definition_level_histogram(), "{what}");
    let rows = |of: &parquet::arrow::arrow_reader::ArrowReaderMetadata| {
        let index = of.metadata().offset_index().unwrap()[0][0].clone();
        let starts: Vec<i64> = index.page_locations().iter().map(|page| page.first_row_index).collect();
        (starts, index.unencoded_byte_array_data_bytes().cloned())
    };
    assert_eq!(rows(&ours), rows(&theirs), "{what}");
    // The crate truncates JSON within characters.
    if has_nan(whole) {
        let bounds = a.statistics().map(|statistics| (statistics.min_bytes_opt(), statistics.max_bytes_opt()));
        assert_eq!(bounds, Some((None, None)), "{what}");
        assert_eq!(a.statistics().unwrap().null_count_opt(), b.statistics().unwrap().null_count_opt(), "{what}");
        assert_eq!(a.column_index_offset(), None, "{what}");
    } else if !matches!(ty, Declared::Json) {
        assert_eq!(a.statistics(), b.statistics(), "{what}");
        let index = |of: &parquet::arrow::arrow_reader::ArrowReaderMetadata| {
            of.metadata().column_index().map(|index| format!("{:?}", index[0][0]))
        };
        assert_eq!(index(&ours), index(&theirs), "{what}");
    }
}

fn has_nan(array: &ArrayRef) -> bool {
    match array.data_type() {
        arrow::datatypes::DataType::Float64 => array.as_primitive::<Float64Type>().iter().flatten().any(f64::is_nan),
        arrow::datatypes::DataType::Float32 => array.as_primitive::<Float32Type>().iter().flatten().any(f32::is_nan),
        _ => false,
    }
}

#[test]
fn nan_in_any_page_prevents_chunk_bounds() {
    let mut rng = Rng(5);
    let schema = schema_of(Declared::Float64, true);
    for at in [0, 999, 1_000, 2_999] {
        let mut values: Vec<f64> = (0..3_000).map(f64::from).collect();
        let bounds = |values: &[f64], rng: &mut Rng| {
            let whole = Arc::new(arrow::array::Float64Array::from(values.to_vec())) as ArrayRef;
            let chunk = encode(&schema, &slabs(&whole, rng), Compression::None);
            let statistics = chunk.close.metadata.statistics().unwrap().clone();
            (statistics.min_bytes_opt().is_some(), chunk.close.column_index.is_some())
        };
        assert_eq!(bounds(&values, &mut rng), (true, true));
        values[at] = f64::NAN;
        assert_eq!(bounds(&values, &mut rng), (false, false), "a NaN at {at}");
    }
}

/// Text without a dictionary is PLAIN unless the config requests compact encodings.
#[test]
fn compatible_text_avoids_misread_encodings() {
    let mut rng = Rng(6);
    for nulls in 0..5 {
        let numbers = numbers(super::support::Shape::Any, 9_000, &mut rng);
        let valid = presence(nulls, 9_000, &mut rng);
        let schema = schema_of(Declared::String, valid.is_some());
        let whole = array(Declared::String, &numbers, valid.as_deref(), 0);
        let chunk = |encodings| {
            let mut encoder = encoder_of(&schema, Compression::Zstd(1), encodings);
            slabs(&whole, &mut Rng(7)).iter().for_each(|slab| encoder.write(slab).unwrap());
            encoder.close().unwrap()
        };
        let (compatible, compact) = (chunk(Encodings::Compatible), chunk(Encodings::Compact));
        assert_eq!(compatible.close.metadata.statistics(), compact.close.metadata.statistics());
        let has_delta = |chunk: &crate::engine::encode::ColumnChunk| {
            chunk.close.metadata.encodings().any(|encoding| encoding == Encoding::DELTA_LENGTH_BYTE_ARRAY)
        };
        assert_eq!((has_delta(&compatible), has_delta(&compact)), (false, nulls != 1), "nulls {nulls}");
        assert_same(&read(&schema, &file(&schema, compatible)), &whole, &format!("nulls {nulls}"));
    }
}

#[test]
fn pages_are_at_their_indexed_offsets() {
    let mut rng = Rng(2);
    let schema = schema_of(Declared::Int64, true);
    let numbers = numbers(super::support::Shape::Half, 5_000, &mut rng);
    let valid = presence(2, 5_000, &mut rng);
    let whole = array(Declared::Int64, &numbers, valid.as_deref(), 0);
    let chunk = encode(&schema, &slabs(&whole, &mut rng), Compression::Zstd(1));
    let metadata = chunk.close.metadata.clone();
    let locations = chunk.close.offset_index.clone().unwrap().page_locations;
    assert_eq!(locations.len(), 5);
    let mut at = metadata.data_page_offset();
    for location in &locations {
        assert_eq!(location.offset, at);
        at += i64::from(location.compressed_page_size);
    }
    assert_eq!(at, metadata.compressed_size());
    assert_eq!(at as u64, chunk.pages.len());
    for (start, length) in [(0, 0), (0, 10), (5, 100), (at as u64 - 3, 3)] {
        let all = chunk.pages.get_bytes(0, at as usize).unwrap();
        assert_eq!(chunk.pages.get_bytes(start, length).unwrap(), all[start as usize..start as usize + length]);
    }
    assert!(chunk.pages.get_bytes(at as u64 - 3, 4).is_err());
}

#[test]
fn spilled_pages_do_not_change_the_chunk() {
    let folder = tempfile::tempdir().unwrap();
    let page_spill = Arc::new(PageSpill::create(folder.path().join("spilled-0")).unwrap());
    let schema = schema_of(Declared::String, true);
    let mut rng = Rng(4);
    let numbers = numbers(super::support::Shape::Any, 30_000, &mut rng);
    let valid = presence(2, 30_000, &mut rng);
    let whole = array(Declared::String, &numbers, valid.as_deref(), 0);
    let spilled_each = |often: Option<usize>| {
        let mut encoder = encoder(&schema, Compression::None);
        for (slab, start) in (0..whole.len()).step_by(1_000).enumerate() {
            encoder.write(&[whole.slice(start, 1_000)]).unwrap();
            if often.is_some_and(|often| slab % often == often - 1) {
                let held = encoder.held_bytes();
                encoder.spill_pages(&page_spill).unwrap();
                assert!(encoder.held_bytes() < held);
            }
        }
        encoder.close().unwrap()
    };
    let here = spilled_each(None);
    let length = here.pages.len();
    let bytes = here.pages.get_bytes(0, length as usize).unwrap();
    for often in [4, 7, 30] {
        let spilled = spilled_each(Some(often));
        assert_eq!(spilled.pages.len(), length);
        assert_eq!(spilled.pages.get_bytes(0, length as usize).unwrap(), bytes);
        let middle = length as usize / 2;
        let rest = spilled.pages.get_bytes(middle as u64, length as usize - middle).unwrap();
        assert_eq!(rest, bytes[middle..]);
        assert_eq!(spilled.close.metadata, here.close.metadata);
        assert_eq!(spilled.close.offset_index, here.close.offset_index);
    }
}

#[test]
fn chunks_of_every_codec_read_back() {
    let mut rng = Rng(3);
    let all = [
        (Compression::None, Codec::UNCOMPRESSED),
        (Compression::Snappy, Codec::SNAPPY),
        (Compression::Lz4, Codec::LZ4_RAW),
        (Compression::Zstd(3), Codec::ZSTD(parquet::basic::ZstdLevel::try_new(3).unwrap())),
    ];
    for (compression, codec) in all {
        for ty in [Declared::String, Declared::Float64, Declared::Int32, Declared::Boolean] {
            let numbers = numbers(super::support::Shape::Half, 3_000, &mut rng);
            let whole = array(ty, &numbers, None, 0);
            let schema = schema_of(ty, true);
            let chunk = encode(&schema, &slabs(&whole, &mut rng), compression);
            assert_eq!(chunk.close.metadata.compression(), codec);
            assert_same(&read(&schema, &file(&schema, chunk)), &whole, &format!("{ty:?} {codec}"));
        }
    }
}

#[test]
fn leading_nulls_have_pages_of_their_own() {
    let mut rng = Rng(4);
    for ty in declared() {
        let numbers = numbers(super::support::Shape::Few, 3_000, &mut rng);
        let valid: Vec<bool> = (0..3_000).map(|row| row >= 1_500).collect();
        let whole = array(ty, &numbers, Some(&valid), 5);
        let schema = schema_of(ty, true);
        let chunk = encode(&schema, &slabs(&whole, &mut rng), Compression::Zstd(1));
        let stats = chunk.close.metadata.page_encoding_stats().unwrap().clone();
        let first = stats.iter().find(|stats| stats.page_type == parquet::basic::PageType::DATA_PAGE).unwrap();
        assert_eq!(first.encoding, Encoding::PLAIN);
        assert_same(&read(&schema, &file(&schema, chunk)), &whole, &format!("{ty:?}"));
    }
}

//! Splits the rows of a batch by partition.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, StringArray, UInt32Array};
use arrow::datatypes as dt;
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use chrono::{DateTime, Datelike, Timelike};

use crate::domain::layout::partition_path_bytes_max;
use crate::domain::partition::{TextFault, segment, text_fault};
use crate::domain::pipeline::types::DataType;
use crate::domain::pipeline::{InferableTexts, Mapping, PartitionField, Transform};
use crate::engine::cells::gather_texts;

/// The path of a partition; `""` if the table is not partitioned.
pub(super) type PartitionPath = Arc<str>;

/// A row whose value can't be a partition.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PartitionFault {
    pub row: usize,
    /// Position of the column in the mapping.
    pub column: usize,
    /// The value if it is text; all other values are valid folder names.
    pub value: Option<String>,
    pub message: String,
}

/// The rows of a batch by partition.
#[derive(Debug, Default)]
pub(super) struct PartitionedRows {
    /// Paths in order of their first row.
    pub paths: Vec<PartitionPath>,
    /// The rows of each path, ascending.
    pub rows: Vec<Vec<u32>>,
    pub faults: Vec<PartitionFault>,
}

/// One partition field of a batch: a code per row, a segment per code.
struct CodedField {
    codes: Vec<u32>,
    segments: Vec<Result<String, SegmentFault>>,
}

/// Why a value has no segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SegmentFault {
    /// Length of the segment or the path, in bytes.
    Long(usize),
    Text(TextFault),
}

impl SegmentFault {
    fn message(self, field: &PartitionField) -> String {
        match self {
            Self::Long(length) => format!(
                "partition segment `{}=…` is {length} bytes long when escaped, expected at most {}",
                field.name,
                crate::domain::limits::PARTITION_SEGMENT_BYTES_MAX
            ),
            Self::Text(TextFault::Empty) => {
                "readers treat a folder named by empty text as null, or fail; add `\"\"` to \
                                             `null_values`, or write a different text with `expr`"
                    .to_owned()
            }
            Self::Text(TextFault::NullMark) => "readers treat a folder of this name as null".to_owned(),
            Self::Text(TextFault::Inferable) => {
                "readers that infer types read a folder of this name as another value; \
                                                 change the column's type, write a different text with `expr`, or set \
                                                 `inferable_texts` of the partition to `keep` and give readers the \
                                                 column's type"
                    .to_owned()
            }
        }
    }
}

/// Splits `batch`, which has all columns of the mapping in order.
pub(super) fn partition_rows(mapping: &Mapping, batch: &RecordBatch) -> PartitionedRows {
    let rows = batch.num_rows();
    if rows == 0 {
        return PartitionedRows::default();
    }
    let Some((first, rest)) = mapping.partition_by.split_first() else {
        return PartitionedRows { paths: vec!["".into()], rows: vec![(0..rows as u32).collect()], faults: Vec::new() };
    };
    let mut all = encode_field(mapping, first, batch.column(first.column));
    let mut faults = faults_of(first, &all, batch);
    for field in rest {
        let next = encode_field(mapping, field, batch.column(field.column));
        faults.extend(faults_of(field, &next, batch));
        all = combine(&all, &next);
    }
    faults.extend(long_paths(mapping, &mut all, batch));
    faults.sort_by_key(|fault| fault.row);
    faults.dedup_by_key(|fault| fault.row);
    let mut counts = vec![0; all.segments.len()];
    for code in &all.codes {
        counts[*code as usize] += 1;
    }
    let mut groups: Vec<Vec<u32>> = counts.into_iter().map(Vec::with_capacity).collect();
    for (row, code) in all.codes.iter().enumerate() {
        groups[*code as usize].push(row as u32);
    }
    let mut sorted = PartitionedRows { faults, ..PartitionedRows::default() };
    for (path, rows) in all.segments.into_iter().zip(groups) {
        if let Ok(path) = path
            && !rows.is_empty()
        {
            sorted.paths.push(path.into());
            sorted.rows.push(rows);
        }
    }
    sorted
}

/// Parts with fewer rows on average are small; they are kept in one batch as long as possible, since each array has a
/// fixed cost.
const SMALL_PART_ROWS: usize = 64;

/// Whether `parts` parts with `rows` rows in total are small.
pub(super) fn are_small_parts(rows: usize, parts: usize) -> bool {
    parts > 1 && rows < parts * SMALL_PART_ROWS
}

/// One batch per part; small parts are slices of one batch.
pub(super) fn split_by_partition(
    batch: &RecordBatch,
    parts: Vec<(PartitionPath, Vec<u32>)>,
) -> Result<Vec<(PartitionPath, RecordBatch)>, ArrowError> {
    let (paths, parts): (Vec<PartitionPath>, Vec<Vec<u32>>) = parts.into_iter().unzip();
    let picked = if are_small_parts(parts.iter().map(Vec::len).sum(), parts.len()) {
        let mut start = 0;
        let lengths: Vec<usize> = parts.iter().map(Vec::len).collect();
        let all = gather(batch, vec![parts.concat()])?;
        let slice = |length: usize| {
            start += length;
            all[0].slice(start - length, length)
        };
        lengths.into_iter().map(slice).collect()
    } else {
        pick(batch, parts)?
    };
    Ok(paths.into_iter().zip(picked).collect())
}

/// The rows of each part (ascending): a slice for contiguous rows that are most of the batch, otherwise a copy, so that
/// a few rows never keep a whole batch alive.
fn pick(batch: &RecordBatch, parts: Vec<Vec<u32>>) -> Result<Vec<RecordBatch>, ArrowError> {
    let is_most = |rows: &Vec<u32>| {
        let together =
            rows.last().zip(rows.first()).is_some_and(|(last, first)| (last - first) as usize + 1 == rows.len());
        together && rows.len() * 2 > batch.num_rows()
    };
    match parts.iter().position(is_most) {
        None => gather(batch, parts),
        Some(at) => {
            let mut others = parts;
            let most = others.remove(at);
            let mut picked = gather(batch, others)?;
            picked.insert(at, batch.slice(most[0] as usize, most.len()));
            Ok(picked)
        }
    }
}

/// A copy of each part's rows.
fn gather(batch: &RecordBatch, parts: Vec<Vec<u32>>) -> Result<Vec<RecordBatch>, ArrowError> {
    let parts: Vec<UInt32Array> = parts.into_iter().map(UInt32Array::from).collect();
    let rows: Vec<&[u32]> = parts.iter().map(|rows| &rows.values()[..]).collect();
    let texts: Vec<&StringArray> = batch.columns().iter().filter_map(|column| column.as_string_opt()).collect();
    let mut texts: Vec<_> = gather_texts(&texts, &rows).into_iter().map(Vec::into_iter).collect();
    let mut gathered: Vec<_> = parts.iter().map(|_| Vec::with_capacity(batch.num_columns())).collect();
    for column in batch.columns() {
        let is_text = column.as_string_opt::<i32>().is_some();
        for ((rows, texts), columns) in parts.iter().zip(&mut texts).zip(&mut gathered) {
            columns.push(match if is_text { texts.next() } else { None } {
                Some(texts) => Arc::new(texts) as ArrayRef,
                None => arrow::compute::take(column, rows, None)?,
            });
        }
    }
    let batch_of = |(columns, rows): (Vec<ArrayRef>, &UInt32Array)| {
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        RecordBatch::try_new_with_options(batch.schema(), columns, &options)
    };
    gathered.into_iter().zip(&parts).map(batch_of).collect()
}

fn faults_of(field: &PartitionField, coded: &CodedField, batch: &RecordBatch) -> Vec<PartitionFault> {
    if coded.segments.iter().all(Result::is_ok) {
        return Vec::new();
    }
    let fault = |(row, code): (usize, &u32)| {
        let message = coded.segments[*code as usize].as_ref().err()?.message(field);
        Some(PartitionFault { row, column: field.column, value: text_of(batch, field, row), message })
    };
    coded.codes.iter().enumerate().filter_map(fault).collect()
}

fn text_of(batch: &RecordBatch, field: &PartitionField, row: usize) -> Option<String> {
    let texts = batch.column(field.column).as_string_opt::<i32>();
    texts.filter(|texts| texts.is_valid(row)).map(|texts| texts.value(row).to_owned())
}

/// Faults of rows whose path is too long for a key, reported for the first column that exceeds the limit.
fn long_paths(mapping: &Mapping, all: &mut CodedField, batch: &RecordBatch) -> Vec<PartitionFault> {
    let bytes_max = partition_path_bytes_max(mapping.table.as_str());
    let is_long = |path: &Result<String, SegmentFault>| path.as_ref().is_ok_and(|path| path.len() > bytes_max);
    if !all.segments.iter().any(is_long) {
        return Vec::new();
    }
    let fault = |(row, code): (usize, &u32)| {
        let path = all.segments[*code as usize].as_ref().ok().filter(|path| path.len() > bytes_max)?;
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        let (_, field) = ends.zip(&mapping.partition_by).find(|(end, _)| *end > bytes_max)?;
        let message = format!(
            "the partition's path is {} bytes long when escaped, expected at most {bytes_max}, so that the keys of its \
             files have at most {}",
            path.len(),
            crate::domain::limits::KEY_BYTES_MAX
        );
        Some(PartitionFault { row, column: field.column, value: text_of(batch, field, row), message })
    };
    let faults = all.codes.iter().enumerate().filter_map(fault).collect();
    for path in all.segments.iter_mut().filter(|path| is_long(path)) {
        *path = Err(path.as_ref().map_or_else(|fault| *fault, |path| SegmentFault::Long(path.len())));
    }
    faults
}

fn combine(left: &CodedField, right: &CodedField) -> CodedField {
    let pairs: Vec<(u32, u32)> = left.codes.iter().copied().zip(right.codes.iter().copied()).collect();
    encode(pairs.into_iter(), |&(l, r)| match (&left.segments[l as usize], &right.segments[r as usize]) {
        (Ok(l), Ok(r)) => Ok(format!("{l}/{r}")),
        (Err(fault), _) | (_, Err(fault)) => Err(*fault),
    })
}

/// The value of a partition field in one row.
trait PartitionKey: Hash + Eq + Copy {
    /// A cheap fingerprint that distinguishes most keys.
    fn sketch(&self) -> u64;
}

impl PartitionKey for Option<&str> {
    fn sketch(&self) -> u64 {
        let Some(text) = self.map(str::as_bytes) else { return 0 };
        let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) else {
            let short = text.iter().fold(1, |all, byte| all << 8 | u64::from(*byte));
            return short;
        };
        (text.len() as u64) ^ u64::from(u32::from_le_bytes(*first)) << 32 ^ u64::from(u32::from_le_bytes(*last)) << 8
    }
}

impl PartitionKey for Option<i64> {
    fn sketch(&self) -> u64 {
        self.map_or(0, |unit| unit as u64)
    }
}

impl PartitionKey for (u32, u32) {
    fn sketch(&self) -> u64 {
        u64::from(self.0) << 32 | u64::from(self.1)
    }
}

impl PartitionKey for Option<ValueKey> {
    fn sketch(&self) -> u64 {
        let Some(key) = self else { return 0 };
        let word = u128::from_le_bytes(key.bytes);
        word as u64 ^ (word >> 64) as u64
    }
}

/// Recently seen keys, by fingerprint. Collisions only cost time.
struct RecentKeys<K> {
    slots: Vec<Option<(K, u32)>>,
}

impl<K: PartitionKey> RecentKeys<K> {
    const SLOT_BITS: u32 = 7;

    fn new() -> Self {
        Self { slots: vec![None; 1 << Self::SLOT_BITS] }
    }

    #[inline]
    fn slot(&mut self, key: &K) -> &mut Option<(K, u32)> {
        let spread = key.sketch().wrapping_mul(0x9E37_79B9_7F4A_7C15);
        &mut self.slots[(spread >> (64 - Self::SLOT_BITS)) as usize]
    }
}

/// Assigns codes to distinct keys in order of appearance, and a segment to each code.
fn encode<K: PartitionKey>(
    keys: impl Iterator<Item = K>,
    segment_of: impl Fn(&K) -> Result<String, SegmentFault>,
) -> CodedField {
    let mut codes = Vec::with_capacity(keys.size_hint().0);
    let mut known: HashMap<K, u32> = HashMap::new();
    let mut recent = RecentKeys::new();
    let mut segments = Vec::new();
    let mut last: Option<(K, u32)> = None;
    for key in keys {
        // Neighbours are often equal and distinct keys few; the map is the last resort.
        if let Some((last_key, code)) = last
            && last_key == key
        {
            codes.push(code);
            continue;
        }
        let slot = recent.slot(&key);
        let code = match slot {
            Some((known, code)) if *known == key => *code,
            _ => {
                let code = *known.entry(key).or_insert_with(|| {
                    segments.push(segment_of(&key));
                    (segments.len() - 1) as u32
                });
                *slot = Some((key, code));
                code
            }
        };
        last = Some((key, code));
        codes.push(code);
    }
    unify(CodedField { codes, segments })
}

/// Gives keys of the same segment (days of one month, NaNs of either sign) one code, so that rows of a partition keep
/// their order.
fn unify(coded: CodedField) -> CodedField {
    let mut first: HashMap<&str, u32> = HashMap::with_capacity(coded.segments.len());
    let mut to: Vec<u32> = (0..coded.segments.len() as u32).collect();
    for (code, segment) in coded.segments.iter().enumerate() {
        if let Ok(segment) = segment {
            to[code] = *first.entry(segment).or_insert(code as u32);
        }
    }
    if first.len() == to.len() {
        return coded;
    }
    CodedField { codes: coded.codes.iter().map(|&code| to[code as usize]).collect(), segments: coded.segments }
}

fn encode_field(mapping: &Mapping, field: &PartitionField, array: &ArrayRef) -> CodedField {
    let name = field.name.as_str();
    let ty = mapping.columns[field.column].ty;
    match field.transform {
        Transform::Identity => identity(field, array),
        Transform::Year | Transform::Month | Transform::Day | Transform::Hour => {
            let transform = field.transform;
            encode(units(ty, transform, array).into_iter(), |unit| {
                segment(name, unit.map(|unit| unit_text(transform, unit)).as_deref()).map_err(SegmentFault::Long)
            })
        }
    }
}

/// Days (or hours, for `hour`) since the epoch, from which every transform follows.
fn units(ty: DataType, transform: Transform, array: &ArrayRef) -> Vec<Option<i64>> {
    let hours = transform == Transform::Hour;
    let of_micros = |micros: i64| micros.div_euclid(if hours { 3_600_000_000 } else { 86_400_000_000 });
    if ty == DataType::Date {
        let dates = array.as_primitive::<dt::Date32Type>();
        return dates.iter().map(|day| day.map(|day| i64::from(day) * if hours { 24 } else { 1 })).collect();
    }
    array.as_primitive::<dt::TimestampMicrosecondType>().iter().map(|t| t.map(of_micros)).collect()
}

/// `2013`, `2013-01`, `2013-01-31`, `2013-01-31-05`.
fn unit_text(transform: Transform, unit: i64) -> String {
    let seconds = if transform == Transform::Hour { unit * 3_600 } else { unit * 86_400 };
    let Some(time) = DateTime::from_timestamp(seconds, 0) else {
        return unit.to_string();
    };
    match transform {
        Transform::Identity => unit.to_string(),
        Transform::Year => format!("{:04}", time.year()),
        Transform::Month => format!("{:04}-{:02}", time.year(), time.month()),
        Transform::Day => time.format("%Y-%m-%d").to_string(),
        Transform::Hour => format!("{}-{:02}", time.format("%Y-%m-%d"), time.hour()),
    }
}

fn identity(field: &PartitionField, array: &ArrayRef) -> CodedField {
    let text = |value: Option<&str>| segment(field.name.as_str(), value).map_err(SegmentFault::Long);
    if let Some(strings) = array.as_string_opt::<i32>() {
        let keeps = field.inferable_texts == InferableTexts::Keep;
        let fault = |value: &str| text_fault(value).filter(|fault| !keeps || *fault != TextFault::Inferable);
        return encode(strings.iter(), |value| match value.and_then(fault) {
            Some(fault) => Err(SegmentFault::Text(fault)),
            None => text(*value),
        });
    }
    // Distinct values are few, so the generic formatter runs once for each.
    let options = FormatOptions::new()
        .with_timestamp_format(Some("%Y-%m-%d %H:%M:%S%.f"))
        .with_timestamp_tz_format(Some("%Y-%m-%d %H:%M:%S%.f%:z"));
    let formatter = ArrayFormatter::try_new(array.as_ref(), &options).expect("Arrow formats every declared type");
    let bytes = RowBytes::new(array);
    encode((0..array.len()).map(|row| bytes.key(row)), |key| {
        text(key.map(|key| formatter.value(key.row as usize).to_string()).as_deref())
    })
}

/// The bytes of fixed-width values, as keys.
struct RowBytes<'a> {
    array: &'a ArrayRef,
    data: arrow::array::ArrayData,
    width: usize,
}

/// A value's bytes (compared and hashed) and one row that has it.
#[derive(Debug, Clone, Copy)]
struct ValueKey {
    bytes: [u8; 16],
    row: u32,
}

impl PartialEq for ValueKey {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for ValueKey {}

impl Hash for ValueKey {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.bytes.hash(state);
    }
}

impl<'a> RowBytes<'a> {
    fn new(array: &'a ArrayRef) -> Self {
        let width = array.data_type().primitive_width().unwrap_or(match array.data_type() {
            dt::DataType::FixedSizeBinary(width) => *width as usize,
            _ => 0,
        });
        Self { array, data: array.to_data(), width }
    }

    fn key(&self, row: usize) -> Option<ValueKey> {
        if self.array.is_null(row) {
            return None;
        }
        let mut bytes = [0; 16];
        if self.width == 0 {
            bytes[0] = u8::from(self.array.as_boolean().value(row));
        } else {
            let start = (self.data.offset() + row) * self.width;
            bytes[..self.width].copy_from_slice(&self.data.buffers()[0].as_slice()[start..start + self.width]);
        }
        Some(ValueKey { bytes, row: row as u32 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Codes as a map alone gives them, in order of appearance.
    fn check<K: PartitionKey>(keys: &[K], name: impl Fn(&K) -> String) {
        let coded = encode(keys.iter().copied(), |key| Ok(name(key)));
        let mut known: HashMap<K, u32> = HashMap::new();
        let expect: Vec<u32> = keys
            .iter()
            .map(|key| {
                let next = known.len() as u32;
                *known.entry(*key).or_insert(next)
            })
            .collect();
        assert_eq!(coded.codes, expect);
        assert_eq!(coded.segments.len(), known.len());
        for (key, code) in known {
            assert_eq!(coded.segments[code as usize].as_ref(), Ok(&name(&key)));
        }
    }

    #[test]
    fn keys_keep_their_codes_with_many_similar_keys() {
        let texts: Vec<String> = (0..5_000u32)
            .map(|i| match i % 4 {
                // Values with equal length, prefix and suffix: only the middle differs.
                0 => format!("same{:04}same", i % 300),
                1 => (i % 17).to_string(),
                2 => format!("{}", i * 7_919 % 2_000),
                _ => String::new(),
            })
            .collect();
        let keys: Vec<Option<&str>> =
            texts.iter().enumerate().map(|(i, text)| (i % 11 != 0).then_some(text.as_str())).collect();
        check(&keys, |key| format!("{key:?}"));
        let days: Vec<Option<i64>> = (0..5_000).map(|i| (i % 13 != 0).then_some(i * 7_919 % 900 - 450)).collect();
        check(&days, |day| format!("{day:?}"));
        let pairs: Vec<(u32, u32)> = (0..5_000).map(|i| (i * 31 % 40, i * 17 % 40)).collect();
        check(&pairs, |pair| format!("{pair:?}"));
    }
}

//! Compares cells with the standard library, `chrono` and plain arithmetic.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes as dt;
use chrono::{Datelike, NaiveDate, NaiveTime, Timelike};

use crate::domain::name::ColumnName;
use crate::domain::pipeline::types::DataType;
use crate::domain::pipeline::{Column, ColumnSource, Dialect, OnError, RaggedRows};
use crate::domain::reject::RejectReason;
use crate::engine::cells::{CellProbe, ColumnBuilder, cell_text, check_format, decimal_by_digits, number_shape};
use crate::engine::read::chunk::Chunk;
use crate::engine::read::index::Indexer;
use crate::engine::read::record_index::{FieldRange, RecordIndex};

const CELLS_MAX: usize = 64;
const TYPES: [&str; 22] = [
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float32",
    "float64",
    "decimal(18,4)",
    "decimal(38,10)",
    "decimal(5,0)",
    "boolean",
    "date",
    "time",
    "timestamp",
    "timestamptz",
    "uuid",
    "json",
    "decimal(9,9)",
    "string",
];

fn column(ty: DataType) -> Column {
    Column {
        name: ColumnName::parse("c").expect("it is a name"),
        ty,
        source: ColumnSource::Position(0),
        nullable: true,
        on_error: OnError::Reject,
        formats: Vec::new(),
        number_format: None,
        timezone: None,
    }
}

/// The first byte chooses a type, or makes the first line a format; the second byte chooses the number format. Each
/// line of the rest is a cell.
pub fn cells(input: &[u8]) {
    let Some((&[kind, style], text)) = input.split_first_chunk() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let (decimal, thousands) =
        [(b'.', None), (b'.', None), (b',', Some(b'.')), (b'.', Some(b' '))][usize::from(style & 3)];
    let dialect = Dialect { decimal, thousands, null_values: Vec::new(), ..Dialect::default() };
    let cells: Vec<&str> = text.split('\n').take(CELLS_MAX).collect();
    let Some(name) = TYPES.get(usize::from(kind)) else {
        return formatted(kind, &cells, &dialect);
    };
    let ty = DataType::parse(name).expect("it is a type");
    let (all, _) = build(&column(ty), &dialect, &cells);
    for (cell, found) in cells.iter().zip(&all) {
        let (alone, _) = build(&column(ty), &dialect, &[cell]);
        assert_eq!(alone[0], *found, "`{cell}` as {name} among others");
        probe(ty, cell, &dialect, found.is_some());
        // Times have a point before a second's fraction, regardless of the number format.
        let is_time = matches!(ty, DataType::Time | DataType::Timestamp | DataType::TimestampTz);
        let expected = if is_time || decimal == b'.' && thousands.is_none() {
            reference(ty, cell)
        } else {
            plain(cell, decimal, thousands).and_then(|cell| reference(ty, &cell))
        };
        match ty {
            // `serde_json` also checks numbers and escapes.
            DataType::Json => {
                assert!(found.is_some() || serde_json::from_str::<serde_json::Value>(cell).is_err(), "`{cell}`");
            }
            DataType::String => assert!(found.is_some()),
            _ => assert_eq!(*found, expected, "`{cell}` as {name}, style {style}"),
        }
    }
}

/// Declared formats: fixed-width fields are parsed like `chrono`, for any pattern.
fn formatted(kind: u8, cells: &[&str], dialect: &Dialect) {
    let [pattern, cells @ ..] = cells else { return };
    let ty = [DataType::Date, DataType::Time, DataType::Timestamp, DataType::TimestampTz][usize::from(kind & 3)];
    let timezone = (kind & 4 != 0).then(|| crate::domain::zones::database().zone("Europe/Berlin")).flatten();
    let formats = vec![(*pattern).to_owned(), "%d.%m.%Y".to_owned()];
    let column = Column { formats, timezone, ..column(ty) };
    for cell in cells {
        check_format(pattern, cell);
    }
    let (all, faults) = build(&column, dialect, cells);
    for (cell, found) in cells.iter().zip(&all) {
        assert_eq!(build(&column, dialect, &[cell]).0[0], *found, "`{cell}` by `{pattern}`");
    }
    assert!(faults.iter().all(|message| message.contains('c')));
}

/// The value of each cell, or the message if it has none.
fn build(column: &Column, dialect: &Dialect, cells: &[&str]) -> (Vec<Option<i128>>, Vec<String>) {
    let mut text = Vec::new();
    let mut index = RecordIndex { width: 1, ..RecordIndex::default() };
    for cell in cells {
        let start = text.len();
        text.extend_from_slice(cell.as_bytes());
        index.fields.push(FieldRange::new(start, text.len(), false, false));
        index.records.push((start as u32, text.len() as u32));
        text.push(b'\n');
    }
    let mut builder = ColumnBuilder::new(column, dialect);
    let mut faults = Vec::new();
    builder.append(&text, &index, Some(0), &mut faults);
    let array = builder.finish();
    assert!(faults.is_sorted_by_key(|fault| fault.row));
    assert_eq!(array.null_count(), faults.len());
    let message = |fault: &crate::engine::cells::CellFault| fault.message(column, cells[fault.row].as_bytes());
    let values = (0..array.len()).map(|row| array.is_valid(row).then(|| value(&array, row))).collect();
    (values, faults.iter().map(message).collect())
}

/// The bit pattern of a value.
fn value(array: &ArrayRef, row: usize) -> i128 {
    use dt::DataType as T;
    match array.data_type() {
        T::Int8 => array.as_primitive::<dt::Int8Type>().value(row).into(),
        T::Int16 => array.as_primitive::<dt::Int16Type>().value(row).into(),
        T::Int32 => array.as_primitive::<dt::Int32Type>().value(row).into(),
        T::Int64 => array.as_primitive::<dt::Int64Type>().value(row).into(),
        T::UInt8 => array.as_primitive::<dt::UInt8Type>().value(row).into(),
        T::UInt16 => array.as_primitive::<dt::UInt16Type>().value(row).into(),
        T::UInt32 => array.as_primitive::<dt::UInt32Type>().value(row).into(),
        T::UInt64 => array.as_primitive::<dt::UInt64Type>().value(row).into(),
        T::Float32 => array.as_primitive::<dt::Float32Type>().value(row).to_bits().into(),
        T::Float64 => array.as_primitive::<dt::Float64Type>().value(row).to_bits().into(),
        T::Decimal128(..) => array.as_primitive::<dt::Decimal128Type>().value(row),
        T::Boolean => array.as_boolean().value(row).into(),
        T::Date32 => array.as_primitive::<dt::Date32Type>().value(row).into(),
        T::Time64(_) => array.as_primitive::<dt::Time64MicrosecondType>().value(row).into(),
        T::Timestamp(..) => array.as_primitive::<dt::TimestampMicrosecondType>().value(row).into(),
        T::FixedSizeBinary(_) => {
            let bytes = array.as_fixed_size_binary().value(row);
            bytes.iter().fold(0u128, |all, byte| all << 8 | u128::from(*byte)) as i128
        }
        T::Utf8 => array.as_string::<i32>().value(row).len() as i128,
        other => panic!("no column is of type {other}"),
    }
}

/// A single-cell probe agrees with a run.
fn probe(ty: DataType, cell: &str, dialect: &Dialect, taken: bool) {
    let mut probe = match ty {
        DataType::Date => CellProbe::date(&[]),
        DataType::Time => CellProbe::time(&[]),
        DataType::Timestamp => CellProbe::timestamp(&[]),
        DataType::TimestampTz => CellProbe::timestamptz(&[]),
        DataType::Uuid => CellProbe::uuid(),
        DataType::Json => CellProbe::json(),
        DataType::Boolean => CellProbe::boolean(dialect),
        DataType::Float64 => CellProbe::float64(dialect),
        DataType::Int64 => {
            let shape = number_shape(cell.as_bytes(), dialect);
            assert!(!taken || shape.is_ok_and(|shape| shape.whole.is_some() && !shape.exponent), "`{cell}`");
            return;
        }
        _ => return,
    };
    assert_eq!(probe.check(cell.as_bytes()).is_ok(), taken, "`{cell}` as {ty}");
}

/// A number with its separators replaced by Rust's; other texts are unchanged.
fn plain(text: &str, decimal: u8, thousands: Option<u8>) -> Option<String> {
    let unsigned = text.trim_start_matches(['-', '+']);
    if ["nan", "inf", "infinity"].iter().any(|name| unsigned.eq_ignore_ascii_case(name)) {
        return Some(text.to_owned());
    }
    if !text.bytes().any(|byte| byte == decimal || Some(byte) == thousands || byte == b'.') {
        return Some(text.to_owned());
    }
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(at) => text.split_at(at),
        None => (text, ""),
    };
    let (whole, fraction) = match mantissa.split_once(char::from(decimal)) {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let sign = if whole.starts_with(['-', '+']) { &whole[..1] } else { "" };
    let mut groups: Vec<&str> = vec![&whole[sign.len()..]];
    if let Some(thousands) = thousands {
        groups = whole[sign.len()..].split(char::from(thousands)).collect();
    }
    let grouped = groups.len() == 1 || (1..=3).contains(&groups[0].len()) && groups[1..].iter().all(|g| g.len() == 3);
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !grouped || !groups.iter().all(|group| digits(group)) || !fraction.is_none_or(digits) {
        return None;
    }
    let fraction = fraction.map(|fraction| format!(".{fraction}")).unwrap_or_default();
    Some(format!("{sign}{}{fraction}{exponent}", groups.concat()))
}

/// The value of a cell in the plain number format; `None` if it has another type.
fn reference(ty: DataType, text: &str) -> Option<i128> {
    let within = |low: i128, high: i128| text.parse::<i128>().ok().filter(|n| (low..=high).contains(n));
    // A number that is too large is rejected, not infinite.
    let named = text.trim_start_matches(['+', '-']).starts_with(|c: char| c.is_ascii_alphabetic());
    match ty {
        DataType::Int8 => within(i8::MIN.into(), i8::MAX.into()),
        DataType::Int16 => within(i16::MIN.into(), i16::MAX.into()),
        DataType::Int32 => within(i32::MIN.into(), i32::MAX.into()),
        DataType::Int64 => within(i64::MIN.into(), i64::MAX.into()),
        DataType::UInt8 => within(0, u8::MAX.into()),
        DataType::UInt16 => within(0, u16::MAX.into()),
        DataType::UInt32 => within(0, u32::MAX.into()),
        DataType::UInt64 => within(0, u64::MAX.into()),
        DataType::Float32 => text.parse::<f32>().ok().filter(|f| f.is_finite() || named).map(|f| f.to_bits().into()),
        DataType::Float64 => text.parse::<f64>().ok().filter(|f| f.is_finite() || named).map(|f| f.to_bits().into()),
        DataType::Decimal { precision, scale } => decimal_by_digits(text, precision, scale),
        DataType::Boolean => text.parse::<bool>().ok().map(i128::from),
        DataType::Date => date(text).map(i128::from),
        DataType::Time => time(text).map(i128::from),
        DataType::Timestamp => timestamp(text).map(i128::from),
        DataType::TimestampTz => zoned(text).map(i128::from),
        DataType::Uuid => uuid(text),
        DataType::String | DataType::Json => None,
    }
}

/// Only `YYYY-MM-DD`; `chrono` accepts more.
fn date(text: &str) -> Option<i64> {
    let date = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?;
    // Years of more than four digits have a sign.
    (text.len() == 10 && date.format("%Y-%m-%d").to_string() == text)
        .then(|| i64::from(date.num_days_from_ce()) - 719_163)
}

fn time(text: &str) -> Option<i64> {
    let (clock, fraction) = match text.split_once('.') {
        Some((clock, fraction)) if clock.len() == 8 => (clock, Some(fraction)),
        Some(_) => return None,
        None => (text, None),
    };
    let format = if clock.len() == 5 { "%H:%M" } else { "%H:%M:%S" };
    let read = NaiveTime::parse_from_str(clock, format).ok()?;
    // `chrono` accepts second 60.
    if read.format(format).to_string() != clock || read.nanosecond() != 0 {
        return None;
    }
    let mut micros = 0;
    if let Some(fraction) = fraction {
        if !(1..=9).contains(&fraction.len()) || !fraction.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let nanos: i64 = format!("{fraction:0<9}").parse().ok()?;
        if nanos % 1000 != 0 {
            return None;
        }
        micros = nanos / 1000;
    }
    Some(i64::from(read.num_seconds_from_midnight()) * 1_000_000 + micros)
}

fn timestamp(text: &str) -> Option<i64> {
    let (day, clock) = (text.get(..10)?, text.get(11..)?);
    matches!(text.as_bytes()[10], b'T' | b' ').then_some(())?;
    Some(date(day)? * 86_400_000_000 + time(clock)?)
}

/// Without an offset it is UTC.
fn zoned(text: &str) -> Option<i64> {
    if let Some(local) = text.strip_suffix('Z') {
        return timestamp(local);
    }
    let Some(at) = text.rfind(['+', '-']).filter(|at| *at > 10) else { return timestamp(text) };
    let (local, offset) = text.split_at(at);
    let digits = match offset.len() {
        3 | 5 => offset[1..].to_owned(),
        6 if offset.as_bytes()[3] == b':' => format!("{}{}", offset.get(1..3)?, offset.get(4..)?),
        _ => return None,
    };
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let number = |text: Option<&str>| text.map_or(Some(0), |text| text.parse::<i64>().ok());
    let (hours, minutes) = (number(digits.get(..2))?, number(digits.get(2..4))?);
    let ahead = (hours < 24 && minutes < 60).then_some((hours * 60 + minutes) * 60_000_000)?;
    let local = timestamp(local)?;
    Some(if offset.starts_with('-') { local + ahead } else { local - ahead })
}

fn uuid(text: &str) -> Option<i128> {
    let digits = match text.len() {
        32 => text.to_owned(),
        36 if [8, 13, 18, 23].iter().all(|at| text.as_bytes()[*at] == b'-') => text.replace('-', ""),
        _ => return None,
    };
    let hex = digits.len() == 32 && digits.bytes().all(|b| b.is_ascii_hexdigit());
    if hex { u128::from_str_radix(&digits, 16).ok().map(|bits| bits as i128) } else { None }
}

/// The first byte sets the number of cells of a record and whether they are trimmed; the rest is the source. An
/// accepted row is valid UTF-8, cell by cell; the others report where it isn't.
pub fn utf8(input: &[u8]) {
    let Some((&form, text)) = input.split_first() else { return };
    let dialect = Dialect {
        header: false,
        ragged_rows: RaggedRows::Pad,
        trim: form & 4 != 0,
        null_values: vec!["-".to_owned()],
        ..Dialect::default()
    };
    let width = 1 + usize::from(form & 3);
    let chunk = Chunk::from_text(text.to_vec());
    let mut indexer = Indexer::new(&dialect, width, dialect.ragged_rows);
    let (mut block, mut pos) = (RecordIndex::default(), 0);
    let mut faults = Vec::new();
    while indexer.next_block(&chunk, &mut pos, 1 + usize::from(form) * 4, &mut block) {
        for bad in block.malformed.iter().filter(|bad| bad.reason == RejectReason::InvalidEncoding) {
            let error = std::str::from_utf8(&text[bad.start as usize..bad.end as usize]).expect_err("it was refused");
            let at = format!("byte offset {}", bad.start as usize + error.valid_up_to());
            assert!(bad.message.ends_with(&at), "{}: expected {at}", bad.message);
        }
        for (start, end) in &block.records {
            assert!(std::str::from_utf8(&text[*start as usize..*end as usize]).is_ok());
        }
        for position in 0..width {
            let mut builder = ColumnBuilder::new(&column(DataType::String), &dialect);
            builder.append(text, &block, Some(position), &mut faults);
            let array = builder.finish();
            let array = array.as_string::<i32>();
            for row in 0..block.rows() {
                let field = block.field(row, position);
                let whole = cell_text(text, field, &dialect);
                let cell = if dialect.trim && !field.is_quoted() { whole.trim_ascii() } else { &whole[..] };
                let null = field.is_absent() || (cell == b"-" && !field.is_quoted());
                assert_eq!(array.is_null(row), null);
                let offsets = &array.value_offsets()[row..=row + 1];
                let bytes = &array.value_data()[offsets[0] as usize..offsets[1] as usize];
                let expected = if null { &[] } else { cell };
                assert_eq!(bytes, expected);
                assert!(std::str::from_utf8(bytes).is_ok());
            }
        }
    }
    assert!(faults.is_empty());
}

//! Counts of nulls, and bounds of columns, from the footer of a data file.
//!
//! Invariant: no value of a column is outside its bounds. Values that include NaN have none.

use parquet::file::metadata::ParquetMetaData;
use parquet::file::statistics::Statistics;

use crate::domain::pipeline::types::DataType;

/// A column of a file.
pub(super) struct ColumnSummary {
    /// Least and greatest value; `None` if they are not known or there are none.
    pub(super) bounds: Option<[ColumnBound; 2]>,
    pub(super) nulls: Option<u64>,
}

impl ColumnSummary {
    /// `column`: its position in the file.
    pub(super) fn of(metadata: &ParquetMetaData, column: usize, ty: DataType) -> Self {
        let (mut bounds, mut nulls, mut known) = (None::<[ColumnBound; 2]>, Some(0), true);
        for group in metadata.row_groups() {
            let statistics = group.columns().get(column).and_then(|chunk| chunk.statistics());
            let own_nulls = statistics.and_then(Statistics::null_count_opt);
            nulls = nulls.zip(own_nulls).map(|(all, own)| all + own);
            match statistics.and_then(|statistics| from_statistics(statistics, ty)) {
                Some([low, high]) => {
                    bounds = Some(match bounds {
                        None => [low, high],
                        Some([min, max]) => {
                            [if low.is_below(&min) { low } else { min }, if max.is_below(&high) { high } else { max }]
                        }
                    });
                }
                // Without values it has no bounds.
                None => known &= own_nulls == Some(group.num_rows() as u64),
            }
        }
        Self { bounds: bounds.filter(|_| known), nulls }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum ColumnBound {
    Int(i128),
    Float(f64),
    Text(String),
}

impl ColumnBound {
    /// Both are of one column.
    fn is_below(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => a < b,
            (Self::Float(a), Self::Float(b)) => a < b,
            (Self::Text(a), Self::Text(b)) => a < b,
            _ => false,
        }
    }
}

fn from_statistics(statistics: &Statistics, ty: DataType) -> Option<[ColumnBound; 2]> {
    let is_number = matches!(
        ty,
        DataType::Int8
            | DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::Decimal { .. }
            | DataType::Date
            | DataType::Timestamp
            | DataType::TimestampTz
    );
    let pair = |min: Option<ColumnBound>, max: Option<ColumnBound>| min.zip(max).map(|(min, max)| [min, max]);
    match statistics {
        Statistics::Int32(s) if is_number => {
            let bound = |value: &i32| ColumnBound::Int(i128::from(*value));
            pair(s.min_opt().map(bound), s.max_opt().map(bound))
        }
        Statistics::Int64(s) if is_number => {
            let bound = |value: &i64| ColumnBound::Int(i128::from(*value));
            pair(s.min_opt().map(bound), s.max_opt().map(bound))
        }
        Statistics::FixedLenByteArray(s) if matches!(ty, DataType::Decimal { .. }) => {
            let bound = |bytes: &[u8]| big_endian(bytes).map(ColumnBound::Int);
            pair(s.min_opt().and_then(|v| bound(v.data())), s.max_opt().and_then(|v| bound(v.data())))
        }
        // Widened, since readers compare in either width.
        Statistics::Float(s) => {
            let bound = |value: &f32| ColumnBound::Float(f64::from(*value));
            pair(s.min_opt().map(bound), s.max_opt().map(bound))
        }
        Statistics::Double(s) => {
            let bound = |value: &f64| ColumnBound::Float(*value);
            pair(s.min_opt().map(bound), s.max_opt().map(bound))
        }
        Statistics::ByteArray(s) if ty == DataType::String => {
            let bound = |bytes: &[u8]| std::str::from_utf8(bytes).ok().map(|text| ColumnBound::Text(text.to_owned()));
            pair(s.min_opt().and_then(|v| bound(v.data())), s.max_opt().and_then(|v| bound(v.data())))
        }
        Statistics::Boolean(s) => {
            let bound = |value: &bool| ColumnBound::Int(i128::from(*value));
            pair(s.min_opt().map(bound), s.max_opt().map(bound))
        }
        Statistics::Int32(_)
        | Statistics::Int64(_)
        | Statistics::Int96(_)
        | Statistics::ByteArray(_)
        | Statistics::FixedLenByteArray(_) => None,
    }
}

/// A two's complement number, the highest byte first.
fn big_endian(bytes: &[u8]) -> Option<i128> {
    let fill = if *bytes.first()? & 0x80 == 0 { 0 } else { 0xff };
    let mut wide = [fill; 16];
    wide.get_mut(16_usize.checked_sub(bytes.len())?..)?.copy_from_slice(bytes);
    Some(i128::from_be_bytes(wide))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_sign_extended() {
        assert_eq!(big_endian(&[0xff, 0xfe]), Some(-2));
        assert_eq!(big_endian(&[0x01, 0x00]), Some(256));
        assert_eq!(big_endian(&[]), None);
    }
}

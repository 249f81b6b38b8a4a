//! The minimum and maximum of a page or column chunk, for Parquet's statistics.

use std::cmp::Ordering;

use parquet::data_type::{ByteArray, FixedLenByteArray};
use parquet::file::statistics::{Statistics, ValueStatistics};

/// Longest minimum and maximum of text kept in statistics, in bytes.
const BYTES_MAX: usize = 64;

/// The order of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueOrder {
    Signed,
    Unsigned,
    Float,
    /// Text, by its bytes; truncated at whole characters.
    Text,
    /// By bytes; too short to be truncated.
    Bytes,
    /// Two's complement, the highest byte first.
    Decimal,
}

/// A value of a column. Unsigned integers are stored as signed ones of the same bits.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum StatValue {
    Boolean(bool),
    Int32(i32),
    Int64(i64),
    Float(f32),
    Double(f64),
    Bytes(Vec<u8>),
    Fixed(Vec<u8>),
}

impl StatValue {
    /// Values of one column are always comparable.
    fn compare(&self, other: &Self, order: ValueOrder) -> Ordering {
        match (self, other) {
            (Self::Boolean(a), Self::Boolean(b)) => a.cmp(b),
            (Self::Int32(a), Self::Int32(b)) if order == ValueOrder::Unsigned => (*a as u32).cmp(&(*b as u32)),
            (Self::Int32(a), Self::Int32(b)) => a.cmp(b),
            (Self::Int64(a), Self::Int64(b)) if order == ValueOrder::Unsigned => (*a as u64).cmp(&(*b as u64)),
            (Self::Int64(a), Self::Int64(b)) => a.cmp(b),
            (Self::Float(a), Self::Float(b)) => a.partial_cmp(b).unwrap_or(Ordering::Equal),
            (Self::Double(a), Self::Double(b)) => a.partial_cmp(b).unwrap_or(Ordering::Equal),
            (Self::Bytes(a) | Self::Fixed(a), Self::Bytes(b) | Self::Fixed(b)) => compare_bytes(a, b, order),
            _ => Ordering::Equal,
        }
    }

    fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Boolean(value) => vec![u8::from(*value)],
            Self::Int32(value) => value.to_le_bytes().to_vec(),
            Self::Int64(value) => value.to_le_bytes().to_vec(),
            Self::Float(value) => value.to_le_bytes().to_vec(),
            Self::Double(value) => value.to_le_bytes().to_vec(),
            Self::Bytes(value) | Self::Fixed(value) => value.clone(),
        }
    }
}

/// Compares byte values; decimals have the same length.
pub(super) fn compare_bytes(a: &[u8], b: &[u8], order: ValueOrder) -> Ordering {
    match (order, a.first(), b.first()) {
        (ValueOrder::Decimal, Some(&high_a), Some(&high_b)) => {
            (high_a as i8).cmp(&(high_b as i8)).then_with(|| a[1..].cmp(&b[1..]))
        }
        _ => a.cmp(b),
    }
}

/// The minimum and maximum without nulls. Values that include a NaN have no bounds, since readers order NaN differently
/// and would skip rows.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ValueBounds {
    pub min: StatValue,
    pub max: StatValue,
}

impl ValueBounds {
    /// Additional memory, in bytes.
    pub(super) fn held_bytes(&self) -> usize {
        let of = |value: &StatValue| match value {
            StatValue::Bytes(bytes) | StatValue::Fixed(bytes) => bytes.capacity(),
            StatValue::Boolean(_)
            | StatValue::Int32(_)
            | StatValue::Int64(_)
            | StatValue::Float(_)
            | StatValue::Double(_) => 0,
        };
        of(&self.min) + of(&self.max)
    }

    pub(super) fn from_booleans(trues: usize, falses: usize) -> Option<Self> {
        let bounds = Self { min: StatValue::Boolean(falses == 0), max: StatValue::Boolean(trues > 0) };
        (trues + falses > 0).then_some(bounds)
    }

    pub(super) fn from_bytes(min_and_max: Option<(&[u8], &[u8])>, order: ValueOrder) -> Option<Self> {
        let value = if order == ValueOrder::Text { StatValue::Bytes } else { StatValue::Fixed };
        min_and_max.map(|(min, max)| Self { min: value(min.to_vec()), max: value(max.to_vec()) })
    }

    /// Extends the bounds to include `other`.
    pub(super) fn widen(&mut self, other: &Self, order: ValueOrder) {
        if other.min.compare(&self.min, order).is_lt() {
            self.min = other.min.clone();
        }
        if other.max.compare(&self.max, order).is_gt() {
            self.max = other.max.clone();
        }
    }

    /// Whether neither bound is below that of `other`.
    pub(super) fn follow(&self, other: &Self, order: ValueOrder) -> bool {
        self.min.compare(&other.min, order).is_ge() && self.max.compare(&other.max, order).is_ge()
    }

    /// Minimum and maximum for the column index, with text truncated.
    pub(super) fn shortened(&self) -> (Vec<u8>, Vec<u8>) {
        match (&self.min, &self.max) {
            (StatValue::Bytes(min), StatValue::Bytes(max)) => (shorten(min).0, shorten_up(max).0),
            (min, max) => (min.bytes(), max.bytes()),
        }
    }
}

/// The statistics of a column chunk.
pub(super) fn statistics(bounds: Option<&ValueBounds>, empty: &StatValue, nulls: u64, order: ValueOrder) -> Statistics {
    // For signed values and floats, the deprecated form of the bounds has the same meaning.
    let older = matches!(order, ValueOrder::Signed | ValueOrder::Float | ValueOrder::Decimal);
    macro_rules! of {
        ($kind:ident) => {{
            let bound = |value: &StatValue| match value {
                StatValue::$kind(value) => Some(*value),
                _ => None,
            };
            let (min, max) = (bounds.and_then(|b| bound(&b.min)), bounds.and_then(|b| bound(&b.max)));
            ValueStatistics::new(min, max, None, Some(nulls), false).with_backwards_compatible_min_max(older)
        }};
    }
    match empty {
        StatValue::Boolean(_) => Statistics::Boolean(of!(Boolean)),
        StatValue::Int32(_) => Statistics::Int32(of!(Int32)),
        StatValue::Int64(_) => Statistics::Int64(of!(Int64)),
        StatValue::Float(_) => Statistics::Float(of!(Float)),
        StatValue::Double(_) => Statistics::Double(of!(Double)),
        StatValue::Bytes(_) => {
            let (min, max) = match bounds.map(|bounds| (&bounds.min, &bounds.max)) {
                Some((StatValue::Bytes(min), StatValue::Bytes(max))) => (Some(shorten(min)), Some(shorten_up(max))),
                _ => (None, None),
            };
            let Some(((min, min_cut), (max, max_cut))) = min.zip(max) else {
                let none = ValueStatistics::<ByteArray>::new(None, None, None, Some(nulls), false);
                return Statistics::ByteArray(none.with_backwards_compatible_min_max(older));
            };
            let statistics = ValueStatistics::new(Some(min.into()), Some(max.into()), None, Some(nulls), false);
            let statistics = statistics.with_backwards_compatible_min_max(older);
            Statistics::ByteArray(statistics.with_min_is_exact(!min_cut).with_max_is_exact(!max_cut))
        }
        StatValue::Fixed(_) => {
            let array = |value: &StatValue| FixedLenByteArray::from(ByteArray::from(value.bytes()));
            let (min, max) = (bounds.map(|b| array(&b.min)), bounds.map(|b| array(&b.max)));
            let statistics = ValueStatistics::new(min, max, None, Some(nulls), false);
            Statistics::FixedLenByteArray(statistics.with_backwards_compatible_min_max(older))
        }
    }
}

/// Truncates a text to [`BYTES_MAX`]; returns whether it was truncated.
fn shorten(text: &[u8]) -> (Vec<u8>, bool) {
    if text.len() <= BYTES_MAX {
        return (text.to_vec(), false);
    }
    (text[..character_start(text, BYTES_MAX)].to_vec(), true)
}

/// The shortest text of whole characters above all texts that start like `text`; the text itself if it is short, or if
/// there is none.
fn shorten_up(text: &[u8]) -> (Vec<u8>, bool) {
    if text.len() <= BYTES_MAX {
        return (text.to_vec(), false);
    }
    let start = String::from_utf8_lossy(&text[..character_start(text, BYTES_MAX)]);
    for (at, character) in start.char_indices().rev() {
        // Must have the same length, so that the result is not longer than allowed.
        if let Some(next) = char::from_u32(character as u32 + 1)
            && next.len_utf8() == character.len_utf8()
        {
            let mut raised = start[..at].to_owned();
            raised.push(next);
            return (raised.into_bytes(), true);
        }
    }
    (text.to_vec(), false)
}

/// The last position at or before `at` where a character starts.
fn character_start(text: &[u8], at: usize) -> usize {
    (0..=at).rev().find(|&at| at == 0 || text[at] & 0xc0 != 0x80).unwrap_or(0)
}

/// Lanes searched for minima and maxima in parallel.
const LANES: usize = 8;

/// The minimum and maximum of `values` in the order of `less`.
fn range_by<T: Copy>(values: &[T], min: T, max: T, less: impl Fn(T, T) -> bool) -> (T, T) {
    let (mut low, mut high) = ([min; LANES], [max; LANES]);
    let (whole, rest) = values.as_chunks::<LANES>();
    for lanes in whole {
        for at in 0..LANES {
            low[at] = if less(lanes[at], low[at]) { lanes[at] } else { low[at] };
            high[at] = if less(high[at], lanes[at]) { lanes[at] } else { high[at] };
        }
    }
    let low = low.iter().chain(rest).fold(min, |low, &value| if less(value, low) { value } else { low });
    let high = high.iter().chain(rest).fold(max, |high, &value| if less(high, value) { value } else { high });
    (low, high)
}

macro_rules! words {
    ($of:ident, $word:ident, $unsigned:ident, $float:ident, $int_kind:ident, $float_kind:ident) => {
        /// The bounds of integers, or of floats held as integers of the same bits.
        pub(super) fn $of(values: &[$word], order: ValueOrder) -> Option<ValueBounds> {
            if values.is_empty() {
                return None;
            }
            if order == ValueOrder::Float {
                let is_nan = |word: &$word| $float::from_bits(*word as $unsigned).is_nan();
                // Without early exit, so that the loop is vectorized.
                if values.iter().fold(false, |found, word| found | is_nan(word)) {
                    return None;
                }
                let less = |a: $word, b: $word| $float::from_bits(a as $unsigned) < $float::from_bits(b as $unsigned);
                let (low, high) = ($float::INFINITY.to_bits() as $word, $float::NEG_INFINITY.to_bits() as $word);
                let (low, high) = range_by(values, low, high, less);
                let (low, high) = ($float::from_bits(low as $unsigned), $float::from_bits(high as $unsigned));
                // Readers may treat the zeros as equal.
                let low = if low == 0.0 { -0.0 } else { low };
                let high = if high == 0.0 { 0.0 } else { high };
                return Some(ValueBounds { min: StatValue::$float_kind(low), max: StatValue::$float_kind(high) });
            }
            let (low, high) = if order == ValueOrder::Unsigned {
                let less = |a: $word, b: $word| (a as $unsigned) < (b as $unsigned);
                range_by(values, values[0], values[0], less)
            } else {
                range_by(values, values[0], values[0], |a, b| a < b)
            };
            Some(ValueBounds { min: StatValue::$int_kind(low), max: StatValue::$int_kind(high) })
        }
    };
}

words!(of_words32, i32, u32, f32, Int32, Float);
words!(of_words64, i64, u64, f64, Int64, Double);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nan_prevents_bounds_and_zeros_span_both_signs() {
        let of = |values: &[f64]| {
            let bits: Vec<i64> = values.iter().map(|value| value.to_bits() as i64).collect();
            of_words64(&bits, ValueOrder::Float).map(|bounds| match (bounds.min, bounds.max) {
                (StatValue::Double(a), StatValue::Double(b)) => (a.to_bits(), b.to_bits()),
                _ => panic!(),
            })
        };
        let bits = |a: f64, b: f64| Some((a.to_bits(), b.to_bits()));
        assert_eq!(of(&[f64::NAN; 20]), None);
        assert_eq!(of(&[]), None);
        for at in 0..20 {
            let mut values = [1.0; 20];
            assert_eq!(of(&values), bits(1.0, 1.0));
            values[at] = if at % 2 == 0 { f64::NAN } else { -f64::NAN };
            assert_eq!(of(&values), None, "a NaN at {at}");
        }
        assert_eq!(of(&[0.0]), bits(-0.0, 0.0));
        assert_eq!(of(&[-0.0; 9]), bits(-0.0, 0.0));
        assert_eq!(of(&[f64::INFINITY, f64::INFINITY]), bits(f64::INFINITY, f64::INFINITY));
        assert_eq!(of(&[f64::NEG_INFINITY; 10]), bits(f64::NEG_INFINITY, f64::NEG_INFINITY));
    }

    #[test]
    fn integers_compare_by_their_signedness() {
        for length in 1..50 {
            let values: Vec<i64> = (0..length).map(|at: i64| (at * 7_919 % 31 - 15) << 58).collect();
            let (min, max) = (*values.iter().min().unwrap(), *values.iter().max().unwrap());
            assert_eq!(
                of_words64(&values, ValueOrder::Signed),
                Some(ValueBounds { min: StatValue::Int64(min), max: StatValue::Int64(max) })
            );
            let unsigned = values.iter().map(|&value| value as u64);
            let (min, max) = (unsigned.clone().min().unwrap() as i64, unsigned.max().unwrap() as i64);
            assert_eq!(
                of_words64(&values, ValueOrder::Unsigned),
                Some(ValueBounds { min: StatValue::Int64(min), max: StatValue::Int64(max) })
            );
        }
    }

    #[test]
    fn long_text_bounds_are_truncated_at_characters_and_raised() {
        let text = format!("{}é-and-more-than-that", "x".repeat(63));
        assert_eq!(shorten(text.as_bytes()), ("x".repeat(63).into_bytes(), true));
        assert_eq!(shorten_up(text.as_bytes()), (format!("{}y", "x".repeat(62)).into_bytes(), true));
        let last = "\u{10ffff}".repeat(20);
        assert_eq!(shorten_up(last.as_bytes()), (last.clone().into_bytes(), false));
        let after = format!("a{last}");
        assert_eq!(shorten_up(after.as_bytes()), (b"b".to_vec(), true));
        assert_eq!(shorten_up(&[b'z'; 64]), (vec![b'z'; 64], false));
    }

    #[test]
    fn decimals_compare_by_their_sign_first() {
        let bytes = |value: i128| value.to_be_bytes()[4..].to_vec();
        for (a, b) in [(-1, 0), (-300, -2), (5, 1 << 70), (-(1 << 70), 3), (255, 256)] {
            assert!(compare_bytes(&bytes(a), &bytes(b), ValueOrder::Decimal).is_lt(), "{a} {b}");
        }
    }
}

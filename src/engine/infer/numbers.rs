//! Finds the number styles that read a column's values, and the properties of the numbers in each style.

use super::counterexample::{CellValue, Counterexample};
use crate::domain::pipeline::Dialect;
use crate::engine::cells::{CellProbe, number_shape};

/// Decimal and thousands separators. The first is the default; of styles that read equally many columns, the first
/// wins.
pub(super) const STYLES: [(u8, Option<u8>); 8] = [
    (b'.', None),
    (b'.', Some(b',')),
    (b',', None),
    (b',', Some(b'.')),
    (b',', Some(b' ')),
    (b'.', Some(b' ')),
    (b'.', Some(b'\'')),
    (b',', Some(b'\'')),
];

/// Minimum number of digits at which a number with a leading `+` is treated as a telephone number.
const TELEPHONE_DIGITS_MIN: usize = 7;
const LEADING_ZERO: &str = "its leading zero would be lost";
/// Digits that a 64-bit float always preserves, and the most that identify one.
const FLOAT_DIGITS: usize = 15;
const FLOAT_DIGITS_MAX: usize = 17;
const DECIMAL_DIGITS_MAX: usize = 38;
const NANOS_DIGITS: usize = 19;
/// Proposed precision if the values fit, with room for later ones.
const DECIMAL_DIGITS_DEFAULT: usize = 18;
/// Decimal places up to which a column with a money word in its name is a decimal.
const MONEY_PLACES_MAX: usize = 4;
const MONEY_WORDS: [&str; 16] = [
    "price", "amount", "cost", "fee", "fare", "total", "subtotal", "balance", "revenue", "tax", "tip", "salary",
    "betrag", "preis", "eur", "usd",
];

/// The parsers of each style, shared by all columns.
pub(super) struct NumberProbes {
    dialects: Vec<Dialect>,
    floats: Vec<CellProbe>,
}

impl NumberProbes {
    pub fn new() -> Self {
        let style = |(decimal, thousands): &(u8, Option<u8>)| Dialect {
            decimal: *decimal,
            thousands: *thousands,
            ..Dialect::default()
        };
        let dialects: Vec<Dialect> = STYLES.iter().map(style).collect();
        let floats = dialects.iter().map(CellProbe::float64).collect();
        Self { dialects, floats }
    }
}

/// How a value fits a style.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NumberFit {
    Number,
    /// It could be read, with a loss.
    Lossy,
    NotNumber,
}

impl NumberProbes {
    pub fn fit(&mut self, style: usize, text: &[u8]) -> NumberFit {
        match plain(text) {
            Some(Ok(())) => return NumberFit::Number,
            Some(Err(_)) => return NumberFit::Lossy,
            None => {}
        }
        if self.floats[style].check(text).is_err() {
            return NumberFit::NotNumber;
        }
        match number_shape(text, &self.dialects[style]) {
            Ok(found) if found.zero_led => NumberFit::Lossy,
            Ok(_) | Err(_) => NumberFit::Number,
        }
    }
}

/// For digits with an optional sign: whether it may be a number, or what would be lost. `None` for anything else.
fn plain(text: &[u8]) -> Option<Result<(), &'static str>> {
    let digits = text.strip_prefix(b"-").or(text.strip_prefix(b"+")).unwrap_or(text);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(if digits.len() > 1 && digits[0] == b'0' {
        Err(LEADING_ZERO)
    } else if text.first() == Some(&b'+') && digits.len() >= TELEPHONE_DIGITS_MIN {
        Err("its `+` would be lost, and it looks like a telephone number")
    } else {
        Ok(())
    })
}

/// Properties, in one style, of values with more than digits.
#[derive(Debug, Clone, Default)]
struct Shape {
    values: u64,
    fractions: u64,
    places_min: usize,
    places_max: usize,
    digits_max: usize,
    /// A 64-bit float would change the number.
    rounded: bool,
    exponents: u64,
    /// `nan`, `inf`.
    named: u64,
    grouped: u64,
    /// The first value that is not an integer.
    not_whole: Option<Counterexample>,
}

/// The range of integers.
#[derive(Debug, Clone, Copy)]
struct IntegerRange {
    min: i128,
    max: i128,
    digits_max: usize,
}

impl Default for IntegerRange {
    fn default() -> Self {
        Self { min: i128::MAX, max: i128::MIN, digits_max: 0 }
    }
}

impl IntegerRange {
    fn add(&mut self, whole: Option<i128>, digits: usize) {
        self.digits_max = self.digits_max.max(digits);
        if let Some(whole) = whole {
            (self.min, self.max) = (self.min.min(whole), self.max.max(whole));
        }
    }

    fn with(mut self, other: Self) -> Self {
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.digits_max = self.digits_max.max(other.digits_max);
        self
    }
}

/// The numbers of a column.
#[derive(Debug, Clone, Default)]
pub(super) struct Numbers {
    plain: u64,
    range: IntegerRange,
    /// A number of as many digits as nanoseconds since 1970 that has no whole number of microseconds.
    pub below_micros: bool,
    shapes: [Shape; STYLES.len()],
    ranges: [IntegerRange; STYLES.len()],
    counterexample: [Option<Counterexample>; STYLES.len()],
    /// Cells with a separator of the style, and whether the last cell has one.
    marked: [u64; STYLES.len()],
    last_marked: Option<[bool; STYLES.len()]>,
    /// A value that is not a number in any style.
    not_a_number: Option<Counterexample>,
}

/// The type inferred from the numbers of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NumberType {
    pub ty: String,
    pub why: String,
    pub range: Option<String>,
    pub warning: Option<String>,
}

impl Numbers {
    /// Repeats the previous value.
    pub fn repeat_last(&mut self) {
        // Only the number of values with separators depends on repetitions.
        if let Some(marked) = self.last_marked {
            for (sum, one) in self.marked.iter_mut().zip(marked) {
                *sum += u64::from(one);
            }
        }
    }

    pub fn observe(&mut self, value: &CellValue<'_>, probes: &mut NumberProbes) {
        self.last_marked = None;
        if self.not_a_number.is_some() {
            return;
        }
        let text = value.text;
        match plain(text) {
            Some(Ok(())) => {
                self.plain += 1;
                let signs = usize::from(!text[0].is_ascii_digit());
                self.below_micros |= text.len() == NANOS_DIGITS && !text.ends_with(b"000");
                self.range.add(integer(text), text.len() - signs);
                return;
            }
            Some(Err(why)) => {
                self.not_a_number = Some(value.counterexample(why));
                return;
            }
            None => {}
        }
        let mut any = false;
        for style in 0..STYLES.len() {
            if self.counterexample[style].is_none() {
                self.observe_in(style, value, probes);
                any |= self.counterexample[style].is_none();
            }
        }
        if !any {
            self.not_a_number = self.counterexample[0].clone();
        }
    }

    fn observe_in(&mut self, style: usize, value: &CellValue<'_>, probes: &mut NumberProbes) {
        let shape = &mut self.shapes[style];
        if let Err(fault) = probes.floats[style].check(value.text) {
            self.counterexample[style] = Some(value.counterexample(match fault {
                crate::engine::cells::FaultKind::Grouping => "its separators are not between groups of three digits",
                _ => "not a number",
            }));
            return;
        }
        shape.values += 1;
        let Ok(found) = number_shape(value.text, &probes.dialects[style]) else {
            shape.named += 1;
            shape.not_whole.get_or_insert_with(|| value.counterexample(""));
            return;
        };
        if found.zero_led {
            self.counterexample[style] = Some(value.counterexample(LEADING_ZERO));
            return;
        }
        let places = found.fraction_digits.unwrap_or(0);
        if found.fraction_digits.is_some() {
            shape.places_min = if shape.fractions == 0 { places } else { shape.places_min.min(places) };
            shape.places_max = shape.places_max.max(places);
            shape.fractions += 1;
        }
        let marked = found.fraction_digits.is_some() || found.grouped;
        self.marked[style] += u64::from(marked);
        self.last_marked.get_or_insert_default()[style] = marked;
        shape.exponents += u64::from(found.exponent);
        shape.grouped += u64::from(found.grouped);
        let digits = found.whole_digits + places;
        shape.digits_max = shape.digits_max.max(digits);
        shape.rounded |= digits > FLOAT_DIGITS_MAX
            || digits > FLOAT_DIGITS && !found.exponent && is_rounded(value.text, STYLES[style]);
        if found.exponent || found.fraction_digits.is_some() {
            shape.not_whole.get_or_insert_with(|| value.counterexample(""));
        }
        self.ranges[style].add(found.whole, found.whole_digits);
    }

    /// Whether the style reads every value.
    pub fn reads(&self, style: usize) -> bool {
        self.not_a_number.is_none()
            && self.counterexample[style].is_none()
            && self.plain + self.shapes[style].values > 0
    }

    /// Whether some style reads every value.
    pub fn is_read(&self) -> bool {
        (0..STYLES.len()).any(|style| self.reads(style))
    }

    /// Whether any value has a separator, in a style that reads all of them.
    pub fn has_separators(&self) -> bool {
        (0..STYLES.len()).any(|style| self.marked(style) > 0)
    }

    /// Fewest and most decimal places of the values that have a decimal separator.
    pub fn places(&self, style: usize) -> Option<(usize, usize)> {
        let shape = &self.shapes[style];
        (shape.fractions > 0).then_some((shape.places_min, shape.places_max))
    }

    /// Whether a value has thousands separators.
    pub fn is_grouped(&self, style: usize) -> bool {
        self.shapes[style].grouped > 0
    }

    /// Maximum number of digits before the decimal separator, and after it.
    pub fn digits(&self, style: usize) -> (usize, usize) {
        (self.range.with(self.ranges[style]).digits_max, self.shapes[style].places_max)
    }

    /// The smallest and greatest whole part of numbers without exponents.
    pub fn bounds(&self, style: usize) -> Option<(i128, i128)> {
        let range = self.range.with(self.ranges[style]);
        let shape = &self.shapes[style];
        let is_known = self.reads(style) && shape.exponents == 0 && shape.named == 0 && range.min <= range.max;
        is_known.then_some((range.min, range.max))
    }

    /// Values with a separator of the style.
    pub fn marked(&self, style: usize) -> u64 {
        if self.reads(style) { self.marked[style] } else { 0 }
    }

    /// The value that is not a number in the style.
    pub fn counterexample(&self, style: usize) -> Option<&Counterexample> {
        self.not_a_number.as_ref().or(self.counterexample[style].as_ref())
    }

    /// The first value that is not an integer.
    pub fn not_whole(&self, style: usize) -> Option<&Counterexample> {
        self.shapes[style].not_whole.as_ref().or(self.counterexample(style))
    }

    /// The type of the numbers; `None` if there are none, or not all values are numbers.
    pub fn ty(&self, style: usize, name: &str) -> Option<NumberType> {
        if !self.reads(style) {
            return None;
        }
        let shape = &self.shapes[style];
        let range = self.range.with(self.ranges[style]);
        if shape.not_whole.is_none() {
            return Some(whole(range));
        }
        let made = |ty: String, why: String| NumberType { ty, why, range: None, warning: None };
        if shape.named > 0 || shape.exponents > 0 {
            let what = if shape.exponents > 0 { "numbers with an exponent" } else { "`nan` or `inf`" };
            return Some(made("float64".into(), format!("numbers, including {what}, which require a float")));
        }
        let (places, whole_digits) = (shape.places_max, range.digits_max);
        if whole_digits + places > DECIMAL_DIGITS_MAX {
            return None;
        }
        let precision =
            if whole_digits + places <= DECIMAL_DIGITS_DEFAULT { DECIMAL_DIGITS_DEFAULT } else { DECIMAL_DIGITS_MAX };
        let decimal = format!("decimal({precision},{places})");
        let fixed = shape.places_min == shape.places_max;
        let money = places <= MONEY_PLACES_MAX && name.split('_').any(|word| MONEY_WORDS.contains(&word));
        if fixed {
            return Some(made(decimal, format!("numbers with {places} decimal places or none")));
        }
        if money {
            return Some(made(
                decimal,
                format!("numbers with at most {places} decimal places; the column name suggests money"),
            ));
        }
        if shape.rounded || range.digits_max > FLOAT_DIGITS {
            let why = format!("numbers of up to {} digits, which a float would round", shape.digits_max);
            return Some(made(decimal, why));
        }
        let why = format!("numbers with {} to {places} decimal places", shape.places_min);
        Some(made("float64".into(), why))
    }
}

/// Whether `text`, a number without exponent, changes if it is parsed as a float and printed with the same number of
/// decimal places.
fn is_rounded(text: &[u8], (decimal, thousands): (u8, Option<u8>)) -> bool {
    let digits = text.iter().filter(|b| **b != b'+' && Some(**b) != thousands);
    let plain: String = digits.map(|b| if *b == decimal { '.' } else { char::from(*b) }).collect();
    let Ok(float) = plain.parse::<f64>() else { return true };
    let (sign, magnitude) = plain.strip_prefix('-').map_or(("", &plain[..]), |rest| ("-", rest));
    let (whole, places) = magnitude.split_once('.').unwrap_or((magnitude, ""));
    let expected = match (whole, places) {
        (whole, "") => format!("{sign}{whole}"),
        ("", places) => format!("{sign}0.{places}"),
        (whole, places) => format!("{sign}{whole}.{places}"),
    };
    format!("{float:.*}", places.len()) != expected
}

fn integer(text: &[u8]) -> Option<i128> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// The type of integers.
fn whole(range: IntegerRange) -> NumberType {
    let IntegerRange { min, max, digits_max } = range;
    let text = if digits_max > DECIMAL_DIGITS_MAX { None } else { Some(format!("{min} to {max}")) };
    let fits = |low: i128, high: i128| min >= low && max <= high && digits_max <= DECIMAL_DIGITS_MAX;
    let made = |ty: &str, why: String| NumberType { ty: ty.to_owned(), why, range: text.clone(), warning: None };
    if fits(i64::MIN.into(), i64::MAX.into()) {
        let narrow = [
            ("int8", i128::from(i8::MIN), i128::from(i8::MAX)),
            ("int16", i16::MIN.into(), i16::MAX.into()),
            ("int32", i32::MIN.into(), i32::MAX.into()),
        ];
        let narrow = narrow.iter().find(|(_, low, high)| fits(*low, *high));
        let hint = narrow.map_or(String::new(), |(ty, ..)| format!("; {ty} would fit those seen"));
        return made("int64", format!("whole numbers from {min} to {max}{hint}"));
    }
    if fits(0, u64::MAX.into()) {
        return made("uint64", format!("whole numbers from {min} to {max}, some beyond int64"));
    }
    if digits_max <= DECIMAL_DIGITS_MAX {
        return made("decimal(38,0)", format!("whole numbers of up to {digits_max} digits, beyond 64 bits"));
    }
    let mut text = made("string", format!("whole numbers of up to {digits_max} digits, too many for any numeric type"));
    text.warning = Some("no numeric type fits its numbers; they stay text".into());
    text
}

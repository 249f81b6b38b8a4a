//! Checks single cells with the parser of a type, without a column.

use super::boolean::BooleanParser;
use super::fault::FaultKind;
use super::float::Float64Parser;
use super::number::{NumberStyle, scan};
use super::text::Cell;
use super::time::{DateParser, TimeFormats, TimeParser, TimestampParser, TimestampTzParser};
use super::typed::{Parser, check_json};
use super::uuid::UuidParser;
use crate::domain::pipeline::Dialect;

fn plain(formats: &[String]) -> TimeFormats<'_> {
    TimeFormats { formats, decimal: b'.' }
}

/// Checks whether a cell (other than a null token) is valid in a column of one type.
pub struct CellProbe(Box<dyn Check>);

impl CellProbe {
    pub fn date(formats: &[String]) -> Self {
        Self(Box::new(DateParser::new(plain(formats))))
    }

    pub fn time(formats: &[String]) -> Self {
        Self(Box::new(TimeParser::new(plain(formats))))
    }

    pub fn timestamp(formats: &[String]) -> Self {
        Self(Box::new(TimestampParser::new(plain(formats))))
    }

    /// Values without an offset are UTC.
    pub fn timestamptz(formats: &[String]) -> Self {
        Self(Box::new(TimestampTzParser::new(plain(formats), None)))
    }

    pub fn uuid() -> Self {
        Self(Box::new(UuidParser))
    }

    pub fn json() -> Self {
        Self(Box::new(Json))
    }

    pub fn boolean(dialect: &Dialect) -> Self {
        Self(Box::new(BooleanParser::new(dialect)))
    }

    pub fn float64(dialect: &Dialect) -> Self {
        Self(Box::new(Float64Parser::new(NumberStyle::new(dialect))))
    }

    /// # Errors
    /// The fault of `text`, a cell's content.
    pub fn check(&mut self, text: &[u8]) -> Result<(), FaultKind> {
        self.0.check(Cell::new(text))
    }
}

impl std::fmt::Debug for CellProbe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CellProbe")
    }
}

trait Check: Send {
    fn check(&mut self, cell: Cell<'_>) -> Result<(), FaultKind>;
}

impl<P: Parser> Check for P {
    fn check(&mut self, cell: Cell<'_>) -> Result<(), FaultKind> {
        self.parse(cell).map(|_| ())
    }
}

struct Json;

impl Check for Json {
    fn check(&mut self, cell: Cell<'_>) -> Result<(), FaultKind> {
        check_json(cell.bytes())
    }
}

/// The written form of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NumberShape {
    pub negative: bool,
    /// Digits before the decimal mark, without separators.
    pub whole_digits: usize,
    /// The integer part has several digits and starts with a zero.
    pub zero_led: bool,
    /// Digits after the decimal mark, if there is one.
    pub fraction_digits: Option<usize>,
    pub exponent: bool,
    /// It has thousands separators.
    pub grouped: bool,
    /// The integer part, unless it overflows.
    pub whole: Option<i128>,
}

/// Analyses a number like the numeric types; `nan` and the like are excluded.
///
/// # Errors
/// Why it is not a number in the style of `dialect`.
pub fn number_shape(text: &[u8], dialect: &Dialect) -> Result<NumberShape, FaultKind> {
    let style = NumberStyle::new(dialect);
    let number = scan(text, style)?;
    let digits = || number.whole_digits(style);
    let whole_digits = digits().count();
    let magnitude = digits().try_fold(0i128, |sum, b| sum.checked_mul(10)?.checked_add(i128::from(b - b'0')));
    Ok(NumberShape {
        negative: number.negative,
        whole_digits,
        zero_led: whole_digits > 1 && digits().next() == Some(b'0'),
        fraction_digits: number.fraction.map(<[u8]>::len),
        exponent: number.exponent.is_some(),
        grouped: whole_digits != number.whole.len(),
        whole: magnitude.map(|m| if number.negative { -m } else { m }),
    })
}

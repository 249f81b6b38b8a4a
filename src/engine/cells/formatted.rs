//! Numbers as people write them: currency and percent signs, parentheses, trailing minus signs, blanks between groups.
//!
//! A value is rewritten to digits with `,` between groups and `.` before the fraction, which the parser of the type reads.
//!
//! Invariant: the value is exactly the one written. Text around the digits must be declared, and each part may occur
//! once; everything else is a fault.

use arrow::array::ArrayRef;
use arrow::buffer::NullBuffer;

use super::fault::FaultKind;
use super::number::NumberStyle;
use super::text::Cell;
use super::typed::Parser;
use crate::domain::pipeline::{Negative, NumberFormat};

/// The separators of rewritten numbers.
const STYLE: NumberStyle = NumberStyle { decimal: b'.', thousands: Some(b',') };
/// All forms of minus signs.
const MINUS: [&[u8]; 2] = [b"-", "\u{2212}".as_bytes()];
/// Blank, no-break space, narrow no-break space, thin space.
const BLANKS: [&[u8]; 4] = [b" ", "\u{a0}".as_bytes(), "\u{202f}".as_bytes(), "\u{2009}".as_bytes()];
const APOSTROPHES: [&[u8]; 2] = [b"'", "\u{2019}".as_bytes()];
const PERCENT_PLACES: usize = 2;

/// Reads numbers in a column's own format by the parser of its type.
pub(super) struct FormattedParser<P> {
    rewriter: Rewriter,
    parser: P,
}

impl<P: Parser> FormattedParser<P> {
    pub fn new(format: &NumberFormat, parser: impl FnOnce(NumberStyle) -> P) -> Self {
        Self { rewriter: Rewriter::new(format), parser: parser(STYLE) }
    }
}

impl<P: Parser> Parser for FormattedParser<P> {
    type Value = P::Value;

    fn parse(&mut self, cell: Cell<'_>) -> Result<P::Value, FaultKind> {
        let text = self.rewriter.rewrite(cell.bytes())?;
        self.parser.parse(Cell::new(text))
    }

    fn array(&self, values: Vec<P::Value>, nulls: Option<NullBuffer>) -> ArrayRef {
        self.parser.array(values, nulls)
    }
}

struct Rewriter {
    decimal: Box<[u8]>,
    /// The texts allowed between groups.
    thousands: Vec<Box<[u8]>>,
    currency: Vec<Box<[u8]>>,
    percent: bool,
    negative: Negative,
    out: Vec<u8>,
}

/// The signs found around the digits.
#[derive(Default)]
struct Affixes {
    plus: bool,
    minus: bool,
    trailing_minus: bool,
    open: bool,
    close: bool,
    currency: bool,
    /// The currency precedes the digits and ends in a letter: `kr.5` is not 0.5.
    word: bool,
    percent: bool,
}

impl Rewriter {
    fn new(format: &NumberFormat) -> Self {
        let texts = |texts: &[&[u8]]| texts.iter().map(|text| Box::from(*text)).collect();
        let mut buffer = [0; 4];
        let thousands = match format.thousands {
            None => Vec::new(),
            Some(' ') => texts(&BLANKS),
            Some('\'') => texts(&APOSTROPHES),
            Some(other) => texts(&[other.encode_utf8(&mut buffer).as_bytes()]),
        };
        Self {
            decimal: format.decimal.to_string().into_bytes().into(),
            thousands,
            currency: format.currency.iter().map(|sign| sign.as_bytes().into()).collect(),
            percent: format.percent,
            negative: format.negative,
            out: Vec::new(),
        }
    }

    /// The number as [`STYLE`] writes it.
    fn rewrite(&mut self, text: &[u8]) -> Result<&[u8], FaultKind> {
        let mut found = Affixes::default();
        let core = self.leading(text, &mut found);
        let core = self.trailing(core, &mut found);
        let minuses = [found.minus, found.trailing_minus, found.open];
        if found.word
            || found.open != found.close
            || minuses.iter().filter(|sign| **sign).count() + usize::from(found.plus) > 1
        {
            return Err(FaultKind::Syntax);
        }
        if self.percent && !found.percent {
            return Err(FaultKind::PercentMissing);
        }
        self.out.clear();
        if minuses.contains(&true) {
            self.out.push(b'-');
        }
        let bare = !found.plus && self.out.is_empty() && !found.currency;
        self.digits(core, bare)?;
        if found.percent {
            self.shift()?;
        }
        Ok(&self.out)
    }

    /// Strips leading signs. Blanks may follow a sign, but not precede the first one.
    fn leading<'t>(&self, mut text: &'t [u8], found: &mut Affixes) -> &'t [u8] {
        loop {
            let rest = if let Some(rest) = after(text, &MINUS).filter(|_| !found.minus) {
                found.minus = true;
                rest
            } else if let Some(rest) = text.strip_prefix(b"+").filter(|_| !found.plus) {
                found.plus = true;
                rest
            } else if let [b'(', rest @ ..] = text
                && self.negative == Negative::Parentheses
                && !found.open
            {
                found.open = true;
                rest
            } else if let Some(rest) = after(text, &self.currency).filter(|_| !found.currency) {
                found.currency = true;
                found.word = text[text.len() - rest.len() - 1].is_ascii_alphabetic() && rest.starts_with(&self.decimal);
                rest
            } else {
                return text;
            };
            text = after(rest, &BLANKS).unwrap_or(rest);
        }
    }

    /// Strips trailing signs.
    fn trailing<'t>(&self, mut text: &'t [u8], found: &mut Affixes) -> &'t [u8] {
        loop {
            let rest = if let [rest @ .., b'%'] = text
                && self.percent
                && !found.percent
            {
                found.percent = true;
                rest
            } else if let [rest @ .., b')'] = text
                && self.negative == Negative::Parentheses
                && !found.close
            {
                found.close = true;
                rest
            } else if let Some(rest) = before(text, &self.currency).filter(|_| !found.currency) {
                found.currency = true;
                rest
            } else if let Some(rest) = before(text, &MINUS)
                && self.negative == Negative::TrailingMinus
                && !found.trailing_minus
            {
                found.trailing_minus = true;
                rest
            } else {
                return text;
            };
            text = before(rest, &BLANKS).unwrap_or(rest);
        }
    }

    /// Appends the digits with the separators of [`STYLE`]. `bare`: there are no signs around them, so they may be the
    /// name of a float.
    fn digits(&mut self, mut core: &[u8], bare: bool) -> Result<(), FaultKind> {
        match core.first() {
            Some(first) if first.is_ascii_digit() || core.starts_with(&self.decimal) => {}
            Some(first) if first.is_ascii_alphabetic() && bare => {}
            Some(_) | None => return Err(FaultKind::Syntax),
        }
        while let [byte, rest @ ..] = core {
            if byte.is_ascii_digit() {
                self.out.push(*byte);
                core = rest;
            } else if let Some(rest) = core.strip_prefix(&*self.decimal) {
                self.out.push(STYLE.decimal);
                core = rest;
            } else if let Some(rest) = after(core, &self.thousands) {
                self.out.extend(STYLE.thousands);
                core = rest;
            } else if byte.is_ascii_alphabetic() || matches!(byte, b'+' | b'-') {
                // An exponent, or the name of a float; the parser of the type decides.
                self.out.push(*byte);
                core = rest;
            } else {
                return Err(FaultKind::Syntax);
            }
        }
        Ok(())
    }

    /// Divides by a hundred: moves the decimal mark, without arithmetic.
    fn shift(&mut self) -> Result<(), FaultKind> {
        let negative = self.out.starts_with(b"-");
        let unsigned = &self.out[usize::from(negative)..];
        if !unsigned.iter().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b',')) {
            return Err(FaultKind::Syntax);
        }
        let number = super::number::scan(unsigned, STYLE)?;
        let mut digits: Vec<u8> = number.whole_digits(STYLE).collect();
        let missing = (PERCENT_PLACES + 1).saturating_sub(digits.len());
        digits.splice(..0, std::iter::repeat_n(b'0', missing));
        let fraction = number.fraction.unwrap_or_default().to_vec();
        self.out.truncate(usize::from(negative));
        let (whole, hundredths) = digits.split_at(digits.len() - PERCENT_PLACES);
        self.out.extend(whole);
        self.out.push(STYLE.decimal);
        self.out.extend(hundredths.iter().chain(&fraction));
        Ok(())
    }
}

/// The rest after the first of `texts` that `text` starts with.
fn after<'t>(text: &'t [u8], texts: &[impl AsRef<[u8]>]) -> Option<&'t [u8]> {
    texts.iter().find_map(|prefix| text.strip_prefix(prefix.as_ref()))
}

/// The rest before the first of `texts` that `text` ends with.
fn before<'t>(text: &'t [u8], texts: &[impl AsRef<[u8]>]) -> Option<&'t [u8]> {
    texts.iter().find_map(|suffix| text.strip_suffix(suffix.as_ref()))
}

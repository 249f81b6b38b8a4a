//! Numbers with something around the digits: currency and percent signs, parentheses, trailing minus signs.
//!
//! Invariant: the proposed format reads every value of the column; amounts in several currencies stay text.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::counterexample::{CellValue, Counterexample};
use super::numbers::{NumberFit, NumberProbes, Numbers, STYLES};
use crate::domain::pipeline::document::{NegativeDocument, NumberFormatDocument};

/// Currency signs, one list per currency.
const CURRENCIES: &[&[&str]] = &[
    &["US$", "USD", "$"],
    &["€", "EUR"],
    &["£", "GBP"],
    &["¥", "JPY", "JP¥"],
    &["CN¥", "CNY", "RMB"],
    &["CHF", "Fr.", "SFr."],
    &["CA$", "C$", "CAD"],
    &["A$", "AU$", "AUD"],
    &["NZ$", "NZD"],
    &["HK$", "HKD"],
    &["S$", "SGD"],
    &["R$", "BRL"],
    &["MX$", "MXN"],
    &["₹", "INR", "Rs.", "Rs"],
    &["₽", "RUB"],
    &["₩", "KRW"],
    &["₺", "TRY"],
    &["₪", "ILS"],
    &["₴", "UAH"],
    &["₫", "VND"],
    &["₱", "PHP"],
    &["฿", "THB"],
    &["₦", "NGN"],
    &["zł", "PLN"],
    &["Kč", "CZK"],
    &["Ft", "HUF"],
    &["SEK"],
    &["NOK"],
    &["DKK"],
    &["kr.", "kr"],
    &["ZAR"],
];
const BLANKS: [&str; 4] = [" ", "\u{a0}", "\u{202f}", "\u{2009}"];
const TEXT_BYTES_MAX: usize = 48;
/// Decimal places of money.
const MONEY_PLACES: usize = 2;
/// Number of decimal places that is more likely a group of digits.
const GROUP_DIGITS: usize = 3;
/// Places by which a percent sign moves the decimal point, and those of a percentage.
const PERCENT_PLACES: usize = 2;
const PERCENTAGE_PLACES_MIN: usize = 2;
const DECIMAL_DIGITS: [usize; 2] = [18, 38];

/// A value stripped of the signs around its digits.
#[derive(Debug, Default)]
struct Stripped {
    /// Digits with ASCII separators, after `-` if negative.
    plain: Vec<u8>,
    currency: Option<&'static str>,
    percent: bool,
    parentheses: bool,
    trailing_minus: bool,
    /// A minus sign, blank or apostrophe beyond ASCII.
    foreign: bool,
}

impl Stripped {
    fn is_amount(&self) -> bool {
        self.currency.is_some() || self.percent || self.parentheses || self.trailing_minus || self.foreign
    }
}

/// The numbers of a column with something around their digits, from the first such value on.
#[derive(Debug, Clone, Default)]
pub(super) struct Amounts {
    numbers: Numbers,
    values: u64,
    currencies: BTreeMap<&'static str, u64>,
    with_currency: u64,
    percents: u64,
    in_parentheses: u64,
    trailing_minuses: u64,
    foreign: u64,
    example: Option<Counterexample>,
    /// The type of the last value, for repetitions.
    last: [bool; 4],
    last_currency: Option<&'static str>,
    failed: bool,
}

/// A format that reads all values of a column.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct AmountType {
    pub ty: String,
    pub format: NumberFormatDocument,
    pub why: String,
}

impl Amounts {
    /// Begins with the column's `numbers` up to `value`, if that has something around its digits.
    pub fn begin(numbers: &Numbers, before: u64, value: &CellValue<'_>, probes: &mut NumberProbes) -> Option<Self> {
        if is_plain(value.text) {
            return None;
        }
        let stripped = strip(value.text).filter(Stripped::is_amount)?;
        let example = Some(value.counterexample(""));
        let mut amounts = Self { numbers: numbers.clone(), values: before, example, ..Self::default() };
        amounts.add(&stripped, value, probes);
        Some(amounts)
    }

    pub fn observe(&mut self, value: &CellValue<'_>, probes: &mut NumberProbes) {
        if self.failed {
            return;
        }
        match strip(value.text) {
            Some(stripped) => self.add(&stripped, value, probes),
            None => self.failed = true,
        }
    }

    /// Repeats the previous value.
    pub fn repeat_last(&mut self) {
        self.numbers.repeat_last();
        self.count();
    }

    fn add(&mut self, stripped: &Stripped, value: &CellValue<'_>, probes: &mut NumberProbes) {
        let line = std::cell::Cell::new(value.line.get());
        let plain = CellValue { text: &stripped.plain, chunk: value.chunk, start: value.start, line };
        self.numbers.observe(&plain, probes);
        self.failed = !(0..STYLES.len()).any(|style| self.numbers.reads(style));
        self.last = [stripped.percent, stripped.parentheses, stripped.trailing_minus, stripped.foreign];
        self.last_currency = stripped.currency;
        self.count();
    }

    fn count(&mut self) {
        self.values += 1;
        let [percent, parentheses, trailing_minus, foreign] = self.last.map(u64::from);
        self.percents += percent;
        self.in_parentheses += parentheses;
        self.trailing_minuses += trailing_minus;
        self.foreign += foreign;
        if let Some(sign) = self.last_currency {
            *self.currencies.entry(sign).or_default() += 1;
            self.with_currency += 1;
        }
    }

    /// Why the amounts are not numbers of one kind; `None` if they aren't amounts at all.
    pub fn mixture(&self) -> Option<String> {
        if self.failed {
            return None;
        }
        if self.has_several_currencies() {
            let signs: Vec<String> =
                self.currencies.iter().map(|(sign, count)| format!("`{sign}` ({count})")).collect();
            return Some(format!("amounts in several currencies, which a number would lose: {}", signs.join(", ")));
        }
        (0 < self.percents && self.percents < self.values)
            .then(|| format!("{} of {} values have a percent sign, the others have none", self.percents, self.values))
    }

    fn has_several_currencies(&self) -> bool {
        !is_one_currency(self.currencies.keys().copied())
    }

    /// The type and format of the column. `style`: the number style of the dialect.
    pub fn ty(&self, style: usize, name: &str) -> Option<AmountType> {
        if self.failed || self.mixture().is_some() {
            return None;
        }
        let money = self.with_currency > 0;
        // Footnotes have parentheses, and grades have trailing signs.
        let accounting = money || self.numbers.has_separators();
        if self.in_parentheses == self.values && !money || self.trailing_minuses > 0 && !accounting {
            return None;
        }
        let own = self.style(style, money)?;
        let grouped = self.grouped(own).filter(|_| money);
        let own = grouped.unwrap_or(own);
        let number = self.numbers.ty(own, name)?;
        let (digits, places) = self.numbers.digits(own);
        let ty = if self.percents > 0 {
            decimal(digits, places.max(PERCENTAGE_PLACES_MIN) + PERCENT_PLACES)?
        } else if money {
            decimal(digits, places.max(MONEY_PLACES))?
        } else {
            number.ty
        };
        let (decimal, thousands) = STYLES[own];
        let mark = |byte: u8| Some(char::from(byte).to_string());
        let inherited = own == style;
        let negative = match (self.in_parentheses, self.trailing_minuses) {
            (0, 0) => NegativeDocument::Minus,
            (_, 0) => NegativeDocument::Parentheses,
            (0, _) => NegativeDocument::TrailingMinus,
            (_, _) => return None,
        };
        let format = NumberFormatDocument {
            decimal: mark(decimal).filter(|_| !inherited),
            thousands: thousands.and_then(mark).filter(|_| !inherited),
            currency: self.currencies.keys().map(|sign| (*sign).to_owned()).collect(),
            percent: self.percents > 0,
            negative,
        };
        let mut why = self.description();
        if let Some(thousands) = thousands.filter(|_| grouped.is_some()) {
            let _ = write!(why, "; larger ones may have `{}` between thousands", char::from(thousands));
        }
        Some(AmountType { ty, format, why })
    }

    /// The dialect's style if it reads the amounts; otherwise the first that does.
    fn style(&self, dialect: usize, money: bool) -> Option<usize> {
        let reads = |style: &usize| self.numbers.reads(*style);
        // `1.234 €` has a group of digits, not three decimal places.
        let grouped = |style: &usize| money && self.numbers.places(*style) == Some((GROUP_DIGITS, GROUP_DIGITS));
        let mut all = std::iter::once(dialect).chain(0..STYLES.len()).filter(reads);
        all.clone().find(|style| !grouped(style)).or_else(|| all.next())
    }

    /// The style with thousands separators that also reads the amounts: later ones may be larger.
    fn grouped(&self, own: usize) -> Option<usize> {
        let (decimal, thousands) = STYLES[own];
        let other = if decimal == b'.' { b',' } else { b'.' };
        let grouped = STYLES.iter().position(|style| *style == (decimal, Some(other)))?;
        (thousands.is_none() && self.numbers.reads(grouped)).then_some(grouped)
    }

    fn description(&self) -> String {
        let mut parts = Vec::new();
        for (sign, count) in &self.currencies {
            parts.push(format!("{count} with `{sign}`"));
        }
        for (count, what) in [
            (self.percents, "with `%`"),
            (self.in_parentheses, "in parentheses"),
            (self.trailing_minuses, "with a minus sign at the end"),
            (self.foreign, "with a minus sign, blank or apostrophe beyond ASCII"),
        ] {
            if count > 0 {
                parts.push(format!("{count} {what}"));
            }
        }
        let example = self.example.as_ref().map_or(String::new(), |first| format!(", such as `{}`", first.value));
        format!("of {} numbers, {}{example}", self.values, parts.join(", "))
    }
}

/// The currency and the percent sign of a column's amounts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AmountKind {
    /// The position in [`CURRENCIES`].
    currency: Option<usize>,
    percent: bool,
}

impl AmountKind {
    /// The kind of a number with something around its digits.
    pub fn of(text: &[u8]) -> Option<Self> {
        let found = if is_plain(text) { None } else { strip(text) }.filter(Stripped::is_amount)?;
        Some(Self { currency: found.currency.and_then(currency_of), percent: found.percent })
    }

    /// Whether `text` is an amount of this kind in a number style. The sign of the currency may be missing.
    pub fn fit(&self, style: usize, text: &[u8], probes: &mut NumberProbes) -> NumberFit {
        let is_so = |found: &Stripped| {
            let currency = found.currency.and_then(currency_of);
            found.percent == self.percent && (currency.is_none() || currency == self.currency)
        };
        match strip(text).filter(is_so) {
            Some(found) => probes.fit(style, &found.plain),
            None => NumberFit::NotNumber,
        }
    }
}

fn currency_of(sign: &str) -> Option<usize> {
    CURRENCIES.iter().position(|signs| signs.contains(&sign))
}

/// Whether all signs, which are those of this module, mean one currency.
pub(super) fn is_one_currency<'a>(signs: impl Iterator<Item = &'a str>) -> bool {
    let mut currencies = signs.map(currency_of);
    let first = currencies.next();
    currencies.all(|currency| Some(currency) == first)
}

/// A cheap test for values without signs around the digits.
fn is_plain(text: &[u8]) -> bool {
    text.last().is_some_and(u8::is_ascii_digit)
        && text.iter().all(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'.' | b',' | b' ' | b'\''))
}

fn decimal(whole: usize, places: usize) -> Option<String> {
    DECIMAL_DIGITS
        .into_iter()
        .find(|digits| whole + places <= *digits)
        .map(|precision| format!("decimal({precision},{places})"))
}

/// Strips signs around digits; `None` if anything else remains.
fn strip(text: &[u8]) -> Option<Stripped> {
    if text.len() > TEXT_BYTES_MAX || !text.iter().any(u8::is_ascii_digit) {
        return None;
    }
    let mut core = std::str::from_utf8(text).ok()?;
    let mut found = Stripped::default();
    let (mut minus, mut plus, mut open) = (false, false, false);
    loop {
        let blanks = core.trim_start_matches(|c: char| BLANKS.iter().any(|blank| blank.starts_with(c)));
        core = if let Some(rest) = blanks.strip_prefix(['-', '\u{2212}']).filter(|_| !minus) {
            found.foreign |= !blanks.starts_with('-');
            minus = true;
            rest
        } else if let Some(rest) = blanks.strip_prefix('+').filter(|_| !plus) {
            plus = true;
            rest
        } else if let Some(rest) = blanks.strip_prefix('(').filter(|_| !open) {
            open = true;
            rest
        } else if let Some((sign, rest)) =
            currency(|sign| blanks.strip_prefix(sign)).filter(|_| found.currency.is_none())
        {
            found.currency = Some(sign);
            rest
        } else {
            core = blanks;
            break;
        };
    }
    loop {
        let blanks = core.trim_end_matches(|c: char| BLANKS.iter().any(|blank| blank.starts_with(c)));
        core = if let Some(rest) = blanks.strip_suffix('%').filter(|_| !found.percent) {
            found.percent = true;
            rest
        } else if let Some(rest) = blanks.strip_suffix(')').filter(|_| open && !found.parentheses) {
            found.parentheses = true;
            rest
        } else if let Some((sign, rest)) =
            currency(|sign| blanks.strip_suffix(sign)).filter(|_| found.currency.is_none())
        {
            found.currency = Some(sign);
            rest
        } else if let Some(rest) = blanks.strip_suffix(['-', '\u{2212}']).filter(|_| !found.trailing_minus) {
            found.foreign |= !blanks.ends_with('-');
            found.trailing_minus = true;
            rest
        } else {
            core = blanks;
            break;
        };
    }
    let signs = [minus, plus, open, found.trailing_minus].iter().filter(|sign| **sign).count();
    if open != found.parentheses || signs > 1 || !core.starts_with(|c: char| c.is_ascii_digit() || ".,".contains(c)) {
        return None;
    }
    if minus || found.parentheses || found.trailing_minus {
        found.plain.push(b'-');
    }
    for c in core.chars() {
        let plain = match c {
            '\u{a0}' | '\u{202f}' | '\u{2009}' => ' ',
            '\u{2019}' => '\'',
            c if c.is_ascii_digit() || ".,' ".contains(c) => c,
            _ => return None,
        };
        found.foreign |= plain != c;
        found.plain.push(u8::try_from(plain).ok()?);
    }
    Some(found)
}

/// The longest sign that `rest_of` strips, with the rest.
fn currency<'t>(rest_of: impl Fn(&'static str) -> Option<&'t str>) -> Option<(&'static str, &'t str)> {
    let all = CURRENCIES.iter().flat_map(|signs| signs.iter());
    all.filter_map(|sign| Some((*sign, rest_of(sign)?))).max_by_key(|(sign, _)| sign.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_around_digits_are_stripped() {
        for (text, plain) in [
            ("$1,234.50", "1,234.50"),
            ("($95.00)", "-95.00"),
            ("$(95.00)", "-95.00"),
            ("-$95.00", "-95.00"),
            ("12.5%", "12.5"),
            ("12,5 %", "12,5"),
            ("1.234,50 €", "1.234,50"),
            ("1\u{202f}234,50\u{a0}€", "1 234,50"),
            ("CHF 1’234.50", "1'234.50"),
            ("95.00-", "-95.00"),
            ("\u{2212}5,5", "-5,5"),
        ] {
            let found = strip(text.as_bytes()).map(|found| String::from_utf8(found.plain).unwrap());
            assert_eq!(found.as_deref(), Some(plain), "{text}");
        }
        for text in ["abc", "$", "(5", "5)", "--5", "(-5)", "$5€", "5 kg", "2024-01-05", "1 2-3x", "%"] {
            assert!(strip(text.as_bytes()).is_none(), "{text}");
        }
    }
}

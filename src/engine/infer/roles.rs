//! Numbers that are not measures: identifiers, codes, years.

use super::column_stats::ColumnSurvey;
use super::numbers::NumberType;
use super::proposal::ColumnRole;
use super::typed::Typed;

/// Words in names of codes, whose leading zeros matter even if the sample has none.
const CODE_WORDS: [&str; 30] = [
    "zip",
    "zipcode",
    "postcode",
    "postal",
    "postalcode",
    "plz",
    "postleitzahl",
    "cp",
    "cap",
    "blz",
    "bankleitzahl",
    "bic",
    "iban",
    "konto",
    "kontonummer",
    "account",
    "phone",
    "telephone",
    "tel",
    "telefon",
    "fax",
    "mobile",
    "handy",
    "ean",
    "gtin",
    "isbn",
    "upc",
    "sku",
    "fips",
    "ags",
];
const IDENTIFIER_WORDS: [&str; 18] = [
    "id",
    "ids",
    "uid",
    "key",
    "nr",
    "no",
    "num",
    "number",
    "nummer",
    "numero",
    "code",
    "ref",
    "reference",
    "ticket",
    "invoice",
    "rechnung",
    "pk",
    "index",
];
const YEAR_WORDS: [&str; 8] = ["year", "yr", "jahr", "annee", "année", "año", "anno", "baujahr"];
const YEARS: std::ops::RangeInclusive<i128> = 1000..=2999;

fn has(name: &str, words: &[&str]) -> bool {
    name.split('_').any(|word| words.contains(&word))
}

/// Text, if the column's name is that of a code and its values have no sign or decimal places.
pub(super) fn code(number: &NumberType, column: &ColumnSurvey, name: &str) -> Option<Typed> {
    if number.ty != "int64" || !has(name, &CODE_WORDS) || column.numbers.bounds(0).is_none_or(|(min, _)| min < 0) {
        return None;
    }
    let mut typed =
        Typed::new("string", format!("{}, but its name suggests codes, whose leading zeros matter", number.why));
    typed.role = Some(ColumnRole::Code);
    typed.alternatives.push(super::proposal::Alternative {
        ty: number.ty.clone(),
        formats: Vec::new(),
        why: "reads every value as a whole number".into(),
    });
    Some(typed)
}

/// The role of a column's whole numbers.
pub(super) fn role(ty: &str, column: &ColumnSurvey, name: &str) -> Option<ColumnRole> {
    let (min, max) = column.numbers.bounds(0)?;
    if !matches!(ty, "int64" | "uint64" | "decimal(38,0)") {
        None
    } else if has(name, &YEAR_WORDS) && YEARS.contains(&min) && YEARS.contains(&max) {
        Some(ColumnRole::Year)
    } else if has(name, &CODE_WORDS) {
        Some(ColumnRole::Code)
    } else if has(name, &IDENTIFIER_WORDS) && min >= 0 {
        Some(ColumnRole::Identifier)
    } else {
        None
    }
}

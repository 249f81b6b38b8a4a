//! Settles one dialect and the type of each column from their statistics.
//!
//! Invariant: each column's type reads all its cells under the settled dialect.

use std::collections::BTreeMap;

use serde_json::json;

use super::amounts::AmountType;
use super::column_stats::{ColumnSurvey, NearlyTyped};
use super::counterexample::Counterexample;
use super::numbers::STYLES;
use super::proposal::{
    Alternative, Candidate, ColumnEvidence, ColumnProposal, Finding, Item, Misfit, Misfits, RuledOut, TokenCount,
};
use super::sniff::plan::DialectPlan;
use super::survey::Survey;
use super::times::{DateOrder, SeveralFormats, TimeKind, TimeReading};
use super::typed::Typed;
use super::words::{TOKENS, booleans};
use super::{naming, roles, serials};
use crate::domain::limits::{COLUMNS_MAX, RECORD_BYTES_DEFAULT, RECORD_BYTES_MAX};
use crate::domain::pipeline::document::FromDocument;
use crate::domain::text::counted;

/// Rows of the whole file from which a column without nulls is proposed as not nullable.
const NOT_NULL_ROWS_MIN: u64 = 100;
/// Distinct values required to treat an eight-digit column as dates, unless its name suggests dates.
const COMPACT_DATES_MIN: u64 = 10;
const DATE_WORDS: [&str; 8] = ["date", "day", "dt", "datum", "ymd", "on", "dob", "tag"];

/// The settled findings and columns.
#[derive(Debug, Default)]
pub(super) struct Settled {
    pub findings: Vec<Finding>,
    pub columns: Vec<ColumnProposal>,
    pub warnings: Vec<String>,
    /// Positions of text columns without any other type.
    pub texts: Vec<usize>,
    /// Positions of columns that are not text.
    pub typed: Vec<usize>,
}

/// Settles everything, and updates the dialect in `plan`. `demoted`: positions of columns that stay text, with the
/// reason.
pub(super) fn settle(
    plan: &mut DialectPlan,
    survey: &Survey,
    whole: bool,
    demoted: &BTreeMap<usize, String>,
) -> Settled {
    let mut settled = Settled::default();
    let header = headers(plan, survey);
    let names = naming::columns(&header);
    let style = number_style(plan, survey, &mut settled);
    let mut typed: Vec<Typed> = survey
        .columns
        .iter()
        .enumerate()
        .map(|(at, column)| match demoted.get(&at) {
            Some(why) => Typed::new("string", why.clone()),
            None => type_of(column, style, &names[at]),
        })
        .collect();
    decide_orders(&mut typed);
    truth_values(plan, survey, &typed, &mut settled);
    null_values(plan, survey, &typed, &mut settled);
    trimming(plan, survey, &typed, &mut settled);
    record_bytes(plan, survey, &mut settled);
    settled.texts = (0..typed.len()).filter(|at| is_mixed(&typed[*at], &survey.columns[*at])).collect();
    settled.typed = (0..typed.len()).filter(|at| !typed[*at].is_text()).collect();
    for (at, (column, typed)) in survey.columns.iter().zip(typed).enumerate() {
        // A column without name and values comes from a trailing delimiter on each line.
        if header[at].is_empty() && column.is_empty() && survey.rows > 0 && survey.columns.len() > 1 {
            let why = format!("column {} has neither a name nor a value", at + 1);
            settled.find(Item::TrailingDelimiter, json!(true), why);
            continue;
        }
        settled.columns.push(proposal(plan, survey, at, typed, &header[at], &names[at], whole));
    }
    if !plan.dialect.header && settled.columns.len() < survey.width {
        // Without a header, the columns don't determine the number of cells per record.
        plan.dialect.width = Some(survey.width);
    }
    if survey.width > COLUMNS_MAX {
        let message = format!("the file has {} columns; the first {COLUMNS_MAX} are proposed", survey.width);
        settled.warnings.push(message);
    }
    if survey.rows == 0 {
        settled.warnings.push("the file has no rows, so the types are unknown and all columns are text".into());
    }
    settled
}

fn is_mixed(typed: &Typed, column: &ColumnSurvey) -> bool {
    typed.is_text() && typed.alternatives.is_empty() && column.values > 0
}

impl Settled {
    fn find(&mut self, item: Item, value: serde_json::Value, why: impl Into<String>) {
        self.findings.push(Finding { item, value, why: why.into(), candidates: Vec::new() });
    }
}

/// The header of each column, as written.
fn headers(plan: &DialectPlan, survey: &Survey) -> Vec<String> {
    let mut names = match (&plan.positional, &survey.header) {
        (Some(names), _) | (None, Some(names)) => names.clone(),
        (None, None) => Vec::new(),
    };
    names.resize(survey.columns.len(), String::new());
    names
}

/// The number style that reads most columns; the default in doubt.
fn number_style(plan: &mut DialectPlan, survey: &Survey, settled: &mut Settled) -> usize {
    let columns = || survey.columns.iter().filter(|column| column.values > 0);
    let reads = |style: usize| columns().filter(|column| column.numbers.reads(style)).count();
    let marked = |style: usize| columns().map(|column| column.numbers.marked(style)).sum::<u64>();
    let mut best = 0;
    for style in 1..STYLES.len() {
        if reads(style) > reads(best) {
            best = style;
        }
    }
    let (decimal, thousands) = STYLES[best];
    let mark = |byte: u8| char::from(byte).to_string();
    if best > 0 {
        let gained = reads(best) - reads(0);
        let why = format!(
            "needed to read {} as numbers ({} it)",
            counted(gained as u64, "column", "columns"),
            counted(marked(best), "value uses", "values use")
        );
        if decimal != b'.' {
            settled.find(Item::Decimal, json!(mark(decimal)), why.clone());
        }
        if let Some(thousands) = thousands {
            settled.find(Item::Thousands, json!(mark(thousands)), why);
        }
        for other in (1..STYLES.len()).filter(|other| *other != best && reads(*other) == reads(best)) {
            let (other_decimal, other_thousands) = STYLES[other];
            // Only separators with another meaning are worth a warning.
            if other_decimal != decimal && Some(other_decimal) == thousands || other_thousands == Some(decimal) {
                settled.warnings.push(format!(
                    "numbers with `{}` are ambiguous; `{}` is read as the decimal separator",
                    thousands.map_or_else(|| mark(decimal), mark),
                    mark(decimal)
                ));
                break;
            }
        }
    }
    (plan.dialect.decimal, plan.dialect.thousands) = (decimal, thousands);
    best
}

fn type_of(column: &ColumnSurvey, style: usize, name: &str) -> Typed {
    if column.values == 0 {
        let why = if column.token_cells() == 0 {
            "the file has no rows"
        } else {
            "the column has no values: every cell may be null"
        };
        return Typed::new("string", why);
    }
    if column.not_boolean.is_none()
        && let Some((yes, no)) = booleans(&column.words)
    {
        return Typed::new("boolean", format!("every value is one of {}", ticked(yes.iter().chain(&no))));
    }
    let readings = column.times.readings();
    let compact = readings.iter().any(|reading| reading.pattern.as_deref() == Some("%Y%m%d"));
    let named_date = name.split('_').any(|word| DATE_WORDS.contains(&word));
    if !readings.is_empty() && (!compact || named_date || column.distinct.count() >= COMPACT_DATES_MIN) {
        return time_type(column, readings);
    }
    if let Some(typed) = amount_type(column, style, name).or_else(|| serials::serial_type(column, style, name)) {
        return typed;
    }
    if let Some(number) = column.numbers.ty(style, name) {
        if let Some(typed) = roles::code(&number, column, name) {
            return typed;
        }
        let mut typed = Typed::new(&number.ty, number.why);
        typed.range = number.range;
        typed.warnings.extend(number.warning);
        typed.role = roles::role(&typed.ty, column, name);
        typed.alternatives = serials::alternatives(&typed.ty, column, style);
        return typed;
    }
    if column.not_uuid.is_none() {
        return Typed::new("uuid", "every value is a UUID");
    }
    if column.not_json.is_none() {
        return Typed::new("json", "every value is a JSON object or array");
    }
    if let Some(several) = &column.several_formats {
        return several_formats(several);
    }
    let Some(NearlyTyped { plural, fitting, values, counterexample }) = &column.nearly_typed else {
        return Typed::new("string", "no other type matches its values");
    };
    let Counterexample { line, value, .. } = counterexample;
    let why = format!("mixed values: {fitting} of {values} are {plural}, but line {line} has `{value}`");
    Typed::new("string", why)
}

/// Numbers with signs around them; text with a warning if they are of several kinds.
fn amount_type(column: &ColumnSurvey, style: usize, name: &str) -> Option<Typed> {
    let amounts = column.amounts.as_ref()?;
    if let Some(mixture) = amounts.mixture() {
        let mut typed = Typed::new("string", mixture.clone());
        typed.warnings.push(format!("{mixture}; the column stays text"));
        return Some(typed);
    }
    let AmountType { ty, format, why } = amounts.ty(style, name)?;
    let mut typed = Typed::new(&ty, why);
    typed.number_format = Some(format);
    Some(typed)
}

/// A column of dates in several formats.
fn several_formats(several: &SeveralFormats) -> Typed {
    let shares: Vec<String> = several.formats.iter().map(|(format, count)| format!("`{format}` ({count})")).collect();
    let shares = shares.join(", ");
    if let Some((one, other, count)) = &several.ambiguous {
        let mut typed = Typed::new(
            "string",
            format!("dates in several formats, and {count} read as different days by `{one}` and `{other}`"),
        );
        typed.warnings.push(format!(
            "its values are dates in several formats: {shares}; {count} read as different days by `{one}` and `{other}`, so \
             the column stays text"
        ));
        return typed;
    }
    let mut why = format!("its values are dates in several formats: {shares}");
    if !several.days.is_empty() {
        why.push_str("; those without a time of day are read as midnight");
    }
    let mut typed = Typed::new(several.kind.name(), why);
    typed.formats = several.formats.iter().map(|(format, _)| format.clone()).collect();
    if !several.days.is_empty() {
        let is_day = |format: &String| several.days.contains(format);
        let timed: u64 = several.formats.iter().filter(|(format, _)| !is_day(format)).map(|(_, count)| count).sum();
        let why = format!("rejects {}", counted(timed, "value with a time of day", "values with a time of day"));
        typed.alternatives.push(Alternative { ty: "date".into(), formats: several.days.clone(), why });
    }
    typed
}

/// Reports values that are not of the type, and how to keep them.
fn report_misfits(typed: &mut Typed, column: &ColumnSurvey) -> Option<Misfits> {
    let misfits = &column.misfits;
    let count = misfits.count();
    if count == 0 || typed.is_text() {
        return None;
    }
    let of = column.values + count;
    typed.why = format!("except for {count} of {of} values, {}", typed.why);
    let why = "keeps every value as written".into();
    typed.alternatives.push(Alternative { ty: "string".into(), formats: Vec::new(), why });
    let misfit =
        |counterexample: &Counterexample| Misfit { line: counterexample.line, value: counterexample.value.clone() };
    Some(Misfits { count, first: misfits.first.iter().map(misfit).collect() })
}

fn ticked<'a>(words: impl Iterator<Item = &'a String>) -> String {
    let words: Vec<String> = words.map(|word| format!("`{word}`")).collect();
    words.join(", ")
}

fn time_type(column: &ColumnSurvey, readings: Vec<TimeReading>) -> Typed {
    if readings.len() > 1 {
        let mut typed = Typed::new("string", "");
        let by_month = column.times.order_of_one_month();
        let is_order = |reading: &TimeReading| matches!(reading.order, DateOrder::DayFirst | DateOrder::MonthFirst);
        if let Some(reading) = readings.iter().find(|one| Some(one.order) == by_month)
            && readings.iter().all(is_order)
        {
            take_reading(&mut typed, reading);
            typed
                .why
                .push_str("; so all are of one month, while the other order of day and month makes one day of several");
            typed.alternatives = alternatives(&readings, reading);
            return typed;
        }
        typed.open = Some(readings);
        return typed;
    }
    let mut typed = Typed::new("string", "");
    if let Some(reading) = readings.first() {
        take_reading(&mut typed, reading);
        let ruled: Vec<String> = column
            .times
            .ruled_out()
            .iter()
            .filter(|(pattern, _)| swaps_day_and_month(pattern, reading))
            .map(|(pattern, counterexample)| {
                format!("; not `{pattern}`: line {} has `{}`", counterexample.line, counterexample.value)
            })
            .collect();
        typed.why.push_str(&ruled.concat());
        let (naive, seen) = column.times.without_zone();
        if reading.kind == TimeKind::TimestampTz && naive > 0 && naive < seen {
            typed.warnings.push(format!(
                "{naive} of {seen} values have no UTC offset; they are read as UTC unless you set `timezone`"
            ));
        }
    }
    typed
}

/// Whether an excluded pattern differs from the reading in the order of day and month.
fn swaps_day_and_month(pattern: &str, reading: &TimeReading) -> bool {
    let day = pattern.find("%d");
    let month = pattern.find("%m");
    let order = match (day, month) {
        (Some(day), Some(month)) if pattern.starts_with("%d") && day < month => DateOrder::DayFirst,
        (Some(_), Some(_)) if pattern.starts_with("%m") => DateOrder::MonthFirst,
        _ => return false,
    };
    matches!(reading.order, DateOrder::DayFirst | DateOrder::MonthFirst) && order != reading.order
}

fn take_reading(typed: &mut Typed, reading: &TimeReading) {
    typed.ty = reading.kind.name().to_owned();
    match &reading.pattern {
        None => typed.why = format!("every value is a {} in ISO 8601", reading.kind.name()),
        Some(pattern) => {
            typed.why = format!("every value is a {} in the format `{pattern}`", reading.kind.name());
            typed.formats = vec![pattern.clone()];
        }
    }
}

/// Dates with two possible orders take the order of the file's other dates, if these agree; otherwise they stay text.
fn decide_orders(typed: &mut [Typed]) {
    let firsts = typed.iter().filter_map(|typed| typed.formats.first());
    let mut known: Vec<DateOrder> = firsts.filter_map(|format| DateOrder::of_pattern(format)).collect();
    known.sort_unstable();
    known.dedup();
    for column in typed.iter_mut() {
        let Some(readings) = column.open.take() else { continue };
        let sibling = readings.iter().find(|reading| known == [reading.order]);
        let patterns: Vec<String> = readings.iter().filter_map(|reading| reading.pattern.clone()).collect();
        let both = ticked(patterns.iter());
        if let Some(reading) = sibling {
            take_reading(column, reading);
            column
                .why
                .push_str("; its own values leave the order of day and month open, but another column decides it");
        } else {
            column.why = format!("its values are dates in either of {both}, and no value decides which");
            column.warnings.push(format!(
                "dates in either of {both}: no value in the file decides which, so the column stays text"
            ));
        }
        column.alternatives = match sibling {
            Some(reading) => alternatives(&readings, reading),
            None => readings.iter().map(alternative).collect(),
        };
    }
}

fn alternative(reading: &TimeReading) -> Alternative {
    Alternative {
        ty: reading.kind.name().to_owned(),
        formats: reading.pattern.iter().cloned().collect(),
        why: "reads every value".into(),
    }
}

/// The readings other than the one that was taken.
fn alternatives(readings: &[TimeReading], taken: &TimeReading) -> Vec<Alternative> {
    readings.iter().filter(|reading| reading.pattern != taken.pattern).map(alternative).collect()
}

fn truth_values(plan: &mut DialectPlan, survey: &Survey, typed: &[Typed], settled: &mut Settled) {
    let (mut yes, mut no): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    for (column, _) in survey.columns.iter().zip(typed).filter(|(_, typed)| typed.ty == "boolean") {
        let Some((more_yes, more_no)) = booleans(&column.words) else { continue };
        for (list, more) in [(&mut yes, more_yes), (&mut no, more_no)] {
            more.into_iter().for_each(|word| {
                if !list.contains(&word) {
                    list.push(word)
                }
            });
        }
    }
    if yes.is_empty() {
        return;
    }
    let why = "the words for true and false in the boolean columns";
    settled.find(Item::Booleans, json!({ "true_values": yes, "false_values": no }), why);
    (plan.dialect.true_values, plan.dialect.false_values) = (yes, no);
}

/// Null values: those that a typed column needs, and those without other meaning.
fn null_values(plan: &mut DialectPlan, survey: &Survey, typed: &[Typed], settled: &mut Settled) {
    let mut nulls = vec![String::new()];
    let mut candidates = Vec::new();
    let mut quoted = false;
    for (at, token) in TOKENS.iter().enumerate() {
        let columns = || survey.columns.iter().zip(typed).filter(|(column, _)| column.tokens[at].all() > 0);
        let count: u64 = columns().map(|(column, _)| column.tokens[at].all()).sum();
        let needed = columns().filter(|(_, typed)| !typed.is_text()).count();
        quoted |= columns().any(|(column, typed)| column.tokens[at].quoted > 0 && !typed.is_text());
        if count == 0 {
            continue;
        }
        let is_null = needed > 0 || token.unmistakable;
        let why = match (needed, is_null) {
            (0, true) => "has no other meaning".to_owned(),
            (0, false) => "not proposed: occurs only in text columns, where it may be a value".to_owned(),
            (needed, _) => format!("occurs in {}", counted(needed as u64, "typed column", "typed columns")),
        };
        candidates.push(Candidate {
            value: json!(token.text),
            count,
            of: survey.rows * survey.columns.len() as u64,
            why,
        });
        if !is_null {
            continue;
        }
        if !token.text.is_empty() {
            nulls.push(token.text.to_owned());
        }
    }
    let why =
        if candidates.is_empty() { "no null values found; this is the default" } else { "null values found in cells" };
    settled.findings.push(Finding { item: Item::NullValues, value: json!(nulls), why: why.into(), candidates });
    if quoted {
        settled.find(Item::QuotedNulls, json!(true), "typed columns have null values in quotes");
    }
    plan.dialect.null_values = nulls;
    plan.dialect.quoted_nulls = quoted;
}

fn trimming(plan: &mut DialectPlan, survey: &Survey, typed: &[Typed], settled: &mut Settled) {
    let padded = |column: &ColumnSurvey| column.padded + column.tokens.iter().map(|seen| seen.padded).sum::<u64>();
    let needing = || survey.columns.iter().zip(typed).filter(|(column, typed)| !typed.is_text() && padded(column) > 0);
    plan.dialect.trim = needing().next().is_some();
    if plan.dialect.trim {
        let cells: u64 = needing().map(|(column, _)| padded(column)).sum();
        let example = needing().find_map(|(column, _)| column.first_padded.as_ref());
        let example = example.map_or(String::new(), |s| format!("; line {} has `{}`", s.line, s.value));
        let why = format!(
            "{} leading or trailing spaces in {}{example}",
            counted(cells, "cell has", "cells have"),
            counted(needing().count() as u64, "typed column", "typed columns")
        );
        settled.find(Item::Trim, json!(true), why);
    }
}

fn record_bytes(plan: &mut DialectPlan, survey: &Survey, settled: &mut Settled) {
    if plan.dialect.record_bytes_max == RECORD_BYTES_DEFAULT {
        return;
    }
    let bytes = (survey.longest * 2).next_power_of_two().clamp(RECORD_BYTES_DEFAULT, RECORD_BYTES_MAX);
    plan.dialect.record_bytes_max = bytes;
    if bytes > RECORD_BYTES_DEFAULT {
        settled.find(Item::RecordBytesMax, json!(bytes), format!("the longest record has {} bytes", survey.longest));
    }
}

fn proposal(
    plan: &DialectPlan,
    survey: &Survey,
    at: usize,
    mut typed: Typed,
    header: &str,
    name: &str,
    whole: bool,
) -> ColumnProposal {
    let column = &survey.columns[at];
    let is_null = |token: &str| plan.dialect.null_values.iter().any(|null| null == token);
    let found = || TOKENS.iter().zip(&column.tokens).filter(|(_, seen)| seen.all() > 0);
    let nulls: u64 = found().filter(|(token, _)| is_null(token.text)).map(|(_, seen)| seen.all()).sum();
    let tokens = found()
        .map(|(token, seen)| TokenCount { token: token.text.to_owned(), count: seen.all(), null: is_null(token.text) })
        .collect();
    let misfits = report_misfits(&mut typed, column);
    // Misfits may become null.
    let nullable =
        misfits.is_some() || !(whole && nulls == 0 && survey.rows >= NOT_NULL_ROWS_MIN && survey.refused.is_empty());
    let ruled_out = ruled_out(column, &typed, plan);
    let mut warnings = typed.warnings;
    if column.values == 0 && survey.rows > 0 {
        warnings.push("no values were read, so the type is unknown".into());
    }
    let evidence = ColumnEvidence {
        why: typed.why.clone(),
        values: column.values + column.misfits.count() + column.token_cells() - nulls,
        nulls,
        tokens,
        distinct: column.distinct.count(),
        distinct_exact: !column.distinct.more,
        samples: column.samples.clone(),
        range: typed.range,
        ruled_out,
        alternatives: typed.alternatives,
        misfits,
        warnings,
    };
    let from = match plan.positional {
        Some(_) => FromDocument::Position(at as u64),
        None => FromDocument::Name(header.to_owned()),
    };
    ColumnProposal {
        name: name.to_owned(),
        from,
        ty: typed.ty,
        formats: typed.formats,
        number_format: typed.number_format,
        timezone: None,
        nullable,
        role: typed.role,
        evidence,
    }
}

/// The first value that rules out each type other than the column's.
fn ruled_out(column: &ColumnSurvey, typed: &Typed, plan: &DialectPlan) -> Vec<RuledOut> {
    let style = STYLES.iter().position(|style| *style == (plan.dialect.decimal, plan.dialect.thousands)).unwrap_or(0);
    let times = column.times.counterexample();
    let found: [(&str, Option<&Counterexample>); 6] = [
        ("int64", column.numbers.not_whole(style)),
        ("float64", column.numbers.counterexample(style)),
        ("date, time or timestamp", times),
        ("boolean", column.not_boolean.as_ref()),
        ("uuid", column.not_uuid.as_ref()),
        ("json", column.not_json.as_ref()),
    ];
    let made = |(ty, counterexample): (&str, Option<&Counterexample>)| {
        let counterexample = counterexample.filter(|_| ty != typed.ty)?;
        let more = if counterexample.why.is_empty() { String::new() } else { format!(": {}", counterexample.why) };
        let why = format!("not {ty}: line {} has `{}`{more}", counterexample.line, counterexample.value);
        Some(RuledOut { ty: ty.to_owned(), line: counterexample.line, value: counterexample.value.clone(), why })
    };
    found.into_iter().filter_map(made).collect()
}

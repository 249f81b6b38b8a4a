//! Joins the proposals of several files of one format.
//!
//! Each file has a proposal of its own; where they differ, the converter reads all files by each of them, and the one that
//! rejects least is taken.
//!
//! Invariant: `sample` and the misfits count what the converter did with the joined mapping in all files.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::amounts::is_one_currency;
use super::confirm::{self, FileCheck};
use super::misfits::{self, SHOWN_MAX};
use super::proposal::{Alternative, ColumnProposal, Misfit, Misfits, Proposal, SampleInfo, TEXT};
use super::propose::InferError;
use crate::domain::pipeline::document::{NegativeDocument, NumberFormatDocument};
use crate::domain::pipeline::named_format::ISO_FORMAT;
use crate::domain::pipeline::types::DataType;
use crate::engine::read::head::Head;

/// The format of dates without one.
const ISO_DATE: &str = "%Y-%m-%d";
/// Rounds in which columns become nullable.
pub(super) const ROUNDS_MAX: usize = 4;

/// The counts of the joined proposal for one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileSample {
    pub key: String,
    #[serde(flatten)]
    pub sample: SampleInfo,
}

/// A file with the proposal that was made from it alone.
pub(super) struct Sampled {
    pub head: Head,
    pub proposal: Proposal,
}

/// The proposal for files of one format, with the counts of each file in their order.
///
/// # Errors
/// There is no file, or no run could start with the proposal.
pub(super) fn join(sampled: &[&Sampled], deadline: Instant) -> Result<(Proposal, Vec<FileSample>), InferError> {
    let Some((first, others)) = sampled.split_first() else {
        return Err(InferError::Empty { key: String::new() });
    };
    let mut proposal = first.proposal.clone();
    let own = |file: &Sampled| FileSample { key: file.proposal.key.clone(), sample: file.proposal.sample.clone() };
    if others.is_empty() {
        return Ok((proposal, vec![own(first)]));
    }
    let mut csv = proposal.csv.as_object().cloned().unwrap_or_default();
    let mut by_name: BTreeMap<String, Vec<ColumnProposal>> = BTreeMap::new();
    for file in sampled {
        for column in &file.proposal.columns {
            by_name.entry(column.name.clone()).or_default().push(column.clone());
        }
    }
    let of_file = |file: &&Sampled| -> Vec<String> {
        let Proposal { key, warnings, .. } = &file.proposal;
        warnings.iter().map(|warning| format!("`{}`: {warning}", file_name(key))).collect()
    };
    proposal.warnings = sampled.iter().flat_map(of_file).collect();
    for file in others {
        let path = file_name(&file.proposal.key);
        join_dialects(&mut csv, &file.proposal.csv);
        let known: BTreeSet<String> = proposal.columns.iter().map(|column| column.name.clone()).collect();
        for column in file.proposal.columns.iter().filter(|column| !known.contains(&column.name)) {
            proposal.warnings.push(format!("column `{}` is not in all files; `{path}` has it", column.name));
            proposal.columns.push(column.clone());
        }
        let more = file.proposal.findings.iter().filter(|finding| csv_item_is_new(&proposal, finding));
        let more: Vec<_> = more.cloned().collect();
        proposal.findings.extend(more);
    }
    set_csv(&mut proposal, csv);
    for finding in &mut proposal.findings {
        let item = serde_json::to_value(finding.item).unwrap_or_default();
        if let Some(joined) = item.as_str().and_then(|item| proposal.csv.get(item)) {
            finding.value = joined.clone();
        }
    }
    for column in by_name.values_mut().flatten() {
        recount_nulls(column, proposal.csv.get("null_values"));
    }
    for column in &mut proposal.columns {
        let all = &by_name[&column.name];
        column.nullable = all.iter().any(|one| one.nullable) || all.len() < sampled.len();
        proposal.partial |= all.len() < sampled.len();
        join_evidence(column, all);
        if all.len() < sampled.len() {
            let lacks = |file: &&&Sampled| file.proposal.columns.iter().all(|other| other.name != column.name);
            column.evidence.nulls +=
                sampled.iter().filter(lacks).map(|file| file.proposal.sample.rows_read).sum::<u64>();
        }
    }
    for at in 0..proposal.columns.len() {
        let all = &by_name[&proposal.columns[at].name];
        if is_disputed(all) {
            choose(&mut proposal, at, all, sampled, deadline);
        }
    }
    for _ in 1..ROUNDS_MAX {
        let checks = check_all(&proposal, sampled, deadline)?;
        let nulls: BTreeSet<&String> = checks.iter().flat_map(|check| &check.null_columns).collect();
        let mut changed = false;
        for column in &mut proposal.columns {
            if !column.nullable && nulls.contains(&column.name) {
                column.nullable = true;
                changed = true;
            }
        }
        if !changed {
            return Ok(with_file_counts(proposal, sampled, &checks));
        }
    }
    let checks = check_all(&proposal, sampled, deadline)?;
    Ok(with_file_counts(proposal, sampled, &checks))
}

/// Whether another file's finding is about an item that the files before it don't have.
fn csv_item_is_new(proposal: &Proposal, finding: &super::proposal::Finding) -> bool {
    proposal.findings.iter().all(|known| known.item != finding.item)
}

pub(super) fn file_name(key: &str) -> &str {
    key.rsplit('/').next().unwrap_or(key)
}

fn check_all(proposal: &Proposal, sampled: &[&Sampled], deadline: Instant) -> Result<Vec<FileCheck>, InferError> {
    sampled.iter().map(|file| check_file(proposal, file, deadline)).collect()
}

/// Reads a file by the converter with a proposal.
///
/// # Errors
/// No run could start.
pub(super) fn check_file(proposal: &Proposal, file: &Sampled, deadline: Instant) -> Result<FileCheck, InferError> {
    confirm::check(proposal, &file.head, &|| Instant::now() < deadline)
        .map_err(|reason| InferError::NoMapping { key: file.proposal.key.clone(), reason })
}

fn has_same_reading(one: &ColumnProposal, other: &ColumnProposal) -> bool {
    (&one.ty, &one.formats, &one.number_format, &one.timezone)
        == (&other.ty, &other.formats, &other.number_format, &other.timezone)
}

/// Whether files read a column differently. A column without values takes any type.
fn is_disputed(all: &[ColumnProposal]) -> bool {
    let mut with_values = all.iter().filter(|column| column.evidence.values > 0);
    let Some(first) = with_values.next() else { return false };
    with_values.any(|column| !has_same_reading(first, column))
}

/// Candidate types of a column: that of each file, and common types of several files. Text is a candidate only if a
/// file's values require it: an undecided column, such as dates of either order, takes the type of another file.
fn candidates(all: &[ColumnProposal]) -> Vec<ColumnProposal> {
    let mut found: Vec<ColumnProposal> = Vec::new();
    let add = |column: ColumnProposal, found: &mut Vec<ColumnProposal>| {
        if !found.iter().any(|one| has_same_reading(one, &column)) {
            found.push(column);
        }
    };
    let with_values = || all.iter().filter(|column| column.evidence.values > 0);
    for column in with_values().filter(|column| column.ty != TEXT) {
        add(column.clone(), &mut found);
    }
    for (at, one) in found.clone().iter().enumerate() {
        for other in &found.clone()[at + 1..] {
            if let Some(ty) = wider(&one.ty, &other.ty) {
                for with in [one, other] {
                    add(ColumnProposal { ty: ty.clone(), ..with.clone() }, &mut found);
                }
            }
            if let Some(format) = joined_format(one.number_format.as_ref(), other.number_format.as_ref()) {
                let ty = wider(&one.ty, &other.ty).unwrap_or_else(|| one.ty.clone());
                add(ColumnProposal { ty, number_format: Some(format), ..one.clone() }, &mut found);
            }
            let pair = match one.ty == other.ty {
                true => Some((one.clone(), other.clone())),
                false => as_timestamp(one).zip(as_timestamp(other)),
            };
            if let Some((one, other)) = pair
                && let (Some(mut formats), Some(others)) = (all_formats(&one), all_formats(&other))
            {
                let more: Vec<String> = others.into_iter().filter(|format| !formats.contains(format)).collect();
                formats.extend(more);
                add(ColumnProposal { formats, ..one }, &mut found);
            }
        }
    }
    let is_in = |one: &Alternative, column: &ColumnProposal| {
        let ty = wider(&one.ty, &column.ty).is_some_and(|wide| wide == column.ty);
        let formats = if one.ty == "date" { day_formats(&one.formats) } else { one.formats.clone() };
        let all = all_formats(column).unwrap_or_default();
        ty && formats.iter().all(|format| all.contains(format))
    };
    let may_be = |text: &ColumnProposal, column: &ColumnProposal| {
        text.evidence.alternatives.iter().any(|one| is_in(one, column))
    };
    found.retain(|column| with_values().filter(|text| text.ty == TEXT).all(|text| may_be(text, column)));
    found
}

/// The formats of a column of times, those of ISO 8601 included.
fn all_formats(column: &ColumnProposal) -> Option<Vec<String>> {
    match column.ty.as_str() {
        "date" => Some(day_formats(&column.formats)),
        _ if !is_temporal(column) => None,
        _ if column.formats.is_empty() => Some(vec![ISO_FORMAT.to_owned()]),
        _ => Some(column.formats.clone()),
    }
}

fn day_formats(formats: &[String]) -> Vec<String> {
    if formats.is_empty() { vec![ISO_DATE.to_owned()] } else { formats.to_vec() }
}

/// A column of days or timestamps as `timestamp`; a day is its midnight.
pub(super) fn as_timestamp(column: &ColumnProposal) -> Option<ColumnProposal> {
    match column.ty.as_str() {
        "timestamp" => Some(column.clone()),
        "date" => {
            let mut timed =
                ColumnProposal { ty: "timestamp".into(), formats: day_formats(&column.formats), ..column.clone() };
            timed.evidence.why.push_str("; it is read as midnight, since others have a time of day");
            Some(timed)
        }
        _ => None,
    }
}

fn is_temporal(column: &ColumnProposal) -> bool {
    matches!(column.ty.as_str(), "date" | "time" | "timestamp" | "timestamptz")
}

/// Whether a column of both can't have the formats of both: a value would have two readings, or a format has no pattern.
fn are_formats_in_conflict(one: &ColumnProposal, other: &ColumnProposal) -> bool {
    // A day, a month and a year of two digits look alike.
    let shape = |format: &String| format.replace("%d", "%m").replace("%y", "%m");
    let has_values = one.evidence.values > 0 && other.evidence.values > 0;
    if !is_temporal(one) || !has_values || one.ty != other.ty || one.formats == other.formats {
        return false;
    }
    let (Some(ours), Some(theirs)) = (all_formats(one), all_formats(other)) else { return true };
    // ISO 8601 alone is read faster than beside others.
    if [&ours, &theirs].iter().any(|formats| formats.contains(&ISO_FORMAT.to_owned())) {
        return true;
    }
    ours.iter().any(|format| theirs.iter().any(|other| format != other && shape(format) == shape(other)))
}

/// Why the numbers of a column can't be added up: its files have amounts in several currencies, or percentages beside plain
/// numbers.
pub(super) fn several_units<'a>(all: impl Iterator<Item = &'a ColumnProposal> + Clone) -> Option<String> {
    let formats = all.filter(|column| column.evidence.values > 0 && column.ty != TEXT);
    let formats: Vec<NumberFormatDocument> =
        formats.map(|column| column.number_format.clone().unwrap_or_default()).collect();
    let signs: BTreeSet<&String> = formats.iter().flat_map(|format| &format.currency).collect();
    if !is_one_currency(signs.iter().map(|sign| sign.as_str())) {
        let signs: Vec<String> = signs.iter().map(|sign| format!("`{sign}`")).collect();
        return Some(format!("amounts in several currencies, which a number would lose: {}", signs.join(", ")));
    }
    let percent = formats.iter().filter(|format| format.percent).count();
    (0 < percent && percent < formats.len())
        .then(|| "some files have numbers with a percent sign, others without".to_owned())
}

/// Takes the candidate that rejects the fewest values of all files; text if it rejects too many.
fn choose(proposal: &mut Proposal, at: usize, all: &[ColumnProposal], sampled: &[&Sampled], deadline: Instant) {
    let name = proposal.columns[at].name.clone();
    let found = candidates(all);
    let differing: Vec<String> = sampled.iter().filter_map(|file| type_in(file, &name)).collect();
    let mut best: Option<(u64, ColumnProposal)> = None;
    for candidate in found {
        let alone =
            Proposal { columns: vec![ColumnProposal { nullable: true, ..candidate.clone() }], ..proposal.clone() };
        let Ok(checks) = check_all(&alone, sampled, deadline) else { continue };
        let rejected: u64 = checks.iter().map(FileCheck::rows_misfit).sum();
        // The first of equal ones: the narrowest.
        if best.as_ref().is_none_or(|(least, _)| rejected < *least) {
            best = Some((rejected, candidate));
        }
    }
    let column = &mut proposal.columns[at];
    let values = column.evidence.values;
    match best {
        Some((rejected, best)) if rejected <= misfits::misses_max(values, misfits::FITTING_PERCENT_MIN) => {
            (column.ty, column.formats, column.number_format) = (best.ty, best.formats, best.number_format);
            column.timezone = best.timezone;
            column.evidence.why = format!("{}; the files have {}", best.evidence.why, differing.join(", "));
            column.evidence.warnings = best.evidence.warnings;
        }
        Some(_) | None => {
            column.ty = TEXT.into();
            (column.formats, column.number_format, column.timezone) = (Vec::new(), None, None);
            column.evidence.why = format!("the files have {}", differing.join(", "));
            let why = several_units(all.iter()).unwrap_or_else(|| {
                format!(
                    "the files have different types ({}), and none of them reads the values of all",
                    differing.join(", ")
                )
            });
            column.evidence.warnings.push(format!("{why}; it is read as text"));
        }
    }
}

fn type_in(file: &Sampled, name: &str) -> Option<String> {
    let column = file.proposal.columns.iter().find(|column| column.name == name)?;
    (column.evidence.values > 0).then(|| format!("{} in `{}`", column.ty, file_name(&file.proposal.key)))
}

/// The sums over all files.
pub(super) fn join_evidence(column: &mut ColumnProposal, all: &[ColumnProposal]) {
    if column.evidence.values == 0
        && let Some(first) = all.iter().find(|one| one.evidence.values > 0)
    {
        *column = ColumnProposal { nullable: column.nullable, ..first.clone() };
    }
    let evidence = &mut column.evidence;
    evidence.values = all.iter().map(|one| one.evidence.values).sum();
    evidence.nulls = all.iter().map(|one| one.evidence.nulls).sum();
    // Files may share values.
    evidence.distinct = all.iter().map(|one| one.evidence.distinct).max().unwrap_or_default();
    evidence.distinct_exact &= all.len() < 2;
    evidence.range = None;
    evidence.tokens.clear();
    for token in all.iter().flat_map(|one| &one.evidence.tokens) {
        match evidence.tokens.iter_mut().find(|known| known.token == token.token) {
            Some(known) => {
                known.count += token.count;
                known.null |= token.null;
            }
            None => evidence.tokens.push(token.clone()),
        }
    }
}

/// Counts the cells with texts that another file made null, as nulls.
pub(super) fn recount_nulls(column: &mut ColumnProposal, null_values: Option<&Value>) {
    let null_values = null_values.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let evidence = &mut column.evidence;
    for token in &mut evidence.tokens {
        if !token.null && null_values.iter().any(|null| null.as_str() == Some(&token.token)) {
            token.null = true;
            evidence.nulls += token.count;
            evidence.values = evidence.values.saturating_sub(token.count);
        }
    }
}

/// The proposal with the counts of all files.
pub(super) fn with_file_counts(
    mut proposal: Proposal,
    sampled: &[&Sampled],
    checks: &[FileCheck],
) -> (Proposal, Vec<FileSample>) {
    let mut files = Vec::new();
    for (file, check) in sampled.iter().zip(checks) {
        let own = &file.proposal.sample;
        let sample = SampleInfo {
            rows_read: check.rows + check.rows_misfit(),
            rows_refused: check.refused,
            rows_misfit: check.rows_misfit(),
            rows_confirmed: check.rows,
            whole: own.whole && check.ended,
            ..own.clone()
        };
        files.push(FileSample { key: file.proposal.key.clone(), sample });
    }
    let sum = |of: fn(&SampleInfo) -> u64| files.iter().map(|file| of(&file.sample)).sum();
    proposal.sample = SampleInfo {
        bytes_read: sum(|sample| sample.bytes_read),
        bytes_total: sum(|sample| sample.bytes_total),
        rows_read: sum(|sample| sample.rows_read),
        rows_refused: sum(|sample| sample.rows_refused),
        rows_misfit: sum(|sample| sample.rows_misfit),
        whole: files.iter().all(|file| file.sample.whole),
        rows_confirmed: sum(|sample| sample.rows_confirmed),
        limited_by: files.iter().find_map(|file| file.sample.limited_by.clone()),
    };
    for column in &mut proposal.columns {
        let counts = checks.iter().filter_map(|check| check.misfits.get(&column.name));
        let count: u64 = counts.clone().map(|misfits| misfits.count).sum();
        let first: Vec<Misfit> = counts.flat_map(|misfits| misfits.first.clone()).take(SHOWN_MAX).collect();
        column.evidence.misfits = (count > 0).then_some(Misfits { count, first });
    }
    (proposal, files)
}

/// Merges the dialects of two files of one format: null tokens and footers are united, and an encoding or a separator that
/// only one file needs is used for both. Where they differ otherwise, the first file's reads both.
fn join_dialects(csv: &mut Map<String, Value>, other: &Value) {
    let Some(other) = other.as_object() else { return };
    let names: BTreeSet<String> = csv.keys().chain(other.keys()).cloned().collect();
    for name in names {
        match join_setting(&name, csv.get(&name), other.get(&name)) {
            JoinedSetting::Is(Some(value)) => drop(csv.insert(name, value)),
            JoinedSetting::Is(None) => drop(csv.remove(&name)),
            JoinedSetting::Conflict => {}
        }
    }
}

/// Whether a dialect reads the files of both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Agreement {
    Same,
    /// Only reading a file with the other's dialect shows it.
    Undecided,
    Different,
}

/// Settings that matter only if a file has what they are about.
const UNDECIDED: [&str; 7] = ["quote", "escape", "comment", "decimal", "width", "ragged_rows", "record_terminator"];

/// Compares the formats of two files: their dialects, and how they write the times of a column.
pub(super) fn agreement(one: &Sampled, other: &Sampled) -> Agreement {
    let conflict = |column: &ColumnProposal| {
        let mut theirs = other.proposal.columns.iter().filter(|theirs| theirs.name == column.name);
        theirs.any(|theirs| are_formats_in_conflict(column, theirs))
    };
    if one.proposal.columns.iter().filter(|column| is_temporal(column)).any(conflict) {
        return Agreement::Different;
    }
    let csv = |file: &'_ Sampled| file.proposal.csv.as_object().cloned().unwrap_or_default();
    let (ours, theirs) = (csv(one), csv(other));
    let mut agreement = Agreement::Same;
    for name in ours.keys().chain(theirs.keys()) {
        if let JoinedSetting::Conflict = join_setting(name, ours.get(name), theirs.get(name)) {
            match UNDECIDED.contains(&name.as_str()) {
                true if agreement == Agreement::Same => agreement = Agreement::Undecided,
                true => {}
                false => agreement = Agreement::Different,
            }
        }
    }
    agreement
}

/// The encoding that a file needs.
pub(super) enum NeededEncoding {
    Utf8,
    /// That of its dialect.
    Set {
        is_wide: bool,
    },
    /// It is read as UTF-8 whatever is set: it is ASCII, or has a byte order mark.
    Any,
}

impl NeededEncoding {
    pub(super) fn of(file: &Sampled) -> Self {
        const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();
        let bytes = file.head.bytes();
        match file.proposal.csv.get("encoding").and_then(Value::as_str) {
            Some(label) => Self::Set { is_wide: label.starts_with("utf-16") },
            None if bytes.is_ascii() || bytes.starts_with(BYTE_ORDER_MARK) => Self::Any,
            None => Self::Utf8,
        }
    }

    /// Whether one encoding reads both, unless two are set. A byte order mark takes precedence over what is set.
    pub(super) fn agrees(&self, other: &Self) -> bool {
        !matches!(
            (self, other),
            (Self::Utf8, Self::Set { is_wide: false }) | (Self::Set { is_wide: false }, Self::Utf8)
        )
    }
}

/// Sets the dialect in both of its forms.
pub(super) fn set_csv(proposal: &mut Proposal, csv: Map<String, Value>) {
    proposal.csv = Value::Object(csv);
    if let Ok(full) = serde_json::from_value(proposal.csv.clone()) {
        proposal.csv_full = full;
    }
}

/// The value of a setting that reads the files of all dialects; of those in conflict, the first.
pub(super) fn joined_setting<'a>(name: &str, dialects: impl Iterator<Item = &'a Value>) -> Option<Value> {
    dialects.map(|csv| csv.get(name).cloned()).reduce(|joined, other| {
        match join_setting(name, joined.as_ref(), other.as_ref()) {
            JoinedSetting::Is(value) => value,
            JoinedSetting::Conflict => joined,
        }
    })?
}

/// The value of a setting for two files with different values.
enum JoinedSetting {
    /// `None`: the default.
    Is(Option<Value>),
    Conflict,
}

fn join_setting(name: &str, ours: Option<&Value>, theirs: Option<&Value>) -> JoinedSetting {
    use JoinedSetting::{Conflict, Is};
    match (name, ours, theirs) {
        (_, ours, theirs) if ours == theirs => Is(ours.cloned()),
        (_, Some(Value::Array(ours)), Some(Value::Array(theirs))) => {
            let more = theirs.iter().filter(|token| !ours.contains(token));
            Is(Some(ours.iter().chain(more).cloned().collect()))
        }
        // With `footer_values`, the most that are skipped; without, it would skip rows of the other file.
        ("skip_footer_rows", Some(ours), Some(theirs)) => {
            Is([ours, theirs].into_iter().max_by_key(|value| value.as_u64()).cloned())
        }
        ("record_bytes_max", Some(one), None) | ("record_bytes_max", None, Some(one)) => Is(Some(one.clone())),
        // A byte order mark has precedence.
        ("encoding", Some(Value::String(ours)), None) if ours.starts_with("utf-16") => Is(None),
        ("encoding", None, Some(Value::String(theirs))) if theirs.starts_with("utf-16") => Is(None),
        (
            "skip_footer_rows" | "footer_values" | "null_values" | "true_values" | "false_values" | "encoding" | "trim"
            | "quoted_nulls" | "quotes" | "thousands",
            one,
            other,
        ) if one.is_none() || other.is_none() => Is(one.or(other).cloned()),
        _ => Conflict,
    }
}

/// The number format that reads what both read; `None` if there is none, or neither has one.
fn joined_format(
    one: Option<&NumberFormatDocument>,
    other: Option<&NumberFormatDocument>,
) -> Option<NumberFormatDocument> {
    let plain = NumberFormatDocument::default();
    if one.is_none() && other.is_none() {
        return None;
    }
    let (one, other) = (one.unwrap_or(&plain), other.unwrap_or(&plain));
    let mut currency = one.currency.clone();
    currency.extend(other.currency.iter().filter(|sign| !one.currency.contains(sign)).cloned());
    let negative = match (one.negative, other.negative) {
        (NegativeDocument::Minus, negative) | (negative, NegativeDocument::Minus) => negative,
        (negative, same) if negative == same => negative,
        _ => return None,
    };
    // A value without a percent sign has another unit.
    (one.percent == other.percent && is_one_currency(currency.iter().map(String::as_str))).then(|| {
        NumberFormatDocument {
            decimal: one.decimal.clone().or_else(|| other.decimal.clone()),
            thousands: one.thousands.clone().or_else(|| other.thousands.clone()),
            currency,
            percent: one.percent,
            negative,
        }
    })
}

/// The type that holds the values of both.
pub(super) fn wider(one: &str, other: &str) -> Option<String> {
    const DIGITS_MAX: u8 = 38;
    /// Digits of the largest int64.
    const INTEGER_DIGITS: u8 = 19;
    let numeric = |ty: &str| match DataType::parse(ty)? {
        DataType::Decimal { precision, scale } => Some((precision - scale, scale)),
        DataType::Int64 => Some((INTEGER_DIGITS, 0)),
        _ => None,
    };
    if one == other {
        return Some(one.to_owned());
    }
    match (one, other) {
        ("date", "timestamp") | ("timestamp", "date") => return Some("timestamp".into()),
        ("float64", "int64") | ("int64", "float64") => return Some("float64".into()),
        ("float64", ty) | (ty, "float64") if ty.starts_with("decimal") => return Some("float64".into()),
        _ => {}
    }
    let ((whole, places), (other_whole, other_places)) = (numeric(one)?, numeric(other)?);
    let (whole, places) = (whole.max(other_whole), places.max(other_places));
    let precision = if whole + places <= 18 { 18 } else { DIGITS_MAX };
    (whole + places <= DIGITS_MAX).then(|| format!("decimal({precision},{places})"))
}

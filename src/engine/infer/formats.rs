//! Proposes one mapping for several files of a table, of one format or of several.
//!
//! Files are grouped by format. Each group has a joined proposal; the largest group's is that of the mapping, and the others
//! become its variants.
//!
//! Invariant: `sample` and the misfits count what the converter did with the merged mapping in all files.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use serde_json::{Map, Value, json};

use super::confirm::FileCheck;
use super::copies;
use super::join::{
    Agreement, FileSample, NeededEncoding, ROUNDS_MAX, Sampled, agreement, as_timestamp, check_file, file_name, join,
    join_evidence, joined_setting, recount_nulls, set_csv, several_units, wider, with_file_counts,
};
use super::misfits;
use super::naming;
use super::proposal::{Alternative, ColumnEvidence, ColumnProposal, Proposal, TEXT, VariantProposal};
use super::propose::{InferError, InferOptions, fetch, infer_head};
use super::times::DateOrder;
use crate::domain::text::counted;
use crate::ports::ObjectStore;

/// Files that are joined at most.
pub const JOINED_MAX: usize = 16;

/// The joined proposal of several files.
#[derive(Debug)]
pub struct Joined {
    pub proposal: Proposal,
    /// One entry per file that was read.
    pub files: Vec<FileSample>,
    /// Files that no proposal could be made for.
    pub failed: Vec<(String, InferError)>,
}

/// Proposes a mapping for the objects `keys` of the lake bucket, which are files of one table. The limits of `options` are
/// those of all files together.
///
/// # Errors
/// The store failed, or no file can be read: the error of the first.
pub fn infer_all(store: &dyn ObjectStore, keys: &[&str], options: &InferOptions) -> Result<Joined, InferError> {
    let (mut sampled, mut failed) = (Vec::<Sampled>::new(), Vec::new());
    let (mut bytes, mut time) = (options.bytes_max, options.time_max);
    for (nth, &key) in keys.iter().enumerate() {
        // Unused limits pass on to the next files.
        let left = keys.len() - nth;
        let each = InferOptions { bytes_max: bytes / left, time_max: time / u32::try_from(left).unwrap_or(u32::MAX) };
        let started = Instant::now();
        let file = fetch(store, key, &each).and_then(|(head, size)| {
            let proposal = infer_head(key, &head, size, &each)?;
            Ok(Sampled { head, proposal })
        });
        time = time.saturating_sub(started.elapsed());
        match file {
            Ok(file) => {
                bytes -= file.head.bytes().len();
                sampled.push(file);
            }
            Err(error @ InferError::Store(_)) => return Err(error),
            Err(error) => failed.push((key.to_owned(), error)),
        }
    }
    failed.extend(take_unnamed(&mut sampled));
    if sampled.is_empty() && !failed.is_empty() {
        return Err(failed.swap_remove(0).1);
    }
    let (proposal, files) = merge(&sampled, Instant::now() + options.time_max)?;
    Ok(Joined { proposal: proposal.with_warnings(), files, failed })
}

/// Takes out the files whose columns have no names, if others have: nothing tells which columns are the same.
fn take_unnamed(sampled: &mut Vec<Sampled>) -> Vec<(String, InferError)> {
    let named = |file: &Sampled| file.proposal.csv_full.header;
    let names: BTreeSet<String> = sampled
        .iter()
        .filter(|file| named(file))
        .flat_map(|file| file.proposal.columns.iter().map(|column| column.name.clone()))
        .collect();
    let Some(other) = sampled.iter().find(|file| named(file)).map(|file| file_name(&file.proposal.key).to_owned())
    else {
        return Vec::new();
    };
    let is_foreign =
        |file: &Sampled| !named(file) && file.proposal.columns.iter().all(|column| !names.contains(&column.name));
    let (foreign, rest) = std::mem::take(sampled).into_iter().partition(is_foreign);
    *sampled = rest;
    let error = |file: Sampled| {
        let key = file.proposal.key;
        let reason = format!("it has no line of column names, unlike `{other}`; add it to a table of its own");
        (key.clone(), InferError::NotCsv { key, reason })
    };
    foreign.into_iter().map(error).collect()
}

/// Gives all formats the texts that mean null in any of them.
fn agree_on_nulls(formats: &mut [FormatGroup]) {
    let all = joined_setting("null_values", formats.iter().map(|format| &format.proposal.csv));
    let Some(all) = all else { return };
    for proposal in formats.iter_mut().map(|format| &mut format.proposal) {
        let mut csv = proposal.csv.as_object().cloned().unwrap_or_default();
        csv.insert("null_values".into(), all.clone());
        set_csv(proposal, csv);
        proposal.columns.iter_mut().for_each(|column| recount_nulls(column, Some(&all)));
    }
}

/// Files of one format, and the proposal for them.
struct FormatGroup {
    /// Positions in the list of all files.
    members: Vec<usize>,
    proposal: Proposal,
}

impl FormatGroup {
    /// The warnings, each with the name of its file. A joined proposal has these already.
    fn warnings(&self, all: &[&Sampled]) -> Vec<String> {
        let warnings = self.proposal.warnings.iter();
        match self.members[..] {
            [only] => {
                let name = file_name(&all[only].proposal.key);
                warnings.map(|warning| format!("`{name}`: {warning}")).collect()
            }
            _ => warnings.cloned().collect(),
        }
    }
}

fn merge(sampled: &[Sampled], deadline: Instant) -> Result<(Proposal, Vec<FileSample>), InferError> {
    let all: Vec<&Sampled> = sampled.iter().collect();
    let mut groups = group(&all, deadline);
    if groups.len() < 2 {
        let members: Vec<&Sampled> = groups.pop().unwrap_or_default().into_iter().map(|at| all[at]).collect();
        let (mut proposal, mut files) = join(&members, deadline)?;
        let read: Vec<(&Sampled, &Proposal)> = members.iter().map(|file| (*file, &proposal)).collect();
        let copies = copies::find(&read, &files, deadline);
        proposal.warnings.extend(copies);
        files.sort_by_key(|file| all.iter().position(|sampled| sampled.proposal.key == file.key));
        return Ok((named_after(all[0], proposal), files));
    }
    let mut formats = Vec::with_capacity(groups.len());
    for members in groups {
        let files: Vec<&Sampled> = members.iter().map(|&at| all[at]).collect();
        let (proposal, _) = join(&files, deadline)?;
        formats.push(FormatGroup { members, proposal });
    }
    agree_on_nulls(&mut formats);
    agree_on_columns(&mut formats);
    let checks = settle(&mut formats, &all, deadline)?;
    let (main, others) = formats.split_first().ok_or(InferError::Empty { key: String::new() })?;
    let mut merged = named_after(all[0], main.proposal.clone());
    for (at, column) in merged.columns.iter_mut().enumerate() {
        let all: Vec<ColumnProposal> = formats.iter().map(|format| format.proposal.columns[at].clone()).collect();
        join_evidence(column, &all);
        if let Some(why) = reasons_of_readings(&formats, at) {
            column.evidence.why = why;
        }
    }
    merged.warnings = formats.iter().flat_map(|format| format.warnings(&all)).collect();
    for FormatGroup { proposal, members } in others {
        let findings = proposal.findings.clone();
        let keys: Vec<String> = members.iter().map(|&at| all[at].proposal.key.clone()).collect();
        merged.variants.push(VariantProposal {
            files: keys.iter().map(|key| naming::exactly(key)).collect(),
            keys,
            csv: proposal.csv.clone(),
            csv_full: proposal.csv_full.clone(),
            columns: differing_columns(&main.proposal, proposal),
            findings,
        });
    }
    let (mut merged, files) = with_file_counts(merged, &all, &checks);
    let read: Vec<_> = all.iter().enumerate().map(|(at, file)| (*file, proposal_of(&formats, at))).collect();
    merged.warnings.extend(copies::find(&read, &files, deadline));
    Ok((merged, files))
}

/// Why a column is read as it is, where formats read it in different ways: each reading with its number of files.
fn reasons_of_readings(formats: &[FormatGroup], at: usize) -> Option<String> {
    let mut readings: Vec<(&ColumnProposal, usize)> = Vec::new();
    for FormatGroup { proposal, members } in formats {
        let own = &proposal.columns[at];
        let is_equal =
            |known: &ColumnProposal| (&known.formats, &known.number_format) == (&own.formats, &own.number_format);
        match readings.iter_mut().find(|(known, _)| is_equal(known)) {
            Some((_, files)) => *files += members.len(),
            None if own.evidence.values > 0 => readings.push((own, members.len())),
            None => {}
        }
    }
    let reason = |(column, files): &(&ColumnProposal, usize)| {
        format!("in {}, {}", counted(*files as u64, "file", "files"), column.evidence.why)
    };
    (readings.len() > 1).then(|| readings.iter().map(reason).collect::<Vec<_>>().join("; "))
}

/// The proposal under the names of the first file that was asked for.
fn named_after(first: &Sampled, proposal: Proposal) -> Proposal {
    let Proposal { key, table, files, .. } = first.proposal.clone();
    Proposal { key, table, files, ..proposal }
}

/// The positions of the files of each format; the largest group first, of equal ones that of the first file. The first file of a
/// group has a dialect that reads all of them.
fn group(all: &[&Sampled], deadline: Instant) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    // Files that any encoding reads come last, so that they don't bring two encodings together. They join those in UTF-8
    // first: another encoding would not fail on UTF-8 in the rest of them.
    let encodings: Vec<NeededEncoding> = all.iter().map(|file| NeededEncoding::of(file)).collect();
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by_key(|&at| match encodings[at] {
        NeededEncoding::Utf8 => 0,
        NeededEncoding::Set { .. } => 1,
        NeededEncoding::Any => 2,
    });
    'files: for at in order {
        let file = all[at];
        for group in &mut groups {
            let first = all[group[0]];
            if !group.iter().all(|&member| encodings[member].agrees(&encodings[at])) {
                continue;
            }
            match agreement(first, file) {
                Agreement::Same => group.push(at),
                Agreement::Different => continue,
                Agreement::Undecided if reads(first, file, deadline) => group.push(at),
                Agreement::Undecided if group.iter().all(|&member| reads(file, all[member], deadline)) => {
                    group.insert(0, at);
                }
                Agreement::Undecided => continue,
            }
            continue 'files;
        }
        groups.push(vec![at]);
    }
    groups.sort_by_key(|group| (Reverse(group.len()), group.iter().min().copied()));
    groups
}

/// Whether the dialect of `first` reads `file` as well as the file's own.
fn reads(first: &Sampled, file: &Sampled, deadline: Instant) -> bool {
    let proposal = Proposal { csv: first.proposal.csv.clone(), ..file.proposal.clone() };
    let own = &file.proposal.sample;
    check_file(&proposal, file, deadline).is_ok_and(|check| {
        check.refused <= own.rows_refused && check.rows_misfit() <= own.rows_misfit && check.null_columns.is_empty()
    })
}

/// Gives all formats the same columns, each with a type that its files have, or text.
fn agree_on_columns(formats: &mut [FormatGroup]) {
    let (mut names, mut known): (Vec<String>, BTreeSet<String>) = (Vec::new(), BTreeSet::new());
    for column in formats.iter().flat_map(|format| &format.proposal.columns) {
        if known.insert(column.name.clone()) {
            names.push(column.name.clone());
        }
    }
    let by_name: Vec<BTreeMap<String, ColumnProposal>> = formats
        .iter()
        .map(|format| format.proposal.columns.iter().map(|column| (column.name.clone(), column.clone())).collect())
        .collect();
    let mut columns: Vec<Vec<ColumnProposal>> = vec![Vec::new(); formats.len()];
    let rows: Vec<u64> = formats.iter().map(|format| format.proposal.sample.rows_read).collect();
    let mut partial = false;
    for name in &names {
        let own: Vec<Option<ColumnProposal>> = by_name.iter().map(|columns| columns.get(name).cloned()).collect();
        let Some(first) = own.iter().flatten().next().cloned() else { continue };
        partial |= own.iter().any(Option::is_none);
        let nullable = own.iter().any(|column| column.as_ref().is_none_or(|column| column.nullable));
        let readings = common_readings(&own).unwrap_or_else(|| {
            let why = reason_for_text(&own);
            own.iter().map(|column| column.as_ref().map(|column| as_text(column, &why))).collect()
        });
        // A format without the column reads it as the first one that has it.
        let lacking = readings.iter().flatten().next().unwrap_or(&first).clone();
        let lacking = |rows: u64| ColumnProposal {
            evidence: ColumnEvidence { nulls: rows, ..ColumnEvidence::default() },
            ..lacking.clone()
        };
        for ((columns, rows), (reading, own)) in columns.iter_mut().zip(&rows).zip(readings.into_iter().zip(own)) {
            let mut column = reading.unwrap_or_else(|| lacking(*rows));
            column.nullable = nullable;
            if let Some(own) = own {
                column.from = own.from;
            }
            columns.push(column);
        }
    }
    for (format, columns) in formats.iter_mut().zip(columns) {
        format.proposal.columns = columns;
        format.proposal.partial |= partial;
    }
}

/// Why formats have no type in common.
fn reason_for_text(own: &[Option<ColumnProposal>]) -> String {
    let undecided = || own.iter().flatten().filter(|column| is_undecided(column));
    if let Some(reason) = several_units(own.iter().flatten()) {
        return reason;
    }
    if let Some(warning) = undecided().flat_map(|column| &column.evidence.warnings).next() {
        return warning.clone();
    }
    let types: BTreeSet<&str> = own.iter().flatten().map(|column| type_name(&column.ty)).collect();
    let types: Vec<&str> = types.into_iter().collect();
    format!("some files have {}", types.join(", others "))
}

fn type_name(ty: &str) -> &str {
    if ty == TEXT { "text" } else { ty }
}

/// The column as text.
fn text_of(column: &ColumnProposal) -> ColumnProposal {
    ColumnProposal { ty: TEXT.into(), formats: Vec::new(), number_format: None, timezone: None, ..column.clone() }
}

/// The column as text, with a warning.
fn as_text(column: &ColumnProposal, why: &str) -> ColumnProposal {
    let mut text = text_of(column);
    if !text.evidence.warnings.iter().any(|warning| warning == why) {
        text.evidence.warnings.push(format!("{why}; it is read as text"));
    }
    text
}

/// How each format reads a column as one type; `None` if they have none in common.
fn common_readings(own: &[Option<ColumnProposal>]) -> Option<Vec<Option<ColumnProposal>>> {
    if several_units(own.iter().flatten()).is_some() {
        return None;
    }
    let mut types: Vec<String> = Vec::new();
    for column in own.iter().flatten().filter(|column| column.evidence.values > 0 && column.ty != TEXT) {
        let wide = types.iter().find_map(|known| wider(known, &column.ty));
        match wide {
            Some(wide) => types = vec![wide],
            None if !types.contains(&column.ty) => types.push(column.ty.clone()),
            None => {}
        }
    }
    // Text everywhere, or no values.
    if types.is_empty() && !own.iter().flatten().any(is_undecided) {
        return Some(own.iter().map(|column| column.as_ref().map(text_of)).collect());
    }
    types.into_iter().find_map(|ty| {
        let read = |column: &Option<ColumnProposal>| match column {
            Some(column) => read_as(column, &ty, own).map(Some),
            None => Some(None),
        };
        own.iter().map(read).collect()
    })
}

/// Whether its values are dates of either order of day and month.
fn is_undecided(column: &ColumnProposal) -> bool {
    column.ty == TEXT && column.evidence.alternatives.iter().filter(|other| other.ty == "date").count() > 1
}

/// The dates of a column with one order of day and month, if the others of the table have that.
fn decided(column: &ColumnProposal, own: &[Option<ColumnProposal>]) -> Option<Alternative> {
    let formats = own.iter().flatten().flat_map(|column| &column.formats);
    let orders: BTreeSet<DateOrder> = formats.filter_map(|format| DateOrder::of_pattern(format)).collect();
    let mut orders = orders.into_iter();
    let (Some(order), None) = (orders.next(), orders.next()) else { return None };
    let is_so = |other: &&Alternative| other.formats.iter().any(|format| DateOrder::of_pattern(format) == Some(order));
    column.evidence.alternatives.iter().find(is_so).cloned()
}

/// The column read as `ty`, if its values may be that. `own`: the column in all formats.
fn read_as(column: &ColumnProposal, ty: &str, own: &[Option<ColumnProposal>]) -> Option<ColumnProposal> {
    let with_type = || ColumnProposal { ty: ty.to_owned(), ..column.clone() };
    if column.ty == "date" && ty == "timestamp" {
        return as_timestamp(column);
    }
    if column.ty == ty || wider(&column.ty, ty).is_some_and(|wide| wide == ty) {
        return Some(with_type());
    }
    if column.evidence.values == 0 {
        return Some(ColumnProposal { formats: Vec::new(), number_format: None, timezone: None, ..with_type() });
    }
    if is_undecided(column) && wider("date", ty).is_some_and(|wide| wide == ty) {
        let Alternative { formats, .. } = decided(column, own)?;
        let mut dates = ColumnProposal { formats, ..with_type() };
        dates.evidence.why.push_str("; the order of day and month is that of the other files");
        return Some(dates);
    }
    let other = column.evidence.alternatives.iter().find(|other| other.ty == ty)?;
    Some(ColumnProposal { formats: other.formats.clone(), number_format: None, timezone: None, ..with_type() })
}

/// Reads all files by the merged columns. Columns become nullable, or text, where a file's values require it. Returns the
/// counts of each file.
fn settle(formats: &mut [FormatGroup], all: &[&Sampled], deadline: Instant) -> Result<Vec<FileCheck>, InferError> {
    let mut round = 1;
    loop {
        let checks = check(formats, all, deadline)?;
        let nulls: BTreeSet<&String> = checks.iter().flat_map(|check| &check.null_columns).collect();
        let mut changed = false;
        let columns = formats.first().map_or(0, |format| format.proposal.columns.len());
        for at in 0..columns {
            let name = formats[0].proposal.columns[at].name.clone();
            let count = |check: &FileCheck| check.misfits.get(&name).map_or(0, |misfits| misfits.count);
            let rejected: u64 = checks.iter().map(count).sum();
            let values: u64 = formats.iter().map(|format| format.proposal.columns[at].evidence.values).sum();
            let is_null = nulls.contains(&name) && !formats[0].proposal.columns[at].nullable;
            let is_unfit = !is_null
                && formats[0].proposal.columns[at].ty != TEXT
                && rejected > misfits::misses_max(values, misfits::FITTING_PERCENT_MIN);
            changed |= is_null || is_unfit;
            for column in formats.iter_mut().map(|format| &mut format.proposal.columns[at]) {
                column.nullable |= is_null;
                if is_unfit {
                    let why = format!("{} does not read {rejected} of {values} values", column.ty);
                    *column = as_text(column, &why);
                }
            }
        }
        if !changed || round == ROUNDS_MAX {
            return Ok(checks);
        }
        round += 1;
    }
}

fn check(formats: &[FormatGroup], all: &[&Sampled], deadline: Instant) -> Result<Vec<FileCheck>, InferError> {
    all.iter().enumerate().map(|(at, file)| check_file(proposal_of(formats, at), file, deadline)).collect()
}

/// The proposal that reads the file at `at`.
fn proposal_of(formats: &[FormatGroup], at: usize) -> &Proposal {
    &formats.iter().find(|format| format.members.contains(&at)).unwrap_or(&formats[0]).proposal
}

/// The columns that a variant reads otherwise than the mapping, as in a config.
fn differing_columns(main: &Proposal, variant: &Proposal) -> Vec<Value> {
    let has_header = |proposal: &Proposal| proposal.csv_full.header;
    let is_same_header = has_header(main) == has_header(variant);
    let differs = |(ours, theirs): &(&ColumnProposal, &ColumnProposal)| {
        !is_same_header
            || (&ours.from, &ours.formats, &ours.number_format, &ours.timezone)
                != (&theirs.from, &theirs.formats, &theirs.number_format, &theirs.timezone)
    };
    let entry = |(_, theirs): (&ColumnProposal, &ColumnProposal)| {
        let mut entry = Map::new();
        entry.insert("name".into(), json!(theirs.name));
        entry.extend(theirs.reading());
        Value::Object(entry)
    };
    main.columns.iter().zip(&variant.columns).filter(differs).map(entry).collect()
}

//! Proposes tables for many files: groups files of one shape, samples each group, and merges the proposals. Files of one
//! shape may have several formats, which become variants.
//!
//! Invariant: every file is in one table, or among the files left out with a reason; a table's globs match all of its
//! files and none of another table.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Value, json};

use super::formats::{JOINED_MAX, Joined, infer_all};
use super::naming;
use super::proposal::{Proposal, VariantProposal};
use super::propose::{InferError, InferOptions, fetch, infer_head};
use crate::domain::limits::{GLOBS_MAX, MAPPINGS_MAX, TABLE_NAME_BYTES_MAX};
use crate::domain::pipeline::document::VERSION;
use crate::domain::pipeline::globs::compile_glob;
use crate::domain::source_name::is_csv;
use crate::domain::text::counted;
use crate::ports::ObjectStore;

/// Files of a group that are sampled: the first, the last, and others in between; but each format's first.
const SAMPLED_MAX: usize = 8;
/// Files whose header is read; with more files, evenly spaced ones.
const GROUPED_MAX: usize = 400;
/// Bytes and rows read to detect a header.
const HEADER_BYTES: usize = 64 << 10;
/// The items of `csv` that tell formats apart.
const FORMAT_SETTINGS: [&str; 6] =
    ["delimiter", "header", "skip_rows", "skip_rows_after_header", "encoding", "decimal"];

/// A file to propose a table for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputFile {
    pub key: String,
    /// Relative to the folder that globs are relative to.
    pub path: String,
}

/// Tables for the files of a folder.
#[derive(Debug, Serialize)]
pub struct TableProposals {
    /// A complete PipelineConfig.
    pub config: Value,
    pub tables: Vec<TableProposal>,
    /// Files without a table, with the reason.
    pub left_out: Vec<(String, String)>,
}

/// A table, with the evidence for it.
#[derive(Debug, Serialize)]
pub struct TableProposal {
    pub table: String,
    /// The number of all its files, and of the sampled ones.
    pub files: usize,
    pub sampled: Vec<String>,
    /// The joined mapping.
    pub mapping: Value,
    /// The proposal for the first sampled file, with the columns of all.
    pub proposal: Proposal,
    pub warnings: Vec<String>,
}

/// Files of one shape.
struct Group {
    name: String,
    folder: String,
    columns: BTreeSet<String>,
    files: Vec<InputFile>,
    /// The positions in `files` of each format that their heads have.
    formats: BTreeMap<String, Vec<usize>>,
}

/// The head of a file.
struct FileHead {
    /// The names of its columns, in lower case.
    columns: BTreeSet<String>,
    /// The settings that tell formats apart, as text.
    format: String,
}

impl Group {
    /// Whether a file with these columns is one of the same table.
    fn matches(&self, name: &str, folder: &str, columns: &BTreeSet<String>) -> bool {
        let shared = self.columns.intersection(columns).count();
        let same = self.columns == *columns;
        let similar = shared * 2 >= self.columns.len().max(columns.len()) && shared > 0;
        same && folder == self.folder || similar && name == self.name
    }
}

/// Proposes tables for `files`. `table`: the name of the table, if only one is proposed.
///
/// # Errors
/// The store failed, or no file is a CSV.
pub fn tables(
    store: &dyn ObjectStore,
    files: &[InputFile],
    table: Option<&str>,
    options: &InferOptions,
) -> Result<TableProposals, InferError> {
    let mut left_out = Vec::new();
    let mut groups: Vec<Group> = Vec::new();
    for file in files.iter().filter(|file| files.len() == 1 || is_csv(&file.path)) {
        let at_header = groups.iter().map(|group| group.files.len()).sum::<usize>();
        if at_header >= GROUPED_MAX
            && let Some(group) = groups.iter_mut().find(|group| group.name == naming::table(&file.path))
        {
            group.files.push(file.clone());
            continue;
        }
        match head(store, file) {
            Ok(head) => group(&mut groups, file, head),
            Err(InferError::Store(error)) => return Err(InferError::Store(error)),
            Err(error) => left_out.push((file.path.clone(), error.to_string())),
        }
    }
    left_out.extend(skipped_files(files));
    let mut proposed: Vec<TableProposal> = Vec::new();
    for group in &groups {
        if proposed.len() == MAPPINGS_MAX {
            left_out.extend(
                group.files.iter().map(|file| (file.path.clone(), "a config can't have more tables".to_owned())),
            );
            continue;
        }
        let name = free_name(&proposed, table.filter(|_| groups.len() == 1).unwrap_or(&group.name));
        if let Some(found) = propose_group(store, group, &groups, name, options, &mut left_out)? {
            proposed.push(found);
        }
    }
    let mappings: Vec<&Value> = proposed.iter().map(|table| &table.mapping).collect();
    Ok(TableProposals { config: json!({ "version": VERSION, "mappings": mappings }), tables: proposed, left_out })
}

fn skipped_files(files: &[InputFile]) -> impl Iterator<Item = (String, String)> + '_ {
    let reason = |path: &str| {
        let lower = path.to_ascii_lowercase();
        if lower.ends_with(".xlsx") || lower.ends_with(".xls") {
            "an Excel workbook; save its sheets as CSV"
        } else if lower.ends_with(".zip") {
            "a ZIP archive; extract its files"
        } else {
            "its name does not end in .csv, .csv.gz or .csv.zst"
        }
    };
    let other = |file: &&InputFile| files.len() > 1 && !is_csv(&file.path);
    files.iter().filter(other).map(move |file| (file.path.clone(), reason(&file.path).to_owned()))
}

fn head(store: &dyn ObjectStore, file: &InputFile) -> Result<FileHead, InferError> {
    let options = InferOptions { bytes_max: HEADER_BYTES, ..InferOptions::default() };
    let (head, size) = fetch(store, &file.key, &options)?;
    let proposal = infer_head(&file.key, &head, size, &options)?;
    let settings = FORMAT_SETTINGS.map(|name| proposal.csv.get(name));
    let times = proposal.columns.iter().filter(|column| !column.formats.is_empty());
    let times: Vec<_> = times.map(|column| (&column.name, &column.formats)).collect();
    let format = format!("{:?}", (settings, head.bytes().is_ascii(), times));
    Ok(FileHead { columns: proposal.columns.iter().map(|column| column.name.to_lowercase()).collect(), format })
}

fn group(groups: &mut Vec<Group>, file: &InputFile, head: FileHead) {
    let FileHead { columns, format } = head;
    let (name, folder) = (naming::table(&file.path), file.path.rsplit_once('/').map_or("", |(folder, _)| folder));
    match groups.iter_mut().find(|group| group.matches(&name, folder, &columns)) {
        Some(group) => {
            group.columns.extend(columns);
            group.formats.entry(format).or_default().push(group.files.len());
            group.files.push(file.clone());
        }
        None => {
            let (files, formats) = (vec![file.clone()], BTreeMap::from([(format, vec![0])]));
            groups.push(Group { name, folder: folder.to_owned(), columns, files, formats });
        }
    }
}

fn free_name(proposed: &[TableProposal], name: &str) -> String {
    let is_free = |name: &str| proposed.iter().all(|table| table.table != name);
    if is_free(name) {
        return name.to_owned();
    }
    let base = &name[..name.floor_char_boundary(TABLE_NAME_BYTES_MAX - 4)];
    (2..).map(|suffix| format!("{base}_{suffix}")).find(|name| is_free(name)).unwrap_or_else(|| name.to_owned())
}

fn propose_group(
    store: &dyn ObjectStore,
    group: &Group,
    groups: &[Group],
    name: String,
    options: &InferOptions,
    left_out: &mut Vec<(String, String)>,
) -> Result<Option<TableProposal>, InferError> {
    let chosen = chosen(group);
    let keys: Vec<&str> = chosen.iter().map(|file| file.key.as_str()).collect();
    let path_of = |key: &str| chosen.iter().find(|file| file.key == key).map_or(key, |file| &file.path).to_owned();
    let Joined { mut proposal, files: sampled, failed } = match infer_all(store, &keys, options) {
        Ok(joined) => joined,
        Err(InferError::Store(error)) => return Err(InferError::Store(error)),
        Err(error) => {
            left_out.extend(group.files.iter().map(|file| (file.path.clone(), error.to_string())));
            return Ok(None);
        }
    };
    left_out.extend(failed.iter().map(|(key, error)| (path_of(key), error.to_string())));
    let sampled: Vec<String> = sampled.iter().map(|file| path_of(&file.key)).collect();
    let mut warnings = Vec::new();
    proposal.table = name.clone();
    let foreign: Vec<&str> = groups
        .iter()
        .filter(|other| !std::ptr::eq(*other, group))
        .flat_map(|other| other.files.iter().map(|file| file.path.as_str()))
        .collect();
    proposal.files = globs(&group.files.iter().collect::<Vec<_>>(), &foreign, &mut warnings);
    let of_variants: Vec<BTreeSet<usize>> =
        proposal.variants.iter().map(|variant| files_of(variant, group, &keys)).collect();
    for (variant, ours) in proposal.variants.iter_mut().zip(of_variants) {
        let (ours, others): (Vec<_>, Vec<_>) = group.files.iter().enumerate().partition(|(at, _)| ours.contains(at));
        let ours: Vec<&InputFile> = ours.into_iter().map(|(_, file)| file).collect();
        let others: Vec<&str> = others.into_iter().map(|(_, file)| file.path.as_str()).collect();
        variant.files = globs(&ours, &others, &mut warnings);
    }
    let mapping = proposal.mapping();
    let files = group.files.len();
    Ok(Some(TableProposal { table: name, files, sampled, mapping, proposal, warnings }))
}

/// A sample of the files, evenly spaced, with the first of each format.
fn chosen(group: &Group) -> Vec<&InputFile> {
    let files = &group.files;
    let firsts = group.formats.values().filter_map(|members| members.first().copied()).take(JOINED_MAX);
    let firsts: BTreeSet<usize> = if group.formats.len() > 1 { firsts.collect() } else { BTreeSet::new() };
    let most = SAMPLED_MAX.min(files.len());
    let at = |nth: usize| if most < 2 { 0 } else { nth * (files.len() - 1) / (most - 1) };
    let spread = (0..most).map(at).filter(|at| !firsts.contains(at)).take(JOINED_MAX - firsts.len());
    let all: BTreeSet<usize> = spread.chain(firsts.iter().copied()).collect();
    all.into_iter().map(|at| &files[at]).collect()
}

/// The positions of the files of a variant: those that were sampled, and others whose heads have a format that only sampled
/// files of the variant have.
fn files_of(variant: &VariantProposal, group: &Group, sampled: &[&str]) -> BTreeSet<usize> {
    let is_ours = |at: &usize| variant.keys.contains(&group.files[*at].key);
    let is_unknown = |at: &usize| !sampled.contains(&group.files[*at].key.as_str());
    let is_like_ours = |members: &&Vec<usize>| {
        let mut known = members.iter().filter(|at| !is_unknown(at)).peekable();
        known.peek().is_some() && known.all(is_ours)
    };
    let like_ours = group.formats.values().filter(is_like_ours).flatten().copied();
    (0..group.files.len()).filter(is_ours).chain(like_ours.filter(is_unknown)).collect()
}

/// Globs that match these files, and none of `foreign`.
fn globs(files: &[&InputFile], foreign: &[&str], warnings: &mut Vec<String>) -> Vec<String> {
    let mut globs: Vec<String> = Vec::new();
    let matches = |glob: &str, path: &str| compile_glob(glob).is_ok_and(|glob| glob.compile_matcher().is_match(path));
    for file in files {
        if globs.iter().any(|glob| matches(glob, &file.path)) {
            continue;
        }
        let wide = [naming::glob(&file.path), naming::series_glob(&file.path)];
        let only_ours = wide.into_iter().find(|glob| !foreign.iter().any(|path| matches(glob, path)));
        globs.push(only_ours.unwrap_or_else(|| naming::exactly(&file.path)));
    }
    if globs.len() > 1 && foreign.is_empty() {
        let folders: BTreeSet<String> = files.iter().map(|file| naming::folder_glob(&file.path)).collect();
        if folders.len() < globs.len() {
            globs = folders.into_iter().collect();
        }
    }
    if globs.len() > GLOBS_MAX {
        let left = counted((globs.len() - GLOBS_MAX) as u64, "file", "files");
        warnings
            .push(format!("more globs than a table can have; {left} would not be read: put its files into a folder"));
        globs.truncate(GLOBS_MAX);
    }
    globs
}

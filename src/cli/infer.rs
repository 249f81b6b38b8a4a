//! `lakemill infer`: proposes a config for CSVs, with its evidence.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::args::InferArgs;
use super::command_error::CommandError;
use super::environment;
use super::location::{is_s3, split_s3};
use super::plain::plain;
use super::services::Services;
use crate::adapters::fs::{DOT_FILES, FsStore, Mount};
use crate::adapters::s3::{S3Options, S3Store};
use crate::config::ObjectStoreConfig;
use crate::domain::layout::{pipeline_prefix, split_key};
use crate::domain::name::{Slug, TableName};
use crate::domain::text::counted;
use crate::engine::infer::InferOptions;
use crate::engine::infer::tables::{InputFile, TableProposal, TableProposals, tables};
use crate::ports::ObjectStore;
use crate::ports::store::{Bucket, list_all};

/// Characters of evidence in a row of the table.
const WHY_CHARS_MAX: usize = 100;

/// Files, and the store that has them.
struct Inputs {
    store: Arc<dyn ObjectStore>,
    files: Vec<InputFile>,
}

/// Prints the config, and its evidence to stderr.
///
/// # Errors
/// A path doesn't exist, the environment is invalid, or the store failed.
pub fn run(args: &InferArgs) -> Result<bool, CommandError> {
    if let Some(table) = &args.table {
        TableName::parse(table).map_err(|error| format!("--table: {error}"))?;
    }
    let found = match args.paths.iter().filter(|path| is_s3(path)).count() {
        0 => local(&args.paths)?,
        1 if args.paths.len() == 1 => remote(&args.paths[0])?,
        _ => return Err("expected one `s3://bucket/prefix`, or paths of this machine".to_owned().into()),
    };
    if found.files.is_empty() {
        return Err("no files there; expected CSVs (.csv, .csv.gz, .csv.zst)".to_owned().into());
    }
    let options = InferOptions::default();
    let proposals = tables(&*found.store, &found.files, args.table.as_deref(), &options);
    let proposals = proposals.map_err(|error| error.to_string())?;
    let failed = |error: std::io::Error| error.to_string();
    if args.json {
        let text = serde_json::to_string_pretty(&proposals).map_err(|error| error.to_string())?;
        writeln!(std::io::stdout().lock(), "{text}").map_err(failed)?;
        return Ok(!proposals.tables.is_empty());
    }
    std::io::stderr().lock().write_all(evidence(&proposals, args.table.as_deref()).as_bytes()).map_err(failed)?;
    if proposals.tables.is_empty() {
        return Ok(false);
    }
    let text = serde_json::to_string_pretty(&proposals.config).map_err(|error| error.to_string())?;
    writeln!(std::io::stdout().lock(), "{text}").map_err(failed)?;
    Ok(true)
}

/// The files of paths of this machine. Globs are relative to the given folder, or to the folder of the given files.
fn local(paths: &[PathBuf]) -> Result<Inputs, String> {
    let mut resolved = Vec::new();
    for path in paths {
        resolved.push(path.canonicalize().map_err(|error| format!("`{}`: {error}", path.display()))?);
    }
    let root = root_of(&resolved).ok_or("the paths have no folder in common")?;
    let slug = Slug::parse("local").map_err(|error| error.to_string())?;
    let prefix = pipeline_prefix(&slug);
    let mount = Mount {
        bucket: Bucket::Lake,
        prefix: prefix.clone(),
        dir: root.clone(),
        writable: false,
        hide: vec![DOT_FILES.to_owned()],
    };
    let store = FsStore::mounted(vec![mount]).map_err(|error| error.to_string())?;
    let mut relative = BTreeSet::new();
    for path in &resolved {
        let within = path.strip_prefix(&root).ok().and_then(Path::to_str);
        let within = within.ok_or_else(|| format!("`{}`: its name is not UTF-8", path.display()))?;
        if path.is_dir() {
            let folder = if within.is_empty() { prefix.clone() } else { format!("{prefix}{within}/") };
            let listed = list_all(&store, Bucket::Lake, &folder).map_err(|error| error.to_string())?;
            relative.extend(listed.into_iter().map(|meta| meta.key[prefix.len()..].to_owned()));
        } else {
            relative.insert(within.to_owned());
        }
    }
    let file = |path: String| InputFile { key: format!("{prefix}{path}"), path };
    Ok(Inputs { store: Arc::new(store), files: relative.into_iter().map(file).collect() })
}

/// The folder that contains all paths: a folder itself, or the folder of files.
fn root_of(paths: &[PathBuf]) -> Option<PathBuf> {
    let folder = |path: &PathBuf| if path.is_dir() { Some(path.clone()) } else { path.parent().map(Path::to_owned) };
    let mut folders = paths.iter().map(folder);
    let mut root = folders.next()??;
    for folder in folders {
        let folder = folder?;
        while !folder.starts_with(&root) {
            root = root.parent()?.to_owned();
        }
    }
    Some(root)
}

/// The files under `s3://bucket/prefix`, in the store that the environment names. Globs are relative to the pipeline's
/// folder, or to the prefix if it is in none.
fn remote(path: &Path) -> Result<Inputs, CommandError> {
    let (bucket, prefix) = path
        .to_str()
        .and_then(split_s3)
        .ok_or_else(|| format!("`{}`: expected `s3://bucket/prefix`", path.display()))?;
    let mut config = environment::load(None, ObjectStoreConfig::access_from_env)?;
    bucket.clone_into(&mut config.buckets.lake);
    let clock = Services::clock();
    let Some(options) = S3Options::from_config(&config, clock) else {
        return Err("OBJ_ENDPOINT_URL: it is a folder of this machine; give a path instead of `s3://…`"
            .to_owned()
            .into());
    };
    let store = S3Store::open(options).map_err(|error| format!("OBJ_ENDPOINT_URL: {error}"))?;
    let listed = list_all(&store, Bucket::Lake, prefix).map_err(|error| error.to_string())?;
    let folder = &prefix[..prefix.rfind('/').map_or(0, |at| at + 1)];
    let file = |key: String| {
        let path = match split_key(&key) {
            Some((_, path)) => path.to_owned(),
            None => key[folder.len()..].to_owned(),
        };
        InputFile { key, path }
    };
    let files = listed.into_iter().filter(|meta| !meta.key.ends_with('/')).map(|meta| file(meta.key)).collect();
    Ok(Inputs { store: Arc::new(store), files })
}

fn evidence(proposals: &TableProposals, wanted: Option<&str>) -> String {
    let mut out = String::new();
    for table in &proposals.tables {
        table_evidence(&mut out, table);
    }
    if wanted.is_some() && proposals.tables.len() > 1 {
        let _ = writeln!(out, "warning: --table names one table, but the files have {} shapes", proposals.tables.len());
    }
    for (path, reason) in &proposals.left_out {
        let _ = writeln!(out, "left out: `{}`: {}", plain(path), plain(reason));
    }
    out
}

fn table_evidence(out: &mut String, table: &TableProposal) {
    let files = if table.files == 1 { "1 file".to_owned() } else { format!("{} files", table.files) };
    let looked = match table.sampled.len() {
        sampled if sampled == table.files => String::new(),
        sampled => format!(", {sampled} of them sampled"),
    };
    let sample = &table.proposal.sample;
    let all = if sample.whole && table.sampled.len() == table.files { "all " } else { "" };
    let rows = counted(sample.rows_read, "row", "rows");
    let _ = writeln!(out, "table {}: {files}{looked}; {all}{rows} read", table.table);
    for finding in &table.proposal.findings {
        let name = serde_json::to_value(finding.item).ok();
        let name = name.as_ref().and_then(|name| name.as_str()).unwrap_or_default();
        let _ = writeln!(out, "  {name} {}: {}", plain(&finding.value.to_string()), plain(&finding.why));
    }
    for variant in &table.proposal.variants {
        let files: Vec<String> = variant.files.iter().map(|glob| format!("`{}`", plain(glob))).collect();
        let _ = writeln!(out, "  variant for {}: csv {}", files.join(", "), plain(&variant.csv.to_string()));
        for column in &variant.columns {
            let _ = writeln!(out, "    column {}", plain(&column.to_string()));
        }
    }
    let header = ["  column", "type", "null", "values", "nulls", "why"];
    let mut rows = vec![header.map(str::to_owned)];
    for column in &table.proposal.columns {
        let evidence = &column.evidence;
        rows.push([
            format!("  {}", plain(&column.name)),
            column.ty.clone(),
            if column.nullable { "yes" } else { "no" }.to_owned(),
            evidence.values.to_string(),
            evidence.nulls.to_string(),
            clipped(&plain(&evidence.why)),
        ]);
    }
    align(out, &rows);
    let of_columns = table.proposal.columns.iter().flat_map(|column| {
        column.evidence.warnings.iter().map(|warning| format!("column `{}`: {warning}", column.name))
    });
    let all = table.warnings.iter().chain(&table.proposal.warnings).cloned().chain(of_columns);
    for warning in all {
        let _ = writeln!(out, "  warning: {}", plain(&warning));
    }
}

/// Columns of text, on the left.
fn align<const N: usize>(out: &mut String, rows: &[[String; N]]) {
    let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..N).map(width).collect();
    for row in rows {
        let line: String = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}  ")).collect();
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

fn clipped(text: &str) -> String {
    match text.char_indices().nth(WHY_CHARS_MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

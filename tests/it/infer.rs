//! Proposals for CSVs: mapping, reasons, and that a run with it rejects only the reported rows.

mod dialects;
mod files;
mod join;
mod messy;
mod misfits;
mod property;
mod types;

use std::time::Duration;

use lakemill::domain::pipeline::Pipeline;
use lakemill::domain::pipeline::validate::parse;
use lakemill::engine::infer::proposal::{ColumnProposal, Item};
use lakemill::engine::infer::{InferError, InferOptions, Proposal, propose};
use lakemill::ports::ObjectStore;
use lakemill::ports::store::{Bucket, WriteOptions};

use crate::support::lake::{RunParams, Ticks, in_memory_folder, run_on};
use crate::support::memory_store::MemoryStore;

/// A generous time limit.
const GENEROUS_LIMITS: InferOptions = InferOptions { bytes_max: 64 << 20, time_max: Duration::from_secs(600) };

fn proposed(bytes: impl AsRef<[u8]>) -> Proposal {
    proposed_as("pipelines/x/t/a.csv", bytes.as_ref())
}

/// The proposal for a file. Checks that a run with it writes every sampled row except the reported ones.
fn proposed_as(key: &str, bytes: &[u8]) -> Proposal {
    let proposal = propose(key, bytes, &GENEROUS_LIMITS).unwrap_or_else(|error| panic!("{error}: {}", shown(bytes)));
    assert!(proposal.sample.whole && proposal.sample.limited_by.is_none());
    assert_eq!(proposal.sample.rows_refused, 0, "{:?}: {}", proposal.warnings, shown(bytes));
    let (rows, misfit) = (proposal.sample.rows_read, proposal.sample.rows_misfit);
    assert_eq!(proposal.sample.rows_confirmed, rows - misfit);
    let pipeline = pipeline(&proposal);
    let store = MemoryStore::new();
    store.put(Bucket::Lake, key, bytes, &WriteOptions::default()).unwrap();
    let scratch = in_memory_folder();
    let (result, _) = run_on(&store, &pipeline, &Ticks::default(), scratch.path(), RunParams::AMPLE_MEMORY);
    let result = result.unwrap_or_else(|error| panic!("{error:?}: {}\n{}", proposal.mapping(), shown(bytes)));
    let table = &result.tables[&proposal.table];
    assert_eq!((table.rows_rejected, table.rows_filtered), (misfit, 0), "{}\n{}", proposal.mapping(), shown(bytes));
    assert_eq!(table.rows_written, rows - misfit);
    let with_misfits = proposal.columns.iter().filter_map(|column| column.evidence.misfits.as_ref());
    let (most, all) = with_misfits.fold((0, 0), |(most, all), misfits| (misfits.count.max(most), all + misfits.count));
    assert!((most..=all).contains(&misfit), "{misfit} rows, and {most} to {all} cells are reported");
    assert_eq!(table.sources_read, 1, "the glob `{:?}` finds the file", proposal.files);
    proposal
}

fn pipeline(proposal: &Proposal) -> Pipeline {
    let config = proposal.config("A title");
    parse(&config.to_string()).unwrap_or_else(|problems| panic!("{config}: {problems:?}"))
}

fn refused(bytes: impl AsRef<[u8]>) -> String {
    refused_as("pipelines/x/t/a.csv", bytes.as_ref()).to_string()
}

fn refused_as(key: &str, bytes: &[u8]) -> InferError {
    propose(key, bytes, &GENEROUS_LIMITS).map(|p| p.mapping()).expect_err("it is not CSV")
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(2_000)]).into_owned()
}

/// `name:type`, with the formats if there are any.
fn columns(proposal: &Proposal) -> Vec<String> {
    let text = |c: &ColumnProposal| match c.formats.is_empty() {
        true => format!("{}:{}", c.name, c.ty),
        false => format!("{}:{}:{}", c.name, c.ty, c.formats.join("|")),
    };
    proposal.columns.iter().map(text).collect()
}

/// Checks a proposal's `csv` and its columns.
fn check(bytes: impl AsRef<[u8]>, csv: &str, expected: &[&str]) -> Proposal {
    let proposal = proposed(bytes.as_ref());
    let csv: serde_json::Value = serde_json::from_str(csv).unwrap();
    assert_eq!(
        (&proposal.csv, &columns(&proposal)[..]),
        (&csv, &expected.iter().map(|s| s.to_string()).collect::<Vec<_>>()[..]),
        "{}",
        shown(bytes.as_ref())
    );
    proposal
}

fn reason(proposal: &Proposal, item: Item) -> &str {
    let found = proposal.findings.iter().find(|finding| finding.item == item);
    found.map_or_else(|| panic!("nothing is said of {item:?}"), |finding| &finding.why)
}

fn column<'a>(proposal: &'a Proposal, name: &str) -> &'a ColumnProposal {
    proposal.columns.iter().find(|column| column.name == name).unwrap()
}

fn warned(proposal: &Proposal, what: &str) -> bool {
    let own = proposal.columns.iter().flat_map(|column| &column.evidence.warnings);
    proposal.warnings.iter().chain(own).any(|warning| warning.contains(what))
}

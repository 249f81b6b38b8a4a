//! `lakemill verify`: compares the files of a pipeline's tables with their manifests, and repairs them.

use std::collections::BTreeSet;
use std::io::Write;

use indicatif::{HumanBytes, HumanCount};
use serde_json::{Value, json};

use super::args::VerifyArgs;
use super::command_error::CommandError;
use super::pipeline_lock::with_pipeline_lock;
use super::plain::plain;
use super::services::Services;
use super::{environment, unknown};
use crate::config::OperatorConfig;
use crate::domain::job::message::TRIGGER_MANUAL;
use crate::domain::job::{Job, JobMessage};
use crate::domain::pipeline::TableFormat;
use crate::domain::table_log::root::Owner;
use crate::pipelines::tables::{
    TableError, TableFault, TableFaultKind, TableStore, Verified, mark_for_rebuild, mark_log, mark_lost, recover,
    tables, verify,
};
use crate::ports::jobs::EnqueueOutcome;
use crate::ports::store::{Bucket, Lease, WriteOptions};

/// Maximum number of lost files repaired by one call, to bound its memory.
const LOST_FILES_MAX: usize = 100_000;

/// False if a difference from the manifests was found and not repaired.
///
/// # Errors
/// The environment is invalid, the pipeline doesn't exist or is locked, or a store failed.
pub fn run(args: &VerifyArgs) -> Result<bool, CommandError> {
    let config = environment::load(args.data.as_deref(), OperatorConfig::from_env)?;
    let services = Services::open(&config.objects, &config.kv)?;
    if let Some(unknown) = unknown::message(&services, &args.pipeline).map_err(|error| error.to_string())? {
        return Err(unknown.into());
    }
    let outcome = match args.repair {
        false => verify_all(args, &services, None)?,
        true => with_pipeline_lock(&services, &args.pipeline, |lease| verify_all(args, &services, Some(lease)))?,
    };
    if outcome.to_make {
        let job_id = enqueue(args, &services, config.attempts_max)?;
        let text = format!("run {job_id} is enqueued; it rebuilds missing and changed files");
        print(args, &text, &json!({ "job_id": job_id }))?;
    }
    Ok(outcome.is_sound)
}

/// The totals of all tables.
struct Outcome {
    /// Whether all differences are resolved, or will be by the enqueued run.
    is_sound: bool,
    /// Whether a run is needed to rebuild files.
    to_make: bool,
}

/// `lease`: of the pipeline's lock, to repair; `None` only verifies.
fn verify_all(args: &VerifyArgs, services: &Services, lease: Option<&dyn Lease>) -> Result<Outcome, String> {
    let (store, slug) = (&*services.store, &args.pipeline);
    let mut outcome = Outcome { is_sound: true, to_make: false };
    for name in tables(store, slug).map_err(|error| error.to_string())? {
        let table = TableStore::new(store, slug, &name);
        let mut check = TableCheck { args, table, lease, lost: BTreeSet::new(), counts: [0; 3] };
        check.run(&mut outcome).map_err(|error| match error {
            VerifyError::Table(error) => error.to_string(),
            VerifyError::Other(message) => message,
        })?;
    }
    Ok(outcome)
}

enum VerifyError {
    Table(TableError),
    Other(String),
}

impl From<TableError> for VerifyError {
    fn from(error: TableError) -> Self {
        Self::Table(error)
    }
}

impl From<String> for VerifyError {
    fn from(message: String) -> Self {
        Self::Other(message)
    }
}

/// The verification of one table.
struct TableCheck<'a> {
    args: &'a VerifyArgs,
    table: TableStore<'a>,
    lease: Option<&'a dyn Lease>,
    /// Entries of lost files.
    lost: BTreeSet<Owner>,
    /// Missing, changed and unknown objects.
    counts: [u64; 3],
}

impl TableCheck<'_> {
    fn run(&mut self, outcome: &mut Outcome) -> Result<(), VerifyError> {
        if let Some(lease) = self.lease {
            match recover(&self.table, self.table.root()?.readable(), lease) {
                // The verification reports it as well.
                Err(error @ TableError::Log { format, .. }) => {
                    print(
                        self.args,
                        &error.to_string(),
                        &json!({ "table": self.table.table, "log": error.to_string() }),
                    )?;
                    mark_log(&self.table, format, lease)?;
                    outcome.to_make = true;
                    recover(&self.table, self.table.root()?.readable(), lease)?;
                }
                recovered => recovered?,
            }
        }
        let table = self.table;
        let verified = verify(&table, &mut |faults: &[TableFault]| self.report(faults))?;
        self.summarize(&verified)?;
        let [missing, changed, unknown] = self.counts;
        let Some(lease) = self.lease else {
            outcome.is_sound &= missing + changed + unknown == 0;
            return Ok(());
        };
        for (format, is_broken) in
            [(TableFormat::Delta, verified.is_log_broken), (TableFormat::Iceberg, verified.is_iceberg_broken)]
        {
            if is_broken {
                mark_log(&table, format, lease)?;
                outcome.to_make = true;
            }
        }
        if verified.is_broken {
            mark_for_rebuild(&table, lease)?;
            outcome.to_make = true;
        } else if !self.lost.is_empty() {
            let marked = mark_lost(table, &self.lost, lease)?;
            outcome.to_make |= marked.sources > 0;
            for key in &marked.archived {
                let text = format!(
                    "`{key}` can't be rebuilt: CSVs with its rows were removed from the lake; restore \
                 them"
                );
                print(self.args, &text, &json!({ "table": table.table, "not_repairable": key }))?;
                outcome.is_sound = false;
            }
        }
        if self.lost.len() >= LOST_FILES_MAX {
            print(self.args, "more files may be lost: repair again after the run", &json!({ "more": true }))?;
            outcome.is_sound = false;
        }
        Ok(())
    }

    fn report(&mut self, faults: &[TableFault]) -> Result<(), VerifyError> {
        for fault in faults {
            let kind = match fault.kind {
                TableFaultKind::Missing => 0,
                TableFaultKind::Changed => 1,
                TableFaultKind::Unknown => 2,
            };
            self.counts[kind] += 1;
            let found = if fault.found.is_empty() { String::new() } else { format!(": {}", fault.found) };
            let text = format!("{}  {}: {}{found}", fault.kind, fault.bucket, fault.key);
            let line = json!({
                "table": self.table.table,
                "fault": fault.kind.to_string(),
                "bucket": fault.bucket.to_string(),
                "key": fault.key,
                "found": fault.found,
            });
            print(self.args, &text, &line)?;
            if let Some(owner) = fault.owner.as_ref().filter(|_| self.lost.len() < LOST_FILES_MAX) {
                self.lost.insert(owner.clone());
            }
        }
        let Some(lease) = self.lease else { return Ok(()) };
        for bucket in [Bucket::Warehouse, Bucket::Pipelines] {
            let is_unknown = |fault: &&TableFault| fault.kind == TableFaultKind::Unknown && fault.bucket == bucket;
            let keys: Vec<String> = faults.iter().filter(is_unknown).map(|fault| fault.key.clone()).collect();
            if !keys.is_empty() {
                let deleted = self.table.store.delete(bucket, &keys, &WriteOptions::leased(lease));
                deleted.map_err(TableError::from)?;
            }
        }
        Ok(())
    }

    fn summarize(&self, verified: &Verified) -> Result<(), String> {
        let ([missing, changed, unknown], table) = (self.counts, self.table.table);
        let deleted = if self.lease.is_some() && unknown > 0 { " (deleted)" } else { "" };
        let (files, bytes) = (HumanCount(verified.files), HumanBytes(verified.bytes));
        let text = match missing + changed + unknown {
            0 => format!("table `{table}`: all files match its manifest: {files} files, {bytes}"),
            _ => format!(
                "table `{table}`: {missing} missing, {changed} changed, {unknown} unknown{deleted}; {files} files, \
                 {bytes}, match its manifest"
            ),
        };
        let line = json!({
            "table": table,
            "files": verified.files,
            "bytes": verified.bytes,
            "missing": missing,
            "changed": changed,
            "unknown": unknown,
        });
        print(self.args, &text, &line)
    }
}

fn enqueue(args: &VerifyArgs, services: &Services, attempts_max: u32) -> Result<String, CommandError> {
    let message = JobMessage::new(args.pipeline.clone(), false, TRIGGER_MANUAL, services.clock.now());
    let job = Job::queued(&message, attempts_max);
    match services.kv.enqueue(&job).map_err(|error| error.to_string())? {
        EnqueueOutcome::Queued | EnqueueOutcome::AlreadyActive => Ok(job.job_id.to_string()),
    }
}

fn print(args: &VerifyArgs, text: &str, line: &Value) -> Result<(), String> {
    let text = if args.json { line.to_string() } else { plain(text) };
    writeln!(std::io::stdout(), "{text}").map_err(|error| error.to_string())
}

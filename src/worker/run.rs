//! One attempt of a job: reads the config, then runs the pipeline.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::config;
use super::observe::Watch;
use super::shared::WorkerShared;
use crate::domain::job::message::TRIGGER_AUTO;
use crate::domain::job::{ChangedKeys, Job, JobMessage, RunError, RunErrorCode, RunResult};
use crate::domain::name::Slug;
use crate::domain::pipeline::{Mapping, Pipeline, TableFormat};
use crate::engine::convert::Resources;
use crate::engine::run::{CsvConverter, RunRequest, run as run_pipeline, stopped};
use crate::pipelines::lease::RunLease;
use crate::pipelines::tables::TableStore;
use crate::ports::Expressions;
use crate::ports::jobs::StartedJob;
use crate::runtime::threads::Instant;

/// A started job.
pub(super) struct Run<'a> {
    pub(super) shared: &'a WorkerShared,
    pub(super) start: StartedJob,
    pub(super) message: JobMessage,
    pub(super) job: Job,
    pub(super) lease: Arc<RunLease>,
    pub(super) watch: Watch,
    /// Its own, if the run has any.
    pub(super) expressions: Option<Box<dyn Expressions>>,
    pub(super) began: Instant,
}

/// Runs the pipeline.
///
/// # Errors
/// The run failed or panicked.
pub(super) fn attempt(run: &Run<'_>) -> Result<RunResult, RunError> {
    let began = Instant::now();
    let outcome =
        catch_unwind(AssertUnwindSafe(|| attempt_unguarded(run))).unwrap_or_else(|panic| Err(panicked(&*panic)));
    if let Some(expressions) = &run.expressions {
        // Its processes, which are idle now.
        expressions.cancel();
    }
    run.shared.state.count_run(began.elapsed(), &run.watch.progress_now());
    outcome.map_err(|error| match run.watch.must_stop() {
        // The expressions were ended for it.
        Err(stop) if matches!(error.code, RunErrorCode::Internal | RunErrorCode::ExpressionFailed) => stopped(stop),
        Ok(()) | Err(_) => error,
    })
}

fn attempt_unguarded(run: &Run<'_>) -> Result<RunResult, RunError> {
    let shared = run.shared;
    let expressions = run.expressions.as_deref().unwrap_or(&*shared.expressions);
    let is_dry_run = run.message.is_dry_run();
    let pipeline = match is_dry_run {
        true => config::read_of_dry_run(shared, expressions, &run.message)?,
        false => config::read(shared, expressions, &run.message.pipeline)?,
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let resources = Resources {
        threads: threads.div_ceil(shared.options.concurrency),
        memory_bytes: shared.options.run_memory_bytes,
        scratch: shared.options.scratch_dir.clone(),
    };
    let prefix = run.message.relative_prefix()?;
    let request = RunRequest {
        pipeline: &pipeline,
        job_id: run.message.job_id.as_str(),
        prefix,
        changed: &changed_keys(run, prefix),
        clean: run.message.clean_run || is_dry_run,
        dry_run: is_dry_run,
        settle: true,
        versions: &crate::engine::versions(),
        store: &*shared.store,
        expressions,
        catalog: shared.catalog.as_deref(),
        clock: &*shared.clock,
        lease: &*run.lease,
        observer: &run.watch,
        resources: &resources,
    };
    let result = run_pipeline(&request, &CsvConverter).map_err(|failure| failure.error)?;
    if !is_dry_run {
        recheck_if_behind(shared, &run.message.pipeline, &pipeline);
    }
    Ok(result)
}

/// Has the pipeline compared again, with pauses that grow, if the Iceberg catalog lacks a commit of its tables.
fn recheck_if_behind(shared: &WorkerShared, slug: &Slug, pipeline: &Pipeline) {
    if shared.catalog.is_none() {
        return;
    }
    let is_behind = |mapping: &Mapping| {
        mapping.publish.contains(&TableFormat::Iceberg)
            && TableStore::new(&*shared.store, slug, mapping.table.as_str()).needs_recovery().unwrap_or(true)
    };
    if pipeline.mappings.iter().any(is_behind)
        && let Err(error) = shared.kv.add_recheck(slug)
    {
        tracing::warn!(pipeline = %slug, %error, "adding a recheck failed; the next run commits to the Iceberg catalog");
    }
}

/// The keys named by events, for an automatic run of the whole pipeline.
fn changed_keys(run: &Run<'_>, prefix: &str) -> ChangedKeys {
    let JobMessage { job_id, clean_run, trigger, .. } = &run.message;
    if *clean_run || !prefix.is_empty() || trigger != TRIGGER_AUTO {
        return ChangedKeys::All;
    }
    let changed = run.shared.kv.changed_keys(job_id).unwrap_or_else(|error| {
        tracing::warn!(%error, "reading the changed keys failed; run compares the whole lake");
        ChangedKeys::All
    });
    match &changed {
        ChangedKeys::All => tracing::debug!("run compares the whole lake"),
        ChangedKeys::Only(keys) => tracing::debug!(keys = keys.len(), "run checks the keys of its events"),
    }
    changed
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> RunError {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned());
    RunError::new(RunErrorCode::Panicked, format!("the run panicked: {text}"))
        .detail("this is a bug in Lakemill; the worker's log shows where")
}

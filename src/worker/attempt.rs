//! One attempt: the config, then the run itself.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::config;
use super::execute::Run;
use crate::domain::job::{RunError, RunErrorCode, RunResult};
use crate::engine::convert::Resources;
use crate::engine::run::{CsvConverter, RunRequest, run as run_pipeline};
use crate::runtime::threads::Instant;

/// # Errors
/// Why it failed; a panic too.
pub(super) fn run(run: &Run<'_>) -> Result<RunResult, RunError> {
    let began = Instant::now();
    let done = catch_unwind(AssertUnwindSafe(|| attempt(run))).unwrap_or_else(|panic| Err(panicked(&*panic)));
    run.shared.state.count_run(began.elapsed(), &run.watch.progress_now());
    done
}

fn attempt(run: &Run<'_>) -> Result<RunResult, RunError> {
    let shared = run.shared;
    let own = shared.expressions.for_run();
    let expressions = own.as_deref().unwrap_or(&*shared.expressions);
    let pipeline = config::read(shared, expressions, &run.message.pipeline)?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let resources = Resources {
        threads: threads.div_ceil(shared.options.concurrency),
        memory_bytes: shared.options.run_memory_bytes,
        scratch: shared.options.scratch_dir.clone(),
    };
    let request = RunRequest {
        pipeline: &pipeline,
        job_id: run.message.job_id.as_str(),
        prefix: run.message.relative_prefix()?,
        clean: run.message.clean_run,
        dry_run: false,
        settle: true,
        versions: &crate::engine::versions(),
        store: &*shared.store,
        expressions,
        clock: &*shared.clock,
        lease: &*run.lease,
        observer: &run.watch,
        resources: &resources,
    };
    run_pipeline(&request, &CsvConverter).map_err(|failure| failure.error)
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> RunError {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned());
    RunError::new(RunErrorCode::Panicked, format!("the run panicked: {text}"))
        .detail("this is a bug of Lakemill; the worker's log has the place")
}

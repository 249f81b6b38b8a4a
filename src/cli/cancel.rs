//! `lakemill cancel`: cancels a job directly in the key-value store.

use std::io::Write;

use super::args::CancelArgs;
use super::command_error::CommandError;
use super::environment;
use super::jobs::missing_heartbeat;
use super::services::Services;
use super::warnings::warn;
use crate::config::OperatorConfig;
use crate::domain::job::JobStatus;
use crate::pipelines::history;
use crate::ports::jobs::CancelOutcome;

/// False if the job can't be cancelled (any more), with the reason on stderr.
///
/// # Errors
/// The environment is invalid, or a store failed.
pub fn run(args: &CancelArgs) -> Result<bool, CommandError> {
    let config = environment::load(args.data.as_deref(), OperatorConfig::from_env)?;
    let services = Services::open(&config.objects, &config.kv)?;
    let (pipeline, job_id) = (&args.pipeline, &args.job_id);
    let why = match services.kv.cancel(pipeline, job_id).map_err(|error| error.to_string())? {
        CancelOutcome::Requested => {
            writeln!(std::io::stdout(), "cancellation of {job_id} requested").map_err(|error| error.to_string())?;
            // The request is recorded, whether or not the job is known.
            if let Some(missing_heartbeat) =
                services.kv.job(pipeline, job_id).ok().flatten().and_then(|job| missing_heartbeat(&job))
            {
                warn(&format!("its worker doesn't respond now: {missing_heartbeat}, and cancels it then"));
            }
            return Ok(true);
        }
        CancelOutcome::TooLate => format!("{job_id} is publishing its tables and can't be cancelled any more"),
        CancelOutcome::NotActive => {
            let record = history::record(&*services.store, pipeline, job_id).map_err(|error| error.to_string())?;
            match record.map(|job| job.status) {
                Some(JobStatus::Completed) => format!("{job_id} has completed"),
                Some(_) => format!("{job_id} has failed"),
                None => format!("the pipeline `{pipeline}` has no job {job_id}; `lakemill jobs {pipeline}` shows them"),
            }
        }
    };
    let _ = writeln!(std::io::stderr(), "{why}");
    Ok(false)
}

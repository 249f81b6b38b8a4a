//! Whether the sources of a run are whole, where others write them in place.

use super::RunRequest;
use super::failure::store_error;
use crate::domain::job::{RunError, RunErrorCode};
use crate::domain::layout::pipeline_prefix;
use crate::domain::limits::UNSETTLED_WAIT_MS;
use crate::ports::store::Bucket;

/// Asks the store about each source, if the request says so. `sources`: keys relative to the pipeline's prefix.
///
/// # Errors
/// `SourceBeingWritten` for the first that somebody may still be writing.
pub(super) fn check<'k>(
    request: &RunRequest<'_>,
    table: &str,
    sources: impl IntoIterator<Item = &'k String>,
) -> Result<(), RunError> {
    if !request.settle {
        return Ok(());
    }
    let prefix = pipeline_prefix(request.slug());
    for key in sources {
        if request.store.unsettled(Bucket::Lake, &format!("{prefix}{key}")).map_err(store_error)? {
            return Err(being_written(table, key));
        }
    }
    Ok(())
}

fn being_written(table: &str, key: &str) -> RunError {
    let message = format!("table `{table}`: source `{key}` is still being written");
    RunError::new(RunErrorCode::SourceBeingWritten, message).path(key).detail(format!(
        "it changed less than {} s ago; nothing was done, and the run is tried again until the file stays as it is. To \
         have it read sooner and only whole, write it under a name that starts with a dot and rename it when it is \
         complete",
        UNSETTLED_WAIT_MS / 1_000
    ))
}

//! Deletes the records of jobs that ended long ago, with the rows that these rejected.

use chrono::TimeDelta;

use super::shared::WorkerShared;
use crate::domain::layout::{job_record_key, job_rejects_key};
use crate::domain::limits::JOB_RECORDS_KEPT;
use crate::domain::name::Slug;
use crate::pipelines::history;
use crate::ports::kv::KvError;
use crate::ports::store::{Bucket, StoreError, WriteOptions};

/// Jobs whose objects are deleted by one request: two objects each.
const BATCH: usize = 500;

#[derive(Debug, thiserror::Error)]
pub(super) enum RetentionError {
    #[error(transparent)]
    Kv(#[from] KvError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Deletes a pipeline's records that are older than `days`, except its [`JOB_RECORDS_KEPT`] newest.
pub(super) fn delete_old_records(shared: &WorkerShared, pipeline: &Slug, days: u32) -> Result<(), RetentionError> {
    let positions = history::ended(&*shared.store, pipeline, usize::MAX)?;
    let Some(oldest_kept) = positions.get(JOB_RECORDS_KEPT - 1) else { return Ok(()) };
    let limit = shared.clock.now() - TimeDelta::days(i64::from(days));
    let limit_ms = limit.timestamp_millis().min(oldest_kept.at_ms);
    let old: Vec<_> = positions.iter().skip(JOB_RECORDS_KEPT).filter(|position| position.at_ms < limit_ms).collect();
    if old.is_empty() {
        return Ok(());
    }
    // The index first: lists then name no job without a record.
    shared.kv.forget_ended(pipeline, limit_ms)?;
    for jobs in old.chunks(BATCH) {
        let ids = jobs.iter().map(|position| position.job_id.as_str());
        let keys: Vec<String> =
            ids.flat_map(|id| [job_record_key(pipeline, id), job_rejects_key(pipeline, id)]).collect();
        shared.store.delete(Bucket::Pipelines, &keys, &WriteOptions::default())?;
    }
    tracing::info!(%pipeline, records = old.len(), days, "old job records deleted");
    Ok(())
}

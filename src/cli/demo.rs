//! `--demo`: creates the sample pipeline and enqueues its first run.

use crate::domain::job::message::TRIGGER_MANUAL;
use crate::domain::job::{Job, JobMessage};
use crate::domain::layout::{config_key, dashboard_key, pipeline_prefix};
use crate::domain::name::Slug;
use crate::domain::sample::FLIGHTS;
use crate::ports::store::{Bucket, Precondition, StoreError, WriteOptions};

use super::services::Services;

/// Does nothing if the pipeline exists. `attempts_max`: the limit of the worker that will run it.
///
/// # Errors
/// A message if the store or the queue fails.
pub fn provide(services: &Services, attempts_max: u32) -> Result<(), String> {
    let slug = Slug::parse(FLIGHTS.slug).map_err(|e| e.to_string())?;
    let store = &*services.store;
    let create = WriteOptions::default().with(Precondition::IfNoneMatch);
    if store.head(Bucket::Pipelines, &config_key(&slug)).map_err(|e| e.to_string())?.is_some() {
        return Ok(());
    }
    let provide = |bucket, key: &str, content: &[u8]| match store.put(bucket, key, content, &create) {
        Ok(_) | Err(StoreError::PreconditionFailed { .. }) => Ok(()),
        Err(error) => Err(error.to_string()),
    };
    for (name, content) in FLIGHTS.files {
        provide(Bucket::Lake, &format!("{}{name}", pipeline_prefix(&slug)), content)?;
    }
    for (name, text) in FLIGHTS.dashboards {
        let name = Slug::parse(name).map_err(|e| e.to_string())?;
        provide(Bucket::Pipelines, &dashboard_key(&slug, &name), text.as_bytes())?;
    }
    // The config is written last: it makes the pipeline complete.
    provide(Bucket::Pipelines, &config_key(&slug), FLIGHTS.config.as_bytes())?;
    let message = JobMessage::new(slug, false, TRIGGER_MANUAL, services.clock.now());
    let job = Job::queued(&message, attempts_max);
    services.kv.enqueue(&job).map(drop).map_err(|e| e.to_string())
}

//! `--demo`: lays out the sample pipeline and asks for its first run.

use crate::domain::job::message::TRIGGER_MANUAL;
use crate::domain::job::{Job, JobMessage};
use crate::domain::layout::{config_key, pipeline_prefix};
use crate::domain::name::Slug;
use crate::domain::sample::FLIGHTS;
use crate::ports::store::{Bucket, Precondition, StoreError, WriteOptions};

use super::services::Services;

/// Attempts that the record of a queued job shows; the worker's own count.
const ATTEMPTS_SHOWN: u32 = 3;

/// Does nothing if the pipeline is there already.
///
/// # Errors
/// A message if the store or the queue fails.
pub fn provide(services: &Services) -> Result<(), String> {
    let slug = Slug::parse(FLIGHTS.slug).map_err(|e| e.to_string())?;
    let store = &*services.store;
    let create = WriteOptions::default().with(Precondition::IfAbsent);
    if store.head(Bucket::Pipelines, &config_key(&slug)).map_err(|e| e.to_string())?.is_some() {
        return Ok(());
    }
    for (name, content) in FLIGHTS.files {
        let key = format!("{}{name}", pipeline_prefix(&slug));
        match store.put(Bucket::Lake, &key, content, &create) {
            Ok(_) | Err(StoreError::PreconditionFailed { .. }) => {}
            Err(error) => return Err(error.to_string()),
        }
    }
    // The config last: with it the pipeline is whole.
    match store.put(Bucket::Pipelines, &config_key(&slug), FLIGHTS.config.as_bytes(), &create) {
        Ok(_) | Err(StoreError::PreconditionFailed { .. }) => {}
        Err(error) => return Err(error.to_string()),
    }
    let message = JobMessage::new(slug, false, TRIGGER_MANUAL, services.clock.now());
    let job = Job::queued(&message, ATTEMPTS_SHOWN);
    services.kv.enqueue(&job).map(drop).map_err(|e| e.to_string())
}

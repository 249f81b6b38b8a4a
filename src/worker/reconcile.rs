//! Compares the lake with what was made of it, where events may have been lost: after the key-value store lost its
//! data, and now and then where that is asked for.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::retrying::Outage;
use super::stopping::Phase;
use super::{Shared, config};
use crate::domain::job::{RunError, RunErrorCode};
use crate::domain::limits::LIST_PAGE_KEYS_MAX;
use crate::domain::name::Slug;
use crate::engine::failure::store_error;
use crate::engine::run::{Difference, difference};
use crate::ports::kv::KvError;
use crate::ports::store::Bucket;

/// How often the key-value store is asked whether it remembers.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// The differences for which a run was asked for last: one that fails again and again is not asked for again until
/// something changes.
pub(super) type Seen = BTreeMap<Slug, Difference>;

/// Looks until the worker is told to end.
pub(super) fn run(shared: &Shared) {
    let mut outage = Outage::new("comparing the lake with the tables");
    let mut seen = Seen::new();
    let mut compared: Option<Instant> = None;
    loop {
        match look(shared, &mut seen, &mut compared) {
            Ok(()) => outage.over(),
            Err(error) => outage.tell(&error),
        }
        if shared.stopping.wait_for(Phase::Drain, LOOK_EVERY) {
            return;
        }
    }
}

fn look(shared: &Shared, seen: &mut Seen, compared: &mut Option<Instant>) -> Result<(), String> {
    let remembers = shared.kv.remembers().map_err(|e| e.to_string())?;
    if !remembers {
        tracing::info!("the key-value store is new or has lost its data; every pipeline's lake is compared");
        seen.clear();
    }
    let due = shared.options.reconcile.is_some_and(|every| compared.is_none_or(|at| at.elapsed() >= every));
    if !remembers || due {
        all(shared, seen).map_err(|e| e.to_string())?;
        *compared = Some(Instant::now());
    }
    if !remembers {
        shared.kv.remember().map_err(|e| e.to_string())?;
    }
    Ok(())
}

/// Extends the window of every `auto_run` pipeline whose lake isn't what its tables are made of.
///
/// # Errors
/// What the store or the key-value store says; a pipeline that can't be compared by itself is passed over.
pub(super) fn all(shared: &Shared, seen: &mut Seen) -> Result<(), RunError> {
    let mut after = None;
    loop {
        let (prefix, limit) = ("pipelines/", LIST_PAGE_KEYS_MAX);
        let page = shared.store.list(Bucket::Pipelines, prefix, Some('/'), after.as_deref(), limit);
        let page = page.map_err(store_error)?;
        for folder in &page.prefixes {
            if shared.stopping.phase() != Phase::Working {
                return Ok(());
            }
            let name = folder.strip_prefix(prefix).map(|name| name.trim_end_matches('/'));
            if let Some(Ok(slug)) = name.map(Slug::parse) {
                one(shared, &slug, seen)?;
            }
        }
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(()),
        }
    }
}

fn one(shared: &Shared, slug: &Slug, seen: &mut Seen) -> Result<(), RunError> {
    let asked = |error: KvError| RunError::new(RunErrorCode::Internal, error.to_string());
    // A job that is on its way sees the lake as it is; after one that ends meanwhile there is a next look.
    if !config::auto_run(shared, slug) || !shared.kv.active(slug, 1).map_err(asked)?.is_empty() {
        return Ok(());
    }
    let pipeline = match config::read(shared, slug) {
        Ok(pipeline) => pipeline,
        Err(error) if error.code.is_transient() => return Err(error),
        // A run would only tell what is wrong with it.
        Err(_) => return Ok(()),
    };
    let Some(found) = difference(&*shared.store, slug, &pipeline)? else {
        seen.remove(slug);
        return Ok(());
    };
    if seen.get(slug) == Some(&found) {
        return Ok(());
    }
    tracing::info!(pipeline = %slug, "the lake is not what the tables are made of: a run is asked for");
    shared.kv.extend_windows(std::slice::from_ref(slug)).map_err(asked)?;
    seen.insert(slug.clone(), found);
    Ok(())
}

//! Cancels queries, across processes.
//!
//! Invariant: a thread polls the key-value store, only while queries of this process are registered. A query whose state
//! can't be read runs to its end.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};

use crate::domain::name::{QueryId, Slug};
use crate::http::{ApiError, ErrorCode};
use crate::ports::queries::{RegisteredQuery, RunningQueries};
use crate::sql::sandbox::CancelHandle;
use crate::web::failure::from_kv;

/// Polling interval.
const POLL_PERIOD: Duration = Duration::from_millis(250);

/// Cancels one query at any stage.
#[derive(Clone, Default)]
pub struct Cancellation(Arc<Inner>);

#[derive(Default)]
struct Inner {
    cancelled: AtomicBool,
    child: Mutex<Option<CancelHandle>>,
}

impl Cancellation {
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::SeqCst)
    }

    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::SeqCst);
        if let Some(child) = &*self.child() {
            child.cancel();
        }
    }

    /// Stops this child, too, when the query is cancelled.
    pub fn attach(&self, child: CancelHandle) {
        let mut slot = self.child();
        if self.is_cancelled() {
            child.cancel();
        }
        *slot = Some(child);
    }

    fn child(&self) -> MutexGuard<'_, Option<CancelHandle>> {
        self.0.child.lock()
    }
}

#[derive(Default)]
struct State {
    /// By token.
    queries: HashMap<String, (RegisteredQuery, Cancellation)>,
    polling: bool,
}

/// The registered queries of this process.
pub struct QueryRegistry {
    shared: Arc<Shared>,
    /// Time to live of a registration whose process died.
    ttl: Duration,
}

struct Shared {
    kv: Arc<dyn RunningQueries>,
    state: Mutex<State>,
}

/// A registered query, unregistered when dropped.
pub struct QueryAnnouncement {
    shared: Arc<Shared>,
    query: RegisteredQuery,
    pub cancellation: Cancellation,
}

impl QueryRegistry {
    pub fn new(kv: Arc<dyn RunningQueries>, ttl: Duration) -> Self {
        Self { shared: Arc::new(Shared { kv, state: Mutex::default() }), ttl }
    }

    /// Registers a query.
    ///
    /// # Errors
    /// `already_exists` if a query with that id runs, `kv_unavailable`.
    pub fn announce(&self, pipeline: &Slug, id: &QueryId) -> Result<QueryAnnouncement, ApiError> {
        let announced = self.shared.kv.register_query(pipeline, id, self.ttl).map_err(from_kv)?;
        let query = announced
            .ok_or_else(|| ApiError::new(ErrorCode::AlreadyExists, format!("a query with the id `{id}` is running")))?;
        let cancellation = Cancellation::default();
        let mut state = self.shared.state();
        state.queries.insert(query.token.clone(), (query.clone(), cancellation.clone()));
        if !state.polling {
            let shared = Arc::clone(&self.shared);
            let started =
                std::thread::Builder::new().name("query-cancellation".to_owned()).spawn(move || shared.poll());
            match started {
                Ok(_) => state.polling = true,
                Err(error) => {
                    tracing::warn!(%error, "starting thread failed; other processes can't cancel queries of this one")
                }
            }
        }
        drop(state);
        Ok(QueryAnnouncement { shared: Arc::clone(&self.shared), query, cancellation })
    }

    /// Cancels a query, whichever process runs it.
    ///
    /// # Errors
    /// `query_not_found`, `kv_unavailable`.
    pub fn cancel(&self, pipeline: &Slug, id: &QueryId) -> Result<(), ApiError> {
        if !self.shared.kv.cancel_query(pipeline, id).map_err(from_kv)? {
            return Err(ApiError::new(ErrorCode::QueryNotFound, format!("no query with the id `{id}` is running")));
        }
        let own: Vec<Cancellation> = {
            let state = self.shared.state();
            let this = |query: &RegisteredQuery| query.pipeline == *pipeline && query.id == *id;
            state
                .queries
                .values()
                .filter(|(query, _)| this(query))
                .map(|(_, cancellation)| cancellation.clone())
                .collect()
        };
        own.iter().for_each(Cancellation::cancel);
        Ok(())
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn poll(&self) {
        let mut failing = false;
        loop {
            std::thread::sleep(POLL_PERIOD);
            let known: Vec<(RegisteredQuery, Cancellation)> = {
                let mut state = self.state();
                if state.queries.is_empty() {
                    state.polling = false;
                    return;
                }
                state.queries.values().cloned().collect()
            };
            let (queries, cancellations): (Vec<_>, Vec<_>) = known.into_iter().unzip();
            match self.kv.cancelled_queries(&queries) {
                Ok(cancelled) => {
                    failing = false;
                    let cancelled = cancellations.iter().zip(cancelled).filter(|(_, cancelled)| *cancelled);
                    cancelled.for_each(|(cancellation, _)| cancellation.cancel());
                }
                Err(error) if !failing => {
                    failing = true;
                    tracing::warn!(%error, "polling for cancelled queries failed; retrying");
                }
                Err(_) => {}
            }
        }
    }
}

impl Drop for QueryAnnouncement {
    fn drop(&mut self) {
        self.shared.state().queries.remove(&self.query.token);
        if let Err(error) = self.shared.kv.unregister_query(&self.query) {
            tracing::debug!(%error, "unregistering query failed; its registration will expire");
        }
    }
}

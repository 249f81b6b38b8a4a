//! Queries of this process that others may cancel, and the one thread that looks for such wishes.
//!
//! Invariant: the key-value store is looked at only while a query is announced. A query that can't be looked up runs on
//! to its own end.

use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::domain::name::{QueryId, Slug};
use crate::http::{ApiError, ErrorCode};
use crate::ports::Kv;
use crate::ports::queries::RegisteredQuery;
use crate::sql::sandbox::CancelHandle;
use crate::web::failure::from_kv;

/// Pause between two looks for wishes.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// A way to end one query, whatever it is doing.
#[derive(Clone, Default)]
pub struct Stop(Arc<Inner>);

#[derive(Default)]
struct Inner {
    stopped: AtomicBool,
    child: Mutex<Option<CancelHandle>>,
}

impl Stop {
    pub fn is_stopped(&self) -> bool {
        self.0.stopped.load(Ordering::SeqCst)
    }

    pub fn stop(&self) {
        self.0.stopped.store(true, Ordering::SeqCst);
        if let Some(child) = &*self.child() {
            child.cancel();
        }
    }

    /// Ends this child, too, from now on.
    pub fn attach(&self, child: CancelHandle) {
        let mut slot = self.child();
        if self.is_stopped() {
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
    queries: HashMap<String, (RegisteredQuery, Stop)>,
    looking: bool,
}

/// See the module.
pub struct Running {
    shared: Arc<Shared>,
    /// After which a query whose process died is forgotten.
    life: Duration,
}

struct Shared {
    kv: Arc<dyn Kv>,
    state: Mutex<State>,
}

/// A query that is announced; it is retired when dropped.
pub struct Ticket {
    shared: Arc<Shared>,
    query: RegisteredQuery,
    pub stop: Stop,
}

impl Running {
    pub fn new(kv: Arc<dyn Kv>, life: Duration) -> Self {
        Self { shared: Arc::new(Shared { kv, state: Mutex::default() }), life }
    }

    /// Makes a query known.
    ///
    /// # Errors
    /// `already_exists` if one of that id runs, `kv_unavailable`.
    pub fn announce(&self, pipeline: &Slug, id: &QueryId) -> Result<Ticket, ApiError> {
        let announced = self.shared.kv.register_query(pipeline, id, self.life).map_err(from_kv)?;
        let query = announced
            .ok_or_else(|| ApiError::new(ErrorCode::AlreadyExists, format!("a query with the id `{id}` is running")))?;
        let stop = Stop::default();
        let mut state = self.shared.state();
        state.queries.insert(query.token.clone(), (query.clone(), stop.clone()));
        if !state.looking {
            let shared = Arc::clone(&self.shared);
            let started = std::thread::Builder::new().name("query-wishes".to_owned()).spawn(move || shared.look());
            match started {
                Ok(_) => state.looking = true,
                Err(error) => tracing::warn!(%error, "queries of this process can't be cancelled by others"),
            }
        }
        drop(state);
        Ok(Ticket { shared: Arc::clone(&self.shared), query, stop })
    }

    /// Wishes the end of a query, wherever it runs.
    ///
    /// # Errors
    /// `query_not_found`, `kv_unavailable`.
    pub fn cancel(&self, pipeline: &Slug, id: &QueryId) -> Result<(), ApiError> {
        if !self.shared.kv.cancel_query(pipeline, id).map_err(from_kv)? {
            return Err(ApiError::new(ErrorCode::QueryNotFound, format!("no query with the id `{id}` is running")));
        }
        let own: Vec<Stop> = {
            let state = self.shared.state();
            let this = |query: &RegisteredQuery| query.pipeline == *pipeline && query.id == *id;
            state.queries.values().filter(|(query, _)| this(query)).map(|(_, stop)| stop.clone()).collect()
        };
        own.iter().for_each(Stop::stop);
        Ok(())
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn look(&self) {
        let mut failing = false;
        loop {
            std::thread::sleep(LOOK_EVERY);
            let known: Vec<(RegisteredQuery, Stop)> = {
                let mut state = self.state();
                if state.queries.is_empty() {
                    state.looking = false;
                    return;
                }
                state.queries.values().cloned().collect()
            };
            let (queries, stops): (Vec<_>, Vec<_>) = known.into_iter().unzip();
            match self.kv.cancelled_queries(&queries) {
                Ok(wished) => {
                    failing = false;
                    let wished = stops.iter().zip(wished).filter(|(_, wished)| *wished);
                    wished.for_each(|(stop, _)| stop.stop());
                }
                Err(error) if !failing => {
                    failing = true;
                    tracing::warn!(%error, "whether queries are to be cancelled can't be told");
                }
                Err(_) => {}
            }
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.shared.state().queries.remove(&self.query.token);
        if let Err(error) = self.shared.kv.unregister_query(&self.query) {
            tracing::debug!(%error, "a query that has ended stays known until its life is over");
        }
    }
}

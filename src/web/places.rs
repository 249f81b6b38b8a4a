//! A bound on what is done at a time in this process, for work that is dear or may be slow.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::http::{ApiError, ErrorCode};

/// When a client that found the service busy should come again.
pub const RETRY_AFTER: Duration = Duration::from_secs(2);

/// So many places, none of which is waited for.
#[derive(Debug, Clone)]
pub struct Places {
    taken: Arc<AtomicUsize>,
    max: usize,
}

/// One that is taken, given back when dropped.
#[derive(Debug)]
pub struct Place(Arc<AtomicUsize>);

impl Places {
    pub fn new(max: usize) -> Self {
        Self { taken: Arc::default(), max }
    }

    /// `None` if all are taken.
    pub fn take(&self) -> Option<Place> {
        let next = |taken: usize| (taken < self.max).then_some(taken + 1);
        let found = self.taken.fetch_update(Ordering::SeqCst, Ordering::SeqCst, next);
        found.is_ok().then(|| Place(Arc::clone(&self.taken)))
    }

    /// As [`Places::take`], for a request that ends where there is none.
    ///
    /// # Errors
    /// `overloaded`.
    pub fn enter(&self) -> Result<Place, ApiError> {
        self.take().ok_or_else(|| {
            let cause = format!("all {} places are taken", self.max);
            ApiError::caused(ErrorCode::Overloaded, cause).with_retry_after(RETRY_AFTER)
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_few_and_come_back() {
        let places = Places::new(2);
        let (one, _two) = (places.take().unwrap(), places.take().unwrap());
        assert!(places.take().is_none() && places.take().is_none());
        drop(one);
        assert!(places.take().is_some());
    }

    #[test]
    fn a_place_is_free_once_it_is_given_back() {
        let places = Places::new(2);
        let (one, _two) = (places.enter().ok().unwrap(), places.enter().ok().unwrap());
        assert_eq!(places.enter().err().unwrap().code(), ErrorCode::Overloaded);
        drop(one);
        assert!(places.enter().is_ok());
    }
}

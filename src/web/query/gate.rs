//! How much of what is dear or slow may go on at a time in this process.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::http::{ApiError, ErrorCode};

/// When a client that found the service busy should come again.
pub const RETRY_AFTER: Duration = Duration::from_secs(2);

/// Places that are taken and given back.
#[derive(Clone)]
pub struct Gate {
    taken: Arc<AtomicUsize>,
    places: usize,
}

/// A place; given back when dropped.
pub struct Place(Arc<AtomicUsize>);

impl Gate {
    pub fn new(places: usize) -> Self {
        Self { taken: Arc::default(), places }
    }

    /// Takes a place at once.
    ///
    /// # Errors
    /// `overloaded` if there is none.
    pub fn enter(&self) -> Result<Place, ApiError> {
        let next = |taken: usize| (taken < self.places).then_some(taken + 1);
        match self.taken.fetch_update(Ordering::SeqCst, Ordering::SeqCst, next) {
            Ok(_) => Ok(Place(Arc::clone(&self.taken))),
            Err(_) => {
                let cause = format!("all {} places are taken", self.places);
                Err(ApiError::caused(ErrorCode::Overloaded, cause).with_retry_after(RETRY_AFTER))
            }
        }
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
    fn a_place_is_free_once_it_is_given_back() {
        let gate = Gate::new(2);
        let (one, _two) = (gate.enter().ok().unwrap(), gate.enter().ok().unwrap());
        assert_eq!(gate.enter().err().unwrap().code(), ErrorCode::Overloaded);
        drop(one);
        assert!(gate.enter().is_ok());
    }
}

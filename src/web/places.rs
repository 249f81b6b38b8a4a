//! A bound on what is done at a time in this process, for work that is dear or may be slow.

use std::sync::atomic::{AtomicUsize, Ordering};

/// So many places, none of which is waited for.
#[derive(Debug)]
pub struct Places {
    max: usize,
    taken: AtomicUsize,
}

/// One that is taken, given back when dropped.
#[derive(Debug)]
pub struct Place<'a>(&'a AtomicUsize);

impl Places {
    pub const fn new(max: usize) -> Self {
        Self { max, taken: AtomicUsize::new(0) }
    }

    /// `None` if all are taken.
    pub fn take(&self) -> Option<Place<'_>> {
        let place = Place(&self.taken);
        (self.taken.fetch_add(1, Ordering::Relaxed) < self.max).then_some(place)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
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
}

//! The pauses between attempts.

use std::time::Duration;

/// Pauses that double from `min` up to `max`.
#[derive(Debug, Clone)]
pub struct Backoff {
    min: Duration,
    max: Duration,
    next: Duration,
}

impl Backoff {
    pub const fn new(min: Duration, max: Duration) -> Self {
        Self { min, max, next: min }
    }

    /// The next pause.
    pub fn next_pause(&mut self) -> Duration {
        let pause = self.next;
        self.next = (pause * 2).min(self.max);
        pause
    }

    /// Starts over, after a success.
    pub fn reset(&mut self) {
        self.next = self.min;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_maximum_until_reset() {
        let ms = Duration::from_millis;
        let mut backoff = Backoff::new(ms(5), ms(15));
        assert_eq!([(); 4].map(|()| backoff.next_pause()), [ms(5), ms(10), ms(15), ms(15)]);
        backoff.reset();
        assert_eq!(backoff.next_pause(), ms(5));
    }
}

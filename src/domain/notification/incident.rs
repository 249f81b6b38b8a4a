//! When a notification of a condition is sent: at once, later, again, or not at all.
//!
//! A condition that begins sends a notification at once. While it lasts, the notification is repeated after a pause that
//! doubles each time. If the condition ended and begins again within the pause, the next one is scheduled for the pause's
//! end, and withdrawn if the condition ends before. So a pipeline that fails every minute, or fails and recovers in turn,
//! sends a few notifications a day, and a failure that stays always sends one.

use serde::{Deserialize, Serialize};

/// The pauses between two notifications of a condition, in ms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pauses {
    pub first_ms: i64,
    /// It doubles up to this.
    pub max_ms: i64,
}

/// A notification that is due later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scheduled {
    pub id: String,
    pub due_ms: i64,
}

/// The state of a condition.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Incident {
    /// Whether the condition holds.
    pub raised: bool,
    /// Whether a notification was sent since it was raised.
    pub is_sent: bool,
    /// No notification is sent before.
    next_ms: i64,
    /// The last pause; 0: none yet.
    pause_ms: i64,
    scheduled: Option<Scheduled>,
    /// Occurrences since the last notification.
    repeats: u64,
    /// The fence of the last run that was judged: runs that end late must not change a newer verdict.
    pub fence: u64,
    /// The subject of the condition, if it can change: the columns of a drift.
    pub subject: Vec<String>,
}

/// When to send the notification of an occurrence, and which pending one to withdraw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SendPlan {
    /// The id of the scheduled notification that it replaces.
    pub replaces: Option<String>,
    pub due_ms: i64,
    pub repeats: u64,
}

/// The end of a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// The id of a scheduled notification that must not be sent.
    pub withdrawn: Option<String>,
    /// Whether a notification of the condition was sent, so that one of its end should be.
    pub was_sent: bool,
}

impl Incident {
    /// The condition occurs at `now_ms`. The caller sets the notification's id with [`Incident::scheduled_as`] if it is due
    /// later.
    pub fn raise(&mut self, now_ms: i64, pauses: Pauses) -> SendPlan {
        self.mark_due_as_sent(now_ms, pauses);
        if !self.raised {
            (self.raised, self.is_sent, self.repeats) = (true, false, 0);
            if now_ms >= self.next_ms.saturating_add(self.pause_ms) {
                self.pause_ms = 0;
            }
        }
        if now_ms >= self.next_ms {
            let plan = SendPlan { replaces: None, due_ms: now_ms, repeats: self.repeats };
            self.sent_at(now_ms, pauses);
            return plan;
        }
        let replaces = self.scheduled.as_ref().map(|scheduled| scheduled.id.clone());
        let plan = SendPlan { replaces, due_ms: self.next_ms, repeats: self.repeats };
        self.repeats += 1;
        plan
    }

    /// Records the id of a notification that [`Incident::raise`] made due later.
    pub fn scheduled_as(&mut self, id: &str, due_ms: i64) {
        self.scheduled = Some(Scheduled { id: id.to_owned(), due_ms });
    }

    /// The condition is over; `None` if it didn't hold.
    pub fn end(&mut self, now_ms: i64, pauses: Pauses) -> Option<Ended> {
        self.mark_due_as_sent(now_ms, pauses);
        if !self.raised {
            return None;
        }
        let ended = Ended { withdrawn: self.scheduled.take().map(|scheduled| scheduled.id), was_sent: self.is_sent };
        (self.raised, self.is_sent, self.repeats) = (false, false, 0);
        Some(ended)
    }

    /// A scheduled notification that is due counts as sent.
    fn mark_due_as_sent(&mut self, now_ms: i64, pauses: Pauses) {
        if let Some(scheduled) = self.scheduled.take_if(|scheduled| now_ms >= scheduled.due_ms) {
            self.sent_at(scheduled.due_ms, pauses);
        }
    }

    fn sent_at(&mut self, at_ms: i64, pauses: Pauses) {
        self.pause_ms = match self.pause_ms {
            0 => pauses.first_ms,
            pause => pause.saturating_mul(2).min(pauses.max_ms),
        };
        self.next_ms = at_ms.saturating_add(self.pause_ms);
        (self.is_sent, self.repeats) = (true, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: i64 = 60_000;
    const PAUSES: Pauses = Pauses { first_ms: 15 * MINUTE, max_ms: 1_440 * MINUTE };

    /// The minutes at which something is sent, with its repeats, while `occurs` says what happens each minute.
    fn sent(minutes: i64, occurs: impl Fn(i64) -> bool) -> (Vec<(i64, u64)>, Vec<i64>) {
        let (mut incident, mut pending) = (Incident::default(), None::<(String, i64, u64)>);
        let (mut raised, mut recovered) = (Vec::new(), Vec::new());
        for minute in 1..=minutes {
            let now = minute * MINUTE;
            if let Some((_, due, repeats)) = pending.take_if(|(_, due, _)| *due <= now) {
                raised.push((due / MINUTE, repeats));
            }
            if occurs(minute) {
                let plan = incident.raise(now, PAUSES);
                if plan.due_ms <= now {
                    raised.push((minute, plan.repeats));
                } else {
                    let id = plan.replaces.unwrap_or_else(|| format!("n{minute}"));
                    incident.scheduled_as(&id, plan.due_ms);
                    pending = Some((id, plan.due_ms, plan.repeats));
                }
            } else if let Some(ended) = incident.end(now, PAUSES) {
                assert_eq!(ended.withdrawn, pending.take().map(|(id, ..)| id));
                recovered.extend(ended.was_sent.then_some(minute));
            }
        }
        (raised, recovered)
    }

    #[test]
    fn condition_that_lasts_is_repeated_after_growing_pauses() {
        let (raised, recovered) = sent(3_000, |_| true);
        let minutes: Vec<i64> = raised.iter().map(|(minute, _)| *minute).collect();
        assert_eq!(minutes, [1, 16, 46, 106, 226, 466, 946, 1_906]);
        assert!(recovered.is_empty(), "{recovered:?}");
        assert!(raised[1].1 >= 12 && raised[2].1 >= 27, "the repeats since the last one: {raised:?}");
    }

    #[test]
    fn end_is_notified_once_and_only_if_the_beginning_was() {
        let (raised, recovered) = sent(100, |minute| minute == 3 || minute == 10);
        assert_eq!(raised, [(3, 0)], "the second one ended before its pause did");
        assert_eq!(recovered, [4]);
    }

    #[test]
    fn persistent_failure_is_notified_without_further_occurrences() {
        let (mut incident, minute) = (Incident::default(), MINUTE);
        incident.raise(minute, PAUSES);
        incident.end(2 * minute, PAUSES).unwrap();
        let again = incident.raise(3 * minute, PAUSES);
        assert_eq!((again.due_ms, again.replaces), (16 * minute, None));
        incident.scheduled_as("n", again.due_ms);
        assert!(incident.end(17 * minute, PAUSES).unwrap().was_sent, "it was sent at minute 16");
    }

    #[test]
    fn flapping_condition_is_notified_seldom() {
        let (raised, recovered) = sent(2_880, |minute| minute % 2 == 1);
        assert!(raised.len() + recovered.len() <= 20, "{raised:?} {recovered:?}");
    }

    #[test]
    fn pause_resets_after_a_long_quiet_time() {
        let mut incident = Incident::default();
        for minute in 1..=60 {
            incident.raise(minute * MINUTE, PAUSES);
        }
        incident.end(61 * MINUTE, PAUSES).unwrap();
        assert_eq!(incident.raise(5_000 * MINUTE, PAUSES).due_ms, 5_000 * MINUTE);
        assert_eq!(incident.raise(5_001 * MINUTE, PAUSES).due_ms, 5_015 * MINUTE);
    }

    #[test]
    fn state_round_trips() {
        let mut incident = Incident { fence: u64::MAX, subject: vec!["a".into()], ..Incident::default() };
        incident.raise(1, PAUSES);
        incident.raise(2, PAUSES);
        incident.scheduled_as("n", 3);
        let text = serde_json::to_string(&incident).unwrap();
        assert_eq!(serde_json::from_str::<Incident>(&text).unwrap(), incident);
        assert_eq!(serde_json::from_str::<Incident>("{}").unwrap(), Incident::default());
    }
}

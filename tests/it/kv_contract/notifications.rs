//! Pending notifications, and the conditions that caused them.

use lakemill::domain::limits::{INCIDENT_TTL_MS, NOTIFICATIONS_MAX};
use lakemill::domain::notification::{
    Delivery, DeliveryState, Notification, NotificationEvent, TargetKind, TargetName,
};
use lakemill::ports::notifications::{AfterDelivery, ChangeOutcome, ClaimedNotification, IncidentChange};

use super::racing::race;
use super::{Fixture, seconds};

fn new(f: &Fixture, title: &str) -> Notification {
    Notification::new(NotificationEvent::RunFailed, f.now(), title, "a \"text\" with é")
}

fn add(f: &Fixture, title: &str) -> Notification {
    let notification = new(f, title);
    assert!(f.kv.add_notification(&notification).unwrap());
    notification
}

fn claim(f: &Fixture) -> Vec<ClaimedNotification> {
    f.kv.claim_notifications(10, seconds(60)).unwrap()
}

fn titles(claimed: &[ClaimedNotification]) -> Vec<&str> {
    claimed.iter().map(|claim| claim.notification.title.as_str()).collect()
}

fn target(id: &str) -> TargetName {
    TargetName { id: id.into(), kind: TargetKind::Slack, host: "h".into() }
}

fn sent(id: &str) -> Delivery {
    Delivery { state: DeliveryState::Sent, attempts: 1, ..Delivery::pending(target(id)) }
}

/// A change from `expected` to `state`, with a notification that is due after this many seconds.
fn change(
    f: &Fixture,
    expected: Option<&str>,
    state: &str,
    add: Option<(&Notification, u64)>,
    withdraw: Option<&str>,
) -> ChangeOutcome {
    let now = f.kv.incident("c").unwrap().now;
    let add = add.map(|(notification, after)| (notification, now + seconds(after)));
    f.kv.change_incident(&IncidentChange { key: "c", expected, state, add, withdraw }).unwrap()
}

fn state(f: &Fixture) -> Option<String> {
    f.kv.incident("c").unwrap().state
}

pub fn due_notification_is_claimed_by_one_process(f: &Fixture) {
    assert_eq!(claim(f), []);
    let (one, two) = (add(f, "one"), add(f, "two"));
    let other = f.open();
    let first = other.claim_notifications(1, seconds(60)).unwrap();
    let second = claim(f);
    let mut both = [titles(&first), titles(&second)].concat();
    both.sort_unstable();
    assert_eq!(both, ["one", "two"]);
    assert_eq!(claim(f), []);
    let found = first.iter().chain(&second).map(|claim| &claim.notification);
    assert!(found.clone().any(|found| *found == one) && found.clone().any(|found| *found == two));
    assert!(first[0].deliveries.is_empty() && first[0].token != second[0].token);
}

pub fn claimed_notification_is_due_again_after_its_claim(f: &Fixture) {
    add(f, "one");
    let lost = claim(f).remove(0);
    f.kv.record_deliveries(&lost, &[sent("a")], AfterDelivery::Continue).unwrap();
    f.advance(seconds(50));
    assert_eq!(claim(f), [], "the claim lasts");
    f.advance(seconds(12));
    let again = claim(f);
    assert_eq!(titles(&again), ["one"]);
    assert_eq!(again[0].deliveries, [sent("a")], "what the dead process has delivered is known");
    let then = AfterDelivery::Retry(seconds(30));
    assert!(f.kv.record_deliveries(&again[0], &[sent("a"), Delivery::pending(target("b"))], then).unwrap());
    f.advance(seconds(28));
    assert_eq!(claim(f), []);
    f.advance(seconds(4));
    let last = claim(f).remove(0);
    assert!(f.kv.record_deliveries(&last, &[sent("a"), sent("b")], AfterDelivery::Done).unwrap());
    f.advance(seconds(1_000));
    assert_eq!(claim(f), []);
}

pub fn deliveries_are_recorded_by_the_latest_claim(f: &Fixture) {
    add(f, "one");
    let lost = claim(f).remove(0);
    f.advance(seconds(62));
    let held = f.open().claim_notifications(1, seconds(60)).unwrap().remove(0);
    assert!(!f.kv.record_deliveries(&lost, &[sent("late")], AfterDelivery::Done).unwrap());
    assert!(f.kv.record_deliveries(&held, &[sent("a")], AfterDelivery::Done).unwrap());
    assert!(!f.kv.record_deliveries(&lost, &[sent("late")], AfterDelivery::Continue).unwrap());
    let listed = f.kv.notifications(None, 10).unwrap();
    assert_eq!((listed[0].deliveries.as_slice(), listed[0].due_at), ([sent("a")].as_slice(), None));
}

pub fn condition_changes_with_its_notification_or_not_at_all(f: &Fixture) {
    assert_eq!(state(f), None);
    let one = new(f, "one");
    assert_eq!(change(f, Some("other"), "first", Some((&one, 0)), None), ChangeOutcome::Conflict);
    assert_eq!((state(f), claim(f)), (None, Vec::new()));
    assert_eq!(change(f, None, "first", Some((&one, 0)), None), ChangeOutcome::Changed);
    assert_eq!(state(f).as_deref(), Some("first"));
    assert_eq!(change(f, None, "second", Some((&new(f, "two"), 0)), None), ChangeOutcome::Conflict);
    assert_eq!(change(f, Some("first"), "third", None, None), ChangeOutcome::Changed);
    assert_eq!(titles(&claim(f)), ["one"]);
    assert_eq!(f.open().incident("c").unwrap().state.as_deref(), Some("third"));
    assert_eq!(f.kv.incident("another").unwrap().state, None);
}

pub fn one_of_many_changes_of_a_condition_wins(f: &Fixture) {
    let outcomes = race(f, 8, |n, kv| {
        let notification = new(f, &format!("n{n}"));
        let state = format!("state {n}");
        let add = Some((&notification, f.now()));
        kv.change_incident(&IncidentChange { key: "c", expected: None, state: &state, add, withdraw: None }).unwrap()
    });
    let won = outcomes.iter().filter(|outcome| **outcome == ChangeOutcome::Changed).count();
    assert_eq!((won, f.kv.notifications(None, 100).unwrap().len()), (1, 1));
}

pub fn scheduled_notification_can_be_replaced_and_withdrawn_until_it_is_claimed(f: &Fixture) {
    let one = new(f, "one");
    change(f, None, "1", Some((&one, 100)), None);
    assert_eq!(claim(f), [], "it is not due");
    let newer = Notification { title: "newer".into(), ..one.clone() };
    change(f, Some("1"), "2", Some((&newer, 100)), None);
    assert_eq!(f.kv.notifications(None, 10).unwrap().len(), 1);
    f.advance(seconds(102));
    assert_eq!(titles(&claim(f)), ["newer"]);
    change(f, Some("2"), "3", Some((&Notification { title: "too late".into(), ..one.clone() }, 0)), None);
    change(f, Some("3"), "4", None, Some(&one.id));
    let listed = f.kv.notifications(None, 10).unwrap();
    assert_eq!(listed.iter().map(|one| one.notification.title.as_str()).collect::<Vec<_>>(), ["newer"]);
    assert_eq!(claim(f), []);

    let two = new(f, "two");
    change(f, Some("4"), "5", Some((&two, 100)), None);
    change(f, Some("5"), "6", None, Some(&two.id));
    f.advance(seconds(102));
    assert!(!titles(&claim(f)).contains(&"two"), "it was withdrawn");
}

pub fn notifications_are_bounded_and_pending_ones_stay(f: &Fixture) {
    f.backend.stop();
    let first = add(f, "first");
    let held = claim(f).remove(0);
    assert!(f.kv.record_deliveries(&held, &[sent("a")], AfterDelivery::Done).unwrap());
    for n in 1..NOTIFICATIONS_MAX {
        add(f, &format!("n{n}"));
    }
    add(f, "takes the place of the first");
    assert!(!f.kv.add_notification(&new(f, "one too many")).unwrap(), "all are pending");
    let refused = new(f, "one too many");
    assert_eq!(change(f, None, "state", Some((&refused, 0)), None), ChangeOutcome::Full);
    assert_eq!(state(f), None);
    let all = f.kv.notifications(None, 2 * NOTIFICATIONS_MAX).unwrap();
    assert_eq!(all.len(), NOTIFICATIONS_MAX);
    assert!(all.iter().all(|one| one.notification.id != first.id));
}

pub fn notifications_are_listed_newest_first(f: &Fixture) {
    assert_eq!(f.kv.notifications(None, 10).unwrap(), []);
    let ids: Vec<String> = (0..5).map(|n| add(f, &format!("n{n}")).id).collect();
    let page = |before: Option<&str>| -> Vec<String> {
        f.kv.notifications(before, 2).unwrap().into_iter().map(|one| one.notification.id).collect()
    };
    let first = page(None);
    let second = page(Some(&first[1]));
    let third = page(Some(&second[1]));
    let mut newest: Vec<String> = ids.into_iter().rev().collect();
    newest.sort_unstable_by(|a, b| b.cmp(a));
    assert_eq!([first, second, third].concat(), newest);
    assert_eq!(page(Some(&newest[4])), Vec::<String>::new());
    assert!(f.kv.notifications(None, 1).unwrap()[0].due_at.is_some(), "it is pending");
}

pub fn condition_is_forgotten_after_ninety_days(f: &Fixture) {
    change(f, None, "state", None, None);
    f.advance(seconds(INCIDENT_TTL_MS / 1_000 - 60));
    assert_eq!(state(f).as_deref(), Some("state"));
    change(f, Some("state"), "newer", None, None);
    f.advance(seconds(INCIDENT_TTL_MS / 1_000 - 60));
    assert_eq!(state(f).as_deref(), Some("newer"));
    f.advance(seconds(120));
    assert_eq!(state(f), None);
    assert_eq!(change(f, None, "again", None, None), ChangeOutcome::Changed);
}

pub fn names_of_targets_expire(f: &Fixture) {
    assert_eq!(f.kv.notification_targets().unwrap(), []);
    f.kv.set_notification_targets(&[target("a"), target("b")], seconds(60)).unwrap();
    f.open().set_notification_targets(&[target("b")], seconds(60)).unwrap();
    f.advance(seconds(50));
    assert_eq!(f.kv.notification_targets().unwrap(), [target("b")]);
    f.advance(seconds(12));
    assert_eq!(f.kv.notification_targets().unwrap(), []);
}

//! Sessions end by idle timeout, age and logout; logins are throttled by address.

use std::time::Duration;

use chrono::TimeDelta;

use lakemill::domain::login::LoginScopes;
use lakemill::ports::sessions::Admission;

use super::{Fixture, seconds};

const DAY: Duration = Duration::from_secs(86_400);
const TWO_HOURS: Duration = Duration::from_secs(7_200);

pub fn session_ends_after_idling(f: &Fixture) {
    assert_eq!(f.kv.touch("aa", TWO_HOURS).unwrap(), None);
    let before = f.now();
    let session = f.kv.open("aa", TWO_HOURS, DAY).unwrap();
    assert!(session.created_at >= before - TimeDelta::seconds(1) && session.created_at <= f.now());
    assert_eq!(session.ends_at - session.created_at, TimeDelta::days(1));
    assert_eq!(f.open().touch("aa", TWO_HOURS).unwrap(), Some(session));
    for _ in 0..3 {
        f.advance(seconds(7_100));
        assert!(f.kv.touch("aa", TWO_HOURS).unwrap().is_some());
    }
    f.advance(seconds(7_300));
    assert_eq!(f.kv.touch("aa", TWO_HOURS).unwrap(), None);
    assert_eq!(f.kv.touch("aa", TWO_HOURS).unwrap(), None, "a touch brings nothing back");
}

pub fn session_ends_at_its_maximum_age(f: &Fixture) {
    f.kv.open("aa", TWO_HOURS, seconds(20_000)).unwrap();
    for _ in 0..3 {
        f.advance(seconds(6_000));
        assert!(f.kv.touch("aa", TWO_HOURS).unwrap().is_some());
    }
    f.advance(seconds(2_100));
    assert_eq!(f.kv.touch("aa", TWO_HOURS).unwrap(), None);
}

pub fn session_age_limits_its_idle_time(f: &Fixture) {
    f.kv.open("aa", DAY, TWO_HOURS).unwrap();
    f.advance(seconds(7_100));
    assert!(f.kv.touch("aa", DAY).unwrap().is_some());
    f.advance(seconds(200));
    assert_eq!(f.kv.touch("aa", DAY).unwrap(), None);
}

pub fn closing_a_session_keeps_others(f: &Fixture) {
    f.kv.open("aa", TWO_HOURS, DAY).unwrap();
    f.kv.open("bb", TWO_HOURS, DAY).unwrap();
    f.kv.close("aa").unwrap();
    f.kv.close("aa").unwrap();
    f.kv.close("unknown").unwrap();
    assert_eq!(f.kv.touch("aa", TWO_HOURS).unwrap(), None);
    assert!(f.kv.touch("bb", TWO_HOURS).unwrap().is_some());
    f.kv.open("aa", TWO_HOURS, DAY).unwrap();
    assert!(f.kv.touch("aa", TWO_HOURS).unwrap().is_some());
}

fn client(address: &str) -> LoginScopes {
    LoginScopes::of(address.parse().unwrap())
}

/// Uses up the failures that an address has without a delay.
fn use_up(f: &Fixture, address: &str) {
    for _ in 0..5 {
        assert_eq!(f.kv.admit(&client(address)).unwrap(), Admission::Allowed);
    }
}

/// The address must wait about this long; then it may try.
fn waits(f: &Fixture, address: &str, expected: u64) {
    let Admission::Wait(wait) = f.kv.admit(&client(address)).unwrap() else {
        panic!("expected a wait of {expected} s")
    };
    assert!(wait <= seconds(expected) && wait + seconds(3) > seconds(expected), "{wait:?}, expected {expected} s");
    f.advance(seconds(expected - 3));
    assert!(matches!(f.kv.admit(&client(address)).unwrap(), Admission::Wait(_)), "a try too early");
    f.advance(seconds(4));
    assert_eq!(f.kv.admit(&client(address)).unwrap(), Admission::Allowed, "after {expected} s");
}

pub fn login_waits_double_from_fifteen_seconds_to_fifteen_minutes(f: &Fixture) {
    use_up(f, "192.0.2.1");
    for expected in [15, 30, 60, 120, 240, 480, 900, 900, 900] {
        waits(f, "192.0.2.1", expected);
    }
}

pub fn login_failures_count_per_address(f: &Fixture) {
    use_up(f, "192.0.2.1");
    assert!(matches!(f.open().admit(&client("192.0.2.1")).unwrap(), Admission::Wait(_)));
    use_up(f, "2001:db8::1");
    assert!(matches!(f.kv.admit(&client("2001:db8::1")).unwrap(), Admission::Wait(_)));
}

pub fn successful_login_clears_failures(f: &Fixture) {
    f.kv.record_success(&client("192.0.2.1")).unwrap();
    for _ in 0..3 {
        for _ in 0..4 {
            assert_eq!(f.kv.admit(&client("192.0.2.1")).unwrap(), Admission::Allowed);
        }
        f.kv.record_success(&client("192.0.2.1")).unwrap();
    }
    use_up(f, "192.0.2.1");
    waits(f, "192.0.2.1", 15);
}

pub fn login_failures_expire_after_an_hour(f: &Fixture) {
    for _ in 0..4 {
        f.kv.admit(&client("192.0.2.1")).unwrap();
    }
    f.advance(seconds(3_400));
    assert_eq!(f.kv.admit(&client("192.0.2.1")).unwrap(), Admission::Allowed);
    assert!(
        matches!(f.kv.admit(&client("192.0.2.1")).unwrap(), Admission::Wait(_)),
        "the hour counts from the last one"
    );
    f.advance(seconds(3_700));
    use_up(f, "192.0.2.1");
    waits(f, "192.0.2.1", 15);
}

/// Fails once from each address of `network` (its text up to the last group), until one is throttled; returns the
/// number of failures.
fn failures_until_a_wait(f: &Fixture, address_of: impl Fn(usize) -> String, most: usize) -> usize {
    (0..most).take_while(|nth| f.kv.admit(&client(&address_of(*nth))).unwrap() == Admission::Allowed).count()
}

pub fn ipv6_networks_share_login_waits(f: &Fixture) {
    // Each from another /64 of one /56.
    assert_eq!(failures_until_a_wait(f, |nth| format!("2001:db8:0:{nth:x}::1"), 256), 10);
    assert!(matches!(f.kv.admit(&client("2001:db8:0:ff::1")).unwrap(), Admission::Wait(_)));
    // Each from another /56 of the same /48, which has those ten failures already.
    assert_eq!(failures_until_a_wait(f, |nth| format!("2001:db8:0:{:x}00::1", nth + 1), 255), 10);
    assert_eq!(f.kv.admit(&client("2001:db8:1::1")).unwrap(), Admission::Allowed, "another /48");
    f.advance(seconds(16));
    assert_eq!(f.kv.admit(&client("2001:db8:0:ff::1")).unwrap(), Admission::Allowed);
}

pub fn all_addresses_share_a_short_login_wait(f: &Fixture) {
    let address_of = |nth: usize| format!("198.51.{}.{}", nth / 250, nth % 250);
    assert_eq!(failures_until_a_wait(f, address_of, 1_000), 100);
    for nth in 0..20 {
        let Admission::Wait(wait) = f.kv.admit(&client("203.0.113.1")).unwrap() else { panic!("no wait") };
        assert!(wait <= seconds(10), "{wait:?}");
        f.advance(seconds(11));
        assert_eq!(f.kv.admit(&client(&format!("203.0.113.{}", 10 + nth))).unwrap(), Admission::Allowed);
    }
    assert_eq!(f.kv.admit(&client("127.0.0.1")).unwrap(), Admission::Allowed, "this machine has its own count alone");
}

pub fn known_address_is_not_throttled_by_others(f: &Fixture) {
    for admin in ["203.0.113.9", "2001:db8:0:5::1"] {
        assert_eq!(f.kv.admit(&client(admin)).unwrap(), Admission::Allowed);
        f.kv.record_success(&client(admin)).unwrap();
    }
    failures_until_a_wait(f, |nth| format!("2001:db8:0:{nth:x}::1"), 256);
    failures_until_a_wait(f, |nth| format!("198.51.{}.{}", nth / 250, nth % 250), 1_000);
    for nth in 0..5 {
        f.advance(seconds(11));
        assert_eq!(f.kv.admit(&client(&format!("192.0.2.{nth}"))).unwrap(), Admission::Allowed);
    }
    for admin in ["203.0.113.9", "2001:db8:0:5::1"] {
        assert_eq!(f.open().admit(&client(admin)).unwrap(), Admission::Allowed, "{admin}");
        f.kv.record_success(&client(admin)).unwrap();
        use_up(f, admin);
        assert!(matches!(f.kv.admit(&client(admin)).unwrap(), Admission::Wait(_)), "its own failures count");
    }
    assert!(matches!(f.kv.admit(&client("203.0.113.10")).unwrap(), Admission::Wait(_)), "others wait still");
}

pub fn successful_logins_do_not_count_as_failures(f: &Fixture) {
    for nth in 0..150 {
        let address = client(&format!("198.51.100.{nth}"));
        assert_eq!(f.kv.admit(&address).unwrap(), Admission::Allowed, "{nth}");
        f.kv.record_success(&address).unwrap();
    }
}

//! Short exclusive locks on names.

use super::{Fixture, seconds};

pub fn name_lock_has_one_token_at_a_time(f: &Fixture) {
    let other = f.open();
    assert!(f.kv.try_lock("a/b.json", "t1", seconds(30)).unwrap());
    assert!(!other.try_lock("a/b.json", "t2", seconds(30)).unwrap());
    assert!(other.try_lock("a/c.json", "t2", seconds(30)).unwrap(), "another name");
    f.kv.unlock("a/b.json", "t1").unwrap();
    assert!(other.try_lock("a/b.json", "t2", seconds(30)).unwrap());
}

pub fn unlock_with_another_token_does_nothing(f: &Fixture) {
    f.kv.unlock("x", "t1").unwrap();
    assert!(f.kv.try_lock("x", "t1", seconds(30)).unwrap());
    f.kv.unlock("x", "t2").unwrap();
    assert!(!f.kv.try_lock("x", "t2", seconds(30)).unwrap());
    f.kv.unlock("x", "t1").unwrap();
    f.kv.unlock("x", "t1").unwrap();
    assert!(f.kv.try_lock("x", "t2", seconds(30)).unwrap());
}

pub fn name_lock_expires(f: &Fixture) {
    assert!(f.kv.try_lock("x", "t1", seconds(30)).unwrap());
    f.advance(seconds(27));
    assert!(!f.kv.try_lock("x", "t2", seconds(30)).unwrap());
    f.advance(seconds(4));
    assert!(f.kv.try_lock("x", "t2", seconds(30)).unwrap());
    f.kv.unlock("x", "t1").unwrap();
    assert!(!f.kv.try_lock("x", "t3", seconds(30)).unwrap(), "it is t2's now");
}

pub fn write_probe_touches_nothing_else(f: &Fixture) {
    let other = f.open();
    let before = f.kv.counts().unwrap();
    for _ in 0..3 {
        f.kv.probe_write().unwrap();
        other.probe_write().unwrap();
    }
    assert_eq!(f.kv.counts().unwrap(), before);
    f.advance(seconds(90));
    f.kv.probe_write().unwrap();
}

pub fn lock_names_are_any_text(f: &Fixture) {
    for name in ["", "a b", "é/ü", "'; DROP TABLE key_locks; --", "*", &"x".repeat(2_000)] {
        assert!(f.kv.try_lock(name, "t1", seconds(30)).unwrap(), "{name}");
        assert!(!f.kv.try_lock(name, "t2", seconds(30)).unwrap(), "{name}");
    }
}

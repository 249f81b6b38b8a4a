//! Writing: puts, preconditions, files, copies, deletes, and valid keys.

use std::time::{Duration, Instant};

use lakemill::ports::store::{Bucket, ETag, Precondition, StoreError, StoreResult, WriteOptions};

use super::{Fixture, stage};
use crate::support::TestLease;

const LAKE: Bucket = Bucket::Lake;
const WAREHOUSE: Bucket = Bucket::Warehouse;

fn refused<T>(result: StoreResult<T>) -> bool {
    matches!(result, Err(StoreError::PreconditionFailed { .. }))
}

fn invalid<T>(result: StoreResult<T>) -> bool {
    matches!(result, Err(StoreError::InvalidKey { .. }))
}

pub fn put_replaces_the_whole_object(f: &Fixture) {
    f.put(LAKE, "k", &[b'x'; 10_000]);
    f.put(LAKE, "k", b"short");
    assert_eq!(f.read(LAKE, "k").unwrap(), b"short");
    assert_eq!(f.names(LAKE, ""), ["k"]);
}

pub fn create_fails_if_the_object_exists(f: &Fixture) {
    let created = f.put_if(LAKE, "a/k", b"1", Precondition::IfNoneMatch).unwrap();
    assert!(refused(f.put_if(LAKE, "a/k", b"2", Precondition::IfNoneMatch)));
    assert_eq!(f.read(LAKE, "a/k").unwrap(), b"1");
    assert_eq!(f.tag(LAKE, "a/k"), created.etag.unwrap());
    f.delete(LAKE, &["a/k"]);
    f.put_if(LAKE, "a/k", b"3", Precondition::IfNoneMatch).unwrap();
    assert_eq!(f.names(LAKE, ""), ["a/k"]);
}

pub fn write_after_its_deadline_changes_nothing(f: &Fixture) {
    let kept = f.put(LAKE, "k", b"1");
    let late = WriteOptions::default().deadline(Instant::now() - Duration::from_secs(1));
    let over = |result: StoreResult<()>| matches!(result, Err(StoreError::Transient { .. }));
    let put = |name: &str, body: &[u8], options: &WriteOptions<'_>| {
        f.store.put(LAKE, &f.key(name), body, options).map(|_| ())
    };
    let large = vec![b'x'; 1 << 20];
    for when in [Precondition::None, Precondition::IfMatch(kept.etag.unwrap())] {
        assert!(over(put("k", b"2", &late.clone().with(when.clone()))));
        assert!(over(put("k", &large, &late.clone().with(when))));
    }
    assert!(over(put("new", b"2", &late.clone().with(Precondition::IfNoneMatch))));
    assert!(over(f.store.delete(LAKE, &[f.key("k")], &late)));
    assert!(over(f.store.delete(LAKE, &[f.key("k"), f.key("new")], &late)));
    assert_eq!((f.names(LAKE, ""), f.read(LAKE, "k").unwrap()), (vec!["k".to_owned()], b"1".to_vec()));
    let early = WriteOptions::default().deadline(Instant::now() + Duration::from_secs(60));
    f.store.put(LAKE, &f.key("k"), b"2", &early).unwrap();
    f.store.put(LAKE, &f.key("large"), &large, &early).unwrap();
    f.store.delete(LAKE, &[f.key("k")], &early).unwrap();
    assert_eq!(f.names(LAKE, ""), ["large"]);
}

pub fn replace_requires_the_current_tag(f: &Fixture) {
    let wrong = || Precondition::IfMatch(ETag("0".repeat(32)));
    assert!(refused(f.put_if(LAKE, "k", b"1", wrong())), "there is no object");
    assert_eq!(f.read(LAKE, "k"), None);
    let first = f.put(LAKE, "k", b"1").etag.unwrap();
    assert!(refused(f.put_if(LAKE, "k", b"2", wrong())));
    let second = f.put_if(LAKE, "k", b"2", Precondition::IfMatch(first.clone())).unwrap().etag.unwrap();
    assert!(refused(f.put_if(LAKE, "k", b"3", Precondition::IfMatch(first))));
    assert_eq!(f.read(LAKE, "k").unwrap(), b"2");
    f.put_if(LAKE, "k", b"3", Precondition::IfMatch(second.clone())).unwrap();
    f.delete(LAKE, &["k"]);
    assert!(refused(f.put_if(LAKE, "k", b"4", Precondition::IfMatch(second))));
    assert!(f.names(LAKE, "").is_empty());
}

/// Names with a special meaning for a store, a shell or a URL.
pub const ODD_NAMES: [&str; 16] = [
    "a b.csv",
    " leading and trailing ",
    "a+b.csv",
    "100%.csv",
    "%2e%2e",
    "a%2Fb",
    "é.csv",
    "e\u{301}.csv",
    "day=2013-01-01/part-00000.parquet",
    "c=__HIVE_DEFAULT_PARTITION__/p",
    "quote\"'`$(x).csv",
    "a&b=c?d#e;f.csv",
    "<xml>&amp;",
    "日本語/🦆.csv",
    "-rf *",
    "~",
];

pub fn unusual_keys_are_kept_byte_for_byte(f: &Fixture) {
    let long = format!("{}/{}", "l".repeat(255), "é".repeat(120));
    let mut names: Vec<&str> = ODD_NAMES.to_vec();
    let longest = "k/".repeat((1_024 - f.prefix.len()) / 2 - 1) + "kk";
    if !f.quirks.long_keys_fail {
        names.extend([long.as_str(), &longest]);
    }
    for name in &names {
        f.put_if(LAKE, name, name.as_bytes(), Precondition::IfNoneMatch).unwrap();
    }
    for name in &names {
        assert_eq!(f.read(LAKE, name).as_deref(), Some(name.as_bytes()), "{name}");
    }
    let mut sorted: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    sorted.sort();
    assert_eq!(f.names(LAKE, ""), sorted);
    f.delete(LAKE, &names);
    assert!(f.names(LAKE, "").is_empty());
}

pub fn keys_that_are_not_paths_are_rejected(f: &Fixture) {
    f.put(LAKE, "a", b"1");
    let too_long = "k/".repeat(600) + "k";
    for name in ["..", "../x", "a/../../x", "x/../a", "./a", "x/.", "x//../y", "n\0ul", &too_long] {
        every_call_rejects(f, name);
    }
    assert!(invalid(f.store.put(LAKE, "", b"x", &WriteOptions::default())));
    assert_eq!(f.names(LAKE, ""), ["a"]);
}

/// `a` must be an object.
fn every_call_rejects(f: &Fixture, name: &str) {
    let key = f.key(name);
    let options = WriteOptions::default();
    assert!(invalid(f.store.put(LAKE, &key, b"x", &options)), "{name:?}");
    assert!(invalid(f.store.head(LAKE, &key)), "{name:?}");
    assert!(invalid(f.store.get(LAKE, &key, None)), "{name:?}");
    assert!(invalid(f.store.get_range(LAKE, &key, 0..1, None)), "{name:?}");
    assert!(invalid(f.store.copy((LAKE, &f.key("a")), (LAKE, &key), &options)), "{name:?}");
    assert!(invalid(f.store.delete(LAKE, &[key], &options)), "{name:?}");
}

pub fn keys_with_empty_segments_are_distinct(f: &Fixture) {
    let plain = ["a", "in/a", "in/b/c"];
    let odd = ["", "/", "/a", "in/", "in//", "in//a", "in///a", "in/b//c", "in/b/c/"];
    for name in plain {
        f.put(LAKE, name, name.as_bytes());
    }
    if f.folders {
        for name in odd {
            every_call_rejects(f, name);
        }
        assert!(invalid(f.store.put(LAKE, "/etc/x", b"x", &WriteOptions::default())));
        assert_eq!(f.names(LAKE, ""), plain);
        return;
    }
    if f.quirks.empty_segments_are_folded {
        f.put(LAKE, "in//new", b"folded");
        assert_eq!(f.read(LAKE, "in//new").unwrap(), b"folded");
        f.delete(LAKE, &["in//new"]);
        assert_eq!(f.names(LAKE, ""), plain);
        return;
    }
    for name in odd {
        let put = f.put_if(LAKE, name, name.as_bytes(), Precondition::IfNoneMatch).unwrap();
        assert_eq!(put.key, f.key(name));
        assert!(refused(f.put_if(LAKE, name, b"again", Precondition::IfNoneMatch)), "{name:?}");
    }
    let mut all = [&plain[..], &odd[..]].concat();
    all.sort_unstable();
    assert_eq!(f.names(LAKE, ""), all);
    for name in all {
        assert_eq!(f.read(LAKE, name).as_deref(), Some(name.as_bytes()), "{name:?}");
        assert_eq!(f.store.head(LAKE, &f.key(name)).unwrap().unwrap().size, name.len() as u64, "{name:?}");
        let start = f.store.get_range(LAKE, &f.key(name), 0..2, None).unwrap();
        assert_eq!(start, &name.as_bytes()[..name.len().min(2)], "{name:?}");
        f.store.copy((LAKE, &f.key(name)), (WAREHOUSE, &f.key(&format!("/{name}"))), &WriteOptions::default()).unwrap();
        assert_eq!(f.read(WAREHOUSE, &format!("/{name}")).as_deref(), Some(name.as_bytes()), "{name:?}");
    }
    // By one request with many keys, and by one with a single key.
    let (last, others) = odd.split_last().unwrap();
    f.delete(LAKE, others);
    f.delete(LAKE, &[*last]);
    assert_eq!(f.names(LAKE, ""), plain);
}

pub fn file_is_put_from_any_file_system(f: &Fixture) {
    let body: Vec<u8> = (0..700_000u32).map(|i| (i % 251) as u8).collect();
    let places = [tempfile::tempdir().unwrap(), tempfile::tempdir_in("/dev/shm").unwrap()];
    for (index, place) in places.iter().enumerate() {
        let path = place.path().join("spool");
        std::fs::write(&path, &body).unwrap();
        let name = format!("t/part-{index}");
        let put = f.store.put_file(WAREHOUSE, &f.key(&name), &path, &WriteOptions::default()).unwrap();
        assert_eq!(put.size, body.len() as u64);
        assert_eq!(put.etag.unwrap(), f.tag(WAREHOUSE, &name));
        assert!(f.read(WAREHOUSE, &name).unwrap() == body);
    }
    // Another hard link of the file keeps its content.
    let path = places[0].path().join("first");
    std::fs::write(&path, "linked").unwrap();
    std::fs::hard_link(&path, places[0].path().join("second")).unwrap();
    f.store.put_file(WAREHOUSE, &f.key("linked"), &path, &WriteOptions::default()).unwrap();
    std::fs::write(places[0].path().join("second"), "changed").unwrap();
    assert_eq!(f.read(WAREHOUSE, "linked").unwrap(), b"linked");
}

pub fn rejected_put_keeps_the_local_file(f: &Fixture) {
    f.put(WAREHOUSE, "k", b"old");
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("spool");
    std::fs::write(&path, "new").unwrap();
    let create = WriteOptions::default().with(Precondition::IfNoneMatch);
    assert!(refused(f.store.put_file(WAREHOUSE, &f.key("k"), &path, &create)));
    assert_eq!(f.read(WAREHOUSE, "k").unwrap(), b"old");
    let replace = WriteOptions::default().with(Precondition::IfMatch(f.tag(WAREHOUSE, "k")));
    f.store.put_file(WAREHOUSE, &f.key("k"), &path, &replace).unwrap();
    assert_eq!(f.read(WAREHOUSE, "k").unwrap(), b"new");
    let gone = place.path().join("gone");
    let error = f.store.put_file(WAREHOUSE, &f.key("k"), &gone, &WriteOptions::default()).unwrap_err();
    assert!(matches!(error, StoreError::Transient { .. }), "{error}");
}

pub fn staged_file_is_visible_only_after_its_put(f: &Fixture) {
    let lease = TestLease::new("local", 7);
    let body: Vec<u8> = (0..700_000u32).map(|i| (i % 251) as u8).collect();
    for (index, place) in [tempfile::tempdir().unwrap(), tempfile::tempdir_in("/dev/shm").unwrap()].iter().enumerate() {
        let (name, path) = (format!("t/part-{index}"), place.path().join("spool"));
        std::fs::write(&path, &body).unwrap();
        let key = f.key(&name);
        let stage = || stage(&*f.store, &key, &path, &lease).unwrap();
        // A dropped write leaves the file as it was.
        drop(stage());
        let staged = stage();
        assert_eq!(f.store.head(WAREHOUSE, &key).unwrap(), None);
        assert!(!f.names(WAREHOUSE, "").contains(&name));
        assert!(std::fs::read(&path).unwrap() == body);
        let create = WriteOptions::leased(&lease).with(Precondition::IfNoneMatch);
        let put = match staged {
            Some(staged) => staged.put(&create),
            None => f.store.put_file(WAREHOUSE, &key, &path, &create),
        }
        .unwrap();
        assert_eq!((put.size, put.etag.unwrap()), (body.len() as u64, f.tag(WAREHOUSE, &name)));
        assert!(f.read(WAREHOUSE, &name).unwrap() == body);
    }
}

pub fn staged_file_respects_the_puts_precondition(f: &Fixture) {
    let lease = TestLease::new("local", 7);
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("spool");
    std::fs::write(&path, vec![1; 300_000]).unwrap();
    let key = f.key("k");
    let stage = || stage(&*f.store, &key, &path, &lease).unwrap();
    let Some(staged) = stage() else { return };
    f.put(WAREHOUSE, "k", b"another's");
    assert!(refused(staged.put(&WriteOptions::leased(&lease).with(Precondition::IfNoneMatch))));
    assert_eq!(f.read(WAREHOUSE, "k").unwrap(), b"another's");
    let replace = WriteOptions::leased(&lease).with(Precondition::IfMatch(f.tag(WAREHOUSE, "k")));
    stage().unwrap().put(&replace).unwrap();
    assert!(f.read(WAREHOUSE, "k").unwrap() == [1; 300_000]);
}

pub fn copies_are_equal_within_and_across_buckets(f: &Fixture) {
    let body = vec![7; 400_000];
    f.put(LAKE, "from/k", &body);
    for bucket in Bucket::ALL {
        let to = f.key("to/deep/k");
        let copied = f.store.copy((LAKE, &f.key("from/k")), (bucket, &to), &WriteOptions::default()).unwrap();
        assert_eq!((copied.key.as_str(), copied.size), (to.as_str(), 400_000));
        assert_eq!(copied.etag.unwrap(), f.tag(bucket, "to/deep/k"));
        assert!(f.read(bucket, "to/deep/k").unwrap() == body);
    }
    let own = f.key("from/k");
    f.store.copy((LAKE, &own), (LAKE, &own), &WriteOptions::default()).unwrap();
    assert!(f.read(LAKE, "from/k").unwrap() == body);
    let missing = f.store.copy((LAKE, &f.key("none")), (LAKE, &f.key("x")), &WriteOptions::default());
    assert!(matches!(missing, Err(StoreError::NotFound { .. })));
    assert_eq!(f.read(LAKE, "x"), None);
}

pub fn copy_respects_its_precondition(f: &Fixture) {
    f.put(LAKE, "from", b"new");
    let copy = |when| {
        let options = WriteOptions::default().with(when);
        f.store.copy((LAKE, &f.key("from")), (WAREHOUSE, &f.key("to")), &options)
    };
    assert!(refused(copy(Precondition::IfMatch(f.tag(LAKE, "from")))));
    copy(Precondition::IfNoneMatch).unwrap();
    assert!(refused(copy(Precondition::IfNoneMatch)));
    copy(Precondition::IfMatch(f.tag(WAREHOUSE, "to"))).unwrap();
    assert_eq!(f.read(WAREHOUSE, "to").unwrap(), b"new");
}

pub fn delete_takes_any_number_of_keys_and_ignores_missing_ones(f: &Fixture) {
    f.store.delete(LAKE, &[], &WriteOptions::default()).unwrap();
    f.delete(LAKE, &["none", "no/such/folder"]);
    for name in ["a", "ab", "t/x", "t/y/z", "t/y/zz", "u"] {
        f.put(LAKE, name, b"1");
    }
    f.delete(LAKE, &["a", "none", "t/x", "t/y/z", "a/b", "t/y/z"]);
    if !f.quirks.names_of_folders_fail {
        f.delete(LAKE, &["t", "none"]);
    }
    assert_eq!(f.names(LAKE, ""), ["ab", "t/y/zz", "u"]);
    f.delete(LAKE, &["t/y/zz"]);
    let page = f.store.list(LAKE, f.prefix, Some('/'), None, 10).unwrap();
    assert!(page.prefixes.is_empty(), "a folder that holds nothing is none: {:?}", page.prefixes);
    // Preconditions of a delete are ignored.
    let create = WriteOptions::default().with(Precondition::IfNoneMatch);
    f.store.delete(LAKE, &[f.key("u"), f.key("ab")], &create).unwrap();
    assert!(f.names(LAKE, "").is_empty());
    f.put(LAKE, "t/y/z", b"2");
    assert_eq!(f.read(LAKE, "t/y/z").unwrap(), b"2");
}

pub fn object_next_to_a_folder_of_its_name(f: &Fixture) {
    if f.quirks.names_of_folders_fail {
        return;
    }
    f.put(LAKE, "a", b"1");
    f.put(LAKE, "b/c/d", b"2");
    let long = "s".repeat(256);
    if f.folders {
        for (name, reason) in [("a/x", "is an object"), ("a/x/y", "is an object"), ("b", "folder"), ("b/c", "folder")] {
            for when in [Precondition::None, Precondition::IfNoneMatch] {
                let error = f.put_if(LAKE, name, b"3", when).unwrap_err();
                assert!(error.to_string().contains(reason), "{name}: {error}");
                assert!(matches!(error, StoreError::InvalidKey { .. }), "{name}: {error}");
            }
        }
        assert!(invalid(f.put_if(LAKE, &long, b"3", Precondition::None)));
        assert_eq!(f.names(LAKE, ""), ["a", "b/c/d"]);
        f.delete(LAKE, &["a", "b/c/d"]);
    }
    f.put(LAKE, "a/x", b"3");
    f.put(LAKE, "b/c", b"4");
    assert_eq!((f.read(LAKE, "a/x").unwrap(), f.read(LAKE, "b/c").unwrap()), (b"3".to_vec(), b"4".to_vec()));
}

pub fn buckets_are_separate(f: &Fixture) {
    for bucket in Bucket::ALL {
        f.put(bucket, "k", bucket.to_string().as_bytes());
    }
    f.delete(LAKE, &["k"]);
    assert_eq!(f.read(LAKE, "k"), None);
    assert_eq!(f.read(WAREHOUSE, "k").unwrap(), b"warehouse");
    assert_eq!(f.read(Bucket::Pipelines, "k").unwrap(), b"pipelines");
}

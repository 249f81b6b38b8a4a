//! Reading: head, get, ranges, tags.

use std::io::Read;

use chrono::{TimeDelta, TimeZone, Utc};
use lakemill::ports::store::{Bucket, ETag, ObjectMeta, StoreError, WriteOptions};

use super::Fixture;

const LAKE: Bucket = Bucket::Lake;

pub fn put_object_can_be_read_and_listed(f: &Fixture) {
    for bucket in Bucket::ALL {
        let put = f.put(bucket, "a/b.csv", b"some bytes");
        assert_eq!((put.key.as_str(), put.size), (f.key("a/b.csv").as_str(), 10));
        let put = if f.quirks.write_times_are_near { with_later_time(put, bucket, f) } else { put };
        assert_eq!(f.read(bucket, "a/b.csv").unwrap(), b"some bytes");
        assert_eq!(f.store.head(bucket, &f.key("a/b.csv")).unwrap(), Some(put.clone()));
        let got = f.store.get(bucket, &f.key("a/b.csv"), None).unwrap().meta;
        assert_eq!(got, put);
        let mut listed = f.store.list(bucket, f.prefix, None, None, 1_000).unwrap().objects;
        if !f.store.capabilities().unwrap().listed_etags {
            assert_eq!(listed[0].etag, None);
            listed[0].etag.clone_from(&put.etag);
        }
        assert_eq!(listed, [put]);
    }
}

/// The response of a write, with the time of a later response.
fn with_later_time(put: ObjectMeta, bucket: Bucket, f: &Fixture) -> ObjectMeta {
    let modified = f.store.head(bucket, &put.key).unwrap().map_or(put.modified, |later| later.modified);
    assert!((modified - put.modified).abs() <= TimeDelta::seconds(2), "{modified} {}", put.modified);
    ObjectMeta { modified, ..put }
}

pub fn empty_object_exists(f: &Fixture) {
    assert_eq!(f.put(LAKE, "empty", b"").size, 0);
    assert_eq!(f.read(LAKE, "empty").unwrap(), b"");
    assert_eq!(f.names(LAKE, ""), ["empty"]);
    assert_eq!(f.store.get_range(LAKE, &f.key("empty"), 0..10, None).unwrap(), b"");
}

pub fn large_objects_round_trip(f: &Fixture) {
    let body: Vec<u8> = (0..6_000_001u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    assert_eq!(f.put(LAKE, "large", &body).size, body.len() as u64);
    assert!(f.read(LAKE, "large").unwrap() == body);
    let tail = f.store.get_range(LAKE, &f.key("large"), 5_999_990..6_000_001, None).unwrap();
    assert_eq!(tail, body[5_999_990..]);
}

pub fn missing_object_is_not_found(f: &Fixture) {
    f.put(LAKE, "a/b", b"x");
    for name in ["missing", "a", "a/c", "a/b/c", "a/b.", "missing/b"] {
        if name == "a" && f.quirks.names_of_folders_fail {
            continue;
        }
        let key = f.key(name);
        assert_eq!(f.store.head(LAKE, &key).unwrap(), None, "{name}");
        let tag = ETag("x".to_owned());
        for error in [
            f.store.get(LAKE, &key, None).map(drop).unwrap_err(),
            f.store.get(LAKE, &key, Some(&tag)).map(drop).unwrap_err(),
            f.store.get_range(LAKE, &key, 0..1, None).map(drop).unwrap_err(),
        ] {
            assert!(matches!(&error, StoreError::NotFound { bucket: LAKE, key: k } if *k == key), "{name}: {error}");
        }
    }
    assert_eq!(f.store.head(Bucket::Warehouse, &f.key("a/b")).unwrap(), None);
}

pub fn tag_is_the_same_in_all_responses(f: &Fixture) {
    let first = f.put(LAKE, "k", b"first").etag.unwrap();
    assert_eq!(f.tag(LAKE, "k"), first);
    assert_eq!(f.store.get(LAKE, &f.key("k"), Some(&first)).unwrap().meta.etag, Some(first.clone()));
    let listed = f.store.list(LAKE, f.prefix, None, None, 10).unwrap().objects.remove(0).etag;
    let expected = f.store.capabilities().unwrap().listed_etags.then(|| first.clone());
    assert_eq!(listed, expected);
    // The same length, written immediately after.
    let second = f.put(LAKE, "k", b"other").etag.unwrap();
    assert_ne!(first, second);
    let again = (f.open)().head(LAKE, &f.key("k")).unwrap().unwrap().etag.unwrap();
    assert_eq!(again, second);
}

pub fn get_with_another_tag_fails(f: &Fixture) {
    let old = f.put(LAKE, "k", b"old").etag.unwrap();
    f.put(LAKE, "k", b"new");
    let error = f.store.get(LAKE, &f.key("k"), Some(&old)).map(drop).unwrap_err();
    assert!(matches!(error, StoreError::PreconditionFailed { bucket: LAKE, .. }), "{error}");
    let mut body = String::new();
    f.store.get(LAKE, &f.key("k"), Some(&f.tag(LAKE, "k"))).unwrap().body.read_to_string(&mut body).unwrap();
    assert_eq!(body, "new");
}

pub fn ranges_are_cut_at_the_end(f: &Fixture) {
    f.put(LAKE, "k", b"0123456789");
    #[expect(clippy::reversed_empty_ranges, reason = "an empty range must not be an error")]
    for (range, expected) in [
        (0..10, "0123456789"),
        (0..1, "0"),
        (3..7, "3456"),
        (9..10, "9"),
        (5..u64::MAX, "56789"),
        (9..11, "9"),
        (10..20, ""),
        (1_000..2_000, ""),
        (4..4, ""),
        (7..3, ""),
    ] {
        let read = f.store.get_range(LAKE, &f.key("k"), range.clone(), None).unwrap();
        assert_eq!(String::from_utf8(read).unwrap(), expected, "{range:?}");
    }
}

pub fn range_with_another_tag_fails(f: &Fixture) {
    let old = f.put(LAKE, "k", b"old").etag.unwrap();
    assert_eq!(f.store.get_range(LAKE, &f.key("k"), 0..2, Some(&old)).unwrap(), b"ol");
    f.put(LAKE, "k", b"new");
    let error = f.store.get_range(LAKE, &f.key("k"), 0..2, Some(&old)).unwrap_err();
    assert!(matches!(error, StoreError::PreconditionFailed { .. }), "{error}");
}

pub fn body_is_one_version_or_an_error(f: &Fixture) {
    let old = vec![b'o'; 300_000];
    for replaced in [true, false] {
        f.put(LAKE, "k", &old);
        let mut body = f.store.get(LAKE, &f.key("k"), None).unwrap().body;
        let mut read = vec![0; 1_000];
        body.read_exact(&mut read).unwrap();
        if replaced {
            f.put(LAKE, "k", &vec![b'n'; 300_000]);
        } else {
            f.delete(LAKE, &["k"]);
        }
        if body.read_to_end(&mut read).is_ok() {
            assert!(read == old);
        }
    }
}

pub fn modified_is_the_write_time(f: &Fixture) {
    let first = f.put(LAKE, "k", b"1").modified;
    let second = f.put(LAKE, "k", b"2").modified;
    assert!(first <= second && first > Utc.with_ymd_and_hms(2020, 1, 1, 0, 0, 0).unwrap());
    f.store.copy((LAKE, &f.key("k")), (LAKE, &f.key("l")), &WriteOptions::default()).unwrap();
    assert!(f.store.head(LAKE, &f.key("l")).unwrap().unwrap().modified >= second);
}

pub fn link_keeps_its_bytes_when_the_object_changes(f: &Fixture) {
    let folder = tempfile::tempdir().unwrap();
    let into = |name: &str| folder.path().join(name);
    let warehouse = Bucket::Warehouse;
    f.put(warehouse, "t/put.parquet", b"as it was");
    let local = folder.path().join("local");
    std::fs::write(&local, b"from a file").unwrap();
    f.store.put_file(warehouse, &f.key("t/file.parquet"), &local, &WriteOptions::default()).unwrap();
    for (name, bytes) in [("put.parquet", &b"as it was"[..]), ("file.parquet", b"from a file")] {
        let key = f.key(&format!("t/{name}"));
        let before = f.store.head(warehouse, &key).unwrap().unwrap();
        let tag = before.etag.clone().unwrap();
        let linked = f.store.link(warehouse, &key, Some(&tag), &into(name)).unwrap();
        assert_eq!(linked, into(name).exists());
        assert_eq!(f.store.head(warehouse, &key).unwrap().unwrap(), before, "a link changes nothing of the object");
        if !linked {
            continue;
        }
        let other = ETag("other".to_owned());
        let refused = f.store.link(warehouse, &key, Some(&other), &into("other")).unwrap_err();
        assert!(matches!(refused, StoreError::PreconditionFailed { .. }), "{refused}");
        f.put(warehouse, &format!("t/{name}"), b"as it became");
        let refused = f.store.link(warehouse, &key, Some(&tag), &into("late")).unwrap_err();
        assert!(matches!(refused, StoreError::PreconditionFailed { .. }), "{refused}");
        f.delete(warehouse, &[&format!("t/{name}")]);
        let refused = f.store.link(warehouse, &key, Some(&tag), &into("gone")).unwrap_err();
        assert!(matches!(refused, StoreError::NotFound { .. }), "{refused}");
        assert_eq!(std::fs::read(into(name)).unwrap(), bytes);
    }
    assert!(!into("other").exists() && !into("late").exists() && !into("gone").exists());
}

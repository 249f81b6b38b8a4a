//! Tests of the file store beyond the contract.

use std::fs;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

use tempfile::TempDir;

use super::folder::{BucketNames, DOT_FILES, Mount, MountError};
use super::stage;
use super::store::FsStore;
use crate::domain::name::Slug;
use crate::ports::ObjectStore as _;
use crate::ports::store::{
    BodyChanged, Bucket, ETag, Lease, LeaseLost, LocalStore as _, Precondition, StoreError, StoreResult, WriteOptions,
    list_all,
};

const LAKE: Bucket = Bucket::Lake;
const WAREHOUSE: Bucket = Bucket::Warehouse;
const LOCAL: &str = "pipelines/local/";

struct Fixture {
    root: TempDir,
    store: FsStore,
}

impl Fixture {
    /// A store over a root of its own.
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let store = FsStore::create(root.path()).unwrap();
        Self { root, store }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    fn write(&self, path: &str, body: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, body).unwrap();
    }

    fn put(&self, key: &str, body: &str) -> ETag {
        put(&self.store, LAKE, key, body).unwrap()
    }

    fn tag(&self, key: &str) -> ETag {
        let head = self.store.head(LAKE, key).unwrap().unwrap().etag.unwrap();
        let listed = self.store.list(LAKE, key, None, None, 1).unwrap().objects.remove(0).etag.unwrap();
        assert_eq!(head, listed);
        head
    }
}

fn put(store: &FsStore, bucket: Bucket, key: &str, body: &str) -> StoreResult<ETag> {
    let meta = store.put(bucket, key, body.as_bytes(), &WriteOptions::default())?;
    Ok(meta.etag.unwrap())
}

fn keys(store: &FsStore, bucket: Bucket) -> Vec<String> {
    let all = list_all(store, bucket, "").unwrap();
    all.into_iter().map(|meta| meta.key.strip_prefix(LOCAL).unwrap_or(&meta.key).to_owned()).collect()
}

fn read(store: &FsStore, bucket: Bucket, key: &str) -> String {
    std::io::read_to_string(store.get(bucket, key, None).unwrap().body).unwrap()
}

/// Like the mounts of `lakemill run`.
fn run_mounts(input: &Path, output: &Path) -> Vec<Mount> {
    let mount = |bucket, dir: PathBuf, writable| Mount {
        bucket,
        prefix: LOCAL.to_owned(),
        dir,
        writable,
        hide: if bucket == WAREHOUSE { vec![DOT_FILES.to_owned()] } else { Vec::new() },
    };
    vec![
        mount(LAKE, input.to_owned(), false),
        mount(WAREHOUSE, output.to_owned(), true),
        mount(Bucket::Pipelines, output.join("_lakemill"), true),
    ]
}

fn files_in_tmp(place: &Fixture) -> usize {
    fs::read_dir(place.path("lake/.lakemill/tmp")).unwrap().count()
}

#[test]
fn tag_survives_link_and_rename_but_not_a_write() {
    let place = Fixture::new();
    let tag = place.put("a.csv", "1,2\n");
    assert_eq!(tag.0.len(), 64);
    fs::hard_link(place.path("lake/a.csv"), place.path("lake/b.csv")).unwrap();
    assert_eq!(place.tag("a.csv"), tag);
    fs::rename(place.path("lake/b.csv"), place.path("lake/c.csv")).unwrap();
    assert_eq!(place.tag("c.csv"), tag);
    fs::remove_file(place.path("lake/c.csv")).unwrap();

    // Written in place, with the same length; then the old time is restored.
    let modified = fs::metadata(place.path("lake/a.csv")).unwrap().modified().unwrap();
    fs::write(place.path("lake/a.csv"), "3,4\n").unwrap();
    let changed = place.tag("a.csv");
    assert!(changed.0.starts_with("stat-") && changed.0.len() == 37, "{changed:?}");
    let file = fs::File::options().append(true).open(place.path("lake/a.csv")).unwrap();
    std::io::Write::write_all(&mut &file, b"5").unwrap();
    file.set_modified(modified).unwrap();
    assert_ne!(place.tag("a.csv"), tag);
    assert_ne!(place.tag("a.csv"), changed);
}

#[test]
fn copied_attribute_is_ignored() {
    let place = Fixture::new();
    let tag = place.put("a", "content");
    place.write("lake/b", "CONTENT");
    let mut value = [0; 200];
    let length = rustix::fs::getxattr(place.path("lake/a"), "user.lakemill.etag", &mut value).unwrap();
    let flags = rustix::fs::XattrFlags::empty();
    rustix::fs::setxattr(place.path("lake/b"), "user.lakemill.etag", &value[..length], flags).unwrap();
    assert_ne!(place.tag("b"), tag);
    assert!(place.tag("b").0.starts_with("stat-"));
}

#[test]
fn foreign_files_get_a_tag_from_their_stat() {
    let place = Fixture::new();
    place.write("lake/p/x.csv", "a\n1\n");
    let first = place.tag("p/x.csv");
    assert_eq!(place.tag("p/x.csv"), first);
    // Another file of the same length and time.
    let modified = fs::metadata(place.path("lake/p/x.csv")).unwrap().modified().unwrap();
    place.write("lake/p/y.csv", "a\n2\n");
    fs::File::options().write(true).open(place.path("lake/p/y.csv")).unwrap().set_modified(modified).unwrap();
    fs::rename(place.path("lake/p/y.csv"), place.path("lake/p/x.csv")).unwrap();
    assert_ne!(place.tag("p/x.csv"), first);
    let options = WriteOptions::default().with(Precondition::IfMatch(first));
    assert!(matches!(place.store.put(LAKE, "p/x.csv", b"", &options), Err(StoreError::PreconditionFailed { .. })));
    let options = WriteOptions::default().with(Precondition::IfMatch(place.tag("p/x.csv")));
    place.store.put(LAKE, "p/x.csv", b"", &options).unwrap();
}

#[test]
fn tags_use_the_stat_without_extended_attributes() {
    let place = Fixture::new();
    for folder in place.store.folders.all() {
        folder.has_xattrs.store(false, Ordering::Relaxed);
    }
    let first = place.put("a", "1");
    assert!(first.0.starts_with("stat-"));
    assert_eq!(place.tag("a"), first);
    let options = WriteOptions::default().with(Precondition::IfMatch(first.clone()));
    place.store.put(LAKE, "a", b"2", &options).unwrap();
    assert!(place.store.put(LAKE, "a", b"3", &options).is_err());
}

#[test]
fn file_changed_during_a_read_is_an_error() {
    type Change = fn(&Path);
    let changes: [Change; 4] = [
        |path| fs::write(path, "y".repeat(100_000)).unwrap(),
        |path| fs::write(path, "short").unwrap(),
        |path| {
            let mut file = fs::File::options().append(true).open(path).unwrap();
            std::io::Write::write_all(&mut file, b"more").unwrap();
        },
        |path| fs::remove_file(path).unwrap(),
    ];
    for change in changes {
        let place = Fixture::new();
        place.write("lake/k", &"x".repeat(100_000));
        let mut body = place.store.get(LAKE, "k", None).unwrap().body;
        body.read_exact(&mut [0; 10]).unwrap();
        change(&place.path("lake/k"));
        // Nor may a reader that stops at the last byte take the content for complete.
        let error = body.read_exact(&mut vec![0; 99_990]).unwrap_err();
        assert!(BodyChanged::is_in(&error), "{error}");
    }
}

#[test]
fn replaced_own_object_is_read_to_its_end() {
    let place = Fixture::new();
    place.put("k", "old");
    let body = place.store.get(LAKE, "k", None).unwrap().body;
    place.put("k", "new");
    assert_eq!(std::io::read_to_string(body).unwrap(), "old");
    let body = place.store.get(LAKE, "k", None).unwrap().body;
    place.store.delete(LAKE, &["k".to_owned()], &WriteOptions::default()).unwrap();
    assert_eq!(std::io::read_to_string(body).unwrap(), "new");
}

#[test]
fn failed_write_keeps_the_old_object() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
    }
    let place = Fixture::new();
    place.put("k", "old");
    let options = WriteOptions::default();
    let full = place.store.write(LAKE, "k", &options, |at| stage::from_reader(at.folder, &mut b"new".chain(Broken)));
    assert!(matches!(full, Err(StoreError::DiskFull { .. })));
    place.store.put(LAKE, "k", b"new", &options.with(Precondition::IfNoneMatch)).unwrap_err();
    assert_eq!(read(&place.store, LAKE, "k"), "old");
    assert_eq!(files_in_tmp(&place), 0);
}

#[test]
fn sweep_removes_only_files_of_dead_writers() {
    let place = Fixture::new();
    place.put("k", "1");
    place.write("lake/.lakemill/tmp/dead", "half");
    let living = stage::from_reader(&place.store.folders.all()[1], &mut &b"whole"[..]).unwrap();
    assert_eq!(files_in_tmp(&place), 2);
    FsStore::open(place.root.path()).unwrap();
    assert_eq!(files_in_tmp(&place), 1);
    drop(living);
    assert_eq!(files_in_tmp(&place), 0);
    assert_eq!(keys(&place.store, LAKE), ["k"]);
}

#[test]
fn published_files_get_default_permissions() {
    let place = Fixture::new();
    let spool = tempfile::NamedTempFile::new_in(place.root.path()).unwrap();
    fs::write(spool.path(), "x").unwrap();
    let inode = fs::metadata(spool.path()).unwrap().ino();
    place.store.put_file(LAKE, "a/moved", spool.path(), &WriteOptions::default()).unwrap();
    place.put("a/put", "x");
    let moved = fs::metadata(place.path("lake/a/moved")).unwrap();
    assert_eq!(moved.ino(), inode, "on one file system the file itself becomes the object");
    assert_eq!(moved.permissions().mode(), fs::metadata(place.path("lake/a/put")).unwrap().permissions().mode());
}

#[test]
fn own_folder_is_unlisted_and_unreachable() {
    let place = Fixture::new();
    place.put("k", "1");
    place.write("lake/.lakemill/x", "1");
    place.write("lake/a/.lakemill/x", "2");
    assert_eq!(keys(&place.store, LAKE), ["a/.lakemill/x", "k"]);
    assert_eq!(place.store.head(LAKE, ".lakemill/x").unwrap(), None);
    assert!(matches!(place.store.get(LAKE, ".lakemill/x", None), Err(StoreError::NotFound { .. })));
    for key in [".lakemill", ".lakemill/x", ".lakemill/tmp/y"] {
        assert!(matches!(put(&place.store, LAKE, key, ""), Err(StoreError::InvalidKey { .. })), "{key}");
        let deleted = place.store.delete(LAKE, &[key.to_owned()], &WriteOptions::default());
        assert!(matches!(deleted, Err(StoreError::InvalidKey { .. })), "{key}");
    }
    put(&place.store, LAKE, ".lakemill2/x", "").unwrap();
}

#[test]
fn links_in_writable_folders_are_ignored() {
    let place = Fixture::new();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "s").unwrap();
    symlink(outside.path(), place.path("lake/folder")).unwrap();
    symlink(outside.path().join("secret"), place.path("lake/file")).unwrap();
    place.put("k", "1");
    assert_eq!(keys(&place.store, LAKE), ["k"]);
    for key in ["folder/secret", "file"] {
        assert_eq!(place.store.head(LAKE, key).unwrap(), None);
        assert!(place.store.get(LAKE, key, None).is_err());
        place.store.delete(LAKE, &[key.to_owned()], &WriteOptions::default()).unwrap();
    }
    let error = put(&place.store, LAKE, "folder/new", "x").unwrap_err();
    assert!(error.to_string().contains("`folder` is a symbolic link"), "{error}");
    put(&place.store, LAKE, "file", "mine").unwrap();
    assert_eq!(read(&place.store, LAKE, "file"), "mine");
    assert_eq!(fs::read_to_string(outside.path().join("secret")).unwrap(), "s");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
}

#[test]
fn links_in_read_only_folders_are_followed_without_loops() {
    let place = Fixture::new();
    place.write("elsewhere/year/x.csv", "x");
    place.write("in/a.csv", "a");
    place.write("in/d/b.csv", "b");
    symlink(place.path("elsewhere"), place.path("in/linked")).unwrap();
    symlink(place.path("in"), place.path("in/d/up")).unwrap();
    symlink("d/b.csv", place.path("in/same.csv")).unwrap();
    symlink("nowhere", place.path("in/dangling.csv")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, place.path("in/pipe.csv"), rustix::fs::Mode::RWXU).unwrap();
    let store = FsStore::mounted(run_mounts(&place.path("in"), &place.path("out"))).unwrap();
    assert_eq!(keys(&store, LAKE), ["a.csv", "d/b.csv", "linked/year/x.csv", "same.csv"]);
    assert!(list_all(&store, LAKE, "pipelines/local/d/up/").unwrap().is_empty());
    assert_eq!(read(&store, LAKE, "pipelines/local/linked/year/x.csv"), "x");
    assert_eq!(store.head(LAKE, "pipelines/local/pipe.csv").unwrap(), None);
    assert_eq!(store.head(LAKE, "pipelines/local/dangling.csv").unwrap(), None);
}

#[test]
fn prefix_lists_only_its_names() {
    let place = Fixture::new();
    let store = &place.store;
    for key in ["a/b/c/1", "a/b/c/2", "a/b/cc", "a/bb/3", "a/b.c"] {
        put(store, LAKE, key, "x").unwrap();
    }
    let listed = |prefix: &str| {
        let found = list_all(store, LAKE, prefix).unwrap();
        found.into_iter().map(|object| object.key).collect::<Vec<String>>()
    };
    assert_eq!(listed("a/b/c/"), ["a/b/c/1", "a/b/c/2"]);
    assert_eq!(listed("a/b/c"), ["a/b/c/1", "a/b/c/2", "a/b/cc"]);
    assert_eq!(listed("a/b/c/2"), ["a/b/c/2"]);
    assert_eq!(listed("a/b"), ["a/b.c", "a/b/c/1", "a/b/c/2", "a/b/cc", "a/bb/3"]);
    let long = format!("a/{}/", "n".repeat(300));
    for nothing in ["a/b/cc/", "a/x/", "x/", "a//b/", "/a/", "./a/", "a/../a/", "a/\0/", ".lakemill/", &long] {
        assert_eq!(listed(nothing), [""; 0], "{nothing:?}");
    }
}

#[test]
fn invalid_names_are_skipped() {
    use std::os::unix::ffi::OsStrExt;
    let place = Fixture::new();
    place.write("lake/ok", "");
    fs::write(place.root.path().join("lake").join(std::ffi::OsStr::from_bytes(b"bad\xff.csv")), "").unwrap();
    let deep = format!("lake/{}", format!("{}/", "d".repeat(200)).repeat(6));
    place.write(&format!("{deep}x"), "");
    assert_eq!(keys(&place.store, LAKE), ["ok"]);
}

#[test]
fn run_reads_input_and_lists_only_tables_in_output() {
    let place = Fixture::new();
    place.write("in/a.csv", "1");
    place.write("out/.git/config", "");
    let store = FsStore::mounted(run_mounts(&place.path("in"), &place.path("out"))).unwrap();
    put(&store, WAREHOUSE, "pipelines/local/t/.part", "").unwrap_err();
    put(&store, WAREHOUSE, "pipelines/local/t/part-00000.parquet", "").unwrap();
    put(&store, Bucket::Pipelines, "pipelines/local/manifests/t.json", "{}").unwrap();
    assert_eq!(keys(&store, WAREHOUSE), ["t/part-00000.parquet"]);
    assert_eq!(keys(&store, Bucket::Pipelines), ["manifests/t.json"]);
    assert_eq!(keys(&store, LAKE), ["a.csv"]);
    assert!(place.path("out/_lakemill/manifests/t.json").is_file());
    let error = put(&store, LAKE, "pipelines/local/new.csv", "").unwrap_err();
    assert!(matches!(error, StoreError::AccessDenied { .. }), "{error}");
    let error = put(&store, WAREHOUSE, "pipelines/local/_lakemill/x", "").unwrap_err();
    assert!(matches!(error, StoreError::InvalidKey { .. }), "{error}");
    let error = put(&store, WAREHOUSE, "pipelines/other/x", "").unwrap_err();
    assert!(matches!(error, StoreError::InvalidKey { .. }), "{error}");
    assert_eq!(fs::read_dir(place.path("in")).unwrap().count(), 1, "nothing is left in an input");
}

#[test]
fn nested_input_and_output_hide_each_other() {
    let place = Fixture::new();
    place.write("data/a.csv", "1");
    place.write("data/out/t/old.csv", "2");
    symlink(place.path("data/out/t"), place.path("data/sly")).unwrap();
    let inner = FsStore::mounted(run_mounts(&place.path("data"), &place.path("data/out"))).unwrap();
    assert_eq!(keys(&inner, LAKE), ["a.csv"]);
    assert_eq!(keys(&inner, WAREHOUSE), ["t/old.csv"]);

    place.write("all/in/a.csv", "1");
    let outer = FsStore::mounted(run_mounts(&place.path("all/in"), &place.path("all"))).unwrap();
    assert_eq!(keys(&outer, LAKE), ["a.csv"]);
    assert!(keys(&outer, WAREHOUSE).is_empty());
    let delete = outer.delete(WAREHOUSE, &["pipelines/local/in/a.csv".to_owned()], &WriteOptions::default());
    assert!(matches!(delete, Err(StoreError::InvalidKey { .. })));
    assert!(place.path("all/in/a.csv").is_file());
}

#[test]
fn ambiguous_folders_are_rejected() {
    let place = Fixture::new();
    fs::create_dir(place.path("in")).unwrap();
    symlink(place.path("in"), place.path("alias")).unwrap();
    let same = FsStore::mounted(run_mounts(&place.path("in"), &place.path("alias/../in/.")));
    assert!(matches!(same, Err(MountError::SameFolder { .. })));
    let aliased = FsStore::mounted(run_mounts(&place.path("in"), &place.path("alias")));
    assert!(matches!(aliased, Err(MountError::SameFolder { .. })));
    let mut mounts = run_mounts(&place.path("in"), &place.path("out"));
    mounts.push(Mount { prefix: "pipelines/".to_owned(), dir: place.path("third"), ..mounts[0].clone() });
    assert!(matches!(FsStore::mounted(mounts), Err(MountError::OverlappingPrefix { .. })));
    for prefix in ["x", "/", "a//", "../"] {
        let mount = Mount { prefix: prefix.to_owned(), ..run_mounts(&place.path("in"), &place.path("out"))[0].clone() };
        assert!(matches!(FsStore::mounted(vec![mount]), Err(MountError::BadPrefix { .. })), "{prefix}");
    }
    for lake in ["a/b", "..", "", ".lakemill"] {
        let names = BucketNames { lake: lake.to_owned(), ..BucketNames::default() };
        assert!(
            matches!(FsStore::open_named(place.root.path(), &names), Err(MountError::BadBucketName { .. })),
            "{lake}"
        );
    }
}

#[test]
fn missing_bucket_is_reported_and_never_created() {
    let place = Fixture::new();
    fs::remove_dir(place.path("lake")).unwrap();
    let options = WriteOptions::default();
    let errors = [
        place.store.list(LAKE, "", None, None, 1).map(drop),
        place.store.head(LAKE, "k").map(drop),
        place.store.get(LAKE, "k", None).map(drop),
        place.store.put(LAKE, "a/k", b"", &options).map(drop),
        place.store.delete(LAKE, &["k".to_owned()], &options),
    ];
    for error in errors.into_iter().map(Result::unwrap_err) {
        assert!(matches!(error, StoreError::BucketNotFound { bucket: LAKE, .. }), "{error}");
    }
    assert!(!place.path("lake").exists());
    let store = FsStore::mounted(run_mounts(&place.path("none"), &place.path("out"))).unwrap();
    assert!(matches!(store.list(LAKE, "", None, None, 1), Err(StoreError::BucketNotFound { .. })));
    // The folder may not exist yet, and reading doesn't create it.
    assert!(keys(&store, WAREHOUSE).is_empty());
    assert!(!place.path("out").exists());
    put(&store, WAREHOUSE, "pipelines/local/t/x", "").unwrap();
    assert!(place.path("out/t/x").is_file());
}

#[test]
fn empty_folders_are_not_objects_and_do_not_block_keys() {
    let place = Fixture::new();
    fs::create_dir_all(place.path("lake/k/left/over")).unwrap();
    let page = place.store.list(LAKE, "", Some('/'), None, 10).unwrap();
    assert!(page.prefixes.is_empty());
    let options = WriteOptions::default().with(Precondition::IfNoneMatch);
    place.store.put(LAKE, "k", b"1", &options).unwrap();
    assert_eq!(read(&place.store, LAKE, "k"), "1");
    fs::create_dir_all(place.path("lake/l/x")).unwrap();
    place.put("l", "2");
}

#[test]
fn empty_folders_are_removed_up_to_the_bucket() {
    let place = Fixture::new();
    place.put("a/b/c/1", "");
    place.put("a/2", "");
    place.store.delete(LAKE, &["a/b/c/1".to_owned()], &WriteOptions::default()).unwrap();
    assert!(!place.path("lake/a/b").exists() && place.path("lake/a").exists());
    place.store.delete(LAKE, &["a/2".to_owned()], &WriteOptions::default()).unwrap();
    assert!(!place.path("lake/a").exists() && place.path("lake").exists());
}

#[test]
fn invalid_key_does_not_undo_earlier_deletes() {
    let place = Fixture::new();
    place.put("a/1", "");
    let keys = ["a/1", "../x", "a/2"].map(str::to_owned);
    assert!(place.store.delete(LAKE, &keys, &WriteOptions::default()).is_err());
    assert!(!place.path("lake/a").exists());
}

struct Fenced(Slug, u64);

impl Lease for Fenced {
    fn slug(&self) -> &Slug {
        &self.0
    }

    fn fence(&self) -> u64 {
        self.1
    }

    fn remaining(&self) -> Result<Duration, LeaseLost> {
        Ok(Duration::MAX)
    }
}

#[test]
fn damaged_fence_error_names_the_file() {
    let place = Fixture::new();
    let lease = Fenced(Slug::parse("p").unwrap(), u64::MAX);
    place.store.put(LAKE, "k", b"1", &WriteOptions::leased(&lease)).unwrap();
    let fence = place.path(".lakemill/fence/p");
    assert_eq!(place.store.highest_fence(&lease.0).unwrap(), u64::MAX);
    assert_eq!(place.store.highest_fence(&Slug::parse("q").unwrap()).unwrap(), 0);
    assert_eq!(fs::read_to_string(&fence).unwrap(), u64::MAX.to_string());
    for damaged in ["12", "not twenty digits at all", "0000000000000000000x"] {
        fs::write(&fence, damaged).unwrap();
        let error = place.store.put(LAKE, "k", b"2", &WriteOptions::leased(&lease)).unwrap_err();
        assert!(error.to_string().contains("fence/p` contains no fence"), "{error}");
    }
    assert_eq!(read(&place.store, LAKE, "k"), "1");
}

#[test]
fn large_folder_is_read_once_unless_it_changes() {
    let place = Fixture::new();
    for index in 0..1_500 {
        fs::write(place.path(&format!("lake/{index:05}")), "").unwrap();
    }
    let first = place.store.list(LAKE, "", None, None, 400).unwrap();
    let second = place.store.list(LAKE, "", None, first.next.as_deref(), 400).unwrap();
    assert_eq!(second.objects[0].key, "00400");
    // A file of another process, and one that is deleted.
    fs::write(place.path("lake/00900x"), "").unwrap();
    fs::remove_file(place.path("lake/00901")).unwrap();
    let third = place.store.list(LAKE, "", None, second.next.as_deref(), 400).unwrap();
    let keys: Vec<&str> = third.objects.iter().map(|meta| meta.key.as_str()).collect();
    assert!(keys.contains(&"00900x") && !keys.contains(&"00901"));
}

#[test]
fn invalid_token_is_rejected() {
    let place = Fixture::new();
    for token in ["", "x", "é", "zk"] {
        let listed = place.store.list(LAKE, "", None, Some(token), 1);
        assert!(matches!(listed, Err(StoreError::InvalidKey { .. })), "{token}");
    }
}

#[test]
fn only_own_files_are_linked() {
    let root = tempfile::tempdir().unwrap();
    let store = FsStore::create(root.path()).unwrap();
    let tag = |key: &str| store.head(WAREHOUSE, key).unwrap().unwrap().etag.unwrap();
    fs::write(root.path().join("warehouse/theirs"), "x").unwrap();
    let into = root.path().join("link");
    assert!(!store.link(WAREHOUSE, "theirs", Some(&tag("theirs")), &into).unwrap());
    assert!(!into.exists());
    put(&store, WAREHOUSE, "ours", "x").unwrap();
    assert!(store.link(WAREHOUSE, "ours", Some(&tag("ours")), &into).unwrap());
    store.link(WAREHOUSE, "ours", Some(&tag("ours")), &into).unwrap_err();
}

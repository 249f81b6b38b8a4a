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

fn files_in_tmp(fixture: &Fixture) -> usize {
    fs::read_dir(fixture.path("lake/.lakemill/tmp")).unwrap().count()
}

#[test]
fn tag_survives_link_and_rename_but_not_a_write() {
    let fixture = Fixture::new();
    let tag = fixture.put("a.csv", "1,2\n");
    assert_eq!(tag.0.len(), 64);
    fs::hard_link(fixture.path("lake/a.csv"), fixture.path("lake/b.csv")).unwrap();
    assert_eq!(fixture.tag("a.csv"), tag);
    fs::rename(fixture.path("lake/b.csv"), fixture.path("lake/c.csv")).unwrap();
    assert_eq!(fixture.tag("c.csv"), tag);
    fs::remove_file(fixture.path("lake/c.csv")).unwrap();

    // Written in place, with the same length; then the old time is restored.
    let modified = fs::metadata(fixture.path("lake/a.csv")).unwrap().modified().unwrap();
    fs::write(fixture.path("lake/a.csv"), "3,4\n").unwrap();
    let changed = fixture.tag("a.csv");
    assert!(changed.0.starts_with("stat-") && changed.0.len() == 37, "{changed:?}");
    let file = fs::File::options().append(true).open(fixture.path("lake/a.csv")).unwrap();
    std::io::Write::write_all(&mut &file, b"5").unwrap();
    file.set_modified(modified).unwrap();
    assert_ne!(fixture.tag("a.csv"), tag);
    assert_ne!(fixture.tag("a.csv"), changed);
}

#[test]
fn copied_attribute_is_ignored() {
    let fixture = Fixture::new();
    let tag = fixture.put("a", "content");
    fixture.write("lake/b", "CONTENT");
    let mut value = [0; 200];
    let length = rustix::fs::getxattr(fixture.path("lake/a"), "user.lakemill.etag", &mut value).unwrap();
    let flags = rustix::fs::XattrFlags::empty();
    rustix::fs::setxattr(fixture.path("lake/b"), "user.lakemill.etag", &value[..length], flags).unwrap();
    assert_ne!(fixture.tag("b"), tag);
    assert!(fixture.tag("b").0.starts_with("stat-"));
}

#[test]
fn foreign_files_get_a_tag_from_their_stat() {
    let fixture = Fixture::new();
    fixture.write("lake/p/x.csv", "a\n1\n");
    let first = fixture.tag("p/x.csv");
    assert_eq!(fixture.tag("p/x.csv"), first);
    // Another file of the same length and time.
    let modified = fs::metadata(fixture.path("lake/p/x.csv")).unwrap().modified().unwrap();
    fixture.write("lake/p/y.csv", "a\n2\n");
    fs::File::options().write(true).open(fixture.path("lake/p/y.csv")).unwrap().set_modified(modified).unwrap();
    fs::rename(fixture.path("lake/p/y.csv"), fixture.path("lake/p/x.csv")).unwrap();
    assert_ne!(fixture.tag("p/x.csv"), first);
    let options = WriteOptions::default().with(Precondition::IfMatch(first));
    assert!(matches!(fixture.store.put(LAKE, "p/x.csv", b"", &options), Err(StoreError::PreconditionFailed { .. })));
    let options = WriteOptions::default().with(Precondition::IfMatch(fixture.tag("p/x.csv")));
    fixture.store.put(LAKE, "p/x.csv", b"", &options).unwrap();
}

#[test]
fn tags_use_the_stat_without_extended_attributes() {
    let fixture = Fixture::new();
    for folder in fixture.store.folders.all() {
        folder.has_xattrs.store(false, Ordering::Relaxed);
    }
    let first = fixture.put("a", "1");
    assert!(first.0.starts_with("stat-"));
    assert_eq!(fixture.tag("a"), first);
    let options = WriteOptions::default().with(Precondition::IfMatch(first.clone()));
    fixture.store.put(LAKE, "a", b"2", &options).unwrap();
    assert!(fixture.store.put(LAKE, "a", b"3", &options).is_err());
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
        let fixture = Fixture::new();
        fixture.write("lake/k", &"x".repeat(100_000));
        let mut body = fixture.store.get(LAKE, "k", None).unwrap().body;
        body.read_exact(&mut [0; 10]).unwrap();
        change(&fixture.path("lake/k"));
        // A reader that stops at the last byte must see the error, too.
        let error = body.read_exact(&mut vec![0; 99_990]).unwrap_err();
        assert!(BodyChanged::is_in(&error), "{error}");
    }
}

#[test]
fn replaced_own_object_is_read_to_its_end() {
    let fixture = Fixture::new();
    fixture.put("k", "old");
    let body = fixture.store.get(LAKE, "k", None).unwrap().body;
    fixture.put("k", "new");
    assert_eq!(std::io::read_to_string(body).unwrap(), "old");
    let body = fixture.store.get(LAKE, "k", None).unwrap().body;
    fixture.store.delete(LAKE, &["k".to_owned()], &WriteOptions::default()).unwrap();
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
    let fixture = Fixture::new();
    fixture.put("k", "old");
    let options = WriteOptions::default();
    let full = fixture.store.write(LAKE, "k", &options, |at| stage::from_reader(at.folder, &mut b"new".chain(Broken)));
    assert!(matches!(full, Err(StoreError::DiskFull { .. })));
    fixture.store.put(LAKE, "k", b"new", &options.with(Precondition::IfNoneMatch)).unwrap_err();
    assert_eq!(read(&fixture.store, LAKE, "k"), "old");
    assert_eq!(files_in_tmp(&fixture), 0);
}

#[test]
fn sweep_removes_only_files_of_dead_writers() {
    let fixture = Fixture::new();
    fixture.put("k", "1");
    fixture.write("lake/.lakemill/tmp/dead", "half");
    let living = stage::from_reader(&fixture.store.folders.all()[1], &mut &b"whole"[..]).unwrap();
    assert_eq!(files_in_tmp(&fixture), 2);
    FsStore::open(fixture.root.path()).unwrap();
    assert_eq!(files_in_tmp(&fixture), 1);
    drop(living);
    assert_eq!(files_in_tmp(&fixture), 0);
    assert_eq!(keys(&fixture.store, LAKE), ["k"]);
}

#[test]
fn published_files_get_default_permissions() {
    let fixture = Fixture::new();
    let spool = tempfile::NamedTempFile::new_in(fixture.root.path()).unwrap();
    fs::write(spool.path(), "x").unwrap();
    let inode = fs::metadata(spool.path()).unwrap().ino();
    fixture.store.put_file(LAKE, "a/moved", spool.path(), &WriteOptions::default()).unwrap();
    fixture.put("a/put", "x");
    let moved = fs::metadata(fixture.path("lake/a/moved")).unwrap();
    assert_eq!(moved.ino(), inode, "on one file system the file itself becomes the object");
    assert_eq!(moved.permissions().mode(), fs::metadata(fixture.path("lake/a/put")).unwrap().permissions().mode());
}

#[test]
fn own_folder_is_unlisted_and_unreachable() {
    let fixture = Fixture::new();
    fixture.put("k", "1");
    fixture.write("lake/.lakemill/x", "1");
    fixture.write("lake/a/.lakemill/x", "2");
    assert_eq!(keys(&fixture.store, LAKE), ["a/.lakemill/x", "k"]);
    assert_eq!(fixture.store.head(LAKE, ".lakemill/x").unwrap(), None);
    assert!(matches!(fixture.store.get(LAKE, ".lakemill/x", None), Err(StoreError::NotFound { .. })));
    for key in [".lakemill", ".lakemill/x", ".lakemill/tmp/y"] {
        assert!(matches!(put(&fixture.store, LAKE, key, ""), Err(StoreError::InvalidKey { .. })), "{key}");
        let deleted = fixture.store.delete(LAKE, &[key.to_owned()], &WriteOptions::default());
        assert!(matches!(deleted, Err(StoreError::InvalidKey { .. })), "{key}");
    }
    put(&fixture.store, LAKE, ".lakemill2/x", "").unwrap();
}

#[test]
fn links_in_writable_folders_are_ignored() {
    let fixture = Fixture::new();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "s").unwrap();
    symlink(outside.path(), fixture.path("lake/folder")).unwrap();
    symlink(outside.path().join("secret"), fixture.path("lake/file")).unwrap();
    fixture.put("k", "1");
    assert_eq!(keys(&fixture.store, LAKE), ["k"]);
    for key in ["folder/secret", "file"] {
        assert_eq!(fixture.store.head(LAKE, key).unwrap(), None);
        assert!(fixture.store.get(LAKE, key, None).is_err());
        fixture.store.delete(LAKE, &[key.to_owned()], &WriteOptions::default()).unwrap();
    }
    let error = put(&fixture.store, LAKE, "folder/new", "x").unwrap_err();
    assert!(error.to_string().contains("`folder` is a symbolic link"), "{error}");
    put(&fixture.store, LAKE, "file", "mine").unwrap();
    assert_eq!(read(&fixture.store, LAKE, "file"), "mine");
    assert_eq!(fs::read_to_string(outside.path().join("secret")).unwrap(), "s");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
}

#[test]
fn links_in_read_only_folders_are_followed_without_loops() {
    let fixture = Fixture::new();
    fixture.write("elsewhere/year/x.csv", "x");
    fixture.write("in/a.csv", "a");
    fixture.write("in/d/b.csv", "b");
    symlink(fixture.path("elsewhere"), fixture.path("in/linked")).unwrap();
    symlink(fixture.path("in"), fixture.path("in/d/up")).unwrap();
    symlink("d/b.csv", fixture.path("in/same.csv")).unwrap();
    symlink("nowhere", fixture.path("in/dangling.csv")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, fixture.path("in/pipe.csv"), rustix::fs::Mode::RWXU).unwrap();
    let store = FsStore::mounted(run_mounts(&fixture.path("in"), &fixture.path("out"))).unwrap();
    assert_eq!(keys(&store, LAKE), ["a.csv", "d/b.csv", "linked/year/x.csv", "same.csv"]);
    assert!(list_all(&store, LAKE, "pipelines/local/d/up/").unwrap().is_empty());
    assert_eq!(read(&store, LAKE, "pipelines/local/linked/year/x.csv"), "x");
    assert_eq!(store.head(LAKE, "pipelines/local/pipe.csv").unwrap(), None);
    assert_eq!(store.head(LAKE, "pipelines/local/dangling.csv").unwrap(), None);
}

#[test]
fn prefix_lists_only_its_names() {
    let fixture = Fixture::new();
    let store = &fixture.store;
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
    let fixture = Fixture::new();
    fixture.write("lake/ok", "");
    fs::write(fixture.root.path().join("lake").join(std::ffi::OsStr::from_bytes(b"bad\xff.csv")), "").unwrap();
    let deep = format!("lake/{}", format!("{}/", "d".repeat(200)).repeat(6));
    fixture.write(&format!("{deep}x"), "");
    assert_eq!(keys(&fixture.store, LAKE), ["ok"]);
}

#[test]
fn run_reads_input_and_lists_only_tables_in_output() {
    let fixture = Fixture::new();
    fixture.write("in/a.csv", "1");
    fixture.write("out/.git/config", "");
    let store = FsStore::mounted(run_mounts(&fixture.path("in"), &fixture.path("out"))).unwrap();
    put(&store, WAREHOUSE, "pipelines/local/t/.part", "").unwrap_err();
    put(&store, WAREHOUSE, "pipelines/local/t/part-00000.parquet", "").unwrap();
    put(&store, Bucket::Pipelines, "pipelines/local/manifests/t.json", "{}").unwrap();
    assert_eq!(keys(&store, WAREHOUSE), ["t/part-00000.parquet"]);
    assert_eq!(keys(&store, Bucket::Pipelines), ["manifests/t.json"]);
    assert_eq!(keys(&store, LAKE), ["a.csv"]);
    assert!(fixture.path("out/_lakemill/manifests/t.json").is_file());
    let error = put(&store, LAKE, "pipelines/local/new.csv", "").unwrap_err();
    assert!(matches!(error, StoreError::AccessDenied { .. }), "{error}");
    let error = put(&store, WAREHOUSE, "pipelines/local/_lakemill/x", "").unwrap_err();
    assert!(matches!(error, StoreError::InvalidKey { .. }), "{error}");
    let error = put(&store, WAREHOUSE, "pipelines/other/x", "").unwrap_err();
    assert!(matches!(error, StoreError::InvalidKey { .. }), "{error}");
    assert_eq!(fs::read_dir(fixture.path("in")).unwrap().count(), 1, "nothing is left in an input");
}

#[test]
fn nested_input_and_output_hide_each_other() {
    let fixture = Fixture::new();
    fixture.write("data/a.csv", "1");
    fixture.write("data/out/t/old.csv", "2");
    symlink(fixture.path("data/out/t"), fixture.path("data/sly")).unwrap();
    let inner = FsStore::mounted(run_mounts(&fixture.path("data"), &fixture.path("data/out"))).unwrap();
    assert_eq!(keys(&inner, LAKE), ["a.csv"]);
    assert_eq!(keys(&inner, WAREHOUSE), ["t/old.csv"]);

    fixture.write("all/in/a.csv", "1");
    let outer = FsStore::mounted(run_mounts(&fixture.path("all/in"), &fixture.path("all"))).unwrap();
    assert_eq!(keys(&outer, LAKE), ["a.csv"]);
    assert!(keys(&outer, WAREHOUSE).is_empty());
    let delete = outer.delete(WAREHOUSE, &["pipelines/local/in/a.csv".to_owned()], &WriteOptions::default());
    assert!(matches!(delete, Err(StoreError::InvalidKey { .. })));
    assert!(fixture.path("all/in/a.csv").is_file());
}

#[test]
fn ambiguous_folders_are_rejected() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.path("in")).unwrap();
    symlink(fixture.path("in"), fixture.path("alias")).unwrap();
    let same = FsStore::mounted(run_mounts(&fixture.path("in"), &fixture.path("alias/../in/.")));
    assert!(matches!(same, Err(MountError::SameFolder { .. })));
    let aliased = FsStore::mounted(run_mounts(&fixture.path("in"), &fixture.path("alias")));
    assert!(matches!(aliased, Err(MountError::SameFolder { .. })));
    let mut mounts = run_mounts(&fixture.path("in"), &fixture.path("out"));
    mounts.push(Mount { prefix: "pipelines/".to_owned(), dir: fixture.path("third"), ..mounts[0].clone() });
    assert!(matches!(FsStore::mounted(mounts), Err(MountError::OverlappingPrefix { .. })));
    for prefix in ["x", "/", "a//", "../"] {
        let mount =
            Mount { prefix: prefix.to_owned(), ..run_mounts(&fixture.path("in"), &fixture.path("out"))[0].clone() };
        assert!(matches!(FsStore::mounted(vec![mount]), Err(MountError::BadPrefix { .. })), "{prefix}");
    }
    for lake in ["a/b", "..", "", ".lakemill"] {
        let names = BucketNames { lake: lake.to_owned(), ..BucketNames::default() };
        assert!(
            matches!(FsStore::open_named(fixture.root.path(), &names), Err(MountError::BadBucketName { .. })),
            "{lake}"
        );
    }
}

#[test]
fn missing_bucket_is_reported_and_never_created() {
    let fixture = Fixture::new();
    fs::remove_dir(fixture.path("lake")).unwrap();
    let options = WriteOptions::default();
    let errors = [
        fixture.store.list(LAKE, "", None, None, 1).map(drop),
        fixture.store.head(LAKE, "k").map(drop),
        fixture.store.get(LAKE, "k", None).map(drop),
        fixture.store.put(LAKE, "a/k", b"", &options).map(drop),
        fixture.store.delete(LAKE, &["k".to_owned()], &options),
    ];
    for error in errors.into_iter().map(Result::unwrap_err) {
        assert!(matches!(error, StoreError::BucketNotFound { bucket: LAKE, .. }), "{error}");
    }
    assert!(!fixture.path("lake").exists());
    let store = FsStore::mounted(run_mounts(&fixture.path("none"), &fixture.path("out"))).unwrap();
    assert!(matches!(store.list(LAKE, "", None, None, 1), Err(StoreError::BucketNotFound { .. })));
    // The folder may not exist yet, and reading doesn't create it.
    assert!(keys(&store, WAREHOUSE).is_empty());
    assert!(!fixture.path("out").exists());
    put(&store, WAREHOUSE, "pipelines/local/t/x", "").unwrap();
    assert!(fixture.path("out/t/x").is_file());
}

#[test]
fn empty_folders_are_not_objects_and_do_not_block_keys() {
    let fixture = Fixture::new();
    fs::create_dir_all(fixture.path("lake/k/left/over")).unwrap();
    let page = fixture.store.list(LAKE, "", Some('/'), None, 10).unwrap();
    assert!(page.prefixes.is_empty());
    let options = WriteOptions::default().with(Precondition::IfNoneMatch);
    fixture.store.put(LAKE, "k", b"1", &options).unwrap();
    assert_eq!(read(&fixture.store, LAKE, "k"), "1");
    fs::create_dir_all(fixture.path("lake/l/x")).unwrap();
    fixture.put("l", "2");
}

#[test]
fn empty_folders_are_removed_up_to_the_bucket() {
    let fixture = Fixture::new();
    fixture.put("a/b/c/1", "");
    fixture.put("a/2", "");
    fixture.store.delete(LAKE, &["a/b/c/1".to_owned()], &WriteOptions::default()).unwrap();
    assert!(!fixture.path("lake/a/b").exists() && fixture.path("lake/a").exists());
    fixture.store.delete(LAKE, &["a/2".to_owned()], &WriteOptions::default()).unwrap();
    assert!(!fixture.path("lake/a").exists() && fixture.path("lake").exists());
}

#[test]
fn invalid_key_does_not_undo_earlier_deletes() {
    let fixture = Fixture::new();
    fixture.put("a/1", "");
    let keys = ["a/1", "../x", "a/2"].map(str::to_owned);
    assert!(fixture.store.delete(LAKE, &keys, &WriteOptions::default()).is_err());
    assert!(!fixture.path("lake/a").exists());
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
    let fixture = Fixture::new();
    let lease = Fenced(Slug::parse("p").unwrap(), u64::MAX);
    fixture.store.put(LAKE, "k", b"1", &WriteOptions::leased(&lease)).unwrap();
    let fence = fixture.path(".lakemill/fence/p");
    assert_eq!(fixture.store.highest_fence(&lease.0).unwrap(), u64::MAX);
    assert_eq!(fixture.store.highest_fence(&Slug::parse("q").unwrap()).unwrap(), 0);
    assert_eq!(fs::read_to_string(&fence).unwrap(), u64::MAX.to_string());
    for damaged in ["12", "not twenty digits at all", "0000000000000000000x"] {
        fs::write(&fence, damaged).unwrap();
        let error = fixture.store.put(LAKE, "k", b"2", &WriteOptions::leased(&lease)).unwrap_err();
        assert!(error.to_string().contains("fence/p` contains no fence"), "{error}");
    }
    assert_eq!(read(&fixture.store, LAKE, "k"), "1");
}

#[test]
fn large_folder_is_read_once_unless_it_changes() {
    let fixture = Fixture::new();
    for index in 0..1_500 {
        fs::write(fixture.path(&format!("lake/{index:05}")), "").unwrap();
    }
    let first = fixture.store.list(LAKE, "", None, None, 400).unwrap();
    let second = fixture.store.list(LAKE, "", None, first.next.as_deref(), 400).unwrap();
    assert_eq!(second.objects[0].key, "00400");
    // A file of another process, and one that is deleted.
    fs::write(fixture.path("lake/00900x"), "").unwrap();
    fs::remove_file(fixture.path("lake/00901")).unwrap();
    let third = fixture.store.list(LAKE, "", None, second.next.as_deref(), 400).unwrap();
    let keys: Vec<&str> = third.objects.iter().map(|meta| meta.key.as_str()).collect();
    assert!(keys.contains(&"00900x") && !keys.contains(&"00901"));
}

#[test]
fn invalid_token_is_rejected() {
    let fixture = Fixture::new();
    for token in ["", "x", "é", "zk"] {
        let listed = fixture.store.list(LAKE, "", None, Some(token), 1);
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

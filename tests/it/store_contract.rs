//! The contract of `ports::ObjectStore`, run on every backend.
//!
//! A test takes a [`Fixture`] and doesn't know the backend. Differences of folders are flags of it.

mod leases;
mod listing;
mod racing;
mod reading;
mod writing;

use std::any::Any;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use lakemill::adapters::fs::{DOT_FILES, FsStore, Mount};
use lakemill::adapters::s3::S3Store;
use lakemill::ports::ObjectStore;
use lakemill::ports::store::{Bucket, ETag, Lease, ObjectMeta, Precondition, StagedFile, StoreResult, WriteOptions};
use sha2::{Digest, Sha256};

use crate::support::faulty_store::FaultyStore;
use crate::support::memory_store::{MemoryStore, Tags};
use crate::support::s3_server::{self, S3Server};

/// A fresh store under test.
pub struct Fixture {
    /// Opens the store again, like another process: handles share only the stored data.
    open: Box<dyn Fn() -> Arc<dyn ObjectStore> + Sync>,
    store: Arc<dyn ObjectStore>,
    /// Keys of a test start with it.
    prefix: &'static str,
    /// Whether a writer with a fence lower than an earlier writer's is rejected.
    fences: bool,
    /// Whether `a` can't coexist with `a/b`, and segments can't be empty or longer than 255 bytes.
    folders: bool,
    quirks: Quirks,
    _keep: Box<dyn Any + Sync>,
}

/// Deviations of a backend, or of its test server, from the contract.
#[derive(Clone, Copy, Default)]
struct Quirks {
    /// Its responses to writes have a time, but not the same second as later responses.
    write_times_are_near: bool,
    /// Keys over about 150 bytes fail.
    long_keys_fail: bool,
    /// A key with others below it, but no object, is an error instead of missing.
    names_of_folders_fail: bool,
    /// Delimiters that are not ASCII fail.
    wide_delimiters_fail: bool,
    /// `a//b` is `a/b`, and `a/` is a folder.
    empty_segments_are_folded: bool,
}

impl Fixture {
    fn new(open: impl Fn() -> Arc<dyn ObjectStore> + Sync + 'static, folders: bool, keep: impl Any + Sync) -> Self {
        let store = open();
        let prefix = "pipelines/local/";
        Self {
            open: Box::new(open),
            store,
            prefix,
            fences: true,
            folders,
            quirks: Quirks::default(),
            _keep: Box::new(keep),
        }
    }

    fn memory(store: impl ObjectStore + 'static) -> Self {
        let store: Arc<dyn ObjectStore> = Arc::new(store);
        Self::new(move || Arc::clone(&store), false, ())
    }

    fn s3(server: &'static S3Server, quirks: Quirks) -> Self {
        let options = server.options();
        let open = move || -> Arc<dyn ObjectStore> { Arc::new(S3Store::open(options.clone()).unwrap()) };
        Self { fences: false, quirks: Quirks { write_times_are_near: true, ..quirks }, ..Self::new(open, false, ()) }
    }

    fn key(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    fn put(&self, bucket: Bucket, name: &str, body: &[u8]) -> ObjectMeta {
        self.put_if(bucket, name, body, Precondition::None).unwrap()
    }

    fn put_if(&self, bucket: Bucket, name: &str, body: &[u8], when: Precondition) -> StoreResult<ObjectMeta> {
        self.store.put(bucket, &self.key(name), body, &WriteOptions::default().with(when))
    }

    fn read(&self, bucket: Bucket, name: &str) -> Option<Vec<u8>> {
        read(&*self.store, bucket, &self.key(name))
    }

    fn tag(&self, bucket: Bucket, name: &str) -> ETag {
        self.store.head(bucket, &self.key(name)).unwrap().unwrap().etag.unwrap()
    }

    fn delete(&self, bucket: Bucket, names: &[&str]) {
        let keys: Vec<String> = names.iter().map(|name| self.key(name)).collect();
        self.store.delete(bucket, &keys, &WriteOptions::default()).unwrap();
    }

    /// Names (keys without the prefix) of all objects that start so.
    fn names(&self, bucket: Bucket, start: &str) -> Vec<String> {
        let all = lakemill::ports::store::list_all(&*self.store, bucket, &self.key(start)).unwrap();
        all.into_iter().map(|meta| meta.key[self.prefix.len()..].to_owned()).collect()
    }
}

/// Stages a file of the warehouse with its hash.
fn stage<'s>(
    store: &'s dyn ObjectStore,
    key: &str,
    file: &Path,
    lease: &'s dyn Lease,
) -> StoreResult<Option<Box<dyn StagedFile + 's>>> {
    let sha256 =
        Sha256::digest(std::fs::read(file).unwrap()).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    store.stage_file(Bucket::Warehouse, key, file, &sha256, lease, &|| true)
}

fn read(store: &dyn ObjectStore, bucket: Bucket, key: &str) -> Option<Vec<u8>> {
    let mut reader = match store.get(bucket, key, None) {
        Ok(reader) => reader,
        Err(lakemill::ports::store::StoreError::NotFound { .. }) => return None,
        Err(error) => panic!("{error}"),
    };
    let mut bytes = Vec::new();
    reader.body.read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes.len() as u64, reader.meta.size);
    Some(bytes)
}

macro_rules! backends {
    ($($backend:ident: $fixture:expr),* $(,)?) => {
        $(mod $backend {
            use super::*;
            contract!($fixture);
        })*
    };
}

macro_rules! contract {
    ($fixture:expr) => {
        contract!($fixture, reading:
            put_object_can_be_read_and_listed,
            empty_object_exists,
            large_objects_round_trip,
            missing_object_is_not_found,
            tag_is_the_same_in_all_responses,
            get_with_another_tag_fails,
            ranges_are_cut_at_the_end,
            range_with_another_tag_fails,
            body_is_one_version_or_an_error,
            modified_is_the_write_time,
            link_keeps_its_bytes_when_the_object_changes);
        contract!($fixture, writing:
            put_replaces_the_whole_object,
            create_fails_if_the_object_exists,
            write_after_its_deadline_changes_nothing,
            replace_requires_the_current_tag,
            unusual_keys_are_kept_byte_for_byte,
            keys_that_are_not_paths_are_rejected,
            keys_with_empty_segments_are_distinct,
            file_is_put_from_any_file_system,
            rejected_put_keeps_the_local_file,
            staged_file_is_visible_only_after_its_put,
            staged_file_respects_the_puts_precondition,
            copies_are_equal_within_and_across_buckets,
            copy_respects_its_precondition,
            delete_takes_any_number_of_keys_and_ignores_missing_ones,
            object_next_to_a_folder_of_its_name,
            buckets_are_separate);
        contract!($fixture, listing:
            keys_are_listed_in_byte_order,
            listing_is_independent_of_page_size,
            any_character_can_be_a_delimiter,
            empty_segments_are_separate_levels,
            prefix_may_end_within_a_segment,
            unused_prefix_lists_nothing,
            listing_continues_after_its_last_key_was_deleted,
            later_pages_include_new_objects,
            page_has_at_most_a_thousand_keys);
        contract!($fixture, racing:
            one_of_many_creates_wins,
            one_of_many_replaces_wins,
            conditional_counters_lose_no_update,
            readers_see_whole_objects_during_races,
            puts_and_deletes_in_one_folder_do_not_interfere,
            one_of_racing_create_copy_and_upload_wins);
        contract!($fixture, leases:
            lost_lease_writes_nothing,
            lower_fence_writes_nothing_after_a_higher_one,
            fences_are_per_pipeline,
            precondition_applies_with_a_lease);
    };
    ($fixture:expr, $topic:ident: $($test:ident),*) => {
        $(#[test]
        fn $test() {
            super::$topic::$test(&$fixture);
        })*
    };
}

backends! {
    fs_root: fs_root(),
    fs_mounted: fs_mounted(),
    memory: Fixture::memory(MemoryStore::new()),
    memory_without_listed_tags: Fixture::memory(MemoryStore::with(Tags::Counter, false)),
    faulty_without_faults: Fixture::memory(FaultyStore::new(Arc::new(MemoryStore::new()))),
    s3_s3s_fs: Fixture::s3(s3_server::s3s_fs(), S3S_FS),
    s3_moto: Fixture::s3(s3_server::moto(), Quirks::default()),
}

/// It keeps objects in folders, and the metadata of each in a file named after the key.
const S3S_FS: Quirks = Quirks {
    write_times_are_near: true,
    long_keys_fail: true,
    names_of_folders_fail: true,
    wide_delimiters_fail: true,
    empty_segments_are_folded: true,
};

fn fs_root() -> Fixture {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("store");
    FsStore::create(&path).unwrap();
    Fixture::new(move || Arc::new(FsStore::open(&path).unwrap()), true, root)
}

/// Like `lakemill run`, but the lake is written too.
fn fs_mounted() -> Fixture {
    let root = tempfile::tempdir().unwrap();
    let (input, output) = (root.path().join("in"), root.path().join("out"));
    let open = move || -> Arc<dyn ObjectStore> {
        let mount = |bucket, dir: &std::path::Path, hide: &[&str]| Mount {
            bucket,
            prefix: "pipelines/local/".to_owned(),
            dir: dir.to_owned(),
            writable: true,
            hide: hide.iter().map(|h| (*h).to_owned()).collect(),
        };
        let mounts = vec![
            mount(Bucket::Lake, &input, &[]),
            mount(Bucket::Warehouse, &output, &[DOT_FILES]),
            mount(Bucket::Pipelines, &output.join("_lakemill"), &[]),
        ];
        Arc::new(FsStore::mounted(mounts).unwrap())
    };
    Fixture::new(open, true, root)
}

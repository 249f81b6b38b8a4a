//! The store of `lakemill run`: folders of this machine, buckets, or one of each.
//!
//! The tables are in the output, manifests in its folder `_lakemill`, whatever the output is.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::location::{Location, S3Location};
use super::output::{self, STATE_FOLDER};
use super::services::Services;
use crate::adapters::fs::{DOT_FILES, FsStore, Mount};
use crate::adapters::s3::{S3Mount, S3Options, S3Store};
use crate::adapters::split::SplitStore;
use crate::config::{Buckets, ObjectStoreConfig};
use crate::domain::layout::pipeline_prefix;
use crate::domain::name::Slug;
use crate::ports::ObjectStore;
use crate::ports::store::{Bucket, StoreError, StoreResult};

/// Limit of output entries checked for one that no run created.
const ENTRIES_MAX: usize = 100;

/// Where a run reads and writes. Paths are resolved.
pub struct RunLocations<'a> {
    pub slug: &'a Slug,
    pub input: Location,
    pub output: Location,
}

/// The store of a run.
pub struct RunStore {
    pub all: Arc<dyn ObjectStore>,
    /// The store of the output alone, whose clock is that of its objects.
    pub output: Arc<dyn ObjectStore>,
}

impl RunStore {
    fn whole(store: Arc<dyn ObjectStore>) -> Self {
        Self { all: Arc::clone(&store), output: store }
    }

    fn split(lake: Arc<dyn ObjectStore>, output: Arc<dyn ObjectStore>) -> Self {
        Self { all: Arc::new(SplitStore::new(lake, Arc::clone(&output))), output }
    }
}

impl RunLocations<'_> {
    /// Opens the store. `objects`: how to reach the object store, if one is needed.
    ///
    /// # Errors
    /// The store that can't be opened or used, with advice.
    pub fn open(&self, objects: Option<&ObjectStoreConfig>) -> Result<RunStore, String> {
        match (&self.input, &self.output) {
            (Location::Folder(input), Location::Folder(output)) => {
                Ok(RunStore::whole(Arc::new(self.folders(vec![self.lake_folder(input)], Some(output))?)))
            }
            (Location::S3(input), Location::Folder(output)) => {
                let lake = self.check_input(self.bucket_store(objects, Some(input), None)?)?;
                Ok(RunStore::split(lake, Arc::new(self.folders(Vec::new(), Some(output))?)))
            }
            (Location::Folder(input), Location::S3(output)) => {
                let lake = self.folders(vec![self.lake_folder(input)], None)?;
                let tables = self.check_output(self.bucket_store(objects, None, Some(output))?)?;
                Ok(RunStore::split(Arc::new(lake), tables))
            }
            (Location::S3(input), Location::S3(output)) => {
                check_apart(input, output)?;
                let store = self.bucket_store(objects, Some(input), Some(output))?;
                Ok(RunStore::whole(self.check_output(self.check_input(store)?)?))
            }
        }
    }

    fn folders(&self, mut mounts: Vec<Mount>, output: Option<&Path>) -> Result<FsStore, String> {
        let prefix = pipeline_prefix(self.slug);
        let mount = |bucket, dir: PathBuf, hide: &[&str]| Mount {
            bucket,
            prefix: prefix.clone(),
            dir,
            writable: true,
            hide: hide.iter().map(|&hidden| hidden.to_owned()).collect(),
        };
        if let Some(output) = output {
            mounts.push(mount(Bucket::Warehouse, output.to_owned(), &[STATE_FOLDER, DOT_FILES]));
            mounts.push(mount(Bucket::Pipelines, output.join(STATE_FOLDER), &[DOT_FILES]));
        }
        FsStore::mounted(mounts).map_err(|error| error.to_string())
    }

    fn lake_folder(&self, input: &Path) -> Mount {
        // An output folder within the input is not a source.
        let within = match &self.output {
            Location::Folder(output) => output.strip_prefix(input).ok().and_then(Path::to_str),
            Location::S3(_) => None,
        };
        let hide = std::iter::once(DOT_FILES).chain(within).map(str::to_owned).collect();
        let prefix = pipeline_prefix(self.slug);
        Mount { bucket: Bucket::Lake, prefix, dir: input.to_owned(), writable: false, hide }
    }

    fn bucket_store(
        &self,
        objects: Option<&ObjectStoreConfig>,
        input: Option<&S3Location>,
        output: Option<&S3Location>,
    ) -> Result<Arc<dyn ObjectStore>, String> {
        let name = |location: Option<&S3Location>| location.map(|found| found.bucket.clone()).unwrap_or_default();
        let buckets = Buckets { pipelines: name(output), lake: name(input), warehouse: name(output) };
        let prefix = pipeline_prefix(self.slug);
        let mount =
            |bucket, stored: String, hide: Vec<String>| S3Mount { bucket, prefix: prefix.clone(), stored, hide };
        let mut mounts = Vec::new();
        if let Some(input) = input {
            let within = output.and_then(|output| input.below(output));
            mounts.push(mount(Bucket::Lake, input.prefix.clone(), within.map(str::to_owned).into_iter().collect()));
        }
        if let Some(output) = output {
            let state = format!("{STATE_FOLDER}/");
            mounts.push(mount(Bucket::Pipelines, format!("{}{state}", output.prefix), Vec::new()));
            mounts.push(mount(Bucket::Warehouse, output.prefix.clone(), vec![state]));
        }
        let config = objects.map(|objects| ObjectStoreConfig { buckets, ..objects.clone() });
        let options = config.and_then(|config| S3Options::from_config(&config, Services::clock()));
        let options =
            options.ok_or("OBJ_ENDPOINT_URL: it is a folder of this machine; give a path instead of `s3://…`")?;
        let store = S3Store::open(options.with_mounts(mounts)).map_err(|error| format!("OBJ_ENDPOINT_URL: {error}"))?;
        Ok(Arc::new(store))
    }

    fn check_input(&self, store: Arc<dyn ObjectStore>) -> Result<Arc<dyn ObjectStore>, String> {
        let found = store.list(Bucket::Lake, &pipeline_prefix(self.slug), None, None, 1);
        found.map_err(|error| format!("--input `{}`: {}", self.input, bucket_message(&error)))?;
        Ok(store)
    }

    /// Rejects an output with objects that no run wrote: a run deletes what its tables don't need.
    fn check_output(&self, store: Arc<dyn ObjectStore>) -> Result<Arc<dyn ObjectStore>, String> {
        let shown = &self.output;
        match self.foreign(&*store) {
            Ok(None) => Ok(store),
            Ok(Some(name)) => Err(output::has_foreign(shown, &name, "an empty prefix, a new one, or")),
            Err(error) => Err(format!("--output `{shown}`: {}", bucket_message(&error))),
        }
    }

    fn foreign(&self, store: &dyn ObjectStore) -> StoreResult<Option<String>> {
        let prefix = pipeline_prefix(self.slug);
        if !store.list(Bucket::Pipelines, &prefix, None, None, 1)?.objects.is_empty() {
            return Ok(None);
        }
        let page = store.list(Bucket::Warehouse, &prefix, Some('/'), None, ENTRIES_MAX)?;
        let objects = page.objects.into_iter().map(|object| object.key);
        let names = objects.chain(page.prefixes).filter_map(|key| key.strip_prefix(&prefix).map(str::to_owned));
        // A folder marker is the prefix itself.
        Ok(names.filter(|name| !name.is_empty() && !name.starts_with('.')).min())
    }
}

fn check_apart(input: &S3Location, output: &S3Location) -> Result<(), String> {
    if input == output {
        return Err(format!("`{input}` is both --input and --output: expected two prefixes"));
    }
    match output.below(input) {
        Some(_) => Err(output::overlap_message(input, output)),
        None => Ok(()),
    }
}

/// The error without the name that a bucket has inside a store.
fn bucket_message(error: &StoreError) -> String {
    match error {
        StoreError::BucketNotFound { name, .. } => format!("the bucket `{name}` does not exist"),
        error => error.to_string(),
    }
}

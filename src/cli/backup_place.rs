//! Opens the place of backups that an argument names.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::Arc;

use super::command_error::CommandError;
use super::environment;
use super::location::{Location, S3Location};
use super::services::Services;
use crate::adapters::fs::{FsStore, Mount, OWN_FOLDER};
use crate::adapters::s3::{S3Mount, S3Options, S3Store};
use crate::config::{Buckets, ObjectStoreConfig, RunConfig, StoreEndpoint};
use crate::domain::layout::{
    PIPELINES_PREFIX, backup_data_prefix, backup_shards_prefix, backups_prefix, pipeline_prefix, run_lock_key,
};
use crate::domain::name::Slug;
use crate::ports::ObjectStore;
use crate::ports::store::{Bucket, StoreError};

/// The slug of a place in its store; as for the output of `lakemill run`, whose locks it shares.
const SLUG: &str = "local";
/// Limit of entries checked for one that no backup created.
const ENTRIES_MAX: usize = 100;
/// Mode of a new folder: configs and CSVs may be secret.
const MODE: u32 = 0o700;

/// An opened place.
pub struct OpenPlace {
    pub store: Arc<dyn ObjectStore>,
    pub slug: Slug,
}

impl OpenPlace {
    /// Opens the place to write to it. `source`: the store to back up.
    ///
    /// # Errors
    /// It can't be opened, is part of that store, or has objects of other programs.
    pub fn to_write(location: &Location, source: &ObjectStoreConfig) -> Result<Self, CommandError> {
        check_apart(location, source)?;
        if let Location::Folder(folder) = location {
            let made = DirBuilder::new().recursive(true).mode(MODE).create(folder);
            made.map_err(|error| format!("`{}`: {error}", folder.display()))?;
        }
        let place = Self::open(location, true)?;
        match place.foreign() {
            Ok(None) => Ok(place),
            Ok(Some(name)) => Err(CommandError::Other(format!(
                "`{location}` contains `{name}`, which no backup created: name an empty place, a new one, or one with \
                 earlier backups"
            ))),
            Err(error) => Err(failed(location, &error).into()),
        }
    }

    /// # Errors
    /// It can't be opened.
    pub fn to_read(location: &Location) -> Result<Self, CommandError> {
        let place = Self::open(location, false)?;
        let listed = place.store.list(Bucket::Pipelines, &backups_prefix(&place.slug), None, None, 1);
        listed.map_err(|error| failed(location, &error))?;
        Ok(place)
    }

    fn open(location: &Location, is_writable: bool) -> Result<Self, CommandError> {
        let slug = Slug::parse(SLUG).map_err(|error| error.to_string())?;
        let store: Arc<dyn ObjectStore> = match location {
            Location::Folder(folder) => Arc::new(open_folder(folder, &slug, is_writable)?),
            Location::S3(location) => {
                let config = environment::load(None, RunConfig::from_env)?;
                Arc::new(open_bucket(location, &slug, &config.objects)?)
            }
        };
        Ok(Self { store, slug })
    }

    fn foreign(&self) -> Result<Option<String>, StoreError> {
        let prefix = pipeline_prefix(&self.slug);
        let own = [backups_prefix(&self.slug), backup_shards_prefix(&self.slug), backup_data_prefix(&self.slug)];
        let page = self.store.list(Bucket::Pipelines, &prefix, Some('/'), None, ENTRIES_MAX)?;
        let objects = page.objects.into_iter().map(|object| object.key);
        let mut others =
            objects.chain(page.prefixes).filter(|key| !own.contains(key) && *key != run_lock_key(&self.slug));
        Ok(others.find_map(|key| key.strip_prefix(&prefix).filter(|name| !name.is_empty()).map(str::to_owned)))
    }
}

fn failed(location: &Location, error: &StoreError) -> String {
    match error {
        StoreError::BucketNotFound { .. } => format!("`{location}` does not exist"),
        error => {
            let text = error.to_string();
            format!("`{location}`: {}", text.strip_prefix("pipelines bucket: ").unwrap_or(&text))
        }
    }
}

fn open_folder(folder: &Path, slug: &Slug, is_writable: bool) -> Result<FsStore, String> {
    let mount = Mount {
        bucket: Bucket::Pipelines,
        prefix: pipeline_prefix(slug),
        dir: folder.to_owned(),
        writable: is_writable,
        hide: vec![OWN_FOLDER.to_owned()],
    };
    FsStore::mounted(vec![mount]).map_err(|error| error.to_string())
}

fn open_bucket(location: &S3Location, slug: &Slug, objects: &ObjectStoreConfig) -> Result<S3Store, String> {
    let name = &location.bucket;
    let buckets = Buckets { pipelines: name.clone(), lake: name.clone(), warehouse: name.clone() };
    let config = ObjectStoreConfig { buckets, ..objects.clone() };
    let options = S3Options::from_config(&config, Services::clock());
    let options = options.ok_or("OBJ_ENDPOINT_URL: it is a folder of this machine; give a path instead of `s3://…`")?;
    let mount = S3Mount {
        bucket: Bucket::Pipelines,
        prefix: pipeline_prefix(slug),
        stored: location.prefix.clone(),
        hide: Vec::new(),
    };
    S3Store::open(options.with_mounts(vec![mount])).map_err(|error| format!("OBJ_ENDPOINT_URL: {error}"))
}

/// Rejects a place that a backup would copy.
fn check_apart(location: &Location, source: &ObjectStoreConfig) -> Result<(), String> {
    let is_within = match (location, &source.endpoint) {
        (Location::Folder(folder), StoreEndpoint::Folder(root)) => {
            // The folder may not exist yet.
            let folder = std::path::absolute(folder).unwrap_or_default();
            let folder = folder.ancestors().find_map(|above| above.canonicalize().ok());
            folder.zip(root.canonicalize().ok()).is_some_and(|(folder, root)| folder.starts_with(&root))
        }
        (Location::S3(place), StoreEndpoint::S3(_)) => {
            let Buckets { pipelines, lake, warehouse } = &source.buckets;
            [pipelines, lake, warehouse].contains(&&place.bucket) && place.prefix.starts_with(PIPELINES_PREFIX)
        }
        (Location::Folder(_), StoreEndpoint::S3(_)) | (Location::S3(_), StoreEndpoint::Folder(_)) => false,
    };
    match is_within {
        true => Err(format!("`{location}` is in the store that is backed up: name a place outside of it")),
        false => Ok(()),
    }
}

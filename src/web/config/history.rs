//! `…/config/versions`: the configs that a pipeline had, who saved them and when.
//!
//! Each save keeps what it writes, and before that what it replaces if another program, a template or an archive put it
//! there. So the newest kept config is the stored one, unless that was changed since by other means. Renames of tables and
//! columns are found by comparing versions.

use std::net::IpAddr;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Serialize;

use super::service::{BYTES_MAX, Configs};
use crate::domain::layout::{ConfigChange, ConfigVersion, config_key, config_version_key, config_versions_prefix};
use crate::domain::name::Slug;
use crate::domain::pipeline::renames::{Rename, Renames};
use crate::domain::pipeline::validate::parse;
use crate::http::{ApiError, ErrorCode, Request, Response};
use crate::ports::store::{Bucket, ObjectMeta, Precondition, WriteOptions, list_all};
use crate::runtime::rfc3339;
use crate::web::access::{clipped, number_query};
use crate::web::endpoint::Endpoint;
use crate::web::failure::from_store;
use crate::web::stores::BoundedRead;

/// Most versions kept; the oldest are deleted.
const VERSIONS_MAX: usize = 500;
/// The newest versions that are searched for renames.
const COMPARED_MAX: usize = 50;
/// Default and largest page size.
const PAGE_DEFAULT: u64 = 50;
const PAGE_MAX: u64 = 500;

pub(super) fn endpoints() -> Vec<Endpoint<Configs>> {
    let path = "/api/p/{pipeline}/config/versions";
    let one = "/api/p/{pipeline}/config/versions/{version}";
    let common = [ErrorCode::InvalidSlug, ErrorCode::PipelineNotFound];
    vec![
        Endpoint::get(path, "config.versions", "Lists the configs that the pipeline had", versions)
            .query::<u64>("limit", "page size: at most 500, 50 by default")
            .query::<u64>("offset", "versions to skip")
            .response::<VersionList>(200, "the versions, newest first")
            .errors(&common),
        Endpoint::get(one, "config.version", "Shows a config that the pipeline had", version)
            .bytes_response(200, "application/json", "the bytes of that config")
            .errors(&common)
            .errors(&[ErrorCode::VersionNotFound]),
        Endpoint::get(
            "/api/p/{pipeline}/config/renames",
            "config.renames",
            "Lists renamed tables and columns",
            renames,
        )
        .response::<RenameList>(200, "the renames between the newest 50 versions of the config")
        .errors(&common),
    ]
}

/// A save of a config.
pub(super) struct Save<'a> {
    pub config: &'a [u8],
    /// The version that it restores.
    pub restores: Option<u64>,
    pub address: IpAddr,
}

/// The kept configs of a pipeline.
pub(super) struct History<'a> {
    configs: &'a Configs,
    slug: &'a Slug,
    /// From the oldest on, with their sizes.
    kept: Vec<(ConfigVersion, u64)>,
}

impl<'a> History<'a> {
    /// # Errors
    /// `s3_error`, `bucket_not_found`.
    pub(super) fn read(configs: &'a Configs, slug: &'a Slug) -> Result<Self, ApiError> {
        let prefix = config_versions_prefix(slug);
        let objects = list_all(&*configs.store, Bucket::Pipelines, &prefix).map_err(from_store)?;
        let kept = |object: &ObjectMeta| {
            let version = ConfigVersion::parse(object.key.strip_prefix(&prefix)?)?;
            Some((version, object.size))
        };
        Ok(Self { configs, slug, kept: objects.iter().filter_map(kept).collect() })
    }

    /// Keeps the stored config, unless it is the newest version already.
    ///
    /// # Errors
    /// `s3_error`, `bucket_not_found`.
    pub(super) fn keep_found(&mut self, meta: &ObjectMeta, config: &[u8]) -> Result<(), ApiError> {
        if config.len() as u64 > BYTES_MAX {
            tracing::warn!(pipeline = %self.slug, bytes_max = BYTES_MAX, "config exceeds size limit; not kept in its history");
            return Ok(());
        }
        self.keep(ConfigChange::Found, meta.modified, None, config)
    }

    /// Keeps a config that was saved just now, unless it is the newest version already.
    ///
    /// # Errors
    /// `s3_error`, `bucket_not_found`.
    pub(super) fn keep_saved(&mut self, save: &Save<'_>) -> Result<(), ApiError> {
        let restored = match save.restores {
            Some(version) => self.content(version)?.is_some_and(|content| content == save.config).then_some(version),
            None => None,
        };
        let change = restored.map_or(ConfigChange::Saved, ConfigChange::Restored);
        self.keep(change, self.configs.clock.now(), Some(save.address), save.config)
    }

    fn keep(
        &mut self,
        change: ConfigChange,
        at: DateTime<Utc>,
        address: Option<IpAddr>,
        config: &[u8],
    ) -> Result<(), ApiError> {
        if self.is_newest(config)? {
            return Ok(());
        }
        let version = self.kept.last().map_or(1, |(newest, _)| newest.version.saturating_add(1));
        let version = ConfigVersion { version, at, change, address };
        let options = WriteOptions::default().with(Precondition::IfNoneMatch);
        let key = config_version_key(self.slug, version);
        self.configs.store.put(Bucket::Pipelines, &key, config, &options).map_err(from_store)?;
        self.kept.push((version, config.len() as u64));
        self.trim()
    }

    fn trim(&mut self) -> Result<(), ApiError> {
        let excess = self.kept.len().saturating_sub(VERSIONS_MAX);
        if excess == 0 {
            return Ok(());
        }
        let keys: Vec<_> =
            self.kept.drain(..excess).map(|(version, _)| config_version_key(self.slug, version)).collect();
        self.configs.store.delete(Bucket::Pipelines, &keys, &WriteOptions::default()).map_err(from_store)?;
        Ok(())
    }

    /// Whether a config is that of the newest version.
    fn is_newest(&self, config: &[u8]) -> Result<bool, ApiError> {
        match self.kept.last() {
            Some((newest, size)) if *size == config.len() as u64 => {
                Ok(self.content(newest.version)?.is_some_and(|content| content == config))
            }
            _ => Ok(false),
        }
    }

    /// The config of a version.
    fn content(&self, version: u64) -> Result<Option<Vec<u8>>, ApiError> {
        let Some((kept, _)) = self.kept.iter().find(|(kept, _)| kept.version == version) else { return Ok(None) };
        let key = config_version_key(self.slug, *kept);
        match self.configs.store.read_bounded(Bucket::Pipelines, &key, BYTES_MAX)? {
            BoundedRead::Whole(_, bytes) => Ok(Some(bytes)),
            BoundedRead::Missing | BoundedRead::Larger => Ok(None),
        }
    }
}

/// The configs that the pipeline had, as far as they are kept.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ConfigVersions")]
struct VersionList {
    versions: Vec<Version>,
    total: u64,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ConfigVersion")]
struct Version {
    /// Null for a stored config that was not saved here and is not kept yet.
    version: Option<u64>,
    /// RFC 3339.
    at: String,
    change: ConfigChangeKind,
    /// The earlier version whose content it has, if it restored one.
    restored: Option<u64>,
    /// The client that saved it.
    address: Option<String>,
    bytes: u64,
    /// Whether it is the stored config.
    current: bool,
}

/// `found`: it came from a template, an archive or another program.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ConfigChangeKind {
    Saved,
    Restored,
    Found,
}

impl Version {
    fn kept((version, bytes): (ConfigVersion, u64), current: bool) -> Self {
        let ConfigVersion { version, at, change, address } = version;
        let (change, restored) = match change {
            ConfigChange::Saved => (ConfigChangeKind::Saved, None),
            ConfigChange::Restored(version) => (ConfigChangeKind::Restored, Some(version)),
            ConfigChange::Found => (ConfigChangeKind::Found, None),
        };
        let address = address.map(|address| address.to_string());
        Self { version: Some(version), at: rfc3339(at), change, restored, address, bytes, current }
    }

    fn unkept(meta: &ObjectMeta) -> Self {
        let (at, change) = (rfc3339(meta.modified), ConfigChangeKind::Found);
        Self { version: None, at, change, restored: None, address: None, bytes: meta.size, current: true }
    }
}

/// `GET …/config/versions`
fn versions(configs: &Configs, request: &mut Request) -> Result<Response, ApiError> {
    let slug = configs.store.existing(request, "pipeline")?;
    let limit = number_query(request, "limit", 1..=PAGE_MAX)?.unwrap_or(PAGE_DEFAULT);
    let offset = number_query(request, "offset", 0..=u64::from(u32::MAX))?.unwrap_or(0);
    let history = History::read(configs, &slug)?;
    let stored = configs.store.read_start(Bucket::Pipelines, &config_key(&slug), BYTES_MAX)?;
    let newest_is_stored = match &stored {
        Some((_, config)) => history.is_newest(config)?,
        None => false,
    };
    let unkept = stored.filter(|_| !newest_is_stored).map(|(meta, _)| Version::unkept(&meta));
    let kept = history.kept.iter().rev().enumerate();
    let kept = kept.map(|(at, one)| Version::kept(*one, newest_is_stored && at == 0));
    let all: Vec<Version> = unkept.into_iter().chain(kept).collect();
    let total = all.len() as u64;
    let page = all.into_iter().skip(offset as usize).take(limit as usize);
    Ok(Response::json(200, &VersionList { versions: page.collect(), total }))
}

/// `GET …/config/versions/{version}`
fn version(configs: &Configs, request: &mut Request) -> Result<Response, ApiError> {
    let slug = configs.store.existing(request, "pipeline")?;
    let wanted = request.param("version");
    let found = match wanted.parse() {
        Ok(version) => History::read(configs, &slug)?.content(version)?,
        Err(_) => None,
    };
    let found = found.ok_or_else(|| {
        let message =
            format!("the config of `{slug}` has no version `{}`; it keeps the newest {VERSIONS_MAX}", clipped(wanted));
        ApiError::new(ErrorCode::VersionNotFound, message)
    })?;
    Ok(Response::bytes(200, "application/json", found))
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ConfigRenames")]
struct RenameList {
    renames: Vec<RenamedName>,
}

/// A table or a column that has another name in the stored config.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ConfigRename")]
struct RenamedName {
    /// The current name of a column's table; null for a table.
    table: Option<String>,
    from: String,
    to: String,
}

/// `GET …/config/renames`. Invalid configs are skipped.
fn renames(configs: &Configs, request: &mut Request) -> Result<Response, ApiError> {
    let slug = configs.store.existing(request, "pipeline")?;
    let history = History::read(configs, &slug)?;
    let mut renames = Renames::default();
    let mut add = |config: &[u8]| {
        if let Some(pipeline) = std::str::from_utf8(config).ok().and_then(|text| parse(text).ok()) {
            renames.add(pipeline);
        }
    };
    let newest = history.kept.len().saturating_sub(COMPARED_MAX);
    for (version, _) in &history.kept[newest..] {
        if let Some(config) = history.content(version.version)? {
            add(&config);
        }
    }
    if let Some((_, config)) = configs.store.read_start(Bucket::Pipelines, &config_key(&slug), BYTES_MAX)? {
        add(&config);
    }
    let renamed = |Rename { table, from, to }: Rename| RenamedName { table, from, to };
    Ok(Response::json(200, &RenameList { renames: renames.finish().into_iter().map(renamed).collect() }))
}

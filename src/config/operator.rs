//! Config of operator commands.

use std::path::PathBuf;

use super::env::{Environment, VariableReader, WithWarnings};
use super::error::EnvironmentError;
use super::kv::KvConfig;
use super::object_store::ObjectStoreConfig;
use super::worker::{attempts_max, scratch_dir};

/// The environment of `lakemill enqueue` and `lakemill jobs`: the object store and the key-value store.
#[derive(Debug, Clone, PartialEq)]
pub struct OperatorConfig {
    pub objects: ObjectStoreConfig,
    pub kv: KvConfig,
    /// `MAX_ATTEMPTS`: attempts of a job before it fails permanently; default 3, at most 100.
    pub attempts_max: u32,
}

impl OperatorConfig {
    /// # Errors
    /// Lists every variable that is missing or malformed.
    pub fn from_env(env: &Environment<'_>) -> Result<WithWarnings<Self>, EnvironmentError> {
        let reader = VariableReader::new(env);
        let config = Self {
            objects: ObjectStoreConfig::read(&reader),
            kv: KvConfig::read(&reader),
            attempts_max: attempts_max(&reader),
        };
        reader.finish(config)
    }
}

impl ObjectStoreConfig {
    /// The object store alone, as `lakemill webhook` needs it.
    ///
    /// # Errors
    /// Lists every variable that is missing or malformed.
    pub fn from_env(env: &Environment<'_>) -> Result<WithWarnings<Self>, EnvironmentError> {
        let reader = VariableReader::new(env);
        let config = Self::read(&reader);
        reader.finish(config)
    }
}

impl ObjectStoreConfig {
    /// The object store for arguments of the form `s3://bucket/prefix`: the bucket names are empty.
    ///
    /// # Errors
    /// Lists every variable that is missing or malformed.
    pub fn access_from_env(env: &Environment<'_>) -> Result<WithWarnings<Self>, EnvironmentError> {
        let reader = VariableReader::new(env);
        let config = Self::read_without_buckets(&reader);
        reader.finish(config)
    }
}

/// The environment of a `lakemill run` on `s3://bucket/prefix`.
#[derive(Debug, Clone, PartialEq)]
pub struct RunConfig {
    /// With empty names of buckets, which the addresses have.
    pub objects: ObjectStoreConfig,
    /// `SVC_SCRATCH_DIR`: folder for temporary files; default a new one in `/var/tmp`.
    pub scratch_dir: Option<PathBuf>,
}

impl RunConfig {
    /// # Errors
    /// Lists every variable that is missing or malformed.
    pub fn from_env(env: &Environment<'_>) -> Result<WithWarnings<Self>, EnvironmentError> {
        let reader = VariableReader::new(env);
        let config =
            Self { objects: ObjectStoreConfig::read_without_buckets(&reader), scratch_dir: scratch_dir(&reader) };
        reader.finish(config)
    }
}

impl KvConfig {
    /// The key-value store alone.
    ///
    /// # Errors
    /// Lists every variable that is missing or malformed.
    pub fn from_env(env: &Environment<'_>) -> Result<WithWarnings<Self>, EnvironmentError> {
        let reader = VariableReader::new(env);
        let config = Self::read(&reader);
        reader.finish(config)
    }
}

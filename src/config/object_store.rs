//! The object store and its buckets.

use std::path::PathBuf;

use super::env::{Expected, Var, VariableReader, secret};
use super::secret::Secret;
use super::values::{absolute_path, bucket, http_url, word};

/// The three buckets; all required.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Buckets {
    /// `S3_BUCKET_PIPELINES`: configs, dashboards, records.
    pub pipelines: String,
    /// `S3_BUCKET_LAKE`: raw CSVs.
    pub lake: String,
    /// `S3_BUCKET_WAREHOUSE`: Parquet output.
    pub warehouse: String,
}

impl Buckets {
    /// A run deletes unknown files from a table's folder, so raw files must not be stored there.
    fn must_differ(&self, reader: &VariableReader<'_>) {
        let twins = [
            ("S3_BUCKET_LAKE", "bucket of raw CSVs", &self.lake, "S3_BUCKET_PIPELINES", &self.pipelines),
            (
                "S3_BUCKET_WAREHOUSE",
                "bucket of Parquet output",
                &self.warehouse,
                "S3_BUCKET_PIPELINES",
                &self.pipelines,
            ),
            ("S3_BUCKET_WAREHOUSE", "bucket of Parquet output", &self.warehouse, "S3_BUCKET_LAKE", &self.lake),
        ];
        for (name, purpose, own, other, theirs) in twins {
            if !own.is_empty() && own == theirs {
                reader.malformed(Var(name, purpose), own, format!("another bucket than {other}"));
            }
        }
    }
}

/// Where objects are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreEndpoint {
    /// An S3-compatible server, without a `/` at the end.
    S3(String),
    /// A folder of this machine, `file:///…`.
    Folder(PathBuf),
}

impl Default for StoreEndpoint {
    fn default() -> Self {
        Self::S3(String::new())
    }
}

/// How to reach the object store.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ObjectStoreConfig {
    pub buckets: Buckets,
    /// `OBJ_ENDPOINT_URL`, required.
    pub endpoint: StoreEndpoint,
    /// `OBJ_ACCESS_KEY_ID`, required; may come from a file.
    pub access_key_id: Secret,
    /// `OBJ_SECRET_ACCESS_KEY`, required; may come from a file.
    pub secret_access_key: Secret,
    /// `OBJ_REGION`, required.
    pub region: String,
    /// `SVC_CA_FILE`: PEM file of further certificate authorities to trust; default none.
    pub ca_file: Option<PathBuf>,
}

impl ObjectStoreConfig {
    pub(super) fn read(reader: &VariableReader<'_>) -> Self {
        let buckets = Buckets {
            pipelines: reader.required(Var("S3_BUCKET_PIPELINES", "bucket of pipeline configs"), bucket),
            lake: reader.required(Var("S3_BUCKET_LAKE", "bucket of raw CSVs"), bucket),
            warehouse: reader.required(Var("S3_BUCKET_WAREHOUSE", "bucket of Parquet output"), bucket),
        };
        buckets.must_differ(reader);
        let key_id = Var("OBJ_ACCESS_KEY_ID", "access key of the object store");
        let secret_key = Var("OBJ_SECRET_ACCESS_KEY", "secret key of the object store");
        Self {
            buckets,
            endpoint: reader.required(Var("OBJ_ENDPOINT_URL", "URL of the object store"), endpoint),
            access_key_id: reader.required_secret(key_id, secret),
            secret_access_key: reader.required_secret(secret_key, secret),
            region: reader.required(Var("OBJ_REGION", "region of the object store"), word),
            ca_file: reader.optional(Var("SVC_CA_FILE", "further certificate authorities, PEM"), absolute_path),
        }
    }
}

fn endpoint(text: &str) -> Result<StoreEndpoint, Expected> {
    let expected = "`http://…`, `https://…` or `file:///…` with an absolute path";
    match text.strip_prefix("file://") {
        Some(path) => absolute_path(path).map(StoreEndpoint::Folder).map_err(|_| expected.into()),
        None => http_url(text).map(StoreEndpoint::S3).map_err(|_| expected.into()),
    }
}

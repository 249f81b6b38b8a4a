//! The object store and its buckets.

use std::path::PathBuf;

use super::aws::AwsVariables;
use super::env::{Expected, Var, VariableReader, secret};
use super::network::NetworkConfig;
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
                reader.malformed(Var(name, purpose), own, format!("a bucket other than {other}"));
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

/// The credentials that sign requests to the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreCredentials {
    /// `OBJ_ACCESS_KEY_ID` and `OBJ_SECRET_ACCESS_KEY`, required without `OBJ_CREDENTIALS`; may come from files.
    Key { id: Secret, secret: Secret },
    /// `OBJ_CREDENTIALS=chain`: keys from where AWS's SDKs find them.
    Chain(Box<AwsVariables>),
}

impl Default for StoreCredentials {
    fn default() -> Self {
        Self::Key { id: Secret::default(), secret: Secret::default() }
    }
}

impl StoreCredentials {
    fn read(reader: &VariableReader<'_>, region: &str) -> Self {
        let chain = reader.or(Var("OBJ_CREDENTIALS", "credentials for the object store"), false, |text| match text {
            "chain" => Ok(true),
            "key" => Ok(false),
            _ => Err("`key` (OBJ_ACCESS_KEY_ID and OBJ_SECRET_ACCESS_KEY) or `chain`".into()),
        });
        if chain {
            return Self::Chain(Box::new(AwsVariables::read(reader, region)));
        }
        Self::Key {
            id: reader.required_secret(Var("OBJ_ACCESS_KEY_ID", "access key of the object store"), secret),
            secret: reader.required_secret(Var("OBJ_SECRET_ACCESS_KEY", "secret key of the object store"), secret),
        }
    }
}

/// The place of a bucket's name in the address of its objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Addressing {
    /// `https://host/bucket/key`, which all stores understand.
    #[default]
    Path,
    /// `https://bucket.host/key`.
    Virtual,
}

/// Where the signature of a request that must expire is: of a write of a run, for example. Others have it in headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SignaturePlace {
    /// In the query, with its expiry.
    #[default]
    Query,
    /// In headers. The request is dated so that S3's limit of a date's age is its expiry.
    Header,
}

/// Checksum that the store compares the body of a write with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checksum {
    Crc64Nvme,
    Sha256,
}

/// How the store encrypts new objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Encryption {
    /// With keys of its own.
    Store,
    /// With this key of its key service, or with the account's default one.
    Kms { key: Option<String> },
}

/// Options of requests to the store.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RequestStyle {
    /// `OBJ_ADDRESSING`: `path` (default) or `virtual`.
    pub addressing: Addressing,
    /// `OBJ_SIGNATURE`: `query` (default) or `header`.
    pub signature: SignaturePlace,
    /// `OBJ_CHECKSUM`: `crc64nvme` or `sha256`; default: none.
    pub checksum: Option<Checksum>,
    /// `OBJ_ENCRYPTION`: `AES256`, `aws:kms`, or `aws:kms:` and a key; default: as the bucket does.
    pub encryption: Option<Encryption>,
    /// `OBJ_BUCKET_OWNER`: the account that must own the buckets, 12 digits; default: any.
    pub bucket_owner: Option<String>,
    /// `OBJ_REQUESTER_PAYS`: whether the buckets' users pay for requests; default `false`.
    pub is_requester_paying: bool,
}

impl RequestStyle {
    fn read(reader: &VariableReader<'_>) -> Self {
        Self {
            addressing: reader.or(Var("OBJ_ADDRESSING", "how buckets are addressed"), Addressing::Path, addressing),
            signature: reader.or(Var("OBJ_SIGNATURE", "how writes are signed"), SignaturePlace::Query, signature),
            checksum: reader.optional(Var("OBJ_CHECKSUM", "checksum of writes"), checksum),
            encryption: reader.optional(Var("OBJ_ENCRYPTION", "encryption of new objects"), encryption),
            bucket_owner: reader.optional(Var("OBJ_BUCKET_OWNER", "account that owns the buckets"), account),
            is_requester_paying: reader.or(Var("OBJ_REQUESTER_PAYS", "whether the requester pays"), false, flag),
        }
    }
}

fn addressing(text: &str) -> Result<Addressing, Expected> {
    match text {
        "path" => Ok(Addressing::Path),
        "virtual" => Ok(Addressing::Virtual),
        _ => Err("`path` or `virtual`".into()),
    }
}

fn signature(text: &str) -> Result<SignaturePlace, Expected> {
    match text {
        "query" => Ok(SignaturePlace::Query),
        "header" => Ok(SignaturePlace::Header),
        _ => Err("`query` or `header`".into()),
    }
}

fn checksum(text: &str) -> Result<Checksum, Expected> {
    match text {
        "crc64nvme" => Ok(Checksum::Crc64Nvme),
        "sha256" => Ok(Checksum::Sha256),
        _ => Err("`crc64nvme` or `sha256`".into()),
    }
}

fn encryption(text: &str) -> Result<Encryption, Expected> {
    let is_key = |key: &str| !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_graphic());
    match text.strip_prefix("aws:kms") {
        None if text == "AES256" => Ok(Encryption::Store),
        Some("") => Ok(Encryption::Kms { key: None }),
        Some(rest) if rest.strip_prefix(':').is_some_and(is_key) => Ok(Encryption::Kms { key: Some(rest[1..].into()) }),
        None | Some(_) => Err("`AES256`, `aws:kms`, or `aws:kms:` and a key's id or ARN".into()),
    }
}

fn account(text: &str) -> Result<String, Expected> {
    let is_account = text.len() == 12 && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_account { Ok(text.to_owned()) } else { Err("12 digits".into()) }
}

fn flag(text: &str) -> Result<bool, Expected> {
    text.parse().map_err(|_| "`true` or `false`".into())
}

/// How to reach the object store.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ObjectStoreConfig {
    pub buckets: Buckets,
    /// `OBJ_ENDPOINT_URL`, required.
    pub endpoint: StoreEndpoint,
    pub credentials: StoreCredentials,
    /// `OBJ_REGION`, required.
    pub region: String,
    pub requests: RequestStyle,
    pub network: NetworkConfig,
}

impl ObjectStoreConfig {
    pub(super) fn read(reader: &VariableReader<'_>) -> Self {
        let buckets = Buckets {
            pipelines: reader.required(Var("S3_BUCKET_PIPELINES", "bucket of pipeline configs"), bucket),
            lake: reader.required(Var("S3_BUCKET_LAKE", "bucket of raw CSVs"), bucket),
            warehouse: reader.required(Var("S3_BUCKET_WAREHOUSE", "bucket of Parquet output"), bucket),
        };
        buckets.must_differ(reader);
        Self { buckets, ..Self::read_without_buckets(reader) }
    }

    /// For commands whose arguments name the buckets.
    pub(super) fn read_without_buckets(reader: &VariableReader<'_>) -> Self {
        let endpoint = reader.required(Var("OBJ_ENDPOINT_URL", "URL of the object store"), endpoint);
        let region = reader.required(Var("OBJ_REGION", "region of the object store"), word);
        Self {
            buckets: Buckets::default(),
            endpoint,
            credentials: StoreCredentials::read(reader, &region),
            region,
            requests: RequestStyle::read(reader),
            network: NetworkConfig::read(reader),
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

//! The web service.

use std::path::PathBuf;
use std::time::Duration;

use super::catalog::CatalogConfig;
use super::env::{Environment, Expected, Var, VariableReader, WithWarnings, secret};
use super::error::EnvironmentError;
use super::kv::KvConfig;
use super::logging::LogConfig;
use super::object_store::ObjectStoreConfig;
use super::secret::Secret;
use super::server::ServerConfig;
use super::values::{absolute_path, http_url, millis, number, origin, seconds};
use super::worker::lock_ttl;

const PORT_DEFAULT: u16 = 3_000;
const WORKER_URL_DEFAULT: &str = "http://127.0.0.1:8080";
const SESSION_IDLE_S_DEFAULT: u64 = 7_200;
const SESSION_MAX_S_DEFAULT: u64 = 86_400;
const YEAR_S: u64 = 365 * 86_400;
const CACHE_DIR_DEFAULT: &str = "/var/cache/lakemill";
const CACHE_BYTES_DEFAULT: u64 = 10 << 30;
const QUERY_MEMORY_BYTES_DEFAULT: u64 = 1 << 30;
const QUERY_MEMORY_BYTES_MIN: u64 = 64 << 20;
const QUERY_TIMEOUT_MS_DEFAULT: u64 = 30_000;
const HOUR_MS: u64 = 3_600_000;
const IMPORT_BYTES_MAX_DEFAULT: u64 = 10 << 30;
const MIB: u64 = 1 << 20;

const _: () = assert!(SESSION_IDLE_S_DEFAULT <= SESSION_MAX_S_DEFAULT);

/// How long a session lives. Invariant: idle ≤ max.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionConfig {
    /// `SVC_SESSION_IDLE_S`: without a request; default 7200.
    pub idle: Duration,
    /// `SVC_SESSION_MAX_S`: at most; default 86400.
    pub max: Duration,
}

/// The environment of `lakemill web`.
#[derive(Debug, Clone, PartialEq)]
pub struct WebConfig {
    pub objects: ObjectStoreConfig,
    pub kv: KvConfig,
    pub server: ServerConfig,
    /// `SVC_PUBLIC_URL`: the origin under which browsers see the service, without a `/` at the end; default none.
    pub public_url: Option<String>,
    pub log: LogConfig,
    /// `SVC_ADMIN_PASSWORD_HASH`, required: argon2id PHC string, or bcrypt `$2b$`; may come from a file.
    pub password_hash: Secret,
    /// `SVC_WORKER_TOKEN`, required: sent to the worker; may come from a file.
    pub worker_token: Secret,
    /// `SVC_WORKER_URL`: the worker's URL; default `http://127.0.0.1:8080`.
    pub worker_url: String,
    pub session: SessionConfig,
    /// `SVC_CACHE_DIR`: folder for cached files of queries, and for uploads in progress; default `/var/cache/lakemill`.
    pub cache_dir: PathBuf,
    /// `SVC_CACHE_BYTES`: size limit of the cache; default 10737418240, at least 67108864.
    pub cache_bytes: u64,
    /// `SVC_QUERY_MEMORY_BYTES`: memory of one query; default 1073741824, at least 67108864.
    pub query_memory_bytes: u64,
    /// `SVC_QUERY_TIMEOUT_MS`: default 30000, 100 to 3600000.
    pub query_timeout: Duration,
    /// `SVC_IMPORT_BYTES_MAX`: largest import, compressed and decompressed; default 10737418240.
    pub import_bytes_max: u64,
    /// `SVC_AUDIT_FILE`: file to which requests that change something are appended; default none.
    pub audit_file: Option<PathBuf>,
    /// `SVC_UI_DIR`: folder with the UI's files, read at each request instead of the embedded ones, for development of
    /// the UI. Not set by default.
    pub ui_dir: Option<PathBuf>,
    /// The Iceberg catalog, as for the worker; used when tables are restored, renamed or deleted.
    pub catalog: Option<CatalogConfig>,
    /// `JOB_LOCK_TTL_MS`: see the worker; here, the TTL of a pipeline's lock while it is created, renamed or deleted.
    pub lock_ttl: Duration,
}

impl WebConfig {
    /// # Errors
    /// Lists every variable that is missing or malformed.
    pub fn from_env(env: &Environment<'_>) -> Result<WithWarnings<Self>, EnvironmentError> {
        let reader = VariableReader::new(env);
        let hash_var = Var("SVC_ADMIN_PASSWORD_HASH", "hash of the password, from `lakemill hash-password`");
        let at_least = |least: u64| number(least..=u64::MAX);
        let objects = ObjectStoreConfig::read(&reader);
        let config = Self {
            catalog: CatalogConfig::read(&reader, &objects),
            objects,
            kv: KvConfig::read(&reader),
            password_hash: reader.required_secret(hash_var, password_hash),
            worker_token: reader.required_secret(Var("SVC_WORKER_TOKEN", "token for the worker"), secret),
            worker_url: reader.or(Var("SVC_WORKER_URL", "URL of the worker"), WORKER_URL_DEFAULT.into(), http_url),
            server: ServerConfig::read(&reader, PORT_DEFAULT),
            public_url: reader.optional(Var("SVC_PUBLIC_URL", "public URL of the service"), origin),
            session: SessionConfig::read(&reader),
            cache_dir: reader.or(
                Var("SVC_CACHE_DIR", "folder for cached files of queries"),
                CACHE_DIR_DEFAULT.into(),
                absolute_path,
            ),
            cache_bytes: reader.or(
                Var("SVC_CACHE_BYTES", "size limit of the cache"),
                CACHE_BYTES_DEFAULT,
                at_least(64 * MIB),
            ),
            query_memory_bytes: reader.or(
                Var("SVC_QUERY_MEMORY_BYTES", "memory of one query"),
                QUERY_MEMORY_BYTES_DEFAULT,
                at_least(QUERY_MEMORY_BYTES_MIN),
            ),
            query_timeout: reader.or(
                Var("SVC_QUERY_TIMEOUT_MS", "timeout of a query"),
                Duration::from_millis(QUERY_TIMEOUT_MS_DEFAULT),
                millis(100..=HOUR_MS),
            ),
            import_bytes_max: reader.or(
                Var("SVC_IMPORT_BYTES_MAX", "largest import"),
                IMPORT_BYTES_MAX_DEFAULT,
                at_least(MIB),
            ),
            audit_file: reader.optional(Var("SVC_AUDIT_FILE", "file of the audit log"), absolute_path),
            ui_dir: reader.optional(Var("SVC_UI_DIR", "folder of the UI's files"), absolute_path),
            lock_ttl: lock_ttl(&reader),
            log: LogConfig::read(&reader),
        };
        reader.finish(config)
    }
}

impl SessionConfig {
    fn read(reader: &VariableReader<'_>) -> Self {
        let idle_var = Var("SVC_SESSION_IDLE_S", "idle timeout of a session");
        let max_var = Var("SVC_SESSION_MAX_S", "maximum age of a session");
        let idle = reader.optional(idle_var, seconds(60..=YEAR_S));
        let max = reader.or(max_var, Duration::from_secs(SESSION_MAX_S_DEFAULT), seconds(60..=YEAR_S));
        if let Some(idle) = idle.filter(|idle| *idle > max) {
            let expected = format!("at most SVC_SESSION_MAX_S, `{}`", max.as_secs());
            reader.malformed(idle_var, &idle.as_secs().to_string(), expected);
        }
        Self { idle: idle.unwrap_or(Duration::from_secs(SESSION_IDLE_S_DEFAULT)).min(max), max }
    }
}

/// Checks only the form; the parameters' strength is checked where the hash is used.
fn password_hash(text: &str) -> Result<Secret, Expected> {
    let bcrypt = text.starts_with("$2b$") && text.len() == 60;
    let argon2id = text.starts_with("$argon2id$v=19$") && text.split('$').count() == 6;
    if bcrypt || argon2id {
        return Ok(Secret::new(text));
    }
    Err("an argon2id PHC string (`$argon2id$v=19$…`) or a bcrypt hash (`$2b$…`)".into())
}

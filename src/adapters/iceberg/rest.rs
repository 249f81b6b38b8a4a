//! Requests to a REST catalog.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use ureq::Agent;
use ureq::http::Request;
use url::Url;

use super::access::{Access, Sent};
use crate::adapters::aws::{Credentials, UnsignedRequest};
use crate::config::CatalogConfig;
use crate::domain::iceberg::CatalogMetadata;
use crate::domain::text::clipped;
use crate::ports::IcebergCatalog;
use crate::ports::iceberg_catalog::{CatalogError, CatalogName};
use crate::runtime::Clock;
use crate::system::http_client;

const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);
/// For a whole request. Catalogs read and write metadata files meanwhile.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(30);
/// Pauses before the next attempts of a request that may be repeated.
const RETRY_PAUSES: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(1)];
/// How long a catalog that didn't respond is not asked again.
const AWAY_TIME: TimeDelta = TimeDelta::seconds(30);
/// Largest response: the metadata of about 16,000 snapshots.
const RESPONSE_BYTES_MAX: u64 = 16 << 20;
/// Between the levels of a namespace in a path.
const LEVELS_SEPARATOR: &str = "\u{1f}";
/// The name of the request that registers a table, in a catalog's list of its requests.
const REGISTER: &str = "POST /v1/{prefix}/namespaces/{namespace}/register";
const CONTENT_TYPE: &str = "application/json";

/// A REST catalog.
pub struct RestCatalog {
    name: String,
    config: CatalogConfig,
    access: Access,
    agent: Agent,
    clock: Arc<dyn Clock>,
    /// What the catalog said of itself.
    settings: Mutex<Option<Arc<Settings>>>,
    /// Set once it didn't respond.
    away_until: Mutex<Option<DateTime<Utc>>>,
}

#[derive(Debug, Default)]
struct Settings {
    /// Of all paths, without slashes around it.
    prefix: Option<String>,
    /// Empty if the catalog doesn't say.
    endpoints: Vec<String>,
}

#[derive(Deserialize)]
struct ConfigResponse {
    #[serde(default)]
    defaults: Properties,
    #[serde(default)]
    overrides: Properties,
    #[serde(default)]
    endpoints: Vec<String>,
}

#[derive(Default, Deserialize)]
struct Properties {
    prefix: Option<String>,
}

#[derive(Deserialize)]
struct TableResponse {
    metadata: CatalogMetadata,
}

#[derive(Default, Deserialize)]
struct ErrorResponse {
    #[serde(default)]
    error: ErrorText,
}

#[derive(Default, Deserialize)]
struct ErrorText {
    #[serde(default)]
    message: String,
    #[serde(default, rename = "type")]
    kind: String,
}

struct Answer {
    status: u16,
    text: String,
}

impl RestCatalog {
    /// Sends nothing. `store`: the store's credentials, for catalogs of AWS. `ca_file`: further certificate authorities.
    ///
    /// # Errors
    /// The file can't be used, or the store has no credentials that requests could be signed with.
    pub fn open(
        config: &CatalogConfig,
        store: Option<Arc<Credentials>>,
        clock: Arc<dyn Clock>,
        ca_file: Option<&Path>,
    ) -> Result<Self, String> {
        let tls = http_client::tls(&config.url, ca_file).map_err(|error| error.to_string())?;
        let agent = http_client::config(tls)
            .timeout_connect(Some(CONNECT_TIME_MAX))
            .timeout_global(Some(REQUEST_TIME_MAX))
            .build()
            .new_agent();
        let warehouse = config.warehouse.as_ref().map(|warehouse| format!(" {warehouse}")).unwrap_or_default();
        let parents = match config.parents.is_empty() {
            true => String::new(),
            false => format!(" {}", config.parents.join(".")),
        };
        Ok(Self {
            name: format!("{}{warehouse}{parents}", config.url),
            access: Access::new(&config.access, store)?,
            config: config.clone(),
            agent,
            clock,
            settings: Mutex::default(),
            away_until: Mutex::default(),
        })
    }

    fn settings(&self) -> Result<Arc<Settings>, CatalogError> {
        if let Some(known) = &*self.settings.lock() {
            return Ok(Arc::clone(known));
        }
        let mut url = self.url(None, &["config"])?;
        if let Some(warehouse) = &self.config.warehouse {
            url.query_pairs_mut().append_pair("warehouse", warehouse);
        }
        let answer = self.repeated("GET", &url, "")?;
        let found: ConfigResponse = answer.json(200)?;
        let prefix = found.overrides.prefix.or(found.defaults.prefix);
        let prefix = prefix.map(|prefix| prefix.trim_matches('/').to_owned()).filter(|prefix| !prefix.is_empty());
        let settings = Arc::new(Settings { prefix, endpoints: found.endpoints });
        *self.settings.lock() = Some(Arc::clone(&settings));
        Ok(settings)
    }

    /// `prefix`: as the catalog says, encoded.
    fn url(&self, prefix: Option<&str>, segments: &[&str]) -> Result<Url, CatalogError> {
        let base = match prefix {
            Some(prefix) => format!("{}/v1/{prefix}", self.config.url),
            None => format!("{}/v1", self.config.url),
        };
        let invalid = || CatalogError::Failed(format!("`{}` is no URL", clipped(&base)));
        let mut url = Url::parse(&base).map_err(|_| invalid())?;
        url.path_segments_mut().map_err(|()| invalid())?.extend(segments);
        Ok(url)
    }

    fn levels(&self, slug: &str) -> Vec<String> {
        self.config.parents.iter().cloned().chain([slug.to_owned()]).collect()
    }

    /// The URL of a table, or of what `of` names in the table's namespace.
    fn url_of(&self, table: CatalogName<'_>, of: &[&str]) -> Result<Url, CatalogError> {
        let settings = self.settings()?;
        let namespace = self.levels(table.slug.as_str()).join(LEVELS_SEPARATOR);
        self.url(settings.prefix.as_deref(), &[&["namespaces", namespace.as_str()], of].concat())
    }

    fn make_namespace(&self, table: CatalogName<'_>) -> Result<(), CatalogError> {
        let url = self.url(self.settings()?.prefix.as_deref(), &["namespaces"])?;
        let levels = self.levels(table.slug.as_str());
        for depth in 1..=levels.len() {
            let body = json!({ "namespace": levels[..depth], "properties": {} }).to_string();
            let answer = self.repeated("POST", &url, &body)?;
            if !matches!(answer.status, 200..=299 | 409) {
                return Err(answer.failed());
            }
        }
        Ok(())
    }

    /// Sends a request that may be repeated, some times. While the catalog is away, most calls fail at once: a run has
    /// many tables.
    fn repeated(&self, method: &str, url: &Url, body: &str) -> Result<Answer, CatalogError> {
        if let Some(until) = self.away_until.lock().filter(|until| self.clock.now() < *until) {
            let until = until.format("%H:%M:%S");
            return Err(CatalogError::Failed(format!(
                "{} was away, and is asked again at {until} UTC",
                self.config.url
            )));
        }
        for pause in RETRY_PAUSES {
            match self.send(method, url, body) {
                Ok(answer) if !answer.is_away() => return Ok(answer),
                _ => std::thread::sleep(pause),
            }
        }
        let answer = self.send(method, url, body);
        if answer.as_ref().map_or(true, Answer::is_away) {
            *self.away_until.lock() = Some(self.clock.now() + AWAY_TIME);
        }
        answer
    }

    /// Sends a request, and once more with another token or other keys if these were refused.
    fn send(&self, method: &str, url: &Url, body: &str) -> Result<Answer, CatalogError> {
        let sent = self.send_once(method, url, body);
        match sent {
            Ok((answer, with)) if matches!(answer.status, 401 | 403 | 419) => {
                match self.access.reject(&with, self.clock.now()) {
                    true => self.send_once(method, url, body).map(|(answer, _)| answer),
                    false => Ok(answer),
                }
            }
            sent => sent.map(|(answer, _)| answer),
        }
        .map_err(|reason| CatalogError::Failed(format!("{} {method} {}: {reason}", self.config.url, url.path())))
    }

    fn send_once(&self, method: &str, url: &Url, body: &str) -> Result<(Answer, Sent), String> {
        let content_type = [("content-type", CONTENT_TYPE)];
        let headers = if body.is_empty() { &[][..] } else { &content_type[..] };
        let unsigned = UnsignedRequest { method, url, headers, body: body.as_bytes() };
        let (access, with) = self.access.headers(&self.agent, &unsigned, self.clock.now())?;
        let mut request = Request::builder().method(method).uri(url.as_str()).header("accept", CONTENT_TYPE);
        for (name, value) in headers.iter().copied().chain(access.iter().map(|(name, value)| (*name, value.as_str()))) {
            request = request.header(name, value);
        }
        let sent = match body {
            "" => request.body(()).map_err(|error| error.to_string()).map(|request| self.agent.run(request)),
            body => request.body(body).map_err(|error| error.to_string()).map(|request| self.agent.run(request)),
        };
        let mut response = sent?.map_err(|error| error.to_string())?;
        let status = response.status().as_u16();
        let text = response.body_mut().with_config().limit(RESPONSE_BYTES_MAX).read_to_string();
        Ok((Answer { status, text: text.map_err(|error| error.to_string())? }, with))
    }
}

impl Answer {
    /// Whether the catalog, or a proxy in front of it, can't respond now.
    const fn is_away(&self) -> bool {
        self.status >= 500 || self.status == 429
    }

    fn json<T: for<'a> Deserialize<'a>>(&self, expected: u16) -> Result<T, CatalogError> {
        if self.status != expected {
            return Err(self.failed());
        }
        serde_json::from_str(&self.text)
            .map_err(|error| CatalogError::Failed(format!("the catalog's response can't be read: {error}")))
    }

    fn error(&self) -> ErrorText {
        serde_json::from_str::<ErrorResponse>(&self.text).unwrap_or_default().error
    }

    fn failed(&self) -> CatalogError {
        CatalogError::Failed(self.describe())
    }

    fn describe(&self) -> String {
        let ErrorText { message, kind } = self.error();
        let text = if message.is_empty() { self.text.trim() } else { &message };
        format!("status {} {}: {}", self.status, clipped(&kind), clipped(text)).replace(" :", ":")
    }
}

impl IcebergCatalog for RestCatalog {
    fn name(&self) -> &str {
        &self.name
    }

    fn load(&self, table: CatalogName<'_>) -> Result<Option<CatalogMetadata>, CatalogError> {
        let mut url = self.url_of(table, &["tables", table.table])?;
        url.query_pairs_mut().append_pair("snapshots", "all");
        let answer = self.repeated("GET", &url, "")?;
        match answer.status {
            404 => Ok(None),
            _ => answer.json(200).map(|found: TableResponse| Some(found.metadata)),
        }
    }

    fn register(&self, table: CatalogName<'_>, metadata: &str) -> Result<(), CatalogError> {
        self.make_namespace(table)?;
        let endpoints = &self.settings()?.endpoints;
        if !endpoints.is_empty() && !endpoints.iter().any(|endpoint| endpoint == REGISTER) {
            return Err(CatalogError::Unsupported(REGISTER.to_owned()));
        }
        let url = self.url_of(table, &["register"])?;
        let body = json!({ "name": table.table, "metadata-location": metadata }).to_string();
        let answer = self.send("POST", &url, &body)?;
        match answer.status {
            200..=299 => Ok(()),
            404..=406 | 501 => Err(CatalogError::Unsupported(answer.describe())),
            409 | 429 | 500..=599 => Err(CatalogError::Unsettled(answer.describe())),
            _ if answer.error().kind.contains("Unsupported") => Err(CatalogError::Unsupported(answer.describe())),
            _ => Err(answer.failed()),
        }
    }

    fn commit(&self, table: CatalogName<'_>, commit: &Value) -> Result<(), CatalogError> {
        let url = self.url_of(table, &["tables", table.table])?;
        let answer = self.send("POST", &url, &commit.to_string())?;
        match answer.status {
            200..=299 => Ok(()),
            409 | 429 | 500..=599 => Err(CatalogError::Unsettled(answer.describe())),
            _ => Err(answer.failed()),
        }
    }

    fn remove(&self, table: CatalogName<'_>) -> Result<(), CatalogError> {
        let mut url = self.url_of(table, &["tables", table.table])?;
        url.query_pairs_mut().append_pair("purgeRequested", "false");
        let answer = self.repeated("DELETE", &url, "")?;
        match answer.status {
            200..=299 | 404 => Ok(()),
            _ => Err(answer.failed()),
        }
    }

    fn probe(&self) -> Result<(), CatalogError> {
        let settings = self.settings()?;
        let url = self.url(settings.prefix.as_deref(), &["namespaces"])?;
        let answer = self.repeated("GET", &url, "")?;
        if answer.status == 200 { Ok(()) } else { Err(answer.failed()) }
    }
}

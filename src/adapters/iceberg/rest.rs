//! Requests to a REST catalog.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use ureq::Agent;
use url::Url;

use super::access::{Access, SentCredential};
use crate::adapters::aws::{Credentials, UnsignedRequest};
use crate::adapters::network::{by_proxy, client};
use crate::config::{CatalogConfig, NetworkConfig};
use crate::domain::iceberg::CatalogMetadata;
use crate::domain::text::clipped;
use crate::ports::IcebergCatalog;
use crate::ports::iceberg_catalog::{CatalogError, CatalogName};
use crate::runtime::Clock;
use crate::system::http_client::{self, TextResponse};

const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);
/// For a whole request. Catalogs read and write metadata files meanwhile.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(30);
/// Pause of all requests after a catalog didn't respond.
const UNAVAILABLE_TIME: TimeDelta = TimeDelta::seconds(30);
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
    /// From the catalog's `config`.
    settings: Mutex<Option<Arc<Settings>>>,
    /// Set if it didn't respond.
    unavailable_until: Mutex<Option<DateTime<Utc>>>,
}

#[derive(Debug, Default)]
struct Settings {
    /// Prefix of all paths, without surrounding slashes.
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

impl RestCatalog {
    /// Sends nothing. `store`: the store's credentials, for catalogs of AWS.
    ///
    /// # Errors
    /// The file of certificate authorities can't be used, or the store has no credentials that requests could be signed with.
    pub fn open(
        config: &CatalogConfig,
        store: Option<Arc<Credentials>>,
        clock: Arc<dyn Clock>,
        network: &NetworkConfig,
    ) -> Result<Self, String> {
        let agent = |url: &str| -> Result<Agent, String> {
            let client = client(url, network).map_err(|error| error.to_string())?;
            let client = client.timeout_connect(Some(CONNECT_TIME_MAX)).timeout_global(Some(REQUEST_TIME_MAX));
            Ok(client.build().new_agent())
        };
        let warehouse = config.warehouse.as_ref().map(|warehouse| format!(" {warehouse}")).unwrap_or_default();
        let parents = match config.parents.is_empty() {
            true => String::new(),
            false => format!(" {}", config.parents.join(".")),
        };
        Ok(Self {
            name: format!("{}{warehouse}{parents}", config.url),
            access: Access::new(&config.access, store, agent)?,
            config: config.clone(),
            agent: agent(&config.url)?,
            clock,
            settings: Mutex::default(),
            unavailable_until: Mutex::default(),
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
        let response = self.repeated("GET", &url, "")?;
        let found: ConfigResponse = parsed(&response)?;
        let prefix = found.overrides.prefix.or(found.defaults.prefix);
        let prefix = prefix.map(|prefix| prefix.trim_matches('/').to_owned()).filter(|prefix| !prefix.is_empty());
        let settings = Arc::new(Settings { prefix, endpoints: found.endpoints });
        *self.settings.lock() = Some(Arc::clone(&settings));
        Ok(settings)
    }

    /// `prefix`: the percent-encoded prefix that the catalog's config names.
    fn url(&self, prefix: Option<&str>, segments: &[&str]) -> Result<Url, CatalogError> {
        let base = match prefix {
            Some(prefix) => format!("{}/v1/{prefix}", self.config.url),
            None => format!("{}/v1", self.config.url),
        };
        let invalid = || CatalogError::Failed(format!("`{}` is not a URL", clipped(&base)));
        let mut url = Url::parse(&base).map_err(|_| invalid())?;
        url.path_segments_mut().map_err(|()| invalid())?.extend(segments);
        Ok(url)
    }

    fn levels(&self, slug: &str) -> Vec<String> {
        self.config.parents.iter().cloned().chain([slug.to_owned()]).collect()
    }

    /// The URL of `path` in the table's namespace.
    fn url_of(&self, table: CatalogName<'_>, path: &[&str]) -> Result<Url, CatalogError> {
        let settings = self.settings()?;
        let namespace = self.levels(table.slug.as_str()).join(LEVELS_SEPARATOR);
        self.url(settings.prefix.as_deref(), &[&["namespaces", namespace.as_str()], path].concat())
    }

    fn make_namespace(&self, table: CatalogName<'_>) -> Result<(), CatalogError> {
        let url = self.url(self.settings()?.prefix.as_deref(), &["namespaces"])?;
        let levels = self.levels(table.slug.as_str());
        for depth in 1..=levels.len() {
            let body = json!({ "namespace": levels[..depth], "properties": {} }).to_string();
            let response = self.repeated("POST", &url, &body)?;
            if !matches!(response.status, 200..=299 | 409) {
                return Err(failed(&response));
            }
        }
        Ok(())
    }

    /// Sends a request that may be repeated, with retries. While the catalog is unavailable, calls fail at once, since a
    /// run may have many tables.
    fn repeated(&self, method: &str, url: &Url, body: &str) -> Result<TextResponse, CatalogError> {
        if let Some(until) = self.unavailable_until.lock().filter(|until| self.clock.now() < *until) {
            let until = until.format("%H:%M:%S");
            return Err(CatalogError::Failed(format!(
                "{} didn't respond; next attempt at {until} UTC",
                self.config.url
            )));
        }
        let response = http_client::with_retries(|| self.send(method, url, body));
        if response.as_ref().map_or(true, TextResponse::is_unavailable) {
            *self.unavailable_until.lock() = Some(self.clock.now() + UNAVAILABLE_TIME);
        }
        response
    }

    /// Sends a request, and once more with another token or other keys if these were refused.
    fn send(&self, method: &str, url: &Url, body: &str) -> Result<TextResponse, CatalogError> {
        let sent = self.send_once(method, url, body);
        match sent {
            Ok((response, with)) if matches!(response.status, 401 | 403 | 419) => {
                match self.access.reject(&with, self.clock.now()) {
                    true => self.send_once(method, url, body).map(|(response, _)| response),
                    false => Ok(response),
                }
            }
            sent => sent.map(|(response, _)| response),
        }
        .map_err(|reason| CatalogError::Failed(format!("{} {method} {}: {reason}", self.config.url, url.path())))
    }

    fn send_once(&self, method: &str, url: &Url, body: &str) -> Result<(TextResponse, SentCredential), String> {
        let content_type = [("content-type", CONTENT_TYPE)];
        let headers = if body.is_empty() { &[][..] } else { &content_type[..] };
        let unsigned = UnsignedRequest { method, url, headers, body: body.as_bytes() };
        let (access, with) = self.access.headers(&unsigned, self.clock.now())?;
        let accept = [("accept", CONTENT_TYPE)].into_iter();
        let access = access.iter().map(|(name, value)| (*name, value.as_str()));
        let headers = accept.chain(headers.iter().copied()).chain(access);
        let request = http_client::request(method, url.as_str(), headers, body.as_bytes())?;
        let sent = http_client::send(&self.agent, request, RESPONSE_BYTES_MAX);
        Ok((sent.map_err(|error| error + &by_proxy(self.agent.config().proxy()))?, with))
    }
}

fn parsed<T: for<'a> Deserialize<'a>>(response: &TextResponse) -> Result<T, CatalogError> {
    if response.status != 200 {
        return Err(failed(response));
    }
    serde_json::from_str(&response.text)
        .map_err(|error| CatalogError::Failed(format!("the catalog's response can't be read: {error}")))
}

fn error_of(response: &TextResponse) -> ErrorText {
    serde_json::from_str::<ErrorResponse>(&response.text).unwrap_or_default().error
}

fn failed(response: &TextResponse) -> CatalogError {
    CatalogError::Failed(describe(response))
}

fn describe(response: &TextResponse) -> String {
    let ErrorText { message, kind } = error_of(response);
    let text = if message.is_empty() { response.text.trim() } else { &message };
    format!("status {} {}: {}", response.status, clipped(&kind), clipped(text)).replace(" :", ":")
}

impl IcebergCatalog for RestCatalog {
    fn name(&self) -> &str {
        &self.name
    }

    fn load(&self, table: CatalogName<'_>) -> Result<Option<CatalogMetadata>, CatalogError> {
        let mut url = self.url_of(table, &["tables", table.table])?;
        url.query_pairs_mut().append_pair("snapshots", "all");
        let response = self.repeated("GET", &url, "")?;
        match response.status {
            404 => Ok(None),
            _ => parsed(&response).map(|found: TableResponse| Some(found.metadata)),
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
        let response = self.send("POST", &url, &body)?;
        match response.status {
            200..=299 => Ok(()),
            404..=406 | 501 => Err(CatalogError::Unsupported(describe(&response))),
            409 | 429 | 500..=599 => Err(CatalogError::Uncertain(describe(&response))),
            _ if error_of(&response).kind.contains("Unsupported") => {
                Err(CatalogError::Unsupported(describe(&response)))
            }
            _ => Err(failed(&response)),
        }
    }

    fn commit(&self, table: CatalogName<'_>, commit: &Value) -> Result<(), CatalogError> {
        let url = self.url_of(table, &["tables", table.table])?;
        let response = self.send("POST", &url, &commit.to_string())?;
        match response.status {
            200..=299 => Ok(()),
            409 | 429 | 500..=599 => Err(CatalogError::Uncertain(describe(&response))),
            _ => Err(failed(&response)),
        }
    }

    fn remove(&self, table: CatalogName<'_>) -> Result<(), CatalogError> {
        let mut url = self.url_of(table, &["tables", table.table])?;
        url.query_pairs_mut().append_pair("purgeRequested", "false");
        let response = self.repeated("DELETE", &url, "")?;
        match response.status {
            200..=299 | 404 => Ok(()),
            _ => Err(failed(&response)),
        }
    }

    fn probe(&self) -> Result<(), CatalogError> {
        let settings = self.settings()?;
        let url = self.url(settings.prefix.as_deref(), &["namespaces"])?;
        let response = self.repeated("GET", &url, "")?;
        if response.status == 200 { Ok(()) } else { Err(failed(&response)) }
    }
}

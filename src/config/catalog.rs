//! The REST catalog of Iceberg tables.

use super::env::{Expected, Var, VariableReader, secret};
use super::object_store::ObjectStoreConfig;
use super::secret::Secret;
use super::values::{http_url, word};

/// The scope that Polaris and PyIceberg use by default.
pub const OAUTH_SCOPE_DEFAULT: &str = "catalog";

/// A REST catalog, and the authorization of requests to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogConfig {
    /// `SVC_ICEBERG_CATALOG_URL`: without `/v1`, without a `/` at the end.
    pub url: String,
    /// `SVC_ICEBERG_CATALOG_WAREHOUSE`: which of the catalog's warehouses; default the catalog's own.
    pub warehouse: Option<String>,
    /// `SVC_ICEBERG_CATALOG_NAMESPACE`: the namespace above those of the pipelines, levels separated by dots; default
    /// none.
    pub parents: Vec<String>,
    pub access: CatalogAccess,
}

/// The authorization of requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CatalogAccess {
    Open,
    /// `SVC_ICEBERG_CATALOG_TOKEN`: a bearer token; may come from a file.
    Token(Secret),
    /// `SVC_ICEBERG_CATALOG_CREDENTIAL`: `client-id:secret` of OAuth2; may come from a file.
    Client {
        id: String,
        secret: Secret,
        /// `SVC_ICEBERG_CATALOG_OAUTH_URL`: the token endpoint; default that of the catalog.
        url: String,
        /// `SVC_ICEBERG_CATALOG_SCOPE`: default `catalog`.
        scope: String,
    },
    /// `SVC_ICEBERG_CATALOG_SIGV4`: the service that requests are signed for, `glue` or `s3tables`, with the store's
    /// credentials and region.
    Signed {
        service: &'static str,
        region: String,
    },
}

impl CatalogConfig {
    pub(super) fn read(reader: &VariableReader<'_>, objects: &ObjectStoreConfig) -> Option<Self> {
        let url = reader.optional(Var("SVC_ICEBERG_CATALOG_URL", "URL of the Iceberg catalog"), http_url);
        let warehouse = reader.optional(Var("SVC_ICEBERG_CATALOG_WAREHOUSE", "warehouse of the Iceberg catalog"), line);
        let parents = Var("SVC_ICEBERG_CATALOG_NAMESPACE", "parent namespace in the Iceberg catalog");
        let parents = reader.or(parents, Vec::new(), levels);
        let token = reader.optional_secret(Var("SVC_ICEBERG_CATALOG_TOKEN", "token for the Iceberg catalog"), secret);
        let client = Var("SVC_ICEBERG_CATALOG_CREDENTIAL", "OAuth2 client of the Iceberg catalog");
        let client = reader.optional_secret(client, credential);
        let oauth = reader.optional(Var("SVC_ICEBERG_CATALOG_OAUTH_URL", "token endpoint of OAuth2"), http_url);
        let scope = Var("SVC_ICEBERG_CATALOG_SCOPE", "scope of OAuth2");
        let scope = reader.or(scope, OAUTH_SCOPE_DEFAULT.to_owned(), line);
        let signing = Var("SVC_ICEBERG_CATALOG_SIGV4", "service that requests to the Iceberg catalog are signed for");
        let signed = reader.optional(signing, service);
        let url = url.map(|url| url.strip_suffix("/v1").unwrap_or(&url).to_owned())?;
        if [token.is_some(), client.is_some(), signed.is_some()].iter().filter(|set| **set).count() > 1 {
            let expected = "one of SVC_ICEBERG_CATALOG_TOKEN, SVC_ICEBERG_CATALOG_CREDENTIAL and \
                            SVC_ICEBERG_CATALOG_SIGV4";
            reader.malformed(Var("SVC_ICEBERG_CATALOG_URL", "URL of the Iceberg catalog"), &url, expected);
        }
        let access = match (token, client, signed) {
            (Some(token), _, _) => CatalogAccess::Token(token),
            (_, Some((id, secret)), _) => {
                let url = oauth.unwrap_or_else(|| format!("{url}/v1/oauth/tokens"));
                CatalogAccess::Client { id, secret, url, scope }
            }
            (_, _, Some(service)) => CatalogAccess::Signed { service, region: objects.region.clone() },
            (None, None, None) => CatalogAccess::Open,
        };
        Some(Self { url, warehouse, parents, access })
    }
}

fn line(text: &str) -> Result<String, Expected> {
    let is_line = !text.is_empty() && text.len() <= 2_048 && !text.chars().any(char::is_control);
    if is_line { Ok(text.to_owned()) } else { Err("one line of at most 2048 bytes".to_owned()) }
}

fn levels(text: &str) -> Result<Vec<String>, Expected> {
    text.split('.').map(|level| word(level).map_err(|_| "levels such as `lake.raw`".to_owned())).collect()
}

fn credential(text: &str) -> Result<(String, Secret), Expected> {
    match text.split_once(':') {
        Some((id, secret)) if !id.is_empty() && !secret.is_empty() => Ok((id.to_owned(), Secret::new(secret))),
        _ => Err("`client-id:secret`".to_owned()),
    }
}

fn service(text: &str) -> Result<&'static str, Expected> {
    ["glue", "s3tables"].into_iter().find(|service| *service == text).ok_or_else(|| "`glue` or `s3tables`".to_owned())
}

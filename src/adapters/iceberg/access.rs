//! Authorization of requests to a catalog.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use parking_lot::Mutex;
use serde::Deserialize;
use ureq::Agent;
use url::form_urlencoded;

use crate::adapters::aws::{Credentials, RequestSigner, SigningKeys, UnsignedRequest};
use crate::adapters::network::by_proxy;
use crate::config::{CatalogAccess, Secret};
use crate::system::http_client;

/// A token is renewed this long before its end.
const RENEWED_BEFORE_END: TimeDelta = TimeDelta::seconds(60);
/// Lifetime of a token if the response has none.
const TOKEN_SECONDS_DEFAULT: i64 = 300;
const TOKEN_SECONDS_MAX: i64 = 86_400;
const RESPONSE_BYTES_MAX: u64 = 256 << 10;

pub(super) enum Access {
    Open,
    Token(Secret),
    Client(OauthClient),
    Signed { signer: RequestSigner, credentials: Arc<Credentials> },
}

/// An OAuth2 client and its present token.
pub(super) struct OauthClient {
    agent: Agent,
    id: String,
    secret: Secret,
    url: String,
    scope: String,
    /// Locked while a token is fetched, so that others wait for it.
    token: Mutex<Option<(Secret, DateTime<Utc>)>>,
}

/// The credentials of a request, which are rejected if the catalog refuses them.
pub(super) enum SentCredential {
    Static,
    Token(Secret),
    Keys(Arc<SigningKeys>),
}

/// The headers that authorize a request, and the credentials in them.
pub(super) type Authorization = (Vec<(&'static str, String)>, SentCredential);

#[derive(Deserialize)]
struct TokenResponse {
    access_token: String,
    #[serde(default)]
    expires_in: Option<i64>,
}

impl Access {
    /// `store`: the credentials of the store, for signed requests. `agent`: makes a client of a URL.
    ///
    /// # Errors
    /// That of `agent`; or requests are to be signed, and the store has no credentials.
    pub(super) fn new(
        access: &CatalogAccess,
        store: Option<Arc<Credentials>>,
        agent: impl Fn(&str) -> Result<Agent, String>,
    ) -> Result<Self, String> {
        Ok(match access {
            CatalogAccess::Open => Self::Open,
            CatalogAccess::Token(token) => Self::Token(token.clone()),
            CatalogAccess::Client { id, secret, url, scope } => Self::Client(OauthClient {
                agent: agent(url)?,
                id: id.clone(),
                secret: secret.clone(),
                url: url.clone(),
                scope: scope.clone(),
                token: Mutex::default(),
            }),
            CatalogAccess::Signed { service, region } => Self::Signed {
                signer: RequestSigner::new(region, service),
                credentials: store.ok_or("requests can't be signed: the store is a folder and has no credentials")?,
            },
        })
    }

    /// Authorizes a request.
    ///
    /// # Errors
    /// If no token or key is available.
    pub(super) fn headers(&self, request: &UnsignedRequest<'_>, now: DateTime<Utc>) -> Result<Authorization, String> {
        let bearer = |token: &Secret| vec![("authorization", format!("Bearer {}", token.reveal()))];
        match self {
            Self::Open => Ok((Vec::new(), SentCredential::Static)),
            Self::Token(token) => Ok((bearer(token), SentCredential::Static)),
            Self::Client(client) => {
                let token = client.token(now)?;
                Ok((bearer(&token), SentCredential::Token(token)))
            }
            Self::Signed { signer, credentials } => {
                let keys = credentials.keys(now).map_err(|error| error.to_string())?;
                let headers = signer.headers(&keys, request, now).map_err(|error| error.to_string())?;
                Ok((headers, SentCredential::Keys(keys)))
            }
        }
    }

    /// Reports that the catalog refused these credentials. Whether the next request may have others.
    pub(super) fn reject(&self, sent: &SentCredential, now: DateTime<Utc>) -> bool {
        match (self, sent) {
            (Self::Client(client), SentCredential::Token(token)) => {
                let mut present = client.token.lock();
                if present.as_ref().is_some_and(|(present, _)| present == token) {
                    *present = None;
                }
                true
            }
            (Self::Signed { credentials, .. }, SentCredential::Keys(keys)) => credentials.reject(keys, now),
            _ => false,
        }
    }
}

impl OauthClient {
    fn token(&self, now: DateTime<Utc>) -> Result<Secret, String> {
        let mut present = self.token.lock();
        if let Some((token, end)) = present.as_ref()
            && now + RENEWED_BEFORE_END < *end
        {
            return Ok(token.clone());
        }
        let response = self.fetch().map_err(|why| format!("token of OAuth2 from {}: {why}", self.url))?;
        let seconds = response.expires_in.unwrap_or(TOKEN_SECONDS_DEFAULT).clamp(0, TOKEN_SECONDS_MAX);
        let token = Secret::new(response.access_token);
        *present = Some((token.clone(), now + TimeDelta::seconds(seconds)));
        Ok(token)
    }

    fn fetch(&self) -> Result<TokenResponse, String> {
        let form = form_urlencoded::Serializer::new(String::new())
            .append_pair("grant_type", "client_credentials")
            .append_pair("client_id", &self.id)
            .append_pair("client_secret", self.secret.reveal())
            .append_pair("scope", &self.scope)
            .finish();
        let headers = [("content-type", "application/x-www-form-urlencoded")];
        let request = http_client::request("POST", &self.url, headers, form.as_bytes())?;
        let sent = http_client::send(&self.agent, request, RESPONSE_BYTES_MAX);
        let text = sent.map_err(|error| error + &by_proxy(self.agent.config().proxy()))?.success()?;
        // The text may contain the token: it is not part of the error.
        serde_json::from_str(&text).map_err(|error| format!("the response has no token: {error}"))
    }
}

//! Requests for credentials and certificates, and their responses.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Deserialize;
use ureq::Agent;
use ureq::config::ConfigBuilder;
use ureq::typestate::AgentScope;

use super::keys::SigningKeys;
use crate::adapters::network::by_proxy;
use crate::config::Secret;
use crate::domain::text::clipped;
use crate::system::http_client::{self, TextResponse};

/// For a whole attempt: responses are small, and local except those of STS.
const ATTEMPT_TIME_MAX: Duration = Duration::from_secs(5);
const CONNECT_TIME_MAX: Duration = Duration::from_secs(2);
const RESPONSE_BYTES_MAX: u64 = 256 << 10;

/// A small request.
#[derive(Default)]
pub(super) struct SmallRequest<'a> {
    pub(super) method: &'static str,
    pub(super) url: &'a str,
    pub(super) headers: Vec<(&'static str, &'a str)>,
    pub(super) body: String,
}

/// Sends small requests.
pub(super) struct HttpClient {
    agent: Agent,
}

impl HttpClient {
    pub(super) fn new(client: ConfigBuilder<AgentScope>) -> Self {
        let config = client
            .timeout_connect(Some(CONNECT_TIME_MAX))
            .timeout_global(Some(ATTEMPT_TIME_MAX))
            .max_idle_connections(0)
            .build();
        Self { agent: config.new_agent() }
    }

    /// A response with a status below 500 that isn't 429.
    ///
    /// # Errors
    /// No such response after several attempts.
    pub(super) fn send(&self, request: &SmallRequest<'_>) -> Result<TextResponse, String> {
        let response = http_client::with_retries(|| {
            let SmallRequest { method, url, headers, body } = request;
            let built = http_client::request(method, url, headers.iter().copied(), body.as_bytes())?;
            http_client::send(&self.agent, built, RESPONSE_BYTES_MAX)
                .map_err(|error| error + &by_proxy(self.agent.config().proxy()))
        })?;
        match response.is_unavailable() {
            true => Err(response.failure()),
            false => Ok(response),
        }
    }
}

/// Temporary keys as containers' endpoints and instance metadata write them.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Document {
    code: Option<String>,
    message: Option<String>,
    access_key_id: Option<String>,
    secret_access_key: Option<String>,
    token: Option<String>,
    expiration: Option<String>,
}

/// # Errors
/// The field that is missing, or the reason why the document has no keys.
pub(super) fn keys_of_json(text: &str) -> Result<SigningKeys, String> {
    let document: Document =
        serde_json::from_str(text).map_err(|error| format!("the response isn't JSON with keys: {error}"))?;
    if let Some(code) = document.code.filter(|code| code != "Success") {
        let message = document.message.unwrap_or_default();
        return Err(format!("`{}` {}", clipped(&code), clipped(&message)).trim_end().to_owned());
    }
    let of = |value: Option<String>, name: &str| {
        value.filter(|value| !value.is_empty()).map(Secret::new).ok_or_else(|| format!("the response has no `{name}`"))
    };
    Ok(SigningKeys {
        id: of(document.access_key_id, "AccessKeyId")?,
        secret: of(document.secret_access_key, "SecretAccessKey")?,
        session_token: Some(of(document.token, "Token")?),
        end: document.expiration.as_deref().map(moment).transpose()?,
    })
}

pub(super) fn moment(text: &str) -> Result<DateTime<Utc>, String> {
    DateTime::parse_from_rfc3339(text)
        .map(|end| end.to_utc())
        .map_err(|_| format!("`Expiration` is `{}`, expected a time as in RFC 3339", clipped(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incomplete_answer_names_what_is_missing() {
        let error = |text: &str| keys_of_json(text).unwrap_err();
        assert_eq!(error(r#"{"AccessKeyId": "a", "SecretAccessKey": ""}"#), "the response has no `SecretAccessKey`");
        assert_eq!(error(r#"{"AccessKeyId": "a", "SecretAccessKey": "b"}"#), "the response has no `Token`");
        assert_eq!(
            error(r#"{"Code": "AssumeRoleUnauthorizedAccess", "Message": "no"}"#),
            "`AssumeRoleUnauthorizedAccess` no"
        );
        let odd = r#"{"AccessKeyId": "a", "SecretAccessKey": "b", "Token": "c", "Expiration": "soon"}"#;
        assert_eq!(error(odd), "`Expiration` is `soon`, expected a time as in RFC 3339");
        assert!(error("<html>").starts_with("the response isn't JSON with keys: "));
    }
}

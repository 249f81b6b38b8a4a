//! Requests for credentials and certificates, and their answers.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Deserialize;
use ureq::Agent;
use ureq::tls::TlsConfig;

use super::keys::SigningKeys;
use crate::config::Secret;
use crate::domain::text::clipped;
use crate::system::http_client;

/// For the whole of an attempt: an answer is small, and local but for STS.
const ATTEMPT_TIME_MAX: Duration = Duration::from_secs(5);
const CONNECT_TIME_MAX: Duration = Duration::from_secs(2);
/// Pauses before the next attempts after a failed connection, a throttled request or a server's error.
const RETRY_PAUSES: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(1)];
const ANSWER_BYTES_MAX: u64 = 256 << 10;

/// A small request.
#[derive(Default)]
pub(super) struct Question<'a> {
    pub(super) method: &'static str,
    pub(super) url: &'a str,
    pub(super) headers: Vec<(&'static str, &'a str)>,
    pub(super) body: String,
}

/// An answer with a status below 500 that isn't 429.
pub(super) struct EndpointAnswer {
    pub(super) status: u16,
    pub(super) text: String,
}

impl EndpointAnswer {
    /// # Errors
    /// What was found instead of success.
    pub(super) fn success(self) -> Result<String, String> {
        match self.status {
            200 => Ok(self.text),
            status => Err(format!("status {status}: {}", clipped(self.text.trim()))),
        }
    }
}

/// Sends small requests.
pub(super) struct Answers {
    agent: Agent,
}

impl Answers {
    pub(super) fn new(tls: TlsConfig) -> Self {
        let config = http_client::config(tls)
            .timeout_connect(Some(CONNECT_TIME_MAX))
            .timeout_global(Some(ATTEMPT_TIME_MAX))
            .max_idle_connections(0)
            .build();
        Self { agent: config.new_agent() }
    }

    /// # Errors
    /// Why there is no answer, after some attempts.
    pub(super) fn ask(&self, question: &Question<'_>) -> Result<EndpointAnswer, String> {
        for pause in RETRY_PAUSES {
            match self.ask_once(question) {
                Ok(answer) if answer.status < 500 && answer.status != 429 => return Ok(answer),
                _ => std::thread::sleep(pause),
            }
        }
        match self.ask_once(question)? {
            answer if answer.status < 500 && answer.status != 429 => Ok(answer),
            answer => Err(format!("status {}: {}", answer.status, clipped(answer.text.trim()))),
        }
    }

    fn ask_once(&self, question: &Question<'_>) -> Result<EndpointAnswer, String> {
        let mut request = ureq::http::Request::builder().method(question.method).uri(question.url);
        for (name, value) in &question.headers {
            request = request.header(*name, *value);
        }
        let request = request.body(question.body.as_bytes()).map_err(|error| error.to_string())?;
        let mut response = self.agent.run(request).map_err(|error| error.to_string())?;
        let status = response.status().as_u16();
        let text = response.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_string();
        Ok(EndpointAnswer { status, text: text.map_err(|error| error.to_string())? })
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
/// What is missing, or why there are none.
pub(super) fn keys_of_json(text: &str) -> Result<SigningKeys, String> {
    let document: Document =
        serde_json::from_str(text).map_err(|error| format!("the answer isn't JSON with keys: {error}"))?;
    if let Some(code) = document.code.filter(|code| code != "Success") {
        let message = document.message.unwrap_or_default();
        return Err(format!("`{}` {}", clipped(&code), clipped(&message)).trim_end().to_owned());
    }
    let of = |value: Option<String>, name: &str| {
        value.filter(|value| !value.is_empty()).map(Secret::new).ok_or_else(|| format!("the answer has no `{name}`"))
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
        assert_eq!(error(r#"{"AccessKeyId": "a", "SecretAccessKey": ""}"#), "the answer has no `SecretAccessKey`");
        assert_eq!(error(r#"{"AccessKeyId": "a", "SecretAccessKey": "b"}"#), "the answer has no `Token`");
        assert_eq!(
            error(r#"{"Code": "AssumeRoleUnauthorizedAccess", "Message": "no"}"#),
            "`AssumeRoleUnauthorizedAccess` no"
        );
        let odd = r#"{"AccessKeyId": "a", "SecretAccessKey": "b", "Token": "c", "Expiration": "soon"}"#;
        assert_eq!(error(odd), "`Expiration` is `soon`, expected a time as in RFC 3339");
        assert!(error("<html>").starts_with("the answer isn't JSON with keys: "));
    }
}

//! Simple HTTP requests.

use ureq::Agent;
use ureq::http::Request;

use super::browser::RESPONSE_WAIT_MAX;

/// Status and body; every status is a success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub body: String,
}

impl Answer {
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

fn agent() -> Agent {
    Agent::config_builder().timeout_global(Some(RESPONSE_WAIT_MAX)).http_status_as_error(false).build().into()
}

/// Sends a request to `address`.
pub fn send(address: &str, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    try_send(address, method, path, headers, body).unwrap()
}

pub fn try_send(
    address: &str,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Result<Answer, ureq::Error> {
    let mut request = Request::builder().method(method).uri(format!("http://{address}{path}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut response = agent().run(request.body(body.to_owned()).unwrap())?;
    Ok(Answer { status: response.status().as_u16(), body: response.body_mut().read_to_string()? })
}

pub fn get(address: &str, path: &str) -> Answer {
    send(address, "GET", path, &[], "")
}

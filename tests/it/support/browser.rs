//! An HTTP client of the web service. Checks every response against the OpenAPI document.

use std::sync::LazyLock;
use std::time::Duration;

use serde_json::Value;
use ureq::Agent;
use ureq::http::Request;

use super::conformance;
use super::site::{PASSWORD, Service};

/// Longest wait for a complete response.
pub const RESPONSE_WAIT_MAX: Duration = Duration::from_secs(300);

static AGENT: LazyLock<Agent> = LazyLock::new(|| {
    let config = Agent::config_builder().timeout_global(Some(RESPONSE_WAIT_MAX));
    config.http_status_as_error(false).max_redirects(0).allow_non_standard_methods(true).build().into()
});

/// A client, with a session or without.
#[derive(Clone)]
pub struct Browser {
    pub address: String,
    /// The value of its `Cookie` header.
    pub cookie: Option<String>,
}

/// A response of any status.
#[derive(Debug, Clone)]
pub struct Reply {
    pub status: u16,
    /// With lowercase names.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Browser {
    /// A client without a session.
    pub fn anonymous(web: &Service) -> Self {
        Self { address: web.address(), cookie: None }
    }

    /// A client with a session.
    pub fn log_in(web: &Service) -> Self {
        Self::log_in_at(web.address(), PASSWORD)
    }

    /// A client with a session of a service that was started elsewhere.
    pub fn log_in_at(address: String, password: &str) -> Self {
        let mut browser = Self { address, cookie: None };
        let reply = browser.post("/api/auth/login", &serde_json::json!({ "password": password })).ok();
        let cookie = reply.header("set-cookie").expect("a cookie");
        browser.cookie = Some(cookie.split(';').next().unwrap().to_owned());
        browser
    }

    pub fn get(&self, path: &str) -> Reply {
        self.send("GET", path, &[], b"")
    }

    pub fn post(&self, path: &str, body: &Value) -> Reply {
        self.json("POST", path, body)
    }

    pub fn put(&self, path: &str, body: &Value) -> Reply {
        self.json("PUT", path, body)
    }

    pub fn patch(&self, path: &str, body: &Value) -> Reply {
        self.json("PATCH", path, body)
    }

    pub fn delete(&self, path: &str) -> Reply {
        self.send("DELETE", path, &[], b"")
    }

    pub fn json(&self, method: &str, path: &str, body: &Value) -> Reply {
        self.send(method, path, &[("Content-Type", "application/json")], body.to_string().as_bytes())
    }

    /// Sends a request. `path` is sent as it is.
    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
        self.try_send(method, path, headers, body).unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    pub fn try_send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Reply, ureq::Error> {
        let mut request = Request::builder().method(method).uri(format!("http://{}{path}", self.address));
        if let Some(cookie) = &self.cookie {
            request = request.header("Cookie", cookie);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut response = match body {
            b"" => AGENT.run(request.body(()).unwrap())?,
            body => AGENT.run(request.body(body).unwrap())?,
        };
        let header = |(name, value): (&ureq::http::HeaderName, &ureq::http::HeaderValue)| {
            (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        let headers = response.headers().iter().map(header).collect();
        let body = response.body_mut().with_config().limit(1 << 30).read_to_vec()?;
        let reply = Reply { status: response.status().as_u16(), headers, body };
        conformance::check(method, path, reply.status, reply.header("content-type"), &reply.body);
        Ok(reply)
    }
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// Panics unless the status is below 400.
    #[track_caller]
    pub fn ok(self) -> Self {
        assert!(self.status < 400, "{}: {}", self.status, self.text());
        self
    }

    /// Panics unless it is a documented error. Returns its message.
    #[track_caller]
    pub fn refused(&self, status: u16, code: &str) -> String {
        assert_eq!(self.status, status, "{}", self.text());
        let body = self.json();
        assert_eq!(body["error"], code, "{body}");
        body["message"].as_str().unwrap().to_owned()
    }
}

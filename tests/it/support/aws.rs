//! AWS's credential sources on loopback: STS, a container's endpoint, the metadata of an instance. Written from AWS's
//! documentation; shares no code with the product.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use parking_lot::Mutex;

use super::http_proxy::{HttpProxy, ProxiedRequest, ProxyAction};
use super::s3_server::{ACCESS_KEY, SECRET_KEY};

pub const ROLE: &str = "lakemill-role";
pub const ROLE_ARN: &str = "arn:aws:iam::123456789012:role/lakemill";
/// What service accounts and containers show.
pub const PROOF: &str = "a proof of identity";
const SESSION: &str = "a session with the metadata service";

/// The configured behaviour of the services.
#[derive(Debug, Clone)]
pub struct Behaviour {
    /// How long keys last.
    pub life: Duration,
    /// The number of the next requests that get 503.
    pub failures: usize,
    /// Answers before the instance has a role have status 404.
    pub has_role: bool,
    /// Requests for a session get no answer, as in a container with a hop limit of 1.
    pub loses_sessions: bool,
}

impl Default for Behaviour {
    fn default() -> Self {
        Self { life: Duration::from_secs(3_600), failures: 0, has_role: true, loses_sessions: false }
    }
}

#[derive(Default)]
struct State {
    behaviour: Behaviour,
    /// When the keys of each session end.
    sessions: Vec<DateTime<Utc>>,
}

/// The services, and the credentials that they issued.
pub struct Aws {
    state: Arc<Mutex<State>>,
    proxy: HttpProxy,
}

impl Aws {
    pub fn new(behaviour: Behaviour) -> Self {
        let state = Arc::new(Mutex::new(State { behaviour, sessions: Vec::new() }));
        let shared = Arc::clone(&state);
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 9));
        Self { state, proxy: HttpProxy::start(nowhere, move |passing| answer(&shared, passing)) }
    }

    pub fn url(&self) -> String {
        self.proxy.url()
    }

    /// How many keys were given out.
    pub fn sessions(&self) -> usize {
        self.state.lock().sessions.len()
    }

    pub fn change(&self, change: impl FnOnce(&mut Behaviour)) {
        change(&mut self.state.lock().behaviour);
    }

    /// The keys that were given out don't work from now on.
    pub fn revoke_all(&self) {
        self.state.lock().sessions.iter_mut().for_each(|end| *end = DateTime::UNIX_EPOCH);
    }

    /// Simulates an AWS store: requests with the token of a valid session pass.
    pub fn gate(&self) -> impl Fn(&mut ProxiedRequest) -> ProxyAction + Send + Sync + use<> {
        let state = Arc::clone(&self.state);
        move |passing| {
            let in_query = query(&passing.target).remove("X-Amz-Security-Token");
            let in_header = || passing.header("x-amz-security-token").map(str::to_owned);
            let token = in_query.or_else(in_header).unwrap_or_default();
            let (code, message) = match end_of(&state, &token) {
                Some(end) if Utc::now() < end => return ProxyAction::Forward,
                Some(_) => ("ExpiredToken", "The provided token has expired."),
                None => ("InvalidToken", "The provided token is malformed or otherwise invalid."),
            };
            reply("400 Bad Request", &format!("<Error><Code>{code}</Code><Message>{message}</Message></Error>"))
        }
    }

    /// Simulates other services, whose requests are signed in headers: returns the error code of a refusal.
    pub fn gate_of_headers(&self) -> impl Fn(&ProxiedRequest) -> Result<(), &'static str> + Send + Sync + use<> {
        let state = Arc::clone(&self.state);
        move |passing| match end_of(&state, passing.header("x-amz-security-token").unwrap_or_default()) {
            Some(end) if Utc::now() < end => Ok(()),
            Some(_) => Err("ExpiredTokenException"),
            None => Err("UnrecognizedClientException"),
        }
    }
}

/// When the keys of the session end.
fn end_of(state: &Mutex<State>, token: &str) -> Option<DateTime<Utc>> {
    let number = token.strip_prefix("session/")?.parse::<usize>().ok()?;
    state.lock().sessions.get(number).copied()
}

fn query(target: &str) -> HashMap<String, String> {
    let query = target.split_once('?').map_or("", |(_, query)| query);
    url::form_urlencoded::parse(query.as_bytes()).into_owned().collect()
}

fn reply(status: &str, body: &str) -> ProxyAction {
    let length = body.len();
    ProxyAction::Answer(
        format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}").into_bytes(),
    )
}

fn answer(state: &Mutex<State>, passing: &ProxiedRequest) -> ProxyAction {
    {
        let behaviour = &mut state.lock().behaviour;
        if behaviour.failures > 0 {
            behaviour.failures -= 1;
            return reply("503 Service Unavailable", "slow down");
        }
    }
    let (path, method) = (passing.target.split('?').next().unwrap(), passing.method.as_str());
    let roles = "/latest/meta-data/iam/security-credentials/";
    match (method, path) {
        ("PUT", "/latest/api/token") => {
            let seconds = passing.header("x-aws-ec2-metadata-token-ttl-seconds").and_then(|text| text.parse().ok());
            if state.lock().behaviour.loses_sessions {
                return ProxyAction::Close;
            }
            match seconds {
                Some(1..=21_600_u32) => reply("200 OK", SESSION.replace(' ', "-").as_str()),
                _ => reply("400 Bad Request", ""),
            }
        }
        ("GET", path) if path.starts_with(roles) => {
            if passing.header("x-aws-ec2-metadata-token") != Some(SESSION.replace(' ', "-").as_str()) {
                return reply("401 Unauthorized", "");
            }
            let has_role = state.lock().behaviour.has_role;
            match &path[roles.len()..] {
                "" if has_role => reply("200 OK", ROLE),
                ROLE if has_role => reply("200 OK", &document(state, r#""Code": "Success", "Type": "AWS-HMAC", "#)),
                _ => reply("404 Not Found", "<html/>"),
            }
        }
        ("GET", "/container") if passing.header("authorization") == Some(PROOF) => {
            reply("200 OK", &document(state, &format!(r#""RoleArn": "{ROLE_ARN}", "#)))
        }
        ("GET", "/container") => reply("403 Forbidden", r#"{"message": "unknown authorization"}"#),
        ("POST", "/") => assume_role(state, &passing.body),
        _ => reply("404 Not Found", ""),
    }
}

/// A new session, and when it ends.
fn begin(state: &Mutex<State>) -> (String, String) {
    let mut state = state.lock();
    let end = Utc::now() + state.behaviour.life;
    state.sessions.push(end);
    (format!("session/{}", state.sessions.len() - 1), end.to_rfc3339_opts(SecondsFormat::Secs, true))
}

fn document(state: &Mutex<State>, more: &str) -> String {
    let (token, end) = begin(state);
    format!(
        r#"{{ {more}"AccessKeyId": "{ACCESS_KEY}", "SecretAccessKey": "{SECRET_KEY}", "Token": "{token}", "Expiration": "{end}" }}"#
    )
}

fn assume_role(state: &Mutex<State>, body: &[u8]) -> ProxyAction {
    let form: HashMap<String, String> = url::form_urlencoded::parse(body).into_owned().collect();
    let is = |name: &str, value: &str| form.get(name).is_some_and(|found| found == value);
    if !is("Action", "AssumeRoleWithWebIdentity") || !is("Version", "2011-06-15") || !is("RoleArn", ROLE_ARN) {
        return refuse("AccessDenied", "Not authorized to perform sts:AssumeRoleWithWebIdentity");
    }
    if !is("WebIdentityToken", PROOF) {
        return refuse("InvalidIdentityToken", "No OpenIDConnect provider found in your account");
    }
    let ((token, end), secret) = (begin(state), SECRET_KEY.replace('&', "&amp;"));
    reply(
        "200 OK",
        &format!(
            r#"<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult><Audience>sts</Audience><Credentials><AccessKeyId>{ACCESS_KEY}</AccessKeyId><SecretAccessKey>{secret}</SecretAccessKey><SessionToken>{token}</SessionToken><Expiration>{end}</Expiration></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>"#
        ),
    )
}

fn refuse(code: &str, message: &str) -> ProxyAction {
    let xml = format!(
        "<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>{message}</Message></Error></ErrorResponse>"
    );
    reply("403 Forbidden", &xml)
}

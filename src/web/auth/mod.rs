//! Sessions and login throttling of the admin.
//!
//! Invariant: a session token is in the browser's cookie only; the key-value store has its SHA-256.

mod cookie;
mod origin;

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::counts::{Counts, LoginOutcome};
use super::endpoint::{Credential, Endpoint};
use super::failure::{acquire, from_kv};
use crate::config::SessionConfig;
use crate::domain::digest::sha256_hex;
use crate::domain::login::LoginScopes;
use crate::http::{ApiError, ErrorCode, Headers, Request, RequestHead, Response};
use crate::ports::sessions::{Admission, LoginThrottle, Session, Sessions};
use crate::sync::{Permit, Semaphore};

pub use origin::Origin;

/// Concurrent password checks: each takes memory and tens of milliseconds.
const CHECKS_MAX: usize = 2;
/// Concurrent logins, waiting ones included: anonymous clients must not occupy the handlers of others.
const LOGINS_MAX: usize = 8;
/// Longest wait of a login for its password check.
const CHECK_WAIT: Duration = Duration::from_secs(5);
/// Characters of a session's name.
const SESSION_NAME_CHARS: usize = 12;
/// Largest body of a login, in bytes.
const LOGIN_BYTES_MAX: u64 = 16 << 10;

/// Whether a password is the admin's.
pub type VerifyPassword = Box<dyn Fn(&str) -> bool + Send + Sync>;

/// Configuration of logins.
pub struct AuthOptions {
    pub verify: VerifyPassword,
    pub session: SessionConfig,
    /// The service's origin as browsers see it, if configured.
    pub public_url: Option<String>,
}

/// The service.
pub struct Auth {
    sessions: Arc<dyn Sessions>,
    throttle: Arc<dyn LoginThrottle>,
    counts: Arc<Counts>,
    verify: VerifyPassword,
    session: SessionConfig,
    origin: Origin,
    logins: Semaphore,
    checks: Semaphore,
}

impl Auth {
    pub fn new(
        options: AuthOptions,
        sessions: Arc<dyn Sessions>,
        throttle: Arc<dyn LoginThrottle>,
        counts: Arc<Counts>,
    ) -> Self {
        let AuthOptions { verify, session, public_url } = options;
        let origin = Origin::new(public_url);
        let (logins, checks) = (Semaphore::new(LOGINS_MAX), Semaphore::new(CHECKS_MAX));
        Self { sessions, throttle, counts, verify, session, origin, logins, checks }
    }

    /// Rejects requests that pages of other sites make.
    ///
    /// # Errors
    /// `forbidden_origin`.
    pub fn check_origin(&self, head: &RequestHead) -> Result<(), ApiError> {
        self.origin.check(head)
    }

    /// Requires a session and extends it.
    ///
    /// # Errors
    /// `unauthorized`, `kv_unavailable`.
    pub fn check_session(&self, head: &RequestHead) -> Result<(), ApiError> {
        let session = self.session(head.headers())?;
        let message = "not logged in, or the session has ended";
        session.map(drop).ok_or_else(|| ApiError::new(ErrorCode::Unauthorized, message))
    }

    /// The session of a request, extended; `None` if it has none.
    ///
    /// # Errors
    /// `kv_unavailable`.
    pub fn session(&self, headers: &Headers) -> Result<Option<Session>, ApiError> {
        let Some(token) = cookie::token(headers) else { return Ok(None) };
        self.sessions.touch(&sha256_hex(token.as_bytes()), self.session.idle).map_err(from_kv)
    }

    /// Names the session of a request without its token; `None` if it has none. Not checked.
    pub fn session_name(headers: &Headers) -> Option<String> {
        cookie::token(headers).map(|token| sha256_hex(token.as_bytes())[..SESSION_NAME_CHARS].to_owned())
    }

    /// How long sessions live.
    pub fn bounds(&self) -> SessionConfig {
        self.session
    }

    /// Waits for the permits of a login: its own, and one to check a password. A login that gets none isn't counted.
    ///
    /// # Errors
    /// `overloaded`.
    fn check_permit(&self) -> Result<(Permit, Permit), ApiError> {
        let login = acquire(&self.logins)?;
        let check = self.checks.acquire(CHECK_WAIT);
        let check = check.ok_or_else(|| ApiError::of(ErrorCode::Overloaded).with_retry_after(CHECK_WAIT))?;
        Ok((check, login))
    }

    /// Whether browsers reach the service over TLS, by configuration or by a trusted proxy's word; then cookies require it.
    fn is_secure(&self, request: &Request) -> bool {
        let by_proxy = request.client() != request.peer().ip().to_canonical();
        let proto = request.header("x-forwarded-proto").map(str::trim);
        self.origin.is_https() || by_proxy && proto.is_some_and(|proto| proto.eq_ignore_ascii_case("https"))
    }
}

/// Whether there is a session.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
struct Authenticated {
    authenticated: bool,
}

pub(super) fn endpoints() -> Vec<Endpoint<Auth>> {
    vec![
        Endpoint::post("/api/auth/login", "auth.login", "Opens a session and sets its cookie", login)
            .with_credential(Credential::Nothing)
            .takes::<LoginRequest>(LOGIN_BYTES_MAX)
            .response::<Authenticated>(200, "the session is open")
            .header("Set-Cookie")
            .errors(&[ErrorCode::Unauthorized, ErrorCode::TooManyRequests]),
        Endpoint::post("/api/auth/logout", "auth.logout", "Ends the session and clears its cookie", logout)
            .reserved()
            .response::<Authenticated>(200, "the session has ended")
            .header("Set-Cookie"),
        Endpoint::get("/api/auth/me", "auth.me", "Shows whether there is a session", me)
            .reserved()
            .response::<Authenticated>(200, "there is a session"),
        // For pages, whose console would show a 401 as an error.
        Endpoint::get(
            "/session",
            "session.look",
            "Shows whether there is a session, without requiring one",
            get_session,
        )
        .with_credential(Credential::Nothing)
        .reserved()
        .response::<Authenticated>(200, "whether there is one"),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Login")]
struct LoginRequest {
    /// The admin's password.
    password: String,
}

/// `POST /api/auth/login`. The attempt counts as failed before the password is checked, so that concurrent attempts can't
/// outrun the throttle.
fn login(auth: &Auth, request: &mut Request) -> Result<Response, ApiError> {
    let LoginRequest { password } = request.json()?;
    let client = LoginScopes::of(request.client());
    let address = &client.address.name;
    let _permit = auth.check_permit()?;
    match auth.throttle.admit(&client).map_err(from_kv)? {
        Admission::Allowed => {}
        Admission::Wait(wait) => {
            auth.counts.login(LoginOutcome::Throttled);
            let message = "too many failed logins; try again later";
            return Err(ApiError::new(ErrorCode::TooManyRequests, message).with_retry_after(wait));
        }
    }
    if !(auth.verify)(&password) {
        auth.counts.login(LoginOutcome::Failed);
        tracing::warn!(client = address, "login failed");
        return Err(ApiError::new(ErrorCode::Unauthorized, "the password is wrong"));
    }
    auth.throttle.record_success(&client).map_err(from_kv)?;
    let token = cookie::new_token().map_err(ApiError::internal)?;
    let session = &auth.session;
    auth.sessions.open(&sha256_hex(token.as_bytes()), session.idle, session.max).map_err(from_kv)?;
    auth.counts.login(LoginOutcome::Ok);
    let cookie = cookie::set(&token, session.max, auth.is_secure(request));
    tracing::info!(client = address, "logged in");
    Ok(Response::json(200, &Authenticated { authenticated: true }).with_header("Set-Cookie", cookie))
}

fn logout(auth: &Auth, request: &mut Request) -> Result<Response, ApiError> {
    if let Some(token) = cookie::token(request.headers()) {
        auth.sessions.close(&sha256_hex(token.as_bytes())).map_err(from_kv)?;
    }
    let cleared = cookie::cleared(auth.is_secure(request));
    Ok(Response::json(200, &Authenticated { authenticated: false }).with_header("Set-Cookie", cleared))
}

#[expect(clippy::unnecessary_wraps, reason = "the signature of a handler")]
fn me(_: &Auth, _: &mut Request) -> Result<Response, ApiError> {
    Ok(Response::json(200, &Authenticated { authenticated: true }))
}

fn get_session(auth: &Auth, request: &mut Request) -> Result<Response, ApiError> {
    let authenticated = auth.session(request.headers())?.is_some();
    Ok(Response::json(200, &Authenticated { authenticated }))
}

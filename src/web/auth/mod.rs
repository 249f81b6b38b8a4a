//! Sessions of the one admin.
//!
//! Invariant: the token of a session exists in the browser's cookie alone; the key-value store has its SHA-256.

mod cookie;
mod login;
mod origin;

use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded};
use schemars::JsonSchema;
use serde::Serialize;

use super::Web;
use super::endpoint::Endpoint;
use super::failure::{acquire, from_kv};
use super::service::Credential;
use crate::config::SessionConfig;
use crate::domain::digest::sha256_hex;
use crate::http::{ApiError, ErrorCode, Head, Headers, Request, Response};
use crate::ports::Kv;
use crate::ports::sessions::Session;
use crate::sync::{Permit, Semaphore};

pub use origin::Origin;

/// Passwords that are checked at a time: each takes memory and tens of milliseconds.
const CHECKS_MAX: usize = 2;
/// Logins that may wait for their turn, those being checked included: strangers must not take the handlers of others.
const LOGINS_MAX: usize = 8;
/// How long a login waits for its turn to have the password checked.
const CHECK_WAIT: Duration = Duration::from_secs(5);
/// Largest body of a login, in bytes.
const LOGIN_BYTES_MAX: u64 = 16 << 10;

/// Says whether a password is the admin's.
pub type VerifyPassword = Box<dyn Fn(&str) -> bool + Send + Sync>;

/// How people log in.
pub struct AuthOptions {
    pub verify: VerifyPassword,
    pub session: SessionConfig,
    /// The origin under which browsers see the service, if it was told.
    pub public_url: Option<String>,
}

/// See the module.
pub struct Auth {
    verify: VerifyPassword,
    session: SessionConfig,
    origin: Origin,
    logins: Semaphore,
    /// A token for each password that may be checked now.
    checks: (Sender<()>, Receiver<()>),
}

impl Auth {
    pub(super) fn new(options: AuthOptions) -> Self {
        let checks = bounded(CHECKS_MAX);
        let origin = Origin::new(options.public_url);
        Self { verify: options.verify, session: options.session, origin, logins: Semaphore::new(LOGINS_MAX), checks }
    }

    /// Lets pages of other sites change nothing.
    ///
    /// # Errors
    /// `forbidden_origin`.
    pub fn check_origin(&self, head: &Head) -> Result<(), ApiError> {
        self.origin.check(head)
    }

    /// Lets in whoever has a session, and prolongs it.
    ///
    /// # Errors
    /// `unauthorized`, `kv_unavailable`.
    pub fn check_session(&self, kv: &dyn Kv, head: &Head) -> Result<(), ApiError> {
        let session = self.session(kv, head.headers())?;
        let message = "log in first: there is no session, or it has ended";
        session.map(drop).ok_or_else(|| ApiError::new(ErrorCode::Unauthorized, message))
    }

    /// The session of a request, prolonged; `None` if it has none.
    ///
    /// # Errors
    /// `kv_unavailable`.
    pub fn session(&self, kv: &dyn Kv, headers: &Headers) -> Result<Option<Session>, ApiError> {
        let Some(token) = cookie::token(headers) else { return Ok(None) };
        kv.touch(&sha256_hex(token.as_bytes()), self.session.idle).map_err(from_kv)
    }

    /// How long sessions live.
    pub fn bounds(&self) -> SessionConfig {
        self.session
    }

    /// Waits for a place among the passwords that are checked. An attempt that gets none counts as none.
    ///
    /// # Errors
    /// `overloaded`.
    fn turn(&self) -> Result<Turn<'_>, ApiError> {
        let permit = acquire(&self.logins)?;
        let (enter, leave) = &self.checks;
        match enter.send_timeout((), CHECK_WAIT) {
            Ok(()) => Ok(Turn { leave, _permit: permit }),
            Err(_) => Err(ApiError::of(ErrorCode::Overloaded).with_retry_after(CHECK_WAIT)),
        }
    }

    /// Cookies are only sent over TLS where browsers see the service that way: as it was told, or as a trusted proxy says.
    fn is_secure(&self, request: &Request) -> bool {
        let by_proxy = request.client() != request.peer().ip().to_canonical();
        let proto = request.header("x-forwarded-proto").map(str::trim);
        self.origin.is_https() || by_proxy && proto.is_some_and(|proto| proto.eq_ignore_ascii_case("https"))
    }
}

/// The right to have a password checked; given back when dropped.
struct Turn<'a> {
    leave: &'a Receiver<()>,
    _permit: Permit,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let _ = self.leave.try_recv();
    }
}

/// Whether there is a session.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct Authenticated {
    pub authenticated: bool,
}

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::post("/api/auth/login", "auth.login", "Opens a session and sets its cookie", login::login)
            .with_credential(Credential::Nothing)
            .takes::<login::Login>(LOGIN_BYTES_MAX)
            .answers::<Authenticated>(200, "the session is open")
            .header("Set-Cookie")
            .errors(&[ErrorCode::Unauthorized, ErrorCode::TooManyRequests]),
        Endpoint::post("/api/auth/logout", "auth.logout", "Ends the session and clears its cookie", logout)
            .light()
            .answers::<Authenticated>(200, "the session has ended")
            .header("Set-Cookie"),
        Endpoint::get("/api/auth/me", "auth.me", "Tells whether there is a session", me)
            .light()
            .answers::<Authenticated>(200, "there is a session"),
        // For pages, in which a refusal would stand as an error.
        Endpoint::get("/session", "session.look", "Tells everybody whether they have a session", look)
            .with_credential(Credential::Nothing)
            .light()
            .answers::<Authenticated>(200, "whether there is one"),
    ]
}

fn logout(web: &Web, request: &mut Request) -> Result<Response, ApiError> {
    if let Some(token) = cookie::token(request.headers()) {
        web.kv.close(&sha256_hex(token.as_bytes())).map_err(from_kv)?;
    }
    let cleared = cookie::cleared(web.auth.is_secure(request));
    Ok(Response::json(200, &Authenticated { authenticated: false }).with_header("Set-Cookie", cleared))
}

#[expect(clippy::unnecessary_wraps, reason = "the form of a handler")]
fn me(_: &Web, _: &mut Request) -> Result<Response, ApiError> {
    Ok(Response::json(200, &Authenticated { authenticated: true }))
}

fn look(web: &Web, request: &mut Request) -> Result<Response, ApiError> {
    let authenticated = web.auth.session(&*web.kv, request.headers())?.is_some();
    Ok(Response::json(200, &Authenticated { authenticated }))
}

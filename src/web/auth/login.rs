//! From a password to a session.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Authenticated, CHECK_WAIT, cookie};
use crate::domain::digest::sha256_hex;
use crate::http::{ApiError, ErrorCode, Request, Response};
use crate::ports::sessions::Admission;
use crate::web::Web;
use crate::web::failure::from_kv;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Login {
    /// The admin's password.
    password: String,
}

/// Counts as failed from before the password is checked, so that many at once can't outrun the throttle.
pub fn login(web: &Web, request: &mut Request) -> Result<Response, ApiError> {
    let Login { password } = request.json()?;
    let address = request.client().to_string();
    match web.kv.admit(&address).map_err(from_kv)? {
        Admission::Try => {}
        Admission::Wait(wait) => {
            let message = "too many failed logins from this address; try again later";
            return Err(ApiError::new(ErrorCode::TooManyRequests, message).with_retry_after(wait));
        }
    }
    if !verify(web, &password)? {
        tracing::warn!(client = address, "a login failed");
        return Err(ApiError::new(ErrorCode::Unauthorized, "the password is wrong"));
    }
    web.kv.succeeded(&address).map_err(from_kv)?;
    let token = cookie::new_token().map_err(ApiError::internal)?;
    let session = &web.auth.session;
    web.kv.open(&sha256_hex(token.as_bytes()), session.idle, session.max).map_err(from_kv)?;
    let cookie = cookie::set(&token, session.max, web.auth.is_secure());
    tracing::info!(client = address, "logged in");
    Ok(Response::json(200, &Authenticated { authenticated: true }).with_header("Set-Cookie", cookie))
}

/// Checks at most so many at a time; the others wait for their turn.
fn verify(web: &Web, password: &str) -> Result<bool, ApiError> {
    let (enter, leave) = &web.auth.checks;
    if enter.send_timeout((), CHECK_WAIT).is_err() {
        return Err(ApiError::of(ErrorCode::Overloaded).with_retry_after(CHECK_WAIT));
    }
    let verified = (web.auth.verify)(password);
    let _ = leave.try_recv();
    Ok(verified)
}

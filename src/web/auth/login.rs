//! From a password to a session.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Authenticated, cookie};
use crate::domain::digest::sha256_hex;
use crate::domain::login::LoginScopes;
use crate::http::{ApiError, ErrorCode, Request, Response};
use crate::ports::sessions::Admission;
use crate::web::Web;
use crate::web::counts::Login as Outcome;
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
    let client = LoginScopes::of(request.client());
    let address = &client.address.name;
    let _turn = web.auth.turn()?;
    match web.kv.admit(&client).map_err(from_kv)? {
        Admission::Try => {}
        Admission::Wait(wait) => {
            web.counts.login(Outcome::Throttled);
            let message = "too many failed logins; try again later";
            return Err(ApiError::new(ErrorCode::TooManyRequests, message).with_retry_after(wait));
        }
    }
    if !(web.auth.verify)(&password) {
        web.counts.login(Outcome::Failed);
        tracing::warn!(client = address, "a login failed");
        return Err(ApiError::new(ErrorCode::Unauthorized, "the password is wrong"));
    }
    web.kv.record_success(&client).map_err(from_kv)?;
    let token = cookie::new_token().map_err(ApiError::internal)?;
    let session = &web.auth.session;
    web.kv.open(&sha256_hex(token.as_bytes()), session.idle, session.max).map_err(from_kv)?;
    web.counts.login(Outcome::Ok);
    let cookie = cookie::set(&token, session.max, web.auth.is_secure(request));
    tracing::info!(client = address, "logged in");
    Ok(Response::json(200, &Authenticated { authenticated: true }).with_header("Set-Cookie", cookie))
}

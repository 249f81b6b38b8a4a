//! From a password to a session.

use schemars::JsonSchema;
use serde::Deserialize;

use std::net::IpAddr;

use super::{Authenticated, cookie};
use crate::domain::digest::sha256_hex;
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
    let address = throttled(request.client());
    let _turn = web.auth.turn()?;
    match web.kv.admit(&address).map_err(from_kv)? {
        Admission::Try => {}
        Admission::Wait(wait) => {
            web.counts.login(Outcome::Throttled);
            let message = "too many failed logins from this address; try again later";
            return Err(ApiError::new(ErrorCode::TooManyRequests, message).with_retry_after(wait));
        }
    }
    if !(web.auth.verify)(&password) {
        web.counts.login(Outcome::Failed);
        tracing::warn!(client = address, "a login failed");
        return Err(ApiError::new(ErrorCode::Unauthorized, "the password is wrong"));
    }
    web.kv.succeeded(&address).map_err(from_kv)?;
    let token = cookie::new_token().map_err(ApiError::internal)?;
    let session = &web.auth.session;
    web.kv.open(&sha256_hex(token.as_bytes()), session.idle, session.max).map_err(from_kv)?;
    web.counts.login(Outcome::Ok);
    let cookie = cookie::set(&token, session.max, web.auth.is_secure(request));
    tracing::info!(client = address, "logged in");
    Ok(Response::json(200, &Authenticated { authenticated: true }).with_header("Set-Cookie", cookie))
}

/// What the throttle counts by: an address, or of IPv6 the network of a subscriber, who has all of its addresses.
fn throttled(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            format!("{}/64", std::net::Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_subscriber_are_counted_together() {
        let by = |text: &str| throttled(text.parse().unwrap());
        assert_eq!(by("203.0.113.7"), "203.0.113.7");
        assert_eq!(by("2001:db8:1:2:3::4"), "2001:db8:1:2::/64");
        assert_eq!(by("2001:db8:1:2:ffff::"), by("2001:db8:1:2::1"));
        assert_ne!(by("2001:db8:1:3::1"), by("2001:db8:1:2::1"));
    }
}

//! The session's cookie.

use std::time::Duration;

use crate::domain::digest::hex;
use crate::http::Headers;

/// The contract's name.
const NAME: &str = "svc_session";
/// Bytes of randomness in a token.
const TOKEN_BYTES: usize = 32;
/// Characters of a token: hex.
const TOKEN_CHARS: usize = 2 * TOKEN_BYTES;

/// A new token: 256 random bits in hex.
///
/// # Errors
/// The system has no random numbers.
pub fn new_token() -> Result<String, getrandom::Error> {
    let mut bytes = [0; TOKEN_BYTES];
    getrandom::fill(&mut bytes)?;
    Ok(hex(&bytes))
}

/// The token of a request; `None` if it is malformed or there are two.
pub fn token(headers: &Headers) -> Option<&str> {
    let lists = headers.all("cookie").filter_map(|value| std::str::from_utf8(value).ok());
    let pairs = lists.flat_map(|list| list.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let mut tokens = pairs.filter(|(name, _)| *name == NAME).map(|(_, token)| token);
    let token = tokens.next()?;
    let ours = token.len() == TOKEN_CHARS && token.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    (ours && tokens.all(|other| other == token)).then_some(token)
}

/// `Set-Cookie` of a new session that ends after `max`.
pub fn set(token: &str, max: Duration, secure: bool) -> String {
    format!("{NAME}={token}; Path=/; Max-Age={}; HttpOnly; SameSite=Strict{}", max.as_secs(), flag(secure))
}

/// `Set-Cookie` that deletes the cookie.
pub fn cleared(secure: bool) -> String {
    format!("{NAME}=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict{}", flag(secure))
}

fn flag(secure: bool) -> &'static str {
    if secure { "; Secure" } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_token_is_found_among_other_cookies() {
        let good = "0f".repeat(32);
        let check = |cookies: &[&str], expected: Option<&str>| {
            let mut headers = Headers::default();
            cookies.iter().for_each(|value| headers.push("Cookie", value.as_bytes()));
            assert_eq!(token(&headers), expected, "{cookies:?}");
        };
        check(&[&format!("svc_session={good}")], Some(&good));
        check(&[&format!("a=b; svc_session={good};c=d")], Some(&good));
        check(&["a=b", &format!("svc_session={good}")], Some(&good));
        check(&[], None);
        check(&[&format!("xsvc_session={good}")], None);
        check(&[&format!("svc_session={}", good.to_uppercase())], None);
        check(&[&format!("svc_session={}", &good[1..])], None);
        check(&[&format!("svc_session={good}; svc_session={}", "1f".repeat(32))], None);
    }

    #[test]
    fn tokens_are_random_and_256_bits_long() {
        let (a, b) = (new_token().unwrap(), new_token().unwrap());
        assert_eq!((a.len(), a == b), (64, false));
    }

    #[test]
    fn cookie_attributes_protect_the_session() {
        let cookie = set("t", Duration::from_secs(60), true);
        assert_eq!(cookie, "svc_session=t; Path=/; Max-Age=60; HttpOnly; SameSite=Strict; Secure");
        assert!(!set("t", Duration::from_secs(60), false).contains("Secure"));
    }
}

//! The address of a Redis that Sentinels watch.

use url::Url;

use super::secret::Secret;

/// The form of the URL, for messages.
pub const SENTINEL_URL_FORM: &str = "`redis+sentinel://[user][:password@]sentinel[:port],…/service[/db]`";
const SENTINEL_PORT: u16 = 26_379;
/// The query parameter with the password of the Sentinels.
const SENTINEL_PASSWORD: &str = "sentinel_password";

/// A parsed `redis+sentinel://…`, or `rediss+sentinel://…` for TLS to Sentinels and servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentinelUrl {
    pub tls: bool,
    /// URLs of the Sentinels.
    pub sentinels: Vec<Secret>,
    pub service: String,
    /// The URL of the service's server, with `host` as its host.
    server: Secret,
}

impl SentinelUrl {
    /// Whether a URL names Sentinels.
    pub fn is_one(text: &str) -> bool {
        text.starts_with("redis+sentinel://") || text.starts_with("rediss+sentinel://")
    }

    /// `None` if it is malformed.
    pub fn parse(text: &str) -> Option<Self> {
        let (scheme, rest) = text.split_once("+sentinel://")?;
        if !matches!(scheme, "redis" | "rediss") {
            return None;
        }
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/')?;
        let (user_info, hosts) = match authority.rsplit_once('@') {
            Some((user_info, hosts)) => (format!("{user_info}@"), hosts),
            None => (String::new(), authority),
        };
        let (service, database) = path.split_once('/').unwrap_or((path, "0"));
        let database: u32 = database.parse().ok()?;
        let names = service.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
        if service.is_empty() || !names {
            return None;
        }
        let password = match query.split_once('=') {
            None if query.is_empty() => String::new(),
            Some((SENTINEL_PASSWORD, password)) if !password.contains(['&', '@', '/']) => format!(":{password}@"),
            _ => return None,
        };
        let sentinel = |host: &str| {
            let mut url = Url::parse(&format!("{scheme}://{password}{host}/")).ok()?;
            url.host_str().filter(|host| !host.is_empty())?;
            let port = url.port().unwrap_or(SENTINEL_PORT);
            url.set_port(Some(port)).ok()?;
            Some(Secret::new(url.as_str()))
        };
        let sentinels = hosts.split(',').map(sentinel).collect::<Option<Vec<Secret>>>()?;
        let server = format!("{scheme}://{user_info}host/{database}");
        Url::parse(&server).ok()?;
        Some(Self { tls: scheme == "rediss", sentinels, service: service.to_owned(), server: Secret::new(&server) })
    }

    /// The URL of the server at an address; `None` if that is malformed.
    pub fn server_at(&self, host: &str, port: u16) -> Option<Secret> {
        let mut url = Url::parse(self.server.reveal()).ok()?;
        let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        url.set_host(Some(&host)).ok()?;
        url.set_port(Some(port)).ok()?;
        Some(Secret::new(url.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentinels_service_and_server_are_read() {
        let url =
            SentinelUrl::parse("redis+sentinel://app:s%40f@one,two:5,[::1]:6/main/3?sentinel_password=x").unwrap();
        let shown: Vec<&str> = url.sentinels.iter().map(Secret::reveal).collect();
        assert_eq!(shown, ["redis://:x@one:26379/", "redis://:x@two:5/", "redis://:x@[::1]:6/"]);
        assert_eq!((url.service.as_str(), url.tls), ("main", false));
        assert_eq!(url.server_at("10.0.0.7", 6380).unwrap().reveal(), "redis://app:s%40f@10.0.0.7:6380/3");
        assert_eq!(url.server_at("fd00::1", 6379).unwrap().reveal(), "redis://app:s%40f@[fd00::1]:6379/3");
        let tls = SentinelUrl::parse("rediss+sentinel://one/my-service").unwrap();
        assert!(tls.tls && tls.sentinels[0].reveal() == "rediss://one:26379/");
        assert_eq!(tls.server_at("redis.internal", 6379).unwrap().reveal(), "rediss://redis.internal:6379/0");
    }

    #[test]
    fn malformed_urls_are_rejected() {
        for bad in [
            "redis://one/main",
            "http+sentinel://one/main",
            "redis+sentinel://one",
            "redis+sentinel://one/",
            "redis+sentinel:///main",
            "redis+sentinel://one,/main",
            "redis+sentinel://one:99999/main",
            "redis+sentinel://one/main/x",
            "redis+sentinel://one/ma in",
            "redis+sentinel://one/main?password=x",
        ] {
            assert_eq!(SentinelUrl::parse(bad), None, "{bad}");
        }
    }
}

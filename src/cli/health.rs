//! `lakemill health`: checks that a service responds, for the health check of a container.

use std::io::Write;
use std::net::SocketAddr;
use std::time::Duration;

use super::args::HealthArgs;
use super::command_error::CommandError;
use super::plain::plain;
use super::probe::{ProbeResult, WEB_PORT, WORKER_PORT, ask, own_address};
use crate::config::{Environment, ListenConfig};

/// Default ports of worker and web service.
const PORTS: [u16; 2] = [WORKER_PORT, WEB_PORT];
/// Depends on the process alone: restarting it for an unavailable store would be pointless.
const PATH: &str = "/livez";

/// False if it doesn't respond with 200; the reason is written to stderr.
///
/// # Errors
/// The environment or `--url` is invalid.
pub fn run(args: &HealthArgs) -> Result<bool, CommandError> {
    let urls = match &args.url {
        Some(url) => vec![with_path(url)?],
        None => {
            let listen = ListenConfig::from_env(&Environment::from_process())?.config;
            let ports = listen.port.map_or(PORTS.to_vec(), |port| vec![port]);
            ports.into_iter().map(|port| at(own_address(listen.bind, port))).collect()
        }
    };
    let mut found = String::new();
    for url in &urls {
        found = match ask(url, "GET", &[], Duration::from_secs(args.timeout)) {
            ProbeResult::Http(200, _) => {
                // Nothing can be done if stderr is closed.
                let _ = writeln!(std::io::stdout(), "{url} responds");
                return Ok(true);
            }
            ProbeResult::Http(status, body) => {
                let body: String = plain(body.trim()).chars().take(500).collect();
                format!("{url} answered with status {status}, expected 200: {body}")
            }
            ProbeResult::Silent(why) => format!("{url} did not respond: {why}"),
            ProbeResult::NotListening => {
                found = format!("nothing listens at {}", urls.join(" or "));
                continue;
            }
        };
        break;
    }
    let _ = writeln!(std::io::stderr(), "{found}");
    Ok(false)
}

fn at(address: SocketAddr) -> String {
    format!("http://{address}{PATH}")
}

/// A URL without a path gets [`PATH`].
fn with_path(url: &str) -> Result<String, String> {
    let wrong = || format!("--url: expected `http://HOST:PORT` or `https://…`, found `{url}`");
    let mut parsed = url::Url::parse(url).map_err(|_| wrong())?;
    if !["http", "https"].contains(&parsed.scheme()) || parsed.host_str().is_none() {
        return Err(wrong());
    }
    if matches!(parsed.path(), "" | "/") {
        parsed.set_path(PATH);
    }
    Ok(parsed.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_without_path_gets_livez() {
        for (url, asked) in [
            ("http://127.0.0.1:3000", Some("http://127.0.0.1:3000/livez")),
            ("http://[::1]:3000/", Some("http://[::1]:3000/livez")),
            ("https://lake.example.org/readyz", Some("https://lake.example.org/readyz")),
            ("ftp://x", None),
            ("127.0.0.1:3000", None),
        ] {
            assert_eq!(with_path(url).ok().as_deref(), asked, "{url}");
        }
    }
}

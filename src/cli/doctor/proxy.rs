//! The proxies of the environment: whether they can be reached, and which services are reached by them.

use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use ureq::Proxy;

use super::check::CheckResult;
use super::context::DoctorContext;
use crate::config::{CatalogAccess, NetworkConfig, StoreCredentials, StoreEndpoint, shown_proxy};

const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);

pub(super) fn routes(context: &DoctorContext) -> Vec<CheckResult> {
    let Ok(objects) = &context.objects else {
        return vec![CheckResult::skipped("the environment doesn't set the object store")];
    };
    let network = &objects.config.network;
    let set = [("HTTPS_PROXY", &network.https_proxy), ("HTTP_PROXY", &network.http_proxy)];
    let set: Vec<(&str, &Proxy)> = set.into_iter().filter_map(|(name, proxy)| Some((name, proxy.as_ref()?))).collect();
    if set.is_empty() {
        return vec![CheckResult::skipped("HTTPS_PROXY and HTTP_PROXY are not set")];
    }
    let mut findings: Vec<CheckResult> = set.into_iter().map(|(name, proxy)| reached(name, proxy)).collect();
    findings.extend(services(context).into_iter().map(|(what, url)| route(network, what, &url)));
    findings
}

fn reached(name: &str, proxy: &Proxy) -> CheckResult {
    let shown = shown_proxy(proxy);
    let connect = || {
        let mut addresses = (proxy.host().trim_matches(['[', ']']), proxy.port()).to_socket_addrs()?;
        let address = addresses.next().ok_or(std::io::ErrorKind::NotFound)?;
        TcpStream::connect_timeout(&address, CONNECT_TIME_MAX)
    };
    match connect() {
        Ok(_) => CheckResult::ok(format!("{name}: {shown} accepts connections")),
        Err(error) => CheckResult::problem(
            format!("{name}: {shown} can't be reached: {error}"),
            format!("correct {name}, or name in NO_PROXY what is reached without it"),
        ),
    }
}

/// The services outside that the environment names, and their URLs.
fn services(context: &DoctorContext) -> Vec<(&'static str, String)> {
    let mut services = Vec::new();
    if let Ok(objects) = &context.objects {
        if let StoreEndpoint::S3(url) = &objects.config.endpoint {
            services.push(("the object store", url.clone()));
        }
        if let StoreCredentials::Chain(variables) = &objects.config.credentials {
            services.extend(variables.web_identity.as_ref().map(|identity| ("STS", identity.sts_endpoint.clone())));
        }
    }
    if let Ok(worker) = &context.worker {
        services.extend(worker.config.events.queue.as_ref().map(|queue| ("the event queue", queue.url.clone())));
        if let Some(catalog) = &worker.config.catalog {
            services.push(("the Iceberg catalog", catalog.url.clone()));
            if let CatalogAccess::Client { url, .. } = &catalog.access {
                services.push(("OAuth2", url.clone()));
            }
        }
    }
    services
}

fn route(network: &NetworkConfig, what: &str, url: &str) -> CheckResult {
    let by = network.proxy_of(url).map_or("directly".to_owned(), |proxy| format!("by {}", shown_proxy(proxy)));
    CheckResult::ok(format!("{what} at {url} is reached {by}"))
}

//! Requests to services outside by a proxy.

use std::ffi::OsString;
use std::sync::Arc;

use lakemill::adapters::aws::Credentials;
use lakemill::adapters::iceberg::RestCatalog;
use lakemill::adapters::s3::{S3Options, S3Store};
use lakemill::config::{
    AwsVariables, CatalogAccess, CatalogConfig, Environment, NetworkConfig, ObjectStoreConfig, Secret,
    StoreCredentials, WebIdentity,
};
use lakemill::ports::store::{Bucket, WriteOptions};
use lakemill::ports::{IcebergCatalog, ObjectStore};
use lakemill::runtime::{Clock, SystemClock};

use crate::cli_doctor::doctor;
use crate::support::aws::{Aws, Behaviour, PROOF, ROLE_ARN};
use crate::support::iceberg_catalog::IcebergCatalogServer;
use crate::support::notification_sinks::WebhookSink;
use crate::support::program::{call, lakemill};
use crate::support::s3_server::{S3Server, s3s_fs};
use crate::support::site::{Kind, Site, await_some};
use crate::support::tunnel_proxy::{PASSWORD, TunnelProxy};

const LAKE: Bucket = Bucket::Lake;
const KEY: &str = "pipelines/s/k";
/// The services' names, which only the proxy can resolve.
const STORE: &str = "http://store.example:9000";

/// The network as read from these variables.
fn network(variables: &[(&str, &str)]) -> NetworkConfig {
    let store =
        [("OBJ_ENDPOINT_URL", STORE), ("OBJ_REGION", "r"), ("OBJ_ACCESS_KEY_ID", "a"), ("OBJ_SECRET_ACCESS_KEY", "s")];
    let get = |name: &str| {
        store.iter().chain(variables).find(|(own, _)| *own == name).map(|(_, value)| OsString::from(value))
    };
    let read = |_: &std::path::Path| Err(std::io::ErrorKind::NotFound.into());
    ObjectStoreConfig::access_from_env(&Environment { get: &get, read: &read }).unwrap().config.network
}

fn put(options: S3Options) -> Result<(), String> {
    let store = S3Store::open(options).map_err(|error| error.to_string())?;
    store.put(LAKE, KEY, b"x", &WriteOptions::default()).map_err(|error| error.to_string())?;
    assert_eq!(store.head(LAKE, KEY).unwrap().unwrap().size, 1);
    Ok(())
}

fn options(url: &str, network: NetworkConfig) -> S3Options {
    let mut options = s3s_fs().options_at(url);
    options.network = network;
    options
}

#[test]
fn store_is_reached_by_the_proxy_of_its_scheme() {
    let proxy = TunnelProxy::to(s3s_fs().address);
    let url = proxy.url();
    for variables in [
        [("HTTP_PROXY", url.as_str()), ("HTTPS_PROXY", "http://127.0.0.1:1")],
        [("http_proxy", &url), ("NO_PROXY", "")],
    ] {
        put(options(STORE, network(&variables))).unwrap();
    }
    // The second request of each store has the connection of the first.
    assert_eq!(proxy.targets(), ["store.example:9000"; 2]);
    let unresolved = put(options(STORE, network(&[("HTTP_PROXY", &url), ("NO_PROXY", "example")]))).unwrap_err();
    assert!(unresolved.contains("failed to lookup address") && !unresolved.contains("proxy"), "{unresolved}");
    put(options(&s3s_fs().url(), network(&[("HTTP_PROXY", &url)]))).unwrap();
    assert_eq!(proxy.targets().len(), 2, "this machine is reached directly");
}

#[test]
fn tls_is_with_the_store_behind_the_proxy() {
    let folder = tempfile::tempdir().unwrap();
    // By a name that moto takes for a store, not for a bucket.
    let server = S3Server::with_tls(folder.path());
    let proxy = TunnelProxy::to(server.address);
    let mut options = server.options_at("https://localstack.example");
    options.network = network(&[("HTTPS_PROXY", &proxy.url())]);
    let untrusted = put(options.clone()).unwrap_err();
    let by = format!("the store at https://localstack.example (by the proxy {}): ", proxy.url());
    assert!(untrusted.contains("certificate") && untrusted.contains(&by), "{untrusted}");
    options.network.ca_file = Some(folder.path().join("ca.pem"));
    put(options).unwrap();
    assert!(proxy.targets().iter().all(|target| target == "localstack.example:443"), "{:?}", proxy.targets());
}

#[test]
fn proxy_gets_its_password_and_its_refusal_is_the_error() {
    let proxy = TunnelProxy::to(s3s_fs().address);
    proxy.require_password();
    let refused = put(options(STORE, network(&[("HTTP_PROXY", &proxy.url())]))).unwrap_err();
    assert!(refused.contains("(by the proxy http://127.0.0.1:") && refused.contains("407"), "{refused}");
    put(options(STORE, network(&[("HTTP_PROXY", &proxy.url_with_password())]))).unwrap();
    assert_eq!(proxy.targets(), ["store.example:9000"]);
}

#[test]
fn sts_is_asked_by_the_proxy_and_metadata_directly() {
    let aws = Aws::new(Behaviour::default());
    let proxy = TunnelProxy::to(aws.url().trim_start_matches("http://").parse().unwrap());
    let by_proxy = network(&[("HTTP_PROXY", &proxy.url())]);
    let keys = |variables: AwsVariables| {
        let credentials = Credentials::new(StoreCredentials::Chain(Box::new(variables)), &by_proxy).unwrap();
        credentials.keys(SystemClock.now()).map(drop).map_err(|error| error.to_string())
    };
    let folder = tempfile::tempdir().unwrap();
    let token_file = folder.path().join("token");
    std::fs::write(&token_file, PROOF).unwrap();
    let identity = WebIdentity {
        role_arn: ROLE_ARN.into(),
        token_file,
        session_name: "lakemill".into(),
        sts_endpoint: "http://sts.example".into(),
    };
    keys(AwsVariables { web_identity: Some(identity), ..AwsVariables::default() }).unwrap();
    assert_eq!(proxy.targets(), ["sts.example:80"]);
    // Named by a host, so that the address alone is no reason to go directly.
    let error =
        keys(AwsVariables { metadata_endpoint: Some("http://metadata.example".into()), ..AwsVariables::default() });
    assert!(error.as_ref().is_err_and(|error| !error.contains("proxy")), "{error:?}");
    keys(AwsVariables { metadata_endpoint: Some(aws.url()), ..AwsVariables::default() }).unwrap();
    assert_eq!(proxy.targets().len(), 1);
}

#[test]
fn catalog_is_reached_by_the_proxy() {
    let server = IcebergCatalogServer::start(&[]);
    let proxy = TunnelProxy::to(server.url().trim_start_matches("http://").parse().unwrap());
    let config = CatalogConfig {
        url: "http://catalog.example:8181".into(),
        warehouse: None,
        parents: Vec::new(),
        access: CatalogAccess::Token(Secret::new("t")),
    };
    let by_proxy = network(&[("HTTP_PROXY", &proxy.url())]);
    let catalog = RestCatalog::open(&config, None, Arc::new(SystemClock), &by_proxy).unwrap();
    catalog.probe().unwrap();
    assert!(proxy.targets().contains(&"catalog.example:8181".to_owned()));
}

#[test]
fn webhook_is_reached_by_the_proxy() {
    let sink = WebhookSink::start();
    let proxy = TunnelProxy::to(sink.address().parse().unwrap());
    let mut site = Site::new(Kind::Embedded);
    site.set("SVC_NOTIFY_URL", "http://hooks.example/hook").set("SVC_NOTIFY_SECRET", "key of the signatures in tests");
    site.set("HTTP_PROXY", &proxy.url());
    let _worker = site.worker();
    let mut test = lakemill();
    test.args(["notify", "--test"]).envs(site.env());
    // Refused, and nothing is sent, until the worker has named its targets.
    await_some("a test that is sent", || (call(&mut test).status == 0).then_some(()));
    assert_eq!(sink.received().len(), 1);
    assert_eq!(proxy.targets(), ["hooks.example:80"]);
}

#[test]
fn doctor_names_the_proxy_without_its_password() {
    let proxy = TunnelProxy::to(s3s_fs().address);
    let mut site = Site::new(Kind::Fleet);
    site.set("OBJ_ENDPOINT_URL", STORE);
    let (url, shown) = (proxy.url_with_password(), proxy.url());
    let found = doctor(&site, &[("HTTP_PROXY", &url)]);
    found.has("ok proxy: ", &["HTTP_PROXY", &shown, "accepts connections"]);
    found.has("ok proxy: ", &["the object store at http://store.example:9000 is reached by", &shown]);
    found.has("ok buckets: ", &[]);
    assert!(!found.ran.stdout.contains(PASSWORD) && !found.ran.stdout.contains("%25"), "{}", found.ran.stdout);
    proxy.require_password();
    doctor(&site, &[("HTTP_PROXY", &shown)]).has("problem buckets: ", &["407", "NO_PROXY"]);
    let found = doctor(&site, &[("HTTP_PROXY", "http://127.0.0.1:1")]);
    found.has("problem proxy: HTTP_PROXY: http://127.0.0.1:1 can't be reached", &["correct HTTP_PROXY"]);
    let found = doctor(&site, &[("HTTP_PROXY", "socks5://ann:hush@proxy.example")]);
    found.has("problem worker environment: HTTP_PROXY", &["expected `http://host:port`"]);
    assert!(!found.ran.stdout.contains("hush"), "{}", found.ran.stdout);
    doctor(&site, &[("OBJ_ENDPOINT_URL", &s3s_fs().url())]).has("skipped proxy: HTTPS_PROXY and HTTP_PROXY", &[]);
}

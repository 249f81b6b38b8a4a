//! The permissions that `docs/aws.md` names, enforced in front of an S3 server by what AWS documents for each request.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use lakemill::domain::job::JobStatus;
use lakemill::ports::store::Bucket;
use serde_json::{Value, json};

use crate::s3_signatures::refusal;
use crate::support::browser::Browser;
use crate::support::http_client::get;
use crate::support::http_proxy::{HttpProxy, ProxiedRequest, ProxyAction};
use crate::support::program::{call, lakemill};
use crate::support::s3_server::s3s_fs;
use crate::support::site::{Kind, Site, await_that};

/// A permission: an action and the resource that it needs, as in a policy.
type Permission = (String, String);

/// The policy of the docs for these buckets: in their order, pipelines, lake and warehouse.
fn documented(buckets: &[String; 3]) -> BTreeSet<Permission> {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/aws.md")).unwrap();
    let (_, section) = page.split_once("## Permissions").unwrap();
    let (_, block) = section.split_once("```json").unwrap();
    let mut text = block.split_once("```").unwrap().0.to_owned();
    for (name, bucket) in ["my-pipelines", "my-lake", "my-warehouse"].iter().zip(buckets) {
        text = text.replace(name, bucket);
    }
    let policy: Value = serde_json::from_str(&text).unwrap();
    let list = |value: &Value| value.as_array().unwrap().iter().map(|one| one.as_str().unwrap().to_owned()).collect();
    let mut permissions = BTreeSet::new();
    for statement in policy["Statement"].as_array().unwrap() {
        assert_eq!(statement["Effect"], "Allow");
        let (actions, resources): (Vec<String>, Vec<String>) =
            (list(&statement["Action"]), list(&statement["Resource"]));
        permissions.extend(actions.iter().flat_map(|action| resources.iter().map(|on| (action.clone(), on.clone()))));
    }
    permissions
}

/// The permissions that a request needs, by the page "Required permissions for Amazon S3 API operations".
fn needed(request: &ProxiedRequest) -> Vec<Permission> {
    let (path, query) = request.target.split_once('?').unwrap_or((&request.target, ""));
    let (bucket, key) = path.trim_start_matches('/').split_once('/').unwrap_or((path.trim_start_matches('/'), ""));
    let has = |name: &str| query.split('&').any(|part| part.split('=').next() == Some(name));
    let on_bucket = format!("arn:aws:s3:::{bucket}");
    let permission = |action: &str, resource: &str| (format!("s3:{action}"), resource.to_owned());
    if key.is_empty() {
        let action = match request.method.as_str() {
            "POST" if has("delete") => return vec![permission("DeleteObject", &format!("{on_bucket}/*"))],
            "GET" if has("notification") => "GetBucketNotification",
            "PUT" if has("notification") => "PutBucketNotification",
            "GET" if has("uploads") => "ListBucketMultipartUploads",
            "GET" if has("versions") => "ListBucketVersions",
            "GET" if has("list-type") => "ListBucket",
            "HEAD" => "ListBucket",
            _ => panic!("{} {}: which permission?", request.method, request.target),
        };
        return vec![permission(action, &on_bucket)];
    }
    let action = match request.method.as_str() {
        "GET" | "HEAD" => "GetObject",
        "DELETE" if has("uploadId") => "AbortMultipartUpload",
        "DELETE" => "DeleteObject",
        "PUT" | "POST" => "PutObject",
        method => panic!("{method} {}: which permission?", request.target),
    };
    let copied = request.header("x-amz-copy-source").map(|source| {
        let bucket = source.trim_start_matches('/').split(['/', '%']).next().unwrap();
        permission("GetObject", &format!("arn:aws:s3:::{bucket}/*"))
    });
    std::iter::once(permission(action, &format!("{on_bucket}/*"))).chain(copied).collect()
}

/// A site whose requests are checked against a policy.
struct GuardedSite {
    site: Site,
    _proxy: HttpProxy,
    used: Arc<Mutex<BTreeSet<Permission>>>,
    refused: Arc<Mutex<BTreeSet<Permission>>>,
}

impl GuardedSite {
    /// `change` removes permissions.
    fn new(change: impl Fn(&Permission) -> bool) -> (Self, BTreeSet<Permission>) {
        let mut site = Site::new(Kind::Fleet);
        let buckets = ["PIPELINES", "LAKE", "WAREHOUSE"].map(|name| site.env()[&format!("S3_BUCKET_{name}")].clone());
        let policy = documented(&buckets);
        let (used, refused) = (Arc::<Mutex<BTreeSet<Permission>>>::default(), Arc::<Mutex<BTreeSet<_>>>::default());
        let allowed: BTreeSet<Permission> = policy.iter().filter(|one| change(one)).cloned().collect();
        let (uses, refusals) = (Arc::clone(&used), Arc::clone(&refused));
        let proxy = s3s_fs().behind(move |request| {
            let needs = needed(request);
            let denied: Vec<Permission> = needs.iter().filter(|one| !allowed.contains(*one)).cloned().collect();
            uses.lock().unwrap().extend(needs);
            if denied.is_empty() {
                return ProxyAction::Forward;
            }
            refusals.lock().unwrap().extend(denied);
            refusal("AccessDenied")
        });
        site.set("OBJ_ENDPOINT_URL", &proxy.url());
        (Self { site, _proxy: proxy, used, refused }, policy)
    }

    fn refused(&self) -> BTreeSet<Permission> {
        self.refused.lock().unwrap().clone()
    }
}

#[test]
fn documented_permissions_are_enough_for_services_and_none_is_superfluous() {
    let (guarded, policy) = GuardedSite::new(|_| true);
    let site = &guarded.site;
    let (_worker, web) = site.worker_and_web();
    let browser = Browser::log_in(&web);
    browser.post("/api/pipelines", &json!({ "slug": "trips" })).ok();
    let columns = json!([{ "name": "a", "type": "string" }, { "name": "b", "type": "int64" }]);
    let mapping = json!({ "table": "t", "files": ["in/*.csv"], "columns": columns, "partition_by": ["a"] });
    let config = json!({ "version": 1, "auto_run": false, "mappings": [mapping] });
    browser.put("/api/p/trips/config", &config).ok();
    let upload = |key: &str, body: &[u8]| {
        let headers = [("Content-Type", "application/octet-stream")];
        browser.send("PUT", &format!("/api/lake?key=pipelines/trips/{key}"), &headers, body).ok();
    };
    upload("in/1.csv", b"a,b\nx,1\ny,2\n");
    // Of several parts.
    let large = (0..1_200_000).fold(String::from("a,b\n"), |text, n| text + "z," + &n.to_string() + "\n");
    upload("in/2.csv", large.as_bytes());
    let run = |slug: &str, clean: bool| {
        let job = site.await_end(&site.enqueue_as(slug, clean));
        assert_eq!(job.status, JobStatus::Completed, "{:?}", job.error);
    };
    run("trips", false);
    browser.delete("/api/lake?key=pipelines/trips/in/1.csv").ok();
    run("trips", false);
    run("trips", true);
    let rows = browser.post("/api/p/trips/query", &json!({ "sql": "SELECT count(*) FROM t" })).ok().json();
    assert_eq!(rows["rows"], json!([[1_200_000]]));
    browser.get("/api/lake?prefix=pipelines/trips/").ok();
    browser.patch("/api/pipelines/trips", &json!({ "newSlug": "tours" })).ok();
    run("tours", false);
    browser.delete("/api/pipelines/tours").ok();
    assert_eq!(guarded.refused(), BTreeSet::new());
    let used = guarded.used.lock().unwrap().clone();
    let actions = |of: &BTreeSet<Permission>| of.iter().map(|(action, _)| action.clone()).collect::<BTreeSet<_>>();
    assert_eq!(actions(&used), actions(&policy));
}

#[test]
fn backup_only_reads_from_the_store() {
    let (guarded, _) = GuardedSite::new(|(action, _)| ["s3:ListBucket", "s3:GetObject"].contains(&action.as_str()));
    let site = &guarded.site;
    site.pipeline("trips", &json!({ "partition_by": ["a"] }));
    site.put("trips", "in/1.csv", "a,b\nx,1\n");
    let place = site.home().join("backup");
    let mut backup = lakemill();
    backup.args(["backup", &place.display().to_string(), "--quiet"]).env_clear();
    backup.envs(std::env::vars_os().filter(|(name, _)| name == "PATH" || name == "LD_LIBRARY_PATH"));
    call(backup.envs(site.env())).ok();
    assert_eq!(guarded.refused(), BTreeSet::new());
    assert!(site.read(Bucket::Lake, "pipelines/trips/in/1.csv").is_some());
}

#[test]
fn worker_without_a_permission_waits_and_names_it() {
    let (guarded, _) = GuardedSite::new(|(action, on)| action != "s3:PutObject" || !on.contains("warehouse"));
    let site = &guarded.site;
    site.pipeline("trips", &json!({}));
    site.put("trips", "in/1.csv", "a,b\nx,1\n");
    let worker = site.worker();
    let job = site.enqueue("trips");
    await_that("the worker's readiness to name what it lacks", || {
        let text = get(&worker.address(), "/readyz").body;
        text.contains("warehouse bucket: access to") && text.contains("403")
    });
    assert!(guarded.refused().iter().all(|(action, on)| action == "s3:PutObject" && on.contains("warehouse")));
    assert_eq!(site.record(&job), None, "no attempt is used up");
}

//! `lakemill webhook` against a store whose notification rules live in the test: as MinIO has them, as radosgw has them
//! (topics alone), and as stores without notifications do.

use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use crate::support::http_proxy::{Act, HttpProxy, Passing};
use crate::support::program::{Ran, call, lakemill};
use crate::support::s3_server::{ACCESS_KEY, REGION, SECRET_KEY, s3s_fs};

const ARN: &str = "arn:minio:sqs::lakemill:webhook";
const FOREIGN: &str = "<QueueConfiguration><Id>audit</Id><Queue>arn:audit</Queue><Event>s3:ObjectRemoved:*</Event>\
                       </QueueConfiguration>";

/// What a store makes of rules.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    All,
    TopicsOnly,
    /// Accepts them and keeps none.
    Nothing,
    RefusesAll,
}

/// A store and the document of its lake's rules.
struct Store {
    proxy: HttpProxy,
    rules: Arc<Mutex<String>>,
}

impl Store {
    fn new(takes: Takes, rules: &str) -> Self {
        let document = match rules {
            "" => String::new(),
            _ => format!("<NotificationConfiguration>{rules}</NotificationConfiguration>"),
        };
        let rules = Arc::new(Mutex::new(document));
        let kept = Arc::clone(&rules);
        let proxy = s3s_fs().behind(move |passing| match passing.target.contains("notification") {
            true => answer(takes, passing, &kept),
            false => Act::Forward,
        });
        Self { proxy, rules }
    }

    fn rules(&self) -> String {
        self.rules.lock().unwrap().clone()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = lakemill();
        command.arg("webhook").args(args).stdin(Stdio::null()).env("OBJ_ENDPOINT_URL", self.proxy.url());
        command.env("OBJ_ACCESS_KEY_ID", ACCESS_KEY).env("OBJ_SECRET_ACCESS_KEY", SECRET_KEY).env("OBJ_REGION", REGION);
        for (name, bucket) in [("PIPELINES", "x-pipelines"), ("LAKE", "x-lake"), ("WAREHOUSE", "x-warehouse")] {
            command.env(format!("S3_BUCKET_{name}"), bucket);
        }
        command
    }

    fn call(&self, args: &[&str]) -> Ran {
        call(&mut self.command(args))
    }
}

fn answer(takes: Takes, passing: &Passing, rules: &Mutex<String>) -> Act {
    assert!(passing.target.starts_with("/x-lake"), "{}", passing.target);
    let mut kept = rules.lock().unwrap();
    let body = String::from_utf8(passing.body.clone()).unwrap();
    let http = |status: &str, body: &str| {
        let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
        Act::Answer(format!("{head}{body}").into_bytes())
    };
    let malformed = "<Error><Code>MalformedXML</Code><Message>expected another kind</Message></Error>";
    match (passing.method.as_str(), takes) {
        ("GET", _) => http("200 OK", &kept),
        (_, Takes::RefusesAll) => http("400 Bad Request", malformed),
        (_, Takes::TopicsOnly) if body.contains("<QueueConfiguration>") => http("400 Bad Request", malformed),
        (_, Takes::Nothing) => http("200 OK", ""),
        (_, Takes::All | Takes::TopicsOnly) => {
            *kept = body;
            http("200 OK", "")
        }
    }
}

#[test]
fn the_rule_is_installed_beside_others_and_can_be_installed_again() {
    let store = Store::new(Takes::All, FOREIGN);
    let ran = store.call(&["install", "--arn", ARN]).ok();
    let first = "objects created in `x-lake` under pipelines/ that end in .csv go to the queue arn:minio:sqs::lakemill:webhook\n";
    assert!(ran.stdout.starts_with(first), "{}", ran.stdout);
    for hint in ["/events/s3", "SVC_WEBHOOK_SECRET", "allow-list", "restart"] {
        assert!(ran.stdout.contains(hint), "{hint} in {}", ran.stdout);
    }
    let rules = store.rules();
    assert!(rules.contains(FOREIGN) && rules.contains("<Id>lakemill-csv</Id>"), "{rules}");
    store.call(&["install", "--arn", ARN]).ok();
    assert_eq!(store.rules(), rules);
    store.call(&["install", "--arn", ARN, "--compressed"]).ok();
    for suffix in [".csv<", ".csv.gz<", ".csv.zst<"] {
        assert_eq!(store.rules().matches(&format!("<Value>{suffix}")).count(), 1, "{}", store.rules());
    }
    let shown = store.call(&["show"]).ok().stdout;
    let whose: Vec<&str> = shown.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(whose, ["others", "ours", "ours", "ours"], "{shown}");
}

#[test]
fn a_store_that_wants_topics_gets_a_topic() {
    let store = Store::new(Takes::TopicsOnly, "");
    let ran = store.call(&["install", "--arn", "arn:ceph:x:default::lake"]).ok();
    assert!(ran.stdout.contains("to the topic arn:ceph:x:default::lake\n") && ran.stdout.contains("push endpoint"));
    assert!(store.rules().contains("<TopicConfiguration>") && store.rules().contains("<Topic>arn:ceph"));
}

#[test]
fn a_rule_that_is_refused_or_not_kept_is_told() {
    let refuses = Store::new(Takes::RefusesAll, "");
    refuses
        .call(&["install", "--arn", ARN])
        .told(1, &["neither as that of a queue nor of a topic", "expected another kind", "set SVC_RECONCILE_SECONDS"]);
    let forgets = Store::new(Takes::Nothing, "");
    forgets
        .call(&["install", "--arn", ARN])
        .told(1, &["the store accepted the rule but does not show it", "set SVC_RECONCILE_SECONDS"]);
    refuses.call(&["install", "--arn", "webhook"]).told(2, &["expected `arn:…`"]);
    refuses.call(&["install"]).told(2, &["--arn"]);
}

#[test]
fn removing_rules_of_others_wants_a_yes() {
    let store = Store::new(Takes::All, FOREIGN);
    store.call(&["install", "--arn", ARN]).ok();
    let before = store.rules();
    let refused =
        store.call(&["remove"]).told(1, &["`x-lake` has a rule of others, which would go too: --yes removes all"]);
    assert!(refused.stderr.contains("others  audit"), "{}", refused.stderr);
    assert_eq!(store.rules(), before);
    let ran = store.call(&["remove", "--yes"]).ok();
    assert!(ran.stdout.starts_with("`x-lake` has no rules any more"), "{}", ran.stdout);
    assert!(!store.rules().contains("QueueConfiguration"), "{}", store.rules());
    assert_eq!(store.call(&["remove"]).ok().stdout, "`x-lake` has no rules\n");
}

#[test]
fn our_own_rules_are_removed_without_a_question() {
    let store = Store::new(Takes::All, "");
    store.call(&["install", "--arn", ARN, "--compressed"]).ok();
    store.call(&["remove"]).ok();
    let shown = store.call(&["show"]).ok().stdout;
    assert!(shown.starts_with("`x-lake` has no rules: new files start no runs"), "{shown}");
}

#[test]
fn a_store_without_notifications_says_so() {
    let server = s3s_fs();
    let store = Store { proxy: server.behind(|_| Act::Forward), rules: Arc::default() };
    let ran = store.call(&["show"]);
    assert!(
        ran.status == 1 && ran.stderr.starts_with("lakemill: lake bucket: reading the notification rules: "),
        "{}",
        ran.stderr
    );
    store.call(&["install", "--arn", ARN]).told(1, &["if the store has no notifications, set SVC_RECONCILE_SECONDS"]);
}

#[test]
fn a_folder_needs_no_webhook() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::new(Takes::All, "");
    let url = format!("file://{}", home.path().display());
    for args in [&["install", "--arn", ARN][..], &["show"], &["remove"]] {
        let ran = call(store.command(args).env("OBJ_ENDPOINT_URL", &url)).ok();
        assert!(ran.stdout.ends_with("no webhook is needed\n"), "{}", ran.stdout);
    }
}

//! `lakemill webhook` against simulated stores: MinIO, radosgw (topics only; rules are added), and stores without
//! notifications; and against moto.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::support::http_proxy::{HttpProxy, ProxiedRequest, ProxyAction};
use crate::support::program::{CommandOutput, call, lakemill};
use crate::support::s3_server::{ACCESS_KEY, REGION, SECRET_KEY, moto, s3s_fs};

const ARN: &str = "arn:minio:sqs::lakemill:webhook";
const FOREIGN: &str = "<QueueConfiguration><Id>audit</Id><Queue>arn:audit</Queue><Event>s3:ObjectRemoved:*</Event>\
                       </QueueConfiguration>";

/// How a simulated store handles notification rules.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RuleSupport {
    All,
    TopicsOnly,
    /// Accepts rules and stores none.
    Nothing,
    RefusesAll,
    /// Like radosgw, from its documentation: topics only; rules are added, or replace those with the same id and topic;
    /// an empty configuration is malformed; `DELETE ?notification` deletes all rules, `=ID` those with that id.
    Radosgw,
    /// Replaces all rules unless the new list is empty; `DELETE ?notification` deletes the bucket.
    NeverEmpty,
    /// Rejects overlapping rules for the same event and files.
    NoOverlaps,
}

/// A store and its notification document for the lake bucket.
struct Store {
    proxy: HttpProxy,
    rules: Arc<Mutex<String>>,
    /// Objects in the lake.
    objects: Arc<AtomicUsize>,
    /// Deletions of the lake bucket that the store would have executed.
    deleted_buckets: Arc<AtomicUsize>,
}

impl Store {
    fn new(takes: RuleSupport, rules: &str) -> Self {
        let document = match rules {
            "" => String::new(),
            _ => format!("<NotificationConfiguration>{rules}</NotificationConfiguration>"),
        };
        let rules = Arc::new(Mutex::new(document));
        let (objects, deleted_buckets) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (kept, count, deleted) = (Arc::clone(&rules), Arc::clone(&objects), Arc::clone(&deleted_buckets));
        let proxy = s3s_fs().behind(move |passing| match (passing.target.contains("notification"), &*passing.method) {
            (true, _) => answer(takes, passing, &kept, &count, &deleted),
            (false, "PUT") => {
                count.fetch_add(1, Ordering::SeqCst);
                ProxyAction::Answer(
                    b"HTTP/1.1 200 OK\r\netag: \"1\"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_vec(),
                )
            }
            (false, "DELETE") => {
                count.fetch_sub(1, Ordering::SeqCst);
                http("204 No Content", "")
            }
            (false, _) => ProxyAction::Forward,
        });
        Self { proxy, rules, objects, deleted_buckets }
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

    fn call(&self, args: &[&str]) -> CommandOutput {
        call(&mut self.command(args))
    }
}

fn http(status: &str, body: &str) -> ProxyAction {
    let length = if status.starts_with("204") { String::new() } else { format!("content-length: {}\r\n", body.len()) };
    ProxyAction::Answer(format!("HTTP/1.1 {status}\r\n{length}connection: close\r\n\r\n{body}").into_bytes())
}

fn document(rules: impl Iterator<Item = String>) -> String {
    format!("<NotificationConfiguration>{}</NotificationConfiguration>", rules.collect::<String>())
}

/// The topic rules in a document.
fn rules_of(document: &str) -> impl Iterator<Item = String> {
    const END: &str = "</TopicConfiguration>";
    let rules =
        document.split_inclusive(END).filter_map(|piece| piece.find("<TopicConfiguration>").map(|at| &piece[at..]));
    rules.map(str::to_owned).collect::<Vec<_>>().into_iter()
}

/// The text of an element.
fn text(xml: &str, name: &str) -> String {
    let inner = xml.split(&format!("<{name}>")).nth(1).and_then(|rest| rest.split(&format!("</{name}>")).next());
    inner.unwrap_or_default().to_owned()
}

fn answer(
    takes: RuleSupport,
    passing: &ProxiedRequest,
    rules: &Mutex<String>,
    objects: &AtomicUsize,
    deleted_buckets: &AtomicUsize,
) -> ProxyAction {
    assert!(passing.target.starts_with("/x-lake"), "{}", passing.target);
    let mut kept = rules.lock().unwrap();
    let body = String::from_utf8(passing.body.clone()).unwrap();
    let malformed = "<Error><Code>MalformedXML</Code><Message>expected another kind</Message></Error>";
    let is_empty = |document: &str| !document.contains("Configuration><");
    match (passing.method.as_str(), takes) {
        ("GET", _) => http("200 OK", &kept),
        (_, RuleSupport::RefusesAll) => http("400 Bad Request", malformed),
        (_, RuleSupport::TopicsOnly) if body.contains("<QueueConfiguration>") => http("400 Bad Request", malformed),
        (_, RuleSupport::Nothing) => http("200 OK", ""),
        ("DELETE", RuleSupport::Radosgw) => {
            let id = passing.target.split("notification=").nth(1).unwrap_or_default().split('&').next().unwrap();
            let left = rules_of(&kept).filter(|rule| !id.is_empty() && !rule.contains(&format!("<Id>{id}</Id>")));
            *kept = document(left);
            http("204 No Content", "")
        }
        ("DELETE", _) => {
            let object_is_there = objects.load(Ordering::SeqCst) > 0;
            deleted_buckets.fetch_add(usize::from(!object_is_there), Ordering::SeqCst);
            http("409 Conflict", "<Error><Code>BucketNotEmpty</Code><Message>not empty</Message></Error>")
        }
        (_, RuleSupport::Radosgw | RuleSupport::NeverEmpty) if is_empty(&body) => http("400 Bad Request", malformed),
        (_, RuleSupport::Radosgw) if body.contains("<QueueConfiguration>") => http("400 Bad Request", malformed),
        (_, RuleSupport::Radosgw) => {
            let key = |rule: &str| [text(rule, "Id"), text(rule, "Topic")];
            let others = rules_of(&kept).filter(|old| rules_of(&body).all(|new| key(&new) != key(old)));
            *kept = document(others.chain(rules_of(&body)).collect::<Vec<_>>().into_iter());
            http("200 OK", "")
        }
        (_, RuleSupport::NoOverlaps) if body.matches("ObjectCreated").count() > 1 => {
            let message = "Configurations overlap. Configurations on the same bucket cannot share a common event type.";
            let error = format!("<Error><Code>InvalidArgument</Code><Message>{message}</Message></Error>");
            http("400 Bad Request", &error)
        }
        (_, RuleSupport::All | RuleSupport::TopicsOnly | RuleSupport::NeverEmpty | RuleSupport::NoOverlaps) => {
            *kept = body;
            http("200 OK", "")
        }
    }
}

#[test]
fn rule_is_added_repeatably_and_others_are_kept() {
    let store = Store::new(RuleSupport::All, FOREIGN);
    let ran = store.call(&["install", "--arn", ARN]).ok();
    let first = "objects created in `x-lake` under pipelines/ that end in .csv are reported to the queue arn:minio:sqs::lakemill:webhook\n";
    assert!(ran.stdout.starts_with(first), "{}", ran.stdout);
    for hint in ["/events/s3", "SVC_WEBHOOK_SECRET", "allow-list", "restart"] {
        assert!(ran.stdout.contains(hint), "{hint} in {}", ran.stdout);
    }
    let rules = store.rules();
    assert!(rules.contains(FOREIGN) && rules.contains("<Id>lakemill-csv-"), "{rules}");
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
fn topic_rule_is_used_if_the_store_requires_it() {
    let store = Store::new(RuleSupport::TopicsOnly, "");
    let ran = store.call(&["install", "--arn", "arn:ceph:x:default::lake"]).ok();
    assert!(ran.stdout.contains("to the topic arn:ceph:x:default::lake\n") && ran.stdout.contains("push endpoint"));
    assert!(store.rules().contains("<TopicConfiguration>") && store.rules().contains("<Topic>arn:ceph"));
}

#[test]
fn rejected_or_lost_rule_is_reported() {
    let refuses = Store::new(RuleSupport::RefusesAll, "");
    refuses.call(&["install", "--arn", ARN]).exits_with(
        1,
        &["rejects the rule both for a queue and for a topic", "expected another kind", "set SVC_RECONCILE_SECONDS"],
    );
    let forgets = Store::new(RuleSupport::Nothing, "");
    forgets
        .call(&["install", "--arn", ARN])
        .exits_with(1, &["the store accepted the rule but does not return it", "set SVC_RECONCILE_SECONDS"]);
    refuses.call(&["install", "--arn", "webhook"]).exits_with(2, &["expected `arn:…`"]);
    refuses.call(&["install"]).exits_with(2, &["--arn"]);
}

#[test]
fn removing_foreign_rules_requires_confirmation() {
    let store = Store::new(RuleSupport::All, FOREIGN);
    store.call(&["install", "--arn", ARN]).ok();
    let before = store.rules();
    let refused = store
        .call(&["remove"])
        .exits_with(1, &["`x-lake` also has a rule of another program: --yes removes all rules"]);
    assert!(refused.stderr.contains("others  audit"), "{}", refused.stderr);
    assert_eq!(store.rules(), before);
    let ran = store.call(&["remove", "--yes"]).ok();
    assert!(ran.stdout.starts_with("`x-lake` has no rules: new files"), "{}", ran.stdout);
    assert!(!store.rules().contains("QueueConfiguration"), "{}", store.rules());
    assert_eq!(store.call(&["remove"]).ok().stdout, "`x-lake` has no rules\n");
}

#[test]
fn own_rules_are_removed_without_confirmation() {
    let store = Store::new(RuleSupport::All, "");
    store.call(&["install", "--arn", ARN, "--compressed"]).ok();
    store.call(&["remove"]).ok();
    let shown = store.call(&["show"]).ok().stdout;
    assert!(shown.starts_with("`x-lake` has no rules: new files don't start runs"), "{shown}");
}

const CEPH_ARN: &str = "arn:aws:sns:default::lake";
const CEPH_FOREIGN: &str = "<TopicConfiguration><Id>audit</Id><Topic>arn:aws:sns:default::audit</Topic>\
                            <Event>s3:ObjectRemoved:*</Event></TopicConfiguration>";

#[test]
fn radosgw_rules_are_removed_by_its_extension() {
    let store = Store::new(RuleSupport::Radosgw, "");
    store.call(&["install", "--arn", CEPH_ARN, "--compressed"]).ok();
    assert_eq!(rules_of(&store.rules()).count(), 3, "{}", store.rules());
    let ran = store.call(&["remove"]).ok();
    for part in ["rejected an empty configuration", "deleted by `DELETE ?notification`", "has no rules: new files"] {
        assert!(ran.stdout.contains(part), "{part} in {}", ran.stdout);
    }
    assert_eq!(rules_of(&store.rules()).count(), 0);
    assert_eq!(store.objects.load(Ordering::SeqCst), 0, "the object that guards the bucket is deleted");
}

#[test]
fn another_target_replaces_our_rules_where_the_store_adds_rules() {
    let store = Store::new(RuleSupport::Radosgw, CEPH_FOREIGN);
    // Rules of version 0.1 had the same ids for every target.
    let old = "<TopicConfiguration><Id>lakemill-csv</Id><Topic>arn:aws:sns:default::old</Topic>\
               <Event>s3:ObjectCreated:*</Event><Filter><S3Key><FilterRule><Name>prefix</Name><Value>pipelines/</Value>\
               </FilterRule><FilterRule><Name>suffix</Name><Value>.csv</Value></FilterRule></S3Key></Filter>\
               </TopicConfiguration>";
    *store.rules.lock().unwrap() = document([CEPH_FOREIGN, old].into_iter().map(str::to_owned));
    for arn in [CEPH_ARN, "arn:aws:sns:default::another"] {
        let ran = store.call(&["install", "--arn", arn]).ok();
        for part in ["replaced rules of an earlier install:\n  lakemill-csv", "kept rules of other programs:\n  audit"]
        {
            assert!(ran.stdout.contains(part), "{part} in {}", ran.stdout);
        }
        let rules = store.rules();
        let topics: Vec<String> = rules_of(&rules).map(|rule| text(&rule, "Topic")).collect();
        assert_eq!(topics, ["arn:aws:sns:default::audit", arn]);
        assert!(rules.contains(CEPH_FOREIGN), "{rules}");
    }
    store.call(&["remove"]).exits_with(1, &["also has a rule of another program"]);
}

#[test]
fn another_target_replaces_our_rules_where_the_store_replaces_all() {
    let store = Store::new(RuleSupport::All, FOREIGN);
    store.call(&["install", "--arn", "arn:minio:sqs::old:webhook", "--compressed"]).ok();
    let ran = store.call(&["install", "--arn", ARN]).ok();
    let output = &ran.stdout;
    assert_eq!(output.matches("to the queue arn:minio:sqs::old:webhook").count(), 3, "{output}");
    assert!(output.contains("kept rules of other programs:\n  audit") && !output.contains("warning"), "{output}");
    assert!(store.rules().contains(FOREIGN) && !store.rules().contains("::old:"), "{}", store.rules());
    assert_eq!(store.rules().matches("<QueueConfiguration>").count(), 2);
}

#[test]
fn overlapping_foreign_rules_are_listed() {
    let wide = "<QueueConfiguration><Id>all</Id><Queue>arn:all</Queue><Event>s3:ObjectCreated:Put</Event>\
                </QueueConfiguration>";
    let store = Store::new(RuleSupport::All, wide);
    let ran = store.call(&["install", "--arn", ARN]).ok();
    assert!(ran.stdout.contains("reported twice:\n  all  s3:ObjectCreated:Put  prefix *"), "{}", ran.stdout);
    let store = Store::new(RuleSupport::NoOverlaps, wide);
    store.call(&["install", "--arn", ARN]).exits_with(1, &["Configurations overlap", "these overlap:\n  all  "]);
    assert!(store.rules().contains(wide) && !store.rules().contains("lakemill-"), "{}", store.rules());
}

#[test]
fn remaining_rules_are_listed_and_the_bucket_kept() {
    let store = Store::new(RuleSupport::NeverEmpty, "");
    store.call(&["install", "--arn", ARN]).ok();
    let ran = store
        .call(&["remove"])
        .exits_with(1, &["rejected an empty configuration", "BucketNotEmpty", "still has\n  lakemill-csv"]);
    assert!(!ran.stdout.contains("has no rules: new files"), "{}", ran.stdout);
    assert_eq!(store.deleted_buckets.load(Ordering::SeqCst), 0, "an object was in the bucket meanwhile");
    assert_eq!(store.objects.load(Ordering::SeqCst), 0);
}

#[test]
fn aws_targets_report_their_requirements() {
    let store = Store::new(RuleSupport::All, FOREIGN);
    let (queue, topic) = ("arn:aws:sqs:eu-central-1:123456789012:q", "arn:aws:sns:eu-central-1:123456789012:t");
    let said = store.call(&["install", "--sqs", queue]).ok().stdout;
    let url = "SVC_EVENTS_SQS_URL=https://sqs.eu-central-1.amazonaws.com/123456789012/q";
    for part in [
        format!("are reported to the queue {queue}\n").as_str(),
        url,
        "sqs:ReceiveMessage",
        "kept rules of other programs",
    ] {
        assert!(said.contains(part), "{part} in {said}");
    }
    assert!(!said.contains("/events/s3"), "nothing posts to a worker: {said}");
    assert_eq!(store.call(&["install", "--arn", queue]).ok().stdout, said, "by its ARN alone, too");
    let said = store.call(&["install", "--sqs", "arn:aws-cn:sqs:cn-north-1:123456789012:q"]).ok().stdout;
    assert!(said.contains("https://sqs.cn-north-1.amazonaws.com.cn/123456789012/q"), "{said}");
    let said = store.call(&["install", "--sns", topic]).ok().stdout;
    for part in [format!("to the topic {topic}\n").as_str(), &format!("SVC_EVENTS_SNS_TOPICS={topic}\n"), "/events/s3"]
    {
        assert!(said.contains(part), "{part} in {said}");
    }
    assert!(store.rules().contains("<TopicConfiguration>") && !store.rules().contains(queue), "{}", store.rules());
    let refuses = Store::new(RuleSupport::RefusesAll, "");
    let advice = format!("the policy of `{queue}` lets s3.amazonaws.com `sqs:SendMessage`");
    refuses.call(&["install", "--sqs", queue]).exits_with(1, &[&advice]);
    refuses.call(&["install", "--sqs", topic]).exits_with(2, &["expected an ARN such as `arn:aws:sqs:"]);
    refuses.call(&["install", "--sns", topic, "--eventbridge"]).exits_with(2, &["cannot be used with"]);
}

#[test]
fn eventbridge_replaces_our_rules() {
    let store = Store::new(RuleSupport::All, FOREIGN);
    store.call(&["install", "--arn", ARN]).ok();
    for _ in 0..2 {
        let said = store.call(&["install", "--eventbridge"]).ok().stdout;
        for part in ["events of `x-lake` are sent to EventBridge\n", "A rule of EventBridge", "  audit  "] {
            assert!(said.contains(part), "{part} in {said}");
        }
    }
    let rules = store.rules();
    assert!(rules.contains(FOREIGN) && !rules.contains("lakemill-"), "{rules}");
    assert_eq!(rules.matches("<EventBridgeConfiguration>").count(), 1, "{rules}");
    let shown = store.call(&["show"]).ok().stdout;
    assert!(shown.contains("EventBridge gets all events of the bucket"), "{shown}");
    assert!(shown.contains("whether an EventBridge rule reports new files can't be determined here"), "{shown}");
    store.call(&["install", "--arn", ARN]).ok();
    assert!(store.rules().contains("<EventBridgeConfiguration>"), "others may use it: {}", store.rules());
    store.call(&["remove"]).exits_with(1, &["also has 2 rules of other programs"]);
    store.call(&["remove", "--yes"]).ok();
    assert!(!store.rules().contains("EventBridge"), "{}", store.rules());
    let forgets = Store::new(RuleSupport::Nothing, "");
    forgets.call(&["install", "--eventbridge"]).exits_with(1, &["does not list it: it seems not to support it"]);
}

#[test]
fn rules_are_put_and_removed_on_moto() {
    let moto = moto();
    let buckets = moto.buckets();
    let run = |args: &[&str]| {
        let mut command = lakemill();
        command.arg("webhook").args(args).stdin(Stdio::null()).env("OBJ_ENDPOINT_URL", moto.url());
        command.env("OBJ_ACCESS_KEY_ID", ACCESS_KEY).env("OBJ_SECRET_ACCESS_KEY", SECRET_KEY).env("OBJ_REGION", REGION);
        command.env("S3_BUCKET_PIPELINES", &buckets.pipelines).env("S3_BUCKET_LAKE", &buckets.lake);
        call(command.env("S3_BUCKET_WAREHOUSE", &buckets.warehouse))
    };
    for arn in ["arn:aws:sqs:us-east-1:123456789012:old", "arn:aws:sqs:us-east-1:123456789012:new"] {
        run(&["install", "--arn", arn, "--compressed"]).ok();
        let shown = run(&["show"]).ok().stdout;
        assert_eq!((shown.lines().count(), shown.matches(arn).count()), (3, 3), "{shown}");
    }
    run(&["remove"]).ok();
    assert!(run(&["show"]).ok().stdout.contains("has no rules: new files don't start runs"));
}

#[test]
fn store_without_notifications_is_reported() {
    let server = s3s_fs();
    let store = Store {
        proxy: server.behind(|_| ProxyAction::Forward),
        rules: Arc::default(),
        objects: Arc::default(),
        deleted_buckets: Arc::default(),
    };
    let ran = store.call(&["show"]);
    assert!(
        ran.status == 1 && ran.stderr.starts_with("lakemill: lake bucket: reading the notification rules: "),
        "{}",
        ran.stderr
    );
    store
        .call(&["install", "--arn", ARN])
        .exits_with(1, &["if the store has no notifications, set SVC_RECONCILE_SECONDS"]);
}

#[test]
fn folder_store_needs_no_webhook() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::new(RuleSupport::All, "");
    let url = format!("file://{}", home.path().display());
    for args in [&["install", "--arn", ARN][..], &["show"], &["remove"]] {
        let ran = call(store.command(args).env("OBJ_ENDPOINT_URL", &url)).ok();
        assert!(ran.stdout.ends_with("no webhook is needed\n"), "{}", ran.stdout);
    }
}

//! Events of new files from SQS: moto has the buckets, queues and topics; the built binary runs the pipelines.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use lakemill::adapters::aws::{Credentials, SqsQueue};
use lakemill::config::{AwsVariables, EventQueueConfig, NetworkConfig, StoreCredentials};
use lakemill::domain::job::JobStatus;
use lakemill::ports::EventQueue;
use lakemill::ports::jobs::ClaimLimits;
use lakemill::runtime::SystemClock;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::cli_doctor::doctor;
use crate::support::aws::{Aws, Behaviour};
use crate::support::http_client::get;
use crate::support::http_proxy::{HttpProxy, ProxiedRequest, ProxyAction};
use crate::support::program::{call, lakemill};
use crate::support::redis_server::RedisServer;
use crate::support::s3_server::moto;
use crate::support::site::{Service, Site, await_that};
use crate::support::sqs::{Queue, REGION};

/// On moto, with an initialized queue of jobs.
fn site() -> Site {
    let mut site = Site::fleet_on(moto(), RedisServer::durable());
    site.set("OBJ_REGION", REGION);
    site.kv.claim("nobody", ClaimLimits::any(1), Duration::ZERO).unwrap();
    site.kv.mark_initialized().unwrap();
    site
}

fn webhook(site: &Site, args: &[&str]) -> String {
    let mut command = lakemill();
    command.arg("webhook").args(args).envs(site.env());
    call(&mut command).ok().stdout
}

fn event(site: &Site, key: &str) -> String {
    event_of(&site.env()["S3_BUCKET_LAKE"], key)
}

fn event_of(bucket: &str, key: &str) -> String {
    json!({ "Records": [{ "eventSource": "aws:s3", "eventName": "ObjectCreated:Put",
        "s3": { "bucket": { "name": bucket }, "object": { "key": key } } }] })
    .to_string()
}

fn await_completed(site: &Site, pipeline: &str) {
    await_that("the run", || site.records(pipeline).iter().any(|job| job.status == JobStatus::Completed));
}

fn messages(worker: &Service, outcome: &str) -> u64 {
    let metrics = get(&worker.address(), "/metrics").body;
    let prefix = format!("lakemill_event_queue_messages_total{{outcome=\"{outcome}\"}} ");
    metrics.lines().find_map(|line| line.strip_prefix(&prefix)).unwrap_or_else(|| panic!("{metrics}")).parse().unwrap()
}

#[test]
fn new_file_runs_its_pipeline_by_a_rule_for_a_queue() {
    let (site, queue) = (site(), Queue::new());
    let said = webhook(&site, &["install", "--sqs", &queue.arn()]);
    assert!(said.contains("SVC_EVENTS_SQS_URL=https://sqs.us-east-1.amazonaws.com/123456789012/"), "{said}");
    assert!(!said.contains("/events/s3"), "{said}");
    site.automatic_pipeline("p");
    let worker = site.worker_with(&[("SVC_EVENTS_SQS_URL", &queue.url())]);
    site.put("p", "in/a b+c.csv", "a,b\nx,1\n");
    await_completed(&site, "p");
    await_that("an empty queue", || queue.messages() == 0);
    assert!(messages(&worker, "used") >= 1 && messages(&worker, "refused") == 0);
    assert_eq!(messages(&worker, "received"), messages(&worker, "deleted"));
    let metrics = get(&worker.address(), "/metrics").body;
    assert!(metrics.contains("lakemill_event_queue_up 1\n"), "{metrics}");
    assert!(metrics.contains("lakemill_event_queue_age_seconds "), "{metrics}");
    let ready = get(&worker.address(), "/readyz").json();
    assert_eq!((&ready["ready"], &ready["event_queue"]), (&json!(true), &json!("ok")));
}

#[test]
fn sns_and_eventbridge_reach_the_worker_by_a_queue() {
    let (site, queue) = (site(), Queue::new());
    let topic = queue.topic();
    let said = webhook(&site, &["install", "--sns", &topic]);
    assert!(said.contains(&format!("SVC_EVENTS_SNS_TOPICS={topic}")), "{said}");
    for pipeline in ["p", "q"] {
        site.automatic_pipeline(pipeline);
    }
    let _workers = [0, 1].map(|_| site.worker_with(&[("SVC_EVENTS_SQS_URL", &queue.url())]));
    site.put("p", "in/x.csv", "a,b\nx,1\n");
    await_completed(&site, "p");
    // Moto reports this object by the topic, too.
    site.put("q", "in/x+y.csv", "a,b\nx,1\n");
    let native = json!({ "detail-type": "Object Created", "source": "aws.s3", "detail": {
        "bucket": { "name": site.env()["S3_BUCKET_LAKE"] }, "object": { "key": "pipelines/q/in/x+y.csv" } } });
    queue.send(&native.to_string());
    await_completed(&site, "q");
    await_that("an empty queue", || queue.messages() == 0);
}

#[test]
fn messages_stay_while_the_key_value_store_is_unavailable() {
    let (site, queue) = (site(), Queue::new());
    site.automatic_pipeline("p");
    let worker = site.worker_with(&[("SVC_EVENTS_SQS_URL", &queue.url())]);
    await_that("a poll", || get(&worker.address(), "/readyz").json()["event_queue"] == "ok");
    site.put("p", "in/x.csv", "a,b\nx,1\n");
    site.break_kv();
    queue.send(&event(&site, "pipelines/p/in/x.csv"));
    worker.await_log("recording events of the queue failed");
    assert_eq!((queue.messages(), messages(&worker, "deleted")), (1, 0));
    let received = messages(&worker, "received");
    site.restore_kv();
    await_completed(&site, "p");
    await_that("an empty queue", || queue.messages() == 0);
    worker.await_log("recording events of the queue works again");
    assert!(messages(&worker, "received") > received);
}

#[test]
fn unusable_messages_reach_the_dead_letter_queue_and_do_not_hold_up_others() {
    let (site, dead) = (site(), Queue::new());
    let queue = Queue::with_dead_letters(&dead, 2);
    site.automatic_pipeline("p");
    let unusable = [
        "no JSON".to_owned(),
        "{}".into(),
        event_of("another-bucket", "pipelines/p/x.csv"),
        format!("{}{}", " ".repeat(200), "[]"),
    ];
    unusable.iter().for_each(|body| queue.send(body));
    // Events without new CSVs are not errors.
    queue.send(r#"{"Service":"Amazon S3","Event":"s3:TestEvent"}"#);
    queue.send(&event(&site, "elsewhere/x.csv"));
    site.put("p", "in/x.csv", "a,b\nx,1\n");
    queue.send(&event(&site, "pipelines/p/in/x.csv"));
    let worker = site.worker_with(&[("SVC_EVENTS_SQS_URL", &queue.url())]);
    await_completed(&site, "p");
    await_that("dead letters", || dead.messages() == unusable.len() as u64);
    await_that("an empty queue", || queue.messages() == 0);
    assert_eq!((messages(&worker, "deleted"), messages(&worker, "used")), (3, 3));
    assert!(messages(&worker, "refused") >= unusable.len() as u64);
    let lines = worker.log().lines().filter(|line| line.contains("not usable")).count();
    assert!((1..=3).contains(&lines), "{}", worker.log());
}

#[test]
fn unusable_message_is_finally_deleted_from_a_queue_without_dead_letters() {
    let (site, queue) = (site(), Queue::new());
    queue.send("no JSON");
    let worker = site.worker_with(&[("SVC_EVENTS_SQS_URL", &queue.url())]);
    worker.await_log("not usable; deleted, since the queue has no dead-letter queue");
    await_that("an empty queue", || queue.messages() == 0);
    assert!(messages(&worker, "received") >= 5);
    assert_eq!((messages(&worker, "deleted"), messages(&worker, "used")), (1, 0));
}

fn answer(status: &str, body: &str) -> ProxyAction {
    let length = body.len();
    ProxyAction::Answer(
        format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}").into_bytes(),
    )
}

fn action(passing: &ProxiedRequest) -> String {
    let target = passing.header("x-amz-target").unwrap_or_default();
    target.strip_prefix("AmazonSQS.").unwrap_or_default().to_owned()
}

#[test]
fn throttled_polls_and_failed_deletions_are_repeated() {
    static POLLS: AtomicUsize = AtomicUsize::new(0);
    static DELETIONS: AtomicUsize = AtomicUsize::new(0);
    let throttled = r#"{"__type":"com.amazonaws.sqs#RequestThrottled","message":"slow down"}"#;
    let (site, queue) = (site(), Queue::new());
    let proxy = HttpProxy::start(moto().address, move |passing| match action(passing).as_str() {
        "ReceiveMessage" => match POLLS.fetch_add(1, Ordering::SeqCst) {
            0 => answer("400 Bad Request", throttled),
            1 => answer("503 Service Unavailable", ""),
            _ => ProxyAction::Forward,
        },
        "DeleteMessageBatch" => match DELETIONS.fetch_add(1, Ordering::SeqCst) {
            0 => answer("200 OK", r#"{"Failed":[{"Id":"0","SenderFault":false,"Code":"InternalError"}]}"#),
            1 => answer("500 Internal Server Error", ""),
            _ => ProxyAction::Forward,
        },
        _ => ProxyAction::Forward,
    });
    site.automatic_pipeline("p");
    site.put("p", "in/x.csv", "a,b\nx,1\n");
    queue.send(&event(&site, "pipelines/p/in/x.csv"));
    let worker = site.worker_with(&[("SVC_EVENTS_SQS_URL", &queue.url_at(&proxy.url()))]);
    worker.await_log("reading the event queue failed");
    await_completed(&site, "p");
    await_that("an empty queue", || queue.messages() == 0);
    worker.await_log("event queue messages not deleted; they will be redelivered");
    assert!(messages(&worker, "used") >= 3, "used again after each failed deletion");
    await_that("the count", || messages(&worker, "deleted") == 1);
}

#[test]
fn stop_does_not_wait_for_the_end_of_a_poll() {
    static POLLS: AtomicUsize = AtomicUsize::new(0);
    let (site, queue) = (site(), Queue::new());
    let proxy = HttpProxy::start(moto().address, |passing| {
        if action(passing) == "ReceiveMessage" {
            POLLS.fetch_add(1, Ordering::SeqCst);
            return ProxyAction::Delay(Duration::from_secs(600));
        }
        ProxyAction::Forward
    });
    let mut worker = site.worker_with(&[("SVC_EVENTS_SQS_URL", &queue.url_at(&proxy.url()))]);
    await_that("a poll", || POLLS.load(Ordering::SeqCst) == 1);
    worker.signal(Signal::TERM);
    assert_eq!(worker.await_exit(), Some(0));
    // The poll's timeout would be logged so.
    assert!(!worker.has_logged("reading the event queue failed"), "{}", worker.log());
}

#[test]
fn one_shot_worker_receives_the_events_of_a_queue_before_it_exits() {
    let (site, queue) = (site(), Queue::new());
    site.automatic_pipeline("p");
    site.put("p", "in/x.csv", "a,b\nx,1\n");
    queue.send(&event(&site, "pipelines/p/in/x.csv"));
    let mut worker = site.one_shot("--drain", &[("SVC_EVENTS_SQS_URL", &queue.url())]);
    assert_eq!(worker.await_exit(), Some(0), "{}", worker.log());
    assert_eq!(site.records("p").iter().map(|job| job.status).collect::<Vec<_>>(), [JobStatus::Completed]);
    assert_eq!(queue.messages(), 0);
}

#[test]
fn unreachable_queue_is_named_and_does_not_stop_the_worker() {
    let site = site();
    let missing = format!("http://{}/123456789012/missing", moto().address);
    let worker = site.worker_with(&[("SVC_EVENTS_SQS_URL", &missing)]);
    worker.await_log("reading the event queue failed");
    await_that("the worker is ready", || get(&worker.address(), "/readyz").status == 200);
    let reported = get(&worker.address(), "/readyz").json()["event_queue"].as_str().unwrap().to_owned();
    assert!(reported.contains("/missing") && reported.contains("QueueDoesNotExist"), "{reported}");
    assert!(get(&worker.address(), "/metrics").body.contains("lakemill_event_queue_up 0\n"));
    let found = doctor(&site, &[("SVC_EVENTS_SQS_URL", &missing)]);
    found.has(&format!("problem event queue: the event queue `{missing}`"), &[]);
    let queue = Queue::new();
    let found = doctor(&site, &[("SVC_EVENTS_SQS_URL", &queue.url())]);
    found.has("warning event queue:", &["dead-letter queue"]);
    let with_dead = Queue::with_dead_letters(&queue, 5);
    let found = doctor(&site, &[("SVC_EVENTS_SQS_URL", &with_dead.url())]);
    found.has("ok event queue:", &[]);
}

#[test]
fn expiring_credentials_are_renewed() {
    static AWS: LazyLock<Aws> = LazyLock::new(|| Aws::new(Behaviour::default()));
    let queue = Queue::new();
    let gate = AWS.gate_of_headers();
    let proxy = HttpProxy::start(moto().address, move |passing| match gate(passing) {
        Ok(()) => ProxyAction::Forward,
        Err(code) => {
            answer("403 Forbidden", &format!(r#"{{"__type":"com.amazon.coral.service#{code}","message":"ended"}}"#))
        }
    });
    let variables = AwsVariables { metadata_endpoint: Some(AWS.url()), ..AwsVariables::default() };
    let credentials = StoreCredentials::Chain(Box::new(variables));
    let credentials = Credentials::new(credentials, &NetworkConfig::default()).unwrap();
    let config = EventQueueConfig { url: queue.url_at(&proxy.url()), region: REGION.into() };
    let opened =
        SqsQueue::open(&config, Arc::new(credentials), Arc::new(SystemClock), &NetworkConfig::default()).unwrap();
    queue.send("x");
    assert_eq!(opened.receive(Duration::from_secs(20)).unwrap()[0].body, "x");
    assert_eq!(AWS.sessions(), 1);
    // Keys that were fetched just now are not fetched again.
    AWS.revoke_all();
    let error = opened.state().unwrap_err().to_string();
    assert!(error.contains("ExpiredTokenException") && error.contains(&config.url), "{error}");
    let fetched_again = |result: Result<_, _>| result.is_ok();
    await_that("other keys", || fetched_again(opened.state()));
    assert_eq!(AWS.sessions(), 2);
}

#[test]
fn queue_without_meaning_is_refused_or_ignored() {
    let site = site();
    for url in ["sqs", "https://sqs.us-east-1.amazonaws.com", "https://u:p@sqs.us-east-1.amazonaws.com/1/q"] {
        let mut worker = site.spawn(&[("SVC_EVENTS_SQS_URL", url)]);
        assert!(worker.await_exit().is_some_and(|status| status != 0));
        assert!(worker.has_logged("SVC_EVENTS_SQS_URL"), "{}", worker.log());
    }
    let embedded = Site::new(crate::support::site::Kind::Embedded);
    let worker = embedded.worker_with(&[("SVC_EVENTS_SQS_URL", "http://127.0.0.1:9/1/q")]);
    worker.await_log("SVC_EVENTS_SQS_URL is ignored");
    assert_eq!(get(&worker.address(), "/readyz").json()["event_queue"], Value::Null);
}

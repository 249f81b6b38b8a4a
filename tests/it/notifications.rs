//! Notifications: real workers, a webhook and a mail server.

use std::time::{Duration, Instant};

use lakemill::domain::notification::{Notification, NotificationEvent, NotificationRecord};
use lakemill::ports::store::Bucket;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::support::browser::Browser;
use crate::support::certificates;
use crate::support::notification_sinks::{MailSink, Received, WebhookSink};
use crate::support::program::{call, lakemill};
use crate::support::site::{Kind, Service, Site, await_some, await_that, slug};

const KEY: &str = "key of the signatures in tests";
/// Time limit for the notification of a failed run.
const NOTIFIED_WITHIN: Duration = Duration::from_secs(10);

fn site_with(kind: Kind, urls: &[&str]) -> Site {
    let mut site = Site::new(kind);
    site.set("SVC_NOTIFY_URL", &urls.join(", ")).set("SVC_NOTIFY_SECRET", KEY);
    site.set("SVC_PUBLIC_URL", "https://lake.example");
    site
}

/// A site whose workers notify the webhook.
fn site(kind: Kind, sink: &WebhookSink) -> Site {
    site_with(kind, &[&format!("http://{}/hook?token=secret-token", sink.address())])
}

fn on_both(test: impl Fn(Kind)) {
    for kind in [Kind::Embedded, Kind::Fleet] {
        test(kind);
    }
}

/// A pipeline whose runs fail on a row that is not a number.
fn strict_pipeline(site: &Site, more: &Value) {
    let mut config = json!({ "version": 1, "auto_run": false, "mappings": [strict()] });
    for (name, value) in more.as_object().unwrap() {
        config[name] = value.clone();
    }
    site.configure("p", &config);
}

fn strict() -> Value {
    crate::support::program::mapping(&json!({ "rejects": { "max_ratio": 0.0 } }))
}

fn fail(site: &Site) {
    site.put("p", "in/a.csv", "a,b\nx,none\n");
    let job = site.await_end(&site.enqueue("p"));
    assert!(job.error.is_some(), "{job:?}");
}

fn complete(site: &Site) {
    site.put("p", "in/a.csv", format!("a,b\nx,{}\n", uuid::Uuid::new_v4().as_u128() % 1_000_000));
    let job = site.await_end(&site.enqueue("p"));
    assert!(job.error.is_none(), "{job:?}");
}

/// Waits until everything that is due now was sent: a test that is sent after it arrives.
fn await_all_sent(site: &Site, sink: &WebhookSink) {
    let sent = sink.events("test").len();
    let test = Notification::test(chrono::Utc::now());
    assert!(site.kv.add_notification(&test).unwrap());
    await_that("the test notification", || sink.events("test").len() > sent);
}

/// HMAC-SHA256 as RFC 2104 defines it.
fn hmac_sha256(key: &[u8], text: &[u8]) -> String {
    let mut block = [0_u8; 64];
    block[..key.len()].copy_from_slice(key);
    let pad = |with: u8| block.iter().map(|byte| byte ^ with).collect::<Vec<u8>>();
    let inner = Sha256::digest([pad(0x36).as_slice(), text].concat());
    let outer = Sha256::digest([pad(0x5c).as_slice(), &inner].concat());
    outer.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[track_caller]
fn check_signature(received: &Received) {
    let timestamp = received.header("x-lakemill-timestamp").unwrap();
    let age = chrono::Utc::now().timestamp() - timestamp.parse::<i64>().unwrap();
    assert!((0..300).contains(&age), "{timestamp}");
    let signed = [timestamp.as_bytes(), b".", &received.body].concat();
    let expected = format!("v1={}", hmac_sha256(KEY.as_bytes(), &signed));
    assert_eq!(received.header("x-lakemill-signature"), Some(expected.as_str()));
    assert_eq!(received.header("x-lakemill-id"), received.json()["id"].as_str());
}

#[test]
fn failed_run_is_notified_by_webhook_and_mail_in_time() {
    on_both(|kind| {
        let (sink, mail) = (WebhookSink::start(), MailSink::start("plain", None));
        let hook = format!("http://{}/hook", sink.address());
        let smtp = format!(
            "smtp://127.0.0.1:{}?tls=none&from=lake%40example.org&to=a%40example.org&to=b%40example.org",
            mail.port
        );
        let site = site_with(kind, &[&hook, &smtp]);
        let _worker = site.worker();
        strict_pipeline(&site, &json!({}));
        fail(&site);
        let until = Instant::now() + NOTIFIED_WITHIN;
        while sink.received().is_empty() || mail.mails().is_empty() {
            assert!(Instant::now() < until, "received {:?} {:?}", sink.received(), mail.mails());
            std::thread::sleep(Duration::from_millis(20));
        }
        let received = sink.received().remove(0);
        assert_eq!(received.path, "/hook");
        check_signature(&received);
        let body = received.json();
        assert_eq!((&body["event"], &body["pipeline"]), (&json!("run_failed"), &json!("p")));
        assert_eq!(body["title"], "p: run failed (too_many_rejects)");
        let job = &site.records("p")[0];
        assert_eq!(body["job_id"], json!(job.job_id));
        assert_eq!(body["link"], format!("https://lake.example/p/p/jobs/{}", job.job_id.as_str().replace('-', "%2D")));
        let mail = mail.mails().remove(0);
        assert_eq!(mail["to"], json!(["<a@example.org>", "<b@example.org>"]));
        let text = mail["text"].as_str().unwrap();
        assert!(text.contains("Subject: [Lakemill] p: run failed (too_many_rejects)"), "{text}");
    });
}

#[test]
fn two_workers_notify_once_about_a_failing_pipeline() {
    on_both(|kind| {
        let sink = WebhookSink::start();
        let site = site(kind, &sink);
        let _workers = [site.worker(), site.worker()];
        strict_pipeline(&site, &json!({}));
        for _ in 0..4 {
            fail(&site);
        }
        await_all_sent(&site, &sink);
        assert_eq!(sink.events("run_failed").len(), 1);
        let kept = site.kv.notifications(None, 100).unwrap();
        let is_failure = |one: &&NotificationRecord| one.notification.event == NotificationEvent::RunFailed;
        let scheduled: Vec<_> = kept.iter().filter(is_failure).filter(|one| one.due_at.is_some()).collect();
        assert_eq!(scheduled.len(), 1, "the others are sent together later");
        assert_eq!(scheduled[0].notification.repeats, 2);

        complete(&site);
        await_all_sent(&site, &sink);
        assert_eq!(sink.events("recovered").len(), 1);
        complete(&site);
        await_all_sent(&site, &sink);
        assert_eq!((sink.events("recovered").len(), sink.events("run_failed").len()), (1, 1));
        let kept = site.kv.notifications(None, 100).unwrap();
        assert_eq!(kept.iter().filter(is_failure).count(), 1, "the scheduled one was withdrawn: {kept:?}");
    });
}

/// A worker that dies at `place` while it notifies of a failed run; a second one takes over.
fn dies_at(kind: Kind, place: &str, sent_max: usize) {
    let sink = WebhookSink::start();
    let mut site = site(kind, &sink);
    strict_pipeline(&site, &json!({}));
    site.put("p", "in/a.csv", "a,b\nx,none\n");
    let failpoints = format!("{place}=return(kill);notify::claim_ttl_ms=return(2000)");
    let mut dying = site.spawn(&[("FAILPOINTS", &failpoints)]);
    let job = site.enqueue("p");
    assert_eq!(dying.await_exit(), None, "killed");
    site.set("SVC_LOG", "info");
    let _worker = site.worker();
    site.await_end(&job);
    await_that("the notification", || !sink.events("run_failed").is_empty());
    await_all_sent(&site, &sink);
    let delivered = sink.events("run_failed");
    assert!(delivered.len() <= sent_max, "{place}: {delivered:?}");
    assert!(delivered.iter().all(|one| one["id"] == delivered[0]["id"]), "{delivered:?}");
}

#[test]
fn worker_killed_before_delivery_loses_nothing() {
    on_both(|kind| dies_at(kind, "notify::claimed", 1));
}

#[test]
fn worker_killed_before_notifying_loses_nothing() {
    dies_at(Kind::Embedded, "worker::recorded", 1);
    dies_at(Kind::Embedded, "worker::notified", 1);
}

#[test]
fn worker_killed_after_delivery_repeats_it_under_the_same_id() {
    dies_at(Kind::Embedded, "notify::sent", 2);
}

#[test]
fn rejected_rows_and_new_columns_are_notified() {
    let sink = WebhookSink::start();
    let site = site(Kind::Fleet, &sink);
    let _worker = site.worker();
    site.pipeline("p", &json!({}));
    site.put("p", "in/<a>.csv", "a,b,c\nx,1,2\ny,none,3\n");
    site.await_end(&site.enqueue("p"));
    await_all_sent(&site, &sink);
    let (rejected, drift) = (sink.events("rows_rejected"), sink.events("drift"));
    assert_eq!((rejected.len(), drift.len()), (1, 1));
    assert_eq!(rejected[0]["title"], "p: 1 row rejected");
    assert_eq!(rejected[0]["text"], "in/<a>.csv: 1");
    assert_eq!(drift[0]["title"], "p: 1 column is not in the config");
    assert!(drift[0]["text"].as_str().unwrap().starts_with("t.c\n"), "{drift:?}");
    // The same column is not notified again.
    site.put("p", "in/b.csv", "a,b,c\nx,1,2\n");
    site.await_end(&site.enqueue("p"));
    await_all_sent(&site, &sink);
    assert_eq!((sink.events("rows_rejected").len(), sink.events("drift").len()), (1, 1));
    assert_eq!(sink.events("run_failed").len() + sink.events("recovered").len(), 0);
}

#[test]
fn pipeline_notifies_only_of_events_in_its_config() {
    let sink = WebhookSink::start();
    let site = site(Kind::Embedded, &sink);
    let _worker = site.worker();
    strict_pipeline(&site, &json!({ "notify": ["recovered"] }));
    fail(&site);
    complete(&site);
    strict_pipeline(&site, &json!({ "notify": ["run_failed"] }));
    fail(&site);
    complete(&site);
    await_all_sent(&site, &sink);
    assert_eq!((sink.events("run_failed").len(), sink.events("recovered").len()), (1, 0));
}

#[test]
fn cancelled_job_is_not_notified() {
    let sink = WebhookSink::start();
    let site = site(Kind::Embedded, &sink);
    strict_pipeline(&site, &json!({}));
    let job = site.enqueue("p");
    site.kv.cancel(&slug("p"), &job.job_id).unwrap();
    let _worker = site.worker();
    site.await_end(&job);
    await_all_sent(&site, &sink);
    assert_eq!(sink.events("run_failed"), Vec::<Value>::new());
}

#[test]
fn silent_source_and_its_return_are_notified() {
    on_both(|kind| {
        let sink = WebhookSink::start();
        let site = site(kind, &sink);
        let often = "notify::check_every_ms=return(200)";
        let later = |hours: u64| format!("{often};clock::ahead_ms=return({})", hours * 3_600_000);
        let mut config = strict();
        config["freshness"] = json!("26h");
        site.configure("p", &json!({ "version": 1, "auto_run": false, "mappings": [config] }));
        site.configure("other", &json!({ "version": 1, "auto_run": false, "mappings": [strict()] }));
        let mut worker = site.worker_with(&[("FAILPOINTS", &later(0))]);
        complete(&site);
        worker.signal(rustix::process::Signal::TERM);
        worker.await_exit();

        let mut worker = site.worker_with(&[("FAILPOINTS", &later(25))]);
        worker.await_log("freshness checked");
        await_all_sent(&site, &sink);
        worker.signal(rustix::process::Signal::TERM);
        worker.await_exit();
        assert_eq!(sink.events("source_silent"), Vec::<Value>::new());

        let mut worker = site.worker_with(&[("FAILPOINTS", &later(27))]);
        await_that("the notification", || !sink.events("source_silent").is_empty());
        let delivered = sink.events("source_silent").remove(0);
        assert_eq!((&delivered["pipeline"], &delivered["table"]), (&json!("p"), &json!("t")));
        assert_eq!(delivered["title"], "p: t got no rows for 27 h");
        worker.signal(rustix::process::Signal::TERM);
        worker.await_exit();

        let _worker = site.worker_with(&[("FAILPOINTS", often)]);
        complete(&site);
        await_that("the recovery", || !sink.events("recovered").is_empty());
        assert_eq!(sink.events("recovered")[0]["title"], "p: t gets rows again");
    });
}

#[test]
fn disk_that_is_nearly_full_is_notified_once() {
    let sink = WebhookSink::start();
    let site = site(Kind::Embedded, &sink);
    let full = "notify::check_every_ms=return(100);disk::free_bytes=return(1000)";
    let mut worker = site.worker_with(&[("FAILPOINTS", full)]);
    await_that("the notification", || !sink.events("disk_nearly_full").is_empty());
    await_all_sent(&site, &sink);
    worker.kill();
    assert_eq!(sink.events("disk_nearly_full").len(), 1);
    let free = "notify::check_every_ms=return(100);disk::free_bytes=return(1000000000000000)";
    let _worker = site.worker_with(&[("FAILPOINTS", free)]);
    await_that("the recovery", || !sink.events("recovered").is_empty());
}

#[test]
fn run_without_progress_is_notified() {
    let sink = WebhookSink::start();
    let site = site(Kind::Embedded, &sink);
    let slow = "notify::stuck_after_ms=return(1000);publish::between_puts=1*sleep(6000)";
    let _worker = site.worker_with(&[("FAILPOINTS", slow)]);
    strict_pipeline(&site, &json!({}));
    complete(&site);
    await_that("the notification", || !sink.events("job_stuck").is_empty());
    assert_eq!(sink.events("job_stuck")[0]["pipeline"], "p");
    await_that("its end", || !sink.events("recovered").is_empty());
    await_all_sent(&site, &sink);
    assert_eq!(sink.events("job_stuck").len(), 1);
}

#[test]
fn jobs_that_cannot_run_are_notified() {
    let sink = WebhookSink::start();
    let site = site(Kind::Fleet, &sink);
    let quick = "notify::check_every_ms=return(200);notify::blocked_after_ms=return(500)";
    let _worker = site.worker_with(&[("FAILPOINTS", quick)]);
    site.break_store();
    site.enqueue("p");
    await_that("the notification", || !sink.events("job_stuck").is_empty());
    assert!(sink.events("job_stuck")[0]["title"].as_str().unwrap().ends_with("jobs can't run, the store fails"));
    site.restore_store();
    await_that("the recovery", || !sink.events("recovered").is_empty());
}

#[test]
fn failed_delivery_is_retried_and_a_redirect_is_not_followed() {
    let elsewhere = WebhookSink::start();
    let to = format!("http://{}/stolen", elsewhere.address());
    let sink = WebhookSink::responding(move |n| match n {
        0 => (503, None),
        1 => (307, Some(to.clone())),
        _ => (200, None),
    });
    let site = site(Kind::Embedded, &sink);
    let _worker = site.worker();
    let test = Notification::test(chrono::Utc::now());
    site.kv.add_notification(&test).unwrap();
    let last = |n: usize| {
        await_some("the attempt", || {
            let delivery = site.kv.notifications(None, 1).unwrap().remove(0).deliveries.pop()?;
            (delivery.attempts as usize == n).then_some(delivery)
        })
    };
    assert_eq!(last(1).error.as_deref(), Some("responded with status 503, expected 200 to 299"));
    let redirected = last(2).error.unwrap();
    assert!(redirected.contains("redirect to `127.0.0.1`") && redirected.contains("not followed"), "{redirected}");
    let sent = last(3);
    assert_eq!((serde_json::to_value(sent.state).unwrap(), sent.error), (json!("sent"), None));
    assert_eq!(elsewhere.received().len(), 0);
    let ids: Vec<_> = sink.received().iter().map(|one| one.json()["id"].clone()).collect();
    assert_eq!(ids, vec![json!(test.id); 3]);
    sink.received().iter().for_each(check_signature);
}

#[test]
fn mail_is_sent_by_tls_only_unless_the_target_says_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    certificates::make(folder.path());
    let sinks = [
        ("smtp", MailSink::start("starttls", Some(folder.path()))),
        ("smtps", MailSink::start("tls", Some(folder.path()))),
        ("smtp", MailSink::start("plain", None)),
    ];
    let url = |(scheme, sink): &(&str, MailSink)| {
        format!("{scheme}://user:pass%2Cword@127.0.0.1:{}?from=a%40b.example&to=c%40d.example", sink.port)
    };
    let urls: Vec<String> = sinks.iter().map(url).collect();
    let mut site = site_with(Kind::Embedded, &urls.iter().map(String::as_str).collect::<Vec<_>>());
    site.set("SVC_CA_FILE", folder.path().join("ca.pem").to_str().unwrap());
    let worker = site.worker();
    let test = Notification::test(chrono::Utc::now());
    site.kv.add_notification(&test).unwrap();
    let deliveries = await_some("the attempts", || {
        let deliveries = site.kv.notifications(None, 1).unwrap().remove(0).deliveries;
        (!deliveries.is_empty() && deliveries.iter().all(|one| one.attempts > 0)).then_some(deliveries)
    });
    let states: Vec<Value> = deliveries.iter().map(|one| serde_json::to_value(one.state).unwrap()).collect();
    assert_eq!(states, ["sent", "sent", "pending"], "{deliveries:?}");
    for (_, sink) in &sinks[..2] {
        let mail = await_some("the mail", || sink.mails().pop());
        assert_eq!((&mail["tls"], &mail["login"]), (&json!(true), &json!(["user", "pass,word"])));
    }
    assert_eq!(sinks[2].1.mails(), Vec::<Value>::new(), "nothing without TLS");
    assert!(!worker.log().contains("pass,word") && !worker.log().contains("pass%2Cword"));
}

fn notify(site: &Site, more: &[&str]) -> crate::support::program::CommandOutput {
    let mut command = lakemill();
    command.arg("notify").args(more).envs(site.env());
    call(&mut command)
}

#[test]
fn test_is_sent_from_the_command_line_and_the_api() {
    on_both(|kind| {
        let sink = WebhookSink::start();
        let site = site(kind, &sink);
        let web = site.web();
        let browser = Browser::log_in(&web);
        browser.send("POST", "/api/notifications/test", &[], b"").refused(409, "no_targets");
        notify(&site, &["--test"]).exits_with(1, &["no running worker has targets"]);
        let worker = site.worker();
        let listed = await_some("the names of targets", || {
            let page = browser.get("/api/notifications").ok().json();
            (!page["targets"].as_array().unwrap().is_empty()).then_some(page)
        });
        assert_eq!(listed["targets"][0]["host"], sink.address());
        let reply = browser.send("POST", "/api/notifications/test", &[], b"");
        assert_eq!(reply.status, 202);
        await_that("the test", || sink.events("test").iter().any(|one| one["id"] == reply.json()["id"]));
        let ran = notify(&site, &["--test"]).ok();
        assert!(ran.stdout.contains(&format!("sent     json at {}, attempt 1", sink.address())), "{}", ran.stdout);
        let listed = notify(&site, &["--json", "--limit", "5"]).ok().stdout;
        assert_eq!(listed.lines().count(), 2, "{listed}");

        let page = browser.get("/api/notifications?limit=1").ok().json();
        let next = page["next"].as_str().unwrap();
        let rest = browser.get(&format!("/api/notifications?limit=1&before={next}")).ok().json();
        assert_eq!(
            (&rest["next"], rest["notifications"][0]["id"] == page["notifications"][0]["id"]),
            (&json!(null), false)
        );
        browser.get("/api/notifications?before=x%20y").refused(400, "invalid_request");

        // Only the host of a target is known outside of its worker.
        let stored = String::from_utf8(browser.get("/api/notifications").ok().body).unwrap();
        for text in [stored, worker.log(), web.log(), listed] {
            assert!(!text.contains("secret-token") && !text.contains(KEY), "{text}");
        }
    });
}

#[test]
fn refused_test_fails_the_command() {
    let sink = WebhookSink::responding(|_| (403, None));
    let site = site(Kind::Embedded, &sink);
    let worker: Service = site.worker();
    worker.await_log("worker started");
    await_that("the names of targets", || !site.kv.notification_targets().unwrap().is_empty());
    let ran = notify(&site, &["--test"]);
    assert_eq!(ran.status, 1);
    assert!(ran.stdout.contains("responded with status 403"), "{}", ran.stdout);
}

#[test]
fn worker_without_targets_keeps_no_notifications() {
    let site = Site::new(Kind::Embedded);
    let _worker = site.worker();
    strict_pipeline(&site, &json!({}));
    fail(&site);
    assert_eq!(site.kv.notifications(None, 10).unwrap(), []);
    assert_eq!(site.kv.incident("run:p").unwrap().state, None);
    assert!(site.read(Bucket::Pipelines, "pipelines/p/pipeline.json").is_some());
}

#[test]
fn malformed_targets_stop_the_start_without_being_shown() {
    let mut site = Site::new(Kind::Embedded);
    site.set("SVC_NOTIFY_URL", "gopher+https://host.example/secret-token");
    let mut worker = site.start("worker", &[]);
    assert_eq!(worker.await_exit(), Some(78));
    let log = worker.log();
    assert!(log.contains("SVC_NOTIFY_URL") && log.contains("as target 1") && !log.contains("secret-token"), "{log}");
    site.set("SVC_NOTIFY_URL", "https://host.example/secret-token");
    let mut worker = site.start("worker", &[]);
    assert_eq!(worker.await_exit(), Some(78));
    assert!(worker.log().contains("SVC_NOTIFY_SECRET") && !worker.log().contains("secret-token"));
}

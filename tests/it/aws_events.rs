//! Events of new files as AWS sends them: EventBridge's own, and SNS's messages, posted to the worker.

use lakemill::domain::digest::base64;
use lakemill::domain::job::JobStatus;
use serde_json::{Value, json};

use crate::support::http_client::{get, send};
use crate::support::site::{Kind, Site, WEBHOOK_SECRET, await_that};
use crate::support::sns::{Sns, TOPIC};

fn basic(user: &str, password: &str) -> String {
    format!("Basic {}", base64(format!("{user}:{password}").as_bytes()))
}

/// Posts as SNS does for a URL with credentials. The status, and the code of an error.
fn post(at: &str, body: &Value) -> (u16, Value) {
    let headers = [("Authorization", basic("sns", WEBHOOK_SECRET)), ("x-amz-sns-topic-arn", TOPIC.to_owned())];
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let answer = send(at, "POST", "/events/s3", &headers, &body.to_string());
    (answer.status, answer.json())
}

fn s3_event(site: &Site, key: &str) -> Value {
    json!({ "Records": [{
        "eventVersion": "2.1", "eventSource": "aws:s3", "eventName": "ObjectCreated:Put",
        "s3": { "bucket": { "name": site.env()["S3_BUCKET_LAKE"] }, "object": { "key": key, "size": 3 } },
    }] })
}

fn eventbridge_event(site: &Site, key: &str) -> Value {
    json!({
        "version": "0", "id": "17793124-05d4-b198-2fde-7ededc63b103", "detail-type": "Object Created",
        "source": "aws.s3", "account": "111122223333", "time": "2021-11-12T00:00:00Z", "region": "ca-central-1",
        "detail": { "bucket": { "name": site.env()["S3_BUCKET_LAKE"] }, "object": { "key": key, "size": 3 } },
    })
}

#[test]
fn event_of_eventbridge_runs_its_pipeline() {
    let site = Site::new(Kind::Fleet);
    site.automatic_pipeline("p");
    let worker = site.worker();
    site.put("p", "in/a+b%20c.csv", "a,b\nx,1\n");
    let event = eventbridge_event(&site, "pipelines/p/in/a+b%20c.csv");
    assert_eq!(post(&worker.address(), &event), (200, json!({ "accepted": 1, "ignored": 0 })));
    await_that("the run", || site.records("p").iter().any(|job| job.status == JobStatus::Completed));
}

#[test]
fn client_with_credentials_in_its_url_is_asked_for_them() {
    let site = Site::new(Kind::Embedded);
    let worker = site.worker();
    let (at, event) = (worker.address(), s3_event(&site, "pipelines/p/x.csv").to_string());
    // A client such as Ceph or SNS sends the credentials of its URL, at once or when it is challenged.
    let of_sns = [("x-amz-sns-message-type", "Notification")];
    let mut response = ureq::Agent::new_with_config(ureq::Agent::config_builder().http_status_as_error(false).build())
        .post(format!("http://{at}/events/s3"))
        .header("x-amz-sns-message-type", "Notification")
        .send(event.as_bytes())
        .unwrap();
    assert_eq!(response.status(), 401);
    assert_eq!(response.headers()["www-authenticate"], "Basic realm=\"lakemill\"");
    drop(response.body_mut().read_to_vec());
    assert_eq!(send(&at, "POST", "/events/s3", &[("Authorization", &basic("", WEBHOOK_SECRET))], &event).status, 200);
    for wrong in [basic(WEBHOOK_SECRET, ""), basic("u", "wrong"), basic("u", ""), "Basic".into(), "Basic !".into()] {
        assert_eq!(send(&at, "POST", "/events/s3", &[("Authorization", &wrong)], &event).status, 401, "{wrong}");
    }
    assert_eq!(send(&at, "POST", "/events/s3", &of_sns, &event).status, 401);
    let metrics = get(&at, "/metrics").body;
    // A challenge is not a rejection.
    assert!(metrics.contains("lakemill_events_refused_total{reason=\"no_secret\"} 0\n"), "{metrics}");
    assert!(metrics.contains("lakemill_events_refused_total{reason=\"wrong_secret\"} 5\n"), "{metrics}");
}

#[test]
fn sns_subscription_is_confirmed_and_its_notifications_run_the_pipeline() {
    let (site, sns) = (Site::new(Kind::Fleet), Sns::new());
    site.automatic_pipeline("p");
    let worker = site.worker_with(&[("SVC_EVENTS_SNS_TOPICS", TOPIC), ("AWS_ENDPOINT_URL_SNS", &sns.url())]);
    let (at, nothing) = (worker.address(), json!({ "accepted": 0, "ignored": 0 }));
    assert_eq!(post(&at, &sns.confirmation("SubscriptionConfirmation")), (200, nothing.clone()));
    let confirmed = |target: &String| target.starts_with("/?Action=ConfirmSubscription&");
    assert_eq!(sns.requests().iter().filter(|target| confirmed(target)).count(), 1, "{:?}", sns.requests());
    worker.await_log("subscription to the SNS topic confirmed");
    site.put("p", "in/x.csv", "a,b\nx,1\n");
    let one = (200, json!({ "accepted": 1, "ignored": 0 }));
    for event in [s3_event(&site, "pipelines/p/in/x.csv"), eventbridge_event(&site, "pipelines/p/in/x.csv")] {
        for version in ["1", "2"] {
            assert_eq!(post(&at, &sns.notification(&event.to_string(), version)), one);
        }
    }
    await_that("the run", || site.records("p").iter().any(|job| job.status == JobStatus::Completed));
    assert_eq!(post(&at, &sns.confirmation("UnsubscribeConfirmation")), (200, nothing));
    worker.await_log("unsubscribed from the SNS topic");
    let requests = sns.requests();
    assert_eq!(requests.iter().filter(|target| target.ends_with(".pem")).count(), 1, "cached: {requests:?}");
    assert_eq!(requests.len(), 2, "nothing else is asked for: {requests:?}");
}

#[test]
fn sns_messages_without_a_valid_signature_of_a_permitted_topic_are_refused() {
    let (site, sns) = (Site::new(Kind::Embedded), Sns::new());
    let event = s3_event(&site, "pipelines/p/x.csv").to_string();
    let worker = site.worker_with(&[("SVC_EVENTS_SNS_TOPICS", TOPIC), ("AWS_ENDPOINT_URL_SNS", &sns.url())]);
    let at = worker.address();
    let refuse = |body: &Value, part: &str| {
        let (status, answer) = post(&at, body);
        assert_eq!((status, &answer["error"]), (400, &json!("invalid_event")), "{answer}");
        assert!(answer["message"].as_str().unwrap().contains(part), "{part}: {answer}");
    };
    let changed = |change: &Value| {
        let mut message = sns.notification(&event, "2");
        message.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        message
    };
    let other = "arn:aws:sns:eu-central-1:123456789012:other";
    refuse(&changed(&json!({ "TopicArn": other })), &format!("`{other}` is not in SVC_EVENTS_SNS_TOPICS"));
    refuse(
        &changed(&json!({ "Message": s3_event(&site, "pipelines/q/x.csv").to_string() })),
        "signature of the SNS message is wrong",
    );
    refuse(&changed(&json!({ "Timestamp": "2013-01-01T00:00:00Z" })), "signature of the SNS message is wrong");
    refuse(&changed(&json!({ "SignatureVersion": "1" })), "signature of the SNS message is wrong");
    refuse(&changed(&json!({ "Signature": "no base64" })), "signature of the SNS message is wrong");
    refuse(&changed(&json!({ "Signature": null })), "not an SNS message");
    refuse(&changed(&json!({ "SigningCertURL": "http://127.0.0.1:9/x.pem" })), "expected a URL of http://127.0.0.1:");
    refuse(&changed(&json!({ "SigningCertURL": format!("{}/text.pem", sns.url()) })), "no certificate in PEM");
    refuse(&sns.notification("hello", "2"), "`Message` of the SNS message: the body is not JSON");
    refuse(&sns.notification(&sns.notification(&event, "2").to_string(), "2"), "contains another SNS message");
    let mut foreign = sns.confirmation("SubscriptionConfirmation");
    foreign["SubscribeURL"] = format!("http://127.0.0.1:9/?Action=ConfirmSubscription&TopicArn={TOPIC}").into();
    refuse(&sns.signed(foreign), "SubscribeURL of the SNS message is");
    assert!(sns.requests().iter().all(|target| target.ends_with(".pem")), "{:?}", sns.requests());
    assert_eq!(site.kv.counts().unwrap().windows, 0);
    // Without a list, no topic is permitted.
    let strict = site.worker_with(&[("AWS_ENDPOINT_URL_SNS", &sns.url())]);
    let (status, answer) = post(&strict.address(), &sns.notification(&event, "2"));
    assert_eq!(status, 400, "{answer}");
    let line = "lakemill_events_refused_total{reason=\"untrusted_topic\"} 1\n";
    assert!(get(&strict.address(), "/metrics").body.contains(line));
}

#[test]
fn sns_retries_while_its_certificate_cannot_be_fetched() {
    let (site, sns) = (Site::new(Kind::Embedded), Sns::new());
    let worker = site.worker_with(&[("SVC_EVENTS_SNS_TOPICS", TOPIC), ("AWS_ENDPOINT_URL_SNS", &sns.url())]);
    let (at, message) = (worker.address(), sns.notification(&s3_event(&site, "pipelines/p/x.csv").to_string(), "2"));
    sns.set_unavailable(true);
    assert_eq!(post(&at, &message).0, 503);
    sns.set_unavailable(false);
    assert_eq!(post(&at, &message), (200, json!({ "accepted": 1, "ignored": 0 })));
    assert!(get(&at, "/metrics").body.contains("lakemill_events_refused_total{reason=\"topic_unavailable\"} 1\n"));
}

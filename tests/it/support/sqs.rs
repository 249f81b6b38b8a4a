//! Queues and topics in moto, by its HTTP API.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::s3_server::moto;

/// Where moto's queues are, unless a request is signed for another region.
pub const REGION: &str = "us-east-1";
const ACCOUNT: &str = "123456789012";

/// A queue in moto.
pub struct Queue {
    name: String,
}

fn authorization(service: &str) -> String {
    format!("AWS4-HMAC-SHA256 Credential=x/20200101/{REGION}/{service}/aws4_request, SignedHeaders=host, Signature=x")
}

fn call(action: &str, fields: &Value) -> Value {
    let mut response = ureq::post(format!("http://{}/", moto().address))
        .header("authorization", authorization("sqs"))
        .header("content-type", "application/x-amz-json-1.0")
        .header("x-amz-target", format!("AmazonSQS.{action}"))
        .send(fields.to_string().as_bytes())
        .unwrap();
    serde_json::from_str(&response.body_mut().read_to_string().unwrap()).unwrap_or_default()
}

impl Queue {
    /// Messages that were received are visible again after a second.
    pub fn new() -> Self {
        Self::with(&json!({ "VisibilityTimeout": "1" }))
    }

    /// Messages go to `dead` once they were received so often.
    pub fn with_dead_letters(dead: &Self, receives_max: u32) -> Self {
        let policy = json!({ "deadLetterTargetArn": dead.arn(), "maxReceiveCount": receives_max });
        Self::with(&json!({ "VisibilityTimeout": "1", "RedrivePolicy": policy.to_string() }))
    }

    fn with(attributes: &Value) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("q{}", COUNT.fetch_add(1, Ordering::Relaxed));
        call("CreateQueue", &json!({ "QueueName": name, "Attributes": attributes }));
        Self { name }
    }

    pub fn arn(&self) -> String {
        format!("arn:aws:sqs:{REGION}:{ACCOUNT}:{}", self.name)
    }

    pub fn url(&self) -> String {
        self.url_at(&format!("http://{}", moto().address))
    }

    /// Its URL behind a proxy.
    pub fn url_at(&self, server: &str) -> String {
        format!("{server}/{ACCOUNT}/{}", self.name)
    }

    pub fn send(&self, body: &str) {
        call("SendMessage", &json!({ "QueueUrl": self.url(), "MessageBody": body }));
    }

    /// All messages, hidden ones included.
    pub fn messages(&self) -> u64 {
        let names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"];
        let found = call("GetQueueAttributes", &json!({ "QueueUrl": self.url(), "AttributeNames": names }));
        names.iter().map(|name| found["Attributes"][name].as_str().unwrap().parse::<u64>().unwrap()).sum()
    }

    /// A topic that sends to the queue; its ARN.
    pub fn topic(&self) -> String {
        let of_sns = |form: &[(&str, &str)]| {
            let sent = ureq::post(format!("http://{}/", moto().address))
                .header("authorization", authorization("sns"))
                .send_form(form.iter().copied());
            sent.unwrap().body_mut().read_to_string().unwrap()
        };
        let topic = format!("arn:aws:sns:{REGION}:{ACCOUNT}:{}", self.name);
        let made = of_sns(&[("Action", "CreateTopic"), ("Name", &self.name)]);
        assert!(made.contains(&topic), "{made}");
        of_sns(&[("Action", "Subscribe"), ("TopicArn", &topic), ("Protocol", "sqs"), ("Endpoint", &self.arn())]);
        topic
    }
}

//! Events that AWS sends.

use super::env::{Expected, Var, VariableReader};
use super::object_store::{ObjectStoreConfig, StoreEndpoint};
use super::values::http_url;
use crate::domain::arn::Arn;

/// Maximum number of topics.
const TOPICS_MAX: usize = 20;

/// Which events of AWS are used.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EventsConfig {
    /// `SVC_EVENTS_SNS_TOPICS`: ARNs of the SNS topics whose messages `POST /events/s3` uses, separated by commas;
    /// default none.
    pub topics: Vec<Arn>,
    /// `SVC_EVENTS_SQS_URL`: the queue that workers take events from; default none.
    pub queue: Option<EventQueueConfig>,
    /// `AWS_ENDPOINT_URL_SNS`: address of SNS; default that of a topic's region.
    pub sns_endpoint: Option<String>,
}

/// A queue of SQS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventQueueConfig {
    /// `https://sqs.REGION.amazonaws.com/ACCOUNT/NAME`, or on another host.
    pub url: String,
    /// The region in the URL's host; else `OBJ_REGION`.
    pub region: String,
}

impl EventsConfig {
    pub(super) fn read(reader: &VariableReader<'_>, objects: &ObjectStoreConfig) -> Self {
        let mut queue = reader.optional(Var("SVC_EVENTS_SQS_URL", "SQS queue of events"), queue_url);
        if queue.is_some() && matches!(objects.endpoint, StoreEndpoint::Folder(_)) {
            reader.warn("SVC_EVENTS_SQS_URL is ignored: the lake is a folder, which the worker watches".to_owned());
            queue = None;
        }
        let region = |url: &str| region_of(url).unwrap_or_else(|| objects.region.clone());
        Self {
            queue: queue.map(|url| EventQueueConfig { region: region(&url), url }),
            topics: reader.or(Var("SVC_EVENTS_SNS_TOPICS", "SNS topics that send events"), Vec::new(), topics),
            sns_endpoint: reader.optional(Var("AWS_ENDPOINT_URL_SNS", "address of SNS"), http_url),
        }
    }
}

fn queue_url(text: &str) -> Result<String, Expected> {
    let expected = || "a queue's URL such as `https://sqs.eu-central-1.amazonaws.com/123456789012/my-queue`".to_owned();
    let url = http_url(text).map_err(|_| expected())?;
    let path = url.splitn(4, '/').nth(3).unwrap_or_default();
    match path.split('/').filter(|part| !part.is_empty()).count() {
        2.. => Ok(url),
        _ => Err(expected()),
    }
}

/// The region in the host of a queue's URL: the label after `sqs`, or before the older `queue`.
fn region_of(url: &str) -> Option<String> {
    let host = url::Url::parse(url).ok()?.host_str()?.to_owned();
    if !["amazonaws.com", "amazonaws.com.cn", "api.aws"].iter().any(|domain| host.ends_with(domain)) {
        return None;
    }
    let labels: Vec<&str> = host.split('.').collect();
    let after = labels.iter().position(|label| matches!(*label, "sqs" | "sqs-fips")).and_then(|at| labels.get(at + 1));
    let region = match (after, labels.as_slice()) {
        (Some(region), _) => region,
        (None, ["queue", ..]) => "us-east-1",
        (None, [region, "queue", ..]) => region,
        (None, _) => return None,
    };
    Some(region.to_owned())
}

fn topics(text: &str) -> Result<Vec<Arn>, Expected> {
    let texts: Vec<&str> = text.split([',', '\n']).map(str::trim).filter(|text| !text.is_empty()).collect();
    if texts.len() > TOPICS_MAX {
        return Err(format!("at most {TOPICS_MAX} ARNs, found {}", texts.len()));
    }
    let of_sns = |text: &str| Arn::parse(text).ok().filter(|arn| arn.is_of_aws() && arn.service == "sns");
    let expected = || "ARNs of SNS topics such as `arn:aws:sns:eu-central-1:123456789012:my-topic`".to_owned();
    texts.into_iter().map(|text| of_sns(text).ok_or_else(expected)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn region_is_read_from_the_hosts_of_aws() {
        for (host, region) in [
            ("sqs.eu-central-1.amazonaws.com", Some("eu-central-1")),
            ("sqs.cn-north-1.amazonaws.com.cn", Some("cn-north-1")),
            ("sqs-fips.us-west-2.amazonaws.com", Some("us-west-2")),
            ("sqs.eu-west-1.api.aws", Some("eu-west-1")),
            ("vpce-0a-1b.sqs.us-east-2.vpce.amazonaws.com", Some("us-east-2")),
            ("eu-west-1.queue.amazonaws.com", Some("eu-west-1")),
            ("queue.amazonaws.com", Some("us-east-1")),
            ("localhost:4566", None),
            ("sqs.eu-central-1.localhost.localstack.cloud:4566", None),
        ] {
            assert_eq!(region_of(&format!("https://{host}/123456789012/q")).as_deref(), region, "{host}");
        }
    }
}

//! Events that AWS sends.

use super::env::{Expected, Var, VariableReader};
use super::values::http_url;
use crate::domain::arn::Arn;

/// Most topics.
const TOPICS_MAX: usize = 20;

/// Which events of AWS are used.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EventsConfig {
    /// `SVC_EVENTS_SNS_TOPICS`: ARNs of the SNS topics whose messages `POST /events/s3` uses, separated by commas;
    /// default none.
    pub topics: Vec<Arn>,
    /// `AWS_ENDPOINT_URL_SNS`: address of SNS; default that of a topic's region.
    pub sns_endpoint: Option<String>,
}

impl EventsConfig {
    pub(super) fn read(reader: &VariableReader<'_>) -> Self {
        Self {
            topics: reader.or(Var("SVC_EVENTS_SNS_TOPICS", "SNS topics that send events"), Vec::new(), topics),
            sns_endpoint: reader.optional(Var("AWS_ENDPOINT_URL_SNS", "address of SNS"), http_url),
        }
    }
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

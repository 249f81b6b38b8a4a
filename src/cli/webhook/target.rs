//! The receiver of a bucket's events that `webhook install` sets up, and its further requirements.

use super::super::args::WebhookTarget;
use crate::adapters::s3::RuleKind;
use crate::domain::arn::Arn;

const STORE_REQUIREMENTS: &str = "Further requirements of the store:\n\
 - The ARN's target must post to http://WORKER:PORT/events/s3 and send SVC_WEBHOOK_SECRET as its token.\n\
 - Stores with an allow-list for outbound requests (RustFS) must have the worker's origin in it.\n\
 - Some stores read rules and targets only at startup: restart such a store now.\n\
 Run `lakemill doctor` to check the connection from this machine.";
const TOPIC_REQUIREMENTS: &str = "The store required a topic rule instead of a queue rule (as Ceph's radosgw does): the ARN \
 must be that of a topic whose\n\
 push endpoint is the worker's /events/s3.";
const EVENTBRIDGE_REQUIREMENTS: &str = "EventBridge gets all events of the bucket. Further requirements:\n\
 - A rule of EventBridge with `\"source\": [\"aws.s3\"]`, `\"detail-type\": [\"Object Created\"]` and the bucket's name \
 must send them on:\n\
 \x20  to an SQS queue, whose URL is SVC_EVENTS_SQS_URL of the workers,\n\
 \x20  or to an API destination that posts to a worker's /events/s3 with SVC_WEBHOOK_SECRET as the password.\n\
 `lakemill webhook show` can't see that rule.";

/// A receiver of a bucket's events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    /// A webhook target that is configured in the store and posts to a worker.
    OfStore {
        arn: String,
    },
    Sqs(Arn),
    Sns(Arn),
    EventBridge,
}

impl Target {
    /// An ARN of AWS names a queue or topic of AWS, by whichever option it was given.
    pub(super) fn of(options: &WebhookTarget) -> Self {
        let WebhookTarget { arn, sqs, sns, eventbridge: _ } = options;
        let of_aws = |text: &String| Arn::parse(text).ok().filter(Arn::is_of_aws);
        match (arn, sqs, sns) {
            (_, Some(queue), _) => Self::Sqs(queue.clone()),
            (_, _, Some(topic)) => Self::Sns(topic.clone()),
            (Some(arn), _, _) => match of_aws(arn) {
                Some(queue) if queue.service == "sqs" => Self::Sqs(queue),
                Some(topic) if topic.service == "sns" => Self::Sns(topic),
                _ => Self::OfStore { arn: arn.clone() },
            },
            (None, None, None) => Self::EventBridge,
        }
    }

    /// The ARN of its rules; EventBridge has none.
    pub(super) fn arn(&self) -> Option<String> {
        match self {
            Self::OfStore { arn } => Some(arn.clone()),
            Self::Sqs(arn) | Self::Sns(arn) => Some(arn.to_string()),
            Self::EventBridge => None,
        }
    }

    /// Advice for a rule that AWS refuses.
    pub(super) fn advice(&self) -> Option<String> {
        let of = |arn: &Arn, action: &str| {
            format!(
                "S3 takes a rule only if the policy of `{arn}` lets s3.amazonaws.com `{action}`, and if it is in the \
                 bucket's region"
            )
        };
        match self {
            Self::Sqs(arn) => Some(of(arn, "sqs:SendMessage")),
            Self::Sns(arn) => Some(of(arn, "sns:Publish")),
            Self::OfStore { .. } | Self::EventBridge => None,
        }
    }

    /// Further requirements, as printed. `kind`: that of the rule.
    pub(super) fn requirements(&self, kind: RuleKind) -> String {
        match self {
            Self::OfStore { .. } if kind == RuleKind::Topic => format!("{TOPIC_REQUIREMENTS}\n{STORE_REQUIREMENTS}"),
            Self::OfStore { .. } => STORE_REQUIREMENTS.to_owned(),
            Self::Sqs(arn) => {
                let Arn { region, account, resource, .. } = arn;
                let domain = arn.domain();
                format!(
                    "Workers take the events from the queue. Further requirements:\n\
                     - All workers have SVC_EVENTS_SQS_URL=https://sqs.{region}.{domain}/{account}/{resource}\n\
                     - Their keys permit sqs:ReceiveMessage, sqs:DeleteMessage and sqs:GetQueueAttributes on it.\n\
                     Run `lakemill doctor` to check the queue."
                )
            }
            Self::Sns(arn) => format!(
                "The topic sends the events to its subscriptions. Further requirements, one of:\n\
                 - A worker is subscribed by HTTPS, to https://any:SVC_WEBHOOK_SECRET@WORKER/events/s3, and all workers \
                 have\n\
                 \x20 SVC_EVENTS_SNS_TOPICS={arn}\n\
                 - A queue of SQS is subscribed, and all workers have its URL in SVC_EVENTS_SQS_URL."
            ),
            Self::EventBridge => EVENTBRIDGE_REQUIREMENTS.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arns_of_aws_are_recognized_and_those_of_other_stores_are_not() {
        let of = |arn: &str| {
            let options = WebhookTarget { arn: Some(arn.to_owned()), sqs: None, sns: None, eventbridge: false };
            Target::of(&options)
        };
        assert!(matches!(of("arn:aws:sqs:eu-central-1:123456789012:q"), Target::Sqs(_)));
        assert!(matches!(of("arn:aws:sns:eu-central-1:123456789012:t"), Target::Sns(_)));
        for arn in ["arn:aws:sns:default::t", "arn:minio:sqs::lakemill:webhook", "arn:aws:lambda:r:123456789012:f"] {
            assert_eq!(of(arn), Target::OfStore { arn: arn.to_owned() });
        }
    }
}

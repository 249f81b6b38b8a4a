//! Checks whether the queue of events can be used.

use super::check::CheckResult;
use super::objects::without;
use super::surroundings::Surroundings;
use crate::cli::services::open_event_queue;

pub(super) fn state(around: &Surroundings) -> Vec<CheckResult> {
    let Ok(loaded) = &around.worker else {
        return vec![CheckResult::skipped("the worker's environment is incomplete")];
    };
    let backend = match around.backend() {
        Ok(backend) => backend,
        Err(missing) => return vec![without(missing)],
    };
    let queue = match open_event_queue(&loaded.config, backend) {
        Ok(Some(queue)) => queue,
        Ok(None) => return vec![CheckResult::skipped("SVC_EVENTS_SQS_URL is not set")],
        Err(error) => return vec![CheckResult::problem(error, "correct SVC_EVENTS_SQS_URL")],
    };
    vec![match queue.state() {
        Ok(state) => {
            let found = format!("`{}` has about {} messages", queue.name(), state.waiting);
            match state.receives_max {
                Some(count) => {
                    CheckResult::ok(format!("{found}; unusable ones become dead letters after {count} receipts"))
                }
                None => CheckResult::warning(
                    format!("{found}, and no dead-letter queue: unusable messages are deleted"),
                    "give the queue a redrive policy",
                ),
            }
        }
        Err(error) => CheckResult::problem(
            error.to_string(),
            "check SVC_EVENTS_SQS_URL, the network, and that the keys permit sqs:ReceiveMessage, sqs:DeleteMessage and \
             sqs:GetQueueAttributes",
        ),
    }]
}

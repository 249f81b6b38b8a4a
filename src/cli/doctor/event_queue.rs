//! Checks whether the queue of events can be used.

use super::check::CheckResult;
use super::context::DoctorContext;
use super::objects::store_missing;
use super::worker;
use crate::cli::services::open_event_queue;

pub(super) fn state(context: &DoctorContext) -> Vec<CheckResult> {
    vec![checked(context).unwrap_or_else(|result| result)]
}

fn checked(context: &DoctorContext) -> Result<CheckResult, CheckResult> {
    let config = worker::config(context)?;
    let opened = open_event_queue(config, context.backend().map_err(store_missing)?);
    let opened = opened.map_err(|error| CheckResult::problem(error, "correct SVC_EVENTS_SQS_URL"))?;
    let queue = opened.ok_or_else(|| CheckResult::skipped("SVC_EVENTS_SQS_URL is not set"))?;
    let state = queue.state().map_err(|error| {
        CheckResult::problem(
            error.to_string(),
            "check SVC_EVENTS_SQS_URL, the network, and that the keys permit sqs:ReceiveMessage, sqs:DeleteMessage and \
             sqs:GetQueueAttributes",
        )
    })?;
    let found = format!("`{}` has about {} messages", queue.name(), state.waiting);
    Ok(match state.receives_max {
        Some(count) => CheckResult::ok(format!("{found}; unusable ones become dead letters after {count} receipts")),
        None => CheckResult::warning(
            format!("{found}, and no dead-letter queue: unusable messages are deleted"),
            "give the queue a redrive policy",
        ),
    })
}

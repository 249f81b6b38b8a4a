//! `lakemill notify`: shows notifications, and sends a test. Workers send them: this command needs no target.

use std::io::Write;
use std::time::Duration;

use super::args::NotifyArgs;
use super::command_error::CommandError;
use super::environment;
use super::plain::plain;
use super::services::Services;
use crate::config::OperatorConfig;
use crate::domain::notification::{DeliveryState, Notification, NotificationRecord};
use crate::ports::notifications::Notifications;
use crate::runtime::rfc3339;
use crate::runtime::threads::Instant;

/// How long `--test` waits for the first attempts, and how often it looks.
const TEST_TIME_MAX: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// False if a test was not delivered to all targets.
///
/// # Errors
/// The environment is invalid, a store failed, or no worker has targets.
pub fn run(args: &NotifyArgs) -> Result<bool, CommandError> {
    let config = environment::load(args.data.as_deref(), OperatorConfig::from_env)?;
    let services = Services::open(&config.objects, &config.kv)?;
    let kv = &*services.kv;
    if args.test {
        let found = send_test(kv, &services)?;
        write(std::slice::from_ref(&found), args.json)?;
        let is_sent = |record: &NotificationRecord| {
            record.deliveries.iter().all(|delivery| delivery.state == DeliveryState::Sent)
        };
        return Ok(!found.deliveries.is_empty() && is_sent(&found));
    }
    let found = kv.notifications(None, usize::from(args.limit)).map_err(|error| error.to_string())?;
    write(&found, args.json)?;
    Ok(true)
}

/// Waits until every target was tried once.
fn send_test(kv: &dyn Notifications, services: &Services) -> Result<NotificationRecord, CommandError> {
    if kv.notification_targets().map_err(|error| error.to_string())?.is_empty() {
        return Err("no running worker has targets for notifications: set SVC_NOTIFY_URL of the workers"
            .to_owned()
            .into());
    }
    let notification = Notification::test(services.clock.now());
    if !kv.add_notification(&notification).map_err(|error| error.to_string())? {
        return Err("too many notifications are pending: check the targets".to_owned().into());
    }
    let began = Instant::now();
    loop {
        // It is among the newest.
        let found = kv.notifications(None, 100).map_err(|error| error.to_string())?;
        let found = found.into_iter().find(|record| record.notification.id == notification.id);
        if let Some(found) = found {
            let tried = found.deliveries.iter().all(|delivery| delivery.attempts > 0);
            if !found.deliveries.is_empty() && tried {
                return Ok(found);
            }
        }
        if began.elapsed() >= TEST_TIME_MAX {
            let seconds = TEST_TIME_MAX.as_secs();
            return Err(format!("no worker sent the test within {seconds} s; it stays pending").into());
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

fn write(records: &[NotificationRecord], as_json: bool) -> Result<(), String> {
    let mut out = std::io::stdout().lock();
    let written = records.iter().try_for_each(|record| match as_json {
        true => {
            serde_json::to_writer(&mut out, record)?;
            writeln!(out)
        }
        false => write_text(record, &mut out),
    });
    written.and_then(|()| out.flush()).map_err(|error| error.to_string())
}

fn write_text(record: &NotificationRecord, out: &mut dyn Write) -> std::io::Result<()> {
    let NotificationRecord { notification, deliveries, due_at } = record;
    let (at, event) = (rfc3339(notification.at), notification.event.as_str());
    writeln!(out, "{at}  {event:<16}  {}", plain(&notification.title))?;
    for delivery in deliveries {
        let (kind, host) = (delivery.target.kind.as_str(), &delivery.target.host);
        let state = match delivery.state {
            DeliveryState::Sent => "sent",
            DeliveryState::Pending => "pending",
            DeliveryState::Failed => "failed",
        };
        let error = delivery.error.as_deref().map_or_else(String::new, |error| format!(": {}", plain(error)));
        writeln!(out, "    {state:<7}  {kind} at {host}, attempt {}{error}", delivery.attempts)?;
    }
    match due_at {
        Some(due) => writeln!(out, "    due at {}", rfc3339(*due)),
        None => Ok(()),
    }
}

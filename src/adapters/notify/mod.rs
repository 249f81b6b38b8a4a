//! Notification targets: webhooks, chats, mail servers.
//!
//! Invariants: a call ends within its timeouts, and reads a bounded response; redirects are not followed; text from
//! outside (names of files, errors) is text at every target, never markup; no error names more of a target than its host.

mod http;
mod mail;
mod payload;

use std::sync::Arc;

use crate::config::{NetworkConfig, NotifyConfig, NotifyRoute};
use crate::ports::NotificationTarget;

/// Opens the targets; they need not respond yet.
///
/// # Errors
/// The target that can't be used, without its secrets.
pub fn open(config: &NotifyConfig, network: &NetworkConfig) -> Result<Vec<Arc<dyn NotificationTarget>>, String> {
    let mut targets: Vec<Arc<dyn NotificationTarget>> = Vec::with_capacity(config.targets.len());
    for target in &config.targets {
        let failed =
            |error: String| format!("SVC_NOTIFY_URL: {} at {}: {error}", target.name.kind.as_str(), target.name.host);
        targets.push(match &target.route {
            NotifyRoute::Http(_) | NotifyRoute::Ntfy { .. } => {
                Arc::new(http::HttpTarget::open(target, &config.secret, network).map_err(failed)?)
            }
            NotifyRoute::Mail(route) => {
                Arc::new(mail::MailTarget::open(&target.name, route, network.ca_file.as_deref()).map_err(failed)?)
            }
        });
    }
    Ok(targets)
}

//! Sends notifications by SMTP.

use std::path::Path;
use std::time::{Duration, SystemTime};

use lettre::message::header::ContentType;
use lettre::message::{Mailbox, Message};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Certificate, Tls, TlsParameters};
use lettre::{Address, SmtpTransport, Transport};

use super::payload;
use crate::config::{MailRoute, MailTls, Secret};
use crate::domain::notification::{Notification, TargetName};
use crate::domain::text::clipped;
use crate::ports::NotificationTarget;
use crate::ports::notification_target::DeliveryError;

/// Timeout of connecting, and of each command and reply.
const STEP_TIME_MAX: Duration = Duration::from_secs(5);

/// A mail server.
pub(super) struct MailTarget {
    name: TargetName,
    transport: SmtpTransport,
    from: Mailbox,
    to: Vec<Mailbox>,
    /// Texts that no error may show.
    hidden: Vec<Secret>,
}

impl MailTarget {
    pub(super) fn open(name: &TargetName, route: &MailRoute, ca_file: Option<&Path>) -> Result<Self, String> {
        let tls = match route.tls {
            MailTls::None => Tls::None,
            MailTls::StartTls => Tls::Required(parameters(&route.host, ca_file)?),
            MailTls::Implicit => Tls::Wrapper(parameters(&route.host, ca_file)?),
        };
        // "Dangerous" is the lack of TLS, which is set here.
        let mut builder =
            SmtpTransport::builder_dangerous(&route.host).port(route.port).timeout(Some(STEP_TIME_MAX)).tls(tls);
        let mut hidden = Vec::new();
        if let Some((user, password)) = &route.credentials {
            builder = builder.credentials(Credentials::new(user.reveal().to_owned(), password.reveal().to_owned()));
            hidden = vec![password.clone(), user.clone()];
        }
        let mailbox = |text: &String| {
            let address: Address = text.parse().map_err(|error| format!("mail address `{text}`: {error}"))?;
            Ok::<_, String>(address)
        };
        let from = Mailbox::new(Some("Lakemill".to_owned()), mailbox(&route.from)?);
        let to = route.to.iter().map(|text| Ok(Mailbox::new(None, mailbox(text)?))).collect::<Result<_, String>>()?;
        Ok(Self { name: name.clone(), transport: builder.build(), from, to, hidden })
    }

    fn message(&self, notification: &Notification) -> Result<Message, lettre::error::Error> {
        let mut text = payload::text(notification);
        if let Some(link) = &notification.link {
            text.push_str(&format!("\n\n{link}"));
        }
        text.push_str(&format!("\n\n{}, {}\n", notification.event.as_str(), crate::runtime::rfc3339(notification.at)));
        let mut builder = Message::builder()
            .from(self.from.clone())
            .subject(format!("[Lakemill] {}", notification.title))
            .message_id(Some(format!("<{}@lakemill>", notification.id)))
            .date(SystemTime::from(notification.at));
        for to in &self.to {
            builder = builder.to(to.clone());
        }
        builder.header(ContentType::TEXT_PLAIN).body(text)
    }

    /// The server's words on one line, cut, without secrets.
    fn describe(&self, error: &lettre::transport::smtp::Error) -> String {
        let mut text = error.to_string();
        for source in std::iter::successors(std::error::Error::source(error), |error| error.source()) {
            let more = source.to_string();
            if !text.contains(&more) {
                text = format!("{text}: {more}");
            }
        }
        for secret in self.hidden.iter().filter(|secret| !secret.reveal().is_empty()) {
            text = text.replace(secret.reveal(), "…");
        }
        clipped(&text.replace(char::is_control, " "))
    }
}

impl NotificationTarget for MailTarget {
    fn name(&self) -> &TargetName {
        &self.name
    }

    fn send(&self, notification: &Notification) -> Result<(), DeliveryError> {
        let failed = |message: String| DeliveryError { message, retry_after: None };
        let message =
            self.message(notification).map_err(|error| failed(format!("writing the mail failed: {error}")))?;
        match self.transport.send(&message) {
            Ok(_) => Ok(()),
            Err(error) => Err(failed(self.describe(&error))),
        }
    }
}

fn parameters(host: &str, ca_file: Option<&Path>) -> Result<TlsParameters, String> {
    let mut builder = TlsParameters::builder(host.to_owned());
    if let Some(path) = ca_file {
        let failed = |error: &dyn std::fmt::Display| format!("SVC_CA_FILE `{}`: {error}", path.display());
        let pem = std::fs::read(path).map_err(|error| failed(&error))?;
        builder = builder.add_root_certificate(Certificate::from_pem(&pem).map_err(|error| failed(&error))?);
    }
    builder.build().map_err(|error| format!("TLS: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::notification::{NotificationEvent, TargetKind};
    use chrono::DateTime;

    fn target() -> MailTarget {
        let name = TargetName { id: "t".into(), kind: TargetKind::Smtp, host: "h".into() };
        let route = MailRoute {
            host: "127.0.0.1".into(),
            port: 1,
            tls: MailTls::None,
            credentials: None,
            from: "lake@example.org".into(),
            to: vec!["a@example.org".into(), "b@example.org".into()],
        };
        MailTarget::open(&name, &route, None).unwrap()
    }

    #[test]
    fn outside_text_adds_no_header() {
        let at = DateTime::from_timestamp(1_700_000_000, 0).unwrap();
        let title = "x\r\nBcc: evil@example.org\r\n\r\nhello é";
        let notification = Notification::new(NotificationEvent::RunFailed, at, title, ".\r\n.\r\nQUIT");
        let mail = String::from_utf8(target().message(&notification).unwrap().formatted()).unwrap();
        let (head, _) = mail.split_once("\r\n\r\n").unwrap();
        assert!(!head.lines().any(|line| line.starts_with("Bcc")), "{head}");
        assert!(head.contains("Subject: ") && head.contains("a@example.org, b@example.org"), "{head}");
        assert!(head.contains("Date: Tue, 14 Nov 2023 22:13:20"), "{head}");
    }

    #[test]
    fn unreachable_server_is_an_error_without_secrets() {
        let at = DateTime::from_timestamp(1, 0).unwrap();
        let target = MailTarget { hidden: vec![Secret::new("refused")], ..target() };
        let error = target.send(&Notification::new(NotificationEvent::Test, at, "t", "")).unwrap_err();
        assert!(!error.message.contains("refused") && !error.message.is_empty(), "{error}");
    }
}

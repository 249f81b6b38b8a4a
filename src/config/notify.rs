//! Notification targets.

use std::net::IpAddr;

use url::{Host, Url};

use super::env::{Expected, Var, VariableReader};
use super::secret::Secret;
use super::values::origin;
use crate::domain::digest::sha256_hex;
use crate::domain::limits::NOTIFICATION_TARGETS_MAX;
use crate::domain::notification::{TargetKind, TargetName};

/// Shortest `SVC_NOTIFY_SECRET`, in bytes.
const SECRET_BYTES_MIN: usize = 16;
/// Hex digits of a target's id.
const ID_DIGITS: usize = 16;
/// Ports of mail submission: with STARTTLS, and with TLS from the start.
const SMTP_PORT: u16 = 587;
const SMTPS_PORT: u16 = 465;

/// Notification targets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NotifyConfig {
    /// `SVC_NOTIFY_URL`: targets, separated by commas or line breaks; default none. May come from a file.
    pub targets: Vec<NotifyTarget>,
    /// `SVC_NOTIFY_SECRET`: key that signs notifications to JSON targets, required if there is one; may come from a file.
    pub secret: Secret,
    /// `SVC_PUBLIC_URL`: the web service's origin, for links in notifications; default none.
    pub public_url: Option<String>,
}

/// A target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotifyTarget {
    pub name: TargetName,
    pub route: NotifyRoute,
}

/// How a target is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotifyRoute {
    /// An HTTP POST to this URL, `http` or `https`.
    Http(Secret),
    /// Publishing to an ntfy topic.
    Ntfy {
        /// `http` or `https`, without the topic.
        server: Secret,
        topic: Secret,
        /// The value of the `Authorization` header.
        authorization: Option<Secret>,
    },
    Mail(MailRoute),
}

/// A mail server, with sender and recipients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailRoute {
    pub host: String,
    pub port: u16,
    pub tls: MailTls,
    pub credentials: Option<(Secret, Secret)>,
    pub from: String,
    /// At least one.
    pub to: Vec<String>,
}

/// How the connection to a mail server is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MailTls {
    /// By STARTTLS, required.
    StartTls,
    /// From the start.
    Implicit,
    /// Not at all.
    None,
}

impl NotifyConfig {
    pub(super) fn read(reader: &VariableReader<'_>) -> Self {
        let targets = reader.optional_secret(Var("SVC_NOTIFY_URL", "notification targets"), targets);
        let targets = targets.unwrap_or_default();
        let secret_var = Var("SVC_NOTIFY_SECRET", "key that signs notifications");
        let secret = match targets.iter().any(|target| target.name.kind == TargetKind::Json) {
            true => reader.required_secret(secret_var, signing_key),
            false => reader.optional_secret(secret_var, signing_key).unwrap_or_default(),
        };
        let public_url = reader.optional(Var("SVC_PUBLIC_URL", "public URL of the service"), origin);
        Self { targets, secret, public_url }
    }
}

fn signing_key(text: &str) -> Result<Secret, Expected> {
    match text.len() >= SECRET_BYTES_MIN {
        true => Ok(Secret::new(text)),
        false => Err(format!("at least {SECRET_BYTES_MIN} bytes")),
    }
}

fn targets(text: &str) -> Result<Vec<NotifyTarget>, Expected> {
    let texts: Vec<&str> = text.split([',', '\n']).map(str::trim).filter(|text| !text.is_empty()).collect();
    if texts.len() > NOTIFICATION_TARGETS_MAX {
        return Err(format!("at most {NOTIFICATION_TARGETS_MAX} targets, found {}", texts.len()));
    }
    let mut found: Vec<NotifyTarget> = Vec::with_capacity(texts.len());
    for (at, text) in texts.into_iter().enumerate() {
        let target = target(text).map_err(|expected| format!("as target {}: {expected}", at + 1))?;
        if found.iter().all(|known| known.name.id != target.name.id) {
            found.push(target);
        }
    }
    Ok(found)
}

const FORMS: &str = "`https://…` (JSON), `slack+https://…`, `teams+https://…`, `mattermost+https://…`, \
                     `ntfy+https://host/topic`, `smtp://…` or `smtps://…`";

fn target(text: &str) -> Result<NotifyTarget, Expected> {
    let (scheme, _) = text.split_once("://").ok_or(FORMS)?;
    let (kind, url) = match scheme.split_once('+') {
        Some(("slack", _)) => (TargetKind::Slack, &text["slack+".len()..]),
        Some(("teams", _)) => (TargetKind::Teams, &text["teams+".len()..]),
        Some(("mattermost", _)) => (TargetKind::Mattermost, &text["mattermost+".len()..]),
        Some(("ntfy", _)) => (TargetKind::Ntfy, &text["ntfy+".len()..]),
        Some(("json", _)) => (TargetKind::Json, &text["json+".len()..]),
        Some(_) => return Err(FORMS.into()),
        None if matches!(scheme, "smtp" | "smtps") => (TargetKind::Smtp, text),
        None => (TargetKind::Json, text),
    };
    let url = Url::parse(url).map_err(|error| format!("a URL, but {error}"))?;
    let route = match kind {
        TargetKind::Smtp => NotifyRoute::Mail(mail(&url)?),
        TargetKind::Ntfy => ntfy(&url)?,
        TargetKind::Json | TargetKind::Slack | TargetKind::Teams | TargetKind::Mattermost => {
            check_http(&url)?;
            if has_user(&url) {
                return Err("no user and password in the URL".into());
            }
            NotifyRoute::Http(Secret::new(url.as_str()))
        }
    };
    let host = url.host_str().unwrap_or_default().to_owned();
    let host = url.port().map_or_else(|| host.clone(), |port| format!("{host}:{port}"));
    let mut id = sha256_hex(format!("{} {url}", kind.as_str()).as_bytes());
    id.truncate(ID_DIGITS);
    Ok(NotifyTarget { name: TargetName { id, kind, host }, route })
}

fn has_user(url: &Url) -> bool {
    !url.username().is_empty() || url.password().is_some()
}

fn check_http(url: &Url) -> Result<(), Expected> {
    let ok = matches!(url.scheme(), "http" | "https") && url.host_str().is_some_and(|host| !host.is_empty());
    match ok && url.fragment().is_none() {
        true => Ok(()),
        false => Err(FORMS.into()),
    }
}

fn ntfy(url: &Url) -> Result<NotifyRoute, Expected> {
    check_http(url)?;
    let topic = url.path().trim_matches('/').to_owned();
    let is_topic = |b: u8| b.is_ascii_alphanumeric() || b"-_".contains(&b);
    if topic.is_empty() || !topic.bytes().all(is_topic) || url.query().is_some() {
        return Err("an ntfy topic as the path: letters, digits, `-` and `_`".into());
    }
    let password = decoded(url.password().unwrap_or_default())?;
    let user = decoded(url.username())?;
    let authorization = match (user.is_empty(), password.is_empty()) {
        (true, true) => None,
        (true, false) => Some(Secret::new(format!("Bearer {password}"))),
        (false, _) => {
            let both = format!("{user}:{password}");
            Some(Secret::new(format!("Basic {}", crate::domain::digest::base64(both.as_bytes()))))
        }
    };
    if authorization.as_ref().is_some_and(|text| text.reveal().chars().any(char::is_control)) {
        return Err("a token without control characters".into());
    }
    let mut server = url.clone();
    server.set_path("/");
    let _ = server.set_username("");
    let _ = server.set_password(None);
    Ok(NotifyRoute::Ntfy { server: Secret::new(server.as_str()), topic: Secret::new(topic), authorization })
}

const MAIL: &str = "`smtp://user:password@host:587?from=…&to=…`, or `smtps://…`";

fn mail(url: &Url) -> Result<MailRoute, Expected> {
    let host = url.host_str().filter(|host| !host.is_empty()).ok_or(MAIL)?;
    let (mut from, mut to) = (None, Vec::new());
    let (mut tls, port) = match url.scheme() {
        "smtps" => (MailTls::Implicit, SMTPS_PORT),
        _ => (MailTls::StartTls, SMTP_PORT),
    };
    for (name, value) in url.query_pairs() {
        match (&*name, &*value) {
            ("from", address) => from = Some(mail_address(address)?),
            ("to", address) => to.push(mail_address(address)?),
            ("tls", "none") if tls == MailTls::StartTls => tls = MailTls::None,
            _ => return Err(format!("only `from`, `to` and, with `smtp://`, `tls=none` after `?`, as in {MAIL}")),
        }
    }
    let (Some(from), false) = (from, to.is_empty()) else {
        return Err(format!("`from` and at least one `to`, as in {MAIL}"));
    };
    let credentials = match has_user(url) {
        true => {
            let password = decoded(url.password().unwrap_or_default())?;
            Some((Secret::new(decoded(url.username())?), Secret::new(password)))
        }
        false => None,
    };
    if tls == MailTls::None && credentials.is_some() && !is_loopback(host) {
        return Err("no `tls=none` with a password, except for this machine".into());
    }
    let host = host.trim_matches(['[', ']']).to_owned();
    Ok(MailRoute { host, port: url.port().unwrap_or(port), tls, credentials, from, to })
}

fn is_loopback(host: &str) -> bool {
    match Host::parse(host) {
        Ok(Host::Ipv4(address)) => address.is_loopback(),
        Ok(Host::Ipv6(address)) => address.is_loopback(),
        // The host of a URL whose scheme isn't special is opaque.
        Ok(Host::Domain(name)) => name == "localhost" || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback()),
        Err(_) => false,
    }
}

/// The mail library checks the rest.
fn mail_address(text: &str) -> Result<String, Expected> {
    let ok = text.split('@').filter(|part| !part.is_empty()).count() == 2
        && text.matches('@').count() == 1
        && !text.chars().any(|c| c.is_whitespace() || c.is_control() || "<>,;".contains(c));
    if ok { Ok(text.to_owned()) } else { Err("plain mail addresses such as `ops@example.org`".into()) }
}

fn decoded(text: &str) -> Result<String, Expected> {
    let decoded = percent_encoding::percent_decode_str(text).decode_utf8();
    decoded.map(|text| text.into_owned()).map_err(|_| "UTF-8 after percent-decoding".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> NotifyTarget {
        let mut found = targets(text).unwrap();
        assert_eq!(found.len(), 1);
        found.remove(0)
    }

    #[test]
    fn kind_depends_on_the_prefix_and_never_on_the_host() {
        for (text, kind, host) in [
            ("https://hooks.slack.com/services/x", TargetKind::Json, "hooks.slack.com"),
            ("json+http://10.0.0.1:81/x?y=z", TargetKind::Json, "10.0.0.1:81"),
            ("slack+https://hooks.slack.com/services/x", TargetKind::Slack, "hooks.slack.com"),
            ("teams+https://h/x", TargetKind::Teams, "h"),
            ("mattermost+http://h:8065/hooks/x", TargetKind::Mattermost, "h:8065"),
            ("ntfy+https://ntfy.sh/topic", TargetKind::Ntfy, "ntfy.sh"),
            ("smtp://u:p@h?from=a@b&to=c@d", TargetKind::Smtp, "h"),
        ] {
            let target = one(text);
            assert_eq!((target.name.kind, target.name.host.as_str()), (kind, host), "{text}");
        }
    }

    #[test]
    fn several_targets_are_separated_by_commas_or_lines() {
        let text = "https://a/1, slack+https://b/2\nhttps://a/1\n\nntfy+https://c/t\n";
        let kinds: Vec<_> = targets(text).unwrap().into_iter().map(|target| target.name.kind).collect();
        assert_eq!(kinds, [TargetKind::Json, TargetKind::Slack, TargetKind::Ntfy], "a repeated one counts once");
        let many: Vec<String> = (0..=NOTIFICATION_TARGETS_MAX).map(|n| format!("https://a/{n}")).collect();
        assert!(targets(&many.join(",")).is_err());
    }

    #[test]
    fn mail_route_has_server_sender_and_recipients() {
        let NotifyRoute::Mail(route) = one("smtps://us%40er:p%3Aw@mail.example?from=a@b&to=c@d&to=e@f").route else {
            panic!()
        };
        assert_eq!((route.host.as_str(), route.port, route.tls), ("mail.example", 465, MailTls::Implicit));
        let (user, password) = route.credentials.unwrap();
        assert_eq!((user.reveal(), password.reveal()), ("us@er", "p:w"));
        assert_eq!((route.from.as_str(), route.to.len()), ("a@b", 2));
        let NotifyRoute::Mail(route) = one("smtp://127.0.0.1:25?tls=none&from=a@b&to=c@d").route else { panic!() };
        assert_eq!((route.port, route.tls, route.credentials), (25, MailTls::None, None));
    }

    #[test]
    fn ntfy_takes_a_token_or_a_user() {
        for (text, expected) in [
            ("ntfy+https://h/t", None),
            ("ntfy+https://:tk_1@h/t", Some("Bearer tk_1")),
            ("ntfy+https://u:p@h/t", Some("Basic dTpw")),
        ] {
            let NotifyRoute::Ntfy { server, topic, authorization } = one(text).route else { panic!() };
            assert_eq!((server.reveal(), topic.reveal()), ("https://h/", "t"));
            assert_eq!(authorization.as_ref().map(Secret::reveal), expected, "{text}");
        }
    }

    #[test]
    fn malformed_targets_are_rejected_without_their_text() {
        for text in [
            "hooks.example/secret-1",
            "ftp://h/secret-1",
            "gopher+https://h/secret-1",
            "https://user:secret-1@h/x",
            "https://h/x#secret-1",
            "ntfy+https://h",
            "ntfy+https://h/secret-1/more",
            "smtp://h?from=a@b",
            "smtp://h?to=a@b",
            "smtp://h?from=a@b&to=secret-1",
            "smtp://h?from=a@b&to=c@d&bcc=secret-1@e",
            "smtps://h?from=a@b&to=c@d&tls=none",
            "smtp://u:secret-1@h?from=a@b&to=c@d&tls=none",
        ] {
            let error = targets(text).unwrap_err();
            assert!(error.starts_with("as target 1: ") && !error.contains("secret-1"), "{text}: {error}");
        }
    }
}

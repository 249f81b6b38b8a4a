//! The bodies that chats take. Text from outside is escaped, or put where it is plain text.

use serde_json::{Value, json};

use crate::domain::notification::{Notification, NotificationEvent};

/// Lines of a message at most.
const LINES_MAX: usize = 40;
/// Longest text block of Slack, in characters.
const SLACK_CHARS_MAX: usize = 2_900;

/// Blocks of plain text; `text` is what notifications on a phone show.
pub(super) fn slack(notification: &Notification) -> Vec<u8> {
    let plain = |text: &str| json!({ "type": "plain_text", "text": text, "emoji": false });
    let title: String = notification.title.chars().take(150).collect();
    let mut blocks = vec![json!({ "type": "header", "text": plain(&title) })];
    let text = text(notification);
    if !text.is_empty() {
        let cut: String = text.chars().take(SLACK_CHARS_MAX).collect();
        blocks.push(json!({ "type": "section", "text": plain(&cut) }));
    }
    if let Some(link) = &notification.link {
        let link = json!({ "type": "mrkdwn", "text": format!("<{}|Open>", slack_escaped(link)) });
        blocks.push(json!({ "type": "section", "text": link }));
    }
    bytes(&json!({ "text": slack_escaped(&notification.title), "blocks": blocks }))
}

/// The three characters that Slack gives a meaning: without them there are no mentions and no links.
fn slack_escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// An adaptive card, of runs of text, which have no markup.
pub(super) fn teams(notification: &Notification) -> Vec<u8> {
    let run = |text: &str| json!({ "type": "TextRun", "text": text });
    let line = |text: &str| json!({ "type": "RichTextBlock", "inlines": [run(text)] });
    let title = json!({ "type": "TextRun", "text": notification.title, "weight": "Bolder", "size": "Medium" });
    let mut body = vec![json!({ "type": "RichTextBlock", "inlines": [title] })];
    body.extend(notification.lines().iter().filter(|text| !text.is_empty()).take(LINES_MAX).map(|text| line(text)));
    let actions: Vec<Value> = notification
        .link
        .iter()
        .map(|link| json!({ "type": "Action.OpenUrl", "title": "Open", "url": link }))
        .collect();
    let card = json!({
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": body,
        "actions": actions,
    });
    let attachment =
        json!({ "contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": null, "content": card });
    bytes(&json!({ "type": "message", "attachments": [attachment] }))
}

pub(super) fn mattermost(notification: &Notification) -> Vec<u8> {
    let mut text = format!("**{}**", markdown_escaped(&notification.title));
    for line in notification.lines().iter().take(LINES_MAX) {
        text.push('\n');
        text.push_str(&markdown_escaped(line));
    }
    if let Some(link) = &notification.link {
        text.push_str(&format!("\n[Open](<{link}>)"));
    }
    bytes(&json!({ "username": "Lakemill", "text": text }))
}

/// Markdown's own characters with a backslash; an `@` is separated from what follows, so that nobody is mentioned.
fn markdown_escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '@' => escaped.push_str("@\u{200b}"),
            c if c.is_ascii_punctuation() => escaped.extend(['\\', c]),
            c => escaped.push(c),
        }
    }
    escaped
}

/// ntfy takes plain text.
pub(super) fn ntfy(notification: &Notification, topic: &str) -> Vec<u8> {
    let (priority, tag) = match notification.event {
        NotificationEvent::RunFailed | NotificationEvent::JobStuck | NotificationEvent::DiskNearlyFull => {
            (4, "rotating_light")
        }
        NotificationEvent::RowsRejected | NotificationEvent::Drift | NotificationEvent::SourceSilent => (3, "warning"),
        NotificationEvent::Recovered => (3, "white_check_mark"),
        NotificationEvent::Test => (3, "bell"),
    };
    let text = text(notification);
    let mut body = json!({
        "topic": topic,
        "title": notification.title,
        // An empty message would be shown as `triggered`.
        "message": if text.is_empty() { &notification.title } else { &text },
        "priority": priority,
        "tags": [tag],
    });
    if let Some(link) = &notification.link {
        body["click"] = json!(link);
    }
    bytes(&body)
}

/// The lines as one text.
pub(super) fn text(notification: &Notification) -> String {
    let lines = notification.lines();
    lines[..lines.len().min(LINES_MAX)].join("\n")
}

fn bytes(body: &Value) -> Vec<u8> {
    body.to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::DateTime;

    const HOSTILE: &str = "<!channel> <https://evil.example|x> @all [a](http://evil.example) **b** `c`";

    fn hostile() -> Notification {
        let at = DateTime::from_timestamp(1, 0).unwrap();
        let link = Some("https://lake.example/p/x".to_owned());
        Notification { link, repeats: 2, ..Notification::new(NotificationEvent::RunFailed, at, HOSTILE, HOSTILE) }
    }

    fn json_of(body: &[u8]) -> Value {
        serde_json::from_slice(body).unwrap()
    }

    #[test]
    fn slack_has_no_mentions_and_links_of_outside_text() {
        let body = json_of(&slack(&hostile()));
        assert!(!body["text"].as_str().unwrap().contains(['<', '>']), "{body}");
        let types: Vec<_> = body["blocks"].as_array().unwrap().iter().map(|b| b["text"]["type"].clone()).collect();
        assert_eq!(types, ["plain_text", "plain_text", "mrkdwn"]);
        assert_eq!(body["blocks"][2]["text"]["text"], "<https://lake.example/p/x|Open>");
        assert!(
            body["blocks"][1]["text"]["text"].as_str().unwrap().ends_with("2 more times since the last notification.")
        );
    }

    #[test]
    fn teams_has_outside_text_in_plain_runs_only() {
        let body = json_of(&teams(&hostile()));
        let card = &body["attachments"][0]["content"];
        for block in card["body"].as_array().unwrap() {
            assert_eq!((&block["type"], &block["inlines"][0]["type"]), (&json!("RichTextBlock"), &json!("TextRun")));
        }
        assert_eq!(card["body"][0]["inlines"][0]["text"], HOSTILE);
        assert_eq!(card["actions"][0]["url"], "https://lake.example/p/x");
    }

    #[test]
    fn mattermost_has_no_mentions_links_and_formats_of_outside_text() {
        let body = json_of(&mattermost(&hostile()));
        let text = body["text"].as_str().unwrap();
        assert!(!text.contains("@all") && !text.contains("](http") && !text.contains("**b"), "{text}");
        assert!(text.ends_with("[Open](<https://lake.example/p/x>)"), "{text}");
    }

    #[test]
    fn ntfy_gets_plain_text() {
        let body = json_of(&ntfy(&hostile(), "topic"));
        assert_eq!((&body["topic"], &body["title"]), (&json!("topic"), &json!(HOSTILE)));
        assert!(body.get("markdown").is_none());
    }
}

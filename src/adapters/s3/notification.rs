//! A bucket's notification rules.
//!
//! Invariant: elements that are not changed are written back byte for byte, since rules of other programs may use features
//! unknown here.

use quick_xml::Reader;
use quick_xml::events::Event;
use serde::Deserialize;

use super::xml::{self, Document};

/// Largest configuration read, in bytes.
pub(super) const DOCUMENT_BYTES_MAX: u64 = 1 << 20;
const ROOT: &str = "NotificationConfiguration";
const EMPTY: &str = "<NotificationConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">";

/// Kind of a rule's target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleKind {
    Queue,
    Topic,
    Function,
}

impl RuleKind {
    const ALL: [Self; 3] = [Self::Queue, Self::Topic, Self::Function];

    fn element(self) -> &'static str {
        match self {
            Self::Queue => "QueueConfiguration",
            Self::Topic => "TopicConfiguration",
            Self::Function => "CloudFunctionConfiguration",
        }
    }

    /// The element of the ARN.
    fn target(self) -> &'static str {
        match self {
            Self::Queue => "Queue",
            Self::Topic => "Topic",
            Self::Function => "CloudFunction",
        }
    }
}

/// Sends events of a bucket to a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    pub kind: RuleKind,
    /// Assigned by the store if empty.
    pub id: String,
    pub arn: String,
    pub events: Vec<String>,
    /// Prefix of the keys.
    pub prefix: Option<String>,
    /// Suffix of the keys.
    pub suffix: Option<String>,
}

/// One element of a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigurationElement {
    /// The element as read.
    text: String,
    rule: Option<Rule>,
}

impl ConfigurationElement {
    /// The rule; `None` for unknown elements.
    pub fn rule(&self) -> Option<&Rule> {
        self.rule.as_ref()
    }

    /// Whether it sends the bucket's events to EventBridge.
    pub fn is_event_bridge(&self) -> bool {
        self.text.starts_with("<EventBridgeConfiguration")
    }

    /// The element as text.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// All rules of a bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotificationConfiguration {
    /// The root's start tag.
    root: String,
    entries: Vec<ConfigurationElement>,
}

/// Why a configuration can't be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a notification configuration, found {found}")]
pub struct NotificationError {
    pub found: String,
}

fn wrong(found: impl std::fmt::Display) -> NotificationError {
    NotificationError { found: found.to_string() }
}

impl Default for NotificationConfiguration {
    fn default() -> Self {
        Self { root: EMPTY.to_owned(), entries: Vec::new() }
    }
}

impl NotificationConfiguration {
    /// Parses a document; an empty text is an empty configuration.
    ///
    /// # Errors
    /// [`NotificationError`] for any other document.
    pub fn parse(bytes: &[u8]) -> Result<Self, NotificationError> {
        let text = std::str::from_utf8(bytes).map_err(|_| wrong("bytes that are not UTF-8"))?;
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let root = Document::parse(bytes).map_err(wrong)?.root;
        let (start_tag, elements) = split(text)?;
        // Some stores respond with another root, which they would not accept in a request.
        let start_tag = start_tag.filter(|_| root == ROOT);
        if !root.contains("Notification") {
            return Err(wrong(format!("a `{root}`")));
        }
        let entry = |text: &str| ConfigurationElement { text: text.to_owned(), rule: parse_rule(text) };
        let entries = elements.into_iter().map(entry).collect();
        Ok(Self { root: start_tag.map_or_else(|| EMPTY.to_owned(), str::to_owned), entries })
    }

    pub fn entries(&self) -> &[ConfigurationElement] {
        &self.entries
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The rules among the entries.
    pub fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.entries.iter().filter_map(ConfigurationElement::rule)
    }

    pub fn push(&mut self, rule: Rule) {
        self.entries.push(ConfigurationElement { text: text_of(&rule), rule: Some(rule) });
    }

    pub fn has_event_bridge(&self) -> bool {
        self.entries.iter().any(ConfigurationElement::is_event_bridge)
    }

    /// Sends all events of the bucket to EventBridge.
    pub fn push_event_bridge(&mut self) {
        let text = "<EventBridgeConfiguration></EventBridgeConfiguration>".to_owned();
        self.entries.push(ConfigurationElement { text, rule: None });
    }

    /// Removes the entries for which `keep` is false.
    pub fn retain(&mut self, keep: impl FnMut(&ConfigurationElement) -> bool) {
        self.entries.retain(keep);
    }

    /// The document.
    pub fn to_xml(&self) -> String {
        let mut document = self.root.clone();
        for entry in &self.entries {
            document.push_str(&entry.text);
        }
        let name = self.root.trim_start_matches('<').split([' ', '\t', '\r', '\n', '>']).next().unwrap_or(ROOT);
        document.push_str(&format!("</{name}>"));
        document
    }
}

/// The root's start tag (none for an empty element), and the texts of its children.
fn split(text: &str) -> Result<(Option<&str>, Vec<&str>), NotificationError> {
    let mut reader = Reader::from_str(text);
    let (mut root, mut children) = (None, Vec::new());
    let (mut depth, mut child_start) = (0_usize, 0);
    loop {
        let start = position(&reader);
        let event = reader.read_event().map_err(wrong)?;
        let end = position(&reader);
        match event {
            Event::Start(_) => {
                match depth {
                    0 => root = text.get(start..end),
                    1 => child_start = start,
                    _ => {}
                }
                depth += 1;
            }
            Event::Empty(_) if depth == 1 => children.extend(text.get(start..end)),
            Event::End(_) => {
                depth = depth.saturating_sub(1);
                if depth == 1 {
                    children.extend(text.get(child_start..end));
                }
            }
            Event::Eof => return Ok((root, children)),
            Event::Empty(_)
            | Event::Text(_)
            | Event::CData(_)
            | Event::Comment(_)
            | Event::Decl(_)
            | Event::PI(_)
            | Event::DocType(_)
            | Event::GeneralRef(_) => {}
        }
    }
}

fn position(reader: &Reader<&[u8]>) -> usize {
    usize::try_from(reader.buffer_position()).unwrap_or(usize::MAX)
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct RuleElement {
    id: String,
    queue: Option<String>,
    topic: Option<String>,
    cloud_function: Option<String>,
    #[serde(rename = "Event")]
    events: Vec<String>,
    filter: Filter,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Filter {
    #[serde(rename = "S3Key")]
    key: KeyFilter,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct KeyFilter {
    #[serde(rename = "FilterRule")]
    rules: Vec<FilterRule>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct FilterRule {
    name: String,
    value: Option<String>,
}

/// `None` for an element of another kind, or one that can't be read.
fn parse_rule(text: &str) -> Option<Rule> {
    let document = Document::parse(text.as_bytes()).ok()?;
    let kind = RuleKind::ALL.into_iter().find(|kind| kind.element() == document.root)?;
    let element: RuleElement = document.read().ok()?;
    let filter = |wanted: &str| {
        let rule = element.filter.key.rules.iter().find(|rule| rule.name.trim().eq_ignore_ascii_case(wanted))?;
        rule.value.clone()
    };
    let arn = match kind {
        RuleKind::Queue => &element.queue,
        RuleKind::Topic => &element.topic,
        RuleKind::Function => &element.cloud_function,
    };
    let events = element.events.iter().map(|event| event.trim().to_owned()).collect();
    let (prefix, suffix) = (filter("prefix"), filter("suffix"));
    let arn = arn.as_deref().unwrap_or_default().trim().to_owned();
    Some(Rule { kind, id: element.id.trim().to_owned(), arn, events, prefix, suffix })
}

fn text_of(rule: &Rule) -> String {
    let element = |name: &str, text: &str| format!("<{name}>{}</{name}>", xml::escape(text));
    let mut inner = String::new();
    if !rule.id.is_empty() {
        inner.push_str(&element("Id", &rule.id));
    }
    inner.push_str(&element(rule.kind.target(), &rule.arn));
    for event in &rule.events {
        inner.push_str(&element("Event", event));
    }
    let filters: String = [("prefix", &rule.prefix), ("suffix", &rule.suffix)]
        .into_iter()
        .filter_map(|(name, value)| value.as_ref().map(|value| (name, value)))
        .map(|(name, value)| format!("<FilterRule>{}{}</FilterRule>", element("Name", name), element("Value", value)))
        .collect();
    if !filters.is_empty() {
        inner.push_str(&format!("<Filter><S3Key>{filters}</S3Key></Filter>"));
    }
    let name = rule.kind.element();
    format!("<{name}>{inner}</{name}>")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ours() -> Rule {
        Rule {
            kind: RuleKind::Queue,
            id: "lakemill".to_owned(),
            arn: "arn:minio:sqs::1:webhook".to_owned(),
            events: vec!["s3:ObjectCreated:*".to_owned()],
            prefix: Some("pipelines/".to_owned()),
            suffix: Some(".csv".to_owned()),
        }
    }

    #[test]
    fn rules_round_trip() {
        for kind in RuleKind::ALL {
            let mut rules = NotificationConfiguration::default();
            rules.push(Rule { kind, ..ours() });
            rules.push(Rule { prefix: None, suffix: None, id: String::new(), ..ours() });
            let read = NotificationConfiguration::parse(rules.to_xml().as_bytes()).unwrap();
            assert_eq!(read, rules);
        }
    }

    #[test]
    fn foreign_rules_are_kept_byte_for_byte() {
        let foreign = "<QueueConfiguration><Id>x</Id><Queue>arn</Queue><Event>s3:New</Event><Unknown a=\"&amp;\"/>\
                       </QueueConfiguration>";
        let bridge = "<EventBridgeConfiguration/>";
        let document = format!(
            "<?xml version=\"1.0\"?>\n<NotificationConfiguration xmlns=\"u\" a='b'>\n  {foreign}\n <!-- c -->{bridge}\n\
             </NotificationConfiguration>"
        );
        let mut rules = NotificationConfiguration::parse(document.as_bytes()).unwrap();
        assert_eq!(rules.entries().iter().map(ConfigurationElement::text).collect::<Vec<_>>(), [foreign, bridge]);
        assert_eq!(rules.rules().map(|rule| rule.id.as_str()).collect::<Vec<_>>(), ["x"]);
        rules.push(ours());
        let written = rules.to_xml();
        assert!(written.starts_with(&format!("<NotificationConfiguration xmlns=\"u\" a='b'>{foreign}{bridge}<Queue")));
        rules.retain(|entry| entry.rule() != Some(&ours()));
        assert_eq!(
            rules.to_xml(),
            format!("<NotificationConfiguration xmlns=\"u\" a='b'>{foreign}{bridge}</NotificationConfiguration>")
        );
    }

    #[test]
    fn empty_text_is_an_empty_configuration_and_garbage_an_error() {
        for empty in
            ["", " \n", "<NotificationConfiguration/>", "<NotificationConfiguration></NotificationConfiguration>"]
        {
            let rules = NotificationConfiguration::parse(empty.as_bytes()).unwrap();
            assert!(rules.is_empty(), "{empty:?}");
            assert!(rules.to_xml().ends_with("</NotificationConfiguration>"), "{}", rules.to_xml());
        }
        let renamed = format!("<GetBucketNotificationResponse>{}</GetBucketNotificationResponse>", text_of(&ours()));
        let rules = NotificationConfiguration::parse(renamed.as_bytes()).unwrap();
        assert_eq!(rules.to_xml(), format!("{EMPTY}{}</NotificationConfiguration>", text_of(&ours())));
        for bad in ["<Error/>", "hello", "<NotificationConfiguration>", "{}"] {
            assert!(NotificationConfiguration::parse(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}

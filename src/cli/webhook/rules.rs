//! Identifies and builds our rules among those of a bucket.
//!
//! Invariant: installing never changes rules of other programs.

use std::io::{self, Write};

use sha2::{Digest, Sha256};

use crate::adapters::s3::{ConfigurationElement, NotificationConfiguration, Rule, RuleKind};
use crate::cli::plain::plain;
use crate::domain::source_name::CSV_ENDINGS;

const EVENT: &str = "s3:ObjectCreated:*";
/// Common prefix of the event names.
const CREATED: &str = "ObjectCreated:";
const PREFIX: &str = "pipelines/";
/// Prefix of the ids of our rules.
const ID_PREFIX: &str = "lakemill-";
/// Bytes of an ARN's digest in an id.
const ID_DIGEST_BYTES: usize = 4;

/// Suffixes of keys that rules match.
pub(super) fn suffixes(compressed: bool) -> &'static [&'static str] {
    &CSV_ENDINGS[..if compressed { CSV_ENDINGS.len() } else { 1 }]
}

/// The kinds to try, the most likely one first: a queue, as in the contract; for a topic's ARN, a topic.
pub(super) fn kinds_for(arn: &str) -> [RuleKind; 2] {
    if arn.split(':').nth(2) == Some("sns") {
        [RuleKind::Topic, RuleKind::Queue]
    } else {
        [RuleKind::Queue, RuleKind::Topic]
    }
}

pub(super) fn kind_name(kind: RuleKind) -> &'static str {
    match kind {
        RuleKind::Queue => "queue",
        RuleKind::Topic => "topic",
        RuleKind::Function => "function",
    }
}

/// Whether an install created the rule: by its id or, if the store keeps no ids, by its filter and events.
pub(super) fn is_ours(entry: &ConfigurationElement) -> bool {
    entry.rule().is_some_and(|rule| rule.id.starts_with(ID_PREFIX) || (rule.id.is_empty() && has_our_shape(rule)))
}

/// Like [`is_ours`]; also matches an equivalent rule for the same target with another id.
fn is_ours_for(entry: &ConfigurationElement, arn: &str) -> bool {
    is_ours(entry) || entry.rule().is_some_and(|rule| rule.arn == arn && has_our_shape(rule))
}

fn has_our_shape(rule: &Rule) -> bool {
    let suffix = rule.suffix.as_deref().unwrap_or_default();
    rule.prefix.as_deref() == Some(PREFIX)
        && CSV_ENDINGS.contains(&suffix)
        && rule.events.iter().all(|event| bare(event) == bare(EVENT))
}

/// The id contains the target: radosgw adds rules instead of replacing all, and deletes them by id.
fn id_of(suffix: &str, arn: &str) -> String {
    let name = suffix.trim_start_matches('.').replace('.', "-");
    let digest = Sha256::digest(arn.as_bytes());
    let digits: String = digest.iter().take(ID_DIGEST_BYTES).map(|byte| format!("{byte:02x}")).collect();
    format!("{ID_PREFIX}{name}-{digits}")
}

/// `found` with our new rules in place of earlier ones.
pub(super) fn with_our_rules(
    found: &NotificationConfiguration,
    kind: RuleKind,
    arn: &str,
    compressed: bool,
) -> NotificationConfiguration {
    let mut rules = found.clone();
    rules.retain(|entry| !is_ours_for(entry, arn));
    for suffix in suffixes(compressed) {
        rules.push(Rule {
            kind,
            id: id_of(suffix, arn),
            arn: arn.to_owned(),
            events: vec![EVENT.to_owned()],
            prefix: Some(PREFIX.to_owned()),
            suffix: Some((*suffix).to_owned()),
        });
    }
    rules
}

/// Whether the store kept the rules added by [`with_our_rules`].
pub(super) fn has_our_rules(found: &NotificationConfiguration, arn: &str, compressed: bool) -> bool {
    suffixes(compressed).iter().all(|suffix| found.rules().any(|rule| rule.arn == arn && covers(rule, suffix)))
}

/// Rules of earlier installs that [`with_our_rules`] removes: those for another target or an obsolete suffix, and equivalent
/// ones with another id.
pub(super) fn superseded<'a>(
    found: &'a NotificationConfiguration,
    arn: &'a str,
    compressed: bool,
) -> impl Iterator<Item = &'a Rule> {
    let wanted = move |rule: &Rule| {
        let named = |suffix: &&str| {
            rule.suffix.as_deref() == Some(*suffix) && (rule.id.is_empty() || rule.id == id_of(suffix, arn))
        };
        rule.arn == arn && suffixes(compressed).iter().any(named)
    };
    found
        .entries()
        .iter()
        .filter(move |entry| is_ours_for(entry, arn))
        .filter_map(ConfigurationElement::rule)
        .filter(move |r| !wanted(r))
}

/// The entries that no install to `arn` created.
pub(super) fn foreign<'a>(
    found: &'a NotificationConfiguration,
    arn: &'a str,
) -> impl Iterator<Item = &'a ConfigurationElement> {
    found.entries().iter().filter(move |entry| !is_ours_for(entry, arn))
}

/// Rules of other programs that match some of the files of our rules.
pub(super) fn overlapping<'a>(
    found: &'a NotificationConfiguration,
    arn: &'a str,
    compressed: bool,
) -> impl Iterator<Item = &'a Rule> {
    let meets = move |rule: &&Rule| {
        let prefix = rule.prefix.as_deref().unwrap_or_default();
        let suffix = rule.suffix.as_deref().unwrap_or_default();
        rule.events.iter().any(|event| bare(event).starts_with(CREATED) || bare(event) == "*")
            && (prefix.starts_with(PREFIX) || PREFIX.starts_with(prefix))
            && suffixes(compressed).iter().any(|ours| ours.ends_with(suffix) || suffix.ends_with(ours))
    };
    foreign(found, arn).filter_map(ConfigurationElement::rule).filter(meets)
}

/// Whether a rule matches every new `.csv` of every pipeline.
pub fn reports_new_files(found: &NotificationConfiguration) -> bool {
    found.rules().any(|rule| covers(rule, CSV_ENDINGS[0]))
}

fn covers(rule: &Rule, suffix: &str) -> bool {
    rule.events.iter().any(|event| matches!(bare(event), "ObjectCreated:*" | "*"))
        && rule.prefix.as_deref().is_none_or(|prefix| PREFIX.starts_with(prefix))
        && rule.suffix.as_deref().is_none_or(|own| suffix.ends_with(own))
}

/// Stores write event names with and without `s3:`.
fn bare(event: &str) -> &str {
    event.strip_prefix("s3:").unwrap_or(event)
}

/// An entry on one line.
pub(super) fn line(entry: &ConfigurationElement) -> String {
    if entry.is_event_bridge() {
        return "EventBridge gets all events of the bucket".to_owned();
    }
    plain(&entry.rule().map_or_else(|| entry.text().to_owned(), one_line))
}

fn one_line(rule: &Rule) -> String {
    let or_any = |text: &Option<String>| text.clone().unwrap_or_else(|| "*".to_owned());
    format!(
        "{}  {}  prefix {}  suffix {}  to the {} {}",
        if rule.id.is_empty() { "(no id)" } else { &rule.id },
        rule.events.join(","),
        or_any(&rule.prefix),
        or_any(&rule.suffix),
        kind_name(rule.kind),
        rule.arn
    )
}

/// Rules on one line each, indented.
pub(super) fn lines<'a>(rules: impl Iterator<Item = &'a Rule>) -> String {
    rules.map(|rule| format!("  {}", plain(&one_line(rule)))).collect::<Vec<_>>().join("\n")
}

/// Lists the rules, one per line.
///
/// # Errors
/// `out` can't be written.
pub(super) fn show(bucket: &str, found: &NotificationConfiguration, out: &mut dyn Write) -> io::Result<()> {
    if found.is_empty() {
        return writeln!(
            out,
            "`{bucket}` has no rules: new files don't start runs; add a rule with `lakemill webhook \
         install`"
        );
    }
    for entry in found.entries() {
        writeln!(out, "{}  {}", if is_ours(entry) { "ours  " } else { "others" }, line(entry))?;
    }
    if found.has_event_bridge() {
        writeln!(out, "whether an EventBridge rule reports new files can't be determined here")?;
    } else if !reports_new_files(found) {
        writeln!(out, "no rule matches every new .csv under pipelines/; add one with `lakemill webhook install`")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOREIGN: &str = "<QueueConfiguration><Id>audit</Id><Queue>arn:x</Queue><Event>s3:ObjectRemoved:*</Event>\
                           </QueueConfiguration>";

    fn foreign_rules() -> NotificationConfiguration {
        let document = format!("<NotificationConfiguration>{FOREIGN}</NotificationConfiguration>");
        NotificationConfiguration::parse(document.as_bytes()).unwrap()
    }

    fn texts(rules: &NotificationConfiguration) -> Vec<String> {
        rules.entries().iter().map(|entry| entry.text().to_owned()).collect()
    }

    #[test]
    fn rule_is_added_to_foreign_rules() {
        let rules = with_our_rules(&foreign_rules(), RuleKind::Queue, "arn:minio:sqs::a:webhook", false);
        let id = id_of("csv", "arn:minio:sqs::a:webhook");
        let ours = format!(
            "<QueueConfiguration><Id>{id}</Id><Queue>arn:minio:sqs::a:webhook</Queue>\
             <Event>s3:ObjectCreated:*</Event><Filter><S3Key><FilterRule><Name>prefix</Name>\
             <Value>pipelines/</Value></FilterRule><FilterRule><Name>suffix</Name><Value>.csv</Value>\
             </FilterRule></S3Key></Filter></QueueConfiguration>"
        );
        assert_eq!(texts(&rules), [FOREIGN, &ours]);
        assert!(has_our_rules(&rules, "arn:minio:sqs::a:webhook", false) && reports_new_files(&rules));
        assert!(!has_our_rules(&rules, "arn:minio:sqs::a:webhook", true));
        assert!(!reports_new_files(&foreign_rules()));
    }

    fn with_ids(rules: &NotificationConfiguration, id: &str) -> NotificationConfiguration {
        let document = rules.to_xml();
        let mut pieces = document.split("<Id>lakemill-");
        let mut renamed = pieces.next().unwrap().to_owned();
        for piece in pieces {
            renamed.push_str(&format!("<Id>{id}{}", &piece[piece.find('<').unwrap()..]));
        }
        NotificationConfiguration::parse(renamed.replace("<Id></Id>", "").as_bytes()).unwrap()
    }

    #[test]
    fn earlier_rules_are_replaced_whatever_their_target() {
        let old = with_our_rules(&foreign_rules(), RuleKind::Queue, "arn:old", true);
        assert_eq!(old.entries().len(), 4);
        let expected = with_our_rules(&foreign_rules(), RuleKind::Topic, "arn:new", false);
        for before in [&old, &with_ids(&old, "lakemill-csv"), &with_ids(&old, "")] {
            assert_eq!(superseded(before, "arn:new", false).count(), 3);
            assert_eq!(with_our_rules(before, RuleKind::Topic, "arn:new", false), expected);
        }
        assert_eq!(superseded(&old, "arn:old", true).count(), 0);
        assert_eq!(superseded(&old, "arn:old", false).count(), 2);
        // The store assigned its own id.
        let renamed = with_ids(&old, "generated");
        assert_eq!(with_our_rules(&renamed, RuleKind::Queue, "arn:old", true), old);
        assert_eq!(superseded(&renamed, "arn:old", true).count(), 3);
    }

    #[test]
    fn overlapping_foreign_rules_are_kept_and_reported() {
        let other = with_ids(&with_our_rules(&foreign_rules(), RuleKind::Queue, "arn:other", false), "audit-csv");
        let both = with_our_rules(&other, RuleKind::Queue, "arn:new", false);
        assert_eq!(both.entries().len(), 3);
        assert_eq!(superseded(&both, "arn:new", false).count(), 0);
        let overlaps: Vec<&str> = overlapping(&both, "arn:new", false).map(|rule| rule.id.as_str()).collect();
        assert_eq!(overlaps, ["audit-csv"]);
        assert_eq!(foreign(&both, "arn:new").count(), 2);
    }

    #[test]
    fn wider_foreign_rules_count_and_narrower_do_not() {
        let rule = |events: &str, prefix: Option<&str>, suffix: Option<&str>| {
            let mut rules = NotificationConfiguration::default();
            let [prefix, suffix] = [prefix, suffix].map(|text| text.map(str::to_owned));
            let id = "x".to_owned();
            rules.push(Rule {
                kind: RuleKind::Topic,
                id,
                arn: "arn".into(),
                events: vec![events.into()],
                prefix,
                suffix,
            });
            reports_new_files(&rules)
        };
        assert!(rule("s3:ObjectCreated:*", None, None) && rule("ObjectCreated:*", Some("pipe"), Some("csv")));
        assert!(!rule("s3:ObjectCreated:Put", None, None) && !rule("s3:ObjectRemoved:*", None, None));
        assert!(!rule("s3:ObjectCreated:*", Some("pipelines/trips/"), None));
        assert!(!rule("s3:ObjectCreated:*", None, Some(".parquet")));
    }

    #[test]
    fn topic_arn_is_tried_as_topic_first() {
        assert_eq!(kinds_for("arn:aws:sns:default::lake")[0], RuleKind::Topic);
        for arn in ["arn:minio:sqs::1:webhook", "arn:rustfs:sqs::primary:webhook", "arn:x:lambda:sns"] {
            assert_eq!(kinds_for(arn)[0], RuleKind::Queue, "{arn}");
        }
    }

    #[test]
    fn rules_are_shown_a_line_each() {
        let mut out = Vec::new();
        show("svc-lake", &with_our_rules(&foreign_rules(), RuleKind::Queue, "arn:y", false), &mut out).unwrap();
        let expected = format!(
            "others  audit  s3:ObjectRemoved:*  prefix *  suffix *  to the queue arn:x\n\
             ours    {}  s3:ObjectCreated:*  prefix pipelines/  suffix .csv  to the queue arn:y\n",
            id_of("csv", "arn:y")
        );
        assert_eq!(String::from_utf8(out).unwrap(), expected);
        let mut out = Vec::new();
        show("svc-lake", &foreign_rules(), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.lines().nth(1).unwrap().starts_with("no rule matches every new .csv"), "{text}");
    }
}

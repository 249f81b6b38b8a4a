//! Our rules among those of a bucket.
//!
//! Invariant: rules of others are never changed by putting ours.

use std::io::{self, Write};

use crate::adapters::s3::{Entry, NotificationConfiguration, Rule, RuleKind};
use crate::cli::plain::plain;

const EVENT: &str = "s3:ObjectCreated:*";
const PREFIX: &str = "pipelines/";
/// Ids of our rules start with it.
const ID_PREFIX: &str = "lakemill-";
/// Suffix and id; the first is the contract's.
const SUFFIXES: [(&str, &str); 3] = [(".csv", "csv"), (".csv.gz", "csv-gz"), (".csv.zst", "csv-zst")];

/// The suffixes of keys that are told of.
pub(super) fn suffixes(compressed: bool) -> Vec<&'static str> {
    SUFFIXES[..if compressed { SUFFIXES.len() } else { 1 }].iter().map(|(suffix, _)| *suffix).collect()
}

/// The kinds to try, the likely one first. The contract's is a queue; what is plainly a topic's ARN is tried as that.
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

/// By its id, or, since some stores give ids of their own, by what it says.
pub(super) fn is_ours(entry: &Entry) -> bool {
    entry.rule().is_some_and(|rule| {
        let suffix = rule.suffix.as_deref().unwrap_or_default();
        rule.id.starts_with(ID_PREFIX)
            || (rule.prefix.as_deref() == Some(PREFIX)
                && SUFFIXES.iter().any(|(ours, _)| *ours == suffix)
                && rule.events.iter().all(|event| bare(event) == bare(EVENT)))
    })
}

/// `found` with our rules, new, in place of any that were ours.
pub(super) fn with_ours(
    found: &NotificationConfiguration,
    kind: RuleKind,
    arn: &str,
    compressed: bool,
) -> NotificationConfiguration {
    let mut rules = found.clone();
    rules.retain(|entry| !is_ours(entry));
    for (suffix, id) in SUFFIXES.iter().filter(|(suffix, _)| suffixes(compressed).contains(suffix)) {
        rules.push(Rule {
            kind,
            id: format!("{ID_PREFIX}{id}"),
            arn: arn.to_owned(),
            events: vec![EVENT.to_owned()],
            prefix: Some(PREFIX.to_owned()),
            suffix: Some((*suffix).to_owned()),
        });
    }
    rules
}

/// Whether the store kept what [`with_ours`] added.
pub(super) fn has_ours(found: &NotificationConfiguration, arn: &str, compressed: bool) -> bool {
    suffixes(compressed).into_iter().all(|suffix| found.rules().any(|rule| rule.arn == arn && covers(rule, suffix)))
}

/// Whether some rule tells of every new `.csv` of every pipeline.
pub fn reports_new_files(found: &NotificationConfiguration) -> bool {
    found.rules().any(|rule| covers(rule, SUFFIXES[0].0))
}

fn covers(rule: &Rule, suffix: &str) -> bool {
    rule.events.iter().any(|event| matches!(bare(event), "ObjectCreated:*" | "*"))
        && rule.prefix.as_deref().is_none_or(|prefix| PREFIX.starts_with(prefix))
        && rule.suffix.as_deref().is_none_or(|own| suffix.ends_with(own))
}

/// Stores name events with and without `s3:`.
fn bare(event: &str) -> &str {
    event.strip_prefix("s3:").unwrap_or(event)
}

/// Lists the rules, one a line.
///
/// # Errors
/// `out` can't be written.
pub(super) fn show(bucket: &str, found: &NotificationConfiguration, out: &mut dyn Write) -> io::Result<()> {
    if found.is_empty() {
        return writeln!(out, "`{bucket}` has no rules: new files start no runs; `lakemill webhook install` puts one");
    }
    for entry in found.entries() {
        let whose = if is_ours(entry) { "ours  " } else { "others" };
        let Some(rule) = entry.rule() else {
            writeln!(out, "{whose}  {}", plain(entry.text()))?;
            continue;
        };
        let or_any = |text: &Option<String>| text.clone().unwrap_or_else(|| "*".to_owned());
        let line = format!(
            "{}  {}  prefix {}  suffix {}  to the {} {}",
            if rule.id.is_empty() { "(no id)" } else { &rule.id },
            rule.events.join(","),
            or_any(&rule.prefix),
            or_any(&rule.suffix),
            kind_name(rule.kind),
            rule.arn
        );
        writeln!(out, "{whose}  {}", plain(&line))?;
    }
    if !reports_new_files(found) {
        writeln!(out, "none of them tells of every new .csv under pipelines/; `lakemill webhook install` puts one")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOREIGN: &str = "<QueueConfiguration><Id>audit</Id><Queue>arn:x</Queue><Event>s3:ObjectRemoved:*</Event>\
                           </QueueConfiguration>";

    fn foreign() -> NotificationConfiguration {
        let document = format!("<NotificationConfiguration>{FOREIGN}</NotificationConfiguration>");
        NotificationConfiguration::parse(document.as_bytes()).unwrap()
    }

    fn texts(rules: &NotificationConfiguration) -> Vec<String> {
        rules.entries().iter().map(|entry| entry.text().to_owned()).collect()
    }

    #[test]
    fn the_contracts_rule_is_put_beside_those_of_others() {
        let rules = with_ours(&foreign(), RuleKind::Queue, "arn:minio:sqs::a:webhook", false);
        let ours = "<QueueConfiguration><Id>lakemill-csv</Id><Queue>arn:minio:sqs::a:webhook</Queue>\
                    <Event>s3:ObjectCreated:*</Event><Filter><S3Key><FilterRule><Name>prefix</Name>\
                    <Value>pipelines/</Value></FilterRule><FilterRule><Name>suffix</Name><Value>.csv</Value>\
                    </FilterRule></S3Key></Filter></QueueConfiguration>";
        assert_eq!(texts(&rules), [FOREIGN, ours]);
        assert!(has_ours(&rules, "arn:minio:sqs::a:webhook", false) && reports_new_files(&rules));
        assert!(!has_ours(&rules, "arn:minio:sqs::a:webhook", true));
        assert!(!reports_new_files(&foreign()));
    }

    #[test]
    fn putting_it_again_replaces_ours_whatever_the_store_called_it() {
        let first = with_ours(&foreign(), RuleKind::Queue, "arn:old", true);
        assert_eq!(first.entries().len(), 4);
        let renamed = first.to_xml().replace("lakemill-csv<", "generated-id<");
        let renamed = NotificationConfiguration::parse(renamed.as_bytes()).unwrap();
        let again = with_ours(&renamed, RuleKind::Topic, "arn:new", false);
        assert_eq!(again, with_ours(&foreign(), RuleKind::Topic, "arn:new", false));
        assert_eq!(texts(&again)[0], FOREIGN);
    }

    #[test]
    fn wider_rules_of_others_report_new_files_too_and_narrower_do_not() {
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
    fn a_topics_arn_is_tried_as_that_first() {
        assert_eq!(kinds_for("arn:aws:sns:default::lake")[0], RuleKind::Topic);
        for arn in ["arn:minio:sqs::1:webhook", "arn:rustfs:sqs::primary:webhook", "arn:x:lambda:sns"] {
            assert_eq!(kinds_for(arn)[0], RuleKind::Queue, "{arn}");
        }
    }

    #[test]
    fn rules_are_shown_a_line_each() {
        let mut out = Vec::new();
        show("svc-lake", &with_ours(&foreign(), RuleKind::Queue, "arn:y", false), &mut out).unwrap();
        let expected = "\
others  audit  s3:ObjectRemoved:*  prefix *  suffix *  to the queue arn:x
ours    lakemill-csv  s3:ObjectCreated:*  prefix pipelines/  suffix .csv  to the queue arn:y
";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
        let mut out = Vec::new();
        show("svc-lake", &foreign(), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.lines().nth(1).unwrap().starts_with("none of them tells of every new .csv"), "{text}");
    }
}

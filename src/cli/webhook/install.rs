//! Installs our notification rules on the lake bucket, and reads them back.

use std::io::{self, Write};

use super::rules;
use super::store::{RECONCILE_ADVICE, describe, is_rejection, read};
use super::target::Target;
use crate::adapters::s3::{ConfigurationElement, NotificationConfiguration, Rule, RuleKind, S3Store};
use crate::ports::store::Bucket;

/// Advice if rules of other programs match the same files.
const OVERLAP: &str = "narrow them, or remove them with the store's own tools if an earlier installation left them; \
 `lakemill webhook remove`\n\
 removes all rules";

/// The outcome of an install.
pub(super) struct Installed {
    target: Target,
    kind: RuleKind,
    /// Removed rules of earlier installs.
    replaced: Vec<Rule>,
    /// Entries of other programs, which were kept.
    kept: Vec<ConfigurationElement>,
    /// Rules in `kept` that match some of the same files.
    overlapping: Vec<Rule>,
}

/// Replaces the rules of earlier installs with rules for a queue or, if the store or the ARN requires it, for a topic.
pub(super) fn install(store: &S3Store, target: &Target, compressed: bool) -> Result<Installed, String> {
    let Some(arn) = &target.arn() else { return install_eventbridge(store) };
    let before = read(store)?;
    let kind = put(store, &before, arn, compressed).map_err(|error| match target.advice() {
        Some(advice) => format!("{error}\n{advice}"),
        None => error,
    })?;
    let mut after = read(store)?;
    if !rules::has_our_rules(&after, arn, compressed) {
        return Err(format!(
            "the store accepted the rule but does not return it: it seems not to support notifications\n\
             {RECONCILE_ADVICE}"
        ));
    }
    // radosgw adds rules to the existing ones.
    if rules::superseded(&after, arn, compressed).next().is_some() {
        let refusals = delete_superseded(store, &after, arn, compressed);
        after = read(store)?;
        let left = rules::lines(rules::superseded(&after, arn, compressed));
        if !left.is_empty() {
            return Err(format!(
                "the new rule is installed, but the store also kept rules of an earlier install:\n\
                 {left}\n\
                 {refusals}remove them with the store's own tools, or run `lakemill webhook remove` and then \
                 install again"
            ));
        }
    }
    verify(&before, &after, arn, compressed)?;
    Ok(Installed {
        target: target.clone(),
        kind,
        replaced: rules::superseded(&before, arn, compressed).cloned().collect(),
        kept: rules::foreign(&after, arn).cloned().collect(),
        overlapping: rules::overlapping(&after, arn, compressed).cloned().collect(),
    })
}

/// Turns EventBridge on, in place of the rules of earlier installs.
fn install_eventbridge(store: &S3Store) -> Result<Installed, String> {
    let before = read(store)?;
    let mut wanted = before.clone();
    wanted.retain(|entry| !rules::is_ours(entry));
    if !wanted.has_event_bridge() {
        wanted.push_event_bridge();
    }
    store.put_notifications(Bucket::Lake, &wanted).map_err(|error| describe(&error))?;
    let after = read(store)?;
    if !after.has_event_bridge() {
        return Err(format!(
            "the store accepted EventBridge but does not list it: it seems not to support it\n{RECONCILE_ADVICE}"
        ));
    }
    let is_other = |entry: &&ConfigurationElement| !entry.is_event_bridge();
    Ok(Installed {
        target: Target::EventBridge,
        kind: RuleKind::Queue,
        replaced: before
            .entries()
            .iter()
            .filter(|entry| rules::is_ours(entry))
            .filter_map(|e| e.rule().cloned())
            .collect(),
        kept: after.entries().iter().filter(is_other).cloned().collect(),
        overlapping: Vec::new(),
    })
}

fn put(store: &S3Store, before: &NotificationConfiguration, arn: &str, compressed: bool) -> Result<RuleKind, String> {
    let put = |kind| store.put_notifications(Bucket::Lake, &rules::with_our_rules(before, kind, arn, compressed));
    let [first, second] = rules::kinds_for(arn);
    let refused = match put(first) {
        Ok(()) => return Ok(first),
        Err(refused) if is_rejection(&refused) => refused,
        Err(error) => return Err(describe(&error)),
    };
    let again = match put(second) {
        Ok(()) => return Ok(second),
        Err(again) => again,
    };
    let (first, second) = (rules::kind_name(first), rules::kind_name(second));
    let refusals = format!(
        "the store rejects the rule both for a {first} and for a {second}:\n\
           {refused}\n\
           {again}"
    );
    Err(match rules::lines(rules::overlapping(before, arn, compressed)) {
        overlaps if overlaps.is_empty() => format!("{refusals}\n{RECONCILE_ADVICE}"),
        overlaps => format!(
            "{refusals}\n\
             some stores reject rules that match the same files as other rules; these overlap:\n\
             {overlaps}\n\
             {OVERLAP}"
        ),
    })
}

/// Deletes rules of earlier installs by id. The new ones stay in place meanwhile, so that no event is lost. Returns the
/// store's refusals, one per line.
fn delete_superseded(store: &S3Store, found: &NotificationConfiguration, arn: &str, compressed: bool) -> String {
    let superseded = rules::superseded(found, arn, compressed).filter(|rule| !rule.id.is_empty());
    let refusals = superseded.filter_map(|rule| store.delete_notifications(Bucket::Lake, Some(&rule.id)).err());
    refusals.map(|error| format!("  {error}\n")).collect()
}

/// Fails if the store lost the new rule, or changed rules of other programs.
fn verify(
    before: &NotificationConfiguration,
    after: &NotificationConfiguration,
    arn: &str,
    compressed: bool,
) -> Result<(), String> {
    if !rules::has_our_rules(after, arn, compressed) {
        return Err("the store lost the new rule when older ones were deleted: install it again".to_owned());
    }
    let has = |entry: &ConfigurationElement| match entry.rule() {
        Some(rule) => after.rules().any(|other| other == rule),
        None => after.entries().iter().any(|other| other.text() == entry.text()),
    };
    let lost: Vec<String> =
        rules::foreign(before, arn).filter(|e| !has(e)).map(|entry| format!("  {}", rules::line(entry))).collect();
    match lost.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "the new rule is installed, but the store changed or dropped rules of other programs; restore these:\n\
             {}",
            lost.join("\n")
        )),
    }
}

impl Installed {
    pub(super) fn report(&self, bucket: &str, compressed: bool, out: &mut dyn Write) -> io::Result<()> {
        match self.target.arn() {
            Some(arn) => {
                let (suffixes, kind) = (rules::suffixes(compressed).join(", "), rules::kind_name(self.kind));
                writeln!(
                    out,
                    "objects created in `{bucket}` under pipelines/ that end in {suffixes} are reported to the {kind} \
                     {arn}"
                )?;
            }
            None => writeln!(out, "events of `{bucket}` are sent to EventBridge")?,
        }
        if !self.replaced.is_empty() {
            writeln!(out, "replaced rules of an earlier install:\n{}", rules::lines(self.replaced.iter()))?;
        }
        if !self.kept.is_empty() {
            writeln!(out, "kept rules of other programs:")?;
            for entry in &self.kept {
                writeln!(out, "  {}", rules::line(entry))?;
            }
        }
        if !self.overlapping.is_empty() {
            let overlapping = rules::lines(self.overlapping.iter());
            writeln!(
                out,
                "warning: these rules match some of the same files, which are then reported twice:\n\
                 {overlapping}\n\
                 {OVERLAP}"
            )?;
        }
        writeln!(out, "{}", self.target.requirements(self.kind))
    }
}

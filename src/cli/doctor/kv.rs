//! The key-value store: availability, safety, and the state of the queue.

use super::check::CheckResult;
use super::context::{DoctorContext, Missing};
use crate::ports::Kv;
use crate::ports::kv::{Diagnose, KvError};

/// The store, or the finding if it can't be opened.
fn kv(context: &DoctorContext) -> Result<&dyn Kv, Vec<CheckResult>> {
    context.kv().map_err(|missing| {
        vec![match missing {
            Missing::NotConfigured => CheckResult::skipped("the environment doesn't set the key-value store"),
            Missing::NotCreated(path) => CheckResult::ok(format!(
                "`{path}` does not exist yet: the first worker creates \
             it"
            )),
            Missing::CannotBeOpened(why) => CheckResult::problem(why, "correct KV_URL"),
        }]
    })
}

pub(super) fn health(context: &DoctorContext) -> Vec<CheckResult> {
    let kv = match kv(context) {
        Ok(kv) => kv,
        Err(findings) => return findings,
    };
    let unreachable = "check that the server of KV_URL is running, can be reached from here, and accepts its \
     credentials";
    if let Err(error) = kv.ping() {
        return vec![CheckResult::problem(error.to_string(), unreachable)];
    }
    match kv.report() {
        Err(error) => vec![CheckResult::problem(error.to_string(), unreachable)],
        Ok(report) => {
            let responds = CheckResult::ok(format!("{} responds", report.server));
            let findings = report.findings.into_iter().map(|finding| match finding.fatal {
                true => CheckResult::problem(finding.problem, finding.advice),
                false => CheckResult::warning(finding.problem, finding.advice),
            });
            std::iter::once(responds).chain(writes(kv)).chain(findings).collect()
        }
    }
}

/// Whether the store accepts writes.
fn writes(kv: &dyn Diagnose) -> Option<CheckResult> {
    let error = kv.probe_write().err()?;
    let advice = match &error {
        KvError::Refused { reason, .. } => refused_writes(reason),
        KvError::Unavailable { .. } => "check that the server of KV_URL is running and can be reached",
        KvError::Malformed { .. } => "find what else writes under `svc:`",
    };
    Some(CheckResult::problem(format!("it responds, but rejects writes: {error}"), advice))
}

/// Advice for a store that rejects writes, by a part of its reason.
fn refused_writes(reason: &str) -> &'static str {
    const GRANT: &str = "grant the user of KV_URL all required permissions: `ACL SETUSER USER +@all -@admin ~svc:*`";
    const ADVICE: [(&str, &str); 6] = [
        ("OOM", "Redis is out of memory: raise `maxmemory`, or find what uses the memory (`redis-cli --bigkeys`)"),
        ("READONLY", "KV_URL names a read-only replica: point it at the primary"),
        ("MISCONF", "Redis can't save to its disk: free some space there, and see its log"),
        ("NOREPLICAS", "start the replicas that `min-replicas-to-write` asks for"),
        ("NOPERM", GRANT),
        // Redis 7.0's text for a command within a script.
        ("user executing the script", GRANT),
    ];
    let known = ADVICE.iter().find(|(code, _)| reason.contains(code));
    known.map_or(
        "make it writable: otherwise no job can be claimed or finished, and nobody can log in",
        |(_, advice)| advice,
    )
}

pub(super) fn queue(context: &DoctorContext) -> Vec<CheckResult> {
    let kv = match context.kv() {
        Ok(kv) => kv,
        Err(_) => return vec![CheckResult::skipped("no key-value store to check")],
    };
    let counts = match kv.counts() {
        Ok(counts) => counts,
        Err(error) => return vec![CheckResult::skipped(format!("counting the jobs failed: {error}"))],
    };
    let queued = counts.stream.saturating_sub(counts.pending);
    let mut text = format!("{queued} queued, {} running, {} waiting until due", counts.pending, counts.waiting);
    if counts.requested > 0 {
        text.push_str(&format!(
            "; {} runs requested by comparisons, enqueued when nothing else is queued",
            counts.requested
        ));
    }
    let mut findings = vec![CheckResult::ok(text)];
    if counts.dead_letters > 0 {
        let message = format!(
            "{} entries without a valid pipeline are in the dead letters (svc:jobs:dead), with the reason",
            counts.dead_letters
        );
        let advice = "correct the program that adds them to the stream, then delete the list";
        findings.push(CheckResult::warning(message, advice));
    }
    findings
}

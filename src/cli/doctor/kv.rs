//! The key-value store: whether it answers and is safe, and what waits in it.

use super::check::CheckResult;
use super::surroundings::{Missing, Surroundings};
use crate::ports::Kv;
use crate::ports::kv::{Diagnose, KvError};

/// The store, or the finding if it can't be opened.
fn kv(around: &Surroundings) -> Result<&dyn Kv, Vec<CheckResult>> {
    around.kv().map_err(|missing| {
        vec![match missing {
            Missing::NotNamed => CheckResult::skipped("the environment doesn't say where the key-value store is"),
            Missing::NotMade(path) => CheckResult::ok(format!("`{path}` is not there yet: the first worker makes it")),
            Missing::CannotBeOpened(why) => CheckResult::problem(why, "correct KV_URL"),
        }]
    })
}

pub(super) fn health(around: &Surroundings) -> Vec<CheckResult> {
    let kv = match kv(around) {
        Ok(kv) => kv,
        Err(findings) => return findings,
    };
    let unreachable = "see whether the server of KV_URL runs, can be reached from here, and takes its credentials";
    if let Err(error) = kv.ping() {
        return vec![CheckResult::problem(error.to_string(), unreachable)];
    }
    match kv.report() {
        Err(error) => vec![CheckResult::problem(error.to_string(), unreachable)],
        Ok(report) => {
            let answers = CheckResult::ok(format!("{} answers", report.server));
            let findings = report.findings.into_iter().map(|finding| match finding.fatal {
                true => CheckResult::problem(finding.problem, finding.advice),
                false => CheckResult::warning(finding.problem, finding.advice),
            });
            std::iter::once(answers).chain(writes(kv)).chain(findings).collect()
        }
    }
}

/// Whether it takes what services write.
fn writes(kv: &dyn Diagnose) -> Option<CheckResult> {
    let error = kv.probe_write().err()?;
    let advice = match &error {
        KvError::Refused { reason, .. } => refused_writes(reason),
        KvError::Unavailable { .. } => "see whether the server of KV_URL stays reachable",
        KvError::Malformed { .. } => "see what writes under `svc:` beside Lakemill",
    };
    Some(CheckResult::problem(format!("it answers, but takes no writes: {error}"), advice))
}

/// What to do about a store that refuses writes, by what its reason contains.
fn refused_writes(reason: &str) -> &'static str {
    const GRANT: &str = "let the user of KV_URL use all that is needed: `ACL SETUSER USER +@all -@admin ~svc:*`";
    const ADVICE: [(&str, &str); 6] = [
        ("OOM", "Redis is out of memory: raise `maxmemory`, or find out what fills it"),
        ("READONLY", "KV_URL names a read-only replica: point it at the primary"),
        ("MISCONF", "Redis can't save to its disk: make room there, and see its log"),
        ("NOREPLICAS", "start the replicas that `min-replicas-to-write` asks for"),
        ("NOPERM", GRANT),
        // As Redis 7.0 says it of a command within a script.
        ("user executing the script", GRANT),
    ];
    let known = ADVICE.iter().find(|(code, _)| reason.contains(code));
    known.map_or("let it be written: no job can be taken or ended, and nobody can log in", |(_, advice)| advice)
}

pub(super) fn queue(around: &Surroundings) -> Vec<CheckResult> {
    let kv = match around.kv() {
        Ok(kv) => kv,
        Err(_) => return vec![CheckResult::skipped("there is no key-value store to look at")],
    };
    let counts = match kv.counts() {
        Ok(counts) => counts,
        Err(error) => return vec![CheckResult::skipped(format!("can't be counted: {error}"))],
    };
    let queued = counts.stream.saturating_sub(counts.pending);
    let told = format!("{queued} queued, {} running, {} waiting until due", counts.pending, counts.waiting);
    let mut findings = vec![CheckResult::ok(told)];
    if counts.dead > 0 {
        let message =
            format!("{} entries that no pipeline can own are kept in svc:jobs:dead, with the reason", counts.dead);
        let advice = "correct what puts them into the stream, then delete the list";
        findings.push(CheckResult::warning(message, advice));
    }
    findings
}

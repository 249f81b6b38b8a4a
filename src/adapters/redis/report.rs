//! Diagnostics of the server: unsafe settings and unsupported versions.
//!
//! Uses `INFO` where possible, since managed servers often forbid `CONFIG`.

use std::collections::HashMap;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::connection::Repeat;
use super::keys;
use super::kv::RedisKv;
use super::reply::OperationReply;
use super::scripts::{self, Call};
use crate::ports::kv::{Diagnose, KvError, KvFinding, KvReport, KvResult};

/// The oldest supported version.
const VERSION_MIN: (u64, u64) = (6, 2);
const OPERATION: &str = "report";
/// TTL of the write probe.
const PROBE_TTL: Duration = Duration::from_secs(60);
/// A higher use of the server's maximum memory is reported.
const MEMORY_PERCENT_MAX: u64 = 80;
/// Code for a command that the user's ACL forbids.
const NO_PERMISSION: &str = "NOPERM";

impl Diagnose for RedisKv {
    fn ping(&self) -> KvResult<()> {
        let reply = OperationReply::new("ping", self.pool.request("ping", Repeat::Idempotent, &::redis::cmd("PING"))?);
        if reply.text()? == "PONG" { Ok(()) } else { Err(reply.unexpected("`PONG`")) }
    }

    fn probe_write(&self) -> KvResult<()> {
        Call::new(&scripts::PROBE_WRITE, [keys::PROBE]).ms(PROBE_TTL).run(&self.pool)?;
        Ok(())
    }

    fn report(&self) -> KvResult<KvReport> {
        let info = match self.info() {
            Ok(info) => info,
            Err(KvError::Refused { reason, .. }) if reason.starts_with(NO_PERMISSION) => return Ok(without_info()),
            Err(error) => return Err(error),
        };
        let settings = self.settings(&["save", "appendfsync", "maxmemory-policy"])?;
        Ok(assess(&info, settings.as_ref()))
    }

    fn failures(&self) -> u64 {
        self.pool.failures()
    }

    fn time(&self) -> KvResult<Option<DateTime<Utc>>> {
        let reply = OperationReply::new("time", self.pool.request("time", Repeat::Idempotent, &::redis::cmd("TIME"))?);
        let [seconds, micros] = reply.parts()?;
        Ok(DateTime::from_timestamp_micros(
            seconds.number()?.saturating_mul(1_000_000).saturating_add(micros.number()?),
        ))
    }
}

impl RedisKv {
    fn info(&self) -> KvResult<HashMap<String, String>> {
        let text =
            OperationReply::new(OPERATION, self.pool.request(OPERATION, Repeat::Idempotent, &::redis::cmd("INFO"))?)
                .text()?;
        let pairs = text.lines().filter_map(|line| line.split_once(':'));
        Ok(pairs.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect())
    }

    /// `None` if the server rejects `CONFIG`.
    fn settings(&self, names: &[&str]) -> KvResult<Option<HashMap<String, String>>> {
        let mut settings = HashMap::new();
        for name in names {
            let mut command = ::redis::cmd("CONFIG");
            command.arg("GET").arg(name);
            let value = match self.pool.request(OPERATION, Repeat::Idempotent, &command) {
                Ok(value) => value,
                Err(KvError::Refused { .. }) => return Ok(None),
                Err(error) => return Err(error),
            };
            let [name, value] = OperationReply::new(OPERATION, value).parts()?;
            if let (Some(name), Some(value)) = (name.optional_text()?, value.optional_text()?) {
                settings.insert(name, value);
            }
        }
        Ok(Some(settings))
    }
}

/// The report if the user's ACL forbids `INFO`: jobs run without it, the checks don't.
fn without_info() -> KvReport {
    let problem = "the user of KV_URL may not call `INFO`, so these were not checked: the version (6.2 or newer is \
     required), whether the server is a replica or a cluster, maxmemory-policy, the memory in use, and persistence";
    let advice = "grant that user `INFO`, and `CONFIG GET` for the other settings: `ACL SETUSER USER +info \
     +config|get`; neither changes anything on the server";
    let finding = KvFinding { fatal: false, problem: problem.to_owned(), advice: advice.to_owned() };
    KvReport { server: "a Redis server of unknown version".to_owned(), findings: vec![finding] }
}

fn assess(info: &HashMap<String, String>, settings: Option<&HashMap<String, String>>) -> KvReport {
    let info_of = |name: &str| info.get(name).map(String::as_str);
    let set = |name: &str| settings.and_then(|settings| settings.get(name)).map(String::as_str);
    let version = info_of("redis_version").unwrap_or("of unknown version");
    let mut findings = Vec::new();
    let mut find = |fatal, problem: String, advice: &str| {
        findings.push(KvFinding { fatal, problem, advice: advice.to_owned() });
    };
    if parse_version(version).is_none_or(|version| version < VERSION_MIN) {
        find(true, format!("the server is Redis `{version}`, expected 6.2 or newer"), "install a newer Redis");
    }
    if info_of("cluster_enabled") == Some("1") {
        find(true, "the server runs in cluster mode, expected one without".into(), "use a server without Cluster");
    }
    if info_of("role").is_some_and(|role| role != "master") {
        let problem = format!("the server's role is `{}`, expected `master`", info_of("role").unwrap_or_default());
        find(true, problem, "point `KV_URL` at the primary: a replica rejects writes");
    }
    match info_of("maxmemory_policy").or(set("maxmemory-policy")) {
        Some("noeviction") => {}
        Some(policy) => find(
            false,
            format!("maxmemory-policy is `{policy}`, expected `noeviction`"),
            "set `maxmemory-policy noeviction`: with any other policy, Redis evicts jobs and locks when memory is \
             short",
        ),
        None => find(false, "maxmemory-policy could not be checked".into(), "make sure that it is `noeviction`"),
    }
    let bytes = |name: &str| info_of(name).and_then(|text| text.parse::<u64>().ok()).filter(|bytes| *bytes > 0);
    if let (Some(used), Some(limit)) = (bytes("used_memory"), bytes("maxmemory"))
        && used / 100 >= limit / 10_000 * MEMORY_PERCENT_MAX
    {
        find(
            false,
            format!("{} MiB of its maxmemory of {} MiB are used", used >> 20, limit >> 20),
            "raise `maxmemory`, or find what uses the memory (`redis-cli --bigkeys`): at the limit Redis rejects new \
             jobs",
        );
    }
    let append_only = info_of("aof_enabled") == Some("1");
    match (append_only, set("save")) {
        (true, _) => {}
        (false, Some("")) => find(
            false,
            "persistence is off (appendonly is `no`, save is empty)".into(),
            "set `appendonly yes`: without it a restart loses every queued job",
        ),
        (false, Some(save)) => find(
            false,
            format!("appendonly is `no`, and snapshots are only taken by `save {save}`"),
            "set `appendonly yes`: without it a crash loses the jobs since the last snapshot",
        ),
        (false, None) => find(
            false,
            "appendonly is `no`; whether snapshots are taken could not be checked (`CONFIG GET` is refused)".into(),
            "set `appendonly yes`, or make sure that the server's data is persisted otherwise",
        ),
    }
    match (append_only, set("appendfsync")) {
        (true, Some("no")) => find(
            false,
            "appendfsync is `no`, expected `everysec` or `always`".into(),
            "set `appendfsync everysec`: otherwise a power failure may lose half a minute of jobs",
        ),
        (true, None) => find(
            false,
            "appendfsync could not be checked (`CONFIG GET` is refused)".into(),
            "make sure that it is `everysec` or `always`",
        ),
        (_, _) => {}
    }
    KvReport { server: format!("Redis {version}"), findings }
}

fn parse_version(text: &str) -> Option<(u64, u64)> {
    let mut numbers = text.split('.').map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(pairs: &[(&str, &str)]) -> HashMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    const HEALTHY: &[(&str, &str)] = &[
        ("redis_version", "7.0.15"),
        ("cluster_enabled", "0"),
        ("role", "master"),
        ("maxmemory_policy", "noeviction"),
        ("aof_enabled", "1"),
    ];

    fn findings(changed: (&str, &str), settings: Option<&[(&str, &str)]>) -> Vec<(bool, String)> {
        let mut info = pairs(HEALTHY);
        info.insert(changed.0.into(), changed.1.into());
        let report = assess(&info, settings.map(pairs).as_ref());
        report.findings.into_iter().map(|finding| (finding.fatal, finding.problem)).collect()
    }

    #[test]
    fn healthy_server_has_no_findings() {
        let settings = [("appendfsync", "everysec"), ("save", "")];
        assert_eq!(findings(("role", "master"), Some(&settings)), []);
        assert_eq!(findings(("redis_version", "6.2.0"), Some(&settings)), []);
        assert_eq!(findings(("redis_version", "10.0.1"), Some(&settings)), []);
    }

    #[test]
    fn unsupported_setups_are_fatal_and_risks_are_not() {
        let settings = [("appendfsync", "everysec"), ("save", "")];
        for (name, value, fatal, part) in [
            ("redis_version", "6.0.16", true, "expected 6.2 or newer"),
            ("redis_version", "odd", true, "`odd`"),
            ("cluster_enabled", "1", true, "cluster"),
            ("role", "slave", true, "`slave`"),
            ("maxmemory_policy", "allkeys-lru", false, "`allkeys-lru`, expected `noeviction`"),
            ("aof_enabled", "0", false, "persistence is off"),
        ] {
            let found = findings((name, value), Some(&settings));
            assert_eq!(found.len(), 1, "{name}={value}: {found:?}");
            assert!(found[0].0 == fatal && found[0].1.contains(part), "{name}={value}: {found:?}");
        }
        let found = findings(("aof_enabled", "0"), Some(&[("save", "3600 1"), ("appendfsync", "everysec")]));
        assert!(found[0].1.contains("`save 3600 1`"), "{found:?}");
        let found = findings(("role", "master"), Some(&[("appendfsync", "no")]));
        assert!(found[0].1.contains("appendfsync is `no`"), "{found:?}");
    }

    #[test]
    fn unchecked_settings_are_reported() {
        let found = findings(("role", "master"), None);
        assert!(found.len() == 1 && found[0].1.contains("could not be checked"), "{found:?}");
        let found = findings(("aof_enabled", "0"), None);
        assert!(found.len() == 1 && found[0].1.contains("could not be checked"), "{found:?}");
    }
}

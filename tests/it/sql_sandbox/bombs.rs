//! Statements that exhaust resources: each ends by its deadline, within its memory limit, without effect on others.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lakemill::sql::sandbox::{
    ExportFormat, ParameterizedStatement, RowLimits, SandboxError, SandboxOptions, SqlErrorKind,
};

use super::setup::*;

/// Memory of a child beyond DuckDB's limit: code, its own buffers, and what DuckDB doesn't count.
const RESIDENT_MAX: u64 = 640 * MIB;
const DEADLINE: Duration = Duration::from_secs(4);
/// Time for a killed process to exit, on a busy machine.
const GRACE: Duration = Duration::from_secs(20);

/// Longest time that a process is watched.
const LONGEST: Duration = Duration::from_secs(600);

/// Samples the peak memory of a process.
struct Watch {
    over: Arc<AtomicBool>,
    most: Arc<AtomicU64>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Watch {
    fn start(pid: u32) -> Self {
        let (over, most) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (ended, seen) = (Arc::clone(&over), Arc::clone(&most));
        let thread = std::thread::spawn(move || {
            let until = Instant::now() + LONGEST;
            while !ended.load(Ordering::Relaxed) && Instant::now() < until {
                let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
                let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
                let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
                seen.fetch_max(kib.unwrap_or_default() * 1_024, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        Self { over, most, thread: Some(thread) }
    }

    fn most(mut self) -> u64 {
        self.over.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
        self.most.load(Ordering::Relaxed)
    }
}

fn site() -> Site {
    Site::with(|options| SandboxOptions { memory_bytes: 128 * MIB, ..options })
}

/// The statement ends normally, at a limit, or with an error that names the limit.
fn assert_bounded(site: &Site, sql: &str) {
    let mut child = site.child();
    let watch = Watch::start(child.pid().unwrap());
    let began = Instant::now();
    let outcome =
        child.rows(&ParameterizedStatement::plain(sql), RowLimits { rows: 1_000, bytes: 8 * MIB }, began + DEADLINE);
    let shown: String = sql.chars().take(100).collect();
    assert!(began.elapsed() < DEADLINE + GRACE, "{shown}");
    match &outcome {
        Ok(rows) => assert!(rows.rows.len() as u64 <= 8 * MIB, "{shown}"),
        Err(SandboxError::Sql(error)) => assert!(
            matches!(
                error.kind,
                SqlErrorKind::Timeout
                    | SqlErrorKind::OutOfMemory
                    | SqlErrorKind::InvalidSql
                    | SqlErrorKind::Failed
                    | SqlErrorKind::TooLarge
            ),
            "{shown}: {error:?}"
        ),
        Err(other) => panic!("{shown}: {other}"),
    }
    let most = watch.most();
    assert!(most < RESIDENT_MAX, "{shown}: {} MiB, {outcome:?}", most / MIB);
    drop(child);
    site.works();
}

#[test]
fn time_bombs_end_by_the_deadline() {
    let site = site();
    for sql in [
        "SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE a.range * b.range = -1",
        "SELECT sum(a.range) FROM range(1000000000000) a",
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT count(*) FROM t",
        "SELECT regexp_matches(repeat('a', 100000) || 'b', '(a|aa)+$') FROM range(10000)",
        "SELECT count(*) FROM range(100000) a, range(100000) b WHERE levenshtein(repeat('ab', 500) || a.range, repeat('ba', 500) || b.range) = 0",
    ] {
        assert_bounded(&site, sql);
    }
}

#[test]
fn memory_bombs_end_within_their_limit() {
    let site = site();
    for sql in [
        "SELECT repeat('x', 1000000000)",
        "SELECT length(repeat(repeat('x', 1000000), 1000000))",
        "SELECT string_agg(repeat('x', 1000), '') FROM range(100000000)",
        "SELECT list(range) FROM range(10000000000)",
        "SELECT len(generate_series(1, 10000000000))",
        "SELECT range AS k, count(*) FROM range(1000000000) GROUP BY k ORDER BY 2 DESC",
        "SELECT * FROM range(1000000000) ORDER BY hash(range)",
        "SELECT count(DISTINCT hash(range)) FROM range(10000000000)",
        "SELECT printf('%2000000000d', 1)",
        "SELECT format('{:2000000000}', 1)",
        "SELECT lpad('x', 2000000000, 'y')",
        "WITH RECURSIVE t(s) AS (SELECT 'x' UNION ALL SELECT s || s FROM t) SELECT max(length(s)) FROM t",
        "SELECT json_extract('[' || repeat('[', 50000000), '$')",
        "SELECT to_json(list(range)) FROM range(50000000)",
        "SELECT a.range FROM range(100000000) a JOIN range(100000000) b ON hash(a.range) = hash(b.range)",
        "SELECT list_transform(generate_series(1, 20000000), x -> repeat('y', 1000))",
    ] {
        assert_bounded(&site, sql);
    }
}

#[test]
fn malformed_bombs_are_refused_or_ended() {
    let site = site();
    let deep = |open: &str, close: &str, count: usize| format!("SELECT {}1{}", open.repeat(count), close.repeat(count));
    let columns = (0..20_000).map(|at| format!("range AS c{at}")).collect::<Vec<_>>().join(", ");
    let joined = (0..200).map(|at| format!("(SELECT 1 AS x) t{at}")).collect::<Vec<_>>().join(", ");
    for sql in [
        deep("(", ")", 100_000),
        deep("[", "]", 100_000),
        deep("abs(", ")", 20_000),
        deep("-", "", 100_000),
        deep("NOT ", "", 30_000),
        format!("SELECT 1{}", " + 1".repeat(50_000)),
        format!("SELECT {} FROM range(100000)", columns),
        format!("SELECT count(*) FROM {joined}"),
        format!("SELECT 1 WHERE 1 IN ({})", vec!["1"; 100_000].join(",")),
        format!("SELECT '{}'", "x".repeat(10 << 20)),
        format!("{}SELECT 1{}", "SELECT * FROM (".repeat(2_000), ")".repeat(2_000)),
    ] {
        assert_bounded(&site, &sql);
    }
}

#[test]
fn slow_reader_blocks_only_its_child() {
    let site = site();
    let endless = ParameterizedStatement::plain("SELECT repeat('x', 1000) FROM range(1000000000)");
    let child = site.child();
    let watch = Watch::start(child.pid().unwrap());
    let unread = child.download(&endless, ExportFormat::Csv, Instant::now() + Duration::from_secs(2)).unwrap();
    site.works();
    let mut other =
        site.child().download(&endless, ExportFormat::Json, Instant::now() + Duration::from_secs(2)).unwrap();
    let mut piece = [0; 1_000];
    let failed = loop {
        match std::io::Read::read(&mut other, &mut piece) {
            Ok(0) => panic!("an endless result has no clean end"),
            Ok(_) => std::thread::sleep(Duration::from_millis(1)),
            Err(error) => break error,
        }
    };
    assert!(failed.to_string().contains("time limit"), "{failed}");
    assert!(watch.most() < RESIDENT_MAX);
    drop(unread);
    site.works();
}

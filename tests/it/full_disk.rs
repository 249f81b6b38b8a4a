//! A full disk: the run's error names the remedy; tables are unchanged, or repaired by the next run with enough space.

use std::fmt::Write as _;
use std::process::Command;

use lakemill::domain::job::RunErrorCode;
use lakemill::ports::store::StoreError;

use crate::support::children::Reaped as _;
use crate::support::folders::config;
use crate::support::lake::{Lake, MIB, Rng, RunParams, difference};

const MAPPING: &str = r#"{ "columns": [
    { "name": "p", "type": "int32" }, { "name": "n", "type": "int64" }, { "name": "s", "type": "string" } ],
    "partition_by": ["p"] }"#;

fn csv(seed: u64, rows: u64) -> String {
    let mut rng = Rng::new(seed);
    let mut text = "p,n,s\n".to_owned();
    for n in 0..rows {
        let (a, b, c, d) = (rng.next_u64(), rng.next_u64(), rng.next_u64(), rng.next_u64());
        writeln!(text, "{},{n},{a:016x}{b:016x}{c:016x}{d:016x}", n % 10).unwrap();
    }
    text
}

#[test]
fn full_output_fails_the_run_and_freed_space_fixes_it() {
    let mut failed = 0;
    for write in 1..60 {
        let lake = Lake::new(MAPPING);
        lake.put("a.csv", csv(1, 100));
        lake.run(RunParams::new(2, 64 * MIB)).unwrap();
        let before = lake.warehouse();
        lake.put("a.csv", csv(2, 100));
        let first = lake.store.writes();
        for n in write..100 {
            lake.store.fail_write(first + n, |bucket, key| StoreError::DiskFull { bucket, key: key.to_owned() });
        }
        match lake.run(RunParams::new(2, 64 * MIB)) {
            // The root is written; the next run deletes the replaced files.
            Ok(_) => assert!(write > 12, "ten partitions and the manifest, in {write} writes"),
            Err(failure) => {
                assert_eq!(failure.error.code, RunErrorCode::DiskFull);
                assert!(failure.error.code.is_transient());
                let detail = failure.error.detail.unwrap();
                assert!(detail.contains("free some space"), "{detail}");
                let after = lake.warehouse();
                assert!(before.iter().all(|(key, bytes)| after.get(key) == Some(bytes)), "the table is as it was");
                failed += 1;
            }
        }
        let roomy = lake.fresh();
        let lake = lake.with_a_sound_store();
        lake.run(RunParams::new(2, 64 * MIB)).unwrap();
        roomy.run(RunParams::new(2, 64 * MIB)).unwrap();
        assert_eq!(difference(&roomy.warehouse(), &lake.warehouse()), None);
    }
    assert!((12..40).contains(&failed), "{failed} runs failed");
}

/// Runs in a mount namespace of its own, so that nothing remains: a first run that fits, a second that doesn't, and the
/// same with more space. Returns the state after each.
const SCRIPT: &str = r#"
set -u
mount -t tmpfs -o size=8m tmpfs "$OUT" || exit 77
tell() { (cd "$OUT" && find . -type f | sort | xargs sha256sum | grep -v -e _lakemill/ -e /locks/); echo "== status $1"; }
run() { "$LAKEMILL" run "$CONFIG" --input "$1" --output "$OUT" --quiet --memory 64 2>&1 >/dev/null; tell $?; }
run "$SMALL"
run "$LARGE"
run "$SMALL"
mount -o remount,size=200m "$OUT"
run "$LARGE"
"#;

#[test]
fn disk_full_during_conversion_leaves_tables_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    for (name, rows) in [("small", 2_000), ("large", 300_000)] {
        std::fs::create_dir(folder.path().join(name)).unwrap();
        std::fs::write(folder.path().join(name).join("a.csv"), csv(3, rows)).unwrap();
    }
    std::fs::create_dir(folder.path().join("out")).unwrap();
    let config = config(folder.path(), MAPPING);
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", SCRIPT]);
    command.env("LAKEMILL", env!("CARGO_BIN_EXE_lakemill")).env("CONFIG", config);
    for name in ["small", "large", "out"] {
        command.env(name.to_uppercase(), folder.path().join(name));
    }
    // Mounting may not be permitted; the test above covers that case.
    let Ok(output) = command.output_reaped() else { return };
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if !said.contains("== status") {
        return;
    }
    let runs: Vec<&str> = said.split_inclusive("== status").collect();
    let status: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix("== status ")).collect();
    assert_eq!(status, ["0", "1", "0", "0"], "{said}");
    let hashes = |run: &str| -> Vec<String> {
        run.lines().filter(|l| l.ends_with(".parquet") || l.contains("  ./")).map(str::to_owned).collect()
    };
    assert!(runs[1].contains("(disk_full)") && runs[1].contains("free some space"), "{}", runs[1]);
    assert!(runs[1].contains("nothing was published: the tables are unchanged"), "{}", runs[1]);
    assert_eq!(hashes(runs[0]), hashes(runs[1]), "and nothing is left over");
    assert_eq!(hashes(runs[0]), hashes(runs[2]));
    assert_ne!(hashes(runs[0]), hashes(runs[3]));
    assert_eq!(hashes(runs[0]).len(), hashes(runs[3]).len());
}

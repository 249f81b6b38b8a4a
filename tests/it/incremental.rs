//! Runs over real CSVs that are added, changed and removed, with crashes in between: every byte equals a clean run's.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use lakemill::domain::job::{RunResult, SourceResult};
use lakemill::ports::store::Bucket;

use crate::support::faulty_store::CrashTiming;
use crate::support::lake::{Lake, MIB, Rng, RunParams, difference};

const MAPPING: &str = r#"{ "columns": [
    { "name": "p", "type": "string" }, { "name": "n", "type": "int32" }, { "name": "s", "type": "string" },
    { "name": "twice", "type": "int32", "expr": "n * 2" } ],
    "where": "n <> 13", "rejects": { "max_ratio": 1.0 }, "partition_by": ["p"],
    "parquet": { "row_group_rows": 1024 } }"#;

fn how() -> RunParams {
    RunParams::new(2, 16 * MIB)
}

/// A CSV with rows for the given partitions.
fn csv(rng: &mut Rng, partitions: &[u64], rows: u64, bad: bool) -> String {
    let mut text = "p,n,s\n".to_owned();
    for _ in 0..rows {
        let p = partitions[rng.below(partitions.len() as u64) as usize];
        let n = if bad && rng.one_in(10) { "none".to_owned() } else { rng.below(40).to_string() };
        writeln!(text, "p{p},{n},\"{:x}\n\"", rng.below(1 << 20)).unwrap();
    }
    text
}

fn assert_accounted(lake: &Lake, result: &RunResult) {
    let table = &result.tables["t"];
    for SourceResult { source, rows_read, rows_written, rows_rejected, rows_filtered, .. } in &table.sources {
        assert_eq!(*rows_read, rows_written + rows_rejected + rows_filtered, "{source}");
    }
    let Some(manifest) = lake.manifest() else { return };
    let mut given: BTreeMap<&str, u64> = BTreeMap::new();
    for (key, source) in &manifest.sources {
        assert_eq!(source.rows_read, source.rows_written + source.rows_rejected + source.rows_filtered, "{key}");
        assert_eq!(source.rows_written, source.partitions.values().sum::<u64>(), "{key}");
        assert_eq!(source.rows_rejected, manifest.rejects.get(key).map_or(0, |file| file.rows), "{key}");
        source.partitions.iter().for_each(|(p, rows)| *given.entry(p).or_default() += rows);
    }
    let mut found: BTreeMap<&str, u64> = BTreeMap::new();
    for (key, group) in &manifest.groups {
        *found.entry(&key.partition).or_default() += group.files.iter().map(|file| file.rows).sum::<u64>();
    }
    assert_eq!(found, given);
    assert_eq!(table.rows_written, manifest.rows());
}

/// The files equal those of a clean run of the lake, byte for byte.
fn as_clean(lake: &Lake) {
    let clean = lake.fresh();
    clean.run(how().clean()).unwrap();
    assert_eq!(difference(&clean.warehouse(), &lake.warehouse()), None);
}

/// Six sources, each with two neighbouring partitions of its own.
fn neighbours() -> Lake {
    let lake = Lake::new(MAPPING);
    let mut rng = Rng::new(1);
    for n in 0..6 {
        lake.put(&format!("{n}.csv"), csv(&mut rng, &[n, n + 1], 400, false));
    }
    assert_accounted(&lake, &lake.run(how()).unwrap());
    as_clean(&lake);
    lake.store.reset_counts();
    lake
}

/// The partitions written since the counters were reset, and the sources read.
fn written(lake: &Lake) -> (BTreeSet<String>, u64) {
    let partition = |line: String| Some(line.split_once("/t/")?.1.split('/').next()?.to_owned());
    let of_table = |line: &String| line.starts_with("put ") && line.contains("/x/t/");
    let written = lake.store.written().into_iter().filter(of_table).filter_map(partition).collect();
    let read = lake.store.counts(Bucket::Lake).gets;
    lake.store.reset_counts();
    (written, read)
}

fn partitions(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| format!("p={name}")).collect()
}

#[test]
fn unchanged_run_reads_no_source_and_writes_nothing() {
    let lake = neighbours();
    let result = lake.run(how()).unwrap();
    assert_eq!((lake.store.writes(), lake.store.counts(Bucket::Lake).gets), (0, 0));
    assert_eq!((result.tables["t"].partitions_written, result.tables["t"].partitions_unchanged), (0, 7));
}

#[test]
fn only_changed_partitions_are_written() {
    let lake = neighbours();
    let mut rng = Rng::new(2);

    lake.put("2.csv", csv(&mut rng, &[2, 3], 300, false));
    assert_accounted(&lake, &lake.run(how()).unwrap());
    assert_eq!(
        written(&lake),
        (partitions(&["p2", "p3"]), 1),
        "`2`; rows of `1` and `3`, that share its partitions, are stored"
    );
    as_clean(&lake);

    lake.put("new.csv", csv(&mut rng, &[5, 9], 100, false));
    assert_accounted(&lake, &lake.run(how()).unwrap());
    assert_eq!(written(&lake), (partitions(&["p5", "p9"]), 1));
    as_clean(&lake);

    let gone = csv(&mut Rng::new(7), &[9], 50, false);
    lake.put("gone.csv", &gone);
    assert_accounted(&lake, &lake.run(how()).unwrap());
    as_clean(&lake);
    written(&lake);
    lake.remove("gone.csv");
    assert_accounted(&lake, &lake.run(how()).unwrap());
    assert_eq!(written(&lake), (partitions(&["p9"]), 0), "the rows of `new` are stored");
    as_clean(&lake);
    lake.put("gone.csv", &gone);
    assert_accounted(&lake, &lake.run(how()).unwrap());
    assert_eq!(written(&lake), (partitions(&["p9"]), 1));
    as_clean(&lake);
}

#[test]
fn changes_and_crashes_give_the_result_of_a_clean_run() {
    let (mut changes, mut crashes) = (0, 0);
    for seed in 0..24 {
        let mut rng = Rng::new(seed);
        let lake = Lake::new(MAPPING);
        let mut texts: BTreeMap<u64, Vec<String>> = BTreeMap::new();
        for _ in 0..8 {
            for _ in 0..1 + rng.below(3) {
                changes += 1;
                let n = rng.below(5);
                let name = format!("{n}.csv");
                let known = texts.entry(n).or_default();
                match rng.below(6) {
                    0 => lake.remove(&name),
                    // The state of an earlier step.
                    1 if !known.is_empty() => lake.put(&name, &known[rng.below(known.len() as u64) as usize]),
                    _ => {
                        let (first, rows) = (rng.below(6), rng.below(60));
                        known.push(csv(&mut rng, &[first, first + 1, 6], rows, true));
                        lake.put(&name, known.last().unwrap());
                    }
                }
            }
            if lake.memory.contents(Bucket::Lake).is_empty() {
                continue;
            }
            while rng.one_in(2) {
                let dies = if rng.one_in(2) { CrashTiming::BeforeWrite } else { CrashTiming::AfterWrite };
                lake.store.crash_at_write(lake.store.writes() + 1 + rng.below(12), dies);
                crashes += u64::from(lake.run(how()).is_err());
                lake.store.restart();
            }
            let how = if rng.one_in(8) { how().clean() } else { how() };
            assert_accounted(&lake, &lake.run(how).unwrap());
            as_clean(&lake);
        }
    }
    assert!(changes > 300 && crashes > 50, "{changes} changes, {crashes} crashes");
}

#[test]
fn skipped_blank_lines_are_counted_for_each_source() {
    let lake = Lake::new(r#"{ "columns": [{ "name": "n", "type": "int64" }], "csv": { "skip_footer_rows": 1 } }"#);
    lake.put("a.csv", "\nn\n\n1\n\n\n2\n\nTotal\n\n");
    lake.put("b.csv", "n\n1\nTotal\n");
    let result = lake.run(how()).unwrap();
    let counts: Vec<_> = result.tables["t"].sources.iter().map(|s| (s.rows_read, s.blank_lines)).collect();
    assert_eq!(counts, [(2, 6), (1, 0)]);
}

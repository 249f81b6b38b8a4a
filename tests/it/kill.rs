//! `kill -9` at any moment of a run: what is published is whole at all times, and the next run ends with the right
//! tables.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::support::children::Reaped as _;
use crate::support::folders::{config, files, lakemill, published, succeed};
use crate::support::lake::Dice;
use crate::support::program::CALL_TIME_MAX;

const KILLS: u64 = 100;
const PARTITIONS: u64 = 36;

const MAPPING: &str = r#"{ "columns": [
    { "name": "p", "type": "int32" }, { "name": "n", "type": "int64" }, { "name": "s", "type": "string" } ],
    "rejects": { "max_ratio": 1.0 }, "partition_by": ["p"], "parquet": { "row_group_rows": 1024 } }"#;

/// Sources of the lake in its state `version`; half of them differ between the states.
fn write_lake(lake: &Path, version: u64) {
    for n in 0..6 {
        let mut dice = Dice::new(n * 10 + if n % 2 == 0 { version } else { 0 });
        let mut text = "p,n,s\n".to_owned();
        for _ in 0..2_500 {
            writeln!(text, "{},{},{:x}", dice.below(PARTITIONS), dice.roll() >> 1, dice.roll()).unwrap();
        }
        text.push_str("none,1,a row that is rejected\n");
        std::fs::write(lake.join(format!("{n}.csv")), text).unwrap();
    }
}

fn rows(file: &Path) -> usize {
    let reader = ParquetRecordBatchReaderBuilder::try_new(std::fs::File::open(file).unwrap()).unwrap();
    let expected = reader.metadata().file_metadata().num_rows();
    let rows = reader.build().unwrap().map(|batch| batch.unwrap().num_rows()).sum();
    assert_eq!(expected, rows as i64);
    rows
}

/// A lake in one of its states, and what a clean run makes of it.
struct Outcome {
    /// Without the rejects, which name the run.
    published: BTreeMap<String, String>,
    /// Every file of the output folder.
    names: BTreeSet<String>,
    took: Duration,
}

fn outcome(config: &Path, lake: &Path, version: u64) -> Outcome {
    write_lake(lake, version);
    let output = tempfile::tempdir().unwrap();
    let started = Instant::now();
    succeed(&mut lakemill(config, lake, output.path()));
    let took = started.elapsed();
    let all = files(output.path());
    let of_table = |(name, path): (&String, &std::path::PathBuf)| name.starts_with("t/").then(|| rows(path));
    assert_eq!(all.iter().filter_map(of_table).sum::<usize>(), 15_000);
    Outcome { published: table(output.path()), names: all.into_keys().collect(), took }
}

fn table(output: &Path) -> BTreeMap<String, String> {
    published(output).into_iter().filter(|(name, _)| name.starts_with("t/")).collect()
}

/// When a run is killed.
enum Moment {
    /// So long after its beginning.
    After(Duration),
    /// Once it publishes, and so many of the table's files are new.
    Published(usize),
}

/// What the table's files are, whatever they hold.
fn inodes(output: &Path) -> BTreeMap<String, u64> {
    let inode = |path: &Path| path.metadata().map_or(0, |found| found.ino());
    files(&output.join("t")).into_iter().map(|(name, path)| (name, inode(&path))).collect()
}

/// Kills a run at `moment`.
fn kill(command: &mut std::process::Command, output: &Path, moment: Moment) {
    let before = inodes(output);
    let manifest = output.join("_lakemill/manifests/t.json");
    let publishes = || {
        std::fs::read_to_string(&manifest)
            .is_ok_and(|text| text.contains("\"publishing\": {") || text.contains("\"publishing\":{"))
    };
    let renewed = || inodes(output).into_iter().filter(|(name, inode)| before.get(name) != Some(inode)).count();
    let mut child = command.stderr(std::process::Stdio::null()).spawn_reaped().unwrap();
    match moment {
        Moment::After(delay) => std::thread::sleep(delay),
        Moment::Published(files) => {
            let until = Instant::now() + CALL_TIME_MAX;
            while child.try_wait().unwrap().is_none() && (!publishes() || renewed() < files) {
                assert!(Instant::now() < until, "the run did not end");
                std::thread::yield_now();
            }
        }
    }
    // It may have ended by itself.
    let _ = child.kill();
    child.wait().unwrap();
}

#[test]
fn a_killed_run_leaves_whole_files_and_the_next_run_ends_with_the_right_tables() {
    let folder = tempfile::tempdir().unwrap();
    let (lake, output) = (folder.path().join("lake"), folder.path().join("out"));
    std::fs::create_dir(&lake).unwrap();
    let config = config(folder.path(), MAPPING);
    let outcomes = [outcome(&config, &lake, 1), outcome(&config, &lake, 0)];
    let took = outcomes[0].took.max(outcomes[1].took);
    let mut dice = Dice::new(11);
    let (mut partial, mut version) = (0, 0);
    for round in 0..KILLS {
        if round % 5 == 0 {
            std::fs::remove_dir_all(&output).ok();
        }
        if round % 7 != 6 {
            version = 1 - version;
            write_lake(&lake, version);
        }
        let expected = &outcomes[1 - version as usize];
        let mut command = lakemill(&config, &lake, &output);
        if round % 7 == 6 {
            command.arg("--clean");
        }
        let moment = match round % 2 {
            0 => Moment::After(Duration::from_micros(dice.below(took.as_micros() as u64))),
            _ => Moment::Published(dice.below(PARTITIONS) as usize),
        };
        kill(&mut command, &output, moment);

        let found = published(&output);
        for (name, hash) in &found {
            if name.starts_with("t/") {
                let known = outcomes.iter().any(|o| o.published.get(name) == Some(hash));
                assert!(known, "round {round}: `{name}` is neither the old nor the new file");
            } else {
                assert_eq!(rows(&output.join(name)), 1, "round {round}: `{name}`");
            }
        }
        let is = |o: &Outcome| o.published == table(&output);
        partial += u64::from(!outcomes.iter().any(is) && !found.is_empty());

        succeed(&mut lakemill(&config, &lake, &output));
        assert!(is(expected), "round {round}: the next run ends with the right tables");
        let names: BTreeSet<String> = files(&output).into_keys().collect();
        assert_eq!(names, expected.names, "round {round}: nothing is left over");
    }
    assert!(partial >= 5, "{partial} of {KILLS} kills hit a publish");
}

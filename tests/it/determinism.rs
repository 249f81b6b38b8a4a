//! The same lake gives the same bytes, regardless of threads, memory and the order in which sources arrive.

use std::fmt::Write as _;
use std::time::Duration;

use lakemill::domain::table_log::cuts::{Cut, CutTargets, cut_after, text_share};

use crate::support::lake::{Lake, MIB, Rng, RunParams, ScratchPeak, difference};

/// Threads and memory of the runs that are compared with a single-threaded run with plenty of memory.
const SETTINGS: [(usize, u64); 4] = [(1, MIB), (2, 4 * MIB), (3, 2 * MIB), (8, 8 * MIB)];

/// Scratch usage observed in the runs with little memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spills {
    /// Rows spilled to files.
    Rows,
    /// Row groups spilled to draft files, some of them read back.
    Drafts,
    /// Pages spilled until their row group ended.
    Pages,
    Nothing,
}

fn check(mapping: &str, sources: &[(String, String)], expected_spills: Spills) -> Lake {
    check_settings(mapping, sources, expected_spills, &SETTINGS)
}

fn check_settings(mapping: &str, sources: &[(String, String)], expected_spills: Spills, ways: &[(usize, u64)]) -> Lake {
    let lake = Lake::new(mapping);
    sources.iter().for_each(|(key, text)| lake.put(key, text));
    let result = lake.run(RunParams::AMPLE_MEMORY).unwrap();
    let table = &result.tables["t"];
    for source in &table.sources {
        assert_eq!(source.rows_read, source.rows_written + source.rows_rejected + source.rows_filtered);
    }
    let expected = lake.warehouse();
    let (mut spilled_rows, mut drafted, mut spilled_pages) = (false, false, false);
    for (nth, (threads, memory)) in ways.iter().copied().enumerate() {
        let other = lake.fresh();
        if nth % 2 == 1 {
            // The first or second source is slow, so that later ones are ready before it.
            other.store.before_get(1 + nth as u64 / 2, || std::thread::sleep(Duration::from_millis(60)));
        }
        let found = other.run(RunParams::new(threads, memory)).unwrap();
        assert_eq!(difference(&expected, &other.warehouse()), None, "{threads} threads, {memory} bytes");
        assert_eq!(found.tables["t"].sources, table.sources);
        assert_eq!(other.manifest().unwrap().groups, lake.manifest().unwrap().groups);
        let ScratchPeak { spills, files, pages } = other.seen();
        spilled_pages |= !pages.is_empty();
        spilled_rows |= !spills.is_empty();
        drafted |= !spills.is_empty() && files.len() > table.files as usize;
    }
    match expected_spills {
        Spills::Rows => assert!(spilled_rows, "no run spilled rows"),
        Spills::Drafts => assert!(drafted, "no run wrote a draft"),
        Spills::Pages => assert!(spilled_pages, "no run spilled pages"),
        Spills::Nothing => {}
    }
    by_halves(&lake);
    lake
}

/// Builds the same table in two steps, with little memory: rows of changed sources are buffered while they are read.
fn by_halves(whole: &Lake) {
    let Some(manifest) = whole.manifest() else { return };
    let halves = whole.fresh();
    let left_out: Vec<String> = manifest.sources.keys().step_by(2).cloned().collect();
    let texts = halves.memory.contents(lakemill::ports::store::Bucket::Lake);
    if left_out.len() == manifest.sources.len() {
        return;
    }
    left_out.iter().for_each(|source| halves.remove(source));
    halves.run(RunParams::new(2, 3 * MIB)).unwrap();
    left_out.iter().for_each(|source| halves.put(source, &texts[&halves.key(source)]));
    halves.run(RunParams::new(2, 2 * MIB)).unwrap();
    assert_eq!(difference(&whole.warehouse(), &halves.warehouse()), None, "in two steps");
}

fn sources(count: usize, header: &str, mut rows: impl FnMut(usize, &mut String)) -> Vec<(String, String)> {
    let one = |n| {
        let mut text = format!("{header}\n");
        rows(n, &mut text);
        (format!("{n:02}.csv"), text)
    };
    (0..count).map(one).collect()
}

const TYPICAL: &str = r#""columns": [
    { "name": "p", "type": "string" }, { "name": "id", "type": "int64" }, { "name": "amount", "type": "decimal(12,2)" },
    { "name": "at", "type": "timestamp" }, { "name": "ratio", "type": "float64" }, { "name": "note", "type": "string" },
    { "name": "flag", "type": "boolean" } ]"#;

/// A row for [`TYPICAL`]; most cells may be null.
fn typical(rng: &mut Rng, partition: u64, id: u64, text: &mut String) {
    write!(text, "p{partition},{id},").unwrap();
    if !rng.one_in(7) {
        write!(text, "{}.{:02}", rng.below(100_000), rng.below(100)).unwrap();
    }
    let (day, second) = (1 + rng.below(28), rng.below(60));
    write!(text, ",2024-02-{day:02} 10:11:{second:02},").unwrap();
    if !rng.one_in(5) {
        write!(text, "{}e-3", rng.below(1_000_000)).unwrap();
    }
    match rng.below(4) {
        0 => text.push(','),
        1 => write!(text, ",\"two\nlines, and \"\"quotes\"\" of {}\"", rng.below(50)).unwrap(),
        2 => write!(text, ",word{}", rng.below(20)).unwrap(),
        _ => write!(text, ",text of its own {:x}", rng.next_u64()).unwrap(),
    }
    text.push_str(if rng.one_in(2) { ",true\n" } else { ",\n" });
}

const TYPICAL_HEADER: &str = "p,id,amount,at,ratio,note,flag";

#[test]
fn partitions_touched_by_every_source() {
    for (seed, file_bytes) in [(1, 65_536), (2, 1 << 30)] {
        let mut rng = Rng::new(seed);
        let sources = sources(5, TYPICAL_HEADER, |_, text| {
            for id in 0..16_000 {
                let partition = rng.below(2);
                typical(&mut rng, partition, id, text);
            }
        });
        let mapping = format!(
            r#"{{ {TYPICAL}, "partition_by": ["p"],
                "parquet": {{ "row_group_rows": 30000, "file_bytes_max": {file_bytes} }} }}"#
        );
        let lake = check(&mapping, &sources, Spills::Rows);
        let parts = lake.warehouse().len();
        assert_eq!(parts, if file_bytes == 65_536 { 4 } else { 2 });
    }
}

#[test]
fn sources_sorted_by_partition() {
    // Each partition ends within a row group; if it ends at a slab boundary, spilled pages stay as they are.
    const ROWS: [u64; 4] = [20_480, 50_480, 24_000, 20_480];
    for file_bytes in [65_536, 1 << 30] {
        let mut rng = Rng::new(3);
        let sources = sources(4, TYPICAL_HEADER, |n, text| {
            for id in 0..ROWS[n] {
                typical(&mut rng, n as u64, id, text);
            }
        });
        let mapping = format!(
            r#"{{ {TYPICAL}, "partition_by": ["p"],
                "parquet": {{ "row_group_rows": 30000, "file_bytes_max": {file_bytes} }} }}"#
        );
        check(&mapping, &sources, if file_bytes == 65_536 { Spills::Rows } else { Spills::Drafts });
    }
}

#[test]
fn sorted_tables_with_ties_and_nulls() {
    for partition_by in ["", r#""partition_by": ["p"],"#] {
        let mut rng = Rng::new(4);
        let sources = sources(4, TYPICAL_HEADER, |_, text| {
            for id in 0..7_000 {
                let partition = rng.below(3);
                typical(&mut rng, partition, id % 100, text);
            }
        });
        let mapping = format!(
            r#"{{ {TYPICAL}, {partition_by} "sort_by": ["amount", "flag"],
                "parquet": {{ "row_group_rows": 3000, "file_bytes_max": 65536 }} }}"#
        );
        check(&mapping, &sources, Spills::Rows);
    }
}

#[test]
fn values_long_enough_to_end_slabs_and_row_groups() {
    for sort_by in ["", r#""sort_by": ["n"],"#] {
        let mut rng = Rng::new(5);
        let sources = sources(3, "n,s", |_, text| {
            for n in 0..60 {
                let length = rng.below(300_000) as usize;
                let letter = char::from(b'a' + rng.below(26) as u8);
                let long: String = (0..length / 8).map(|i| format!("{letter}{i:07x}")).collect();
                writeln!(text, "{},{long}", n % 7).unwrap();
            }
        });
        let mapping = format!(
            r#"{{ "columns": [ {{ "name": "n", "type": "int32" }}, {{ "name": "s", "type": "string" }} ], {sort_by}
                "parquet": {{ "row_group_rows": 100, "file_bytes_max": 65536 }} }}"#
        )
        .replace("\"row_group_rows\": 100,", "\"row_group_rows\": 1024,");
        check(&mapping, &sources, Spills::Rows);
    }
}

#[test]
fn many_rejects() {
    let mut rng = Rng::new(6);
    let sources = sources(2, "p,n", |_, text| {
        for _ in 0..40_000 {
            match rng.below(4) {
                0 => writeln!(text, "p{},{}", rng.below(5), rng.below(1000)).unwrap(),
                1 => writeln!(text, "p{},not a number {:x}{:x}", rng.below(5), rng.next_u64(), rng.next_u64()).unwrap(),
                2 => writeln!(text, "p{},1,one cell too many\" {:x}", rng.below(5), rng.next_u64()).unwrap(),
                _ => writeln!(text, "p{},99999999999999999999", rng.below(5)).unwrap(),
            }
        }
    });
    let mapping = r#"{ "columns": [ { "name": "p", "type": "string" }, { "name": "n", "type": "int32" } ],
        "partition_by": ["p"], "rejects": { "max_ratio": 1.0 } }"#;
    let lake = check(mapping, &sources, Spills::Rows);
    let rejects: usize =
        lake.warehouse().iter().filter(|(k, _)| k.contains("_rejected_rows")).map(|(_, b)| b.len()).sum();
    assert!(rejects > 1_000_000, "{rejects} bytes of rejects, packed");
}

#[test]
fn expressions_filters_and_checks() {
    let mut rng = Rng::new(7);
    let sources = sources(4, TYPICAL_HEADER, |_, text| {
        for id in 0..5_000 {
            let partition = rng.below(2);
            typical(&mut rng, partition, id, text);
        }
    });
    let mapping = r#"{ "columns": [
        { "name": "p", "type": "string" }, { "name": "id", "type": "int64" }, { "name": "amount", "type": "decimal(12,2)" },
        { "name": "note", "type": "string" },
        { "name": "twice", "type": "int64", "expr": "CASE WHEN id % 3 = 0 THEN NULL ELSE id * 2 END" },
        { "name": "inverse", "type": "float64", "expr": "CASE WHEN id % 2 = 0 THEN NULL ELSE 1 / (id + 1) END" },
        { "name": "loud", "type": "string", "expr": "CASE WHEN id % 4 = 0 THEN NULL ELSE upper(coalesce(note, 'none')) END" },
        { "name": "band", "type": "string", "expr": "CASE WHEN amount < 50000 THEN 'low' WHEN amount IS NULL THEN NULL ELSE 'high' END" } ],
        "where": "id <> 17", "checks": [ { "name": "sane", "assert": "amount IS NULL OR amount < 99000", "on_fail": "reject" } ],
        "rejects": { "max_ratio": 1.0 },
        "partition_by": ["p", "band"], "parquet": { "row_group_rows": 2048, "file_bytes_max": 65536 } }"#;
    let lake = check(mapping, &sources, Spills::Rows);
    let rows = lake.run(RunParams::AMPLE_MEMORY).unwrap();
    assert!(rows.tables["t"].rows_filtered == 4 && rows.tables["t"].rows_rejected > 50);
}

#[test]
fn two_thousand_partitions() {
    let mut rng = Rng::new(8);
    let sources = sources(3, "p,n,s", |_, text| {
        for n in 0..14_000 {
            writeln!(text, "{},{n},{:x}", rng.below(2_000), rng.below(1 << 40)).unwrap();
        }
    });
    let mapping = r#"{ "columns": [
        { "name": "p", "type": "int32" }, { "name": "n", "type": "int64" }, { "name": "s", "type": "string" } ],
        "partition_by": ["p"] }"#;
    let lake = check_settings(mapping, &sources, Spills::Rows, &SETTINGS[..2]);
    assert_eq!(lake.warehouse().len(), 2_000);
}

#[test]
fn pages_spilled_until_the_end_of_their_row_group() {
    let mut rng = Rng::new(12);
    let sources = sources(3, "p,n,s", |_, text| {
        for _ in 0..40_000 {
            writeln!(text, "{},{},{:016x}", rng.below(3), rng.below(1 << 50), rng.below(1 << 60)).unwrap();
        }
    });
    let mapping = r#"{ "columns": [
        { "name": "p", "type": "int32" }, { "name": "n", "type": "int64" }, { "name": "s", "type": "string" } ],
        "partition_by": ["p"] }"#;
    check(mapping, &sources, Spills::Pages);
}

#[test]
fn days_in_any_order_within_the_partition_of_their_month() {
    let mut rng = Rng::new(9);
    let sources = sources(3, "d,n", |_, text| {
        for n in 0..20_000 {
            let (month, day) = (1 + rng.below(3), 1 + rng.below(28));
            writeln!(text, "2024-{month:02}-{day:02},{n}").unwrap();
        }
    });
    // Rows of one year are one partition; few wait for the rest of their slab.
    for (transform, puts) in [("month", Spills::Rows), ("year", Spills::Nothing)] {
        let mapping = format!(
            r#"{{ "columns": [ {{ "name": "d", "type": "date" }}, {{ "name": "n", "type": "int32" }} ],
                "partition_by": [{{ "column": "d", "transform": "{transform}" }}] }}"#
        );
        check(&mapping, &sources, puts);
    }
}

#[test]
fn one_column_many_columns_and_no_rows() {
    let mut rng = Rng::new(10);
    let one = sources(2, "n", |_, text| (0..200_000).for_each(|_| writeln!(text, "{}", rng.below(99)).unwrap()));
    check(r#"{ "columns": [ { "name": "n", "type": "int16" } ] }"#, &one, Spills::Nothing);

    let names: Vec<String> = (0..200).map(|n| format!("c{n}")).collect();
    let wide = sources(3, &names.join(","), |_, text| {
        for _ in 0..900 {
            let cells: Vec<String> = (0..200).map(|_| rng.below(10_000).to_string()).collect();
            writeln!(text, "{}", cells.join(",")).unwrap();
        }
    });
    let columns: Vec<String> = names.iter().map(|n| format!(r#"{{ "name": "{n}", "type": "int32" }}"#)).collect();
    let mapping = format!(
        r#"{{ "columns": [{}], "parquet": {{ "row_group_rows": 1024, "file_bytes_max": 65536 }} }}"#,
        columns.join(",")
    );
    check(&mapping, &wide, Spills::Rows);

    let none = sources(2, "n", |_, _| {});
    let lake = check(r#"{ "columns": [ { "name": "n", "type": "int16" } ] }"#, &none, Spills::Nothing);
    assert!(lake.warehouse().is_empty());
}

/// A record longer than a chunk takes another path than one that fits, and expressions are evaluated per chunk.
#[test]
fn rejected_rows_are_independent_of_memory() {
    let mapping = r#"{ "columns": [
        { "name": "s", "type": "string" }, { "name": "n", "type": "int32", "expr": "CAST(s AS INTEGER)" } ],
        "csv": { "record_bytes_max": 100000 }, "rejects": { "max_ratio": 1.0 } }"#;
    let lake = Lake::new(mapping);
    let mut text = "s\n".to_owned();
    for row in 0..60_000 {
        text.push_str(&if row % 1_500 == 7 { format!("no{row}\n") } else { format!("{row:020}\n") });
        if row % 25_000 == 100 {
            text.push_str(&format!("x{}\n", "é".repeat(300_000)));
        }
    }
    lake.put("a.csv", text);
    lake.run(RunParams::new(1, 64 * MIB)).unwrap();
    let manifest = lake.manifest().unwrap();
    assert_eq!(manifest.sources["a.csv"].rows_rejected, 43);
    for how in [RunParams::new(2, 64 * MIB), RunParams::new(1, 1024 * MIB)] {
        let other = lake.fresh();
        other.run(how).unwrap();
        assert_eq!(difference(&lake.warehouse(), &other.warehouse()), None, "{how:?}");
    }
}

/// The rows of each file in order, given sources in order with their rows in the partition and bytes of text.
fn expected_files(sources: &[(&str, u64, u64)], targets: CutTargets) -> Vec<u64> {
    let (mut closed, mut tail, mut open) = (Vec::new(), Vec::new(), 0);
    for (key, rows, share) in sources {
        open += rows;
        match cut_after(key, *share, targets) {
            Cut::None => continue,
            Cut::Segment => tail.push(std::mem::take(&mut open)),
            Cut::File => {
                closed.push(tail.drain(..).sum::<u64>() + std::mem::take(&mut open));
            }
        }
    }
    tail.extend((open > 0).then_some(open));
    closed.into_iter().chain(tail).collect()
}

#[test]
fn files_end_where_sources_say() {
    let targets = CutTargets { file_text_bytes: 60_000, tail_text_bytes: 12_000 };
    for (seed, partition_by, sort_by) in [
        (13, r#""partition_by": ["p"],"#, ""),
        (14, "", ""),
        (15, r#""partition_by": ["p"],"#, r#""sort_by": ["ratio"],"#),
    ] {
        let mut rng = Rng::new(seed);
        let sources = sources(90, TYPICAL_HEADER, |n, text| {
            for id in 0..rng.below(120) {
                let partition = rng.below(if n < 60 { 2 } else { 3 });
                typical(&mut rng, partition, id, text);
            }
        });
        let mapping = format!(
            r#"{{ {TYPICAL}, {partition_by} {sort_by} "parquet": {{ "row_group_rows": 1024,
                "file_text_bytes": {}, "tail_text_bytes": {} }} }}"#,
            targets.file_text_bytes, targets.tail_text_bytes
        );
        let lake = check_settings(&mapping, &sources, Spills::Nothing, &SETTINGS);
        let manifest = lake.manifest().unwrap();
        let mut several = 0;
        for partition in manifest.partitions() {
            let of = |(key, text): &(String, String)| {
                let source = &manifest.sources[key];
                let rows = source.partitions.get(partition).copied()?;
                Some((key.as_str().to_owned(), rows, text_share(text.len() as u64, rows, source.rows_read)))
            };
            let of: Vec<(String, u64, u64)> = sources.iter().filter_map(of).collect();
            let of: Vec<(&str, u64, u64)> = of.iter().map(|(key, rows, share)| (key.as_str(), *rows, *share)).collect();
            let of_partition = manifest.groups.iter().filter(|(key, _)| key.partition == partition);
            let found: Vec<u64> =
                of_partition.flat_map(|(_, group)| group.files.iter().map(|file| file.rows)).collect();
            assert_eq!(found, expected_files(&of, targets), "partition `{partition}`");
            several += usize::from(found.len() > 3);
        }
        assert!(several > 0);
    }
}

//! Tables of files in several formats: each file is read by its variant, and only files whose variant changed are read
//! again.

use std::fmt::Write as _;

use lakemill::domain::job::RunErrorCode;
use lakemill::domain::pipeline::validate::parse;
use lakemill::domain::problem::ProblemKind::{self, Duplicate, InvalidGlob, InvalidValue, MissingField, UnknownColumn};
use lakemill::ports::store::Bucket;
use serde_json::{Value, json};

use crate::support::lake::{Lake, MIB, Rng, RunParams, difference, pipeline};

const COLUMNS: &str = r#""columns": [
    { "name": "id", "type": "int64" }, { "name": "day", "type": "date" }, { "name": "amount", "type": "decimal(12,2)" },
    { "name": "city", "type": "string" }, { "name": "twice", "type": "decimal(14,2)", "expr": "amount * 2" } ],
    "parquet": { "row_group_rows": 1024, "tail_text_bytes": 4096 }"#;

const VARIANTS: &str = r#""variants": [
    { "files": ["de*.csv"],
      "csv": { "delimiter": ";", "decimal": ",", "thousands": ".", "encoding": "windows-1252", "skip_rows": 2 },
      "columns": [ { "name": "day", "from": "Tag", "formats": ["%d.%m.%Y"] }, { "name": "city", "from": "Ort" } ] },
    { "files": ["*.csv", "!*a.csv"],
      "csv": { "header": false, "delimiter": "\t" },
      "columns": [ { "name": "amount", "from": 0, "number_format": { "currency": ["$"], "thousands": "," } },
                   { "name": "id", "from": 2 } ] }
    ]"#;

fn how() -> RunParams {
    RunParams::new(2, 16 * MIB)
}

struct Row {
    id: u64,
    day: u64,
    cents: u64,
    city: &'static str,
}

fn rows(rng: &mut Rng, count: u64) -> Vec<Row> {
    let cities = ["Köln", "Ulm", "Weißwasser", "Bad Säckingen"];
    let row = |rng: &mut Rng| Row {
        id: rng.below(1 << 40),
        day: 1 + rng.below(28),
        cents: rng.below(100_000_000),
        city: cities[rng.below(4) as usize],
    };
    (0..count).map(|_| row(rng)).collect()
}

fn grouped(whole: u64, separator: char) -> String {
    let digits = whole.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(separator);
        }
        text.push(digit);
    }
    text
}

fn plain(rows: &[Row]) -> Vec<u8> {
    let mut text = "id,day,amount,city\n".to_owned();
    for Row { id, day, cents, city } in rows {
        writeln!(text, "{id},2024-02-{day:02},{}.{:02},{city}", cents / 100, cents % 100).unwrap();
    }
    text.into_bytes()
}

fn german(rows: &[Row]) -> Vec<u8> {
    let mut text = "Kasse 4\n\nOrt;ID;Tag;Amount\n".to_owned();
    for Row { id, day, cents, city } in rows {
        writeln!(text, "{city};{id};{day}.02.2024;{},{:02}", grouped(cents / 100, '.'), cents % 100).unwrap();
    }
    encoding_rs::WINDOWS_1252.encode(&text).0.into_owned()
}

fn headerless(rows: &[Row]) -> Vec<u8> {
    let mut text = String::new();
    for Row { id, day, cents, city } in rows {
        writeln!(text, "${}.{:02}\t2024-02-{day:02}\t{id}\t{city}", grouped(cents / 100, ','), cents % 100).unwrap();
    }
    text.into_bytes()
}

/// A lake in which every third file has each format, and the same rows in one format.
fn lakes() -> (Lake, Lake) {
    let (lake, same) = (Lake::new(&format!("{{ {VARIANTS}, {COLUMNS} }}")), Lake::new(&format!("{{ {COLUMNS} }}")));
    let mut rng = Rng::new(3);
    for n in 0..12 {
        let rows = rows(&mut rng, if n < 3 { 30_000 } else { 40 });
        let (name, text) = match n % 3 {
            0 => (format!("{n}a.csv"), plain(&rows)),
            1 => (format!("de{n}.csv"), german(&rows)),
            _ => (format!("{n}b.csv"), headerless(&rows)),
        };
        lake.put(&name, text);
        same.put(&name, plain(&rows));
    }
    (lake, same)
}

#[test]
fn files_of_several_formats_give_the_table_of_one_format() {
    let (lake, same) = lakes();
    // Cuts depend on the bytes of the text, which differ.
    let whole = COLUMNS.replace("4096", "268435456");
    for threads in [1, 2, 4] {
        let how = RunParams::new(threads, 16 * MIB);
        let (mut lake, mut same) = (lake.fresh(), same.fresh());
        lake.pipeline = pipeline(&format!("{{ {VARIANTS}, {whole} }}"));
        same.pipeline = pipeline(&format!("{{ {whole} }}"));
        let result = lake.run(how).unwrap();
        assert_eq!(result.tables["t"].rows_written, 90_360);
        same.run(how).unwrap();
        assert_eq!(difference(&same.warehouse(), &lake.warehouse()), None);
    }
}

#[test]
fn changed_variant_reads_only_its_files_again() {
    let (mut lake, _) = lakes();
    lake.run(how()).unwrap();
    let reads = |lake: &Lake| {
        lake.store.reset_counts();
        let result = lake.run(how()).unwrap();
        let clean = lake.fresh();
        clean.run(how().clean()).unwrap();
        assert_eq!(difference(&clean.warehouse(), &lake.warehouse()), None);
        (lake.store.counts(Bucket::Lake).gets, result.tables["t"].sources_read)
    };
    assert_eq!(reads(&lake), (0, 0));

    let new = VARIANTS
        .replace(r#""variants": ["#, r#""variants": [ { "files": ["late*.csv"], "csv": { "delimiter": "|" } },"#);
    lake.pipeline = pipeline(&format!("{{ {new}, {COLUMNS} }}"));
    lake.put("late.csv", "id|day|amount|city\n1|2024-02-03|1.50|Ulm\n");
    assert_eq!(reads(&lake), (1, 1), "a variant for a new file reads that file only");

    let other =
        new.replace("%d.%m.%Y", "%d.%m.%y").replace(r#""formats": ["%d.%m.%y"]"#, r#""formats": ["%d.%m.%Y", "%F"]"#);
    assert_ne!(other, new);
    lake.pipeline = pipeline(&format!("{{ {other}, {COLUMNS} }}"));
    assert_eq!(reads(&lake), (4, 4), "the four files of the changed variant");

    lake.pipeline = pipeline(&format!("{{ {}, {COLUMNS} }}", other.replace("de*.csv", "de1.csv")));
    let failed = lake.run(how()).unwrap_err();
    let message = format!("{failed:?}");
    assert!(message.contains("de10.csv"), "the others are read by the next variant: {message}");
}

#[test]
fn changed_variant_is_applied_by_a_run_for_some_keys() {
    let (mut lake, _) = lakes();
    lake.run(how()).unwrap();
    let other = VARIANTS.replace(r#"["%d.%m.%Y"]"#, r#"["%d.%m.%Y", "%F"]"#);
    lake.pipeline = pipeline(&format!("{{ {other}, {COLUMNS} }}"));
    lake.put("0a.csv", "id,day,amount,city\n1,2024-02-03,1.50,Ulm\n");
    let result = lake.run(how().changed(&["0a.csv"])).unwrap();
    assert_eq!(result.tables["t"].sources_read, 5);
    let digests: Vec<Option<String>> =
        lake.manifest().unwrap().sources.into_values().map(|entry| entry.variant).collect();
    assert_eq!(digests.iter().filter(|variant| variant.is_none()).count(), 4);
}

#[test]
fn rejected_rows_say_what_their_variant_expects() {
    let lake = Lake::new(&format!("{{ {VARIANTS}, {COLUMNS} }}"));
    lake.put("de.csv", "x\nx\nOrt;ID;Tag;Amount\nUlm;1;2024-02-03;1,5\nUlm;2;03.02.2024;1.5\nUlm;3;03.02.2024;1,5\n");
    let error = format!("{:?}", lake.run(how()).unwrap_err());
    assert!(error.contains("2 of 3 rows") && error.contains("%d.%m.%Y"), "{error}");
}

#[test]
fn file_with_none_of_the_columns_fails_although_columns_may_be_missing() {
    let lake = Lake::new(&format!("{{ \"missing_columns\": \"null\", {COLUMNS} }}"));
    lake.put("a.csv", "id,day\n1,2024-02-03\n");
    assert_eq!(lake.run(how()).unwrap().tables["t"].rows_written, 1);
    for text in ["id;day;amount;city\n1;2024-02-03;1.5;Ulm\n", "x,y\n1,2\n", "%PDF-1.7\n"] {
        lake.put("b.csv", text);
        let error = format!("{:?}", lake.run(how()).unwrap_err());
        assert!(error.contains(&format!("{:?}", RunErrorCode::HeaderMismatch)), "{error}");
        assert!(error.contains("it has none of the columns `id`, `day`, `amount`, `city`"), "{error}");
    }
    lake.put("b.csv", "");
    lake.run(how()).unwrap();
}

#[track_caller]
fn check(variants: &Value, expected: &[(ProblemKind, &str, &str)]) {
    let config = json!({ "version": 1, "mappings": [{
        "table": "t", "files": ["*.csv"], "variants": variants,
        "columns": [
            { "name": "id", "type": "int64", "from": "ID" },
            { "name": "day", "type": "date" },
            { "name": "next", "type": "date", "expr": "day + 1" }
        ]
    }] });
    let found = parse(&config.to_string()).err().unwrap_or_default();
    let fits = found.len() == expected.len()
        && found.iter().zip(expected).all(|(found, (kind, path, message))| {
            found.kind == *kind
                && found.path == format!("/mappings/0/variants{path}")
                && found.message.contains(message)
        });
    assert!(fits, "of {config}\nexpected {expected:#?}\nfound {found:#?}");
}

#[test]
fn problems_of_a_variant_are_reported_where_they_are() {
    let with_columns = |columns: Value| json!([{ "files": ["b*"], "columns": columns }]);
    check(&json!([{ "files": ["b*"] }, { "files": ["c*"], "csv": { "header": false } }]), &[]);
    check(&json!([{}]), &[(MissingField, "/0", "`files`")]);
    check(&json!([{ "files": [] }]), &[(InvalidValue, "/0/files", "")]);
    check(&json!([{ "files": ["../b"] }]), &[(InvalidGlob, "/0/files/0", "segment")]);
    check(&json!([{ "files": ["b*"], "csv": { "delimiter": "" } }]), &[(InvalidValue, "/0/csv/delimiter", "")]);
    check(&with_columns(json!([{ "name": "dya" }])), &[(UnknownColumn, "/0/columns/0/name", "did you mean `day`?")]);
    check(&with_columns(json!([{ "name": "next" }])), &[(InvalidValue, "/0/columns/0/name", "isn't read")]);
    check(
        &with_columns(json!([{ "name": "day" }, { "name": "Day" }])),
        &[(Duplicate, "/0/columns/1/name", "already in entry 0")],
    );
    check(
        &with_columns(json!([{ "name": "day", "formats": ["%Q"] }])),
        &[(InvalidValue, "/0/columns/0/formats/0", "")],
    );
    check(
        &with_columns(json!([{ "name": "id", "from": 3 }])),
        &[(InvalidValue, "/0/columns/0/from", "needs `csv.header` to be false")],
    );
    check(
        &json!([{ "files": ["b*"], "csv": { "header": false, "width": 1 }, "columns": [{ "name": "id", "from": 3 }] }]),
        &[(InvalidValue, "/0/csv/width", "too few")],
    );
    let columns: Vec<Value> = (0..2_000).map(|n| json!({ "name": format!("c{n}"), "type": "string" })).collect();
    let wide = |variants: usize| {
        let variants: Vec<Value> = (0..variants).map(|_| json!({ "files": ["b*"] })).collect();
        let table = |name: &str| json!({ "table": name, "files": ["*.csv"], "columns": columns, "variants": variants });
        let config = json!({ "version": 1, "mappings": [table("t"), table("u")] });
        parse(&config.to_string()).err().unwrap_or_default()
    };
    assert_eq!(wide(25), []);
    let found = wide(26);
    assert_eq!((found.len(), found[0].path.as_str()), (1, "/mappings/1/variants"), "{found:?}");
    assert!(found[0].message.contains("at most 100000 columns of variants in a pipeline, found 104000"), "{found:?}");
    let many: Vec<Value> = (0..65).map(|_| json!({ "files": ["b*"] })).collect();
    check(&json!(many), &[(ProblemKind::Limit, "", "64")]);
}

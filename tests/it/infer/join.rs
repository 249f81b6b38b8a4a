//! One proposal for several files of a table: a run with it writes every row of each file that it says can be read.

use std::collections::BTreeSet;

use lakemill::engine::infer::formats::{JOINED_MAX, Joined, infer_all};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::*;

const SEED: u64 = 20_261_126;

/// The proposal for files with `rows` rows in all. Checks that a run with it writes all but the reported ones.
#[track_caller]
fn joined(files: &[(&str, &str)], rows: u64) -> Joined {
    let store = MemoryStore::new();
    let key = |name: &str| format!("pipelines/x/t/{name}");
    for (name, text) in files {
        store.put(Bucket::Lake, &key(name), text.as_bytes(), &WriteOptions::default()).unwrap();
    }
    let keys: Vec<String> = files.iter().map(|(name, _)| key(name)).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let mut joined = infer_all(&store, &keys, &GENEROUS_LIMITS).unwrap_or_else(|error| panic!("{error}: {files:#?}"));
    joined.proposal.files = vec!["t/*.csv".to_owned()];
    let proposal = &joined.proposal;
    let sample = &proposal.sample;
    assert!(sample.whole, "{files:#?}");
    let pipeline = pipeline(proposal);
    let scratch = in_memory_folder();
    let (result, _) = run_on(&store, &pipeline, &Ticks::default(), scratch.path(), RunParams::AMPLE_MEMORY);
    let result = result.unwrap_or_else(|error| panic!("{error:?}: {}\n{files:#?}", proposal.mapping()));
    let table = &result.tables[&proposal.table];
    let shown = || format!("{}\n{files:#?}", proposal.mapping());
    assert_eq!(table.rows_rejected, sample.rows_misfit + sample.rows_refused, "{}", shown());
    assert_eq!(table.rows_written, sample.rows_confirmed, "{}", shown());
    assert_eq!(table.rows_written + table.rows_rejected, rows, "a row is lost: {}", shown());
    assert_eq!(joined.files.iter().map(|file| file.sample.rows_read + file.sample.rows_refused).sum::<u64>(), rows);
    joined
}

#[track_caller]
fn type_of(joined: &Joined, name: &str) -> String {
    let column = joined.proposal.columns.iter().find(|column| column.name == name).unwrap();
    let format = column.number_format.as_ref().map_or(String::new(), |format| {
        format!(" {}{}", format.currency.join(""), format.thousands.as_deref().unwrap_or_default())
    });
    format!("{}{format}", column.ty)
}

#[test]
fn footer_of_one_file_skips_no_row_of_another() {
    let with = "id,amount\n1,$5.00\n2,$6.00\nTotal,$11.00\n".replace("Total,$11.00", "Total,");
    let without = "id,amount\n3,$7.00\n4,$8.00\n";
    for files in [[("a.csv", with.as_str()), ("b.csv", without)], [("a.csv", without), ("b.csv", with.as_str())]] {
        let joined = joined(&files, 4);
        assert_eq!((joined.proposal.sample.rows_confirmed, type_of(&joined, "id")), (4, "int64".to_owned()));
        assert_eq!(joined.proposal.csv_full.footer_values.as_deref(), Some(&["Total".to_owned()][..]));
    }
}

#[test]
fn notes_and_totals_of_several_files_are_all_footers() {
    let files = [
        ("a.csv", "id,x,y\n1,2,3\n2,3,4\nTotal,,7\n"),
        ("b.csv", "id,x,y\n3,2,3\n4,3,4\nSum,,7\nGenerated 2024-01-31\n"),
        ("c.csv", "id,x,y\n5,2,3\n6,3,4\n"),
    ];
    let joined = joined(&files, 6);
    assert_eq!(joined.proposal.csv_full.skip_footer_rows, 2);
    assert_eq!(joined.proposal.csv_full.footer_values.unwrap(), ["Total", "Sum", "Generated*"]);
}

#[test]
fn number_formats_of_any_file_are_read() {
    let plain = "id,amount\n1,950.00\n2,12.50\n";
    let money = "id,amount\n3,\"$1,234.50\"\n4,$7.00\n";
    let negative = "id,amount\n5,($95.00)\n6,$7.00\n";
    let joined = joined(&[("a.csv", plain), ("b.csv", money), ("c.csv", negative)], 6);
    assert_eq!((type_of(&joined, "amount"), joined.proposal.sample.rows_misfit), ("decimal(18,2) $,".to_owned(), 0));
}

#[test]
fn numbers_widen_and_dates_of_one_order_decide_for_all() {
    let files =
        [("a.csv", "day,n\n01/02/2024,1\n03/04/2024,2\n"), ("b.csv", "day,n\n01/31/2024,1.5\n02/28/2024,N/A\n")];
    let joined = joined(&files, 4);
    assert_eq!(type_of(&joined, "n"), "decimal(18,1)");
    let day = &joined.proposal.columns[0];
    assert_eq!((day.ty.as_str(), day.formats.as_slice()), ("date", &["%m/%d/%Y".to_owned()][..]));
    assert!(joined.proposal.columns[1].nullable && joined.proposal.csv_full.null_values.contains(&"N/A".to_owned()));
}

#[test]
fn values_without_a_common_type_stay_text() {
    let files = [("a.csv", "id,x\n1,10\n2,20\n"), ("b.csv", "id,x\n3,red\n4,blue\n")];
    let joined = joined(&files, 4);
    assert_eq!(type_of(&joined, "x"), "string");
    assert!(joined.proposal.columns[1].evidence.warnings.iter().any(|warning| warning.contains("read as text")));
    // A percentage without its sign has another unit.
    let files = [("a.csv", "id,x\n1,10%\n2,20%\n"), ("b.csv", "id,x\n3,10\n4,20\n")];
    assert_eq!(type_of(&self::joined(&files, 4), "x"), "string");
}

#[test]
fn text_in_files_of_several_formats_has_no_warning() {
    let files = [("a.csv", "id,x,note\nA-1,10,\nA-2,20,\n"), ("b.csv", "id;x;note\nB-1;30;\nB-2;40;\n")];
    let joined = joined(&files, 4);
    assert_eq!(joined.proposal.variants.len(), 1);
    for name in ["id", "note"] {
        assert_eq!(type_of(&joined, name), "string");
    }
    let warnings: Vec<&String> = joined.proposal.columns.iter().flat_map(|column| &column.evidence.warnings).collect();
    assert_eq!(warnings, ["no values were read, so the type is unknown"]);
}

#[test]
fn columns_of_some_files_are_null_in_the_others() {
    let files = [("a.csv", "id,x\n1,10\n2,20\n"), ("b.csv", "id,x,promo\n3,30,yes\n4,40,no\n")];
    let joined = joined(&files, 4);
    assert!(joined.proposal.partial && joined.proposal.columns[2].nullable);
    assert_eq!((joined.proposal.columns[2].evidence.values, joined.proposal.columns[2].evidence.nulls), (2, 2));
    assert_eq!(joined.proposal.mapping()["missing_columns"], "null");
}

#[test]
fn files_without_a_proposal_are_named_and_the_others_are_read() {
    let store = MemoryStore::new();
    for (key, text) in [("pipelines/x/a.csv", "id\n1\n"), ("pipelines/x/b.csv", ""), ("pipelines/x/c.csv", "id\n2\n")] {
        store.put(Bucket::Lake, key, text.as_bytes(), &WriteOptions::default()).unwrap();
    }
    let joined =
        infer_all(&store, &["pipelines/x/a.csv", "pipelines/x/b.csv", "pipelines/x/c.csv"], &GENEROUS_LIMITS).unwrap();
    assert_eq!(joined.failed.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(), ["pipelines/x/b.csv"]);
    assert_eq!(joined.proposal.sample.rows_confirmed, 2);
    let error = infer_all(&store, &["pipelines/x/b.csv"], &GENEROUS_LIMITS).unwrap_err();
    assert!(matches!(error, InferError::Empty { .. }), "{error}");
}

#[test]
fn file_without_column_names_is_named_and_the_others_are_read() {
    let store = MemoryStore::new();
    let named = "id,city\n1,Ulm\n2,Bonn\n";
    for (key, text) in [("pipelines/x/a.csv", named), ("pipelines/x/b.csv", "3,Köln\n4,Ulm\n")] {
        store.put(Bucket::Lake, key, text.as_bytes(), &WriteOptions::default()).unwrap();
    }
    let joined = infer_all(&store, &["pipelines/x/b.csv", "pipelines/x/a.csv"], &GENEROUS_LIMITS).unwrap();
    let [(key, error)] = &joined.failed[..] else { panic!("{:?}", joined.failed) };
    assert_eq!(key, "pipelines/x/b.csv");
    assert!(error.to_string().contains("no line of column names, unlike `a.csv`"), "{error}");
    assert_eq!(joined.proposal.sample.rows_confirmed, 2);
}

#[test]
fn text_that_means_null_in_one_format_means_it_in_all() {
    let many = "id,amount,region\n1,10.5,North\n2,N/A,N/A\n3,N/A,West\n";
    let other = "id;amount;region\n4;1,5;N/A\n5;2,5;South\n";
    let joined = joined(&[("a.csv", many), ("b.csv", other)], 5);
    let mapping = joined.proposal.mapping();
    let region = joined.proposal.columns.iter().find(|column| column.name == "region").unwrap();
    assert!(region.nullable, "{mapping}");
    assert_eq!((region.evidence.values, region.evidence.nulls), (3, 2), "{:?}", region.evidence);
    assert_eq!(type_of(&joined, "amount"), "decimal(18,1)");
    assert!(mapping["variants"][0]["csv"]["null_values"].to_string().contains("N/A"), "{mapping}");
}

#[test]
fn files_of_other_formats_become_variants_of_the_largest() {
    let german = "Kasse 4\n\nid;day;amount;city\n1;31.01.2024;1.234,50;Köln\n2;01.02.2024;7,00;Ulm\n";
    let plain = "id,day,amount,city\n3,2024-01-31,1234.50,Köln\n4,2024-02-01,7.00,Ulm\n";
    let more = "id,day,amount,city,promo\n5,2024-01-31,1234.50,Köln,x\n6,2024-02-01,7.00,Ulm,y\n";
    let files = [("de.csv", german), ("a.csv", plain), ("b.csv", more)];
    let joined = joined(&files, 6);
    let mapping = joined.proposal.mapping();
    assert_eq!(
        (type_of(&joined, "amount"), type_of(&joined, "day"), type_of(&joined, "promo")),
        ("decimal(18,2)".to_owned(), "date".to_owned(), "string".to_owned())
    );
    assert_eq!(
        joined.proposal.columns[1].evidence.why,
        "in 2 files, every value is a date in ISO 8601; in 1 file, every value is a date in the format `%d.%m.%Y`"
    );
    assert_eq!(joined.proposal.sample.rows_confirmed, 6);
    assert_eq!((joined.proposal.columns[4].evidence.values, joined.proposal.columns[4].evidence.nulls), (2, 4));
    assert_eq!(mapping.get("csv"), None);
    assert_eq!(
        mapping["variants"],
        serde_json::json!([{
            "files": ["t/de.csv"],
            "csv": { "delimiter": ";", "skip_rows": 2, "decimal": ",", "thousands": "." },
            "columns": [{ "name": "day", "formats": ["%d.%m.%Y"] }]
        }])
    );
    assert!(joined.proposal.warnings.iter().all(|warning| !warning.contains("csv.delimiter")));
}

#[test]
fn encodings_of_files_are_told_apart_by_their_letters() {
    let encoded = |text: &str| encoding_rs::WINDOWS_1252.encode(text).0.into_owned();
    let old = encoded("id,city\n1,Köln am Rhein\n2,Weißwasser\n3,Süd\n");
    let store = MemoryStore::new();
    let put = |key: &str, bytes: &[u8]| store.put(Bucket::Lake, key, bytes, &WriteOptions::default()).unwrap();
    put("pipelines/x/a.csv", "id,city\n4,Köln\n5,Süd\n".as_bytes());
    put("pipelines/x/b.csv", &old);
    put("pipelines/x/c.csv", b"id,city\n6,Ulm\n7,Bonn\n");
    let variants = |keys: &[&str]| infer_all(&store, keys, &GENEROUS_LIMITS).unwrap().proposal.variants;
    let found = variants(&["pipelines/x/a.csv", "pipelines/x/b.csv", "pipelines/x/c.csv"]);
    assert_eq!(found.iter().map(|one| one.files.clone()).collect::<Vec<_>>(), [["b.csv"]]);
    assert_eq!(found[0].csv["encoding"], "windows-1252");
    assert_eq!(variants(&["pipelines/x/b.csv", "pipelines/x/c.csv"]), [], "plain ASCII is the same in both");
}

#[test]
fn files_that_any_encoding_reads_bring_no_two_encodings_together() {
    let text = "id,city\n1,Köln am Rhein\n2,Weißwasser\n3,Süd\n";
    let files = [
        ("ascii", b"id,city\n6,Ulm\n7,Bonn\n".to_vec()),
        ("marked", format!("\u{feff}{text}").into_bytes()),
        ("utf8", text.as_bytes().to_vec()),
        ("old", encoding_rs::WINDOWS_1252.encode(text).0.into_owned()),
    ];
    for mut order in 0..24_usize {
        let (mut left, mut keys) = (files.to_vec(), Vec::new());
        let store = MemoryStore::new();
        for among in (1..=files.len()).rev() {
            let (name, bytes) = left.remove(order % among);
            order /= among;
            // The order of keys is that of the files.
            let key = format!("pipelines/x/{}.csv", keys.len());
            store.put(Bucket::Lake, &key, &bytes, &WriteOptions::default()).unwrap();
            keys.push((key, name));
        }
        let names: Vec<&str> = keys.iter().map(|(key, _)| key.as_str()).collect();
        let proposal = infer_all(&store, &names, &GENEROUS_LIMITS).unwrap().proposal;
        let encodings: Vec<(&str, Option<&str>)> = keys
            .iter()
            .map(|(key, name)| {
                let variant = proposal.variants.iter().find(|variant| variant.keys.contains(key));
                (*name, variant.map_or(&proposal.csv, |variant| &variant.csv)["encoding"].as_str())
            })
            .collect();
        for (name, encoding) in &encodings {
            let expected = if *name == "old" { Some("windows-1252") } else { None };
            assert_eq!(*encoding, expected, "{name} of {encodings:?}");
        }
    }
}

#[test]
fn column_that_formats_read_as_different_types_is_text() {
    let files = [("a.csv", "id;x\n1;10\n2;20\n"), ("b.csv", "id,x\n3,red\n4,blue\n"), ("c.csv", "id,x\n5,7\n6,8\n")];
    let joined = joined(&files, 6);
    assert_eq!((type_of(&joined, "id"), type_of(&joined, "x")), ("int64".to_owned(), "string".to_owned()));
}

#[test]
fn dates_of_several_files_are_read_by_all_their_formats_or_in_variants() {
    let us = ("a.csv", "id,day\n1,01/31/2024\n2,02/03/2024\n3,02/28/2024\n");
    let iso = ("b.csv", "id,day\n4,2024-03-31\n5,2024-04-01\n");
    let both = joined(&[us, iso], 5);
    let day = &both.proposal.columns[1];
    assert_eq!((day.ty.as_str(), day.formats.join(" ")), ("date", "%m/%d/%Y %Y-%m-%d".to_owned()));
    assert!(both.proposal.variants.is_empty());
    // 02/03/2024 is another day in the other order.
    let british = ("c.csv", "id,day\n6,31/01/2024\n7,02/03/2024\n");
    let apart = joined(&[us, british, iso], 7);
    assert_eq!((type_of(&apart, "day").as_str(), apart.proposal.sample.rows_misfit), ("date", 0));
    assert_eq!(
        apart.proposal.mapping()["variants"],
        serde_json::json!([{
            "files": ["t/c.csv"], "csv": {}, "columns": [{ "name": "day", "formats": ["%d/%m/%Y"] }]
        }])
    );
    let times =
        [("a.csv", "id,at\n1,01/31/2024 10:00\n"), ("b.csv", "id,at\n2,2024-01-31T10:00:00\n3,2024-02-01 11:00:00\n")];
    let times = joined(&times, 3);
    assert_eq!((type_of(&times, "at").as_str(), times.proposal.variants.len()), ("timestamp", 1));
}

#[test]
fn days_of_some_files_are_midnights_where_others_have_times() {
    let day = ("a.csv", "id,at\n1,2024-01-31\n2,2024-02-03\n");
    let time = ("b.csv", "id,at\n3,2024-03-31 10:00:00\n4,2024-04-01 11:30:00\n");
    let german = ("c.csv", "id;at\n5;31.05.2024\n6;01.06.2024\n");
    let open = ("d.csv", "id;at\n7;03.04.2024\n8;05.06.2024\n");
    let formats = |joined: &Joined| joined.proposal.columns[1].formats.join(" ");
    for files in [[day, time], [time, day]] {
        let joined = joined(&files, 4);
        assert_eq!((type_of(&joined, "at").as_str(), joined.proposal.sample.rows_misfit), ("timestamp", 0));
        assert_eq!(formats(&joined).split(' ').collect::<BTreeSet<_>>(), BTreeSet::from(["%Y-%m-%d", "iso"]));
    }
    // Of other formats, too.
    for files in [vec![german, time], vec![time, german], vec![day, german, time, open]] {
        let rows = 2 * files.len() as u64;
        let joined = joined(&files, rows);
        assert_eq!((type_of(&joined, "at").as_str(), joined.proposal.sample.rows_misfit), ("timestamp", 0));
    }
}

#[test]
fn undecided_dates_of_a_format_take_the_order_of_the_others_or_are_text() {
    let open = ("a.csv", "id;day\n1;03/04/2024\n2;05/06/2024\n");
    let iso = ("b.csv", "id,day\n3,2024-05-01\n4,2024-05-13\n5,2024-05-14\n");
    let us = ("c.csv", "id\tday\n6\t01/31/2024\n7\t02/03/2024\n");
    let undecided = joined(&[open, iso], 5);
    assert_eq!(type_of(&undecided, "day"), "string");
    let warnings = &undecided.proposal.columns[1].evidence.warnings;
    assert!(warnings.iter().any(|one| one.contains("dates in either of `%d/%m/%Y`, `%m/%d/%Y`")), "{warnings:?}");
    let decided = joined(&[open, iso, us], 7);
    assert_eq!((type_of(&decided, "day").as_str(), decided.proposal.sample.rows_misfit), ("date", 0));
    let mapping = decided.proposal.mapping().to_string();
    assert!(mapping.contains("%m/%d/%Y") && !mapping.contains("%d/%m/%Y"), "{mapping}");
}

#[test]
fn percentages_and_currencies_of_other_formats_are_other_units() {
    for (one, other) in [("10%", "10"), ("$7.00", "7,00 €")] {
        let one = format!("id,x\n1,{one}\n2,{one}\n");
        let (same, other) = (format!("id,x\n3,\"{other}\"\n4,\"{other}\"\n"), format!("id;x\n3;{other}\n4;{other}\n"));
        for (other, name) in [(&other, "other format"), (&same, "one format")] {
            let joined = joined(&[("a.csv", &one), ("b.csv", other)], 4);
            assert_eq!(type_of(&joined, "x"), "string", "{name}: {one}{other}");
            let warnings = joined.proposal.columns[1].evidence.warnings.join("; ");
            let expected = if one.contains('%') { "with a percent sign" } else { "in several currencies" };
            assert!(warnings.contains(expected), "{name}: {warnings}");
        }
    }
    let dollars = [("a.csv", "id,x\n1,$7.00\n2,$8.00\n"), ("b.csv", "id;x\n3;7,50\n4;8,25\n")];
    assert_eq!(type_of(&joined(&dollars, 4), "x"), "decimal(18,2) $,");
    // Other signs of one currency.
    for other in ["id,x\n3,USD 7.00\n4,US$8.00\n", "id;x\n3;7,00 USD\n4;8,00 USD\n"] {
        let ty = type_of(&joined(&[dollars[0], ("b.csv", other)], 4), "x");
        assert!(ty.starts_with("decimal(18,2) "), "{ty}");
    }
}

#[test]
fn files_with_the_same_rows_are_named() {
    let march = ("march.csv", "id,day,price\n1,2024-03-01,7.50\n2,2024-03-02,8.00\n2,2024-03-02,8.00\n");
    let copies = [
        ("copy.csv", "id,day,price\n2,2024-03-02,8.00\n1,2024-03-01,7.50\n2,2024-03-02,8.00\n"),
        ("german.csv", "id;day;price\n1;01.03.2024;7,50\n2;02.03.2024;8,00\n2;02.03.2024;8,00\n"),
        ("april.csv", "id,day,price\n1,2024-04-01,7.50\n2,2024-04-02,8.00\n2,2024-04-02,8.00\n"),
        // Other rows twice.
        ("twice.csv", "id,day,price\n1,2024-03-01,7.50\n1,2024-03-01,7.50\n2,2024-03-02,8.00\n"),
    ];
    for (at, copy) in copies.into_iter().enumerate() {
        let joined = joined(&[march, copy], 6);
        let named = joined.proposal.warnings.iter().filter(|one| one.contains("the same 3 rows as `march.csv`"));
        assert_eq!(named.count(), usize::from(at < 2), "{}: {:?}", copy.0, joined.proposal.warnings);
    }
}

/// The separators of a file.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Separators {
    cell: char,
    decimal: char,
    thousands: char,
    /// Lines before the header.
    title: &'static str,
}

const SEPARATORS: [Separators; 4] = [
    Separators { cell: ',', decimal: '.', thousands: ',', title: "" },
    Separators { cell: ';', decimal: ',', thousands: '.', title: "" },
    Separators { cell: '\t', decimal: '.', thousands: ',', title: "" },
    Separators { cell: ';', decimal: ',', thousands: '.', title: "Report 7\n\n" },
];

/// How a file writes its rows.
#[derive(Debug, Clone)]
struct Style {
    separators: Separators,
    currency: &'static str,
    grouped: bool,
    brackets: bool,
    nulls: Option<&'static str>,
    footer: &'static str,
    promo: bool,
    /// Numbers that the values are made from.
    rows: Vec<i64>,
}

fn style() -> impl Strategy<Value = Style> {
    let currency = prop::sample::select(vec!["", "$", "USD "]);
    let footer = prop::sample::select(vec!["", "Total,,\n", "Sum,,\nGenerated 2024\n", ",,\n"]);
    let nulls = prop::sample::select(vec![None, Some(""), Some("N/A"), Some("-")]);
    let rows = prop::collection::vec(-999_999i64..9_999_999, 3..12);
    let separators = prop_oneof![3 => Just(SEPARATORS[0]), 1 => prop::sample::select(SEPARATORS.to_vec())];
    (separators, currency, any::<bool>(), any::<bool>(), nulls, footer, any::<bool>(), rows).prop_map(
        |(separators, currency, grouped, brackets, nulls, footer, promo, rows)| Style {
            separators,
            currency,
            grouped,
            brackets,
            nulls,
            footer,
            promo,
            rows,
        },
    )
}

impl Style {
    fn text(&self) -> String {
        let Separators { cell, decimal, thousands, title } = self.separators;
        let promo = if self.promo { format!("{cell}promo") } else { String::new() };
        let mut text = format!("{title}id{cell}amount{cell}note{promo}\n");
        for (nth, value) in self.rows.iter().enumerate() {
            let digits = format!("{}", value.unsigned_abs() / 100);
            let mut whole = String::new();
            for (at, digit) in digits.chars().enumerate() {
                if self.grouped && at > 0 && (digits.len() - at) % 3 == 0 {
                    whole.push(thousands);
                }
                whole.push(digit);
            }
            let amount = format!("{}{whole}{decimal}{:02}", self.currency, value.unsigned_abs() % 100);
            let amount = match (*value < 0, self.brackets) {
                (true, true) => format!("({amount})"),
                (true, false) => format!("-{amount}"),
                (false, _) => amount,
            };
            let amount = self.nulls.filter(|_| nth == 1).map_or(amount, str::to_owned);
            let promo = if self.promo { format!("{cell}p") } else { String::new() };
            text += &format!("{nth}{cell}\"{amount}\"{cell}row {nth}{promo}\n");
        }
        let more = if self.promo { ",\n" } else { "\n" };
        // Totals have the cells of a row.
        text + &self.footer.replace(",,\n", &format!(",,{more}")).replace(',', &cell.to_string())
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 150, rng_seed: RngSeed::Fixed(SEED), failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn no_row_of_any_file_is_lost_silently(styles in prop::collection::vec(style(), 2..5)) {
        let texts: Vec<(String, String)> =
            styles.iter().enumerate().map(|(nth, style)| (format!("{nth}.csv"), style.text())).collect();
        let files: Vec<(&str, &str)> = texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        // An empty record at the end is a row of nulls where no file of its format says that it is a footer.
        let is_marked = |style: &Style| style.footer.contains("Total") || style.footer.contains("Sum");
        let is_row = |style: &&Style| {
            let mut like = styles.iter().filter(|other| other.separators == style.separators);
            style.footer == ",,\n" && !like.any(is_marked)
        };
        let empty = styles.iter().filter(is_row).count() as u64;
        let rows: u64 = styles.iter().map(|style| style.rows.len() as u64).sum();
        let joined = joined(&files, rows + empty);
        prop_assert!(joined.files.len() <= JOINED_MAX);
    }
}

//! Numbers and times as people write them.

use serde_json::{Value, json};

use super::{GENEROUS_LIMITS, column, columns, propose, proposed, proposed_as, warned};

fn typed(name: &str, values: &[&str]) -> (String, Value) {
    let lines: Vec<String> = values.iter().map(|value| format!("\"{value}\",z\n")).collect();
    let proposal = proposed(format!("{name},y\n{}", lines.concat()));
    let format = proposal.mapping()["columns"][0]["number_format"].clone();
    (columns(&proposal)[0].clone(), format)
}

#[test]
fn numbers_with_signs_have_a_format() {
    for (values, expected, format) in [
        (
            &["$1,234.50", "($95.00)", "12"][..],
            "x:decimal(18,2)",
            json!({ "thousands": ",", "decimal": ".", "currency": ["$"], "negative": "parentheses" }),
        ),
        (&["12.5%", "3%"], "x:decimal(18,4)", json!({ "percent": true })),
        (&["1.234,50 €", "7,00 €"], "x:decimal(18,2)", json!({ "decimal": ",", "thousands": ".", "currency": ["€"] })),
        (&["1.234 €", "56.789 €"], "x:decimal(18,2)", json!({ "decimal": ",", "thousands": ".", "currency": ["€"] })),
        (&["1\u{202f}234,50", "5,25"], "x:decimal(18,2)", json!({ "decimal": ",", "thousands": " " })),
        (
            &["CHF 1’234.50", "CHF 5.00"],
            "x:decimal(18,2)",
            json!({ "decimal": ".", "thousands": "'", "currency": ["CHF"] }),
        ),
        (&["95.00-", "12.50"], "x:decimal(18,2)", json!({ "negative": "trailing_minus" })),
        // Later amounts may be larger.
        (&["$5", "$7"], "x:decimal(18,2)", json!({ "thousands": ",", "decimal": ".", "currency": ["$"] })),
        (&["\u{2212}5", "7"], "x:int64", json!({})),
        (&["$5", "€7"], "x:string", Value::Null),
        (&["5%", "7"], "x:string", Value::Null),
        (&["(1)", "(2)"], "x:string", Value::Null),
        (&["1", "2-"], "x:string", Value::Null),
        (&["$5", "n"], "x:string", Value::Null),
    ] {
        assert_eq!(typed("x", values), (expected.to_owned(), format), "{values:?}");
    }
}

#[test]
fn mixed_amounts_stay_text_with_a_warning() {
    let proposal = proposed("x,y\n$5,z\n€7,z\n");
    assert!(warned(
        &proposal,
        "amounts in several currencies, which a number would lose: `$` (1), `€` (1); the column"
    ));
    let proposal = proposed("x,y\n5%,z\n7,z\n");
    assert!(warned(&proposal, "1 of 2 values have a percent sign, the others have none; the column stays text"));
}

#[test]
fn evidence_of_amounts_counts_their_signs() {
    let proposal = proposed("x,y\n\"$1,234.50\",z\n($95.00),z\n12,z\n");
    assert_eq!(column(&proposal, "x").evidence.why, "of 3 numbers, 2 with `$`, 1 in parentheses, such as `$1,234.50`");
}

#[test]
fn numbers_named_as_times_are_epochs_or_serial_dates() {
    for (name, values, expected) in [
        ("created_at", &["1704164645", "1704164646"][..], "created_at:timestamptz:epoch_s"),
        ("created_at", &["1704164645.25", "1704164646"], "created_at:timestamptz:epoch_s"),
        ("ts", &["1704164645250"], "ts:timestamptz:epoch_ms"),
        ("ts", &["1704164645250001"], "ts:timestamptz:epoch_us"),
        ("ts", &["1704164645250001000"], "ts:timestamptz:epoch_ns"),
        ("ts", &["1704164645250001001"], "ts:int64"),
        ("amount", &["1704164645"], "amount:int64"),
        ("ts", &["56385"], "ts:int64"),
        ("Date", &["45293", "45294"], "date:date:excel"),
        ("Date", &["45293.5", "45294.25"], "date:timestamp:excel"),
        ("days", &["45293", "45294"], "days:int64"),
        ("date", &["12", "45294"], "date:int64"),
    ] {
        assert_eq!(typed(name, values).0, expected, "{name} {values:?}");
    }
    let proposal = proposed("n,y\n1704164645,z\n");
    assert_eq!(column(&proposal, "n").evidence.alternatives[0].formats, ["epoch_s"]);
}

#[test]
fn dates_in_several_formats_get_all_formats() {
    let values: Vec<String> = (1..=28).map(|day| format!("2024-02-{day:02}")).collect();
    let others: Vec<String> = (13..=28).map(|day| format!("{day}.03.2024")).collect();
    let all: Vec<&str> = values.iter().chain(&others).map(String::as_str).collect();
    assert_eq!(typed("d", &all).0, "d:date:%Y-%m-%d|%d.%m.%Y");
    // Both orders of day and month.
    let orders = ["13/02/2024", "02/13/2024", "03/04/2024"];
    let proposal = proposed(format!("d,y\n{},z\n", orders.join(",z\n")));
    assert_eq!(columns(&proposal)[0], "d:string");
    assert!(warned(&proposal, "1 read as different days"));
}

#[test]
fn days_among_times_are_midnights() {
    let days: Vec<String> = (13..=28).map(|day| format!("{day}.03.2024")).collect();
    let times = ["2024-04-01 10:00:00", "2024-04-02T11:30"];
    let all: Vec<&str> = days.iter().map(String::as_str).chain(times).collect();
    let proposal = proposed(format!("d,y\n{},z\n", all.join(",z\n")));
    assert_eq!(columns(&proposal)[0], "d:timestamp:%d.%m.%Y|iso");
    let evidence = &column(&proposal, "d").evidence;
    assert!(evidence.why.contains("read as midnight"), "{}", evidence.why);
    let [date] = &evidence.alternatives[..] else { panic!("{:?}", evidence.alternatives) };
    assert_eq!((date.ty.as_str(), date.formats.join(" ")), ("date", "%d.%m.%Y".to_owned()));
    assert_eq!(date.why, "rejects 2 values with a time of day");
    // UTC is not the zone of a day.
    let zoned = proposed("d,y\n2024-01-02,z\n2024-01-03T10:00:00Z,z\n");
    assert_eq!(columns(&zoned)[0], "d:string");
}

#[test]
fn booleans_are_words_of_many_languages() {
    for values in [["ja", "nein"], ["Sí", "No"], ["OUI", "NON"], ["WAHR", "FALSCH"], ["tak", "nie"], ["vero", "falso"]]
    {
        assert_eq!(typed("x", &values).0, "x:boolean", "{values:?}");
    }
}

#[test]
fn codes_stay_text_and_identifiers_have_a_role() {
    let proposal = proposed("order_id,plz,year,qty\n1001,80331,2024,5\n1002,10115,2023,7\n");
    assert_eq!(columns(&proposal), ["order_id:int64", "plz:string", "year:int64", "qty:int64"]);
    let roles: Vec<Value> = proposal.columns.iter().map(|column| json!(column.role)).collect();
    assert_eq!(roles, [json!("identifier"), json!("code"), json!("year"), Value::Null]);
}

#[test]
fn nulls_of_typed_columns_are_ticked_and_nullable() {
    for token in ["N/A", "n/a", "-", "null", "none", "n.a.", "#NV", "\u{2013}"] {
        let proposal = proposed(format!("x,y\n\"$1,234.50\",z\n{token},z\n$3,z\n"));
        assert_eq!(columns(&proposal)[0], "x:decimal(18,2)", "{token}");
        assert!(proposal.csv_full.null_values.contains(&token.to_owned()), "{token}");
        assert!(column(&proposal, "x").nullable);
    }
}

#[test]
fn names_of_a_series_are_those_of_its_table() {
    for (key, table, glob) in [
        ("pipelines/x/sales_q1.csv", "sales", "sales_q*.csv"),
        ("pipelines/x/sales_q1_2024.csv", "sales", "sales_*.csv"),
        ("pipelines/x/sales-2024-Q3.csv", "sales", "sales*.csv"),
        ("pipelines/x/sales_jan.csv", "sales", "sales_*.csv"),
        ("pipelines/x/q1.csv", "q1", "q1.csv"),
    ] {
        let proposal = proposed_as(key, b"a,b\n1,2\n");
        assert_eq!((proposal.table.as_str(), proposal.files[0].as_str()), (table, glob), "{key}");
    }
}

#[test]
fn totals_at_the_end_are_a_footer() {
    let rows: String = (1..=20).map(|n| format!("2024-01-{n:02};Ware {n};{n},50\n")).collect();
    for (footer, lines) in [
        ("Summe;;210,00\n", 1),
        (";;\nSumme;;210,00\n", 2),
        ("Summe;;210,00\nStand: 31.01.2024\n", 2),
        ("Zwischensumme;;100,00\nGesamt;;210,00\n", 2),
        ("", 0),
    ] {
        let proposal = proposed(format!("tag;ware;betrag\n{rows}{footer}"));
        assert_eq!(proposal.csv_full.skip_footer_rows, lines, "{footer}");
        assert_eq!(columns(&proposal)[2], "betrag:decimal(18,2)", "{footer}");
    }
    let proposal =
        proposed(format!("tag;ware;betrag\n{rows};;\nZwischensumme;;1,00\nSumme;;210,00\nStand: 31.01.2024\n"));
    assert_eq!(proposal.csv_full.footer_values.unwrap(), ["Zwischensumme", "Summe", "Stand:*"]);
    // A record that nothing marks may be a damaged row.
    let text = format!("tag;ware;betrag\n{rows}2024-01-31;7\n");
    let proposal = propose("pipelines/x/a.csv", text.as_bytes(), &GENEROUS_LIMITS).unwrap();
    assert_eq!((proposal.csv_full.skip_footer_rows, proposal.sample.rows_refused), (0, 1));
    // The name of a firm is not a total.
    let proposal = proposed("firm,x\nShell,1\nBP,2\nTotal,3\n");
    assert_eq!(proposal.csv_full.skip_footer_rows, 0);
}

#[test]
fn small_data_is_not_partitioned() {
    let rows: String = (0..1_800).map(|n| format!("2024-{:02}-{:02},{}\n", 1 + n % 12, 1 + n % 28, n)).collect();
    assert!(proposed(format!("day,n\n{rows}")).suggestions.is_empty());
    let rows: String = (0..20_000).map(|n| format!("s{},{}\n", n % 10, n)).collect();
    assert!(proposed(format!("sensor,n\n{rows}")).suggestions.is_empty());
}

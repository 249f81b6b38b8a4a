//! Types of columns, inferred from all values.

use lakemill::engine::infer::proposal::Item;

use super::{check, column, columns, proposed, reason, warned};

fn typed(values: &[&str]) -> String {
    let lines: Vec<String> = values.iter().map(|value| format!("\"{value}\",z\n")).collect();
    columns(&proposed(format!("x,y\n{}", lines.concat())))[0].clone()
}

#[test]
fn values_decide_the_type() {
    for (values, expected) in [
        (&["1", "-2", "+3"][..], "x:int64"),
        (&["1", "9223372036854775807"], "x:int64"),
        (&["1", "18446744073709551615"], "x:uint64"),
        (&["-1", "18446744073709551615"], "x:decimal(38,0)"),
        (&["123456789012345678901234567890"], "x:decimal(38,0)"),
        (&["1234567890123456789012345678901234567890"], "x:string"),
        (&["1.50", "22.25"], "x:decimal(18,2)"),
        (&["1.5", "22.25"], "x:float64"),
        (&["1.123456789012345678901", "2.5"], "x:decimal(38,21)"),
        (&["-72.886806000000007", "-80.6", "-.5"], "x:float64"),
        (&["12345678901234567.5", "0.25"], "x:decimal(38,2)"),
        (&["1e5", "2.5E-3"], "x:float64"),
        (&["1.5", "inf"], "x:float64"),
        (&["00501", "10001"], "x:string"),
        (&["0", "10"], "x:int64"),
        (&["-007"], "x:string"),
        (&["+4930123456", "+4930654321"], "x:string"),
        (&["true", "false"], "x:boolean"),
        (&["Yes", "No", "Yes"], "x:boolean"),
        (&["t", "f"], "x:boolean"),
        (&["yes"], "x:string"),
        (&["0", "1"], "x:int64"),
        (&["7f9c24e5-2f8b-4d0b-8a3d-2b1c0e6f9a55"], "x:uuid"),
        (&["7f9c24e52f8b4d0b8a3d2b1c0e6f9a55"], "x:string"),
        (&["[1, 2]", "{}"], "x:json"),
        (&["{a}", "{}"], "x:string"),
        (&["12:30:00", "23:59:59.5"], "x:time"),
        (&["9:30", "12:45"], "x:time:%H:%M"),
        (&["9:30 AM", "12:45 PM"], "x:time:%I:%M %p"),
        (&["2024-01-31"], "x:date"),
        (&["2024-01-31 10:00:00", "2024-01-31T10:00:00.123"], "x:timestamp"),
        (&["2024-01-31T10:00:00Z", "2024-01-31 10:00:00+02:00"], "x:timestamptz"),
        (&["2024-01-31 10:00:00 UTC"], "x:timestamptz:%Y-%m-%d %H:%M:%S UTC"),
        (&["31.12.2024 10:00", "01.02.2024 11:30"], "x:timestamp:%d.%m.%Y %H:%M"),
        (&["12/31/2024 10:00:00 PM"], "x:timestamp:%m/%d/%Y %I:%M:%S %p"),
        (&["01.02.2024"], "x:date:%d.%m.%Y"),
        (&["1 Jan 2024", "31 December 2024"], "x:date:%d %B %Y"),
        (&["Jan 5, 2024"], "x:date:%b %d, %Y"),
        (&["Mon, 05 Feb 2024 10:00:00 +0100"], "x:timestamptz:%a, %d %b %Y %H:%M:%S%#z"),
        (&["05/Feb/2024:10:00:00 +0100"], "x:timestamptz:%d/%b/%Y:%H:%M:%S%#z"),
        (&["20240131"], "x:int64"),
        (&["2024-02-30"], "x:string"),
        (&["2024-01-31", "soon"], "x:string"),
    ] {
        assert_eq!(typed(values), expected, "{values:?}");
    }
}

#[test]
fn json_in_doubled_quotes_is_json() {
    check("id,doc\n1,\"{\"\"a\"\": [1, 2]}\"\n2,\"{}\"\n", "{}", &["id:int64", "doc:json"]);
}

#[test]
fn any_value_of_the_file_decides_day_and_month() {
    assert_eq!(typed(&["01/02/2024", "31/01/2024"]), "x:date:%d/%m/%Y");
    assert_eq!(typed(&["01/02/2024", "01/31/2024"]), "x:date:%m/%d/%Y");
    let mut text = "n,when\n".to_owned();
    (0..100_000).for_each(|i| text.push_str(&format!("{i},0{}/0{}/2024\n", i % 9 + 1, i % 7 + 1)));
    let open = proposed(&text);
    assert_eq!(columns(&open)[1], "when:string");
    assert!(warned(&open, "no value in the file decides"));
    let others: Vec<_> = column(&open, "when").evidence.alternatives.iter().flat_map(|a| a.formats.clone()).collect();
    assert_eq!(others, ["%d/%m/%Y", "%m/%d/%Y"]);
    text.push_str("1,13/01/2024\n");
    let decided = proposed(&text);
    assert_eq!(columns(&decided)[1], "when:date:%d/%m/%Y");
    assert!(column(&decided, "when").evidence.why.contains("not `%m/%d/%Y`: line 100002 has `13/01/2024`"));
}

#[test]
fn ambiguous_dates_take_the_order_of_other_dates() {
    let proposal = proposed("a,b\n01/02/2024,31/01/2024\n02/02/2024,30/01/2024\n");
    assert_eq!(columns(&proposal), ["a:date:%d/%m/%Y", "b:date:%d/%m/%Y"]);
    assert!(column(&proposal, "a").evidence.why.contains("another column decides"));
}

#[test]
fn dates_of_one_month_tell_day_from_month() {
    assert_eq!(typed(&["03/11/2024", "04/11/2024", "12/11/2024"]), "x:date:%d/%m/%Y");
    assert_eq!(typed(&["11/03/2024", "11/04/2024", "11/12/2024"]), "x:date:%m/%d/%Y");
    assert_eq!(typed(&["3.11.2024 10:00", "4.11.2024 11:00", "5.11.2024 12:00"]), "x:timestamp:%d.%m.%Y %H:%M");
    // The first days of months, too few dates, and dates of several months.
    for values in [
        ["01/02/2024", "01/03/2024", "01/04/2024"],
        ["03/11/2024", "03/11/2024", "04/11/2024"],
        ["03/11/2024", "04/11/2024", "04/12/2024"],
    ] {
        assert_eq!(typed(&values), "x:string", "{values:?}");
    }
    let proposal = proposed("x,y\n03/11/2024,z\n04/11/2024,z\n12/11/2024,z\n");
    let evidence = &column(&proposal, "x").evidence;
    assert!(evidence.why.contains("all are of one month"), "{}", evidence.why);
    assert_eq!(evidence.alternatives[0].formats, ["%m/%d/%Y"]);
}

#[test]
fn two_digit_years_may_be_days() {
    assert_eq!(typed(&["10-11-12"]), "x:string");
    assert_eq!(typed(&["31-01-24", "30-01-24"]), "x:string", "31 may be a year, too");
    assert_eq!(typed(&["01/31/99"]), "x:date:%m/%d/%y");
}

#[test]
fn eight_digits_are_dates_only_with_evidence() {
    check("id,order_date\n1,20240131\n", "{}", &["id:int64", "order_date:date:%Y%m%d"]);
    let days: String = (10..30).map(|day| format!("1,202401{day}\n")).collect();
    check(format!("id,x\n{days}"), "{}", &["id:int64", "x:date:%Y%m%d"]);
    check("id,x\n1,20240131\n2,20249999\n", "{}", &["id:int64", "x:int64"]);
}

#[test]
fn null_values_are_those_that_a_type_needs() {
    let proposal = check(
        "id,speed,code\n1,NA,NA\n2,55,DE\n3,60,FR\n",
        r#"{"null_values":["","NA"]}"#,
        &["id:int64", "speed:int64", "code:string"],
    );
    assert!(warned(&proposal, "`NA` becomes null in text columns too: `code` (1)"));
    assert!(reason(&proposal, Item::NullValues).contains("null values"));
    let speed = &column(&proposal, "speed").evidence;
    assert_eq!((speed.values, speed.nulls, speed.tokens[0].count), (2, 1, 1));
    check("id,code\n1,NA\n2,DE\n", "{}", &["id:int64", "code:string"]);
    check("id,x\n1,\\N\n2,a\n", r#"{"null_values":["","\\N"]}"#, &["id:int64", "x:string"]);
    for token in ["-", "null", "NULL", "NaN", "None", "?", "."] {
        let proposal = proposed(format!("id,x\n1,{token}\n2,5\n3,7\n"));
        assert_eq!(proposal.csv["null_values"], serde_json::json!(["", token]));
        assert_eq!(columns(&proposal)[1], "x:int64");
    }
    check("id,x\n\"1\",\"\"\n\"2\",\"5\"\n", r#"{"quoted_nulls":true}"#, &["id:int64", "x:int64"]);
}

#[test]
fn columns_without_values_are_nullable_text() {
    let proposal = check("id,x,y\n1,,NA\n2,,NA\n", "{}", &["id:int64", "x:string", "y:string"]);
    assert!(column(&proposal, "x").nullable);
    assert!(warned(&proposal, "the type is unknown"));
}

#[test]
fn column_without_nulls_in_a_large_whole_file_is_not_nullable() {
    let rows: String = (0..100).map(|i| format!("{i},{}\n", if i == 50 { "" } else { "a" })).collect();
    let proposal = proposed(format!("id,x\n{rows}"));
    assert!(!column(&proposal, "id").nullable && column(&proposal, "x").nullable);
    assert_eq!(proposal.mapping()["columns"][0]["nullable"], false);
    assert!(column(&proposed("id,x\n1,a\n"), "id").nullable);
}

#[test]
fn counterexamples_are_reported_with_their_line() {
    let proposal = proposed("id,x\n1,1\n2,2\n3,1.5\n4,b\n");
    let ruled: Vec<&str> = column(&proposal, "x").evidence.ruled_out.iter().map(|r| r.why.as_str()).collect();
    assert!(ruled.contains(&"not int64: line 4 has `1.5`"), "{ruled:?}");
    assert!(ruled.contains(&"not float64: line 5 has `b`: not a number"), "{ruled:?}");
    let zip = proposed("id,zip\n1,10001\n2,00501\n");
    let ruled = &column(&zip, "zip").evidence.ruled_out[0];
    assert_eq!((ruled.line, ruled.value.as_str()), (3, "00501"));
    assert!(ruled.why.contains("leading zero"));
}

#[test]
fn late_counterexample_in_a_long_file_is_found() {
    let mut text = "id,x\n".to_owned();
    (0..300_000).for_each(|i| text.push_str(&format!("{i},{}\n", i % 10)));
    text.push_str("1,ten\n");
    let proposal = proposed(&text);
    assert_eq!(columns(&proposal)[1], "x:int64");
    assert_eq!(column(&proposal, "x").evidence.misfits.as_ref().unwrap().first[0].line, 300_002);
}

#[test]
fn money_is_exact_and_measures_are_floats() {
    check("price,lat\n1.5,41.1304722\n2.25,-80.6\n3,7\n", "{}", &["price:decimal(18,2)", "lat:float64"]);
}

#[test]
fn boolean_words_of_all_columns_are_combined() {
    let csv = r#"{"true_values":["true","Y"],"false_values":["false","N"]}"#;
    check("a,b\ntrue,Y\nfalse,N\n", csv, &["a:boolean", "b:boolean"]);
}

#[test]
fn mixed_zones_are_reported() {
    let proposal = proposed("id,at\n1,2024-01-01T10:00:00Z\n2,2024-01-01 10:00:00\n");
    assert_eq!(columns(&proposal)[1], "at:timestamptz");
    assert!(warned(&proposal, "1 of 2 values have no UTC offset"));
}

//! Columns in which all but a few cells have a type.

use super::{column, columns, proposed, refused, warned};

/// A file with a header, and rows of a number and one of `values`.
fn file(values: impl IntoIterator<Item = String>) -> String {
    let lines = values.into_iter().enumerate().map(|(nth, value)| format!("{nth},\"{value}\"\n"));
    format!("id,x\n{}", lines.collect::<String>())
}

/// Four hundred values, some replaced by `misfits`.
fn four_hundred(value: impl Fn(usize) -> String, misfits: &[(usize, &str)]) -> String {
    let misfit = |nth| misfits.iter().find(|(at, _)| *at == nth).map(|(_, text)| (*text).to_owned());
    file((0..400).map(|nth| misfit(nth).unwrap_or_else(|| value(nth))))
}

#[test]
fn type_with_few_misfits_is_proposed_with_the_misfits() {
    let text = four_hundred(|nth| nth.to_string(), &[(7, "n/k"), (30, "about 5"), (31, "x"), (390, "n/k")]);
    let proposal = proposed(text);
    assert_eq!(columns(&proposal), ["id:int64", "x:int64"]);
    assert_eq!((proposal.sample.rows_read, proposal.sample.rows_misfit), (400, 4));
    assert_eq!(proposal.mapping()["rejects"], serde_json::json!({ "max_ratio": 0.1 }));
    let x = column(&proposal, "x");
    assert!(x.nullable, "with `on_error` the cells may become null");
    let evidence = &x.evidence;
    let misfits = evidence.misfits.as_ref().unwrap();
    let first: Vec<_> = misfits.first.iter().map(|misfit| (misfit.line, misfit.value.as_str())).collect();
    assert_eq!((misfits.count, &first[..]), (4, &[(9, "n/k"), (32, "about 5"), (33, "x")][..]));
    assert_eq!((evidence.values, evidence.range.as_deref()), (400, Some("0 to 399")));
    assert!(evidence.why.starts_with("except for 4 of 400 values, whole numbers from 0 to 399"), "{}", evidence.why);
    let message = "4 of 400 values are not of type int64: line 9 has `n/k`, line 32 has `about 5`, line 33 has `x` and so on; a run \
        rejects their rows unless `on_error` of the column makes them null";
    assert_eq!(evidence.warnings, [message]);
    assert_eq!(evidence.alternatives.iter().map(|other| other.ty.as_str()).collect::<Vec<_>>(), ["string"]);
    assert!(column(&proposal, "id").evidence.misfits.is_none());
}

#[test]
fn every_type_tolerates_a_few_misfits() {
    let date = |nth: usize| format!("2024-{:02}-{:02}", nth % 12 + 1, nth % 28 + 1);
    let german = |nth: usize| format!("{:02}.{:02}.2024", nth % 28 + 1, nth % 12 + 1);
    let uuid = |nth: usize| format!("00000000-0000-4000-8000-{nth:012}");
    for (value, expected) in [
        (&(|nth| format!("{nth}.25")) as &dyn Fn(usize) -> String, "x:decimal(18,2)"),
        (&|nth| format!("{nth}.{nth}5"), "x:float64"),
        (&date, "x:date"),
        (&german, "x:date:%d.%m.%Y"),
        (&|nth| format!("{} 10:{:02}:00", date(nth), nth % 60), "x:timestamp"),
        (&|nth| format!("{}:{:02}", nth % 24, nth % 60), "x:time:%H:%M"),
        (&|nth| ["yes", "no"][nth % 2].to_owned(), "x:boolean"),
        (&uuid, "x:uuid"),
        (&|nth| format!("[{nth}]"), "x:json"),
        (&|nth| format!("${nth}.50"), "x:decimal(18,2)"),
        (&|nth| format!("1.{:03},50 €", nth), "x:decimal(18,2)"),
        (&|nth| format!("{}.5%", nth % 100), "x:decimal(18,4)"),
    ] {
        for misfits in [&[(0, "n/k")][..], &[(399, "soon"), (17, "soon"), (18, "soon")]] {
            let proposal = proposed(four_hundred(value, misfits));
            assert_eq!(columns(&proposal)[1], expected, "{misfits:?}");
            assert_eq!(column(&proposal, "x").evidence.misfits.as_ref().unwrap().count, misfits.len() as u64);
        }
    }
}

#[test]
fn amount_in_another_currency_is_a_misfit() {
    let proposal = proposed(four_hundred(|nth| format!("${nth}.50"), &[(7, "€7.50"), (8, "7 %"), (9, "9")]));
    assert_eq!(columns(&proposal)[1], "x:decimal(18,2)");
    let x = column(&proposal, "x");
    assert_eq!(x.number_format.as_ref().unwrap().currency, ["$"]);
    assert_eq!((x.evidence.misfits.as_ref().unwrap().count, proposal.sample.rows_misfit), (2, 2));
    assert!(warned(&proposal, "line 9 has `€7.50`, line 10 has `7 %`"));
}

#[test]
fn at_most_one_cell_in_twenty_may_be_a_misfit() {
    let of =
        |misfits: usize| proposed(file((0..100).map(|n| if n < 100 - misfits { n.to_string() } else { "?!".into() })));
    assert_eq!(columns(&of(5))[1], "x:int64");
    let below = of(6);
    assert_eq!((columns(&below)[1].as_str(), below.sample.rows_misfit), ("x:string", 0));
    let why = &column(&below, "x").evidence.why;
    assert!(why.starts_with("mixed values: 94 of 100 are numbers, but line 96 has `?!`"), "{why}");
    assert!(below.mapping().get("rejects").is_none());
    assert!(column(&of(40), "x").evidence.why.contains("no other type"));
    assert_eq!(
        columns(&proposed(file((0..19).map(|n| if n == 3 { "x".into() } else { n.to_string() }))))[1],
        "x:string"
    );
}

#[test]
fn lossy_values_keep_a_column_text() {
    let text = |misfit| proposed(four_hundred(|nth| (nth + 10_000).to_string(), &[(200, misfit)]));
    for misfit in ["00501", "+4930123456", "-007"] {
        let proposal = text(misfit);
        assert_eq!(columns(&proposal)[1], "x:string", "{misfit}");
        assert_eq!(proposal.sample.rows_misfit, 0);
    }
    assert_eq!(columns(&text("O0501"))[1], "x:int64");
}

#[test]
fn date_in_the_other_order_is_not_a_misfit() {
    let date = |nth: usize| format!("{:02}/{:02}/2024", nth % 28 + 1, nth % 12 + 1);
    assert_eq!(columns(&proposed(four_hundred(date, &[(200, "12/31/2024")])))[1], "x:string");
    assert_eq!(columns(&proposed(four_hundred(date, &[(200, "31.12.24 or so")])))[1], "x:date:%d/%m/%Y");
    let open = |nth: usize| format!("{:02}/{:02}/2024", nth % 12 + 1, nth % 11 + 1);
    assert_eq!(columns(&proposed(four_hundred(open, &[(200, "soon")])))[1], "x:string", "nothing decides the order");
}

#[test]
fn rows_with_several_misfits_count_once() {
    let lines = (0..200).map(|n| match n {
        10 => "?!,?!\n".to_owned(),
        11 => "?!,1\n".to_owned(),
        12 => "1,?!\n".to_owned(),
        n => format!("{n},{n}\n"),
    });
    let proposal = proposed(format!("a,b\n{}", lines.collect::<String>()));
    assert_eq!(columns(&proposal), ["a:int64", "b:int64"]);
    assert_eq!(proposal.sample.rows_misfit, 3);
    let count = |name| column(&proposal, name).evidence.misfits.as_ref().unwrap().count;
    assert_eq!((count("a"), count("b")), (2, 2));
}

#[test]
fn headers_are_detected_despite_misfits() {
    // A header that repeats within the file, as in concatenated files.
    let rows = |from: usize| (from..from + 100).map(|n| format!("{n},{n}.5\n")).collect::<String>();
    let twice = proposed(format!("id,price\n{}id,price\n{}", rows(0), rows(100)));
    assert_eq!(columns(&twice), ["id:int64", "price:decimal(18,1)"]);
    assert_eq!((twice.csv_full.header, twice.sample.rows_read, twice.sample.rows_misfit), (true, 201, 1));
    // A line of units below the header.
    let units = proposed(format!("id,price\nnumber,EUR\n{}", rows(0)));
    assert_eq!(columns(&units), ["id:int64", "price:decimal(18,1)"]);
    assert_eq!(column(&units, "price").evidence.misfits.as_ref().unwrap().first[0].line, 2);
    // No header, and a misfit in the first row, which may be a name: the column stays text.
    let none = proposed(format!("0,unknown price,2024-01-01\n{}", rows(1).replace('\n', ",2024-01-02\n")));
    assert!(!none.csv_full.header);
    assert_eq!(columns(&none), ["column_1:int64", "column_2:string", "column_3:date"]);
    // Many misfits at the start hide the type in the first records.
    let mut late = "amount,name\n".to_owned();
    (0..40).for_each(|n| late.push_str(&format!("none yet {n},a{n}\n")));
    (0..2_000).for_each(|n| late.push_str(&format!("{n},b{n}\n")));
    let late = proposed(late);
    assert_eq!((late.csv_full.header, &columns(&late)[..]), (true, &["amount:int64".into(), "name:string".into()][..]));
}

#[test]
fn null_tokens_are_not_misfits() {
    let proposal =
        proposed(four_hundred(|nth| if nth % 2 == 0 { "NA".into() } else { nth.to_string() }, &[(7, "n/k")]));
    let x = &column(&proposal, "x").evidence;
    assert_eq!((x.values, x.nulls, x.misfits.as_ref().unwrap().count), (200, 200, 1));
    assert!(warned(&proposal, "1 of 200 values is not of type int64: line 9 has `n/k`; a run rejects its row"));
}

#[test]
fn empty_file_is_refused_with_advice() {
    for text in ["", "\n", "\r\n \r\n\r\n"] {
        let message = refused(text);
        assert!(
            message.contains("has no rows") && message.contains("choose a file") && !message.contains("header"),
            "{message}"
        );
    }
}

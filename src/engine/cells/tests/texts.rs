use super::*;
use arrow::array::AsArray;

#[test]
fn null_tokens_are_exact_and_not_quoted() {
    let tokens = Dialect { null_values: vec![String::new(), "NA".into(), "x".repeat(70)], ..dialect() };
    let long = "x".repeat(70);
    let longer = "x".repeat(71);
    let table = [
        ("", "null"),
        ("NA", "null"),
        ("<absent>", "null"),
        ("na", "na"),
        ("NA ", "NA "),
        ("NAN", "NAN"),
        ("\"NA\"", "NA"),
        ("\"\"", ""),
        (&long, "null"),
        (&longer, &longer),
    ];
    check(&column("string"), &tokens, &table);
    let quoted = Dialect { quoted_nulls: true, ..tokens.clone() };
    check(&column("string"), &quoted, &[("\"NA\"", "null"), ("\"\"", "null"), ("\"na\"", "na")]);
    check(&column("int8"), &tokens, &[("NA", "null"), ("\"NA\"", "!Syntax"), ("\"\"", "!Syntax"), ("\"7\"", "7")]);
    let none = Dialect { null_values: Vec::new(), ..dialect() };
    check(&column("string"), &none, &[("", ""), ("<absent>", "null")]);
    for ty in
        ["boolean", "int64", "float32", "decimal(4,1)", "json", "date", "time", "timestamp", "timestamptz", "uuid"]
    {
        check(&column(ty), &none, &[("", "!Syntax")]);
    }
}

#[test]
fn trimming_precedes_null_tokens_and_skips_quoted_cells() {
    let trimming = Dialect { trim: true, ..dialect() };
    check(&column("int32"), &trimming, &[(" 7\t", "7"), ("   ", "null"), ("\" 7\"", "!Syntax"), ("1 2", "!Syntax")]);
    check(
        &column("string"),
        &trimming,
        &[("  a b ", "a b"), ("\"  a \"", "  a "), (" \u{a0}a ", "\u{a0}a"), ("\t", "null")],
    );
    check(&column("date"), &trimming, &[(" 2024-01-02 ", "2024-01-02")]);
}

#[test]
fn not_nullable_column_reports_each_null() {
    let required = Column { nullable: false, ..column("int32") };
    check(&required, &dialect(), &[("1", "1"), ("", "!Null"), ("<absent>", "!Null"), ("x", "!Syntax")]);
    assert_eq!(message(&required, &dialect(), ""), "column `c`: expected a value, found a null (`nullable` is false)");
}

#[test]
fn missing_column_gives_nulls() {
    let (text, index) = block(&dialect(), &["1", "2"]);
    for nullable in [true, false] {
        let mut builder = ColumnBuilder::new(&Column { nullable, ..column("string") }, &dialect());
        let mut faults = Vec::new();
        builder.append(&text, &index, Some(1), &mut faults);
        builder.append(&text, &index, None, &mut faults);
        let rows: Vec<usize> = faults.iter().map(|fault| fault.row).collect();
        assert_eq!(rows, if nullable { vec![] } else { vec![2, 3] });
        let array = builder.finish();
        assert_eq!((array.len(), array.null_count()), (4, 2));
    }
}

#[test]
fn rows_count_from_the_start_of_each_array() {
    let (text, index) = block(&dialect(), &["1", "x", ""]);
    let mut builder = ColumnBuilder::new(&column("int32"), &dialect());
    for _ in 0..2 {
        let mut faults = Vec::new();
        builder.append(&text, &index, Some(1), &mut faults);
        builder.append(&text, &index, Some(1), &mut faults);
        assert_eq!(faults.iter().map(|fault| fault.row).collect::<Vec<_>>(), [1, 4]);
        let array = builder.finish();
        assert_eq!((array.len(), array.null_count()), (6, 4));
    }
    assert_eq!(builder.finish().len(), 0);
}

#[test]
fn empty_block_adds_nothing() {
    let mut builder = ColumnBuilder::new(&column("string"), &dialect());
    builder.append(b"", &RecordIndex { width: 3, ..RecordIndex::default() }, Some(1), &mut Vec::new());
    assert!(builder.is_empty());
    assert_eq!(builder.finish().len(), 0);
}

#[test]
fn strings_keep_every_byte_but_escapes() {
    let long = "längere Zeichenkette, mehr als sechzehn Bytes 🦀";
    check(
        &column("string"),
        &dialect(),
        &[
            ("a", "a"),
            ("exactly 16 bytes", "exactly 16 bytes"),
            (long, long),
            ("\"say \"\"hi\"\"\"", "say \"hi\""),
            ("\"\"\"\"", "\""),
            ("\"two\nlines\"", "two\nlines"),
            (" padded ", " padded "),
        ],
    );
    let backslash = Dialect { escape: Some(b'\\'), ..dialect() };
    check(
        &column("string"),
        &backslash,
        &[("\"a\\\"b\"", "a\"b"), ("\"a\\\\b\"", "a\\b"), ("\"\\\\\"", "\\"), ("plain\\", "plain\\")],
    );
}

#[test]
fn escapes_are_resolved_before_parsing() {
    let escaped = Dialect { escape: Some(b'\\'), null_values: vec!["\\N".into()], quoted_nulls: true, ..dialect() };
    check(&column("int32"), &escaped, &[("\"\\12\"", "12"), ("\\N", "null"), ("\"\\\\N\"", "null")]);
}

#[test]
fn only_declared_values_parse_as_boolean() {
    check(
        &column("boolean"),
        &dialect(),
        &[("true", "true"), ("false", "false"), ("True", "!Syntax"), ("1", "!Syntax"), ("", "null"), ("t", "!Syntax")],
    );
    let words = Dialect {
        true_values: vec!["ja".into(), "1".into()],
        false_values: vec!["nein".into(), "0".into()],
        ..dialect()
    };
    check(&column("boolean"), &words, &[("ja", "true"), ("0", "false"), ("1", "true"), ("true", "!Syntax")]);
}

#[test]
fn json_is_validated_and_kept_unchanged() {
    let deep = format!("{}{}", "[".repeat(128), "]".repeat(128));
    let too_deep = format!("{}{}", "[".repeat(129), "]".repeat(129));
    let wide = format!("[{}1]", "[],".repeat(500));
    let in_text = format!("[\"{}\"]", "[\\\"".repeat(300)).replace('"', "\"\"");
    let in_text = format!("\"{in_text}\"");
    let in_text_plain = format!("[\"{}\"]", "[\\\"".repeat(300));
    check(
        &column("json"),
        &dialect(),
        &[
            ("1", "1"),
            ("\"{ \"\"a\"\" : [1, 2.50] }\"", "{ \"a\" : [1, 2.50] }"),
            ("", "null"),
            ("null", "null"),
            ("{", "!Syntax"),
            ("{a:1}", "!Syntax"),
            ("1 2", "!Syntax"),
            ("01", "!Syntax"),
            ("NaN", "!Syntax"),
            ("\"\"", "!Syntax"),
            (&deep, &deep),
            (&too_deep, "!JsonDepth"),
            (&wide, &wide),
            (&in_text, &in_text_plain),
        ],
    );
}

#[test]
fn uuids_are_hyphenated_or_simple() {
    let expect = "67e5504410b1426f9247bb680e5fe0c8";
    check(
        &column("uuid"),
        &dialect(),
        &[
            ("67e55044-10b1-426f-9247-bb680e5fe0c8", expect),
            ("67E55044-10B1-426F-9247-BB680E5FE0C8", expect),
            ("67e5504410b1426f9247bb680e5fe0c8", expect),
            ("{67e55044-10b1-426f-9247-bb680e5fe0c8}", "!Syntax"),
            ("urn:uuid:67e55044-10b1-426f-9247-bb680e5fe0c8", "!Syntax"),
            ("67e5504-410b1-426f-9247-bb680e5fe0c8", "!Syntax"),
            ("67e55044-10b1-426f-9247-bb680e5fe0cg", "!Syntax"),
            ("67e55044-10b1-426f-9247-bb680e5fe0c", "!Syntax"),
            ("", "null"),
        ],
    );
}

#[test]
fn cell_text_is_unescaped_and_not_trimmed() {
    let (text, index) = block(&dialect(), &["\" a\"\"b\"", " c ", "<absent>"]);
    let read = |row| String::from_utf8(cell_text(&text, index.field(row, 1), &dialect()).into_owned()).unwrap();
    assert_eq!([read(0), read(1), read(2)], [" a\"b", " c ", ""]);
}

#[test]
fn recycled_memory_is_reused_unless_shared() {
    let mut builder = ColumnBuilder::new(&column("string"), &dialect());
    let mut build = |cells: &[&str], back: Option<ArrayRef>| {
        back.into_iter().for_each(|array| builder.recycle(array));
        let (text, index) = block(&dialect(), cells);
        builder.append(&text, &index, Some(1), &mut Vec::new());
        builder.finish()
    };
    let place = |array: &ArrayRef| array.as_string::<i32>().value_data().as_ptr();
    let texts =
        |array: &ArrayRef| array.as_string::<i32>().iter().map(|text| text.map(str::to_owned)).collect::<Vec<_>>();
    let first = build(&["one", "", "a text of more than sixteen bytes"], None);
    let was = place(&first);
    let second = build(&["two", ""], Some(first));
    assert_eq!((place(&second), texts(&second)), (was, vec![Some("two".to_owned()), None]));
    let kept = second.slice(0, 1);
    let third = build(&["three"], Some(second));
    assert_ne!(place(&third), was);
    assert_eq!((texts(&kept), texts(&third)), (vec![Some("two".to_owned())], vec![Some("three".to_owned())]));
    let other = build(&[], None);
    assert_eq!(texts(&build(&["four"], Some(other))), [Some("four".to_owned())]);
}

#[test]
fn nulls_keep_their_positions_in_long_columns() {
    let cells: Vec<String> = (0..3000).map(|i| if i % 7 == 0 { String::new() } else { i.to_string() }).collect();
    let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
    let (array, faults) = build(&column("string"), &dialect(), &cells);
    assert!(faults.is_empty());
    for (row, value) in array.as_string::<i32>().iter().enumerate() {
        assert_eq!(value, (row % 7 != 0).then(|| cells[row]));
    }
}

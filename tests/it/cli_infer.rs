//! `lakemill infer`, whose output `lakemill run` accepts.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::program::{Program, call, lakemill};

/// The proposal for paths, and its evidence.
fn inferred(paths: &[&Path], more: &[&str]) -> (Value, String) {
    let ran = call(lakemill().arg("infer").args(paths).args(more)).ok();
    (serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {}", ran.stdout)), ran.stderr)
}

fn mapping<'a>(config: &'a Value, table: &str) -> &'a Value {
    let mut mappings = config["mappings"].as_array().unwrap().iter();
    mappings.find(|mapping| mapping["table"] == table).unwrap_or_else(|| panic!("no table {table}: {config}"))
}

fn columns(config: &Value, table: &str) -> Vec<String> {
    let text = |column: &Value| {
        let formats = column["formats"].as_array().map_or(String::new(), |formats| {
            formats.iter().map(|format| format!(" {}", format.as_str().unwrap())).collect()
        });
        let format = column.get("number_format").map_or(String::new(), |format| format!(" {format}"));
        format!("{} {}{formats}{format}", column["name"].as_str().unwrap(), column["type"].as_str().unwrap())
    };
    mapping(config, table)["columns"].as_array().unwrap().iter().map(text).collect()
}

#[test]
fn messy_folder_becomes_tables_without_an_editor() {
    let messy = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/messy");
    let (config, evidence) = inferred(&[&messy], &[]);
    assert_eq!(
        columns(&config, "sales"),
        [
            "order_id int64",
            "order_date date %m/%d/%Y",
            "region string",
            "zip string",
            r#"amount decimal(18,2) {"decimal":".","thousands":",","currency":["$"],"negative":"parentheses"}"#,
            r#"discount decimal(18,4) {"percent":true}"#,
            "paid boolean",
            "channel string",
        ]
    );
    assert_eq!(mapping(&config, "sales")["files"], json!(["us/*.csv"]));
    assert_eq!(mapping(&config, "sales")["missing_columns"], "null");
    assert_eq!(
        columns(&config, "umsatz"),
        [
            "datum date %d.%m.%Y",
            "filiale string",
            "plz string",
            r#"umsatz decimal(18,2) {"decimal":",","thousands":".","currency":["€"]}"#,
            "bezahlt boolean",
        ]
    );
    assert_eq!(mapping(&config, "umsatz")["csv"]["skip_footer_rows"], 2);
    assert_eq!(
        columns(&config, "ventes"),
        [
            "date date %d/%m/%Y",
            "client string",
            r#"montant decimal(18,2) {"decimal":",","thousands":" ","currency":["€"]}"#,
            r#"taux decimal(18,4) {"decimal":",","percent":true}"#,
        ]
    );
    assert_eq!(columns(&config, "readings")[1], "ts timestamptz epoch_ms");
    assert_eq!(
        columns(&config, "invoices"),
        [
            "invoice string",
            "date date excel",
            "booked_date timestamp excel",
            r#"net decimal(18,2) {"negative":"trailing_minus"}"#
        ]
    );
    assert!(evidence.contains("with `$`"), "{evidence}");
    let program = Program::new(&[]);
    std::fs::write(program.config(), config.to_string()).unwrap();
    let mut run = lakemill();
    run.arg("run").arg(program.config()).arg("--input").arg(&messy).arg("--output").arg(program.output()).arg("--json");
    let result: Value = serde_json::from_str(&call(&mut run).ok().stdout).unwrap();
    for (table, rows) in [("sales", 360), ("umsatz", 110), ("ventes", 100), ("readings", 150), ("invoices", 100)] {
        let found = &result["tables"][table];
        assert_eq!((&found["rows_written"], &found["rows_rejected"]), (&json!(rows), &json!(0)), "{table}: {found}");
    }
    let rows = program.rows("invoices");
    assert!(rows.iter().any(|row| row.contains("2024-01-02")), "{rows:?}");
}

#[test]
fn files_are_relative_to_their_common_folder() {
    let program = Program::new(&[]);
    program.put("shop/sales_q1.csv", "id,x\n1,2\n").put("shop/sales_q2.csv", "id,x\n3,4\n");
    program.put("shop/stock.csv", "item,count\na,1\n");
    let (config, _) = inferred(&[&program.source("shop/sales_q1.csv"), &program.source("shop/sales_q2.csv")], &[]);
    assert_eq!(mapping(&config, "sales")["files"], json!(["sales_q*.csv"]));
    let (config, _) = inferred(&[&program.source("shop/stock.csv")], &["--table", "goods"]);
    assert_eq!(mapping(&config, "goods")["files"], json!(["stock.csv"]));
    let (both, _) = inferred(&[&program.lake()], &[]);
    assert_eq!(mapping(&both, "sales")["files"], json!(["shop/sales_q*.csv"]));
    assert_eq!(mapping(&both, "stock")["files"], json!(["shop/stock.csv"]));
    let (all, stderr) = inferred(&[&program.lake()], &["--json"]);
    assert_eq!((&all["config"], stderr.as_str()), (&both, ""));
    assert_eq!(all["tables"][0]["proposal"]["sample"]["whole"], true);
}

#[test]
fn non_csv_files_are_skipped_with_a_reason() {
    let program = Program::new(&[]);
    program.put("a/x.csv", "id\n1\n2\n").put("a/book.xlsx", "PK").put("a/all.zip", "PK").put("a/empty.csv", "");
    let (config, evidence) = inferred(&[&program.lake()], &[]);
    assert_eq!(config["mappings"].as_array().unwrap().len(), 1);
    assert!(evidence.contains("left out: `a/book.xlsx`: an Excel workbook; save its sheets as CSV"), "{evidence}");
    assert!(evidence.contains("left out: `a/all.zip`: a ZIP archive; extract its files"), "{evidence}");
    assert!(evidence.contains("left out: `a/empty.csv`: "), "{evidence}");
    for (words, message) in [
        (&["nowhere.csv"][..], "`nowhere.csv`: No such file"),
        (&["s3://"], "expected `s3://bucket/prefix`"),
        (&["s3://a/b", "c.csv"], "expected one `s3://bucket/prefix`, or paths of this machine"),
    ] {
        let ran = call(lakemill().arg("infer").args(words));
        assert_eq!(ran.status, 1, "{words:?}");
        assert!(ran.stderr.contains(message), "{words:?}: {}", ran.stderr);
    }
}

#[test]
fn files_of_two_formats_become_one_table_however_many_they_are() {
    let program = Program::new(&[]);
    for n in 0..30 {
        let (id, day) = (n + 1, n % 9 + 1);
        let text = match n % 3 {
            2 => format!("Till 4\n\nid;day;price\n{id};0{day}.02.2024;1.000,50\n{id};1{day}.02.2024;2,25\n"),
            _ => format!("id,day,price\n{id},2024-02-0{day},1000.50\n{id},2024-02-1{day},2.25\n"),
        };
        let shop = ["north", "east", "south"][n % 3];
        program.put(&format!("{shop}/sales-{n:02}.csv"), &text);
    }
    let (config, evidence) = inferred(&[&program.lake()], &[]);
    let sales = mapping(&config, "sales");
    assert_eq!(
        sales["variants"],
        json!([{
            "files": ["south/*.csv"],
            "csv": { "delimiter": ";", "skip_rows": 2, "decimal": ",", "thousands": "." },
            "columns": [{ "name": "day", "formats": ["%d.%m.%Y"] }]
        }])
    );
    assert!(evidence.contains("variant for `south/*.csv`: csv {\"delimiter\":\";\""), "{evidence}");
    std::fs::write(program.config(), config.to_string()).unwrap();
    let mut run = lakemill();
    run.arg("run").arg(program.config()).arg("--input").arg(program.lake()).arg("--output").arg(program.output());
    let result: Value = serde_json::from_str(&call(run.arg("--json")).ok().stdout).unwrap();
    let found = &result["tables"]["sales"];
    assert_eq!((&found["rows_written"], &found["rows_rejected"]), (&json!(60), &json!(0)), "{found}");
    let rows = program.rows("sales");
    assert_eq!(rows.iter().filter(|row| row.contains("1000.50")).count(), 30, "{rows:?}");
}

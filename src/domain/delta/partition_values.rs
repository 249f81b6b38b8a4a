//! Partition values as Delta writes them.

use serde_json::{Map, Value};

use crate::domain::partition::parse_segment;
use crate::domain::pipeline::types::DataType;
use crate::domain::table_schema::TableColumn;

/// Digits of a fraction of a second.
const FRACTION_DIGITS: usize = 6;

/// The values of a partition's path, `col=value/col=value`, in its order: text, or null.
pub fn partition_values(path: &str, columns: &[TableColumn]) -> Map<String, Value> {
    let segments = path.split('/').filter_map(parse_segment);
    let value = |(name, value): (String, Option<String>)| {
        let ty = columns.iter().find(|column| column.partition && column.name == name).map(|column| column.ty);
        let value = value.map_or(Value::Null, |text| Value::String(delta_text(text, ty)));
        (name, value)
    };
    segments.map(value).collect()
}

fn delta_text(text: String, ty: Option<DataType>) -> String {
    match ty {
        Some(DataType::Timestamp) => with_all_digits(&text),
        Some(DataType::TimestampTz) => match text.strip_suffix("+00:00") {
            Some(utc) => format!("{}Z", with_all_digits(utc).replacen(' ', "T", 1)),
            None => text,
        },
        _ => text,
    }
}

/// A fraction of a second has all digits or none.
fn with_all_digits(text: &str) -> String {
    match text.rsplit_once('.') {
        Some((second, fraction)) => format!("{second}.{fraction:0<FRACTION_DIGITS$}"),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_text_as_delta_writes_it() {
        let column = |name: &str, ty| TableColumn { name: name.into(), ty, nullable: true, partition: true };
        let columns = [
            column("s", DataType::String),
            column("t", DataType::Timestamp),
            column("z", DataType::TimestampTz),
            column("d", DataType::Decimal { precision: 5, scale: 2 }),
        ];
        let path = "s=50%25 a%2Fb/t=2024-01-31 10%3A00%3A00.500/z=2024-01-31 10%3A00%3A00+00%3A00/d=1.50";
        let values = Value::Object(partition_values(path, &columns)).to_string();
        let expected = r#"{"s":"50% a/b","t":"2024-01-31 10:00:00.500000","z":"2024-01-31T10:00:00Z","d":"1.50"}"#;
        assert_eq!(values, expected);
        let null = Value::Object(partition_values("s=__HIVE_DEFAULT_PARTITION__", &columns)).to_string();
        assert_eq!(null, r#"{"s":null}"#);
        assert!(partition_values("", &columns).is_empty());
    }
}

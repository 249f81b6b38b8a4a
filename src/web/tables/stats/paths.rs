//! The values of a partition column, which stand in the files' paths.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, StringArray};
use arrow::compute::cast;

use crate::domain::partition::parse_segment;
use crate::domain::pipeline::types::DataType;
use crate::ports::arrow_types::arrow_type;
use crate::web::parquet::fold::{Bounds, extremes};
use crate::web::snapshot::selection::Chosen;

/// The bounds of a column of type `ty`, by the paths of all files.
pub fn values(name: &str, ty: &str, files: &[Chosen]) -> Bounds {
    let (mut texts, mut nulls, mut whole) = (BTreeSet::new(), Some(0), true);
    for file in files {
        match in_path(name, &file.key) {
            Some(Some(text)) => drop(texts.insert(text)),
            Some(None) => nulls = nulls.zip(file.rows).map(|(sum, rows)| sum + rows),
            None => whole = false,
        }
    }
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values(texts));
    let (array, read) = typed(texts, ty);
    let (min, max, exact) = extremes(&array);
    Bounds { min, max, nulls: nulls.filter(|_| whole), exact: exact && whole && read }
}

/// What the path says: `None` nothing, else the value, which may be none.
fn in_path(name: &str, key: &str) -> Option<Option<String>> {
    let mut segments = key.split('/').filter_map(parse_segment);
    segments.find(|(own, _)| own == name).map(|(_, value)| value)
}

/// Texts as values of their type, and whether all could be read so.
fn typed(texts: ArrayRef, ty: &str) -> (ArrayRef, bool) {
    let ty = match DataType::parse(ty) {
        // Their texts are how rows have them.
        None | Some(DataType::Uuid | DataType::Json | DataType::String) => return (texts, true),
        Some(ty) => arrow_type(ty),
    };
    match cast(&texts, &ty) {
        Ok(array) => {
            let read = array.null_count() == 0;
            (array, read)
        }
        Err(_) => (texts, false),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::ports::store::ETag;

    fn bounds(ty: &str, paths: &[&str]) -> (Value, Value, Option<u64>, bool) {
        let file = |path: &&str| Chosen {
            key: format!("t/{path}/part-00000.parquet"),
            size: 1,
            etag: ETag("e".into()),
            sha256: String::new(),
            rows: Some(3),
        };
        let files: Vec<Chosen> = paths.iter().map(file).collect();
        let Bounds { min, max, nulls, exact } = values("p", ty, &files);
        (min, max, nulls, exact)
    }

    #[test]
    fn values_compare_as_their_type_does() {
        for (ty, paths, min, max) in [
            ("int32", &["p=9", "p=10", "p=-1"][..], json!(-1), json!(10)),
            ("string", &["p=9", "p=10", "p=a%2Fb"], json!("10"), json!("a/b")),
            ("date", &["p=2013-02-01", "p=2013-01-31"], json!("2013-01-31"), json!("2013-02-01")),
            ("int64", &["p=9007199254740993", "p=1"], json!(1), json!("9007199254740993")),
            ("decimal(5,2)", &["p=10.00", "p=9.50"], json!("9.50"), json!("10.00")),
            ("boolean", &["p=true", "p=false"], json!(false), json!(true)),
        ] {
            assert_eq!(bounds(ty, paths), (min, max, Some(0), true), "{ty}");
        }
    }

    #[test]
    fn nulls_are_the_rows_of_their_partition() {
        let null = "p=__HIVE_DEFAULT_PARTITION__";
        assert_eq!(bounds("int32", &[null, "p=1"]), (json!(1), json!(1), Some(3), true));
        assert_eq!(bounds("int32", &[null]), (Value::Null, Value::Null, Some(3), true));
        assert_eq!(bounds("int32", &["q=1"]), (Value::Null, Value::Null, None, false));
        assert!(!bounds("int32", &["p=x", "p=1"]).3);
    }
}

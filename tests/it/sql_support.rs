//! Helpers of the `sql` suites.
#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

use std::sync::{Arc, LazyLock};

use crate::child::DuckExpressions;
use arrow::array::{ArrayRef, Int64Array, RecordBatch, RecordBatchOptions};
use arrow::datatypes::Schema;
use lakemill::domain::pipeline::types::DataType;
use lakemill::domain::problem::ProblemKind;
use lakemill::ports::arrow_types::arrow_field;
use lakemill::ports::expressions::{Computed, Evaluated, ExpressionProblem, ExpressionSet, Expressions};

pub static SQL: LazyLock<DuckExpressions> = LazyLock::new(DuckExpressions::default);

pub fn ty(text: &str) -> DataType {
    DataType::parse(text).unwrap_or_else(|| panic!("no type: {text}"))
}

/// An expression set; inputs and computed columns are given as (name, type) and (name, type, sql).
pub fn set(inputs: &[(&str, &str)], computed: &[(&str, &str, &str)], predicates: &[&str]) -> ExpressionSet {
    ExpressionSet {
        inputs: inputs.iter().map(|(name, t)| (name.to_string(), ty(t))).collect(),
        computed: computed
            .iter()
            .map(|(name, t, sql)| Computed { name: name.to_string(), ty: ty(t), sql: sql.to_string() })
            .collect(),
        predicates: predicates.iter().map(|sql| sql.to_string()).collect(),
    }
}

pub fn batch(set: &ExpressionSet, columns: Vec<ArrayRef>) -> RecordBatch {
    let fields: Vec<_> = set.inputs.iter().map(|(name, t)| arrow_field(name, *t, true)).collect();
    let rows = columns.first().map_or(3, |c| c.len());
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options).unwrap()
}

pub fn evaluate(set: &ExpressionSet, columns: Vec<ArrayRef>) -> Evaluated {
    assert_eq!(SQL.check(set).unwrap(), []);
    SQL.bind(set).unwrap().evaluate(&batch(set, columns)).unwrap()
}

pub fn int64s(values: impl IntoIterator<Item = Option<i64>>) -> ArrayRef {
    Arc::new(Int64Array::from_iter(values))
}

/// Problems of one computed column over `inputs`.
pub fn problems(inputs: &[(&str, &str)], declared: &str, sql: &str) -> Vec<ExpressionProblem> {
    SQL.check(&set(inputs, &[("made", declared, sql)], &[])).unwrap()
}

/// The kind and message of the only problem.
pub fn problem(inputs: &[(&str, &str)], declared: &str, sql: &str) -> (ProblemKind, String) {
    let mut found = problems(inputs, declared, sql);
    assert_eq!(found.len(), 1, "{sql}: {found:?}");
    let found = found.remove(0);
    (found.kind, found.message)
}

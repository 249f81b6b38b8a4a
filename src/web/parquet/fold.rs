//! Merges the column bounds of files.

use std::cmp::Ordering;

use arrow::array::{Array, ArrayRef, make_comparator};
use arrow::compute::SortOptions;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::sql::sandbox::{RelationColumn, json_value};

/// Longest text bound, in characters.
pub(super) const TEXT_CHARS_MAX: usize = 256;

/// Merges bounds, column by column.
pub struct Fold {
    columns: Vec<Column>,
    files: u64,
}

struct Column {
    min: Option<Bound>,
    max: Option<Bound>,
    nulls: Option<u64>,
    /// Whether all files had statistics.
    complete: bool,
    /// Whether every value of the files with statistics is within the bounds.
    bounded: bool,
}

/// A value of an array.
#[derive(Clone)]
struct Bound {
    array: ArrayRef,
    at: usize,
    exact: bool,
}

/// The merged bounds of a column.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Bounds {
    pub min: Value,
    pub max: Value,
    pub nulls: Option<u64>,
    pub exact: bool,
}

/// Statistics of a column: a value per row group, null if it has none.
pub(super) struct ColumnStatistics {
    pub(super) mins: ArrayRef,
    pub(super) maxes: ArrayRef,
    /// Whether a bound is a value of the column, not a truncated one.
    pub(super) min_is_exact: Vec<bool>,
    pub(super) max_is_exact: Vec<bool>,
    pub(super) nulls: Option<u64>,
    /// Whether a row group with values has no bounds.
    pub(super) incomplete: bool,
}

impl Fold {
    pub fn of(columns: &[RelationColumn]) -> Self {
        let column =
            |_: &RelationColumn| Column { min: None, max: None, nulls: Some(0), complete: true, bounded: true };
        Self { columns: columns.iter().map(column).collect(), files: 0 }
    }

    /// Number of files added.
    pub fn files(&self) -> u64 {
        self.files
    }

    /// Adds a file's statistics, one per column.
    pub(super) fn add(&mut self, found: Vec<Option<ColumnStatistics>>) {
        self.files += 1;
        for (column, found) in self.columns.iter_mut().zip(found) {
            column.add(found);
        }
    }

    pub fn finish(self) -> impl Iterator<Item = Bounds> {
        self.columns.into_iter().map(Column::finish)
    }
}

impl Column {
    fn add(&mut self, found: Option<ColumnStatistics>) {
        let Some(found) = found else {
            (self.nulls, self.complete) = (None, false);
            return;
        };
        self.nulls = self.nulls.zip(found.nulls).map(|(known, more)| known + more);
        let comparable = merge_bound(&mut self.min, &found.mins, &found.min_is_exact, Ordering::Less)
            && merge_bound(&mut self.max, &found.maxes, &found.max_is_exact, Ordering::Greater);
        self.bounded &= comparable && !found.incomplete;
    }

    fn finish(self) -> Bounds {
        let exact = |bound: &Option<Bound>| bound.as_ref().is_none_or(|bound| bound.exact);
        let mut exact = self.complete && self.bounded && exact(&self.min) && exact(&self.max);
        let mut value = |bound: Option<Bound>| to_json(bound.as_ref().filter(|_| self.bounded), &mut exact);
        let (min, max) = (value(self.min), value(self.max));
        Bounds { min, max, nulls: self.nulls, exact }
    }
}

/// Replaces `known` by the smallest (or largest) of it and an array's values; false if they can't be compared.
fn merge_bound(known: &mut Option<Bound>, array: &ArrayRef, exact: &[bool], wanted: Ordering) -> bool {
    for at in (0..array.len()).filter(|at| !array.is_null(*at)) {
        let one = Bound { array: ArrayRef::clone(array), at, exact: exact.get(at).copied().unwrap_or(false) };
        let Some(old) = known else {
            *known = Some(one);
            continue;
        };
        let Ok(compare) = make_comparator(one.array.as_ref(), old.array.as_ref(), SortOptions::default()) else {
            return false;
        };
        match compare(one.at, old.at) {
            Ordering::Equal => old.exact |= one.exact,
            found if found == wanted => *known = Some(one),
            Ordering::Less | Ordering::Greater => {}
        }
    }
    true
}

/// The smallest and the largest value of an array, and whether they are exact.
pub fn extremes(array: &ArrayRef) -> (Value, Value, bool) {
    let (mut min, mut max, mut exact) = (None, None, true);
    let all = vec![true; array.len()];
    let comparable =
        merge_bound(&mut min, array, &all, Ordering::Less) && merge_bound(&mut max, array, &all, Ordering::Greater);
    let (min, max) = (to_json(min.as_ref(), &mut exact), to_json(max.as_ref(), &mut exact));
    (min, max, exact && comparable)
}

/// A bound in the format of rows. Long texts are truncated and inexact.
fn to_json(bound: Option<&Bound>, exact: &mut bool) -> Value {
    let Some(bound) = bound else { return Value::Null };
    match json_value(bound.array.as_ref(), bound.at) {
        Value::String(text) => match text.char_indices().nth(TEXT_CHARS_MAX) {
            Some((end, _)) => {
                *exact = false;
                Value::String(text[..end].to_owned())
            }
            None => Value::String(text),
        },
        // Statistics don't keep the sign of zero.
        Value::Number(number) if number.as_f64() == Some(0.0) && number.is_f64() => 0.0.into(),
        value => value,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Int64Array, StringArray};
    use serde_json::json;

    use super::*;

    fn found(
        values: [Option<&str>; 2],
        exact: bool,
        nulls: Option<u64>,
        incomplete: bool,
    ) -> Vec<Option<ColumnStatistics>> {
        let array = |value: Option<&str>| Arc::new(StringArray::from(vec![value])) as ArrayRef;
        vec![Some(ColumnStatistics {
            mins: array(values[0]),
            maxes: array(values[1]),
            min_is_exact: vec![exact],
            max_is_exact: vec![exact],
            nulls,
            incomplete,
        })]
    }

    fn folded(files: Vec<Vec<Option<ColumnStatistics>>>) -> Bounds {
        let column = RelationColumn { name: "a".into(), ty: "string".into(), nullable: true, partition: false };
        let mut fold = Fold::of(&[column]);
        files.into_iter().for_each(|file| fold.add(file));
        fold.finish().next().unwrap()
    }

    #[test]
    fn bounds_of_files_are_merged_with_exactness() {
        let all = folded(vec![
            found([Some("b"), Some("x")], true, Some(1), false),
            found([None, None], true, Some(5), false),
            found([Some("c"), Some("w…")], false, Some(0), false),
        ]);
        assert_eq!((all.min, all.max, all.nulls, all.exact), (json!("b"), json!("x"), Some(6), true));
        let cut = folded(vec![
            found([Some("b"), Some("x")], true, Some(1), false),
            found([Some("a"), Some("w")], false, None, false),
        ]);
        assert_eq!((cut.min, cut.nulls, cut.exact), (json!("a"), None, false));
        let incomplete = folded(vec![
            found([Some("b"), Some("x")], true, Some(1), true),
            found([Some("c"), Some("d")], true, Some(0), false),
        ]);
        assert_eq!((incomplete.min, incomplete.max, incomplete.exact), (Value::Null, Value::Null, false));
        let missing = folded(vec![found([Some("b"), Some("x")], true, Some(1), false), vec![None]]);
        assert_eq!((missing.min, missing.nulls, missing.exact), (json!("b"), None, false));
    }

    #[test]
    fn values_of_different_types_are_not_compared() {
        let number = Arc::new(Int64Array::from(vec![1])) as ArrayRef;
        let other = vec![Some(ColumnStatistics {
            mins: ArrayRef::clone(&number),
            maxes: number,
            min_is_exact: vec![true],
            max_is_exact: vec![true],
            nulls: Some(0),
            incomplete: false,
        })];
        let text = || found([Some("b"), Some("x")], true, Some(1), false);
        let both = folded(vec![text(), other, text()]);
        assert_eq!((both.min, both.max, both.exact), (Value::Null, Value::Null, false));
    }
}

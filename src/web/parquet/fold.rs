//! The bounds of many files as those of all.

use std::cmp::Ordering;

use arrow::array::{Array, ArrayRef, make_comparator};
use arrow::compute::SortOptions;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::footer::Found;
use crate::sql::sandbox::{RelationColumn, json_value};

/// Longest text that is told, in characters.
pub(super) const TEXT_CHARS_MAX: usize = 256;

/// What is known of each column so far.
pub(in crate::web) struct Fold {
    columns: Vec<Column>,
    files: u64,
}

struct Column {
    min: Option<Bound>,
    max: Option<Bound>,
    nulls: Option<u64>,
    /// Nothing was left out.
    whole: bool,
}

/// One value of an array.
#[derive(Clone)]
struct Bound {
    array: ArrayRef,
    at: usize,
    exact: bool,
}

/// What is told of a column.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::web) struct Bounds {
    pub min: Value,
    pub max: Value,
    pub nulls: Option<u64>,
    pub exact: bool,
}

impl Fold {
    pub fn of(columns: &[RelationColumn]) -> Self {
        let column = |_: &RelationColumn| Column { min: None, max: None, nulls: Some(0), whole: true };
        Self { columns: columns.iter().map(column).collect(), files: 0 }
    }

    /// Files that were added.
    pub fn files(&self) -> u64 {
        self.files
    }

    /// Adds what one file says, column for column.
    pub(super) fn add(&mut self, found: Vec<Option<Found>>) {
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
    fn add(&mut self, found: Option<Found>) {
        let Some(found) = found else {
            (self.nulls, self.whole) = (None, false);
            return;
        };
        self.whole &= !found.untold;
        self.nulls = self.nulls.zip(found.nulls).map(|(known, more)| known + more);
        let comparable = bring(&mut self.min, &found.mins, &found.min_is_exact, Ordering::Less)
            && bring(&mut self.max, &found.maxes, &found.max_is_exact, Ordering::Greater);
        if !comparable {
            (self.min, self.max, self.whole) = (None, None, false);
        }
    }

    fn finish(self) -> Bounds {
        let exact = |bound: &Option<Bound>| bound.as_ref().is_none_or(|bound| bound.exact);
        let mut exact = self.whole && exact(&self.min) && exact(&self.max);
        let mut value = |bound: Option<Bound>| told(bound.as_ref(), &mut exact);
        let (min, max) = (value(self.min), value(self.max));
        Bounds { min, max, nulls: self.nulls, exact }
    }
}

/// Takes the least (or greatest) of an array and what was known; false if they can't be compared.
fn bring(known: &mut Option<Bound>, array: &ArrayRef, exact: &[bool], wanted: Ordering) -> bool {
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

/// The least and the greatest value of an array.
pub fn extremes(array: &ArrayRef) -> (Value, Value, bool) {
    let (mut min, mut max, mut exact) = (None, None, true);
    let all = vec![true; array.len()];
    let comparable = bring(&mut min, array, &all, Ordering::Less) && bring(&mut max, array, &all, Ordering::Greater);
    let (min, max) = (told(min.as_ref(), &mut exact), told(max.as_ref(), &mut exact));
    (min, max, exact && comparable)
}

/// A bound as rows have it. A long text is cut, and then is no exact one.
fn told(bound: Option<&Bound>, exact: &mut bool) -> Value {
    let Some(bound) = bound else { return Value::Null };
    match json_value(bound.array.as_ref(), bound.at) {
        Value::String(text) => match text.char_indices().nth(TEXT_CHARS_MAX) {
            Some((end, _)) => {
                *exact = false;
                Value::String(text[..end].to_owned())
            }
            None => Value::String(text),
        },
        // Writers of statistics make `0` of either sign.
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

    fn found(values: [Option<&str>; 2], exact: bool, nulls: Option<u64>, untold: bool) -> Vec<Option<Found>> {
        let array = |value: Option<&str>| Arc::new(StringArray::from(vec![value])) as ArrayRef;
        vec![Some(Found {
            mins: array(values[0]),
            maxes: array(values[1]),
            min_is_exact: vec![exact],
            max_is_exact: vec![exact],
            nulls,
            untold,
        })]
    }

    fn folded(files: Vec<Vec<Option<Found>>>) -> Bounds {
        let column = RelationColumn { name: "a".into(), ty: "string".into(), nullable: true, partition: false };
        let mut fold = Fold::of(&[column]);
        files.into_iter().for_each(|file| fold.add(file));
        fold.finish().next().unwrap()
    }

    #[test]
    fn the_least_and_greatest_of_all_files_are_told_with_whether_they_are_values() {
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
        let untold = folded(vec![found([Some("b"), Some("x")], true, Some(1), true)]);
        assert!(!untold.exact);
        let missing = folded(vec![found([Some("b"), Some("x")], true, Some(1), false), vec![None]]);
        assert_eq!((missing.min, missing.nulls, missing.exact), (json!("b"), None, false));
    }

    #[test]
    fn values_of_other_types_are_not_compared() {
        let number = Arc::new(Int64Array::from(vec![1])) as ArrayRef;
        let other = vec![Some(Found {
            mins: ArrayRef::clone(&number),
            maxes: number,
            min_is_exact: vec![true],
            max_is_exact: vec![true],
            nulls: Some(0),
            untold: false,
        })];
        let both = folded(vec![found([Some("b"), Some("x")], true, Some(1), false), other]);
        assert_eq!((both.min, both.max, both.exact), (Value::Null, Value::Null, false));
    }
}

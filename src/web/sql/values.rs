//! Statements with their parameters, as a child takes them.

use std::collections::BTreeMap;

use super::{Param, Statement};
use crate::sql::sandbox::{self, Params, Value};

/// Parameters that are named `1`, `2`, … without gaps go by their position.
pub fn statement(statement: &Statement) -> sandbox::Statement {
    let mut by_place: BTreeMap<usize, Value> = BTreeMap::new();
    for (name, param) in &statement.params {
        if let Some(place) = name.parse::<usize>().ok().filter(|place| place.to_string() == *name) {
            by_place.insert(place, value(param));
        }
    }
    let count = statement.params.len();
    let params = if by_place.len() == count && by_place.keys().copied().eq(1..=count) {
        Params::Positional(by_place.into_values().collect())
    } else {
        Params::Named(statement.params.iter().map(|(name, param)| (name.clone(), value(param))).collect())
    };
    sandbox::Statement { sql: statement.sql.clone(), params }
}

fn value(param: &Param) -> Value {
    match param {
        Param::Null => Value::Null,
        Param::Boolean(value) => Value::Bool(*value),
        Param::Integer(value) => Value::Int(*value),
        Param::Unsigned(value) => Value::Unsigned(*value),
        Param::Float(value) => Value::Float(*value),
        Param::Text(value) => Value::Text(value.clone()),
        Param::Date(value) => Value::Date(value.to_string()),
        Param::List(values) => Value::List(values.iter().map(self::value).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_places_and_names_are_names() {
        let params = |names: &[&str]| {
            let params = names.iter().map(|name| ((*name).to_owned(), Param::Text((*name).to_owned()))).collect();
            statement(&Statement { sql: String::new(), params }).params
        };
        let text = |text: &str| Value::Text(text.to_owned());
        assert_eq!(params(&["2", "1"]), Params::Positional(vec![text("1"), text("2")]));
        assert_eq!(params(&[]), Params::Positional(Vec::new()));
        for named in [&["1", "3"][..], &["1", "a"], &["01"]] {
            assert!(matches!(params(named), Params::Named(_)), "{named:?}");
        }
    }
}

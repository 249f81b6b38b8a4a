//! A condition on one column, `column:operator:value`.

use std::str::FromStr;

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime};

use crate::domain::pipeline::types::DataType;
use crate::http::{ApiError, ErrorCode};
use crate::sql::identifier;
use crate::sql::sandbox::RelationColumn;
use crate::web::access::clipped;
use crate::web::sql::Param;

/// Maximum number of values of `in` and `not_in`.
const VALUES_MAX: usize = 1_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Contains,
    StartsWith,
    In,
    NotIn,
    Outside,
    IsNull,
    IsNotNull,
}

const OPERATORS: &[(&str, Operator)] = &[
    ("eq", Operator::Equal),
    ("ne", Operator::NotEqual),
    ("lt", Operator::Less),
    ("le", Operator::LessOrEqual),
    ("gt", Operator::Greater),
    ("ge", Operator::GreaterOrEqual),
    ("contains", Operator::Contains),
    ("starts_with", Operator::StartsWith),
    ("in", Operator::In),
    ("not_in", Operator::NotIn),
    ("outside", Operator::Outside),
    ("is_null", Operator::IsNull),
    ("is_not_null", Operator::IsNotNull),
];

/// A parsed filter.
#[derive(Debug)]
pub struct Filter<'a> {
    column: &'a RelationColumn,
    operator: Operator,
    /// Values, with the SQL type of each.
    values: Vec<(Param, String)>,
}

impl<'a> Filter<'a> {
    /// Parses a filter. Column names may contain colons: the longest matching name is used. Several values, as those of
    /// `in`, are separated by commas, or given as a JSON array of texts.
    ///
    /// # Errors
    /// `invalid_request`.
    pub fn parse(text: &str, columns: &'a [RelationColumn]) -> Result<Self, ApiError> {
        let mut fitting: Vec<(&RelationColumn, &str)> = columns
            .iter()
            .filter_map(|column| Some((column, text.strip_prefix(&*column.name)?.strip_prefix(':')?)))
            .collect();
        fitting.sort_by_key(|(column, _)| column.name.len());
        let mut failed = None;
        while let Some((column, rest)) = fitting.pop() {
            let (name, value) = rest.split_once(':').map_or((rest, None), |(name, value)| (name, Some(value)));
            match OPERATORS.iter().find(|(known, _)| *known == name) {
                Some((_, operator)) => return Self::of(column, *operator, value),
                None => failed = failed.or(Some(name)),
            }
        }
        match failed {
            None if !text.contains(':') => {
                let message = format!("`filter` is `{}`, expected `column:operator:value`", clipped(text));
                Err(ApiError::new(ErrorCode::InvalidRequest, message))
            }
            None => Err(unknown_column("filter", text.split(':').next().unwrap_or_default(), columns)),
            Some(name) => {
                let known: Vec<&str> = OPERATORS.iter().map(|(name, _)| *name).collect();
                let message =
                    format!("`filter` has the operator `{}`, expected one of {}", clipped(name), known.join(", "));
                Err(ApiError::new(ErrorCode::InvalidRequest, message))
            }
        }
    }

    fn of(column: &'a RelationColumn, operator: Operator, value: Option<&str>) -> Result<Self, ApiError> {
        let wrong = |found: &str, expected: &str| {
            let message = format!("`filter` on `{}`: found `{}`, expected {expected}", column.name, clipped(found));
            ApiError::new(ErrorCode::InvalidRequest, message)
        };
        let text = |value: &str| (Param::Text(value.to_owned()), "VARCHAR".to_owned());
        let ty = DataType::parse(&column.ty).unwrap_or(DataType::String);
        let one = |value: &str| typed(value, ty).ok_or_else(|| wrong(value, &expected(ty)));
        let values = match (operator, value) {
            (Operator::IsNull | Operator::IsNotNull, None | Some("")) => Vec::new(),
            (Operator::IsNull | Operator::IsNotNull, Some(found)) => return Err(wrong(found, "no value")),
            (_, None) => return Err(wrong("", "a value")),
            (Operator::Contains | Operator::StartsWith, Some(value)) => vec![text(value)],
            (Operator::In | Operator::NotIn | Operator::Outside, Some(list)) => {
                let values = listed(list).ok_or_else(|| wrong(list, "a JSON array of texts"))?;
                if operator == Operator::Outside && values.len() != 2 {
                    return Err(wrong(list, "two values: the first and the last of the range"));
                }
                if values.len() > VALUES_MAX {
                    return Err(wrong(&format!("{} values", values.len()), &format!("at most {VALUES_MAX}")));
                }
                values.iter().map(|value| one(value)).collect::<Result<_, _>>()?
            }
            (
                Operator::Equal
                | Operator::NotEqual
                | Operator::Less
                | Operator::LessOrEqual
                | Operator::Greater
                | Operator::GreaterOrEqual,
                Some(value),
            ) => vec![one(value)?],
        };
        Ok(Self { column, operator, values })
    }

    /// The filter as a SQL condition, with its values added to `params`.
    pub fn condition(&self, params: &mut Vec<(String, Param)>) -> String {
        let name = identifier(&self.column.name);
        let as_text = format!("CAST({name} AS VARCHAR)");
        // JSON compares as text.
        let name = if self.column.ty == "json" { as_text.clone() } else { name };
        let mut placeholders: Vec<String> = Vec::new();
        for (value, ty) in &self.values {
            let placeholder = bind(params, value.clone());
            placeholders.push(format!("CAST({placeholder} AS {ty})"));
        }
        let first = placeholders.first().cloned().unwrap_or_default();
        let last = placeholders.last().cloned().unwrap_or_default();
        let all = placeholders.join(", ");
        match self.operator {
            Operator::Equal => format!("{name} = {first}"),
            // Null differs from any value.
            Operator::NotEqual => format!("{name} IS DISTINCT FROM {first}"),
            Operator::Less => format!("{name} < {first}"),
            Operator::LessOrEqual => format!("{name} <= {first}"),
            Operator::Greater => format!("{name} > {first}"),
            Operator::GreaterOrEqual => format!("{name} >= {first}"),
            Operator::Contains => format!("contains({as_text}, {first})"),
            Operator::StartsWith => format!("starts_with({as_text}, {first})"),
            Operator::In if placeholders.is_empty() => "false".to_owned(),
            Operator::NotIn if placeholders.is_empty() => "true".to_owned(),
            Operator::In => format!("{name} IN ({all})"),
            Operator::NotIn => format!("({name} IS NULL OR {name} NOT IN ({all}))"),
            Operator::Outside => format!("({name} < {first} OR {name} > {last})"),
            Operator::IsNull => format!("{name} IS NULL"),
            Operator::IsNotNull => format!("{name} IS NOT NULL"),
        }
    }
}

fn listed(list: &str) -> Option<Vec<String>> {
    if list.is_empty() {
        return Some(Vec::new());
    }
    if list.starts_with('[') {
        return serde_json::from_str(list).ok();
    }
    Some(list.split(',').map(str::to_owned).collect())
}

/// Parses a value of the column's type without rounding; returns it with the SQL type to bind it as.
fn typed(value: &str, ty: DataType) -> Option<(Param, String)> {
    fn whole<T: FromStr>(value: &str) -> Option<()> {
        let plain = value.strip_prefix('-').unwrap_or(value);
        (plain.bytes().all(|b| b.is_ascii_digit()) && value.parse::<T>().is_ok()).then_some(())
    }
    let text = || Param::Text(value.to_owned());
    let sql = crate::sql::sql_type(ty);
    let as_text = |ok: Option<()>| ok.map(|()| (text(), sql.clone()));
    match ty {
        DataType::Boolean => Some((Param::Boolean(value.parse().ok()?), sql)),
        DataType::Int8 => as_text(whole::<i8>(value)),
        DataType::Int16 => as_text(whole::<i16>(value)),
        DataType::Int32 => as_text(whole::<i32>(value)),
        DataType::Int64 => as_text(whole::<i64>(value)),
        DataType::UInt8 => as_text(whole::<u8>(value)),
        DataType::UInt16 => as_text(whole::<u16>(value)),
        DataType::UInt32 => as_text(whole::<u32>(value)),
        DataType::UInt64 => as_text(whole::<u64>(value)),
        // Rounded like the column's values.
        DataType::Float32 => Some((Param::Float(f64::from(value.parse::<f32>().ok()?)), sql)),
        DataType::Float64 => Some((Param::Float(value.parse().ok()?), sql)),
        DataType::Decimal { precision, scale } => as_text(decimal(value, precision, scale)),
        DataType::String | DataType::Json => Some((text(), "VARCHAR".to_owned())),
        DataType::Date => Some((Param::Date(NaiveDate::parse_from_str(value, "%Y-%m-%d").ok()?.to_string()), sql)),
        DataType::Time => as_text(NaiveTime::parse_from_str(value, "%H:%M:%S%.f").ok().map(drop)),
        DataType::Timestamp => as_text(is_timestamp(value).then_some(())),
        DataType::TimestampTz => {
            let zoned = DateTime::parse_from_rfc3339(value).is_ok();
            // Without a zone: UTC, the child's time zone.
            as_text((zoned || is_timestamp(value)).then_some(()))
        }
        DataType::Uuid => as_text(uuid::Uuid::try_parse(value).ok().map(drop)),
    }
}

fn is_timestamp(value: &str) -> bool {
    let patterns = ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f"];
    NaiveDate::parse_from_str(value, "%Y-%m-%d").is_ok()
        || patterns.iter().any(|pattern| NaiveDateTime::parse_from_str(value, pattern).is_ok())
}

/// Checks that a decimal fits precision and scale.
fn decimal(value: &str, precision: u8, scale: u8) -> Option<()> {
    let plain = value.strip_prefix('-').unwrap_or(value);
    let (whole, fraction) = plain.split_once('.').unwrap_or((plain, ""));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let fits = whole.trim_start_matches('0').len() <= usize::from(precision - scale)
        && fraction.trim_end_matches('0').len() <= usize::from(scale);
    (!whole.is_empty() && digits(whole) && digits(fraction) && value.len() <= 100 && fits).then_some(())
}

fn expected(ty: DataType) -> String {
    match ty {
        DataType::Boolean => "`true` or `false`".to_owned(),
        DataType::Date => "a date such as `2013-01-31`".to_owned(),
        DataType::Time => "a time such as `05:00:00`".to_owned(),
        DataType::Timestamp => "a timestamp such as `2013-01-31T05:00:00`".to_owned(),
        DataType::TimestampTz => "a timestamp such as `2013-01-31T05:00:00Z`".to_owned(),
        DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::UInt8
        | DataType::UInt16
        | DataType::UInt32
        | DataType::UInt64
        | DataType::Float32
        | DataType::Float64
        | DataType::Decimal { .. }
        | DataType::String
        | DataType::Uuid
        | DataType::Json => format!("a value of type {ty}"),
    }
}

pub fn unknown_column(parameter: &str, found: &str, columns: &[RelationColumn]) -> ApiError {
    let near = crate::sql::nearest(found, columns.iter().map(|column| column.name.as_str()));
    let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    let message = format!("`{parameter}`: the table has no column `{}`{near}", clipped(found));
    ApiError::new(ErrorCode::InvalidRequest, message)
}

/// Adds a parameter; returns its placeholder.
fn bind(params: &mut Vec<(String, Param)>, value: Param) -> String {
    let number = params.len() + 1;
    params.push((number.to_string(), value));
    format!("${number}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, ty: &str) -> RelationColumn {
        RelationColumn { name: name.to_owned(), ty: ty.to_owned(), nullable: true, partition: false }
    }

    fn sql(filter: &str, columns: &[RelationColumn]) -> Result<String, String> {
        let mut params = Vec::new();
        let filter = Filter::parse(filter, columns).map_err(|error| error.message().to_owned())?;
        Ok(format!("{} {:?}", filter.condition(&mut params), params.iter().map(|(_, p)| p).collect::<Vec<_>>()))
    }

    #[test]
    fn values_are_bound_and_names_quoted() {
        let columns = [column("a", "int64"), column("a:eq", "string"), column("x\"y", "decimal(5,2)")];
        for (filter, expected) in [
            ("a:eq:5", r#""a" = CAST($1 AS BIGINT) [Text("5")]"#),
            ("a:eq:eq:5", r#""a:eq" = CAST($1 AS VARCHAR) [Text("5")]"#),
            ("x\"y:lt:1.50", r#""x""y" < CAST($1 AS DECIMAL(5,2)) [Text("1.50")]"#),
            ("a:is_null", r#""a" IS NULL []"#),
            ("a:in:1,2", r#""a" IN (CAST($1 AS BIGINT), CAST($2 AS BIGINT)) [Text("1"), Text("2")]"#),
            (r#"a:in:["1"]"#, r#""a" IN (CAST($1 AS BIGINT)) [Text("1")]"#),
            ("a:in:", "false []"),
            ("a:outside:1,9", r#"("a" < CAST($1 AS BIGINT) OR "a" > CAST($2 AS BIGINT)) [Text("1"), Text("9")]"#),
            ("a:ne:1", r#""a" IS DISTINCT FROM CAST($1 AS BIGINT) [Text("1")]"#),
            ("a:contains:';--", r#"contains(CAST("a" AS VARCHAR), CAST($1 AS VARCHAR)) [Text("';--")]"#),
        ] {
            assert_eq!(sql(filter, &columns).as_deref(), Ok(expected), "{filter}");
        }
    }

    #[test]
    fn filter_values_of_the_wrong_type_are_rejected() {
        for (ty, good, bad) in [
            ("int8", &["-128", "0", "127"][..], &["128", "1.5", "", "x", "+1", "1e2", "-"][..]),
            ("uint64", &["18446744073709551615"], &["-1", "18446744073709551616"]),
            ("boolean", &["true", "false"], &["1", "TRUE", ""]),
            ("float64", &["1", "-1.5e300", "nan"], &["", "x"]),
            ("decimal(4,2)", &["12.34", "-0.10", "1", "99.990"], &["123", "1.234", "", ".5", "1e1", "--1"]),
            ("date", &["2013-01-31"], &["2013-02-30", "31.01.2013", "2013-01-31T00:00:00"]),
            ("time", &["05:00:00", "05:00:00.5"], &["25:00:00", "5"]),
            ("timestamp", &["2013-01-31", "2013-01-31T05:00:00", "2013-01-31 05:00:00.123456"], &["2013", "now"]),
            ("timestamptz", &["2013-01-31T05:00:00+02:00", "2013-01-31T05:00:00"], &["yesterday"]),
            ("uuid", &["6fa459ea-ee8a-3ca4-894e-db77e160355e"], &["6fa459ea"]),
            ("string", &["", "anything: at all"], &[]),
        ] {
            let columns = [column("c", ty)];
            for value in good {
                assert!(sql(&format!("c:eq:{value}"), &columns).is_ok(), "{ty} {value}");
            }
            for value in bad {
                assert!(sql(&format!("c:eq:{value}"), &columns).is_err(), "{ty} {value}");
            }
        }
    }

    #[test]
    fn malformed_filters_are_rejected() {
        let columns = [column("fare", "int64")];
        for (filter, part) in [
            ("fares:eq:1", "did you mean `fare`?"),
            ("", "expected `column:operator:value`"),
            ("fare", "`filter` is `fare`, expected `column:operator:value`"),
            (":eq:1", "no column"),
            ("fare:like:1", "operator `like`"),
            ("fare:outside:1", "found `1`, expected two values"),
            ("fare:outside:1,2,3", "found `1,2,3`, expected two values"),
            ("fare:outside:[1,2]", "expected a JSON array of texts"),
            ("fare:eq", "expected a value"),
            ("fare:is_null:1", "expected no value"),
            ("fare:in:[1", "expected a JSON array"),
            ("fare:eq:1 OR 1=1", "expected a value of type int64"),
        ] {
            let message = sql(filter, &columns).unwrap_err();
            assert!(message.contains(part), "{filter}: {message}");
        }
    }
}

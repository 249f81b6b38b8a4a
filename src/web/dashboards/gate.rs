//! The gate: YAML, schema, references, and what the queries return of the pipeline's tables.

use chrono::NaiveDate;

use super::Verdict;
use crate::domain::dashboard::{
    BoundValue, ExaminedDashboard, NamedQuery, QueryColumns, QueryError, Settings, examine,
};
use crate::domain::name::Slug;
use crate::http::{ApiError, ErrorCode};
use crate::web::Web;
use crate::web::sql::{Param, Statement};

/// Looks at a text as far as the pipeline's tables allow. Nothing is run.
///
/// # Errors
/// What the store or the children that bind statements fail with.
pub(super) fn judge(web: &Web, pipeline: &Slug, bytes: &[u8]) -> Result<ExaminedDashboard, ApiError> {
    let mut examined = examine(bytes);
    let queries = examined.bindable_queries();
    if queries.is_empty() {
        return Ok(examined);
    }
    let sample = Settings::sample(examined.dashboard.params(), today(web));
    let statements: Vec<Statement> =
        queries.iter().map(|query| statement(query, query.sql().to_owned(), &sample)).collect();
    let described = web.describe(&web.shapes(pipeline)?, &statements)?;
    let results = queries.into_iter().zip(described).map(|(query, result)| {
        let result: QueryColumns = match result {
            Ok(columns) => Ok(columns.into_iter().map(|column| (column.name, column.ty)).collect()),
            Err(problem) => Err(QueryError { message: problem.message, position: problem.position }),
        };
        (query.name, result)
    });
    examined.bind(results.collect());
    Ok(examined)
}

/// The verdict, if it is good.
///
/// # Errors
/// `invalid_dashboard` with the problems.
pub(super) fn refused(examined: ExaminedDashboard) -> Result<Verdict, ApiError> {
    if examined.problems.is_empty() {
        return Ok(verdict(examined));
    }
    let count = examined.problems.len();
    let message = format!("the dashboard has {count} problem{}", if count == 1 { "" } else { "s" });
    Err(ApiError::new(ErrorCode::InvalidDashboard, message).with_problems(examined.problems))
}

pub(super) fn verdict(examined: ExaminedDashboard) -> Verdict {
    Verdict { ok: examined.problems.is_empty(), errors: examined.problems, warnings: examined.warnings }
}

/// The day it is, in UTC.
pub(super) fn today(web: &Web) -> NaiveDate {
    web.clock.now().date_naive()
}

/// SQL made of a query, with what it takes of the settings.
pub(super) fn statement(query: &NamedQuery, sql: String, settings: &Settings) -> Statement {
    let params = query.bound(settings).into_iter().map(|(name, value)| (name, param(value))).collect();
    Statement { sql, params }
}

fn param(value: BoundValue) -> Param {
    match value {
        BoundValue::Null => Param::Null,
        BoundValue::Boolean(value) => Param::Boolean(value),
        BoundValue::Integer(value) => Param::Integer(value),
        BoundValue::Float(value) => Param::Float(value),
        BoundValue::Text(value) => Param::Text(value),
        BoundValue::Date(value) => Param::Date(value),
        BoundValue::List(values) => Param::List(values.into_iter().map(param).collect()),
    }
}

//! Validates dashboards: YAML, schema, references, and the columns that their queries return.

use std::collections::BTreeMap;

use chrono::NaiveDate;

use super::service::{Dashboards, Verdict, entries, load};
use crate::domain::dashboard::{
    BoundValue, DashboardProblem, ExaminedDashboard, NamedQuery, ParamSettings, QueryColumns, QueryError, examine,
};
use crate::domain::layout::{dashboard_draft_key, dashboard_key};
use crate::domain::name::Slug;
use crate::http::{ApiError, ErrorCode};
use crate::web::sql::{Param, Statement};

/// Maximum number of dashboards of a pipeline that are checked when its tables change.
const DASHBOARDS_MAX: usize = 1_000;

/// Validates a dashboard against the pipeline's tables. No query is run.
///
/// # Errors
/// Errors of the store and of binding statements.
pub(super) fn validate(dashboards: &Dashboards, pipeline: &Slug, bytes: &[u8]) -> Result<ExaminedDashboard, ApiError> {
    let mut examined = [examine(bytes)];
    bind(dashboards, pipeline, &mut examined)?;
    let [examined] = examined;
    Ok(examined)
}

/// Binds the queries of all the dashboards to the pipeline's tables, together.
///
/// # Errors
/// Errors of the store and of binding statements.
fn bind(dashboards: &Dashboards, pipeline: &Slug, all: &mut [ExaminedDashboard]) -> Result<(), ApiError> {
    let mut queries: Vec<Vec<NamedQuery>> = Vec::with_capacity(all.len());
    let mut statements = Vec::new();
    for examined in &*all {
        let sample = ParamSettings::sample(examined.dashboard.params(), today(dashboards));
        let own = examined.bindable_queries();
        statements.extend(own.iter().map(|query| statement(query, query.sql().to_owned(), &sample)));
        queries.push(own);
    }
    if statements.is_empty() {
        return Ok(());
    }
    let mut described = dashboards.sql.describe(&dashboards.sql.shapes(pipeline)?, &statements)?.into_iter();
    for (examined, queries) in all.iter_mut().zip(queries) {
        if queries.is_empty() {
            continue;
        }
        let results = queries.into_iter().zip(described.by_ref()).map(|(query, result)| {
            let result: QueryColumns = match result {
                Ok(columns) => Ok(columns.into_iter().map(|column| (column.name, column.ty)).collect()),
                Err(problem) => Err(QueryError { message: problem.message, position: problem.position }),
            };
            (query.name, result)
        });
        examined.bind(results.collect());
    }
    Ok(())
}

/// The problems of each dashboard that has any, by name: of the published version, or else of the draft.
///
/// # Errors
/// Errors of the store and of binding statements.
pub(super) fn broken(
    dashboards: &Dashboards,
    pipeline: &Slug,
) -> Result<BTreeMap<String, Vec<DashboardProblem>>, ApiError> {
    let (mut names, mut all) = (Vec::new(), Vec::new());
    for (name, entry) in entries(dashboards, pipeline)?.into_iter().take(DASHBOARDS_MAX) {
        // Listed names are valid.
        let Ok(slug) = Slug::parse(&name) else { continue };
        let key = if entry.published { dashboard_key(pipeline, &slug) } else { dashboard_draft_key(pipeline, &slug) };
        let Some((_, bytes)) = load(dashboards, &key)? else { continue };
        all.push(examine(&bytes));
        names.push(name);
    }
    bind(dashboards, pipeline, &mut all)?;
    let problems = names.into_iter().zip(all.into_iter().map(|examined| examined.problems));
    Ok(problems.filter(|(_, problems)| !problems.is_empty()).collect())
}

/// The verdict, if there are no problems.
///
/// # Errors
/// `invalid_dashboard` with the problems.
pub(super) fn require_valid(examined: ExaminedDashboard) -> Result<Verdict, ApiError> {
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

/// The current date, in UTC.
pub(super) fn today(dashboards: &Dashboards) -> NaiveDate {
    dashboards.clock.now().date_naive()
}

/// A statement derived from a query, with its parameters from the settings.
pub(super) fn statement(query: &NamedQuery, sql: String, settings: &ParamSettings) -> Statement {
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
        BoundValue::Date(value) => Param::Date(value.to_string()),
        BoundValue::List(values) => Param::List(values.into_iter().map(param).collect()),
    }
}

/// A query of a dashboard that can be bound to tables.
#[derive(Debug, Clone, PartialEq)]
pub struct UsedStatement {
    pub dashboard: String,
    /// Whether it is from the draft rather than the published dashboard.
    pub draft: bool,
    pub query: String,
    pub statement: Statement,
    /// The result columns that panels and options use.
    pub columns: Vec<String>,
}

/// The queries of all dashboards of a pipeline, drafts included, with sample values for their parameters. Invalid
/// dashboards and queries are skipped.
///
/// # Errors
/// `s3_error`, `bucket_not_found`.
pub fn statements(dashboards: &Dashboards, pipeline: &Slug) -> Result<Vec<UsedStatement>, ApiError> {
    let mut used = Vec::new();
    for (name, entry) in entries(dashboards, pipeline)?.into_iter().take(DASHBOARDS_MAX) {
        // Listed names are valid.
        let Ok(slug) = Slug::parse(&name) else { continue };
        let objects = [
            (entry.published, false, dashboard_key(pipeline, &slug)),
            (entry.draft, true, dashboard_draft_key(pipeline, &slug)),
        ];
        for (_, draft, key) in objects.into_iter().filter(|(exists, ..)| *exists) {
            let Some((_, bytes)) = load(dashboards, &key)? else { continue };
            let examined = examine(&bytes);
            let sample = ParamSettings::sample(examined.dashboard.params(), today(dashboards));
            used.extend(examined.bindable_queries().into_iter().map(|query| UsedStatement {
                dashboard: name.clone(),
                draft,
                statement: statement(&query, query.sql().to_owned(), &sample),
                columns: examined.dashboard.columns_needed(&query.name),
                query: query.name,
            }));
        }
    }
    Ok(used)
}

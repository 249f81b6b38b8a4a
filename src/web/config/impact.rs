//! The impact of a config: statements of dashboards and saved queries that bind to the current tables, but not to those of
//! the config; and panels whose columns would be missing.

use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Serialize;

use super::service::Configs;
use crate::domain::name::Slug;
use crate::domain::pipeline::Pipeline;
use crate::http::{ApiError, ErrorCode};
use crate::web::dashboards::{self, UsedStatement};
use crate::web::saved_queries::{self, SavedQuery};
use crate::web::sql::{ResultColumn, SqlProblem, Statement};
use crate::web::tables::catalog::shapes_of;

/// Maximum number of statements checked.
const STATEMENTS_MAX: usize = 2_000;
/// Timeout for binding all of them to both versions of the tables.
const TIME_MAX: Duration = Duration::from_secs(60);

/// What would break.
#[derive(Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct Impact {
    dashboards: Vec<BrokenDashboard>,
    queries: Vec<BrokenQuery>,
}

/// A query of a dashboard that would break, or whose result a panel could no longer show.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
struct BrokenDashboard {
    name: String,
    draft: bool,
    query: String,
    message: String,
}

/// A saved query that would break.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
struct BrokenQuery {
    id: String,
    name: String,
    message: String,
}

/// A statement and the dashboard or saved query that uses it.
struct StatementUse {
    user: User,
    statement: Statement,
}

enum User {
    Dashboard {
        name: String,
        draft: bool,
        query: String,
        /// The result columns that panels and options use.
        columns: Vec<String>,
    },
    Query {
        id: String,
        name: String,
    },
}

type Bound = Result<Vec<ResultColumn>, SqlProblem>;

/// The impact of a config; `None` if the config has problems.
///
/// # Errors
/// Why it is unknown, as a message for users. Internal failures are logged.
pub(super) fn of(configs: &Configs, slug: &Slug, pipeline: Option<&Pipeline>) -> Result<Impact, String> {
    let Some(pipeline) = pipeline else { return Err("the config has problems".to_owned()) };
    let log = |error: ApiError| {
        tracing::warn!(%error, pipeline = %slug, "impact of a config unknown");
        error.message().to_owned()
    };
    let uses = uses(configs, slug).map_err(log)?;
    if uses.len() > STATEMENTS_MAX {
        return Err(format!("there are {} queries; at most {STATEMENTS_MAX} are checked", uses.len()));
    }
    let count = uses.len();
    let found = check(configs, slug, pipeline, uses).map_err(log)?;
    found.ok_or_else(|| format!("{count} queries could not be checked within {} s", TIME_MAX.as_secs()))
}

/// `None` if it timed out.
fn check(
    configs: &Configs,
    slug: &Slug,
    pipeline: &Pipeline,
    uses: Vec<StatementUse>,
) -> Result<Option<Impact>, ApiError> {
    if uses.is_empty() {
        return Ok(Some(Impact::default()));
    }
    let until = Instant::now() + TIME_MAX;
    let before = match configs.sql.shapes(slug) {
        Ok(shapes) => shapes,
        // A new pipeline has nothing to break.
        Err(error) if error.code() == ErrorCode::PipelineNotFound => return Ok(Some(Impact::default())),
        Err(error) => return Err(error),
    };
    let after = shapes_of(pipeline);
    if before == after {
        return Ok(Some(Impact::default()));
    }
    let statements: Vec<Statement> = uses.iter().map(|one| one.statement.clone()).collect();
    let Some(before) = all(configs.sql.describe_until(&before, &statements, until)?) else { return Ok(None) };
    let after = all(configs.sql.describe_until(&after, &statements, until)?);
    Ok(after.map(|after| compare(uses, before, after)))
}

fn all(bound: Vec<Option<Bound>>) -> Option<Vec<Bound>> {
    bound.into_iter().collect()
}

fn uses(configs: &Configs, slug: &Slug) -> Result<Vec<StatementUse>, ApiError> {
    let of_dashboard = |used: UsedStatement| StatementUse {
        user: User::Dashboard { name: used.dashboard, draft: used.draft, query: used.query, columns: used.columns },
        statement: used.statement,
    };
    let of_query = |SavedQuery { id, name, sql, .. }| StatementUse {
        user: User::Query { id, name },
        statement: Statement { sql, params: Vec::new() },
    };
    let dashboards = dashboards::statements(&configs.dashboards, slug)?.into_iter().map(of_dashboard);
    let queries = saved_queries::all(&configs.saved_queries, slug)?.into_iter().map(of_query);
    Ok(dashboards.chain(queries).collect())
}

fn compare(uses: Vec<StatementUse>, before: Vec<Bound>, after: Vec<Bound>) -> Impact {
    let mut impact = Impact::default();
    for ((one, before), after) in uses.into_iter().zip(before).zip(after) {
        let Ok(before) = before else { continue };
        match one.user {
            User::Query { id, name } => {
                if let Err(problem) = after {
                    impact.queries.push(BrokenQuery { id, name, message: problem.message });
                }
            }
            User::Dashboard { name, draft, query, columns } => {
                let messages = match after {
                    Err(problem) => vec![problem.message],
                    Ok(after) => missing_columns(&columns, &before, &after),
                };
                let broken = |message| {
                    let (name, query) = (name.clone(), query.clone());
                    BrokenDashboard { name, draft, query, message }
                };
                impact.dashboards.extend(messages.into_iter().map(broken));
            }
        }
    }
    impact
}

/// A message for each column that would no longer be returned.
fn missing_columns(named: &[String], before: &[ResultColumn], after: &[ResultColumn]) -> Vec<String> {
    let has = |columns: &[ResultColumn], name: &str| columns.iter().any(|column| column.name == name);
    let missing = named.iter().filter(|name| has(before, name) && !has(after, name));
    missing.map(|name| format!("panels or options use `{name}`, which the query would no longer return")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dashboard(query: &str, columns: &[&str]) -> StatementUse {
        let columns = columns.iter().map(|name| (*name).to_owned()).collect();
        let user = User::Dashboard { name: "d".into(), draft: true, query: query.into(), columns };
        StatementUse { user, statement: Statement::default() }
    }

    fn saved(id: &str) -> StatementUse {
        StatementUse { user: User::Query { id: id.into(), name: format!("{id}!") }, statement: Statement::default() }
    }

    fn returns(names: &[&str]) -> Bound {
        Ok(names.iter().map(|name| ResultColumn { name: (*name).to_owned(), ty: "int64".into() }).collect())
    }

    fn fails(message: &str) -> Bound {
        Err(SqlProblem { message: message.into(), position: None })
    }

    #[test]
    fn statement_that_no_longer_binds_is_broken() {
        let uses = vec![saved("a"), saved("b"), saved("c"), saved("d"), dashboard("q", &[])];
        let before = vec![returns(&["x"]), returns(&["x"]), fails("old"), fails("old"), returns(&["x"])];
        let after = vec![returns(&["x"]), fails("gone"), fails("new"), returns(&["x"]), fails("gone too")];
        let impact = compare(uses, before, after);
        let query = BrokenQuery { id: "b".into(), name: "b!".into(), message: "gone".into() };
        assert_eq!(impact.queries, [query]);
        let message = "gone too".into();
        assert_eq!(impact.dashboards, [BrokenDashboard { name: "d".into(), draft: true, query: "q".into(), message }]);
    }

    #[test]
    fn only_missing_columns_in_use_break_a_dashboard() {
        let uses = vec![dashboard("q", &["x", "y", "z"])];
        let impact = compare(uses, vec![returns(&["x", "y", "w"])], vec![returns(&["x", "v"])]);
        let messages: Vec<&str> = impact.dashboards.iter().map(|one| one.message.as_str()).collect();
        assert_eq!(messages, ["panels or options use `y`, which the query would no longer return"]);
        assert_eq!(compare(vec![saved("a")], vec![returns(&["x"])], vec![returns(&["y"])]), Impact::default());
    }
}

//! What a config would break: statements of dashboards and saved queries that can be bound to the tables as they are, and
//! not to those that the config makes; and panels whose fields vanish.

use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Serialize;

use crate::domain::name::Slug;
use crate::domain::pipeline::Pipeline;
use crate::http::{ApiError, ErrorCode};
use crate::web::Web;
use crate::web::dashboards::{self, UsedStatement};
use crate::web::saved_queries::{self, SavedQuery};
use crate::web::sql::{ResultColumn, SqlProblem, Statement};
use crate::web::tables::catalog::shapes_of;

/// Statements that are looked at.
const STATEMENTS_MAX: usize = 2_000;
/// Longest time in which all of them are bound, to the tables as they are and to those that the config makes.
const LOOK_MAX: Duration = Duration::from_secs(60);

/// What would break.
#[derive(Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct Impact {
    dashboards: Vec<BrokenDashboard>,
    queries: Vec<BrokenQuery>,
}

/// A query of a dashboard that breaks, or that a panel can no longer show.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
struct BrokenDashboard {
    name: String,
    draft: bool,
    query: String,
    message: String,
}

/// A saved query that breaks.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
struct BrokenQuery {
    id: String,
    name: String,
    message: String,
}

/// A statement and whose it is.
struct Use {
    user: User,
    statement: Statement,
}

enum User {
    Dashboard {
        name: String,
        draft: bool,
        query: String,
        /// Of the result, those that panels and options name.
        columns: Vec<String>,
    },
    Query {
        id: String,
        name: String,
    },
}

type Bound = Result<Vec<ResultColumn>, SqlProblem>;

/// What the pipeline would break; `None`: the config has problems.
///
/// # Errors
/// Why that can't be told, for people. What failed inside is logged.
pub(super) fn of(web: &Web, slug: &Slug, pipeline: Option<&Pipeline>) -> Result<Impact, String> {
    let Some(pipeline) = pipeline else { return Err("the config has problems".to_owned()) };
    let told = |error: ApiError| {
        tracing::warn!(%error, pipeline = %slug, "the impact of a config can't be told");
        error.message().to_owned()
    };
    let uses = uses(web, slug).map_err(told)?;
    if uses.len() > STATEMENTS_MAX {
        return Err(format!("there are {} queries; at most {STATEMENTS_MAX} are looked at", uses.len()));
    }
    let count = uses.len();
    let found = look(web, slug, pipeline, uses).map_err(told)?;
    found.ok_or_else(|| format!("{count} queries could not be looked at within {} s", LOOK_MAX.as_secs()))
}

/// `None`: the time was over before every statement was looked at.
fn look(web: &Web, slug: &Slug, pipeline: &Pipeline, uses: Vec<Use>) -> Result<Option<Impact>, ApiError> {
    if uses.is_empty() {
        return Ok(Some(Impact::default()));
    }
    let until = Instant::now() + LOOK_MAX;
    let before = match web.shapes(slug) {
        Ok(shapes) => shapes,
        // There is nothing yet that could break.
        Err(error) if error.code() == ErrorCode::PipelineNotFound => return Ok(Some(Impact::default())),
        Err(error) => return Err(error),
    };
    let after = shapes_of(pipeline);
    if before == after {
        return Ok(Some(Impact::default()));
    }
    let statements: Vec<Statement> = uses.iter().map(|one| one.statement.clone()).collect();
    let Some(before) = all(web.describe_until(&before, &statements, until)?) else { return Ok(None) };
    let after = all(web.describe_until(&after, &statements, until)?);
    Ok(after.map(|after| compare(uses, before, after)))
}

fn all(bound: Vec<Option<Bound>>) -> Option<Vec<Bound>> {
    bound.into_iter().collect()
}

fn uses(web: &Web, slug: &Slug) -> Result<Vec<Use>, ApiError> {
    let of_dashboard = |used: UsedStatement| Use {
        user: User::Dashboard { name: used.dashboard, draft: used.draft, query: used.query, columns: used.columns },
        statement: used.statement,
    };
    let of_query = |SavedQuery { id, name, sql, .. }| Use {
        user: User::Query { id, name },
        statement: Statement { sql, params: Vec::new() },
    };
    let dashboards = dashboards::statements(web, slug)?.into_iter().map(of_dashboard);
    let queries = saved_queries::all(web, slug)?.into_iter().map(of_query);
    Ok(dashboards.chain(queries).collect())
}

fn compare(uses: Vec<Use>, before: Vec<Bound>, after: Vec<Bound>) -> Impact {
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
                    Ok(after) => vanished(&columns, &before, &after),
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

/// A message for each column that was returned and no longer is.
fn vanished(named: &[String], before: &[ResultColumn], after: &[ResultColumn]) -> Vec<String> {
    let has = |columns: &[ResultColumn], name: &str| columns.iter().any(|column| column.name == name);
    let gone = named.iter().filter(|name| has(before, name) && !has(after, name));
    gone.map(|name| format!("panels or options show `{name}`, which the query would no longer return")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dashboard(query: &str, columns: &[&str]) -> Use {
        let columns = columns.iter().map(|name| (*name).to_owned()).collect();
        let user = User::Dashboard { name: "d".into(), draft: true, query: query.into(), columns };
        Use { user, statement: Statement::default() }
    }

    fn saved(id: &str) -> Use {
        Use { user: User::Query { id: id.into(), name: format!("{id}!") }, statement: Statement::default() }
    }

    fn returns(names: &[&str]) -> Bound {
        Ok(names.iter().map(|name| ResultColumn { name: (*name).to_owned(), ty: "int64".into() }).collect())
    }

    fn fails(message: &str) -> Bound {
        Err(SqlProblem { message: message.into(), position: None })
    }

    #[test]
    fn what_was_bound_and_is_no_longer_is_broken() {
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
    fn a_dashboard_breaks_when_a_column_that_it_shows_vanishes_and_not_for_others() {
        let uses = vec![dashboard("q", &["x", "y", "z"])];
        let impact = compare(uses, vec![returns(&["x", "y", "w"])], vec![returns(&["x", "v"])]);
        let messages: Vec<&str> = impact.dashboards.iter().map(|one| one.message.as_str()).collect();
        assert_eq!(messages, ["panels or options show `y`, which the query would no longer return"]);
        assert_eq!(compare(vec![saved("a")], vec![returns(&["x"])], vec![returns(&["y"])]), Impact::default());
    }
}

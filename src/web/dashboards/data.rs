//! The data of a dashboard's panels: each distinct statement runs once.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::service::{Dashboards, NamedDashboard, load};
use super::validate::{require_valid, statement, today};
use crate::domain::dashboard::{ExaminedDashboard, NamedQuery, Panel, ParamSettings, examine, options_sql, panel_sql};
use crate::http::{ApiError, ErrorCode, Request, Response, json_object};
use crate::web::sql::{LimitReason, ResultColumn, RowLimits, Rows, Statement, push_rows};
use crate::web::tables::catalog::{ConfigStatus, insert_config};

/// Maximum number of rows of a result.
const ROWS_MAX: u64 = 10_000;
/// Total bytes of all results' rows as JSON, divided among the results; and the largest and smallest share.
const BYTES_MAX: u64 = 32 << 20;
const RESULT_BYTES_MAX: u64 = 4 << 20;
const RESULT_BYTES_MIN: u64 = 128 << 10;

#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DataRequest {
    /// Chosen values by parameter name; other parameters have their defaults.
    #[serde(default)]
    params: Map<String, Value>,
    /// Use the draft instead of the published dashboard.
    #[serde(default)]
    draft: bool,
}

/// The results of a dashboard's panels.
#[derive(Serialize, JsonSchema)]
pub(super) struct DataAnswer {
    /// By panel id; text panels have none.
    panels: BTreeMap<String, PanelResult>,
    /// By the names of parameters with options from a query: columns `value` and `label`.
    options: BTreeMap<String, PanelResult>,
    /// The values of all parameters.
    params: Map<String, Value>,
    /// Present unless the tables were written under the current config.
    #[serde(skip_serializing_if = "Option::is_none")]
    config: Option<ConfigStatus>,
}

#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "describes the response; rows are written as text")]
enum PanelResult {
    Rows(PanelRows),
    Failed(PanelError),
}

#[derive(Serialize, JsonSchema)]
struct PanelRows {
    columns: Vec<ResultColumn>,
    rows: Vec<Vec<Value>>,
    row_count: u64,
    truncated: bool,
    limit_reason: Option<LimitReason>,
    /// For a panel with `compare`: the result for the compared days; null if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    previous: Option<Box<PanelResult>>,
}

#[derive(Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PanelError {
    /// A code of the error table.
    error: String,
    message: String,
}

pub(super) fn data(dashboards: &Dashboards, request: &mut Request) -> Result<Response, ApiError> {
    let body = request.body_bytes()?;
    let wanted: DataRequest = if body.is_empty() { DataRequest::default() } else { json_object(&body)? };
    let named = NamedDashboard::of(dashboards, request)?;
    let key = named.key(wanted.draft);
    let what = if wanted.draft { "draft" } else { "published dashboard" };
    let (_, bytes) = load(dashboards, &key)?.ok_or_else(|| named.missing(what))?;
    let examined = examine(&bytes);
    if !examined.is_readable() {
        require_valid(examined)?;
        return Err(ApiError::internal("a dashboard without problems can't be read"));
    }
    let settings = ParamSettings::choose(examined.dashboard.params(), &wanted.params, today(dashboards))
        .map_err(|messages| ApiError::new(ErrorCode::InvalidRequest, messages.join("; ")))?;
    let mut plan = Plan::of(&examined, &settings);
    let share = BYTES_MAX / plan.results().max(1);
    let limits = RowLimits { rows: ROWS_MAX, bytes: share.clamp(RESULT_BYTES_MIN, RESULT_BYTES_MAX) };
    let statements = std::mem::take(&mut plan.statements);
    let mut more = Map::from_iter([("params".to_owned(), Value::Object(settings.to_json()))]);
    let mut results = Vec::new();
    if !statements.is_empty() {
        let ran = dashboards.sql.run(&named.pipeline, &statements, limits, None, None)?;
        insert_config(&mut more, &ran.catalog.config);
        results = ran.outcomes;
    }
    Ok(Response::bytes(200, "application/json", answer(&plan, &results, more).into_bytes()))
}

/// The statements to run, and the panels and options that show their results.
#[derive(Default)]
struct Plan {
    statements: Vec<Statement>,
    shown: Vec<DashboardElement>,
}

/// A panel, or a parameter with options.
struct DashboardElement {
    name: String,
    is_options: bool,
    source: Source,
    /// For a panel with a comparison: the statement of the compared period, if any.
    previous: Option<Option<usize>>,
}

/// Where a result comes from.
enum Source {
    /// An index into the statements.
    Statement(usize),
    /// Why there is no result.
    Problem(String),
}

impl Plan {
    fn of(examined: &ExaminedDashboard, settings: &ParamSettings) -> Self {
        let mut plan = Self::default();
        let whole: BTreeMap<usize, &Panel> = examined.valid_panels().collect();
        for (index, id) in examined.panel_ids.iter().enumerate() {
            let Some(id) = id else { continue };
            if plan.shown.iter().any(|shown| shown.name == *id) {
                continue;
            }
            match whole.get(&index) {
                Some(panel) => plan.add_panel(panel, examined, settings),
                None => {
                    let problem = examined.problem_under(&format!("/panels/{index}"));
                    let message = problem.map_or_else(String::new, |problem| problem.message.clone());
                    plan.add(id, false, Source::Problem(message));
                }
            }
        }
        for (name, options) in examined.dashboard.options() {
            let source = plan.source(examined, settings, &options.query, |query| options_sql(options, query));
            plan.add(name, true, source);
        }
        plan
    }

    /// Number of results written.
    fn results(&self) -> u64 {
        let of = |shown: &DashboardElement| 1 + u64::from(shown.previous.flatten().is_some());
        self.shown.iter().map(of).sum()
    }

    fn add(&mut self, name: &str, is_options: bool, source: Source) {
        self.shown.push(DashboardElement { name: name.to_owned(), is_options, source, previous: None });
    }

    fn add_panel(&mut self, panel: &Panel, examined: &ExaminedDashboard, settings: &ParamSettings) {
        let Some(name) = panel.query() else { return };
        let source = self.source(examined, settings, name, |query| panel_sql(panel, query));
        self.add(panel.id(), false, source);
        if panel.compare().0.is_none() {
            return;
        }
        let moved = examined.dashboard.compared(panel, settings);
        let previous = match (moved, examined.dashboard.query(name)) {
            (Some((moved, _)), Some(query)) => Some(self.index(statement(query, panel_sql(panel, query), &moved))),
            (None, _) | (_, None) => None,
        };
        if let Some(shown) = self.shown.last_mut() {
            shown.previous = Some(previous);
        }
    }

    fn source(
        &mut self,
        examined: &ExaminedDashboard,
        settings: &ParamSettings,
        name: &str,
        sql: impl Fn(&NamedQuery) -> String,
    ) -> Source {
        if let Some(problem) = examined.query_problem(name) {
            return Source::Problem(problem.message.clone());
        }
        let Some(query) = examined.dashboard.query(name) else {
            return Source::Problem(format!("there is no query `{name}`"));
        };
        let statement = statement(query, sql(query), settings);
        // Invalid parameters have no value.
        let lacks = |name: &&str| !statement.params.iter().any(|(given, _)| given == name);
        if let Some(missing) = query.placeholders().find(lacks) {
            return Source::Problem(format!("the parameter `{missing}` has problems"));
        }
        Source::Statement(self.index(statement))
    }

    /// The index of a statement, added unless there is an equal one.
    fn index(&mut self, statement: Statement) -> usize {
        self.statements.iter().position(|own| *own == statement).unwrap_or_else(|| {
            self.statements.push(statement);
            self.statements.len() - 1
        })
    }
}

type Results = [Result<Rows, ApiError>];

/// `more`: further fields; at least one.
fn answer(plan: &Plan, results: &Results, more: Map<String, Value>) -> String {
    // One text, so that large results are copied once.
    let mut text = String::with_capacity(results.iter().flatten().map(|rows| rows.rows.len()).sum());
    text.push_str("{\"panels\":");
    push_part(&mut text, plan, results, false);
    text.push_str(",\"options\":");
    push_part(&mut text, plan, results, true);
    text.push(',');
    text.push_str(&Value::Object(more).to_string()[1..]);
    text
}

fn push_part(text: &mut String, plan: &Plan, results: &Results, options: bool) {
    let mut before = '{';
    for shown in plan.shown.iter().filter(|shown| shown.is_options == options) {
        text.push(before);
        before = ',';
        text.push_str(&Value::from(shown.name.as_str()).to_string());
        text.push(':');
        push_result(text, shown, results);
    }
    text.push_str(if before == '{' { "{}" } else { "}" });
}

fn push_result(text: &mut String, shown: &DashboardElement, results: &Results) {
    let index = match &shown.source {
        Source::Statement(index) => *index,
        Source::Problem(message) => {
            let code = ErrorCode::InvalidDashboard;
            return text.push_str(&json!({ "error": code.as_str(), "message": message }).to_string());
        }
    };
    push_rows_of(text, index, results);
    let failed = !matches!(results.get(index), Some(Ok(_)));
    if let (Some(previous), false) = (&shown.previous, failed) {
        text.pop();
        text.push_str(",\"previous\":");
        match previous {
            Some(index) => push_rows_of(text, *index, results),
            None => text.push_str("null"),
        }
        text.push('}');
    }
}

fn push_rows_of(text: &mut String, index: usize, results: &Results) {
    match results.get(index) {
        Some(Ok(rows)) => push_rows(text, rows, &Map::new()),
        Some(Err(error)) => {
            if let Some(cause) = error.cause() {
                tracing::error!(code = error.code().as_str(), cause, "a panel's statement failed");
            }
            text.push_str(&json!({ "error": error.code().as_str(), "message": error.message() }).to_string());
        }
        None => {
            let code = ErrorCode::Internal;
            text.push_str(&json!({ "error": code.as_str(), "message": code.general_message() }).to_string());
        }
    }
}

//! Previews an unsaved config: its first rows and rejects over the head of one file.
//!
//! Invariant: the config's expressions run in a child process, over a copy of the file's head in the child's folder.
//!
//! Must not: write anything else.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::access::clipped;
use super::endpoint::Endpoint;
use super::failure::from_store;
use super::infer::key_within;
use super::sql::failure::from_sandbox;
use super::sql::{Cancellation, Sql};
use super::stores::Objects;
use crate::domain::layout::pipeline_prefix;
use crate::domain::limits::{CONFIG_BYTES_MAX, LIST_PAGE_KEYS_MAX, PREVIEW_BYTES_MAX, PREVIEW_ROWS_MAX};
use crate::domain::name::Slug;
use crate::domain::pipeline::Mapping;
use crate::domain::pipeline::globs::SourceGlobs;
use crate::domain::pipeline::validate::parse;
use crate::domain::problem::{Problem, ProblemKind};
use crate::engine::preview::{
    PreviewAnswer, PreviewColumn, PreviewCounts, PreviewFailure, PreviewProblem, PreviewReject, PreviewRequest,
};
use crate::engine::validate::pointer;
use crate::http::{ApiError, ErrorCode, Request, Response, json_object};
use crate::ports::expressions::{ExpressionId, expression_set};
use crate::ports::store::{BodyChanged, Bucket};
use crate::sql::sandbox::{SandboxError, SqlErrorKind};
use crate::sync::Permit;

/// The operation's name in the child.
pub const OPERATION: &str = "preview";
/// Default number of rows, and of rejects.
const ROWS_DEFAULT: usize = 50;
/// Pages of the listing that are searched for a source.
const PAGES_MAX: usize = 100;
/// Size of the request's other fields, in bytes.
const OTHER_FIELDS_BYTES_MAX: u64 = 16 << 10;
/// The source's name in the child's folder.
const SOURCE_FILE: &str = "source";
const BUFFER_BYTES: usize = 256 << 10;

/// The service.
pub struct Previews {
    pub store: Objects,
    pub sql: Arc<Sql>,
}

pub(super) fn endpoints() -> Vec<Endpoint<Previews>> {
    vec![
        Endpoint::post("/api/p/{pipeline}/preview", "preview.run", "Previews an unsaved config over a file", post)
            .changing_nothing()
            .takes::<Preview>(CONFIG_BYTES_MAX as u64 + OTHER_FIELDS_BYTES_MAX)
            .response::<Previewed>(200, "the first rows and rejects, or the config's problems")
            .errors(&[
                ErrorCode::InvalidSlug,
                ErrorCode::InvalidKey,
                ErrorCode::PipelineNotFound,
                ErrorCode::ObjectNotFound,
                ErrorCode::PreconditionFailed,
                ErrorCode::QueryTimeout,
                ErrorCode::QueryOutOfMemory,
                ErrorCode::QueryTooLarge,
            ]),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Preview {
    /// A complete config.
    config: Value,
    /// The table to preview; by default the first.
    #[serde(default)]
    table: Option<String>,
    /// The file's full key; by default the first file that the table's globs match.
    #[serde(default)]
    key: Option<String>,
    /// Maximum number of rows, and of rejects; 50 by default.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<u64>,
}

/// The preview.
#[derive(Serialize, JsonSchema)]
struct Previewed {
    /// The config's problems; if there are any, no file was read.
    problems: Vec<PreviewProblem>,
    /// The file.
    key: Option<String>,
    table: Option<String>,
    columns: Option<Vec<PreviewColumn>>,
    /// The first rows that would be written.
    rows: Option<Vec<Vec<Value>>>,
    /// The first rows that would be rejected.
    rejects: Option<Vec<PreviewReject>>,
    counts: Option<PreviewCounts>,
    /// Rows that fail each check of severity `warn`.
    warnings: Option<BTreeMap<String, u64>>,
    /// The file was read to its end.
    whole: bool,
    /// Decompressed bytes read.
    bytes_read: u64,
    /// The file's header, if the dialect has one.
    header: Option<Vec<String>>,
    /// The failure that a run would have.
    failure: Option<PreviewFailure>,
}

impl Previewed {
    fn empty(problems: Vec<PreviewProblem>) -> Self {
        Self {
            problems,
            key: None,
            table: None,
            columns: None,
            rows: None,
            rejects: None,
            counts: None,
            warnings: None,
            whole: false,
            bytes_read: 0,
            header: None,
            failure: None,
        }
    }

    fn of(key: String, answer: PreviewAnswer) -> Self {
        if !answer.problems.is_empty() {
            return Self { key: Some(key), ..Self::empty(answer.problems) };
        }
        Self {
            problems: Vec::new(),
            key: Some(key),
            table: Some(answer.table),
            columns: Some(answer.columns),
            rows: Some(answer.rows),
            rejects: Some(answer.rejects),
            counts: Some(answer.counts),
            warnings: Some(answer.warnings),
            whole: answer.whole,
            bytes_read: answer.bytes_read,
            header: answer.header,
            failure: answer.failure,
        }
    }
}

fn post(previews: &Previews, request: &mut Request) -> Result<Response, ApiError> {
    let slug = previews.store.existing(request, "pipeline")?;
    let body = request.body_bytes()?;
    // A config is large in memory: no more of them than children.
    let permit = previews.sql.permit()?;
    let preview: Preview = json_object(&body)?;
    let rows_max = rows_max(preview.limit)?;
    let key = preview.key.as_deref().map(|key| key_within(&slug, key)).transpose()?;
    // The child checks expressions, which need a SQL engine.
    let mapping = match parse(&preview.config.to_string()) {
        Ok(pipeline) => {
            position_of(&pipeline.mappings, preview.table.as_deref()).map(|index| (index, pipeline.mappings))
        }
        Err(problems) => Err(problems),
    };
    let (index, mappings) = match mapping {
        Ok(found) => found,
        Err(problems) => {
            let problems = problems.into_iter().map(PreviewProblem::from).collect();
            return Ok(Response::json(200, &Previewed::empty(problems)));
        }
    };
    let mapping = &mappings[index];
    let key = match key {
        Some(key) => key,
        None => match first_source(previews, &slug, mapping)? {
            Some(key) => key,
            None => return Ok(Response::json(200, &no_source(mapping))),
        },
    };
    let staging = previews.sql.sandbox.staging().map_err(from_sandbox)?;
    let fetched = staging.path().join(SOURCE_FILE);
    let truncated = fetch(previews, &key, &fetched, Instant::now() + previews.sql.timeout)?;
    let source = key.strip_prefix(&pipeline_prefix(&slug)).unwrap_or(&key).to_owned();
    let table = Some(mapping.table.to_string());
    let request = PreviewRequest {
        config: preview.config,
        table,
        source,
        path: PathBuf::from(SOURCE_FILE),
        truncated,
        expressions_max: None,
        rows_max,
    };
    let children = Children {
        sql: &previews.sql,
        permit: &permit,
        source: &fetched,
        deadline: Instant::now() + previews.sql.timeout,
    };
    match children.ask(&request)? {
        Ok(answer) => Ok(Response::json(200, &Previewed::of(key, answer))),
        Err(error) => match children.find_crashing_expression(&request, index, &mappings, &error)? {
            Some(problem) => {
                let answer = PreviewAnswer { problems: vec![problem.into()], ..PreviewAnswer::default() };
                Ok(Response::json(200, &Previewed::of(key, answer)))
            }
            None => Err(from_sandbox(error)),
        },
    }
}

/// The children of one preview, used one after another.
struct Children<'a> {
    sql: &'a Sql,
    permit: &'a Arc<Permit>,
    /// The fetched file, or its head.
    source: &'a Path,
    deadline: Instant,
}

impl Children<'_> {
    /// Asks a new child.
    fn ask(&self, request: &PreviewRequest) -> Result<Result<PreviewAnswer, SandboxError>, ApiError> {
        let mut lent = self.sql.child(self.permit, &Cancellation::default())?;
        let folder = lent.child.folder().ok_or_else(|| ApiError::internal("the child has no folder"))?;
        let path = folder.join(SOURCE_FILE);
        std::fs::hard_link(self.source, &path).map_err(|error| local(&path, &error))?;
        let request = PreviewRequest { path, ..request.clone() };
        let payload = serde_json::to_value(request).map_err(ApiError::internal)?;
        let answer = match lent.child.call(OPERATION, &payload, self.deadline) {
            Ok(answer) => answer,
            Err(error) => return Ok(Err(error)),
        };
        let answer = serde_json::from_value(answer)
            .map_err(|error| ApiError::internal(format!("malformed preview from a child: {error}")))?;
        Ok(Ok(answer))
    }

    /// Finds the expression that crashed a child, if time allows. The expression may belong to another table, since all
    /// are checked.
    fn find_crashing_expression(
        &self,
        request: &PreviewRequest,
        index: usize,
        mappings: &[Mapping],
        crash: &SandboxError,
    ) -> Result<Option<Problem>, ApiError> {
        let others = (0..mappings.len()).filter(|other| *other != index);
        for at in std::iter::once(index).chain(others).filter(|_| has_crashed(crash)) {
            if let Some(problem) = self.find_crashing_expression_in(request, at, &mappings[at], crash)? {
                return Ok(Some(problem));
            }
        }
        Ok(None)
    }

    /// Finds it in one table by bisection: a child survives the expressions before it, and crashes with it.
    fn find_crashing_expression_in(
        &self,
        request: &PreviewRequest,
        index: usize,
        mapping: &Mapping,
        crash: &SandboxError,
    ) -> Result<Option<Problem>, ApiError> {
        let ids: Vec<ExpressionId> = expression_set(mapping).ids().collect();
        if ids.is_empty() {
            return Ok(None);
        }
        let mut request = PreviewRequest { table: Some(mapping.table.to_string()), ..request.clone() };
        if let Some(mappings) = request.config.get_mut("mappings").and_then(Value::as_array_mut) {
            *mappings = mappings.drain(..).skip(index).take(1).collect();
        }
        let mut crashes = |count: usize| -> Result<Option<bool>, ApiError> {
            request.expressions_max = Some(count);
            Ok(match self.ask(&request)? {
                Ok(_) => Some(false),
                Err(error) => has_crashed(&error).then_some(true),
            })
        };
        if crashes(0)? != Some(false) || crashes(ids.len())? != Some(true) {
            return Ok(None);
        }
        let (mut good, mut bad) = (0, ids.len());
        while bad - good > 1 {
            let middle = good + (bad - good) / 2;
            match crashes(middle)? {
                Some(true) => bad = middle,
                Some(false) => good = middle,
                None => return Ok(None),
            }
        }
        let message = format!("this expression crashed the process that evaluated it on the file's rows: {crash}");
        Ok(Some(Problem::new(ProblemKind::InvalidExpression, pointer(index, mapping, ids[good]), message)))
    }
}

/// Whether the child crashed, rather than being stopped or timing out.
fn has_crashed(error: &SandboxError) -> bool {
    matches!(error.sql_kind(), Some(SqlErrorKind::Ended | SqlErrorKind::OutOfMemory))
}

fn rows_max(limit: Option<u64>) -> Result<usize, ApiError> {
    let Some(limit) = limit else { return Ok(ROWS_DEFAULT) };
    usize::try_from(limit).ok().filter(|limit| (1..=PREVIEW_ROWS_MAX).contains(limit)).ok_or_else(|| {
        ApiError::new(ErrorCode::InvalidRequest, format!("`limit` is `{limit}`, expected 1 to {PREVIEW_ROWS_MAX}"))
    })
}

/// The position of the requested mapping.
fn position_of(mappings: &[Mapping], table: Option<&str>) -> Result<usize, Vec<Problem>> {
    let wanted = |mapping: &Mapping| table.is_none_or(|table| mapping.table.as_str() == table);
    mappings.iter().position(wanted).ok_or_else(|| {
        let message = match table {
            Some(table) => format!("the config has no table `{}`", clipped(table)),
            None => "the config has no tables".to_owned(),
        };
        vec![Problem::new(ProblemKind::InvalidValue, "/mappings", message)]
    })
}

/// The first file, in key order, that the globs of a table match.
fn first_source(previews: &Previews, slug: &Slug, mapping: &Mapping) -> Result<Option<String>, ApiError> {
    let globs = SourceGlobs::compile([&mapping.files]).map_err(ApiError::internal)?;
    let prefix = pipeline_prefix(slug);
    let is_source = |key: &str| {
        let relative = key.strip_prefix(&prefix).unwrap_or_default();
        !relative.is_empty() && !relative.ends_with('/') && globs.is_match(relative)
    };
    let mut after = None;
    for _ in 0..PAGES_MAX {
        let page = previews
            .store
            .list(Bucket::Lake, &prefix, None, after.as_deref(), LIST_PAGE_KEYS_MAX)
            .map_err(from_store)?;
        if let Some(found) = page.objects.into_iter().find(|object| is_source(&object.key)) {
            return Ok(Some(found.key));
        }
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(None),
        }
    }
    Ok(None)
}

/// The failure that a run would have without sources.
fn no_source(mapping: &Mapping) -> Previewed {
    let message = format!("no file in the lake matches `{}`", mapping.files.join("`, `"));
    let failure = PreviewFailure { code: "no_input".to_owned(), message, detail: None };
    Previewed { table: Some(mapping.table.to_string()), failure: Some(failure), ..Previewed::empty(Vec::new()) }
}

/// Writes the object, or its head, to `path`; returns whether it is only the head.
fn fetch(previews: &Previews, key: &str, path: &Path, until: Instant) -> Result<bool, ApiError> {
    let object = previews.store.get(Bucket::Lake, key, None).map_err(from_store)?;
    let mut file = File::create_new(path).map_err(|error| local(path, &error))?;
    let bytes_max = PREVIEW_BYTES_MAX as u64;
    let (mut body, mut buffer) = (object.body.take(bytes_max), vec![0; BUFFER_BYTES]);
    loop {
        if Instant::now() >= until {
            return Err(ApiError::new(ErrorCode::QueryTimeout, "timed out while reading the file"));
        }
        match body.read(&mut buffer) {
            Ok(0) => return Ok(object.meta.size > bytes_max),
            Ok(read) => file.write_all(&buffer[..read]).map_err(|error| local(path, &error))?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if BodyChanged::is_in(&error) => {
                let message = "the file changed while it was read; retry";
                return Err(ApiError::new(ErrorCode::PreconditionFailed, message));
            }
            Err(error) => {
                return Err(ApiError::caused(ErrorCode::S3Error, format!("copying the head of `{key}`: {error}")));
            }
        }
    }
}

fn local(path: &Path, error: &io::Error) -> ApiError {
    ApiError::internal(format!("`{}`: {error}", path.display()))
}

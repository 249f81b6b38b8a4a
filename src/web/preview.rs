//! The first rows and rejects of an edited config, before it is saved.
//!
//! Invariant: the config's expressions run in a child process, over a head of one source that lies in the child's
//! folder. Must not: write anything anywhere else.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Web;
use super::access::clipped;
use super::endpoint::Endpoint;
use super::failure::{acquire, from_store};
use super::infer::key_within;
use super::query::running::Stop;
use super::sql::failure::from_sandbox;
use crate::domain::layout::pipeline_prefix;
use crate::domain::limits::{CONFIG_BYTES_MAX, LIST_PAGE_KEYS_MAX, PREVIEW_BYTES_MAX, PREVIEW_ROWS_MAX};
use crate::domain::name::Slug;
use crate::domain::pipeline::validate::parse;
use crate::domain::pipeline::{Mapping, compile_glob};
use crate::domain::problem::{Problem, ProblemKind};
use crate::engine::preview::{
    PreviewAnswer, PreviewColumn, PreviewCounts, PreviewFailure, PreviewProblem, PreviewReject, PreviewRequest,
};
use crate::engine::validate::pointer;
use crate::http::{ApiError, ErrorCode, Request, Response};
use crate::ports::expressions::{ExpressionId, expression_set};
use crate::ports::store::{BodyChanged, Bucket};
use crate::sql::sandbox::{SandboxError, SqlErrorKind};
use crate::sync::Permit;

/// The operation's name in the child.
pub const OPERATION: &str = "preview";
/// Rows, and as many rejects, where the request doesn't say how many.
const ROWS_DEFAULT: usize = 50;
/// Pages of the listing in which a source is looked for.
const PAGES_MAX: usize = 100;
/// What the request has beside the config, in bytes.
const BESIDE_BYTES_MAX: u64 = 16 << 10;
/// The source's name in the child's folder.
const SOURCE_FILE: &str = "source";
const BUFFER_BYTES: usize = 256 << 10;

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::post("/api/p/{pipeline}/preview", "preview.run", "What an edited config would make of a file", post)
            .takes::<Preview>(CONFIG_BYTES_MAX as u64 + BESIDE_BYTES_MAX)
            .answers::<Previewed>(200, "its first rows and rejects, or the config's problems")
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
    /// A whole config.
    config: Value,
    /// The table that is meant; by default the first.
    #[serde(default)]
    table: Option<String>,
    /// The whole key of the file; by default the first that the table's globs match.
    #[serde(default)]
    key: Option<String>,
    /// Rows, and as many rejects: 1 to 1000, 50 by default.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<u64>,
}

/// What the config would make of the file.
#[derive(Serialize, JsonSchema)]
struct Previewed {
    /// The config's problems; with any, nothing was read.
    problems: Vec<PreviewProblem>,
    /// The file.
    key: Option<String>,
    table: Option<String>,
    columns: Option<Vec<PreviewColumn>>,
    /// The first rows that would be written.
    rows: Option<Vec<Vec<Value>>>,
    /// The first that would be rejected.
    rejects: Option<Vec<PreviewReject>>,
    counts: Option<PreviewCounts>,
    /// Checks that only warn, with the number of rows that fail them.
    warnings: Option<BTreeMap<String, u64>>,
    /// The file was read to its end.
    whole: bool,
    /// Decompressed bytes that were read.
    bytes_read: u64,
    /// The file's header, where the dialect has one.
    header: Option<Vec<String>>,
    /// What would fail a run.
    failure: Option<PreviewFailure>,
}

impl Previewed {
    fn nothing(problems: Vec<PreviewProblem>) -> Self {
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
            return Self { key: Some(key), ..Self::nothing(answer.problems) };
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

fn post(web: &Web, request: &mut Request) -> Result<Response, ApiError> {
    let slug = web.existing(request, "pipeline")?;
    let asked: Preview = request.json()?;
    let rows_max = rows_max(asked.limit)?;
    let key = asked.key.as_deref().map(|key| key_within(&slug, key)).transpose()?;
    // Only the checked form says where the files are; what needs a SQL engine is left to the child.
    let mapping = match parse(&asked.config.to_string()) {
        Ok(pipeline) => position_of(&pipeline.mappings, asked.table.as_deref()).map(|index| (index, pipeline.mappings)),
        Err(problems) => Err(problems),
    };
    let (index, mappings) = match mapping {
        Ok(found) => found,
        Err(problems) => {
            let problems = problems.into_iter().map(PreviewProblem::from).collect();
            return Ok(Response::json(200, &Previewed::nothing(problems)));
        }
    };
    let mapping = &mappings[index];
    let key = match key {
        Some(key) => key,
        None => match first_source(web, &slug, mapping)? {
            Some(key) => key,
            None => return Ok(Response::json(200, &no_source(mapping))),
        },
    };
    let permit = Arc::new(acquire(&web.gate)?);
    let staging = web.sql.sandbox.staging().map_err(from_sandbox)?;
    let fetched = staging.path().join(SOURCE_FILE);
    let truncated = fetch(web, &key, &fetched, Instant::now() + web.sql.timeout)?;
    let source = key.strip_prefix(&pipeline_prefix(&slug)).unwrap_or(&key).to_owned();
    let table = Some(mapping.table.to_string());
    let request = PreviewRequest {
        config: asked.config,
        table,
        source,
        path: PathBuf::from(SOURCE_FILE),
        truncated,
        expressions_max: None,
        rows_max,
    };
    let children = Children { web, place: &permit, source: &fetched, deadline: Instant::now() + web.sql.timeout };
    match children.ask(&request)? {
        Ok(answer) => Ok(Response::json(200, &Previewed::of(key, answer))),
        Err(error) => match children.culprit(&request, index, &mappings, &error)? {
            Some(problem) => {
                let answer = PreviewAnswer { problems: vec![problem.into()], ..PreviewAnswer::default() };
                Ok(Response::json(200, &Previewed::of(key, answer)))
            }
            None => Err(from_sandbox(error)),
        },
    }
}

/// The children that work for one preview, one after the other.
struct Children<'a> {
    web: &'a Web,
    place: &'a Arc<Permit>,
    /// The file, or its head, where it was fetched to.
    source: &'a Path,
    deadline: Instant,
}

impl Children<'_> {
    /// Asks a new child.
    fn ask(&self, request: &PreviewRequest) -> Result<Result<PreviewAnswer, SandboxError>, ApiError> {
        let mut lent = self.web.child(self.place, &Stop::default())?;
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
            .map_err(|error| ApiError::internal(format!("a child's preview is none: {error}")))?;
        Ok(Ok(answer))
    }

    /// The problem of the expression that ended a child, if that can be found in time. It may be another table's, since
    /// all are checked.
    fn culprit(
        &self,
        request: &PreviewRequest,
        index: usize,
        mappings: &[Mapping],
        ended: &SandboxError,
    ) -> Result<Option<Problem>, ApiError> {
        let others = (0..mappings.len()).filter(|other| *other != index);
        for at in std::iter::once(index).chain(others).filter(|_| has_ended(ended)) {
            if let Some(problem) = self.culprit_of(request, at, &mappings[at], ended)? {
                return Ok(Some(problem));
            }
        }
        Ok(None)
    }

    /// The same for one table: with the expressions before it a child goes on, with it, too, the child ends.
    fn culprit_of(
        &self,
        request: &PreviewRequest,
        index: usize,
        mapping: &Mapping,
        ended: &SandboxError,
    ) -> Result<Option<Problem>, ApiError> {
        let ids: Vec<ExpressionId> = expression_set(mapping).ids().collect();
        if ids.is_empty() {
            return Ok(None);
        }
        let mut request = PreviewRequest { table: Some(mapping.table.to_string()), ..request.clone() };
        if let Some(mappings) = request.config.get_mut("mappings").and_then(Value::as_array_mut) {
            *mappings = mappings.drain(..).skip(index).take(1).collect();
        }
        let mut ends = |count: usize| -> Result<Option<bool>, ApiError> {
            request.expressions_max = Some(count);
            Ok(match self.ask(&request)? {
                Ok(_) => Some(false),
                Err(error) => has_ended(&error).then_some(true),
            })
        };
        if ends(0)? != Some(false) || ends(ids.len())? != Some(true) {
            return Ok(None);
        }
        let (mut fine, mut ending) = (0, ids.len());
        while ending - fine > 1 {
            let middle = fine + (ending - fine) / 2;
            match ends(middle)? {
                Some(true) => ending = middle,
                Some(false) => fine = middle,
                None => return Ok(None),
            }
        }
        let message = format!("this expression ended the process that evaluated it on the file's rows: {ended}");
        Ok(Some(Problem::new(ProblemKind::InvalidExpression, pointer(index, mapping, ids[fine]), message)))
    }
}

/// Whether the child died of its work, not of a deadline or somebody's wish.
fn has_ended(error: &SandboxError) -> bool {
    matches!(error.sql_kind(), Some(SqlErrorKind::Ended | SqlErrorKind::OutOfMemory))
}

fn rows_max(limit: Option<u64>) -> Result<usize, ApiError> {
    let Some(limit) = limit else { return Ok(ROWS_DEFAULT) };
    usize::try_from(limit).ok().filter(|limit| (1..=PREVIEW_ROWS_MAX).contains(limit)).ok_or_else(|| {
        ApiError::new(ErrorCode::InvalidRequest, format!("`limit` is `{limit}`, expected 1 to {PREVIEW_ROWS_MAX}"))
    })
}

/// The position of the mapping that is meant.
fn position_of(mappings: &[Mapping], table: Option<&str>) -> Result<usize, Vec<Problem>> {
    let wanted = |mapping: &Mapping| table.is_none_or(|table| mapping.table.as_str() == table);
    mappings.iter().position(wanted).ok_or_else(|| {
        let message = match table {
            Some(table) => format!("the config has no table `{}`", clipped(table)),
            None => "the config has no table".to_owned(),
        };
        vec![Problem::new(ProblemKind::InvalidValue, "/mappings", message)]
    })
}

/// The first file, in the order of keys, that the globs of a table match.
fn first_source(web: &Web, slug: &Slug, mapping: &Mapping) -> Result<Option<String>, ApiError> {
    let globs: Result<Vec<_>, _> = mapping.files.iter().map(|glob| compile_glob(glob)).collect();
    let globs = globs.map_err(ApiError::internal)?;
    let globs: Vec<_> = globs.into_iter().map(|glob| glob.compile_matcher()).collect();
    let prefix = pipeline_prefix(slug);
    let is_source = |key: &str| {
        let relative = key.strip_prefix(&prefix).unwrap_or_default();
        !relative.is_empty() && !relative.ends_with('/') && globs.iter().any(|glob| glob.is_match(relative))
    };
    let mut after = None;
    for _ in 0..PAGES_MAX {
        let page =
            web.store.list(Bucket::Lake, &prefix, None, after.as_deref(), LIST_PAGE_KEYS_MAX).map_err(from_store)?;
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

/// As a run would say it.
fn no_source(mapping: &Mapping) -> Previewed {
    let message = format!("no file in the lake matches `{}`", mapping.files.join("`, `"));
    let failure = PreviewFailure { code: "no_input".to_owned(), message, detail: None };
    Previewed { table: Some(mapping.table.to_string()), failure: Some(failure), ..Previewed::nothing(Vec::new()) }
}

/// Writes the object, or the head of it, to `path`; whether it is only the head.
fn fetch(web: &Web, key: &str, path: &Path, until: Instant) -> Result<bool, ApiError> {
    let object = web.store.get(Bucket::Lake, key, None).map_err(from_store)?;
    let mut file = File::create_new(path).map_err(|error| local(path, &error))?;
    let bytes_max = PREVIEW_BYTES_MAX as u64;
    let (mut body, mut buffer) = (object.body.take(bytes_max), vec![0; BUFFER_BYTES]);
    loop {
        if Instant::now() >= until {
            return Err(ApiError::new(ErrorCode::QueryTimeout, "the file did not come in time"));
        }
        match body.read(&mut buffer) {
            Ok(0) => return Ok(object.meta.size > bytes_max),
            Ok(read) => file.write_all(&buffer[..read]).map_err(|error| local(path, &error))?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if BodyChanged::is_in(&error) => {
                let message = "the file changed while it was read: try again";
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

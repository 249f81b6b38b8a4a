//! Creates a pipeline from a template.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::marker::{self, Begun, OperationStage, PendingOperation};
use super::remove::{delete_others, undo};
use super::service::Pipelines;
use crate::domain::layout::{config_key, dashboard_key, pipeline_prefix};
use crate::domain::name::Slug;
use crate::domain::pipeline::document::VERSION;
use crate::domain::pipeline::globs::escape_glob;
use crate::domain::sample::FLIGHTS;
use crate::http::{ApiError, ErrorCode, Request, Response};
use crate::ports::store::{Bucket, StoreError};
use crate::runtime::failpoint::reach;
use crate::web::access;
use crate::web::failure::{from_kv, from_store};
use crate::web::infer::propose;
use crate::web::locks::LockedPipeline;
use crate::web::stores::extend_window;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CreateRequest {
    slug: String,
    #[serde(default)]
    template: Template,
    /// For `from-csv`: a file of the lake, copied unless it is in the new pipeline already.
    #[serde(default)]
    key: Option<String>,
}

/// The initial contents of a pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Template {
    /// A config without tables.
    #[default]
    Blank,
    /// The sample: real data, five tables, a dashboard.
    Flights,
    /// A config proposed from a file.
    FromCsv,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Created {
    slug: String,
    template: Template,
}

/// The contents of a template. Keys are relative to the pipeline's prefix.
pub(super) struct TemplateContents<'a> {
    pub(super) config: Cow<'a, str>,
    /// Lake files.
    pub(super) files: &'a [(&'a str, &'a [u8])],
    /// Published dashboards: name and YAML.
    pub(super) dashboards: &'a [(&'a str, &'a str)],
    /// A lake object to copy: its full key, and the new name.
    pub(super) copy: Option<(String, String)>,
}

/// `POST /api/pipelines`
pub(super) fn create(pipelines: &Pipelines, request: &mut Request) -> Result<Response, ApiError> {
    let CreateRequest { slug, template, key } = request.json()?;
    let slug = access::slug(&slug)?;
    let wrong = |message: &str| ApiError::new(ErrorCode::InvalidRequest, message);
    let (contents, key) = match (template, key) {
        (Template::Blank, None) => (blank(&slug), None),
        (Template::Flights, None) => {
            let (files, dashboards) = (FLIGHTS.files, FLIGHTS.dashboards);
            (TemplateContents { config: FLIGHTS.config.into(), files, dashboards, copy: None }, None)
        }
        (Template::FromCsv, Some(key)) => {
            let key = access::key(&key)?;
            (from_csv(pipelines, &slug, &key)?, Some(key))
        }
        (Template::FromCsv, None) => return Err(wrong("template `from-csv` requires a `key`")),
        (Template::Blank | Template::Flights, Some(_)) => {
            return Err(wrong("`key` is only allowed with template `from-csv`"));
        }
    };
    let operation = PendingOperation::Create { template: template.name().to_owned(), key };
    let work = |locked: &[LockedPipeline]| {
        Create { pipelines, locked: &locked[0], contents: &contents, operation: &operation }.run()
    };
    pipelines
        .locks
        .with_pipeline_locks(&[&slug], work)
        .map_err(|error| marker::already_exists_if_busy(&pipelines.store, &slug, error))?;
    tracing::info!(pipeline = %slug, template = template.name(), request_id = request.id().as_str(), "pipeline created");
    let created = Created { slug: slug.to_string(), template };
    Ok(Response::json(201, &created).with_header("Location", format!("/api/p/{slug}/config")))
}

impl Template {
    fn name(self) -> &'static str {
        match self {
            Self::Blank => "blank",
            Self::Flights => "flights",
            Self::FromCsv => "from-csv",
        }
    }
}

fn blank(slug: &Slug) -> TemplateContents<'static> {
    let config = json!({ "version": VERSION, "title": slug.as_str(), "mappings": [] });
    TemplateContents { config: format!("{config:#}").into(), files: &[], dashboards: &[], copy: None }
}

/// The template `from-csv`: one table of the file `key`, which is copied unless it is in the pipeline already.
///
/// # Errors
/// `object_not_found`; `invalid_config` if no config can be proposed; `s3_error`, `bucket_not_found`.
fn from_csv(pipelines: &Pipelines, slug: &Slug, key: &str) -> Result<TemplateContents<'static>, ApiError> {
    let prefix = pipeline_prefix(slug);
    let (name, copied) = match key.strip_prefix(&prefix) {
        Some(own) => (own, false),
        None => (key.rsplit('/').next().unwrap_or(key), true),
    };
    let mut config = proposal(pipelines, key, slug.as_str())?;
    config["mappings"][0]["files"] = json!([escape_glob(name)]);
    let config = serde_json::to_string_pretty(&config).map_err(ApiError::internal)?;
    let copy = copied.then(|| (key.to_owned(), name.to_owned()));
    Ok(TemplateContents { config: config.into(), files: &[], dashboards: &[], copy })
}

fn proposal(pipelines: &Pipelines, key: &str, title: &str) -> Result<serde_json::Value, ApiError> {
    if pipelines.store.head(Bucket::Lake, key).map_err(from_store)?.is_none() {
        return Err(ApiError::new(ErrorCode::ObjectNotFound, format!("the lake has no object `{key}`")));
    }
    let proposed = propose(&pipelines.store, &[key.to_owned()]).map_err(|error| match error.code() {
        ErrorCode::InvalidRequest => ApiError::new(ErrorCode::InvalidConfig, error.to_string()),
        _ => error,
    })?;
    Ok(json!({ "version": VERSION, "title": title, "mappings": [proposed.proposal.mapping()] }))
}

struct Create<'a> {
    pipelines: &'a Pipelines,
    locked: &'a LockedPipeline,
    contents: &'a TemplateContents<'a>,
    operation: &'a PendingOperation,
}

impl Create<'_> {
    fn run(&self) -> Result<(), ApiError> {
        let begun = marker::begin(&self.pipelines.store, self.locked, self.operation)?;
        if begun != Begun::Complete {
            let mut written = Vec::new();
            if let Err(error) = self.write(begun, &mut written) {
                return Err(match begun {
                    Begun::New => undo(&self.pipelines.store, self.locked, &written, true, error),
                    Begun::Resumed | Begun::Complete => error,
                });
            }
        }
        let slug = self.locked.slug();
        let from_file = matches!(self.operation, PendingOperation::Create { key: Some(_), .. });
        if !self.contents.files.is_empty() || from_file {
            extend_window(&*self.pipelines.ports.schedule, slug)?;
        }
        marker::remove(&self.pipelines.store, self.locked)
    }

    /// Writes the objects, the config last: it completes the pipeline.
    fn write(&self, begun: Begun, written: &mut Vec<(Bucket, String)>) -> Result<(), ApiError> {
        let (store, slug) = (&self.pipelines.store, self.locked.slug());
        // The deletion mark of an earlier pipeline would drop the new one's jobs.
        self.pipelines.ports.registry.revive_pipeline(slug).map_err(from_kv)?;
        let prefix = pipeline_prefix(slug);
        for (name, content) in self.contents.files {
            let key = format!("{prefix}{name}");
            written.push((Bucket::Lake, key.clone()));
            store.put(Bucket::Lake, &key, content, &self.locked.options()).map_err(from_store)?;
            reach("create::between_writes");
        }
        if let Some((from, name)) = &self.contents.copy {
            let key = format!("{prefix}{name}");
            written.push((Bucket::Lake, key.clone()));
            let copied = store.copy((Bucket::Lake, from), (Bucket::Lake, &key), &self.locked.options());
            copied.map_err(from_store)?;
            reach("create::between_writes");
        }
        if begun == Begun::Resumed {
            delete_others(&self.pipelines.store, self.locked, Bucket::Pipelines, |_| false)?;
        }
        for (name, text) in self.contents.dashboards {
            let key = dashboard_key(slug, &access::slug(name)?);
            written.push((Bucket::Pipelines, key.clone()));
            store.put(Bucket::Pipelines, &key, text.as_bytes(), &self.locked.options()).map_err(from_store)?;
            reach("create::between_writes");
        }
        marker::advance(&self.pipelines.store, self.locked, self.operation, OperationStage::Made)?;
        reach("make::made");
        let config = self.contents.config.as_bytes();
        match store.put(Bucket::Pipelines, &config_key(slug), config, &self.locked.create()) {
            // Another client stored a config first, which must not be undone.
            Err(StoreError::PreconditionFailed { .. }) => return Err(marker::already_exists(slug)),
            put => drop(put.map_err(from_store)?),
        }
        reach("create::configured");
        Ok(())
    }
}

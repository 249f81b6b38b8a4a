//! Makes a pipeline from a template.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::from_csv;
use super::hold::{Held, holding};
use super::mark::{self, Begun, Stage, Wish};
use super::remove::{delete_others, undo};
use crate::domain::layout::{config_key, dashboard_key, pipeline_prefix};
use crate::domain::name::Slug;
use crate::domain::pipeline::document::VERSION;
use crate::domain::sample::FLIGHTS;
use crate::http::{ApiError, ErrorCode, Request, Response};
use crate::ports::store::{Bucket, StoreError};
use crate::runtime::failpoint::reach;
use crate::web::Web;
use crate::web::access;
use crate::web::failure::{from_kv, from_store};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CreateRequest {
    slug: String,
    #[serde(default)]
    template: Template,
    /// For `from-csv`: a file of the lake, in the new pipeline or anywhere else; then it is copied.
    #[serde(default)]
    key: Option<String>,
}

/// What a new pipeline begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Template {
    /// A config without tables.
    #[default]
    Blank,
    /// The sample: real data, five tables, a dashboard.
    Flights,
    /// A config that is proposed from a file.
    FromCsv,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Created {
    slug: String,
    template: Template,
}

/// What a template puts into a pipeline. Keys are relative to its prefix.
pub(super) struct Contents<'a> {
    pub(super) config: Cow<'a, str>,
    /// Of the lake.
    pub(super) files: &'a [(&'a str, &'a [u8])],
    /// Published ones: name, and YAML.
    pub(super) dashboards: &'a [(&'a str, &'a str)],
    /// A whole key of the lake, and where it is copied to.
    pub(super) copy: Option<(String, String)>,
}

/// `POST /api/pipelines`
pub(super) fn create(web: &Web, request: &mut Request) -> Result<Response, ApiError> {
    let CreateRequest { slug, template, key } = request.json()?;
    let slug = access::slug(&slug)?;
    let wrong = |message: &str| ApiError::new(ErrorCode::InvalidRequest, message);
    let (contents, key) = match (template, key) {
        (Template::Blank, None) => (blank(&slug), None),
        (Template::Flights, None) => {
            let (files, dashboards) = (FLIGHTS.files, FLIGHTS.dashboards);
            (Contents { config: FLIGHTS.config.into(), files, dashboards, copy: None }, None)
        }
        (Template::FromCsv, Some(key)) => {
            let key = access::key(&key)?;
            (from_csv::propose(web, &slug, &key)?, Some(key))
        }
        (Template::FromCsv, None) => return Err(wrong("the template `from-csv` needs a `key`")),
        (Template::Blank | Template::Flights, Some(_)) => return Err(wrong("`key` is for the template `from-csv`")),
    };
    let wish = Wish::Create { template: template.name().to_owned(), key };
    let work = |held: &[Held]| Create { web, held: &held[0], contents: &contents, wish: &wish }.run();
    holding(web, &[&slug], work).map_err(|error| mark::taken_if_busy(web, &slug, error))?;
    tracing::info!(pipeline = %slug, template = template.name(), request_id = request.id().as_str(), "a new pipeline");
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

fn blank(slug: &Slug) -> Contents<'static> {
    let config = json!({ "version": VERSION, "title": slug.as_str(), "mappings": [] });
    Contents { config: format!("{config:#}").into(), files: &[], dashboards: &[], copy: None }
}

struct Create<'a> {
    web: &'a Web,
    held: &'a Held,
    contents: &'a Contents<'a>,
    wish: &'a Wish,
}

impl Create<'_> {
    fn run(&self) -> Result<(), ApiError> {
        let begun = mark::begin(self.web, self.held, self.wish)?;
        if begun != Begun::Whole {
            let mut written = Vec::new();
            if let Err(error) = self.write(begun, &mut written) {
                return Err(match begun {
                    Begun::Anew => undo(self.web, self.held, &written, true, error),
                    Begun::Again | Begun::Whole => error,
                });
            }
        }
        let slug = self.held.slug();
        let from_file = matches!(self.wish, Wish::Create { key: Some(_), .. });
        if !self.contents.files.is_empty() || from_file {
            self.web.extend_window(slug)?;
        }
        mark::remove(self.web, self.held)
    }

    /// The config last: with it the pipeline is whole.
    fn write(&self, begun: Begun, written: &mut Vec<(Bucket, String)>) -> Result<(), ApiError> {
        let (store, slug) = (&self.web.store, self.held.slug());
        // The mark of a deletion would have the jobs of the new pipeline dropped.
        self.web.kv.revive_pipeline(slug).map_err(from_kv)?;
        let prefix = pipeline_prefix(slug);
        for (name, content) in self.contents.files {
            let key = format!("{prefix}{name}");
            written.push((Bucket::Lake, key.clone()));
            store.put(Bucket::Lake, &key, content, &self.held.options()).map_err(from_store)?;
            reach("create::between_writes");
        }
        if let Some((from, name)) = &self.contents.copy {
            let key = format!("{prefix}{name}");
            written.push((Bucket::Lake, key.clone()));
            let copied = store.copy((Bucket::Lake, from), (Bucket::Lake, &key), &self.held.options());
            copied.map_err(from_store)?;
            reach("create::between_writes");
        }
        if begun == Begun::Again {
            delete_others(self.web, self.held, Bucket::Pipelines, |_| false)?;
        }
        for (name, text) in self.contents.dashboards {
            let key = dashboard_key(slug, &access::slug(name)?);
            written.push((Bucket::Pipelines, key.clone()));
            store.put(Bucket::Pipelines, &key, text.as_bytes(), &self.held.options()).map_err(from_store)?;
            reach("create::between_writes");
        }
        mark::advance(self.web, self.held, self.wish, Stage::Made)?;
        reach("make::made");
        let config = self.contents.config.as_bytes();
        match store.put(Bucket::Pipelines, &config_key(slug), config, &self.held.create()) {
            // Somebody was quicker, whose config isn't ours to take back.
            Err(StoreError::PreconditionFailed { .. }) => return Err(mark::taken(slug)),
            put => drop(put.map_err(from_store)?),
        }
        reach("create::configured");
        Ok(())
    }
}

//! The service, and what its handlers share.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::dashboard::DashboardProblem;
use crate::domain::dashboard::limits::YAML_BYTES_MAX;
use crate::domain::layout::{dashboard_draft_key, dashboard_key, dashboards_prefix};
use crate::domain::name::Slug;
use crate::http::{ApiError, ErrorCode, Request};
use crate::ports::store::{Bucket, ObjectMeta, list_all};
use crate::runtime::Clock;
use crate::web::access::slug_param;
use crate::web::failure::from_store;
use crate::web::locks::{Locks, NamedLock};
use crate::web::sql::Sql;
use crate::web::stores::Objects;

pub(super) const YAML: &str = "application/yaml";

/// The service.
pub struct Dashboards {
    pub store: Objects,
    pub clock: Arc<dyn Clock>,
    pub locks: Arc<Locks>,
    pub sql: Arc<Sql>,
}

/// The dashboard that a request names; its pipeline exists.
pub(super) struct NamedDashboard {
    pub(super) pipeline: Slug,
    pub(super) name: Slug,
}

impl NamedDashboard {
    /// # Errors
    /// `invalid_slug`, `pipeline_not_found`, and those of the store.
    pub(super) fn of(dashboards: &Dashboards, request: &Request) -> Result<Self, ApiError> {
        let name = slug_param(request, "name")?;
        Ok(Self { pipeline: dashboards.store.existing(request, "pipeline")?, name })
    }

    pub(super) fn published(&self) -> String {
        dashboard_key(&self.pipeline, &self.name)
    }

    pub(super) fn draft(&self) -> String {
        dashboard_draft_key(&self.pipeline, &self.name)
    }

    pub(super) fn key(&self, draft: bool) -> String {
        if draft { self.draft() } else { self.published() }
    }

    /// The lock that excludes saves of the draft while a publication checks the draft once more and deletes it.
    pub(super) fn lock<'a>(&self, dashboards: &'a Dashboards) -> Result<NamedLock<'a>, ApiError> {
        dashboards.locks.named(&format!("dashboards/{}/{}", self.pipeline, self.name))
    }

    pub(super) fn missing(&self, what: &str) -> ApiError {
        let message = format!("the pipeline `{}` has no {what} `{}`", self.pipeline, self.name);
        ApiError::new(ErrorCode::DashboardNotFound, message)
    }
}

/// Reads a dashboard up to one byte past the limit, so that validation notices that it is too large.
pub(super) fn load(dashboards: &Dashboards, key: &str) -> Result<Option<(ObjectMeta, Vec<u8>)>, ApiError> {
    dashboards.store.read_start(Bucket::Pipelines, key, YAML_BYTES_MAX as u64)
}

/// All dashboards of a pipeline, by name.
pub(super) fn entries(
    dashboards: &Dashboards,
    pipeline: &Slug,
) -> Result<BTreeMap<String, DashboardObjects>, ApiError> {
    let prefix = dashboards_prefix(pipeline);
    let mut entries: BTreeMap<String, DashboardObjects> = BTreeMap::new();
    for object in list_all(&*dashboards.store, Bucket::Pipelines, &prefix).map_err(from_store)? {
        let Some(file) = object.key.strip_prefix(&prefix).and_then(|file| file.strip_suffix(".yaml")) else { continue };
        let (name, draft) = file.strip_suffix(".draft").map_or((file, false), |name| (name, true));
        if Slug::parse(name).is_err() {
            continue;
        }
        let entry = entries.entry(name.to_owned()).or_default();
        *(if draft { &mut entry.draft } else { &mut entry.published }) = true;
        entry.modified = entry.modified.max(object.modified);
    }
    Ok(entries)
}

/// The objects that exist of a dashboard.
#[derive(Default)]
pub(super) struct DashboardObjects {
    pub(super) published: bool,
    pub(super) draft: bool,
    pub(super) modified: chrono::DateTime<chrono::Utc>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct DashboardList {
    pub(super) dashboards: Vec<DashboardEntry>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct DashboardEntry {
    pub(super) name: String,
    pub(super) published: bool,
    pub(super) draft: bool,
    /// When either was last saved; RFC 3339.
    pub(super) modified: String,
    /// With `check`: why it can't be shown as it is; the draft is checked only where nothing is published.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) problems: Vec<DashboardProblem>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewDashboard {
    /// 1 to 63 characters of a-z, 0-9, `_` and `-`, starting with a letter or digit.
    pub(super) name: String,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Done {
    pub(super) ok: bool,
}

/// The result of validation.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "DashboardVerdict")]
pub(super) struct Verdict {
    pub(super) ok: bool,
    pub(super) errors: Vec<DashboardProblem>,
    /// Valid, but probably unintended.
    pub(super) warnings: Vec<DashboardProblem>,
}

//! `/api/p/{pipeline}/dashboards`: drafts, the gate, publishing, and the data of panels.
//!
//! Invariants: the YAML text is stored as it came; what is published has passed the gate, unless somebody put it into
//! the store by other means.

mod data;
mod gate;
mod objects;
mod publish;
mod used;

pub(in crate::web) use used::{UsedStatement, statements};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::endpoint::Endpoint;
use crate::domain::dashboard::DashboardProblem;
use crate::domain::dashboard::limits::YAML_BYTES_MAX;
use crate::domain::limits::VALIDATE_BYTES_MAX;
use crate::http::{ContentType, ErrorCode};

/// Dashboards of a pipeline that are looked into when its tables change.
const DASHBOARDS_MAX: usize = 1_000;
/// Largest request for data, in bytes.
const DATA_REQUEST_BYTES_MAX: u64 = 256 << 10;
/// Largest request for a new dashboard, in bytes.
const CREATE_BYTES_MAX: u64 = 4 << 10;
const YAML: &str = "application/yaml";
const YAML_TYPES: ContentType =
    ContentType::OneOf(&["application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml", "text/plain"]);

const ALL: &str = "/api/p/{pipeline}/dashboards";
const ONE: &str = "/api/p/{pipeline}/dashboards/{name}";

pub(super) fn endpoints() -> Vec<Endpoint> {
    let draft = "`1`: the draft";
    let of_one = [ErrorCode::InvalidSlug, ErrorCode::PipelineNotFound, ErrorCode::DashboardNotFound];
    let yaml_bytes_max = YAML_BYTES_MAX as u64;
    vec![
        Endpoint::get(ALL, "dashboards.list", "Lists dashboards and drafts", objects::list)
            .answers::<DashboardList>(200, "all of them, by name")
            .errors(&of_one[..2]),
        Endpoint::post(ALL, "dashboards.create", "Creates a draft from the template", objects::create)
            .takes::<NewDashboard>(CREATE_BYTES_MAX)
            .answers::<DashboardEntry>(201, "the draft")
            .header("ETag")
            .errors(&of_one[..2])
            .errors(&[ErrorCode::AlreadyExists, ErrorCode::PipelineBusy]),
        Endpoint::get(ONE, "dashboards.get", "The YAML of a dashboard", objects::get)
            .query::<bool>("draft", draft)
            .answers_bytes(200, YAML, "the text as it was saved")
            .header("ETag")
            .errors(&of_one),
        Endpoint::put(ONE, "dashboards.put", "Saves a dashboard; one that is no draft passes the gate", objects::put)
            .takes_bytes(yaml_bytes_max, YAML_TYPES, YAML)
            .query::<bool>("draft", "`1`: the draft, which is saved whatever is wrong with it")
            .answers::<Verdict>(200, "it is saved; of a draft, what is wrong with it apart from its SQL, if anything")
            .header("ETag")
            .if_match_or_none()
            .errors(&of_one[..2])
            .errors(&[ErrorCode::InvalidDashboard, ErrorCode::PipelineBusy]),
        Endpoint::delete(ONE, "dashboards.delete", "Deletes a dashboard and its draft", objects::delete)
            .answers::<Done>(200, "both are gone")
            .errors(&of_one),
        Endpoint::post(
            "/api/p/{pipeline}/dashboards/{name}/validate",
            "dashboards.validate",
            "What the gate says of a text, or of the draft",
            publish::validate,
        )
        .takes_stream(VALIDATE_BYTES_MAX, ContentType::Any, YAML)
        .answers::<Verdict>(200, "the verdict, whatever was sent"),
        Endpoint::post(
            "/api/p/{pipeline}/dashboards/{name}/publish",
            "dashboards.publish",
            "Publishes the draft, if it passes the gate",
            publish::publish,
        )
        .answers::<Verdict>(200, "it is published")
        .header("ETag")
        .if_match()
        .errors(&of_one)
        .errors(&[ErrorCode::InvalidDashboard, ErrorCode::PipelineBusy]),
        Endpoint::post(
            "/api/p/{pipeline}/dashboards/{name}/data",
            "dashboards.data",
            "What the panels show",
            data::data,
        )
        .takes::<data::DataRequest>(DATA_REQUEST_BYTES_MAX)
        .answers::<data::DataAnswer>(200, "a result for each panel")
        .errors(&of_one)
        .errors(&[ErrorCode::InvalidDashboard, ErrorCode::InvalidConfig]),
    ]
}

#[derive(Serialize, JsonSchema)]
struct DashboardList {
    dashboards: Vec<DashboardEntry>,
}

#[derive(Serialize, JsonSchema)]
struct DashboardEntry {
    name: String,
    published: bool,
    draft: bool,
    /// RFC 3339: when either was saved last.
    modified: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewDashboard {
    /// 1 to 63 of a-z, 0-9, `_` and `-`, starting with a letter or digit.
    name: String,
}

#[derive(Serialize, JsonSchema)]
struct Done {
    ok: bool,
}

/// What the gate says.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "DashboardVerdict")]
struct Verdict {
    ok: bool,
    errors: Vec<DashboardProblem>,
    /// What is allowed, but probably not meant.
    warnings: Vec<DashboardProblem>,
}

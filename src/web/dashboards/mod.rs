//! Dashboards of a pipeline: drafts, validation, publishing, and the data of panels.
//!
//! Invariants: the YAML text is stored unchanged; a published dashboard is valid, unless another program stored it.

mod data;
mod objects;
mod publish;
mod service;
mod validate;

use super::endpoint::Endpoint;
use crate::domain::dashboard::limits::YAML_BYTES_MAX;
use crate::domain::limits::VALIDATE_BYTES_MAX;
use crate::http::{ContentType, ErrorCode};

pub use service::Dashboards;
use service::{DashboardEntry, DashboardList, Done, NewDashboard, Verdict, YAML};
pub use validate::{UsedStatement, statements};

/// Largest request for data, in bytes.
const DATA_REQUEST_BYTES_MAX: u64 = 256 << 10;
/// Largest request for a new dashboard, in bytes.
const CREATE_BYTES_MAX: u64 = 4 << 10;
const YAML_TYPES: ContentType =
    ContentType::OneOf(&["application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml", "text/plain"]);

const ALL: &str = "/api/p/{pipeline}/dashboards";
const ONE: &str = "/api/p/{pipeline}/dashboards/{name}";

pub(super) fn endpoints() -> Vec<Endpoint<Dashboards>> {
    let draft = "whether to get the draft";
    let of_one = [ErrorCode::InvalidSlug, ErrorCode::PipelineNotFound, ErrorCode::DashboardNotFound];
    let yaml_bytes_max = YAML_BYTES_MAX as u64;
    vec![
        Endpoint::get(ALL, "dashboards.list", "Lists dashboards and drafts", objects::list)
            .query::<bool>("check", "Whether to check each against the tables, and to return its problems.")
            .response::<DashboardList>(200, "the dashboards, by name")
            .errors(&of_one[..2]),
        Endpoint::post(ALL, "dashboards.create", "Creates a draft from a template", objects::create)
            .takes::<NewDashboard>(CREATE_BYTES_MAX)
            .response::<DashboardEntry>(201, "the draft")
            .header("ETag")
            .errors(&of_one[..2])
            .errors(&[ErrorCode::AlreadyExists, ErrorCode::PipelineBusy]),
        Endpoint::get(ONE, "dashboards.get", "The YAML of a dashboard", objects::get)
            .query::<bool>("draft", draft)
            .bytes_response(200, YAML, "the YAML, as saved")
            .header("ETag")
            .errors(&of_one),
        Endpoint::put(ONE, "dashboards.put", "Saves a dashboard, which must be valid, or a draft", objects::put)
            .takes_bytes(yaml_bytes_max, YAML_TYPES, YAML)
            .query::<bool>("draft", "whether to save a draft, which may be invalid")
            .response::<Verdict>(200, "saved; for a draft, the response lists its problems, without checking its SQL")
            .header("ETag")
            .if_match_or_none()
            .errors(&of_one[..2])
            .errors(&[ErrorCode::InvalidDashboard, ErrorCode::PipelineBusy]),
        Endpoint::delete(ONE, "dashboards.delete", "Deletes a dashboard and its draft", objects::delete)
            .response::<Done>(200, "both are deleted")
            .errors(&of_one),
        Endpoint::post(
            "/api/p/{pipeline}/dashboards/{name}/validate",
            "dashboards.validate",
            "Validates a YAML text, or the draft",
            publish::validate,
        )
        .changing_nothing()
        .takes_stream(VALIDATE_BYTES_MAX, ContentType::Any, YAML)
        .response::<Verdict>(200, "the verdict"),
        Endpoint::post(
            "/api/p/{pipeline}/dashboards/{name}/publish",
            "dashboards.publish",
            "Publishes the draft, if it is valid",
            publish::publish,
        )
        .response::<Verdict>(200, "the dashboard is published")
        .header("ETag")
        .if_match()
        .errors(&of_one)
        .errors(&[ErrorCode::InvalidDashboard, ErrorCode::PipelineBusy]),
        Endpoint::post(
            "/api/p/{pipeline}/dashboards/{name}/data",
            "dashboards.data",
            "Runs the queries of the panels",
            data::data,
        )
        .changing_nothing()
        .takes::<data::DataRequest>(DATA_REQUEST_BYTES_MAX)
        .response::<data::DataAnswer>(200, "a result for each panel")
        .errors(&of_one)
        .errors(&[ErrorCode::InvalidDashboard, ErrorCode::InvalidConfig]),
    ]
}

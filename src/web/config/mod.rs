//! A pipeline's config: read, checked and saved.
//!
//! Invariant: the bytes that are saved are the bytes that are read, unknown members and all.

mod check;
mod impact;
mod read;
mod save;
mod validate;

use serde_json::Value;

use super::endpoint::Endpoint;
use crate::domain::limits::{CONFIG_BYTES_MAX, VALIDATE_BYTES_MAX};
use crate::http::{ContentType, ErrorCode};

const PATH: &str = "/api/p/{pipeline}/config";
const BYTES_MAX: u64 = CONFIG_BYTES_MAX as u64;

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::get(PATH, "config.get", "The config as it is stored", read::get)
            .answers_bytes(200, "application/json", "the bytes of `pipeline.json`")
            .header("ETag")
            .errors(&[
                ErrorCode::InvalidSlug,
                ErrorCode::PipelineNotFound,
                ErrorCode::PipelineConfigNotFound,
                ErrorCode::InvalidConfig,
            ]),
        Endpoint::put(PATH, "config.put", "Saves a config, and tells what is wrong with it", save::put)
            .takes::<Value>(BYTES_MAX)
            .query::<bool>(
                "strict",
                "a config with problems is 422, one whose expressions no worker could check is 502; neither is stored",
            )
            .query::<bool>("dry_run", "nothing is stored")
            .answers::<save::Saved>(200, "what was found; `ETag` names what is stored now")
            .header("ETag")
            .if_match_or_none()
            .errors(&[
                ErrorCode::InvalidSlug,
                ErrorCode::InvalidConfig,
                ErrorCode::PipelineBusy,
                ErrorCode::WorkerUnavailable,
            ]),
        Endpoint::post(
            "/api/p/{pipeline}/validate",
            "config.validate",
            "A worker's verdict on a config",
            validate::post,
        )
        .takes_stream(VALIDATE_BYTES_MAX, ContentType::Any, "application/json")
        .answers::<validate::Verdict>(200, "the verdict, whatever was sent")
        .errors(&[ErrorCode::WorkerUnavailable]),
    ]
}

//! `lakemill sql-child`: the other end of the sandbox, with what the engine adds to it. Started by the web service alone.

use std::process::ExitCode;

use serde::Deserialize;
use serde_json::Value;

use super::args::SqlChildArgs;
use crate::engine::preview::{PreviewRequest, preview_op};
use crate::sql::DuckExpressions;
use crate::sql::sandbox::child::{self, ChildArgs};
use crate::web::PREVIEW_OPERATION;

pub fn run(args: &SqlChildArgs) -> ExitCode {
    let SqlChildArgs { memory_bytes, threads, parent } = *args;
    child::main(ChildArgs { memory_bytes, threads, parent }, &[(PREVIEW_OPERATION, preview)])
}

fn preview(payload: &Value) -> Result<Value, String> {
    let request = PreviewRequest::deserialize(payload).map_err(|error| error.to_string())?;
    let answer = preview_op(&request, &DuckExpressions::default());
    serde_json::to_value(answer).map_err(|error| error.to_string())
}

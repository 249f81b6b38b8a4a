//! `lakemill sql-child`: the sandboxed process, with the engine's operations. Started only by services and commands.

use std::process::ExitCode;

use serde::Deserialize;
use serde_json::Value;

use super::args::SqlChildArgs;
use crate::engine::preview::{PreviewRequest, preview_op};
use crate::sql::sandbox::child::{self, ChildArgs, DuckExpressions, OpFn};
use crate::web::{PARQUET_OPERATIONS, PREVIEW_OPERATION};

pub fn run(args: &SqlChildArgs) -> ExitCode {
    let SqlChildArgs { memory_bytes, threads, parent, expressions, .. } = *args;
    let zones = args.zones.clone();
    let operations: Vec<_> = PARQUET_OPERATIONS.iter().copied().chain([(PREVIEW_OPERATION, preview as OpFn)]).collect();
    child::main(ChildArgs { memory_bytes, threads, parent, zones, expressions }, &operations)
}

fn preview(payload: &Value) -> Result<Value, String> {
    let request = PreviewRequest::deserialize(payload).map_err(|error| error.to_string())?;
    let answer = preview_op(&request, &DuckExpressions::default());
    serde_json::to_value(answer).map_err(|error| error.to_string())
}

//! The `lakemill-sql` program: the sandboxed process of SQL and expressions, with the engine's operations. Started only by
//! services and commands of `lakemill`. No other program is linked to DuckDB.

mod child;

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use child::{ChildArgs, DuckExpressions};
use clap::Parser;
use lakemill::engine::preview::{PreviewRequest, preview_op};
use lakemill::sql::sandbox::OpFn;
use lakemill::sql::sandbox::greeting::Greeting;
use lakemill::web::{PARQUET_OPERATIONS, PREVIEW_OPERATION};
use serde::Deserialize;
use serde_json::Value;

/// Runs users' SQL for `lakemill`, which starts it.
#[derive(Debug, Parser)]
#[command(name = "lakemill-sql", version)]
struct Args {
    memory_bytes: u64,
    threads: usize,
    parent: u32,
    /// Folder of the time-zone data
    zones: PathBuf,
    /// Check and evaluate expressions instead of running statements on the files of the working folder
    #[arg(long)]
    expressions: bool,
}

fn main() -> ExitCode {
    let args = Args::try_parse();
    let is_for_people = args.as_ref().is_err_and(|error| !error.use_stderr() || io::stdout().is_terminal());
    // Even with arguments of another build, so that the parent knows the reason.
    if !is_for_people && Greeting::write(&mut io::stdout().lock()).and_then(|()| io::stdout().flush()).is_err() {
        return ExitCode::FAILURE;
    }
    match args {
        Ok(args) => run(args),
        Err(error) => {
            let _ = error.print();
            ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
        }
    }
}

fn run(args: Args) -> ExitCode {
    let Args { memory_bytes, threads, parent, zones, expressions } = args;
    let operations: Vec<_> = PARQUET_OPERATIONS.iter().copied().chain([(PREVIEW_OPERATION, preview as OpFn)]).collect();
    child::main(ChildArgs { memory_bytes, threads, parent, zones, expressions }, &operations)
}

fn preview(payload: &Value) -> Result<Value, String> {
    let request = PreviewRequest::deserialize(payload).map_err(|error| error.to_string())?;
    let answer = preview_op(&request, &DuckExpressions::default());
    serde_json::to_value(answer).map_err(|error| error.to_string())
}

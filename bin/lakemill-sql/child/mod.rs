//! The child end of a sandbox ([`lakemill::sql::sandbox`]): a process that runs users' statements for one unit of work, or
//! checks and evaluates expressions. No other code opens DuckDB.
//!
//! Invariant: it confines itself before it opens DuckDB or starts a thread, and a user's text reaches DuckDB's
//! preparation only after the allow-list passed it.
//!
//! Must not: write a file, open a socket, or read outside its folder; print anything but frames.

mod allowed;
mod confine;
pub mod database;
mod download;
mod duckdb_types;
mod errors;
mod expressions;
mod failure;
mod operations;
mod output;
mod parameters;
mod relations;
mod result;
mod session;
mod syscalls;

use std::io::{self, Write};
use std::process::ExitCode;

use lakemill::sql::deep_stack;
use lakemill::sql::sandbox::OpFn;
use lakemill::sql::sandbox::error::SqlError;
use lakemill::sql::sandbox::frame::{self, FrameKind};
use lakemill::sql::sandbox::task::{Confinement, Reply, Task};
use lakemill::sql::sandbox::zones;

pub use confine::ChildArgs;
pub use expressions::DuckExpressions;

use expressions::ExpressionServer;
use failure::{ChildError, TaskError};
use operations::call;
use output::Output;
use session::DuckSession;

/// Serves tasks until the parent closes its side. The working folder is the child's own.
pub fn main(args: ChildArgs, ops: &[(&'static str, OpFn)]) -> ExitCode {
    prefer_for_oom_kill();
    match serve(args, ops) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    }
}

/// Asks the kernel to kill this process before its parent when memory is short. Any process may raise its own score;
/// where it can't (no `/proc`), the kernel chooses by size alone.
fn prefer_for_oom_kill() {
    const HIGHEST: &str = "1000";
    let _ = std::fs::write("/proc/self/oom_score_adj", HIGHEST);
}

fn serve(args: ChildArgs, ops: &[(&'static str, OpFn)]) -> Result<(), ChildError> {
    zones::install(&args.zones)?;
    let (confinement, _open) = confine::confine(&args)?;
    std::thread::scope(|scope| {
        let thread = deep_stack().spawn_scoped(scope, || answer(&args, confinement, ops))?;
        thread.join().unwrap_or_else(|_| Err(ChildError::Pipe(io::Error::other("the thread panicked"))))
    })
}

/// The purpose of a child.
enum Work {
    Statements(Box<DuckSession>),
    Expressions(Box<ExpressionServer>),
}

fn answer(args: &ChildArgs, confinement: Confinement, ops: &[(&'static str, OpFn)]) -> Result<(), ChildError> {
    let mut work = if args.expressions {
        Work::Expressions(Box::new(ExpressionServer::open(args)?))
    } else {
        Work::Statements(Box::new(DuckSession::open(args)?))
    };
    let mut out = Output;
    out.reply(&Reply::Ready { confinement })?;
    let mut tasks = io::stdin().lock();
    while let Some(bytes) = frame::read_message(&mut tasks)? {
        let task: Task = serde_json::from_slice(&bytes).map_err(io::Error::other)?;
        drop(bytes);
        match &mut work {
            Work::Statements(session) => serve_statement(session, task, ops, &mut out)?,
            Work::Expressions(server) => serve_expressions(server, task, &mut tasks, &mut out)?,
        }
    }
    Ok(())
}

fn serve_expressions(
    server: &mut ExpressionServer,
    task: Task,
    tasks: &mut impl io::Read,
    out: &mut Output,
) -> io::Result<()> {
    let reply = match task {
        Task::Check { set, skip, cpu_seconds } => server.check(&set, &skip, cpu_seconds, out),
        Task::Bind { set, cpu_seconds } => server.bind(&set, cpu_seconds),
        Task::Evaluate { rows, shapes, cpu_seconds } => match server.evaluate(rows, &shapes, cpu_seconds, tasks, out) {
            Ok(()) => return Ok(()),
            Err(error) => Err(error),
        },
        Task::Version => server.version(),
        Task::Call { name, payload } => call(&name, &payload, &[]),
        Task::Analyse { .. }
        | Task::Define { .. }
        | Task::Describe { .. }
        | Task::Rows { .. }
        | Task::Download { .. } => Err(TaskError::Internal("this process evaluates expressions".to_owned())),
    };
    out.result(reply)
}

fn serve_statement(
    session: &mut DuckSession,
    task: Task,
    ops: &[(&'static str, OpFn)],
    out: &mut Output,
) -> io::Result<()> {
    let reply = match task {
        Task::Analyse { texts, known } => {
            let known = known.iter().map(|name| name.to_ascii_lowercase()).collect();
            let results: Result<Vec<_>, TaskError> =
                texts.iter().map(|text| separate(session.analyse(text, &known))).collect();
            results.map(|results| Reply::Analysed { results })
        }
        Task::Define { relations } => session.define(&relations).map(|()| Reply::Defined),
        Task::Describe { statement } => session.describe(&statement).map(|columns| Reply::Described { columns }),
        Task::Rows { statement, limits } => match session.rows(&statement, limits) {
            Ok((columns, rows)) => {
                let (row_count, limit_reason) = (rows.count, rows.limit_reason);
                out.reply(&Reply::Rows { columns, row_count, limit_reason })?;
                return frame::write(out, FrameKind::Rows, &rows.text);
            }
            Err(error) => Err(error),
        },
        Task::Download { statement, format } => session.download(&statement, format, out).map(|()| Reply::Complete),
        Task::Call { name, payload } => call(&name, &payload, ops),
        Task::Version => {
            session.version().map(|version| Reply::Version { duckdb: version, expressions: String::new() })
        }
        Task::Check { .. } | Task::Bind { .. } | Task::Evaluate { .. } => {
            Err(TaskError::Internal("this process evaluates no expressions".to_owned()))
        }
    };
    out.result(reply)
}

/// Separates a refusal, which is a result too, from other errors.
fn separate<T>(result: Result<T, TaskError>) -> Result<Result<T, SqlError>, TaskError> {
    match result {
        Ok(value) => Ok(Ok(value)),
        Err(TaskError::Sql(error)) => Ok(Err(error)),
        Err(error @ (TaskError::Internal(_) | TaskError::Pipe(_))) => Err(error),
    }
}

//! The other end of a sandbox: a process that runs people's statements for one unit of work, or checks and evaluates
//! expressions. No other code opens DuckDB.
//!
//! Invariant: it confines itself before it opens DuckDB or starts a thread, and a person's text reaches DuckDB's
//! preparation only after the allow-list passed it.
//!
//! Must not: write a file, open a socket, or read outside its folder; print anything but frames.

mod confine;
mod database;
mod download;
mod errors;
mod expressions;
mod parameters;
mod passed;
mod probe;
mod relations;
mod result;
mod session;
mod shapes;
mod syscalls;
mod text;

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::ExitCode;

pub use confine::landlock_of_kernel;
pub use expressions::DuckExpressions;
pub use text::json_value;

use super::frame::{self, Kind};
use super::task::{Confinement, Reply, SqlError, SqlErrorKind, Task};
use super::zones;
use expressions::Server;
use session::Session;

/// An operation that the program adds: its payload to its value, or what is wrong.
pub type OpFn = fn(&serde_json::Value) -> Result<serde_json::Value, String>;

/// Stack of the thread that parses and binds, in bytes: DuckDB recurses over the tree.
const STACK_BYTES: usize = 64 << 20;

/// What a child is told at its start.
#[derive(Debug, Clone)]
pub struct ChildArgs {
    /// What DuckDB may use, in bytes.
    pub memory_bytes: u64,
    pub threads: usize,
    /// The process that it dies with.
    pub parent: u32,
    /// The folder of the time-zone data.
    pub zones: PathBuf,
    /// Whether it evaluates expressions; otherwise it runs statements over the files of its folder.
    pub expressions: bool,
}

/// Why a child can't go on; the parent reads it on stderr.
#[derive(Debug, thiserror::Error)]
enum ChildError {
    #[error("confining the process: {what}: {reason}")]
    Confine { what: &'static str, reason: String },
    #[error("DuckDB doesn't use the given time-zone data: {0}")]
    Zones(String),
    #[error("opening DuckDB: {0}")]
    Open(String),
    #[error("speaking with the parent: {0}")]
    Pipe(#[from] io::Error),
}

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

/// Asks the kernel to kill this process before its parent when memory is short. It may be raised by everybody; where it
/// can't be (no `/proc`), the kernel chooses by size alone.
fn prefer_for_oom_kill() {
    const HIGHEST: &str = "1000";
    let _ = std::fs::write("/proc/self/oom_score_adj", HIGHEST);
}

fn serve(args: ChildArgs, ops: &[(&'static str, OpFn)]) -> Result<(), ChildError> {
    zones::install(&args.zones)?;
    let (confinement, _held) = confine::confine(&args)?;
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("sql".to_owned()).stack_size(STACK_BYTES);
        let thread = thread.spawn_scoped(scope, || answer(&args, confinement, ops))?;
        thread.join().unwrap_or_else(|_| Err(ChildError::Pipe(io::Error::other("the thread panicked"))))
    })
}

/// What a child is for.
enum Work {
    Statements(Box<Session>),
    Expressions(Box<Server>),
}

fn answer(args: &ChildArgs, confinement: Confinement, ops: &[(&'static str, OpFn)]) -> Result<(), ChildError> {
    let mut work = if args.expressions {
        Work::Expressions(Box::new(Server::open(args)?))
    } else {
        Work::Statements(Box::new(Session::open(args)?))
    };
    let mut out = Out;
    out.reply(&Reply::Ready { confinement })?;
    let mut tasks = io::stdin().lock();
    while let Some(bytes) = frame::read_message(&mut tasks)? {
        let task: Task = serde_json::from_slice(&bytes).map_err(io::Error::other)?;
        drop(bytes);
        match &mut work {
            Work::Statements(session) => do_task(session, task, ops, &mut out)?,
            Work::Expressions(server) => do_expressions(server, task, &mut tasks, &mut out)?,
        }
    }
    Ok(())
}

fn do_expressions(server: &mut Server, task: Task, tasks: &mut impl io::Read, out: &mut Out) -> io::Result<()> {
    let reply = match task {
        Task::Check { set, skip, cpu_seconds } => server.check(&set, &skip, cpu_seconds, out),
        Task::Bind { set, cpu_seconds } => server.bind(&set, cpu_seconds),
        Task::Evaluate { rows, shapes, cpu_seconds } => match server.evaluate(rows, &shapes, cpu_seconds, tasks, out) {
            Ok(()) => return Ok(()),
            Err(failure) => Err(failure),
        },
        Task::Version => server.version(),
        Task::Call { name, payload } => call(&name, &payload, &[]),
        Task::Analyse { .. }
        | Task::Define { .. }
        | Task::Describe { .. }
        | Task::Rows { .. }
        | Task::Download { .. } => Err(Failure::Own("this process evaluates expressions".to_owned())),
    };
    send(reply, out)
}

/// Sends an answer, or why there is none.
fn send(reply: Result<Reply, Failure>, out: &mut Out) -> io::Result<()> {
    out.reply(&match reply {
        Ok(reply) => reply,
        Err(Failure::Sql(error)) => Reply::Refused { error },
        Err(Failure::Own(message)) => Reply::Failed { message },
        Err(Failure::Pipe(error)) => return Err(error),
    })
}

fn do_task(session: &mut Session, task: Task, ops: &[(&'static str, OpFn)], out: &mut Out) -> io::Result<()> {
    let reply = match task {
        Task::Analyse { texts, known } => {
            let known = known.iter().map(|name| name.to_ascii_lowercase()).collect();
            let results: Result<Vec<_>, Failure> =
                texts.iter().map(|text| separate(session.analyse(text, &known))).collect();
            results.map(|results| Reply::Analysed { results })
        }
        Task::Define { relations } => session.define(&relations).map(|()| Reply::Defined),
        Task::Describe { statement } => session.describe(&statement).map(|columns| Reply::Described { columns }),
        Task::Rows { statement, limits } => match session.rows(&statement, limits) {
            Ok((columns, rows)) => {
                let (row_count, limit_reason) = (rows.count, rows.limit_reason);
                out.reply(&Reply::Rows { columns, row_count, limit_reason })?;
                return frame::write(out, Kind::Rows, &rows.text);
            }
            Err(failure) => Err(failure),
        },
        Task::Download { statement, format } => session.download(&statement, format, out).map(|()| Reply::Complete),
        Task::Call { name, payload } => call(&name, &payload, ops),
        Task::Version => {
            session.version().map(|version| Reply::Version { duckdb: version, expressions: String::new() })
        }
        Task::Check { .. } | Task::Bind { .. } | Task::Evaluate { .. } => {
            Err(Failure::Own("this process evaluates no expressions".to_owned()))
        }
    };
    send(reply, out)
}

/// A refusal is an answer too.
fn separate<T>(outcome: Result<T, Failure>) -> Result<Result<T, SqlError>, Failure> {
    match outcome {
        Ok(value) => Ok(Ok(value)),
        Err(Failure::Sql(error)) => Ok(Err(error)),
        Err(failure @ (Failure::Own(_) | Failure::Pipe(_))) => Err(failure),
    }
}

fn call(name: &str, payload: &serde_json::Value, ops: &[(&'static str, OpFn)]) -> Result<Reply, Failure> {
    let found = ops.iter().find(|(known, _)| *known == name).map(|(_, op)| *op).or_else(|| probe::op(name));
    let op = found.ok_or_else(|| Failure::Own(format!("there is no operation `{name}`")))?;
    op(payload).map(|value| Reply::Called { value }).map_err(Failure::Own)
}

/// Why a task has no result.
enum Failure {
    /// The statement's fault.
    Sql(SqlError),
    /// Ours.
    Own(String),
    /// Nobody listens any more.
    Pipe(io::Error),
}

impl Failure {
    fn invalid(message: impl Into<String>) -> Self {
        Self::Sql(SqlError::new(SqlErrorKind::InvalidSql, message))
    }
}

impl From<SqlError> for Failure {
    fn from(error: SqlError) -> Self {
        Self::Sql(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Pipe(error)
    }
}

/// The pipe to the parent, without a buffer.
struct Out;

impl Out {
    fn reply(&mut self, reply: &Reply) -> io::Result<()> {
        let mut bytes = serde_json::to_vec(reply).map_err(io::Error::other)?;
        if bytes.len() > frame::MESSAGE_BYTES_MAX {
            let error = SqlError::new(SqlErrorKind::TooLarge, "the answer about this query is too large");
            bytes = serde_json::to_vec(&Reply::Refused { error }).map_err(io::Error::other)?;
        }
        frame::write(self, Kind::Message, &bytes)
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::io::write(io::stdout().as_fd(), bytes)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

//! SQL through DuckDB: the expressions of a mapping, checked against an allow-list and evaluated in process; and whole
//! statements, checked against another.
//!
//! Invariant: no text of a person is prepared before [`allow`] or [`statement`] passed it. Nothing of DuckDB is touched for a set
//! without expressions.
//!
//! The way of an expression: [`parse`] (text to tree) → [`allow`] (nodes, functions, columns) → [`check`] (types) →
//! [`query`] (into one query) → [`evaluate`] (on batches that [`scan`] shows).

mod allow;
mod bounds;
mod check;
mod engine;
mod errors;
mod evaluate;
mod names;
mod parse;
mod query;
pub mod sandbox;
mod scan;
pub mod statement;
mod tree;
mod types;

use std::sync::{Arc, OnceLock};

use engine::{Engine, Lent, Pool};
use evaluate::{DuckEvaluator, NoExpressions};
pub use names::{functions, nearest};
pub use query::identifier;
pub use types::sql_type;

use crate::ports::expressions::{Evaluator, ExpressionFailure, ExpressionProblem, ExpressionSet, Expressions};

/// Memory that one evaluator may use unless told otherwise, in bytes.
pub const EVALUATOR_MEMORY_BYTES: u64 = 256 << 20;
/// Stack of the thread that parses and binds, in bytes: DuckDB recurses over the tree.
const STACK_BYTES: usize = 64 << 20;
/// Memory of an engine that is only asked for its version, in bytes.
const VERSION_MEMORY_BYTES: u64 = 64 << 20;
/// Offsets of every zone at instants over a century of rules. (Neither sorted nor written as text, which takes twice as
/// long as the rest.)
const ZONES_HASH: &str = "SELECT to_hex(bit_xor(hash(zone, t, timezone(zone, t))))
    FROM (SELECT DISTINCT name AS zone FROM pg_timezone_names()),
         (SELECT make_timestamptz(y, m, 15, 12, 0, 0.0, 'UTC') AS t
          FROM (SELECT unnest([1910, 1942, 1975, 1995, 2010, 2024, 2026, 2037]) AS y), (SELECT unnest([1, 7]) AS m))";

/// The expressions of mappings, on DuckDB.
pub struct DuckExpressions {
    pool: Arc<Pool>,
    version: OnceLock<String>,
}

impl DuckExpressions {
    /// Each evaluator may use `memory_bytes`. DuckDB is started at the first need.
    pub fn new(memory_bytes: u64) -> Self {
        Self { pool: Pool::new(memory_bytes), version: OnceLock::new() }
    }
}

impl Default for DuckExpressions {
    fn default() -> Self {
        Self::new(EVALUATOR_MEMORY_BYTES)
    }
}

fn is_empty(set: &ExpressionSet) -> bool {
    set.computed.is_empty() && set.predicates.is_empty()
}

/// DuckDB's version, as `1.5.6`; `unknown` if it can't be started. It is started once, at the first need.
pub fn duckdb_version() -> String {
    static VERSION: OnceLock<String> = OnceLock::new();
    let find = || {
        let engine = Engine::open(VERSION_MEMORY_BYTES).ok()?;
        engine.text("SELECT version()", &[]).ok().map(|text| text.trim_start_matches('v').to_owned())
    };
    VERSION.get_or_init(|| find().unwrap_or_else(|| "unknown".to_owned())).clone()
}

/// Runs `work` on a thread whose stack holds the deepest expression and statement that are let through.
///
/// # Errors
/// Those of `work`; the thread can't be started; `work` panicked.
pub fn on_deep_stack<T: Send>(
    work: impl FnOnce() -> Result<T, ExpressionFailure> + Send,
) -> Result<T, ExpressionFailure> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("sql".to_owned()).stack_size(STACK_BYTES);
        let thread = thread
            .spawn_scoped(scope, work)
            .map_err(|error| ExpressionFailure(format!("starting a thread: {error}")))?;
        thread.join().unwrap_or_else(|_| Err(ExpressionFailure("checking the SQL panicked".to_owned())))
    })
}

fn bound(
    set: &ExpressionSet,
    engine: Lent,
) -> Result<Result<DuckEvaluator, Vec<ExpressionProblem>>, ExpressionFailure> {
    let (problems, plan) = check::analyse(engine.get()?, set)?;
    if !problems.is_empty() {
        return Ok(Err(problems));
    }
    let names = set.inputs.iter().map(|(name, _)| name.as_str()).chain(set.computed.iter().map(|c| c.name.as_str()));
    let prefix = query::free_prefix(names);
    DuckEvaluator::new(engine, set.clone(), plan, prefix).map(Ok)
}

impl Expressions for DuckExpressions {
    fn check(&self, set: &ExpressionSet) -> Result<Vec<ExpressionProblem>, ExpressionFailure> {
        if is_empty(set) {
            return Ok(Vec::new());
        }
        let engine = self.pool.lend()?;
        on_deep_stack(move || Ok(bound(set, engine)?.err().unwrap_or_default()))
    }

    fn bind(&self, set: &ExpressionSet) -> Result<Box<dyn Evaluator>, ExpressionFailure> {
        if is_empty(set) {
            return Ok(Box::new(NoExpressions));
        }
        let engine = self.pool.lend()?;
        match on_deep_stack(move || bound(set, engine))? {
            Ok(evaluator) => Ok(Box::new(evaluator)),
            Err(problems) => {
                let first = problems.into_iter().next().map(|problem| problem.message).unwrap_or_default();
                Err(ExpressionFailure(format!("the expressions have problems: {first}")))
            }
        }
    }

    fn version(&self) -> String {
        let find = || -> Result<String, ExpressionFailure> {
            let engine = self.pool.lend()?;
            let engine: &Engine = engine.get()?;
            let text = |sql| engine.text(sql, &[]).map_err(|error| engine::failure("asking for versions", &error));
            Ok(format!("duckdb {}; zones {}", text("SELECT version()")?, text(ZONES_HASH)?))
        };
        self.version.get_or_init(|| find().unwrap_or_else(|failure| format!("unknown: {failure}"))).clone()
    }
}

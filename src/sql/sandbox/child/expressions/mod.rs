//! The expressions of mappings on the DuckDB of this process.
//!
//! Must not: be used outside of a child, where the texts and the rows of strangers could end the process; services use
//! [`crate::sql::sandbox::SandboxExpressions`].
//!
//! The way of an expression: [`parse`] (text to tree) → [`crate::sql::allow`] (nodes, functions, columns) → [`check`]
//! (types) → [`crate::sql::query`] (into one query) → [`evaluate`] (on batches that [`scan`] shows).

mod check;
mod engine;
mod evaluate;
mod parse;
mod scan;
mod tasks;

use parking_lot::Mutex;

use engine::Engine;
use evaluate::DuckEvaluator;
pub(super) use tasks::Server;

use crate::ports::expressions::{
    EvaluationError, Evaluator, ExpressionFailure, ExpressionProblem, ExpressionSet, Expressions,
};
use crate::sql::errors::EngineFailure;
use crate::sql::query::Plan;
use crate::sql::sandbox::child::errors::failure;
use crate::sql::sandbox::expressions::{EVALUATOR_MEMORY_BYTES, NoExpressions};
use crate::sql::{on_deep_stack, query};

/// The expressions of mappings, on DuckDB.
pub struct DuckExpressions {
    memory_bytes: u64,
    /// The engine, while nothing uses it.
    engine: Mutex<Option<Engine>>,
}

impl DuckExpressions {
    /// Each evaluator may use `memory_bytes`. DuckDB is started at the first need.
    pub fn new(memory_bytes: u64) -> Self {
        Self { memory_bytes, engine: Mutex::default() }
    }

    /// The idle engine, or a new one.
    fn take(&self) -> Result<Engine, EngineFailure> {
        let idle = self.engine.lock().take();
        idle.map_or_else(|| Engine::open(self.memory_bytes), Ok)
    }

    /// Keeps an engine that did not fail.
    fn put_back(&self, engine: Engine) {
        *self.engine.lock() = Some(engine);
    }

    /// DuckDB's version, as `1.5.6`.
    fn duckdb_version(&self) -> Result<String, EngineFailure> {
        Ok(self.text("SELECT version()")?.trim_start_matches('v').to_owned())
    }

    fn engine_version(&self) -> Result<String, EngineFailure> {
        Ok(format!("duckdb {}", self.text("SELECT version()")?))
    }

    fn text(&self, sql: &str) -> Result<String, EngineFailure> {
        let engine = self.take()?;
        let text = engine.text(sql, &[]).map_err(|error| failure("asking for versions", &error))?;
        self.put_back(engine);
        Ok(text)
    }

    /// The problems of the expressions but those in `skip`. `next` gets the number of each before it is looked at; then, if
    /// there were no problems, counting on, that of each before it is prepared, and one more before all are together.
    fn check_without(
        &self,
        set: &ExpressionSet,
        skip: &[usize],
        next: &mut (dyn FnMut(usize) + Send),
    ) -> Result<Vec<ExpressionProblem>, EngineFailure> {
        let engine = self.take()?;
        let (problems, engine) = on_deep_stack(move || {
            let (problems, plan) = check::analyse(&engine, set, skip, next)?;
            if !problems.is_empty() {
                return Ok((problems, engine));
            }
            let evaluator = evaluator(set, engine, plan);
            let count = set.ids().count();
            for (number, id) in set.ids().enumerate().filter(|(number, _)| !skip.contains(number)) {
                next(count + number);
                evaluator.prepare_one(id)?;
            }
            if skip.is_empty() {
                next(2 * count);
                evaluator.prepare()?;
            }
            Ok((problems, evaluator.into_engine()))
        })?;
        self.put_back(engine);
        Ok(problems)
    }

    /// An evaluator, which keeps the engine.
    fn evaluator(&self, set: &ExpressionSet) -> Result<DuckEvaluator, EngineFailure> {
        let engine = self.take()?;
        on_deep_stack(move || bound(set, engine))
    }
}

impl Default for DuckExpressions {
    fn default() -> Self {
        Self::new(EVALUATOR_MEMORY_BYTES)
    }
}

fn bound(set: &ExpressionSet, engine: Engine) -> Result<DuckEvaluator, EngineFailure> {
    let (problems, plan) = check::analyse(&engine, set, &[], &mut |_| {})?;
    if let Some(first) = problems.first() {
        return Err(EngineFailure::Other(format!("the expressions have problems: {}", first.message)));
    }
    let evaluator = evaluator(set, engine, plan);
    evaluator.prepare()?;
    Ok(evaluator)
}

fn evaluator(set: &ExpressionSet, engine: Engine, plan: Plan) -> DuckEvaluator {
    let names = set.inputs.iter().map(|(name, _)| name.as_str()).chain(set.computed.iter().map(|c| c.name.as_str()));
    let prefix = query::free_prefix(names);
    DuckEvaluator::new(engine, set.clone(), plan, prefix)
}

impl Expressions for DuckExpressions {
    fn check(&self, set: &ExpressionSet) -> Result<Vec<ExpressionProblem>, ExpressionFailure> {
        if set.is_empty() {
            return Ok(Vec::new());
        }
        Ok(self.check_without(set, &[], &mut |_| {})?)
    }

    fn bind(&self, set: &ExpressionSet) -> Result<Box<dyn Evaluator>, EvaluationError> {
        if set.is_empty() {
            return Ok(Box::new(NoExpressions));
        }
        Ok(Box::new(self.evaluator(set).map_err(ExpressionFailure::from)?))
    }

    fn version(&self) -> Result<String, ExpressionFailure> {
        Ok(self.engine_version()?)
    }
}

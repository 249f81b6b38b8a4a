//! The expressions port on an in-process DuckDB.

use lakemill::ports::expressions::{
    CheckError, EvaluationError, Evaluator, ExpressionFailure, ExpressionProblem, ExpressionSet, Expressions,
    NoExpressions,
};
use lakemill::sql::bounds::EVALUATOR_MEMORY_BYTES;
use lakemill::sql::errors::EngineFailure;
use lakemill::sql::query::ColumnUses;
use lakemill::sql::{on_deep_stack, query};
use parking_lot::Mutex;

use super::check;
use super::engine::Engine;
use super::evaluate::DuckEvaluator;
use crate::child::errors::failure;

/// Checks and evaluates expressions on DuckDB.
pub struct DuckExpressions {
    memory_bytes: u64,
    /// The idle engine.
    engine: Mutex<Option<Engine>>,
}

impl DuckExpressions {
    /// Each evaluator may use `memory_bytes`. DuckDB starts on first use.
    pub fn new(memory_bytes: u64) -> Self {
        Self { memory_bytes, engine: Mutex::default() }
    }

    /// The idle engine, or a new one.
    pub fn take(&self) -> Result<Engine, EngineFailure> {
        let idle = self.engine.lock().take();
        idle.map_or_else(|| Engine::open(self.memory_bytes), Ok)
    }

    /// Keeps an engine that didn't fail.
    pub fn return_engine(&self, engine: Engine) {
        *self.engine.lock() = Some(engine);
    }

    /// DuckDB's version, as `1.5.6`.
    pub fn duckdb_version(&self) -> Result<String, EngineFailure> {
        Ok(self.text("SELECT version()")?.trim_start_matches('v').to_owned())
    }

    pub fn engine_version(&self) -> Result<String, EngineFailure> {
        Ok(format!("duckdb {}", self.text("SELECT version()")?))
    }

    pub fn text(&self, sql: &str) -> Result<String, EngineFailure> {
        let engine = self.take()?;
        let text = engine.text(sql, &[]).map_err(|error| failure("asking for versions", &error))?;
        self.return_engine(engine);
        Ok(text)
    }

    /// The problems of all expressions except those in `skip`. Calls `progress` with the number of each expression before
    /// its check; then, without problems, with `count + number` before it is prepared, and with `2 * count` before all are
    /// prepared together.
    pub fn check_without(
        &self,
        set: &ExpressionSet,
        skip: &[usize],
        progress: &mut (dyn FnMut(usize) + Send),
    ) -> Result<Vec<ExpressionProblem>, EngineFailure> {
        let engine = self.take()?;
        let (problems, engine) = on_deep_stack(move || {
            let (problems, uses) = check::analyse(&engine, set, skip, progress)?;
            if !problems.is_empty() {
                return Ok((problems, engine));
            }
            let evaluator = evaluator(set, engine, uses);
            let count = set.ids().count();
            for (number, id) in set.ids().enumerate().filter(|(number, _)| !skip.contains(number)) {
                progress(count + number);
                evaluator.prepare_one(id)?;
            }
            if skip.is_empty() {
                progress(2 * count);
                evaluator.prepare()?;
            }
            Ok((problems, evaluator.into_engine()))
        })?;
        self.return_engine(engine);
        Ok(problems)
    }

    /// An evaluator, which owns the engine.
    pub fn evaluator(&self, set: &ExpressionSet) -> Result<DuckEvaluator, EngineFailure> {
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
    let (problems, uses) = check::analyse(&engine, set, &[], &mut |_| {})?;
    if let Some(first) = problems.first() {
        return Err(EngineFailure::Other(format!("the expressions have problems: {}", first.message)));
    }
    let evaluator = evaluator(set, engine, uses);
    evaluator.prepare()?;
    Ok(evaluator)
}

fn evaluator(set: &ExpressionSet, engine: Engine, uses: ColumnUses) -> DuckEvaluator {
    let names = set.inputs.iter().map(|(name, _)| name.as_str()).chain(set.computed.iter().map(|c| c.name.as_str()));
    let prefix = query::free_prefix(names);
    DuckEvaluator::new(engine, set.clone(), uses, prefix)
}

impl Expressions for DuckExpressions {
    fn check(&self, set: &ExpressionSet) -> Result<Vec<ExpressionProblem>, CheckError> {
        if set.is_empty() {
            return Ok(Vec::new());
        }
        Ok(self.check_without(set, &[], &mut |_| {}).map_err(ExpressionFailure::from)?)
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

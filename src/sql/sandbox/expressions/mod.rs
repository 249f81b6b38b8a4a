//! Checks and evaluates the expressions of mappings in child processes, since texts and rows can crash a process or keep
//! it busy forever.
//!
//! Invariant: a child serves one config: it checks the config's expressions, or serves one run ([`Expressions::for_run`]),
//! one thread at a time; then it is ended. Its replies are validated like untrusted input. A child that crashes or reaches a
//! limit costs its own check or run only. The version, which all runs share, comes from a child that saw no expression.
//!
//! The child's own limits bound its memory and processor time; this side has the deadlines.

mod checks;
mod children;
mod evaluator;

use std::ffi::OsString;
use std::sync::Arc;

use super::{Child, ChildProgram, SandboxError, SandboxOptions};
use crate::ports::expressions::{
    CheckError, EvaluationError, Evaluator, ExpressionFailure, ExpressionProblem, ExpressionSet, Expressions,
    NoExpressions,
};
use crate::sql::bounds::EVALUATOR_MEMORY_BYTES;
use children::Children;
pub use children::{ExpressionLimits, IDLE_MAX};
use evaluator::SandboxEvaluator;

/// The expressions of mappings, in child processes.
pub struct SandboxExpressions {
    children: Arc<Children>,
}

impl SandboxExpressions {
    /// `children_max` is at least the number of evaluating threads. Starts nothing before the first use.
    pub fn new(
        program: ChildProgram,
        children_max: usize,
        environment: Vec<(OsString, OsString)>,
        limits: ExpressionLimits,
    ) -> Self {
        let options = SandboxOptions {
            program,
            folder: None,
            memory_bytes: EVALUATOR_MEMORY_BYTES,
            threads: 1,
            warm: 0,
            children_max,
            environment,
        };
        Self { children: Arc::new(Children::new(options, limits)) }
    }

    /// See [`Expressions::for_run`].
    pub fn run_view(&self) -> Self {
        Self { children: Arc::new(self.children.run_view()) }
    }

    /// Children that are borrowed now, including idle ones of runs.
    pub fn borrowed(&self) -> u64 {
        self.children.shared.borrowed()
    }

    /// DuckDB's version, as `1.5.6`.
    ///
    /// # Errors
    /// No child could be asked.
    pub fn duckdb_version(&self) -> Result<String, ExpressionFailure> {
        self.children.shared.versions().map(|versions| versions.duckdb.clone())
    }

    /// Borrows a child, to inspect its confinement.
    ///
    /// # Errors
    /// None can be started.
    pub fn child(&self) -> Result<Child, SandboxError> {
        self.children.shared.child()
    }
}

impl Expressions for SandboxExpressions {
    fn check(&self, set: &ExpressionSet) -> Result<Vec<ExpressionProblem>, CheckError> {
        let outcome = checks::check(&self.children, std::slice::from_ref(set)).pop();
        outcome.unwrap_or_else(|| Ok(Vec::new()))
    }

    fn check_all(&self, sets: &[ExpressionSet]) -> Vec<Result<Vec<ExpressionProblem>, CheckError>> {
        checks::check(&self.children, sets)
    }

    fn bind(&self, set: &ExpressionSet) -> Result<Box<dyn Evaluator>, EvaluationError> {
        if set.is_empty() {
            return Ok(Box::new(NoExpressions));
        }
        Ok(Box::new(SandboxEvaluator::bind(Arc::clone(&self.children), set.clone())?))
    }

    fn version(&self) -> Result<String, ExpressionFailure> {
        self.children.shared.versions().map(|versions| versions.expressions.clone())
    }

    fn cancel(&self) {
        self.children.cancel();
    }

    fn for_run(&self) -> Option<Box<dyn Expressions>> {
        Some(Box::new(self.run_view()))
    }
}

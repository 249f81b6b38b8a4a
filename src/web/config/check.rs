//! What is wrong with a config: its own rules here, its expressions by a worker.

use std::time::Duration;

use crate::domain::pipeline::Pipeline;
use crate::domain::pipeline::validate::examine;
use crate::domain::problem::Problem;
use crate::web::Web;

/// How long a save waits for a worker.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a look at a config gave.
pub(super) struct Checked {
    /// The pipeline, or every problem in the order of the document.
    pub(super) pipeline: Result<Pipeline, Vec<Problem>>,
    /// False: there are expressions, and no worker looked at them.
    pub(super) expressions_checked: bool,
}

impl Checked {
    pub(super) fn problems(&self) -> &[Problem] {
        self.pipeline.as_ref().err().map_or(&[], Vec::as_slice)
    }
}

/// Checks a config as far as that is possible now; it never fails.
pub(super) fn check(web: &Web, text: &str) -> Checked {
    let examined = examine(text);
    if !examined.drafts.iter().any(|draft| draft.mapping.has_expressions()) {
        return Checked { pipeline: examined.conclude(text, Vec::new()), expressions_checked: true };
    }
    let told = web.worker.validate(text.as_bytes(), PATIENCE);
    let told = told.inspect_err(|error| tracing::warn!(%error, "a config is saved without a look at its expressions"));
    let expressions_checked = told.is_ok();
    let more = told.unwrap_or_default().into_iter().filter(|problem| !examined.problems.contains(problem)).collect();
    Checked { pipeline: examined.conclude(text, more), expressions_checked }
}

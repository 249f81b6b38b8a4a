//! What is wrong with a config: its own rules here, its expressions by a worker.

use std::time::Duration;

use crate::domain::pipeline::Pipeline;
use crate::domain::pipeline::validate::examine;
use crate::domain::problem::Problem;
use crate::web::Web;
use crate::web::worker_client::WorkerClientError;

/// How long a save waits for a worker: the processor time that a check may take, several times over for busy machines.
pub(super) const PATIENCE: Duration = Duration::from_secs(15);

/// What a look at a config gave.
pub(super) struct Checked {
    /// The pipeline, or every problem in the order of the document.
    pub(super) pipeline: Result<Pipeline, Vec<Problem>>,
    pub(super) warnings: Vec<Problem>,
    /// Why no worker looked at the expressions, if there are any and none did.
    pub(super) unchecked: Option<WorkerClientError>,
}

impl Checked {
    pub(super) fn problems(&self) -> &[Problem] {
        self.pipeline.as_ref().err().map_or(&[], Vec::as_slice)
    }
}

/// Checks a config as far as that is possible now; it never fails.
pub(super) fn check(web: &Web, text: &str) -> Checked {
    let mut examined = examine(text);
    let warnings = std::mem::take(&mut examined.warnings);
    if !examined.drafts.iter().any(|draft| draft.mapping.has_expressions()) {
        return Checked { pipeline: examined.conclude(text, Vec::new()), warnings, unchecked: None };
    }
    let (told, unchecked) = match web.worker.validate(text.as_bytes(), PATIENCE) {
        Ok(found) => (found.problems, None),
        Err(error) => (Vec::new(), Some(error)),
    };
    let more = told.into_iter().filter(|problem| !examined.problems.contains(problem)).collect();
    Checked { pipeline: examined.conclude(text, more), warnings, unchecked }
}

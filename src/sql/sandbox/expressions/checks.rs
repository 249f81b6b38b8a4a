//! Checks sets in a child, and replaces it when an expression ends it.

use std::time::Instant;

use super::children::{Children, REPLY_BYTES_MAX, TaskFailure};
use crate::domain::problem::ProblemKind;
use crate::ports::expressions::{CheckError, ExpressionFailure, ExpressionId, ExpressionProblem, ExpressionSet};
use crate::sql::sandbox::task::{Reply, Task};
use crate::sql::sandbox::{Child, SandboxError};

/// Children that one check may end.
const ENDED_MAX: usize = 8;

type Outcome = Result<Vec<ExpressionProblem>, CheckError>;

/// The problems of each set. After too many ended children the rest isn't checked.
pub(super) fn check(children: &Children, sets: &[ExpressionSet]) -> Vec<Outcome> {
    let mut checks = Checks { children, child: None, ended: 0, started: Instant::now() };
    let outcomes = sets.iter().map(|set| checks.set(set)).collect();
    if let Some(child) = checks.child {
        children.return_child(child);
    }
    outcomes
}

struct Checks<'a> {
    children: &'a Children,
    child: Option<Child>,
    ended: usize,
    started: Instant,
}

impl Checks<'_> {
    fn set(&mut self, set: &ExpressionSet) -> Outcome {
        let ids: Vec<ExpressionId> = set.ids().collect();
        let (mut skip, mut problems) = (Vec::new(), Vec::new());
        while skip.len() < ids.len() && !self.is_exhausted() {
            let mut child = match self.child.take() {
                Some(child) => child,
                None => self.children.take_for_check().map_err(unavailable)?,
            };
            let limits = &self.children.shared.limits;
            let more = ids.len() as u64 / limits.expressions_per_cpu_second.max(1);
            let cpu_seconds = limits.check_cpu_seconds + more;
            let deadline = Instant::now() + limits.check_wall;
            let task = Task::Check { set: set.clone(), skip: skip.clone(), cpu_seconds };
            let mut at = None;
            let error = match ask(&mut child, &task, &ids, deadline, &mut at) {
                Ok(found) => {
                    self.child = Some(child);
                    problems.extend(found);
                    break;
                }
                Err(error) => error,
            };
            let cause = match TaskFailure::of(error, cpu_seconds) {
                TaskFailure::Unavailable(reason) => return Err(CheckError::Unavailable { reason }),
                TaskFailure::Engine(cause) | TaskFailure::Ended { cause, .. } => cause,
            };
            self.ended += 1;
            tracing::warn!(%cause, "expression check ended its process");
            // Numbers below `2 * n` identify an expression being checked or prepared; `2 * n` means all together.
            match at.filter(|number| *number < 2 * ids.len()).map(|number| number % ids.len()) {
                Some(number) => {
                    skip.push(number);
                    problems.push(too_costly(ids[number], &cause));
                }
                None => return Err(ExpressionFailure(cause).into()),
            }
        }
        problems.sort_by_key(|problem| problem.id);
        Ok(problems)
    }

    fn is_exhausted(&self) -> bool {
        self.ended >= ENDED_MAX
            || (self.ended > 0 && self.started.elapsed() > self.children.shared.limits.replacement_wall)
    }
}

/// No expression has been sent to the child yet.
fn unavailable(error: SandboxError) -> CheckError {
    CheckError::Unavailable { reason: error.to_string() }
}

fn too_costly(id: ExpressionId, cause: &str) -> ExpressionProblem {
    let message = format!("checking this expression crashed its process: {cause}; use smaller constants in it");
    ExpressionProblem { id, kind: ProblemKind::InvalidExpression, message }
}

/// Has a child check expressions; `at` is its last progress.
fn ask(
    child: &mut Child,
    task: &Task,
    ids: &[ExpressionId],
    deadline: Instant,
    at: &mut Option<usize>,
) -> Result<Vec<ExpressionProblem>, SandboxError> {
    child.send(task, deadline)?;
    loop {
        match child.reply_within(REPLY_BYTES_MAX, deadline)?.into_result()? {
            Reply::Checking { number } if number <= 2 * ids.len() && at.is_none_or(|before| before < number) => {
                *at = Some(number);
            }
            Reply::Checked { problems } if problems.iter().all(|problem| ids.contains(&problem.id)) => {
                return Ok(problems);
            }
            other => return Err(child.unexpected_reply(&other, "the outcome of a check")),
        }
    }
}

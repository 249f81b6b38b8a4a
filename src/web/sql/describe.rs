//! Binds statements to empty tables.
//!
//! Invariant: a statement that crashes its child affects no other; all share one deadline.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::borrow::{BorrowedChild, PREPARE_MAX, checked, may_list_tables};
use super::cancellation::Cancellation;
use super::failure::{child_survives, from_sandbox, problem};
use super::others::OtherPipelines;
use super::run::Sql;
use super::types::{ResultColumn, SqlProblem, Statement, TableShape, statement};
use crate::http::{ApiError, ErrorCode};
use crate::sql::sandbox::{Analysis, Relation, RelationColumn, SandboxError, SqlError};
use crate::sync::Permit;

/// Timeout for binding a statement, and for defining tables.
const BIND_MAX: Duration = Duration::from_secs(10);
/// Timeout for binding all statements of a request.
const DESCRIBE_MAX: Duration = Duration::from_secs(60);
/// Most statements, and bytes of them, that are analysed in one message to a child.
const BATCH_STATEMENTS_MAX: usize = 100;
const BATCH_BYTES_MAX: usize = 4 << 20;

type Described = Result<Vec<ResultColumn>, SqlProblem>;

impl Sql {
    /// Binds statements to empty tables of these shapes, without running them.
    ///
    /// # Errors
    /// `overloaded`, `internal`; a statement's own error is its result.
    pub fn describe(&self, tables: &[TableShape], statements: &[Statement]) -> Result<Vec<Described>, ApiError> {
        let found = self.describe_until(tables, statements, Instant::now() + DESCRIBE_MAX)?;
        let unchecked = || {
            let seconds = DESCRIBE_MAX.as_secs();
            let message = format!("not checked: all queries together took longer than {seconds} s");
            Err(SqlProblem { message, position: None })
        };
        Ok(found.into_iter().map(|one| one.unwrap_or_else(unchecked)).collect())
    }

    /// Like [`Sql::describe`]; `None` for a statement that wasn't reached before `until`.
    ///
    /// # Errors
    /// `overloaded`, `internal`.
    pub fn describe_until(
        &self,
        tables: &[TableShape],
        statements: &[Statement],
        until: Instant,
    ) -> Result<Vec<Option<Described>>, ApiError> {
        let mut work = Binding {
            sql: self,
            permit: self.permit()?,
            tables,
            names: tables.iter().map(|table| table.name.as_str()).collect(),
            pipelines: OtherPipelines::new(&self.catalogs),
            others: BTreeMap::new(),
            statements,
            until,
            borrowed: None,
            outcomes: statements.iter().map(|_| None).collect(),
        };
        let allowed = work.analyse()?;
        work.bind(&allowed)?;
        Ok(work.outcomes)
    }
}

/// The statements of a request being bound.
struct Binding<'a> {
    sql: &'a Sql,
    permit: Arc<Permit>,
    tables: &'a [TableShape],
    names: Vec<&'a str>,
    pipelines: OtherPipelines<'a>,
    /// Tables of other pipelines that statements name, by their names in a child.
    others: BTreeMap<String, TableShape>,
    statements: &'a [Statement],
    until: Instant,
    /// The current child.
    borrowed: Option<BorrowedChild>,
    outcomes: Vec<Option<Described>>,
}

impl Binding<'_> {
    fn child(&mut self) -> Result<BorrowedChild, ApiError> {
        self.borrowed.take().map_or_else(|| self.sql.child(&self.permit, &Cancellation::default()), Ok)
    }

    fn is_late(&self) -> bool {
        Instant::now() >= self.until
    }

    fn within(&self, longest: Duration) -> Instant {
        (Instant::now() + longest).min(self.until)
    }

    /// The tables that each allowed statement names. A failed batch is analysed one by one.
    fn analyse(&mut self) -> Result<Vec<(usize, Vec<String>)>, ApiError> {
        let mut batches = batches(self.statements);
        let mut allowed = Vec::new();
        while let Some(batch) = batches.pop_front() {
            if self.is_late() {
                break;
            }
            let texts: Vec<&str> = self.statements[batch.clone()].iter().map(|one| one.sql.as_str()).collect();
            let mut borrowed = self.child()?;
            match borrowed.child.analyse(&texts, &self.names, self.within(PREPARE_MAX)) {
                Ok(analyses) => {
                    for (at, analysis) in batch.zip(analyses) {
                        match self.named(analysis)? {
                            Ok(named) => allowed.push((at, named)),
                            Err(refused) => self.outcomes[at] = Some(Err(refused)),
                        }
                    }
                    self.borrowed = Some(borrowed);
                }
                Err(_) if batch.len() > 1 => batch.rev().for_each(|at| batches.push_front(at..at + 1)),
                Err(error) => self.fail(batch.start, error)?,
            }
        }
        Ok(allowed)
    }

    /// The tables that a statement names; those of other pipelines are looked up.
    fn named(&mut self, analysis: Result<Analysis, SqlError>) -> Result<Result<Vec<String>, SqlProblem>, ApiError> {
        let named = match checked(analysis, &self.names) {
            Ok(Analysis { tables, .. }) => tables,
            Err(refused) => return Ok(Err(refused)),
        };
        match self.pipelines.tables(&named) {
            Ok(found) => self.others.extend(found.into_iter().map(|other| (other.name(), other.shape()))),
            Err(error) if error.code() == ErrorCode::InvalidSql => {
                return Ok(Err(SqlProblem { message: error.message().to_owned(), position: None }));
            }
            Err(error) => return Err(error),
        }
        Ok(Ok(named))
    }

    fn bind(&mut self, allowed: &[(usize, Vec<String>)]) -> Result<(), ApiError> {
        let all = allowed.iter().any(|(at, _)| may_list_tables(&self.statements[*at].sql));
        let is_named = |name: &str| allowed.iter().any(|(_, named)| named.iter().any(|n| n.eq_ignore_ascii_case(name)));
        let wanted = self.tables.iter().filter(|table| all || is_named(&table.name));
        let relations: Vec<Relation> = wanted.chain(self.others.values()).map(relation).collect();
        let mut is_defined = false;
        for (at, _) in allowed {
            if self.is_late() {
                break;
            }
            let mut borrowed = self.child()?;
            if !is_defined {
                match borrowed.child.define(&relations, self.within(BIND_MAX)) {
                    Err(_) if self.is_late() => break,
                    outcome => outcome.map_err(from_sandbox)?,
                }
                is_defined = true;
            }
            match borrowed.child.describe(&statement(&self.statements[*at]), self.within(BIND_MAX)) {
                Ok(columns) => {
                    let columns = columns.into_iter().map(|c| ResultColumn { name: c.name, ty: c.ty }).collect();
                    self.outcomes[*at] = Some(Ok(columns));
                    self.borrowed = Some(borrowed);
                }
                Err(error) => {
                    is_defined = child_survives(&error);
                    self.borrowed = is_defined.then_some(borrowed);
                    self.fail(*at, error)?;
                }
            }
        }
        Ok(())
    }

    /// Records a statement's failure, unless the shared deadline caused it.
    fn fail(&mut self, at: usize, error: SandboxError) -> Result<(), ApiError> {
        match error {
            SandboxError::Sql(error) if child_survives(&SandboxError::Sql(error.clone())) || !self.is_late() => {
                self.outcomes[at] = Some(Err(problem(&error)));
                Ok(())
            }
            SandboxError::Sql(_) => Ok(()),
            error => Err(from_sandbox(error)),
        }
    }
}

/// Splits statements into batches.
fn batches(statements: &[Statement]) -> VecDeque<Range<usize>> {
    let mut batches = VecDeque::new();
    let (mut start, mut bytes) = (0, 0);
    for (at, statement) in statements.iter().enumerate() {
        if at > start && (at - start >= BATCH_STATEMENTS_MAX || bytes + statement.sql.len() > BATCH_BYTES_MAX) {
            batches.push_back(start..at);
            (start, bytes) = (at, 0);
        }
        bytes += statement.sql.len();
    }
    if start < statements.len() {
        batches.push_back(start..statements.len());
    }
    batches
}

fn relation(table: &TableShape) -> Relation {
    let columns = table.columns.iter().map(|column| RelationColumn {
        name: column.name.clone(),
        ty: column.ty.to_string(),
        nullable: column.nullable,
        partition: false,
    });
    Relation { name: table.name.clone(), columns: columns.collect(), files: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lengths: &[usize]) -> Vec<Range<usize>> {
        let one = |length: &usize| Statement { sql: "x".repeat(*length), params: Vec::new() };
        batches(&lengths.iter().map(one).collect::<Vec<_>>()).into()
    }

    #[test]
    fn batches_are_bounded_and_complete() {
        assert!(of(&[]).is_empty());
        assert_eq!(of(&[1; 250]), [0..100, 100..200, 200..250]);
        let half = BATCH_BYTES_MAX / 2;
        assert_eq!(of(&[half, half, 1, BATCH_BYTES_MAX + 1, 1]), [0..2, 2..3, 3..4, 4..5]);
    }
}

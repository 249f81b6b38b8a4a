//! Binds statements against tables without rows.
//!
//! Invariant: a statement that ends its child costs itself alone; all together end by one deadline.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::super::failure::acquire;
use super::child::{Lent, PREPARE_MAX, may_list_tables, named_tables};
use super::failure::{from_sandbox, problem, survives};
use super::{ResultColumn, SqlProblem, Statement, TableShape, statement};
use crate::http::ApiError;
use crate::sql::sandbox::{Relation, RelationColumn, SandboxError};
use crate::sync::Permit;
use crate::web::Web;
use crate::web::query::running::Stop;

/// Longest time in which one statement is bound, and in which tables are made known.
const BIND_MAX: Duration = Duration::from_secs(10);
/// Longest time in which all statements of a request are bound.
const DESCRIBE_MAX: Duration = Duration::from_secs(60);
/// Statements that are taken apart in one piece, and their bytes: a piece is one message to a child.
const PIECE_STATEMENTS_MAX: usize = 100;
const PIECE_BYTES_MAX: usize = 4 << 20;

type Described = Result<Vec<ResultColumn>, SqlProblem>;

impl Web {
    /// Binds statements against empty tables of these shapes, without running any.
    ///
    /// # Errors
    /// `overloaded`, `internal`; a statement's own error is its result.
    pub fn describe(&self, tables: &[TableShape], statements: &[Statement]) -> Result<Vec<Described>, ApiError> {
        let found = self.describe_until(tables, statements, Instant::now() + DESCRIBE_MAX)?;
        let unseen = || {
            let seconds = DESCRIBE_MAX.as_secs();
            let message = format!("it was not looked at: all queries together took longer than {seconds} s");
            Err(SqlProblem { message, position: None })
        };
        Ok(found.into_iter().map(|one| one.unwrap_or_else(unseen)).collect())
    }

    /// As [`Web::describe`]; `None` for a statement that wasn't reached in time.
    ///
    /// # Errors
    /// `overloaded`, `internal`.
    pub(in crate::web) fn describe_until(
        &self,
        tables: &[TableShape],
        statements: &[Statement],
        until: Instant,
    ) -> Result<Vec<Option<Described>>, ApiError> {
        let mut work = Binding {
            web: self,
            place: Arc::new(acquire(&self.gate)?),
            tables,
            names: tables.iter().map(|table| table.name.as_str()).collect(),
            statements,
            until,
            lent: None,
            outcomes: statements.iter().map(|_| None).collect(),
        };
        let allowed = work.analyse()?;
        work.bind(&allowed)?;
        Ok(work.outcomes)
    }
}

/// The statements of one request at work.
struct Binding<'a> {
    web: &'a Web,
    place: Arc<Permit>,
    tables: &'a [TableShape],
    names: Vec<&'a str>,
    statements: &'a [Statement],
    until: Instant,
    /// The child at hand, which lives.
    lent: Option<Lent>,
    outcomes: Vec<Option<Described>>,
}

impl Binding<'_> {
    fn child(&mut self) -> Result<Lent, ApiError> {
        self.lent.take().map_or_else(|| self.web.child(&self.place, &Stop::default()), Ok)
    }

    fn is_late(&self) -> bool {
        Instant::now() >= self.until
    }

    fn within(&self, longest: Duration) -> Instant {
        (Instant::now() + longest).min(self.until)
    }

    /// Which tables each statement that is allowed names. A piece that fails is taken apart one by one.
    fn analyse(&mut self) -> Result<Vec<(usize, Vec<String>)>, ApiError> {
        let mut pieces = pieces(self.statements);
        let mut allowed = Vec::new();
        while let Some(piece) = pieces.pop_front() {
            if self.is_late() {
                break;
            }
            let texts: Vec<&str> = self.statements[piece.clone()].iter().map(|one| one.sql.as_str()).collect();
            let mut lent = self.child()?;
            match lent.child.analyse(&texts, &self.names, self.within(PREPARE_MAX)) {
                Ok(analyses) => {
                    for (at, analysis) in piece.zip(&analyses) {
                        match named_tables(analysis, &self.names) {
                            Ok(named) => allowed.push((at, named)),
                            Err(refused) => self.outcomes[at] = Some(Err(refused)),
                        }
                    }
                    self.lent = Some(lent);
                }
                Err(_) if piece.len() > 1 => piece.rev().for_each(|at| pieces.push_front(at..at + 1)),
                Err(error) => self.fail(piece.start, error)?,
            }
        }
        Ok(allowed)
    }

    fn bind(&mut self, allowed: &[(usize, Vec<String>)]) -> Result<(), ApiError> {
        let all = allowed.iter().any(|(at, _)| may_list_tables(&self.statements[*at].sql));
        let is_named = |name: &str| allowed.iter().any(|(_, named)| named.iter().any(|n| n.eq_ignore_ascii_case(name)));
        let wanted = self.tables.iter().filter(|table| all || is_named(&table.name));
        let relations: Vec<Relation> = wanted.map(relation).collect();
        let mut knows = false;
        for (at, _) in allowed {
            if self.is_late() {
                break;
            }
            let mut lent = self.child()?;
            if !knows {
                match lent.child.define(&relations, self.within(BIND_MAX)) {
                    Err(_) if self.is_late() => break,
                    outcome => outcome.map_err(from_sandbox)?,
                }
                knows = true;
            }
            match lent.child.describe(&statement(&self.statements[*at]), self.within(BIND_MAX)) {
                Ok(columns) => {
                    let columns = columns.into_iter().map(|c| ResultColumn { name: c.name, ty: c.ty }).collect();
                    self.outcomes[*at] = Some(Ok(columns));
                    self.lent = Some(lent);
                }
                Err(error) => {
                    knows = survives(&error);
                    self.lent = knows.then_some(lent);
                    self.fail(*at, error)?;
                }
            }
        }
        Ok(())
    }

    /// Notes a statement's failure, unless it is that of the time that it was left.
    fn fail(&mut self, at: usize, error: SandboxError) -> Result<(), ApiError> {
        match error {
            SandboxError::Sql(error) if survives(&SandboxError::Sql(error.clone())) || !self.is_late() => {
                self.outcomes[at] = Some(Err(problem(&error)));
                Ok(())
            }
            SandboxError::Sql(_) => Ok(()),
            error => Err(from_sandbox(error)),
        }
    }
}

/// The statements in pieces that a child is asked about at once.
fn pieces(statements: &[Statement]) -> VecDeque<Range<usize>> {
    let mut pieces = VecDeque::new();
    let (mut start, mut bytes) = (0, 0);
    for (at, statement) in statements.iter().enumerate() {
        if at > start && (at - start >= PIECE_STATEMENTS_MAX || bytes + statement.sql.len() > PIECE_BYTES_MAX) {
            pieces.push_back(start..at);
            (start, bytes) = (at, 0);
        }
        bytes += statement.sql.len();
    }
    if start < statements.len() {
        pieces.push_back(start..statements.len());
    }
    pieces
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
        pieces(&lengths.iter().map(one).collect::<Vec<_>>()).into()
    }

    #[test]
    fn pieces_are_bounded_in_number_and_in_bytes_and_lose_none() {
        assert!(of(&[]).is_empty());
        assert_eq!(of(&[1; 250]), [0..100, 100..200, 200..250]);
        let half = PIECE_BYTES_MAX / 2;
        assert_eq!(of(&[half, half, 1, PIECE_BYTES_MAX + 1, 1]), [0..2, 2..3, 3..4, 4..5]);
    }
}

//! Runs several statements of one request.
//!
//! Invariant: every statement gets its own result or its own error. When one ends its child, the others go on in a fresh
//! one; when what they share can't be had, each is tried alone.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use super::super::failure::acquire;
use super::child::{Wanted, may_be_of_one, may_list_tables, tables_or_error};
use super::failure::{cancelled, from_sandbox, survives};
use super::{LimitReason, ResultColumn, RowLimits, Rows, Statement, statement};
use crate::domain::name::{QueryId, Slug};
use crate::http::{ApiError, ErrorCode};
use crate::sql::sandbox;
use crate::sync::Permit;
use crate::web::Web;
use crate::web::query::running::Stop;
use crate::web::tables::catalog::Catalog;

/// All statements of a request together may take as long as this many alone.
pub const TIMEOUTS_MAX: u32 = 4;

type Outcome = Result<Rows, ApiError>;

/// What statements gave, and the tables that they were run over.
pub struct Ran {
    pub outcomes: Vec<Outcome>,
    pub catalog: Arc<Catalog>,
}

/// The statements of one request at work.
struct Work<'a> {
    web: &'a Web,
    pipeline: &'a Slug,
    catalog: Arc<Catalog>,
    statements: &'a [Statement],
    limits: RowLimits,
    stop: &'a Stop,
    place: Arc<Permit>,
    until: Instant,
    outcomes: Vec<Option<Outcome>>,
    /// Statements that are still to be run, those together that share a child.
    groups: VecDeque<Vec<usize>>,
}

impl Web {
    /// Runs statements over the pipeline's tables. One that fails, runs away or is killed doesn't take the others down.
    /// `query_id`: by which they can be cancelled, all at once.
    ///
    /// # Errors
    /// `pipeline_not_found`, `invalid_request` for a malformed id, `already_exists` for one that is in use, `overloaded`, `s3_error`, `bucket_not_found`, `kv_unavailable`; a
    /// statement's own error is its result.
    pub fn run(
        &self,
        pipeline: &Slug,
        statements: &[Statement],
        limits: RowLimits,
        query_id: Option<&str>,
    ) -> Result<Ran, ApiError> {
        let ticket = query_id.map(|id| self.running.announce(pipeline, &self::query_id(id)?)).transpose()?;
        let stop = ticket.as_ref().map(|ticket| ticket.stop.clone()).unwrap_or_default();
        let began = Instant::now();
        let catalog = self.catalog(pipeline)?;
        let work = Work {
            web: self,
            pipeline,
            catalog: Arc::clone(&catalog),
            statements,
            limits,
            stop: &stop,
            place: Arc::new(acquire(&self.gate)?),
            until: Instant::now() + self.sql.timeout * TIMEOUTS_MAX,
            outcomes: statements.iter().map(|_| None).collect(),
            groups: VecDeque::from([(0..statements.len()).collect()]),
        };
        let outcomes = work.run();
        self.counts.queried(began.elapsed());
        match &outcomes {
            Ok(outcomes) => outcomes.iter().for_each(|outcome| self.counts.statement(outcome)),
            Err(error) => statements.iter().for_each(|_| self.counts.statement::<()>(&Err(error.clone()))),
        }
        Ok(Ran { outcomes: outcomes?, catalog })
    }
}

/// A query's id from outside.
///
/// # Errors
/// `invalid_request`.
pub fn query_id(text: &str) -> Result<QueryId, ApiError> {
    QueryId::parse(text).map_err(|error| ApiError::new(ErrorCode::InvalidRequest, error.to_string()))
}

impl Work<'_> {
    fn run(mut self) -> Result<Vec<Outcome>, ApiError> {
        while let Some(group) = self.groups.pop_front() {
            if group.is_empty() {
                continue;
            }
            if self.stop.is_stopped() {
                self.end(&group, cancelled);
            } else if Instant::now() >= self.until {
                self.end(&group, || ApiError::of(ErrorCode::QueryTimeout));
            } else if let Err(error) = self.run_group(&group) {
                if self.outcomes.iter().all(Option::is_none) {
                    return Err(error);
                }
                // Some have their results; what kept the others from theirs is told of each.
                self.end(&group, || error.clone());
            }
        }
        let missing = || Err(ApiError::internal("a statement has no outcome"));
        Ok(self.outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(missing)).collect())
    }

    fn end(&mut self, group: &[usize], error: impl Fn() -> ApiError) {
        for at in group {
            self.outcomes[*at].get_or_insert_with(|| Err(error()));
        }
    }

    /// Runs statements in one child, or puts back into `groups` what is to be tried again.
    fn run_group(&mut self, group: &[usize]) -> Result<(), ApiError> {
        let mut lent = self.web.child(&self.place, self.stop)?;
        let texts: Vec<&str> = group.iter().map(|at| self.statements[*at].sql.as_str()).collect();
        let catalog = Arc::clone(&self.catalog);
        let names = catalog.names();
        let analyses = match lent.analyse(&texts, &names) {
            Ok(analyses) => analyses,
            Err(error) => return self.alone(group, error),
        };
        let (mut allowed, mut tables, mut all) = (Vec::new(), Vec::new(), false);
        for (at, analysis) in group.iter().zip(&analyses) {
            match tables_or_error(analysis, &names) {
                Ok(named) => {
                    tables.extend(named);
                    all |= may_list_tables(&self.statements[*at].sql);
                    allowed.push(*at);
                }
                Err(error) => self.outcomes[*at] = Some(Err(error)),
            }
        }
        if allowed.is_empty() {
            return Ok(());
        }
        let wanted = Wanted { pipeline: self.pipeline, catalog: &self.catalog, named: &tables, all, span: None };
        let opened = self.web.open(lent, &wanted, self.until, self.stop);
        let (mut lent, opened) = match opened {
            Ok(opened) => opened,
            Err(error) => return self.alone(&allowed, error),
        };
        for (nth, at) in allowed.iter().enumerate() {
            let deadline = (Instant::now() + self.web.sql.timeout).min(self.until);
            let limits = sandbox::RowLimits { rows: self.limits.rows, bytes: self.limits.bytes };
            match lent.child.rows(&statement(&self.statements[*at]), limits, deadline) {
                Ok(found) => self.outcomes[*at] = Some(Ok(rows(found, opened.publishing))),
                Err(error) => {
                    let goes_on = survives(&error);
                    self.outcomes[*at] = Some(Err(from_sandbox(error)));
                    if !goes_on {
                        self.groups.push_front(allowed[nth + 1..].to_vec());
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    /// Statements that failed together are tried one by one, if that may help.
    fn alone(&mut self, group: &[usize], error: ApiError) -> Result<(), ApiError> {
        match (group, may_be_of_one(&error)) {
            ([at], _) if error.status() < 500 || may_be_of_one(&error) => self.outcomes[*at] = Some(Err(error)),
            (_, true) => self.groups.extend(group.iter().map(|at| vec![*at])),
            (_, false) => return Err(error),
        }
        Ok(())
    }
}

fn rows(found: sandbox::Rows, publishing: bool) -> Rows {
    let column = |column: sandbox::ResultColumn| ResultColumn { name: column.name, ty: column.ty };
    Rows {
        columns: found.columns.into_iter().map(column).collect(),
        rows: found.rows,
        row_count: found.row_count,
        limit_reason: found.limit_reason.map(|reason| match reason {
            sandbox::LimitReason::Rows => LimitReason::Rows,
            sandbox::LimitReason::Bytes => LimitReason::Bytes,
        }),
        publishing,
    }
}

//! Runs the statements of a request.
//!
//! Invariant: every statement gets its own result or error. If one crashes its child, the others continue in a new one; if
//! a shared step fails, each is tried alone.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::borrow::{
    BorrowedChild, OpenedTables, PREPARE_MAX, StagedFolder, TablesRequest, checked_or_error, may_concern_one_statement,
    may_list_tables, return_tables,
};
use super::cancellation::{Cancellation, QueryRegistry};
use super::failure::{cancelled, child_survives, from_sandbox};
use super::others::{OtherPipelines, OtherTable};
use super::results::{ResultKey, Results};
use super::types::{RowLimits, Rows, Statement, TableShape, statement};
use crate::domain::name::{QueryId, Slug};
use crate::domain::table_log::history::AsOf;
use crate::http::{ApiError, ErrorCode};
use crate::ports::queries::RunningQueries;
use crate::sql::sandbox::{Analysis, Relation, ResultRows, Sandbox};
use crate::sync::{Permit, Semaphore};
use crate::web::cache::Deadline;
use crate::web::counts::Counts;
use crate::web::failure::acquire;
use crate::web::snapshot::{RequestedTable, Snapshots, TableSnapshot};
use crate::web::tables::catalog::{Catalog, relation_columns};
use crate::web::tables::catalogs::Catalogs;

/// Timeout of all statements of a request, in multiples of one statement's.
pub const TIMEOUTS_MAX: u32 = 4;

/// Longest time of a download, from the start of its query to the last byte.
pub const DOWNLOAD_MAX: Duration = Duration::from_secs(900);
/// Queries that may wait for a child, in addition to those that have one; waiting ones must not occupy all handlers.
const QUERIES_WAITING_MAX: usize = 16;
/// Longest wait for a child.
const CHILD_WAIT: Duration = Duration::from_secs(10);

type Outcome = Result<Rows, ApiError>;

/// The outcomes of statements, and the catalog they used.
pub struct QueryOutcomes {
    pub outcomes: Vec<Outcome>,
    pub catalog: Arc<Catalog>,
}

/// The running statements of a request.
struct Work<'a> {
    sql: &'a Sql,
    pipeline: &'a Slug,
    catalog: Arc<Catalog>,
    statements: &'a [Statement],
    limits: RowLimits,
    as_of: Option<AsOf>,
    cancellation: &'a Cancellation,
    permit: Arc<Permit>,
    until: Instant,
    outcomes: Vec<Option<Outcome>>,
    /// Statements still to be run, grouped by child.
    groups: VecDeque<Vec<usize>>,
}

/// Limits of SQL.
pub struct Limits {
    /// Most borrowed children.
    pub children_max: usize,
    /// Timeout of a statement.
    pub timeout: Duration,
}

/// Runs SQL over a pipeline's tables.
pub struct Sql {
    pub timeout: Duration,
    pub sandbox: Arc<Sandbox>,
    pub catalogs: Arc<Catalogs>,
    pub registry: QueryRegistry,
    snapshots: Arc<Snapshots>,
    results: Results,
    counts: Arc<Counts>,
    /// Permits of concurrent queries, including waiting ones.
    permits: Semaphore,
}

impl Sql {
    pub fn new(
        limits: Limits,
        kv: Arc<dyn RunningQueries>,
        sandbox: Arc<Sandbox>,
        catalogs: Arc<Catalogs>,
        snapshots: Arc<Snapshots>,
        counts: Arc<Counts>,
    ) -> Self {
        let Limits { children_max, timeout } = limits;
        // Two rounds of timeouts: until the files are fetched, and until the query has run.
        let registry = QueryRegistry::new(kv, timeout * TIMEOUTS_MAX * 2 + DOWNLOAD_MAX);
        let permits = Semaphore::new(children_max + QUERIES_WAITING_MAX);
        let results = Results::new();
        Self { timeout, sandbox, catalogs, registry, snapshots, results, counts, permits }
    }

    /// Acquires the permit of a query.
    ///
    /// # Errors
    /// `overloaded`.
    pub fn permit(&self) -> Result<Arc<Permit>, ApiError> {
        acquire(&self.permits).map(Arc::new)
    }

    /// The shapes of a pipeline's tables.
    ///
    /// # Errors
    /// `pipeline_not_found`, `s3_error`, `bucket_not_found`.
    pub fn shapes(&self, pipeline: &Slug) -> Result<Vec<TableShape>, ApiError> {
        Ok(self.catalogs.catalog(pipeline)?.shapes())
    }

    /// Borrows a child.
    ///
    /// # Errors
    /// `overloaded`, `query_cancelled`, `internal`.
    pub fn child(&self, permit: &Arc<Permit>, cancellation: &Cancellation) -> Result<BorrowedChild, ApiError> {
        if cancellation.is_cancelled() {
            return Err(cancelled());
        }
        let child = self.sandbox.child(CHILD_WAIT).map_err(from_sandbox)?;
        cancellation.attach(child.cancel_handle());
        Ok(BorrowedChild { child, permit: Arc::clone(permit) })
    }

    /// Stages tables in a child's folder and defines them, those of other pipelines in schemas with their names. When the
    /// child ends, the files are kept for later queries. They are fetched until `until`; if that takes long the child is
    /// returned, and another borrowed afterwards.
    ///
    /// # Errors
    /// Errors of [`Snapshots::take`] and of the child.
    pub fn open(
        &self,
        borrowed: BorrowedChild,
        wanted: &TablesRequest<'_>,
        until: Instant,
        cancellation: &Cancellation,
    ) -> Result<(BorrowedChild, OpenedTables), ApiError> {
        let TablesRequest { pipeline, catalog, named, others, all, span, as_of } = *wanted;
        let is_named = |name: &str| named.iter().any(|other| other.eq_ignore_ascii_case(name));
        let own = catalog.tables.iter().map(|table| (RequestedTable { pipeline, table }, table.name.clone()));
        let others = others.iter().map(|other| (other.wanted(), other.name()));
        let (tables, names): (Vec<_>, Vec<_>) = own.chain(others).filter(|(_, name)| is_named(name)).unzip();
        if matches!(as_of, Some(AsOf::Sequence(_)))
            && (tables.len() > 1 || tables.iter().any(|wanted| wanted.table.is_system()))
        {
            let message = "a sequence is a version of one table; give `as_of` a time for several";
            return Err(ApiError::new(ErrorCode::InvalidRequest, message));
        }
        let permit = Arc::clone(&borrowed.permit);
        let deadline = Deadline { until, stopped: &|| cancellation.is_cancelled() };
        let (kept, snapshot) = borrowed.while_idle(|| self.snapshots.take(&tables, span, as_of, deadline));
        let TableSnapshot { mut relations, rows, skipped, staged } = snapshot?;
        let mut borrowed = match kept {
            Some(borrowed) => borrowed,
            None => self.child(&permit, cancellation)?,
        };
        let mut folders = Vec::new();
        for ((relation, staged), name) in relations.iter_mut().zip(staged).zip(names) {
            let table_name = std::mem::replace(&mut relation.name, name.clone());
            for file in &mut relation.files {
                file.replace_range(..table_name.len(), &name);
            }
            folders.push(StagedFolder { name, table_name, staged });
        }
        borrowed.take_over(&folders)?;
        if all {
            let others = catalog.tables.iter().filter(|table| !is_named(&table.name));
            relations.extend(others.map(|table| Relation {
                name: table.name.clone(),
                columns: relation_columns(&table.columns),
                files: Vec::new(),
            }));
        }
        borrowed.child.define(&relations, Instant::now() + PREPARE_MAX).map_err(from_sandbox)?;
        // Files that failed to be defined aren't reused.
        let cache = Arc::clone(self.snapshots.cache());
        borrowed.child.on_exit(move |folder| return_tables(&cache, folder, folders));
        Ok((borrowed, OpenedTables { relations, rows, skipped }))
    }

    /// Runs statements over the pipeline's tables. One that fails, times out or crashes doesn't affect the others.
    /// `as_of`: a version of all tables. `query_id`: the id by which all of them can be cancelled.
    ///
    /// # Errors
    /// `pipeline_not_found`, `invalid_request` for a malformed id, `already_exists` for an id in use, `overloaded`,
    /// `s3_error`, `bucket_not_found`, `kv_unavailable`; a statement's own error is its result.
    pub fn run(
        &self,
        pipeline: &Slug,
        statements: &[Statement],
        limits: RowLimits,
        as_of: Option<AsOf>,
        query_id: Option<&str>,
    ) -> Result<QueryOutcomes, ApiError> {
        let announcement = query_id.map(|id| self.registry.announce(pipeline, &self::query_id(id)?)).transpose()?;
        let cancellation = announcement.as_ref().map(|query| query.cancellation.clone()).unwrap_or_default();
        let began = Instant::now();
        let catalog = self.catalogs.catalog(pipeline)?;
        let work = Work {
            sql: self,
            pipeline,
            catalog: Arc::clone(&catalog),
            statements,
            limits,
            as_of,
            cancellation: &cancellation,
            permit: self.permit()?,
            until: Instant::now() + self.timeout * TIMEOUTS_MAX,
            outcomes: statements.iter().map(|_| None).collect(),
            groups: VecDeque::from([(0..statements.len()).collect()]),
        };
        let outcomes = work.run();
        self.counts.queried(began.elapsed());
        match &outcomes {
            Ok(outcomes) => outcomes.iter().for_each(|outcome| self.counts.statement(outcome)),
            Err(error) => statements.iter().for_each(|_| self.counts.statement::<()>(&Err(error.clone()))),
        }
        Ok(QueryOutcomes { outcomes: outcomes?, catalog })
    }
}

/// Parses a query's id.
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
            if self.cancellation.is_cancelled() {
                self.end(&group, cancelled);
            } else if Instant::now() >= self.until {
                self.end(&group, || ApiError::of(ErrorCode::QueryTimeout));
            } else if let Err(error) = self.run_group(&group) {
                if self.outcomes.iter().all(Option::is_none) {
                    return Err(error);
                }
                // Some have results; the others share the error.
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

    /// Runs statements in one child; those to be retried are added to `groups`.
    fn run_group(&mut self, group: &[usize]) -> Result<(), ApiError> {
        let mut borrowed = self.sql.child(&self.permit, self.cancellation)?;
        let texts: Vec<&str> = group.iter().map(|at| self.statements[*at].sql.as_str()).collect();
        let catalog = Arc::clone(&self.catalog);
        let names = catalog.names();
        let analyses = match borrowed.analyse(&texts, &names) {
            Ok(analyses) => analyses,
            Err(error) => return self.retry_alone(group, error),
        };
        let (mut allowed, mut analysed, mut tables) = (Vec::new(), Vec::new(), Vec::new());
        for (at, analysis) in group.iter().zip(analyses) {
            match checked_or_error(analysis, &names) {
                Ok(analysis) => {
                    tables.extend_from_slice(&analysis.tables);
                    allowed.push(*at);
                    analysed.push(analysis);
                }
                Err(error) => self.outcomes[*at] = Some(Err(error)),
            }
        }
        let others = match OtherPipelines::new(&self.sql.catalogs).tables(&tables) {
            Ok(others) => others,
            Err(error) => return self.retry_alone(&allowed, error),
        };
        let (mut left, mut keys, mut tables) = (Vec::new(), Vec::new(), Vec::new());
        for (at, analysis) in allowed.into_iter().zip(analysed) {
            let key = self.key(at, &analysis, &others);
            match key.as_ref().and_then(|key| self.sql.results.get(key)) {
                Some(rows) => self.outcomes[at] = Some(Ok(rows)),
                None => {
                    tables.extend(analysis.tables);
                    left.push(at);
                    keys.push(key);
                }
            }
        }
        let allowed = left;
        if allowed.is_empty() {
            return Ok(());
        }
        let all = allowed.iter().any(|at| may_list_tables(&self.statements[*at].sql));
        let (pipeline, catalog, as_of) = (self.pipeline, &self.catalog, self.as_of);
        let wanted = TablesRequest { pipeline, catalog, named: &tables, others: &others, all, span: None, as_of };
        let opened = self.sql.open(borrowed, &wanted, self.until, self.cancellation);
        let (mut borrowed, _) = match opened {
            Ok(opened) => opened,
            Err(error) => return self.retry_alone(&allowed, error),
        };
        for (nth, (at, key)) in allowed.iter().zip(keys).enumerate() {
            let deadline = (Instant::now() + self.sql.timeout).min(self.until);
            match borrowed.child.rows(&statement(&self.statements[*at]), self.limits, deadline) {
                Ok(found) => {
                    let rows = rows(found);
                    if let Some(key) = key {
                        self.sql.results.insert(key, &rows);
                    }
                    self.outcomes[*at] = Some(Ok(rows));
                }
                Err(error) => {
                    let goes_on = child_survives(&error);
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

    /// The key of a statement's result; `None` if the result isn't kept.
    fn key(&self, at: usize, analysis: &Analysis, others: &[OtherTable]) -> Option<ResultKey> {
        let asked = &self.statements[at];
        if self.as_of.is_some() || may_list_tables(&asked.sql) {
            return None;
        }
        ResultKey::of(asked, self.limits, analysis, (self.pipeline, &self.catalog), others)
    }

    /// Retries statements that failed together one by one, if that may help.
    fn retry_alone(&mut self, group: &[usize], error: ApiError) -> Result<(), ApiError> {
        match (group, may_concern_one_statement(&error)) {
            ([at], _) if error.status() < 500 || may_concern_one_statement(&error) => {
                self.outcomes[*at] = Some(Err(error))
            }
            (_, true) => self.groups.extend(group.iter().map(|at| vec![*at])),
            (_, false) => return Err(error),
        }
        Ok(())
    }
}

fn rows(found: ResultRows) -> Rows {
    let ResultRows { columns, rows, row_count, limit_reason, .. } = found;
    Rows { columns, rows, row_count, limit_reason }
}

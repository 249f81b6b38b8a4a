//! A child on loan, with the pipeline's tables that a statement names.

use parking_lot::Mutex;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use super::SqlProblem;
use super::failure::{cancelled, from_problem, from_sandbox, problem};
use crate::domain::name::Slug;
use crate::http::{ApiError, ErrorCode};
use crate::sql::sandbox::{Analysis, Child, Relation, SqlError};
use crate::sync::Permit;
use crate::web::Web;
use crate::web::cache::{Cache, Patience, Tree};
use crate::web::parquet::ReadError;
use crate::web::parquet::columns::of_file;
use crate::web::query::running::Stop;
use crate::web::snapshot::columns::of_published;
use crate::web::snapshot::{Snapshot, Span, relation_columns};
use crate::web::tables::catalog::Catalog;

/// How long a query waits for a child.
const CHILD_WAIT: Duration = Duration::from_secs(10);
/// Longest time in which a child takes statements apart, or makes tables of files.
pub(super) const PREPARE_MAX: Duration = Duration::from_secs(30);
/// How long a child is kept while its files come; afterwards others may have it.
const IDLE_MAX: Duration = Duration::from_millis(500);
/// Names of tables that a message lists.
const NAMES_TOLD_MAX: usize = 20;

/// A child, and the place that its query takes.
pub struct Lent {
    pub child: Child,
    place: Arc<Permit>,
}

/// Tables in a child's folder.
pub struct Opened {
    pub relations: Vec<Relation>,
    /// Rows of each that has files, where they are known without reading.
    pub rows: Vec<Option<u64>>,
    /// Rows before those that are there, if only a span was asked for.
    pub skipped: u64,
    pub publishing: bool,
}

/// The tables that a child is to have.
pub(in crate::web) struct Wanted<'a> {
    pub pipeline: &'a Slug,
    pub catalog: &'a Catalog,
    pub named: &'a [String],
    /// Those that aren't named are there too, without rows.
    pub all: bool,
    /// The only rows that are asked for of the one table that is named, in the order of its files.
    pub span: Option<Span>,
}

impl Web {
    /// Takes a child.
    ///
    /// # Errors
    /// `overloaded`, `query_cancelled`, `internal`.
    pub(in crate::web) fn child(&self, place: &Arc<Permit>, stop: &Stop) -> Result<Lent, ApiError> {
        if stop.is_stopped() {
            return Err(cancelled());
        }
        let child = self.sql.sandbox.child(CHILD_WAIT).map_err(from_sandbox)?;
        stop.attach(child.cancel_handle());
        Ok(Lent { child, place: Arc::clone(place) })
    }

    /// Puts tables into a child's folder and makes them known to it; when the child is dead they are kept for others.
    /// The files come until `until`; while they take their time the child is given back, and another is taken once they
    /// are there.
    ///
    /// # Errors
    /// As [`Web::snapshot`](crate::web::Web), and the child's own.
    pub(in crate::web) fn open(
        &self,
        lent: Lent,
        wanted: &Wanted<'_>,
        until: Instant,
        stop: &Stop,
    ) -> Result<(Lent, Opened), ApiError> {
        let Wanted { pipeline, catalog, named, all, span } = *wanted;
        let is_named = |name: &str| named.iter().any(|other| other.eq_ignore_ascii_case(name));
        let tables: Vec<_> = catalog.tables.iter().filter(|table| is_named(&table.name)).collect();
        let place = Arc::clone(&lent.place);
        let patience = Patience { until, stopped: &|| stop.is_stopped() };
        let (kept, snapshot) = lent.while_idle(|| self.snapshot(pipeline, &tables, span, patience));
        let Snapshot { mut relations, unsure, rows, skipped, publishing, trees } = snapshot?;
        let mut lent = match kept {
            Some(lent) => lent,
            None => self.child(&place, stop)?,
        };
        lent.take_over(&relations, &trees)?;
        for (relation, _) in relations.iter_mut().zip(unsure).filter(|(_, unsure)| *unsure) {
            if let Some(first) = relation.files.first() {
                let stored =
                    of_file(&mut lent.child, first).map_err(|error| unreadable(first, &relation.name, error))?;
                relation.columns = of_published(stored, first, &relation.columns);
            }
        }
        let own: Vec<String> = relations.iter().map(|relation| relation.name.clone()).collect();
        if all {
            let others = catalog.tables.iter().filter(|table| !is_named(&table.name));
            relations.extend(others.map(|table| Relation {
                name: table.name.clone(),
                columns: relation_columns(&table.columns),
                files: Vec::new(),
            }));
        }
        lent.child.define(&relations, Instant::now() + PREPARE_MAX).map_err(|error| match error {
            // Old and new files that don't fit each other.
            error if publishing => {
                ApiError::caused(ErrorCode::Overloaded, error).with_retry_after(crate::web::failure::RETRY_AFTER)
            }
            error => from_sandbox(error),
        })?;
        // Files that don't fit what is said of them are for nobody.
        let (cache, trees) = (Arc::clone(&self.cache), own.into_iter().zip(trees).collect());
        lent.child.on_exit(move |folder| give_back(&cache, folder, trees, publishing));
        Ok((lent, Opened { relations, rows, skipped, publishing }))
    }
}

fn unreadable(file: &str, table: &str, error: ReadError) -> ApiError {
    match error {
        ReadError::Unreadable(reason) => ApiError::internal(format!("`{file}` of table `{table}`: {reason}")),
        ReadError::Failed(error) => error,
    }
}

/// Takes tables' files out of a dead child's folder, for the next query of the same tables.
fn give_back(cache: &Arc<Cache>, folder: &Path, trees: Vec<(String, Tree)>, publishing: bool) {
    for (name, tree) in trees {
        // Those of a table that was being published may be of two states.
        let tree = if publishing { tree.for_nobody() } else { tree };
        if std::fs::rename(folder.join(&name), tree.path().join(&name)).is_ok() {
            cache.keep_tree(tree);
        }
    }
}

impl Lent {
    /// Does something that the child isn't needed for; the child is given back if it takes long.
    fn while_idle<T>(self, work: impl FnOnce() -> T) -> (Option<Self>, T) {
        let held = Mutex::new(Some(self));
        let done = std::thread::scope(|scope| {
            let (over, is_over) = mpsc::channel::<()>();
            let held = &held;
            let give_back = move || {
                if is_over.recv_timeout(IDLE_MAX) == Err(mpsc::RecvTimeoutError::Timeout) {
                    drop(held.lock().take());
                }
            };
            // Without a thread, the child waits.
            let _ = std::thread::Builder::new().name("child-idle".to_owned()).spawn_scoped(scope, give_back);
            let done = work();
            drop(over);
            done
        });
        (held.into_inner(), done)
    }

    /// Moves the tables' files into the child's folder.
    fn take_over(&self, relations: &[Relation], trees: &[Tree]) -> Result<(), ApiError> {
        let folder = self.child.folder().ok_or_else(|| ApiError::internal("the child has no folder"))?;
        for (relation, tree) in relations.iter().zip(trees) {
            let (from, to) = (tree.path().join(&relation.name), folder.join(&relation.name));
            std::fs::rename(&from, &to)
                .map_err(|error| ApiError::internal(format!("moving to `{}`: {error}", to.display())))?;
        }
        Ok(())
    }

    pub fn into_parts(self) -> (Child, Arc<Permit>) {
        (self.child, self.place)
    }

    /// What each text names, or why it isn't allowed. `known`: the tables there are.
    ///
    /// # Errors
    /// The child's own.
    pub fn analyse(&mut self, texts: &[&str], known: &[&str]) -> Result<Vec<Result<Analysis, SqlError>>, ApiError> {
        self.child.analyse(texts, known, Instant::now() + PREPARE_MAX).map_err(from_sandbox)
    }
}

/// Whether a text may list the tables there are: then all must be known.
pub fn may_list_tables(sql: &str) -> bool {
    sql.to_ascii_lowercase().contains("show")
}

/// Holds the verdict on a text against the tables that the pipeline has.
///
/// # Errors
/// What is wrong with the text.
pub fn named_tables(analysis: &Result<Analysis, SqlError>, names: &[&str]) -> Result<Vec<String>, SqlProblem> {
    let analysis = analysis.as_ref().map_err(problem)?;
    let unknown = analysis.tables.iter().find(|name| !names.iter().any(|known| known.eq_ignore_ascii_case(name)));
    match unknown {
        Some(name) => Err(SqlProblem { message: no_such_table(name, names), position: None }),
        None => Ok(analysis.tables.clone()),
    }
}

fn no_such_table(name: &str, names: &[&str]) -> String {
    let near = crate::sql::nearest(name, names.iter().copied());
    let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    let listed: Vec<String> = names.iter().take(NAMES_TOLD_MAX).map(|name| format!("`{name}`")).collect();
    let more = if names.len() > NAMES_TOLD_MAX { ", …" } else { "" };
    let name = crate::web::access::clipped(name);
    format!(
        "the pipeline has no table `{name}`{near}{} it has {}{more}",
        if near.is_empty() { ";" } else { "" },
        listed.join(", ")
    )
}

/// The verdict as an answer.
///
/// # Errors
/// `invalid_sql`.
pub fn tables_or_error(analysis: &Result<Analysis, SqlError>, names: &[&str]) -> Result<Vec<String>, ApiError> {
    named_tables(analysis, names).map_err(|problem| from_problem(&problem))
}

/// Whether trying statements one by one may save those that are not at fault.
pub fn may_be_of_one(error: &ApiError) -> bool {
    let of_one = [
        ErrorCode::QueryTooLarge,
        ErrorCode::QueryTimeout,
        ErrorCode::QueryOutOfMemory,
        ErrorCode::Internal,
        ErrorCode::InvalidSql,
    ];
    of_one.contains(&error.code())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_is_none_is_told_with_those_there_are() {
        let analysis = Ok(Analysis { tables: vec!["trip".into()], parameters: Vec::new() });
        let problem = named_tables(&analysis, &["trips", "zones"]).unwrap_err();
        let expected = "the pipeline has no table `trip`; did you mean `trips`? it has `trips`, `zones`";
        assert_eq!(problem.message, expected);
        let analysis = Ok(Analysis { tables: vec!["Trips".into()], parameters: Vec::new() });
        assert!(named_tables(&analysis, &["trips"]).is_ok());
    }
}

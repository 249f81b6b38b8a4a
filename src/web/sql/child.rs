//! A child on loan, with the pipeline's tables that a statement names.

use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use super::SqlProblem;
use super::failure::{cancelled, from_problem, from_sandbox, problem};
use crate::domain::name::Slug;
use crate::http::{ApiError, ErrorCode};
use crate::sql::sandbox::{Analysis, Child, Relation, SqlError, Staging};
use crate::web::Web;
use crate::web::cache::Patience;
use crate::web::places::Place;
use crate::web::query::running::Stop;
use crate::web::snapshot::{Snapshot, declared};
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
    place: Arc<Place>,
}

/// Tables in a child's folder. The files are there for as long as it is.
pub struct Opened {
    pub relations: Vec<Relation>,
    /// Rows of each that has files, where they are known without reading.
    pub rows: Vec<Option<u64>>,
    pub publishing: bool,
    _snapshot: Snapshot,
}

/// The tables that a child is to have.
pub(in crate::web) struct Wanted<'a> {
    pub pipeline: &'a Slug,
    pub catalog: &'a Catalog,
    pub named: &'a [String],
    /// Those that aren't named are there too, without rows.
    pub all: bool,
}

impl Web {
    /// Takes a child.
    ///
    /// # Errors
    /// `overloaded`, `query_cancelled`, `internal`.
    pub(in crate::web) fn child(&self, place: &Arc<Place>, stop: &Stop) -> Result<Lent, ApiError> {
        if stop.is_stopped() {
            return Err(cancelled());
        }
        let child = self.sql.sandbox.child(CHILD_WAIT).map_err(from_sandbox)?;
        stop.attach(child.stopper());
        Ok(Lent { child, place: Arc::clone(place) })
    }

    /// Puts tables into a child's folder and makes them known to it. The files come until `until`; while they take their time the child is given back, and
    /// another is taken once they are there.
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
        let Wanted { pipeline, catalog, named, all } = *wanted;
        let is_named = |name: &str| named.iter().any(|other| other.eq_ignore_ascii_case(name));
        let tables: Vec<_> = catalog.tables.iter().filter(|table| is_named(&table.name)).collect();
        let staging = self.sql.sandbox.staging().map_err(from_sandbox)?;
        let place = Arc::clone(&lent.place);
        let patience = Patience { until, stopped: &|| stop.is_stopped() };
        let (kept, snapshot) = lent.while_idle(|| self.snapshot(pipeline, &tables, staging.path(), patience));
        let mut snapshot = snapshot?;
        let mut lent = match kept {
            Some(lent) => lent,
            None => self.child(&place, stop)?,
        };
        lent.take_over(&staging, &snapshot.relations)?;
        let mut relations = std::mem::take(&mut snapshot.relations);
        if all {
            let others = catalog.tables.iter().filter(|table| !is_named(&table.name));
            relations.extend(others.map(|table| Relation {
                name: table.name.clone(),
                columns: declared(table),
                files: Vec::new(),
            }));
        }
        let rows = std::mem::take(&mut snapshot.rows);
        lent.child.define(&relations, Instant::now() + PREPARE_MAX).map_err(|error| match error {
            // Old and new files that don't fit each other.
            error if snapshot.publishing => {
                ApiError::caused(ErrorCode::Overloaded, error).with_retry_after(crate::web::places::RETRY_AFTER)
            }
            error => from_sandbox(error),
        })?;
        Ok((lent, Opened { relations, rows, publishing: snapshot.publishing, _snapshot: snapshot }))
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
                    drop(held.lock().unwrap_or_else(PoisonError::into_inner).take());
                }
            };
            // Without a thread, the child waits.
            let _ = std::thread::Builder::new().name("child-idle".to_owned()).spawn_scoped(scope, give_back);
            let done = work();
            drop(over);
            done
        });
        (held.into_inner().unwrap_or_else(PoisonError::into_inner), done)
    }

    /// Moves the tables' files into the child's folder.
    fn take_over(&self, staging: &Staging, relations: &[Relation]) -> Result<(), ApiError> {
        let folder = self.child.folder().ok_or_else(|| ApiError::internal("the child has no folder"))?;
        for relation in relations {
            let (from, to) = (staging.path().join(&relation.name), folder.join(&relation.name));
            std::fs::rename(&from, &to)
                .map_err(|error| ApiError::internal(format!("moving to `{}`: {error}", to.display())))?;
        }
        Ok(())
    }

    pub fn into_parts(self) -> (Child, Arc<Place>) {
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

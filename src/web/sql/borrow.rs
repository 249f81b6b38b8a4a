//! A borrowed child process, and the tables in its folder.

use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::SqlProblem;
use super::failure::{from_problem, from_sandbox, no_such_table, problem};
use super::others::OtherTable;
use crate::domain::name::Slug;
use crate::domain::table_log::history::AsOf;
use crate::http::{ApiError, ErrorCode};
use crate::sql::sandbox::{Analysis, Child, Relation, SqlError};
use crate::sync::Permit;
use crate::web::cache::{Cache, StagedTable};
use crate::web::snapshot::Span;
use crate::web::tables::catalog::Catalog;

/// Timeout for analysing statements, and for defining tables.
pub(super) const PREPARE_MAX: Duration = Duration::from_secs(30);
/// Maximum time that a child stays borrowed while its files are fetched.
const IDLE_MAX: Duration = Duration::from_millis(500);

/// A child, and its query's permit.
pub struct BorrowedChild {
    pub child: Child,
    pub(super) permit: Arc<Permit>,
}

/// Tables in a child's folder.
pub struct OpenedTables {
    pub relations: Vec<Relation>,
    /// Rows of each table with files.
    pub rows: Vec<u64>,
    /// Rows before the present files, if only a span was requested.
    pub skipped: u64,
}

/// The tables that a child needs.
pub struct TablesRequest<'a> {
    pub pipeline: &'a Slug,
    /// The pipeline's tables.
    pub catalog: &'a Catalog,
    pub named: &'a [String],
    /// Tables of other pipelines, at least the named ones.
    pub others: &'a [OtherTable],
    /// Whether to define the pipeline's other tables, too, without rows.
    pub all: bool,
    /// The rows needed of the only named table, in the order of its files.
    pub span: Option<Span>,
    /// The version of all tables; `None` for the current one.
    pub as_of: Option<AsOf>,
}

/// A table's folder of files, which a child has as long as it lives.
pub(super) struct StagedFolder {
    /// Its name in the child's folder.
    pub name: String,
    /// The table's name, and that of the folder in `staged`.
    pub table_name: String,
    pub staged: StagedTable,
}

/// Moves tables' files out of a dead child's folder, for the next query of the same tables.
pub(super) fn return_tables(cache: &Arc<Cache>, folder: &Path, tables: Vec<StagedFolder>) {
    for StagedFolder { name, table_name, staged } in tables {
        if std::fs::rename(folder.join(name), staged.path().join(table_name)).is_ok() {
            cache.return_staged(staged);
        }
    }
}

impl BorrowedChild {
    /// Runs `work`, which doesn't need the child; the child is returned if that takes long.
    pub(super) fn while_idle<T>(self, work: impl FnOnce() -> T) -> (Option<Self>, T) {
        let held = Mutex::new(Some(self));
        let done = std::thread::scope(|scope| {
            let (over, is_over) = mpsc::channel::<()>();
            let held = &held;
            let return_tables = move || {
                if is_over.recv_timeout(IDLE_MAX) == Err(mpsc::RecvTimeoutError::Timeout) {
                    drop(held.lock().take());
                }
            };
            // Without a thread, the child stays borrowed.
            let _ = std::thread::Builder::new().name("child-idle".to_owned()).spawn_scoped(scope, return_tables);
            let done = work();
            drop(over);
            done
        });
        (held.into_inner(), done)
    }

    /// Moves the tables' files into the child's folder.
    pub(super) fn take_over(&self, tables: &[StagedFolder]) -> Result<(), ApiError> {
        let folder = self.child.folder().ok_or_else(|| ApiError::internal("the child has no folder"))?;
        for StagedFolder { name, table_name, staged } in tables {
            let (from, to) = (staged.path().join(table_name), folder.join(name));
            std::fs::rename(&from, &to)
                .map_err(|error| ApiError::internal(format!("moving to `{}`: {error}", to.display())))?;
        }
        Ok(())
    }

    pub fn into_parts(self) -> (Child, Arc<Permit>) {
        (self.child, self.permit)
    }

    /// Analyses statements: the tables that each names, or why it isn't allowed. `known`: the existing tables.
    ///
    /// # Errors
    /// Errors of the child.
    pub fn analyse(&mut self, texts: &[&str], known: &[&str]) -> Result<Vec<Result<Analysis, SqlError>>, ApiError> {
        self.child.analyse(texts, known, Instant::now() + PREPARE_MAX).map_err(from_sandbox)
    }
}

/// Whether a statement may list tables, so that all must be defined.
pub fn may_list_tables(sql: &str) -> bool {
    sql.to_ascii_lowercase().contains("show")
}

/// Whether a name in a statement is that of a table of another pipeline, `<pipeline>.<table>`.
pub(super) fn is_other(name: &str) -> bool {
    name.contains('.')
}

/// Checks that a statement is allowed, and that the tables of the pipeline that it names exist; those of other pipelines
/// are not checked.
///
/// # Errors
/// The statement's problem.
pub fn checked(analysis: Result<Analysis, SqlError>, names: &[&str]) -> Result<Analysis, SqlProblem> {
    let analysis = analysis.map_err(|error| problem(&error))?;
    let mut own = analysis.tables.iter().filter(|name| !is_other(name));
    let unknown = own.find(|name| !names.iter().any(|known| known.eq_ignore_ascii_case(name)));
    match unknown {
        Some(name) => Err(SqlProblem { message: no_such_table("the pipeline", name, names), position: None }),
        None => Ok(analysis),
    }
}

/// Like [`checked`], with an API error.
///
/// # Errors
/// `invalid_sql`.
pub fn checked_or_error(analysis: Result<Analysis, SqlError>, names: &[&str]) -> Result<Analysis, ApiError> {
    checked(analysis, names).map_err(|problem| from_problem(&problem))
}

/// Whether a single statement may have caused the error, so that the others may succeed alone.
pub fn may_concern_one_statement(error: &ApiError) -> bool {
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
    fn unknown_table_error_lists_existing_tables() {
        let analysis = Ok(Analysis { tables: vec!["trip".into()], changes: false, parameters: Vec::new() });
        let problem = checked(analysis, &["trips", "zones"]).unwrap_err();
        let expected = "the pipeline has no table `trip`; did you mean `trips`? it has `trips`, `zones`";
        assert_eq!(problem.message, expected);
        let analysis = Ok(Analysis { tables: vec!["Trips".into()], changes: false, parameters: Vec::new() });
        assert!(checked(analysis, &["trips"]).is_ok());
    }
}

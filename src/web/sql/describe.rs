//! Binds statements against tables without rows.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::child::{may_list_tables, named_tables};
use super::failure::{from_sandbox, problem, survives};
use super::{ResultColumn, SqlProblem, Statement, TableShape, statement};
use crate::http::ApiError;
use crate::sql::sandbox::{Relation, RelationColumn, SandboxError};
use crate::web::Web;
use crate::web::query::running::Stop;

/// Longest time in which one statement is bound, and in which tables are made known.
const BIND_MAX: Duration = Duration::from_secs(10);

type Described = Result<Vec<ResultColumn>, SqlProblem>;

impl Web {
    /// Binds statements against empty tables of these shapes, without running any.
    ///
    /// # Errors
    /// `overloaded`, `internal`; a statement's own error is its result.
    pub fn describe(&self, tables: &[TableShape], statements: &[Statement]) -> Result<Vec<Described>, ApiError> {
        let place = Arc::new(self.gate.enter()?);
        let stop = Stop::default();
        let names: Vec<&str> = tables.iter().map(|table| table.name.as_str()).collect();
        let mut outcomes = Vec::with_capacity(statements.len());
        // A statement that ends its child is passed over by the next.
        while outcomes.len() < statements.len() {
            let rest = &statements[outcomes.len()..];
            let mut lent = self.child(&place, &stop)?;
            let texts: Vec<&str> = rest.iter().map(|statement| statement.sql.as_str()).collect();
            let analyses = lent.analyse(&texts, &names)?;
            let verdicts: Vec<_> = analyses.iter().map(|analysis| named_tables(analysis, &names)).collect();
            let named: Vec<&String> = verdicts.iter().flatten().flatten().collect();
            let all = texts.iter().any(|text| may_list_tables(text));
            let wanted = tables.iter().filter(|table| all || named.iter().any(|n| n.eq_ignore_ascii_case(&table.name)));
            let relations: Vec<Relation> = wanted.map(relation).collect();
            lent.child.define(&relations, Instant::now() + BIND_MAX).map_err(from_sandbox)?;
            for (one, verdict) in rest.iter().zip(verdicts) {
                if let Err(refused) = verdict {
                    outcomes.push(Err(refused));
                    continue;
                }
                match lent.child.describe(&statement(one), Instant::now() + BIND_MAX) {
                    Ok(columns) => {
                        outcomes
                            .push(Ok(columns.into_iter().map(|c| ResultColumn { name: c.name, ty: c.ty }).collect()));
                    }
                    Err(SandboxError::Sql(error)) => {
                        let goes_on = survives(&SandboxError::Sql(error.clone()));
                        outcomes.push(Err(problem(&error)));
                        if !goes_on {
                            break;
                        }
                    }
                    Err(error) => return Err(from_sandbox(error)),
                }
            }
        }
        Ok(outcomes)
    }
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

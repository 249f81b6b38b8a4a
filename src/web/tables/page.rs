//! Builds the statements of a page: filters, order, limit.
//!
//! Invariant: column names are those of the table and quoted; values are bound.

use std::fmt::Write as _;

use super::filter::{Filter, unknown_column};
use crate::http::{ApiError, ErrorCode};
use crate::sql::identifier;
use crate::sql::sandbox::RelationColumn;
use crate::web::snapshot::Span;
use crate::web::sql::Statement;

/// Maximum number of sort columns.
const SORT_COLUMNS_MAX: usize = 32;
/// Maximum number of columns that break ties.
const TIE_COLUMNS_MAX: usize = 64;

/// A page of a table.
pub struct Page {
    pub limit: u64,
    pub offset: u64,
    /// `col,-col`; empty for the order of the files.
    pub sort: String,
    pub filters: Vec<String>,
}

/// The statements of a page.
pub struct PageStatements {
    pub rows: Statement,
    /// Counts the rows; `None`: all rows of the table.
    pub count: Option<Statement>,
}

impl Page {
    /// The page's rows in the order of the files, if it is neither sorted nor filtered.
    pub fn span(&self) -> Option<Span> {
        (self.sort.is_empty() && self.filters.is_empty()).then_some(Span { offset: self.offset, rows: self.limit })
    }

    /// `skipped`: rows of the table before those in the child's files.
    ///
    /// # Errors
    /// `invalid_request`.
    pub fn statements(
        &self,
        table: &str,
        columns: &[RelationColumn],
        skipped: u64,
    ) -> Result<PageStatements, ApiError> {
        let mut params = Vec::new();
        let mut conditions = Vec::new();
        for text in &self.filters {
            conditions.push(Filter::parse(text, columns)?.condition(&mut params));
        }
        let where_ = if conditions.is_empty() { String::new() } else { format!(" WHERE {}", conditions.join(" AND ")) };
        let from = format!("FROM {}{where_}", identifier(table));
        let mut rows = format!("SELECT * {from}");
        let order = order_by(&self.sort, columns)?;
        let _ = write!(rows, "{order} LIMIT {} OFFSET {}", self.limit, self.offset.saturating_sub(skipped));
        let count = (!conditions.is_empty())
            .then(|| Statement { sql: format!("SELECT count(*) AS total {from}"), params: params.clone() });
        Ok(PageStatements { rows: Statement { sql: rows, params }, count })
    }
}

/// ` ORDER BY …`. The other columns break ties, so that pages neither repeat nor lose rows.
fn order_by(sort: &str, columns: &[RelationColumn]) -> Result<String, ApiError> {
    if sort.is_empty() {
        return Ok(String::new());
    }
    let mut chosen: Vec<(&str, bool)> = Vec::new();
    let mut rest = Some(sort);
    while let Some(text) = rest {
        let (name, down, after) = next_key(text, columns)?;
        if !chosen.iter().any(|(known, _)| *known == name) {
            chosen.push((name, down));
        }
        if chosen.len() > SORT_COLUMNS_MAX {
            let message = format!("`sort` names more than {SORT_COLUMNS_MAX} columns");
            return Err(ApiError::new(ErrorCode::InvalidRequest, message));
        }
        rest = after;
    }
    let ties = columns.iter().map(|column| (column.name.as_str(), false)).take(TIE_COLUMNS_MAX);
    let ties: Vec<_> = ties.filter(|(name, _)| !chosen.iter().any(|(known, _)| known == name)).collect();
    let key =
        |(name, down): &(&str, bool)| format!("{} {} NULLS LAST", identifier(name), if *down { "DESC" } else { "ASC" });
    Ok(format!(" ORDER BY {}", chosen.iter().chain(&ties).map(key).collect::<Vec<_>>().join(", ")))
}

/// The first column of a list, whether it is descending, and the rest. Names may contain commas or start with `-`.
fn next_key<'a, 't>(
    text: &'t str,
    columns: &'a [RelationColumn],
) -> Result<(&'a str, bool, Option<&'t str>), ApiError> {
    for (down, text) in [(false, Some(text)), (true, text.strip_prefix('-'))] {
        let Some(text) = text else { continue };
        let mut fitting: Vec<&RelationColumn> = columns
            .iter()
            .filter(|column| {
                text.strip_prefix(&*column.name).is_some_and(|rest| rest.is_empty() || rest.starts_with(','))
            })
            .collect();
        fitting.sort_by_key(|column| column.name.len());
        if let Some(column) = fitting.pop() {
            return Ok((&column.name, down, text[column.name.len()..].strip_prefix(',')));
        }
    }
    let found = text.split(',').next().unwrap_or_default();
    Err(unknown_column("sort", found.strip_prefix('-').unwrap_or(found), columns))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(names: &[&str]) -> Vec<RelationColumn> {
        let column = |name: &&str| RelationColumn {
            name: (*name).to_owned(),
            ty: "int64".to_owned(),
            nullable: true,
            partition: false,
        };
        names.iter().map(column).collect()
    }

    fn rows(sort: &str, names: &[&str]) -> Result<String, String> {
        let page = Page { limit: 10, offset: 5, sort: sort.to_owned(), filters: Vec::new() };
        let statements = page.statements("t\"x", &columns(names), 0).map_err(|error| error.message().to_owned())?;
        assert!(statements.count.is_none());
        Ok(statements.rows.sql)
    }

    #[test]
    fn ties_are_broken_by_the_other_columns() {
        assert_eq!(rows("", &["a"]).unwrap(), "SELECT * FROM \"t\"\"x\" LIMIT 10 OFFSET 5");
        let sorted = rows("-b,a", &["a", "b", "c"]).unwrap();
        let expected = "ORDER BY \"b\" DESC NULLS LAST, \"a\" ASC NULLS LAST, \"c\" ASC NULLS LAST LIMIT 10 OFFSET 5";
        assert!(sorted.ends_with(expected), "{sorted}");
    }

    #[test]
    fn columns_with_unusual_names_are_found() {
        let names = ["a,b", "a", "-a", "x\"y"];
        for (sort, order) in
            [("a,b", "\"a,b\" ASC"), ("--a", "\"-a\" DESC"), ("-a", "\"-a\" ASC"), ("x\"y", "\"x\"\"y\"")]
        {
            assert!(rows(sort, &names).unwrap().contains(&format!("ORDER BY {order}")), "{sort}");
        }
        for bad in ["b", "a,", ",a", "a;drop", "A"] {
            assert!(rows(bad, &["a"]).unwrap_err().contains("has no column"), "{bad}");
        }
    }
}

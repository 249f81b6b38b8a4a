//! Results of statements, kept as long as the tables stay the same: a table's column summaries and a dashboard are computed
//! once a version.
//!
//! Invariant: a result is of the tables as they were when its request began, or later.

use std::collections::BTreeMap;
use std::sync::Arc;

use quick_cache::Weighter;
use quick_cache::sync::Cache;
use serde::Serialize;

use super::others::OtherTable;
use super::types::{RowLimits, Rows, Statement, statement};
use crate::domain::digest::sha256_hex;
use crate::domain::name::Slug;
use crate::sql::sandbox::{Analysis, ParameterizedStatement};
use crate::web::tables::catalog::Catalog;

/// Memory of all kept results, in bytes.
const BYTES_MAX: u64 = 64 << 20;
/// Largest result that is kept, in bytes.
const RESULT_BYTES_MAX: usize = 4 << 20;
/// Memory of an entry besides its rows and column names, in bytes.
const ENTRY_BYTES: u64 = 512;
/// The number of results that the cache is laid out for.
const RESULTS: usize = 1_000;

/// Kept results. The least useful ones make room for new ones.
pub struct Results(Cache<ResultKey, Arc<Rows>, RowBytes>);

/// Identifies a statement, its limits and the versions of its tables.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ResultKey(String);

#[derive(Clone)]
struct RowBytes;

impl Weighter<ResultKey, Arc<Rows>> for RowBytes {
    fn weight(&self, _: &ResultKey, rows: &Arc<Rows>) -> u64 {
        let names: usize = rows.columns.iter().map(|column| column.name.len() + column.ty.len()).sum();
        (rows.rows.len() + names) as u64 + ENTRY_BYTES
    }
}

#[derive(Serialize)]
struct KeyText<'a> {
    statement: ParameterizedStatement,
    limits: RowLimits,
    tables: BTreeMap<String, &'a str>,
}

impl Results {
    pub fn new() -> Self {
        Self(Cache::with_weighter(RESULTS, BYTES_MAX, RowBytes))
    }

    pub fn get(&self, key: &ResultKey) -> Option<Rows> {
        self.0.get(key).map(|rows| (*rows).clone())
    }

    pub fn insert(&self, key: ResultKey, rows: &Rows) {
        if rows.rows.len() <= RESULT_BYTES_MAX {
            self.0.insert(key, Arc::new(rows.clone()));
        }
    }
}

impl ResultKey {
    /// `None` if the result may differ although the tables are the same, or if it depends on other things than the tables
    /// that the statement names.
    pub fn of(
        asked: &Statement,
        limits: RowLimits,
        analysis: &Analysis,
        (pipeline, catalog): (&Slug, &Catalog),
        others: &[OtherTable],
    ) -> Option<Self> {
        if analysis.changes {
            return None;
        }
        let mut tables = BTreeMap::new();
        for name in &analysis.tables {
            // System tables span all manifests, so they have no tag. Neither has a table without a manifest, whose columns come
            // from the config.
            let (name, tag) = match others.iter().find(|other| other.name() == *name) {
                Some(other) => (name.clone(), other.tag.as_ref()?),
                None => (format!("{pipeline}.{name}"), catalog.tags.get(name)?),
            };
            tables.insert(name, tag.0.as_str());
        }
        let text = serde_json::to_vec(&KeyText { statement: statement(asked), limits, tables }).ok()?;
        Some(Self(sha256_hex(&text)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::store::ETag;
    use crate::sql::sandbox::ResultColumn;
    use crate::web::sql::Param;
    use crate::web::tables::catalog::{AppliedState, ConfigStatus};

    const LIMITS: RowLimits = RowLimits { rows: 10, bytes: 1_000 };

    fn catalog(tag: &str) -> Catalog {
        let tags = BTreeMap::from([("t".to_owned(), ETag(tag.to_owned()))]);
        Catalog {
            tables: Vec::new(),
            tags,
            config: ConfigStatus { state: AppliedState::Applied, problems: Vec::new() },
        }
    }

    fn analysis(tables: &[&str]) -> Analysis {
        let tables = tables.iter().map(|name| (*name).to_owned()).collect();
        Analysis { tables, changes: false, parameters: Vec::new() }
    }

    fn sql(text: &str) -> Statement {
        Statement { sql: text.to_owned(), params: Vec::new() }
    }

    #[test]
    fn cache_key_covers_statement_limits_pipeline_and_versions() {
        let (p, q) = (Slug::parse("p").unwrap(), Slug::parse("q").unwrap());
        let of = |asked: &Statement, limits, pipeline: &Slug, tag: &str| {
            ResultKey::of(asked, limits, &analysis(&["t"]), (pipeline, &catalog(tag)), &[]).unwrap()
        };
        let first = of(&sql("FROM t"), LIMITS, &p, "1");
        assert_eq!(of(&sql("FROM t"), LIMITS, &p, "1"), first);
        let mut others = vec![
            of(&sql("FROM t "), LIMITS, &p, "1"),
            of(&sql("FROM t"), RowLimits { rows: 9, ..LIMITS }, &p, "1"),
            of(&sql("FROM t"), LIMITS, &q, "1"),
            of(&sql("FROM t"), LIMITS, &p, "2"),
        ];
        for value in [Param::Null, Param::Text("1".into()), Param::Integer(1)] {
            let asked = Statement { params: vec![("n".into(), value)], ..sql("FROM t") };
            others.push(of(&asked, LIMITS, &p, "1"));
        }
        for (at, other) in others.iter().enumerate() {
            assert!(*other != first && !others[..at].contains(other), "{at}");
        }
    }

    #[test]
    fn only_deterministic_results_have_keys() {
        let p = Slug::parse("p").unwrap();
        let of = |analysis: &Analysis| ResultKey::of(&sql("x"), LIMITS, analysis, (&p, &catalog("1")), &[]);
        assert!(of(&analysis(&[])).is_some() && of(&analysis(&["t"])).is_some());
        for other in ["u", "_rejected_rows", "q.t"] {
            assert!(of(&analysis(&["t", other])).is_none(), "{other}");
        }
        assert!(of(&Analysis { changes: true, ..analysis(&["t"]) }).is_none());
    }

    #[test]
    fn kept_results_are_bounded() {
        let results = Results::new();
        let key = |n: usize| ResultKey(n.to_string());
        let rows = |bytes: usize| {
            let columns = vec![ResultColumn { name: "a".into(), ty: "int64".into() }];
            Rows { columns, rows: "x".repeat(bytes), row_count: 1, limit_reason: None }
        };
        results.insert(key(0), &rows(3));
        assert_eq!(results.get(&key(0)), Some(rows(3)));
        results.insert(key(1), &rows(RESULT_BYTES_MAX + 1));
        assert_eq!(results.get(&key(1)), None);
        for n in 2..60 {
            results.insert(key(n), &rows(RESULT_BYTES_MAX));
        }
        assert!(results.0.weight() <= BYTES_MAX);
    }
}

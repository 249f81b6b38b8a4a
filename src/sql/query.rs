//! Builds the queries of an evaluator.
//!
//! Invariant: they contain a user's text only as `(` newline text newline `)`, and only after the allow-list passed it.

use std::collections::BTreeSet;

use super::types::sql_type;
use crate::domain::pipeline::types::TypeClass;
use crate::ports::expressions::{ExpressionId, ExpressionSet};

/// The table function that serves the current batch; takes the slot's id.
pub const BATCH_FUNCTION: &str = "lakemill_batch";
/// Longest chain of computed columns.
pub const LAYERS_MAX: usize = 64;

/// The columns that the expressions of a checked set use. Indices count the inputs first, then the computed columns.
#[derive(Debug, Clone, Default)]
pub struct ColumnUses {
    /// Inputs of each computed column.
    pub computed: Vec<BTreeSet<usize>>,
    /// Inputs of each predicate.
    pub predicates: Vec<BTreeSet<usize>>,
}

impl ColumnUses {
    /// The inputs that any expression uses.
    pub fn inputs(&self, set: &ExpressionSet) -> Vec<usize> {
        let all: BTreeSet<usize> = self.computed.iter().chain(&self.predicates).flatten().copied().collect();
        all.into_iter().filter(|at| *at < set.inputs.len()).collect()
    }

    /// For each computed column, the length of its longest chain.
    pub fn depths(&self, set: &ExpressionSet) -> Vec<usize> {
        let mut depths: Vec<usize> = Vec::with_capacity(self.computed.len());
        for uses in &self.computed {
            let below = uses.iter().filter_map(|at| at.checked_sub(set.inputs.len()));
            depths.push(below.filter_map(|at| depths.get(at)).max().map_or(0, |depth| depth + 1));
        }
        depths
    }

    /// The computed columns that `id` needs, directly or not, without itself.
    fn needed(&self, set: &ExpressionSet, id: ExpressionId) -> BTreeSet<usize> {
        let direct = |uses: &BTreeSet<usize>| -> Vec<usize> {
            uses.iter().filter_map(|at| at.checked_sub(set.inputs.len())).collect()
        };
        let mut open = match id {
            ExpressionId::Computed(at) => direct(&self.computed[at]),
            ExpressionId::Predicate(at) => direct(&self.predicates[at]),
        };
        let mut needed = BTreeSet::new();
        while let Some(at) = open.pop() {
            if needed.insert(at) {
                open.extend(direct(&self.computed[at]));
            }
        }
        needed
    }
}

/// Builds the queries of one set over one batch slot.
pub struct Queries<'a> {
    pub set: &'a ExpressionSet,
    pub uses: &'a ColumnUses,
    pub slot: u64,
    /// Prefix of names that no column has.
    pub prefix: &'a str,
}

impl Queries<'_> {
    /// Row number, computed columns, predicates; fails if any of them fails on any row.
    pub fn evaluate(&self) -> String {
        let mut from = self.source();
        for layer in self.layers(|_| true) {
            let columns = layer.iter().map(|at| format!("{} AS {}", self.computed(*at), self.name(*at)));
            from = format!("(SELECT *, {} FROM {from})", columns.collect::<Vec<_>>().join(", "));
        }
        let mut outputs = vec![self.row()];
        outputs.extend((0..self.set.computed.len()).map(|at| self.output(at)));
        outputs.extend((0..self.set.predicates.len()).map(|at| self.predicate(at)));
        format!("SELECT {} FROM {from}", outputs.join(", "))
    }

    /// The same, followed by a boolean for each expression: whether it failed. A failed column is null.
    pub fn diagnose(&self) -> String {
        let mut from = self.caught(|_| true);
        if !self.set.predicates.is_empty() {
            let caught = (0..self.set.predicates.len())
                .map(|at| format!("TRY(struct_pack(v := {})) AS \"{}p{at}\"", self.predicate(at), self.prefix));
            from = format!("(SELECT *, {} FROM {from})", caught.collect::<Vec<_>>().join(", "));
        }
        let mut outputs = vec![self.row()];
        outputs.extend((0..self.set.computed.len()).map(|at| self.output(at)));
        outputs
            .extend((0..self.set.predicates.len()).map(|at| format!("struct_extract(\"{}p{at}\", 'v')", self.prefix)));
        outputs.extend((0..self.set.computed.len()).map(|at| format!("\"{}f{at}\"", self.prefix)));
        outputs.extend((0..self.set.predicates.len()).map(|at| format!("(\"{}p{at}\" IS NULL)", self.prefix)));
        format!("SELECT {} FROM {from}", outputs.join(", "))
    }

    /// Row number and the value of `id` only, so that its error is the query's; failed columns that it uses are null.
    pub fn single(&self, id: ExpressionId) -> String {
        let needed = self.uses.needed(self.set, id);
        let from = self.caught(|at| needed.contains(&at));
        let value = match id {
            ExpressionId::Computed(at) => self.computed(at),
            ExpressionId::Predicate(at) => self.predicate(at),
        };
        format!("SELECT {}, ({value}) IS NULL FROM {from}", self.row())
    }

    fn source(&self) -> String {
        format!("{BATCH_FUNCTION}(CAST({} AS UBIGINT))", self.slot)
    }

    /// The `wanted` computed columns by depth.
    fn layers(&self, wanted: impl Fn(usize) -> bool) -> Vec<Vec<usize>> {
        let mut layers: Vec<Vec<usize>> = Vec::new();
        for (at, depth) in self.uses.depths(self.set).into_iter().enumerate().filter(|(at, _)| wanted(*at)) {
            if layers.len() <= depth {
                layers.resize(depth + 1, Vec::new());
            }
            layers[depth].push(at);
        }
        layers.retain(|layer| !layer.is_empty());
        layers
    }

    /// Computed columns with caught errors: the struct is null only if its expression failed.
    fn caught(&self, wanted: impl Fn(usize) -> bool) -> String {
        let mut from = self.source();
        let p = self.prefix;
        for layer in self.layers(wanted) {
            let caught =
                layer.iter().map(|at| format!("TRY(struct_pack(v := {})) AS \"{p}s{at}\"", self.computed(*at)));
            let caught = caught.collect::<Vec<_>>().join(", ");
            let opened = layer.iter().map(|at| {
                format!(
                    "struct_extract(\"{p}s{at}\", 'v') AS {}, (\"{p}s{at}\" IS NULL) AS \"{p}f{at}\"",
                    self.name(*at)
                )
            });
            let opened = opened.collect::<Vec<_>>().join(", ");
            from = format!("(SELECT *, {opened} FROM (SELECT *, {caught} FROM {from}))");
        }
        from
    }

    fn row(&self) -> String {
        format!("\"{}row\"", self.prefix)
    }

    fn name(&self, at: usize) -> String {
        identifier(&self.set.computed[at].name)
    }

    fn computed(&self, at: usize) -> String {
        let column = &self.set.computed[at];
        cast(&column.sql, &sql_type(column.ty))
    }

    fn predicate(&self, at: usize) -> String {
        cast(&self.set.predicates[at], "BOOLEAN")
    }

    /// The column as DuckDB returns it: uuids as text, since their Arrow form is ambiguous.
    fn output(&self, at: usize) -> String {
        match self.set.computed[at].ty.class() {
            TypeClass::Uuid => format!("CAST({} AS VARCHAR)", self.name(at)),
            TypeClass::Boolean
            | TypeClass::Integer
            | TypeClass::Float
            | TypeClass::Decimal
            | TypeClass::Text
            | TypeClass::Temporal(_)
            | TypeClass::Json => self.name(at),
        }
    }
}

/// `text` within a larger expression.
pub fn enclosed(text: &str) -> String {
    format!("(\n{text}\n)")
}

fn cast(text: &str, ty: &str) -> String {
    format!("CAST({} AS {ty})", enclosed(text))
}

/// A quoted identifier.
pub fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A quoted text.
pub fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A prefix that none of `names` has.
pub fn free_prefix<'a>(names: impl Iterator<Item = &'a str> + Clone) -> String {
    let mut prefix = "lakemill_".to_owned();
    let taken = |prefix: &str| {
        names.clone().any(|name| name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix)))
    };
    while taken(&prefix) {
        prefix.push('_');
    }
    prefix
}

//! Checks expressions against an allow-list over the nodes and functions of the parsed text.
//!
//! Invariant: an allowed text is one self-contained scalar expression, with the same meaning in any context if it is
//! enclosed in parentheses on separate lines. It names only the given columns and functions that are deterministic and
//! have no access to anything outside.

use std::collections::BTreeSet;

use super::bounds::{DEPTH_MAX, at_character};
use super::names::{AGGREGATES, FunctionClass, known, nearest};
use super::tree::Tree;
use crate::domain::problem::ProblemKind;

/// Functions that take a lambda as a direct argument (elsewhere `a -> b` extracts a value from JSON).
const LAMBDA_FUNCTIONS: &[&str] = &[
    "apply",
    "array_apply",
    "array_filter",
    "array_reduce",
    "array_transform",
    "filter",
    "list_apply",
    "list_filter",
    "list_reduce",
    "list_transform",
    "reduce",
];
/// Operators that DuckDB doesn't have as functions.
pub const OPERATORS: &[&str] = &[
    "OPERATOR_NOT",
    "OPERATOR_IS_NULL",
    "OPERATOR_IS_NOT_NULL",
    "OPERATOR_COALESCE",
    "OPERATOR_NULLIF",
    "OPERATOR_TRY",
    "COMPARE_IN",
    "COMPARE_NOT_IN",
    "ARRAY_CONSTRUCTOR",
    "ARRAY_EXTRACT",
    "ARRAY_SLICE",
    "STRUCT_EXTRACT",
];
pub const COMPARISONS: &[&str] = &[
    "COMPARE_EQUAL",
    "COMPARE_NOTEQUAL",
    "COMPARE_LESSTHAN",
    "COMPARE_GREATERTHAN",
    "COMPARE_LESSTHANOREQUALTO",
    "COMPARE_GREATERTHANOREQUALTO",
    "COMPARE_DISTINCT_FROM",
    "COMPARE_NOT_DISTINCT_FROM",
];
/// Functions whose result size is given by an argument, with the index of that argument. DuckDB's memory limit doesn't
/// count their strings, so the size is limited here.
pub const GROWING: &[(&str, usize)] = &[
    ("array_resize", 1),
    ("generate_series", usize::MAX),
    ("list_resize", 1),
    ("lpad", 1),
    ("range", usize::MAX),
    ("repeat", 1),
    ("rpad", 1),
];
/// Largest size argument of [`GROWING`] functions.
const GROWTH_MAX: u64 = 10_000;
/// Widest field of a format.
const FORMAT_DIGITS_MAX: usize = 4;
/// Members that every node has.
const COMMON: &[&str] = &["class", "type", "alias", "query_location"];

/// Why an expression isn't allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidExpression {
    pub kind: ProblemKind,
    pub message: String,
}

impl InvalidExpression {
    pub fn new(message: impl Into<String>) -> Self {
        Self { kind: ProblemKind::InvalidExpression, message: message.into() }
    }
}

/// The columns that an expression may use.
#[derive(Clone, Copy)]
pub struct Scope<'a> {
    /// Visible columns; references are indices into them.
    pub columns: &'a [String],
    /// Columns computed by this expression or later ones.
    pub later: &'a [String],
}

/// Checks a parsed expression; returns the columns that it uses, or all violations.
pub fn check(
    tree: &Tree,
    text: &str,
    offset: usize,
    scope: Scope<'_>,
) -> Result<BTreeSet<usize>, Vec<InvalidExpression>> {
    let mut walk = Walk { text, offset, scope, lambdas: Vec::new(), used: BTreeSet::new(), refusals: Vec::new() };
    walk.expression(tree, 0);
    if walk.refusals.is_empty() { Ok(walk.used) } else { Err(walk.refusals) }
}

struct Walk<'a> {
    text: &'a str,
    /// Bytes that precede the text in the parsed statement.
    offset: usize,
    scope: Scope<'a>,
    lambdas: Vec<String>,
    used: BTreeSet<usize>,
    refusals: Vec<InvalidExpression>,
}

impl Walk<'_> {
    fn expression(&mut self, node: &Tree, depth: usize) {
        if depth > DEPTH_MAX {
            self.once(InvalidExpression::new(format!(
                "nested more than {DEPTH_MAX} levels deep; split it into several columns"
            )));
            return;
        }
        let (class, kind) = (node.text("class"), node.text("type"));
        match (class, kind) {
            ("CONSTANT", "VALUE_CONSTANT") => self.only(node, &["value"]),
            ("COLUMN_REF", "COLUMN_REF") => self.column(node),
            ("FUNCTION", "FUNCTION") => self.function(node, depth),
            ("OPERATOR", kind) if OPERATORS.contains(&kind) => {
                self.only(node, &["children"]);
                self.all(node.list("children"), depth);
            }
            ("COMPARISON", kind) if COMPARISONS.contains(&kind) => {
                self.only(node, &["left", "right"]);
                self.all([node.get("left"), node.get("right")], depth);
            }
            ("CONJUNCTION", "CONJUNCTION_AND" | "CONJUNCTION_OR") => {
                self.only(node, &["children"]);
                self.all(node.list("children"), depth);
            }
            ("CASE", "CASE_EXPR") => {
                self.only(node, &["case_checks", "else_expr"]);
                for check in node.list("case_checks") {
                    self.all([check.get("when_expr"), check.get("then_expr")], depth);
                }
                self.expression(node.get("else_expr"), depth + 1);
            }
            ("CAST", "OPERATOR_CAST") => {
                self.only(node, &["child", "cast_type", "try_cast"]);
                self.expression(node.get("child"), depth + 1);
            }
            ("BETWEEN", "COMPARE_BETWEEN" | "COMPARE_NOT_BETWEEN") => {
                self.only(node, &["input", "lower", "upper"]);
                self.all([node.get("input"), node.get("lower"), node.get("upper")], depth);
            }
            ("COLLATE", "COLLATE") => {
                self.only(node, &["child", "collation"]);
                self.expression(node.get("child"), depth + 1);
            }
            ("LAMBDA", "LAMBDA") => {
                // Not a function's lambda: JSON's `a -> b`.
                self.only(node, &["lhs", "expr"]);
                self.all([node.get("lhs"), node.get("expr")], depth);
            }
            _ => self.refuse_node(node, class, kind),
        }
    }

    fn all<'t>(&mut self, nodes: impl IntoIterator<Item = &'t Tree>, depth: usize) {
        for node in nodes {
            self.expression(node, depth + 1);
        }
    }

    /// Refuses unknown fields, which could contain anything.
    fn only(&mut self, node: &Tree, keys: &[&str]) {
        let Tree::Object(members) = node else { return };
        for (key, value) in members {
            if !COMMON.contains(&key.as_str()) && !keys.contains(&key.as_str()) && !value.is_blank() {
                self.refuse(node, format!("`{key}` can't be used here"));
            }
        }
    }

    fn column(&mut self, node: &Tree) {
        self.only(node, &["column_names"]);
        let names: Vec<&str> =
            node.list("column_names").iter().map(|n| if let Tree::Text(n) = n { n.as_str() } else { "" }).collect();
        let Some(first) = names.first() else { return self.refuse_node(node, "COLUMN_REF", "") };
        if self.lambdas.iter().any(|lambda| lambda.eq_ignore_ascii_case(first)) {
            return;
        }
        if let [name] = names[..] {
            if let Some(at) = self.scope.columns.iter().position(|column| column.eq_ignore_ascii_case(name)) {
                self.used.insert(at);
                return;
            }
            return self.unknown_column(node, name);
        }
        let (at, dotted) = (self.at(node), names.join("."));
        let hint = if self.scope.columns.iter().any(|column| column == &dotted) {
            format!("; a column of that name is written `\"{dotted}\"`")
        } else {
            "; write columns without a table name".to_owned()
        };
        self.once(InvalidExpression {
            kind: ProblemKind::UnknownColumn,
            message: format!("unknown column `{dotted}`{at}{hint}"),
        });
    }

    fn unknown_column(&mut self, node: &Tree, name: &str) {
        let at = self.at(node);
        if known(name) == FunctionClass::Changing {
            self.once(InvalidExpression::new(format!(
                "`{name}`{at} differs between runs; an expression may use only the row's own values"
            )));
            return;
        }
        let message = if self.scope.later.iter().any(|column| column.eq_ignore_ascii_case(name)) {
            format!(
                "column `{name}`{at} is not computed yet here; an expression may use only earlier computed \
             columns"
            )
        } else if let Some(near) = nearest(name, self.scope.columns.iter().map(String::as_str)) {
            format!("unknown column `{name}`{at}; did you mean `{near}`?")
        } else if self.text.contains(&format!("\"{name}\"")) {
            format!("unknown column `{name}`{at}; write text in single quotes: `'{name}'`")
        } else {
            format!("unknown column `{name}`{at}; columns here: {}", listed(self.scope.columns))
        };
        self.once(InvalidExpression { kind: ProblemKind::UnknownColumn, message });
    }

    fn function(&mut self, node: &Tree, depth: usize) {
        // Every function has `order_bys` and the flags.
        self.only(node, &["function_name", "schema", "children", "is_operator", "order_bys"]);
        let name = node.text("function_name").to_ascii_lowercase();
        let children = node.list("children");
        if !matches!(node.text("schema"), "" | "main") || !node.get("order_bys").list("orders").is_empty() {
            self.refuse(node, format!("`{name}` can't be called this way"));
        } else if known(&name) != FunctionClass::Allowed {
            self.refuse_function(node, &name);
        } else if name == "age" && children.len() < 2 {
            self.refuse(node, "`age` with one argument counts from today; give it two".to_owned());
        }
        self.growth(node, &name, children);
        let takes_lambda = LAMBDA_FUNCTIONS.contains(&name.as_str());
        for child in children {
            if takes_lambda && child.text("class") == "LAMBDA" {
                self.lambda(child, depth + 1);
            } else {
                self.expression(child, depth + 1);
            }
        }
    }

    /// Sizes must be literals within the limit.
    fn growth(&mut self, node: &Tree, name: &str, children: &[Tree]) {
        if let Some(message) = unbounded_format(name, children) {
            return self.refuse(node, message);
        }
        let Some((_, place)) = GROWING.iter().find(|(growing, _)| *growing == name) else { return };
        let sizes: Vec<&Tree> =
            if *place == usize::MAX { children.iter().collect() } else { children.get(*place).into_iter().collect() };
        if !sizes.into_iter().all(is_small_literal) {
            self.refuse(node, format!("`{name}` needs its size as a literal number, at most {GROWTH_MAX}"));
        }
    }

    /// Adds a lambda's parameters to the scope of its body.
    fn lambda(&mut self, node: &Tree, depth: usize) {
        self.only(node, &["lhs", "expr"]);
        let lhs = node.get("lhs");
        let parameters: Vec<&Tree> =
            if lhs.text("class") == "FUNCTION" { lhs.list("children").iter().collect() } else { vec![lhs] };
        let before = self.lambdas.len();
        for parameter in parameters {
            match parameter.list("column_names") {
                [Tree::Text(name)] => self.lambdas.push(name.clone()),
                _ => self.refuse(node, "a lambda's parameters must be names: `lambda x: x + 1`".to_owned()),
            }
        }
        self.expression(node.get("expr"), depth + 1);
        self.lambdas.truncate(before);
    }

    fn refuse_function(&mut self, node: &Tree, name: &str) {
        let at = self.at(node);
        let message = if AGGREGATES.contains(&name) {
            let instead = match name {
                "min" => "; for the least of several values of one row write `least(a, b)`",
                "max" => "; for the greatest of several values of one row write `greatest(a, b)`",
                _ => "",
            };
            format!("`{name}`{at} aggregates rows; an expression sees one row at a time{instead}")
        } else if name == "unnest" {
            format!("`unnest`{at} creates several rows; an expression returns one value")
        } else if name == "error" {
            format!("`error`{at} can't be used; write a check with `assert` instead")
        } else if known(name) == FunctionClass::Changing {
            format!("`{name}`{at} does not return the same value for the same row in every run")
        } else if let Some(near) = nearest(name, super::names::functions()) {
            format!("function `{name}`{at} is not supported in expressions; did you mean `{near}`?")
        } else {
            format!("function `{name}`{at} is not supported in expressions")
        };
        self.once(InvalidExpression::new(message));
    }

    fn refuse_node(&mut self, node: &Tree, class: &str, kind: &str) {
        let what = match class {
            "SUBQUERY" => "a subquery can't be used; an expression sees one row at a time (for a list write `list_contains(list, x)` or `x IN (…)`)".to_owned(),
            "WINDOW" => "a window function (`OVER`) can't be used; an expression sees one row at a time".to_owned(),
            "STAR" => "`*` can't be used; name the columns".to_owned(),
            "PARAMETER" => "a parameter (`?`, `$1`) can't be used; write the value itself".to_owned(),
            "POSITIONAL_REFERENCE" => "`#1` can't be used; name the column".to_owned(),
            "DEFAULT" => "`DEFAULT` can't be used".to_owned(),
            _ => format!("this kind of expression ({}) can't be used", if kind.is_empty() { class } else { kind }),
        };
        self.refuse(node, what);
    }

    fn refuse(&mut self, node: &Tree, message: String) {
        let at = self.at(node);
        self.once(InvalidExpression::new(format!("{message}{at}")));
    }

    fn once(&mut self, refusal: InvalidExpression) {
        if !self.refusals.contains(&refusal) {
            self.refusals.push(refusal);
        }
    }

    /// ` at character N`, counted from 1; nothing if it isn't known or is the start.
    fn at(&self, node: &Tree) -> String {
        let place = node.location().and_then(|location| location.checked_sub(self.offset));
        place.map_or_else(String::new, |byte| at_character(self.text, byte))
    }
}

/// The first names, in backticks.
fn listed(names: &[String]) -> String {
    const SHOWN: usize = 12;
    if names.is_empty() {
        return "none".to_owned();
    }
    let mut text = names.iter().take(SHOWN).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        text.push_str(&format!(" and {} more", names.len() - SHOWN));
    }
    text
}

/// Why the format of `format` or `printf` could create a text of unbounded length; nothing for other functions.
pub fn unbounded_format(name: &str, children: &[Tree]) -> Option<String> {
    if !matches!(name, "format" | "printf") {
        return None;
    }
    let literal = children.first().map(|child| child.get("value").text("value")).filter(|text| !text.is_empty());
    let wide = |text: &str| text.split(|c: char| !c.is_ascii_digit()).any(|run| run.len() > FORMAT_DIGITS_MAX);
    literal.is_none_or(|text| wide(text) || text.contains('*')).then(|| {
        format!("the format of `{name}` must be a quoted text, with fields of at most {FORMAT_DIGITS_MAX} digits")
    })
}

fn is_small_literal(node: &Tree) -> bool {
    let value = if node.text("class") == "FUNCTION" && node.text("function_name") == "-" {
        if let [only] = node.list("children") { only.get("value") } else { return false }
    } else {
        node.get("value")
    };
    matches!(value.get("value"), Tree::Number(number) if number.trim_start_matches('-').parse::<u64>().is_ok_and(|n| n <= GROWTH_MAX))
}

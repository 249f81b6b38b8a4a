//! The nodes that a statement may contain, and the content of each member.
//!
//! Invariant: a member that isn't listed for its node must be blank. DuckDB is pinned; a version that adds members or
//! nodes has them refused until they are listed here.

use crate::sql::allow::{COMPARISONS, OPERATORS};
use MemberContent::{
    ByNodeRule, Data, Expression, ExpressionLists, Expressions, Modifier, Modifiers, Part, Parts, Query, Relation, Type,
};

/// What a member contains, which determines how it is checked.
pub enum MemberContent {
    /// Names, numbers, flags and constants: nothing that is evaluated.
    Data,
    Expression,
    Expressions,
    ExpressionLists,
    Relation,
    Query,
    Type,
    Modifier,
    Modifiers,
    /// An object of these members.
    Part(&'static [ShapeMember]),
    /// A list of such objects.
    Parts(&'static [ShapeMember]),
    /// Checked by the node's own rule.
    ByNodeRule,
}

/// A member's name and content.
pub type ShapeMember = (&'static str, MemberContent);

/// Operators that statements may use besides those of expressions.
const STATEMENT_OPERATORS: &[&str] = &["GROUPING_FUNCTION", "OPERATOR_UNPACK"];

pub const STATEMENT: &[ShapeMember] = &[("node", Query), ("named_param_map", Data)];
const SAMPLE: &[ShapeMember] =
    &[("sample_size", Data), ("is_percentage", Data), ("method", Data), ("seed", Data), ("repeatable", Data)];
const ORDER: &[ShapeMember] = &[("type", Data), ("null_order", Data), ("expression", Expression)];
const CASE_CHECK: &[ShapeMember] = &[("when_expr", Expression), ("then_expr", Expression)];
const REPLACEMENT: &[ShapeMember] = &[("key", Data), ("value", Expression)];
const PIVOT_ENTRY: &[ShapeMember] = &[("values", Data), ("star_expr", Expression), ("alias", Data)];
const PIVOT_COLUMN: &[ShapeMember] =
    &[("pivot_expressions", Expressions), ("unpivot_names", Data), ("entries", Parts(PIVOT_ENTRY))];
pub const CTE_MAP: &[ShapeMember] = &[("map", ByNodeRule)];
pub const CTE: &[ShapeMember] = &[("key", Data), ("value", Part(CTE_VALUE))];
const CTE_VALUE: &[ShapeMember] =
    &[("aliases", Data), ("query", Part(STATEMENT)), ("materialized", Data), ("key_targets", Expressions)];
pub const TYPE: &[ShapeMember] = &[("id", Data), ("type_info", Part(TYPE_INFO))];
const TYPE_INFO: &[ShapeMember] = &[
    ("type", Data),
    ("alias", Data),
    ("width", Data),
    ("scale", Data),
    ("size", Data),
    ("collation", Data),
    ("child_type", Type),
    ("child_types", Parts(FIELD)),
    ("name", Data),
    ("user_type_modifiers", Data),
];
const FIELD: &[ShapeMember] = &[("first", Data), ("second", Type)];

/// The members of a query's node.
pub fn query(kind: &str) -> Option<&'static [ShapeMember]> {
    Some(match kind {
        "SELECT_NODE" => &[
            ("type", Data),
            ("modifiers", Modifiers),
            ("cte_map", ByNodeRule),
            ("select_list", Expressions),
            ("from_table", Relation),
            ("where_clause", Expression),
            ("group_expressions", Expressions),
            ("group_sets", Data),
            ("aggregate_handling", Data),
            ("having", Expression),
            ("sample", Part(SAMPLE)),
            ("qualify", Expression),
        ],
        "SET_OPERATION_NODE" => &[
            ("type", Data),
            ("modifiers", Modifiers),
            ("cte_map", ByNodeRule),
            ("setop_type", Data),
            ("setop_all", Data),
            ("left", Query),
            ("right", Query),
        ],
        "RECURSIVE_CTE_NODE" => &[
            ("type", Data),
            ("modifiers", Modifiers),
            ("cte_map", ByNodeRule),
            ("cte_name", Data),
            ("union_all", Data),
            ("aliases", Data),
            ("key_targets", Expressions),
            ("left", Query),
            ("right", ByNodeRule),
        ],
        _ => return None,
    })
}

/// The members of a relation in `FROM`, besides [`RELATION`].
pub fn relation(kind: &str) -> Option<&'static [ShapeMember]> {
    Some(match kind {
        "EMPTY" => &[],
        "BASE_TABLE" => &[("schema_name", Data), ("table_name", Data), ("column_name_alias", Data)],
        "SUBQUERY" => &[("subquery", Part(STATEMENT)), ("column_name_alias", Data)],
        "JOIN" => &[
            ("left", Relation),
            ("right", Relation),
            ("condition", Expression),
            ("join_type", Data),
            ("ref_type", Data),
            ("using_columns", Data),
        ],
        "TABLE_FUNCTION" => &[("function", ByNodeRule), ("column_name_alias", Data), ("with_ordinality", Data)],
        "EXPRESSION_LIST" => &[("values", ExpressionLists), ("expected_names", Data)],
        "PIVOT" => &[
            ("source", Relation),
            ("aggregates", Expressions),
            ("unpivot_names", Data),
            ("pivots", Parts(PIVOT_COLUMN)),
            ("groups", Data),
            ("column_name_alias", Data),
            ("include_nulls", Data),
        ],
        "SHOW_REF" => &[("table_name", Data), ("query", Query), ("show_type", Data)],
        _ => return None,
    })
}

/// Members of every relation in `FROM`.
pub const RELATION: &[ShapeMember] =
    &[("type", Data), ("alias", Data), ("query_location", Data), ("sample", Part(SAMPLE))];

/// The members of `ORDER BY`, `LIMIT` and `DISTINCT`.
pub fn modifier(kind: &str) -> Option<&'static [ShapeMember]> {
    Some(match kind {
        "ORDER_MODIFIER" => &[("type", Data), ("orders", Parts(ORDER))],
        "LIMIT_MODIFIER" | "LIMIT_PERCENT_MODIFIER" => &[("type", Data), ("limit", Expression), ("offset", Expression)],
        "DISTINCT_MODIFIER" => &[("type", Data), ("distinct_on_targets", Expressions)],
        _ => return None,
    })
}

/// Members of every expression.
pub const EXPRESSION: &[ShapeMember] = &[("class", Data), ("type", Data), ("alias", Data), ("query_location", Data)];

pub const FUNCTION: &[ShapeMember] = &[
    ("function_name", Data),
    ("schema", Data),
    ("catalog", Data),
    ("children", Expressions),
    ("filter", Expression),
    ("order_bys", Modifier),
    ("distinct", Data),
    ("is_operator", Data),
];

/// The members of an expression, besides [`EXPRESSION`].
pub fn expression(class: &str, kind: &str) -> Option<&'static [ShapeMember]> {
    Some(match (class, kind) {
        ("CONSTANT", "VALUE_CONSTANT") => &[("value", Data)],
        ("COLUMN_REF", "COLUMN_REF") => &[("column_names", Data)],
        ("PARAMETER", "VALUE_PARAMETER") => &[("identifier", Data)],
        ("POSITIONAL_REFERENCE", "POSITIONAL_REFERENCE") => &[("index", Data)],
        ("FUNCTION", "FUNCTION") => FUNCTION,
        ("WINDOW", kind) if kind.starts_with("WINDOW_") => &[
            ("function_name", Data),
            ("schema", Data),
            ("catalog", Data),
            ("children", Expressions),
            ("partitions", Expressions),
            ("orders", Parts(ORDER)),
            ("arg_orders", Parts(ORDER)),
            ("start", Data),
            ("end", Data),
            ("start_expr", Expression),
            ("end_expr", Expression),
            ("offset_expr", Expression),
            ("default_expr", Expression),
            ("filter_expr", Expression),
            ("ignore_nulls", Data),
            ("exclude_clause", Data),
            ("distinct", Data),
        ],
        ("OPERATOR", kind) if OPERATORS.contains(&kind) || STATEMENT_OPERATORS.contains(&kind) => {
            &[("children", Expressions)]
        }
        ("COMPARISON", kind) if COMPARISONS.contains(&kind) => &[("left", Expression), ("right", Expression)],
        ("CONJUNCTION", "CONJUNCTION_AND" | "CONJUNCTION_OR") => &[("children", Expressions)],
        ("CASE", "CASE_EXPR") => &[("case_checks", Parts(CASE_CHECK)), ("else_expr", Expression)],
        ("CAST", "OPERATOR_CAST") => &[("child", Expression), ("cast_type", Type), ("try_cast", Data)],
        ("BETWEEN", "COMPARE_BETWEEN" | "COMPARE_NOT_BETWEEN") => {
            &[("input", Expression), ("lower", Expression), ("upper", Expression)]
        }
        ("COLLATE", "COLLATE") => &[("child", Expression), ("collation", Data)],
        ("LAMBDA", "LAMBDA") => &[("lhs", Expression), ("expr", Expression)],
        ("SUBQUERY", "SUBQUERY") => {
            &[("subquery_type", Data), ("subquery", Part(STATEMENT)), ("child", Expression), ("comparison_type", Data)]
        }
        ("STAR", "STAR") => &[
            ("relation_name", Data),
            ("exclude_list", Data),
            ("qualified_exclude_list", Data),
            ("replace_list", Parts(REPLACEMENT)),
            ("rename_list", Data),
            ("columns", Data),
            ("expr", Expression),
        ],
        _ => return None,
    })
}

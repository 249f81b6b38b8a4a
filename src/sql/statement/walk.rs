//! Walks the tree of a statement by [`super::shapes`], and checks everything that a node's shape doesn't determine:
//! names of functions, relations and types, scopes of `WITH`, parameters, sizes.

use std::collections::BTreeSet;

use super::names::{
    NAMED_TYPES, TABLE_FUNCTIONS, TYPES, functions, is_allowed, is_changing_value, is_file, is_system,
    is_system_schema, refused_values,
};
use super::shapes::{self, CTE, CTE_MAP, EXPRESSION, FUNCTION, MemberContent, RELATION, STATEMENT, ShapeMember, TYPE};
use super::verdict::{Parameters, Refusal, RefusalKind, StatementKind, too_deep};
use crate::domain::limits::QUERY_PARAMETERS_MAX;
use crate::domain::name::Slug;
use crate::sql::allow::{GROWING, unbounded_format};
use crate::sql::bounds::DEPTH_MAX;
use crate::sql::names::{FunctionClass, known, nearest};
use crate::sql::tree::Tree;

/// Largest size literal of growing functions.
const SIZE_MAX: f64 = 10_000_000.0;
/// The parser's name of `SHOW TABLES`.
const SHOW_TABLES: &str = "\"tables\"";

/// The contents of a statement.
pub struct StatementContents {
    pub kind: StatementKind,
    pub tables: BTreeSet<String>,
    pub lists_tables: bool,
    pub changes: bool,
    pub parameters: Parameters,
}

/// Walks one statement of DuckDB's tree. `offset` is the first byte in `text` that was parsed.
pub fn statement(
    node: &Tree,
    text: &str,
    offset: usize,
    known: &dyn Fn(&str) -> bool,
) -> Result<StatementContents, Refusal> {
    let mut walk = Walk {
        text,
        offset,
        known,
        location: None,
        ctes: Vec::new(),
        tables: BTreeSet::new(),
        lists_tables: false,
        changes: false,
        parameters: BTreeSet::new(),
        values: Vec::new(),
    };
    walk.members(node, &[STATEMENT], 0)?;
    // With tables, only the database knows the columns; its macros refuse these functions (`database`).
    if walk.tables.is_empty()
        && let Some((name, location)) = walk.values.iter().find(|(name, _)| !gives_name(node, name))
    {
        walk.location = *location;
        return Err(walk.refused_function(name));
    }
    let parameters = walk.parameters()?;
    Ok(StatementContents {
        kind: kind(node.get("node")),
        tables: walk.tables,
        lists_tables: walk.lists_tables,
        changes: walk.changes,
        parameters,
    })
}

/// The kind of an allowed statement.
fn kind(query: &Tree) -> StatementKind {
    let from = query.get("from_table");
    match (from.text("type"), from.text("show_type")) {
        ("SHOW_REF", "DESCRIBE") => StatementKind::Describe,
        ("SHOW_REF", "SUMMARY") => StatementKind::Summarize,
        ("SHOW_REF", _) => StatementKind::Show,
        ("EXPRESSION_LIST", _) => StatementKind::Values,
        _ => StatementKind::Select,
    }
}

/// Advice for a table name with other qualifiers.
const ONE_QUALIFIER: &str = "as a table; write a table's name alone, or after its pipeline's: `\"my-pipeline\".trips`";

struct Walk<'a> {
    text: &'a str,
    offset: usize,
    known: &'a dyn Fn(&str) -> bool,
    /// Location of the nearest node that has one, in bytes of the parsed text.
    location: Option<usize>,
    /// Names that `WITH` defines in this scope, in lower case.
    ctes: Vec<String>,
    tables: BTreeSet<String>,
    lists_tables: bool,
    /// See [`AllowedStatement::changes`](super::AllowedStatement::changes).
    changes: bool,
    parameters: BTreeSet<String>,
    /// Bare names of refused functions, allowed only as columns; with their locations.
    values: Vec<(String, Option<usize>)>,
}

type Walked = Result<(), Refusal>;

impl Walk<'_> {
    /// Walks all members of an object by their lists.
    fn members(&mut self, node: &Tree, lists: &[&[ShapeMember]], depth: usize) -> Walked {
        let Tree::Object(members) = node else { return self.refuse("this part of the statement can't be used") };
        for (key, value) in members.iter().filter(|(_, value)| !value.is_blank()) {
            self.changes |= key == "sample" && !has_seed(value);
            match lists.iter().copied().flatten().find(|(name, _)| name == key) {
                Some((_, content)) => self.member(value, content, depth)?,
                None => return self.refuse(format!("`{}` can't be used here", clause(key))),
            }
        }
        Ok(())
    }

    fn member(&mut self, value: &Tree, content: &MemberContent, depth: usize) -> Walked {
        match content {
            MemberContent::ByNodeRule => Ok(()),
            MemberContent::Data if is_data(value) => Ok(()),
            MemberContent::Data => self.refuse("an expression can't be used here"),
            MemberContent::Expression => self.expression(value, depth + 1),
            MemberContent::Expressions => self.each(value, |walk, item| walk.expression(item, depth + 1)),
            MemberContent::ExpressionLists => {
                self.each(value, |walk, row| walk.each(row, |walk, item| walk.expression(item, depth + 1)))
            }
            MemberContent::Relation => self.relation(value, depth + 1),
            MemberContent::Query => self.query(value, depth + 1),
            MemberContent::Type => self.type_of(value, depth + 1),
            MemberContent::Modifier => self.modifier(value, depth),
            MemberContent::Modifiers => self.each(value, |walk, item| walk.modifier(item, depth)),
            MemberContent::Part(list) => self.members(value, &[list], depth),
            MemberContent::Parts(list) => self.each(value, |walk, item| walk.members(item, &[list], depth)),
        }
    }

    fn each(&mut self, value: &Tree, mut visit: impl FnMut(&mut Self, &Tree) -> Walked) -> Walked {
        let Tree::List(items) = value else { return self.refuse("this part of the statement can't be used") };
        items.iter().try_for_each(|item| visit(self, item))
    }

    fn query(&mut self, node: &Tree, depth: usize) -> Walked {
        self.enter(node, depth)?;
        let kind = node.text("type");
        let Some(list) = shapes::query(kind) else { return self.refuse("this kind of query can't be used") };
        let before = self.ctes.len();
        self.ctes(node.get("cte_map"), depth)?;
        self.members(node, &[list], depth)?;
        if kind == "RECURSIVE_CTE_NODE" {
            self.ctes.push(node.text("cte_name").to_ascii_lowercase());
            self.query(node.get("right"), depth + 1)?;
        }
        self.ctes.truncate(before);
        Ok(())
    }

    /// The names of a `WITH`; each is visible to those after it.
    fn ctes(&mut self, map: &Tree, depth: usize) -> Walked {
        if map.is_blank() {
            return Ok(());
        }
        self.members(map, &[CTE_MAP], depth)?;
        for entry in map.list("map") {
            self.members(entry, &[CTE], depth)?;
            self.ctes.push(entry.text("key").to_ascii_lowercase());
        }
        Ok(())
    }

    fn modifier(&mut self, node: &Tree, depth: usize) -> Walked {
        match shapes::modifier(node.text("type")) {
            Some(list) => self.members(node, &[list], depth),
            None => self.refuse("this clause can't be used"),
        }
    }

    fn relation(&mut self, node: &Tree, depth: usize) -> Walked {
        self.enter(node, depth)?;
        let kind = node.text("type");
        let Some(list) = shapes::relation(kind) else { return self.refuse("this can't be used in `FROM`") };
        match kind {
            "BASE_TABLE" => self.table(node)?,
            "TABLE_FUNCTION" => self.table_function(node.get("function"), depth)?,
            "SHOW_REF" => self.show(node)?,
            _ => {}
        }
        self.members(node, &[RELATION, list], depth)
    }

    fn table(&mut self, node: &Tree) -> Walked {
        let (schema, written) = (node.text("schema_name"), node.text("table_name"));
        let name = written.to_ascii_lowercase();
        let qualified = !schema.is_empty();
        if !node.text("catalog_name").is_empty() {
            return self.refuse_table(format!("`{schema}.{written}` can't be used {ONE_QUALIFIER}"));
        }
        if qualified && !schema.eq_ignore_ascii_case("main") {
            let Ok(pipeline) = Slug::parse(&schema.to_ascii_lowercase()) else {
                return self.refuse_table(format!("`{schema}.{written}` can't be used {ONE_QUALIFIER}"));
            };
            if is_system_schema(pipeline.as_str()) {
                let message = format!("`{schema}` is a name of the database itself, so its tables can't be used");
                return self.refuse_table(message);
            }
            if is_file(&name) || name.is_empty() {
                return self.refuse_table(format!("`{written}` is not a table of the pipeline `{pipeline}`"));
            }
            self.tables.insert(format!("{pipeline}.{name}"));
            return Ok(());
        }
        if !(self.known)(&name) {
            if is_file(&name) || name.is_empty() {
                let message = format!(
                    "`{written}` is not a table; a query can't read files, only the pipeline's \
                 tables"
                );
                return self.refuse_table(message);
            }
            if is_system(&name) {
                let message = format!("`{written}` is a system table; `SHOW TABLES` lists the pipeline's tables");
                return self.refuse_table(message);
            }
        }
        if qualified || !self.ctes.contains(&name) {
            self.tables.insert(name);
        }
        Ok(())
    }

    fn table_function(&mut self, node: &Tree, depth: usize) -> Walked {
        self.enter(node, depth)?;
        let name = node.text("function_name").to_ascii_lowercase();
        let plain = matches!(node.text("schema"), "" | "main") && node.text("catalog").is_empty();
        if (node.text("class"), node.text("type")) != ("FUNCTION", "FUNCTION") || !plain {
            return self.refuse(format!("`{name}` can't be called this way in `FROM`"));
        }
        if !TABLE_FUNCTIONS.contains(&name.as_str()) {
            let near = nearest(&name, TABLE_FUNCTIONS.iter().copied());
            let hint = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            let message = format!("`{name}` can't be used in `FROM`; a query reads only the pipeline's tables{hint}");
            return Err(self.refusal(RefusalKind::Function, message));
        }
        self.members(node, &[EXPRESSION, FUNCTION], depth)
    }

    fn show(&mut self, node: &Tree) -> Walked {
        match (node.text("show_type"), node.text("table_name"), node.get("query")) {
            ("DESCRIBE" | "SUMMARY", "", Tree::Object(_)) => Ok(()),
            ("SHOW_UNQUALIFIED", SHOW_TABLES, Tree::Null) => {
                self.lists_tables = true;
                Ok(())
            }
            _ => self.refuse("only `SHOW TABLES`, and `DESCRIBE` or `SUMMARIZE` of a table or query, can be used"),
        }
    }

    fn expression(&mut self, node: &Tree, depth: usize) -> Walked {
        self.enter(node, depth)?;
        let (class, kind) = (node.text("class"), node.text("type"));
        let Some(list) = shapes::expression(class, kind) else {
            let what = if kind.is_empty() { class } else { kind };
            return self.refuse(match class {
                "DEFAULT" => "`DEFAULT` can't be used".to_owned(),
                _ => format!("this kind of expression ({what}) can't be used"),
            });
        };
        match class {
            "FUNCTION" | "WINDOW" => self.function(node)?,
            "PARAMETER" => self.parameter(node)?,
            "COLUMN_REF" => {
                if let [Tree::Text(name)] = node.list("column_names") {
                    self.changes |= is_changing_value(name);
                }
                if let [Tree::Text(name)] = node.list("column_names")
                    && refused_values().any(|refused| refused.eq_ignore_ascii_case(name))
                {
                    self.values.push((name.to_ascii_lowercase(), self.location));
                }
            }
            _ => {}
        }
        self.members(node, &[EXPRESSION, list], depth)
    }

    /// Checks the name only, without its qualifier: `schema.function`, or `column.function` for `function(column)`.
    fn function(&mut self, node: &Tree) -> Walked {
        let name = node.text("function_name").to_ascii_lowercase();
        if !is_allowed(&name) {
            return Err(self.refused_function(&name));
        }
        self.changes |= known(&name) == FunctionClass::Changing;
        if let Some(message) = unbounded_format(&name, node.list("children")) {
            return Err(self.refusal(RefusalKind::Function, message));
        }
        if GROWING.iter().any(|(growing, _)| *growing == name) && node.list("children").iter().any(is_huge) {
            let message = format!("`{name}` supports sizes up to {SIZE_MAX}");
            return Err(self.refusal(RefusalKind::Limit, message));
        }
        Ok(())
    }

    fn refused_function(&self, name: &str) -> Refusal {
        let near = nearest(name, functions()).map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        let message = format!("function `{name}` is not supported in queries{near}");
        self.refusal(RefusalKind::Function, message)
    }

    fn type_of(&mut self, node: &Tree, depth: usize) -> Walked {
        self.enter(node, depth)?;
        let (id, info) = (node.text("id"), node.get("type_info"));
        let allowed = match id {
            "UNBOUND" => {
                let name = info.text("name");
                NAMED_TYPES.iter().chain(TYPES).any(|allowed| allowed.eq_ignore_ascii_case(name))
            }
            id => TYPES.contains(&id),
        };
        if !allowed {
            let name = if id == "UNBOUND" { info.text("name") } else { id };
            return self.refuse(format!("type `{name}` can't be used"));
        }
        self.members(node, &[TYPE], depth)
    }

    fn parameter(&mut self, node: &Tree) -> Walked {
        let name = node.text("identifier");
        if !self.parameters.iter().any(|other| other.eq_ignore_ascii_case(name)) {
            self.parameters.insert(name.to_owned());
        }
        if self.parameters.len() > QUERY_PARAMETERS_MAX {
            let message = format!("more than {QUERY_PARAMETERS_MAX} parameters");
            return Err(self.refusal(RefusalKind::Limit, message));
        }
        Ok(())
    }

    fn parameters(&mut self) -> Result<Parameters, Refusal> {
        let numbers: BTreeSet<usize> = self.parameters.iter().filter_map(|name| name.parse().ok()).collect();
        if self.parameters.is_empty() {
            Ok(Parameters::None)
        } else if numbers.is_empty() {
            Ok(Parameters::Named(std::mem::take(&mut self.parameters)))
        } else if numbers.len() == self.parameters.len() && numbers.iter().copied().eq(1..=numbers.len()) {
            Ok(Parameters::Positional(numbers.len()))
        } else {
            let message = "parameters are either named (`$name`) or numbered from 1 without gaps (`$1`, `?`)";
            Err(Refusal::new(RefusalKind::Clause, message))
        }
    }

    /// Records the node's location; refuses it if it is too deep.
    fn enter(&mut self, node: &Tree, depth: usize) -> Walked {
        self.location = node.location().or(self.location);
        if depth > DEPTH_MAX { Err(too_deep()) } else { Ok(()) }
    }

    fn refuse(&self, message: impl Into<String>) -> Walked {
        Err(self.refusal(RefusalKind::Clause, message))
    }

    fn refuse_table(&self, message: String) -> Walked {
        Err(self.refusal(RefusalKind::Table, message))
    }

    fn refusal(&self, kind: RefusalKind, message: impl Into<String>) -> Refusal {
        let refusal = Refusal::new(kind, message);
        match self.location.map(|location| location.saturating_add(self.offset)).filter(|at| *at < self.text.len()) {
            Some(at) => refusal.at(self.text, at),
            None => refusal,
        }
    }
}

/// The clause in SQL for the parser's `key`.
fn clause(key: &str) -> String {
    match key {
        "at_clause" => "AT".to_owned(),
        "pivot_enum" => "PIVOT … IN a type".to_owned(),
        _ => key.replace('_', " ").to_uppercase(),
    }
}

/// Whether a part of `node` may define a column or a lambda's parameter of that name: an alias, a list of names, a text.
fn gives_name(node: &Tree, name: &str) -> bool {
    match node {
        Tree::Text(text) => text.eq_ignore_ascii_case(name),
        Tree::List(items) => items.iter().any(|item| gives_name(item, name)),
        Tree::Object(members) => members.iter().any(|(key, value)| match key.as_str() {
            "column_names" => false,
            "lhs" => value.has_text(name),
            _ => gives_name(value, name),
        }),
        Tree::Null | Tree::Bool(_) | Tree::Number(_) => false,
    }
}

/// Whether a sample has the same rows each time. DuckDB writes -1 for a missing seed.
fn has_seed(sample: &Tree) -> bool {
    matches!(sample.get("seed"), Tree::Number(seed) if !seed.starts_with('-'))
}

/// Whether it contains no node.
fn is_data(value: &Tree) -> bool {
    match value {
        Tree::Null | Tree::Bool(_) | Tree::Number(_) | Tree::Text(_) => true,
        Tree::List(items) => items.iter().all(is_data),
        Tree::Object(members) => {
            members.iter().all(|(key, value)| !matches!(key.as_str(), "class" | "function_name") && is_data(value))
        }
    }
}

/// Whether a literal exceeds the largest size.
fn is_huge(node: &Tree) -> bool {
    let Tree::Number(number) = node.get("value").get("value") else { return false };
    number.parse::<f64>().is_ok_and(|number| number > SIZE_MAX)
}

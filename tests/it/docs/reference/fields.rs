//! Renders a JSON Schema as tables of fields.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::Value;

/// Nested objects without a separate section are listed in the same table, up to this depth.
const DEPTH_MAX: usize = 6;

/// A section of the page that describes a node of the schema.
struct Section<'a> {
    node: &'a Value,
    heading: String,
    anchor: String,
}

impl Section<'_> {
    /// Whether it describes `node`: its fields, kinds, or values.
    fn describes(&self, node: &Value) -> bool {
        if let Some(own) = self.node.get("properties") {
            return node.get("properties") == Some(own);
        }
        match is_choice(self.node) {
            true => is_choice(node) && values(self.node) == values(node),
            false => node.get("oneOf").is_some() && node.get("oneOf") == self.node.get("oneOf"),
        }
    }
}

/// Renders tables of fields; see the module's documentation.
pub struct Fields<'a> {
    schema: &'a Value,
    sections: Vec<Section<'a>>,
}

/// Text escaped for a table cell.
pub fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

pub fn code(text: &str) -> String {
    if text.contains('`') { format!("`` {text} ``") } else { format!("`{text}`") }
}

fn literal(value: &Value) -> String {
    code(&cell(&value.to_string()))
}

fn description(node: &Value) -> String {
    cell(node["description"].as_str().unwrap_or_default())
}

/// `12,345` for 12345.
fn number(value: &Value) -> String {
    let Some(whole) = value.as_f64().filter(|n| n.fract() == 0.0 && n.abs() < 1e15) else { return value.to_string() };
    let digits = format!("{whole:.0}");
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits.as_str()), |digits| ("-", digits));
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().map(|group| std::str::from_utf8(group).unwrap()).collect();
    format!("{sign}{}", groups.join(","))
}

/// The branches of a choice.
fn branches(node: &Value) -> Option<&Vec<Value>> {
    node["oneOf"].as_array().or_else(|| node["anyOf"].as_array())
}

/// The values of a choice with their meaning.
fn values(node: &Value) -> Vec<(Value, String)> {
    if let Some(value) = node.get("const") {
        return vec![(value.clone(), description(node))];
    }
    if let Some(values) = node["enum"].as_array() {
        return values.iter().filter(|value| !value.is_null()).map(|value| (value.clone(), String::new())).collect();
    }
    match branches(node) {
        Some(branches) => branches.iter().flat_map(values).collect(),
        None => Vec::new(),
    }
}

/// Whether the node allows a fixed set of values, or null.
fn is_choice(node: &Value) -> bool {
    node.get("const").is_some()
        || node["enum"].is_array()
        || node["type"] == "null"
        || branches(node).is_some_and(|branches| branches.iter().all(is_choice))
}

impl<'a> Fields<'a> {
    pub fn new(schema: &'a Value) -> Self {
        Self { schema, sections: Vec::new() }
    }

    /// Records that the page has a section for this node, for links from tables.
    pub fn has_section(&mut self, pointer: &str, heading: &str, anchor: &str) {
        let node = self.at(pointer);
        self.sections.push(Section { node, heading: heading.to_owned(), anchor: anchor.to_owned() });
    }

    /// The node of a pointer; `/` is the root.
    pub fn at(&self, pointer: &str) -> &'a Value {
        let pointer = pointer.trim_end_matches('/');
        self.schema.pointer(pointer).unwrap_or_else(|| panic!("the schema has no `{pointer}`"))
    }

    pub fn variants(&self, pointer: &str) -> &'a Vec<Value> {
        branches(self.at(pointer)).unwrap_or_else(|| panic!("`{pointer}` is not a choice"))
    }

    /// Calls `look` for every object that has fields.
    pub fn objects(&self, look: &mut dyn FnMut(&str, &Value)) {
        fn walk(pointer: &str, node: &Value, look: &mut dyn FnMut(&str, &Value)) {
            if node["properties"].is_object() {
                look(pointer, node);
            }
            match node {
                Value::Object(members) => {
                    members.iter().for_each(|(name, member)| walk(&format!("{pointer}/{name}"), member, look));
                }
                Value::Array(items) => {
                    items.iter().enumerate().for_each(|(at, item)| walk(&format!("{pointer}/{at}"), item, look));
                }
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            }
        }
        walk("", self.schema, look);
    }

    /// The fields of an object except those in `without`.
    pub fn table(&self, node: &Value, without: &BTreeSet<String>) -> String {
        let mut rows = Vec::new();
        self.rows(node, "", without, 0, &mut rows);
        if rows.is_empty() {
            return String::new();
        }
        format!("| field | type | default | meaning |\n|---|---|---|---|\n{}", rows.concat())
    }

    /// The fields of a response: without defaults, but with whether they are always present.
    pub fn answered(&self, node: &Value) -> String {
        let Some(properties) = node["properties"].as_object() else { return String::new() };
        let always = node["required"].as_array().map(Vec::as_slice).unwrap_or_default();
        let mut text = "| field | type | meaning |\n|---|---|---|\n".to_owned();
        for (name, field) in properties {
            let sometimes = if always.iter().any(|own| own == name) { "" } else { " May be absent." };
            let row = format!("{}{sometimes}", self.meaning(field));
            writeln!(text, "| {} | {} | {} |", code(name), self.ty(field), row.trim()).unwrap();
        }
        text
    }

    fn rows(&self, node: &Value, prefix: &str, without: &BTreeSet<String>, depth: usize, rows: &mut Vec<String>) {
        let Some(properties) = node["properties"].as_object() else { return };
        let required: Vec<&str> =
            node["required"].as_array().map_or_else(Vec::new, |names| names.iter().filter_map(Value::as_str).collect());
        for (name, field) in properties.iter().filter(|(name, _)| !without.contains(*name)) {
            let default = if required.contains(&name.as_str()) { "required".to_owned() } else { self.default(field) };
            let (ty, meaning) = (self.ty(field), self.meaning(field));
            rows.push(format!("| {} | {ty} | {default} | {meaning} |\n", code(&format!("{prefix}{name}"))));
            let (inner, suffix) = inner(field);
            if depth < DEPTH_MAX && self.section(inner).is_none() {
                self.rows(inner, &format!("{prefix}{name}{suffix}."), &BTreeSet::new(), depth + 1, rows);
            }
        }
    }

    /// The default of a field.
    fn default(&self, field: &Value) -> String {
        match field.get("default") {
            None | Some(Value::Null) => "none".to_owned(),
            Some(Value::String(text)) if text.is_empty() => "empty".to_owned(),
            Some(Value::Array(items)) if items.is_empty() => "empty".to_owned(),
            Some(Value::Object(members)) if members.is_empty() && !field["properties"].is_object() => {
                "empty".to_owned()
            }
            Some(Value::Object(_)) => "the defaults of its fields".to_owned(),
            Some(value) => literal(value),
        }
    }

    fn section(&self, node: &Value) -> Option<&Section<'a>> {
        self.sections.iter().find(|section| section.describes(node))
    }

    /// The type that a node allows.
    pub fn ty(&self, node: &Value) -> String {
        if let Some(name) = node["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
            return format!("[{name}](#type-{})", name.to_lowercase());
        }
        if let Some(section) = self.section(node) {
            let null = if is_choice(node) && allows_null(node) { " or null" } else { "" };
            return format!("[{}](#{}){null}", section.heading, section.anchor);
        }
        if let Some(value) = node.get("const") {
            return literal(value);
        }
        if is_choice(node) {
            let mut texts: Vec<String> = values(node).iter().map(|(value, _)| literal(value)).collect();
            if allows_null(node) {
                texts.push("null".into());
            }
            return texts.join(", ");
        }
        if let Some(branches) = branches(node) {
            return joined_with_or(branches.iter().map(|branch| self.ty(branch)));
        }
        match &node["type"] {
            Value::String(ty) => self.named(ty, node),
            Value::Array(types) => {
                joined_with_or(types.iter().filter_map(Value::as_str).map(|ty| self.named(ty, node)))
            }
            _ => "any JSON".into(),
        }
    }

    fn named(&self, ty: &str, node: &Value) -> String {
        match ty {
            "array" if node["prefixItems"].is_array() => "list".into(),
            "array" => {
                let items = self.ty(&node["items"]);
                if items.contains(" or ") { format!("list of ({items})") } else { format!("list of {items}") }
            }
            "object" => match node.get("additionalProperties") {
                Some(values @ Value::Object(_)) => format!("object of {}", self.ty(values)),
                Some(_) | None => "object".into(),
            },
            "string" => "text".into(),
            other => other.to_owned(),
        }
    }

    /// A field's meaning and bounds, and its choices if they have no section.
    fn meaning(&self, field: &Value) -> String {
        let mut text = description(field);
        let has_section = |node: &Value| self.section(node).is_some();
        let is_described =
            branches(field).is_some_and(|branches| branches.iter().any(has_section)) || has_section(field);
        if !is_described && field.get("const").is_none() {
            for (value, meaning) in values(field).iter().filter(|(_, meaning)| !meaning.is_empty()) {
                write!(text, " {}: {meaning}", literal(value)).unwrap();
            }
        }
        for bound in bounds(field, &text) {
            write!(text, " {bound}.").unwrap();
        }
        text.trim().to_owned()
    }

    /// The fields that all variants of a tagged choice have, without the tag.
    pub fn shared(&self, pointer: &str) -> String {
        let variants = self.variants(pointer);
        let shared = shared(variants);
        let own = variants[0]["properties"].as_object().unwrap().keys().filter(|name| !shared.contains(*name)).cloned();
        self.table(&variants[0], &own.collect())
    }

    /// Each variant of a tagged choice: its tag, its description, and its own fields.
    pub fn kinds(&self, pointer: &str) -> String {
        let variants = self.variants(pointer);
        let mut without = shared(variants);
        without.insert("type".into());
        let mut text = String::new();
        for variant in variants {
            let tag = variant["properties"]["type"]["const"].as_str().unwrap();
            write!(text, "### {}\n\n{}\n\n", code(tag), description(variant)).unwrap();
            let table = self.table(variant, &without);
            text.push_str(if table.is_empty() { "It has no fields of its own.\n" } else { &table });
            text.push('\n');
        }
        text
    }

    /// The values of a choice with their meaning.
    pub fn choices(&self, pointer: &str) -> String {
        let node = self.at(pointer);
        assert!(is_choice(node), "`{pointer}` is not a choice");
        choices(node)
    }

    /// Like [`Self::choices`], if any value has a description.
    pub fn described_choices(&self, node: &Value) -> Option<String> {
        let described = is_choice(node) && values(node).iter().any(|(_, meaning)| !meaning.is_empty());
        described.then(|| choices(node))
    }
}

fn choices(node: &Value) -> String {
    let rows = values(node).into_iter().map(|(value, meaning)| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        format!("| {} | {meaning} |\n", code(&text))
    });
    format!("| value | meaning |\n|---|---|\n{}", rows.collect::<String>())
}

/// The names of the fields that are the same in all variants.
fn shared(variants: &[Value]) -> BTreeSet<String> {
    let fields = variants[0]["properties"].as_object().unwrap();
    let is_shared =
        |name: &&String| variants.iter().all(|other| other["properties"][name.as_str()] == fields[name.as_str()]);
    fields.keys().filter(is_shared).cloned().collect()
}

/// `a, b or c`, each once; null comes last, and a number covers whole numbers.
fn joined_with_or(types: impl Iterator<Item = String>) -> String {
    let mut choices: Vec<String> = Vec::new();
    for types in types {
        // A text that contains a choice is not split.
        let parts: Vec<&str> = match types.contains('(') {
            true => vec![&types],
            false => types.split(" or ").flat_map(|part| part.split(", ")).collect(),
        };
        for ty in parts {
            if !choices.iter().any(|own| own == ty) {
                choices.push(ty.to_owned());
            }
        }
    }
    if choices.iter().any(|ty| ty == "number") {
        choices.retain(|ty| ty != "integer");
    }
    choices.sort_by_key(|ty| ty == "null");
    match choices.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => choices.concat(),
    }
}

fn allows_null(node: &Value) -> bool {
    node["type"] == "null"
        || node["type"].as_array().is_some_and(|types| types.contains(&"null".into()))
        || node["enum"].as_array().is_some_and(|values| values.contains(&Value::Null))
        || branches(node).is_some_and(|branches| branches.iter().any(allows_null))
}

/// The nested object schema of a field or of its items, and the suffix of its path (`[]` for items).
fn inner(field: &Value) -> (&Value, &'static str) {
    let held = |node: &Value| node["properties"].is_object();
    let branches = branches(field).map(Vec::as_slice).unwrap_or_default();
    if held(field) {
        return (field, "");
    }
    if held(&field["items"]) {
        return (&field["items"], "[]");
    }
    let own = branches.iter().find(|branch| held(branch)).map(|branch| (branch, ""));
    let listed = || branches.iter().find(|branch| held(&branch["items"])).map(|branch| (&branch["items"], "[]"));
    own.or_else(listed).unwrap_or((&Value::Null, ""))
}

/// Bounds of the value that the text `said` doesn't mention.
fn bounds(field: &Value, said: &str) -> Vec<String> {
    let mut texts = Vec::new();
    for (least, most, unit) in
        [("minLength", "maxLength", " characters"), ("minItems", "maxItems", " entries"), ("minimum", "maximum", "")]
    {
        let (least, most) = (&field[least], &field[most]);
        let Some(top) = Some(most).filter(|most| !most.is_null()).map(number) else { continue };
        // Bounds of machine integers are omitted.
        if said.contains(&top) || most.as_f64().is_some_and(|most| unit.is_empty() && most > 1e9) {
            continue;
        }
        texts.push(match least.as_f64() {
            // A length of exactly one: the byte or character itself.
            Some(_) if least == most => continue,
            Some(least_is) if least_is > 0.0 || unit.is_empty() => format!("{} to {top}{unit}", number(least)),
            Some(_) | None => format!("At most {top}{unit}"),
        });
    }
    if field["maxProperties"].is_number() {
        texts.push(format!("At most {} entries", number(&field["maxProperties"])));
    }
    texts
}

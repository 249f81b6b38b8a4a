//! Renders the OpenAPI document as a page: routes by topic, then their types.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use lakemill::http::ErrorCode;
use serde_json::Value;

use super::fields::{Fields, cell, code};

/// Codes that every route may return, listed once.
const COMMON_CODES: &[&str] = &["invalid_request", "payload_too_large", "internal", "overloaded"];
/// Codes that every route under `/api/` may return.
const OF_THE_API: &[&str] = &["kv_unavailable", "s3_error", "bucket_not_found", "unauthorized", "forbidden_origin"];

fn text<'a>(node: &'a Value, name: &str) -> &'a str {
    node[name].as_str().unwrap_or_default()
}

fn title(tag: &str) -> String {
    sentence(&tag.replace('_', " ")).trim_end_matches('.').to_owned()
}

/// All routes, grouped by tag, in the order of the document.
pub fn routes(document: &Value) -> String {
    let mut groups: Vec<(String, Vec<(String, &Value)>)> = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let tag = operation["tags"][0].as_str().unwrap_or_default().to_owned();
            let place = format!("{} {path}", method.to_uppercase());
            match groups.iter_mut().find(|(own, _)| *own == tag) {
                Some((_, routes)) => routes.push((place, operation)),
                None => groups.push((tag, vec![(place, operation)])),
            }
        }
    }
    let mut out = String::new();
    for (tag, operations) in &groups {
        write!(out, "## {}\n\n", title(tag)).unwrap();
        for (place, operation) in operations {
            out.push_str(&route(document, place, operation));
        }
    }
    out
}

fn route(document: &Value, place: &str, operation: &Value) -> String {
    let fields = Fields::new(document);
    let mut out =
        format!("### {}\n\n{}\n\n{}\n\n", code(place), sentence(text(operation, "summary")), needs(operation));
    let parameters = operation["parameters"].as_array().map(Vec::as_slice).unwrap_or_default();
    let parameters: Vec<&Value> = parameters.iter().filter(|parameter| parameter["in"] != "path").collect();
    if !parameters.is_empty() {
        out.push_str("| parameter | in | type | meaning |\n|---|---|---|---|\n");
        for parameter in parameters {
            let required = if parameter["required"] == true { "Required. " } else { "" };
            let repeated = if parameter["schema"]["type"] == "array" { " May be repeated." } else { "" };
            let schema = if repeated.is_empty() { &parameter["schema"] } else { &parameter["schema"]["items"] };
            let meaning = sentence(&cell(text(parameter, "description")));
            let (name, place) = (code(text(parameter, "name")), text(parameter, "in"));
            writeln!(out, "| {name} | {place} | {} | {required}{meaning}{repeated} |", fields.ty(schema)).unwrap();
        }
        out.push('\n');
    }
    out.push_str(&request(&fields, operation));
    out.push_str(&answers(&fields, operation));
    out
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let text =
        letters.next().map(|first| first.to_uppercase().collect::<String>() + letters.as_str()).unwrap_or_default();
    if text.is_empty() || text.ends_with('.') { text } else { format!("{text}.") }
}

/// The credential, and the largest body.
fn needs(operation: &Value) -> String {
    let credential = match operation["security"].as_array().map(Vec::as_slice) {
        Some([]) => "Needs no credential",
        Some([one]) if one["session"].is_array() => "Needs a session",
        Some(_) | None => "Needs the bearer token `SVC_METRICS_TOKEN`; if none is set, answers this machine alone",
    };
    match operation["x-body-bytes-max"].as_u64() {
        Some(most) if most > 0 && operation["requestBody"].is_object() => {
            format!("{credential}. A body has at most {} bytes.", grouped(most))
        }
        Some(_) | None => format!("{credential}."),
    }
}

fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> = digits.as_bytes().rchunks(3).rev().map(|part| std::str::from_utf8(part).unwrap()).collect();
    groups.join(",")
}

fn request(fields: &Fields<'_>, operation: &Value) -> String {
    let Some(content) = operation["requestBody"]["content"].as_object() else { return String::new() };
    let mut out = String::new();
    for (kind, media) in content {
        let Some(schema) = media.get("schema") else {
            write!(out, "Body: {}.\n\n", code(kind)).unwrap();
            continue;
        };
        let table = fields.table(schema, &BTreeSet::new());
        match table.is_empty() {
            true => write!(out, "Body, {}: {}.\n\n", code(kind), fields.ty(schema)).unwrap(),
            false => write!(out, "Body, {}:\n\n{table}\n", code(kind)).unwrap(),
        }
    }
    out
}

fn answers(fields: &Fields<'_>, operation: &Value) -> String {
    let mut out = "| status | description | body |\n|---|---|---|\n".to_owned();
    for (status, response) in operation["responses"].as_object().unwrap() {
        let said = text(response, "description");
        let is_code = |name: &str| ErrorCode::ALL.iter().any(|code| code.as_str() == name);
        if said.split(", ").all(is_code) {
            let codes: Vec<String> = said
                .split(", ")
                .filter(|name| !COMMON_CODES.contains(name) && !OF_THE_API.contains(name))
                .map(code)
                .collect();
            if !codes.is_empty() {
                writeln!(out, "| {status} | {} | [Error](#type-error) |", codes.join(", ")).unwrap();
            }
            continue;
        }
        let bodies: Vec<String> = response["content"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(kind, media)| media.get("schema").map_or_else(|| code(kind), |schema| fields.ty(schema)))
            .collect();
        let headers: Vec<String> =
            response["headers"].as_object().into_iter().flatten().map(|(name, _)| code(name)).collect();
        let with = if headers.is_empty() { String::new() } else { format!(" With {}.", headers.join(", ")) };
        let body = if bodies.is_empty() { "none".to_owned() } else { bodies.join(" or ") };
        writeln!(out, "| {status} | {}{with} | {body} |", cell(&sentence(said))).unwrap();
    }
    out.push('\n');
    out
}

/// The types by name.
pub fn types(document: &Value) -> String {
    let fields = Fields::new(document);
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let mut names: Vec<&String> = schemas.keys().collect();
    names.sort();
    let mut out = String::new();
    for name in names {
        let schema = &schemas[name];
        write!(out, "### Type {}\n\n", code(name)).unwrap();
        let said = cell(text(schema, "description"));
        if !said.is_empty() {
            write!(out, "{said}\n\n").unwrap();
        }
        out.push_str(&body_of(&fields, schema));
        out.push('\n');
    }
    out
}

fn body_of(fields: &Fields<'_>, schema: &Value) -> String {
    let table = fields.answered(schema);
    if !table.is_empty() {
        return table;
    }
    let variants = schema["oneOf"].as_array().or_else(|| schema["anyOf"].as_array());
    let tables: Vec<String> = variants
        .into_iter()
        .flatten()
        .map(|variant| fields.answered(variant))
        .filter(|table| !table.is_empty())
        .collect();
    if !tables.is_empty() {
        return tables.join("\nor\n\n");
    }
    fields.described_choices(schema).unwrap_or_else(|| format!("{}\n", fields.ty(schema)))
}

/// Every code with its status and its meaning.
pub fn errors() -> String {
    let mut out = "| code | status | meaning |\n|---|---|---|\n".to_owned();
    for error in ErrorCode::ALL {
        writeln!(out, "| {} | {} | {} |", code(error.as_str()), error.status(), cell(error.general_message())).unwrap();
    }
    out
}

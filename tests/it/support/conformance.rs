//! Checks responses of the web service against its OpenAPI document.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use jsonschema::Validator;
use lakemill::web::{endpoints, openapi};
use serde_json::{Value, json};

static DOCUMENT: LazyLock<Value> = LazyLock::new(|| openapi(&endpoints()));
/// Templates whose last name matches the rest of a path, which the document can't express.
static WILDCARD_TEMPLATES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let patterns = endpoints().into_iter().map(|endpoint| endpoint.pattern);
    patterns.filter(|pattern| pattern.ends_with("...}")).map(|pattern| pattern.replace("...}", "}")).collect()
});
/// By operation id and status.
static VALIDATORS: LazyLock<Mutex<HashMap<(String, u16), &'static Validator>>> = LazyLock::new(Mutex::default);

/// Checks that the document describes a response.
#[track_caller]
pub fn check(method: &str, path: &str, status: u16, content_type: Option<&str>, body: &[u8]) {
    let path = path.split('?').next().unwrap_or_default();
    let is_error = |code: u16| status == code && body_of(body).is_some_and(|body| body["error"].is_string());
    let Some(operation) = operation(method, path) else {
        // The 404 page.
        let is_page = status == 404 && content_type.is_some_and(|sent| sent.starts_with("text/html"));
        assert!(
            is_page || is_error(404) || is_error(405) || is_error(401) || is_error(400) || is_error(403),
            "{method} {path}: {status}"
        );
        return;
    };
    let id = operation["operationId"].as_str().unwrap();
    let response = &operation["responses"][status.to_string()];
    assert!(response.is_object(), "{id}: {status} isn't documented: {}", String::from_utf8_lossy(body));
    let Some(content) = response["content"].as_object() else {
        assert!(body.is_empty(), "{id} {status}: a body isn't documented");
        return;
    };
    let sent = content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    let fits = |documented: &str| {
        let documented = documented.split(';').next().unwrap_or_default().trim();
        documented == sent || documented == "*/*"
    };
    assert!(content.keys().any(|key| fits(key)), "{id} {status}: `{sent}` isn't documented");
    let schema = &content.get("application/json").unwrap_or(&Value::Null)["schema"];
    if sent == "application/json" && schema.is_object() && method != "HEAD" {
        let body = body_of(body).unwrap_or_else(|| panic!("{id} {status}: no JSON: {}", String::from_utf8_lossy(body)));
        let validator = validator(id, status, schema);
        let problems: Vec<String> =
            validator.iter_errors(&body).map(|error| format!("{}: {error}", error.instance_path())).collect();
        assert!(problems.is_empty(), "{id} {status}: {}\n{body:#}", problems.join("\n"));
    }
}

fn body_of(body: &[u8]) -> Option<Value> {
    serde_json::from_slice(body).ok()
}

/// The most specific operation for a path.
fn operation(method: &str, path: &str) -> Option<&'static Value> {
    let method = if method == "HEAD" { "get".to_owned() } else { method.to_lowercase() };
    let segments: Vec<&str> = path.split('/').collect();
    let matches = |template: &str| {
        let parts: Vec<&str> = template.split('/').collect();
        let same = |(part, segment): (&&str, &&str)| part.starts_with('{') && !segment.is_empty() || part == segment;
        let whole = parts.len() == segments.len()
            || WILDCARD_TEMPLATES.iter().any(|rest| rest == template) && parts.len() < segments.len();
        whole && parts.iter().zip(&segments).all(same)
    };
    let paths = DOCUMENT["paths"].as_object()?;
    let best = paths
        .iter()
        .filter(|(template, _)| matches(template))
        .min_by_key(|(template, _)| template.matches('{').count());
    best.and_then(|(_, item)| item.get(&method))
}

fn validator(id: &str, status: u16, schema: &Value) -> &'static Validator {
    let mut validators = VALIDATORS.lock().unwrap_or_else(PoisonError::into_inner);
    validators.entry((id.to_owned(), status)).or_insert_with(|| {
        let root = json!({ "components": DOCUMENT["components"], "allOf": [schema] });
        Box::leak(Box::new(jsonschema::draft202012::new(&root).unwrap()))
    })
}

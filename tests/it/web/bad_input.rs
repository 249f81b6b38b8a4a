//! Bad input never causes a server error or a change, on any route. Requests are generated from the OpenAPI document,
//! so that new routes are included.

use lakemill::web::{Content, Endpoint, Web, endpoints, openapi};
use serde_json::{Map, Value, json};

use crate::support::browser::{Browser, Reply};
use crate::support::site::{Kind, Service, Site};

/// Valid bodies, by operation. Every operation with a JSON body must be listed here.
fn body(id: &str) -> Value {
    match id {
        "auth.login" => json!({ "password": "wrong horse" }),
        "config.put" | "config.validate" | "jobs.dry_run" => json!({ "version": 1, "mappings": [] }),
        "preview.run" => json!({ "config": { "version": 1, "mappings": [] } }),
        "dashboards.create" => json!({ "name": "sales" }),
        "dashboards.data" => json!({ "params": {} }),
        "lake.move" => json!({ "from": "pipelines/shop/in/a.csv", "to": "pipelines/shop/in/b.csv" }),
        "pipelines.create" => json!({ "slug": "made", "template": "blank" }),
        "pipelines.rename" => json!({ "newSlug": "moved" }),
        "queries.create" => json!({ "name": "all", "sql": "SELECT 1" }),
        "queries.update" => json!({ "name": "some", "sql": "SELECT 2" }),
        "query.run" | "query.download" => json!({ "sql": "SELECT 1 AS one" }),
        "query.cancel" => json!({ "query_id": "one" }),
        "tables.restore" => json!({ "sequence": 1 }),
        "pauses.pause" | "pauses.pause_all" => json!({ "reason": "held" }),
        "settings.put" => json!({ "display_name": "Ann", "workspace_name": "Lake", "starred": [] }),
        other => panic!("`{other}` takes JSON, and this test doesn't know what"),
    }
}

/// Values for path parameters.
fn value(name: &str) -> &'static str {
    match name {
        "pipeline" | "slug" => "shop",
        "table" => "t",
        "name" => "board",
        "id" => "0190a5d0-0000-7000-8000-000000000000",
        "sequence" | "version" => "1",
        other => panic!("`{{{other}}}` is in a path, and this test doesn't know what it is"),
    }
}

/// Values for required query parameters.
fn required(name: &str) -> &'static str {
    match name {
        "key" => "key=pipelines/shop/in/a.csv",
        "format" => "format=csv",
        other => panic!("`{other}` is required, and this test doesn't know what it is"),
    }
}

struct Shop {
    site: Site,
    _worker: Service,
    _web: Service,
    browser: Browser,
}

/// A pipeline with a table, and a session.
fn shop(kind: Kind) -> Shop {
    let site = Site::new(kind);
    site.pipeline("shop", &json!({}));
    site.put("shop", "in/a.csv", "a,b\nx,1\ny,2\n");
    let (worker, web) = site.worker_and_web();
    site.await_end(&site.enqueue("shop"));
    let browser = Browser::log_in(&web);
    Shop { site, _worker: worker, _web: web, browser }
}

/// Routes that can be called without ending the session or being throttled.
fn walked() -> Vec<Endpoint<Web>> {
    let mut endpoints = endpoints();
    endpoints.retain(|e| e.pattern.starts_with("/api/") && !e.operation.id.starts_with("auth."));
    endpoints
}

/// The path of an endpoint, with `change` as its first parameter if given.
fn path(endpoint: &Endpoint<Web>, change: Option<&str>) -> String {
    let mut change = change;
    let segment = |part: &str| match part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) {
        Some(name) => change.take().unwrap_or_else(|| value(name)).to_owned(),
        None => part.to_owned(),
    };
    endpoint.pattern.split('/').map(segment).collect::<Vec<_>>().join("/")
}

/// The required query string of an endpoint, without the parameter `but`.
fn query(endpoint: &Endpoint<Web>, but: Option<&str>) -> Vec<String> {
    let parameters = endpoint.operation.query.iter().filter(|parameter| parameter.required);
    parameters.filter(|parameter| Some(parameter.name) != but).map(|p| required(p.name).to_owned()).collect()
}

fn target(path: &str, query: &[String]) -> String {
    if query.is_empty() { path.to_owned() } else { format!("{path}?{}", query.join("&")) }
}

fn takes_json(endpoint: &Endpoint<Web>) -> bool {
    matches!(endpoint.operation.request, Some(Content::Json(_)))
}

/// Sends the endpoint's valid input to `target`.
fn send(browser: &Browser, endpoint: &Endpoint<Web>, target: &str) -> Reply {
    let body = if takes_json(endpoint) { body(endpoint.operation.id).to_string() } else { String::new() };
    browser.send(endpoint.method.as_str(), target, &[], body.as_bytes())
}

#[track_caller]
fn refused(reply: &Reply, what: &str) {
    assert!((400..500).contains(&reply.status), "{what}: {} {}", reply.status, reply.text());
    assert!(reply.json()["error"].is_string(), "{what}: {}", reply.text());
}

#[test]
fn invalid_names_are_rejected_on_every_route() {
    let long = "x".repeat(5_000);
    let names = [
        "Nope",
        "a%20b",
        "%2e%2e",
        "%252e%252e",
        "..%2f..",
        "%2fetc%2fpasswd",
        "%ff",
        "%00",
        "sh%C3%B6p",
        "-x",
        "a.b",
        "%EF%BC%8E%EF%BC%8E",
        "%E2%80%AEx",
        "a%5Cb",
        "%0d%0aX:y",
        &long,
        "..",
        "%c0%ae%c0%ae",
    ];
    for kind in [Kind::Embedded, Kind::Fleet] {
        let shop = shop(kind);
        let before = shop.site.contents();
        for endpoint in walked().iter().filter(|endpoint| endpoint.pattern.contains('{')) {
            // They return a verdict, whatever the names.
            let verdicts = ["config.validate", "dashboards.validate"];
            for name in names.into_iter().filter(|_| !verdicts.contains(&endpoint.operation.id)) {
                let target = target(&path(endpoint, Some(name)), &query(endpoint, None));
                let reply = send(&shop.browser, endpoint, &target);
                refused(&reply, &format!("{} {target}", endpoint.operation.id));
            }
        }
        assert_eq!(shop.site.contents(), before);
    }
}

#[test]
fn missing_pipelines_are_not_found() {
    // These create a pipeline, need none, or return a verdict.
    let makes = ["config.put", "config.validate", "dashboards.validate"];
    let shop = shop(Kind::Embedded);
    let before = shop.site.contents();
    for endpoint in walked() {
        let pattern = endpoint.pattern;
        if !(pattern.contains("{pipeline}") || pattern.contains("{slug}")) || makes.contains(&endpoint.operation.id) {
            continue;
        }
        let target = target(&path(&endpoint, Some("nobody")), &query(&endpoint, None));
        let reply = send(&shop.browser, &endpoint, &target);
        let is_form = endpoint.operation.id == "query.cancel";
        assert!(reply.status == 404 || is_form && reply.status < 500, "{target}: {} {}", reply.status, reply.text());
    }
    assert_eq!(shop.site.contents(), before);
}

/// Values that are invalid in most schemas.
fn invalid_values() -> Vec<Value> {
    let deep = (0..100).fold(json!(1), |inner, _| json!([inner]));
    let text = |text: &str| Value::String(text.to_owned());
    vec![
        Value::Null,
        json!(true),
        json!(-1),
        json!(1.5e300),
        json!(18_446_744_073_709_551_615_u64),
        text(""),
        text("\u{0}"),
        text("\u{202e}x"),
        text("../../etc/passwd"),
        text("%2e%2e%2f"),
        text(&"x".repeat(70_000)),
        json!([]),
        json!({}),
        json!([1, "a", null]),
        json!({ "a": { "b": 1 } }),
        deep,
    ]
}

/// `body` with each member missing, with every odd value, and with an additional member; and bodies that are not an
/// object.
fn mutated(body: &Value) -> Vec<Value> {
    let mut found = invalid_values();
    let Value::Object(members) = body else { return found };
    for name in members.keys() {
        let mut less = members.clone();
        less.remove(name);
        found.push(Value::Object(less));
        for value in invalid_values() {
            let mut other = members.clone();
            other.insert(name.clone(), value);
            found.push(Value::Object(other));
        }
    }
    let mut more: Map<String, Value> = members.clone();
    more.insert("surplus".into(), json!(1));
    found.push(Value::Object(more));
    found
}

#[test]
fn bodies_outside_the_openapi_document_are_rejected() {
    for kind in [Kind::Embedded, Kind::Fleet] {
        let shop = shop(kind);
        let document = openapi(&endpoints());
        let before = shop.site.contents();
        let mut allowed = Vec::new();
        for endpoint in walked().iter().filter(|endpoint| takes_json(endpoint)) {
            let id = endpoint.operation.id;
            let method = endpoint.method.as_str();
            let operation = &document["paths"][endpoint.pattern][method.to_lowercase()];
            let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
            let validator = jsonschema::draft202012::new(schema).unwrap();
            let target = target(&path(endpoint, None), &query(endpoint, None));
            for body in mutated(&body(id)) {
                if validator.is_valid(&body) {
                    allowed.push((method, target.clone(), body));
                    continue;
                }
                let reply = shop.browser.json(method, &target, &body);
                refused(&reply, &format!("{id} {:.200}", body.to_string()));
            }
            for text in
                [&b"\xff\xfe{}"[..], b"{\"a\":1,}", b"{\"a\":1}{\"a\":2}", b"\xef\xbb\xbf{}", b"{'a':1}", b"NaN"]
            {
                let reply = shop.browser.send(method, &target, &[], text);
                refused(&reply, &format!("{id} {text:?}"));
            }
        }
        assert_eq!(shop.site.contents(), before);
        // Valid input may succeed or be rejected, but must not cause a server error.
        for (method, target, body) in allowed {
            let reply = shop.browser.json(method, &target, &body);
            assert!(reply.status < 500, "{method} {target} {:.200}: {}", body.to_string(), reply.text());
        }
    }
}

#[test]
fn missing_and_malformed_parameters_are_client_errors() {
    let values = [
        "",
        "-1",
        "0",
        "1e9",
        "99999999999999999999",
        "abc",
        "%00",
        "%ff",
        "..",
        "%2e%2e%2fx",
        "%252e%252e",
        "true",
        "%27%22",
        "a%3Aeq%3A1",
        "%E2%80%AE",
        "null",
        "%5B%5D",
    ];
    let shop = shop(Kind::Embedded);
    let before = shop.site.contents();
    for endpoint in walked() {
        let path = path(&endpoint, None);
        for parameter in &endpoint.operation.query {
            let rest = query(&endpoint, Some(parameter.name));
            if parameter.required {
                let reply = send(&shop.browser, &endpoint, &target(&path, &rest));
                refused(&reply, &format!("{} without `{}`", endpoint.operation.id, parameter.name));
            }
            // Only reads, since an odd value may be valid.
            let reads = endpoint.method.as_str() == "GET" || endpoint.operation.id.starts_with("query.");
            for value in values.iter().filter(|_| reads) {
                let mut query = rest.clone();
                query.push(format!("{}={value}", parameter.name));
                let target = target(&path, &query);
                let reply = send(&shop.browser, &endpoint, &target);
                assert!(reply.status < 500, "{target}: {} {}", reply.status, reply.text());
                query.push(format!("{}={value}", parameter.name));
                let target = format!("{path}?{}", query.join("&"));
                let reply = send(&shop.browser, &endpoint, &target);
                assert!(reply.status < 500, "{target}: {} {}", reply.status, reply.text());
                if !parameter.repeated {
                    refused(&reply, &target);
                }
            }
        }
    }
    assert_eq!(shop.site.contents(), before);
}

#[test]
fn every_route_reports_store_outages_and_recovers() {
    for kind in [Kind::Embedded, Kind::Fleet] {
        let shop = shop(kind);
        let before = shop.site.contents();
        // These need no object; and an import checks its form first.
        let none = [
            "about.get",
            "config.validate",
            "jobs.run",
            "jobs.cancel",
            "query.cancel",
            "pipelines.import",
            "notifications.list",
            "notifications.test",
            "pauses.list",
            "pauses.pause_all",
            "pauses.resume_all",
        ];
        let code = shop.site.break_store();
        for endpoint in walked().iter().filter(|endpoint| !none.contains(&endpoint.operation.id)) {
            let target = target(&path(endpoint, None), &query(endpoint, None));
            let reply = send(&shop.browser, endpoint, &target);
            assert_eq!(reply.status, 502, "{} {target}: {}", endpoint.operation.id, reply.text());
            reply.refused(502, code);
        }
        shop.site.restore_store();
        assert_eq!(shop.site.contents(), before);
        shop.site.break_kv();
        for endpoint in walked() {
            let target = target(&path(&endpoint, None), &query(&endpoint, None));
            send(&shop.browser, &endpoint, &target).refused(503, "kv_unavailable");
        }
        shop.site.restore_kv();
        assert_eq!(shop.site.contents(), before);
        shop.browser.get("/api/pipelines").ok();
    }
}

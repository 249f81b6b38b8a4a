//! Routing, credentials, content types and errors, over the wire.

use std::collections::HashSet;

use lakemill::http::{ApiError, BodyRule, ErrorCode, GuardLimits, Method, Router, STANDARD_HEADERS};

use super::http_support::*;

fn running() -> Running {
    start(GuardLimits::default())
}

#[test]
fn path_parameters_are_decoded_once() {
    let server = running();
    let reply = server.get("/echo/a%2Fb%20%2525/%C3%A9?x=1&y=a+b&x=%26");
    assert_eq!(reply.status, 200);
    let value = reply.json();
    assert_eq!((value["a"].as_str(), value["b"].as_str()), (Some("a/b %25"), Some("é")));
    assert_eq!(value["query"], serde_json::json!([["x", "1"], ["y", "a b"], ["x", "&"]]));
    assert_eq!(server.get("/echo/1/exact").json()["b"], "", "the more exact pattern goes before");
    assert_eq!(server.get("/rest/x/y/z").json()["a"], "x/y/z");
    assert_eq!(server.get("/%65cho").status, 200);
}

#[test]
fn unknown_paths_are_404_and_unknown_methods_405_with_allow() {
    let server = running();
    for target in ["/nothing", "/echo/", "/echo/a/b/c", "//echo", "/echo//b", "/HEALTH", "/health/"] {
        let reply = server.get(target);
        assert_eq!((reply.status, reply.json()["error"].as_str()), (404, Some("not_found")), "{target}");
    }
    for (method, target, allow) in [
        ("PUT", "/echo", "GET, HEAD, POST, DELETE"),
        ("OPTIONS", "/echo", "GET, HEAD, POST, DELETE"),
        ("BREW", "/health", "GET, HEAD"),
        ("GET", "/yaml", "PUT, PATCH"),
        ("HEAD", "/json", "POST"),
    ] {
        let mut client = server.connect();
        client.send(format!("{method} {target} HTTP/1.1\r\nHost: a\r\n\r\n"));
        let reply = client.head().unwrap();
        assert_eq!((reply.status, reply.header("allow")), (405, Some(allow)), "{method} {target}");
    }
}

#[test]
fn malformed_escapes_are_400() {
    let server = running();
    for target in ["/echo/%00", "/echo/%ff", "/echo/%", "/echo/%4", "/echo/%zz", "/echo?a=%zz", "/echo#a", "echo", "*"]
    {
        let reply = server.get(target);
        assert_eq!((reply.status, reply.json()["error"].as_str()), (400, Some("invalid_request")), "{target}");
    }
}

#[test]
fn head_is_answered_like_get_without_a_body() {
    let server = running();
    let mut client = server.connect();
    client.send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
    let head = client.head().unwrap();
    assert_eq!((head.status, head.header("content-length")), (200, Some("4")));
    client.send("HEAD /give?n=5 HTTP/1.1\r\nHost: a\r\n\r\n");
    let head = client.head().unwrap();
    assert_eq!((head.status, head.header("content-length")), (200, None));
    client.send("HEAD /nothing HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.head().unwrap().status, 404);
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.reply().text(), "root");
}

#[test]
fn absolute_target_is_routed_by_its_path() {
    let server = running();
    assert_eq!(server.get("http://elsewhere:80/echo/x").json()["a"], "x");
    assert_eq!(server.get("http://elsewhere").text(), "root");
}

#[test]
fn credentials_are_checked_before_the_body_is_read() {
    let server = running();
    let mut client = server.connect();
    // The body never comes.
    client.send("POST /token HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n");
    let reply = client.reply();
    assert_eq!((reply.status, reply.json()["error"].as_str()), (401, Some("unauthorized")));
    assert!(reply.closes() && client.is_closed());
    let ask = |fields: &str| server.ask(&format!("POST /token HTTP/1.1\r\nHost: a\r\n{fields}\r\n")).status;
    assert_eq!(ask(&format!("Authorization: Bearer {TOKEN}\r\n")), 200);
    assert_eq!(ask(&format!("Authorization: {TOKEN}\r\n")), 401);
    assert_eq!(ask("Authorization: Bearer t0ken2\r\n"), 401);
    let ask = |fields: &str| server.ask(&format!("POST /webhook HTTP/1.1\r\nHost: a\r\n{fields}\r\n")).status;
    assert_eq!(ask(&format!("Authorization: {TOKEN}\r\n")), 200);
    assert_eq!(ask(&format!("X-Svc-Webhook-Secret: {TOKEN}\r\n")), 200);
    assert_eq!(ask(""), 401);
}

#[test]
fn service_can_reject_a_request_before_routing() {
    let server = running();
    for target in ["/closed", "/closed/nothing", "/%63losed/x"] {
        assert_eq!(server.get(target).status, 401, "{target}");
    }
    assert_eq!(server.get("/closedish").status, 404);
}

#[test]
fn content_type_is_checked_if_there_is_a_body() {
    let server = running();
    let post = |path: &str, fields: &str, body: &str| {
        let length = body.len();
        server.ask(&format!("{path} HTTP/1.1\r\nHost: a\r\n{fields}Content-Length: {length}\r\n\r\n{body}")).status
    };
    assert_eq!(post("POST /json", "", "{\"a\":1}"), 200);
    assert_eq!(post("POST /json", "Content-Type: application/json; charset=utf-8\r\n", "{\"a\":1}"), 200);
    assert_eq!(post("POST /json", "content-type: Application/JSON\r\n", "{\"a\":1}"), 200);
    assert_eq!(post("POST /json", "Content-Type: text/plain\r\n", "{\"a\":1}"), 415);
    assert_eq!(post("POST /json", "Content-Type: application/jsonx\r\n", "{\"a\":1}"), 415);
    let twice = "Content-Type: application/json\r\nContent-Type: text/plain\r\n";
    assert_eq!(post("POST /json", twice, "{\"a\":1}"), 415);
    assert_eq!(post("PUT /yaml", "Content-Type: text/yaml\r\n", "a: 1"), 200);
    assert_eq!(post("PUT /yaml", "Content-Type: application/json\r\n", "{}"), 415);
    assert_eq!(post("POST /echo", "Content-Type: image/png\r\n", "x"), 200);
    assert_eq!(post("POST /json", "", "{\"a\":"), 400);
    assert_eq!(post("POST /json", "", "{\"a\":\"x\"}"), 400);
    // A list of a struct's fields is not an object.
    assert_eq!(post("POST /json", "", "[1]"), 400);
}

#[test]
fn every_error_code_has_its_status() {
    let table: &[(u16, &[&str])] = &[
        (400, &["invalid_request", "invalid_slug", "invalid_key", "invalid_sql", "invalid_event"]),
        (401, &["unauthorized"]),
        (403, &["forbidden_origin"]),
        (404, &["not_found", "pipeline_not_found", "pipeline_config_not_found", "dashboard_not_found"]),
        (404, &["table_not_found", "version_not_found", "query_not_found", "job_not_found", "object_not_found"]),
        (405, &["method_not_allowed"]),
        (409, &["already_exists", "name_taken", "pipeline_busy", "no_targets"]),
        (412, &["precondition_failed"]),
        (413, &["payload_too_large"]),
        (415, &["unsupported_media_type"]),
        (421, &["misdirected_request"]),
        (422, &["invalid_config", "invalid_dashboard", "invalid_archive", "table_damaged"]),
        (422, &["query_timeout", "query_out_of_memory", "query_too_large", "query_cancelled"]),
        (429, &["too_many_requests"]),
        (500, &["internal"]),
        (502, &["s3_error", "bucket_not_found", "worker_unavailable"]),
        (503, &["kv_unavailable", "overloaded"]),
    ];
    let expected: HashSet<(u16, &str)> =
        table.iter().flat_map(|(status, codes)| codes.iter().map(|code| (*status, *code))).collect();
    let found: HashSet<(u16, &str)> = ErrorCode::ALL.iter().map(|code| (code.status(), code.as_str())).collect();
    assert_eq!(found, expected);
    assert_eq!(ErrorCode::ALL.len(), expected.len());
    for code in ErrorCode::ALL {
        let error = ApiError::new(*code, "the inside");
        assert_eq!(error.message() == "the inside", code.status() < 500, "{code}: only a 4xx shows its text");
    }
}

#[test]
fn errors_have_a_fixed_shape_without_internals() {
    let server = running();
    let reply = server.get("/odd/internal");
    let value = reply.json();
    assert_eq!((reply.status, value["error"].as_str()), (500, Some("internal")));
    assert!(!reply.text().contains("secret of the inside"));
    assert_eq!(value["request_id"].as_str(), reply.header("x-request-id"));
    assert_eq!(reply.header("content-type"), Some("application/json"));
    let reply = server.get("/odd/problems");
    let value = reply.json();
    assert_eq!((reply.status, value["message"].as_str()), (422, Some("two problems")));
    assert_eq!(value["problems"], serde_json::json!(["one", "two"]));
    let reply = server.get("/odd/slow-down");
    assert_eq!((reply.status, reply.header("retry-after")), (429, Some("2")));
    assert!(server.get("/odd/else").json().get("problems").is_none());
}

#[test]
fn panic_is_a_500_and_the_service_continues() {
    let server = running();
    let mut client = server.connect();
    client.send("GET /odd/panic HTTP/1.1\r\nHost: a\r\n\r\n");
    let reply = client.reply();
    assert_eq!((reply.status, reply.json()["error"].as_str()), (500, Some("internal")));
    assert!(!reply.text().contains("bug"));
    client.send("GET /health HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.reply().text(), "well", "on the same connection");
    server.seen.panic_in_authorize.store(true, std::sync::atomic::Ordering::SeqCst);
    assert_eq!(server.get("/health").status, 500);
    server.seen.panic_in_authorize.store(false, std::sync::atomic::Ordering::SeqCst);
    assert_eq!(server.get("/health").status, 200);
}

#[test]
fn every_response_has_the_standard_headers() {
    let server = running();
    for target in ["/health", "/nothing", "/odd/internal", "/odd/nothing", "/%zz", "/give?n=10"] {
        let reply = server.get(target);
        for (name, value) in STANDARD_HEADERS {
            assert_eq!(reply.header(name), Some(*value), "{name} of {target}");
        }
        assert!(reply.header("x-request-id").is_some() && reply.header("server").is_none(), "{target}");
    }
}

#[test]
fn handlers_can_set_cache_control_but_not_framing() {
    let server = running();
    let reply = server.get("/odd/own-headers");
    assert_eq!((reply.status, reply.text()), (200, "abc"));
    assert_eq!(reply.header("cache-control"), Some("max-age=60"));
    assert_eq!((reply.header("content-length"), reply.header("connection")), (Some("3"), None));
    assert_ne!(reply.header("x-request-id"), Some("mine"));
    let reply = server.get("/odd/header");
    assert_eq!((reply.status, reply.header("x-evil")), (500, None), "a header that can't be sent");
}

#[test]
fn request_ids_are_echoed_if_well_formed() {
    let server = running();
    let ask = |fields: &str| server.ask(&format!("GET /echo HTTP/1.1\r\nHost: a\r\n{fields}\r\n"));
    let reply = ask("X-Request-Id: my-ID-1\r\n");
    assert_eq!((reply.header("x-request-id"), reply.json()["id"].as_str()), (Some("my-ID-1"), Some("my-ID-1")));
    let long = format!("X-Request-Id: {}\r\n", "x".repeat(65));
    for fields in
        ["", "X-Request-Id: a b\r\n", "X-Request-Id: a_b\r\n", &long, "X-Request-Id: a\r\nX-Request-Id: b\r\n"]
    {
        let reply = ask(fields);
        let id = reply.header("x-request-id").unwrap();
        assert_eq!(uuid::Uuid::parse_str(id).unwrap().get_version_num(), 7, "{fields}");
    }
}

#[test]
fn routes_can_be_listed() {
    let router = Router::new(routes());
    let upload = router.routes().iter().find(|route| route.pattern == "/upload").unwrap();
    assert_eq!(
        (upload.method, upload.credential, upload.body),
        (Method::Put, Auth::Nothing, BodyRule::stream(STREAM_MAX))
    );
    let unique: HashSet<_> = router.routes().iter().map(|route| (route.method, route.pattern)).collect();
    assert_eq!(unique.len(), router.routes().len());
}

#[test]
fn requests_are_counted_by_route() {
    let server = running();
    server.get("/health");
    server.get("/echo/1");
    server.get("/echo/2");
    server.get("/nothing");
    let metrics = server.metrics();
    // Each is counted after its response.
    let counts = || {
        let of = |method, route, class| metrics.requests(method, route, class);
        [of("none", "none", 4), of("GET", "/health", 2), of("GET", "/echo/{a}", 2)]
    };
    wait_until("the requests are counted", || counts() == [1, 1, 2]);
    assert_eq!(metrics.connections().accepted, 4);
}

//! Schemathesis sends valid and invalid requests: no response may be a 500, and each must conform to the OpenAPI document.

use std::path::PathBuf;
use std::process::Command;

use serde_json::json;

use crate::support::browser::Browser;
use crate::support::children::Reaped as _;
use crate::support::site::{Kind, Site};

/// Deterministic cases.
const SEED: &str = "20261121";
/// Maximum number of cases per kind and operation.
const EXAMPLES_MAX: &str = "12";
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,\
                      response_headers_conformance,unsupported_method,ignored_auth";

#[test]
fn responses_conform_to_the_openapi_document() {
    let python = PathBuf::from(std::env::var("LAKEMILL_TEST_PYTHON").expect("scripts/test sets it"));
    let site = Site::new(Kind::Embedded);
    site.pipeline("shop", &json!({}));
    site.put("shop", "in/a.csv", "a,b\nx,1\ny,2\n");
    let (_worker, web) = site.worker_and_web();
    site.await_end(&site.enqueue("shop"));
    let browser = Browser::log_in(&web);
    let output = Command::new(python.with_file_name("st"))
        .args(["run", &format!("http://{}/openapi.json", browser.address)])
        .args(["--header", &format!("Cookie: {}", browser.cookie.as_deref().unwrap())])
        .args(["--phases", "examples,coverage,fuzzing", "--checks", CHECKS])
        .args(["--max-examples", EXAMPLES_MAX, "--seed", SEED, "--generation-database", "none", "--no-color"])
        // They would end the session, and throttle later requests.
        .args(["--exclude-operation-id", "auth.logout", "--exclude-operation-id", "auth.login"])
        .args(["--continue-on-failure", "--suppress-health-check", "all", "--warnings", "off"])
        .current_dir(site.home())
        .env("HYPOTHESIS_STORAGE_DIRECTORY", site.home().join("hypothesis"))
        .output_reaped()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
}

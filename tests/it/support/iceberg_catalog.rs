//! An Iceberg REST catalog built with PyIceberg, and PyIceberg as a reader of its tables.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use lakemill::adapters::iceberg::RestCatalog;
use lakemill::config::{CatalogAccess, CatalogConfig, NetworkConfig};
use lakemill::runtime::SystemClock;
use serde_json::{Value, json};

use super::children::Reaped as _;

/// A catalog; it ends when dropped.
pub struct IcebergCatalogServer {
    child: Child,
    pub port: u16,
}

fn python() -> String {
    std::env::var("LAKEMILL_TEST_PYTHON")
        .expect("LAKEMILL_TEST_PYTHON names a Python with pyiceberg: run the tests by scripts/test")
}

impl IcebergCatalogServer {
    /// `options`: see the script.
    pub fn start(options: &[&str]) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/support/iceberg_catalog.py");
        let mut command = Command::new(python());
        command.arg(script).args(options).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.env("PYTHONDONTWRITEBYTECODE", "1").spawn_reaped().unwrap();
        let line = BufReader::new(child.stdout.take().unwrap()).lines().next();
        let port = line.expect("the catalog starts").unwrap().parse().unwrap();
        Self { child, port }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub fn client(&self, access: CatalogAccess) -> RestCatalog {
        let config = CatalogConfig { url: self.url(), warehouse: None, parents: Vec::new(), access };
        RestCatalog::open(&config, None, Arc::new(SystemClock), &NetworkConfig::default()).unwrap()
    }

    fn test(&self, arrange: Option<Value>) -> Value {
        let url = format!("{}/test", self.url());
        let mut response = match arrange {
            Some(body) => ureq::post(url).content_type("application/json").send(body.to_string().as_bytes()).unwrap(),
            None => ureq::get(url).call().unwrap(),
        };
        serde_json::from_str(&response.body_mut().read_to_string().unwrap()).unwrap()
    }

    /// Has the next requests fail, or succeed without saying so.
    pub fn fail(&self, requests: u32, after: bool) {
        self.test(Some(json!({ "fail": requests, "after": after })));
    }

    pub fn expire_tokens(&self) {
        self.test(Some(json!({ "expire": true })));
    }

    /// Commits a snapshot of another program.
    pub fn commit_foreign(&self, namespace: &str, table: &str) {
        self.test(Some(json!({ "foreign": [namespace, table] })));
    }

    /// The requests since the start, as method and path.
    pub fn requests(&self) -> Vec<String> {
        serde_json::from_value(self.test(None)["requests"].clone()).unwrap()
    }

    /// The tables, as `namespace.table`.
    pub fn tables(&self) -> Vec<String> {
        serde_json::from_value(self.test(None)["tables"].clone()).unwrap()
    }

    /// The metadata of a table.
    pub fn metadata(&self, namespace: &str, table: &str) -> Option<Value> {
        let tables = self.test(None)["metadata"].clone();
        tables.get(format!("{namespace}.{table}")).cloned()
    }

    /// What PyIceberg reads of a table by the catalog: the rows of each snapshot, oldest first, as JSON. `properties`: of
    /// its file system.
    pub fn read(&self, namespace: &str, table: &str, properties: &Value) -> Value {
        let mut command = Command::new(python());
        command.args(["-c", READ, &self.url(), namespace, table]).arg(properties.to_string());
        let output = command.env("PYTHONDONTWRITEBYTECODE", "1").output_reaped().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

const READ: &str = r#"
import json, sys
from pyiceberg.catalog import load_catalog
url, namespace, name, properties = sys.argv[1:]
table = load_catalog("test", type="rest", uri=url, **json.loads(properties)).load_table((namespace, name))
snapshots = sorted(table.metadata.snapshots, key=lambda snapshot: snapshot.sequence_number)
rows = lambda at: sorted(table.scan(snapshot_id=at.snapshot_id).to_arrow().to_pylist(), key=repr)
print(json.dumps([rows(at) for at in snapshots], default=str))
"#;

impl Drop for IcebergCatalogServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

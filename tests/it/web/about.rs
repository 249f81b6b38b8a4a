//! The about page.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use super::on_both;
use crate::support::browser::Browser;
use crate::support::site::{Kind, Site};

fn time(value: &Value) -> DateTime<Utc> {
    DateTime::parse_from_rfc3339(value.as_str().unwrap()).unwrap().to_utc()
}

#[test]
fn about_shows_backends_and_no_secrets() {
    on_both(|kind| {
        let site = Site::new(kind);
        let web = site.web_with(&[("SVC_QUERY_TIMEOUT_MS", "1500"), ("SVC_SESSION_IDLE_S", "600")]);
        let reply = Browser::log_in(&web).get("/api/about").ok();
        let about = reply.json();
        assert_eq!(about["version"], env!("CARGO_PKG_VERSION"));
        assert!(about["duckdb_version"].as_str().unwrap().starts_with("1."), "{about}");
        assert_eq!(about["tzdb_version"], lakemill::domain::zones::bundled_version());
        let buckets = json!({
            "pipelines": site.env()["S3_BUCKET_PIPELINES"], "lake": site.env()["S3_BUCKET_LAKE"],
            "warehouse": site.env()["S3_BUCKET_WAREHOUSE"]
        });
        let (store, queue) = match kind {
            Kind::Embedded => (json!({ "kind": "folder", "endpoint": null, "buckets": buckets }), "sqlite"),
            Kind::Fleet => {
                let host = site.env()["OBJ_ENDPOINT_URL"].strip_prefix("http://").unwrap();
                (json!({ "kind": "s3", "endpoint": host, "buckets": buckets }), "redis")
            }
        };
        assert_eq!((&about["store"], &about["queue"]["kind"]), (&store, &json!(queue)));
        let confinement = &about["confinement"];
        assert!(["fully", "partly", "not"].contains(&confinement["landlock"].as_str().unwrap()), "{about}");
        assert_eq!(confinement["landlock"] == "not", confinement["landlock_abi"].is_null(), "{about}");
        assert!(confinement["seccomp"].is_boolean() && confinement["namespaces"].is_boolean(), "{about}");
        assert_eq!(about["limits"]["upload_bytes_max"], 104_857_600);
        assert_eq!(about["limits"]["query_timeout_s"], 1.5);
        assert_eq!((&about["session"]["idle_s"], &about["session"]["absolute_s"]), (&json!(600), &json!(86_400)));
        let left = time(&about["session"]["expires_at"]) - time(&about["server_time"]);
        assert!(left > TimeDelta::hours(23) && left <= TimeDelta::hours(24), "{about}");
        if kind == Kind::Fleet {
            assert!(!reply.text().contains(site.env()["OBJ_SECRET_ACCESS_KEY"].as_str()));
        }
        assert!(!reply.text().contains(site.home().to_str().unwrap()), "{about}");
    });
}

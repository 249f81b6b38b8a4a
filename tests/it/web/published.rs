//! Tables that are published as Delta Lake and Iceberg tables, from the first run to the deletion of their pipeline.

use std::collections::BTreeSet;

use lakemill::domain::layout::table_prefix;
use lakemill::pipelines::tables::{PublishedLog, TableStore, published_log};
use lakemill::ports::store::{Bucket, list_all};
use serde_json::{Value, json};

use super::archive::{export, import_as};
use super::on_both;
use super::tables::{TripsSite, days};
use crate::support::delta_log::DeltaLog;
use crate::support::manifests::Manifest;
use crate::support::site::{Site, await_that, slug};

/// The Delta log of table `t`, once it and the Iceberg metadata match the manifest.
fn log(site: &Site, pipeline: &str) -> DeltaLog {
    let slug = slug(pipeline);
    let table = TableStore::new(&*site.store, &slug, "t");
    await_that("the log matches the manifest", || published_log(&table).unwrap() == PublishedLog::Intact);
    let prefix = format!("{}_delta_log/", table_prefix(&slug, "t"));
    let read = |key: String| {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut site.store.get(Bucket::Warehouse, &key, None).unwrap().body, &mut bytes)
            .unwrap();
        (key[prefix.len()..].to_owned(), bytes)
    };
    let objects: Vec<_> =
        list_all(&*site.store, Bucket::Warehouse, &prefix).unwrap().into_iter().map(|o| read(o.key)).collect();
    let log = DeltaLog::replay(objects.iter().map(|(name, bytes)| (name.as_str(), &**bytes))).unwrap().unwrap();
    let manifest = Manifest::read(&*site.store, &slug, "t").unwrap();
    let named = manifest.groups.values().flat_map(|group| &group.files).map(|file| file.key["t/".len()..].to_owned());
    assert_eq!(log.files, named.collect::<BTreeSet<_>>());
    log
}

fn columns(log: &DeltaLog) -> Vec<(String, String)> {
    let schema = log.metadata.last().unwrap()["schemaString"].as_str().unwrap();
    let schema: Value = serde_json::from_str(schema).unwrap();
    let text = |field: &Value, member: &str| field[member].as_str().unwrap().to_owned();
    schema["fields"].as_array().unwrap().iter().map(|field| (text(field, "name"), text(field, "type"))).collect()
}

/// The log's id; a recreated log has another.
fn id(log: &DeltaLog) -> String {
    log.metadata.last().unwrap()["id"].as_str().unwrap().to_owned()
}

#[test]
fn log_follows_its_table_through_all_pipeline_operations() {
    on_both(|kind| {
        let trips = TripsSite::unrun(Site::new(kind));
        let configure = |pipeline: &str, columns: &[Value]| {
            let mut mapping = days();
            mapping["publish"] = json!(["delta", "iceberg"]);
            mapping["columns"].as_array_mut().unwrap().extend_from_slice(columns);
            trips.site.pipeline(pipeline, &mapping);
        };
        let run = |pipeline: &str, clean: bool| {
            let job = trips.site.await_end(&trips.site.enqueue_as(pipeline, clean));
            assert_eq!(job.error, None);
        };
        configure("trips", &[]);
        trips.site.put("trips", "in/a.csv", "day,a,b\n2013-01-01,x,1\n2013-01-02,y,2\n");
        run("trips", false);
        let first = log(&trips.site, "trips");
        assert_eq!((first.files.len(), first.sequences.len()), (2, 1));

        trips.browser.patch("/api/pipelines/trips", &json!({ "newSlug": "tours" })).ok();
        assert_eq!(log(&trips.site, "tours"), first, "a rename moves the log as it is");

        trips.site.put("tours", "in/b.csv", "day,a,b,c\n2013-01-03,z,3,7\n");
        configure("tours", &[json!({ "name": "c", "type": "int32" })]);
        trips.site.put("tours", "in/a.csv", "day,a,b,c\n2013-01-01,x,1,\n");
        run("tours", false);
        let changed = log(&trips.site, "tours");
        assert_eq!((id(&changed), changed.sequences.len()), (id(&first), 2));
        let (before, after) = (columns(&first), columns(&changed));
        assert_eq!(after.len(), before.len() + 1);
        assert!(after.contains(&("c".into(), "integer".into())), "{after:?}");

        run("tours", true);
        assert_eq!(id(&log(&trips.site, "tours")), id(&first), "a clean run goes on with the log");

        import_as(&trips.browser, "copied", &export(&trips.browser, "tours")).ok();
        run("copied", false);
        let copied = log(&trips.site, "copied");
        assert_eq!((copied.sequences.len(), columns(&copied)), (1, after));
        assert_ne!(id(&copied), id(&first), "a copy is a table of its own");

        trips.browser.delete("/api/pipelines/tours").ok();
        let left = list_all(&*trips.site.store, Bucket::Warehouse, &table_prefix(&slug("tours"), "t")).unwrap();
        assert_eq!(left, []);
    });
}

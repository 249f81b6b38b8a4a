//! Real files, large files, and sampling.

use std::time::Duration;

use lakemill::domain::sample::FLIGHTS;
use lakemill::engine::infer::proposal::SuggestionKind;
use lakemill::engine::infer::{InferError, InferOptions, infer, propose};
use lakemill::ports::ObjectStore;
use lakemill::ports::store::{Bucket, StoreError, WriteOptions};

use super::{GENEROUS_LIMITS, column, columns, pipeline, proposed_as, warned};
use crate::support::memory_store::MemoryStore;

fn sample(name: &str) -> (String, &'static [u8]) {
    let (_, bytes) = FLIGHTS.files.iter().find(|(key, _)| *key == name).unwrap();
    (format!("pipelines/x/{name}"), bytes)
}

#[test]
fn sample_files_get_the_expected_proposals() {
    let (key, bytes) = sample("planes.csv");
    let planes = proposed_as(&key, bytes);
    assert_eq!(planes.csv, serde_json::json!({ "null_values": ["", "NA"] }));
    assert_eq!((planes.table.as_str(), &planes.files[..]), ("planes", &["planes.csv".to_owned()][..]));
    assert_eq!(columns(&planes)[..3], ["tailnum:string", "year:int64", "type:string"]);
    assert_eq!(columns(&planes)[5..8], ["engines:int64", "seats:int64", "speed:int64"]);
    let (key, bytes) = sample("airports.csv");
    let airports = proposed_as(&key, bytes);
    assert_eq!(columns(&airports)[..5], ["faa:string", "name:string", "lat:float64", "lon:float64", "alt:int64"]);
    let (key, bytes) = sample("airlines.csv");
    assert_eq!(columns(&proposed_as(&key, bytes)), ["carrier:string", "name:string"]);
    let (key, bytes) = sample("weather.csv.gz");
    let weather = proposed_as(&key, bytes);
    assert_eq!(column(&weather, "time_hour").ty, "timestamptz");
    assert_eq!(column(&weather, "wind_gust").ty, "float64");
}

#[test]
fn flights_are_proposed_with_evidence_and_suggestions() {
    let (key, bytes) = sample("flights/2013-01.csv.gz");
    let flights = proposed_as(&key, bytes);
    assert_eq!((flights.table.as_str(), &flights.files[..]), ("flights", &["flights/*.csv.gz".to_owned()][..]));
    assert_eq!(flights.sample.rows_read, 27_004);
    assert!(!column(&flights, "year").nullable && column(&flights, "dep_time").nullable);
    assert_eq!(column(&flights, "time_hour").ty, "timestamptz");
    let partition = flights.suggestions.iter().find(|s| s.kind == SuggestionKind::PartitionBy).unwrap();
    assert_eq!(partition.value, serde_json::json!({ "column": "time_hour", "transform": "month" }));
    assert!(warned(&flights, "`NA` becomes null"));
}

#[test]
fn partially_read_file_is_reported() {
    let mut text = "id,x\n".to_owned();
    (0..100_000).for_each(|i| text.push_str(&format!("{i},{}\n", i % 10)));
    text.push_str("1,ten\n");
    let options = InferOptions { bytes_max: 100_000, ..GENEROUS_LIMITS };
    let proposal = propose("a.csv", text.as_bytes(), &options).unwrap();
    assert!(!proposal.sample.whole);
    assert_eq!((proposal.sample.bytes_read, proposal.sample.bytes_total), (100_000, text.len() as u64));
    assert!(proposal.sample.limited_by.as_ref().unwrap().contains("100000"));
    assert_eq!(columns(&proposal), ["id:int64", "x:int64"]);
    assert!(proposal.columns.iter().all(|column| column.nullable), "what comes later may be null");
    assert_eq!(proposal.sample.rows_confirmed, proposal.sample.rows_read);
    pipeline(&proposal);
}

#[test]
fn first_bytes_decide_without_time() {
    let text = "id,x\n".to_owned() + &"1,2\n".repeat(1_000_000);
    let options = InferOptions { time_max: Duration::ZERO, ..GENEROUS_LIMITS };
    let proposal = propose("a.csv", text.as_bytes(), &options).unwrap();
    assert!(!proposal.sample.whole && proposal.sample.rows_read > 0);
    assert!(proposal.sample.limited_by.as_ref().unwrap().contains("time"));
    assert_eq!(columns(&proposal), ["id:int64", "x:int64"]);
}

#[test]
fn missing_object_is_reported() {
    let store = MemoryStore::new();
    let key = "pipelines/x/t/a.csv";
    store.put(Bucket::Lake, key, b"a,b\n1,2\n", &WriteOptions::default()).unwrap();
    assert_eq!(columns(&infer(&store, key, &GENEROUS_LIMITS).unwrap()), ["a:int64", "b:int64"]);
    let missing = infer(&store, "pipelines/x/none.csv", &GENEROUS_LIMITS);
    assert!(matches!(missing, Err(InferError::Store(StoreError::NotFound { .. }))));
}

#[test]
fn damaged_archives_are_refused() {
    let (_, bytes) = sample("weather.csv.gz");
    let cut = propose("a.csv.gz", &bytes[..bytes.len() / 2], &GENEROUS_LIMITS);
    assert!(matches!(cut, Err(InferError::Unreadable(_))));
    let named = propose("a.csv", bytes, &GENEROUS_LIMITS).unwrap_err().to_string();
    assert!(named.starts_with("not a CSV: `a.csv`: its name is that of a CSV, but it contains gzip data"), "{named}");
}

#[test]
fn proposal_round_trips_as_json() {
    let (key, bytes) = sample("planes.csv");
    let proposal = proposed_as(&key, bytes);
    let text = serde_json::to_string(&proposal).unwrap();
    assert_eq!(serde_json::from_str::<lakemill::engine::infer::Proposal>(&text).unwrap(), proposal);
}

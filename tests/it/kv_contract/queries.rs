//! Running queries, and requests to cancel them.

use lakemill::domain::name::QueryId;
use lakemill::ports::queries::RegisteredQuery;

use super::{Fixture, seconds, slug};

fn id(text: &str) -> QueryId {
    QueryId::parse(text).unwrap()
}

fn announce(f: &Fixture, pipeline: &str, query: &str) -> Option<RegisteredQuery> {
    f.kv.register_query(&slug(pipeline), &id(query), seconds(60)).unwrap()
}

pub fn registered_query_can_be_cancelled_by_another_handle(f: &Fixture) {
    let (one, two) = (announce(f, "trips", "q1").unwrap(), announce(f, "trips", "q2").unwrap());
    let both = [one.clone(), two.clone()];
    assert_eq!(f.kv.cancelled_queries(&both).unwrap(), [false, false]);
    assert!(f.open().cancel_query(&slug("trips"), &id("q2")).unwrap());
    assert!(f.open().cancel_query(&slug("trips"), &id("q2")).unwrap(), "twice is once");
    assert_eq!(f.kv.cancelled_queries(&both).unwrap(), [false, true]);
    f.kv.unregister_query(&two).unwrap();
    f.kv.unregister_query(&two).unwrap();
    assert!(!f.kv.cancel_query(&slug("trips"), &id("q2")).unwrap());
    assert_eq!(f.kv.cancelled_queries(&[one]).unwrap(), [false]);
    assert_eq!(f.kv.cancelled_queries(&[]).unwrap(), [false; 0]);
}

pub fn query_id_is_unique_per_pipeline(f: &Fixture) {
    let first = announce(f, "trips", "q").unwrap();
    assert_eq!(announce(f, "trips", "q"), None);
    let other = announce(f, "others", "q").unwrap();
    assert!(f.kv.cancel_query(&slug("others"), &id("q")).unwrap());
    assert_eq!(f.kv.cancelled_queries(&[first.clone(), other]).unwrap(), [false, true]);
    f.kv.unregister_query(&first).unwrap();
    assert!(announce(f, "trips", "q").is_some());
}

pub fn unregistered_query_cannot_be_cancelled(f: &Fixture) {
    assert!(!f.kv.cancel_query(&slug("trips"), &id("q")).unwrap());
    let query = announce(f, "trips", "q").unwrap();
    assert_eq!(f.kv.cancelled_queries(&[query]).unwrap(), [false], "an earlier cancellation has no effect");
}

pub fn query_registration_expires(f: &Fixture) {
    let query = announce(f, "trips", "q").unwrap();
    assert!(f.kv.cancel_query(&slug("trips"), &id("q")).unwrap());
    f.advance(seconds(57));
    assert!(f.kv.cancel_query(&slug("trips"), &id("q")).unwrap(), "a cancellation doesn't change its TTL");
    f.advance(seconds(4));
    assert!(!f.kv.cancel_query(&slug("trips"), &id("q")).unwrap());
    let next = announce(f, "trips", "q").unwrap();
    assert_ne!(next.token, query.token);
    assert_eq!(f.kv.cancelled_queries(&[next]).unwrap(), [false]);
}

pub fn unregistering_an_old_query_keeps_a_newer_one(f: &Fixture) {
    let old = announce(f, "trips", "q").unwrap();
    f.advance(seconds(65));
    let new = announce(f, "trips", "q").unwrap();
    f.kv.unregister_query(&old).unwrap();
    assert!(f.kv.cancel_query(&slug("trips"), &id("q")).unwrap());
    assert_eq!(f.kv.cancelled_queries(&[old, new]).unwrap(), [false, true]);
}

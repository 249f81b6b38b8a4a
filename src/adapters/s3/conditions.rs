//! Which preconditions a store keeps to, found out by trying them on keys of our own.
//!
//! Invariant: what is not known to hold counts as not holding; a probe that was cut off is made again.

use parking_lot::Mutex;

use ureq::http::Method;

use crate::ports::store::{Bucket, ETag, ObjectMeta, Precondition, StoreResult, WriteOptions};

use super::S3Store;
use super::answer::Failure;
use super::client::{Call, Payload, quoted};
use super::error::Place;
use super::list::Query;
use super::multipart::Upload;
use super::read::{Looked, MARK_HEADER};
use super::write::Source;

/// Keys that a probe writes start with it; it deletes them.
const PROBE_PREFIX: &str = "workspace/.lakemill-probe-";
/// A tag that no object has.
const WRONG_TAG: &str = "00000000000000000000000000000000";

/// What a bucket's store does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conditions {
    /// `If-Match` and `If-None-Match: *` hold on putting an object.
    pub put: bool,
    /// They hold on completing an upload in parts.
    pub complete: bool,
    /// Listings carry tags.
    pub listed_etags: bool,
}

/// What was found out, a bucket each.
#[derive(Default)]
pub(super) struct KnownConditions([Mutex<Option<Conditions>>; Bucket::ALL.len()]);

pub(super) fn index(bucket: Bucket) -> usize {
    match bucket {
        Bucket::Pipelines => 0,
        Bucket::Lake => 1,
        Bucket::Warehouse => 2,
    }
}

/// What came of a conditional request.
enum Tried {
    Done(ETag),
    Refused,
}

impl Tried {
    fn refused(&self) -> bool {
        matches!(self, Self::Refused)
    }
}

impl S3Store {
    /// What the store does about preconditions in a bucket. Probes it with about twenty small requests the first time;
    /// others that ask meanwhile wait for the answer.
    ///
    /// # Errors
    /// As those of writing and listing.
    pub fn conditions(&self, bucket: Bucket) -> StoreResult<Conditions> {
        let known = &self.client.options.known.0[index(bucket)];
        let mut known = known.lock();
        if let Some(conditions) = *known {
            return Ok(conditions);
        }
        let key = format!("{PROBE_PREFIX}{}", uuid::Uuid::new_v4());
        let probe =
            Probe { store: self, place: self.place(bucket, &key, "probing the preconditions of the store with") };
        let found = probe.run();
        probe.clean_up();
        let conditions = found?;
        let Conditions { put, complete, .. } = conditions;
        tracing::info!(%bucket, put, complete, "whether the store keeps preconditions on puts and on uploads in parts");
        *known = Some(conditions);
        Ok(conditions)
    }
}

/// Races between two creates: a store whose look and write are two steps loses one of them soon.
const RACES: usize = 5;

struct Probe<'a> {
    store: &'a S3Store,
    place: Place<'a>,
}

impl Probe<'_> {
    fn run(&self) -> StoreResult<Conditions> {
        let (bucket, key) = (self.place.bucket, self.place.key);
        let Tried::Done(tag) = self.put(key, None)? else { return Err(self.place.lacking("success")) };
        let query = Query { bucket, prefix: key, delimiter: None, limit: 1 };
        let listed = self.store.list_page(&query, None)?;
        let listed_etags = listed.objects.first().is_some_and(|object| object.etag.is_some());
        let put = self.put_holds(tag)?;
        let complete = put && self.complete_holds()?;
        Ok(Conditions { put, complete, listed_etags })
    }

    /// The object exists with `tag` at first.
    fn put_holds(&self, tag: ETag) -> StoreResult<bool> {
        let key = self.place.key;
        let wrong = || Some(Precondition::IfMatch(ETag(WRONG_TAG.to_owned())));
        if !self.put(key, wrong())?.refused() || !self.put(key, Some(Precondition::IfAbsent))?.refused() {
            return Ok(false);
        }
        let Tried::Done(tag) = self.put(key, Some(Precondition::IfMatch(tag)))? else { return Ok(false) };
        self.delete(key)?;
        if !self.put(key, Some(Precondition::IfMatch(tag)))?.refused() {
            return Ok(false);
        }
        for _ in 0..RACES {
            if !self.one_of_two_creates_wins()? {
                return Ok(false);
            }
            self.delete(key)?;
        }
        // Present again for what follows.
        self.put(key, None).map(|put| !put.refused())
    }

    fn one_of_two_creates_wins(&self) -> StoreResult<bool> {
        let create = || self.put(self.place.key, Some(Precondition::IfAbsent));
        let (here, there) = std::thread::scope(|scope| {
            let there = scope.spawn(create);
            let here = create();
            (here, there.join().unwrap_or_else(|_| Err(self.place.lacking("an end"))))
        });
        Ok(here?.refused() != there?.refused())
    }

    /// The object exists at first.
    fn complete_holds(&self) -> StoreResult<bool> {
        let tag = match self.store.look(self.place.bucket, self.place.key)? {
            Some(looked) => looked.meta.etag.ok_or_else(|| self.place.lacking("an `ETag`"))?,
            None => return Ok(false),
        };
        Ok(self.complete(&Precondition::IfMatch(ETag(WRONG_TAG.to_owned())))?.refused()
            && self.complete(&Precondition::IfAbsent)?.refused()
            && !self.complete(&Precondition::IfMatch(tag))?.refused())
    }

    fn put(&self, key: &str, when: Option<Precondition>) -> StoreResult<Tried> {
        let mark = uuid::Uuid::new_v4().to_string();
        let mut call = Call::new(Method::PUT, self.place.bucket, key, self.place.operation);
        if let Some(when) = &when {
            call = conditional(call, when);
        }
        let call = call.header(MARK_HEADER, mark.as_str()).payload(Payload::Bytes(mark.as_bytes()));
        let sent = self.store.client.send(&call, |answer| {
            let tag = answer.etag();
            answer.drained().map(|()| tag)
        });
        self.tried(&mark, when.is_some(), sent)
    }

    fn complete(&self, when: &Precondition) -> StoreResult<Tried> {
        let mark = uuid::Uuid::new_v4().to_string();
        let mut upload = Upload::start(self.store, self.place.bucket, self.place.key, None, &mark)?;
        let parts = upload.send(&Source::Bytes(b"probe"), &|| true)?;
        self.tried(&mark, true, upload.complete(&parts, when, None))
    }

    fn tried(&self, mark: &str, conditional: bool, sent: Result<Option<ETag>, Failure>) -> StoreResult<Tried> {
        match sent {
            Ok(Some(tag)) => Ok(Tried::Done(tag)),
            Ok(None) => Err(self.place.lacking("an `ETag`")),
            Err(Failure::Refused { refusal, repeated, expired }) if conditional && refusal.code != "NoSuchBucket" => {
                // One that was sent twice may have been refused because of itself: as not there, or, by some servers, as
                // not allowed.
                if repeated
                    && let Some(looked) = self.store.look(self.place.bucket, self.place.key)?
                    && let Looked { meta: ObjectMeta { etag: Some(tag), .. }, mark: Some(found) } = looked
                    && found == mark
                {
                    return Ok(Tried::Done(tag));
                }
                match refusal.status {
                    304 | 400 | 404 | 409 | 412 | 501 => Ok(Tried::Refused),
                    _ => Err(self.place.error(Failure::Refused { refusal, repeated, expired })),
                }
            }
            Err(failure) => Err(self.place.error(failure)),
        }
    }

    fn delete(&self, key: &str) -> StoreResult<()> {
        self.store.delete_one(self.place.bucket, key, &WriteOptions::default())
    }

    fn clean_up(&self) {
        if let Err(error) = self.delete(self.place.key) {
            tracing::warn!(bucket = %self.place.bucket, key = self.place.key, %error, "a probe could not be deleted");
        }
    }
}

/// The call under a precondition that the store is to hold.
pub(super) fn conditional<'a>(call: Call<'a>, when: &Precondition) -> Call<'a> {
    match when {
        Precondition::None => call,
        Precondition::IfMatch(tag) => call.header("if-match", quoted(tag)),
        Precondition::IfAbsent => call.header("if-none-match", "*"),
    }
}

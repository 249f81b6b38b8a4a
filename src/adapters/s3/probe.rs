//! Probes which preconditions a store enforces, on keys of its own.
//!
//! Invariant: a condition counts as enforced only after a successful probe; an interrupted probe runs again.

use ureq::http::Method;

use crate::ports::store::{Bucket, ETag, ObjectMeta, Precondition, StoreResult, WriteOptions};

use super::conditions::Conditions;
use super::error::OperationContext;
use super::failure::RequestError;
use super::list::ListQuery;
use super::multipart::MultipartUpload;
use super::read::HeadResult;
use super::request::{Payload, S3Request, UploadBody, WRITE_ID_HEADER};
use super::store::S3Store;

/// Prefix of the keys that a probe writes and deletes.
const PROBE_PREFIX: &str = "workspace/.lakemill-probe-";
/// A tag that no object has.
const WRONG_TAG: &str = "00000000000000000000000000000000";
/// Races between two creates: a store that checks and writes in two steps soon lets both succeed.
const RACES: usize = 5;

/// Outcome of a conditional request.
enum Outcome {
    Done(ETag),
    Rejected,
}

impl Outcome {
    fn is_rejected(&self) -> bool {
        matches!(self, Self::Rejected)
    }
}

impl S3Store {
    /// The preconditions that the store enforces in a bucket. The first call sends about twenty small requests;
    /// concurrent callers wait for its result.
    ///
    /// # Errors
    /// See writing and listing.
    pub fn conditions(&self, bucket: Bucket) -> StoreResult<Conditions> {
        let bucket = self.client.options.first_of_name(bucket);
        let mut known = self.client.options.known.of(bucket).lock();
        if let Some(conditions) = *known {
            return Ok(conditions);
        }
        let key = format!("{PROBE_PREFIX}{}", uuid::Uuid::new_v4());
        let context = self.context(bucket, &key, "probing the store's preconditions with");
        let probe = Probe { store: self, context };
        let found = probe.run();
        probe.clean_up();
        let conditions = found?;
        let Conditions { put, complete, .. } = conditions;
        tracing::info!(%bucket, put, complete, "probed the store's preconditions on puts and multipart uploads");
        *known = Some(conditions);
        Ok(conditions)
    }
}

struct Probe<'a> {
    store: &'a S3Store,
    context: OperationContext<'a>,
}

impl Probe<'_> {
    fn run(&self) -> StoreResult<Conditions> {
        let (bucket, key) = (self.context.bucket, self.context.key);
        let Outcome::Done(tag) = self.put(&Precondition::None)? else { return Err(self.context.missing("success")) };
        let query = ListQuery { bucket, prefix: key, delimiter: None, limit: 1 };
        let listed = self.store.list_page(&query, None)?;
        let listed_etags = listed.objects.first().is_some_and(|object| object.etag.is_some());
        let put = self.put_is_conditional(tag)?;
        let complete = put && self.complete_is_conditional()?;
        Ok(Conditions { put, complete, listed_etags })
    }

    /// Expects the object to exist with `tag`; leaves one behind if it returns true.
    fn put_is_conditional(&self, tag: ETag) -> StoreResult<bool> {
        let wrong = Precondition::IfMatch(ETag(WRONG_TAG.to_owned()));
        if !self.put(&wrong)?.is_rejected() || !self.put(&Precondition::IfNoneMatch)?.is_rejected() {
            return Ok(false);
        }
        let Outcome::Done(tag) = self.put(&Precondition::IfMatch(tag))? else { return Ok(false) };
        self.delete()?;
        if !self.put(&Precondition::IfMatch(tag))?.is_rejected() {
            return Ok(false);
        }
        for _ in 0..RACES {
            if !self.one_of_two_creates_wins()? {
                return Ok(false);
            }
            self.delete()?;
        }
        self.put(&Precondition::None).map(|put| !put.is_rejected())
    }

    fn one_of_two_creates_wins(&self) -> StoreResult<bool> {
        let create = || self.put(&Precondition::IfNoneMatch);
        let (here, there) = std::thread::scope(|scope| {
            let there = scope.spawn(create);
            let here = create();
            (here, there.join().unwrap_or_else(|_| Err(self.context.missing("an end"))))
        });
        Ok(here?.is_rejected() != there?.is_rejected())
    }

    /// Expects the object to exist.
    fn complete_is_conditional(&self) -> StoreResult<bool> {
        let Some(head) = self.store.head_object(self.context.bucket, self.context.key)? else { return Ok(false) };
        let tag = head.meta.etag.ok_or_else(|| self.context.missing("an `ETag`"))?;
        Ok(self.complete(&Precondition::IfMatch(ETag(WRONG_TAG.to_owned())))?.is_rejected()
            && self.complete(&Precondition::IfNoneMatch)?.is_rejected()
            && !self.complete(&Precondition::IfMatch(tag))?.is_rejected())
    }

    fn put(&self, precondition: &Precondition) -> StoreResult<Outcome> {
        let write_id = uuid::Uuid::new_v4().to_string();
        let OperationContext { bucket, key, operation, .. } = self.context;
        let request = S3Request::new(Method::PUT, bucket, key, operation)
            .precondition(precondition)
            .header(WRITE_ID_HEADER, write_id.as_str())
            .payload(Payload::Bytes(write_id.as_bytes()));
        let sent = self.store.client.send(&request, |response| {
            let tag = response.etag();
            response.drain().map(|()| tag)
        });
        self.outcome_of(&write_id, *precondition != Precondition::None, sent)
    }

    fn complete(&self, precondition: &Precondition) -> StoreResult<Outcome> {
        let write_id = uuid::Uuid::new_v4().to_string();
        let mut upload = MultipartUpload::start(self.store, self.context.bucket, self.context.key, None, &write_id)?;
        let parts = upload.send(&UploadBody::Bytes(b"probe"), &|| true)?;
        self.outcome_of(&write_id, true, upload.complete(&parts, precondition, None))
    }

    fn outcome_of(
        &self,
        write_id: &str,
        conditional: bool,
        sent: Result<Option<ETag>, RequestError>,
    ) -> StoreResult<Outcome> {
        match sent {
            Ok(Some(tag)) => Ok(Outcome::Done(tag)),
            Ok(None) => Err(self.context.missing("an `ETag`")),
            Err(RequestError::Rejected { rejection, repeated, expired })
                if conditional && rejection.code != "NoSuchBucket" =>
            {
                // A repeated request may be rejected because its first attempt succeeded.
                if repeated
                    && let Some(head) = self.store.head_object(self.context.bucket, self.context.key)?
                    && let HeadResult { meta: ObjectMeta { etag: Some(tag), .. }, write_id: Some(found) } = head
                    && found == write_id
                {
                    return Ok(Outcome::Done(tag));
                }
                match rejection.status {
                    304 | 400 | 404 | 409 | 412 | 501 => Ok(Outcome::Rejected),
                    _ => Err(self.context.error(RequestError::Rejected { rejection, repeated, expired })),
                }
            }
            Err(failure) => Err(self.context.error(failure)),
        }
    }

    fn delete(&self) -> StoreResult<()> {
        self.store.delete_one(self.context.bucket, self.context.key, &WriteOptions::default())
    }

    fn clean_up(&self) {
        if let Err(error) = self.delete() {
            tracing::warn!(bucket = %self.context.bucket, key = self.context.key, %error, "probe object not deleted");
        }
    }
}

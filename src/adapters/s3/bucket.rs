//! Questions about a bucket itself.

use ureq::http::Method;

use crate::domain::layout::probe_key;
use crate::ports::ObjectStore;
use crate::ports::store::{Bucket, StoreResult, WriteOptions};

use super::S3Store;
use super::client::{Call, Payload};
use super::list::LISTING_BYTES_MAX;
use super::notification::{self, NotificationConfiguration};

impl S3Store {
    /// Whether the bucket exists and may be listed: for a start that fails fast.
    ///
    /// # Errors
    /// `BucketNotFound`, `AccessDenied`, or `Transient` if the store does not answer.
    pub fn probe_bucket(&self, bucket: Bucket) -> StoreResult<()> {
        let place = self.place(bucket, "", "listing");
        let call = Call::new(Method::GET, bucket, "", place.operation).query("list-type", "2").query("max-keys", "1");
        let listed = self.client.send(&call, |answer| answer.xml(LISTING_BYTES_MAX, "ListBucketResult"));
        match listed {
            Ok(_) => Ok(()),
            Err(failure) if failure.is(404, &[""]) => Err(place.bucket_not_found()),
            Err(failure) => Err(place.error(failure)),
        }
    }

    /// Which events of a bucket the store posts, and where to.
    ///
    /// # Errors
    /// As those of reading; also if the store has no notifications.
    pub fn notifications(&self, bucket: Bucket) -> StoreResult<NotificationConfiguration> {
        let place = self.place(bucket, "", "reading the notification rules");
        let call = Call::new(Method::GET, bucket, "", place.operation).query("notification", "");
        let bytes = self.client.send(&call, |answer| answer.bytes(notification::DOCUMENT_BYTES_MAX));
        let bytes = bytes.map_err(|failure| place.error(failure))?;
        NotificationConfiguration::parse(&bytes)
            .map_err(|error| place.transient(std::io::Error::new(std::io::ErrorKind::InvalidData, error)))
    }

    /// Replaces all notification rules of a bucket. An empty configuration removes them.
    ///
    /// # Errors
    /// As those of writing; `AccessDenied` with the store's reason if it refuses a rule.
    pub fn put_notifications(&self, bucket: Bucket, rules: &NotificationConfiguration) -> StoreResult<()> {
        let place = self.place(bucket, "", "writing the notification rules");
        let document = rules.to_xml();
        let call = Call::new(Method::PUT, bucket, "", place.operation)
            .query("notification", "")
            .header("content-type", "application/xml")
            .payload(Payload::Bytes(document.as_bytes()));
        self.client.send(&call, |answer| answer.drained()).map_err(|failure| place.error(failure))
    }

    /// Deletes one notification rule, or all of them: radosgw's extension `DELETE ?notification[=ID]`. Unknown ids are no
    /// error.
    ///
    /// A store without the extension may read the request as one that deletes the bucket. An object is kept in the bucket
    /// meanwhile, since stores refuse to delete a bucket that is not empty.
    ///
    /// # Errors
    /// As those of writing; `AccessDenied` if the store has no such request.
    pub fn delete_notifications(&self, bucket: Bucket, id: Option<&str>) -> StoreResult<()> {
        let guard = [probe_key(&uuid::Uuid::new_v4().to_string())];
        self.put(bucket, &guard[0], b"keeps the bucket", &WriteOptions::default())?;
        let place = self.place(bucket, "", "deleting the notification rules");
        let call = Call::new(Method::DELETE, bucket, "", place.operation).query("notification", id.unwrap_or_default());
        let deleted = self.client.send(&call, |answer| answer.drained()).map_err(|failure| place.error(failure));
        let removed = self.delete(bucket, &guard, &WriteOptions::default());
        deleted.and(removed)
    }
}

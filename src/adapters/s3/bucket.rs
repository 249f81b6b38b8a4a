//! Operations on a bucket itself: probing it, and its notification rules.

use ureq::http::Method;

use crate::domain::layout::probe_key;
use crate::ports::ObjectStore;
use crate::ports::store::{Bucket, StoreResult, WriteOptions};

use super::list::{LISTING_BYTES_MAX, ListResult};
use super::notification::{self, NotificationConfiguration};
use super::request::{Payload, S3Request};
use super::store::S3Store;

impl S3Store {
    /// Checks that the bucket exists and may be listed, so that a start can fail fast.
    ///
    /// # Errors
    /// `BucketNotFound`, `AccessDenied`, or `Transient` if the store doesn't respond.
    pub fn probe_bucket(&self, bucket: Bucket) -> StoreResult<()> {
        let context = self.context(bucket, "", "listing");
        let request =
            S3Request::new(Method::GET, bucket, "", context.operation).query("list-type", "2").query("max-keys", "1");
        let listed: Result<ListResult, _> =
            self.client.send(&request, |response| response.xml(LISTING_BYTES_MAX, "ListBucketResult"));
        match listed {
            Ok(_) => Ok(()),
            Err(failure) if failure.is(404, &[""]) => Err(context.bucket_not_found()),
            Err(failure) => Err(context.error(failure)),
        }
    }

    /// The bucket's region, if requests were redirected to it.
    pub fn redirected_region(&self, bucket: Bucket) -> Option<String> {
        self.client.redirects.of(bucket).map(|target| target.region.clone())
    }

    /// The notification rules of a bucket.
    ///
    /// # Errors
    /// See reading; also if the store has no notifications.
    pub fn notifications(&self, bucket: Bucket) -> StoreResult<NotificationConfiguration> {
        let context = self.context(bucket, "", "reading the notification rules");
        let request = S3Request::new(Method::GET, bucket, "", context.operation).query("notification", "");
        let bytes = self.client.send(&request, |response| response.bytes(notification::DOCUMENT_BYTES_MAX));
        let bytes = bytes.map_err(|failure| context.error(failure))?;
        NotificationConfiguration::parse(&bytes)
            .map_err(|error| context.transient(std::io::Error::new(std::io::ErrorKind::InvalidData, error)))
    }

    /// Replaces all notification rules of a bucket. An empty configuration removes them.
    ///
    /// # Errors
    /// See writing; `AccessDenied` with the store's reason if it rejects a rule.
    pub fn put_notifications(&self, bucket: Bucket, rules: &NotificationConfiguration) -> StoreResult<()> {
        let context = self.context(bucket, "", "writing the notification rules");
        let document = rules.to_xml();
        let request = S3Request::new(Method::PUT, bucket, "", context.operation)
            .query("notification", "")
            .header("content-type", "application/xml")
            .payload(Payload::Bytes(document.as_bytes()));
        self.client.send(&request, |response| response.drain()).map_err(|failure| context.error(failure))
    }

    /// Deletes one notification rule, or all: radosgw's extension `DELETE ?notification[=ID]`. Unknown ids are ignored.
    ///
    /// A store without the extension may interpret the request as one that deletes the bucket. A temporary object prevents
    /// that, since stores don't delete a bucket that is not empty.
    ///
    /// # Errors
    /// See writing; `AccessDenied` if the store doesn't support the request.
    pub fn delete_notifications(&self, bucket: Bucket, id: Option<&str>) -> StoreResult<()> {
        let guard = [probe_key(&uuid::Uuid::new_v4().to_string())];
        self.put(bucket, &guard[0], b"keeps the bucket", &WriteOptions::default())?;
        let context = self.context(bucket, "", "deleting the notification rules");
        let request =
            S3Request::new(Method::DELETE, bucket, "", context.operation).query("notification", id.unwrap_or_default());
        let deleted = self.client.send(&request, |response| response.drain()).map_err(|failure| context.error(failure));
        let removed = self.delete(bucket, &guard, &WriteOptions::default());
        deleted.and(removed)
    }
}

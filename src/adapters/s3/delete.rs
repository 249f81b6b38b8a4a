//! Deletes a thousand keys per request, where the store supports it.
//!
//! A request with many keys needs a checksum of its body, here SHA-256. A store that requires another one, or doesn't
//! support such requests, gets one request per key from then on.

use std::borrow::Cow;
use std::sync::atomic::Ordering;

use serde::Deserialize;
use sha2::{Digest, Sha256};
use ureq::http::Method;

use crate::domain::digest::base64;
use crate::domain::limits::LIST_PAGE_KEYS_MAX;
use crate::ports::store::{Bucket, StoreResult, WriteOptions};

use super::error::OperationContext;
use super::failure::{ErrorElement, RequestError, StoreRejection};
use super::key;
use super::request::{Payload, S3Request};
use super::store::S3Store;
use super::xml;

/// A response lists each key that was not deleted.
const RESPONSE_BYTES_MAX: u64 = 16 << 20;

impl S3Store {
    pub(super) fn delete_objects(
        &self,
        bucket: Bucket,
        keys: &[String],
        options: &WriteOptions<'_>,
    ) -> StoreResult<()> {
        for key in keys {
            key::check(bucket, key)?;
        }
        if let Some(lease) = options.lease {
            lease.remaining()?;
        }
        let (together, alone): (Vec<&str>, Vec<&str>) =
            keys.iter().map(String::as_str).partition(|k| xml::can_represent(k));
        for batch in together.chunks(LIST_PAGE_KEYS_MAX) {
            if batch.len() == 1 || !self.delete_batch(bucket, batch, options)? {
                self.delete_each(bucket, batch, options)?;
            }
        }
        self.delete_each(bucket, &alone, options)
    }

    fn delete_each(&self, bucket: Bucket, keys: &[&str], options: &WriteOptions<'_>) -> StoreResult<()> {
        keys.iter().try_for_each(|key| self.delete_one(bucket, key, options))
    }

    pub(super) fn delete_one(&self, bucket: Bucket, key: &str, options: &WriteOptions<'_>) -> StoreResult<()> {
        let context = self.context(bucket, key, "deleting");
        let request = S3Request::new(Method::DELETE, bucket, key, context.operation)
            .leased(options.lease)
            .deadline(options.deadline);
        match self.client.send(&request, |response| response.drain()) {
            Ok(()) => Ok(()),
            Err(failure) if failure.is(404, &["", "NoSuchKey", "NotFound"]) => Ok(()),
            Err(failure) => Err(context.error(failure)),
        }
    }

    /// False if the store doesn't support such requests.
    fn delete_batch(&self, bucket: Bucket, keys: &[&str], options: &WriteOptions<'_>) -> StoreResult<bool> {
        if self.deletes_singly.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let stored: Vec<_> = keys.iter().map(|key| self.client.options.mounts.stored_key(bucket, key)).collect();
        let document = document(&stored);
        let checksum = base64(&Sha256::digest(document.as_bytes()));
        let context = self.context(bucket, keys.first().copied().unwrap_or_default(), "deleting");
        let request = S3Request::new(Method::POST, bucket, "", context.operation)
            .query("delete", "")
            .header("content-type", "application/xml")
            .header("x-amz-sdk-checksum-algorithm", "SHA256")
            .header("x-amz-checksum-sha256", checksum)
            .payload(Payload::Bytes(document.as_bytes()))
            .leased(options.lease)
            .deadline(options.deadline);
        match self.client.send(&request, |response| response.xml(RESPONSE_BYTES_MAX, "DeleteResult")) {
            Ok(result) => self.check_deleted(&context, &result, (keys, &stored)).map(|()| true),
            Err(failure) if is_unsupported(&failure) => {
                tracing::info!(%failure, "multi-object delete not supported; deleting key by key");
                self.deletes_singly.store(true, Ordering::Relaxed);
                Ok(false)
            }
            Err(failure) => Err(context.error(failure)),
        }
    }

    /// Fails with the error of the first key that was not deleted.
    fn check_deleted(
        &self,
        context: &OperationContext<'_>,
        result: &DeleteResult,
        (keys, stored): (&[&str], &[Cow<'_, str>]),
    ) -> StoreResult<()> {
        let Some(error) = result.errors.iter().find(|error| error.code != "NoSuchKey") else { return Ok(()) };
        let failed = stored.iter().position(|stored| error.key.as_deref() == Some(stored.as_ref()));
        let key = failed.and_then(|at| keys.get(at).copied()).unwrap_or(context.key);
        let context = self.context(context.bucket, key, context.operation);
        // The status of the response is 200: only the code classifies a key's error.
        let status = match error.code.as_str() {
            "InternalError" | "SlowDown" | "ServiceUnavailable" => 503,
            _ => 403,
        };
        Err(context.error(RequestError::rejected(StoreRejection::new(status, error))))
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct DeleteResult {
    #[serde(rename = "Error")]
    errors: Vec<ErrorElement>,
}

/// Whether the store rejected this kind of request, rather than the deletion.
fn is_unsupported(failure: &RequestError) -> bool {
    let codes =
        ["", "InvalidRequest", "InvalidDigest", "BadDigest", "MissingContentMD5", "MalformedXML", "MissingParameter"];
    failure.is(400, &codes) || matches!(failure.status(), Some(405 | 411 | 415 | 501)) || failure.is(404, &[""])
}

fn document(keys: &[impl AsRef<str>]) -> String {
    let mut text = String::from("<Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
    for key in keys {
        text.push_str(&format!("<Object><Key>{}</Key></Object>", xml::escape(key.as_ref())));
    }
    text.push_str("<Quiet>true</Quiet></Delete>");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_escaped() {
        let document = document(&["a&b", " <c>\" "]);
        assert!(
            document.contains("<Key>a&amp;b</Key>") && document.contains("<Key> &lt;c&gt;&quot; </Key>"),
            "{document}"
        );
    }
}

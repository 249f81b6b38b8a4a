//! Deleting, a thousand keys a request where the store takes it.
//!
//! The request of many keys needs a checksum of its body; ours is SHA-256. A store that wants another one, or knows no
//! such request, is asked key by key from then on.

use std::sync::atomic::Ordering;

use sha2::{Digest, Sha256};
use ureq::http::Method;

use crate::domain::limits::LIST_PAGE_KEYS_MAX;
use crate::ports::store::{Bucket, StoreResult, WriteOptions};

use super::S3Store;
use super::answer::{Failure, Refusal};
use super::client::{Call, Payload};
use super::error::Place;
use super::key;
use super::xml::{self, Node};

/// An answer tells of each key that was not deleted.
const ANSWER_BYTES_MAX: u64 = 16 << 20;

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
        let (together, alone): (Vec<&str>, Vec<&str>) = keys.iter().map(String::as_str).partition(|k| xml::can_hold(k));
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
        let place = self.place(bucket, key, "deleting");
        let call = Call::new(Method::DELETE, bucket, key, place.operation).leased(options.lease).until(options.until);
        match self.client.send(&call, |answer| answer.drained()) {
            Ok(()) => Ok(()),
            Err(failure) if failure.is(404, &["", "NoSuchKey", "NotFound"]) => Ok(()),
            Err(failure) => Err(place.error(failure)),
        }
    }

    /// False if the store does not take such a request.
    fn delete_batch(&self, bucket: Bucket, keys: &[&str], options: &WriteOptions<'_>) -> StoreResult<bool> {
        if self.deletes_singly.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let document = document(keys);
        let checksum = base64(&Sha256::digest(document.as_bytes()));
        let place = self.place(bucket, keys.first().copied().unwrap_or_default(), "deleting");
        let call = Call::new(Method::POST, bucket, "", place.operation)
            .query("delete", "")
            .header("content-type", "application/xml")
            .header("x-amz-sdk-checksum-algorithm", "SHA256")
            .header("x-amz-checksum-sha256", checksum)
            .payload(Payload::Bytes(document.as_bytes()))
            .leased(options.lease)
            .until(options.until);
        match self.client.send(&call, |answer| answer.xml(ANSWER_BYTES_MAX, "DeleteResult")) {
            Ok(node) => self.judge(bucket, &place, &node).map(|()| true),
            Err(failure) if is_unknown(&failure) => {
                tracing::info!(%failure, "the store does not delete many keys by one request");
                self.deletes_singly.store(true, Ordering::Relaxed);
                Ok(false)
            }
            Err(failure) => Err(place.error(failure)),
        }
    }

    /// The first key that was not deleted is the error.
    fn judge(&self, bucket: Bucket, place: &Place<'_>, node: &Node) -> StoreResult<()> {
        let failed = node.all("Error").find(|error| error.text_of("Code") != Some("NoSuchKey"));
        let Some(error) = failed else { return Ok(()) };
        let place = self.place(bucket, error.text_of("Key").unwrap_or(place.key), place.operation);
        // The request as a whole was answered with 200; the code alone says what a key's refusal was.
        let status = match error.text_of("Code") {
            Some("InternalError" | "SlowDown" | "ServiceUnavailable") => 503,
            Some(_) | None => 403,
        };
        Err(place.error(Failure::refused(Refusal::of(status, error))))
    }
}

/// Refusals of the request itself, not of deleting.
fn is_unknown(failure: &Failure) -> bool {
    let codes =
        ["", "InvalidRequest", "InvalidDigest", "BadDigest", "MissingContentMD5", "MalformedXML", "MissingParameter"];
    failure.is(400, &codes) || matches!(failure.status(), Some(405 | 411 | 415 | 501)) || failure.is(404, &[""])
}

fn document(keys: &[&str]) -> String {
    let mut text = String::from("<Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
    for key in keys {
        text.push_str(&format!("<Object><Key>{}</Key></Object>", xml::escape(key)));
    }
    text.push_str("<Quiet>true</Quiet></Delete>");
    text
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let of = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = of(0) << 16 | of(1) << 8 | of(2);
        for at in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * at) & 63) as usize] as char;
            text.push(if at <= group.len() { digit } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_padded() {
        for (bytes, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
        assert_eq!(base64(&[0xfb, 0xff]), "+/8=");
    }

    #[test]
    fn keys_are_escaped() {
        let root = xml::parse(document(&["a&b", " <c>\" "]).as_bytes()).unwrap();
        let keys: Vec<_> = root.all("Object").filter_map(|object| object.text_of("Key")).collect();
        assert_eq!(keys, ["a&b", " <c>\" "]);
    }
}

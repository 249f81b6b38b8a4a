//! Listings.
//!
//! Keys are listed as plain text. Only a page that is not valid XML, since a key has characters outside XML, is requested
//! again with percent-encoded keys: some stores claim to encode, and don't.

use chrono::{DateTime, SubsecRound, Utc};
use serde::Deserialize;
use ureq::http::Method;

use crate::domain::limits::{LIST_PAGE_KEYS_MAX, SKIPPED_KEYS_MAX};
use crate::ports::store::{Bucket, ListPage, ObjectMeta, StoreResult};

use super::error::OperationContext;
use super::failure::RequestError;
use super::key;
use super::request::S3Request;
use super::response::unquoted;
use super::store::S3Store;

/// A thousand keys of 1,024 bytes, all escaped, with their markup.
pub(super) const LISTING_BYTES_MAX: u64 = 16 << 20;

/// A listing's bucket, prefix and limits.
pub(super) struct ListQuery<'a> {
    pub(super) bucket: Bucket,
    pub(super) prefix: &'a str,
    pub(super) delimiter: Option<char>,
    pub(super) limit: usize,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub(super) struct ListResult {
    encoding_type: Option<String>,
    contents: Vec<Item>,
    common_prefixes: Vec<CommonPrefix>,
    is_truncated: Option<String>,
    next_continuation_token: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Item {
    key: Option<String>,
    size: Option<String>,
    #[serde(rename = "ETag")]
    etag: Option<String>,
    last_modified: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct CommonPrefix {
    prefix: Option<String>,
}

/// A page as the store returns it.
#[derive(Default)]
struct Page {
    objects: Vec<ObjectMeta>,
    prefixes: Vec<String>,
    next: Option<String>,
}

impl S3Store {
    /// Requests pages until one of ours is full: invalid keys (a `..` segment) are reported separately, and stores may
    /// return less than the limit.
    pub(super) fn list_page(&self, query: &ListQuery<'_>, after: Option<&str>) -> StoreResult<ListPage> {
        let mut listed = ListPage::default();
        if !key::is_valid_prefix(query.prefix) {
            return Ok(listed);
        }
        let limit = query.limit.clamp(1, LIST_PAGE_KEYS_MAX);
        let mut after = after.map(str::to_owned);
        loop {
            let have = listed.objects.len() + listed.prefixes.len();
            let page = self.store_page(query, after.as_deref(), limit - have)?;
            let (objects, invalid): (Vec<_>, Vec<_>) =
                page.objects.into_iter().partition(|object| key::is_valid(&object.key));
            let (prefixes, invalid_prefixes): (Vec<_>, Vec<_>) =
                page.prefixes.into_iter().partition(|prefix| key::is_valid_prefix(prefix));
            listed.objects.extend(objects);
            listed.prefixes.extend(prefixes);
            let names = invalid.into_iter().map(|object| object.key).chain(invalid_prefixes);
            listed.skipped.extend(names.take(SKIPPED_KEYS_MAX - listed.skipped.len().min(SKIPPED_KEYS_MAX)));
            let is_stuck = page.next.is_some() && page.next == after;
            after = page.next;
            if after.is_none() || listed.objects.len() + listed.prefixes.len() >= limit {
                listed.next = after;
                return Ok(listed);
            }
            if is_stuck {
                return Err(self.context(query.bucket, query.prefix, "listing").missing("a new continuation token"));
            }
        }
    }

    fn store_page(&self, query: &ListQuery<'_>, after: Option<&str>, limit: usize) -> StoreResult<Page> {
        let context = self.context(query.bucket, query.prefix, "listing");
        let mounts = &self.client.options.mounts;
        let prefix = mounts.stored_prefix(query.bucket, query.prefix);
        let request = |encoded: bool| {
            let mut request = S3Request::new(Method::GET, query.bucket, "", context.operation)
                .query("list-type", "2")
                .query("max-keys", limit.to_string())
                .query("prefix", prefix.as_ref());
            if let Some(delimiter) = query.delimiter {
                request = request.query("delimiter", delimiter);
            }
            if let Some(after) = after {
                request = request.query("continuation-token", after);
            }
            if encoded { request.query("encoding-type", "url") } else { request }
        };
        let fetch = |encoded| {
            self.client.send(&request(encoded), |response| response.xml(LISTING_BYTES_MAX, "ListBucketResult"))
        };
        let listed: Result<ListResult, _> = match fetch(false) {
            Err(RequestError::NoResponse { source, .. }) if source.kind() == std::io::ErrorKind::InvalidData => {
                fetch(true)
            }
            result => result,
        };
        let page = page_of(listed.map_err(|failure| context.error(failure))?, &context)?;
        let listed = |stored| mounts.listed(query.bucket, query.prefix, stored);
        let object = |object: ObjectMeta| Some(ObjectMeta { key: listed(object.key)?, ..object });
        Ok(Page {
            objects: page.objects.into_iter().filter_map(object).collect(),
            prefixes: page.prefixes.into_iter().filter_map(listed).collect(),
            next: page.next,
        })
    }
}

fn page_of(result: ListResult, context: &OperationContext<'_>) -> StoreResult<Page> {
    let encoded = result.encoding_type.as_deref() == Some("url");
    let decode = |text: String| if encoded { decoded(&text) } else { text };
    let mut page = Page::default();
    for item in result.contents {
        let size = item.size.as_deref().and_then(|size| size.trim().parse().ok());
        let modified = item.last_modified.as_deref().and_then(|time| parse_time(time.trim()));
        page.objects.push(ObjectMeta {
            size: size.ok_or_else(|| context.missing("a `Size`"))?,
            etag: item.etag.as_deref().and_then(unquoted),
            modified: modified.ok_or_else(|| context.missing("a `LastModified`"))?,
            key: decode(item.key.ok_or_else(|| context.missing("a `Key`"))?),
        });
    }
    page.prefixes = result.common_prefixes.into_iter().filter_map(|item| item.prefix).map(decode).collect();
    if result.is_truncated.as_deref().map(str::trim) == Some("true") {
        let next = result.next_continuation_token;
        page.next = Some(next.ok_or_else(|| context.missing("a `NextContinuationToken`"))?);
    }
    Ok(page)
}

/// Truncated to whole seconds, as in headers.
pub(super) fn parse_time(text: &str) -> Option<DateTime<Utc>> {
    DateTime::parse_from_rfc3339(text).ok().map(|time| time.to_utc().trunc_subsecs(0))
}

/// Form encoding: percent signs, and `+` for a space.
fn decoded(text: &str) -> String {
    let spaced = text.replace('+', " ");
    percent_encoding::percent_decode_str(&spaced).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::super::xml::Document;
    use super::*;

    fn page(document: &str) -> StoreResult<Page> {
        let context = OperationContext { bucket: Bucket::Lake, name: "svc-lake", key: "p/", operation: "listing" };
        page_of(Document::parse(document.as_bytes()).unwrap().read().unwrap(), &context)
    }

    #[test]
    fn pages_parse_with_and_without_tags_and_encoding() {
        let item = |key: &str, tag: &str| {
            format!(
                "<Contents><Key>{key}</Key><LastModified>2026-11-21T14:23:26.789Z</LastModified>{tag}\
                 <Size>3</Size></Contents>"
            )
        };
        let whole = |inner: &str| format!("<ListBucketResult xmlns=\"http://s3\">{inner}</ListBucketResult>");
        let plain = page(&whole(&item("p/a+b%20c ", "<ETag>&quot;t&quot;</ETag>"))).unwrap();
        assert_eq!(plain.objects[0].key, "p/a+b%20c ");
        assert_eq!(plain.objects[0].etag.as_ref().unwrap().0, "t");
        assert_eq!(plain.objects[0].modified.to_rfc3339(), "2026-11-21T14:23:26+00:00");
        assert_eq!(plain.next, None);
        let rest = "<EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>\
                    <NextContinuationToken>a+b%</NextContinuationToken>\
                    <CommonPrefixes><Prefix>p/%01/</Prefix></CommonPrefixes>";
        let encoded = page(&whole(&format!("{}{rest}", item("p/a+b%2Bc", "")))).unwrap();
        assert_eq!((encoded.objects[0].key.as_str(), &encoded.objects[0].etag), ("p/a b+c", &None));
        assert_eq!((encoded.prefixes, encoded.next), (vec!["p/\u{1}/".to_owned()], Some("a+b%".to_owned())));
    }

    #[test]
    fn incomplete_page_is_an_error() {
        for inner in [
            "<Contents><Size>1</Size></Contents>",
            "<Contents><Key>k</Key><Size>x</Size><LastModified>2026-11-21T14:23:26Z</LastModified></Contents>",
            "<IsTruncated>true</IsTruncated>",
        ] {
            let result = page(&format!("<ListBucketResult>{inner}</ListBucketResult>"));
            assert!(matches!(result, Err(crate::ports::store::StoreError::Transient { .. })), "{inner}");
        }
    }
}

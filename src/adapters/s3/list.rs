//! Listings.
//!
//! Keys are read as they stand in the XML. Only where a page is no XML, since it holds characters that XML can't, is it
//! asked for again with keys percent-encoded: some stores claim to encode, and don't.

use chrono::{DateTime, SubsecRound, Utc};
use ureq::http::Method;

use crate::domain::limits::{LIST_PAGE_KEYS_MAX, SKIPPED_KEYS_MAX};
use crate::ports::store::{Bucket, ListPage, ObjectMeta, StoreResult};

use super::S3Store;
use super::answer::{Failure, unquoted};
use super::client::Call;
use super::error::Place;
use super::key;
use super::xml::Node;

/// A thousand keys of 1,024 bytes, all of them escaped, and what stands around them.
pub(super) const LISTING_BYTES_MAX: u64 = 16 << 20;

/// What is listed, page after page.
pub(super) struct Query<'a> {
    pub(super) bucket: Bucket,
    pub(super) prefix: &'a str,
    pub(super) delimiter: Option<char>,
    pub(super) limit: usize,
}

/// A page as the store gives it.
#[derive(Default)]
struct Page {
    objects: Vec<ObjectMeta>,
    prefixes: Vec<String>,
    next: Option<String>,
}

impl S3Store {
    /// Pages are asked for until one of ours is full: what is no key of ours (a `..` segment) is named apart, and stores
    /// may give less than they were asked for.
    pub(super) fn list_page(&self, query: &Query<'_>, after: Option<&str>) -> StoreResult<ListPage> {
        let mut listed = ListPage::default();
        if !key::can_start_a_key(query.prefix) {
            return Ok(listed);
        }
        let limit = query.limit.clamp(1, LIST_PAGE_KEYS_MAX);
        let mut after = after.map(str::to_owned);
        loop {
            let have = listed.objects.len() + listed.prefixes.len();
            let page = self.store_page(query, after.as_deref(), limit - have)?;
            let (objects, no_keys): (Vec<_>, Vec<_>) =
                page.objects.into_iter().partition(|object| key::is_valid(&object.key));
            let (prefixes, no_starts): (Vec<_>, Vec<_>) =
                page.prefixes.into_iter().partition(|prefix| key::can_start_a_key(prefix));
            listed.objects.extend(objects);
            listed.prefixes.extend(prefixes);
            let names = no_keys.into_iter().map(|object| object.key).chain(no_starts);
            listed.skipped.extend(names.take(SKIPPED_KEYS_MAX - listed.skipped.len().min(SKIPPED_KEYS_MAX)));
            let is_stuck = page.next.is_some() && page.next == after;
            after = page.next;
            if after.is_none() || listed.objects.len() + listed.prefixes.len() >= limit {
                listed.next = after;
                return Ok(listed);
            }
            if is_stuck {
                return Err(self.place(query.bucket, query.prefix, "listing").lacking("a page after the last one"));
            }
        }
    }

    fn store_page(&self, query: &Query<'_>, after: Option<&str>, limit: usize) -> StoreResult<Page> {
        let place = self.place(query.bucket, query.prefix, "listing");
        let call = |encoded: bool| {
            let mut call = Call::new(Method::GET, query.bucket, "", place.operation)
                .query("list-type", "2")
                .query("max-keys", limit.to_string())
                .query("prefix", query.prefix);
            if let Some(delimiter) = query.delimiter {
                call = call.query("delimiter", delimiter);
            }
            if let Some(after) = after {
                call = call.query("continuation-token", after);
            }
            if encoded { call.query("encoding-type", "url") } else { call }
        };
        let fetch =
            |encoded| self.client.send(&call(encoded), |answer| answer.xml(LISTING_BYTES_MAX, "ListBucketResult"));
        let node = match fetch(false) {
            Err(Failure::Lost { source, .. }) if source.kind() == std::io::ErrorKind::InvalidData => fetch(true),
            result => result,
        };
        page_of(&node.map_err(|failure| place.error(failure))?, &place)
    }
}

fn page_of(node: &Node, place: &Place<'_>) -> StoreResult<Page> {
    let encoded = node.text_of("EncodingType") == Some("url");
    let decode = |text: &str| if encoded { decoded(text) } else { text.to_owned() };
    let mut page = Page::default();
    for item in node.all("Contents") {
        let text = |name: &str| item.text_of(name).map(str::trim);
        page.objects.push(ObjectMeta {
            key: decode(item.text_of("Key").ok_or_else(|| place.lacking("a `Key`"))?),
            size: text("Size").and_then(|size| size.parse().ok()).ok_or_else(|| place.lacking("a `Size`"))?,
            etag: text("ETag").and_then(unquoted),
            modified: text("LastModified").and_then(parse_time).ok_or_else(|| place.lacking("a `LastModified`"))?,
        });
    }
    page.prefixes = node.all("CommonPrefixes").filter_map(|item| item.text_of("Prefix")).map(decode).collect();
    if node.text_of("IsTruncated").map(str::trim) == Some("true") {
        let next = node.text_of("NextContinuationToken").ok_or_else(|| place.lacking("a `NextContinuationToken`"))?;
        page.next = Some(next.to_owned());
    }
    Ok(page)
}

/// In whole seconds, as the headers of other answers have it.
pub(super) fn parse_time(text: &str) -> Option<DateTime<Utc>> {
    DateTime::parse_from_rfc3339(text).ok().map(|time| time.to_utc().trunc_subsecs(0))
}

/// As forms encode: percent signs, and `+` for a space.
fn decoded(text: &str) -> String {
    let spaced = text.replace('+', " ");
    percent_encoding::percent_decode_str(&spaced).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::super::xml;
    use super::*;

    fn page(document: &str) -> StoreResult<Page> {
        let place = Place { bucket: Bucket::Lake, name: "svc-lake", key: "p/", operation: "listing" };
        page_of(&xml::parse(document.as_bytes()).unwrap(), &place)
    }

    #[test]
    fn a_page_is_read_with_and_without_tags_and_encoding() {
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
    fn a_page_without_what_it_needs_is_an_error() {
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

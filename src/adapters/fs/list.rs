//! Pages of a listing, in the order of key bytes.
//!
//! A folder is read whole and sorted, with subfolders as if their names ended in `/`, so that a walk yields keys in order.
//! A page reads the folders on the path to its first key and those that it lists; a large folder is kept for the next page
//! while it is unchanged.

use crate::domain::limits::LIST_PAGE_KEYS_MAX;
use crate::ports::store::{Bucket, ListPage, StoreResult};

use super::error::invalid_key;
use super::folder::Folders;
use super::snapshot::FolderSnapshots;
use super::walk::{Walk, WalkStart};

/// A listing's bucket, prefix and limits.
pub(super) struct WalkQuery<'a> {
    pub(super) bucket: Bucket,
    pub(super) prefix: &'a str,
    pub(super) delimiter: Option<char>,
    pub(super) limit: usize,
}

/// One page. A token is `k` and the last listed key, or `p` and the last listed prefix.
pub(super) fn page(
    folders: &Folders,
    snapshots: &FolderSnapshots,
    query: &WalkQuery<'_>,
    after: Option<&str>,
) -> StoreResult<ListPage> {
    let limit = query.limit.clamp(1, LIST_PAGE_KEYS_MAX);
    let mut from = match after {
        None => WalkStart::Start,
        Some(token) => match token.split_at_checked(1) {
            Some(("k", key)) => WalkStart::After(key.to_owned()),
            Some(("p", prefix)) => WalkStart::Past(prefix.to_owned()),
            _ => return Err(invalid_key(query.bucket, token, "it is not a continuation token")),
        },
    };
    let mut page = ListPage::default();
    for folder in folders.of(query.bucket) {
        let Some(mut walk) = Walk::start(folder, snapshots, query.prefix, from.clone(), after.is_some())? else {
            continue;
        };
        while let Some(file) = walk.next()? {
            if page.objects.len() + page.prefixes.len() == limit {
                page.next = Some(from.token());
                page.skipped.extend(walk.into_skipped());
                return Ok(page);
            }
            match group(query, file.key()) {
                Some(group) => {
                    from = WalkStart::Past(group.clone());
                    page.prefixes.push(group);
                    walk.skip(from.clone());
                }
                None => {
                    // Skips a file that was deleted after its folder was read.
                    let Some(meta) = walk.meta(&file)? else { continue };
                    page.objects.push(meta);
                    from = WalkStart::After(file.into_key());
                }
            }
        }
        page.skipped.extend(walk.into_skipped());
    }
    Ok(page)
}

fn group(query: &WalkQuery<'_>, key: &str) -> Option<String> {
    let delimiter = query.delimiter?;
    let rest = key.strip_prefix(query.prefix)?;
    let end = query.prefix.len() + rest.find(delimiter)? + delimiter.len_utf8();
    Some(key[..end].to_owned())
}

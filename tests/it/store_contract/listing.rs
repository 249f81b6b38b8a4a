//! Listing: order, prefixes, delimiters, pages.

use std::collections::BTreeSet;

use lakemill::ports::store::{Bucket, ListPage, WriteOptions};

use super::Fixture;

const LAKE: Bucket = Bucket::Lake;

/// Names whose order by folder differs from that by bytes, and that share prefixes.
const NAMES: [&str; 20] = [
    "a!/x",
    "a-b",
    "a.b",
    "a/b",
    "a/b-c",
    "a/c/d",
    "a/c/e",
    "a/c0",
    "a0",
    "a=1/b=1/p",
    "a=1/b=2/p",
    "a=10/b=1/p",
    "b c/d",
    "b-/x",
    "b/d é/f",
    "bb/é",
    "bb/🦆",
    "ba/z",
    "c/d/e/f/g",
    "é/x",
];

fn names() -> BTreeSet<String> {
    NAMES.iter().map(|name| (*name).to_owned()).collect()
}

fn fill(f: &Fixture) -> BTreeSet<String> {
    let names = names();
    for name in &names {
        f.put(LAKE, name, name.as_bytes());
    }
    names
}

/// Objects and prefixes in order, as (name, whether it is a prefix).
type Items = Vec<(String, bool)>;

/// The expected listing, computed naively.
fn expected(names: &BTreeSet<String>, prefix: &str, delimiter: Option<char>) -> Items {
    let mut items = Items::new();
    for name in names {
        let Some(rest) = name.strip_prefix(prefix) else { continue };
        let item = match delimiter.and_then(|d| rest.find(d).map(|at| at + d.len_utf8())) {
            Some(end) => (name[..prefix.len() + end].to_owned(), true),
            None => (name.clone(), false),
        };
        if items.last() != Some(&item) {
            items.push(item);
        }
    }
    items
}

fn items_of(f: &Fixture, page: &ListPage) -> Items {
    let strip = |key: &String| key.strip_prefix(f.prefix).unwrap().to_owned();
    let mut items: Items = page.objects.iter().map(|meta| (strip(&meta.key), false)).collect();
    assert!(items.is_sorted() && page.prefixes.is_sorted());
    items.extend(page.prefixes.iter().map(|prefix| (strip(prefix), true)));
    items.sort();
    items
}

fn listed(f: &Fixture, prefix: &str, delimiter: Option<char>, limit: usize) -> Items {
    let (mut items, mut after) = (Items::new(), None);
    loop {
        let page = f.store.list(LAKE, &f.key(prefix), delimiter, after.as_deref(), limit).unwrap();
        let found = items_of(f, &page);
        assert!(found.len() <= limit);
        assert!(page.next.is_none() || found.len() == limit, "a page is full unless it is the last");
        items.extend(found);
        match page.next {
            Some(next) => after = Some(next),
            None => return items,
        }
    }
}

pub fn keys_are_listed_in_byte_order(f: &Fixture) {
    let names = fill(f);
    assert_eq!(f.names(LAKE, ""), Vec::from_iter(names.clone()));
    let page = f.store.list(LAKE, f.prefix, None, None, 1_000).unwrap();
    assert_eq!(page.next, None);
    for (meta, name) in page.objects.iter().zip(&names) {
        assert_eq!((meta.key.as_str(), meta.size), (f.key(name).as_str(), name.len() as u64));
    }
}

pub fn listing_is_independent_of_page_size(f: &Fixture) {
    let names = fill(f);
    for delimiter in [None, Some('/')] {
        for prefix in ["", "a", "a/", "a=1", "b", "c/"] {
            let whole = expected(&names, prefix, delimiter);
            for limit in 1..=names.len() + 1 {
                assert_eq!(listed(f, prefix, delimiter, limit), whole, "`{prefix}` {delimiter:?} by {limit}");
            }
        }
    }
}

pub fn any_character_can_be_a_delimiter(f: &Fixture) {
    let names = fill(f);
    for delimiter in ['-', '=', 'b', 'é', '.', ' '] {
        if !delimiter.is_ascii() && f.quirks.wide_delimiters_fail {
            continue;
        }
        for prefix in ["", "a", "a-", "a/", "b", "bb/é"] {
            let whole = expected(&names, prefix, Some(delimiter));
            for limit in [1, 2, 3, 100] {
                assert_eq!(listed(f, prefix, Some(delimiter), limit), whole, "`{prefix}` `{delimiter}` by {limit}");
            }
        }
    }
}

pub fn empty_segments_are_separate_levels(f: &Fixture) {
    if f.folders || f.quirks.empty_segments_are_folded {
        return;
    }
    let names: BTreeSet<String> =
        ["", "/", "//a", "/a", "a", "in", "in/", "in//", "in//a", "in///b", "in/a", "in/b/", "in0"]
            .map(str::to_owned)
            .into();
    for name in &names {
        f.put(LAKE, name, name.as_bytes());
    }
    for delimiter in [None, Some('/')] {
        for prefix in ["", "/", "//", "a", "in", "in/", "in//", "in///", "in/b", "in/b/", "in/b//"] {
            let whole = expected(&names, prefix, delimiter);
            for limit in 1..=names.len() + 1 {
                assert_eq!(listed(f, prefix, delimiter, limit), whole, "`{prefix}` {delimiter:?} by {limit}");
            }
        }
    }
}

pub fn prefix_may_end_within_a_segment(f: &Fixture) {
    let names = fill(f);
    let starts: BTreeSet<&str> =
        names.iter().flat_map(|name| (0..=name.len()).filter_map(|end| name.get(..end))).collect();
    for prefix in starts {
        for delimiter in [None, Some('/')] {
            assert_eq!(listed(f, prefix, delimiter, 1_000), expected(&names, prefix, delimiter), "`{prefix}`");
        }
    }
    // Above the tests' own root, too.
    let page = f.store.list(LAKE, "pipe", Some('/'), None, 10).unwrap();
    assert_eq!((page.objects.len(), page.prefixes), (0, vec!["pipelines/".to_owned()]));
}

pub fn unused_prefix_lists_nothing(f: &Fixture) {
    fill(f);
    for prefix in ["x", "a/b/", "a/b/c", "a//", "a/../", "../", "./a", "/", "a/c/d/", "\0", "zz/../a"] {
        for delimiter in [None, Some('/')] {
            assert_eq!(
                f.store.list(LAKE, &f.key(prefix), delimiter, None, 10).unwrap(),
                ListPage::default(),
                "{prefix:?}"
            );
        }
    }
    assert_eq!(f.store.list(LAKE, &"k".repeat(5_000), None, None, 10).unwrap(), ListPage::default());
    assert_eq!(f.store.list(Bucket::Pipelines, f.prefix, None, None, 10).unwrap(), ListPage::default());
}

pub fn listing_continues_after_its_last_key_was_deleted(f: &Fixture) {
    let names = fill(f);
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let page = f.store.list(LAKE, f.prefix, None, after.as_deref(), 3).unwrap();
        let keys: Vec<String> = page.objects.into_iter().map(|meta| meta.key).collect();
        f.store.delete(LAKE, &keys, &WriteOptions::default()).unwrap();
        seen.extend(keys.iter().map(|key| key[f.prefix.len()..].to_owned()));
        match page.next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    assert_eq!(seen, Vec::from_iter(names));
    assert!(f.names(LAKE, "").is_empty());
}

pub fn later_pages_include_new_objects(f: &Fixture) {
    for index in 0..600 {
        f.put(LAKE, &format!("many/{index:04}"), b"");
    }
    let first = f.store.list(LAKE, f.prefix, None, None, 500).unwrap();
    f.put(LAKE, "many/0550x", b"");
    f.delete(LAKE, &["many/0560"]);
    let second = f.store.list(LAKE, f.prefix, None, first.next.as_deref(), 500).unwrap();
    assert_eq!((second.objects.len(), second.next), (100, None));
    let keys: Vec<&str> = second.objects.iter().map(|meta| &meta.key[f.prefix.len()..]).collect();
    assert!(keys.contains(&"many/0550x") && !keys.contains(&"many/0560"));
    assert_eq!(keys[0], "many/0500");
}

pub fn page_has_at_most_a_thousand_keys(f: &Fixture) {
    let (threads, each) = (8, 126);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || (0..each).for_each(|i| drop(f.put(LAKE, &format!("n/{thread}-{i:03}"), b""))));
        }
    });
    let page = f.store.list(LAKE, &f.key("n"), None, None, 1_000).unwrap();
    assert_eq!(page.objects.len(), 1_000);
    assert!(page.next.is_some());
    assert_eq!(f.names(LAKE, "n/").len(), threads * each);
    let all = f.store.list(LAKE, f.prefix, Some('/'), None, 1_000).unwrap();
    assert_eq!((all.prefixes, all.next), (vec![f.key("n/")], None));
}

//! Every link in the docs has an existing target.

use std::path::{Component, PathBuf};

use super::markdown::{Page, pages, root};

/// The path from the root that a link on a page points to; `None` if it leads out of the repository.
fn resolved(page: &Page, target: &str) -> Option<PathBuf> {
    let mut path = PathBuf::from(&page.path);
    path.pop();
    for part in PathBuf::from(target).components() {
        match part {
            Component::Normal(name) => path.push(name),
            Component::ParentDir => drop(path.pop().then_some(())?),
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(path)
}

#[test]
fn every_link_within_the_docs_has_a_target() {
    let mut broken = Vec::new();
    let mut checked = 0;
    for page in pages() {
        for link in page.links() {
            if link.target.starts_with("https://") {
                continue;
            }
            checked += 1;
            let (target, anchor) = link.target.split_once('#').unwrap_or((&link.target, ""));
            let place = format!("{}:{}: `{}`", page.path, link.line, link.target);
            let path = if target.is_empty() { Some(PathBuf::from(&page.path)) } else { resolved(&page, target) };
            let Some(path) = path else {
                broken.push(format!("{place} leads out of the repository"));
                continue;
            };
            if !root().join(&path).exists() {
                broken.push(format!("{place}: there is no `{}`", path.display()));
            } else if !anchor.is_empty() {
                let anchors = Page::read(&path.to_string_lossy()).anchors();
                if !anchors.iter().any(|there| there == anchor) {
                    broken.push(format!("{place}: `{}` has no such heading", path.display()));
                }
            }
        }
    }
    assert!(checked > 50, "only {checked} links were found");
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn every_page_of_the_docs_can_be_reached_from_the_readme() {
    let all = pages();
    let (mut reached, mut waiting) = (Vec::new(), vec!["README.md".to_owned()]);
    while let Some(path) = waiting.pop() {
        let Some(page) = all.iter().find(|page| page.path == path) else { continue };
        if reached.contains(&path) {
            continue;
        }
        let targets = page.links().into_iter().map(|link| link.target.split('#').next().unwrap_or_default().to_owned());
        waiting.extend(targets.filter_map(|target| resolved(page, &target)).map(|path| path.display().to_string()));
        reached.push(path);
    }
    let lost: Vec<&str> =
        all.iter().map(|page| page.path.as_str()).filter(|path| !reached.contains(&(*path).to_owned())).collect();
    assert!(lost.is_empty(), "no link leads to {lost:?}");
}

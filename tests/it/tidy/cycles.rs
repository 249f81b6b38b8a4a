//! Import cycles between the files of a layer.
//!
//! A file depends on the files whose items it names, in `use` lines or in place. A `pub use` is a facade and no
//! dependency: a user of the name depends on the file that defines the item.

use std::collections::{BTreeMap, BTreeSet};

/// A module by its path below the crate's root: `["web", "lake"]` for `src/web/lake.rs` and `src/web/lake/mod.rs`.
type Module = Vec<String>;

/// The modules of `files` (paths below `src/`, with their code) that depend on each other, one list per cycle.
pub fn cycles(files: &[(&str, &str)]) -> Vec<Vec<String>> {
    let sources: BTreeMap<Module, &str> = files.iter().map(|(path, code)| (module_of(path), *code)).collect();
    let imports: BTreeMap<&Module, Vec<Import>> =
        sources.iter().map(|(module, code)| (module, imports(module, code, &sources))).collect();
    let mut facades: BTreeMap<(&Module, &str), &Module> = BTreeMap::new();
    for (module, imports) in &imports {
        for import in imports.iter().filter(|import| import.public) {
            if let Some(name) = import.path.last() {
                facades.insert((module, name), &import.path);
            }
        }
    }
    let mut graph: BTreeMap<&Module, BTreeSet<Module>> = BTreeMap::new();
    for (module, imports) in &imports {
        let targets = imports.iter().filter(|import| !import.public);
        let targets = targets.filter_map(|import| resolve(&import.path, &sources, &facades, 0));
        graph.insert(module, targets.filter(|target| target != *module && target[0] == module[0]).collect());
    }
    components(&graph)
}

fn module_of(path: &str) -> Module {
    let path = path.trim_end_matches(".rs");
    path.strip_suffix("/mod").unwrap_or(path).split('/').map(str::to_owned).collect()
}

struct Import {
    public: bool,
    /// From the crate's root.
    path: Vec<String>,
}

fn imports(module: &Module, code: &str, sources: &BTreeMap<Module, &str>) -> Vec<Import> {
    let mut found = Vec::new();
    let mut add = |public: bool, path: &str| {
        if let Some(path) = absolute(module, path, sources) {
            found.push(Import { public, path });
        }
    };
    let mut body = code.to_owned();
    for (at, _) in code.match_indices("use ") {
        let before = code[..at].trim_end();
        let starts = before.is_empty() || before.ends_with([';', '{', '}', ']']);
        let public = before.ends_with("pub") || (before.ends_with(')') && before.contains("pub("));
        let Some(end) = code[at..].find(';').map(|end| at + end) else { continue };
        if starts || public {
            for path in expand(&code[at + "use ".len()..end]) {
                add(public, &path);
            }
            body.replace_range(at..end, &" ".repeat(end - at));
        }
    }
    let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    for path in body.split(|c| !is_path(c)).filter(|path| path.contains("::") && !path.starts_with("::")) {
        add(false, path);
    }
    found
}

/// The paths of a `use` tree: `a::{b, c::d}` is `a::b` and `a::c::d`.
fn expand(tree: &str) -> Vec<String> {
    let tree = tree.trim();
    let Some((prefix, rest)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap_or(tree);
        return vec![path.split_whitespace().collect()];
    };
    let mut depth = 0;
    let inner = rest.trim_end().strip_suffix('}').unwrap_or(rest);
    let members = inner.split(|c| {
        depth += match c {
            '{' => 1,
            '}' => -1,
            _ => 0,
        };
        c == ',' && depth == 0
    });
    let members = members.filter(|member| !member.trim().is_empty());
    members.flat_map(|member| expand(&format!("{}{}", prefix.trim(), member.trim()))).collect()
}

/// A path from the crate's root; `None` for a path into another crate.
fn absolute(module: &Module, path: &str, sources: &BTreeMap<Module, &str>) -> Option<Vec<String>> {
    let mut segments = path.split("::").filter(|segment| !segment.is_empty()).peekable();
    let mut base = match *segments.peek()? {
        "crate" | "lakemill" => {
            segments.next();
            Vec::new()
        }
        "super" | "self" => module.clone(),
        child => {
            let mut base = module.clone();
            base.push(child.to_owned());
            if !sources.contains_key(&base) {
                return None;
            }
            base.pop();
            base
        }
    };
    while let Some(step) = segments.next_if(|step| matches!(*step, "super" | "self")) {
        if step == "super" {
            base.pop();
        }
    }
    base.extend(segments.filter(|segment| *segment != "self").map(str::to_owned));
    Some(base)
}

/// Resolves a path to the module that defines its item, following re-exports.
fn resolve(
    path: &[String],
    sources: &BTreeMap<Module, &str>,
    facades: &BTreeMap<(&Module, &str), &Module>,
    hops: usize,
) -> Option<Module> {
    let length = (1..=path.len()).rev().find(|length| sources.contains_key(&path[..*length]))?;
    let module = path[..length].to_vec();
    let facade = path.get(length).and_then(|name| facades.get(&(&module, name.as_str())));
    match facade {
        Some(target) if hops < 8 => {
            let target: Vec<String> = target.iter().chain(&path[length + 1..]).cloned().collect();
            resolve(&target, sources, facades, hops + 1).or(Some(module))
        }
        Some(_) | None => Some(module),
    }
}

/// The strongly connected components of more than one module.
fn components(graph: &BTreeMap<&Module, BTreeSet<Module>>) -> Vec<Vec<String>> {
    let reached = |start: &Module| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![start.clone()]);
        while let Some(module) = open.pop() {
            for next in graph.get(&module).into_iter().flatten() {
                if seen.insert(next.clone()) {
                    open.push(next.clone());
                }
            }
        }
        seen
    };
    let reach: BTreeMap<&Module, BTreeSet<Module>> = graph.keys().map(|module| (*module, reached(module))).collect();
    let mut found: BTreeSet<Vec<String>> = BTreeSet::new();
    for (module, targets) in reach.iter().filter(|(module, targets)| targets.contains(**module)) {
        let members = targets.iter().filter(|other| reach.get(other).is_some_and(|back| back.contains(*module)));
        found.insert(members.map(|member| member.join("::")).collect());
    }
    found.into_iter().collect()
}

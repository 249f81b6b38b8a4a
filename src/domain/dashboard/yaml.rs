//! Parses YAML to a tree of nodes with positions.
//!
//! Invariants: a tree has at most [`NODES_MAX`] nodes and [`EXPANDED_BYTES_MAX`] bytes of text after the expansion of
//! aliases, and is at most [`DEPTH_MAX`] deep; this is checked before the expansion. All merges (`<<`) of a text
//! together copy at most as much ([`Budget`]), wherever they occur.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::{Map, Value};
use serde_saphyr::granit_parser::{Event, Marker, Options, Parser, ScalarStyle, ScanError, Tag};

use super::limits::{DEPTH_MAX, DUPLICATES_MAX, EXPANDED_BYTES_MAX, KEY_BYTES_MAX, NODES_MAX};
use super::problem::{DashboardProblem, DashboardProblemKind};
use super::scalar::{self, Resolved};
use crate::domain::text::Position;

/// A node with its position.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) content: NodeContent,
    pub(super) position: Position,
    /// Nodes, including keys, after the expansion of aliases.
    nodes: usize,
    /// Bytes of text after the expansion of aliases.
    bytes: usize,
    height: usize,
}

#[derive(Debug)]
pub(super) enum NodeContent {
    Scalar(Value, ScalarStyle),
    List(Vec<Arc<Node>>),
    Map(Vec<MappingMember>),
}

/// A member of a mapping.
#[derive(Debug, Clone)]
pub(super) struct MappingMember {
    pub(super) name: String,
    pub(super) position: Position,
    pub(super) value: Arc<Node>,
}

/// Parses a text with one document. Duplicate members are reported separately; the first of them counts.
///
/// # Errors
/// If the text is not valid YAML, or exceeds a limit.
pub(super) fn read(text: &str) -> Result<(Arc<Node>, Vec<DashboardProblem>), DashboardProblem> {
    let mut options = Options::default();
    options.flow_nesting_limit = DEPTH_MAX;
    options.block_nesting_limit = DEPTH_MAX;
    let mut parser = Parser::new_from_str_with_options(text, options);
    let mut composer = Composer::default();
    while let Some(next) = parser.next_event() {
        let (event, span) = next.map_err(|error| syntax(&error))?;
        composer.take(event, position(&span.start))?;
    }
    let empty = || Arc::new(Node::scalar(Value::Null, ScalarStyle::Plain, Position::START));
    Ok((composer.root.unwrap_or_else(empty), composer.duplicates))
}

fn position(marker: &Marker) -> Position {
    let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    Position { line: number(marker.line()).max(1), column: number(marker.col()).saturating_add(1) }
}

fn syntax(error: &ScanError) -> DashboardProblem {
    DashboardProblem::new(DashboardProblemKind::Syntax, "", error.info(), position(error.marker()))
}

impl Node {
    fn scalar(value: Value, style: ScalarStyle, position: Position) -> Self {
        let bytes = value.as_str().map_or(8, str::len);
        Self { content: NodeContent::Scalar(value, style), position, nodes: 1, bytes, height: 1 }
    }

    /// The tree as JSON with expanded aliases.
    pub(super) fn to_value(&self) -> Value {
        match &self.content {
            NodeContent::Scalar(value, _) => value.clone(),
            NodeContent::List(items) => Value::Array(items.iter().map(|item| item.to_value()).collect()),
            NodeContent::Map(entries) => {
                let members = entries.iter().map(|entry| (entry.name.clone(), entry.value.to_value()));
                Value::Object(members.collect::<Map<_, _>>())
            }
        }
    }

    /// The node of a JSON Pointer with the position of its name, or the nearest existing ancestor.
    pub(super) fn find(&self, pointer: &str) -> (&Self, Option<Position>) {
        let (mut node, mut name) = (self, None);
        for part in pointer.split('/').skip(1) {
            let part = part.replace("~1", "/").replace("~0", "~");
            let (next, its_name) = match &node.content {
                NodeContent::Scalar(..) => break,
                NodeContent::List(items) => match part.parse().ok().and_then(|index: usize| items.get(index)) {
                    Some(item) => (item, None),
                    None => break,
                },
                NodeContent::Map(entries) => match entries.iter().find(|entry| entry.name == part) {
                    Some(entry) => (&entry.value, Some(entry.position)),
                    None => break,
                },
            };
            (node, name) = (next, its_name);
        }
        (node, name)
    }
}

/// An open collection.
struct OpenNode {
    position: Position,
    anchor: usize,
    content: OpenContent,
}

enum OpenContent {
    List(Vec<Arc<Node>>),
    Map { entries: Vec<MappingMember>, names: HashSet<String>, key: Option<Key>, merged: Vec<Arc<Node>> },
}

/// A key whose value has not been parsed yet.
struct Key {
    name: String,
    position: Position,
    /// A plain `<<`.
    merges: bool,
    /// A duplicate key.
    is_duplicate: bool,
}

/// The copies that merges may still make, whether or not they end up in the tree.
struct Budget {
    members: usize,
    bytes: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self { members: NODES_MAX, bytes: EXPANDED_BYTES_MAX }
    }
}

impl Budget {
    /// Subtracts the cost of merging `maps`; `None` if it exceeds the budget. Each map counts, even an empty one, since
    /// it must be visited.
    fn take(&mut self, maps: &[Arc<Node>]) -> Option<()> {
        for map in maps {
            let NodeContent::Map(entries) = &map.content else { continue };
            self.members = self.members.checked_sub(1 + entries.len())?;
            let bytes = entries.iter().map(|entry| entry.name.len()).sum();
            self.bytes = self.bytes.checked_sub(bytes)?;
        }
        Some(())
    }
}

#[derive(Default)]
struct Composer {
    open: Vec<OpenNode>,
    budget: Budget,
    anchors: HashMap<usize, Arc<Node>>,
    root: Option<Arc<Node>>,
    duplicates: Vec<DashboardProblem>,
    documents: usize,
}

impl Composer {
    fn take(&mut self, event: Event<'_>, position: Position) -> Result<(), DashboardProblem> {
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    let message = "a second document begins here, expected one";
                    return Err(DashboardProblem::new(DashboardProblemKind::Syntax, "", message, position));
                }
            }
            Event::Scalar(text, style, anchor, tag) => self.scalar(&text, style, anchor, tag.as_deref(), position)?,
            Event::SequenceStart(_, anchor, tag) => {
                self.check_tag(tag.as_deref(), "seq", position)?;
                self.begin(OpenNode { position, anchor, content: OpenContent::List(Vec::new()) })?;
            }
            Event::MappingStart(_, anchor, tag) => {
                self.check_tag(tag.as_deref(), "map", position)?;
                let content =
                    OpenContent::Map { entries: Vec::new(), names: HashSet::new(), key: None, merged: Vec::new() };
                self.begin(OpenNode { position, anchor, content })?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.end()?,
            Event::Alias(id) => match self.anchors.get(&id).map(Arc::clone) {
                Some(node) => self.add(node, position)?,
                None => {
                    return Err(self.refuse(
                        DashboardProblemKind::Syntax,
                        "an alias is within its own anchor",
                        position,
                    ));
                }
            },
            // Stream ends, and events that this parser doesn't use.
            _ => {}
        }
        Ok(())
    }

    fn begin(&mut self, open: OpenNode) -> Result<(), DashboardProblem> {
        if self.expects_key() {
            return Err(self.refuse(
                DashboardProblemKind::Syntax,
                "expected a name, found a collection",
                open.position,
            ));
        }
        if self.open.len() >= DEPTH_MAX {
            return Err(self.too_deep(open.position));
        }
        self.open.push(open);
        Ok(())
    }

    fn expects_key(&self) -> bool {
        matches!(self.open.last(), Some(OpenNode { content: OpenContent::Map { key: None, .. }, .. }))
    }

    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<&Tag>,
        position: Position,
    ) -> Result<(), DashboardProblem> {
        if self.expects_key() {
            self.check_tag(tag, "str", position)?;
            return self.key(text, style, position);
        }
        let plain = style == ScalarStyle::Plain && tag.is_none_or(|tag| tag.core_suffix() != Some("str"));
        let value = match if plain { scalar::resolve(text) } else { Resolved::Value(Value::from(text)) } {
            Resolved::Value(value) => value,
            Resolved::NotFinite => {
                let message = format!("expected a finite number, found `{}`", clipped(text));
                return Err(self.refuse(DashboardProblemKind::InvalidValue, &message, position));
            }
        };
        self.check_tag(tag, scalar::tag_of(&value), position)?;
        let node = Arc::new(Node::scalar(value, style, position));
        if anchor > 0 {
            self.anchors.insert(anchor, Arc::clone(&node));
        }
        self.add(node, position)
    }

    fn key(&mut self, text: &str, style: ScalarStyle, position: Position) -> Result<(), DashboardProblem> {
        if text.len() > KEY_BYTES_MAX {
            let message = format!("expected a name of at most {KEY_BYTES_MAX} bytes, found {}", text.len());
            return Err(self.refuse(DashboardProblemKind::Limit, &message, position));
        }
        let Some(OpenNode { content: OpenContent::Map { names, key, .. }, .. }) = self.open.last_mut() else {
            return Ok(());
        };
        let merges = style == ScalarStyle::Plain && text == "<<";
        let is_duplicate = !merges && !names.insert(text.to_owned());
        *key = Some(Key { name: text.to_owned(), position, merges, is_duplicate });
        if is_duplicate && self.duplicates.len() < DUPLICATES_MAX {
            let message = format!("the name `{}` is used twice in one mapping", clipped(text));
            self.duplicates.push(self.refuse(DashboardProblemKind::Duplicate, &message, position));
        }
        Ok(())
    }

    /// A node is complete.
    fn add(&mut self, node: Arc<Node>, position: Position) -> Result<(), DashboardProblem> {
        if self.open.len() + node.height > DEPTH_MAX {
            return Err(self.too_deep(position));
        }
        match self.open.last_mut().map(|open| &mut open.content) {
            None => self.root = Some(node),
            Some(OpenContent::List(items)) => items.push(node),
            Some(OpenContent::Map { entries, key: waiting, merged, .. }) => match waiting.take() {
                None => {
                    return Err(self.refuse(DashboardProblemKind::Syntax, "expected a name, found an alias", position));
                }
                Some(Key { merges: true, .. }) => {
                    let maps = match &node.content {
                        NodeContent::List(items) => items.as_slice(),
                        NodeContent::Map(_) | NodeContent::Scalar(..) => std::slice::from_ref(&node),
                    };
                    if self.budget.take(maps).is_none() {
                        let message = format!(
                            "expected merges (`<<`) of at most {NODES_MAX} members and {EXPANDED_BYTES_MAX} bytes of \
                             names in total, found more"
                        );
                        return Err(self.refuse(DashboardProblemKind::Limit, &message, position));
                    }
                    if !maps.iter().all(|map| matches!(map.content, NodeContent::Map(_))) {
                        return Err(self.refuse(
                            DashboardProblemKind::WrongType,
                            "expected a mapping after `<<`",
                            position,
                        ));
                    }
                    merged.extend(maps.iter().map(Arc::clone));
                }
                Some(Key { is_duplicate: true, .. }) => {}
                Some(Key { name, position, .. }) => entries.push(MappingMember { name, position, value: node }),
            },
        }
        Ok(())
    }

    /// The innermost collection is complete.
    fn end(&mut self) -> Result<(), DashboardProblem> {
        let Some(OpenNode { position, anchor, content }) = self.open.pop() else { return Ok(()) };
        let content = match content {
            OpenContent::List(items) => NodeContent::List(items),
            OpenContent::Map { mut entries, mut names, merged, .. } => {
                for map in &merged {
                    if let NodeContent::Map(more) = &map.content {
                        entries.extend(more.iter().filter(|entry| names.insert(entry.name.clone())).cloned());
                    }
                }
                NodeContent::Map(entries)
            }
        };
        let node = Node::collection(content, position);
        let over = [
            (node.nodes > NODES_MAX, NODES_MAX, "nodes"),
            (node.bytes > EXPANDED_BYTES_MAX, EXPANDED_BYTES_MAX, "bytes"),
        ];
        if let Some((_, max, what)) = over.into_iter().find(|(over, ..)| *over) {
            let message = format!("expected at most {max} {what} after the expansion of aliases, found more");
            return Err(self.refuse(DashboardProblemKind::Limit, &message, position));
        }
        let node = Arc::new(node);
        if anchor > 0 {
            self.anchors.insert(anchor, Arc::clone(&node));
        }
        self.add(node, position)
    }

    /// Tags may state the node's kind, or make a scalar text.
    fn check_tag(&self, tag: Option<&Tag>, found: &str, position: Position) -> Result<(), DashboardProblem> {
        let Some(tag) = tag else { return Ok(()) };
        if tag.core_suffix() == Some(found) || tag.original() == "!" {
            return Ok(());
        }
        let message = format!("the tag `{}` is not supported", clipped(&tag.original()));
        Err(self.refuse(DashboardProblemKind::InvalidValue, &message, position))
    }

    fn too_deep(&self, position: Position) -> DashboardProblem {
        let message = format!("expected at most {DEPTH_MAX} levels of nesting, found more");
        self.refuse(DashboardProblemKind::Limit, &message, position)
    }

    fn refuse(&self, kind: DashboardProblemKind, message: &str, position: Position) -> DashboardProblem {
        DashboardProblem::new(kind, self.pointer(), message, position)
    }

    /// Properties of the next node.
    fn pointer(&self) -> String {
        self.open.iter().fold(String::new(), |at, open| match &open.content {
            OpenContent::List(items) => format!("{at}/{}", items.len()),
            OpenContent::Map { key: Some(key), .. } => child(&at, &key.name),
            OpenContent::Map { key: None, .. } => at,
        })
    }
}

impl Node {
    fn collection(content: NodeContent, position: Position) -> Self {
        let (mut nodes, mut bytes, mut height) = (1_usize, 0_usize, 1);
        let mut count = |child: &Self, names: usize, name_bytes: usize| {
            nodes = nodes.saturating_add(child.nodes + names);
            bytes = bytes.saturating_add(child.bytes + name_bytes);
            height = height.max(child.height + 1);
        };
        match &content {
            NodeContent::Scalar(..) => {}
            NodeContent::List(items) => items.iter().for_each(|item| count(item, 0, 0)),
            NodeContent::Map(entries) => entries.iter().for_each(|entry| count(&entry.value, 1, entry.name.len())),
        }
        Self { content, position, nodes, bytes, height }
    }
}

/// The JSON Pointer of a member.
pub(super) fn child(pointer: &str, name: &str) -> String {
    format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"))
}

fn clipped(text: &str) -> String {
    const CHARS_MAX: usize = 80;
    text.chars().take(CHARS_MAX).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

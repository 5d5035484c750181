//! A filesystem of one host as a map of paths.

use crate::filesystem::conformance::conditions::{EXISTS, FP, NOT_FOUND, OK};
use std::collections::BTreeMap;
use tf_plugin_core::Code;

/// A file or directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// A directory.
    Dir,
    /// A file with its content, as far as it is known: what was appended and not flushed may or may
    /// not be visible.
    File(File),
}

/// The content of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct File {
    /// The bytes that every reader sees.
    pub flushed: Vec<u8>,
    /// The bytes that an open writer has appended since; a reader may see any part of them from the start.
    pub pending: Vec<u8>,
}

impl File {
    /// Returns whether a reader may see this content.
    #[must_use]
    pub fn may_be(&self, content: &[u8]) -> bool {
        content.strip_prefix(&self.flushed[..]).is_some_and(|rest| self.pending.starts_with(rest))
    }

    /// Returns whether the file may have this length.
    #[must_use]
    pub fn may_have(&self, length: u64) -> bool {
        let (min, max) = (self.flushed.len(), self.flushed.len() + self.pending.len());
        (min as u64..=max as u64).contains(&length)
    }

    /// Makes everything visible.
    pub fn flush(&mut self) {
        self.flushed.append(&mut self.pending);
    }
}

/// A path as the components below the root.
pub type Path = Vec<String>;

/// The results that an operation may have, when the conditions for each code are known.
#[derive(Clone, Debug, Default)]
pub struct Verdict(Vec<Code>);

impl Verdict {
    /// Creates a verdict: the operation must succeed.
    #[must_use]
    pub fn ok() -> Self {
        Self::default()
    }

    /// Creates a verdict: the operation must fail with this code.
    #[must_use]
    pub fn of(code: Code) -> Self {
        Self(vec![code])
    }

    /// Combines two verdicts: the operation must fail if either says so, with a code of one of them.
    #[must_use]
    pub fn or(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// Formats the allowed results for people.
    pub(super) fn wanted(&self) -> String {
        let mut codes: Vec<String> = self.0.iter().map(|code| format!("{code:?}")).collect();
        codes.dedup();
        if codes.is_empty() { String::from("OK") } else { codes.join(" or ") }
    }

    /// Returns whether the operation must succeed.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether a result is allowed.
    #[must_use]
    pub fn allows(&self, answer: Option<Code>) -> bool {
        match answer {
            None => self.is_ok(),
            Some(code) => self.0.contains(&code),
        }
    }
}

/// The model.
#[derive(Clone, Debug, Default)]
pub struct Model {
    nodes: BTreeMap<Path, Node>,
}

/// The model's state of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found<'m> {
    /// It exists; the root is a directory.
    Node(&'m Node),
    /// It does not exist, but its parent is a directory.
    Missing,
    /// An ancestor is missing.
    ParentMissing,
    /// An ancestor is a file.
    BelowFile,
}

/// Defines methods that return the verdict of operations for a file, a directory, a path that is
/// missing and one whose parent is. A path below a file is `FAILED_PRECONDITION` for all.
macro_rules! owed {
    ($($(#[$doc:meta])* $op:ident: $file:ident $dir:ident $missing:ident $parent_missing:ident;)*) => {$(
        $(#[$doc])*
        #[must_use]
        pub fn $op(&self, path: &[String]) -> Verdict {
            let code = match self.find(path) {
                Found::Node(Node::File(_)) => $file,
                Found::Node(Node::Dir) => $dir,
                Found::Missing => $missing,
                Found::ParentMissing => $parent_missing,
                Found::BelowFile => FP,
            };
            Verdict(code.into_iter().collect())
        }
    )*};
}

impl Model {
    /// Finds a path.
    #[must_use]
    pub fn find(&self, path: &[String]) -> Found<'_> {
        if path.is_empty() {
            return Found::Node(&Node::Dir);
        }
        for end in 1..path.len() {
            match self.nodes.get(&path[..end]) {
                Some(Node::Dir) => {}
                Some(Node::File(_)) => return Found::BelowFile,
                None => return Found::ParentMissing,
            }
        }
        self.nodes.get(path).map_or(Found::Missing, Found::Node)
    }

    /// Returns the file at a path.
    #[must_use]
    pub fn file(&self, path: &[String]) -> Option<&File> {
        match self.nodes.get(path) {
            Some(Node::File(file)) => Some(file),
            _ => None,
        }
    }

    /// Returns the file at a path.
    pub fn file_mut(&mut self, path: &[String]) -> Option<&mut File> {
        match self.nodes.get_mut(path) {
            Some(Node::File(file)) => Some(file),
            _ => None,
        }
    }

    /// Puts a file or directory at a path.
    pub fn insert(&mut self, path: Path, node: Node) {
        self.nodes.insert(path, node);
    }

    /// Removes a path and everything below it.
    pub fn remove(&mut self, path: &[String]) {
        self.nodes.retain(|other, _| !other.starts_with(path));
    }

    /// Returns all paths, without the root.
    pub fn paths(&self) -> impl Iterator<Item = (&Path, &Node)> {
        self.nodes.iter()
    }

    /// Returns the names of the entries of a directory, sorted.
    #[must_use]
    pub fn children(&self, path: &[String]) -> Vec<Vec<u8>> {
        let is_child = |other: &&Path| other.len() == path.len() + 1 && other.starts_with(path);
        let names = self.nodes.keys().filter(is_child).filter_map(|child| child.last());
        names.map(|name| name.clone().into_bytes()).collect()
    }

    owed! {
        /// Returns the verdict of `new_random_access_file`, `get_file_size`, `delete_file`, and a copy's source.
        read_file: OK FP NOT_FOUND NOT_FOUND;
        /// Returns the verdict of `new_writable_file`, `new_appendable_file`, and a copy's target.
        write_file: OK FP OK NOT_FOUND;
        /// Returns the verdict of `get_children`.
        read_dir: FP OK NOT_FOUND NOT_FOUND;
        /// Returns the verdict of `path_exists` and `stat`.
        look: OK OK NOT_FOUND NOT_FOUND;
        /// Returns the verdict of `create_dir`.
        create_dir: EXISTS EXISTS OK NOT_FOUND;
        /// Returns the verdict of `recursively_create_dir`.
        recursively_create_dir: FP OK OK OK;
    }

    /// Returns the verdict of `new_read_only_memory_region_from_file`.
    #[must_use]
    pub fn map(&self, path: &[String]) -> Verdict {
        match self.file(path) {
            Some(file) if file.flushed.is_empty() => Verdict::of(Code::InvalidArgument),
            _ => self.read_file(path),
        }
    }

    /// Returns the verdict of `delete_dir`.
    #[must_use]
    pub fn delete_dir(&self, path: &[String]) -> Verdict {
        if self.children(path).is_empty() {
            self.read_dir(path)
        } else {
            self.read_dir(path).or(Verdict::of(Code::FailedPrecondition))
        }
    }

    /// Returns the verdict of `rename_file` and `copy_file`.
    #[must_use]
    pub fn transfer(&self, src: &[String], dst: &[String]) -> Verdict {
        self.read_file(src).or(self.write_file(dst))
    }
}

/// Returns whether one component of a pattern matches a name. A second, slow implementation to compare with.
#[must_use]
pub fn matches(pattern: &[char], name: &[char]) -> bool {
    match (pattern, name) {
        ([], []) => true,
        (['*', rest @ ..], _) => (0..=name.len()).any(|skipped| matches(rest, &name[skipped..])),
        (['?', rest @ ..], [_, after @ ..]) => matches(rest, after),
        (['\\', literal, rest @ ..], [first, after @ ..]) => {
            literal == first && matches(rest, after)
        }
        (['[', list @ ..], [first, after @ ..]) => {
            let Some(end) = list.iter().skip(1).position(|one| *one == ']') else { return false };
            let (list, rest) = (&list[..=end], &list[end + 2..]);
            let (negated, list) = match list {
                ['^', list @ ..] => (true, list),
                list => (false, list),
            };
            list.contains(first) != negated && matches(rest, after)
        }
        ([one, rest @ ..], [first, after @ ..]) => one == first && matches(rest, after),
        _ => false,
    }
}

//! What a bucket holds and what each operation may return: objects with exact keys, directories implied by them.

use std::collections::{BTreeMap, BTreeSet};
use tf_fs_plugin::Code;

/// What an operation may return.
#[derive(Clone, Debug)]
pub(crate) struct Verdict {
    ok: bool,
    codes: Vec<Code>,
}

impl Verdict {
    pub(crate) fn ok() -> Self {
        Self { ok: true, codes: Vec::new() }
    }

    pub(crate) fn fails(code: Code) -> Self {
        Self { ok: false, codes: vec![code] }
    }

    /// This code will do too.
    pub(crate) fn or(mut self, code: Code) -> Self {
        self.codes.push(code);
        self
    }

    /// Success will do too.
    pub(crate) fn or_ok(mut self) -> Self {
        self.ok = true;
        self
    }

    pub(crate) fn allows(&self, answer: Option<Code>) -> bool {
        answer.map_or(self.ok, |code| self.codes.contains(&code))
    }

    /// Whether it must succeed.
    pub(crate) fn is_certain(&self) -> bool {
        self.ok && self.codes.is_empty()
    }
}

/// A path as the components below the root.
pub(crate) type Path = Vec<String>;

pub(crate) type Objects = BTreeMap<String, Vec<u8>>;

/// What is at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Nothing,
    File,
    Dir,
    /// An object `a` beside one that begins with `a/`.
    Both,
}

/// The bucket below a root, which is a directory that always exists.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bucket {
    /// Keys without the root's prefix; the root's own marker is not among them.
    pub(crate) objects: Objects,
    /// Names that this process is writing and has not published, with the bytes appended.
    pub(crate) unpublished: BTreeMap<String, u64>,
    /// Names that were given up and that one deletion may still name.
    pub(crate) given_up: BTreeSet<String>,
    /// Directories that were there only by what was in them, until this process took that away.
    pub(crate) vanished: BTreeSet<String>,
}

pub(crate) fn key(path: &[String]) -> String {
    path.join("/")
}

impl Bucket {
    pub(crate) fn has_file(&self, key: &str) -> bool {
        self.objects.contains_key(key) || self.unpublished.contains_key(key)
    }

    /// The keys below a directory, its own marker included.
    pub(crate) fn below(&self, dir: &str) -> Vec<String> {
        let prefix = prefix(dir);
        let of = |keys: Vec<&String>| {
            keys.into_iter().filter(|key| key.starts_with(&prefix)).cloned().collect::<Vec<_>>()
        };
        let mut below = of(self.objects.keys().collect());
        below.extend(of(self.unpublished.keys().collect()));
        below
    }

    /// Whether nothing below a directory is published.
    pub(crate) fn is_only_being_written(&self, dir: &str) -> bool {
        let prefix = prefix(dir);
        !self.objects.keys().any(|key| key.starts_with(&prefix))
    }

    pub(crate) fn find(&self, key: &str) -> Found {
        match (self.has_file(key), key.is_empty() || !self.below(key).is_empty()) {
            (false, false) => Found::Nothing,
            (true, false) => Found::File,
            (false, true) => Found::Dir,
            (true, true) => Found::Both,
        }
    }

    /// The names of the entries of a directory.
    pub(crate) fn children(&self, dir: &str) -> BTreeSet<String> {
        let prefix = prefix(dir);
        let rest = |key: &String| key.strip_prefix(&prefix).map(str::to_owned);
        self.objects
            .keys()
            .chain(self.unpublished.keys())
            .filter_map(rest)
            .filter_map(|rest| rest.split('/').next().map(str::to_owned))
            .filter(|name| !name.is_empty())
            .collect()
    }

    /// All paths of files and directories.
    pub(crate) fn paths(&self) -> BTreeSet<Path> {
        let mut paths = BTreeSet::new();
        for key in self.objects.keys().chain(self.unpublished.keys()) {
            let parts: Path =
                key.strip_suffix('/').unwrap_or(key).split('/').map(str::to_owned).collect();
            for end in 1..=parts.len() {
                paths.insert(parts[..end].to_vec());
            }
        }
        paths
    }

    /// Takes a key away and remembers the directories that go with it.
    pub(crate) fn remove(&mut self, key: &str) {
        self.objects.remove(key);
        self.unpublished.remove(key);
        let mut dir = key;
        while let Some((parent, _)) = dir.rsplit_once('/') {
            if self.find(parent) == Found::Nothing {
                self.vanished.insert(parent.to_owned());
            }
            dir = parent;
        }
    }

    /// A file that was never published is given up.
    pub(crate) fn remove_unpublished(&mut self, key: &str) {
        self.unpublished.remove(key);
        if !self.objects.contains_key(key) {
            self.given_up.insert(key.to_owned());
        }
    }

    /// Puts an object.
    pub(crate) fn insert(&mut self, key: &str, content: Vec<u8>) {
        self.objects.insert(key.to_owned(), content);
        self.unpublished.remove(key);
    }
}

fn prefix(dir: &str) -> String {
    if dir.is_empty() { String::new() } else { format!("{dir}/") }
}

//! Operations on a small set of names, so that they affect each other.

use super::tree::{Model, Node, Path};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use std::fmt;

/// A path, named so that most operations work on an existing file or directory.
#[derive(Clone)]
pub enum Name {
    /// This path, whether it exists or not.
    Path(Path),
    /// The file of this number, modulo the number of files.
    File(usize),
    /// The directory of this number, modulo the number of directories.
    Dir(usize),
    /// An entry of a directory, whether it exists or not.
    In(usize, &'static str),
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => write!(f, "{:?}", path.join("/")),
            Self::File(number) => write!(f, "File({number})"),
            Self::Dir(number) => write!(f, "Dir({number})"),
            Self::In(number, name) => write!(f, "In({number}, {name:?})"),
        }
    }
}

impl Name {
    /// Returns the path, in a filesystem that equals the model.
    #[must_use]
    pub fn resolve(&self, model: &Model) -> Path {
        let nth = |number: usize, is_file: bool| {
            let paths = model.paths().filter(|(_, node)| matches!(node, Node::File(_)) == is_file);
            let paths: Vec<_> = paths.map(|(path, _)| path).collect();
            match paths.len() {
                0 => Path::new(),
                count => paths[number % count].clone(),
            }
        };
        match self {
            Self::Path(path) => path.clone(),
            Self::File(number) => nth(*number, true),
            Self::Dir(number) => nth(*number, false),
            Self::In(number, name) => {
                let mut path = nth(*number, false);
                path.push((*name).to_owned());
                path
            }
        }
    }
}

/// One operation. Open writers are in slots. `StatUntidy` is about a name that is not written in
/// canonical form.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the operations of the header, with their arguments")]
pub enum Op {
    NewWritable { slot: usize, path: Name },
    NewAppendable { slot: usize, path: Name },
    Append { slot: usize, data: Vec<u8> },
    Tell { slot: usize },
    Flush { slot: usize },
    Sync { slot: usize },
    Close { slot: usize },
    Cleanup { slot: usize },
    Read { path: Name, offset: u64, n: usize },
    Map { path: Name },
    CreateDir { path: Name },
    RecursivelyCreateDir { path: Name },
    DeleteFile { path: Name },
    DeleteDir { path: Name },
    DeleteRecursively { path: Name },
    Rename { src: Name, dst: Name },
    Copy { src: Name, dst: Name },
    PathExists { path: Name },
    PathsExist { paths: Vec<Name> },
    Stat { path: Name },
    IsDirectory { path: Name },
    GetFileSize { path: Name },
    GetChildren { path: Name },
    GetMatchingPaths { pattern: Vec<String> },
    FlushCaches,
    StatUntidy { path: Name, tidy: usize },
}

impl Op {
    /// Returns the same operation with its names resolved to paths, in a filesystem that equals the model.
    #[must_use]
    pub fn resolved(&self, model: &Model) -> Self {
        let mut op = self.clone();
        for name in op.names_mut() {
            *name = Name::Path(name.resolve(model));
        }
        op
    }

    pub(super) fn names_mut(&mut self) -> Vec<&mut Name> {
        match self {
            Self::NewWritable { path, .. }
            | Self::NewAppendable { path, .. }
            | Self::Read { path, .. }
            | Self::Map { path }
            | Self::CreateDir { path }
            | Self::RecursivelyCreateDir { path }
            | Self::DeleteFile { path }
            | Self::DeleteDir { path }
            | Self::DeleteRecursively { path }
            | Self::PathExists { path }
            | Self::Stat { path }
            | Self::IsDirectory { path }
            | Self::GetFileSize { path }
            | Self::GetChildren { path }
            | Self::StatUntidy { path, .. } => vec![path],
            Self::Rename { src, dst } | Self::Copy { src, dst } => vec![src, dst],
            Self::PathsExist { paths } => paths.iter_mut().collect(),
            Self::Append { .. }
            | Self::Tell { .. }
            | Self::Flush { .. }
            | Self::Sync { .. }
            | Self::Close { .. }
            | Self::Cleanup { .. }
            | Self::GetMatchingPaths { .. }
            | Self::FlushCaches => Vec::new(),
        }
    }
}

/// How many writers may be open at a time.
pub(super) const SLOTS: usize = 2;

const NAMES: [&str; 5] = ["a", "b", "ab", "[a]", "é"];

const PATTERNS: [&str; 12] =
    ["*", "a*", "?", "??", "[ab]", "[^a]", "*b", "a", r"\[a\]", r"\a", "[ab]*", "b"];

/// Makes any path, mostly a short one.
fn path() -> impl Strategy<Value = Name> {
    prop_oneof![
        1 => Just(Vec::new()),
        6 => vec(select(&NAMES[..]), 1),
        5 => vec(select(&NAMES[..]), 2),
        2 => vec(select(&NAMES[..]), 3),
    ]
    .prop_map(|path| Name::Path(path.into_iter().map(str::to_owned).collect()))
}

fn file() -> impl Strategy<Value = Name> {
    prop_oneof![6 => (0..8_usize).prop_map(Name::File), 2 => path(), 1 => dir_only()]
}

fn dir_only() -> impl Strategy<Value = Name> {
    (0..8_usize).prop_map(Name::Dir)
}

fn dir() -> impl Strategy<Value = Name> {
    prop_oneof![5 => dir_only(), 2 => path(), 1 => (0..8_usize).prop_map(Name::File)]
}

fn new() -> impl Strategy<Value = Name> {
    prop_oneof![
        4 => (0..8_usize, select(&NAMES[..])).prop_map(|(dir, name)| Name::In(dir, name)),
        2 => path(),
        2 => (0..8_usize).prop_map(Name::File),
    ]
}

fn any_kind() -> impl Strategy<Value = Name> {
    prop_oneof![1 => path(), 1 => file(), 1 => dir()]
}

fn data() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![4 => vec(any::<u8>(), 0..20), 1 => vec(any::<u8>(), 4000..5000)]
}

fn op() -> impl Strategy<Value = Op> {
    let slot = || 0..SLOTS;
    prop_oneof![
        8 => (slot(), new()).prop_map(|(slot, path)| Op::NewWritable { slot, path }),
        5 => (slot(), new()).prop_map(|(slot, path)| Op::NewAppendable { slot, path }),
        9 => (slot(), data()).prop_map(|(slot, data)| Op::Append { slot, data }),
        2 => slot().prop_map(|slot| Op::Tell { slot }),
        2 => slot().prop_map(|slot| Op::Flush { slot }),
        1 => slot().prop_map(|slot| Op::Sync { slot }),
        4 => slot().prop_map(|slot| Op::Close { slot }),
        2 => slot().prop_map(|slot| Op::Cleanup { slot }),
        6 => (file(), 0..40_u64, 0..40_usize)
            .prop_map(|(path, offset, n)| Op::Read { path, offset, n }),
        3 => file().prop_map(|path| Op::Map { path }),
        7 => new().prop_map(|path| Op::CreateDir { path }),
        3 => path().prop_map(|path| Op::RecursivelyCreateDir { path }),
        3 => file().prop_map(|path| Op::DeleteFile { path }),
        3 => dir().prop_map(|path| Op::DeleteDir { path }),
        1 => any_kind().prop_map(|path| Op::DeleteRecursively { path }),
        6 => (file(), new()).prop_map(|(src, dst)| Op::Rename { src, dst }),
        5 => (file(), new()).prop_map(|(src, dst)| Op::Copy { src, dst }),
        2 => any_kind().prop_map(|path| Op::PathExists { path }),
        1 => vec(any_kind(), 0..4).prop_map(|paths| Op::PathsExist { paths }),
        3 => any_kind().prop_map(|path| Op::Stat { path }),
        2 => any_kind().prop_map(|path| Op::IsDirectory { path }),
        2 => file().prop_map(|path| Op::GetFileSize { path }),
        3 => dir().prop_map(|path| Op::GetChildren { path }),
        3 => vec(select(&PATTERNS[..]), 1..4).prop_map(|pattern| Op::GetMatchingPaths {
            pattern: pattern.into_iter().map(str::to_owned).collect()
        }),
        1 => Just(Op::FlushCaches),
        2 => (any_kind(), 0..4_usize).prop_map(|(path, tidy)| Op::StatUntidy { path, tidy }),
    ]
}

/// Makes sequences of operations.
pub fn sequence() -> impl Strategy<Value = Vec<Op>> {
    vec(op(), 1..80)
}

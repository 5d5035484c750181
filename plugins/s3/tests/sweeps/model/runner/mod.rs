//! Runs a sequence on the plugin and on the oracle.

use super::Other;
use super::oracle::{Bucket, Found, Objects, Path, Verdict, key};
use proptest::test_runner::TestCaseError;
use std::collections::BTreeSet;
use tf_fs_plugin::{Code, Error};
use tf_plugin_conformance_tests::model;
use tf_plugin_conformance_tests::{Name, Op};
use tf_plugin_s3_tests::{Store, host};
use tf_plugin_testing::filesystem::{Host, TestWritableFile};

mod changes;
mod questions;
mod step;
mod writers;

type Outcome<T = ()> = Result<T, TestCaseError>;

/// How a case differs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Setting {
    /// Long appends are some MiB, so that files are uploaded in parts.
    pub(crate) large: bool,
    /// Requests fail: any answer may be an error.
    pub(crate) faults: bool,
    /// What another process does.
    pub(crate) others: Vec<Other>,
}

struct Writer {
    file: TestWritableFile,
    key: String,
    /// All that the file has by now.
    content: Vec<u8>,
    /// What of it this writer has put into the store or found there.
    published: Option<Vec<u8>>,
    closed: bool,
    /// Deleted, or replaced by another process: what it still writes is nobody's.
    detached: bool,
}

pub(crate) struct Run<'s> {
    store: &'s Store,
    host: &'static Host,
    root: String,
    setting: Setting,
    bucket: Bucket,
    writers: [Option<Writer>; 2],
}

fn fail<T>(text: impl Into<String>) -> Outcome<T> {
    Err(TestCaseError::fail(text.into()))
}

fn ensure(holds: bool, text: impl FnOnce() -> String) -> Outcome {
    if holds { Ok(()) } else { fail(text()) }
}

/// The codes that faults may lead to; never one that says something untrue of a name.
const OF_FAULTS: [Code; 10] = [
    Code::Unavailable,
    Code::DeadlineExceeded,
    Code::PermissionDenied,
    Code::FailedPrecondition,
    Code::Aborted,
    Code::DataLoss,
    Code::Internal,
    Code::ResourceExhausted,
    Code::InvalidArgument,
    Code::Unauthenticated,
];

impl<'s> Run<'s> {
    pub(crate) fn new(store: &'s Store, root: &str, setting: Setting) -> Self {
        // The root exists whatever is in it.
        store.put(&format!("{root}/"), "");
        Self {
            store,
            host: host(),
            root: root.to_owned(),
            setting,
            bucket: Bucket::default(),
            writers: Default::default(),
        }
    }

    pub(crate) fn all(&mut self, ops: &[Op]) -> Outcome {
        for (index, op) in ops.iter().enumerate() {
            self.somebody_else(index);
            let op = &op.resolved(&self.tree());
            let at = |error: TestCaseError| {
                TestCaseError::fail(format!("operation {index}, {op:?}: {error}"))
            };
            self.step(op).map_err(at)?;
            self.compare_objects().map_err(at)?;
        }
        if self.setting.faults {
            self.store.clear_faults();
        }
        for slot in 0..self.writers.len() {
            self.step(&Op::Close { slot })?;
            self.drop_writer(slot);
        }
        self.compare_objects()?;
        self.setting.faults = false;
        for path in self.bucket.paths() {
            self.step(&Op::Stat { path: Name::Path(path.clone()) })?;
            self.step(&Op::GetChildren { path: Name::Path(path) })?;
        }
        self.step(&Op::GetChildren { path: Name::Path(Path::new()) })?;
        let mut left = Vec::new();
        let gone = || {
            left = self.unexplained_uploads();
            left.is_empty()
        };
        let is_clean = tf_plugin_s3_tests::eventually(std::time::Duration::from_secs(2), gone);
        ensure(is_clean, || format!("uploads left: {left:?}"))
    }

    fn unexplained_uploads(&self) -> Vec<String> {
        let mut left = self.store.unexplained_uploads();
        left.retain(|key| self.is_mine(key));
        left
    }

    fn is_mine(&self, key: &str) -> bool {
        key.starts_with(&format!("{}/", self.root))
    }

    fn somebody_else(&mut self, index: usize) {
        for (_, name, content) in
            self.setting.others.clone().into_iter().filter(|(at, ..)| *at == index)
        {
            let is_open = |writer: &Writer| writer.key == name && !writer.closed;
            if self.writers.iter().flatten().any(is_open) {
                // Who wins then has tests of its own.
                continue;
            }
            match content {
                Some(content) => {
                    self.store.put(&format!("{}/{name}", self.root), content.clone());
                    self.bucket.insert(name, content);
                }
                None => {
                    self.store.delete(self.store.bucket(), &format!("{}/{name}", self.root));
                    self.bucket.objects.remove(name);
                }
            }
        }
    }

    fn uri(&self, path: &[String]) -> String {
        self.store.uri(&format!("{}/{}", self.root, key(path)))
    }

    /// What is in the store below the root.
    fn objects(&self) -> Objects {
        let prefix = format!("{}/", self.root);
        let keys = self.store.keys().into_iter();
        keys.filter_map(|key| Some((key.strip_prefix(&prefix)?.to_owned(), self.store.get(&key)?)))
            .filter(|(key, _)| !key.is_empty())
            .collect()
    }

    fn compare_objects(&self) -> Outcome {
        let objects = self.objects();
        ensure(objects == self.bucket.objects, || {
            let shown = |objects: &Objects| {
                objects
                    .iter()
                    .map(|(key, content)| format!("{key} ({})", content.len()))
                    .collect::<Vec<_>>()
                    .join(", ")
            };
            format!("the store has [{}], not [{}]", shown(&objects), shown(&self.bucket.objects))
        })
    }

    /// Checks a result; `Ok(None)` for an allowed failure.
    fn judge<T>(&self, answer: Result<T, Error>, verdict: &Verdict) -> Outcome<Option<T>> {
        let code = answer.as_ref().err().map(Error::code);
        let by_fault = self.setting.faults && code.is_some_and(|code| OF_FAULTS.contains(&code));
        if verdict.allows(code) || by_fault {
            return Ok(answer.ok());
        }
        let got = match answer {
            Ok(_) => String::from("OK"),
            Err(error) => format!("{:?} ({error:#})", error.code()),
        };
        fail(format!("got {got}, expected {verdict:?}"))
    }

    /// After a failure that a fault may have caused: each object is as it was or as it was to be.
    fn settle(&mut self, after: &Bucket) -> Outcome {
        let is = self.objects();
        let (before, after) = (&self.bucket.objects, &after.objects);
        let keys: BTreeSet<_> = is.keys().chain(before.keys()).chain(after.keys()).collect();
        for key in keys {
            let now = is.get(key);
            ensure(now == before.get(key) || now == after.get(key), || {
                format!(
                    "{key} is neither as before nor as it was to be: {:?} bytes",
                    now.map(Vec::len)
                )
            })?;
        }
        let gone: Vec<String> =
            before.keys().filter(|key| !is.contains_key(*key)).cloned().collect();
        for key in gone {
            self.bucket.remove(&key);
        }
        self.bucket.objects = is;
        Ok(())
    }

    /// An operation that makes `after` of the bucket, or fails.
    fn change(&mut self, answer: Result<(), Error>, verdict: &Verdict, after: Bucket) -> Outcome {
        let failed = answer.is_err();
        let certain = verdict.is_certain();
        if self.judge(answer, verdict)?.is_some() {
            self.bucket = after;
        } else if failed && (self.setting.faults || certain) {
            self.settle(&after)?;
        }
        Ok(())
    }

    fn data(&self, data: &[u8]) -> Vec<u8> {
        if self.setting.large && data.len() >= 4_000 { data.repeat(1_200) } else { data.to_vec() }
    }

    /// The path, in a filesystem that holds what the bucket holds.
    fn resolve(&self, name: &Name) -> Path {
        match name {
            Name::Path(path) => path.clone(),
            _ => name.resolve(&self.tree()),
        }
    }

    fn tree(&self) -> model::Model {
        let mut tree = model::Model::default();
        for path in self.bucket.paths() {
            let node = match self.bucket.find(&key(&path)) {
                Found::File | Found::Both => model::Node::File(model::File::default()),
                _ => model::Node::Dir,
            };
            tree.insert(path, node);
        }
        tree
    }
}

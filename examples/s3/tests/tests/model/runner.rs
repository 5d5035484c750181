//! Runs a sequence on the plugin and on the oracle.

use crate::Other;
use crate::oracle::{Bucket, Found, Objects, Path, Verdict, key};
use proptest::test_runner::TestCaseError;
use std::collections::BTreeSet;
use tf_fs_plugin::testing::{Host, WritableFile};
use tf_fs_plugin::{Code, Error};
use tf_plugin_conformance_tests::model::{self, matches};
use tf_plugin_conformance_tests::{Name, Op};
use tf_plugin_s3_tests::{Store, host};

type Outcome<T = ()> = Result<T, TestCaseError>;

/// How a case differs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Setting {
    /// Long appends are some MiB, so that files are uploaded in parts.
    pub(crate) large: bool,
    /// Requests fail: any answer may be an error.
    pub(crate) faults: bool,
    /// What somebody else does.
    pub(crate) others: Vec<Other>,
}

struct Writer {
    file: WritableFile,
    key: String,
    /// All that the file has by now.
    content: Vec<u8>,
    /// What of it this writer has put into the store or found there.
    published: Option<Vec<u8>>,
    closed: bool,
    /// Deleted, or replaced by somebody else: what it still writes is nobody's.
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

    /// The keys of uploads that nobody ended, but for those where a fault met what would have: the answer with the
    /// upload's name, or the attempts to abort it.
    fn unexplained_uploads(&self) -> Vec<String> {
        let mut left = self.store.open_uploads();
        left.retain(|key| self.is_mine(key));
        if !left.is_empty() {
            let log = self.store.log();
            left.retain(|left| {
                !log.iter().any(|request| {
                    request.faulted
                        && ["CreateMultipartUpload", "AbortMultipartUpload"]
                            .contains(&request.operation)
                        && request.key.as_ref() == Some(left)
                })
            });
        }
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

    /// Checks an answer; `Ok(None)` if it is a failure as it may be.
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

    fn open(&mut self, slot: usize, path: &[String], appends: bool) -> Outcome {
        self.drop_writer(slot);
        self.close_writers(path)?;
        let (key, uri) = (key(path), self.uri(path));
        let verdict = match () {
            () if path.is_empty() => Verdict::fails(Code::FailedPrecondition),
            () => Verdict::ok(),
        };
        let opened = if appends {
            self.host.new_appendable_file(uri)
        } else {
            self.host.new_writable_file(uri)
        };
        let Some(file) = self.judge(opened, &verdict)? else { return Ok(()) };
        let existing = self.bucket.objects.get(&key).filter(|_| appends).cloned();
        if existing.is_none() {
            self.bucket.unpublished.insert(key.clone(), 0);
        }
        self.bucket.given_up.remove(&key);
        let content = existing.clone().unwrap_or_default();
        self.writers[slot] = Some(Writer {
            file,
            key,
            content,
            published: existing,
            closed: false,
            detached: false,
        });
        Ok(())
    }

    /// Closes the writers of a file: what two writers of one file make of it has tests of its own.
    fn close_writers(&mut self, path: &[String]) -> Outcome {
        let key = key(path);
        for slot in 0..self.writers.len() {
            if self.writers[slot].as_ref().is_some_and(|writer| writer.key == key && !writer.closed)
            {
                self.step(&Op::Close { slot })?;
                if self.writers[slot].as_ref().is_some_and(|writer| !writer.closed) {
                    self.drop_writer(slot);
                }
            }
        }
        Ok(())
    }

    /// The writers of all files in a directory lose them.
    fn detach_writers_below(&mut self, dir: &str) {
        for writer in self.writers.iter_mut().flatten() {
            writer.detached |= writer.key.starts_with(&format!("{dir}/"));
        }
    }

    fn drop_writer(&mut self, slot: usize) {
        let Some(writer) = self.writers[slot].take() else { return };
        if writer.closed || writer.detached {
            return;
        }
        if self.bucket.unpublished.contains_key(&writer.key) {
            self.bucket.remove_unpublished(&writer.key);
        }
    }

    /// `flush`, `sync` and `close`.
    fn publish(&mut self, slot: usize, op: &Op) -> Outcome {
        let Some(mut writer) = self.writers[slot].take() else { return Ok(()) };
        let closes = matches!(op, Op::Close { .. });
        let done = match op {
            Op::Flush { .. } => writer.file.flush(),
            Op::Sync { .. } => writer.file.sync(),
            _ => writer.file.close(),
        };
        let mut after = self.bucket.clone();
        // An empty file comes to be when it is closed.
        let publishes = closes || !writer.content.is_empty();
        let changes = writer.published.as_ref() != Some(&writer.content);
        if !writer.closed && !writer.detached && publishes && changes {
            after.insert(&writer.key, writer.content.clone());
        }
        let verdict = match writer.detached {
            true => Verdict::ok().or(Code::FailedPrecondition).or(Code::NotFound),
            false => Verdict::ok(),
        };
        let failed = done.is_err();
        let result = self.change(done, &verdict, after);
        if !failed && publishes && !writer.closed {
            writer.published = Some(writer.content.clone());
        }
        writer.closed |= closes && !failed;
        self.writers[slot] = Some(writer);
        result?;
        if failed {
            // It cannot be completed any more, or can only be tried again, which is not what TensorFlow does.
            if let Some(writer) = &self.writers[slot]
                && let Some(found) = self.objects().get(&writer.key).cloned()
                && !writer.detached
            {
                self.bucket.unpublished.remove(&writer.key);
                self.bucket.objects.insert(writer.key.clone(), found);
            }
            self.drop_writer(slot);
        }
        Ok(())
    }

    fn step(&mut self, op: &Op) -> Outcome {
        let host = self.host;
        match op {
            Op::NewWritable { slot, path } => self.open(*slot, &self.resolve(path), false),
            Op::NewAppendable { slot, path } => self.open(*slot, &self.resolve(path), true),
            Op::Append { slot, data } => {
                let data = self.data(data);
                let Some(mut writer) = self.writers[*slot].take() else { return Ok(()) };
                let verdict = if writer.closed {
                    Verdict::fails(Code::FailedPrecondition)
                } else {
                    Verdict::ok()
                };
                let appended = writer.file.append(&data);
                let failed = appended.is_err() && !writer.closed;
                let result = self.judge(appended, &verdict);
                if let Ok(Some(())) = result {
                    writer.content.extend_from_slice(&data);
                    if let Some(len) = self.bucket.unpublished.get_mut(&writer.key) {
                        *len = writer.content.len() as u64;
                    }
                }
                self.writers[*slot] = Some(writer);
                result?;
                if failed {
                    self.drop_writer(*slot);
                }
                Ok(())
            }
            Op::Tell { slot } => {
                let Some(writer) = &mut self.writers[*slot] else { return Ok(()) };
                let (told, len, closed) =
                    (writer.file.tell(), writer.content.len() as u64, writer.closed);
                let verdict =
                    if closed { Verdict::fails(Code::FailedPrecondition) } else { Verdict::ok() };
                match self.judge(told, &verdict)? {
                    Some(told) => ensure(told == len, || format!("told {told}, not {len}")),
                    None => Ok(()),
                }
            }
            Op::Flush { slot } | Op::Sync { slot } | Op::Close { slot } => self.publish(*slot, op),
            Op::Cleanup { slot } => {
                self.drop_writer(*slot);
                Ok(())
            }
            Op::Read { path, offset, n } => self.read(&self.resolve(path), *offset, *n),
            Op::Map { path } => {
                let path = self.resolve(path);
                self.close_writers(&path)?;
                let verdict = match self.bucket.objects.get(&key(&path)) {
                    Some(content) if content.is_empty() => Verdict::fails(Code::InvalidArgument),
                    _ => self.open_verdict(&path),
                };
                let mapped = host.new_read_only_memory_region_from_file(self.uri(&path));
                if let Some(region) = self.judge(mapped, &verdict)? {
                    let same = self
                        .bucket
                        .objects
                        .get(&key(&path))
                        .is_some_and(|content| *content == region.to_vec());
                    ensure(same, || format!("mapped {} bytes", region.to_vec().len()))?;
                }
                Ok(())
            }
            Op::CreateDir { path } => {
                let path = self.resolve(path);
                let key = key(&path);
                let verdict = match self.bucket.find(&key) {
                    Found::Nothing => Verdict::ok(),
                    _ => Verdict::fails(Code::AlreadyExists),
                };
                let mut after = self.bucket.clone();
                if verdict.is_certain() {
                    after.insert(&format!("{key}/"), Vec::new());
                }
                let verdict =
                    if self.setting.faults { verdict.or(Code::AlreadyExists) } else { verdict };
                self.change(host.create_dir(self.uri(&path)), &verdict, after)
            }
            Op::RecursivelyCreateDir { path } => {
                let path = self.resolve(path);
                let key = key(&path);
                let mut after = self.bucket.clone();
                let verdict = match self.bucket.find(&key) {
                    Found::Nothing => {
                        after.insert(&format!("{key}/"), Vec::new());
                        Verdict::ok()
                    }
                    Found::Dir => Verdict::ok(),
                    Found::File => Verdict::fails(Code::FailedPrecondition),
                    Found::Both => Verdict::ok().or(Code::FailedPrecondition),
                };
                self.change(host.recursively_create_dir(self.uri(&path)), &verdict, after)
            }
            Op::DeleteFile { path } => self.delete_file(&self.resolve(path)),
            Op::DeleteDir { path } => self.delete_dir(&self.resolve(path)),
            Op::DeleteRecursively { path } => self.delete_recursively(&self.resolve(path)),
            Op::Rename { src, dst } => self.transfer(&self.resolve(src), &self.resolve(dst), true),
            Op::Copy { src, dst } => self.transfer(&self.resolve(src), &self.resolve(dst), false),
            Op::PathExists { path } => {
                let path = self.resolve(path);
                self.judge(host.path_exists(self.uri(&path)), &self.exists(&path)).map(drop)
            }
            Op::PathsExist { paths } => {
                let paths: Vec<Path> = paths.iter().map(|path| self.resolve(path)).collect();
                let uris: Vec<String> = paths.iter().map(|path| self.uri(path)).collect();
                let answers =
                    self.judge(host.paths_exist(&uris), &Verdict::ok())?.unwrap_or_default();
                ensure(answers.len() == paths.len(), || format!("{} answers", answers.len()))?;
                for (path, answer) in paths.iter().zip(answers) {
                    self.judge(answer, &self.exists(path))?;
                }
                Ok(())
            }
            Op::Stat { path } => {
                let path = self.resolve(path);
                self.stat(&path)
            }
            Op::StatUntidy { path, tidy } => {
                let joined = key(&self.resolve(path));
                // Keys are exact: these are names of other objects, which nobody has made.
                let name = match tidy {
                    0 => format!("/{joined}/x"),
                    1 => format!("./{joined}"),
                    2 => format!("none/../{joined}"),
                    _ => format!("{joined}/x/.."),
                };
                let uri = self.store.uri(&format!("{}/{name}", self.root));
                self.judge(host.stat(uri), &Verdict::fails(Code::NotFound)).map(drop)
            }
            Op::IsDirectory { path } => {
                let path = self.resolve(path);
                let verdict = match self.bucket.find(&key(&path)) {
                    Found::Nothing => Verdict::fails(Code::NotFound),
                    Found::Dir => Verdict::ok(),
                    Found::File | Found::Both => Verdict::fails(Code::FailedPrecondition),
                };
                self.judge(host.is_directory(self.uri(&path)), &verdict).map(drop)
            }
            Op::GetFileSize { path } => {
                let path = self.resolve(path);
                let verdict = match self.bucket.find(&key(&path)) {
                    Found::Nothing => Verdict::fails(Code::NotFound),
                    Found::Dir => Verdict::fails(Code::FailedPrecondition),
                    Found::File | Found::Both => Verdict::ok(),
                };
                if let Some(size) = self.judge(host.get_file_size(self.uri(&path)), &verdict)? {
                    ensure(self.has_size(&path, size), || format!("size {size}"))?;
                }
                Ok(())
            }
            Op::GetChildren { path } => {
                let path = self.resolve(path);
                let verdict = match self.bucket.find(&key(&path)) {
                    Found::Nothing => Verdict::fails(Code::NotFound),
                    Found::File => Verdict::fails(Code::FailedPrecondition),
                    Found::Dir | Found::Both => Verdict::ok(),
                };
                if let Some(names) = self.judge(host.get_children(self.uri(&path)), &verdict)? {
                    let found: BTreeSet<_> = names
                        .iter()
                        .map(|name| String::from_utf8_lossy(name).into_owned())
                        .collect();
                    ensure(found.len() == names.len(), || format!("a name came twice: {names:?}"))?;
                    let wanted = self.bucket.children(&key(&path));
                    ensure(found == wanted, || format!("listed {found:?}, not {wanted:?}"))?;
                }
                Ok(())
            }
            Op::GetMatchingPaths { pattern } => self.glob(pattern),
            Op::FlushCaches => {
                host.flush_caches();
                Ok(())
            }
        }
    }

    fn exists(&self, path: &[String]) -> Verdict {
        match self.bucket.find(&key(path)) {
            Found::Nothing => Verdict::fails(Code::NotFound),
            _ => Verdict::ok(),
        }
    }

    /// The length of a file: that of what is published or is being written.
    fn has_size(&self, path: &[String], size: u64) -> bool {
        let key = key(path);
        let published = self.bucket.objects.get(&key).map(|content| content.len() as u64);
        match self.bucket.unpublished.get(&key) {
            // What is there already stays for everybody else; this process may see either.
            Some(len) => size == *len || Some(size) == published,
            None => Some(size) == published || self.unflushed(&key) == Some(size),
        }
    }

    fn unflushed(&self, key: &str) -> Option<u64> {
        let mut open = self
            .writers
            .iter()
            .flatten()
            .filter(|writer| writer.key == key && !writer.closed && !writer.detached);
        open.next().map(|writer| writer.content.len() as u64)
    }

    fn open_verdict(&self, path: &[String]) -> Verdict {
        let key = key(path);
        match self.bucket.find(&key) {
            Found::Nothing => Verdict::fails(Code::NotFound),
            Found::Dir => Verdict::fails(Code::FailedPrecondition),
            // Not published, so there is nothing to read yet.
            _ if !self.bucket.objects.contains_key(&key) => {
                Verdict::fails(Code::FailedPrecondition)
            }
            _ if self.bucket.unpublished.contains_key(&key) => {
                Verdict::ok().or(Code::FailedPrecondition)
            }
            _ => Verdict::ok(),
        }
    }

    fn read(&self, path: &Path, offset: u64, n: usize) -> Outcome {
        let (offset, n) =
            if self.setting.large { (offset * 150_001, n * 40_009) } else { (offset, n) };
        let verdict = self.open_verdict(path);
        let opened = self.host.new_random_access_file(self.uri(path));
        let Some(reader) = self.judge(opened, &verdict)? else { return Ok(()) };
        let (bytes, status) = reader.read_with_status(offset, n);
        let Some(content) = self.bucket.objects.get(&key(path)) else {
            return fail("opened what is not there");
        };
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(content.len());
        let wanted = &content[start..content.len().min(start.saturating_add(n))];
        let code = status.err().map(|error| error.code());
        if self.setting.faults && code.is_some_and(|code| OF_FAULTS.contains(&code)) {
            return Ok(());
        }
        ensure(bytes == wanted, || {
            format!("read {} bytes, not these {}", bytes.len(), wanted.len())
        })?;
        let end = (wanted.len() < n).then_some(Code::OutOfRange);
        ensure(code == end, || format!("read {} bytes of {n} with {code:?}", bytes.len()))
    }

    fn stat(&self, path: &[String]) -> Outcome {
        let Some(found) = self.judge(self.host.stat(self.uri(path)), &self.exists(path))? else {
            return Ok(());
        };
        let fits = match self.bucket.find(&key(path)) {
            Found::Dir => found.is_directory,
            _ => !found.is_directory && self.has_size(path, found.length),
        };
        ensure(fits, || format!("{found:?}"))
    }

    fn glob(&self, pattern: &[String]) -> Outcome {
        let uri = self.store.uri(&format!("{}/{}", self.root, pattern.join("/")));
        let Some(found) = self.judge(self.host.get_matching_paths(uri), &Verdict::ok())? else {
            return Ok(());
        };
        let chars = |text: &String| text.chars().collect::<Vec<_>>();
        let wanted: BTreeSet<String> = self
            .bucket
            .paths()
            .into_iter()
            .filter(|path| path.len() == pattern.len())
            .filter(|path| {
                pattern.iter().zip(path).all(|(one, name)| matches(&chars(one), &chars(name)))
            })
            .map(|path| self.uri(&path))
            .collect();
        let names: BTreeSet<String> =
            found.iter().map(|uri| String::from_utf8_lossy(uri).into_owned()).collect();
        ensure(names.len() == found.len(), || format!("a name came twice: {found:?}"))?;
        ensure(names == wanted, || format!("matched {names:?}, not {wanted:?}"))
    }

    fn delete_file(&mut self, path: &Path) -> Outcome {
        let name = key(path);
        let mut after = self.bucket.clone();
        let verdict = match self.bucket.find(&name) {
            Found::File | Found::Both => {
                after.remove(&name);
                Verdict::ok()
            }
            // A directory only by what is being written in it: there is no file of this name, either way.
            Found::Dir
                if self.bucket.objects.keys().all(|key| !key.starts_with(&format!("{name}/"))) =>
            {
                let verdict = Verdict::fails(Code::FailedPrecondition).or(Code::NotFound);
                // Unless it was given up a moment ago, which one deletion may be about.
                if after.given_up.remove(&name) { verdict.or_ok() } else { verdict }
            }
            Found::Dir => Verdict::fails(Code::FailedPrecondition),
            Found::Nothing if after.given_up.remove(&name) => Verdict::ok().or(Code::NotFound),
            Found::Nothing => Verdict::fails(Code::NotFound),
        };
        let verdict = if self.setting.faults { verdict.or(Code::NotFound) } else { verdict };
        let deleted = self.host.delete_file(self.uri(path));
        if deleted.is_ok() {
            self.detach_writers_of(&name);
        }
        self.change(deleted, &verdict, after)
    }

    fn detach_writers_of(&mut self, name: &str) {
        for writer in self.writers.iter_mut().flatten() {
            writer.detached |= writer.key == name;
        }
    }

    fn delete_dir(&mut self, path: &Path) -> Outcome {
        if path.is_empty() {
            return Ok(());
        }
        let name = key(path);
        let marker = format!("{name}/");
        let mut after = self.bucket.clone();
        let empty = self.bucket.children(&name).is_empty();
        let verdict = match self.bucket.find(&name) {
            // OK once if this process has emptied it; `deleting.rs` looks at each such case.
            Found::Nothing => Verdict::ok().or(Code::NotFound),
            Found::File => Verdict::fails(Code::FailedPrecondition),
            Found::Dir if empty => {
                after.remove(&marker);
                Verdict::ok()
            }
            Found::Dir => Verdict::fails(Code::FailedPrecondition),
            Found::Both if empty => {
                after.remove(&marker);
                Verdict::ok().or(Code::FailedPrecondition)
            }
            Found::Both => Verdict::fails(Code::FailedPrecondition),
        };
        let verdict = if self.setting.faults { verdict.or(Code::NotFound) } else { verdict };
        self.change(self.host.delete_dir(self.uri(path)), &verdict, after)
    }

    fn delete_recursively(&mut self, path: &Path) -> Outcome {
        if path.is_empty() {
            return Ok(());
        }
        let name = key(path);
        let before = self.bucket.find(&name);
        let mut after = self.bucket.clone();
        for key in self.bucket.below(&name) {
            after.remove(&key);
        }
        let deleted = self.host.delete_recursively(self.uri(path));
        let verdict = match before {
            // This process has just taken away what made it a directory, or gave the file up.
            Found::Nothing
                if self.bucket.vanished.contains(&name) || after.given_up.remove(&name) =>
            {
                Verdict::ok().or(Code::NotFound)
            }
            Found::Nothing => Verdict::fails(Code::NotFound),
            _ => Verdict::ok(),
        };
        // With both, the tree goes and the file of this name stays.
        if before == Found::File {
            after.remove(&name);
        }
        if let Err(left) = &deleted
            && before == Found::Nothing
            && !self.setting.faults
        {
            ensure((left.files, left.dirs) == (0, 1), || format!("{left:?}"))?;
        }
        if deleted.is_ok() {
            self.detach_writers_below(&name);
            if before != Found::Both {
                self.detach_writers_of(&name);
            }
        }
        let verdict = if self.setting.faults { verdict.or(Code::NotFound) } else { verdict };
        self.change(deleted.map_err(|left| left.error), &verdict, after)
    }

    fn transfer(&mut self, src: &Path, dst: &Path, moves: bool) -> Outcome {
        self.close_writers(src)?;
        self.close_writers(dst)?;
        let (from, to) = (key(src), key(dst));
        let (source, target) = (self.bucket.find(&from), self.bucket.find(&to));
        if moves && (source == Found::Dir || src.is_empty() || dst.is_empty()) {
            return self.rename_dir(src, dst);
        }
        let mut after = self.bucket.clone();
        let verdict = match (source, target) {
            (Found::Nothing, Found::Dir) => {
                Verdict::fails(Code::NotFound).or(Code::FailedPrecondition)
            }
            (Found::Nothing, _) => Verdict::fails(Code::NotFound),
            // A directory only by what is being written in it: there is no file of this name, either way.
            (Found::Dir, _) if self.bucket.is_only_being_written(&from) => {
                Verdict::fails(Code::FailedPrecondition).or(Code::NotFound)
            }
            (Found::Dir, _) | (_, Found::Dir) => Verdict::fails(Code::FailedPrecondition),
            _ => {
                if from != to {
                    let content = self.bucket.objects.get(&from).cloned().unwrap_or_default();
                    after.insert(&to, content);
                    if moves {
                        after.remove(&from);
                    }
                }
                Verdict::ok()
            }
        };
        let (src_uri, dst_uri) = (self.uri(src), self.uri(dst));
        let done = if moves {
            self.host.rename_file(src_uri, dst_uri)
        } else {
            self.host.copy_file(src_uri, dst_uri)
        };
        let content = self.bucket.objects.get(&from).cloned();
        if done.is_ok() && from != to && moves {
            self.detach_writers_of(&from);
        }
        let verdict = if self.setting.faults { verdict.or(Code::NotFound) } else { verdict };
        self.change(done, &verdict, after)?;
        let is = self.objects();
        ensure(
            content.is_none() || is.contains_key(&from) || is.get(&to) == content.as_ref(),
            || format!("{from} is gone and {to} is not it"),
        )
    }

    /// A directory moves with all below it, one object after the other.
    fn rename_dir(&mut self, src: &Path, dst: &Path) -> Outcome {
        if src.is_empty() || dst.is_empty() {
            return Ok(());
        }
        // What is being written below has not come to be yet, and where it will is not defined.
        for slot in 0..self.writers.len() {
            if self.writers[slot].as_ref().is_some_and(|writer| !writer.closed) {
                self.step(&Op::Close { slot })?;
                self.drop_writer(slot);
            }
        }
        let (from, to) = (key(src), key(dst));
        let mut after = self.bucket.clone();
        let below = self.bucket.below(&from);
        for old in &below {
            let content = self.bucket.objects.get(old).cloned().unwrap_or_default();
            after.remove(old);
            after.insert(&format!("{to}{}", &old[from.len()..]), content);
        }
        let into_itself = to == from || to.starts_with(&format!("{from}/"));
        let verdict = match self.bucket.find(&to) {
            _ if self.bucket.find(&from) != Found::Dir => return Ok(()),
            _ if to == from => Verdict::ok().or(Code::FailedPrecondition).or(Code::InvalidArgument),
            _ if into_itself => Verdict::fails(Code::FailedPrecondition).or(Code::InvalidArgument),
            Found::Nothing => Verdict::ok(),
            // Into a directory that is there: refused, or merged whole.
            Found::Dir => Verdict::ok().or(Code::FailedPrecondition).or(Code::AlreadyExists),
            Found::File | Found::Both => {
                Verdict::fails(Code::FailedPrecondition).or(Code::AlreadyExists)
            }
        };
        if into_itself {
            after = self.bucket.clone();
        }
        let done = self.host.rename_file(self.uri(src), self.uri(dst));
        let verdict = if self.setting.faults { verdict.or(Code::NotFound) } else { verdict };
        self.change(done, &verdict, after)
    }
}

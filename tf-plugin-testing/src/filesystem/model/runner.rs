//! Runs a sequence on a filesystem and on the model.

use super::ops::{Name, Op, SLOTS};
use super::tree::{File, Model, Node, Path, Verdict, matches};
use crate::filesystem::TestWritableFile;
use crate::filesystem::host::Host;
use crate::violations::names_shown;
use proptest::test_runner::TestCaseError;
use tf_plugin_core::{Code, Error};

type Outcome<T = ()> = Result<T, String>;

/// A writer and what the model knows about it.
struct Writer {
    file: TestWritableFile,
    /// The path of its file; `None` if that was deleted or replaced.
    path: Option<Path>,
    closed: bool,
    position: u64,
}

impl Writer {
    /// Returns what `append` and `tell` have to return.
    fn unless_closed(&self) -> Verdict {
        if self.closed { Verdict::of(Code::FailedPrecondition) } else { Verdict::ok() }
    }
}

struct Run<'h> {
    host: &'h Host,
    root: String,
    model: Model,
    writers: [Option<Writer>; SLOTS],
}

/// Runs a sequence below `root`, the URI of an empty directory. Checks each result and, at the end,
/// everything that is there.
///
/// # Errors
/// Returns the first result that the model does not allow.
pub fn run(host: &Host, root: &str, ops: &[Op]) -> Result<(), TestCaseError> {
    let mut run = Run {
        host,
        root: root.strip_suffix('/').unwrap_or(root).to_owned(),
        model: Model::default(),
        writers: Default::default(),
    };
    let mut done = Vec::new();
    run.all(ops, &mut done).map_err(|reason| {
        let list = done.iter().enumerate().map(|(index, op)| format!("\n      {index}. {op:?}"));
        let list: String = list.collect();
        TestCaseError::fail(format!(
            "{reason}; the operations up to there, with their names:{list}"
        ))
    })
}

fn ensure(holds: bool, text: impl FnOnce() -> String) -> Outcome {
    if holds { Ok(()) } else { Err(text()) }
}

/// Checks a result; returns `Ok(None)` if it is an expected failure.
fn judge<T>(answer: Result<T, Error>, verdict: &Verdict) -> Outcome<Option<T>> {
    let code = answer.as_ref().err().map(Error::code);
    if verdict.allows(code) {
        return Ok(answer.ok());
    }
    let got = match answer {
        Ok(_) => String::from("OK"),
        Err(error) => format!("{:?} ({error:#})", error.code()),
    };
    Err(format!("got {got}, wanted {}", verdict.wanted()))
}

/// Returns the path of a name of [`Op::resolved`].
fn path_of(name: &Name) -> Path {
    match name {
        Name::Path(path) => path.clone(),
        other => unreachable!("{other:?} is not resolved"),
    }
}

impl Run<'_> {
    /// Runs all operations; `done` gets those that were begun.
    fn all(&mut self, ops: &[Op], done: &mut Vec<Op>) -> Outcome {
        for (index, op) in ops.iter().enumerate() {
            let mut op = op.resolved(&self.model);
            let paths: Vec<Path> = op.names_mut().into_iter().map(|name| path_of(name)).collect();
            let stepped = self.step(&op, &paths).and_then(|()| {
                let violations = self.host.take_violations();
                ensure(violations.is_empty(), || {
                    format!("rules of the C boundary: {violations:#?}")
                })
            });
            let failed = stepped.map_err(|reason| format!("operation {index}, {op:?}: {reason}"));
            done.push(op);
            failed?;
        }
        for slot in 0..SLOTS {
            self.step(&Op::Close { slot }, &[])?;
        }
        self.compare()
    }

    fn uri(&self, path: &[String]) -> String {
        if path.is_empty() {
            return format!("{}/", self.root);
        }
        format!("{}/{}", self.root, path.join("/"))
    }

    /// Writes the same name in a form that is not canonical.
    fn untidy(&self, path: &[String], way: usize) -> String {
        let joined = path.join("/");
        match way {
            0 => format!("{}//{}", self.root, path.join("//")),
            1 => format!("{}/./{joined}/.", self.root),
            2 => format!("{}/none/../{joined}/", self.root),
            _ => format!("{}/{joined}/x/..", self.root),
        }
    }

    /// Closes the writers on a path and below: what they would still write there is not defined
    /// once the path is moved, replaced or copied.
    fn close_writers(&mut self, path: &[String]) -> Outcome {
        for slot in 0..SLOTS {
            if self.is_on(slot, path) {
                self.step(&Op::Close { slot }, &[])?;
            }
        }
        Ok(())
    }

    /// Returns whether a writer's file is at a path or below.
    fn is_on(&self, slot: usize, path: &[String]) -> bool {
        self.writers[slot]
            .as_ref()
            .and_then(|writer| writer.path.as_ref())
            .is_some_and(|at| at.starts_with(path))
    }

    /// Notes that the writers on a path and below have lost their file.
    fn detach_writers(&mut self, path: &[String]) {
        for slot in 0..SLOTS {
            if self.is_on(slot, path)
                && let Some(writer) = &mut self.writers[slot]
            {
                writer.path = None;
            }
        }
    }

    fn open(&mut self, slot: usize, path: &Path, appends: bool) -> Outcome {
        let verdict = self.model.write_file(path);
        self.drop_writer(slot);
        if verdict.is_ok() {
            self.close_writers(path)?;
        }
        let uri = self.uri(path);
        let opened = if appends {
            self.host.new_appendable_file(uri)
        } else {
            self.host.new_writable_file(uri)
        };
        let Some(file) = judge(opened, &verdict)? else { return Ok(()) };
        if !appends {
            self.detach_writers(path);
        }
        let content = match self.model.file(path) {
            Some(file) if appends => file.clone(),
            _ => File::default(),
        };
        let position = content.flushed.len() as u64;
        self.model.insert(path.clone(), Node::File(content));
        let writer = Writer { file, path: Some(path.clone()), closed: false, position };
        self.writers[slot] = Some(writer);
        Ok(())
    }

    /// Drops a writer, closed or not: bytes that it did not flush may be visible or not.
    fn drop_writer(&mut self, slot: usize) {
        let Some(writer) = self.writers[slot].take() else { return };
        let path = writer.path.clone().filter(|_| !writer.closed);
        drop(writer);
        let Some(path) = path else { return };
        let uri = self.uri(&path);
        if let Some(file) = self.model.file_mut(&path)
            && !file.pending.is_empty()
            && let Ok(content) = self.host.read_file(uri)
            && file.may_be(&content)
        {
            *file = File { flushed: content, pending: Vec::new() };
        }
    }

    fn with_writer(
        &mut self,
        slot: usize,
        call: impl FnOnce(&mut Writer, Option<&mut File>) -> Outcome,
    ) -> Outcome {
        let Some(writer) = &mut self.writers[slot] else { return Ok(()) };
        let file = writer.path.as_ref().and_then(|path| self.model.file_mut(path));
        call(writer, file)
    }

    /// Runs one operation, whose names resolve to these paths.
    fn step(&mut self, op: &Op, paths: &[Path]) -> Outcome {
        let (host, root) = (self.host, Path::new());
        let path = paths.first().unwrap_or(&root);
        match op {
            Op::NewWritable { slot, .. } => self.open(*slot, path, false)?,
            Op::NewAppendable { slot, .. } => self.open(*slot, path, true)?,
            Op::Append { slot, data } => self.with_writer(*slot, |writer, file| {
                if judge(writer.file.append(data), &writer.unless_closed())?.is_some() {
                    writer.position += data.len() as u64;
                    if let Some(file) = file {
                        file.pending.extend_from_slice(data);
                    }
                }
                Ok(())
            })?,
            Op::Tell { slot } => self.with_writer(*slot, |writer, _| {
                let verdict = writer.unless_closed();
                let told = judge(writer.file.tell(), &verdict)?;
                ensure(told.is_none_or(|told| told == writer.position), || {
                    format!("told {told:?}, not {}", writer.position)
                })
            })?,
            Op::Flush { slot } | Op::Sync { slot } | Op::Close { slot } => {
                self.with_writer(*slot, |writer, file| {
                    let done = match op {
                        Op::Flush { .. } => writer.file.flush(),
                        Op::Sync { .. } => writer.file.sync(),
                        _ => writer.file.close(),
                    };
                    judge(done, &Verdict::ok())?;
                    // A closed writer does nothing more, and another one may write to its path.
                    if !writer.closed
                        && let Some(file) = file
                    {
                        file.flush();
                    }
                    writer.closed |= matches!(op, Op::Close { .. });
                    Ok(())
                })?;
            }
            Op::Cleanup { slot } => self.drop_writer(*slot),
            Op::Read { offset, n, .. } => self.read(path, *offset, *n)?,
            Op::Map { .. } => {
                if self.model.file(path).is_some_and(|file| !file.pending.is_empty()) {
                    self.close_writers(path)?;
                }
                let mapped = host.new_read_only_memory_region_from_file(self.uri(path));
                let unimplemented =
                    mapped.as_ref().is_err_and(|error| error.code() == Code::Unimplemented);
                if unimplemented && !self.maps() {
                    return Ok(());
                }
                if let Some(region) = judge(mapped, &self.model.map(path))? {
                    let mapped = region.to_vec();
                    let same = self.model.file(path).is_some_and(|f| f.flushed == mapped);
                    ensure(same, || format!("mapped {mapped:?}"))?;
                }
            }
            Op::CreateDir { .. } => {
                let verdict = self.model.create_dir(path);
                if judge(host.create_dir(self.uri(path)), &verdict)?.is_some() {
                    self.model.insert(path.clone(), Node::Dir);
                }
            }
            Op::RecursivelyCreateDir { .. } => {
                let verdict = self.model.recursively_create_dir(path);
                if judge(host.recursively_create_dir(self.uri(path)), &verdict)?.is_some() {
                    for end in 1..=path.len() {
                        self.model.insert(path[..end].to_vec(), Node::Dir);
                    }
                }
            }
            Op::DeleteFile { .. } => {
                let verdict = self.model.read_file(path);
                self.delete(path, host.delete_file(self.uri(path)), &verdict)?;
            }
            // A filesystem may delete its root or refuse that.
            Op::DeleteDir { .. } | Op::DeleteRecursively { .. } if path.is_empty() => {}
            Op::DeleteDir { .. } => {
                let verdict = self.model.delete_dir(path);
                self.delete(path, host.delete_dir(self.uri(path)), &verdict)?;
            }
            Op::DeleteRecursively { .. } => {
                let verdict = self.model.look(path);
                let deleted = host.delete_recursively(self.uri(path));
                if let Err(left) = &deleted {
                    let left = (left.files, left.dirs);
                    ensure(left == (0, 1), || format!("{left:?} left"))?;
                }
                self.delete(path, deleted.map_err(|left| left.error), &verdict)?;
            }
            Op::Rename { .. } | Op::Copy { .. } => {
                self.transfer(path, &paths[1], matches!(op, Op::Rename { .. }))?;
            }
            Op::PathExists { .. } => {
                judge(host.path_exists(self.uri(path)), &self.model.look(path))?;
            }
            Op::PathsExist { .. } => {
                let uris: Vec<String> = paths.iter().map(|path| self.uri(path)).collect();
                let answers = judge(host.paths_exist(&uris), &Verdict::ok())?.unwrap_or_default();
                ensure(answers.len() == paths.len(), || format!("{} answers", answers.len()))?;
                for (path, answer) in paths.iter().zip(answers) {
                    judge(answer, &self.model.look(path))?;
                }
            }
            Op::Stat { .. } => self.stat(path, &self.uri(path))?,
            Op::StatUntidy { tidy, .. } => self.stat(path, &self.untidy(path, *tidy))?,
            Op::IsDirectory { .. } => {
                judge(host.is_directory(self.uri(path)), &self.model.read_dir(path))?;
            }
            Op::GetFileSize { .. } => {
                let verdict = self.model.read_file(path);
                if let Some(size) = judge(host.get_file_size(self.uri(path)), &verdict)? {
                    let fits = self.model.file(path).is_some_and(|file| file.may_have(size));
                    ensure(fits, || format!("size {size}"))?;
                }
            }
            Op::GetChildren { .. } => self.list(path, &self.model.read_dir(path))?,
            Op::GetMatchingPaths { pattern } => self.glob(pattern)?,
            Op::FlushCaches => host.flush_caches(),
        }
        Ok(())
    }

    fn list(&self, path: &Path, verdict: &Verdict) -> Outcome {
        let Some(mut names) = judge(self.host.get_children(self.uri(path)), verdict)? else {
            return Ok(());
        };
        names.sort_unstable();
        ensure(names == self.model.children(path), || format!("{path:?} lists {names:?}"))
    }

    /// Returns whether the plugin can map files.
    fn maps(&self) -> bool {
        self.host
            .filesystem_for(self.uri(&[]))
            .is_ok_and(|fs| fs.tables().filesystem.new_read_only_memory_region_from_file.is_some())
    }

    fn delete(&mut self, path: &Path, answer: Result<(), Error>, verdict: &Verdict) -> Outcome {
        if judge(answer, verdict)?.is_some() {
            self.detach_writers(path);
            self.model.remove(path);
        }
        Ok(())
    }

    fn transfer(&mut self, src: &Path, dst: &Path, is_move: bool) -> Outcome {
        let verdict = self.model.transfer(src, dst);
        if verdict.is_ok() {
            self.close_writers(src)?;
            self.close_writers(dst)?;
        }
        let (src_uri, dst_uri) = (self.uri(src), self.uri(dst));
        let done = if is_move {
            self.host.rename_file(src_uri, dst_uri)
        } else {
            self.host.copy_file(src_uri, dst_uri)
        };
        if judge(done, &verdict)?.is_some() && src != dst {
            let Some(file) = self.model.file(src).cloned() else {
                return Err("the model has no source".into());
            };
            self.detach_writers(dst);
            self.model.insert(dst.clone(), Node::File(file));
            if is_move {
                self.detach_writers(src);
                self.model.remove(src);
            }
        }
        Ok(())
    }

    fn read(&self, path: &Path, offset: u64, n: usize) -> Outcome {
        let verdict = self.model.read_file(path);
        let opened = self.host.new_random_access_file(self.uri(path));
        let (Some(reader), Some(file)) = (judge(opened, &verdict)?, self.model.file(path)) else {
            return Ok(());
        };
        let (bytes, status) = reader.read_with_status(offset, n);
        let code = status.err().map(|error| error.code());
        // A reader may see any part of the bytes that were not flushed, from their start, and nothing else.
        let all: Vec<u8> = [&file.flushed[..], &file.pending[..]].concat();
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let visible = |end: usize| {
            let end = end.max(start.min(all.len())).min(all.len());
            &all[start.min(end)..end.min(start.saturating_add(n))]
        };
        let fits = (file.flushed.len()..=all.len()).any(|end| bytes == visible(end));
        ensure(fits, || format!("read {bytes:?}"))?;
        let wanted = (bytes.len() < n).then_some(Code::OutOfRange);
        ensure(code == wanted, || format!("read {} bytes with {code:?}", bytes.len()))
    }

    fn stat(&self, path: &Path, uri: &str) -> Outcome {
        let Some(found) = judge(self.host.stat(uri), &self.model.look(path))? else {
            return Ok(());
        };
        let fits = match self.model.file(path) {
            Some(file) => !found.is_directory && file.may_have(found.length),
            None => found.is_directory,
        };
        ensure(fits, || format!("{found:?}"))
    }

    fn glob(&self, pattern: &[String]) -> Outcome {
        let uri = format!("{}/{}", self.root, pattern.join("/"));
        let mut found =
            judge(self.host.get_matching_paths(uri), &Verdict::ok())?.unwrap_or_default();
        found.sort_unstable();
        let chars = |text: &String| text.chars().collect::<Vec<_>>();
        let fits = |path: &&Path| {
            let mut pairs = pattern.iter().zip(*path);
            path.len() == pattern.len()
                && pairs.all(|(one, name)| matches(&chars(one), &chars(name)))
        };
        let paths = self.model.paths().map(|(path, _)| path).filter(fits);
        let mut expected: Vec<_> = paths.map(|path| self.uri(path).into_bytes()).collect();
        expected.sort_unstable();
        ensure(found == expected, || {
            format!("matched {}, expected {}", names_shown(&found), names_shown(&expected))
        })
    }

    /// Compares everything that is there with the model.
    fn compare(&self) -> Outcome {
        for (path, node) in self.model.paths() {
            self.stat(path, &self.uri(path))?;
            if let Node::File(file) = node {
                let content = judge(self.host.read_file(self.uri(path)), &Verdict::ok())?;
                let fits = content.as_ref().is_some_and(|content| file.may_be(content));
                ensure(fits, || format!("in the end {path:?} holds {content:?}"))?;
            }
        }
        let root = Path::new();
        let dirs = self.model.paths().filter(|(_, node)| **node == Node::Dir);
        for path in dirs.map(|(path, _)| path).chain([&root]) {
            let listed = self.list(path, &Verdict::ok());
            listed.map_err(|reason| format!("in the end {reason}"))?;
        }
        Ok(())
    }
}

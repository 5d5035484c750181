//! One operation.

use super::{Outcome, Run, ensure};
use crate::model::oracle::{Found, Path, Verdict, key};
use std::collections::BTreeSet;
use tf_fs_plugin::Code;
use tf_plugin_conformance_tests::Op;

impl Run<'_> {
    pub(super) fn step(&mut self, op: &Op) -> Outcome {
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
}

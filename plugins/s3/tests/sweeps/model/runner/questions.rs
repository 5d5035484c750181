//! Queries, and their allowed results.

use super::{OF_FAULTS, Outcome, Run, ensure, fail};
use crate::model::oracle::{Found, Path, Verdict, key};
use std::collections::BTreeSet;
use tf_fs_plugin::Code;
use tf_plugin_conformance_tests::model::matches;

impl Run<'_> {
    pub(super) fn exists(&self, path: &[String]) -> Verdict {
        match self.bucket.find(&key(path)) {
            Found::Nothing => Verdict::fails(Code::NotFound),
            _ => Verdict::ok(),
        }
    }

    /// The length of a file: that of what is published or is being written.
    pub(super) fn has_size(&self, path: &[String], size: u64) -> bool {
        let key = key(path);
        let published = self.bucket.objects.get(&key).map(|content| content.len() as u64);
        match self.bucket.unpublished.get(&key) {
            // What is there already stays for everybody else; this process may see either.
            Some(len) => size == *len || Some(size) == published,
            None => Some(size) == published || self.unflushed(&key) == Some(size),
        }
    }

    pub(super) fn unflushed(&self, key: &str) -> Option<u64> {
        let mut open = self
            .writers
            .iter()
            .flatten()
            .filter(|writer| writer.key == key && !writer.closed && !writer.detached);
        open.next().map(|writer| writer.content.len() as u64)
    }

    pub(super) fn open_verdict(&self, path: &[String]) -> Verdict {
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

    pub(super) fn read(&self, path: &Path, offset: u64, n: usize) -> Outcome {
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

    pub(super) fn stat(&self, path: &[String]) -> Outcome {
        let Some(found) = self.judge(self.host.stat(self.uri(path)), &self.exists(path))? else {
            return Ok(());
        };
        let fits = match self.bucket.find(&key(path)) {
            Found::Dir => found.is_directory,
            _ => !found.is_directory && self.has_size(path, found.length),
        };
        ensure(fits, || format!("{found:?}"))
    }

    pub(super) fn glob(&self, pattern: &[String]) -> Outcome {
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
}

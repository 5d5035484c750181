//! What changes names.

use super::{Outcome, Run, ensure};
use crate::model::oracle::{Found, Path, Verdict, key};
use tf_fs_plugin::Code;
use tf_plugin_conformance_tests::Op;

impl Run<'_> {
    pub(super) fn delete_file(&mut self, path: &Path) -> Outcome {
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

    pub(super) fn delete_dir(&mut self, path: &Path) -> Outcome {
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

    pub(super) fn delete_recursively(&mut self, path: &Path) -> Outcome {
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

    pub(super) fn transfer(&mut self, src: &Path, dst: &Path, moves: bool) -> Outcome {
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
    pub(super) fn rename_dir(&mut self, src: &Path, dst: &Path) -> Outcome {
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
            // Into a directory that exists: refused, or merged whole.
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

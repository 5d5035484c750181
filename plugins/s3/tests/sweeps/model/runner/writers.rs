//! Files open for writing.

use super::{Outcome, Run, Writer};
use crate::model::oracle::{Verdict, key};
use tf_fs_plugin::Code;
use tf_plugin_conformance_tests::Op;

impl Run<'_> {
    pub(super) fn open(&mut self, slot: usize, path: &[String], appends: bool) -> Outcome {
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
    pub(super) fn close_writers(&mut self, path: &[String]) -> Outcome {
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
    pub(super) fn detach_writers_below(&mut self, dir: &str) {
        for writer in self.writers.iter_mut().flatten() {
            writer.detached |= writer.key.starts_with(&format!("{dir}/"));
        }
    }

    pub(super) fn drop_writer(&mut self, slot: usize) {
        let Some(writer) = self.writers[slot].take() else { return };
        if writer.closed || writer.detached {
            return;
        }
        if self.bucket.unpublished.contains_key(&writer.key) {
            self.bucket.remove_unpublished(&writer.key);
        }
    }

    /// `flush`, `sync` and `close`.
    pub(super) fn publish(&mut self, slot: usize, op: &Op) -> Outcome {
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

    pub(super) fn detach_writers_of(&mut self, name: &str) {
        for writer in self.writers.iter_mut().flatten() {
            writer.detached |= writer.key == name;
        }
    }
}

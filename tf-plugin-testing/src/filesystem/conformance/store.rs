//! The files and directories that cases would make, noted down.

use std::collections::BTreeMap;
use std::sync::PoisonError;
use tf_fs_plugin::prelude::*;
use tf_plugin_core::sync::{Mutex, MutexGuard};

/// Files, and directories as `None`, by their paths below the root.
#[derive(Debug, Default)]
pub(super) struct Store(Mutex<BTreeMap<String, Option<Vec<u8>>>>);

impl Store {
    pub(super) fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Option<Vec<u8>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a file, and the directories above it.
    pub(super) fn file(&self, path: &str, content: &[u8]) -> Result<()> {
        if let Some((directory, _)) = path.rsplit_once('/') {
            self.directory(directory)?;
        }
        let earlier = self.lock().insert(path.to_owned(), Some(content.to_vec()));
        // What is provided is there all the time.
        ensure!(
            earlier.is_none_or(|earlier| earlier.as_deref() == Some(content)),
            Error::unimplemented("a file that is provided does not change")
        );
        Ok(())
    }

    /// Notes a directory, and those above it.
    pub(super) fn directory(&self, path: &str) -> Result<()> {
        let slashes = path.match_indices('/').map(|(at, _)| at);
        for end in slashes.chain([path.len()]) {
            self.lock().entry(path[..end].to_owned()).or_default();
        }
        Ok(())
    }
}

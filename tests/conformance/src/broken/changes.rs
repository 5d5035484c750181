//! Deleting, renaming and copying.

use super::state::{State, lock};
use crate::defect::Defect::*;
use tf_fs_plugin::prelude::*;

impl<F: Filesystem> State<F> {
    /// Deletes what is at and below a path.
    pub(super) fn delete_tree(&self, uri: Uri<'_>, depth: usize) -> Result<()> {
        lock(&self.owners).remove(uri.as_bytes());
        if !self.is_dir(uri) {
            return self.inner.delete_file(uri);
        }
        for name in self.inner.get_children(uri)?.iter() {
            if self.is(DeleteTreeLeavesDeep) && depth == 2 {
                return Ok(());
            }
            self.delete_tree(Uri::new(&uri.join(name)), depth + 1)?;
        }
        if depth == 0 && self.is(DeleteTreeLeavesTop) {
            return Ok(());
        }
        match self.inner.delete_dir(uri) {
            Err(_) if self.is(DeleteTreeLeavesDeep) => Ok(()),
            other => other,
        }
    }

    pub(super) fn delete_file(&self, uri: Uri<'_>) -> Result<()> {
        ensure!(!lock(&self.locked).contains(uri.as_bytes()), Error::unavailable("locked"));
        match self.defect {
            DeleteMissingIsOk if self.is_missing(uri) => return Ok(()),
            DeleteFileTakesDirs if self.is_dir(uri) => return self.inner.delete_dir(uri),
            DeleteLeavesFile if self.is_file(uri) => return Ok(()),
            DeleteByPrefix if self.is_file(uri) => {
                for other in self.with_prefix(uri) {
                    let _ = self.inner.delete_file(Uri::new(&other));
                }
                return Ok(());
            }
            _ => {}
        }
        self.inner.delete_file(uri)?;
        lock(&self.owners).remove(uri.as_bytes());
        if self.is(DeleteTakesParent)
            && let Some(parent) = uri.parent()
        {
            let _ = self.inner.delete_dir(parent);
        }
        Ok(())
    }

    pub(super) fn copy(&self, src: Uri<'_>, dst: Uri<'_>) -> Result<()> {
        match self.defect {
            CopyEmptiesTarget if src != dst && self.is_file(dst) => self.write(dst, b"")?,
            CopyToItselfLoses if src == dst && self.is_file(src) => return self.write(dst, b""),
            CopyMissingIsOk if self.is_missing(src) => return Ok(()),
            CopyTakesDirs if self.is_dir(src) => return Ok(()),
            CopyMakesParents => self.make_parent(dst),
            CopyIntoDirectory if self.is_dir(dst) && self.is_file(src) => {
                let into = dst.join(src.file_name());
                return self.inner.copy_file(src, Uri::new(&into));
            }
            _ => {}
        }
        let old = if src == dst { Vec::new() } else { self.content(dst).unwrap_or_default() };
        self.inner.copy_file(src, dst)?;
        if src == dst {
            return Ok(());
        }
        lock(&self.owners).remove(dst.as_bytes());
        self.touch(dst);
        match self.defect {
            CopyLosesLastChunk => {
                let mut content = self.content(dst)?;
                if content.len() > 128 << 10 {
                    content.truncate(content.len() / (128 << 10) * (128 << 10));
                }
                self.write(dst, &content)
            }
            CopyKeepsTail => {
                let mut content = self.content(dst)?;
                content.extend_from_slice(old.get(content.len()..).unwrap_or_default());
                self.write(dst, &content)
            }
            CopyIsALink => {
                lock(&self.links).insert(dst.as_bytes().to_vec(), src.as_bytes().to_vec());
                Ok(())
            }
            CopyDeletesSource => self.inner.delete_file(src),
            _ => Ok(()),
        }
    }

    pub(super) fn rename(&self, src: Uri<'_>, dst: Uri<'_>) -> Result<()> {
        match self.defect {
            RenameMissingIsOk if self.is_missing(src) => return Ok(()),
            RenameTakesDirs if self.is_dir(src) => return Ok(()),
            RenameRefusesExisting if src != dst && self.is_file(dst) => {
                return Err(Error::already_exists(dst));
            }
            RenameToItselfLoses if src == dst => return self.inner.delete_file(src),
            RenameMakesParents => self.make_parent(dst),
            RenameKeepsSource => return self.inner.copy_file(src, dst),
            _ => {}
        }
        let others = if self.is(RenameByPrefix) { self.with_prefix(src) } else { Vec::new() };
        self.moved(src, dst)?;
        if src != dst {
            lock(&self.owners).remove(src.as_bytes());
            lock(&self.owners).remove(dst.as_bytes());
            self.touch(dst);
        }
        for other in others.iter().filter(|other| *other != src.as_bytes()) {
            let to = [dst.as_bytes(), &other[src.as_bytes().len()..]].concat();
            let _ = self.inner.rename_file(Uri::new(other), Uri::new(&to));
        }
        Ok(())
    }

    /// A rename by the inner filesystem, or of a directory name by name.
    fn moved(&self, src: Uri<'_>, dst: Uri<'_>) -> Result<()> {
        if !(self.moves_directories && self.is_dir(src)) {
            return self.inner.rename_file(src, dst);
        }
        self.inner.create_dir(dst)?;
        for name in self.inner.get_children(src)?.iter() {
            self.moved(Uri::new(&src.join(name)), Uri::new(&dst.join(name)))?;
        }
        self.inner.delete_dir(src)
    }
}

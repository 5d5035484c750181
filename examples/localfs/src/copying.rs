//! `copy_file`.

use crate::failure::describe;
use crate::names::Place;
use crate::reader::open_file;
use crate::root::{Entry, is_directory, is_same_file};
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use std::collections::hash_map::RandomState;
use std::fs::File;
use std::hash::BuildHasher;
use std::io;
use std::path::PathBuf;
use tf_fs_plugin::{Code, Error, Result};

/// Copies into a new file next to `dst`, with the permissions of `src`, and renames that into place
/// when it is complete. So whoever has `dst` open or mapped keeps the old content.
pub(crate) fn copy_file(src: &Place<'_>, dst: &Place<'_>) -> Result<()> {
    let source = open_file(src)?;
    let source_stat = rustix::fs::fstat(&source).map_err(|error| src.describe(error))?;
    match dst.metadata() {
        Ok(target) if is_directory(&target) => return Err(Error::is_a_directory(dst.uri)),
        Ok(target) if is_same_file(&source_stat, &target) => return Ok(()),
        Ok(_) => {}
        Err(error) if error.code() == Code::NotFound => {}
        Err(error) => return Err(error),
    }
    let entry = dst.entry()?;
    let temporary = Temporary::create(&entry).map_err(|error| dst.describe(error))?;
    copy_content(&source, &temporary.file)
        .and_then(|()| {
            let permissions = Mode::from_raw_mode(source_stat.st_mode) & Mode::from_raw_mode(0o777);
            Ok(rustix::fs::fchmod(&temporary.file, permissions)?)
        })
        .map_err(|error| describe(error, dst.uri).context(format_args!("copying {}", src.uri)))?;
    temporary.rename().map_err(|error| dst.describe(error))
}

/// Shares the content if the filesystem can, else lets the kernel copy it, else reads and writes.
fn copy_content(mut source: &File, mut target: &File) -> io::Result<()> {
    if rustix::fs::ioctl_ficlone(target, source).is_err() {
        // `std` tries `copy_file_range` first.
        io::copy(&mut source, &mut target)?;
    }
    Ok(())
}

/// A new file that is deleted unless it gets its final name.
struct Temporary<'e> {
    entry: &'e Entry<'e, 'e>,
    name: PathBuf,
    file: File,
    renamed: bool,
}

impl<'e> Temporary<'e> {
    fn create(entry: &'e Entry<'e, 'e>) -> Result<Self, Errno> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        loop {
            // Short, since the name of `dst` may be as long as names can be.
            let name = format!(".localfs-{:016x}", RandomState::new().hash_one(0));
            let name = entry.name.with_file_name(name);
            match rustix::fs::openat(&entry.dir, &name, flags, Mode::RUSR | Mode::WUSR) {
                Ok(file) => return Ok(Self { entry, name, file: file.into(), renamed: false }),
                Err(Errno::EXIST | Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn rename(mut self) -> Result<(), Errno> {
        let dir = &self.entry.dir;
        rustix::fs::renameat(dir, &self.name, dir, &*self.entry.name)?;
        self.renamed = true;
        Ok(())
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if !self.renamed {
            // The failure before is what counts.
            let _ = rustix::fs::unlinkat(&self.entry.dir, &self.name, AtFlags::empty());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_noticed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("source");
        std::fs::write(&path, vec![1; 1 << 20]).unwrap();
        let full = File::options().write(true).open("/dev/full").unwrap();
        let error = copy_content(&File::open(path).unwrap(), &full).unwrap_err();
        assert_eq!(describe(error, "copy").code(), Code::ResourceExhausted);
    }
}

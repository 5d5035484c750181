//! `copy_file`.

use crate::error::describe;
use crate::name::LocalPath;
use crate::reader::open_file;
use crate::root::{Entry, is_directory, is_same_file};
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;
use std::collections::hash_map::RandomState;
use std::fs::File;
use std::hash::BuildHasher;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use tf_fs_plugin::{Code, Error, Result};

/// Copies into a new file without a name, with the permissions of `src`, and gives it the name when it is complete. So
/// readers that have `dst` open or mapped keep the old content. A process that is killed leaves nothing behind, except
/// a `.localfs-…` file: the complete one between the link and the rename that replace an existing `dst`, or a part of
/// it where a file cannot get a name later (no `O_TMPFILE`, no `/proc`).
pub(crate) fn copy_file(src: &LocalPath<'_>, dst: &LocalPath<'_>) -> Result<()> {
    let source = open_file(src)?;
    let source_stat = rustix::fs::fstat(&source).map_err(|error| src.describe(error))?;
    match dst.metadata() {
        Ok(target) if is_directory(&target) => return Err(Error::expected_file(dst.uri)),
        Ok(target) if is_same_file(&source_stat, &target) => return Ok(()),
        Ok(_) => {}
        Err(error) if error.code() == Code::NotFound => {}
        Err(error) => return Err(error),
    }
    let entry = dst.entry()?;
    let failed = |error| describe(error, dst.uri).context(format_args!("copying {}", src.uri));
    let fill = |source: &File, target: &File| {
        copy_content(source, target).and_then(|()| {
            let permissions = Mode::from_raw_mode(source_stat.st_mode) & Mode::from_raw_mode(0o777);
            Ok(rustix::fs::fchmod(target, permissions)?)
        })
    };
    // Checked before the source is read: it may be a pipe, which can be read only once.
    if let Some(unnamed) = create_unnamed(&entry).ok().filter(can_get_a_name) {
        fill(&source, &unnamed).map_err(failed)?;
        return name(&unnamed, &entry).map_err(|error| dst.describe(error));
    }
    let (temporary, file) = Temporary::create(&entry).map_err(|error| dst.describe(error))?;
    fill(&source, &file).map_err(failed)?;
    temporary.rename().map_err(|error| dst.describe(error))
}

/// Creates a file without a name in the directory of an entry. Not every filesystem supports this.
fn create_unnamed(entry: &Entry<'_, '_>) -> Result<File, Errno> {
    let parent = entry.name.parent().filter(|parent| !parent.as_os_str().is_empty());
    let flags = OFlags::WRONLY | OFlags::TMPFILE | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    let open = || rustix::fs::openat(&entry.dir, parent.unwrap_or(Path::new(".")), flags, mode);
    Ok(rustix::io::retry_on_intr(open)?.into())
}

/// Returns the path of an open file in `/proc`.
fn link_of(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// Returns whether a file can get a name: not without `/proc`, nor where a sandbox blocks the call.
/// A link to `.` is refused last of all, because that name exists.
fn can_get_a_name(file: &File) -> bool {
    let tried = rustix::fs::linkat(CWD, link_of(file), CWD, ".", AtFlags::SYMLINK_FOLLOW);
    tried == Err(Errno::EXIST)
}

/// Gives a file without a name the name of an entry, and replaces an existing file.
fn name(file: &File, entry: &Entry<'_, '_>) -> Result<(), Errno> {
    let link = link_of(file);
    let link_to =
        |name: &Path| rustix::fs::linkat(CWD, &link, &entry.dir, name, AtFlags::SYMLINK_FOLLOW);
    match link_to(&entry.name) {
        // A link replaces nothing, so it takes a second name for the moment up to the rename.
        Err(Errno::EXIST) => Temporary::with_name(entry, link_to)?.0.rename(),
        other => other,
    }
}

/// Shares the content if the filesystem can; otherwise lets the kernel copy it, or reads and writes.
fn copy_content(mut source: &File, mut target: &File) -> io::Result<()> {
    if rustix::fs::ioctl_ficlone(target, source).is_err() {
        // `std` tries `copy_file_range` first.
        io::copy(&mut source, &mut target)?;
    }
    Ok(())
}

/// The name of a new file, which is deleted unless it gets its final one.
struct Temporary<'e> {
    entry: &'e Entry<'e, 'e>,
    name: PathBuf,
    renamed: bool,
}

impl<'e> Temporary<'e> {
    fn create(entry: &'e Entry<'e, 'e>) -> Result<(Self, File), Errno> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let create = |name: &Path| rustix::fs::openat(&entry.dir, name, flags, mode);
        let (temporary, file) = Self::with_name(entry, create)?;
        Ok((temporary, file.into()))
    }

    /// Finds a name for which `make` succeeds; `make` must fail for an existing name.
    fn with_name<T>(
        entry: &'e Entry<'e, 'e>,
        make: impl Fn(&Path) -> Result<T, Errno>,
    ) -> Result<(Self, T), Errno> {
        loop {
            // Short, since the name of `dst` may be as long as names can be.
            let name = format!(".localfs-{:016x}", RandomState::new().hash_one(0));
            let name = entry.name.with_file_name(name);
            match make(&name) {
                Ok(made) => return Ok((Self { entry, name, renamed: false }, made)),
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
            // The earlier error is reported.
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

//! Reading directories.

use crate::name::LocalPath;
use crate::root::Access;
use rustix::fs::{FileType, RawDir};
use rustix::io::Errno;
use std::io;
use std::os::fd::AsFd;
use tf_fs_plugin::{Entries, Result};

/// Bytes of entries that one system call fetches: some thousand names.
const BUFFER: usize = 64 << 10;

pub(crate) fn get_children(place: &LocalPath<'_>) -> Result<Entries> {
    let directory = place.open(Access::Directory)?;
    let mut entries = Entries::new();
    for_each_entry(&directory, |name, _| entries.push(name))
        .map_err(|error| place.describe(error))?;
    Ok(entries)
}

/// Calls `visit` with the name and the kind of each entry except `.` and `..`. The kind is that of
/// the entry itself, also of a link, and may be unknown.
pub(crate) fn for_each_entry(
    directory: impl AsFd,
    mut visit: impl FnMut(&[u8], FileType),
) -> io::Result<()> {
    let mut buffer = Vec::with_capacity(BUFFER);
    let mut entries = RawDir::new(directory, buffer.spare_capacity_mut());
    while let Some(entry) = entries.next() {
        match entry {
            Ok(entry) => match entry.file_name().to_bytes() {
                b"." | b".." => {}
                name => visit(name, entry.file_type()),
            },
            Err(Errno::INTR) => {}
            // It was deleted meanwhile: empty.
            Err(Errno::NOENT) => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

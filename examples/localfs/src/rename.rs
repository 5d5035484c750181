//! `rename_file`.

use crate::copy;
use crate::delete;
use crate::name::LocalPath;
use crate::root::{Entry, is_directory, is_same_file};
use rustix::fs::AtFlags;
use rustix::io::Errno;
use tf_fs_plugin::{Code, Error, Result};

/// Renames atomically. Between filesystems of the machine, where the system cannot, it copies, renames
/// the copy into place and deletes the source.
pub(crate) fn rename_file(src: &LocalPath<'_>, dst: &LocalPath<'_>) -> Result<()> {
    let from = src.entry()?;
    let source = from.metadata().map_err(|error| src.describe(error))?;
    // A link to a directory is one for every query, so it is one here too. A link to nothing is a file.
    if is_directory(&source) || src.metadata().is_ok_and(|target| is_directory(&target)) {
        return Err(Error::expected_file(src.uri));
    }
    let to = dst.entry()?;
    match dst.metadata() {
        Ok(target) if is_directory(&target) => return Err(Error::expected_file(dst.uri)),
        Ok(_) => {}
        Err(error) if error.code() == Code::NotFound => {}
        Err(error) => return Err(error),
    }
    // The system does nothing if both names are of one file, but `src` must still be deleted.
    if let Ok(target) = to.metadata()
        && source.st_nlink > 1
        && is_same_file(&source, &target)
    {
        return if is_same_entry(&from, src, &to, dst)? {
            Ok(())
        } else {
            rustix::fs::unlinkat(&from.dir, &*from.name, AtFlags::empty())
                .map_err(|error| src.describe(error))
        };
    }
    match rustix::fs::renameat(&from.dir, &*from.name, &to.dir, &*to.name) {
        Ok(()) => Ok(()),
        Err(Errno::XDEV) => {
            copy::copy_file(src, dst)?;
            delete::delete_file(src)
                .map_err(|error| error.context("copied, but could not delete the source"))
        }
        // The source existed a moment ago, so the error is about the destination.
        Err(error) => Err(dst.describe(error)),
    }
}

/// Returns whether two names of one file are one entry of one directory, perhaps reached in two ways.
fn is_same_entry(
    from: &Entry<'_, '_>,
    src: &LocalPath<'_>,
    to: &Entry<'_, '_>,
    dst: &LocalPath<'_>,
) -> Result<bool> {
    if from.name.file_name() != to.name.file_name() {
        return Ok(false);
    }
    let above = |place: &LocalPath<'_>| {
        let parent = place.path.parent().filter(|parent| !parent.as_os_str().is_empty());
        place.root.metadata(parent.unwrap_or(".".as_ref())).map_err(|error| place.describe(error))
    };
    Ok(is_same_file(&above(src)?, &above(dst)?))
}

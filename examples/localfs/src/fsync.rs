//! Making changes survive a crash of the machine.

use crate::error::is_absent;
use crate::root::{Access, Root};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::path::Path;

/// Makes the names in a directory durable. A directory that is gone needs nothing.
pub(crate) fn sync_directory(root: &Root, path: &Path) -> io::Result<()> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    sync(root, path, Access::Directory).map(drop)
}

/// Makes a file or directory durable, with its name. If it is gone, that becomes durable.
pub(crate) fn sync_path(root: &Root, path: &Path) -> io::Result<()> {
    sync(root, path, Access::Read)?;
    for ancestor in path.ancestors().skip(1) {
        let ancestor = if ancestor.as_os_str().is_empty() { Path::new(".") } else { ancestor };
        if sync(root, ancestor, Access::Directory)? {
            break;
        }
    }
    Ok(())
}

/// Makes a file or directory durable; returns whether it exists.
fn sync(root: &Root, path: &Path, access: Access) -> io::Result<bool> {
    let file = match root.open(path, access) {
        Ok(file) => File::from(file),
        Err(error) if is_absent(&error) => return Ok(false),
        Err(error) => return Err(error),
    };
    match file.sync_all() {
        // A filesystem or a device that does not support it.
        Err(error) if Errno::from_io_error(&error) == Some(Errno::INVAL) => Ok(true),
        other => other.map(|()| true),
    }
}

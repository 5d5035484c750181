//! Operations by name: queries, listings, deletion, copies, renames, directories.
//!
//! | Module | Job |
//! |---|---|
//! | `lookup` | whether a name is a file, a directory, or nothing |
//! | `list`, `glob` | the entries of a directory, the names that match a pattern |
//! | `directories` | creating and deleting them |
//! | `delete` | files and trees |
//! | `copy`, `rename` | done by the store |
//! | `real` | trees of stores with real directories |
//! | `pages` | the pages of a listing, one after the other |

mod copy;
mod delete;
mod directories;
#[cfg(test)]
mod fuzz;
mod glob;
mod list;
mod lookup;
mod pages;
mod real;
mod rename;

pub(crate) use lookup::is_listed_directory;

use crate::{Client, Connection, Lookup, Name, ObjectStore, Publication, read, request};
use tf_fs_plugin::prelude::*;

/// The operations of a filesystem, each like the method of [`Filesystem`] of the same name.
impl<C: Client> Connection<C> {
    /// Creates a directory that is not there yet.
    ///
    /// # Errors
    /// `ALREADY_EXISTS`; as the store says.
    pub fn create_dir(&self, name: &Name) -> Result<()> {
        self.block_on(directories::create(self, name))
    }

    /// Creates a directory unless it is there. Its parents need no marker.
    ///
    /// # Errors
    /// `FAILED_PRECONDITION` for a file; as the store says.
    pub fn recursively_create_dir(&self, name: &Name) -> Result<()> {
        self.block_on(directories::create_recursively(self, name))
    }

    /// Deletes a file.
    ///
    /// # Errors
    /// `NOT_FOUND`; `FAILED_PRECONDITION` for a directory; as the store says.
    pub fn delete_file(&self, name: &Name) -> Result<()> {
        self.block_on(delete::delete_file(self, name))
    }

    /// Deletes a directory that has nothing but its marker.
    ///
    /// # Errors
    /// `NOT_FOUND`; `FAILED_PRECONDITION` for a file, a bucket, and a directory that is not empty; as the store says.
    pub fn delete_dir(&self, name: &Name) -> Result<()> {
        self.block_on(directories::delete(self, name))
    }

    /// Deletes a directory with all in it, or a file.
    ///
    /// # Errors
    /// `NOT_FOUND`; `FAILED_PRECONDITION` for a whole bucket; as the store says. Counts the names that are left.
    pub fn delete_recursively(&self, name: &Name) -> Result<(), DeleteRecursivelyError> {
        self.block_on(delete::delete_recursively(self, name))
    }

    /// Renames a file, or a directory with all in it. Renaming a directory is not atomic: after an interruption, call
    /// it again to continue.
    ///
    /// # Errors
    /// `NOT_FOUND`; `FAILED_PRECONDITION` if only one of the two is a directory, or this process is still writing the
    /// source; as the store says. The source is there until the destination is confirmed.
    pub fn rename_file(&self, src: &Name, dst: &Name) -> Result<()> {
        self.block_on(rename::rename_file(self, src, dst))
    }

    /// Copies a file.
    ///
    /// # Errors
    /// `NOT_FOUND`; `FAILED_PRECONDITION` if either is a directory, or this process is still writing the source; as the
    /// store says.
    pub fn copy_file(&self, src: &Name, dst: &Name) -> Result<()> {
        self.block_on(copy::copy_file(self, src, dst))
    }

    /// Returns whether there is a file or a directory of this name.
    ///
    /// # Errors
    /// As the store says.
    pub fn path_exists(&self, name: &Name) -> Result<bool> {
        self.block_on(lookup::find(self, name)).map(|found| found != Lookup::Missing)
    }

    /// Returns whether each of these exists. Those of one directory are looked up in one listing first.
    pub fn paths_exist(&self, uris: &[Uri<'_>]) -> Vec<Result<bool>> {
        self.block_on(lookup::all_exist(self, uris))
    }

    /// Returns the statistics of a file or a directory.
    ///
    /// # Errors
    /// `NOT_FOUND`; as the store says.
    pub fn stat(&self, name: &Name) -> Result<FileStatistics> {
        match self.block_on(lookup::find(self, name))? {
            Lookup::File(known) => {
                let size = match known.size {
                    Some(size) => size,
                    None => self.block_on(read::size(self, name))?,
                };
                let file = FileStatistics::file(size);
                Ok(known.modified.map_or(file, |modified| file.with_modified(modified)))
            }
            Lookup::Directory => Ok(FileStatistics::directory()),
            Lookup::Missing => Err(Error::not_found(name)),
        }
    }

    /// Returns whether a name is a directory.
    ///
    /// # Errors
    /// `NOT_FOUND`; as the store says.
    pub fn is_directory(&self, name: &Name) -> Result<bool> {
        match self.block_on(lookup::find(self, name))? {
            Lookup::File(_) => Ok(false),
            Lookup::Directory => Ok(true),
            Lookup::Missing => Err(Error::not_found(name)),
        }
    }

    /// Returns the names of the entries of a directory, each once.
    ///
    /// # Errors
    /// `NOT_FOUND`, `FAILED_PRECONDITION` for a file; as the store says.
    pub fn get_children(&self, name: &Name) -> Result<Entries> {
        self.block_on(list::children(self, name))
    }

    /// Returns the names that match, as they would be written with the scheme of the pattern; sorted.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a pattern that is not a name; as the store says.
    pub fn get_matching_paths(&self, pattern: Uri<'_>) -> Result<Entries> {
        self.block_on(glob::matching(self, pattern))
    }
}

/// Returns whether listings have temporary names, which are hidden.
fn has_temporary_names<S: ObjectStore>(bucket: &S) -> bool {
    bucket.write_limits().is_some_and(|limits| limits.publication == Publication::Rename)
}

/// Writes the empty object that marks a directory.
async fn put_marker<C: Client>(
    connection: &Connection<C>,
    bucket: &C::Store,
    name: &Name,
) -> Result<()> {
    let marker = name.with_key(name.prefix());
    let began = connection.listings.begin();
    match request::put_marker(bucket, &marker).await {
        Ok(()) => {
            connection.listings.record_write(&marker, None, began, bucket.settings().listing_ttl);
            Ok(())
        }
        Err(failure) => {
            // It may still have been done.
            connection.listings.invalidate(&marker);
            Err(failure.into_error())
        }
    }
}

/// Deletes exactly this key, whether or not there is such an object.
async fn delete<C: Client>(
    connection: &Connection<C>,
    bucket: &C::Store,
    name: &Name,
) -> Result<()> {
    let deleted = request::delete(bucket, name).await;
    // Also after an error: it may still have been done.
    connection.listings.invalidate(name);
    Ok(deleted?)
}

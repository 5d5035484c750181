//! Everything by name: queries, listings, deletion, copies, renames, directories.
//!
//! | Module | Job |
//! |---|---|
//! | `lookup` | whether a name is a file, a directory, or nothing |
//! | `listing`, `matching` | the entries of a directory, the names that match a pattern |
//! | `directories` | making and removing them |
//! | `deletion` | files and trees |
//! | `copying`, `renaming` | done by the store |
//! | `pages`, `request` | the requests |

mod copying;
mod deletion;
mod directories;
mod listing;
mod lookup;
mod matching;
mod pages;
mod renaming;
mod request;

pub(crate) use copying::source as copy_source;
use tf_fs_object_store::{Found, Name};

use crate::connection::Connection;
use tf_fs_plugin::prelude::*;

pub(crate) fn create_dir(connection: &Connection, name: &Name) -> Result<()> {
    connection.block_on(directories::create(connection, name))
}

pub(crate) fn recursively_create_dir(connection: &Connection, name: &Name) -> Result<()> {
    connection.block_on(directories::create_recursively(connection, name))
}

pub(crate) fn delete_file(connection: &Connection, name: &Name) -> Result<()> {
    connection.block_on(deletion::delete_file(connection, name))
}

pub(crate) fn delete_dir(connection: &Connection, name: &Name) -> Result<()> {
    connection.block_on(directories::delete(connection, name))
}

pub(crate) fn delete_recursively(connection: &Connection, name: &Name) -> Result<(), Undeleted> {
    connection.block_on(deletion::delete_recursively(connection, name))
}

pub(crate) fn rename_file(connection: &Connection, src: &Name, dst: &Name) -> Result<()> {
    connection.block_on(renaming::rename_file(connection, src, dst))
}

pub(crate) fn copy_file(connection: &Connection, src: &Name, dst: &Name) -> Result<()> {
    connection.block_on(copying::copy_file(connection, src, dst))
}

pub(crate) fn path_exists(connection: &Connection, name: &Name) -> Result<bool> {
    connection.block_on(lookup::find(connection, name)).map(|found| found != Found::Nothing)
}

pub(crate) fn paths_exist(connection: &Connection, uris: &[Uri<'_>]) -> Vec<Result<bool>> {
    connection.block_on(lookup::all_exist(connection, uris))
}

pub(crate) fn stat(connection: &Connection, name: &Name) -> Result<FileStatistics> {
    match connection.block_on(lookup::find(connection, name))? {
        Found::File(known) => Ok(FileStatistics::file(known.size).with_modified(known.modified)),
        Found::Directory => Ok(FileStatistics::directory()),
        Found::Nothing => Err(Error::not_found(name)),
    }
}

pub(crate) fn is_directory(connection: &Connection, name: &Name) -> Result<bool> {
    match connection.block_on(lookup::find(connection, name))? {
        Found::File(_) => Ok(false),
        Found::Directory => Ok(true),
        Found::Nothing => Err(Error::not_found(name)),
    }
}

pub(crate) fn get_children(connection: &Connection, name: &Name) -> Result<Entries> {
    connection.block_on(listing::children(connection, name))
}

pub(crate) fn get_matching_paths(connection: &Connection, pattern: Uri<'_>) -> Result<Entries> {
    connection.block_on(matching::matching(connection, pattern))
}

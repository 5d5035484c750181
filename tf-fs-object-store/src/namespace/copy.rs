//! Copies made by the store.

use super::lookup;
use crate::{
    Client, Connection, CopyOptions, Directories, ErrorKind, Lookup, Name, ObjectStore, request,
};
use tf_fs_plugin::prelude::*;

/// The kind of a copy's source, if it is not an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// An object. It is copied.
    File,
    /// A directory. Nothing is copied.
    Directory,
    /// Nothing.
    Missing,
}

/// Copies a file. The store does it; nothing comes here.
///
/// # Errors
/// `NOT_FOUND`; `FAILED_PRECONDITION` if either is a directory, or the source is being written by this
/// process; as the store says. The destination is whole or as it was.
pub(super) async fn copy_file<C: Client>(
    connection: &Connection<C>,
    src: &Name,
    dst: &Name,
) -> Result<()> {
    if dst.is_always_directory() {
        return Err(Error::expected_file(dst));
    }
    check_written(connection, src)?;
    if src.is_always_directory() || src == dst {
        return match lookup::find(connection, src).await? {
            Lookup::File(_) => Ok(()),
            Lookup::Directory => Err(Error::expected_file(src)),
            Lookup::Missing => Err(Error::not_found(src)),
        };
    }
    match file_to_move(connection, src).await? {
        None | Some(Source::File) => {}
        Some(Source::Directory) => return Err(Error::expected_file(src)),
        Some(Source::Missing) => return Err(Error::not_found(src)),
    }
    let replaced = lookup::find_destination(connection, dst).await?;
    if replaced == Lookup::Directory {
        return Err(Error::expected_file(dst));
    }
    match copy(connection, src, dst, None, &replaced).await? {
        Source::File => Ok(()),
        Source::Directory => Err(Error::expected_file(src)),
        Source::Missing => Err(Error::not_found(src)),
    }
}

/// Returns what a source is where directories are real: a copy or a rename of one takes all of it along. `None` where the
/// request tells.
pub(super) async fn file_to_move<C: Client>(
    connection: &Connection<C>,
    src: &Name,
) -> Result<Option<Source>> {
    let bucket = connection.bucket(&src.bucket).await?;
    if bucket.directories() == Directories::Implied {
        return Ok(None);
    }
    Ok(Some(match lookup::find_in_store(&*bucket, src).await? {
        Lookup::File(_) => Source::File,
        Lookup::Directory => Source::Directory,
        Lookup::Missing => Source::Missing,
    }))
}

/// Refuses a source that only this process has.
pub(super) fn check_written<C: Client>(connection: &Connection<C>, src: &Name) -> Result<()> {
    match connection.unpublished.get(src) {
        Some(_) => Err(Error::failed_precondition(format_args!(
            "{src}: is still being written by this process, and the store has nothing of it; close it first"
        ))),
        None => Ok(()),
    }
}

/// Copies an object over what is there, which is believed to be `replaced`; `len` bytes if that is known. What
/// the source is.
pub(super) async fn copy<C: Client>(
    connection: &Connection<C>,
    src: &Name,
    dst: &Name,
    len: Option<u64>,
    replaced: &Lookup,
) -> Result<Source> {
    let from = connection.bucket(&src.bucket).await?;
    let to = connection.bucket(&dst.bucket).await?;
    let known = connection.listings.object(src).filter(|known| known.strong_etag().is_some());
    // To choose the way only: the store refuses what has changed since.
    let len = len
        .or_else(|| known.as_ref().and_then(|known| known.size))
        .or_else(|| connection.unpublished.published_len(src));
    let began = connection.listings.begin();
    let options = || CopyOptions { src, dst, known: known.clone(), len, replaced };
    let copied = match request::copy(&from, &to, src, options).await {
        // The cached state of the name is out of date.
        Err(failure) if known.is_some() && failure.kind() == ErrorKind::Precondition => {
            let options = || CopyOptions { src, dst, known: None, len: None, replaced };
            request::copy(&from, &to, src, options).await
        }
        copied => copied,
    };
    let failure = match copied {
        Ok(known) => {
            connection.listings.record_write(dst, known, began, to.settings().listing_ttl);
            return Ok(Source::File);
        }
        Err(failure) => failure,
    };
    // It may have been done all the same.
    connection.listings.invalidate(dst);
    if failure.kind() == ErrorKind::NotFound {
        // A directory, or nothing at all; or somebody put it there just now.
        match lookup::find_in_store(&*from, src).await? {
            Lookup::File(_) => {}
            Lookup::Directory => return Ok(Source::Directory),
            Lookup::Missing => return Ok(Source::Missing),
        }
    }
    Err(failure.into_error())
}

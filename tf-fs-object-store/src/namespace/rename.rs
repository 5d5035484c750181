//! Renames: one request where the store can; otherwise a copy by the store, confirmed, and then the deletion of exactly
//! the source.

use super::copy::{self, Source};
use super::delete::{Deletion, note_emptied};
use super::pages::{Allowance, Pages};
use super::{lookup, real};
use crate::{
    Client, Connection, Directories, ErrorKind, ListOptions, Lookup, Name, Object, ObjectStore,
    RenameOptions, request,
};
use futures_util::{StreamExt, future, stream};
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use tf_fs_plugin::prelude::*;

/// Objects that are copied at a time.
const COPIES: usize = 16;

/// Renames a file, or a directory with all in it.
///
/// # Errors
/// `NOT_FOUND`; `FAILED_PRECONDITION` if only one of the two is a directory, or this process is still writing the
/// source; as the store says. The destination is whole or as it was; the source is there until the destination is
/// confirmed.
pub(super) async fn rename_file<C: Client>(
    connection: &Connection<C>,
    src: &Name,
    dst: &Name,
) -> Result<()> {
    copy::check_written(connection, src)?;
    if src == dst {
        return match lookup::find(connection, src).await? {
            Lookup::Missing => Err(Error::not_found(src)),
            _ => Ok(()),
        };
    }
    if src.is_always_directory() {
        return rename_directory(connection, src, dst).await;
    }
    if connection.listings.find(src) == Some(Lookup::Directory) {
        return rename_directory(connection, src, dst).await;
    }
    let dst_is = lookup::find_destination(connection, dst).await?;
    if dst_is == Lookup::Directory || dst.is_always_directory() {
        // Only a directory can take the place of one.
        return match lookup::find(connection, src).await? {
            Lookup::Directory => rename_directory(connection, src, dst).await,
            Lookup::File(_) => Err(Error::expected_file(dst)),
            Lookup::Missing => Err(Error::not_found(src)),
        };
    }
    let moved = match copy::file_to_move(connection, src).await? {
        None | Some(Source::File) => move_file(connection, src, dst, &dst_is).await?,
        other => other,
    };
    let is_moved = moved.is_some();
    let source = match moved {
        Some(source) => source,
        None => copy::copy(connection, src, dst, None, &dst_is).await?,
    };
    match source {
        Source::File => {}
        Source::Directory => return rename_directory(connection, src, dst).await,
        Source::Missing => {
            check_below(connection, src)?;
            return Err(Error::not_found(src));
        }
    }
    if !is_moved {
        let bucket = connection.bucket(&src.bucket).await?;
        super::delete(connection, &bucket, src).await.map_err(|error| {
            error.context(format_args!(
                "the copy {dst} is whole, but the source could not be deleted; delete it, or rename it again"
            ))
        })?;
    }
    // Later writes to it are discarded.
    connection.unpublished.delete(src);
    note_emptied(connection, src);
    Ok(())
}

/// Renames an object over what is there, which is believed to be `replaced`. Returns what the source is; `None` if the
/// store cannot rename it.
///
/// # Errors
/// As the store says; `FAILED_PRECONDITION` if it is unknown whether a request was done whose response was lost.
async fn move_file<C: Client>(
    connection: &Connection<C>,
    src: &Name,
    dst: &Name,
    replaced: &Lookup,
) -> Result<Option<Source>> {
    let from = connection.bucket(&src.bucket).await?;
    let to = connection.bucket(&dst.bucket).await?;
    if !to.supports_rename() {
        return Ok(None);
    }
    let (listings, may_be_done) = (&connection.listings, Cell::new(false));
    let began = listings.begin();
    let options = RenameOptions { src, dst, replace: true };
    let renamed = request::rename(&from, &to, options, &may_be_done).await;
    // Also after an error: it may have been done.
    listings.invalidate(src);
    let failure = match renamed {
        Ok(known) => {
            listings.record_write(dst, known, began, to.settings().listing_ttl);
            return Ok(Some(Source::File));
        }
        Err(failure) => failure,
    };
    listings.invalidate(dst);
    match failure.kind() {
        ErrorKind::Unsupported => return Ok(None),
        ErrorKind::NotFound => {}
        _ => return Err(failure.into_error()),
    }
    // A directory, or nothing at all; or an earlier attempt was done, or somebody put it there just now.
    match lookup::find_in_store(&*from, src).await? {
        Lookup::File(_) => return Err(failure.into_error()),
        Lookup::Directory => return Ok(Some(Source::Directory)),
        Lookup::Missing if !may_be_done.get() => return Ok(Some(Source::Missing)),
        Lookup::Missing => {}
    }
    match lookup::find_in_store(&*to, dst).await? {
        found @ Lookup::File(_) if found != *replaced => Ok(Some(Source::File)),
        // One like it may have been there before.
        Lookup::File(_) => Err(failure.into_error().with_code(Code::FailedPrecondition).context(
            format_args!("{src} is gone, and it is unknown whether {dst} is it; look at {dst}"),
        )),
        _ => Ok(Some(Source::Missing)),
    }
}

/// Moves all keys below `src` to the same names below `dst`: all are copied before the first is deleted. It is not
/// atomic: after an interruption, a second call continues.
async fn rename_directory<C: Client>(
    connection: &Connection<C>,
    src: &Name,
    dst: &Name,
) -> Result<()> {
    ensure!(
        !src.key.is_empty() && !dst.key.is_empty(),
        Error::failed_precondition(format_args!(
            "{src} to {dst}: buckets are not renamed through TensorFlow; name a directory"
        ))
    );
    let (from, to) = (src.with_key(src.prefix()), dst.with_key(dst.prefix()));
    ensure!(
        src.bucket != dst.bucket
            || !(from.key.starts_with(&to.key) || to.key.starts_with(&from.key)),
        Error::failed_precondition(format_args!(
            "{src} to {dst}: one of them is in the other; choose another name"
        ))
    );
    check_below(connection, src)?;
    if connection.bucket(&src.bucket).await?.directories() == Directories::Real {
        return real::rename_directory(connection, &from, &to).await;
    }
    let plain = dst.with_key(dst.key.strip_suffix('/').unwrap_or(&dst.key));
    let (sources, targets, dst_is) = future::join3(
        list(connection, &from),
        list(connection, &to),
        lookup::find(connection, &plain),
    )
    .await;
    let (sources, targets) = (sources?, targets?);
    if matches!(dst_is?, Lookup::File(_)) {
        return Err(Error::expected_directory(dst));
    }
    if sources.is_empty() {
        return Err(Error::not_found(src));
    }
    let there: HashMap<&str, &Object> =
        targets.iter().map(|object| (&object.key[to.key.len()..], object)).collect();
    let mut missing = Vec::new();
    for object in &sources {
        let rest = &object.key[from.key.len()..];
        match there.get(rest) {
            None => missing.push((rest, object.meta.size)),
            Some(found) if C::Store::is_copy(&object.meta, &found.meta) => {}
            // Both mark this directory, and none has bytes.
            Some(found)
                if object.key.ends_with('/')
                    && [&object.meta, &found.meta].iter().all(|meta| meta.size == Some(0)) => {}
            Some(found) => {
                return Err(Error::failed_precondition(format_args!(
                    "{}: is there already, and its ETag does not tell that it is a copy of {}; delete one of them",
                    to.with_key(&*found.key),
                    from.with_key(&*object.key)
                )));
            }
        }
    }
    let mut made = Vec::new();
    let mut failed = None;
    {
        // After a failure no further copy begins, but running ones are awaited: the store might still finish one later,
        // unnoticed.
        let stop = AtomicBool::new(false);
        let going =
            stream::iter(missing).take_while(|_| std::future::ready(!stop.load(Ordering::Relaxed)));
        let copies = going.map(|(rest, len)| {
            let (src, dst) = (
                from.with_key(format!("{}{rest}", from.key)),
                to.with_key(format!("{}{rest}", to.key)),
            );
            async move {
                let source = copy::copy(connection, &src, &dst, len, &Lookup::Missing).await;
                let copied = source.and_then(|source| match source {
                    Source::File => Ok(()),
                    _ => Err(Error::new(
                        Code::Aborted,
                        format!("{src}: vanished while its directory was renamed; rename it again"),
                    )),
                });
                (dst.key, copied)
            }
        });
        let mut copies = std::pin::pin!(copies.buffer_unordered(COPIES));
        while let Some((key, copied)) = copies.next().await {
            match copied {
                Ok(()) => made.push(key),
                Err(error) => {
                    stop.store(true, Ordering::Relaxed);
                    failed.get_or_insert(error);
                }
            }
        }
    }
    if let Some(error) = failed {
        // As it was, as far as possible.
        let _ = delete(connection, &to, made).await;
        return Err(error);
    }
    let keys = sources.into_iter().map(|object| object.key).collect();
    let deleted = delete(connection, &from, keys).await;
    connection.listings.invalidate_below(&from);
    connection.listings.invalidate_below(&to);
    connection.unpublished.emptied(from);
    deleted.map_err(|error| {
        error.context(format_args!(
            "all is copied to {dst}, but not all of the source could be deleted; rename it again"
        ))
    })
}

/// Refuses a directory in which this process is still writing a file.
fn check_below<C: Client>(connection: &Connection<C>, directory: &Name) -> Result<()> {
    let below = connection.unpublished.below(directory, &directory.prefix());
    below.into_iter().try_for_each(|key| copy::check_written(connection, &directory.with_key(key)))
}

/// Lists all objects below a directory.
async fn list<C: Client>(connection: &Connection<C>, directory: &Name) -> Result<Vec<Object>> {
    let bucket = connection.bucket(&directory.bucket).await?;
    let mut pages = Pages::new(&*bucket, directory, ListOptions::new(&directory.key));
    let allowance = Allowance::new(bucket.settings());
    let mut objects = Vec::new();
    while let Some(page) = pages.next_kept(&allowance).await? {
        objects.extend(page.objects);
    }
    Ok(objects)
}

/// Deletes these keys.
async fn delete<C: Client>(
    connection: &Connection<C>,
    directory: &Name,
    keys: Vec<String>,
) -> Result<()> {
    let bucket = connection.bucket(&directory.bucket).await?;
    let deleted = Deletion::new(connection, &bucket, directory).delete(keys).await;
    deleted.error.map_or(Ok(()), Err)
}

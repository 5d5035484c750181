//! Trees of stores with real directories: listed and deleted directory by directory, renamed at once.

use super::copy::{self, Source};
use super::delete::{Deletion, delete_file, left_over};
use super::directories::{self, mark_with_parents};
use super::lookup;
use super::pages::{Allowance, Pages};
use crate::{
    Client, Connection, ErrorKind, ListOptions, Lookup, Name, ObjectStore, RenameOptions, request,
};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use std::cell::Cell;
use std::pin::Pin;
use tf_fs_plugin::prelude::*;

/// Directories that are listed at a time, of one directory.
const AT_ONCE: usize = 4;
/// Files that are copied at a time.
const COPIES: usize = 16;

/// The names in a real directory, with their directory.
struct Level {
    files: Vec<(String, Option<u64>)>,
    directories: Vec<String>,
}

/// Lists one directory.
async fn list<C: Client>(
    bucket: &C::Store,
    directory: &Name,
    allowance: &Allowance,
) -> Result<Level> {
    ensure!(
        directory.key.len() <= C::max_key_len(&directory.bucket),
        Error::data_loss(format_args!(
            "{directory}: the store shows directories that are deeper than any key; ask whoever runs the store"
        ))
    );
    let options = ListOptions::new(&directory.key).with_delimiter();
    let mut pages = Pages::new(bucket, directory, options);
    let mut level = Level { files: Vec::new(), directories: Vec::new() };
    while let Some(page) = pages.next_kept(allowance).await? {
        level.files.extend(page.objects.into_iter().map(|object| (object.key, object.meta.size)));
        level.directories.extend(page.common_prefixes);
    }
    Ok(level)
}

/// Deletes a directory with all in it, or a file.
///
/// # Errors
/// `NOT_FOUND`; as the store says. Counts the names that are left.
pub(super) async fn delete_recursively<C: Client>(
    connection: &Connection<C>,
    bucket: &C::Store,
    name: &Name,
) -> Result<(), DeleteRecursivelyError> {
    let root = name.with_key(name.prefix());
    let unpublished = connection.unpublished.below(name, &root.key).len();
    match lookup::find_in_store(bucket, name).await? {
        Lookup::Directory => {}
        Lookup::Missing if unpublished > 0 => {
            connection.unpublished.delete_below(name, &root.key);
            return Ok(());
        }
        Lookup::Missing if name.key.ends_with('/') => return Err(Error::not_found(name).into()),
        _ => return Ok(delete_file(connection, name).await?),
    }
    let deletion = Deletion::new(connection, bucket, name);
    let allowance = Allowance::new(bucket.settings());
    let left = delete_tree(&deletion, bucket, root.clone(), &allowance).await;
    connection.listings.invalidate_below(&root);
    if let Some(error) = left.error {
        return Err(left_over(error, &left.keys, &root.key));
    }
    // Only once all else is gone: a file in a directory that could not be deleted can still be written.
    connection.unpublished.delete_below(name, &root.key);
    Ok(())
}

/// The keys that a deletion has left, and why.
#[derive(Default)]
struct Left {
    keys: Vec<String>,
    error: Option<Error>,
}

impl Left {
    fn add(&mut self, keys: Vec<String>, error: Option<Error>) {
        self.keys.extend(keys);
        self.error = self.error.take().or(error);
    }
}

/// Deletes the files of a directory, its directories, and then itself, unless something is left.
fn delete_tree<'a, C: Client>(
    deletion: &'a Deletion<'_, C>,
    bucket: &'a C::Store,
    directory: Name,
    allowance: &'a Allowance,
) -> Pin<Box<dyn Future<Output = Left> + 'a>> {
    Box::pin(async move {
        let mut left = Left::default();
        let level = match list::<C>(bucket, &directory, allowance).await {
            Ok(level) => level,
            Err(error) => {
                left.add(vec![directory.key], Some(error));
                return left;
            }
        };
        let files = level.files.into_iter().map(|(key, _)| key).collect();
        let deleted = deletion.delete(files).await;
        left.add(deleted.left, deleted.error);
        let trees = level.directories.into_iter();
        let trees: Vec<_> = trees
            .map(|key| delete_tree(deletion, bucket, directory.with_key(key), allowance))
            .collect();
        let mut trees = std::pin::pin!(stream::iter(trees).buffer_unordered(AT_ONCE));
        while let Some(Left { keys, error }) = trees.next().await {
            left.add(keys, error);
        }
        if left.error.is_some() {
            left.keys.push(directory.key);
            return left;
        }
        let deleted = deletion.delete(vec![directory.key]).await;
        left.add(deleted.left, deleted.error);
        left
    })
}

/// Renames a directory: with one request, or by copies of its files. `NOT_FOUND` if there is none.
///
/// # Errors
/// `FAILED_PRECONDITION` if the destination is a file, or a directory that is not empty; as the store says.
pub(super) async fn rename_directory<C: Client>(
    connection: &Connection<C>,
    from: &Name,
    to: &Name,
) -> Result<()> {
    let bucket = connection.bucket(&from.bucket).await?;
    let target = connection.bucket(&to.bucket).await?;
    let path = |name: &Name| name.with_key(name.key.trim_end_matches('/'));
    match lookup::find_in_store(&*bucket, &path(from)).await? {
        Lookup::Directory => {}
        Lookup::File(_) => return Err(Error::expected_directory(from)),
        Lookup::Missing => return Err(Error::not_found(from)),
    }
    match lookup::find_in_store(&*target, &path(to)).await? {
        Lookup::Missing => {}
        Lookup::File(_) => return Err(Error::expected_directory(to)),
        Lookup::Directory if directories::is_empty(&*target, to).await? => {
            super::delete(connection, &target, to).await?;
        }
        Lookup::Directory => return Err(Error::expected_empty_directory(to)),
    }
    let is_renamed = match bucket.supports_rename() {
        true => rename_at_once(connection, from, to).await?,
        false => false,
    };
    if !is_renamed {
        copy_tree(connection, &bucket, from, to).await?;
        let deletion = Deletion::new(connection, &*bucket, from);
        let allowance = Allowance::new(bucket.settings());
        let left = delete_tree(&deletion, &bucket, from.clone(), &allowance).await;
        connection.listings.invalidate_below(from);
        if let Some(error) = left.error {
            return Err(error.context(format_args!(
                "all is copied to {to}, but not all of {from} could be deleted; delete it"
            )));
        }
    }
    Ok(())
}

/// Renames a directory with one request. Returns whether the store can.
async fn rename_at_once<C: Client>(
    connection: &Connection<C>,
    from: &Name,
    to: &Name,
) -> Result<bool> {
    let bucket = connection.bucket(&from.bucket).await?;
    let target = connection.bucket(&to.bucket).await?;
    let may_be_done = Cell::new(false);
    let options = RenameOptions { src: from, dst: to, replace: false };
    let renamed = request::rename(&bucket, &target, options, &may_be_done).await;
    // Also after an error: it may have been done.
    connection.listings.invalidate_below(from);
    connection.listings.invalidate_below(to);
    let failure = match renamed {
        Ok(_) => return Ok(true),
        Err(failure) if failure.kind() == ErrorKind::Unsupported => return Ok(false),
        Err(failure) => failure,
    };
    // Nothing was at the destination: what is there now was at the source.
    let is_refused = matches!(failure.kind(), ErrorKind::NotFound | ErrorKind::Precondition);
    let is_done = is_refused
        && may_be_done.get()
        && lookup::find_in_store(&*bucket, from).await? == Lookup::Missing
        && lookup::find_in_store(&*target, to).await? == Lookup::Directory;
    if is_done { Ok(true) } else { Err(failure.into_error()) }
}

/// Copies a directory with all in it, directories before what is in them.
fn copy_tree<'a, C: Client>(
    connection: &'a Connection<C>,
    bucket: &'a C::Store,
    from: &'a Name,
    to: &'a Name,
) -> Pin<Box<dyn Future<Output = Result<()>> + 'a>> {
    Box::pin(async move {
        mark_with_parents(connection, to).await?;
        let level = list::<C>(bucket, from, &Allowance::new(bucket.settings())).await?;
        let place = |key: &str| to.with_key(format!("{}{}", to.key, &key[from.key.len()..]));
        stream::iter(level.files)
            .map(|(key, len)| {
                let (src, dst) = (from.with_key(&*key), place(&key));
                async move {
                    match copy::copy(connection, &src, &dst, len, &Lookup::Missing).await? {
                        Source::File => Ok(()),
                        _ => Err(Error::new(
                            Code::Aborted,
                            format!(
                                "{src}: vanished while its directory was renamed; delete {dst}"
                            ),
                        )),
                    }
                }
            })
            .buffer_unordered(COPIES)
            .try_collect::<()>()
            .await?;
        for key in level.directories {
            copy_tree(connection, bucket, &from.with_key(&*key), &place(&key)).await?;
        }
        Ok(())
    })
}

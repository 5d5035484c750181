//! Creating and deleting directories.

use super::pages::Pages;
use super::{lookup, put_marker};
use crate::{Client, Connection, Directories, ListOptions, Lookup, Name, ObjectStore};
use tf_fs_plugin::prelude::*;

/// Returns the name without the `/` at its end, so that a file of this name is found too.
fn without_slash(name: &Name) -> Name {
    name.with_key(name.key.strip_suffix('/').unwrap_or(&name.key))
}

/// Creates a directory that is not there yet.
///
/// # Errors
/// `ALREADY_EXISTS`; as the store says.
pub(super) async fn create<C: Client>(connection: &Connection<C>, name: &Name) -> Result<()> {
    match lookup::find(connection, &without_slash(name)).await? {
        Lookup::Missing => mark(connection, name).await,
        Lookup::File(_) | Lookup::Directory => Err(Error::already_exists(name)),
    }
}

/// Creates a directory unless it is there. Its parents need no marker.
///
/// # Errors
/// `FAILED_PRECONDITION` for a file; as the store says.
pub(super) async fn create_recursively<C: Client>(
    connection: &Connection<C>,
    name: &Name,
) -> Result<()> {
    match lookup::find(connection, &without_slash(name)).await? {
        Lookup::Missing => mark_with_parents(connection, name).await,
        Lookup::File(_) => Err(Error::expected_directory(name)),
        Lookup::Directory => Ok(()),
    }
}

/// Creates a directory. Where directories are real, creates its parents first if the store finds them missing.
pub(super) async fn mark_with_parents<C: Client>(
    connection: &Connection<C>,
    name: &Name,
) -> Result<()> {
    let bucket = connection.bucket(&name.bucket).await?;
    let is_real = bucket.directories() == Directories::Real;
    let mut missing = vec![name.with_key(name.prefix())];
    let mut may_go_up = true;
    while let Some(directory) = missing.last() {
        let failure = match put_marker(connection, &bucket, directory).await {
            Err(error) if is_real => error,
            outcome => {
                outcome?;
                may_go_up = false;
                missing.pop();
                continue;
            }
        };
        let path = &directory.key[..directory.key.len() - 1];
        match (failure.code(), path.rfind('/')) {
            (Code::NotFound, Some(slash)) if may_go_up => {
                let parent = directory.with_key(&path[..=slash]);
                missing.push(parent);
            }
            // Somebody else has just created it.
            (Code::FailedPrecondition | Code::AlreadyExists, _)
                if lookup::find_in_store(&*bucket, &directory.with_key(path)).await?
                    == Lookup::Directory =>
            {
                may_go_up = false;
                missing.pop();
            }
            _ => return Err(failure),
        }
    }
    Ok(())
}

async fn mark<C: Client>(connection: &Connection<C>, name: &Name) -> Result<()> {
    let bucket = connection.bucket(&name.bucket).await?;
    put_marker(connection, &bucket, name).await
}

/// Deletes a directory that has nothing but its marker.
///
/// # Errors
/// `NOT_FOUND`; `FAILED_PRECONDITION` for a file, a bucket, and a directory that is not empty; as the store
/// says.
pub(super) async fn delete<C: Client>(connection: &Connection<C>, name: &Name) -> Result<()> {
    ensure!(
        !name.key.is_empty(),
        Error::failed_precondition(format_args!(
            "{name}: buckets are not deleted through TensorFlow; delete it with the store's own tools"
        ))
    );
    let marker = name.with_key(name.prefix());
    if !connection.unpublished.below(name, &marker.key).is_empty() {
        return Err(Error::expected_empty_directory(name));
    }
    let bucket = connection.bucket(&name.bucket).await?;
    if bucket.directories() == Directories::Real {
        return delete_real(connection, &bucket, &marker).await;
    }
    let options = ListOptions { max_keys: Some(2), ..ListOptions::new(&marker.key) };
    let mut pages = Pages::new(&*bucket, name, options);
    let mut is_marked = false;
    while let Some(page) = pages.next().await? {
        if page.objects.iter().any(|object| object.key != marker.key) {
            return Err(Error::expected_empty_directory(name));
        }
        is_marked |= !page.objects.is_empty();
    }
    // The last file in it may have been deleted, or renamed, a moment ago. Then the directory is gone already, but the
    // caller has seen it.
    let was_emptied = connection.unpublished.take_emptied(&marker);
    if is_marked {
        return super::delete(connection, &bucket, &marker).await;
    }
    let file = without_slash(name);
    if connection.unpublished.get(&file).is_some() {
        return Err(Error::expected_directory(name));
    }
    match lookup::find_in_store(&*bucket, &file).await? {
        Lookup::File(_) => Err(Error::expected_directory(name)),
        _ if was_emptied => Ok(()),
        _ => Err(Error::not_found(name)),
    }
}

/// Deletes a real directory if it is empty. Some servers would delete all that is in it.
async fn delete_real<C: Client>(
    connection: &Connection<C>,
    bucket: &C::Store,
    directory: &Name,
) -> Result<()> {
    match lookup::find_in_store(bucket, &without_slash(directory)).await? {
        Lookup::File(_) => return Err(Error::expected_directory(directory)),
        Lookup::Missing => return Err(Error::not_found(directory)),
        Lookup::Directory => {}
    }
    if !is_empty(bucket, directory).await? {
        return Err(Error::expected_empty_directory(directory));
    }
    super::delete(connection, bucket, directory).await
}

/// Returns whether a real directory has no names.
pub(super) async fn is_empty<S: ObjectStore>(bucket: &S, directory: &Name) -> Result<bool> {
    let options = ListOptions::new(&directory.key).with_delimiter();
    let mut pages = Pages::new(bucket, directory, ListOptions { max_keys: Some(2), ..options });
    while let Some(page) = pages.next().await? {
        if page.first().is_some() {
            return Ok(false);
        }
    }
    Ok(true)
}

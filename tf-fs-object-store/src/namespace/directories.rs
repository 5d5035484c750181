//! Creating and deleting directories.

use super::pages::Pages;
use super::{lookup, put_marker};
use crate::{Client, Connection, ListOptions, Lookup, Name};
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
        Lookup::Missing => mark(connection, name).await,
        Lookup::File(_) => Err(Error::expected_directory(name)),
        Lookup::Directory => Ok(()),
    }
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

//! The entries of a directory.

use super::pages::{Allowance, MAX_EMPTY, Pages};
use super::{has_temporary_names, lookup};
use crate::write::is_temporary;
use crate::{
    Client, Connection, DirListing, DirTree, Directories, ListOptions, Lookup, Name, ObjectStore,
    request,
};
use std::collections::BTreeSet;
use tf_fs_plugin::prelude::*;

/// Returns the names of the entries of a directory, each once.
///
/// # Errors
/// `NOT_FOUND`, `FAILED_PRECONDITION` for a file; as the store says.
pub(super) async fn children<C: Client>(
    connection: &Connection<C>,
    name: &Name,
) -> Result<Entries> {
    if name.bucket.is_empty() {
        ensure!(name.key.is_empty(), Error::expected_directory(name));
        return buckets(connection, name).await;
    }
    let directory = name.prefix();
    let mut names = BTreeSet::new();
    for key in connection.unpublished.below(name, &directory) {
        names.insert(key[directory.len()..].split('/').next().unwrap_or_default().to_owned());
    }
    let bucket = connection.bucket(&name.bucket).await?;
    let is_shown = |name: &String| !(is_temporary(name) && has_temporary_names(&*bucket));
    if let Some(children) = connection.listings.take_children(&name.bucket, &directory) {
        names.extend(children.into_iter().map(String::from).filter(is_shown));
        return Ok(entries(names));
    }
    let may_walk = bucket.supports_start_after() && bucket.directories() == Directories::Implied;
    let found = if may_walk && connection.listings.is_walk(name) {
        walk_on(connection, &bucket, name, &directory).await?
    } else {
        let listing = DirListing::new(&*directory, "");
        list_rest(connection, &bucket, name, listing, None).await?
    };
    let exists = found.exists || name.key.is_empty() || !names.is_empty();
    names.extend(found.children().map(|child| child.name.to_string()).filter(is_shown));
    found.keep(&connection.listings, name, bucket.settings().listing_ttl);
    if !exists {
        return Err(match lookup::find(connection, name).await? {
            Lookup::File(_) => Error::expected_directory(name),
            // Created this very moment.
            Lookup::Directory => return Ok(Entries::new()),
            Lookup::Missing => Error::not_found(name),
        });
    }
    Ok(entries(names))
}

/// Returns those of these names that TensorFlow can list. The others stay reachable by their exact names.
fn entries(names: BTreeSet<String>) -> Entries {
    names.into_iter().filter(|name| Entries::is_listable(name.as_bytes())).collect()
}

/// Lists a directory from `after` on, page by page.
async fn list_rest<C: Client>(
    connection: &Connection<C>,
    bucket: &C::Store,
    name: &Name,
    mut found: DirListing,
    after: Option<String>,
) -> Result<DirListing> {
    let options = ListOptions::new(name.prefix()).with_delimiter();
    let mut pages = Pages::new(bucket, name, ListOptions { start_after: after, ..options });
    let allowance = Allowance::new(bucket.settings());
    loop {
        let began = connection.listings.begin();
        let Some(page) = pages.next_kept(&allowance).await? else { return Ok(found) };
        found.add(page, began);
    }
}

/// Lists one directory of several that are likely to be listed in turn: the same request shows those that follow it, as
/// far as a page reaches.
async fn walk_on<C: Client>(
    connection: &Connection<C>,
    bucket: &C::Store,
    name: &Name,
    directory: &str,
) -> Result<DirListing> {
    let path = directory.strip_suffix('/').unwrap_or(directory);
    let parent = &path[..path.rfind('/').map_or(0, |slash| slash + 1)];
    // Just before the directory's own marker.
    let after = format!("{path}.\u{10fffd}");
    let options = ListOptions { start_after: Some(after.clone()), ..ListOptions::new(parent) };
    let began = connection.listings.begin();
    let mut pages = Pages::new(bucket, name, options);
    let page = pages.next_named().await?;
    let page = page.unwrap_or_default();
    if !page.is_in_order() {
        return list_rest(connection, bucket, name, DirListing::new(directory, ""), None).await;
    }
    let is_done = pages.is_done();
    let last = page.last().map(str::to_owned).filter(|_| !is_done);
    let mut tree = DirTree::new(parent, "", after);
    tree.add(&page);
    tree.keep(&connection.listings, name, began, is_done, bucket.settings().listing_ttl);
    let mut found = DirListing::new(directory, "");
    found.add(page, began);
    // The page may end within the directory, or before it.
    match last.filter(|last| last.starts_with(directory) || last.as_str() < directory) {
        Some(last) => list_rest(connection, bucket, name, found, Some(last)).await,
        None => Ok(found),
    }
}

/// Lists all buckets that the credentials may list.
async fn buckets<C: Client>(connection: &Connection<C>, name: &Name) -> Result<Entries> {
    let (client, settings) = (&connection.client, connection.client.settings());
    let mut names = BTreeSet::new();
    let allowance = Allowance::new(&settings);
    let mut token = None;
    let mut empty = 0;
    loop {
        let page = request::list_buckets(client, &settings, name, token.as_deref()).await?;
        let before = names.len();
        allowance.take(name, page.names.len())?;
        empty = if page.names.is_empty() { empty + 1 } else { 0 };
        let is_empty = page.names.is_empty();
        names.extend(page.names);
        let next = page.next.filter(|token| !token.is_empty());
        // A store without pages may return the same again.
        let is_over = next.is_none() || next == token || names.len() == before && !is_empty;
        if is_over {
            return Ok(entries(names));
        }
        ensure!(
            empty <= MAX_EMPTY,
            Error::data_loss(format_args!(
                "{name}: {}: the store's list has nothing but empty pages; ask whoever runs the store",
                request::LIST_BUCKETS
            ))
        );
        token = next;
    }
}

//! What a name is: a file, a directory, or nothing.
//!
//! Some stores have a request that tells. In others one `ListObjectsV2` does, while a HEAD tells nothing of directories: the
//! object is the first of the keys that begin with its name, and only a few keys sort between it and the directory.

use super::pages::{Allowance, NoPage, Pages};
use crate::{
    Child, Client, Connection, DirListing, Directories, ErrorKind, ListOptions, ListedRange,
    Lookup, Name, ObjectMeta, ObjectStore, Page, request,
};
use futures_util::{StreamExt, stream};
use std::collections::HashMap;
use tf_fs_plugin::prelude::*;

/// The most names in one request: those between an object and the directory of its name, or its siblings.
const SIBLINGS: u32 = 100;

/// Returns what this name is for this process.
///
/// # Errors
/// As the store says; `NOT_FOUND` if there is no such bucket.
pub(super) async fn find<C: Client>(connection: &Connection<C>, name: &Name) -> Result<Lookup> {
    find_by(connection, name, false, true).await
}

/// Does the same as [`find`] for the destination of a copy: others of its kind are likely to be looked up next, such as
/// the files of a checkpoint.
pub(super) async fn find_destination<C: Client>(
    connection: &Connection<C>,
    name: &Name,
) -> Result<Lookup> {
    find_by(connection, name, true, true).await
}

/// Returns whether a name without an object is a directory. A store without listings has no directories.
///
/// # Errors
/// As the store says.
pub(crate) async fn is_listed_directory<C: Client>(
    connection: &Connection<C>,
    name: &Name,
) -> Result<bool> {
    find_by(connection, name, false, false).await.map(|found| found == Lookup::Directory)
}

/// Finds out what a name is. `may_head`: without listings a request for the object tells something new.
async fn find_by<C: Client>(
    connection: &Connection<C>,
    name: &Name,
    with_siblings: bool,
    may_head: bool,
) -> Result<Lookup> {
    if name.bucket.is_empty() {
        return Ok(if name.key.is_empty() { Lookup::Directory } else { Lookup::Missing });
    }
    if let Some(file) = connection.unpublished.get(name) {
        return Ok(Lookup::File(ObjectMeta::new(file.len).with_modified(file.since)));
    }
    let found = match connection.listings.find(name) {
        Some(found) => found,
        None => {
            let bucket = connection.bucket(&name.bucket).await?;
            let listed = if connection.listings.is_scan(name) {
                scan_on(connection, &bucket, name).await?
            } else if with_siblings && !bucket.supports_lookup() {
                list_siblings(connection, &bucket, name).await?
            } else {
                None
            };
            match listed {
                Some(found) => found,
                None => {
                    let began = connection.listings.begin();
                    let (found, is_listed) = ask(&*bucket, name, may_head).await?;
                    let (listings, ttl) = (&connection.listings, bucket.settings().listing_ttl);
                    if is_listed && found == Lookup::Missing {
                        listings.insert_absence(name, began, ttl);
                    } else {
                        listings.insert_name(name, &found, began, ttl);
                    }
                    found
                }
            }
        }
    };
    if found == Lookup::Missing && !connection.unpublished.below(name, &name.prefix()).is_empty() {
        return Ok(Lookup::Directory);
    }
    Ok(found)
}

/// Names looked up at a time.
const LOOKUPS: usize = 16;

/// Returns whether each of these names exists. Those of one directory are looked up in one listing first.
pub(super) async fn all_exist<C: Client>(
    connection: &Connection<C>,
    uris: &[Uri<'_>],
) -> Vec<Result<bool>> {
    let names: Vec<Result<Name>> = uris.iter().map(|uri| C::parse(*uri)).collect();
    let mut of_directory: HashMap<(&str, &str), Vec<&Name>> = HashMap::new();
    for name in names.iter().flatten().filter(|name| !name.is_always_directory()) {
        let known = connection.listings.find(name).is_some();
        if !known && !name.bucket.is_empty() {
            let directory = &name.key[..name.key.rfind('/').map_or(0, |slash| slash + 1)];
            of_directory.entry((&name.bucket, directory)).or_default().push(name);
        }
    }
    let listed = stream::iter(of_directory)
        .filter(|(_, names)| std::future::ready(names.len() > 1))
        .map(|((bucket, directory), names)| async move {
            // An error comes again when the names are looked up one by one.
            let listed = list_together(connection, directory, &names).await.ok()??;
            Some(((bucket, directory), listed))
        })
        .buffer_unordered(LOOKUPS)
        .filter_map(std::future::ready)
        .collect::<HashMap<_, _>>()
        .await;
    let is_listed = |name: &Name| {
        if name.is_always_directory() {
            return None;
        }
        let (directory, child) =
            name.key.split_at(name.key.rfind('/').map_or(0, |slash| slash + 1));
        let listed = listed.get(&(&*name.bucket, directory))?;
        Some(listed.child(child)?.is_some())
    };
    stream::iter(&names)
        .map(|name| async {
            let name = name
                .as_ref()
                .map_err(|error| Error::new(error.code(), error.message().to_owned()))?;
            match is_listed(name) {
                Some(true) => Ok(true),
                Some(false) => {
                    let pending = &connection.unpublished;
                    Ok(pending.get(name).is_some()
                        || !pending.below(name, &name.prefix()).is_empty())
                }
                None => find(connection, name).await.map(|found| found != Lookup::Missing),
            }
        })
        .buffered(LOOKUPS)
        .collect()
        .await
}

/// Lists one page of a directory, with the prefix that these names have in common. Does nothing if they are few, and the
/// store looks them up with less.
async fn list_together<C: Client>(
    connection: &Connection<C>,
    directory: &str,
    names: &[&Name],
) -> Result<Option<ListedRange>> {
    let first = names[0];
    let bucket = connection.bucket(&first.bucket).await?;
    if bucket.supports_lookup() && names.len() <= LOOKUPS {
        return Ok(None);
    }
    let common = names.iter().fold(&first.key[directory.len()..], |common, name| {
        let other = &name.key[directory.len()..];
        let same = common.char_indices().zip(other.chars()).find(|((_, a), b)| a != b);
        let end = same.map_or(common.len().min(other.len()), |((at, _), _)| at);
        &common[..end]
    });
    let options = ListOptions::new(format!("{directory}{common}")).with_delimiter();
    let listed = list_some(connection, &*bucket, first, options, directory, common).await;
    Ok(Some(listed?))
}

/// Lists the first names of a directory, of which those are listed that begin with `names`.
async fn list_some<C: Client>(
    connection: &Connection<C>,
    bucket: &C::Store,
    name: &Name,
    options: ListOptions,
    directory: &str,
    names: &str,
) -> Result<ListedRange, NoPage<<C::Store as ObjectStore>::Error>> {
    let began = connection.listings.begin();
    let mut pages = Pages::new(bucket, name, options);
    let page = pages.next_named().await?.unwrap_or_default();
    let mut found = DirListing::new(directory, names);
    found.add(page, began);
    Ok(found.into_listed(!pages.is_done()))
}

/// Looks up what this name is in the store.
///
/// # Errors
/// If the store refuses to list the name, or to tell of the object.
pub(super) async fn find_in_store<S: ObjectStore>(bucket: &S, name: &Name) -> Result<Lookup> {
    ask(bucket, name, true).await.map(|(found, _)| found)
}

/// Looks up a name in the store. Returns whether the response tells directories: a name that does not exist then has
/// nothing below it.
async fn ask<S: ObjectStore>(bucket: &S, name: &Name, may_head: bool) -> Result<(Lookup, bool)> {
    // The bucket itself is there.
    if bucket.supports_lookup() && !name.key.is_empty() {
        return Ok((request::lookup(bucket, name).await?, true));
    }
    match list_one(bucket, name).await {
        Ok(found) => Ok((found, true)),
        Err(refused) if refused.is(ErrorKind::Unsupported) && !may_head => {
            Ok((Lookup::Missing, false))
        }
        Err(refused) if refused.head_may_tell() => {
            head(bucket, name, refused).await.map(|found| (found, false))
        }
        Err(error) => Err(error.into_error()),
    }
}

/// Looks up a name with a listing.
async fn list_one<S: ObjectStore>(bucket: &S, name: &Name) -> Result<Lookup, NoPage<S::Error>> {
    let is_real = bucket.directories() == Directories::Real;
    if let Some(path) = name.key.strip_suffix('/').filter(|_| is_real) {
        // An empty one has no names, but is one.
        let found = Box::pin(list_one(bucket, &name.with_key(path))).await?;
        return Ok(if found == Lookup::Directory { found } else { Lookup::Missing });
    }
    if name.is_always_directory() {
        let exists = name.key.is_empty() && is_real
            || has_any(bucket, name, name.key.clone()).await?
            || name.key.is_empty();
        return Ok(if exists { Lookup::Directory } else { Lookup::Missing });
    }
    let options = ListOptions::new(&name.key).with_delimiter();
    let mut pages = Pages::new(bucket, name, ListOptions { max_keys: Some(SIBLINGS), ..options });
    let allowance = Allowance::new(bucket.settings());
    loop {
        let Some(page) = pages.next_named().await? else { return Ok(Lookup::Missing) };
        let (is_in_order, names) = (page.is_in_order(), page.names().count());
        if let Some(found) = judge(&name.key, page) {
            return Ok(found);
        }
        // Otherwise the object may be on any page.
        if is_in_order && !is_real {
            break;
        }
        allowance.take(name, names).map_err(NoPage::Broken)?;
    }
    let is_directory = has_any(bucket, name, name.prefix()).await?;
    Ok(if is_directory { Lookup::Directory } else { Lookup::Missing })
}

/// Returns whether any key begins with `prefix`.
async fn has_any<S: ObjectStore>(
    bucket: &S,
    name: &Name,
    prefix: String,
) -> Result<bool, NoPage<S::Error>> {
    let one = ListOptions { max_keys: Some(1), ..ListOptions::new(prefix) };
    let page = Pages::new(bucket, name, one).next_named().await?;
    Ok(page.is_some_and(|page| page.first().is_some()))
}

/// Looks up a name that could not be listed, with a request for the object.
async fn head<S: ObjectStore>(
    bucket: &S,
    name: &Name,
    refused: NoPage<S::Error>,
) -> Result<Lookup> {
    let is_denied = refused.is(ErrorKind::Denied);
    if name.is_always_directory() && is_denied {
        return Err(refused.into_error());
    }
    match request::head(bucket, name).await {
        Ok(Some(meta)) => Ok(Lookup::File(meta)),
        // It may still be a directory.
        Ok(None) if is_denied => Err(refused.into_error().context(format_args!(
            "there is no such object, and whether it is a directory only {} would tell; grant it",
            bucket.terms().permission_to_list
        ))),
        Ok(None) => Ok(Lookup::Missing),
        // To a user who may not list, a store may say the same of an object that does not exist. The response to the
        // listing says more than that to a HEAD, which has no body.
        Err(failure) if is_denied && failure.kind() == ErrorKind::Denied => {
            Err(refused.into_error().context(format_args!(
                "no permission, or no such object: {} would tell which; grant it, or {}",
                bucket.terms().permission_to_list,
                bucket.terms().permission_to_read
            )))
        }
        Err(failure) => Err(failure.into_error()),
    }
}

/// Looks up a name together with those of its directory that begin alike, up to the first dot: [`SIBLINGS`] of them.
/// Does nothing if there are known to be more.
async fn list_siblings<C: Client>(
    connection: &Connection<C>,
    bucket: &C::Store,
    name: &Name,
) -> Result<Option<Lookup>> {
    let (directory, child) = name.key.split_at(name.key.rfind('/').map_or(0, |slash| slash + 1));
    let Some(dot) = child.find('.').filter(|&dot| dot > 0) else { return Ok(None) };
    let alike = &child[..=dot];
    let listings = &connection.listings;
    if listings.is_long(&name.bucket, directory, alike) {
        return Ok(None);
    }
    let options = ListOptions::new(format!("{directory}{alike}")).with_delimiter();
    let options = ListOptions { max_keys: Some(SIBLINGS), ..options };
    let began = listings.begin();
    let listed = match list_some(connection, bucket, name, options, directory, alike).await {
        Ok(listed) => listed,
        // There is another way to look it up.
        Err(refused) if refused.head_may_tell() => return Ok(None),
        Err(error) => return Err(error.into_error()),
    };
    let found = listed.child(child).map(told);
    let ttl = bucket.settings().listing_ttl;
    listings.insert(name, listed, began, ttl, false);
    if let Some(found) = &found {
        listings.insert_name(name, found, began, ttl);
    }
    Ok(found)
}

/// Returns what a listing says of a name, which may be both a file and a directory.
fn told(child: Option<&Child>) -> Lookup {
    match child {
        Some(Child { object: Some(known), .. }) => Lookup::File(known.clone()),
        Some(_) => Lookup::Directory,
        None => Lookup::Missing,
    }
}

/// Looks up a name of a directory whose names are looked up in turn: a listing that begins with this name also shows
/// those that follow.
async fn scan_on<C: Client>(
    connection: &Connection<C>,
    bucket: &C::Store,
    name: &Name,
) -> Result<Option<Lookup>> {
    if !bucket.supports_start_after() {
        return Ok(None);
    }
    let directory = &name.key[..name.key.rfind('/').map_or(0, |slash| slash + 1)];
    let Some(last) = name.key[directory.len()..].chars().next_back() else { return Ok(None) };
    // Just before the name: its last character is replaced by the one before, and a very large one added.
    let mut after = name.key[..name.key.len() - last.len_utf8()].to_owned();
    if let Some(before) = char::from_u32(u32::from(last).wrapping_sub(1)) {
        after.push(before);
        after.push('\u{10fffd}');
    }
    let options = ListOptions::new(directory).with_delimiter();
    let options = ListOptions { start_after: Some(after.clone()), ..options };
    let began = connection.listings.begin();
    let listed = list_some(connection, bucket, name, options, directory, "").await;
    let listed = listed?;
    let listed = ListedRange { after: Some(after[directory.len()..].to_owned()), ..listed };
    let known = listed.child(&name.key[directory.len()..]).map(told);
    let ttl = bucket.settings().listing_ttl;
    connection.listings.insert(name, listed, began, ttl, false);
    Ok(known)
}

/// Returns what a page of the names that begin with `key` says of `key` itself; `None` if the directory may come on a
/// later page.
fn judge(key: &str, page: Page) -> Option<Lookup> {
    let is_past = || page.is_in_order() && page.last().is_some_and(|last| is_past(last, key));
    let is_conclusive = !page.is_truncated() || is_past();
    let is_below = |name: &str| name.strip_prefix(key).is_some_and(|rest| rest.starts_with('/'));
    // A store that ignores the delimiter shows the keys in the directory.
    let is_directory = page.names().any(is_below);
    if let Some(object) = page.objects.into_iter().find(|object| object.key == key) {
        return Some(Lookup::File(object.meta));
    }
    match (is_directory, is_conclusive) {
        (true, _) => Some(Lookup::Directory),
        (false, true) => Some(Lookup::Missing),
        (false, false) => None,
    }
}

/// Returns whether a name that begins with `key` sorts after the directory `key`.
fn is_past(name: &str, key: &str) -> bool {
    name.as_bytes().get(key.len()).is_some_and(|&next| next > b'/')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Object;

    fn judged(objects: &[&str], directories: &[&str], is_truncated: bool) -> Option<Lookup> {
        let object = |key: &&str| Object::new(*key, ObjectMeta::new(key.len() as u64));
        let page = Page {
            objects: objects.iter().map(object).collect(),
            common_prefixes: directories.iter().map(|&key| key.to_owned()).collect(),
            next: is_truncated.then(|| "next".to_owned()),
            ..Page::default()
        };
        judge("k", page)
    }

    #[test]
    fn siblings_do_not_confuse() {
        assert_eq!(judged(&[], &[], false), Some(Lookup::Missing));
        assert!(matches!(judged(&["k"], &["k/"], true), Some(Lookup::File(_))));
        assert!(matches!(judged(&["k", "k-1"], &[], false), Some(Lookup::File(_))));
        assert_eq!(judged(&["k-1"], &["k-2/", "k/"], true), Some(Lookup::Directory));
        assert_eq!(judged(&["k-1", "k.index"], &["k-2/"], false), Some(Lookup::Missing));
        // The page ends before the directory would come.
        assert_eq!(judged(&["k-1", "k.index"], &["k-2/"], true), None);
        assert_eq!(judged(&["k-1", "k0"], &[], true), Some(Lookup::Missing));
        assert_eq!(judged(&["ké"], &[], true), Some(Lookup::Missing));
        // The store ignores the delimiter.
        assert_eq!(judged(&["k/x"], &[], true), Some(Lookup::Directory));
        // Pages that are not in order tell nothing of what they do not show.
        assert_eq!(judged(&["k0", "k-1"], &[], true), None);
        assert_eq!(judged(&["k0", "k-1"], &[], false), Some(Lookup::Missing));
    }
}

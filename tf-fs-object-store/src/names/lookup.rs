//! What a name is: a file, a directory, or nothing.
//!
//! One `ListObjectsV2` tells, where a HEAD tells nothing of directories: the object comes first of all keys
//! that begin with its name, and the directory stands among the few that sort between the two.

use crate::{
    Child, Client, Collected, Connection, Found, Known, Listed, Name, NoPage as _, ObjectStore,
    Page, Query,
};
use futures_util::{StreamExt, stream};
use std::collections::HashMap;
use tf_fs_plugin::prelude::*;

/// Names that are looked at in one request: between an object and the directory of its name, or beside it.
const SIBLINGS: i32 = 100;

/// What this name is for this process.
///
/// # Errors
/// As the store says; `NOT_FOUND` if there is no such bucket.
pub(super) async fn find<C: Client>(connection: &Connection<C>, name: &Name) -> Result<Found> {
    find_by(connection, name, false).await
}

/// As [`find`], for a name that something is to be copied to: others of its kind are likely to be asked for
/// next, as the files of a checkpoint are.
pub(super) async fn find_destination<C: Client>(
    connection: &Connection<C>,
    name: &Name,
) -> Result<Found> {
    find_by(connection, name, true).await
}

async fn find_by<C: Client>(
    connection: &Connection<C>,
    name: &Name,
    with_siblings: bool,
) -> Result<Found> {
    if name.bucket.is_empty() {
        return Ok(if name.key.is_empty() { Found::Directory } else { Found::Nothing });
    }
    if let Some(file) = connection.pending.unpublished(name) {
        return Ok(Found::File(Known {
            size: file.len,
            modified: file.since,
            etag: String::new(),
        }));
    }
    let found = match connection.listings.find(name) {
        Some(found) => found,
        None => {
            let bucket = connection.bucket(&name.bucket).await?;
            let listed = if connection.listings.is_scan(name) {
                scan_on(connection, &bucket, name).await?
            } else if with_siblings {
                list_siblings(connection, &bucket, name).await?
            } else {
                None
            };
            match listed {
                Some(found) => found,
                None => {
                    let began = connection.listings.begin();
                    let (found, is_listed) = ask(&*bucket, name).await?;
                    let (listings, ttl) = (&connection.listings, bucket.settings().listing_ttl);
                    if is_listed && found == Found::Nothing {
                        listings.insert_absence(name, began, ttl);
                    } else {
                        listings.insert_name(name, &found, began, ttl);
                    }
                    found
                }
            }
        }
    };
    if found == Found::Nothing && !connection.pending.below(name, &name.prefix()).is_empty() {
        return Ok(Found::Directory);
    }
    Ok(found)
}

/// Names asked for at a time.
const LOOKUPS: usize = 16;

/// Whether each of these names exists. Those of one directory are looked for in one listing first.
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
            // An error comes again when the names are asked for one by one.
            let listed = list_together(connection, directory, &names).await.ok()?;
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
                    let pending = &connection.pending;
                    Ok(pending.unpublished(name).is_some()
                        || !pending.below(name, &name.prefix()).is_empty())
                }
                None => find(connection, name).await.map(|found| found != Found::Nothing),
            }
        })
        .buffered(LOOKUPS)
        .collect()
        .await
}

/// One page of a directory, as much of it as these names have in common.
async fn list_together<C: Client>(
    connection: &Connection<C>,
    directory: &str,
    names: &[&Name],
) -> Result<Listed> {
    let first = names[0];
    let common = names.iter().fold(&first.key[directory.len()..], |common, name| {
        let other = &name.key[directory.len()..];
        let same = common.char_indices().zip(other.chars()).find(|((_, a), b)| a != b);
        let end = same.map_or(common.len().min(other.len()), |((at, _), _)| at);
        &common[..end]
    });
    let bucket = connection.bucket(&first.bucket).await?;
    let query =
        Query { prefix: format!("{directory}{common}"), by_directory: true, ..Query::default() };
    let began = connection.listings.begin();
    let page = bucket.list(&query, None).await.map_err(|error| error.into_error(first))?;
    let is_truncated = page.is_truncated;
    let mut found = Collected::new(directory, common);
    found.add(page, began);
    Ok(found.into_listed(is_truncated))
}

/// What this name is in the store, asked there.
///
/// # Errors
/// Why the store refuses to list the name, or to tell of the object.
pub async fn find_in_store<S: ObjectStore>(bucket: &S, name: &Name) -> Result<Found> {
    ask(bucket, name).await.map(|(found, _)| found)
}

/// What this name is in the store, and whether a listing said so: what does not exist then has nothing in it.
async fn ask<S: ObjectStore>(bucket: &S, name: &Name) -> Result<(Found, bool)> {
    let one = |prefix: String| Query { prefix, max_keys: Some(1), ..Query::default() };
    if name.is_always_directory() {
        let page = bucket
            .list(&one(name.key.clone()), None)
            .await
            .map_err(|error| error.into_error(name))?;
        let exists = name.key.is_empty() || !page.objects.is_empty();
        return Ok((if exists { Found::Directory } else { Found::Nothing }, true));
    }
    let query = Query {
        prefix: name.key.clone(),
        by_directory: true,
        max_keys: Some(SIBLINGS),
        ..Query::default()
    };
    let page = match bucket.list(&query, None).await {
        Ok(page) => page,
        Err(refused) if refused.head_may_tell() => {
            let known = bucket.head(name, refused).await?;
            return Ok((known.map_or(Found::Nothing, Found::File), false));
        }
        Err(error) => return Err(error.into_error(name)),
    };
    if let Some(found) = judge(&name.key, page) {
        return Ok((found, true));
    }
    let page =
        bucket.list(&one(name.prefix()), None).await.map_err(|error| error.into_error(name))?;
    Ok((if page.objects.is_empty() { Found::Nothing } else { Found::Directory }, true))
}

/// Asks for a name and for those of its directory that begin alike, up to the first dot: [`SIBLINGS`] of them,
/// unless it is known that there are more.
async fn list_siblings<C: Client>(
    connection: &Connection<C>,
    bucket: &C::Store,
    name: &Name,
) -> Result<Option<Found>> {
    let (directory, child) = name.key.split_at(name.key.rfind('/').map_or(0, |slash| slash + 1));
    let Some(dot) = child.find('.').filter(|&dot| dot > 0) else { return Ok(None) };
    let alike = &child[..=dot];
    let listings = &connection.listings;
    if listings.is_long(&name.bucket, directory, alike) {
        return Ok(None);
    }
    let query = Query {
        prefix: format!("{directory}{alike}"),
        by_directory: true,
        max_keys: Some(SIBLINGS),
        ..Query::default()
    };
    let began = listings.begin();
    let page = match bucket.list(&query, None).await {
        Ok(page) => page,
        // There is another way to ask.
        Err(refused) if refused.head_may_tell() => return Ok(None),
        Err(error) => return Err(error.into_error(name)),
    };
    let is_truncated = page.is_truncated;
    let mut found = Collected::new(directory, alike);
    found.add(page, began);
    let listed = found.into_listed(is_truncated);
    let found = listed.child(child).map(told);
    let ttl = bucket.settings().listing_ttl;
    listings.insert(name, listed, began, ttl, false);
    if let Some(found) = &found {
        listings.insert_name(name, found, began, ttl);
    }
    Ok(found)
}

/// What a listing says of a name, which may be both a file and a directory.
fn told(child: Option<&Child>) -> Found {
    match child {
        Some(Child { object: Some(known), .. }) => Found::File(known.clone()),
        Some(_) => Found::Directory,
        None => Found::Nothing,
    }
}

/// Asks for a name of a directory whose names are asked for one after the other: a listing that begins with
/// this name tells of those that follow too.
async fn scan_on<C: Client>(
    connection: &Connection<C>,
    bucket: &C::Store,
    name: &Name,
) -> Result<Option<Found>> {
    let directory = &name.key[..name.key.rfind('/').map_or(0, |slash| slash + 1)];
    let Some(last) = name.key[directory.len()..].chars().next_back() else { return Ok(None) };
    // Just before the name: with its last character replaced by the one before, and much after that.
    let mut after = name.key[..name.key.len() - last.len_utf8()].to_owned();
    if let Some(before) = char::from_u32(u32::from(last).wrapping_sub(1)) {
        after.push(before);
        after.push('\u{10fffd}');
    }
    let query = Query {
        prefix: directory.to_owned(),
        by_directory: true,
        after: Some(after.clone()),
        ..Query::default()
    };
    let began = connection.listings.begin();
    let page = bucket.list(&query, None).await.map_err(|error| error.into_error(name))?;
    let is_truncated = page.is_truncated;
    let mut found = Collected::new(directory, "");
    found.add(page, began);
    let listed = found.into_listed(is_truncated);
    let listed = Listed { after: Some(after[directory.len()..].to_owned()), ..listed };
    let known = listed.child(&name.key[directory.len()..]).map(told);
    let ttl = bucket.settings().listing_ttl;
    connection.listings.insert(name, listed, began, ttl, false);
    Ok(known)
}

/// What a page of the names that begin with `key` says of `key` itself; `None` if the directory may come on
/// a later page.
fn judge(key: &str, page: Page) -> Option<Found> {
    let is_conclusive = !page.is_truncated || page.last().is_some_and(|last| is_past(last, key));
    if let Some(object) = page.objects.into_iter().find(|object| object.key == key) {
        return Some(Found::File(object.known));
    }
    let is_directory =
        page.directories.iter().any(|directory| directory.strip_suffix('/') == Some(key));
    match (is_directory, is_conclusive) {
        (true, _) => Some(Found::Directory),
        (false, true) => Some(Found::Nothing),
        (false, false) => None,
    }
}

/// Whether a name that begins with `key` sorts after the directory `key`.
fn is_past(name: &str, key: &str) -> bool {
    name.as_bytes().get(key.len()).is_some_and(|&next| next > b'/')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Object;
    use std::time::SystemTime;

    fn judged(objects: &[&str], directories: &[&str], is_truncated: bool) -> Option<Found> {
        let known = |key: &str| Known {
            size: key.len() as u64,
            modified: SystemTime::UNIX_EPOCH,
            etag: String::new(),
        };
        let page = Page {
            objects: objects
                .iter()
                .map(|key| Object { key: (*key).to_owned(), known: known(key) })
                .collect(),
            directories: directories.iter().map(|&key| key.to_owned()).collect(),
            is_truncated,
            ..Page::default()
        };
        judge("k", page)
    }

    #[test]
    fn siblings_do_not_confuse() {
        assert_eq!(judged(&[], &[], false), Some(Found::Nothing));
        assert!(matches!(judged(&["k"], &["k/"], true), Some(Found::File(_))));
        assert!(matches!(judged(&["k", "k-1"], &[], false), Some(Found::File(_))));
        assert_eq!(judged(&["k-1"], &["k-2/", "k/"], true), Some(Found::Directory));
        assert_eq!(judged(&["k-1", "k.index"], &["k-2/"], false), Some(Found::Nothing));
        // The page ends before the directory would come.
        assert_eq!(judged(&["k-1", "k.index"], &["k-2/"], true), None);
        assert_eq!(judged(&["k-1", "k0"], &[], true), Some(Found::Nothing));
        assert_eq!(judged(&["ké"], &[], true), Some(Found::Nothing));
    }
}

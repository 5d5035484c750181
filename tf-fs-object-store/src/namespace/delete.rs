//! Deleting files and trees.

use super::pages::Pages;
use super::{lookup, real};
use crate::{
    Client, Connection, Directories, ErrorKind, ListOptions, LocalState, Lookup, Name, ObjectStore,
    StoreError as _, request,
};
use futures_util::StreamExt;
use futures_util::stream;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use tf_fs_plugin::prelude::*;
use tokio::sync::Semaphore;

/// The most deletions in flight. One of several objects counts as [`BATCH`] of them.
const IN_FLIGHT: u32 = 16;
const BATCH: u32 = 4;
/// Pages of a listing whose objects are deleted at a time.
const PAGES: usize = (IN_FLIGHT / BATCH) as usize;
/// The most times that a directory is listed, where each deletion may make the next page begin later. Each listing
/// finds at least half of the objects.
const MAX_LOOKS: u32 = 64;

/// Deletes a file.
///
/// # Errors
/// `NOT_FOUND`; `FAILED_PRECONDITION` for a directory; as the store says.
pub(super) async fn delete_file<C: Client>(connection: &Connection<C>, name: &Name) -> Result<()> {
    let bucket = connection.bucket(&name.bucket).await?;
    let found = match connection.listings.find(name) {
        Some(found) => found,
        None => lookup::find_in_store(&*bucket, name).await?,
    };
    if let Lookup::File(_) = found {
        super::delete(connection, &bucket, name).await?;
    }
    // Only once the store has confirmed it: a file whose deletion failed can still be written.
    match (found, connection.unpublished.delete(name)) {
        (Lookup::File(_), _)
        | (_, LocalState::Unpublished)
        | (Lookup::Missing, LocalState::Abandoned) => {}
        (Lookup::Directory, _) => return Err(Error::expected_file(name)),
        (Lookup::Missing, LocalState::None) => return Err(Error::not_found(name)),
    }
    note_emptied(connection, name);
    Ok(())
}

/// Records that the directory of a deleted file may be gone with it.
pub(super) fn note_emptied<C: Client>(connection: &Connection<C>, name: &Name) {
    if let Some(slash) = name.key.rfind('/') {
        connection.unpublished.emptied(name.with_key(&name.key[..=slash]));
    }
}

/// Deletes a directory with all in it, or a file.
///
/// # Errors
/// `NOT_FOUND`; `FAILED_PRECONDITION` for a whole bucket; as the store says. Counts the names that are left.
pub(super) async fn delete_recursively<C: Client>(
    connection: &Connection<C>,
    name: &Name,
) -> Result<(), DeleteRecursivelyError> {
    ensure!(
        !name.key.is_empty(),
        Error::failed_precondition(format_args!(
            "{name}: this would empty the bucket; name a directory in it"
        ))
    );
    let bucket = connection.bucket(&name.bucket).await?;
    let directory = name.prefix();
    if bucket.directories() == Directories::Real {
        return real::delete_recursively(connection, &bucket, name).await;
    }
    let unpublished = connection.unpublished.below(name, &directory).len();
    let deletion = Deletion::new(connection, &bucket, name);
    let mut found_any = false;
    for look in 1.. {
        let Round { found, pages, left, error } = delete_listed(&deletion, &directory).await;
        found_any |= found;
        connection.listings.invalidate_below(name);
        let is_done = !found || pages <= 1 || bucket.has_stable_page_tokens();
        let error = error.or_else(|| {
            (look >= MAX_LOOKS && !is_done).then(|| {
                Error::new(Code::Aborted, format!(
                    "{name}: objects were there again each of {MAX_LOOKS} times that all were deleted; stop whoever \
                     writes them, and delete it again"
                ))
            })
        });
        match error {
            Some(error) if found_any => return Err(left_over(error, &left, &directory)),
            Some(error) => return Err(error.into()),
            None if is_done => break,
            None => {}
        }
    }
    // Only once all else is gone: a file in a directory that could not be deleted can still be written.
    connection.unpublished.delete_below(name, &directory);
    let was_emptied = connection.unpublished.take_emptied(&name.with_key(directory));
    if found_any || unpublished > 0 {
        return Ok(());
    }
    let deleted = if name.key.ends_with('/') {
        Err(Error::not_found(name))
    } else {
        delete_file(connection, name).await
    };
    match deleted {
        Err(error) if was_emptied && error.code() == Code::NotFound => Ok(()),
        deleted => Ok(deleted?),
    }
}

/// The result of deleting all objects that a listing showed.
#[derive(Default)]
struct Round {
    found: bool,
    pages: usize,
    left: Vec<String>,
    error: Option<Error>,
}

/// Deletes all objects of a directory that a listing shows.
async fn delete_listed<C: Client>(deletion: &Deletion<'_, C>, directory: &str) -> Round {
    let Deletion { bucket, name, .. } = *deletion;
    let pages = Pages::new(bucket, name, ListOptions::new(directory)).stream();
    let mut batches = std::pin::pin!(
        pages
            .map(|page| async {
                match page {
                    Ok(page) => {
                        let keys = page.objects.into_iter().map(|object| object.key);
                        Ok(deletion.delete_objects(keys.collect()).await)
                    }
                    Err(error) => Err(error),
                }
            })
            .buffer_unordered(PAGES)
    );
    let mut round = Round::default();
    let (mut markers, mut is_whole) = (Vec::new(), true);
    // To the end, also after an error: the store may carry out all deletions in flight.
    while let Some(batch) = batches.next().await {
        round.pages += 1;
        match batch {
            Ok(batch) => {
                round.found |= batch.found_any;
                round.left.extend(batch.left);
                round.error = round.error.or(batch.error);
                markers.extend(batch.markers);
                if round.left.len() > bucket.settings().max_listed_names {
                    // Those that follow would stay as well.
                    is_whole = false;
                    break;
                }
            }
            Err(error) => {
                is_whole = false;
                round.error = Some(error);
            }
        }
    }
    if is_whole {
        let Batch { left, error, .. } = deletion.delete_markers(markers, &mut round.left).await;
        round.left.extend(left);
        round.error = round.error.or(error);
    } else {
        // Something that was not listed may be below them.
        round.left.extend(markers);
    }
    round
}

/// Counts what is left: the files, and the directories that stay because of them.
pub(super) fn left_over(error: Error, left: &[String], directory: &str) -> DeleteRecursivelyError {
    let mut directories = BTreeSet::from([directory]);
    for key in left {
        let ends = key.match_indices('/').map(|(slash, _)| slash + 1);
        // The directories above a counted one are counted already.
        for end in ends.rev().take_while(|&end| end > directory.len()) {
            if !directories.insert(&key[..end]) {
                break;
            }
        }
    }
    let files = left.iter().filter(|key| !key.ends_with('/')).count();
    DeleteRecursivelyError { error, files: files as u64, dirs: directories.len() as u64 }
}

/// The deletion of many objects of a bucket.
pub(super) struct Deletion<'a, C: Client> {
    connection: &'a Connection<C>,
    bucket: &'a C::Store,
    /// The directory that all of them are in.
    name: &'a Name,
    /// Whether the store turned out not to delete many at a time.
    one_by_one: AtomicBool,
    /// Whether a failure did not pass in its time: a tree of many requests does not wait as long for each.
    gave_up: AtomicBool,
    in_flight: Semaphore,
}

/// The result of deleting some keys.
#[derive(Default)]
pub(super) struct Batch {
    found_any: bool,
    /// The keys that could not be deleted, and why one of them could not.
    pub(super) left: Vec<String>,
    /// Markers that are still to be deleted.
    markers: Vec<String>,
    pub(super) error: Option<Error>,
}

impl Batch {
    fn failed(&mut self, key: String, error: Error) {
        self.left.push(key);
        self.error = Some(error);
    }
}

impl<'a, C: Client> Deletion<'a, C> {
    pub(super) fn new(connection: &'a Connection<C>, bucket: &'a C::Store, name: &'a Name) -> Self {
        let in_flight = Semaphore::new(IN_FLIGHT as usize);
        Self {
            connection,
            bucket,
            name,
            one_by_one: false.into(),
            gave_up: false.into(),
            in_flight,
        }
    }

    /// Deletes these keys.
    pub(super) async fn delete(&self, keys: Vec<String>) -> Batch {
        let mut objects = self.delete_objects(keys).await;
        let markers = std::mem::take(&mut objects.markers);
        let deleted = self.delete_markers(markers, &mut objects.left).await;
        objects.left.extend(deleted.left);
        objects.error = objects.error.or(deleted.error);
        objects
    }

    /// Deletes these keys, as many with one request as the store takes. Returns markers that the store does not delete with
    /// other keys: they have to wait.
    async fn delete_objects(&self, keys: Vec<String>) -> Batch {
        let found_any = !keys.is_empty();
        let limit = self.bucket.delete_many_limit();
        let (markers, keys): (Vec<String>, Vec<String>) = keys
            .into_iter()
            .partition(|key| key.ends_with('/') && !self.bucket.can_batch_delete(key));
        let (many, single): (Vec<String>, Vec<String>) =
            keys.into_iter().partition(|key| limit > 1 && self.bucket.can_batch_delete(key));
        let mut batch = self.delete_singles(single).await;
        let chunks: Vec<Vec<String>> = many.chunks(limit.max(1)).map(<[String]>::to_vec).collect();
        let chunks = stream::iter(chunks).map(|keys| self.delete_together(keys));
        let mut chunks = std::pin::pin!(chunks.buffer_unordered(PAGES));
        while let Some(chunk) = chunks.next().await {
            batch.left.extend(chunk.left);
            batch.error = chunk.error.or(batch.error);
        }
        Batch { found_any, markers, ..batch }
    }

    /// Deletes the markers of directories, the deepest first: where directories are real, one that is not empty stays. So
    /// do those of which something is among `left`, the keys that could not be deleted, which get sorted.
    async fn delete_markers(&self, mut markers: Vec<String>, left: &mut [String]) -> Batch {
        left.sort_unstable();
        let is_full = |marker: &String, left: &[String]| {
            let first = left.partition_point(|key| key < marker);
            left.get(first).is_some_and(|key| key.starts_with(&**marker))
        };
        markers.retain(|marker| !is_full(marker, left));
        let depth = |marker: &String| marker.matches('/').count();
        markers.sort_unstable_by_key(|marker| Reverse(depth(marker)));
        let mut batch = Batch::default();
        for level in markers.chunk_by(|a, b| depth(a) == depth(b)) {
            let is_empty = |marker: &&String| !is_full(marker, &batch.left);
            let deleted =
                self.delete_singles(level.iter().filter(is_empty).cloned().collect()).await;
            batch.left.extend(deleted.left);
            batch.left.sort_unstable();
            batch.error = batch.error.or(deleted.error);
        }
        batch
    }

    /// Deletes these keys with one request, if the store can.
    async fn delete_together(&self, keys: Vec<String>) -> Batch {
        if keys.len() == 1 || self.one_by_one.load(Ordering::Relaxed) {
            return self.delete_singles(keys).await;
        }
        let permits = self.in_flight.acquire_many(BATCH).await;
        let attempts = if self.gave_up.load(Ordering::Relaxed) { 1 } else { u32::MAX };
        let mut left = request::delete_many(self.bucket, self.name, keys, attempts).await;
        drop(permits);
        // Also after an error: it may still have been done.
        self.connection.listings.invalidate_below(self.name);
        let mut batch = Batch::default();
        match left.last {
            Some(failure) if failure.kind() == ErrorKind::Unsupported => {
                self.one_by_one.store(true, Ordering::Relaxed);
                batch = self.delete_singles(std::mem::take(&mut left.untold)).await;
            }
            Some(failure) => {
                self.gave_up.store(true, Ordering::Relaxed);
                batch.error = Some(failure.into_error());
            }
            None => {}
        }
        batch.left.append(&mut left.untold);
        let mut alone = Vec::new();
        for (key, failure) in left.refused {
            if failure.kind() == ErrorKind::Unsupported {
                alone.push(key);
                continue;
            }
            let name = self.name.with_key(&*key);
            batch.failed(key, failure.into_error(request::DELETE_MANY, &name, 1));
        }
        if !alone.is_empty() {
            self.one_by_one.store(true, Ordering::Relaxed);
            let deleted = self.delete_singles(alone).await;
            batch.left.extend(deleted.left);
            batch.error = batch.error.or(deleted.error);
        }
        batch
    }

    /// Deletes these keys with one request each.
    async fn delete_singles(&self, keys: Vec<String>) -> Batch {
        let singles = stream::iter(keys).map(|key| async {
            let name = self.name.with_key(key);
            let _permit = self.in_flight.acquire().await;
            let deleted = super::delete(self.connection, self.bucket, &name).await;
            (name.key, deleted)
        });
        let mut singles = std::pin::pin!(singles.buffer_unordered(IN_FLIGHT as usize));
        let mut batch = Batch::default();
        while let Some((key, deleted)) = singles.next().await {
            if let Err(error) = deleted {
                batch.failed(key, error);
            }
        }
        batch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_is_counted() {
        let left = |keys: &[&str]| {
            let keys: Vec<String> = keys.iter().map(|&key| key.to_owned()).collect();
            let left = left_over(Error::internal("x"), &keys, "d/");
            (left.files, left.dirs)
        };
        assert_eq!(left(&["d/a"]), (1, 1));
        assert_eq!(left(&["d/a", "d/s/b", "d/s/t/c"]), (3, 3));
        assert_eq!(left(&["d/s/"]), (0, 2));
        assert_eq!(left(&[]), (0, 1));
    }
}

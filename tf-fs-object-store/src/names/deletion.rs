//! Deleting files and trees.

use super::lookup;
use super::pages::Pages;
use crate::{Client, Connection, Found, Name, NotDeleted, ObjectStore, Ours, Page, Query};
use futures_util::StreamExt;
use futures_util::stream;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use tf_fs_plugin::prelude::*;

/// Batches, or single deletions, in flight.
const BATCHES: usize = 4;
const SINGLES: usize = 16;

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
    if let Found::File(_) = found {
        super::delete(connection, &bucket, name).await?;
    }
    // Not before the store has confirmed it: a file whose deletion failed can still be written.
    match (found, connection.pending.delete(name)) {
        (Found::File(_), _) | (_, Ours::Unpublished) | (Found::Nothing, Ours::GivenUp) => {}
        (Found::Directory, _) => return Err(Error::expected_file(name)),
        (Found::Nothing, Ours::No) => return Err(Error::not_found(name)),
    }
    note_emptied(connection, name);
    Ok(())
}

/// The directory that a file was in may be gone with it.
pub(super) fn note_emptied<C: Client>(connection: &Connection<C>, name: &Name) {
    if let Some(slash) = name.key.rfind('/') {
        connection.pending.emptied(name.with_key(&name.key[..=slash]));
    }
}

/// Deletes a directory with all in it, or a file.
///
/// # Errors
/// `NOT_FOUND`; `FAILED_PRECONDITION` for a whole bucket; as the store says. What is left is counted.
pub(super) async fn delete_recursively<C: Client>(
    connection: &Connection<C>,
    name: &Name,
) -> Result<(), Undeleted> {
    ensure!(
        !name.key.is_empty(),
        Error::failed_precondition(format_args!(
            "{name}: this would empty the bucket; name a directory in it"
        ))
    );
    let bucket = connection.bucket(&name.bucket).await?;
    let directory = name.prefix();
    let unpublished = connection.pending.below(name, &directory).len();
    let deletion = Deletion { connection, bucket: &bucket, name, one_by_one: false.into() };
    let query = Query { prefix: directory.clone(), ..Query::default() };
    let pages = Pages::new(&bucket, name, query).stream();
    let mut batches = std::pin::pin!(
        pages
            .map(|page| async {
                match page {
                    Ok(page) => Ok(deletion.delete(page).await),
                    Err(error) => Err(error),
                }
            })
            .buffer_unordered(BATCHES)
    );
    let mut left = Left::default();
    let mut found_any = false;
    // To the end also after an error: the store may carry out all deletions that are on their way.
    while let Some(batch) = batches.next().await {
        match batch {
            Ok(batch) => {
                found_any |= batch.found_any;
                left.files.extend(batch.left);
                left.error = left.error.or(batch.error);
                if left.files.len() > bucket.settings().max_listed_names {
                    // Those that follow would stay as well.
                    break;
                }
            }
            Err(error) => left.error = Some(error),
        }
    }
    connection.listings.changed_below(name);
    if let Some(error) = left.error {
        if !found_any {
            return Err(error.into());
        }
        return Err(left_over(error, &left.files, &directory));
    }
    // Not before all else is gone: a file in a directory that could not be deleted can still be written.
    connection.pending.delete_below(name, &directory);
    let was_emptied = connection.pending.take_emptied(&name.with_key(directory));
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

#[derive(Default)]
struct Left {
    files: Vec<String>,
    error: Option<Error>,
}

/// Counts what is left: the files, and the directories that stay because of them.
fn left_over(error: Error, left: &[String], directory: &str) -> Undeleted {
    let mut directories = BTreeSet::from([directory]);
    for key in left {
        let slashes = key.match_indices('/').map(|(slash, _)| slash + 1);
        directories.extend(slashes.filter(|&end| end > directory.len()).map(|end| &key[..end]));
    }
    let files = left.iter().filter(|key| !key.ends_with('/')).count();
    Undeleted { error, files: files as u64, dirs: directories.len() as u64 }
}

/// Deleting many objects of a bucket.
pub(super) struct Deletion<'a, C: Client> {
    pub(super) connection: &'a Connection<C>,
    pub(super) bucket: &'a C::Store,
    /// The directory that all of them are in.
    pub(super) name: &'a Name,
    /// The store cannot delete many at a time.
    pub(super) one_by_one: AtomicBool,
}

/// What became of a batch.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) found_any: bool,
    /// The keys that could not be deleted, and why one of them could not.
    pub(super) left: Vec<String>,
    pub(super) error: Option<Error>,
}

impl<C: Client> Deletion<'_, C> {
    async fn delete(&self, page: Page) -> Batch {
        self.delete_keys(page.objects.into_iter().map(|object| object.key).collect()).await
    }

    /// Deletes these keys, at most 1,000.
    pub(super) async fn delete_keys(&self, keys: Vec<String>) -> Batch {
        let found_any = !keys.is_empty();
        let (mut many, mut single): (Vec<String>, Vec<String>) =
            keys.into_iter().partition(|key| self.bucket.deletes_together(key));
        let mut batch = Batch { found_any, ..Batch::default() };
        if self.one_by_one.load(Ordering::Relaxed) || many.len() == 1 {
            single.append(&mut many);
        }
        // Each key of an answer may have an error of its own; what may pass is tried once more.
        for is_last in [false, true] {
            if many.is_empty() {
                break;
            }
            let deleted = self.bucket.delete_many(self.name, &many).await;
            // Also after an error: it may have been done all the same.
            self.connection.listings.changed_below(self.name);
            match deleted {
                Some(Ok(failed)) => {
                    many.clear();
                    for NotDeleted { key, error, may_pass } in failed {
                        if may_pass && !is_last {
                            many.push(key);
                        } else {
                            batch.left.push(key);
                            batch.error = Some(error);
                        }
                    }
                }
                None => {
                    self.one_by_one.store(true, Ordering::Relaxed);
                    single.append(&mut many);
                }
                Some(Err(error)) => {
                    batch.left.append(&mut many);
                    batch.error = Some(error);
                }
            }
        }
        let singles = stream::iter(single).map(|key| async {
            let name = self.name.with_key(key);
            let deleted = super::delete(self.connection, self.bucket, &name).await;
            (name.key, deleted)
        });
        let mut singles = std::pin::pin!(singles.buffer_unordered(SINGLES));
        while let Some((key, deleted)) = singles.next().await {
            if let Err(error) = deleted {
                batch.left.push(key);
                batch.error = Some(error);
            }
        }
        batch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_counted() {
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

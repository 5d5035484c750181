//! Deleting files and trees.

use super::lookup;
use super::pages::{Pages, payer};
use super::request;
use crate::connection::{Bucket, Connection};
use crate::failure::failure;
use aws_sdk_s3::error::ProvideErrorMetadata;
use aws_sdk_s3::types::{Delete, ObjectIdentifier};
use futures_util::StreamExt;
use futures_util::stream;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use tf_fs_object_store::{Found, Name, Ours, Page, Query};
use tf_fs_plugin::prelude::*;

/// Batches, or single deletions, in flight.
const BATCHES: usize = 4;
const SINGLES: usize = 16;

/// Deletes a file.
///
/// # Errors
/// `NOT_FOUND`; `FAILED_PRECONDITION` for a directory; as the store says.
pub(super) async fn delete_file(connection: &Connection, name: &Name) -> Result<()> {
    let bucket = connection.bucket(&name.bucket).await?;
    let found = match connection.listings.find(name) {
        Some(found) => found,
        None => lookup::find_in_store(&bucket, name).await?,
    };
    if let Found::File(_) = found {
        request::delete(connection, &bucket, name).await?;
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
pub(super) fn note_emptied(connection: &Connection, name: &Name) {
    if let Some(slash) = name.key.rfind('/') {
        connection.pending.emptied(name.with_key(&name.key[..=slash]));
    }
}

/// Deletes a directory with all in it, or a file.
///
/// # Errors
/// `NOT_FOUND`; `FAILED_PRECONDITION` for a whole bucket; as the store says. What is left is counted.
pub(super) async fn delete_recursively(
    connection: &Connection,
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
                if left.files.len() > bucket.settings.engine.max_listed_names {
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
pub(super) struct Deletion<'a> {
    pub(super) connection: &'a Connection,
    pub(super) bucket: &'a Bucket,
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

impl Deletion<'_> {
    async fn delete(&self, page: Page) -> Batch {
        self.delete_keys(page.objects.into_iter().map(|object| object.key).collect()).await
    }

    /// Deletes these keys, at most 1,000.
    pub(super) async fn delete_keys(&self, keys: Vec<String>) -> Batch {
        let found_any = !keys.is_empty();
        let (mut many, mut single): (Vec<String>, Vec<String>) =
            keys.into_iter().partition(|key| fits_xml(key));
        let mut batch = Batch { found_any, ..Batch::default() };
        if self.one_by_one.load(Ordering::Relaxed) || many.len() == 1 {
            single.append(&mut many);
        }
        // Each key of an answer may have an error of its own; what may pass is tried once more.
        for is_last in [false, true] {
            if many.is_empty() {
                break;
            }
            match self.delete_many(&many).await {
                Ok(failed) => {
                    many.clear();
                    for (key, error, may_pass) in failed {
                        if may_pass && !is_last {
                            many.push(key);
                        } else {
                            batch.left.push(key);
                            batch.error = Some(error);
                        }
                    }
                }
                Err(None) => {
                    self.one_by_one.store(true, Ordering::Relaxed);
                    single.append(&mut many);
                }
                Err(Some(error)) => {
                    batch.left.append(&mut many);
                    batch.error = Some(error);
                }
            }
        }
        let singles = stream::iter(single).map(|key| async {
            let name = self.name.with_key(key);
            let deleted = request::delete(self.connection, self.bucket, &name).await;
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

    /// The keys that could not be deleted, with the reason and whether it may pass. `Err(None)` if the store
    /// cannot do this.
    async fn delete_many(
        &self,
        keys: &[String],
    ) -> Result<Vec<(String, Error, bool)>, Option<Error>> {
        let objects =
            keys.iter().filter_map(|key| ObjectIdentifier::builder().key(key).build().ok());
        let delete = Delete::builder().set_objects(Some(objects.collect())).build();
        let answer = self
            .bucket
            .client
            .delete_objects()
            .bucket(&*self.bucket.name)
            .delete(delete.map_err(|error| Some(Error::internal(error)))?)
            .set_request_payer(payer(self.bucket))
            .send()
            .await;
        // Also after an error: it may have been done all the same.
        self.connection.listings.changed_below(self.name);
        let answer = answer.map_err(|error| {
            let status = error.raw_response().map(|response| response.status().as_u16());
            // Older stores want the sum of the request in another header, or have no such operation.
            let cannot = matches!(status, Some(405 | 501))
                || status == Some(400) && error.code() != Some("MalformedXML");
            (!cannot).then(|| failure("DeleteObjects", self.name, error))
        })?;
        let mut unconfirmed: BTreeSet<&str> = keys.iter().map(String::as_str).collect();
        for deleted in answer.deleted() {
            unconfirmed.remove(deleted.key().unwrap_or_default());
        }
        let mut failed = Vec::new();
        for error in answer.errors() {
            let Some(key) = error.key() else { continue };
            unconfirmed.remove(key);
            let reason = error.code().unwrap_or("no code");
            if reason != "NoSuchKey" {
                let (code, may_pass) = judge(reason);
                let what = error.message().unwrap_or("no message");
                failed.push((key.to_owned(), self.failed(key, code, reason, what), may_pass));
            }
        }
        // An answer that is cut off says nothing of some.
        failed.extend(unconfirmed.into_iter().map(|key| {
            let error =
                self.failed(key, Code::DataLoss, "the store did not confirm it", "try again");
            (key.to_owned(), error, true)
        }));
        Ok(failed)
    }

    #[cold]
    fn failed(&self, key: &str, code: Code, reason: &str, what: &str) -> Error {
        let name = self.name.with_key(key);
        Error::new(code, format!("{name}: DeleteObjects: {reason}: {what}"))
    }
}

/// The code for what the store says of a single key, and whether the reason may pass.
fn judge(code: &str) -> (Code, bool) {
    match code {
        "AccessDenied" | "AllAccessDisabled" => (Code::PermissionDenied, false),
        "InternalError" | "SlowDown" | "ServiceUnavailable" | "RequestTimeout" => {
            (Code::Unavailable, true)
        }
        "InvalidRequest" | "MethodNotAllowed" => (Code::FailedPrecondition, false),
        _ => (Code::Unknown, false),
    }
}

/// Whether XML can carry a key to the store and nothing of it is lost on the way.
fn fits_xml(key: &str) -> bool {
    let is_odd = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{fffe}' | '\u{ffff}');
    !key.contains(is_odd) && key.trim() == key
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

    #[test]
    fn reasons_that_may_pass() {
        assert_eq!(judge("AccessDenied"), (Code::PermissionDenied, false));
        assert_eq!(judge("SlowDown"), (Code::Unavailable, true));
        assert_eq!(judge("NeverHeardOf"), (Code::Unknown, false));
    }

    #[test]
    fn keys_that_xml_would_change() {
        for key in ["a", "a b", "a<&>\"'é😀"] {
            assert!(fits_xml(key), "{key:?}");
        }
        for key in [" a", "a ", "a\u{1}", "a\nb", "a\tb", "a\u{ffff}", "a\u{85}b"] {
            assert!(!fits_xml(key), "{key:?}");
        }
    }
}

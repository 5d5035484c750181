//! How an object becomes visible: once, whole, and never in place of somebody else's.

use super::commit_strategy::{CommitStrategy as _, ConflictOutcome, MissingCheck};
use super::types::{Multipart, Payload, PutOptions, StoredObject};
use crate::request;
use crate::retry::RetryState;
use crate::{Content, ErrorKind, Name, ObjectStore, StoreError};
use std::mem;
use std::time::Duration;
use tf_fs_plugin::prelude::*;
use tokio::time::Instant;

/// Extra time for a store to make one object of many parts, which may take minutes.
pub(super) const COMPLETING: Duration = Duration::from_secs(600);

/// The wait before looking at an object after a second refusal in a row: a store may be behind.
const PAUSE: Duration = Duration::from_millis(100);

/// Makes what was sent visible if [`PutOptions::mode`] holds, and otherwise nothing. `is_open`: whether an earlier
/// attempt for the same content may have been done although it failed. It is set if one of this call may have been.
///
/// # Errors
/// `FAILED_PRECONDITION` if somebody else wrote or deleted the object, and those of the requests.
pub(crate) async fn commit<S: ObjectStore>(
    store: &S,
    to: PutOptions<'_>,
    sent: Payload<'_>,
    is_open: &mut bool,
) -> Result<StoredObject> {
    let mut publication = store.commit_strategy(to, sent);
    let bytes = match sent {
        Payload::Whole(content) => content.len(),
        Payload::Parts { .. } => 0,
    };
    let mut request = request::transfer(store, sent.op(), to.name, bytes);
    if let (Payload::Parts { .. }, Some((time, _))) = (sent, &mut request.deadline) {
        *time += COMPLETING;
    }
    let mut attempts = RetryState::default();
    let (mut has_looked, mut refusals) = (false, 0);
    loop {
        if !mem::take(&mut has_looked)
            && let Some(unchecked) = publication.missing_check()
            && let Some(stored) = look(store, to, sent, *is_open, unchecked).await?
        {
            return Ok(stored);
        }
        let (number, began) = (attempts.next(), Instant::now());
        let failure = match request.attempt(&attempts, publication.send()).await {
            Ok(stored) => {
                *is_open = true;
                if let Some(unchecked) = publication.missing_check() {
                    look_after(store, to.name, &stored, &unchecked).await?;
                }
                return Ok(stored);
            }
            Err(failure) => failure,
        };
        let kind = failure.kind();
        let is_final = !attempts.retry_immediately(&failure);
        let is_refused = kind == ErrorKind::Precondition;
        let is_doubtful = is_refused && publication.has_false_conflicts();
        // A second attempt finds the object of the first in the way, or the upload gone.
        let may_be_ours = *is_open && (is_refused || kind == ErrorKind::NotFound);
        if is_final && (may_be_ours || is_doubtful) {
            if refusals > 0 {
                tokio::time::sleep(PAUSE).await;
            }
            refusals += 1;
            let found = settle(store, to, sent, *is_open, u32::MAX).await;
            let refusal = match found {
                Ok(Ownership::Unchanged) if is_doubtful => publication.on_conflict(&failure, true),
                Ok(Ownership::Theirs) if is_doubtful => publication.on_conflict(&failure, false),
                _ => ConflictOutcome::Conflict,
            };
            match refusal {
                ConflictOutcome::Conflict => {}
                ConflictOutcome::RetryNow => {
                    has_looked = true;
                    continue;
                }
                // The next attempt is preceded by a new look, if any.
                ConflictOutcome::RetryAfter(wait) => {
                    tokio::time::sleep(wait).await;
                    continue;
                }
                ConflictOutcome::Fail(error) => return Err(error),
            }
            let error = failure.into_error(request.op, to.name, number);
            // The upload is gone, and another one may do better.
            let error = match kind {
                ErrorKind::NotFound => error.with_code(Code::Unavailable),
                _ => error,
            };
            return match found {
                Ok(Ownership::Ours(stored)) => Ok(stored),
                // It is unknown what became of the upload.
                Ok(Ownership::Unchanged) if kind == ErrorKind::NotFound => Err(error),
                Ok(Ownership::Unchanged | Ownership::Theirs) => Err(conflict_error(error)),
                Ok(Ownership::Unknown) => Err(unknown_outcome_error(error)),
                Err(error) => Err(unknown_outcome_error(error)),
            };
        }
        if is_final && is_refused {
            return Err(conflict_error(failure.into_error(request.op, to.name, number)));
        }
        // After a permanent failure there is nothing to look for.
        let may_settle = *is_open || kind != ErrorKind::Permanent;
        *is_open |= failure.is_ambiguous();
        match attempts.failed(request.settings, request.op, to.name, failure, began) {
            Ok(wait) => tokio::time::sleep(wait).await,
            Err(failure) => {
                // Enough time was spent on the request itself.
                if *is_open
                    && may_settle
                    && let Ok(Ownership::Ours(stored)) = settle(store, to, sent, true, 2).await
                {
                    return Ok(stored);
                }
                let error = failure.into_error();
                return Err(match (sent, kind) {
                    // The upload, not the file.
                    (Payload::Parts { .. }, ErrorKind::NotFound) => {
                        error.with_code(Code::Unavailable)
                    }
                    _ => error,
                });
            }
        }
    }
}

/// Whose object is there.
enum Ownership {
    Ours(StoredObject),
    /// The one that was there before.
    Unchanged,
    /// Somebody else's, or none.
    Theirs,
    Unknown,
}

/// Finds the object, if it is one of these contents, which earlier publications may have made although they failed.
///
/// # Errors
/// If the store does not tell whether it is one of them.
pub(super) async fn find_ours<S: ObjectStore>(
    store: &S,
    to: PutOptions<'_>,
    contents: &[Content],
) -> Result<Option<StoredObject>> {
    let Ok(Some(found)) = find(store, to.name).await else { return Ok(None) };
    for content in contents {
        match whose(store, to, Payload::Whole(content), found.clone()).await {
            Ok(Ownership::Ours(stored)) => return Ok(Some(stored)),
            Ok(Ownership::Theirs | Ownership::Unchanged) => {}
            Ok(Ownership::Unknown) | Err(_) => {
                return Err(unknown_outcome_error(Error::failed_precondition(format_args!(
                    "{}: put: not sent, since an earlier one failed, and the store shows {}",
                    to.name,
                    shown(Some(&found))
                ))));
            }
        }
    }
    Ok(None)
}

/// Finds out what a failed attempt did, in so many attempts at most. Unless it `is_ambiguous`, the same content is
/// somebody else's.
async fn settle<S: ObjectStore>(
    store: &S,
    to: PutOptions<'_>,
    sent: Payload<'_>,
    is_ambiguous: bool,
    attempts: u32,
) -> Result<Ownership> {
    let found = look_whose(store, to, sent, is_ambiguous, attempts).await;
    let Payload::Parts { id, .. } = sent else { return found };
    if !is_ambiguous || matches!(found, Ok(Ownership::Ours(_))) {
        return found;
    }
    // The store may be about to complete it. Aborting it ends that, or comes too late.
    match request::is_aborted(store, Multipart { name: to.name, id }, attempts).await {
        true => found,
        false => look_whose(store, to, sent, is_ambiguous, attempts).await,
    }
}

async fn look_whose<S: ObjectStore>(
    store: &S,
    to: PutOptions<'_>,
    sent: Payload<'_>,
    is_ambiguous: bool,
    attempts: u32,
) -> Result<Ownership> {
    let found = request::stored(store, to.name, attempts).await;
    match found? {
        Some((found, _)) if is_ambiguous => whose(store, to, sent, found).await,
        found if to.mode.allows(found.as_ref().map(|(found, _)| found)) => Ok(Ownership::Unchanged),
        _ => Ok(Ownership::Theirs),
    }
}

async fn whose<S: ObjectStore>(
    store: &S,
    to: PutOptions<'_>,
    sent: Payload<'_>,
    found: StoredObject,
) -> Result<Ownership> {
    let is_ours = match found.size == sent.size() {
        true => is_ours(store, to.name, sent, &found).await?,
        false => Some(false),
    };
    let is_as_before = to.mode.allows(Some(&found));
    Ok(match is_ours {
        Some(true) => {
            log::debug!("{}: stored, although no acknowledgement came", to.name);
            Ownership::Ours(found)
        }
        Some(false) if !is_as_before => Ownership::Theirs,
        None if to.mode.stored().is_none() || !is_as_before => Ownership::Unknown,
        Some(false) | None => Ownership::Unchanged,
    })
}

/// Returns whether `found` is what was sent, if the store can tell.
pub(super) async fn is_ours<S: ObjectStore>(
    store: &S,
    name: &Name,
    sent: Payload<'_>,
    found: &StoredObject,
) -> Result<Option<bool>> {
    let is_ours = request::is_ours(store, name, sent, found).await;
    Ok(is_ours?)
}

/// Checks that the object is as required, for a store that does not; or finds what an earlier attempt made. Between
/// this and the request somebody else may write.
async fn look<S: ObjectStore>(
    store: &S,
    to: PutOptions<'_>,
    sent: Payload<'_>,
    is_open: bool,
    unchecked: MissingCheck,
) -> Result<Option<StoredObject>> {
    let found = find(store, to.name).await.map_err(|error| match &unchecked.remedy {
        Some(remedy) if error.code() == Code::PermissionDenied => error.context(remedy.clone()),
        _ => error,
    })?;
    if to.mode.allows(found.as_ref()) {
        return Ok(None);
    }
    let error = not_sent(to.name, sent.op(), found.as_ref(), &unchecked);
    // Unless something was sent, the same content is somebody else's.
    let Some(found) = found.filter(|_| is_open) else { return Err(conflict_error(error)) };
    match whose(store, to, sent, found).await {
        Ok(Ownership::Ours(stored)) => Ok(Some(stored)),
        Ok(Ownership::Theirs | Ownership::Unchanged) => Err(conflict_error(error)),
        Ok(Ownership::Unknown) | Err(_) => Err(unknown_outcome_error(error)),
    }
}

/// Checks that the object is as required, before a request of the name `op` that does not.
///
/// # Errors
/// `FAILED_PRECONDITION` if it is not.
pub(super) async fn check<S: ObjectStore>(store: &S, to: PutOptions<'_>, op: &str) -> Result<()> {
    let found = find(store, to.name).await?;
    match to.mode.allows(found.as_ref()) {
        true => Ok(()),
        false => {
            Err(conflict_error(not_sent(to.name, op, found.as_ref(), &MissingCheck::default())))
        }
    }
}

fn not_sent(
    name: &Name,
    op: &str,
    found: Option<&StoredObject>,
    unchecked: &MissingCheck,
) -> Error {
    let (shown, limit) = (shown(found), limit(unchecked));
    Error::failed_precondition(format_args!(
        "{name}: {op}: not sent, since the store shows {shown}{limit}"
    ))
}

/// Checks that what was written is there, for a store that does not prevent others from writing at the same time.
pub(super) async fn look_after<S: ObjectStore>(
    store: &S,
    name: &Name,
    stored: &StoredObject,
    unchecked: &MissingCheck,
) -> Result<()> {
    let found = match find(store, name).await {
        Ok(found) => found,
        Err(error) => {
            // The store has confirmed the write.
            log::warn!("{error:#}; concurrent writes of others were not checked");
            return Ok(());
        }
    };
    ensure!(
        found.as_ref().is_some_and(|found| stored.is_version(found)),
        Error::failed_precondition(format_args!(
            "{name}: another process wrote or deleted the object at the same time: the store shows {} right after this \
             write{}; write to another name",
            shown(found.as_ref()),
            limit(unchecked)
        ))
    );
    Ok(())
}

/// Looks up an object.
pub(super) async fn find<S: ObjectStore>(store: &S, name: &Name) -> Result<Option<StoredObject>> {
    Ok(find_with_attributes(store, name).await?.map(|(stored, _)| stored))
}

/// Looks up an object, and its attributes besides its bytes.
pub(super) async fn find_with_attributes<S: ObjectStore>(
    store: &S,
    name: &Name,
) -> Result<Option<(StoredObject, super::Attributes)>> {
    Ok(request::stored(store, name, u32::MAX).await?)
}

fn limit(unchecked: &MissingCheck) -> String {
    match &*unchecked.what {
        "" => String::new(),
        what => format!(" ({what})"),
    }
}

fn shown(found: Option<&StoredObject>) -> String {
    match found {
        Some(StoredObject { size, etag: Some(etag), .. }) => {
            format!("an object of {size} bytes with the ETag {etag}")
        }
        Some(StoredObject { size, .. }) => format!("an object of {size} bytes"),
        None => "no object".to_owned(),
    }
}

/// Returns the error of a write that found somebody else's object.
#[cold]
pub fn conflict_error(error: Error) -> Error {
    error.with_code(Code::FailedPrecondition).context(
        "another process replaced or deleted the object while it was open for writing, and that version \
         is kept; write to another name",
    )
}

/// Returns the error of a write that found an object, and could not find out whose.
#[cold]
pub fn unknown_outcome_error(error: Error) -> Error {
    error
        .context("it is unknown whether this object or another process's is stored; write it again")
}

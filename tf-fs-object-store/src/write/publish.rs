//! How an object becomes visible: once, whole, and in place of nobody else's.

use super::store::{Before, Sent, Stored, Target};
use crate::request::{self, HEAD};
use crate::retry::Attempts;
use crate::{Class, Content, Failure, Name, ObjectStore};
use std::time::Duration;
use tf_fs_plugin::prelude::*;
use tokio::time::Instant;

/// A store may take minutes to make one object of many parts.
const COMPLETING: Duration = Duration::from_secs(600);

/// Makes `sent` the object, if what is there is as it was before; see
/// [`ObjectStore::publish`](crate::ObjectStore::publish).
pub(crate) async fn publish<S: ObjectStore>(
    store: &S,
    to: Target<'_>,
    sent: Sent<'_>,
    is_open: &mut bool,
) -> Result<Stored> {
    let checks = store.write_limits().is_some_and(|limits| limits.checks_before);
    let must_look = match to.before {
        Before::Anything => false,
        before => !checks || !before.can_be_checked(),
    };
    // The store is not given a condition that it cannot check.
    let before = if to.before.can_be_checked() { to.before } else { &Before::Anything };
    let checked = Target { before, ..to };
    let bytes = match sent {
        Sent::Whole(content) => content.len(),
        Sent::Parts { .. } => 0,
    };
    let mut request = request::transfer(store, sent.op(), to.name, bytes);
    if let (Sent::Parts { .. }, Some((time, _))) = (sent, &mut request.deadline) {
        *time += COMPLETING;
    }
    let mut attempts = Attempts::default();
    loop {
        if must_look && let Some(stored) = look(store, to, sent, *is_open).await? {
            return Ok(stored);
        }
        let (number, began) = (attempts.next(), Instant::now());
        let failure = match request.attempt(send(store, checked, sent, number)).await {
            Ok(stored) => {
                *is_open = true;
                if must_look {
                    look_after(store, to.name, &stored).await?;
                }
                return Ok(stored);
            }
            Err(failure) => failure,
        };
        let class = failure.class();
        let is_final = !attempts.is_spurious(&failure);
        // A second attempt finds the object of the first in the way, or its upload gone.
        if is_final && *is_open && matches!(class, Class::Precondition | Class::NotFound) {
            let error = failure.into_error(request.op, to.name, number);
            // The upload is gone, and another one may do better.
            let error = match class {
                Class::NotFound => error.with_code(Code::Unavailable),
                _ => error,
            };
            return match settle(store, to, sent).await {
                Ok(Found::Ours(stored)) => Ok(stored),
                // Nobody knows what became of the upload.
                Ok(Found::AsBefore) if class == Class::NotFound => Err(error),
                Ok(Found::AsBefore | Found::Theirs) => Err(replaced(error)),
                Ok(Found::Unknown) | Err(_) => Err(unknown(error)),
            };
        }
        if is_final && class == Class::Precondition {
            return Err(replaced(failure.into_error(request.op, to.name, number)));
        }
        *is_open |= matches!(class, Class::Transient | Class::Doubtful);
        match attempts.failed(request.settings, request.op, to.name, failure, began) {
            Ok(wait) => tokio::time::sleep(wait).await,
            Err(failure) => {
                if *is_open && let Ok(Found::Ours(stored)) = settle(store, to, sent).await {
                    return Ok(stored);
                }
                let error = failure.into_error(request.op, to.name);
                return Err(match (sent, class) {
                    // The upload, not the file.
                    (Sent::Parts { .. }, Class::NotFound) => error.with_code(Code::Unavailable),
                    _ => error,
                });
            }
        }
    }
}

async fn send<S: ObjectStore>(
    store: &S,
    to: Target<'_>,
    sent: Sent<'_>,
    attempt: u32,
) -> Result<Stored, S::Failure> {
    match sent {
        Sent::Whole(content) => store.put(to, content, attempt).await,
        Sent::Parts { id, parts } => store.complete_multipart(to, id, parts, attempt).await,
    }
}

/// Whose object is there.
enum Found {
    Ours(Stored),
    /// What was there before.
    AsBefore,
    /// Somebody else's, or none.
    Theirs,
    Unknown,
}

/// The object, if it is one of these contents, which earlier publications may have made although they failed.
///
/// # Errors
/// If the store does not tell whether it is one of them.
pub(super) async fn find_ours<S: ObjectStore>(
    store: &S,
    to: Target<'_>,
    contents: &[Content],
) -> Result<Option<Stored>> {
    let Ok(Some(found)) = find(store, to.name).await else { return Ok(None) };
    for content in contents {
        match whose(store, to, Sent::Whole(content), found.clone()).await {
            Ok(Found::Ours(stored)) => return Ok(Some(stored)),
            Ok(Found::Theirs | Found::AsBefore) => {}
            Ok(Found::Unknown) | Err(_) => {
                return Err(unknown(Error::failed_precondition(format_args!(
                    "{}: put: not sent, since an earlier one failed, and the store shows {}",
                    to.name,
                    shown(Some(&found))
                ))));
            }
        }
    }
    Ok(None)
}

/// Finds out what became of an attempt that failed, but may have been done.
async fn settle<S: ObjectStore>(store: &S, to: Target<'_>, sent: Sent<'_>) -> Result<Found> {
    match find(store, to.name).await? {
        None if to.before.holds(None) => Ok(Found::AsBefore),
        None => Ok(Found::Theirs),
        Some(found) => whose(store, to, sent, found).await,
    }
}

async fn whose<S: ObjectStore>(
    store: &S,
    to: Target<'_>,
    sent: Sent<'_>,
    found: Stored,
) -> Result<Found> {
    let is_ours = match found.size == sent.size() {
        true => is_ours(store, to.name, sent, &found).await?,
        false => Some(false),
    };
    let is_as_before = to.before.holds(Some(&found));
    Ok(match is_ours {
        Some(true) => {
            log::debug!("{}: stored, although no acknowledgement came", to.name);
            Found::Ours(found)
        }
        Some(false) if !is_as_before => Found::Theirs,
        None if to.before.stored().is_none() || !is_as_before => Found::Unknown,
        Some(false) | None => Found::AsBefore,
    })
}

/// Whether `found` is what was sent, if the store can tell.
pub(super) async fn is_ours<S: ObjectStore>(
    store: &S,
    name: &Name,
    sent: Sent<'_>,
    found: &Stored,
) -> Result<Option<bool>> {
    let is_ours = request::is_ours(store, name, sent, found).await;
    is_ours.map_err(|failure| failure.into_error(HEAD, name))
}

/// Looks whether what is there is as it has to be, for a store that does not; or what an earlier attempt made. Between
/// this and the request somebody else may write.
async fn look<S: ObjectStore>(
    store: &S,
    to: Target<'_>,
    sent: Sent<'_>,
    is_open: bool,
) -> Result<Option<Stored>> {
    let found = find(store, to.name).await?;
    if to.before.holds(found.as_ref()) {
        return Ok(None);
    }
    let error = Error::failed_precondition(format_args!(
        "{}: {}: not sent, since the store shows {}",
        to.name,
        sent.op(),
        shown(found.as_ref())
    ));
    // Unless something was sent, the same content is somebody else's.
    let Some(found) = found.filter(|_| is_open) else { return Err(replaced(error)) };
    match whose(store, to, sent, found).await {
        Ok(Found::Ours(stored)) => Ok(Some(stored)),
        Ok(Found::Theirs | Found::AsBefore) => Err(replaced(error)),
        Ok(Found::Unknown) | Err(_) => Err(unknown(error)),
    }
}

/// Looks whether what was written is there, for a store that does not keep others from writing at the same time.
async fn look_after<S: ObjectStore>(store: &S, name: &Name, stored: &Stored) -> Result<()> {
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
             write; write to another name",
            shown(found.as_ref())
        ))
    );
    Ok(())
}

/// What is there.
pub(super) async fn find<S: ObjectStore>(store: &S, name: &Name) -> Result<Option<Stored>> {
    Ok(find_with_attributes(store, name).await?.map(|(stored, _)| stored))
}

/// What is there, and what it has besides its bytes.
pub(super) async fn find_with_attributes<S: ObjectStore>(
    store: &S,
    name: &Name,
) -> Result<Option<(Stored, super::Attributes)>> {
    request::stored(store, name).await.map_err(|failure| failure.into_error(HEAD, name))
}

fn shown(found: Option<&Stored>) -> String {
    match found {
        Some(Stored { size, etag: Some(etag), .. }) => {
            format!("an object of {size} bytes with the ETag {etag}")
        }
        Some(Stored { size, .. }) => format!("an object of {size} bytes"),
        None => "no object".to_owned(),
    }
}

/// The error of a write that found somebody else's object.
#[cold]
pub fn replaced(error: Error) -> Error {
    error.with_code(Code::FailedPrecondition).context(
        "another process replaced or deleted the object while it was open for writing, and that version \
         is kept; write to another name",
    )
}

/// The error of a write that found an object, and could not find out whose.
#[cold]
pub fn unknown(error: Error) -> Error {
    error
        .context("it is unknown whether this object or another process's is stored; write it again")
}

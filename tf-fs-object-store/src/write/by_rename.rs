//! Publication by a temporary name: an object is written under it, and then renamed.
//!
//! Nobody else knows the temporary name. So a second attempt to write it does no harm, and once it is gone, it was renamed.

use super::commit::{self, commit};
use super::types::{Payload, PutMode, PutOptions, StoredObject};
use crate::{Content, ErrorKind, Name, ObjectStore, RenameOptions, request};
use std::cell::Cell;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::SystemTime;
use tf_fs_plugin::prelude::*;

const BEFORE: &str = ".tf-";
const AFTER: &str = ".part";

/// Returns another name in the same directory, which nobody else uses, and which listings do not show.
pub fn temporary_name(name: &Name) -> Name {
    let directory = &name.key[..name.key.rfind('/').map_or(0, |slash| slash + 1)];
    // A forked child has the keys of its parent.
    let random = RandomState::new().hash_one((std::process::id(), SystemTime::now()));
    name.with_key(format!("{directory}{BEFORE}{random:016x}{AFTER}"))
}

/// Returns whether the last component of a key is that of a temporary name.
pub(crate) fn is_temporary(component: &str) -> bool {
    let random = component.strip_prefix(BEFORE).and_then(|rest| rest.strip_suffix(AFTER));
    random.is_some_and(|hex| hex.len() == 16 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Stores a whole object. `is_open` is set if it may have been stored although this failed.
///
/// # Errors
/// As [`commit`].
pub(super) async fn put<S: ObjectStore>(
    store: &Arc<S>,
    to: PutOptions<'_>,
    content: &Content,
    is_open: &mut bool,
) -> Result<StoredObject> {
    let temporary = temporary_name(to.name);
    let staged = PutOptions { name: &temporary, mode: &PutMode::Overwrite, ..to };
    let made = commit(&**store, staged, Payload::Whole(content), &mut false).await;
    publish(store, to, &temporary, made, content.len(), is_open).await
}

/// Renames what was `made` under a temporary name, `size` bytes, if [`PutOptions::mode`] holds. Otherwise deletes it.
///
/// # Errors
/// As [`commit`], and the error of `made`.
pub(super) async fn publish<S: ObjectStore>(
    store: &Arc<S>,
    to: PutOptions<'_>,
    temporary: &Name,
    made: Result<StoredObject>,
    size: u64,
    is_open: &mut bool,
) -> Result<StoredObject> {
    let published = match made {
        Ok(made) if made.size != size => Err(Error::data_loss(format_args!(
            "{}: the store says that it has {} bytes of the {size} that were written; write it again",
            to.name, made.size
        ))),
        Ok(_) => rename(store, to, temporary, size, is_open).await,
        Err(error) => Err(error.context(to.name)),
    };
    if published.is_err() {
        request::discard(&**store, temporary).await;
    }
    published
}

async fn rename<S: ObjectStore>(
    store: &Arc<S>,
    to: PutOptions<'_>,
    temporary: &Name,
    size: u64,
    is_open: &mut bool,
) -> Result<StoredObject> {
    let checks = match to.mode {
        PutMode::Overwrite => true,
        PutMode::Create => store.write_limits().is_some_and(|limits| limits.checks_create),
        PutMode::Update(_) => false,
    };
    if !checks {
        commit::check(&**store, to, request::RENAME).await?;
    }
    let may_be_done = Cell::new(false);
    let replace = *to.mode != PutMode::Create || !checks;
    let options = RenameOptions { src: temporary, dst: to.name, replace };
    let renamed = request::rename(store, store, options, &may_be_done).await;
    let known = match renamed {
        Ok(known) => known,
        Err(failure) if may_be_done.get() => match request::stored(&**store, temporary, 2).await {
            Ok(None) => None,
            Ok(Some(_)) => return Err(refused(failure.kind(), failure.into_error())),
            Err(_) => {
                *is_open = true;
                return Err(failure.into_error());
            }
        },
        Err(failure) => return Err(refused(failure.kind(), failure.into_error())),
    };
    let known = known.and_then(|meta| {
        let stored = StoredObject::new(meta.size?).with_etag(meta.etag);
        Some(stored.with_modified(meta.modified))
    });
    match known {
        Some(stored) => Ok(stored),
        None => found(&**store, to.name, size).await,
    }
}

/// Returns the error of a rename that was not done.
fn refused(kind: ErrorKind, error: Error) -> Error {
    match kind {
        ErrorKind::Precondition => commit::conflict_error(error),
        // The temporary object, not the file.
        ErrorKind::NotFound => error.with_code(Code::Unavailable),
        _ => error,
    }
}

/// Returns what a renamed object is.
async fn found<S: ObjectStore>(store: &S, name: &Name, size: u64) -> Result<StoredObject> {
    match commit::find(store, name).await {
        Ok(Some(stored)) if stored.size == size => Ok(stored),
        Ok(_) => Err(Error::failed_precondition(format_args!(
            "{name}: another process wrote or deleted the object at the same time; write to another name"
        ))),
        Err(error) => {
            // The store has confirmed the rename.
            log::warn!("{error:#}; what another process wrote at the same time was not checked");
            Ok(StoredObject::new(size))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_names_are_told_from_others() {
        for key in ["f", "d/e/f", "d/.tf-x"] {
            let (one, other) = (
                temporary_name(&Name::new("mem", "b", key)),
                temporary_name(&Name::new("mem", "b", key)),
            );
            assert_ne!(one, other);
            let (directory, component) = one.key.split_at(one.key.len() - 25);
            assert_eq!(directory, &key[..key.len() - key.rsplit('/').next().unwrap().len()]);
            assert!(is_temporary(component), "{one}");
        }
        for component in
            ["f", ".tf-.part", ".tf-0123456789abcdeg.part", ".tf-0123456789abcdef.par", ""]
        {
            assert!(!is_temporary(component), "{component}");
        }
    }
}

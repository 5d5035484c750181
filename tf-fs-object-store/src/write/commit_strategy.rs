//! What a store does to make an object visible, where stores differ.

use super::types::{Payload, PutMode, PutOptions, StoredObject};
use crate::{ObjectStore, StoreError};
use std::future::Future;
use std::time::Duration;
use tf_fs_plugin::prelude::*;

/// The publication of one content as an object, in as many attempts as it takes; see
/// [`ObjectStore::commit_strategy`](crate::ObjectStore::commit_strategy).
///
/// The engine retries [`send`](Self::send) by kind, and finds out what an attempt did whose response was lost.
pub trait CommitStrategy: Send {
    /// Why an attempt failed.
    type Error: StoreError;

    /// Returns what the store is not known to check in the next attempt, or was not known to check in one that
    /// succeeded. Then the engine looks at the object before and after the attempt, and what another process writes in
    /// between is lost. `None` if the store replaces nobody else's object.
    fn missing_check(&self) -> Option<MissingCheck>;

    /// Makes one attempt.
    ///
    /// # Errors
    /// As [`ObjectStore::put`](crate::ObjectStore::put) and
    /// [`ObjectStore::complete_multipart`](crate::ObjectStore::complete_multipart).
    fn send(&mut self) -> impl Future<Output = Result<StoredObject, Self::Error>> + Send;

    /// Returns whether the store may refuse a condition that holds. Then the engine looks at the object after each
    /// [`ErrorKind::Precondition`](crate::ErrorKind::Precondition), and [`on_conflict`](Self::on_conflict) decides.
    fn has_false_conflicts(&self) -> bool {
        false
    }

    /// Returns what an attempt was refused for that failed with [`ErrorKind::Precondition`](crate::ErrorKind::Precondition).
    /// `is_as_before`: the engine has looked since, and the object is as required.
    fn on_conflict(&mut self, _failure: &Self::Error, _is_as_before: bool) -> ConflictOutcome {
        ConflictOutcome::Conflict
    }
}

/// What an attempt was refused for.
#[derive(Debug)]
pub enum ConflictOutcome {
    /// Somebody else's object, or a missing one.
    Conflict,
    /// Nothing: another attempt is made at once.
    RetryNow,
    /// Nothing: another attempt is made after this time.
    RetryAfter(Duration),
    /// Nothing, and no further attempt helps: the error for the user.
    Fail(Error),
}

/// What a store is not known to check, for errors.
#[derive(Clone, Debug, Default)]
pub struct MissingCheck {
    /// What that is: `the store does not check If-Match`. Empty if there is nothing to tell.
    pub what: String,
    /// What users can do who may not look at objects.
    pub remedy: Option<String>,
}

/// The publication of most stores.
#[derive(Debug)]
pub(crate) struct DefaultCommit<'a, S> {
    store: &'a S,
    to: PutOptions<'a>,
    sent: Payload<'a>,
}

impl<'a, S: ObjectStore> DefaultCommit<'a, S> {
    pub(crate) fn new(store: &'a S, to: PutOptions<'a>, sent: Payload<'a>) -> Self {
        Self { store, to, sent }
    }
}

impl<S: ObjectStore> CommitStrategy for DefaultCommit<'_, S> {
    type Error = S::Error;

    fn missing_check(&self) -> Option<MissingCheck> {
        let checks = self.store.write_limits().is_some_and(|limits| limits.checks_conditions);
        let mode = self.to.mode;
        let is_free = *mode == PutMode::Overwrite || checks && mode.is_checkable();
        (!is_free).then(MissingCheck::default)
    }

    async fn send(&mut self) -> Result<StoredObject, S::Error> {
        // The store is not given a condition that it cannot check.
        let mode = if self.to.mode.is_checkable() { self.to.mode } else { &PutMode::Overwrite };
        let to = PutOptions { mode, ..self.to };
        match self.sent {
            Payload::Whole(content) => self.store.put(to, content).await,
            Payload::Parts { id, parts } => self.store.complete_multipart(to, id, parts).await,
        }
    }
}

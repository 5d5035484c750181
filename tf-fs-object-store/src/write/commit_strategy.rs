//! How a store makes an object visible, where stores differ.

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

/// How to continue after a refused attempt.
#[derive(Debug)]
pub enum ConflictOutcome {
    /// Fail: another writer's object is there, or the object is missing.
    Conflict,
    /// Make another attempt at once.
    RetryNow,
    /// Make another attempt after this time.
    RetryAfter(Duration),
    /// Fail with this error: no further attempt helps.
    Fail(Error),
}

/// The condition that a store is not known to check, for errors.
#[derive(Clone, Debug, Default)]
pub struct MissingCheck {
    /// What that is: `the store does not check If-Match`. Empty if there is nothing to tell.
    pub what: String,
    /// The next step for users who may not look at objects.
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

    /// Returns whether the store checks the condition.
    fn is_checked(&self) -> bool {
        self.store.write_limits().is_some_and(|limits| self.to.mode.is_checked(&limits))
    }
}

impl<S: ObjectStore> CommitStrategy for DefaultCommit<'_, S> {
    type Error = S::Error;

    fn missing_check(&self) -> Option<MissingCheck> {
        (!self.is_checked()).then(MissingCheck::default)
    }

    async fn send(&mut self) -> Result<StoredObject, S::Error> {
        // The store is not given a condition that it cannot check.
        let mode = if self.is_checked() { self.to.mode } else { &PutMode::Overwrite };
        let to = PutOptions { mode, ..self.to };
        match self.sent {
            Payload::Whole(content) => self.store.put(to, content).await,
            Payload::Parts { id, parts } => self.store.complete_multipart(to, id, parts).await,
        }
    }
}

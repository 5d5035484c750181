//! What a store does to make an object visible, where stores differ.

use super::store::{Before, Sent, Stored, Target};
use crate::{Failure, ObjectStore};
use std::future::Future;
use std::time::Duration;
use tf_fs_plugin::prelude::*;

/// The publication of one content as an object, in as many attempts as it takes; see
/// [`ObjectStore::publication`](crate::ObjectStore::publication).
///
/// The engine retries [`send`](Self::send) by class, and finds out what an attempt did whose response was lost.
pub trait Publication: Send {
    /// Why an attempt failed.
    type Failure: Failure;

    /// Returns what the store is not known to check in the next attempt, or was not known to check in one that
    /// succeeded. Then the engine looks at the object before and after the attempt, and what another process writes in
    /// between is lost. `None` if the store replaces nobody else's object.
    fn unchecked(&self) -> Option<Unchecked>;

    /// Makes one attempt.
    ///
    /// # Errors
    /// As [`ObjectStore::put`](crate::ObjectStore::put) and
    /// [`ObjectStore::complete_multipart`](crate::ObjectStore::complete_multipart).
    fn send(&mut self) -> impl Future<Output = Result<Stored, Self::Failure>> + Send;

    /// Returns whether the store may refuse a condition that holds. Then the engine looks at the object after each
    /// [`Class::Precondition`](crate::Class::Precondition), and [`refused`](Self::refused) decides.
    fn doubts_refusals(&self) -> bool {
        false
    }

    /// Returns what an attempt was refused for that failed with [`Class::Precondition`](crate::Class::Precondition).
    /// `is_as_before`: the engine has looked since, and the object is as required.
    fn refused(&mut self, _failure: &Self::Failure, _is_as_before: bool) -> Refusal {
        Refusal::Theirs
    }
}

/// What an attempt was refused for.
#[derive(Debug)]
pub enum Refusal {
    /// Somebody else's object, or a missing one.
    Theirs,
    /// Nothing: another attempt is made at once.
    Again,
    /// Nothing: another attempt is made after this time.
    After(Duration),
    /// Nothing, and no further attempt helps: the error for the user.
    Wrong(Error),
}

/// What a store is not known to check, for errors.
#[derive(Clone, Debug, Default)]
pub struct Unchecked {
    /// What that is: `the store does not check If-Match`. Empty if there is nothing to tell.
    pub what: String,
    /// What users can do who may not look at objects.
    pub remedy: Option<String>,
}

/// The publication of most stores.
#[derive(Debug)]
pub(crate) struct Plain<'a, S> {
    store: &'a S,
    to: Target<'a>,
    sent: Sent<'a>,
}

impl<'a, S: ObjectStore> Plain<'a, S> {
    pub(crate) fn new(store: &'a S, to: Target<'a>, sent: Sent<'a>) -> Self {
        Self { store, to, sent }
    }
}

impl<S: ObjectStore> Publication for Plain<'_, S> {
    type Failure = S::Failure;

    fn unchecked(&self) -> Option<Unchecked> {
        let checks = self.store.write_limits().is_some_and(|limits| limits.checks_before);
        let before = self.to.before;
        let is_free = *before == Before::Anything || checks && before.can_be_checked();
        (!is_free).then(Unchecked::default)
    }

    async fn send(&mut self) -> Result<Stored, S::Failure> {
        // The store is not given a condition that it cannot check.
        let before =
            if self.to.before.can_be_checked() { self.to.before } else { &Before::Anything };
        let to = Target { before, ..self.to };
        match self.sent {
            Sent::Whole(content) => self.store.put(to, content).await,
            Sent::Parts { id, parts } => self.store.complete_multipart(to, id, parts).await,
        }
    }
}

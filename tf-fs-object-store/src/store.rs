//! What the author of a store implements.

use crate::{Range, Settings};
use bytes::BufMut;
use std::fmt::{Debug, Display};
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tf_fs_plugin::prelude::*;

/// An account of a store: opens its buckets.
///
/// A plugin has one a process and settings. The engine makes it again in a forked child.
pub trait Client: Debug + Send + Sync + 'static {
    /// A bucket of the store.
    type Store: ObjectStore;

    /// Finds out how the bucket of this name is reached. The engine keeps what comes of it. It makes no request to the
    /// bucket: whether it exists is for the first operation to say.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if the settings are wrong.
    fn open(&self, bucket: &Arc<str>) -> impl Future<Output = Result<Self::Store>> + Send;
}

/// A bucket of a store, or what the store calls one: a container.
///
/// Each method is one request, made once. The engine decides when to make it, and repeats what [`Failure::class`] says
/// may pass. All futures run on the engine's threads, or on the thread of TensorFlow that waits for them; they are dropped
/// to cancel the request.
pub trait ObjectStore: Debug + Send + Sync + 'static {
    /// Why a request failed.
    type Failure: Failure;
    /// The bytes of a response.
    type Body: Body<Failure = Self::Failure>;

    /// How the engine uses this bucket.
    fn settings(&self) -> &Settings;

    /// Where requests go, for errors: scheme, host and port of a URL. Empty if there is nothing to tell.
    fn endpoint(&self) -> String {
        String::new()
    }

    /// Requests a range of an object, for the `attempt`th time, counted from 1, and returns at the head of the response.
    ///
    /// One request tells size, version and modification time: the engine opens a file with it, and needs no other one.
    /// The range may begin past the end only if `options.if_match` is `None`; then an empty body and the size are a
    /// success.
    ///
    /// # Errors
    /// - [`Failure::changed`] if `options.if_match` names another version: `FAILED_PRECONDITION` for the user. A store
    ///   without conditions compares the version of its response. One without versions returns `None` as
    ///   [`Head::etag`]; then only the size shows that an object changed.
    /// - [`Class::NotFound`] if there is no such object. At the opening of a file the engine then looks whether it is a
    ///   directory.
    /// - Others by class.
    fn get(
        &self,
        options: GetOptions<'_>,
        attempt: u32,
    ) -> impl Future<Output = Result<(Head, Self::Body), Self::Failure>> + Send;
}

/// What to get.
#[derive(Clone, Copy, Debug)]
pub struct GetOptions<'a> {
    /// The exact key.
    pub key: &'a str,
    /// The bytes. Its end may be past that of the object.
    pub range: Range,
    /// The version that the object has to have, as [`Head::etag`] told it.
    pub if_match: Option<&'a str>,
}

/// What a response tells of the object and of its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Bytes of the whole object.
    pub size: u64,
    /// The version, as the store writes it: with its quotes, if it has some. `None` if the store does not tell.
    pub etag: Option<String>,
    /// Where the body ends, as a position in the object: what was requested, or the end of the object.
    pub end: u64,
    /// When it was last written, if the store tells.
    pub modified: Option<SystemTime>,
}

/// The bytes of a response, as they arrive. Dropping it ends the request.
pub trait Body: Send {
    /// Why they do not arrive.
    type Failure;

    /// Adds bytes to `to` as soon as there are some, and returns how many: 0 at the end, or if there is no room.
    ///
    /// `to` may be TensorFlow's own buffer. A store reads its socket straight into it, and copies nothing. Dropping the
    /// future loses no byte that was added.
    ///
    /// # Errors
    /// If the response breaks off, or is not what its head told. The engine gets the rest by another request. That nothing
    /// arrives for too long it notices itself.
    fn fill(
        &mut self,
        to: &mut (impl BufMut + Send + ?Sized),
    ) -> impl Future<Output = Result<usize, Self::Failure>> + Send;
}

/// Why one attempt of a request failed.
pub trait Failure: Debug + Send + Sync + Sized + 'static {
    /// The object is not the version that was requested.
    fn changed() -> Self;

    /// Nothing, or next to nothing, arrived from this [endpoint](ObjectStore::endpoint) for as long.
    fn stalled(endpoint: String, time: Duration) -> Self;

    /// The response contradicts itself or the request.
    fn invalid(how: &str) -> Self;

    /// Whether another attempt can help.
    fn class(&self) -> Class;

    /// Whether the failure says nothing of the store's health, so that another attempt is made at once and is not
    /// counted: a connection that the store had closed while it was idle, or an error whose reason the store named
    /// and that is corrected now.
    fn is_spurious(&self) -> bool {
        false
    }

    /// How long the store wants to be left alone. Honoured up to [`LONGEST_RETRY_AFTER`](crate::LONGEST_RETRY_AFTER).
    fn retry_after(&self) -> Option<Duration> {
        None
    }

    /// What went wrong, for the log.
    fn summary(&self) -> String;

    /// The error for the user, once no further attempt is made: `op` on `what` failed `attempts` times.
    fn into_error(self, op: &str, what: &dyn Display, attempts: u32) -> Error;
}

/// Whether another attempt can help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// There is no such object. It is not requested again.
    NotFound,
    /// It may pass: no connection, an overloaded store. Attempts go on for [`Settings::retry_timeout`].
    Transient,
    /// It hardly passes with time: a response that cannot be right, a certificate that is not trusted. There are
    /// [`WRONG_ANSWERS`](crate::WRONG_ANSWERS) attempts.
    Doubtful,
    /// The store refused. It is not requested again.
    Permanent,
}

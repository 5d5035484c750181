//! Uploads from the first byte to the last, for stores without numbered parts.

use super::commit::{self, COMPLETING};
use super::types::{PutMode, StoredObject};
use super::upload::{WriteTarget, lost_task};
use crate::retry::{FinalError, RetryState};
use crate::{Content, ErrorKind, Name, ObjectStore, Process, Publication, StoreError, request};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use tf_fs_plugin::prelude::*;
use tokio::task::JoinHandle;

/// An upload of one object from its first byte to its last; see
/// [`ObjectStore::start_upload`](crate::ObjectStore::start_upload).
///
/// One method runs at a time. The engine repeats none of them: a client that can retries by itself, within one call. Dropping
/// an upload ends it like [`abort`](Self::abort), as far as that needs no request.
pub trait Upload: Send + 'static {
    /// Why a request failed.
    type Error: StoreError;

    /// Sends the next bytes. They may become visible only with [`Publication::Rename`] and [`Publication::InPlace`].
    ///
    /// # Errors
    /// Of any kind: the engine aborts the upload, and the file cannot be completed.
    fn append(&mut self, content: &Content)
    -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Makes the object of all bytes, if [`PutOptions::mode`](crate::PutOptions::mode) holds, and otherwise nothing.
    ///
    /// # Errors
    /// As [`put`](crate::ObjectStore::put). After a failure that is [ambiguous](StoreError::is_ambiguous) the engine looks what is
    /// there.
    fn commit(&mut self) -> impl Future<Output = Result<StoredObject, Self::Error>> + Send;

    /// Ends the upload without an object. It is not called after a commit that succeeded.
    ///
    /// # Errors
    /// By kind: the log says that something may be left.
    fn abort(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send;
}

/// Any [`Upload`] of a store.
pub struct BoxUpload<E>(Box<dyn AnyUpload<E>>);

impl<E: StoreError> BoxUpload<E> {
    /// Boxes an upload.
    pub fn new(upload: impl Upload<Error = E>) -> Self {
        Self(Box::new(upload))
    }
}

impl<E> fmt::Debug for BoxUpload<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoxUpload").finish_non_exhaustive()
    }
}

impl<E: StoreError> BoxUpload<E> {
    pub(crate) async fn append(&mut self, content: &Content) -> Result<(), E> {
        self.0.append_boxed(content).await
    }

    pub(crate) async fn commit(&mut self) -> Result<StoredObject, E> {
        self.0.commit_boxed().await
    }

    pub(crate) async fn abort(&mut self) -> Result<(), E> {
        self.0.abort_boxed().await
    }
}

/// An [`Upload`] whose type is not known.
trait AnyUpload<E>: Send {
    fn append_boxed<'a>(&'a mut self, content: &'a Content) -> BoxFuture<'a, Result<(), E>>;
    fn commit_boxed(&mut self) -> BoxFuture<'_, Result<StoredObject, E>>;
    fn abort_boxed(&mut self) -> BoxFuture<'_, Result<(), E>>;
}

impl<U: Upload> AnyUpload<U::Error> for U {
    fn append_boxed<'a>(&'a mut self, content: &'a Content) -> BoxFuture<'a, Result<(), U::Error>> {
        self.append(content).boxed()
    }

    fn commit_boxed(&mut self) -> BoxFuture<'_, Result<StoredObject, U::Error>> {
        self.commit().boxed()
    }

    fn abort_boxed(&mut self) -> BoxFuture<'_, Result<(), U::Error>> {
        self.abort().boxed()
    }
}

/// The store's upload, or why there is none.
type State<S> = Result<BoxUpload<<S as ObjectStore>::Error>>;

/// An upload in progress. It has to be aborted before it is dropped, unless it was [completed](Self::complete).
#[derive(Debug)]
pub(super) struct Sequence<S: ObjectStore> {
    object: Arc<WriteTarget<S>>,
    process: Arc<Process>,
    /// The last request; each waits for the one before. `None` once the upload is completed or has failed.
    last: Option<JoinHandle<State<S>>>,
    /// How many requests with bytes are not known to have ended.
    in_flight: usize,
    len: u64,
    /// The precondition for completing it.
    mode: PutMode,
}

impl<S: ObjectStore> Sequence<S> {
    /// Begins an upload, in the background. It becomes an object if `mode` still allows it then.
    pub(super) fn start(
        object: &Arc<WriteTarget<S>>,
        process: &Arc<Process>,
        mode: PutMode,
    ) -> Self {
        let start = start(Arc::clone(object), mode.clone());
        Self {
            object: Arc::clone(object),
            process: Arc::clone(process),
            last: Some(process.spawn(start)),
            in_flight: 0,
            len: 0,
            mode,
        }
    }

    pub(super) fn name(&self) -> &Name {
        &self.object.name
    }

    pub(super) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Sends the next bytes, in the background.
    pub(super) fn send(&mut self, content: Content) {
        self.len += content.len();
        if let Some(before) = self.last.take() {
            self.in_flight += 1;
            let append = append(Arc::clone(&self.object), before, content);
            self.last = Some(self.process.spawn(append));
        }
    }

    /// Waits until all that is in flight has arrived.
    ///
    /// # Errors
    /// If it failed.
    pub(super) async fn arrival(&mut self) -> Result<()> {
        let Some(last) = &mut self.last else { return Ok(()) };
        let state = last.await;
        self.in_flight = 0;
        self.last = None;
        let upload = state.map_err(lost_task).and_then(|state| state)?;
        self.last = Some(self.process.spawn(std::future::ready(Ok(upload))));
        Ok(())
    }

    /// Returns whether nothing is in flight, or what was has failed, without waiting.
    ///
    /// # Errors
    /// If it failed.
    pub(super) fn arrivals(&mut self) -> Result<()> {
        match self.in_flight > 0 && self.last.as_ref().is_some_and(JoinHandle::is_finished) {
            true => self.arrival().now_or_never().unwrap_or(Ok(())),
            false => Ok(()),
        }
    }

    /// Makes the object.
    ///
    /// # Errors
    /// As [`commit`](commit::commit), for any bytes too.
    pub(super) async fn complete(&mut self) -> Result<StoredObject> {
        let Some(last) = self.last.take() else {
            return Err(Error::internal("an upload that has ended is completed"));
        };
        let mut upload = last.await.map_err(lost_task).and_then(|state| state)?;
        self.in_flight = 0;
        let (store, to) = (&*self.object.store, self.object.target(&self.mode));
        let is_checked = is_checked(store, &self.mode);
        if !is_checked && let Err(error) = commit::check(store, to, request::UPLOAD).await {
            abort(&self.object, &mut upload).await;
            return Err(error);
        }
        let mut request = request::transfer(store, request::UPLOAD, to.name, 0);
        if let Some((time, _)) = &mut request.deadline {
            *time += COMPLETING;
        }
        match request.attempt(&RetryState::default(), upload.commit()).await {
            Ok(stored) => {
                if !is_checked {
                    commit::look_after(store, to.name, &stored, &Default::default()).await?;
                }
                Ok(stored)
            }
            Err(failure) => {
                let is_refused = failure.kind() == ErrorKind::Precondition;
                let is_open = failure.is_ambiguous();
                let error = FinalError::of(failure, request.op, to.name).into_error();
                let outcome = match (is_refused, is_open) {
                    (true, _) => Err(commit::conflict_error(error)),
                    (_, true) => self.settle(error).await,
                    _ => Err(error),
                };
                if outcome.is_err() {
                    abort(&self.object, &mut upload).await;
                }
                outcome
            }
        }
    }

    /// Finds out what a commit did whose response was lost.
    async fn settle(&self, error: Error) -> Result<StoredObject> {
        let Ok(found) = request::stored(&*self.object.store, self.name(), 2).await else {
            return Err(error);
        };
        let limits = self.object.store.write_limits();
        let is_private = limits.is_some_and(|limits| limits.publication == Publication::Rename);
        match found {
            Some((found, _)) if found.size == self.len => match is_private {
                true => Ok(found),
                false => Err(commit::unknown_outcome_error(error)),
            },
            _ => Err(error),
        }
    }

    /// Aborts the upload, in the background.
    pub(super) fn abort(self) -> JoinHandle<()> {
        let Self { object, process, last, .. } = self;
        process.spawn(async move {
            let Some(last) = last else { return };
            if let Ok(Ok(mut upload)) = last.await {
                abort(&object, &mut upload).await;
            }
        })
    }
}

/// Returns whether the store checks the condition of an upload.
fn is_checked<S: ObjectStore>(store: &S, mode: &PutMode) -> bool {
    store.write_limits().is_some_and(|limits| mode.is_checked(&limits))
}

async fn start<S: ObjectStore>(object: Arc<WriteTarget<S>>, mode: PutMode) -> State<S> {
    let mode = if is_checked(&*object.store, &mode) { mode } else { PutMode::Overwrite };
    Ok(request::start_upload(&*object.store, object.target(&mode)).await?)
}

async fn append<S: ObjectStore>(
    object: Arc<WriteTarget<S>>,
    before: JoinHandle<State<S>>,
    content: Content,
) -> State<S> {
    let mut upload = before.await.map_err(lost_task).and_then(|state| state)?;
    let store = &*object.store;
    let request = request::transfer(store, request::UPLOAD, &object.name, content.len());
    match request.attempt(&RetryState::default(), upload.append(&content)).await {
        Ok(()) => Ok(upload),
        Err(failure) => {
            abort(&object, &mut upload).await;
            Err(FinalError::of(failure, request.op, &object.name).into_error())
        }
    }
}

async fn abort<S: ObjectStore>(object: &WriteTarget<S>, upload: &mut BoxUpload<S::Error>) {
    let (store, name) = (&*object.store, &object.name);
    let request = request::transfer(store, request::ABORT_UPLOAD, name, 0);
    if let Err(failure) = request.attempt(&RetryState::default(), upload.abort()).await {
        let error = FinalError::of(failure, request.op, name).into_error();
        log::warn!("{error:#}; the store may keep a part of what was written");
    }
}

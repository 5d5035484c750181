//! A file that is sent to the store in parts.

use super::by_rename;
use super::sequential::Sequence;
use super::types::{Attributes, Multipart, Part, Payload, PutMode, PutOptions, StoredObject};
use crate::{Content, ErrorKind, Name, ObjectStore, PartLimits, Process, Range, request};
use futures_util::future::{BoxFuture, Shared};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use std::sync::Arc;
use tf_fs_plugin::prelude::*;
use tokio::task::{JoinError, JoinHandle};

/// The ID of an upload, or why there is none.
type Created = Result<Arc<str>, Arc<Error>>;

/// The object that a file becomes.
#[derive(Debug)]
pub(super) struct WriteTarget<S> {
    pub(super) store: Arc<S>,
    pub(super) name: Name,
    pub(super) attributes: Attributes,
}

impl<S> WriteTarget<S> {
    pub(super) fn target<'a>(&'a self, mode: &'a PutMode) -> PutOptions<'a> {
        PutOptions { name: &self.name, attributes: &self.attributes, mode }
    }

    /// Returns the same object under a temporary name.
    pub(super) fn staged(&self) -> Arc<Self> {
        Arc::new(Self {
            store: Arc::clone(&self.store),
            name: by_rename::temporary_name(&self.name),
            attributes: self.attributes.clone(),
        })
    }

    fn multipart<'a>(&'a self, id: &'a str) -> Multipart<'a> {
        Multipart { name: &self.name, id }
    }
}

/// A multipart upload. It has to be aborted before it is dropped, unless it was [completed](Self::complete).
#[derive(Debug)]
pub(super) struct PartsUpload<S: ObjectStore> {
    object: Arc<WriteTarget<S>>,
    process: Arc<Process>,
    limits: PartLimits,
    id: Shared<BoxFuture<'static, Created>>,
    sending: FuturesUnordered<JoinHandle<Result<Part>>>,
    stored: Vec<Part>,
    next: u32,
    /// The precondition for completing it.
    mode: PutMode,
}

impl<S: ObjectStore> PartsUpload<S> {
    /// Begins an upload, in the background. It becomes an object if `mode` still allows it then.
    pub(super) fn start(
        object: &Arc<WriteTarget<S>>,
        process: &Arc<Process>,
        limits: PartLimits,
        mode: PutMode,
    ) -> Self {
        let create = process.spawn(create(Arc::clone(object), mode.clone()));
        // In a separate task: if it were cancelled, the store would keep an upload that nobody knows.
        let id = create.map(|done| done.map_err(lost_task).and_then(|done| done).map_err(Arc::new));
        Self {
            object: Arc::clone(object),
            process: Arc::clone(process),
            limits,
            id: id.boxed().shared(),
            sending: FuturesUnordered::new(),
            stored: Vec::new(),
            next: 1,
            mode,
        }
    }

    /// Returns the name of the object.
    pub(super) fn name(&self) -> &Name {
        &self.object.name
    }

    /// Returns the number of the next part.
    pub(super) fn next(&self) -> u32 {
        self.next
    }

    /// Returns the number of parts in flight.
    pub(super) fn in_flight(&self) -> usize {
        self.sending.len()
    }

    /// Makes a range of `source`, as [`parts::copies`] returns it, the next part. No byte of it is transferred.
    pub(super) fn copy(&mut self, source: &StoredObject, range: Range) {
        let part =
            copy_part(Arc::clone(&self.object), self.id.clone(), self.next, source.clone(), range);
        self.next += 1;
        self.sending.push(self.process.spawn(part));
    }

    /// Sends the next part, in the background.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` if the object has as many parts as it can have.
    pub(super) fn send(&mut self, content: Content) -> Result<()> {
        ensure!(
            self.next <= self.limits.most,
            Error::resource_exhausted(format_args!(
                "{}: an object has at most {} parts; set the size of a part (write_part_bytes) to more than {}",
                self.object.name,
                self.limits.most,
                content.len()
            ))
        );
        let part = put_part(Arc::clone(&self.object), self.id.clone(), self.next, content);
        self.next += 1;
        self.sending.push(self.process.spawn(part));
        Ok(())
    }

    /// Waits until one of the parts in flight has arrived.
    ///
    /// # Errors
    /// If it failed.
    pub(super) async fn arrival(&mut self) -> Result<()> {
        if let Some(done) = self.sending.next().await {
            self.stored.push(done.map_err(lost_task).and_then(|done| done)?);
        }
        Ok(())
    }

    /// Takes the parts that have arrived, without waiting.
    ///
    /// # Errors
    /// If one has failed.
    pub(super) fn arrivals(&mut self) -> Result<()> {
        while !self.sending.is_empty() {
            match self.arrival().now_or_never() {
                Some(result) => result?,
                None => break,
            }
        }
        Ok(())
    }

    /// Makes the object from the parts, once they have all arrived.
    ///
    /// # Errors
    /// As [`commit`](super::commit::commit), for any part too. Then the upload has to be aborted.
    pub(super) async fn complete(&mut self) -> Result<StoredObject> {
        while !self.sending.is_empty() {
            self.arrival().await?;
        }
        let id = self.id.clone().await.map_err(|error| again(&error))?;
        self.stored.sort_unstable_by_key(|part| part.number);
        let sent = Payload::Parts { id: &id, parts: &self.stored };
        let to = self.object.target(&self.mode);
        super::commit::commit(&*self.object.store, to, sent, &mut false).await
    }

    /// Aborts the upload, in the background: parts in flight are cancelled, and the store deletes those that it has.
    pub(super) fn abort(self) -> JoinHandle<()> {
        let Self { object, process, id, sending, .. } = self;
        for part in &sending {
            part.abort();
        }
        process.spawn(async move {
            // A part that arrives after the upload was aborted could stay for ever.
            sending.collect::<Vec<_>>().await;
            let Ok(id) = id.await else { return };
            let aborted = request::abort_multipart(&*object.store, object.multipart(&id)).await;
            if let Err(failure) = aborted {
                log::warn!(
                    "{:#}; the store keeps the parts of the upload, which may cost money until a rule of the store \
                     removes them",
                    failure.into_error()
                );
            }
        })
    }
}

/// An upload of either kind.
#[derive(Debug)]
pub(super) enum Upload<S: ObjectStore> {
    Parts(PartsUpload<S>),
    Sequence(Sequence<S>),
}

impl<S: ObjectStore> Upload<S> {
    /// Returns the name of the object.
    pub(super) fn name(&self) -> &Name {
        match self {
            Self::Parts(upload) => upload.name(),
            Self::Sequence(upload) => upload.name(),
        }
    }

    /// Returns the number of requests with bytes in flight.
    pub(super) fn in_flight(&self) -> usize {
        match self {
            Self::Parts(upload) => upload.in_flight(),
            Self::Sequence(upload) => upload.in_flight(),
        }
    }

    /// Sends the next bytes, in the background.
    ///
    /// # Errors
    /// As [`PartsUpload::send`].
    pub(super) fn send(&mut self, content: Content) -> Result<()> {
        match self {
            Self::Parts(upload) => upload.send(content),
            Self::Sequence(upload) => {
                upload.send(content);
                Ok(())
            }
        }
    }

    /// Waits until something that is in flight has arrived.
    ///
    /// # Errors
    /// If it failed.
    pub(super) async fn arrival(&mut self) -> Result<()> {
        match self {
            Self::Parts(upload) => upload.arrival().await,
            Self::Sequence(upload) => upload.arrival().await,
        }
    }

    /// Takes what has arrived, without waiting.
    ///
    /// # Errors
    /// If something has failed.
    pub(super) fn arrivals(&mut self) -> Result<()> {
        match self {
            Self::Parts(upload) => upload.arrivals(),
            Self::Sequence(upload) => upload.arrivals(),
        }
    }

    /// Makes the object, once all bytes have arrived.
    ///
    /// # Errors
    /// As [`commit`](super::commit::commit), for any bytes too.
    pub(super) async fn complete(&mut self) -> Result<StoredObject> {
        match self {
            Self::Parts(upload) => upload.complete().await,
            Self::Sequence(upload) => upload.complete().await,
        }
    }

    /// Aborts the upload, in the background.
    pub(super) fn abort(self) -> JoinHandle<()> {
        match self {
            Self::Parts(upload) => upload.abort(),
            Self::Sequence(upload) => upload.abort(),
        }
    }
}

async fn create<S: ObjectStore>(object: Arc<WriteTarget<S>>, mode: PutMode) -> Result<Arc<str>> {
    Ok(request::create_multipart(&*object.store, object.target(&mode)).await?.into())
}

async fn put_part<S: ObjectStore>(
    object: Arc<WriteTarget<S>>,
    id: impl Future<Output = Created>,
    number: u32,
    content: Content,
) -> Result<Part> {
    let id = id.await.map_err(|error| again(&error))?;
    let part = request::put_part(&*object.store, object.multipart(&id), number, &content).await;
    let part = part.map_err(|failure| {
        let is_gone = failure.kind() == ErrorKind::NotFound;
        let error = failure.into_error();
        // The upload, not the file: another one may do better.
        if is_gone { error.with_code(Code::Unavailable) } else { error }
    })?;
    confirmed(&object.name, part, number, content.len())
}

async fn copy_part<S: ObjectStore>(
    object: Arc<WriteTarget<S>>,
    id: impl Future<Output = Created>,
    number: u32,
    source: StoredObject,
    range: Range,
) -> Result<Part> {
    let id = id.await.map_err(|error| again(&error))?;
    let upload = object.multipart(&id);
    let part = request::copy_part(&*object.store, upload, number, &source, range).await;
    let part = part.map_err(|failure| {
        let is_replaced = matches!(failure.kind(), ErrorKind::Precondition | ErrorKind::NotFound);
        let error = failure.into_error();
        if is_replaced { super::commit::conflict_error(error) } else { error }
    })?;
    confirmed(&object.name, part, number, range.len())
}

/// Returns the part, if it is the one that was requested.
fn confirmed(name: &Name, part: Part, number: u32, len: u64) -> Result<Part> {
    ensure!(
        part.number == number && part.len == len,
        Error::data_loss(format_args!(
            "{name}: the store has part {} of {} bytes in place of part {number} of {len} bytes; write it again",
            part.number, part.len
        ))
    );
    Ok(part)
}

/// Copies an error that is returned more than once.
#[cold]
pub(super) fn again(error: &Error) -> Error {
    Error::new(error.code(), format!("{error:#}"))
}

#[cold]
pub(super) fn lost_task(error: JoinError) -> Error {
    Error::internal("an upload's task ended early").with_source(error)
}

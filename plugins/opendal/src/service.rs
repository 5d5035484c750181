//! What a service does: the part of a remote that knows a protocol.

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, Stream};
use std::fmt::Debug;
use tf_fs_object_store::http::{HttpBody, HttpError};
use tf_fs_object_store::{
    Content, ErrorKind, GetHead, GetOptions, ObjectMeta, RequestError, StoreError as _,
    StoredObject, StreamBody, Upload, WriteLimits,
};

/// What a request returns, when it is done.
pub(crate) type Done<'a, T> = BoxFuture<'a, Result<T, HttpError>>;

/// The bytes of a file.
pub(crate) type Body = StreamBody<BoxStream<'static, Result<Bytes, HttpError>>>;

/// A file or a directory.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) is_directory: bool,
    /// Of a directory nothing is known.
    pub(crate) meta: ObjectMeta,
}

impl Entry {
    pub(crate) fn directory() -> Self {
        Self { is_directory: true, meta: ObjectMeta::new(0) }
    }

    pub(crate) fn file(meta: ObjectMeta) -> Self {
        Self { is_directory: false, meta }
    }
}

/// A server with files in directories.
///
/// Each method is one operation in one attempt, which the engine makes again if its failure may pass. Paths are below the
/// remote, without a slash at either end; that of the remote itself is empty. An error of a path that is not there has
/// [`ErrorKind::NotFound`].
pub(crate) trait Service: Debug + Send + Sync {
    /// Returns whether [`read`](Self::read) tells of which version the bytes are. If not, the engine looks before and after.
    fn tells_versions(&self) -> bool {
        true
    }

    /// Returns how files are written; `None` if they cannot be.
    fn write_limits(&self) -> Option<WriteLimits>;

    /// Reads bytes of a file.
    fn read<'a>(&'a self, options: GetOptions<'a>) -> Done<'a, (Option<GetHead>, Body)>;

    /// Looks up a path. `None` if nothing is there.
    fn stat<'a>(&'a self, path: &'a str) -> Done<'a, Option<Entry>>;

    /// Lists a directory: the names in it, in any order.
    fn list<'a>(&'a self, path: &'a str) -> Done<'a, Vec<(String, Entry)>>;

    /// Returns the error of a change, if the service is for reading.
    fn refuses(&self) -> HttpError {
        HttpError::unsupported("changes")
    }

    /// Creates a directory. [`ErrorKind::Precondition`] if something is there and the service can tell.
    fn create_dir<'a>(&'a self, _path: &'a str) -> Done<'a, ()> {
        Box::pin(async { Err(self.refuses()) })
    }

    /// Deletes a file, or a directory that is empty.
    fn delete<'a>(&'a self, _path: &'a str, _is_directory: bool) -> Done<'a, ()> {
        Box::pin(async { Err(self.refuses()) })
    }

    /// Copies a file on the server. By default that is unsupported, and the bytes go through this process.
    fn copy<'a>(&'a self, _from: &'a str, _to: &'a str) -> Done<'a, ()> {
        Box::pin(async { Err(HttpError::unsupported("copies on the server")) })
    }

    /// Renames a file, in place of another one if there is one, or a directory, to where nothing is.
    fn rename<'a>(&'a self, _from: &'a str, _to: &'a str, _is_directory: bool) -> Done<'a, ()> {
        Box::pin(async { Err(self.refuses()) })
    }

    /// Begins to write a file, from its first byte to its last.
    fn start<'a>(&'a self, _path: &'a str) -> Done<'a, Box<dyn Sink>> {
        Box::pin(async { Err(self.refuses()) })
    }

    /// Writes a whole file. By default it begins to write one.
    fn put<'a>(&'a self, path: &'a str, content: &'a Content) -> Done<'a, ObjectMeta> {
        Box::pin(async move {
            let mut sink = self.start(path).await?;
            let written = match sink.append(content.chunks()).await {
                Ok(()) => sink.commit().await,
                Err(error) => Err(error),
            };
            if written.is_err() {
                // The error is that of the write.
                let _ = sink.abort().await;
            }
            written
        })
    }
}

/// A file that is being written.
pub(crate) trait Sink: Send {
    /// Sends the next bytes.
    fn append<'a>(&'a mut self, chunks: &'a [Bytes]) -> Done<'a, ()>;

    /// Completes the file. Returns what is known of it.
    fn commit(&mut self) -> Done<'_, ObjectMeta>;

    /// Ends it without a file, as far as that is possible.
    fn abort(&mut self) -> Done<'_, ()>;
}

/// A file that is being written, as the engine has it.
pub(crate) struct Writing {
    pub(crate) sink: Box<dyn Sink>,
    pub(crate) len: u64,
}

impl Upload for Writing {
    type Error = HttpError;

    async fn append(&mut self, content: &Content) -> Result<(), HttpError> {
        self.len += content.len();
        self.sink.append(content.chunks()).await
    }

    async fn commit(&mut self) -> Result<StoredObject, HttpError> {
        Ok(stored(self.len, self.sink.commit().await?))
    }

    async fn abort(&mut self) -> Result<(), HttpError> {
        self.sink.abort().await
    }
}

/// Returns a file of this many bytes, with what else the service told.
pub(crate) fn stored(len: u64, meta: ObjectMeta) -> StoredObject {
    let stored = StoredObject::new(len);
    stored.with_etag(meta.etag).with_modified(meta.modified)
}

/// Returns the bytes of a response as they arrive.
pub(crate) fn arriving(body: HttpBody) -> impl Stream<Item = Result<Bytes, HttpError>> + Send {
    stream::try_unfold(body, |mut body| async {
        Ok(body.chunk().await?.map(|chunk| (chunk, body)))
    })
}

/// Returns the error of a path that is not there.
pub(crate) fn missing() -> HttpError {
    failure(ErrorKind::NotFound, "the server has no such file or directory")
}

/// Returns an error of this kind, with the reason and the next step.
pub(crate) fn failure(kind: ErrorKind, reason: impl Into<String>) -> HttpError {
    RequestError::new(kind, reason).into()
}

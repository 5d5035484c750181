//! A client of OpenDAL: its operations with the engine's types.

use crate::error::returned;
use crate::service::{Body, Entry, missing};
use bytes::{Buf as _, Bytes};
use futures_util::{FutureExt as _, stream};
use opendal_core::options::{ListOptions, ReadOptions};
use opendal_core::raw::oio::{
    Copy as _, Delete as _, List as _, Read as _, ReadStream as _, ReadStreamDyn, Write as _,
};
use opendal_core::raw::{
    OpCopy, OpCreateDir, OpDelete, OpRead, OpReader, OpStat, OpWrite, Service as _, Servicer,
};
use opendal_core::{
    Buffer, Builder, BytesRange, ErrorKind, HttpTransport, HttpTransporter, Metadata,
    OperationContext, Operator,
};
use std::panic::AssertUnwindSafe;
use tf_fs_object_store::http::HttpError;
use tf_fs_object_store::{GetHead, GetOptions, ObjectMeta, Range, StoreError as _, StreamBody};
use tf_fs_plugin::prelude::*;

/// A service of OpenDAL, and how its requests are sent. Paths of directories end in `/`.
#[derive(Clone, Debug)]
pub(crate) struct OpenDalClient {
    pub(crate) service: Servicer,
    pub(crate) context: OperationContext,
}

impl OpenDalClient {
    /// Creates the client. It makes no connection yet.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if the service cannot be used with these settings.
    pub(crate) fn new(builder: impl Builder, context: OperationContext) -> Result<Self> {
        let operator = Operator::new(builder)
            .map_err(|error| Error::invalid_argument(error.message().to_owned()))?;
        let (context, service) = operator.with_context(context).into_parts();
        Ok(Self { service, context })
    }

    /// Reads bytes of a file. A range past its end has none.
    pub(crate) async fn read(
        &self,
        options: GetOptions<'_>,
    ) -> Result<(Option<GetHead>, Body), HttpError> {
        let if_match = options.if_match.filter(|_| self.service.capability().read_with_if_match);
        let if_match = if_match.map(str::to_owned);
        let (_, read, _): (BytesRange, OpRead, OpReader) =
            ReadOptions { if_match, ..ReadOptions::default() }.into();
        let Range { start, end } = options.range;
        let reader = self.service.read(&self.context, options.key, read).map_err(returned)?;
        let (found, stream) = match reader.open(BytesRange::new(start, Some(end - start))).await {
            Ok((reply, stream)) => (reply.metadata().map(meta), body(stream)),
            Err(error) if error.kind() == ErrorKind::RangeNotSatisfied => {
                (Some(self.stat(options.key).await?), StreamBody::boxed(stream::empty()))
            }
            Err(error) => return Err(returned(error)),
        };
        let head = found.map(|ObjectMeta { size, etag, modified, .. }| {
            let size = size.unwrap_or_default();
            GetHead::new(size, end.min(size)).with_etag(etag).with_modified(modified)
        });
        Ok((head, stream))
    }

    /// Looks up a file.
    pub(crate) async fn stat(&self, path: &str) -> Result<ObjectMeta, HttpError> {
        let found = self.entry(path).await?;
        if found.is_directory { Err(missing()) } else { Ok(found.meta) }
    }

    /// Looks up a file or a directory.
    pub(crate) async fn entry(&self, path: &str) -> Result<Entry, HttpError> {
        let path = if path.is_empty() { "/" } else { path };
        let found = self.service.stat(&self.context, path, OpStat::new()).await;
        Ok(entry(&found.map_err(returned)?.into_metadata()))
    }

    /// Lists what is below a prefix, with all that is deeper or without: paths, and what is known of each.
    pub(crate) async fn list(
        &self,
        prefix: &str,
        recursive: bool,
    ) -> Result<Vec<(String, Metadata)>, HttpError> {
        let prefix = if prefix.is_empty() { "/" } else { prefix };
        let list = ListOptions { recursive, ..ListOptions::default() }.into();
        let mut lister = self.service.list(&self.context, prefix, list).map_err(returned)?;
        let mut entries = Vec::new();
        loop {
            // Some clients take for granted what a server says of a name, and panic.
            let next = AssertUnwindSafe(lister.next()).catch_unwind().await;
            let next =
                next.map_err(|_| HttpError::invalid("it lists a name that cannot be one"))?;
            let Some(listed) = next.map_err(returned)? else { return Ok(entries) };
            entries.push(listed.into_parts());
        }
    }

    /// Writes a whole file.
    pub(crate) async fn write(&self, path: &str, bytes: Buffer) -> Result<ObjectMeta, HttpError> {
        let mut writer =
            self.service.write(&self.context, path, OpWrite::new()).map_err(returned)?;
        writer.write(bytes).await.map_err(returned)?;
        Ok(meta(&writer.close().await.map_err(returned)?))
    }

    /// Lists a directory: the names in it.
    pub(crate) async fn names(&self, path: &str) -> Result<Vec<(String, Entry)>, HttpError> {
        let prefix = if path.is_empty() { String::new() } else { format!("{path}/") };
        let listed = self.list(&prefix, false).await?.into_iter().map(|(key, found)| {
            // What is directly in the directory.
            let name = key.strip_prefix(&*prefix).unwrap_or_default();
            let entry = if name.ends_with('/') { Entry::directory() } else { entry(&found) };
            (name.trim_end_matches('/').to_owned(), entry)
        });
        Ok(listed.collect())
    }

    pub(crate) async fn create_dir(&self, path: &str) -> Result<(), HttpError> {
        let created = self.service.create_dir(&self.context, path, OpCreateDir::new()).await;
        created.map(drop).map_err(returned)
    }

    pub(crate) async fn delete(&self, path: &str) -> Result<(), HttpError> {
        let mut deleter = self.service.delete(&self.context).map_err(returned)?;
        deleter.delete(path, OpDelete::new()).await.map_err(returned)?;
        deleter.close().await.map_err(returned)
    }

    pub(crate) async fn copy(&self, from: &str, to: &str) -> Result<(), HttpError> {
        let copier = self.service.copy(&self.context, from, to, OpCopy::new());
        copier.map_err(returned)?.close().await.map(drop).map_err(returned)
    }
}

/// Returns a context whose requests are sent by this transport.
pub(crate) fn context(transport: impl HttpTransport) -> OperationContext {
    OperationContext::new().with_http_transport(HttpTransporter::new(transport))
}

fn entry(found: &Metadata) -> Entry {
    if found.is_dir() { Entry::directory() } else { Entry::file(meta(found)) }
}

/// Returns what is known of a file.
pub(crate) fn meta(found: &Metadata) -> ObjectMeta {
    let size = if found.is_file() { found.content_length() } else { 0 };
    // wsgidav leaves the quotes out in listings.
    let etag = found.etag().map(|etag| match etag.ends_with('"') {
        true => etag.to_owned(),
        false => format!("\"{etag}\""),
    });
    ObjectMeta::new(size).with_etag(etag).with_modified(found.last_modified().map(Into::into))
}

/// Returns the bytes of a file as they arrive.
fn body(stream: Box<dyn ReadStreamDyn>) -> Body {
    StreamBody::boxed(stream::try_unfold(stream, |mut stream| async {
        let mut bytes: Buffer = stream.read().await.map_err(returned)?;
        // A buffer may be of several pieces.
        let bytes: Bytes = bytes.copy_to_bytes(bytes.len());
        Ok((!bytes.is_empty()).then_some((bytes, stream)))
    }))
}

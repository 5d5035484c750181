//! WebDAV, by OpenDAL's client.

use super::transport::Transport;
use super::{http, transport};
use crate::error::returned;
use crate::place::Place;
use crate::service::{Body, Done, Entry, Service, Sink};
use crate::settings::Settings;
use crate::spool::Spool;
use bytes::{Buf as _, Bytes};
use futures_util::{FutureExt as _, stream};
use opendal_core::options::ReadOptions;
use opendal_core::raw::oio::{
    Copy as _, Delete as _, List as _, Read as _, ReadStream as _, ReadStreamDyn, Write as _,
};
use opendal_core::raw::{
    OpCopy, OpCreateDir, OpDelete, OpList, OpRead, OpReader, OpRename, OpStat, OpWrite,
    Service as _, Servicer, normalize_root,
};
use opendal_core::{Buffer, BytesRange, HttpTransporter, Metadata, OperationContext, Operator};
use opendal_service_webdav::Webdav;
use std::panic::AssertUnwindSafe;
use tf_fs_object_store::config::Secret;
use tf_fs_object_store::http::HttpError;
use tf_fs_object_store::{
    Content, ErrorKind, GetHead, GetOptions, ObjectMeta, Publication, Range, StoreError as _,
    StreamBody, WriteLimits,
};
use tf_fs_plugin::prelude::*;

/// A collection of a WebDAV server.
#[derive(Debug)]
pub(super) struct WebDav {
    service: Servicer,
    context: OperationContext,
    transport: Transport,
    /// Whether the server replaces a file in one step when it is uploaded.
    atomic_put: bool,
}

impl WebDav {
    pub(super) fn new(place: &Place, settings: &Settings) -> Result<Self> {
        let mut builder = Webdav::default().endpoint(&place.origin()).root(&place.root);
        if place.is_known {
            let exposed =
                |secret: &Option<_>| secret.as_ref().map_or("", Secret::expose).to_owned();
            builder = builder
                .username(settings.user.as_deref().unwrap_or_default())
                .password(&exposed(&settings.password))
                .token(&exposed(&settings.token));
        }
        let transport =
            Transport { http: http(settings)?, root: normalize_root(&place.root), upload: None };
        let operator = Operator::new(builder)
            .map_err(|error| Error::invalid_argument(error.message().to_owned()))?;
        let context = context(&transport);
        let (context, service) = operator.with_context(context).into_parts();
        Ok(Self { service, context, transport, atomic_put: settings.atomic_put })
    }
}

fn context(transport: &Transport) -> OperationContext {
    OperationContext::new().with_http_transport(HttpTransporter::new(transport.clone()))
}

impl Service for WebDav {
    fn write_limits(&self) -> Option<WriteLimits> {
        let publication = if self.atomic_put { Publication::Atomic } else { Publication::Rename };
        Some(WriteLimits::new(publication).without_conditions().with_upload())
    }

    fn read<'a>(&'a self, options: GetOptions<'a>) -> Done<'a, (Option<GetHead>, Body)> {
        Box::pin(async move {
            let if_match = options.if_match.map(str::to_owned);
            let (_, read, _): (BytesRange, OpRead, OpReader) =
                ReadOptions { if_match, ..ReadOptions::default() }.into();
            let Range { start, end } = options.range;
            let reader = self.service.read(&self.context, options.key, read).map_err(returned)?;
            let opened = reader.open(BytesRange::new(start, Some(end - start))).await;
            let (reply, stream) = opened.map_err(returned)?;
            let head = reply.metadata().map(|found| {
                let ObjectMeta { etag, modified, .. } = meta(found);
                let size = found.content_length();
                GetHead::new(size, end.min(size)).with_etag(etag).with_modified(modified)
            });
            Ok((head, body(stream)))
        })
    }

    fn stat<'a>(&'a self, path: &'a str) -> Done<'a, Option<Entry>> {
        Box::pin(async move {
            let path = if path.is_empty() { "/" } else { path };
            let found = self.service.stat(&self.context, path, OpStat::new()).await;
            Ok(Some(entry(&found.map_err(returned)?.into_metadata())))
        })
    }

    fn list<'a>(&'a self, path: &'a str) -> Done<'a, Vec<(String, Entry)>> {
        Box::pin(async move {
            let prefix = if path.is_empty() { String::new() } else { format!("{path}/") };
            let directory = if path.is_empty() { "/" } else { &prefix };
            let lister = self.service.list(&self.context, directory, OpList::new());
            let mut lister = lister.map_err(returned)?;
            let mut entries = Vec::new();
            loop {
                // OpenDAL slices names that are not below the remote, and panics.
                let next = AssertUnwindSafe(lister.next()).catch_unwind().await;
                let next =
                    next.map_err(|_| HttpError::invalid("it lists a name that cannot be one"))?;
                let Some(listed) = next.map_err(returned)? else { return Ok(entries) };
                let (key, found) = listed.into_parts();
                // What is directly in the directory.
                let name = key.strip_prefix(&*prefix).unwrap_or_default();
                let entry = if name.ends_with('/') { Entry::directory() } else { entry(&found) };
                entries.push((name.trim_end_matches('/').to_owned(), entry));
            }
        })
    }

    fn create_dir<'a>(&'a self, path: &'a str) -> Done<'a, ()> {
        Box::pin(async move {
            let path = format!("{path}/");
            let created = self.service.create_dir(&self.context, &path, OpCreateDir::new()).await;
            created.map(drop).map_err(returned)
        })
    }

    fn delete<'a>(&'a self, path: &'a str, is_directory: bool) -> Done<'a, ()> {
        Box::pin(async move {
            let path = slashed(path, is_directory);
            let mut deleter = self.service.delete(&self.context).map_err(returned)?;
            deleter.delete(&path, OpDelete::new()).await.map_err(returned)?;
            deleter.close().await.map_err(returned)
        })
    }

    fn copy<'a>(&'a self, from: &'a str, to: &'a str) -> Done<'a, ()> {
        Box::pin(async move {
            let copier = self.service.copy(&self.context, from, to, OpCopy::new());
            copier.map_err(returned)?.close().await.map(drop).map_err(returned)
        })
    }

    fn rename<'a>(&'a self, from: &'a str, to: &'a str, is_directory: bool) -> Done<'a, ()> {
        Box::pin(async move {
            // A file would replace a directory with all that is in it. The transport prevents that of a directory.
            match self.stat(to).await {
                Ok(Some(found)) if found.is_directory && !is_directory => {
                    return Err(HttpError::Other(Error::expected_file(to)));
                }
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let (from, to) = (slashed(from, is_directory), slashed(to, is_directory));
            let renamed = self.service.rename(&self.context, &from, &to, OpRename::new()).await;
            renamed.map(drop).map_err(returned)
        })
    }

    fn start<'a>(&'a self, path: &'a str) -> Done<'a, Box<dyn Sink>> {
        Box::pin(async move {
            let (service, transport) = (self.service.clone(), self.transport.clone());
            let spool = Spool::new()?;
            Ok(Box::new(Uploading { service, transport, path: path.to_owned(), spool }) as _)
        })
    }

    fn put<'a>(&'a self, path: &'a str, content: &'a Content) -> Done<'a, ObjectMeta> {
        let bytes = content.chunks().iter().cloned().collect();
        Box::pin(put(&self.service, &self.context, path, bytes))
    }
}

async fn put(
    service: &Servicer,
    context: &OperationContext,
    path: &str,
    bytes: Buffer,
) -> Result<ObjectMeta, HttpError> {
    let mut writer = service.write(context, path, OpWrite::new()).map_err(returned)?;
    writer.write(bytes).await.map_err(returned)?;
    Ok(meta(&writer.close().await.map_err(returned)?))
}

/// A file that is larger than memory: a PUT has its length first.
struct Uploading {
    service: Servicer,
    transport: Transport,
    path: String,
    spool: Spool,
}

impl Sink for Uploading {
    fn append<'a>(&'a mut self, chunks: &'a [Bytes]) -> Done<'a, ()> {
        self.spool.append(chunks)
    }

    fn commit(&mut self) -> Done<'_, ObjectMeta> {
        let upload = Some(self.spool.body());
        let transport = Transport { upload, ..self.transport.clone() };
        Box::pin(async move {
            // The transport sends the file in place of these bytes.
            let bytes = Buffer::from(transport::STANDS_FOR_A_FILE);
            put(&self.service, &context(&transport), &self.path, bytes).await
        })
    }

    // Nothing was sent.
    fn abort(&mut self) -> Done<'_, ()> {
        Box::pin(async { Ok(()) })
    }
}

/// Returns a path as OpenDAL has it.
fn slashed(path: &str, is_directory: bool) -> String {
    if is_directory { format!("{path}/") } else { path.to_owned() }
}

fn entry(found: &Metadata) -> Entry {
    if found.is_dir() { Entry::directory() } else { Entry::file(meta(found)) }
}

fn meta(found: &Metadata) -> ObjectMeta {
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
        let mut bytes = stream.read().await.map_err(returned)?;
        // A buffer may be of several pieces.
        let bytes = bytes.copy_to_bytes(bytes.len());
        Ok((!bytes.is_empty()).then_some((bytes, stream)))
    }))
}

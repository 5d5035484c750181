//! WebDAV, by OpenDAL's client.

use super::transport::Transport;
use super::{http, transport};
use crate::error::returned;
use crate::opendal::{OpenDalClient, context};
use crate::place::Place;
use crate::service::{Body, Done, Entry, Service, Sink};
use crate::settings::Settings;
use crate::spool::Spool;
use bytes::Bytes;
use opendal_core::Buffer;
use opendal_core::raw::{OpRename, Service as _, normalize_root};
use opendal_service_webdav::Webdav;
use tf_fs_object_store::config::Secret;
use tf_fs_object_store::http::HttpError;
use tf_fs_object_store::{
    Content, ErrorKind, GetHead, GetOptions, ObjectMeta, Publication, StoreError as _, WriteLimits,
};
use tf_fs_plugin::prelude::*;

/// A collection of a WebDAV server.
#[derive(Debug)]
pub(super) struct WebDav {
    client: OpenDalClient,
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
        let client = OpenDalClient::new(builder, context(transport.clone()))?;
        Ok(Self { client, transport, atomic_put: settings.atomic_put })
    }
}

impl Service for WebDav {
    fn write_limits(&self) -> Option<WriteLimits> {
        let publication = if self.atomic_put { Publication::Atomic } else { Publication::Rename };
        Some(WriteLimits::new(publication).without_conditions().with_upload())
    }

    fn read<'a>(&'a self, options: GetOptions<'a>) -> Done<'a, (Option<GetHead>, Body)> {
        Box::pin(self.client.read(options))
    }

    fn stat<'a>(&'a self, path: &'a str) -> Done<'a, Option<Entry>> {
        Box::pin(async move { self.client.entry(path).await.map(Some) })
    }

    fn list<'a>(&'a self, path: &'a str) -> Done<'a, Vec<(String, Entry)>> {
        Box::pin(self.client.names(path))
    }

    fn create_dir<'a>(&'a self, path: &'a str) -> Done<'a, ()> {
        Box::pin(async move { self.client.create_dir(&slashed(path, true)).await })
    }

    fn delete<'a>(&'a self, path: &'a str, is_directory: bool) -> Done<'a, ()> {
        Box::pin(async move { self.client.delete(&slashed(path, is_directory)).await })
    }

    fn copy<'a>(&'a self, from: &'a str, to: &'a str) -> Done<'a, ()> {
        Box::pin(self.client.copy(from, to))
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
            let OpenDalClient { service, context } = &self.client;
            let renamed = service.rename(context, &from, &to, OpRename::new()).await;
            renamed.map(drop).map_err(returned)
        })
    }

    fn start<'a>(&'a self, path: &'a str) -> Done<'a, Box<dyn Sink>> {
        Box::pin(async move {
            let (client, transport) = (self.client.clone(), self.transport.clone());
            let spool = Spool::new()?;
            Ok(Box::new(Uploading { client, transport, path: path.to_owned(), spool }) as _)
        })
    }

    fn put<'a>(&'a self, path: &'a str, content: &'a Content) -> Done<'a, ObjectMeta> {
        Box::pin(self.client.write(path, content.chunks().iter().cloned().collect()))
    }
}

/// A file that is larger than memory: a PUT has its length first.
struct Uploading {
    client: OpenDalClient,
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
            let context = context(transport);
            OpenDalClient { context, ..self.client.clone() }.write(&self.path, bytes).await
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

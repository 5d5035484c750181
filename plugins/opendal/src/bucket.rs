//! A bucket of any store of objects that OpenDAL has a client for.

use crate::error::returned;
use crate::metrics::counted;
use crate::opendal::{OpenDalClient, meta};
use crate::service::{Body, stored};
use opendal_core::Buffer;
use opendal_core::raw::oio::{Write as _, Writer};
use opendal_core::raw::{OpWrite, Service as _};
use std::sync::Arc;
use tf_fs_object_store::http::HttpError;
use tf_fs_object_store::{
    BoxUpload, Content, CopyOptions, GetHead, GetOptions, ListOptions, Name, Object, ObjectMeta,
    ObjectStore, Page, Publication, PutOptions, Settings, StoreError as _, StoredObject, Upload,
    WriteLimits,
};
use tf_fs_plugin::prelude::*;

/// A bucket: its client, and where it is.
#[derive(Debug)]
pub struct Bucket {
    pub(crate) client: OpenDalClient,
    pub(crate) endpoint: String,
    pub(crate) settings: Settings,
}

impl ObjectStore for Bucket {
    type Error = HttpError;
    type Body = Body;

    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn endpoint(&self) -> String {
        self.endpoint.clone()
    }

    // Not every service tells versions apart.
    fn cache_scope(&self) -> Option<String> {
        None
    }

    async fn get(&self, options: GetOptions<'_>) -> Result<(Option<GetHead>, Body), HttpError> {
        counted("Read", self.client.read(options)).await
    }

    async fn head(&self, name: &Name) -> Result<ObjectMeta, HttpError> {
        counted("Stat", self.client.stat(&name.key)).await
    }

    async fn list(&self, options: &ListOptions, _: Option<&str>) -> Result<Page, HttpError> {
        let mut page = Page::default();
        let listed = counted("List", self.client.list(&options.prefix, !options.delimiter)).await?;
        for (key, found) in listed.into_iter().filter(|(key, _)| key != "/") {
            match options.delimiter && key.ends_with('/') && key != options.prefix {
                true => page.common_prefixes.push(key),
                false => page.objects.push(Object::new(key, meta(&found))),
            }
        }
        page.objects.sort_by(|one, other| one.key.cmp(&other.key));
        page.common_prefixes.sort();
        Ok(page)
    }

    async fn put_marker(&self, marker: &Name) -> Result<(), HttpError> {
        counted("CreateDirectory", self.client.create_dir(&marker.key)).await
    }

    async fn delete(&self, name: &Name) -> Result<(), HttpError> {
        counted("Delete", self.client.delete(&name.key)).await
    }

    async fn copy(
        from: &Arc<Self>,
        to: &Arc<Self>,
        options: CopyOptions<'_>,
    ) -> Result<Option<ObjectMeta>, HttpError> {
        if !Arc::ptr_eq(from, to) {
            return Err(HttpError::unsupported("copies between two buckets"));
        }
        if options.known.is_some() {
            // It copies any version.
            return Err(HttpError::Changed);
        }
        counted("Copy", to.client.copy(&options.src.key, &options.dst.key)).await.map(|()| None)
    }

    // The engine looks before and after each write: not every service checks conditions.
    fn write_limits(&self) -> Option<WriteLimits> {
        let can = self.client.service.capability();
        let limits = WriteLimits::new(Publication::Atomic).without_conditions();
        can.write.then_some(if can.write_can_multi { limits.with_upload() } else { limits })
    }

    async fn put(&self, to: PutOptions<'_>, content: &Content) -> Result<StoredObject, HttpError> {
        let bytes = content.chunks().iter().cloned().collect();
        let written = counted("Write", self.client.write(&to.name.key, bytes)).await?;
        Ok(stored(content.len(), written))
    }

    async fn start_upload(&self, to: PutOptions<'_>) -> Result<BoxUpload<HttpError>, HttpError> {
        let OpenDalClient { service, context } = &self.client;
        let writer = service.write(context, &to.name.key, OpWrite::new()).map_err(returned)?;
        Ok(BoxUpload::new(Uploading { writer, len: 0 }))
    }
}

/// An upload in parts, one after the other.
struct Uploading {
    writer: Writer,
    len: u64,
}

impl Upload for Uploading {
    type Error = HttpError;

    async fn append(&mut self, content: &Content) -> Result<(), HttpError> {
        self.len += content.len();
        let bytes: Buffer = content.chunks().iter().cloned().collect();
        counted("Write", async { self.writer.write(bytes).await.map_err(returned) }).await
    }

    async fn commit(&mut self) -> Result<StoredObject, HttpError> {
        let written = self.writer.close().await.map_err(returned)?;
        Ok(stored(self.len, meta(&written)))
    }

    async fn abort(&mut self) -> Result<(), HttpError> {
        self.writer.abort().await.map_err(returned)
    }
}

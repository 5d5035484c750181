//! S3 as the engine uses it.

use crate::connection::Bucket;
use crate::get::{self, Body, Cause};
use crate::names;
use crate::write::checksum::same_etag;
use std::sync::Arc;
use tf_fs_object_store::{
    CopyOptions, GetOptions, Head, ListOptions, Name, ObjectMeta, ObjectStore, Page, Settings,
};
use tf_fs_plugin::prelude::*;

impl ObjectStore for Bucket {
    type Failure = Cause;
    type Body = Body;

    const LIST: &'static str = "ListObjectsV2";
    const PERMISSION_TO_LIST: &'static str = "s3:ListBucket";
    const PERMISSION_TO_READ: &'static str = "s3:GetObject";
    const LISTS_AFTER: bool = true;
    // `watch` ends the requests of the SDK, and the SDK repeats them.
    const HAS_DEADLINES: bool = true;

    fn settings(&self) -> &Settings {
        &self.settings.engine
    }

    fn endpoint(&self) -> String {
        self.route().map(|route| route.base.clone()).unwrap_or_default()
    }

    async fn get(&self, options: GetOptions<'_>, attempt: u32) -> Result<(Head, Body), Cause> {
        get::get(self, options, attempt).await
    }

    async fn list(&self, options: &ListOptions, token: Option<&str>) -> Result<Page, Cause> {
        names::page(self, options, token).await
    }

    async fn head(&self, name: &Name) -> Result<ObjectMeta, Cause> {
        names::head(self, name).await
    }

    async fn put_marker(&self, marker: &Name) -> Result<(), Cause> {
        names::put_marker(self, marker).await
    }

    async fn delete(&self, name: &Name) -> Result<(), Cause> {
        names::delete(self, name).await
    }

    fn delete_many_limit(&self) -> usize {
        1000
    }

    fn deletes_together(&self, key: &str) -> bool {
        names::fits_xml(key)
    }

    async fn delete_many(
        &self,
        directory: &Name,
        keys: &[String],
    ) -> Result<Vec<(String, Cause)>, Cause> {
        names::delete_many(self, directory, keys).await
    }

    async fn copy(
        from: &Arc<Self>,
        to: &Arc<Self>,
        options: CopyOptions<'_>,
    ) -> Result<Option<ObjectMeta>, Cause> {
        names::copy(from, to, options).await
    }

    /// The copy of an object that was made of parts has another ETag, and so nothing that tells it from a file of the
    /// same length.
    fn is_copy(source: &ObjectMeta, destination: &ObjectMeta) -> bool {
        match (&source.etag, &destination.etag) {
            (Some(source_tag), Some(tag)) => {
                same_etag(source_tag, tag) && source.size == destination.size
            }
            _ => false,
        }
    }
}

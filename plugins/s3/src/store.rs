//! S3 as the engine uses it.

use crate::cause::Cause;
use crate::connection::Bucket;
use crate::get::{self, Body};
use crate::names;
use crate::write;
use crate::write::checksum::same_etag;
use std::sync::Arc;
use tf_fs_object_store::{
    Attributes, CommitStrategy, Content, CopyOptions, GetHead, GetOptions, ListOptions, Multipart,
    Name, ObjectMeta, ObjectStore, Page, Part, Payload, PutOptions, Range, Settings, StoredObject,
    WriteLimits,
};
use tf_fs_plugin::prelude::*;

impl ObjectStore for Bucket {
    type Error = Cause;
    type Body = Body;

    const LIST: &'static str = "ListObjectsV2";
    const PERMISSION_TO_LIST: &'static str = "s3:ListBucket";
    const PERMISSION_TO_READ: &'static str = "s3:GetObject";
    const SUPPORTS_START_AFTER: bool = true;
    const STABLE_PAGE_TOKENS: bool = true;
    // The engine's HTTP client ends them.
    const HAS_TIMEOUTS: bool = true;

    fn settings(&self) -> &Settings {
        &self.settings.engine
    }

    fn endpoint(&self) -> String {
        self.route().map(|route| route.base.to_string()).unwrap_or_default()
    }

    fn cache_scope(&self) -> Option<String> {
        Some(self.cache_scope())
    }

    async fn get(&self, options: GetOptions<'_>) -> Result<(GetHead, Body), Cause> {
        get::get(self, options).await
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

    fn can_batch_delete(&self, key: &str) -> bool {
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

    /// Returns whether the ETags and sizes are equal. A copy of an object that was made from parts has another ETag, so
    /// nothing tells it from a file of the same length.
    fn is_copy(source: &ObjectMeta, destination: &ObjectMeta) -> bool {
        match (&source.etag, &destination.etag) {
            (Some(source_tag), Some(tag)) => {
                same_etag(source_tag, tag)
                    && source.size.is_some()
                    && source.size == destination.size
            }
            _ => false,
        }
    }

    fn write_limits(&self) -> Option<WriteLimits> {
        Some(write::limits())
    }

    async fn stored(&self, name: &Name) -> Result<(StoredObject, Attributes), Cause> {
        write::stored(self, name).await
    }

    async fn is_ours(
        &self,
        _: &Name,
        sent: Payload<'_>,
        found: &StoredObject,
    ) -> Result<Option<bool>, Cause> {
        Ok(write::is_ours(sent, found))
    }

    async fn create_multipart(&self, to: PutOptions<'_>) -> Result<String, Cause> {
        write::create_multipart(self, to).await
    }

    async fn put_part(
        &self,
        upload: Multipart<'_>,
        number: u32,
        content: &Content,
    ) -> Result<Part, Cause> {
        write::put_part(self, upload, number, content).await
    }

    async fn copy_part(
        &self,
        upload: Multipart<'_>,
        number: u32,
        source: &StoredObject,
        range: Range,
    ) -> Result<Part, Cause> {
        write::copy_part(self, upload, number, source, range).await
    }

    async fn abort_multipart(&self, upload: Multipart<'_>) -> Result<(), Cause> {
        write::abort_multipart(self, upload).await
    }

    // Stores differ in the conditions that they take.
    fn commit_strategy<'a>(
        &'a self,
        to: PutOptions<'a>,
        sent: Payload<'a>,
    ) -> impl CommitStrategy<Error = Cause> + 'a {
        write::commit_strategy(self, to, sent)
    }
}

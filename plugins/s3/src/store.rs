//! The requests of a bucket as the engine makes them.

use crate::bucket::Bucket;
use crate::copy;
use crate::delete;
use crate::error::S3Error;
use crate::get::{self, Body};
use crate::list;
use crate::request::Call;
use crate::write::checksum::same_etag;
use crate::write::multipart;
use crate::write::object::{self, Target};
use crate::write::{self, publication::Publishing};
use std::sync::Arc;
use tf_fs_object_store::http;
use tf_fs_object_store::{
    Attributes, CommitStrategy, Content, CopyOptions, GetHead, GetOptions, ListOptions, Multipart,
    Name, ObjectMeta, ObjectStore, Page, Part, Payload, Range, Settings, StoredObject, Terms,
    WriteLimits,
};
use tf_fs_plugin::prelude::*;

impl ObjectStore for Bucket {
    type Error = S3Error;
    type Body = Body;

    fn settings(&self) -> &Settings {
        &self.settings.engine
    }

    fn endpoint(&self) -> String {
        self.resolve_endpoint().map(|endpoint| endpoint.base.to_string()).unwrap_or_default()
    }

    fn terms(&self) -> Terms {
        Terms {
            list: "ListObjectsV2",
            permission_to_list: "s3:ListBucket",
            permission_to_read: "s3:GetObject",
        }
    }

    fn supports_start_after(&self) -> bool {
        true
    }

    fn has_stable_page_tokens(&self) -> bool {
        true
    }

    // The engine's HTTP client ends requests.
    fn has_timeouts(&self) -> bool {
        true
    }

    fn cache_scope(&self) -> Option<String> {
        Some(self.scope())
    }

    async fn get(&self, options: GetOptions<'_>) -> Result<(Option<GetHead>, Body), S3Error> {
        let (head, body) = get::get(self, options).await?;
        Ok((Some(head), body))
    }

    async fn list(&self, options: &ListOptions, token: Option<&str>) -> Result<Page, S3Error> {
        list::objects(self, options, token).await
    }

    async fn head(&self, name: &Name) -> Result<ObjectMeta, S3Error> {
        object::head(self, name).await
    }

    async fn put_marker(&self, marker: &Name) -> Result<(), S3Error> {
        object::put_marker(self, marker).await
    }

    async fn delete(&self, name: &Name) -> Result<(), S3Error> {
        let call = Call::object("DeleteObject", http::Method::DELETE, &name.key);
        self.send(call).await.map(drop)
    }

    fn delete_many_limit(&self) -> usize {
        1000
    }

    fn can_batch_delete(&self, key: &str) -> bool {
        delete::fits_xml(key)
    }

    async fn delete_many(
        &self,
        directory: &Name,
        keys: &[String],
    ) -> Result<Vec<(String, S3Error)>, S3Error> {
        delete::delete_many(self, directory, keys).await
    }

    async fn copy(
        from: &Arc<Self>,
        to: &Arc<Self>,
        options: CopyOptions<'_>,
    ) -> Result<Option<ObjectMeta>, S3Error> {
        copy::copy(from, to, options).await
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

    async fn stored(&self, name: &Name) -> Result<(StoredObject, Attributes), S3Error> {
        Target::plain(self, name).find().await
    }

    async fn is_ours(
        &self,
        _: &Name,
        sent: Payload<'_>,
        found: &StoredObject,
    ) -> Result<Option<bool>, S3Error> {
        Ok(write::is_ours(sent, found))
    }

    async fn create_multipart(
        &self,
        to: tf_fs_object_store::PutOptions<'_>,
    ) -> Result<String, S3Error> {
        multipart::create(&Target::of(self, to)).await
    }

    async fn put_part(
        &self,
        upload: Multipart<'_>,
        number: u32,
        content: &Content,
    ) -> Result<Part, S3Error> {
        multipart::put_part(self, upload, number, content).await
    }

    async fn copy_part(
        &self,
        upload: Multipart<'_>,
        number: u32,
        source: &StoredObject,
        range: Range,
    ) -> Result<Part, S3Error> {
        multipart::copy_part(self, upload, number, source, range).await
    }

    async fn abort_multipart(&self, upload: Multipart<'_>) -> Result<(), S3Error> {
        multipart::abort(self, upload.name, upload.id).await
    }

    // Stores differ in the conditions that they take.
    fn commit_strategy<'a>(
        &'a self,
        to: tf_fs_object_store::PutOptions<'a>,
        sent: Payload<'a>,
    ) -> impl CommitStrategy<Error = S3Error> + 'a {
        Publishing::new(Target::of(self, to), to.mode, sent)
    }
}

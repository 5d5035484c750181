//! The requests of a container as the engine makes them.

use crate::bucket::{Container, marks_directory, meta, refuse_directory};
use crate::{blocks, copy, delete, list, request, write};
use std::sync::Arc;
use tf_fs_object_store::http::{HttpBody, HttpError, Method, RangeOutcome};
use tf_fs_object_store::{
    Attributes, Content, CopyOptions, ErrorKind, GetHead, GetOptions, ListOptions, Multipart, Name,
    ObjectMeta, ObjectStore, Page, Part, Payload, PutOptions, Range, Settings, StoreError as _,
    StoredObject, Terms, WriteLimits, same_etag,
};
use tf_fs_plugin::prelude::*;

impl Container {
    /// Requests a range of a blob.
    pub(crate) async fn read(
        &self,
        mut options: GetOptions<'_>,
    ) -> Result<(GetHead, HttpBody), HttpError> {
        let range = &mut options.range;
        range.end = range.end.max(range.start + 1);
        let text = format!("bytes={}-{}", range.start, range.end - 1);
        let start = range.start;
        let call = self
            .call(Method::GET, options.key)
            .with_header("x-ms-range", &text)?
            .with_optional("if-match", options.if_match)?;
        let response = self.account.attempt(&call).await?;
        refuse_directory(options.key, &response)?;
        let answer = response.range_response();
        // Azurite returns 206 for the first byte of an empty blob.
        let is_empty = response.status == 206 && response.content_length == Some(0);
        if !is_empty && !matches!(answer.read(options)?, RangeOutcome::Nothing(_)) {
            return match answer.head(options)? {
                Some(head) => {
                    let len = head.end - start;
                    Ok((head, response.into_body(Some(len))))
                }
                None => Err(self.account.refused(response).await),
            };
        }
        // There is no byte at its start: the properties tell the size.
        let response = self.properties(options.key).await?;
        refuse_directory(options.key, &response)?;
        let size = response.content_length;
        let size = size.ok_or_else(|| HttpError::invalid("it has no Content-Length"))?;
        let meta = meta(&response, Some(size));
        let is_wanted = |etag| meta.etag.as_deref().is_some_and(|found| same_etag(found, etag));
        if options.if_match.is_some_and(|etag| !is_wanted(etag)) {
            return Err(HttpError::changed());
        }
        if size > start {
            return Err(HttpError::invalid("the blob is longer than the store said"));
        }
        let head = GetHead::new(size, size).with_etag(meta.etag).with_modified(meta.modified);
        Ok((head, response.into_body(Some(0))))
    }
}

impl ObjectStore for Container {
    type Error = HttpError;
    type Body = HttpBody;

    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn endpoint(&self) -> String {
        self.account.endpoint.clone()
    }

    fn terms(&self) -> Terms {
        Terms {
            list: "List Blobs",
            permission_to_list: "the permission to list blobs",
            permission_to_read: "the permission to read blobs",
        }
    }

    // The name of the bucket has the account and the container. A gateway may serve several stores below different paths.
    fn cache_scope(&self) -> Option<String> {
        Some(format!("{}{}", self.account.endpoint, self.account.path))
    }

    async fn get(&self, options: GetOptions<'_>) -> Result<(Option<GetHead>, HttpBody), HttpError> {
        let (head, body) = self.read(options).await?;
        Ok((Some(head), body))
    }

    async fn list(&self, options: &ListOptions, token: Option<&str>) -> Result<Page, HttpError> {
        if self.name.is_empty() {
            return list::containers(self, options, token).await;
        }
        list::blobs(self, options, token).await
    }

    async fn head(&self, name: &Name) -> Result<ObjectMeta, HttpError> {
        let response = self.properties(&name.key).await?;
        refuse_directory(&name.key, &response)?;
        Ok(meta(&response, response.content_length))
    }

    async fn put_marker(&self, marker: &Name) -> Result<(), HttpError> {
        write::put_marker(self, &marker.key).await
    }

    async fn delete(&self, name: &Name) -> Result<(), HttpError> {
        let delete = |key: &str| self.account.send(self.call(Method::DELETE, key), &[202]);
        let deleted = delete(&name.key).await.map(drop);
        match (&deleted, name.key.strip_suffix('/')) {
            // The marker may be a blob without the `/`.
            (Err(failed), Some(key)) if failed.kind() == ErrorKind::NotFound => {
                if list::is_folder(self, &name.key).await? {
                    return delete(key).await.map(drop);
                }
                deleted
            }
            _ => deleted,
        }
    }

    fn delete_many_limit(&self) -> usize {
        if self.name.is_empty() { 0 } else { delete::MOST }
    }

    // The marker of a directory may be a blob without the `/`, which `delete` looks for.
    fn can_batch_delete(&self, key: &str) -> bool {
        !key.ends_with('/')
    }

    async fn delete_many(
        &self,
        _: &Name,
        keys: &[String],
    ) -> Result<Vec<(String, HttpError)>, HttpError> {
        delete::delete(self, keys).await
    }

    async fn copy(
        from: &Arc<Self>,
        to: &Arc<Self>,
        options: CopyOptions<'_>,
    ) -> Result<Option<ObjectMeta>, HttpError> {
        copy::copy(from, to, options).await
    }

    fn write_limits(&self) -> Option<WriteLimits> {
        (!self.name.is_empty()).then(|| write::limits(self.settings.write_part))
    }

    async fn put(&self, to: PutOptions<'_>, content: &Content) -> Result<StoredObject, HttpError> {
        write::put(self, to, content).await
    }

    async fn stored(&self, name: &Name) -> Result<(StoredObject, Attributes), HttpError> {
        let response = self.properties(&name.key).await?;
        if !name.key.ends_with('/') && marks_directory(&response) {
            return Err(HttpError::Other(Error::expected_file(name)));
        }
        write::stored(&response)
    }

    async fn is_ours(
        &self,
        name: &Name,
        sent: Payload<'_>,
        found: &StoredObject,
    ) -> Result<Option<bool>, HttpError> {
        write::is_ours(self, name, sent, found).await
    }

    async fn create_multipart(&self, _: PutOptions<'_>) -> Result<String, HttpError> {
        request::new_id()
    }

    async fn put_part(
        &self,
        upload: Multipart<'_>,
        number: u32,
        content: &Content,
    ) -> Result<Part, HttpError> {
        write::put_block(self, upload, number, content).await
    }

    async fn copy_part(
        &self,
        upload: Multipart<'_>,
        number: u32,
        source: &StoredObject,
        range: Range,
    ) -> Result<Part, HttpError> {
        blocks::keep(self, upload, number, source, range).await
    }

    async fn complete_multipart(
        &self,
        to: PutOptions<'_>,
        _id: &str,
        parts: &[Part],
    ) -> Result<StoredObject, HttpError> {
        write::put_block_list(self, to, parts).await
    }

    // Azure deletes blocks that were never committed after a week, and has no request to do it earlier.
    async fn abort_multipart(&self, _: Multipart<'_>) -> Result<(), HttpError> {
        Ok(())
    }
}

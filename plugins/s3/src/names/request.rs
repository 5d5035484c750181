//! Requests for one object, and for the list of buckets.

use super::pages::payer;
use crate::cause::Cause;
use crate::connection::Bucket;
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{ObjectCannedAcl, ServerSideEncryption, StorageClass};
use tf_fs_object_store::{BucketPage, Name};

/// The content type that other tools write for a directory.
const DIRECTORY: &str = "application/x-directory";

/// Writes the empty object that marks a directory.
pub(crate) async fn put_marker(bucket: &Bucket, marker: &Name) -> Result<(), Cause> {
    bucket
        .client
        .put_object()
        .bucket(&*bucket.name)
        .key(&marker.key)
        .body(ByteStream::from_static(b""))
        .content_length(0)
        .content_type(DIRECTORY)
        .set_server_side_encryption(encryption(bucket))
        .set_ssekms_key_id(bucket.settings.sse_kms_key_id.clone())
        .set_acl(acl(bucket))
        .set_request_payer(payer(bucket))
        .send()
        .await
        .map(drop)
        .map_err(|error| bucket.cause(error))
}

/// Deletes exactly this key, whether or not there is such an object.
pub(crate) async fn delete(bucket: &Bucket, name: &Name) -> Result<(), Cause> {
    bucket
        .client
        .delete_object()
        .bucket(&*bucket.name)
        .key(&name.key)
        .set_request_payer(payer(bucket))
        .send()
        .await
        .map(drop)
        .map_err(|error| bucket.cause(error))
}

/// Requests a page of the buckets that the credentials may list, with any bucket's client.
pub(crate) async fn list_buckets(any: &Bucket, token: Option<&str>) -> Result<BucketPage, Cause> {
    let request = any.client.list_buckets().set_continuation_token(token.map(str::to_owned));
    let answer = request.send().await;
    let answer = answer.map_err(|error| any.cause(error))?;
    let names = answer.buckets().iter().filter_map(|bucket| bucket.name()).map(str::to_owned);
    Ok(BucketPage::new(names.collect(), answer.continuation_token().map(str::to_owned)))
}

/// Returns how the store encrypts written objects.
pub(super) fn encryption(bucket: &Bucket) -> Option<ServerSideEncryption> {
    bucket.settings.server_side_encryption.as_deref().map(ServerSideEncryption::from)
}

/// Returns where the store keeps written objects.
pub(super) fn storage_class(bucket: &Bucket) -> Option<StorageClass> {
    bucket.settings.storage_class.as_deref().map(StorageClass::from)
}

/// Returns who may access written objects.
pub(super) fn acl(bucket: &Bucket) -> Option<ObjectCannedAcl> {
    bucket.settings.acl.as_deref().map(ObjectCannedAcl::from)
}

//! Requests that change an object.

use super::pages::payer;
use crate::connection::{Bucket, Connection};
use crate::failure::failure;
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{ServerSideEncryption, StorageClass};
use tf_fs_object_store::Name;
use tf_fs_plugin::prelude::*;

/// What other tools write for a directory.
const DIRECTORY: &str = "application/x-directory";

/// Writes the empty object that marks a directory.
pub(super) async fn put_marker(
    connection: &Connection,
    bucket: &Bucket,
    name: &Name,
) -> Result<()> {
    let marker = name.with_key(name.prefix());
    let began = connection.listings.begin();
    let put = bucket
        .client
        .put_object()
        .bucket(&*bucket.name)
        .key(&marker.key)
        .body(ByteStream::from_static(b""))
        .content_length(0)
        .content_type(DIRECTORY)
        .set_server_side_encryption(encryption(bucket))
        .set_ssekms_key_id(bucket.settings.sse_kms_key_id.clone())
        .set_request_payer(payer(bucket))
        .send()
        .await;
    match put {
        Ok(_) => {
            connection.listings.wrote(&marker, None, began, bucket.settings.engine.listing_ttl);
            Ok(())
        }
        Err(error) => {
            // It may have been done all the same.
            connection.listings.changed(&marker);
            Err(failure("PutObject", &marker, error))
        }
    }
}

/// Deletes exactly this key, whether or not there is such an object.
pub(super) async fn delete(connection: &Connection, bucket: &Bucket, name: &Name) -> Result<()> {
    let deleted = bucket
        .client
        .delete_object()
        .bucket(&*bucket.name)
        .key(&name.key)
        .set_request_payer(payer(bucket))
        .send()
        .await;
    // Also after an error: it may have been done all the same.
    connection.listings.changed(name);
    deleted.map(drop).map_err(|error| failure("DeleteObject", name, error))
}

/// How the store encrypts what is written.
pub(super) fn encryption(bucket: &Bucket) -> Option<ServerSideEncryption> {
    bucket.settings.server_side_encryption.as_deref().map(ServerSideEncryption::from)
}

/// Where the store keeps what is written.
pub(super) fn storage_class(bucket: &Bucket) -> Option<StorageClass> {
    bucket.settings.storage_class.as_deref().map(StorageClass::from)
}

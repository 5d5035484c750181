//! One object, where listings are not permitted.

use super::pages::payer;
use crate::cause::Cause;
use crate::connection::Bucket;
use std::time::SystemTime;
use tf_fs_object_store::{Name, ObjectMeta};

/// Requests the metadata of one object.
pub(crate) async fn head(bucket: &Bucket, name: &Name) -> Result<ObjectMeta, Cause> {
    let head = bucket.client.head_object().bucket(&*bucket.name).key(&name.key);
    match head.set_request_payer(payer(bucket)).send().await {
        Ok(head) => {
            let modified = head.last_modified().and_then(|time| SystemTime::try_from(*time).ok());
            let mut meta = ObjectMeta::default().with_etag(head.e_tag().map(str::to_owned));
            meta.size = head.content_length().and_then(|len| u64::try_from(len).ok());
            Ok(meta.with_modified(modified))
        }
        Err(error) => Err(bucket.cause(error)),
    }
}

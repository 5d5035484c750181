//! One object, where listings are not permitted.

use super::pages::{NoPage, is_denied, payer, status};
use crate::connection::Bucket;
use crate::failure::failure;
use std::time::SystemTime;
use tf_fs_object_store::{Known, Name, NoPage as _};
use tf_fs_plugin::prelude::*;

/// Asks for one object, since its listing was `refused`.
pub(crate) async fn head(bucket: &Bucket, name: &Name, refused: NoPage) -> Result<Option<Known>> {
    let refused = match refused {
        NoPage::Failed(refused) => *refused,
        NoPage::CutOff => return Err(refused.into_error(name)),
    };
    let answer = bucket
        .client
        .head_object()
        .bucket(&*bucket.name)
        .key(&name.key)
        .set_request_payer(payer(bucket))
        .send()
        .await;
    match answer {
        Ok(head) => Ok(Some(Known {
            size: head.content_length().and_then(|len| u64::try_from(len).ok()).unwrap_or(0),
            modified: head
                .last_modified()
                .and_then(|time| SystemTime::try_from(*time).ok())
                .unwrap_or(SystemTime::UNIX_EPOCH),
            etag: head.e_tag().unwrap_or_default().to_owned(),
        })),
        Err(error) => match status(&error) {
            // It may be a directory all the same.
            Some(404) if is_denied(&refused) => {
                Err(failure("ListObjectsV2", name, refused).context(
                    "there is no such object, and whether it is a directory only s3:ListBucket would tell; \
                     grant it",
                ))
            }
            Some(404) => Ok(None),
            // To whom may not list, S3 says the same of an object that does not exist. The answer to the
            // listing says more than that to a HEAD, which has no body.
            Some(403) => Err(failure("ListObjectsV2", name, refused).context(
                "no permission, or no such object: s3:ListBucket would tell which; grant it, or s3:GetObject",
            )),
            _ => Err(failure("HeadObject", name, error)),
        },
    }
}

//! The requests behind files that are open for writing.
//!
//! The engine collects what is appended and decides what is sent when. Here is what only S3 needs: conditions in the
//! form that a store takes (`guard`), and checksums that prove what is stored.

pub(crate) mod checksum;
pub(crate) mod guard;
pub(crate) mod multipart;
pub(crate) mod object;
pub(crate) mod publication;

use checksum::{Crc32, md5_etag, same_etag};
use publication::{checksums_of_parts, etag_of_parts};
use tf_fs_object_store::{CopyLimits, PartLimits, Payload, Publication, StoredObject, WriteLimits};

/// The smallest part that S3 takes, but for the last of an upload, and the smallest object of which a
/// part of an upload can be copied.
const SMALLEST: u64 = 5 << 20;
/// The largest part that S3 takes, uploaded or copied, and the largest object of one request.
const LARGEST: u64 = 5 << 30;
/// Bytes of a part that is a copy, unless there would be too many. Some stores do not respond before they have copied it.
pub(crate) const COPIED: u64 = 64 << 20;
/// The most parts that an upload can have.
const MOST: u32 = 10_000;

/// What a bucket takes.
pub(crate) fn limits() -> WriteLimits {
    let copies = Some(CopyLimits { smallest: SMALLEST, largest: LARGEST, usual: COPIED });
    let parts = PartLimits { smallest: SMALLEST, largest: LARGEST, most: MOST, copies };
    WriteLimits::new(Publication::Atomic).with_max_put(LARGEST).with_parts(parts)
}

/// Whether an object has these bytes: by its CRC32, or by an ETag that is made of their MD5.
pub(crate) fn is_ours(sent: Payload<'_>, found: &StoredObject) -> Option<bool> {
    if let Some(theirs) = &found.checksum {
        let own = match sent {
            Payload::Whole(content) => vec![Crc32::of_content(content).to_base64()],
            Payload::Parts { parts, .. } => checksums_of_parts(parts),
        };
        if own.contains(theirs) {
            return Some(true);
        }
        // One of parts proves nothing of other parts.
        if !own.is_empty() && !theirs.contains('-') {
            return Some(false);
        }
    }
    let etag = found.etag.as_deref()?;
    let own = match sent {
        Payload::Whole(content) => Some(md5_etag(content)),
        Payload::Parts { parts, .. } => etag_of_parts(parts),
    };
    // Some ETags are not MD5 sums, so an unequal one proves nothing.
    same_etag(&own?, etag).then_some(true)
}

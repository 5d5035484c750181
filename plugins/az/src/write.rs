//! Block blobs: one request, or blocks and their list.
//!
//! Azure checks each body by the MD5 that is sent with it, and keeps that of a blob from one request. The ids of the
//! blocks of an upload are unique, so the list of a blob's blocks tells whose blob it is.

use crate::blocks::{self, md5};
use crate::bucket::{Container, FOLDER};
use crate::request::Call;
use std::collections::HashMap;
use tf_fs_object_store::http::{Chunks, HttpError, Method, Response, date};
use tf_fs_object_store::{
    Attributes, Content, CopyLimits, Multipart, Name, Part, PartLimits, Payload, Publication,
    PutMode, PutOptions, StoreError as _, StoredObject, WriteLimits, same_etag,
};
use tf_fs_plugin::prelude::*;

/// Bytes of the largest blob that one request can make, and of the largest block.
const LARGEST_PUT: u64 = 5000 << 20;
const LARGEST_BLOCK: u64 = 4000 << 20;

/// Returns the limits of Azure. `part`: the bytes of a block, and of the largest file that is one request.
pub(crate) fn limits(part: usize) -> WriteLimits {
    WriteLimits::new(Publication::Atomic).with_max_put(LARGEST_PUT).with_parts(PartLimits {
        smallest: 1,
        largest: LARGEST_BLOCK,
        most: blocks::MOST_NEW,
        copies: Some(CopyLimits { smallest: part as u64 + 1, largest: u64::MAX, usual: u64::MAX }),
    })
}

/// Writes the empty blob that marks a directory, with the mark that Azure's tools look for.
pub(crate) async fn put_marker(container: &Container, key: &str) -> Result<(), HttpError> {
    let call = container
        .call(Method::PUT, key)
        .with_header("x-ms-blob-type", "BlockBlob")?
        .with_header(&format!("x-ms-meta-{}", FOLDER), "true")?;
    container.account.send(call, &[201]).await.map(drop)
}

/// Writes a blob with one request.
pub(crate) async fn put(
    container: &Container,
    to: PutOptions<'_>,
    content: &Content,
) -> Result<StoredObject, HttpError> {
    let md5 = md5(content.chunks());
    let call = container
        .call(Method::PUT, &to.name.key)
        .with_header("x-ms-blob-type", "BlockBlob")?
        .with_header("content-md5", &md5)?
        .with_body(chunks(content));
    let response = container.account.send(described(call, to)?, &[201]).await?;
    Ok(stored_as(&response, content.len()).with_checksum(md5))
}

/// Sends a block.
pub(crate) async fn put_block(
    container: &Container,
    upload: Multipart<'_>,
    number: u32,
    content: &Content,
) -> Result<Part, HttpError> {
    let block = (chunks(content), md5(content.chunks()), content.len());
    blocks::put(container, upload, number, block).await
}

/// Makes the blob from these blocks.
pub(crate) async fn put_block_list(
    container: &Container,
    to: PutOptions<'_>,
    parts: &[Part],
) -> Result<StoredObject, HttpError> {
    let call = container
        .call(Method::PUT, &to.name.key)
        .with_query("comp", "blocklist")
        .with_body(blocks::list(parts));
    let response = container.account.send(described(call, to)?, &[201]).await?;
    Ok(stored_as(&response, parts.iter().map(|part| part.len).sum()))
}

/// Returns what the properties of a blob tell.
pub(crate) fn stored(response: &Response) -> Result<(StoredObject, Attributes), HttpError> {
    let size =
        response.content_length.ok_or_else(|| HttpError::invalid("it has no Content-Length"))?;
    let value = |name: &str| response.header(name).map(str::to_owned);
    let metadata: HashMap<_, _> = response
        .headers
        .iter()
        .filter_map(|(name, value)| {
            let name = name.as_str().strip_prefix("x-ms-meta-")?;
            Some((name.to_owned(), value.to_str().ok()?.to_owned()))
        })
        .collect();
    let attributes = Attributes {
        content_type: value("content-type"),
        cache_control: value("cache-control"),
        content_disposition: value("content-disposition"),
        content_encoding: value("content-encoding"),
        content_language: value("content-language"),
        metadata: Some(metadata).filter(|metadata| !metadata.is_empty()),
    };
    Ok((stored_as(response, size).with_checksum(value("content-md5")), attributes))
}

/// Returns whether a blob is what was sent: by the MD5 that Azure keeps, or by the ids of its blocks.
pub(crate) async fn is_ours(
    container: &Container,
    name: &Name,
    sent: Payload<'_>,
    found: &StoredObject,
) -> Result<Option<bool>, HttpError> {
    let parts = match sent {
        Payload::Whole(content) => {
            return Ok(found.checksum.as_ref().map(|found| *found == md5(content.chunks())));
        }
        Payload::Parts { parts, .. } => parts,
    };
    let (etag, found_blocks) = blocks::committed(container, &name.key).await?;
    let tags = etag.as_deref().zip(found.etag.as_deref());
    if tags.is_some_and(|(etag, found)| !same_etag(etag, found)) {
        // It is another version by now: the next look tells.
        return Ok(None);
    }
    let sent = parts.iter().flat_map(|part| blocks::ids(part).1);
    Ok(Some(found_blocks.iter().map(|(id, _)| id.as_str()).eq(sent)))
}

fn stored_as(response: &Response, size: u64) -> StoredObject {
    let modified = response.header("last-modified").and_then(date);
    StoredObject::new(size)
        .with_etag(response.header("etag").map(str::to_owned))
        .with_modified(modified)
}

/// Adds the blob's attributes besides its bytes, and the condition of the write.
fn described(mut call: Call, to: PutOptions<'_>) -> Result<Call, HttpError> {
    let Attributes {
        content_type,
        cache_control,
        content_disposition,
        content_encoding,
        content_language,
        metadata,
    } = to.attributes;
    for (name, value) in [
        ("x-ms-blob-content-type", content_type),
        ("x-ms-blob-cache-control", cache_control),
        ("x-ms-blob-content-disposition", content_disposition),
        ("x-ms-blob-content-encoding", content_encoding),
        ("x-ms-blob-content-language", content_language),
    ] {
        call = call.with_optional(name, value.as_deref())?;
    }
    for (name, value) in metadata.iter().flatten() {
        call = call.with_header(&format!("x-ms-meta-{name}"), value)?;
    }
    match to.mode {
        PutMode::Overwrite => Ok(call),
        PutMode::Create => call.with_header("if-none-match", "*"),
        PutMode::Update(stored) => call.with_optional("if-match", stored.etag.as_deref()),
    }
}

fn chunks(content: &Content) -> Chunks {
    Chunks::new(content.chunks().iter().cloned())
}

//! Blocks of a blob: their ids, their lists, and how a new version keeps them.
//!
//! Appending does not copy a blob: the list of the new version names the blocks of the old one before the new blocks. A
//! blob from one request has no blocks, and one of another program may have ids of another length. The bytes of such a
//! blob are read once, and sent as blocks.

use crate::bucket::Container;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{Bytes, BytesMut};
use md5::{Digest as _, Md5};
use std::fmt::Write as _;
use tf_fs_object_store::http::xml::{elements, escape};
use tf_fs_object_store::http::{Chunks, HttpError, Method, number};
use tf_fs_object_store::{
    GetOptions, Multipart, Name, Part, Range, StoreError as _, StoredObject, retry, same_etag,
};

/// The most blocks of a blob.
const MOST: u32 = 50_000;
/// How many of them may be new, and how many may be kept.
pub(crate) const MOST_NEW: u32 = MOST / 2;
/// The most blocks made from a blob whose own cannot be kept.
const MADE: u64 = 10_000;
/// The most bytes of the list of all blocks.
const LARGEST_LIST: usize = 16 << 20;
/// Marks a part whose blocks the blob has already.
const KEPT: &str = "kept:";

/// Returns the id of a block of an upload. All ids of a blob must have the same length.
fn id(upload: Multipart<'_>, number: u64) -> String {
    STANDARD.encode(format!("{}{number:08}", upload.id))
}

/// The length of the ids that [`id`] returns for an upload's id, which has 32 digits.
const ID_LEN: usize = 56;

/// Returns the ids of the blocks of a part, and whether the blob has them already.
pub(crate) fn ids(part: &Part) -> (bool, impl Iterator<Item = &str>) {
    let kept = part.id.strip_prefix(KEPT);
    (kept.is_some(), kept.unwrap_or(&part.id).split(',').filter(|id| !id.is_empty()))
}

/// Returns the body of a request that makes a blob from these parts.
pub(crate) fn list(parts: &[Part]) -> Chunks {
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>");
    for part in parts {
        let (is_kept, ids) = ids(part);
        let element = if is_kept { "Committed" } else { "Uncommitted" };
        for id in ids {
            // An id that is kept is the text of another program.
            let _ = write!(xml, "<{element}>{}</{element}>", escape(id));
        }
    }
    xml.push_str("</BlockList>");
    Chunks::new([xml.into()])
}

/// Sends the block of a part. Nothing of it is visible before it is in a list.
pub(crate) async fn put(
    container: &Container,
    upload: Multipart<'_>,
    number: u32,
    (body, md5, len): (Chunks, String, u64),
) -> Result<Part, HttpError> {
    let id = id(upload, number.into());
    send(container, upload.name, &id, body, &md5).await?;
    Ok(Part::new(number, id, len).proved(true))
}

async fn send(
    container: &Container,
    name: &Name,
    id: &str,
    body: Chunks,
    md5: &str,
) -> Result<(), HttpError> {
    let call = container
        .call(Method::PUT, &name.key)
        .with_query("comp", "block")
        .with_query("blockid", id)
        .with_header("content-md5", md5)?
        .with_body(body);
    container.account.send(call, &[201]).await.map(drop)
}

/// Returns a blob's version, and the ids and sizes of its blocks.
pub(crate) async fn committed(
    container: &Container,
    key: &str,
) -> Result<(Option<String>, Vec<(String, u64)>), HttpError> {
    let call = container
        .call(Method::GET, key)
        .with_query("comp", "blocklist")
        .with_query("blocklisttype", "committed");
    let response = container.account.send(call, &[200]).await?;
    let etag = response.header("etag").map(str::to_owned);
    let xml = response.collect(LARGEST_LIST).await?;
    let mut blocks = Vec::new();
    elements(&xml, |path, text| {
        let ["BlockList", "CommittedBlocks", "Block", field] = path else { return };
        match (*field, text) {
            ("Name", Some(id)) => blocks.push((id, 0)),
            ("Size", Some(size)) => {
                if let Some(block) = blocks.last_mut() {
                    block.1 = number(&size).unwrap_or_default();
                }
            }
            _ => {}
        }
    })
    .map_err(HttpError::Invalid)?;
    Ok((etag, blocks))
}

/// Makes the existing bytes of a blob the beginning of an upload.
pub(crate) async fn keep(
    container: &Container,
    upload: Multipart<'_>,
    part: u32,
    source: &StoredObject,
    range: Range,
) -> Result<Part, HttpError> {
    let (etag, blocks) = committed(container, &upload.name.key).await?;
    let tags = etag.as_deref().zip(source.etag.as_deref());
    if !tags.is_some_and(|(etag, wanted)| same_etag(etag, wanted)) {
        return Err(HttpError::changed());
    }
    let size: u64 = blocks.iter().map(|(_, size)| size).sum();
    let all: Vec<String> = blocks.into_iter().map(|(id, _)| id).collect();
    if range == Range::new(0, size)
        && all.len() <= MOST_NEW as usize
        && all.iter().all(|id| id.len() == ID_LEN && STANDARD.decode(id).is_ok())
    {
        let id = format!("{KEPT}{}", all.join(","));
        return Ok(Part::new(part, id, size).proved(true));
    }
    let step = range.len().div_ceil(MADE).max(container.settings.write_part as u64);
    let mut made = Vec::new();
    for number in 0..range.len().div_ceil(step) {
        // Separate ids: the parts of an upload are counted from 1 to 25,000.
        let id = id(upload, 90_000_000 + number);
        let start = range.start + number * step;
        let piece = Range::new(start, range.end.min(start + step));
        let make = || again(container, upload.name, &id, etag.as_deref(), piece);
        retry(container, "copy part", upload.name, make).await.map_err(HttpError::Other)?;
        made.push(id);
    }
    Ok(Part::new(part, made.join(","), range.len()).proved(true))
}

/// Reads these bytes of a blob, and sends them as a block.
async fn again(
    container: &Container,
    name: &Name,
    id: &str,
    etag: Option<&str>,
    range: Range,
) -> Result<(), HttpError> {
    // No condition names a weak ETag.
    let strong = etag.filter(|etag| !etag.starts_with("W/"));
    let options = GetOptions::new(&name.key, range).with_if_match(strong);
    let (head, mut body) = container.read(options).await?;
    if !head.etag.as_deref().zip(etag).is_none_or(|(found, etag)| same_etag(found, etag)) {
        return Err(HttpError::changed());
    }
    let mut bytes = BytesMut::new();
    while let Some(chunk) = body.chunk_in_time().await? {
        bytes.extend_from_slice(&chunk);
    }
    if head.end != range.end || bytes.len() as u64 != range.len() {
        return Err(HttpError::invalid("it has other bytes than were requested"));
    }
    let bytes = bytes.freeze();
    let md5 = md5([&bytes]);
    send(container, name, id, Chunks::new([bytes]), &md5).await
}

/// Returns the MD5 of these bytes as headers have it.
pub(crate) fn md5<'a>(chunks: impl IntoIterator<Item = &'a Bytes>) -> String {
    let mut digest = Md5::new();
    for chunk in chunks {
        digest.update(chunk);
    }
    STANDARD.encode(digest.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_one_length_and_lists_keep_their_order() {
        let name = Name::new("az", "acc/c", "k");
        let upload_id = "0".repeat(32);
        let upload = Multipart { name: &name, id: &upload_id };
        for number in [1, MOST_NEW.into(), 90_000_000, 90_000_000 + MADE] {
            assert_eq!(id(upload, number).len(), ID_LEN, "{number}");
        }
        let parts = [Part::new(1, "kept:a,b", 2), Part::new(2, "c,d", 2), Part::new(3, "e", 1)];
        let text = "<BlockList><Committed>a</Committed><Committed>b</Committed><Uncommitted>c</Uncommitted>\
                    <Uncommitted>d</Uncommitted><Uncommitted>e</Uncommitted></BlockList>";
        assert!(format!("{:?}", list(&parts)).contains(text));
        let text = "<Committed>&lt;/Committed&gt;&amp;&apos;</Committed>";
        let parts = [Part::new(1, "kept:</Committed>&'", 2)];
        assert!(format!("{:?}", list(&parts)).contains(text), "{:?}", list(&parts));
        let empty = Part::new(1, KEPT, 0);
        assert_eq!(ids(&empty).1.count(), 0);
    }
}

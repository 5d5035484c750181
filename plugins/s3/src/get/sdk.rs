//! A GET with the official client.

use crate::cause::Cause;
use crate::connection::Bucket;
use aws_sdk_s3::error::SdkError;
use aws_sdk_s3::operation::get_object::GetObjectError;
use aws_sdk_s3::primitives::ByteStream;
use bytes::{Buf, BufMut, Bytes};
use std::io;
use std::time::SystemTime;
use tf_fs_object_store::http::{HttpError, RangeResponse, compression};
use tf_fs_object_store::metrics::BYTES_RECEIVED;
use tf_fs_object_store::{GetHead, GetOptions, ObjectStore as _};

/// The body of a response.
pub(super) struct Body {
    stream: ByteStream,
    /// Received, but not delivered yet.
    rest: Bytes,
    left: u64,
    endpoint: String,
}

pub(super) async fn get(
    bucket: &Bucket,
    wanted: GetOptions<'_>,
) -> Result<(GetHead, super::Body), Cause> {
    let answer = bucket
        .client
        .get_object()
        .bucket(&*bucket.name)
        .key(wanted.key)
        .range(format!("bytes={}-{}", wanted.range.start, wanted.range.end.saturating_sub(1)))
        .set_if_match(wanted.if_match.map(str::to_owned))
        .send()
        .await;
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => return refused(bucket, error, wanted),
    };
    let described = RangeResponse {
        status: if answer.content_range().is_some() { 206 } else { 200 },
        content_length: answer.content_length().and_then(|length| u64::try_from(length).ok()),
        content_range: answer.content_range(),
        content_type: answer.content_type(),
        compression: compression(answer.content_encoding()),
        etag: answer.e_tag(),
        modified: answer.last_modified().and_then(|time| SystemTime::try_from(*time).ok()),
    };
    let head = described.head(wanted)?.ok_or_else(|| HttpError::Invalid("no body".into()))?;
    let left = head.end - wanted.range.start;
    let endpoint = bucket.endpoint();
    let body = Body { stream: answer.body, rest: Bytes::new(), left, endpoint };
    Ok((head, super::Body(super::Inner::Sdk(body))))
}

fn refused(
    bucket: &Bucket,
    error: SdkError<GetObjectError>,
    wanted: GetOptions<'_>,
) -> Result<(GetHead, super::Body), Cause> {
    let Some(response) = error.raw_response() else { return Err(bucket.cause(error)) };
    let headers = response.headers();
    let described = RangeResponse {
        status: response.status().as_u16(),
        content_range: headers.get("content-range"),
        etag: headers.get("etag"),
        ..RangeResponse::default()
    };
    match described.head(wanted)? {
        Some(head) => Ok((head, super::Body(super::Inner::Empty))),
        None => Err(bucket.cause(error)),
    }
}

impl Body {
    pub(super) async fn fill(&mut self, to: &mut (impl BufMut + ?Sized)) -> Result<usize, Cause> {
        if self.left == 0 || !to.has_remaining_mut() {
            return Ok(0);
        }
        while self.rest.is_empty() {
            self.rest = match self.stream.next().await {
                Some(Ok(rest)) => rest,
                Some(Err(error)) => return Err(self.broken(io::Error::other(error))),
                None => {
                    let missing = format!("closed with {} bytes missing", self.left);
                    return Err(self.broken(io::Error::new(io::ErrorKind::UnexpectedEof, missing)));
                }
            };
        }
        let left = usize::try_from(self.left).unwrap_or(usize::MAX);
        let n = self.rest.len().min(to.remaining_mut()).min(left);
        BYTES_RECEIVED.add(n as u64);
        to.put_slice(&self.rest[..n]);
        self.rest.advance(n);
        self.left -= n as u64;
        Ok(n)
    }

    fn broken(&self, error: io::Error) -> Cause {
        HttpError::Transport(self.endpoint.clone(), error.into()).into()
    }
}

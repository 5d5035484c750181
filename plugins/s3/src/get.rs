//! One ranged GET.

use crate::bucket::Bucket;
use crate::error::S3Error;
use crate::request::Call;
use bytes::BufMut;
use tf_fs_object_store::http::{HttpBody, Method};
use tf_fs_object_store::{GetHead, GetOptions};

/// The bytes of a response, as they arrive; `None` of an object without bytes.
pub(crate) struct Body(Option<HttpBody>);

impl tf_fs_object_store::Body for Body {
    type Error = S3Error;

    async fn fill(&mut self, to: &mut (impl BufMut + Send)) -> Result<usize, S3Error> {
        match &mut self.0 {
            Some(body) => Ok(body.fill(to).await?),
            None => Ok(0),
        }
    }
}

/// Requests a range, and returns with the head of the response.
pub(crate) async fn get(
    bucket: &Bucket,
    options: GetOptions<'_>,
) -> Result<(GetHead, Body), S3Error> {
    let (start, last) = (options.range.start, options.range.end.saturating_sub(1));
    let call = Call::object("GetObject", Method::GET, options.key)
        .with_header("range", &format!("bytes={start}-{last}"))?
        .with_optional("if-match", options.if_match)?;
    let op = call.op;
    let response = bucket.attempt(call).await?;
    let Some(head) = response.range_response().head(options)? else {
        return Err(bucket.refused_get(op, response).await);
    };
    if response.status == 416 {
        // So that the connection is kept if nothing is left to read.
        response.beginning(64 << 10).await;
        return Ok((head, Body(None)));
    }
    let len = head.end - start;
    Ok((head, Body(Some(response.into_body(Some(len))))))
}

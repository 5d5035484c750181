//! One ranged GET, in one of two ways: over our connections, read straight into the destination, or with the official
//! client where a proxy is between.

mod own;
#[cfg(feature = "ranges")]
mod ranges;
mod request;
mod sdk;
mod target;

#[cfg(feature = "ranges")]
pub use ranges::{Ranges, Way};
pub(crate) use target::Shown;

use crate::cause::Cause;
use crate::connection::Bucket;
use crate::metrics;
use bytes::BufMut;
use std::time::Instant;
use tf_fs_object_store::http::{HttpBody, HttpError};
use tf_fs_object_store::{GetHead, GetOptions};

/// The bytes of a response, as they arrive.
pub(crate) struct Body(Inner);

enum Inner {
    Own(HttpBody),
    Sdk(sdk::Body),
    /// Of an object without bytes.
    Empty,
}

impl tf_fs_object_store::Body for Body {
    type Error = Cause;

    async fn fill(&mut self, to: &mut (impl BufMut + Send + ?Sized)) -> Result<usize, Cause> {
        match &mut self.0 {
            Inner::Own(body) => Ok(body.fill(to).await?),
            Inner::Sdk(body) => body.fill(to).await,
            Inner::Empty => Ok(0),
        }
    }
}

/// Requests a range, and returns with the head of the response.
pub(crate) async fn get(
    bucket: &Bucket,
    options: GetOptions<'_>,
) -> Result<(GetHead, Body), Cause> {
    let route = bucket.route().map_err(HttpError::Other)?;
    if bucket.is_for_sdk(&route) {
        return sdk::get(bucket, options).await;
    }
    let asked = Instant::now();
    let outcome = own::get(bucket, &route, options).await;
    let status = match &outcome {
        Ok(_) => Some(206),
        Err(cause) => cause.status(),
    };
    metrics::attempt("GetObject", asked.elapsed(), status);
    if matches!(outcome, Err(Cause::Failed(HttpError::Unsupported(_)))) {
        bucket.use_sdk();
        return sdk::get(bucket, options).await;
    }
    outcome
}

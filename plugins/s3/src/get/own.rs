//! A GET over one of our connections, from the socket straight into the destination.

use super::{Body, Inner, request};
use crate::cause::Cause;
use crate::connection::{Bucket, Route};
use crate::failure;
use tf_fs_object_store::http::{HttpError, RawGet, Response};
use tf_fs_object_store::{GetHead, GetOptions};

/// The most bytes read of the body of a refusal.
const REFUSAL_LIMIT: usize = 64 << 10;

pub(super) async fn get(
    bucket: &Bucket,
    route: &Route,
    wanted: GetOptions<'_>,
) -> Result<(GetHead, Body), Cause> {
    let credentials = bucket.credentials().await?;
    let request =
        request::request(bucket, route, wanted, credentials.as_ref()).map_err(HttpError::Other)?;
    let stall = bucket.settings.engine.stall_timeout;
    let raw_get = RawGet {
        pool_key: &bucket.place(route).map_err(HttpError::Other)?,
        endpoint: &route.base,
        connect_timeout: bucket.settings.connect_timeout,
        stall_timeout: stall,
        request: &request,
    };
    let response = raw_get.send(bucket.pool()).await?;
    let Some(head) = response.range_response().head(wanted)? else {
        return Err(refused(bucket, response).await);
    };
    if response.status == 416 {
        // So that the connection is kept if nothing is left to read.
        response.beginning(REFUSAL_LIMIT).await;
        return Ok((head, Body(Inner::Empty)));
    }
    if response.is_encoded() {
        return Err(HttpError::Unsupported("an encoded body".to_owned()).into());
    }
    let body = response.into_body(Some(head.end - wanted.range.start));
    Ok((head, Body(Inner::Own(body))))
}

async fn refused(bucket: &Bucket, response: Response) -> Cause {
    let (status, headers) = (response.status, response.headers.clone());
    let body = response.beginning(REFUSAL_LIMIT).await;
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let answer = failure::Answer::new(status, header, &body);
    let is_mended = bucket.may_try_again(status, header, &body);
    Cause::refusal(answer, header("retry-after"), is_mended)
}

//! The version and size of a file in a response, and whether to believe them.

use std::time::{Duration, SystemTime};
use tf_fs_object_store::http::{HttpBody, HttpError, RangeOutcome, Response, date};
use tf_fs_object_store::{GetHead, GetOptions, ObjectMeta, VersionCheck};

/// A response to a GET.
pub(crate) enum RangeBody {
    /// The bytes that were requested.
    Part(GetHead, Option<HttpBody>),
    /// The server does not send a part of this file: here is the whole file, or nothing that can be used.
    Whole(Option<Response>),
    /// Another status.
    Refused(Response),
}

/// Returns the version and the time that a response tells.
pub(crate) fn version(response: &Response) -> (Option<String>, Option<SystemTime>) {
    let etag = response.header("etag").filter(|etag| !etag.is_empty());
    (etag.map(str::to_owned), response.header("last-modified").and_then(date))
}

/// A file that was written less than this before its response may be written again with the same ETag: nginx and Apache
/// make ETags from a time in seconds and the length.
const RECENT: Duration = Duration::from_secs(2);

/// Returns whether a file was written less than two seconds before this response, by the server's clock.
fn is_recent(response: &Response, modified: Option<SystemTime>) -> bool {
    let now = response.header("date").and_then(date).unwrap_or_else(SystemTime::now);
    modified.is_some_and(|modified| modified + RECENT > now)
}

/// Reads the response to a request for `wanted`. `check` says what tells versions apart.
///
/// # Errors
/// If it contradicts itself or the request, or is of another version of the file.
pub(crate) fn read(
    response: Response,
    wanted: GetOptions<'_>,
    check: VersionCheck,
) -> Result<RangeBody, HttpError> {
    let is_first = wanted.known.is_none();
    let range = response.range_response();
    match range.read(wanted)? {
        RangeOutcome::Other => return Ok(RangeBody::Refused(response)),
        RangeOutcome::Nothing(Some(size)) => {
            let (etag, modified) = version(&response);
            let head = GetHead::new(size, size).with_etag(etag).with_modified(modified);
            return Ok(RangeBody::Part(head, None));
        }
        RangeOutcome::Whole(_) if is_first => return Ok(RangeBody::Whole(Some(response))),
        RangeOutcome::Part(_) if range.compression.is_none() => {}
        // Without a range the server may tell more: the size, or the bytes before it compresses them.
        _ if is_first => return Ok(RangeBody::Whole(None)),
        RangeOutcome::Whole(Some(_)) if range.compression.is_none() => {}
        RangeOutcome::Part(_) | RangeOutcome::Whole(Some(_)) => {
            return Err(HttpError::Invalid("it is compressed, which earlier ones were not".into()));
        }
        _ => {
            return Err(HttpError::Invalid(
                "it has all of the file, and not the requested bytes".into(),
            ));
        }
    }
    if check == VersionCheck::Etag
        && let Some(known) = wanted.known
    {
        let missing = match known {
            ObjectMeta { etag: Some(_), .. } => range.etag.is_none().then_some("ETag"),
            ObjectMeta { modified: Some(_), .. } if range.etag.is_none() => {
                range.modified.is_none().then_some("Last-Modified")
            }
            _ => None,
        };
        if let Some(missing) = missing {
            return Err(HttpError::Invalid(format!(
                "it has no {missing}, although the file had one when it was opened; TF_HTTPS_VERSION_CHECK=size \
                 compares the size alone"
            )));
        }
    }
    let modified = range.modified;
    let Some(head) = range.head(wanted)? else { return Ok(RangeBody::Refused(response)) };
    let head = head.with_recent(is_recent(&response, modified));
    let len = head.end - wanted.range.start;
    Ok(RangeBody::Part(head, Some(response.into_body(Some(len)))))
}

//! Conditions and ranges of requests.

use super::*;

/// The conditions of a read, or those on the source of a copy.
pub(super) struct Conditions<'a> {
    pub(super) if_match: Option<&'a ETagCondition>,
    pub(super) if_none_match: Option<&'a ETagCondition>,
}

impl Conditions<'_> {
    /// Checks the conditions. Fails with `PreconditionFailed`, or with `NotModified` for a read (`copy` is false).
    pub(super) fn check(&self, info: &Info, copy: bool) -> S3Result<()> {
        if self.if_match.is_some_and(|condition| !matches(condition, &info.etag)) {
            return Err(precondition("If-Match"));
        }
        let is_known = self.if_none_match.is_some_and(|condition| matches(condition, &info.etag));
        match (is_known, copy) {
            (false, _) => Ok(()),
            (true, true) => Err(precondition("If-None-Match")),
            (true, false) => {
                let mut error = s3_error!(NotModified);
                let mut headers = HeaderMap::new();
                if let Ok(etag) = strong(&info.etag).to_http_header() {
                    headers.insert(http::header::ETAG, etag);
                }
                error.set_headers(headers);
                Err(error)
            }
        }
    }
}

/// The conditions of an input.
macro_rules! conditions {
    ($input:expr, copy) => {
        Conditions {
            if_match: $input.copy_source_if_match.as_ref(),
            if_none_match: $input.copy_source_if_none_match.as_ref(),
        }
    };
    ($input:expr) => {
        Conditions {
            if_match: $input.if_match.as_ref(),
            if_none_match: $input.if_none_match.as_ref(),
        }
    };
}

/// Returns the bytes of an object that a request wants, and whether the response is a 206.
pub(super) fn selected(
    object: &Stored,
    range: Option<Range>,
    part: Option<i32>,
) -> S3Result<(std::ops::Range<u64>, bool)> {
    let len = object.data.len();
    if let Some(part) = part {
        if range.is_some() {
            return Err(s3_error!(
                InvalidRequest,
                "Cannot specify both Range header and partNumber query parameter"
            ));
        }
        let whole = [len];
        let parts = if object.info.parts.is_empty() { &whole[..] } else { &object.info.parts };
        let Some(index) =
            part.checked_sub(1).map(|index| index as usize).filter(|index| *index < parts.len())
        else {
            return Err(s3_error!(InvalidRange, "The requested partnumber is not satisfiable"));
        };
        let start: u64 = parts[..index].iter().sum();
        return Ok((start..start + parts[index], true));
    }
    match range {
        None => Ok((0..len, false)),
        Some(range) => match range.check(len) {
            Ok(range) => Ok((range, true)),
            Err(_) => {
                let mut error = s3_error!(InvalidRange, "The requested range is not satisfiable");
                let mut headers = HeaderMap::new();
                if let Ok(value) = format!("bytes */{len}").parse() {
                    headers.insert(http::header::CONTENT_RANGE, value);
                }
                error.set_headers(headers);
                Err(error)
            }
        },
    }
}

//! The meaning of a response to a ranged GET, and whether to believe it.

use super::{HttpError, content_range, unsatisfied_size};
use crate::object::Validators;
use crate::{GetHead, GetOptions, ObjectMeta, Range};
use std::time::SystemTime;

/// The head of a response to a GET of a range.
#[derive(Clone, Debug, Default)]
pub struct RangeResponse<'a> {
    /// The status.
    pub status: u16,
    /// `Content-Length`.
    pub content_length: Option<u64>,
    /// `Content-Range`.
    pub content_range: Option<&'a str>,
    /// `Content-Type`.
    pub content_type: Option<&'a str>,
    /// How the body is [compressed](super::compression), if it is.
    pub compression: Option<String>,
    /// `ETag`.
    pub etag: Option<&'a str>,
    /// `Last-Modified`.
    pub modified: Option<SystemTime>,
}

/// The meaning of a response to a ranged GET.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RangeOutcome {
    /// The body has the bytes from the beginning of the range to [`GetHead::end`]: all of them, or as many as the server
    /// sends at a time.
    Part(GetHead),
    /// The body has the whole object, of this size if the response tells. The range begins with its first byte.
    Whole(Option<u64>),
    /// The body has some bytes, but how many the object has is not known. The range begins with its first byte.
    Unsized,
    /// The object ends before the range, and has this size if the response tells. Without a size the range begins with
    /// the first byte, so the object is probably empty.
    Nothing(Option<u64>),
    /// A refusal or a redirect.
    Other,
}

impl RangeResponse<'_> {
    /// Returns what it means as the response to `wanted`.
    ///
    /// # Errors
    /// [`HttpError::Changed`] if the response tells that the object is not [the one that is read](GetOptions::known), where
    /// the bytes cannot be used. [`HttpError::Invalid`] if it contradicts itself or the request.
    pub fn read(&self, wanted: GetOptions<'_>) -> Result<RangeOutcome, HttpError> {
        match self.status {
            200 if wanted.range.start == 0 => Ok(RangeOutcome::Whole(self.content_length)),
            200 => self.unusable(
                wanted,
                self.content_length,
                "it has all of the object, and not the requested bytes",
            ),
            206 => self.part(wanted),
            304 | 412 if wanted.if_match.is_some() => Err(HttpError::Changed),
            416 => self.past_the_end(wanted),
            _ => Ok(RangeOutcome::Other),
        }
    }

    /// Returns what it says of the object, for a store that has ranges: a whole object is the beginning of itself, and
    /// one without a first byte is empty. `None` for another status.
    ///
    /// # Errors
    /// As [`read`](Self::read); [`HttpError::Unsupported`] for a whole object without a length; [`HttpError::Invalid`] for one
    /// that somebody has compressed on the way, and for a part of an object of unknown size.
    pub fn head(&self, wanted: GetOptions<'_>) -> Result<Option<GetHead>, HttpError> {
        let (size, end) = match self.read(wanted)? {
            RangeOutcome::Part(head) => return Ok(Some(head)),
            RangeOutcome::Whole(size) => {
                // A part of an object that was stored compressed is returned as it is.
                if self.status == 200
                    && let Some(encoding) = &self.compression
                {
                    return Err(HttpError::Invalid(format!(
                        "it is compressed ({}), where the object's own bytes were requested",
                        encoding.escape_debug()
                    )));
                }
                let no_length = || HttpError::Unsupported("a response without a length".to_owned());
                let size = size.ok_or_else(no_length)?;
                (size, size.min(wanted.range.end))
            }
            // Of 416. A 206 without bytes may have lost them.
            RangeOutcome::Nothing(size) if self.status == 416 => {
                (size.unwrap_or(0), size.unwrap_or(0))
            }
            RangeOutcome::Unsized | RangeOutcome::Nothing(_) => {
                return Err(self.wrong_range(wanted.range));
            }
            RangeOutcome::Other => return Ok(None),
        };
        Ok(Some(self.described(GetHead::new(size, end))))
    }

    fn described(&self, head: GetHead) -> GetHead {
        head.with_etag(self.etag.map(str::to_owned)).with_modified(self.modified)
    }

    fn part(&self, wanted: GetOptions<'_>) -> Result<RangeOutcome, HttpError> {
        let (asked, text) = (wanted.range, self.content_range.unwrap_or_default());
        if text.is_empty() && self.content_length == Some(0) && asked.start == 0 {
            return Ok(RangeOutcome::Nothing(None));
        }
        let known = wanted.known.and_then(|known| known.size);
        let (range, size) = match (content_range(text), text.strip_suffix("/*"), known) {
            (Some(told), ..) => told,
            // The server does not know the size. That of the version that is read is enough.
            (None, Some(range), Some(known)) => {
                content_range(&format!("{range}/{known}")).ok_or_else(|| self.wrong_range(asked))?
            }
            (None, Some(range), None) if asked.start == 0 && range.starts_with("bytes 0-") => {
                return Ok(RangeOutcome::Unsized);
            }
            _ => return Err(self.wrong_range(asked)),
        };
        let is_whole = range == Range::new(0, size) && asked.start == 0;
        if range.start != asked.start
            || range.end > asked.end && !is_whole
            || range.end > size
            || range.is_empty()
        {
            return Err(self.wrong_range(asked));
        }
        // In chunks there is no Content-Length; the reader of the body counts its bytes.
        if let Some(length) = self.content_length
            && length != range.len()
        {
            return Err(HttpError::Invalid(format!(
                "Content-Length {length} for {} bytes",
                range.len()
            )));
        }
        if range.end > asked.end {
            return Ok(RangeOutcome::Whole(Some(size)));
        }
        Ok(RangeOutcome::Part(self.described(GetHead::new(size, range.end))))
    }

    fn past_the_end(&self, wanted: GetOptions<'_>) -> Result<RangeOutcome, HttpError> {
        let size = self.content_range.and_then(unsatisfied_size);
        let start = wanted.range.start;
        match size {
            Some(size) if size <= start => Ok(RangeOutcome::Nothing(Some(size))),
            None if start == 0 && wanted.known.is_none() => Ok(RangeOutcome::Nothing(None)),
            // The version that is read has these bytes.
            None if wanted.known.is_some() || wanted.if_match.is_some() => Err(HttpError::Changed),
            size => self.unusable(wanted, size, "HTTP 416 for bytes that the object has"),
        }
    }

    /// Returns why the response cannot be used: it is of another version, or wrong.
    fn unusable(
        &self,
        wanted: GetOptions<'_>,
        size: Option<u64>,
        how: &str,
    ) -> Result<RangeOutcome, HttpError> {
        let is_other = wanted.known.is_some_and(|known| {
            let ObjectMeta { size: own, etag, modified } = known;
            let size = size.or(*own).unwrap_or_default();
            let own = Validators {
                size: own.unwrap_or(size),
                etag: etag.as_deref(),
                modified: *modified,
            };
            !own.compare(Validators { size, etag: self.etag, modified: self.modified }).is_same()
        });
        Err(if is_other { HttpError::Changed } else { HttpError::Invalid(how.to_owned()) })
    }

    fn wrong_range(&self, asked: Range) -> HttpError {
        let got = match (self.content_range, self.content_type) {
            (Some(got), _) => format!("Content-Range `{}`", got.escape_debug()),
            (None, Some(kind)) if kind.starts_with("multipart/") => "several parts".to_owned(),
            (None, _) => "no Content-Range".to_owned(),
        };
        let last = asked.end.saturating_sub(1);
        HttpError::Invalid(format!("{got} for bytes {}-{last}", asked.start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::compression;

    /// Returns the meaning of a response, in short.
    fn meaning(answer: &RangeResponse<'_>, wanted: GetOptions<'_>) -> String {
        match answer.read(wanted) {
            Ok(RangeOutcome::Part(head)) => format!("to {} of {}", head.end, head.size),
            Ok(RangeOutcome::Whole(Some(size))) => format!("all {size}"),
            Ok(RangeOutcome::Whole(None)) => "all".to_owned(),
            Ok(RangeOutcome::Unsized) => "unsized".to_owned(),
            Ok(RangeOutcome::Nothing(Some(size))) => format!("nothing of {size}"),
            Ok(RangeOutcome::Nothing(None)) => "nothing".to_owned(),
            Ok(RangeOutcome::Other) => "other".to_owned(),
            Err(HttpError::Changed) => "changed".to_owned(),
            Err(HttpError::Invalid(_)) => "invalid".to_owned(),
            Err(failed) => panic!("{failed:?}"),
        }
    }

    #[test]
    fn every_response_has_one_meaning() {
        // Bytes 0-9 of an object that is not known yet, then 10-19 of one of 100 bytes that is.
        for (status, length, range, first, later) in [
            (206, Some(10), "bytes 0-9/100", "to 10 of 100", "invalid"),
            (206, Some(10), "bytes 10-19/100", "invalid", "to 20 of 100"),
            (206, None, "bytes 10-19/100", "invalid", "to 20 of 100"),
            (206, Some(10), "bytes=10-19/100", "invalid", "invalid"),
            // Shorter: the end of the object, or as much as a gateway sends at a time.
            (206, Some(4), "bytes 0-3/4", "to 4 of 4", "invalid"),
            (206, Some(4), "bytes 0-3/100", "to 4 of 100", "invalid"),
            (206, Some(4), "bytes 10-13/100", "invalid", "to 14 of 100"),
            // Another part: too early, too late, too long, empty, past the end.
            (206, Some(10), "bytes 9-18/100", "invalid", "invalid"),
            (206, Some(10), "bytes 11-20/100", "invalid", "invalid"),
            (206, Some(11), "bytes 10-20/100", "invalid", "invalid"),
            (206, Some(11), "bytes 0-10/100", "invalid", "invalid"),
            (206, Some(0), "bytes 10-9/100", "invalid", "invalid"),
            (206, Some(10), "bytes 10-19/15", "invalid", "invalid"),
            (206, Some(10), "bytes 0-9/9", "invalid", "invalid"),
            // All of it in place of a part.
            (206, Some(100), "bytes 0-99/100", "all 100", "invalid"),
            (206, Some(10), "bytes 0-99/100", "invalid", "invalid"),
            // A body of another length than the range.
            (206, Some(9), "bytes 0-9/100", "invalid", "invalid"),
            (206, Some(9), "bytes 10-19/100", "invalid", "invalid"),
            // No size, no range, several ranges, an empty object.
            (206, Some(10), "bytes 0-9/*", "unsized", "invalid"),
            (206, Some(10), "bytes 10-19/*", "invalid", "to 20 of 100"),
            (206, Some(10), "bytes 10-190/*", "invalid", "invalid"),
            (206, Some(10), "", "invalid", "invalid"),
            (206, None, "", "invalid", "invalid"),
            (206, Some(0), "", "nothing", "invalid"),
            (206, Some(0), "bytes */0", "invalid", "invalid"),
            // No ranges. The known object has another size than 7.
            (200, Some(7), "", "all 7", "changed"),
            (200, Some(100), "", "all 100", "invalid"),
            (200, None, "", "all", "invalid"),
            (200, Some(0), "", "all 0", "changed"),
            // Past the end.
            (416, None, "bytes */0", "nothing of 0", "nothing of 0"),
            (416, None, "bytes */10", "invalid", "nothing of 10"),
            (416, None, "bytes */11", "invalid", "changed"),
            (416, None, "bytes */100", "invalid", "invalid"),
            (416, None, "", "nothing", "changed"),
            (416, None, "bytes */*", "nothing", "changed"),
            (204, None, "", "other", "other"),
            (302, None, "", "other", "other"),
            (403, None, "", "other", "other"),
            (412, None, "", "other", "changed"),
        ] {
            let answer = RangeResponse {
                status,
                content_length: length,
                content_range: Some(range).filter(|range| !range.is_empty()),
                etag: Some("\"e\""),
                ..RangeResponse::default()
            };
            let known = ObjectMeta::new(100).with_etag("\"e\"".to_owned());
            let wanted = GetOptions::new("k", Range::new(0, 10));
            assert_eq!(meaning(&answer, wanted), first, "{answer:?} first");
            let wanted = GetOptions::new("k", Range::new(10, 20)).with_if_match(Some("\"e\""));
            assert_eq!(
                meaning(&answer, wanted.with_known(Some(&known))),
                later,
                "{answer:?} later"
            );
        }
    }

    #[test]
    fn an_unusable_response_may_be_of_another_version() {
        let known = ObjectMeta::new(100).with_etag("\"e\"".to_owned());
        let wanted = GetOptions::new("k", Range::new(10, 20)).with_known(Some(&known));
        for (etag, expected) in [
            (Some("\"e\""), "invalid"),
            (Some("W/\"e\""), "invalid"),
            (None, "invalid"),
            (Some("\"f\""), "changed"),
        ] {
            let answer = RangeResponse {
                status: 200,
                content_length: Some(100),
                etag,
                ..RangeResponse::default()
            };
            assert_eq!(meaning(&answer, wanted), expected, "{etag:?}");
        }
        // Bytes that can be used are the engine's to compare.
        let answer = RangeResponse {
            status: 206,
            content_range: Some("bytes 10-19/100"),
            etag: Some("\"f\""),
            ..RangeResponse::default()
        };
        assert_eq!(meaning(&answer, wanted), "to 20 of 100");
    }

    #[test]
    fn a_store_with_ranges_takes_the_beginning_of_a_whole_object() {
        let wanted = GetOptions::new("k", Range::new(0, 6));
        let head = |status, content_length, content_range, encoding: Option<&str>| {
            let etag = Some("\"e\"");
            let answer = RangeResponse {
                status,
                content_length,
                content_range,
                compression: compression(encoding),
                etag,
                ..RangeResponse::default()
            };
            answer
                .head(wanted)
                .map(|head| head.map(|head| (head.size, head.end, head.etag.is_some())))
        };
        assert_eq!(head(200, Some(9), None, None).unwrap(), Some((9, 6, true)));
        assert_eq!(
            head(206, Some(9), Some("bytes 0-8/9"), Some("gzip")).unwrap(),
            Some((9, 6, true))
        );
        assert_eq!(head(200, Some(9), None, Some("aws-chunked")).unwrap(), Some((9, 6, true)));
        assert_eq!(head(416, None, None, None).unwrap(), Some((0, 0, true)));
        assert_eq!(head(403, None, None, None).unwrap(), None);
        assert!(matches!(head(200, None, None, None), Err(HttpError::Unsupported(_))));
        assert!(matches!(head(200, Some(9), None, Some("gzip")), Err(HttpError::Invalid(_))));
        assert!(matches!(
            head(206, Some(6), Some("bytes 0-5/*"), None),
            Err(HttpError::Invalid(_))
        ));
        assert!(matches!(head(206, Some(0), None, None), Err(HttpError::Invalid(_))));
    }
}

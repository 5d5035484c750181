//! The faults of a store, and their allowed effects on a caller.

use s3_server::{At, Reply, What};
use std::time::Duration;
use tf_fs_plugin::Code;

/// What an operation may return when a fault was in its way.
#[derive(Clone, Copy, Debug)]
pub enum Expect {
    /// As if there had been none: it was retried, or does not matter.
    Right,
    /// As if there had been none, or an error with one of these codes.
    RightOr(&'static [Code]),
    /// An error with one of these codes, unless the operation sent no request.
    Error(&'static [Code]),
}

/// Which requests a fault makes sense for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// All.
    Any,
    /// Those answered by the bytes of an object.
    Data,
    /// Those answered by XML.
    Xml,
    /// Listings.
    Listing,
    /// Those that change something.
    Change,
    /// Copies and the ends of uploads, which answer errors under a status of success.
    Copy,
}

impl On {
    /// Whether requests of this operation of S3 are among them.
    #[must_use]
    pub fn includes(self, operation: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Data => operation == "GetObject",
            Self::Listing => matches!(operation, "ListObjectsV2" | "ListObjects"),
            Self::Xml => {
                On::Listing.includes(operation)
                    || On::Copy.includes(operation)
                    || matches!(
                        operation,
                        "DeleteObjects" | "CreateMultipartUpload" | "ListBuckets"
                    )
            }
            Self::Change => {
                !matches!(operation, "GetObject" | "HeadObject" | "HeadBucket")
                    && !On::Listing.includes(operation)
            }
            Self::Copy => {
                matches!(operation, "CopyObject" | "UploadPartCopy" | "CompleteMultipartUpload")
            }
        }
    }
}

/// A fault.
#[derive(Clone, Debug)]
pub struct Kind {
    /// For messages.
    pub name: &'static str,
    /// What the server does.
    pub what: What,
    /// When one request meets it.
    pub once: Expect,
    /// When all requests meet it.
    pub always: Expect,
    /// Where it makes sense.
    pub on: On,
}

impl Kind {
    /// Whether the store says that the bucket is in another region.
    #[must_use]
    pub fn is_redirect(&self) -> bool {
        self.name.contains("region") || self.name.starts_with("301")
    }

    /// Whether the store denies the permission.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        self.name.starts_with("403") || self.name == "clock skew"
    }
}

/// Not reachable.
const GONE: &[Code] = &[Code::Unavailable];
/// No response in time.
const LATE: &[Code] = &[Code::DeadlineExceeded];
/// Either.
const GONE_OR_LATE: &[Code] = &[Code::Unavailable, Code::DeadlineExceeded];
/// The store throttles.
const BUSY: &[Code] = &[Code::Unavailable, Code::ResourceExhausted];
/// What came cannot be right.
const BROKEN: &[Code] = &[Code::DataLoss, Code::Internal, Code::Unavailable];
/// The object is not the one that was opened, or the response cannot be right.
const CHANGED: &[Code] =
    &[Code::FailedPrecondition, Code::Aborted, Code::DataLoss, Code::Internal, Code::Unavailable];
/// What the store says of a failed condition or a conflict.
const CONFLICT: &[Code] = &[Code::FailedPrecondition, Code::Aborted, Code::Unavailable];

/// Every kind of fault.
#[must_use]
pub fn kinds() -> Vec<Kind> {
    use Expect::{Error, Right, RightOr};
    let mut kinds = Vec::new();
    let mut add = |name, what, once, always, on| kinds.push(Kind { name, what, once, always, on });
    let status = |status, code: &str| What::status(status, code);
    let bare = |status| What::Status(Reply::new(status, "").no_body());

    // Transport.
    add("refused", What::Refuse, Right, RightOr(GONE), On::Any);
    add("reset before the answer", What::Reset, Right, Error(GONE), On::Any);
    add("closed before the answer", What::Close, Right, Error(GONE), On::Any);
    add("half-closed", What::HalfClose, Right, Error(GONE_OR_LATE), On::Any);
    add("no answer", What::Stall, Right, Error(LATE), On::Any);
    // A head of some hundred bytes, one a millisecond or slower: at the edge of the patience of the tests.
    add(
        "slow head",
        What::SlowHead(Duration::from_millis(1)),
        RightOr(LATE),
        RightOr(LATE),
        On::Any,
    );
    add("closed between requests", What::CloseIdle, Right, Right, On::Any);
    add("reset when used again", What::ResetOnReuse, Right, RightOr(GONE), On::Any);
    for (name, at) in [
        ("reset after the head", At::Byte(0)),
        ("reset after a byte", At::Byte(1)),
        ("reset in the middle", At::Middle),
        ("reset before the last byte", At::Last),
    ] {
        // What all requests meet need not stop a reader: some bytes come each time.
        add(name, What::ResetBody(at), Right, RightOr(GONE), On::Data);
    }
    add("listing reset in the middle", What::ResetBody(At::Middle), Right, Error(GONE), On::Xml);
    add("cut in the middle", What::CutBody(At::Middle), Right, RightOr(GONE), On::Data);
    add("listing cut in the middle", What::CutBody(At::Middle), Right, Error(GONE), On::Xml);
    add("stalls in the body", What::StallBody(At::Middle), Right, RightOr(LATE), On::Data);
    add("listing stalls in the body", What::StallBody(At::Middle), Right, Error(LATE), On::Xml);
    let second = Duration::from_secs(1);
    add("trickles", What::TrickleBody(At::Middle, second), Right, RightOr(GONE_OR_LATE), On::Data);

    // Status.
    const REFUSED: &[Code] = &[Code::InvalidArgument, Code::FailedPrecondition];
    add("400", status(400, "InvalidRequest"), RightOr(REFUSED), Error(REFUSED), On::Any);
    add(
        "401",
        status(401, "Unauthorized"),
        RightOr(&[Code::Unauthenticated]),
        Error(&[Code::Unauthenticated]),
        On::Any,
    );
    const EXPIRED: &[Code] = &[Code::Unauthenticated];
    add("expired token", status(400, "ExpiredToken"), RightOr(EXPIRED), Error(EXPIRED), On::Any);
    const DENIED: &[Code] = &[Code::PermissionDenied];
    add("403", status(403, "AccessDenied"), RightOr(DENIED), Error(DENIED), On::Any);
    add("403 without a body", bare(403), RightOr(DENIED), Error(DENIED), On::Any);
    add("clock skew", status(403, "RequestTimeTooSkewed"), RightOr(DENIED), Error(DENIED), On::Any);
    const MISSING: &[Code] = &[Code::NotFound];
    add("no bucket", status(404, "NoSuchBucket"), RightOr(MISSING), Error(MISSING), On::Any);
    add("408", status(408, "RequestTimeout"), Right, Error(GONE_OR_LATE), On::Any);
    add("409", status(409, "OperationAborted"), RightOr(CONFLICT), Error(CONFLICT), On::Change);
    add("412", status(412, "PreconditionFailed"), RightOr(CONFLICT), Error(CONFLICT), On::Change);
    add(
        "412 of a read",
        status(412, "PreconditionFailed"),
        RightOr(CHANGED),
        Error(CHANGED),
        On::Data,
    );
    add("429", status(429, "TooManyRequests"), Right, Error(BUSY), On::Any);
    add(
        "500",
        status(500, "InternalError"),
        Right,
        Error(&[Code::Unavailable, Code::Internal]),
        On::Any,
    );
    add("502", bare(502), Right, Error(GONE), On::Any);
    add("503", status(503, "SlowDown"), Right, Error(BUSY), On::Any);
    add("503 without a body", bare(503), Right, Error(BUSY), On::Any);
    let soon = What::Status(Reply::new(503, "SlowDown").retry_after(0));
    add("503 with Retry-After", soon, Right, Error(BUSY), On::Any);
    add("504", bare(504), Right, Error(GONE_OR_LATE), On::Any);
    const ELSEWHERE: &[Code] =
        &[Code::FailedPrecondition, Code::InvalidArgument, Code::Unavailable];
    let redirect = |status| What::Status(Reply::redirect(status, "eu-west-1"));
    add("301 to a region", redirect(301), Right, Error(ELSEWHERE), On::Any);
    add("307 to a region", redirect(307), Right, Error(ELSEWHERE), On::Any);
    add("400 of another region", redirect(400), Right, Error(ELSEWHERE), On::Any);
    let bare = What::Status(Reply::redirect(301, "eu-west-1").no_body());
    add("301 without a body", bare, Right, Error(ELSEWHERE), On::Any);

    // Done, but not said.
    add("lost acknowledgement", What::LoseAck, Right, RightOr(GONE), On::Change);
    add("done and no answer", What::DoneThenStall, Right, RightOr(LATE), On::Change);
    let done = What::DoneThenStatus(Reply::new(500, "InternalError"));
    add("done and 500", done, Right, RightOr(&[Code::Unavailable, Code::Internal]), On::Change);
    let error = || What::ErrorIn200("InternalError".into());
    add("error in 200", error(), Right, Error(&[Code::Unavailable, Code::Internal]), On::Copy);
    let slow = || What::ErrorIn200("SlowDown".into());
    add("SlowDown in 200", slow(), Right, Error(BUSY), On::Copy);

    // Content.
    add("200 for 206", What::WholeFor206, RightOr(BROKEN), RightOr(BROKEN), On::Data);
    add("wrong Content-Range", What::WrongContentRange, RightOr(BROKEN), RightOr(BROKEN), On::Data);
    add(
        "Content-Length too large",
        What::ContentLength(7),
        RightOr(BROKEN),
        RightOr(BROKEN),
        On::Any,
    );
    add(
        "Content-Length too small",
        What::ContentLength(-7),
        RightOr(BROKEN),
        RightOr(BROKEN),
        On::Any,
    );
    add("no ETag", What::NoEtag, RightOr(CHANGED), RightOr(CHANGED), On::Any);
    add("another ETag", What::ChangedEtag, RightOr(CHANGED), RightOr(CHANGED), On::Any);
    add("broken XML", What::BadXml, RightOr(BROKEN), RightOr(BROKEN), On::Xml);
    add("huge XML", What::HugeXml(1 << 18), RightOr(BROKEN), RightOr(BROKEN), On::Xml);
    add("XML bomb", What::XmlBomb, RightOr(BROKEN), RightOr(BROKEN), On::Xml);
    add("unknown XML", What::UnknownXml, Right, Right, On::Xml);
    add("listing in a circle", What::EndlessListing, RightOr(BROKEN), RightOr(BROKEN), On::Listing);
    add(
        "truncated without a token",
        What::TruncatedWithoutToken,
        RightOr(BROKEN),
        RightOr(BROKEN),
        On::Listing,
    );
    add("compressed", What::Gzip, RightOr(BROKEN), RightOr(BROKEN), On::Data);
    add("compressed XML", What::Gzip, RightOr(BROKEN), RightOr(BROKEN), On::Xml);
    kinds
}

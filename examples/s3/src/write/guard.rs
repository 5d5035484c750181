//! Keeps a write from replacing what somebody else wrote: by a condition that the store checks, or, where it
//! does not, by looking before the write and after it.

use super::object::{Expected, Stored, Target, status_of, whole_etag};
use crate::connection::{Bucket, Condition, Known};
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_s3::operation::head_object::HeadObjectOutput;
use tf_fs_plugin::prelude::*;

/// What has to be there when a file is published.
#[derive(Clone, Debug)]
pub(crate) enum Before {
    /// Whatever it is: it is replaced.
    Anything,
    /// No object of this name.
    Nothing,
    /// This object.
    This(Stored),
}

impl Before {
    /// The object that is there.
    pub(super) fn stored(&self) -> Option<&Stored> {
        match self {
            Self::This(stored) => Some(stored),
            Self::Anything | Self::Nothing => None,
        }
    }

    fn is_shown_by(&self, head: &HeadObjectOutput) -> bool {
        match self {
            Self::Anything => true,
            Self::Nothing => false,
            Self::This(stored) => stored.is_shown_by(head),
        }
    }
}

/// What a request is held to.
#[derive(Debug)]
pub(crate) struct Guard<'a> {
    bucket: &'a Bucket,
    op: &'static str,
    before: &'a Before,
    /// `None`: nothing has to be as it was.
    condition: Option<Condition>,
    /// What was known of the store when the request was made.
    known: Known,
}

/// What a condition was refused for.
pub(crate) enum Refusal {
    /// The object is there already, by an attempt whose answer was lost.
    Ours(Stored),
    /// Nothing: what is there is what the condition names. The request may be made again, in another way.
    None,
    /// Somebody else replaced or deleted the object.
    Theirs,
}

impl<'a> Guard<'a> {
    /// Of a PutObject.
    pub(super) fn put(bucket: &'a Bucket, before: &'a Before) -> Self {
        Self::new(bucket, "PutObject", before, Condition::PutOver, Some(Condition::PutNew))
    }

    /// Of a CompleteMultipartUpload.
    pub(super) fn complete(bucket: &'a Bucket, before: &'a Before) -> Self {
        let (over, new) = (Condition::CompleteOver, Condition::CompleteNew);
        Self::new(bucket, "CompleteMultipartUpload", before, over, Some(new))
    }

    /// Of an UploadPartCopy, whose source has to be as it was.
    pub(crate) fn copy(bucket: &'a Bucket, before: &'a Before) -> Self {
        Self::new(bucket, "UploadPartCopy", before, Condition::CopyOf, None)
    }

    fn new(
        bucket: &'a Bucket,
        op: &'static str,
        before: &'a Before,
        over: Condition,
        new: Option<Condition>,
    ) -> Self {
        let condition = match before {
            Before::Anything => None,
            Before::Nothing => new,
            Before::This(_) => Some(over),
        };
        let known = condition.map_or(Known::Checked, |condition| bucket.known(condition));
        Self { bucket, op, before, condition, known }
    }

    /// The value of `If-Match`, or of its like for copies.
    pub(crate) fn if_match(&self) -> Option<String> {
        let etag = self.before.stored()?.condition()?;
        self.known.is_sent().then(|| self.known.form(etag))
    }

    /// The value of `If-None-Match`.
    pub(super) fn if_none_match(&self) -> Option<String> {
        let is_new = matches!(self.before, Before::Nothing) && self.condition.is_some();
        (is_new && self.known.is_sent()).then(|| "*".to_owned())
    }

    /// Whether the request has a condition.
    fn is_sent(&self) -> bool {
        self.if_match().is_some() || self.if_none_match().is_some()
    }

    /// Whether the caller has to look, because the store may not.
    pub(crate) fn must_look(&self) -> bool {
        self.condition
            .is_some_and(|condition| !self.is_sent() || !self.bucket.known(condition).is_checked())
    }

    /// Notes that the store did what it was asked for.
    pub(crate) fn held(&self) {
        if let Some((condition, store)) = self.learns() {
            store.held(condition, self.known);
        }
    }

    /// Whether the error says that the store knows no such condition. The request may be made again, without it.
    pub(crate) fn is_unknown<E>(&self, error: &SdkError<E>) -> bool {
        match self.learns() {
            Some((condition, store)) if self.is_sent() && status_of(error) == Some(501) => {
                store.unknown(condition);
                true
            }
            _ => false,
        }
    }

    /// Whether the error says that the condition did not hold.
    pub(crate) fn is_refused<E: ProvideErrorMetadata>(&self, error: &SdkError<E>) -> bool {
        self.is_sent() && is_precondition_failure(error)
    }

    /// What the condition was refused for. `expected` is what the request would have made of the object.
    ///
    /// # Errors
    /// If the store does not say, and `FAILED_PRECONDITION` if it refuses what holds although a setting says that it
    /// does not.
    pub(crate) async fn refusal(
        &self,
        target: &Target,
        expected: Option<&Expected>,
    ) -> Result<Refusal> {
        let Some(condition) = self.condition else { return Ok(Refusal::Theirs) };
        let head = target.look().await?;
        if let (Some(expected), Some(head)) = (expected, &head)
            && let Some(stored) = target.recognised(expected, head)
        {
            return Ok(Refusal::Ours(stored));
        }
        if !is_as_it_was(self.before, head.as_ref()) {
            if let Some((condition, store)) = self.learns() {
                store.caught(condition);
            }
            return Ok(Refusal::Theirs);
        }
        match self.learns() {
            Some((condition, store)) => {
                store.refused(condition, self.known);
                Ok(Refusal::None)
            }
            None => Err(Error::failed_precondition(format_args!(
                "{}: {}: the store refuses {} although nobody replaced the object; set {} to auto",
                target.name,
                self.op,
                condition.described(),
                condition.setting()
            ))),
        }
    }

    /// Looks whether what is there is as it has to be; or, as `ours` recognises it, what the request would make, by an
    /// earlier one that failed although it was done. Between this and the request somebody else may write.
    ///
    /// # Errors
    /// `FAILED_PRECONDITION` if neither, and those of HeadObject.
    pub(crate) async fn look(
        &self,
        target: &Target,
        ours: impl FnOnce(&HeadObjectOutput) -> Option<Stored>,
    ) -> Result<Option<Stored>> {
        let head = target.look().await?;
        if is_as_it_was(self.before, head.as_ref()) {
            return Ok(None);
        }
        if let Some(stored) = head.as_ref().and_then(ours) {
            return Ok(Some(stored));
        }
        Err(replaced(Error::failed_precondition(format_args!(
            "{}: {}: not sent, since HeadObject shows {} ({})",
            target.name,
            self.op,
            shown(head.as_ref()),
            self.limit()
        ))))
    }

    /// Looks whether what was written is there, for a store that does not keep others from writing at the same time.
    ///
    /// # Errors
    /// `FAILED_PRECONDITION` if something else is there, or nothing.
    pub(super) async fn look_after(&self, target: &Target, stored: &Stored) -> Result<()> {
        let head = match target.look().await {
            Ok(head) => head,
            Err(error) => {
                // The store has confirmed the write.
                log::warn!("{error:#}; whether somebody else wrote at the same time is not known");
                return Ok(());
            }
        };
        ensure!(
            head.as_ref().is_some_and(|head| stored.is_shown_by(head)),
            Error::failed_precondition(format_args!(
                "{}: {}: somebody else wrote or deleted the object at the same time: HeadObject shows {} right after \
                 it ({}); write to a name of your own",
                target.name,
                self.op,
                shown(head.as_ref()),
                self.limit()
            ))
        );
        Ok(())
    }

    /// What the store does not do.
    fn limit(&self) -> String {
        let Some(condition) = self.condition else { return String::new() };
        match self.bucket.known(condition) {
            Known::Refused => format!("the store does not check {}", condition.described()),
            _ => format!("the store has not shown that it checks {}", condition.described()),
        }
    }

    /// Where the store's answers are remembered, unless a setting says what it can do.
    fn learns(&self) -> Option<(Condition, &crate::connection::Abilities)> {
        let condition = self.condition?;
        Some((condition, self.bucket.learns(condition)?))
    }
}

fn is_as_it_was(before: &Before, head: Option<&HeadObjectOutput>) -> bool {
    match head {
        Some(head) => before.is_shown_by(head),
        None => !matches!(before, Before::This(_)),
    }
}

fn shown(head: Option<&HeadObjectOutput>) -> String {
    match head {
        Some(head) => format!(
            "an object of {} bytes with the ETag {}",
            head.content_length().unwrap_or_default(),
            whole_etag(head.e_tag())
        ),
        None => "no object".to_owned(),
    }
}

/// The error of a write that found somebody else's object.
#[cold]
pub(super) fn replaced(error: Error) -> Error {
    error.with_code(Code::FailedPrecondition).context(
        "somebody else replaced or deleted the object while it was open for writing, and theirs stays; \
         write to a name of your own",
    )
}

/// The error of a write that found an object, and could not find out whose.
#[cold]
pub(super) fn unknown(error: Error) -> Error {
    error.context(
        "whether this is stored or somebody else's object is there is not known; write it again",
    )
}

/// Whether a condition did not hold: another object is there, or none.
pub(super) fn is_precondition_failure<E: ProvideErrorMetadata>(error: &SdkError<E>) -> bool {
    match status_of(error) {
        Some(412) => true,
        Some(404) => error.code() == Some("NoSuchKey"),
        _ => false,
    }
}

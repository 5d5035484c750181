//! Keeps a write from replacing what somebody else wrote: by a condition that the store checks, or, where it
//! does not, by looking before the write and after it.

use super::course::Course;
use super::object::{Expected, PAUSE, Target, is_shown_by, status_of, whole_etag};
use crate::connection::{Bucket, Condition, Known};
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_s3::operation::head_object::HeadObjectOutput;
use tf_fs_object_store::{Before, Stored, replaced, unknown};
use tf_fs_plugin::prelude::*;

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
    pub(super) fn put(bucket: &'a Bucket, before: &'a Before, course: &Course) -> Self {
        let (over, new) = (Condition::PutOver, Condition::PutNew);
        Self::new(bucket, "PutObject", before, over, Some(new), course)
    }

    /// Of a CompleteMultipartUpload.
    pub(super) fn complete(bucket: &'a Bucket, before: &'a Before, course: &Course) -> Self {
        let (over, new) = (Condition::CompleteOver, Condition::CompleteNew);
        Self::new(bucket, "CompleteMultipartUpload", before, over, Some(new), course)
    }

    /// Of an UploadPartCopy, whose source has to be as it was.
    pub(crate) fn copy(bucket: &'a Bucket, before: &'a Before, course: &Course) -> Self {
        Self::new(bucket, "UploadPartCopy", before, Condition::CopyOf, None, course)
    }

    fn new(
        bucket: &'a Bucket,
        op: &'static str,
        before: &'a Before,
        over: Condition,
        new: Option<Condition>,
        course: &Course,
    ) -> Self {
        let condition = match before {
            Before::Anything => None,
            Before::Nothing => new,
            Before::This(_) => Some(over),
        };
        let known = condition.map_or(Known::Checked, |condition| match course.is_unknown {
            true => Known::Refused,
            false => bucket.known(condition),
        });
        Self { bucket, op, before, condition, known }
    }

    /// The value of `If-Match`, or of its like for copies.
    pub(crate) fn if_match(&self) -> Option<String> {
        let etag = self.before.stored()?.etag.clone()?;
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
    pub(crate) fn held(&self, course: &Course) {
        match self.learns() {
            Some((condition, store)) if course.is_unknown => store.unknown(condition),
            Some((condition, store)) if self.is_sent() => {
                store.held(condition, self.known, course.quotes_refused);
            }
            _ => {}
        }
    }

    /// Whether the error may say that the store knows no such condition. The request may be made again, without it; that
    /// this helps is the proof.
    pub(crate) fn is_unknown<E>(&self, course: &mut Course, error: &SdkError<E>) -> bool {
        let is_unknown = self.learns().is_some()
            && self.is_sent()
            && self.known == Known::Nothing
            && status_of(error) == Some(501);
        course.is_unknown |= is_unknown;
        is_unknown
    }

    /// Whether the error says that the condition did not hold.
    pub(crate) fn is_refused<E: ProvideErrorMetadata>(&self, error: &SdkError<E>) -> bool {
        self.is_sent() && is_precondition_failure(error)
    }

    /// What the condition was refused for, with `error`. `expected` is what the request would have made of the object.
    ///
    /// A refusal although nothing has changed says little: somebody may have put back what was there, or HeadObject may
    /// be behind. So the same form is sent again. That the store does not take it is learned only where it has been
    /// refused again, with nothing changed before and after, and never of a store that has shown that it does.
    ///
    /// # Errors
    /// If the store does not say, and `FAILED_PRECONDITION` if it goes on refusing what holds although it checks it, or a
    /// setting says so.
    pub(crate) async fn refusal<E>(
        &self,
        course: &mut Course,
        target: &Target<'_>,
        error: &SdkError<E>,
        expected: Option<&Expected>,
    ) -> Result<Refusal> {
        /// So often the same form is refused, with nothing changed, before another is tried, and before it is given up.
        const PROOF: u32 = 2;
        const MOST: u32 = 4;
        let Some(condition) = self.condition else { return Ok(Refusal::Theirs) };
        if course.was_refused() {
            tokio::time::sleep(PAUSE).await;
        }
        let head = target.look().await?;
        if let (Some(expected), Some(head)) = (expected, &head)
            && let Some(stored) = target.recognised(expected, head)
        {
            return Ok(Refusal::Ours(stored));
        }
        if !is_as_it_was(self.before, head.as_ref()) {
            // 404 is an answer to the name.
            if let Some((condition, store)) = self.learns()
                && status_of(error) == Some(412)
            {
                store.caught(condition, self.known);
            }
            return Ok(Refusal::Theirs);
        }
        course.has_looked = true;
        let count = course.refused(self.known);
        let learns = self.learns().filter(|(condition, store)| !store.is_settled(*condition));
        if let Some((condition, store)) = learns
            && count >= PROOF
            && status_of(error) == Some(412)
        {
            course.quotes_refused |= matches!(self.known, Known::Nothing | Known::Checked);
            store.refused(condition, self.known);
            return Ok(Refusal::None);
        }
        ensure!(
            count < MOST,
            Error::failed_precondition(format_args!(
                "{}: {}: the store refuses {} although HeadObject shows that the object is unchanged; write it \
                 again; if it fails again, set {} to {}",
                target.name,
                self.op,
                condition.described(),
                condition.setting(),
                if self.learns().is_some() { "none" } else { "auto" }
            ))
        );
        Ok(Refusal::None)
    }

    /// Looks whether what is there is as it has to be; or what the request would make, as `expected` says, by an earlier
    /// one that failed although it was done. Between this and the request somebody else may write.
    ///
    /// # Errors
    /// `FAILED_PRECONDITION` if neither, and those of HeadObject.
    pub(super) async fn look(
        &self,
        course: &Course,
        target: &Target<'_>,
        expected: impl FnOnce() -> Expected,
    ) -> Result<Option<Stored>> {
        let head = target.look().await.map_err(|error| self.without_look(error))?;
        if is_as_it_was(self.before, head.as_ref()) {
            return Ok(None);
        }
        // Unless something was sent, the same content is somebody else's.
        if course.is_open
            && let Some(head) = &head
            && let Some(stored) = target.recognised(&expected(), head)
        {
            return Ok(Some(stored));
        }
        let error = self.other(target, head);
        Err(if course.is_open { unknown(error) } else { error })
    }

    /// Looks whether the source of a copy that is done is still as it has to be, where the store does not.
    ///
    /// # Errors
    /// As [`look`](Self::look).
    pub(crate) async fn look_at_source(&self, source: &Target<'_>) -> Result<()> {
        if !self.must_look() {
            return Ok(());
        }
        let head = source.look().await?;
        if is_as_it_was(self.before, head.as_ref()) {
            Ok(())
        } else {
            Err(self.other(source, head))
        }
    }

    /// Looks whether what was written is there, for a store that does not keep others from writing at the same time.
    ///
    /// # Errors
    /// `FAILED_PRECONDITION` if something else is there, or nothing.
    pub(super) async fn look_after(&self, target: &Target<'_>, stored: &Stored) -> Result<()> {
        let head = match target.look().await {
            Ok(head) => head,
            Err(error) => {
                // The store has confirmed the write.
                log::warn!("{error:#}; concurrent writes of others were not checked");
                return Ok(());
            }
        };
        ensure!(
            head.as_ref().is_some_and(|head| is_shown_by(stored, head)),
            Error::failed_precondition(format_args!(
                "{}: {}: another process wrote or deleted the object at the same time: HeadObject shows {} right after \
                 it ({}); write to another name",
                target.name,
                self.op,
                shown(head.as_ref()),
                self.limit()
            ))
        );
        Ok(())
    }

    #[cold]
    fn without_look(&self, error: Error) -> Error {
        match self.learns() {
            Some((condition, _)) if error.code() == Code::PermissionDenied => error.context(format!(
                "{} is not sent without a HeadObject before it; if the credentials do not allow that, set {}=quoted if \
                 the store checks {}",
                self.op,
                condition.setting(),
                condition.described()
            )),
            _ => error,
        }
    }

    #[cold]
    fn other(&self, target: &Target<'_>, head: Option<HeadObjectOutput>) -> Error {
        replaced(Error::failed_precondition(format_args!(
            "{}: {}: not sent, since HeadObject shows {} ({})",
            target.name,
            self.op,
            shown(head.as_ref()),
            self.limit()
        )))
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
    match (before, head) {
        (Before::Anything, _) | (Before::Nothing, None) => true,
        (Before::This(stored), Some(head)) => is_shown_by(stored, head),
        (Before::Nothing, Some(_)) | (Before::This(_), None) => false,
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

/// Whether a condition did not hold: another object is there, or none.
fn is_precondition_failure<E: ProvideErrorMetadata>(error: &SdkError<E>) -> bool {
    match status_of(error) {
        Some(412) => true,
        Some(404) => error.code() == Some("NoSuchKey"),
        _ => false,
    }
}

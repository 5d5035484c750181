//! Keeps a write from replacing what somebody else wrote: by a condition that the store checks. Where it does not, or has
//! not shown that it does, the engine looks before the write and after it.

use super::object::{PAUSE, Target};
use crate::cause::Cause;
use crate::connection::{Abilities, Bucket, Condition, Known};
use tf_fs_object_store::{Before, Refusal, Unchecked, replaced};
use tf_fs_plugin::prelude::*;

/// What a request is held to, in all of its attempts.
#[derive(Debug)]
pub(crate) struct Guard<'a> {
    bucket: &'a Bucket,
    op: &'static str,
    before: &'a Before,
    /// `None`: nothing has to be as it was.
    condition: Option<Condition>,
    /// What was known of the store when the last attempt began.
    sent: Known,
    /// The form of a condition that was refused although nothing had changed, and how often in a row.
    refused: Option<(Known, u32)>,
    /// Whether the ETag with quotes was refused so, twice in a row.
    quotes_refused: bool,
    /// Whether the store said that it knows no such condition, so that it is left out.
    is_unknown: bool,
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
        let (refused, quotes_refused, is_unknown) = (None, false, false);
        let sent = Known::Nothing;
        Self { bucket, op, before, condition, sent, refused, quotes_refused, is_unknown }
    }

    /// What is known of the store now.
    fn known(&self) -> Known {
        match self.condition {
            None => Known::Checked,
            Some(_) if self.is_unknown => Known::Refused,
            Some(condition) => self.bucket.known(condition),
        }
    }

    /// Notes that an attempt begins.
    pub(crate) fn begin(&mut self) {
        self.sent = self.known();
    }

    /// The value of `If-Match`, or of its like for copies.
    pub(crate) fn if_match(&self) -> Option<String> {
        let etag = self.before.stored()?.etag.clone()?;
        self.sent.is_sent().then(|| self.sent.form(etag))
    }

    /// The value of `If-None-Match`.
    pub(super) fn if_none_match(&self) -> Option<String> {
        let is_new = matches!(self.before, Before::Nothing) && self.condition.is_some();
        (is_new && self.sent.is_sent()).then(|| "*".to_owned())
    }

    /// Whether the attempt has a condition.
    pub(super) fn is_sent(&self) -> bool {
        self.if_match().is_some() || self.if_none_match().is_some()
    }

    /// What the store is not known to check.
    pub(crate) fn unchecked(&self) -> Option<Unchecked> {
        let condition = self.condition?;
        let has_value = self.before.stored().is_none_or(|stored| stored.etag.is_some());
        if has_value && self.known().is_checked() {
            return None;
        }
        let what = match self.bucket.known(condition) {
            Known::Refused => format!("the store does not check {}", condition.described()),
            _ => format!("the store has not shown that it checks {}", condition.described()),
        };
        let remedy = self.learns().map(|_| {
            format!(
                "{} is not sent without a HeadObject before it; if the credentials do not allow that, set {}=quoted if \
                 the store checks {}",
                self.op,
                condition.setting(),
                condition.described()
            )
        });
        Some(Unchecked { what, remedy })
    }

    /// Notes that the store did what it was asked for.
    pub(crate) fn held(&self) {
        match self.learns() {
            Some((condition, store)) if self.is_unknown => store.unknown(condition),
            Some((condition, store)) if self.is_sent() => {
                store.held(condition, self.sent, self.quotes_refused);
            }
            _ => {}
        }
    }

    /// Whether the answer may say that the store knows no such condition. The request may be made again, without it; that
    /// this helps is the proof.
    pub(crate) fn is_unknown(&mut self, cause: &Cause) -> bool {
        let is_unknown = self.learns().is_some()
            && self.is_sent()
            && self.sent == Known::Nothing
            && cause.status() == Some(501);
        self.is_unknown |= is_unknown;
        is_unknown
    }

    /// Whether the answer says that the condition did not hold: another object is there, or none.
    pub(crate) fn is_refused(&self, cause: &Cause) -> bool {
        self.is_sent()
            && match cause.status() {
                Some(412) => true,
                Some(404) => cause.code() == Some("NoSuchKey"),
                _ => false,
            }
    }

    /// What the condition was refused for, with this status, where somebody has looked since: whether what is there
    /// `is_as_before`.
    ///
    /// A refusal although nothing has changed says little: somebody may have put back what was there, or HeadObject may
    /// be behind. So the same form is sent again. That the store does not take it is learned only where it has been
    /// refused again, with nothing changed before and after, and never of a store that has shown that it does.
    pub(crate) fn refused(
        &mut self,
        name: &dyn std::fmt::Display,
        status: Option<u16>,
        is_as_before: bool,
    ) -> Refusal {
        /// So often the same form is refused, with nothing changed, before another is tried, and before it is given up.
        const PROOF: u32 = 2;
        const MOST: u32 = 4;
        let Some(condition) = self.condition else { return Refusal::Theirs };
        // 404 is an answer to the name.
        let is_about_condition = status == Some(412);
        if !is_as_before {
            if let Some((condition, store)) = self.learns()
                && is_about_condition
            {
                store.caught(condition, self.sent);
            }
            return Refusal::Theirs;
        }
        let before = self.refused.filter(|(form, _)| *form == self.sent);
        let count = before.map_or(0, |(_, count)| count) + 1;
        self.refused = Some((self.sent, count));
        let learns = self.learns().filter(|(condition, store)| !store.is_settled(*condition));
        if let Some((condition, store)) = learns
            && count >= PROOF
            && is_about_condition
        {
            store.refused(condition, self.sent);
            self.quotes_refused |= matches!(self.sent, Known::Nothing | Known::Checked);
            return Refusal::Again;
        }
        if count < MOST {
            return Refusal::Again;
        }
        Refusal::Wrong(Error::failed_precondition(format_args!(
            "{name}: {}: the store refuses {} although HeadObject shows that the object is unchanged; write it \
             again; if it fails again, set {} to {}",
            self.op,
            condition.described(),
            condition.setting(),
            if self.learns().is_some() { "none" } else { "auto" }
        )))
    }

    /// What a copy of `source` was refused for.
    ///
    /// # Errors
    /// Those of HeadObject, and of [`Refusal::Wrong`].
    pub(crate) async fn is_again(
        &mut self,
        source: &Target<'_>,
        cause: &Cause,
    ) -> Result<bool, Cause> {
        if self.refused.is_some() {
            tokio::time::sleep(PAUSE).await;
        }
        let found = source.look().await?;
        let is_as_before = self.before.holds(found.as_ref());
        match self.refused(source.name, cause.status(), is_as_before) {
            Refusal::Again => Ok(true),
            Refusal::Theirs => Ok(false),
            Refusal::Wrong(error) => Err(error.into()),
        }
    }

    /// Looks whether the source of a copy that is done is still as it has to be, where the store does not.
    ///
    /// # Errors
    /// `FAILED_PRECONDITION` if not, and those of HeadObject.
    pub(crate) async fn look_at_source(&self, source: &Target<'_>) -> Result<(), Cause> {
        let Some(unchecked) = self.unchecked() else { return Ok(()) };
        let found = source.look().await?;
        if self.before.holds(found.as_ref()) {
            return Ok(());
        }
        Err(replaced(Error::failed_precondition(format_args!(
            "{}: {}: the source is another object now ({})",
            source.name, self.op, unchecked.what
        )))
        .into())
    }

    /// Where the store's answers are remembered, unless a setting says what it can do.
    fn learns(&self) -> Option<(Condition, &'a Abilities)> {
        let condition = self.condition?;
        Some((condition, self.bucket.learns(condition)?))
    }
}

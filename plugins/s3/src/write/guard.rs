//! Prevents a write from replacing what somebody else wrote, with a condition that the store checks. Where the store
//! does not check it, or has not shown that it does, the engine looks before the write and after it.

use super::object::{PAUSE, Target};
use crate::bucket::Bucket;
use crate::capabilities::{Capabilities, Condition, Support};
use crate::error::S3Error;
use std::time::{Duration, Instant};
use tf_fs_object_store::{ConflictOutcome, MissingCheck, PutMode, conflict_error};
use tf_fs_plugin::prelude::*;

/// Returns how long a store that has checked a condition has to refuse it, with HeadObject unchanged, until a write leaves
/// it out: as long as HeadObject may be behind, in the time that a request may lose. Zero: it never does.
fn longest_lag(retry_timeout: Duration) -> Duration {
    (retry_timeout / 12).min(Duration::from_secs(5))
}

/// The condition of a request, in all of its attempts.
#[derive(Debug)]
pub(crate) struct Guard<'a> {
    bucket: &'a Bucket,
    op: &'static str,
    mode: &'a PutMode,
    /// `None`: there is no requirement.
    condition: Option<Condition>,
    /// What was known of the store when the last attempt began.
    sent: Support,
    /// The form of a condition that was refused although nothing had changed, and how often in a row.
    refused: Option<(Support, u32)>,
    /// When the first of them was found to be so.
    refused_since: Option<Instant>,
    /// Whether the ETag with quotes was refused so, twice in a row.
    quotes_refused: bool,
    /// The form in which the store refuses this condition, so that it is left out.
    given_up: Option<Support>,
}

impl<'a> Guard<'a> {
    /// Creates the guard of a PutObject.
    pub(super) fn put(bucket: &'a Bucket, mode: &'a PutMode) -> Self {
        Self::new(bucket, "PutObject", mode, Condition::PutOver, Some(Condition::PutNew))
    }

    /// Creates the guard of a CompleteMultipartUpload.
    pub(super) fn complete(bucket: &'a Bucket, mode: &'a PutMode) -> Self {
        let (over, new) = (Condition::CompleteOver, Condition::CompleteNew);
        Self::new(bucket, "CompleteMultipartUpload", mode, over, Some(new))
    }

    /// Creates the guard of an UploadPartCopy, whose source has to be as it was.
    pub(crate) fn copy(bucket: &'a Bucket, mode: &'a PutMode) -> Self {
        Self::new(bucket, "UploadPartCopy", mode, Condition::CopyOf, None)
    }

    fn new(
        bucket: &'a Bucket,
        op: &'static str,
        mode: &'a PutMode,
        over: Condition,
        new: Option<Condition>,
    ) -> Self {
        let condition = match mode {
            PutMode::Overwrite => None,
            PutMode::Create => new,
            PutMode::Update(_) => Some(over),
        };
        Self {
            bucket,
            op,
            mode,
            condition,
            sent: Support::Unknown,
            refused: None,
            refused_since: None,
            quotes_refused: false,
            given_up: None,
        }
    }

    /// Returns what is known of the store now.
    fn support(&self) -> Support {
        match self.condition {
            None => Support::Checked,
            Some(_) if self.given_up.is_some() => Support::Refused,
            Some(condition) => self.bucket.support(condition),
        }
    }

    /// Records that an attempt begins.
    pub(crate) fn begin(&mut self) {
        self.sent = self.support();
    }

    /// Returns the value of `If-Match`, or of the corresponding header for copies.
    pub(crate) fn if_match(&self) -> Option<String> {
        let etag = self.mode.stored()?.strong_etag()?;
        self.sent.is_sent().then(|| self.sent.form(etag.to_owned()))
    }

    /// Returns the value of `If-None-Match`.
    pub(super) fn if_none_match(&self) -> Option<String> {
        let is_new = matches!(self.mode, PutMode::Create) && self.condition.is_some();
        (is_new && self.sent.is_sent()).then(|| "*".to_owned())
    }

    /// Returns whether the attempt has a condition.
    pub(super) fn is_sent(&self) -> bool {
        self.if_match().is_some() || self.if_none_match().is_some()
    }

    /// Returns what the store is not known to check.
    pub(crate) fn missing_check(&self) -> Option<MissingCheck> {
        let condition = self.condition?;
        let stored = self.mode.stored();
        let has_value = stored.is_none_or(|stored| stored.strong_etag().is_some());
        if has_value && self.support().is_checked() {
            return None;
        }
        let what = match self.support() {
            _ if !has_value => "the store tells no strong ETag for a condition".to_owned(),
            Support::Refused => format!("the store does not check {}", condition.described()),
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
        Some(MissingCheck { what, remedy })
    }

    /// Records that the store did what was requested.
    pub(crate) fn held(&self) {
        match self.learns() {
            Some((condition, store)) if self.is_sent() => {
                store.held(condition, self.sent, self.quotes_refused);
            }
            Some((condition, store)) => {
                self.given_up.inspect(|form| store.gave_up(condition, *form));
            }
            None => {}
        }
    }

    /// Returns whether the response may say that the store does not support this condition. The request may be made
    /// again, without it; if that succeeds, it is proved. Of a store that has checked it, only its own code counts:
    /// anything in between may respond with 501.
    pub(crate) fn is_unknown(&mut self, error: &S3Error) -> bool {
        let is_own = error.code() == Some("NotImplemented");
        let learns = self.learns().is_some_and(|(condition, store)| {
            !store.is_amazon() && (is_own || !store.is_settled(condition))
        });
        let is_unknown = learns && self.is_sent() && error.status() == Some(501);
        if is_unknown {
            self.given_up = Some(self.sent);
        }
        is_unknown
    }

    /// Returns whether the response says that the condition did not hold: another object is there, or none.
    pub(crate) fn is_refused(&self, error: &S3Error) -> bool {
        self.is_sent()
            && match error.status() {
                Some(412) => true,
                Some(404) => error.code() == Some("NoSuchKey"),
                _ => false,
            }
    }

    /// Returns what the condition was refused for, with this status, after somebody has looked whether the object
    /// `is_as_before`.
    ///
    /// A refusal although nothing has changed proves little: somebody may have restored the object, or HeadObject may
    /// be behind. So the same form is sent again. That the store does not accept it is learned only if it is refused
    /// again, with nothing changed before and after. A store that has shown that it does has to refuse it more often,
    /// and for longer than HeadObject may be behind; then this write leaves the condition out.
    pub(crate) fn refused(
        &mut self,
        name: &dyn std::fmt::Display,
        status: Option<u16>,
        is_as_before: bool,
    ) -> ConflictOutcome {
        /// How often a form is refused, with nothing changed, before another is tried, and before it is given up.
        const PROOF: u32 = 2;
        const MOST: u32 = 4;
        let Some(condition) = self.condition else { return ConflictOutcome::Conflict };
        // 404 is a response to the name.
        let is_about_condition = status == Some(412);
        if !is_as_before {
            if let Some((condition, store)) = self.learns()
                && is_about_condition
            {
                store.caught(condition, self.sent);
            }
            return ConflictOutcome::Conflict;
        }
        let before = self.refused.filter(|(form, _)| *form == self.sent);
        let count = before.map_or(0, |(_, count)| count) + 1;
        self.refused = Some((self.sent, count));
        let since = match self.refused_since {
            Some(since) if count > 1 => since,
            _ => *self.refused_since.insert(Instant::now()),
        };
        match self.learns().filter(|_| is_about_condition) {
            Some((condition, store)) if count >= PROOF && !store.is_settled(condition) => {
                store.refused(condition, self.sent);
                self.quotes_refused |= matches!(self.sent, Support::Unknown | Support::Checked);
                return ConflictOutcome::RetryNow;
            }
            _ if count < MOST => return ConflictOutcome::RetryNow,
            Some((_, store)) if !store.is_amazon() => {
                let lag = longest_lag(self.bucket.settings.engine.retry_timeout);
                let left = lag.saturating_sub(since.elapsed());
                if !left.is_zero() {
                    return ConflictOutcome::RetryAfter(left);
                }
                if !lag.is_zero() {
                    self.given_up = Some(self.sent);
                    return ConflictOutcome::RetryNow;
                }
            }
            _ => {}
        }
        ConflictOutcome::Fail(Error::failed_precondition(format_args!(
            "{name}: {}: the store refuses {} although HeadObject shows that the object is unchanged; write it \
             again; if it fails again, set {} to {}",
            self.op,
            condition.described(),
            condition.setting(),
            if self.learns().is_some() { "none" } else { "auto" }
        )))
    }

    /// Returns whether to request a copy of `source` again after it was refused.
    ///
    /// # Errors
    /// Those of HeadObject, and that of [`ConflictOutcome::Fail`].
    pub(crate) async fn is_again(
        &mut self,
        source: &Target<'_>,
        error: &S3Error,
    ) -> Result<bool, S3Error> {
        if self.refused.is_some() {
            tokio::time::sleep(PAUSE).await;
        }
        let found = source.look().await?;
        let is_as_before = self.mode.allows(found.as_ref());
        match self.refused(source.name, error.status(), is_as_before) {
            ConflictOutcome::RetryNow => Ok(true),
            ConflictOutcome::RetryAfter(wait) => {
                tokio::time::sleep(wait).await;
                Ok(true)
            }
            ConflictOutcome::Conflict => Ok(false),
            ConflictOutcome::Fail(error) => Err(error.into()),
        }
    }

    /// Checks that the source of a finished copy is still as it has to be, where the store does not check it.
    ///
    /// # Errors
    /// `FAILED_PRECONDITION` if not, and those of HeadObject.
    pub(crate) async fn look_at_source(&self, source: &Target<'_>) -> Result<(), S3Error> {
        let Some(missing) = self.missing_check() else { return Ok(()) };
        let found = source.look().await?;
        if self.mode.allows(found.as_ref()) {
            return Ok(());
        }
        Err(conflict_error(Error::failed_precondition(format_args!(
            "{}: {}: the source is another object now ({})",
            source.name, self.op, missing.what
        )))
        .into())
    }

    /// Returns where to remember the store's responses, unless a setting says what it can do.
    fn learns(&self) -> Option<(Condition, &'a Capabilities)> {
        let condition = self.condition?;
        Some((condition, self.bucket.learns(condition)?))
    }
}

//! What a store can do beyond reading and writing, as its responses show: known by endpoint, bucket and operation, for
//! this process. Buckets of one store differ: Ceph rejects every `If-Match` in a bucket with versions.
//!
//! Conditions (`If-Match` and its like) prevent a write from replacing what somebody else wrote. Stores differ in them:
//! Ceph compares an ETag including its quotes, Swift responds with 501, and many ignore all of them. A condition is
//! sent in every form that the store has not refused. Until the store has shown that it checks conditions, and where it
//! refuses them, the engine does so, with a HeadObject before the write and after it.

use crate::settings::ConditionForm;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// A kind of condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    /// `If-Match` of PutObject.
    PutOver,
    /// `If-None-Match: *` of PutObject.
    PutNew,
    /// `If-Match` of CompleteMultipartUpload.
    CompleteOver,
    /// `If-None-Match: *` of CompleteMultipartUpload.
    CompleteNew,
    /// `x-amz-copy-source-if-match`.
    CopyOf,
}

impl Condition {
    const ALL: [Self; 5] =
        [Self::PutOver, Self::PutNew, Self::CompleteOver, Self::CompleteNew, Self::CopyOf];

    /// Returns its name in the report.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::PutOver => "put_if_match",
            Self::PutNew => "put_if_none_match",
            Self::CompleteOver => "complete_if_match",
            Self::CompleteNew => "complete_if_none_match",
            Self::CopyOf => "copy_source_if_match",
        }
    }

    /// Returns the name of the setting for it.
    pub(crate) fn setting(self) -> &'static str {
        match self {
            Self::PutOver | Self::PutNew => "put_conditions",
            Self::CompleteOver | Self::CompleteNew => "complete_conditions",
            Self::CopyOf => "copy_conditions",
        }
    }

    /// Returns the header and the operation.
    pub(crate) fn described(self) -> &'static str {
        match self {
            Self::PutOver => "If-Match of PutObject",
            Self::PutNew => "If-None-Match of PutObject",
            Self::CompleteOver => "If-Match of CompleteMultipartUpload",
            Self::CompleteNew => "If-None-Match of CompleteMultipartUpload",
            Self::CopyOf => "x-amz-copy-source-if-match",
        }
    }

    /// Returns whether the condition names an ETag, which can be written in two forms.
    fn has_etag(self) -> bool {
        !matches!(self, Self::PutNew | Self::CompleteNew)
    }
}

/// What is known of a kind of condition in a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Support {
    /// Nothing, or that a condition that held was accepted, which a store that ignores it would do too.
    Unknown,
    /// The store checks it in the form of HTTP.
    Checked,
    /// The store refused one that held. Whether it accepts one without the quotes is unknown.
    TryUnquoted,
    /// The store checks it if the ETag has no quotes.
    CheckedUnquoted,
    /// The store refuses it although it holds, or does not support it.
    Refused,
}

impl Support {
    fn of(byte: u8) -> Self {
        const ALL: [Support; 5] = [
            Support::Unknown,
            Support::Checked,
            Support::TryUnquoted,
            Support::CheckedUnquoted,
            Support::Refused,
        ];
        ALL.get(usize::from(byte)).copied().unwrap_or(Support::Unknown)
    }

    /// Returns whether the store protects what somebody else wrote. Otherwise the caller has to look.
    pub(crate) fn is_checked(self) -> bool {
        matches!(self, Self::Checked | Self::CheckedUnquoted)
    }

    /// Returns whether the condition is sent at all.
    pub(crate) fn is_sent(self) -> bool {
        self != Self::Refused
    }

    /// Returns the ETag in the form that the store accepts.
    pub(crate) fn form(self, etag: String) -> String {
        match self {
            Self::TryUnquoted | Self::CheckedUnquoted => etag.trim_matches('"').to_owned(),
            _ => etag,
        }
    }

    fn shown(self) -> &'static str {
        match self {
            Self::Unknown => "not shown yet",
            Self::Checked => "checked",
            Self::TryUnquoted => "refused with quotes",
            Self::CheckedUnquoted => "checked without quotes",
            Self::Refused => "refused",
        }
    }
}

/// What is known of a store, as far as one bucket shows it.
#[derive(Debug)]
pub(crate) struct Capabilities {
    /// The endpoint and the bucket.
    name: String,
    /// Whether it is Amazon's, which checks conditions: no response makes that doubtful.
    is_amazon: bool,
    conditions: [AtomicU8; Condition::ALL.len()],
    /// Whether the store has accepted a condition that held.
    taken: [AtomicBool; Condition::ALL.len()],
    /// Whether the list of parts may have checksums: 0 unknown, 1 yes, 2 no.
    part_checksums: AtomicU8,
}

impl Capabilities {
    /// Creates the capabilities of an unknown store, or of Amazon's, which checks conditions.
    pub(crate) fn new(name: String, is_amazon: bool) -> Self {
        let first = if is_amazon { Support::Checked } else { Support::Unknown };
        Self {
            name,
            is_amazon,
            taken: std::array::from_fn(|_| AtomicBool::new(false)),
            conditions: std::array::from_fn(|_| AtomicU8::new(first as u8)),
            part_checksums: AtomicU8::new(u8::from(is_amazon)),
        }
    }

    pub(crate) fn support(&self, condition: Condition) -> Support {
        Support::of(self.conditions[condition as usize].load(Ordering::Relaxed))
    }

    /// Returns whether this is Amazon's store, which checks conditions whatever it responds.
    pub(crate) fn is_amazon(&self) -> bool {
        self.is_amazon
    }

    /// Returns whether the store has shown both that it refuses what does not hold and that it accepts what does. Then
    /// it is likely to have a reason to refuse a write, whatever HeadObject shows. A store may check copies of some
    /// objects only.
    pub(crate) fn is_settled(&self, condition: Condition) -> bool {
        self.is_amazon
            || condition != Condition::CopyOf
                && self.taken[condition as usize].load(Ordering::Relaxed)
                && self.support(condition).is_checked()
    }

    /// Records `known`, unless another request has learned something else since `from` was known.
    fn learn(&self, condition: Condition, from: Support, known: Support) {
        let of = &self.conditions[condition as usize];
        let (before, now) = (from as u8, known as u8);
        if self.is_amazon
            || of.compare_exchange(before, now, Ordering::Relaxed, Ordering::Relaxed).is_err()
        {
            return;
        }
        if known == Support::Refused {
            log::warn!(
                "{}: the store refuses {}; HeadObject looks before and after each such write instead, and what \
                 another process writes in between is replaced",
                self.name,
                condition.described()
            );
        } else {
            log::debug!("{}: {}: {}", self.name, condition.described(), known.shown());
        }
    }

    /// Records that the store refused a condition that did not hold, sent in the form `sent`.
    pub(crate) fn caught(&self, condition: Condition, sent: Support) {
        // A store that refuses every condition is detected by the first one that holds.
        match sent {
            Support::Unknown => self.learn(condition, sent, Support::Checked),
            Support::TryUnquoted => self.learn(condition, sent, Support::CheckedUnquoted),
            Support::Checked | Support::CheckedUnquoted | Support::Refused => {}
        }
    }

    /// Records that the store refused a condition that held before and after, sent as `sent`: another form is next.
    pub(crate) fn refused(&self, condition: Condition, sent: Support) {
        let next = match sent {
            Support::Unknown | Support::Checked if condition.has_etag() => Support::TryUnquoted,
            _ => Support::Refused,
        };
        if !self.is_settled(condition) {
            self.learn(condition, sent, next);
        }
    }

    /// Records that the store refused a request with a condition, sent in the form `sent`, and accepted it without. A
    /// store that has refused what did not hold supports conditions, but no longer has a reason for each refusal: the
    /// next ones are examined as those of an unknown store.
    pub(crate) fn gave_up(&self, condition: Condition, sent: Support) {
        if sent == Support::Unknown || condition == Condition::CopyOf {
            self.learn(condition, sent, Support::Refused);
        }
        self.taken[condition as usize].store(false, Ordering::Relaxed);
    }

    /// Records that the store accepted a condition that held, sent in the form `sent`. `quotes_refused`: it refused the
    /// same one with quotes, so it checks them.
    pub(crate) fn held(&self, condition: Condition, sent: Support, quotes_refused: bool) {
        if sent == Support::TryUnquoted && quotes_refused {
            self.learn(condition, sent, Support::CheckedUnquoted);
        }
        self.taken[condition as usize].store(true, Ordering::Relaxed);
    }

    pub(crate) fn takes_part_checksums(&self) -> bool {
        self.part_checksums.load(Ordering::Relaxed) != 2
    }

    /// Records whether a list of parts with checksums was accepted, or refused and then accepted without them.
    pub(crate) fn part_checksums(&self, taken: bool) {
        let now = if taken { 1 } else { 2 };
        if self.part_checksums.swap(now, Ordering::Relaxed) != now && !taken {
            log::debug!("{}: refuses checksums of parts in CompleteMultipartUpload", self.name);
        }
    }

    /// Returns its entry in the report.
    pub(crate) fn json(&self) -> Value {
        let mut shown = serde_json::Map::new();
        for condition in Condition::ALL {
            shown.insert(condition.key().to_owned(), self.support(condition).shown().into());
        }
        let checksums = match self.part_checksums.load(Ordering::Relaxed) {
            0 => "not shown yet",
            1 => "taken",
            _ => "refused",
        };
        shown.insert("part_checksums".to_owned(), json!(checksums));
        shown.into()
    }
}

/// The ability that a setting declares instead of the store.
impl From<ConditionForm> for Support {
    fn from(form: ConditionForm) -> Self {
        match form {
            ConditionForm::Quoted => Self::Checked,
            ConditionForm::Unquoted => Self::CheckedUnquoted,
            ConditionForm::None => Self::Refused,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_reads_quotes_is_found_out() {
        let store = Capabilities::new("http://store".into(), false);
        let of = Condition::PutOver;
        assert!(!store.support(of).is_checked());
        assert_eq!(store.support(of).form("\"e\"".into()), "\"e\"");
        store.refused(of, Support::Unknown);
        assert!(!store.support(of).is_checked());
        assert_eq!(store.support(of).form("\"e\"".into()), "e");
        // It is unknown whether the store checked it.
        store.held(of, Support::TryUnquoted, false);
        assert_eq!(store.support(of), Support::TryUnquoted);
        store.held(of, Support::TryUnquoted, true);
        assert_eq!(store.support(of), Support::CheckedUnquoted);
        assert_eq!(store.support(Condition::CompleteOver), Support::Unknown);
        assert_eq!(store.json()["put_if_match"], "checked without quotes");
    }

    #[test]
    fn what_is_accepted_proves_nothing_and_what_is_caught_does() {
        let store = Capabilities::new("http://store".into(), false);
        for of in Condition::ALL {
            store.held(of, Support::Unknown, false);
            assert_eq!(store.support(of), Support::Unknown);
            store.caught(of, Support::Unknown);
            assert_eq!(store.support(of), Support::Checked);
            store.refused(of, Support::Checked);
            assert_eq!(
                store.support(of) == Support::Checked,
                of != Condition::CopyOf,
                "both were shown"
            );
        }
    }

    #[test]
    fn a_write_that_gave_up_its_condition_makes_the_next_refusals_count() {
        for of in Condition::ALL {
            let store = Capabilities::new("http://store".into(), false);
            store.caught(of, Support::Unknown);
            store.held(of, Support::Checked, false);
            assert_eq!(store.is_settled(of), of != Condition::CopyOf);
            store.gave_up(of, Support::Checked);
            assert!(!store.is_settled(of));
            assert_eq!(store.support(of) == Support::Refused, of == Condition::CopyOf);
            store.refused(of, Support::Checked);
            assert!(!store.support(of).is_checked());
            let new = Capabilities::new("http://store".into(), false);
            new.gave_up(of, Support::Unknown);
            assert_eq!(new.support(of), Support::Refused);
        }
    }

    #[test]
    fn a_store_that_refuses_every_form_is_asked_no_more() {
        let store = Capabilities::new("http://store".into(), false);
        for of in Condition::ALL {
            store.caught(of, Support::Unknown);
            while store.support(of).is_sent() {
                store.refused(of, store.support(of));
            }
            assert!(!store.support(of).is_checked());
        }
        // Late results of an older attempt.
        store.refused(Condition::PutOver, Support::Unknown);
        store.held(Condition::PutOver, Support::TryUnquoted, true);
        store.caught(Condition::PutOver, Support::TryUnquoted);
        assert_eq!(store.support(Condition::PutOver), Support::Refused);
    }

    #[test]
    fn amazon_checks_what_it_is_told() {
        let store = Capabilities::new("Amazon S3".into(), true);
        for of in Condition::ALL {
            store.refused(of, Support::Checked);
            store.gave_up(of, Support::Checked);
            assert_eq!(store.support(of), Support::Checked);
            assert!(store.is_settled(of));
        }
        assert!(store.takes_part_checksums());
        store.part_checksums(false);
        assert!(!store.takes_part_checksums());
    }
}

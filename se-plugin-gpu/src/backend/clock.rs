//! When the GPU ran the commands of a batch.

use se_plugin::profiler;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

fn positive(nanoseconds: i64) -> u64 {
    u64::try_from(nanoseconds).unwrap_or_default()
}

/// Returns nanoseconds since the Unix epoch, for backends whose GPU has no clock that the host can read.
#[must_use]
pub fn now() -> i64 {
    i64::try_from(profiler::now()).unwrap_or(i64::MAX)
}

/// A command that ran.
pub(crate) struct Measured {
    pub(crate) name: &'static str,
    /// Nanoseconds since the Unix epoch.
    pub(crate) start: u64,
    pub(crate) duration: Duration,
}

/// The difference of the host's clock and the GPU's in nanoseconds, as far as it is known.
pub(super) struct Clock(AtomicI64);

impl Default for Clock {
    fn default() -> Self {
        Self(AtomicI64::new(i64::MAX))
    }
}

impl Clock {
    /// Returns the commands of a batch that is done, from their begins and ends by the GPU's
    /// clock. The batch was sent after `sent`, by the host's clock.
    pub(super) fn measured(
        &self,
        names: &[&'static str],
        times: &[[i64; 2]],
        sent: i64,
    ) -> Vec<Measured> {
        let (Some([first, _]), Some([_, last])) = (times.first(), times.last()) else {
            return Vec::new();
        };
        // The GPU's clock has an unknown origin. The batch began after it was sent, and was done
        // before now; within these limits the known difference is kept.
        let (least, most) = (sent.saturating_sub(*first), now().saturating_sub(*last));
        let offset = self.0.load(Ordering::Relaxed).max(least).min(most);
        self.0.store(offset, Ordering::Relaxed);
        let measured = names.iter().zip(times).map(|(name, [begin, end])| Measured {
            name,
            start: positive(begin.saturating_add(offset)),
            duration: Duration::from_nanos(positive(end.saturating_sub(*begin))),
        });
        measured.collect()
    }
}

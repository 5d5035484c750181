//! The region of a bucket: the settings guess it, the store's responses correct it.

use arc_swap::ArcSwap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tf_fs_object_store::attempt;

/// The region if none is set: the one that Amazon's old names of buckets lead to.
pub(crate) const FALLBACK: &str = "us-east-1";

/// The header in which a store names a bucket's region.
pub(crate) const REGION_HEADER: &str = "x-amz-bucket-region";

/// The region of a bucket, as far as it is known.
#[derive(Debug)]
pub(crate) struct Located {
    region: ArcSwap<String>,
    corrections: Corrections,
}

/// Corrections of request parameters by the store's responses.
#[derive(Debug, Default)]
pub(crate) struct Corrections(Mutex<Recent>);

#[derive(Debug, Default)]
struct Recent {
    /// When the first correction of the last minute was made, and the last one.
    first: Option<Instant>,
    last: Option<Instant>,
    count: u32,
}

/// A store that corrects more often than this in a minute goes in circles.
const MAX_CORRECTIONS: u32 = 8;

const MINUTE: Duration = Duration::from_secs(60);

impl Corrections {
    /// Returns whether a request of an attempt that `began` then, and that a store refused, may be retried at once:
    /// after a response that says something new, or if it was made before the last correction. Otherwise the store
    /// refuses its own correction, and would go on doing so.
    pub(crate) fn allow(&self, is_new: bool, began: Instant) -> bool {
        let mut recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_new {
            return recent.last.is_some_and(|last| last > began);
        }
        if recent.first.is_some_and(|first| first.elapsed() > MINUTE) {
            *recent = Recent::default();
        }
        recent.count += 1;
        recent.first.get_or_insert_with(Instant::now);
        recent.last = Some(Instant::now());
        recent.count <= MAX_CORRECTIONS
    }
}

impl Located {
    pub(crate) fn new(region: &str) -> Self {
        let region = ArcSwap::from_pointee(region.to_owned());
        Self { region, corrections: Corrections::default() }
    }

    pub(crate) fn region(&self) -> Arc<String> {
        self.region.load_full()
    }

    /// Records that the bucket is in `region`, as the store says. Returns whether a request that was refused for its
    /// region may be retried at once.
    pub(crate) fn correct(&self, region: &str) -> bool {
        if !is_region(region) {
            return false;
        }
        let known = self.region();
        if *known != region {
            log::debug!("a bucket is in {region}, not in {known}");
            self.region.store(Arc::new(region.to_owned()));
        }
        self.corrections.allow(*known != region, attempt().began)
    }
}

/// Returns whether this is the name of a region. It goes into a host's name, so nothing else is accepted.
fn is_region(name: &str) -> bool {
    (1..=32).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

/// Returns the region that a response requires: from its header, else from the element or the text of its error.
pub(crate) fn asked_for(status: u16, header: Option<&str>, body: &[u8]) -> Option<String> {
    // 400: signed for another region. 403 and 404 are never about the region.
    if !matches!(status, 301 | 302 | 307 | 308 | 400) {
        return None;
    }
    if let Some(region) = header {
        return is_region(region).then(|| region.to_owned());
    }
    let body = std::str::from_utf8(body.get(..body.len().min(4096))?).ok()?;
    let wrong_region = ["AuthorizationHeaderMalformed", "PermanentRedirect", "TemporaryRedirect"]
        .iter()
        .any(|code| body.contains(&format!("<Code>{code}</Code>")));
    let (_, rest) = body.split_once("<Region>").filter(|_| wrong_region)?;
    let (region, _) = rest.split_once("</Region>")?;
    is_region(region).then(|| region.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_region_is_taken_from_answers() {
        let malformed =
            b"<Error><Code>AuthorizationHeaderMalformed</Code><Region>eu-west-1</Region></Error>";
        assert_eq!(asked_for(301, Some("eu-west-1"), b"").as_deref(), Some("eu-west-1"));
        assert_eq!(asked_for(400, None, malformed).as_deref(), Some("eu-west-1"));
        assert_eq!(
            asked_for(400, None, b"<Error><Code>Other</Code><Region>x</Region></Error>"),
            None
        );
        assert_eq!(asked_for(403, Some("eu-west-1"), malformed), None);
        assert_eq!(asked_for(301, Some("evil.example.com/x"), b""), None);
    }

    #[test]
    fn only_a_correction_allows_another_try() {
        let located = Located::new("us-east-1");
        assert!(!located.correct("us-east-1"), "the store refuses what it asks for");
        for evil in ["", "evil.example.com", "a/b", "x@y", "Eu-West-1", &"x".repeat(33)] {
            assert!(!located.correct(evil), "{evil}");
        }
        assert!(located.correct("eu-west-1"));
        assert_eq!(*located.region(), "eu-west-1");
        assert!(!located.correct("eu-west-1"), "it was asked for");
        let around =
            (0..1000).filter(|i| located.correct(["eu-west-2", "eu-west-1"][i % 2])).count();
        assert_eq!(around, 7, "nor is one that sends us in circles");
    }

    #[test]
    fn what_was_on_its_way_is_sent_again() {
        let corrections = Corrections::default();
        let before = Instant::now();
        assert!(!corrections.allow(false, before), "nothing was corrected");
        assert!(corrections.allow(true, before));
        assert!(corrections.allow(false, before));
        assert!(!corrections.allow(false, Instant::now()));
    }
}

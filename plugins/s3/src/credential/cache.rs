//! Credentials of a bucket, kept until shortly before they expire.

use super::{Chain, NoCredentials};
use aws_credential_types::Credentials;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tf_fs_object_store::attempt;
use tf_fs_object_store::redact::keep;

/// How long all sources together may take. A credential process or SSO may be slow.
const LOAD_TIMEOUT: Duration = Duration::from_secs(30);

/// Credentials this near to their expiry are renewed.
const RENEW_BEFORE: Duration = Duration::from_secs(5 * 60);

/// Credentials this near to their expiry are not used.
const EXPIRES_BEFORE: Duration = Duration::from_secs(10);

/// Credentials younger than this are not renewed by the request during which they were loaded.
const RENEWED: Duration = Duration::from_secs(60);
/// After a refusal that does not say why, credentials younger than this are not renewed.
const FRESH: Duration = Duration::from_secs(1);
/// The same where the load took longer than that, in times of it: such refusals must not keep a slow source busy.
const FRESH_LOADS: u32 = 10;
/// The same where the source had no others than those refused before: a permission may be missing.
const UNCHANGED: Duration = Duration::from_secs(60);

/// How clearly a store says that it refuses a request for its credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blame {
    /// Its code is about credentials that are too old.
    Certain,
    /// Its code, or a response without one, has other causes too.
    Possible,
    /// The same, and long-lived keys do not cause it.
    PossibleForSessions,
}

/// Credentials, kept until shortly before they expire. There is one load at a time; other callers wait for it.
pub(crate) struct Cache {
    chain: Chain,
    loaded: Mutex<Option<Loaded>>,
    /// The credentials that a store refused last.
    refused: Mutex<Option<Credentials>>,
    /// When the last load that failed began, and why it failed.
    loading: tokio::sync::Mutex<Option<(Instant, NoCredentials)>>,
}

struct Loaded {
    credentials: Credentials,
    at: Instant,
    /// How long the load took.
    took: Duration,
    /// A renewal that failed is not tried again before this.
    retry: Option<Instant>,
    /// Whether they are those that a store had refused: the source had no newer ones.
    is_unchanged: bool,
}

impl Loaded {
    /// Creates them as they come from a source, in answer to a load that began at `began`.
    fn new(credentials: Credentials, began: Instant, refused: Option<&Credentials>) -> Self {
        let is_unchanged = refused.is_some_and(|refused| is_same(refused, &credentials));
        let (at, took) = (Instant::now(), began.elapsed());
        Self { credentials, at, took, retry: None, is_unchanged }
    }

    /// Returns whether a refusal that does not say why renews them.
    fn is_old(&self) -> bool {
        let fresh = match (self.is_unchanged, self.took) {
            (true, _) => UNCHANGED,
            (false, took) if took < FRESH => FRESH,
            (false, took) => took * FRESH_LOADS,
        };
        self.at.elapsed() >= fresh
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").field("profile", &self.chain.profile).finish_non_exhaustive()
    }
}

impl Cache {
    pub(crate) fn new(chain: Chain) -> Self {
        Self {
            chain,
            loaded: Mutex::default(),
            refused: Mutex::default(),
            loading: tokio::sync::Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Loaded>> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the kept credentials, if they need no renewal.
    fn kept(&self) -> Option<Credentials> {
        let loaded = self.lock();
        let loaded = loaded.as_ref()?;
        let wait = if loaded.retry.is_some_and(|retry| Instant::now() < retry) {
            EXPIRES_BEFORE
        } else {
            RENEW_BEFORE
        };
        // Short-lived ones would be renewed constantly.
        let is_young = loaded.at.elapsed() < Duration::from_secs(60);
        let wait = if is_young { EXPIRES_BEFORE } else { wait };
        self.ends_after(&loaded.credentials, wait).then(|| loaded.credentials.clone())
    }

    /// Returns whether credentials are valid for longer than this, by the time of the services that give them out.
    fn ends_after(&self, credentials: &Credentials, wait: Duration) -> bool {
        let now = self.chain.services.clock.now();
        credentials.expiry().is_none_or(|end| end > now + wait)
    }

    /// Returns the current credentials. A caller that waited for a failed load does not try all sources again.
    ///
    /// # Errors
    /// [`NoCredentials`].
    pub(crate) async fn get(&self) -> Result<Credentials, NoCredentials> {
        if let Some(credentials) = self.kept() {
            return Ok(credentials);
        }
        let asked = Instant::now();
        let mut last = self.loading.lock().await;
        if let Some(credentials) = self.kept() {
            return Ok(credentials);
        }
        if let Some((began, error)) = &*last
            && *began >= asked
        {
            return Err(error.clone());
        }
        let began = Instant::now();
        let result = self.chain.load(LOAD_TIMEOUT).await;
        *last = result.as_ref().err().map(|error| (began, error.clone()));
        let mut loaded = self.lock();
        match (result, loaded.as_mut()) {
            (Ok(credentials), _) => {
                keep(credentials.secret_access_key());
                credentials.session_token().into_iter().for_each(keep);
                let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
                *loaded = Some(Loaded::new(credentials.clone(), began, refused.as_ref()));
                Ok(credentials)
            }
            // The old ones are still valid for a while.
            (Err(error), Some(old)) if self.ends_after(&old.credentials, EXPIRES_BEFORE) => {
                log::warn!(
                    "credentials could not be renewed, the old ones are used until they end: {error}"
                );
                old.retry = Some(Instant::now() + Duration::from_secs(15));
                Ok(old.credentials.clone())
            }
            (Err(error), _) => Err(error),
        }
    }

    /// Forgets the credentials, which a store refused, so that the next attempt loads them again. Returns whether that
    /// may help: credentials that were loaded for the refused attempt are not older than those of the source.
    pub(crate) fn expire(&self, blame: Blame) -> bool {
        if self.chain.fixed.is_some() {
            return false;
        }
        let mut loaded = self.lock();
        let Some(current) = &*loaded else { return true };
        let Loaded { credentials, at, .. } = current;
        if blame == Blame::PossibleForSessions && credentials.session_token().is_none() {
            return false;
        }
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let now = attempt();
        if *at > now.began {
            // Another request may have loaded them after this one was signed with older ones.
            return refused.as_ref().is_some_and(|refused| !is_same(refused, credentials));
        }
        // A source may have new ones for each load: the store refuses those for another reason.
        if *at > now.first_began && at.elapsed() < RENEWED {
            return false;
        }
        if blame != Blame::Certain && !current.is_old() {
            return false;
        }
        *refused = loaded.take().map(|loaded| loaded.credentials);
        true
    }
}

fn is_same(one: &Credentials, other: &Credentials) -> bool {
    one.access_key_id() == other.access_key_id()
        && one.secret_access_key() == other.secret_access_key()
        && one.session_token() == other.session_token()
}

#[cfg(test)]
mod tests {
    use super::super::Services;
    use super::*;
    use std::sync::Arc;
    use tf_fs_object_store::http::Tls;

    /// Returns a cache of long-lived keys that were loaded so long ago, after a store had refused those of `refused`.
    fn loaded(ago: Duration, refused: &'static str) -> Cache {
        let keys = |id| Credentials::new(id, "secret", None, None, "test");
        let tls = Arc::new(Tls::default().client_config().unwrap());
        let chain = Chain::new(&Default::default(), "r", Arc::new(Services::new(&tls)));
        let cache = Cache::new(chain);
        let mut current = Loaded::new(keys("KEY"), Instant::now(), Some(&keys(refused)));
        current.at -= ago;
        *cache.lock() = Some(current);
        cache
    }

    #[test]
    fn a_denial_does_not_keep_a_source_busy() {
        let seconds = Duration::from_secs;
        for (ago, refused, blame, expected) in [
            (seconds(2), "KEY", Blame::Possible, false),
            (seconds(59), "KEY", Blame::Possible, false),
            (seconds(61), "KEY", Blame::Possible, true),
            (seconds(2), "OTHER", Blame::Possible, true),
            (seconds(0), "OTHER", Blame::Possible, false),
            // Newer ones may be there now.
            (seconds(2), "KEY", Blame::Certain, true),
            (seconds(61), "KEY", Blame::PossibleForSessions, false),
        ] {
            assert_eq!(loaded(ago, refused).expire(blame), expected, "{ago:?} {refused} {blame:?}");
        }
    }
}

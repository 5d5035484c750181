//! Credentials of a bucket, kept until shortly before they expire.

use super::{Chain, NoCredentials};
use aws_credential_types::Credentials;
use aws_credential_types::provider::error::CredentialsError;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use tf_fs_object_store::attempt;
use tf_fs_object_store::http::causes;
use tf_fs_object_store::redact::keep;

/// How long all sources together may take. A credential process or SSO may be slow.
const LOAD_TIMEOUT: Duration = Duration::from_secs(30);

/// Credentials this near to their expiry are renewed.
const RENEW_BEFORE: Duration = Duration::from_secs(5 * 60);

/// Credentials this near to their expiry are not used.
const EXPIRES_BEFORE: Duration = Duration::from_secs(10);

/// After a refusal that does not say why, credentials younger than this are not renewed.
const FRESH: Duration = Duration::from_secs(1);
/// The same where the load took longer than that, in times of it: such refusals must not keep a slow source busy.
const FRESH_LOADS: u32 = 10;

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
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").field("profile", &self.chain.profile).finish_non_exhaustive()
    }
}

impl Cache {
    pub(in super::super) fn new(chain: Chain) -> Self {
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
        ends_after(&loaded.credentials, wait).then(|| loaded.credentials.clone())
    }

    /// Returns the current credentials. A caller that waited for a failed load does not try all sources again.
    ///
    /// # Errors
    /// [`NoCredentials`].
    pub(crate) async fn get(&self) -> Result<Credentials, CredentialsError> {
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
            return Err(CredentialsError::provider_error(error.clone()));
        }
        let began = Instant::now();
        let result = self.chain.load(LOAD_TIMEOUT).await;
        *last = result.as_ref().err().map(|error| (began, error.clone()));
        let result = result.map_err(CredentialsError::provider_error);
        let mut loaded = self.lock();
        match (result, loaded.as_mut()) {
            (Ok(credentials), _) => {
                keep(credentials.secret_access_key());
                credentials.session_token().into_iter().for_each(keep);
                let (at, took) = (Instant::now(), began.elapsed());
                *loaded = Some(Loaded { credentials: credentials.clone(), at, took, retry: None });
                Ok(credentials)
            }
            // The old ones are still valid for a while.
            (Err(error), Some(old)) if ends_after(&old.credentials, EXPIRES_BEFORE) => {
                log::warn!(
                    "credentials could not be renewed, the old ones are used until they end: {}",
                    causes(&error)
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
        let Some(Loaded { credentials, at, took, .. }) = &*loaded else { return true };
        if blame == Blame::PossibleForSessions && credentials.session_token().is_none() {
            return false;
        }
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if *at > attempt().began {
            // Another request may have loaded them after this one was signed with older ones.
            return refused.as_ref().is_some_and(|refused| !is_same(refused, credentials));
        }
        let fresh = if *took < FRESH { FRESH } else { *took * FRESH_LOADS };
        if blame != Blame::Certain && at.elapsed() < fresh {
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

fn ends_after(credentials: &Credentials, wait: Duration) -> bool {
    credentials.expiry().is_none_or(|end| end > SystemTime::now() + wait)
}

//! Credentials of a bucket, kept until shortly before they expire.

use super::{Chain, NoCredentials};
use aws_credential_types::Credentials;
use aws_credential_types::provider::error::CredentialsError;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use tf_fs_object_store::attempt;
use tf_fs_object_store::http::causes;

/// How long all sources together may take. A credential process or SSO may be slow.
const LOAD_TIMEOUT: Duration = Duration::from_secs(30);

/// Credentials this near to their expiry are renewed.
const RENEW_BEFORE: Duration = Duration::from_secs(5 * 60);

/// Credentials this near to their expiry are not used.
const EXPIRES_BEFORE: Duration = Duration::from_secs(10);

/// When a store refuses credentials younger than this, newer ones do not help.
const FRESH: Duration = Duration::from_secs(1);
/// The same for credentials that are equal to those refused before.
const STALE: Duration = Duration::from_secs(60);

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
                let at = Instant::now();
                *loaded = Some(Loaded { credentials: credentials.clone(), at, retry: None });
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

    /// Forgets the credentials, which a store refused as too old. Returns whether newer ones may help. If the store did
    /// not say why, it may only mean session credentials, which expire.
    pub(crate) fn expire(&self, is_said: bool) -> bool {
        let mut loaded = self.lock();
        let Some(Loaded { credentials, at, .. }) = &*loaded else { return true };
        if !is_said && credentials.session_token().is_none() {
            return false;
        }
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = refused.as_ref().is_some_and(|refused| is_same(refused, credentials));
        // Newer than the refused ones, with which this request was signed too.
        let is_newer = refused.is_some() && !is_same && *at > attempt().began;
        if is_newer || at.elapsed() < FRESH {
            return is_newer;
        }
        let may_help = !is_same || at.elapsed() >= STALE;
        *refused = loaded.take().map(|loaded| loaded.credentials);
        may_help
    }
}

fn is_same(one: &Credentials, other: &Credentials) -> bool {
    one.access_key_id() == other.access_key_id() && one.session_token() == other.session_token()
}

fn ends_after(credentials: &Credentials, wait: Duration) -> bool {
    credentials.expiry().is_none_or(|end| end > SystemTime::now() + wait)
}

//! How requests are authorized.

mod entra;

pub(crate) use entra::Tokens;

use crate::settings::Secret;
use crate::sign::SharedKey;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};
use tf_fs_plugin::sync::{Mutex, MutexGuard};

/// How requests to an account are authorized.
#[derive(Clone, Debug)]
pub(crate) enum Credential {
    /// With the account's key.
    Key(SharedKey),
    /// With a signature in the URL that somebody made.
    Sas(Secret),
    /// With tokens of Microsoft Entra.
    Entra(Arc<Tokens>),
    /// Not at all.
    Anonymous,
}

/// The least time between two looks at the settings.
const PAUSE: Duration = Duration::from_secs(1);

/// Reads a key or a SAS from the settings again; `None` if they have none for the same place.
pub(crate) type Reread = Box<dyn Fn() -> Option<Credential> + Send + Sync>;

/// The credential of an account. A key or a SAS is read from the settings again when the store refuses it: another program
/// may have renewed it.
pub(crate) struct CurrentCredential {
    now: Mutex<Credential>,
    /// Counts the credentials.
    number: AtomicU64,
    reread: Option<Reread>,
    looked: Mutex<Option<Instant>>,
}

impl CurrentCredential {
    pub(crate) fn new(credential: Credential) -> Self {
        Self {
            now: Mutex::new(credential),
            number: AtomicU64::new(0),
            reread: None,
            looked: Mutex::default(),
        }
    }

    /// Sets how a key or a SAS is read again.
    pub(crate) fn with_reread(self, reread: Reread) -> Self {
        Self { reread: Some(reread), ..self }
    }

    pub(crate) fn get(&self) -> Credential {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Credential> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of the credential, which tells it from the one after it.
    pub(crate) fn number(&self) -> u64 {
        self.number.load(Ordering::Acquire)
    }

    /// Looks for another credential, after the store has refused the one with this number. Returns whether there is one.
    pub(crate) fn renew(&self, refused: u64) -> bool {
        let Some(reread) = &self.reread else { return false };
        // Others wait here for the one that looks.
        let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        if self.number() != refused {
            return true;
        }
        if looked.is_some_and(|looked| looked.elapsed() < PAUSE) {
            return false;
        }
        let other = reread().filter(|other| match (&*self.lock(), other) {
            (Credential::Key(old), Credential::Key(new)) => old != new,
            (Credential::Sas(old), Credential::Sas(new)) => old != new,
            (Credential::Key(_) | Credential::Sas(_), Credential::Key(_) | Credential::Sas(_)) => {
                true
            }
            _ => false,
        });
        *looked = Some(Instant::now());
        let Some(other) = other else { return false };
        *self.lock() = other;
        self.number.fetch_add(1, Ordering::Release);
        true
    }
}

impl fmt::Debug for CurrentCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lock().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    fn sas(text: &str) -> Credential {
        Credential::Sas(Secret::new(text))
    }

    #[test]
    fn a_refused_credential_is_read_again() {
        let (now, looks) =
            (Arc::new(std::sync::Mutex::new("sig=one")), Arc::new(AtomicUsize::new(0)));
        let (shared, count) = (Arc::clone(&now), Arc::clone(&looks));
        let current = CurrentCredential::new(sas("sig=one")).with_reread(Box::new(move || {
            count.fetch_add(1, Ordering::Relaxed);
            Some(sas(*shared.lock().unwrap()))
        }));
        assert!(!current.renew(0), "there is no other");
        *now.lock().unwrap() = "sig=two";
        assert!(!current.renew(0), "it was looked for just now");
        *current.looked.lock().unwrap() = None;
        assert!(current.renew(0));
        assert!(matches!(current.get(), Credential::Sas(new) if new.expose() == "sig=two"));
        assert!(current.renew(0), "a request that was signed with the old one");
        assert!(!current.renew(1));
        assert_eq!(looks.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn others_are_not_read_again() {
        let to = |now, other: Credential| {
            let other = Box::new(move || Some(other.clone()));
            CurrentCredential::new(now).with_reread(other).renew(0)
        };
        let key = |text| Credential::Key(SharedKey::parse(&Secret::new(text)).unwrap());
        assert!(!to(Credential::Anonymous, sas("sig=one")));
        assert!(!to(sas("sig=one"), Credential::Anonymous));
        assert!(to(sas("sig=one"), key("c2VzYW1l")));
        assert!(!to(key("c2VzYW1l"), key("c2VzYW1l")));
        assert!(to(key("c2VzYW1l"), key("c2VzYW1m")));
        assert!(!CurrentCredential::new(sas("sig=one")).renew(0));
    }
}

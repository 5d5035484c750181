//! Opens remotes: where each is, its protocol, and the credentials for it.

use crate::bucket::Bucket;
use crate::name;
use crate::scheme::{BUCKETS, FILES};
use crate::services;
use crate::settings::Configured;
use crate::store::Remote;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use tf_fs_object_store::{Name, ObjectStore};
use tf_fs_plugin::prelude::*;

/// What names of some schemes lead to.
pub trait Opened: ObjectStore {
    /// The schemes.
    const SCHEMES: &'static [&'static str];

    /// Opens a remote, which has its scheme in front. It makes no connection yet.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if the settings cannot be used; `UNIMPLEMENTED` if this build leaves the protocol out.
    fn open(client: &Client<Self>, remote: &str) -> Result<Self>
    where
        Self: Sized;
}

impl Opened for Remote {
    const SCHEMES: &'static [&'static str] = FILES;

    fn open(client: &Client<Self>, remote: &str) -> Result<Self> {
        let (scheme, remote) = name::server(remote)?;
        services::open(scheme, remote, client.settings.bucket(remote))
    }
}

impl Opened for Bucket {
    const SCHEMES: &'static [&'static str] = BUCKETS;

    fn open(client: &Client<Self>, remote: &str) -> Result<Self> {
        let (scheme, bucket) = name::server(remote)?;
        services::open_bucket(scheme, bucket, client.settings.bucket(bucket))
    }
}

/// Opens remotes.
pub struct Client<S> {
    settings: Arc<Configured>,
    opened: PhantomData<fn() -> S>,
}

impl<S> fmt::Debug for Client<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Client").field(&self.settings).finish()
    }
}

impl<S> Client<S> {
    /// Creates a client with these settings. It makes no connection yet.
    pub(crate) fn new(settings: Arc<Configured>) -> Self {
        Self { settings, opened: PhantomData }
    }

    /// Returns whether it was made with these settings.
    pub(crate) fn has(&self, settings: &Arc<Configured>) -> bool {
        Arc::ptr_eq(&self.settings, settings)
    }
}

impl<S: Opened> tf_fs_object_store::Client for Client<S> {
    type Store = S;

    const SCHEMES: &'static [&'static str] = S::SCHEMES;

    async fn open(&self, bucket: &Arc<str>) -> Result<S> {
        S::open(self, bucket).context(bucket)
    }

    fn split(uri: Uri<'_>) -> Result<(&str, &str)> {
        name::split(uri)
    }

    fn name(bucket: &str, key: &str) -> Result<Name> {
        ensure!(
            !bucket.is_empty() || matches!(key, "" | name::CONFIG | name::METRICS),
            Error::invalid_argument(format_args!(
                "{key}: the name has no remote; write scheme://remote/path"
            ))
        );
        name::new(bucket, key)
    }
}

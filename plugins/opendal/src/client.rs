//! Opens remotes: where each is, its protocol, and the credentials for it.

use crate::name;
use crate::scheme::NAMES;
use crate::services;
use crate::settings::Configured;
use crate::store::Remote;
use std::sync::Arc;
use tf_fs_object_store::Name;
use tf_fs_plugin::prelude::*;

/// Opens remotes.
#[derive(Debug)]
pub struct Client(Arc<Configured>);

impl Client {
    /// Creates a client with these settings. It makes no connection yet.
    pub(crate) fn new(settings: Arc<Configured>) -> Self {
        Self(settings)
    }

    /// Returns whether it was made with these settings.
    pub(crate) fn has(&self, settings: &Arc<Configured>) -> bool {
        Arc::ptr_eq(&self.0, settings)
    }
}

impl tf_fs_object_store::Client for Client {
    type Store = Remote;

    const SCHEMES: &'static [&'static str] = NAMES;

    async fn open(&self, bucket: &Arc<str>) -> Result<Remote> {
        let (scheme, remote) = name::server(bucket)?;
        let settings = self.0.bucket(remote);
        services::open(scheme, remote, settings).context(bucket)
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

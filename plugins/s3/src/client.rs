//! Opens buckets.

use crate::bucket::Bucket;
use crate::error::S3Error;
use crate::settings::Settings;
use crate::shared::Shared;
use std::collections::BTreeMap;
use std::sync::Arc;
use tf_fs_object_store::{BucketPage, Name, retry};
use tf_fs_plugin::prelude::*;

/// What connections to buckets are made with.
#[derive(Debug)]
pub(crate) struct Client {
    settings: Arc<Settings>,
    shared: Arc<Shared>,
}

impl Client {
    /// Creates a client with these settings. It shares with the one before it what buckets share.
    pub(crate) fn new(settings: Arc<Settings>, before: Option<&Self>) -> Self {
        let shared = before.map(|before| Arc::clone(&before.shared)).unwrap_or_default();
        Self { settings, shared }
    }

    /// Returns whether a bucket of this name would have the same settings. Then it keeps its connections.
    pub(crate) fn would_open(&self, name: &str, bucket: &Bucket) -> bool {
        bucket.settings == *self.settings.bucket(name)
    }

    /// Returns whether it was made with these settings.
    pub(crate) fn has(&self, settings: &Arc<Settings>) -> bool {
        Arc::ptr_eq(&self.settings, settings)
    }

    /// Returns what is known of the stores that this process has used, by endpoint and bucket.
    pub(crate) fn stores(&self) -> BTreeMap<String, BTreeMap<String, serde_json::Value>> {
        self.shared.stores()
    }
}

impl tf_fs_object_store::Client for Client {
    type Store = Bucket;

    const SCHEMES: &'static [&'static str] = &["s3"];

    fn settings(&self) -> tf_fs_object_store::Settings {
        self.settings.bucket("").engine.clone()
    }

    fn has_timeouts(&self) -> bool {
        true
    }

    async fn list_buckets(&self, token: Option<&str>) -> Result<BucketPage, S3Error> {
        let (any, name) = (self.open(&"".into()).await?, Name::new("s3", "", ""));
        // Retried here, because what the store says of the region applies to this bucket only.
        let list = || crate::list::buckets(&any, token);
        Ok(retry(&any, "ListBuckets", &name, list).await?)
    }

    async fn open(&self, bucket: &Arc<str>) -> Result<Bucket> {
        let settings = Arc::clone(self.settings.bucket(bucket));
        Bucket::open(Arc::clone(bucket), settings, &self.shared).await
    }

    fn split(uri: Uri<'_>) -> Result<(&str, &str)> {
        crate::name::split(uri)
    }

    fn name(bucket: &str, key: &str) -> Result<Name> {
        crate::name::new(bucket, key)
    }
}

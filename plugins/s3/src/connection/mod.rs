//! Clients, one for each bucket: region, endpoint, credentials.

mod abilities;
mod bucket;
mod credentials;
mod http;
mod profile;
mod region;
mod route;
mod silence;
mod tls;
mod whole;

pub(crate) use abilities::{Abilities, Condition, Known};
pub(crate) use bucket::Bucket;
pub(crate) use credentials::{Blame, NoCredentials};
pub(crate) use http::Unanswered;
pub(crate) use region::{Corrections, REGION_HEADER, asked_for};
pub(crate) use route::Route;

use crate::cause::Cause;
use crate::config::Settings;
use aws_sdk_s3::config::endpoint::DefaultResolver;
use aws_smithy_runtime_api::client::http::SharedHttpClient;
use credentials::Sources;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tf_fs_object_store::http::{Pool, Proxy, Tls};
use tf_fs_object_store::{BucketPage, Name, retry};
use tf_fs_plugin::prelude::*;

/// What connections to buckets are made with.
#[derive(Debug)]
pub(crate) struct Client {
    settings: Arc<Settings>,
    shared: Arc<Shared>,
}

/// What is known of buckets, by endpoint and name.
type AbilitiesOf = BTreeMap<(String, Arc<str>), Arc<Abilities>>;

/// What the buckets share, whatever their settings.
#[derive(Debug, Default)]
struct Shared {
    clients: Mutex<HashMap<(Tls, Duration, Duration), SharedHttpClient>>,
    tls: Mutex<HashMap<Tls, Arc<rustls::ClientConfig>>>,
    sources: Mutex<HashMap<Tls, Arc<Sources>>>,
    abilities: Mutex<AbilitiesOf>,
    /// Our connections.
    pool: Arc<Pool>,
    /// The SDK's rules, which are large.
    rules: OnceLock<Arc<DefaultResolver>>,
}

impl Client {
    /// Creates a client with these settings. It shares with the one before it what buckets share.
    pub(crate) fn new(settings: Arc<Settings>, before: Option<&Self>) -> Self {
        silence::quieten();
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
        let abilities = self.shared.abilities.lock().unwrap_or_else(PoisonError::into_inner);
        let mut stores = BTreeMap::<_, BTreeMap<_, _>>::new();
        for ((endpoint, bucket), known) in &*abilities {
            // Without a name it only lists buckets.
            if !bucket.is_empty() {
                let buckets = stores.entry(endpoint.clone()).or_default();
                buckets.insert(bucket.to_string(), known.json());
            }
        }
        stores
    }
}

impl tf_fs_object_store::Client for Client {
    type Store = Bucket;

    const SCHEME: &'static str = "s3";

    fn settings(&self) -> tf_fs_object_store::Settings {
        self.settings.bucket("").engine.clone()
    }

    async fn list_buckets(&self, token: Option<&str>) -> Result<BucketPage, Cause> {
        let (any, name) = (self.open(&"".into()).await?, Name::new("s3", "", ""));
        // Retried here, because what the store says of the region applies to this bucket only.
        let list = || crate::names::list_buckets(&any, token);
        Ok(retry(&any, "ListBuckets", &name, list).await?)
    }

    async fn open(&self, bucket: &Arc<str>) -> Result<Bucket> {
        let settings = Arc::clone(self.settings.bucket(bucket));
        Bucket::connect(Arc::clone(bucket), settings, &self.shared).await
    }

    fn split(uri: Uri<'_>) -> Result<(&str, &str)> {
        crate::name::split(uri)
    }

    fn name(bucket: &str, key: &str) -> Result<Name> {
        crate::name::new(bucket, key)
    }
}

impl Shared {
    /// Returns the HTTP client for requests to stores.
    fn client(&self, tls: &Tls, connect: Duration, stall: Duration) -> Result<SharedHttpClient> {
        let key = (tls.clone(), connect, stall);
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&key) {
            return Ok(client.clone());
        }
        let config = self.tls(tls)?;
        let client = http::client(config, Proxy::Environment, connect, stall);
        clients.insert(key, client.clone());
        Ok(client)
    }

    /// Returns the TLS settings. The first call reads the system's certificates, while TensorFlow's thread waits: if a
    /// background thread were reading them when that thread forks, the child would wait for it for ever.
    fn tls(&self, tls: &Tls) -> Result<Arc<rustls::ClientConfig>> {
        let mut configs = self.tls.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(config) = configs.get(tls) {
            return Ok(Arc::clone(config));
        }
        let config = Arc::new(tls::client_config(tls)?);
        configs.insert(tls.clone(), Arc::clone(&config));
        Ok(config)
    }

    /// Returns what is known of a bucket of the store at this endpoint; `None` is Amazon S3.
    fn abilities(&self, endpoint: Option<&str>, bucket: &Arc<str>) -> Arc<Abilities> {
        let is_amazon = endpoint.is_none_or(bucket::is_amazon);
        let endpoint = endpoint.unwrap_or("Amazon S3");
        let name = format!("{endpoint}, bucket {bucket}");
        let mut all = self.abilities.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.entry((endpoint.to_owned(), Arc::clone(bucket)));
        Arc::clone(known.or_insert_with(|| Arc::new(Abilities::new(name, is_amazon))))
    }

    fn rules(&self) -> Arc<DefaultResolver> {
        Arc::clone(self.rules.get_or_init(|| Arc::new(DefaultResolver::new())))
    }

    /// Returns the sources of credentials for a bucket whose store is trusted by these settings. The services that give
    /// credentials are trusted by the same certificates, as in all AWS tools, but are always verified.
    fn sources(&self, tls: &Tls) -> Result<Arc<Sources>> {
        let is_verified = tls.verify;
        let tls = Tls { verify: true, ..tls.clone() };
        let mut all = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sources) = all.get(&tls) {
            return Ok(Arc::clone(sources));
        }
        let config = self.tls(&tls).or_else(|error| match is_verified {
            true => Err(error),
            // The store is reached without them, so this is not a reason to fail.
            false => {
                log::warn!(
                    "{error:#}; services of credentials are trusted by the system's certificates"
                );
                self.tls(&Tls { file: None, directory: None, verify: true })
            }
        })?;
        let sources = Arc::new(Sources::new(&config));
        all.insert(tls, Arc::clone(&sources));
        Ok(sources)
    }
}

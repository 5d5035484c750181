//! What buckets share, whatever their settings.

use crate::AGENT;
use crate::capabilities::Capabilities;
use crate::credential::Services;
use crate::endpoint::is_amazon;
use crate::profile::Profiles;
use crate::settings::BucketSettings;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tf_fs_object_store::http::{Http, HttpSettings, Proxy, Tls};
use tf_fs_plugin::prelude::*;

/// What is known of buckets, by endpoint and name.
type CapabilitiesOf = BTreeMap<(String, Arc<str>), Arc<Capabilities>>;

/// What the buckets share, whatever their settings.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    http: Mutex<HashMap<(Tls, Duration, Duration), Http>>,
    tls: Mutex<HashMap<Tls, Arc<rustls::ClientConfig>>>,
    services: Mutex<HashMap<Tls, Arc<Services>>>,
    capabilities: Mutex<CapabilitiesOf>,
}

impl Shared {
    /// Returns what is known of the stores that this process has used, by endpoint and bucket.
    pub(crate) fn stores(&self) -> BTreeMap<String, BTreeMap<String, serde_json::Value>> {
        let all = self.capabilities.lock().unwrap_or_else(PoisonError::into_inner);
        let mut stores = BTreeMap::<_, BTreeMap<_, _>>::new();
        for ((endpoint, bucket), known) in &*all {
            // Without a name it only lists buckets.
            if !bucket.is_empty() {
                let buckets = stores.entry(endpoint.clone()).or_default();
                buckets.insert(bucket.to_string(), known.json());
            }
        }
        stores
    }

    /// Returns the HTTP client for requests to stores.
    pub(crate) fn http(&self, tls: &Tls, settings: &BucketSettings) -> Result<Http> {
        let (connect, stall) = (settings.connect_timeout, settings.engine.stall_timeout);
        let key = (tls.clone(), connect, stall);
        let mut clients = self.http.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&key) {
            return Ok(client.clone());
        }
        let settings = HttpSettings {
            tls: tls.clone(),
            proxy: Proxy::Environment,
            connect_timeout: connect,
            stall_timeout: stall,
            user_agent: AGENT,
        };
        let client = Http::with_config(self.tls(tls)?, settings).expecting_ranges();
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
        let config = tls.client_config();
        let config = config.context("ca_file, ca_path, or ca_bundle of the AWS profile")?;
        let config = Arc::new(config);
        configs.insert(tls.clone(), Arc::clone(&config));
        Ok(config)
    }

    /// Returns what is known of a bucket of the store at this endpoint; `None` is Amazon S3.
    pub(crate) fn capabilities(
        &self,
        endpoint: Option<&str>,
        bucket: &Arc<str>,
    ) -> Arc<Capabilities> {
        let is_amazon = endpoint.is_none_or(is_amazon);
        let endpoint = endpoint.unwrap_or("Amazon S3");
        let name = format!("{endpoint}, bucket {bucket}");
        let mut all = self.capabilities.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.entry((endpoint.to_owned(), Arc::clone(bucket)));
        Arc::clone(known.or_insert_with(|| Arc::new(Capabilities::new(name, is_amazon))))
    }

    /// Returns the services of credentials for a bucket whose store is trusted by these settings. They are trusted by the
    /// same certificates, as in all AWS tools, but are always verified.
    pub(crate) fn services(&self, tls: &Tls) -> Result<Arc<Services>> {
        let is_verified = tls.verify;
        let tls = Tls { verify: true, ..tls.clone() };
        let mut all = self.services.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(services) = all.get(&tls) {
            return Ok(Arc::clone(services));
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
        let services = Arc::new(Services::new(&config));
        all.insert(tls, Arc::clone(&services));
        Ok(services)
    }
}

/// Returns which certificates are trusted: those of the settings, else of the AWS profile, else the system's.
pub(crate) fn tls(settings: &BucketSettings, profiles: &Profiles) -> Tls {
    let mut tls = Tls {
        file: settings.ca_file.clone(),
        directory: settings.ca_path.clone(),
        verify: settings.verify_tls,
    };
    if tls.is_system() {
        tls.file = profiles.get("ca_bundle").map(Into::into);
    }
    tls
}

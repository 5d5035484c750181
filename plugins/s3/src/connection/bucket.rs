//! A bucket and its client.

use super::Shared;
use super::abilities::Abilities;
use super::credentials::{Blame, Cache, Chain};
use super::profile;
use super::region::{FALLBACK, Located, REGION_HEADER, Resolver, asked_for};
use super::route::Route;
use super::tls;
use crate::cause::Cause;
use crate::config::BucketSettings;
use crate::failure::{blames_credentials, element};
use crate::get::Shown;
use crate::metrics::Observer;
use arc_swap::ArcSwapOption;
use aws_config::BehaviorVersion;
use aws_credential_types::Credentials;
use aws_sdk_s3::Client;
use aws_sdk_s3::config::endpoint::Params;
use aws_sdk_s3::config::retry::{RetryConfig, RetryPartition};
use aws_sdk_s3::config::{
    IdentityCache, RequestChecksumCalculation, SharedCredentialsProvider,
    StalledStreamProtectionConfig,
};
use aws_types::SdkConfig;
use aws_types::region::Region;
use aws_types::service_config::ServiceConfigKey;
use futures_util::FutureExt;
use http::{HeaderName, HeaderValue, Uri};
use std::fmt;
use std::sync::{Arc, OnceLock};
use tf_fs_object_store::http::{Pool, Tls, causes, date};
use tf_fs_plugin::prelude::*;

/// A bucket and the client for it.
pub(crate) struct Bucket {
    pub(crate) name: Arc<str>,
    pub(crate) client: Client,
    pub(crate) settings: Arc<BucketSettings>,
    /// Whether uploads carry a checksum that the store verifies.
    pub(crate) checksums: bool,
    located: Arc<Located>,
    /// `None`: anonymous.
    credentials: Option<Arc<Cache>>,
    endpoint: EndpointOf,
    route: ArcSwapOption<Route>,
    tls: Tls,
    tls_config: OnceLock<Arc<rustls::ClientConfig>>,
    shared: Arc<Shared>,
    pub(super) abilities: Arc<Abilities>,
    pub(crate) shown: Shown,
}

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bucket")
            .field("name", &self.name)
            .field("region", &self.located.region())
            .field("endpoint", &self.endpoint)
            .finish_non_exhaustive()
    }
}

/// The input of the SDK's endpoint rules besides the region.
#[derive(Debug)]
struct EndpointOf {
    url: Option<String>,
    path_style: bool,
    use_fips: bool,
    use_dualstack: bool,
}

impl Bucket {
    pub(super) async fn connect(
        name: Arc<str>,
        settings: Arc<BucketSettings>,
        shared: &Arc<Shared>,
    ) -> Result<Self> {
        let tls = tls::of(&settings).await;
        if !tls.verify {
            log::warn!(
                "bucket {name}: any certificate is accepted, so that everybody on the way can read and change the \
                 data; to trust a certificate of your own set AWS_CA_BUNDLE or ca_file and leave verify_tls alone"
            );
        }
        let client =
            shared.client(&tls, settings.connect_timeout, settings.engine.stall_timeout)?;
        let sources = shared.sources(&tls)?;
        let loaded = load(&settings, client).await;
        let url = settings.endpoint_url.clone().or_else(|| endpoint_of_profile(&loaded));
        let url = url.as_deref().map(with_slash);
        let region = match &settings.region {
            Some(region) => Region::new(region.clone()),
            None => {
                let is_amazon = url.as_deref().is_none_or(is_amazon);
                let found = sources.region(settings.profile.as_ref(), is_amazon).await;
                found.unwrap_or(Region::from_static(FALLBACK))
            }
        };
        let located = Arc::new(Located::new(region.as_ref(), shared.rules()));
        let chain = Chain::new(&settings, region.clone(), sources);
        let cache = Arc::new(Cache::new(chain));
        let path_style = match settings.path_style {
            Some(path_style) => path_style,
            None => match profile::s3(settings.profile.as_ref(), "addressing_style").await {
                Some(style) if style == "path" => true,
                Some(style) if style == "virtual" => false,
                _ => url.as_deref().is_some_and(|url| !is_amazon(url)),
            },
        };
        let checksums = settings.checksums.unwrap_or(
            loaded.request_checksum_calculation() != Some(RequestChecksumCalculation::WhenRequired),
        );
        let endpoint = EndpointOf {
            path_style,
            url,
            use_fips: settings.use_fips.or(loaded.use_fips()).unwrap_or(false),
            use_dualstack: settings.use_dualstack.or(loaded.use_dual_stack()).unwrap_or(false),
        };
        let retries = if settings.adaptive_retries {
            RetryConfig::adaptive()
        } else {
            RetryConfig::standard()
        };
        let mut config = aws_sdk_s3::config::Builder::from(&loaded)
            .region(region)
            .endpoint_resolver(Resolver(Arc::clone(&located)))
            .force_path_style(endpoint.path_style)
            .use_fips(endpoint.use_fips)
            .use_dual_stack(endpoint.use_dualstack)
            // The engine retries requests. Only the pace of `adaptive` is left to the SDK.
            .retry_config(retries.with_max_attempts(1))
            // Custom: those of the SDK share a table of the process, and a child that is forked while another thread
            // holds its lock waits for ever.
            .retry_partition(RetryPartition::custom(format!("s3 {name}")).build())
            // `http` does this.
            .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
            .request_checksum_calculation(if checksums {
                RequestChecksumCalculation::WhenSupported
            } else {
                RequestChecksumCalculation::WhenRequired
            })
            .interceptor(Observer::new(settings.requester_pays));
        config.set_endpoint_url(endpoint.url.clone());
        let abilities = shared.abilities(endpoint.url.as_deref(), &name);
        let credentials = if settings.anonymous {
            config.set_credentials_provider(None);
            None
        } else {
            // The cache also serves our own requests.
            config.set_credentials_provider(Some(SharedCredentialsProvider::new(Shareable(
                Arc::clone(&cache),
            ))));
            config = config.identity_cache(IdentityCache::no_cache());
            Some(cache)
        };
        let bucket = Self {
            client: Client::from_conf(config.build()),
            name,
            settings,
            checksums,
            located,
            credentials,
            endpoint,
            route: ArcSwapOption::empty(),
            tls,
            tls_config: OnceLock::new(),
            shared: Arc::clone(shared),
            abilities,
            shown: Shown::default(),
        };
        log::debug!(
            "bucket {}: {} in {}",
            bucket.name,
            bucket
                .route()
                .map_or_else(|_| "no plain URL".to_owned(), |route| route.base.to_string()),
            bucket.located.region(),
        );
        Ok(bucket)
    }

    /// Returns what tells the bucket from those of the same name elsewhere. A partition of Amazon's has one bucket of
    /// each name, and its region may be unknown before the first request.
    pub(crate) fn cache_scope(&self) -> String {
        match &self.endpoint.url {
            Some(url) => url.clone(),
            None => {
                let region = self.located.region();
                let parts = ["cn-", "us-gov-", "us-iso", "eusc-"];
                let partition = parts.into_iter().find(|part| region.starts_with(part));
                format!("amazon {}", partition.unwrap_or_default())
            }
        }
    }

    /// Returns whether both are buckets of one store, which can copy from one to the other.
    pub(crate) fn is_of_store_of(&self, other: &Self) -> bool {
        self.endpoint.url == other.endpoint.url
    }

    /// Returns where requests for the bucket's objects go.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if the settings and the bucket's name contradict each other.
    pub(crate) fn route(&self) -> Result<Arc<Route>> {
        let region = self.located.region();
        if let Some(route) = &*self.route.load()
            && Arc::ptr_eq(&route.region, &region)
        {
            return Ok(Arc::clone(route));
        }
        let wrong = |error: &dyn fmt::Display| {
            Error::invalid_argument(format_args!(
                "bucket {}: it has no URL: {error}; look at its name, endpoint_url, addressing_style and region",
                self.name
            ))
        };
        let params = Params::builder()
            .bucket(&*self.name)
            .region(region.as_str())
            .set_endpoint(self.endpoint.url.clone())
            .force_path_style(self.endpoint.path_style)
            .use_fips(self.endpoint.use_fips)
            .use_dual_stack(self.endpoint.use_dualstack)
            .build()
            .map_err(|error| wrong(&error))?;
        let endpoint = self
            .located
            .resolve(params)
            .now_or_never()
            .ok_or_else(|| Error::internal("the SDK's endpoint rules wait for something"))?
            .map_err(|error| wrong(&causes(&*error)))?;
        let route = Arc::new(Route::of(&endpoint, region).map_err(|error| wrong(&error))?);
        self.route.store(Some(Arc::clone(&route)));
        Ok(route)
    }

    /// Returns the pool of our connections, which all buckets share.
    pub(crate) fn pool(&self) -> &Arc<Pool> {
        &self.shared.pool
    }

    /// Returns the credentials to sign with; `None`: requests are not signed.
    ///
    /// # Errors
    /// [`Cause::NoCredentials`] with the sources that were tried.
    pub(crate) async fn credentials(&self) -> Result<Option<Credentials>, Cause> {
        let Some(cache) = &self.credentials else { return Ok(None) };
        let credentials = cache.get().await.map_err(|error| Cause::no_credentials(&error))?;
        Ok(Some(credentials))
    }

    /// Returns the TLS settings for our connections.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if certificates cannot be read.
    pub(crate) fn tls_config(&self) -> Result<Arc<rustls::ClientConfig>> {
        if let Some(config) = self.tls_config.get() {
            return Ok(Arc::clone(config));
        }
        let config = self.shared.tls(&self.tls)?;
        Ok(Arc::clone(self.tls_config.get_or_init(|| config)))
    }

    /// Returns the headers that every request for an object has and signs.
    pub(crate) fn headers(&self) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
        self.settings
            .requester_pays
            .then(|| {
                (
                    HeaderName::from_static("x-amz-request-payer"),
                    HeaderValue::from_static("requester"),
                )
            })
            .into_iter()
    }

    /// Returns whether a request with this response may be retried at once: the store told the bucket's region or its
    /// time, which apply from now on, or newer credentials may be available. `body` is as much of it as was read.
    pub(crate) fn may_try_again<'a>(
        &self,
        status: u16,
        header: impl Fn(&str) -> Option<&'a str>,
        body: &[u8],
    ) -> bool {
        let region = asked_for(status, header(REGION_HEADER), body);
        if region.is_some_and(|region| self.located.correct(&region)) {
            return true;
        }
        let code = element(body, "Code").filter(|_| (400..=499).contains(&status));
        // The date of a response from a cache is of an earlier time.
        let there = || header("date").filter(|_| header("age").is_none()).and_then(date);
        let may_renew = |blame| self.credentials.as_ref().is_some_and(|cache| cache.expire(blame));
        match code.as_deref() {
            Some("RequestTimeTooSkewed") => {
                there().is_some_and(|there| self.shown.set_clock(there))
            }
            Some(code) => blames_credentials(code).is_some_and(may_renew),
            // To a HEAD a store only tells its time. It responds with 400 if a session has expired, with 403 if a key
            // does not exist any more, and with 401 if it is not Amazon's.
            None if body.is_empty() => match status {
                403 if there().is_some_and(|there| self.shown.is_far_from(there)) => {
                    there().is_some_and(|there| self.shown.set_clock(there))
                }
                401 | 403 => may_renew(Blame::Possible),
                400 => may_renew(Blame::PossibleForSessions),
                _ => false,
            },
            None => false,
        }
    }
}

/// Loads the AWS configuration files and environment that our settings do not cover.
async fn load(
    settings: &BucketSettings,
    client: aws_smithy_runtime_api::client::http::SharedHttpClient,
) -> SdkConfig {
    let mut loader = aws_config::defaults(BehaviorVersion::latest())
        .http_client(client)
        // Both are found elsewhere; querying them here could wait for services that do not respond.
        .region(Region::from_static(FALLBACK))
        .no_credentials()
        // LocalState; the SDK panics when a number in its own is not valid.
        .retry_config(RetryConfig::standard());
    if let Some(profile) = &settings.profile {
        loader = loader.profile_name(&profile.name);
    }
    loader.load().await
}

/// Returns the endpoint in the AWS profile for S3, or for all services.
fn endpoint_of_profile(config: &SdkConfig) -> Option<String> {
    let key = ServiceConfigKey::builder()
        .service_id("S3")
        .env("AWS_ENDPOINT_URL")
        .profile("endpoint_url")
        .build()
        .ok()?;
    let of_service = config.service_config().and_then(|services| services.load_config(key));
    of_service.or_else(|| config.endpoint_url().map(str::to_owned))
}

/// Returns the URL, with a `/` after its path if it has one: the SDK appends the bucket as it is.
fn with_slash(url: &str) -> String {
    let url = url.trim_end_matches('/');
    let host = url.split_once("://").map_or(url, |(_, rest)| rest);
    if host.contains('/') { format!("{url}/") } else { url.to_owned() }
}

/// Returns whether a URL is one of Amazon's.
pub(super) fn is_amazon(url: &str) -> bool {
    let uri: Option<Uri> = url.parse().ok();
    uri.as_ref()
        .and_then(Uri::host)
        .is_some_and(|host| host.ends_with(".amazonaws.com") || host.ends_with(".amazonaws.com.cn"))
}

/// The cache in the form that the SDK accepts.
#[derive(Debug)]
struct Shareable(Arc<Cache>);

impl aws_credential_types::provider::ProvideCredentials for Shareable {
    fn provide_credentials<'a>(
        &'a self,
    ) -> aws_credential_types::provider::future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        aws_credential_types::provider::future::ProvideCredentials::new(self.0.get())
    }
}

#[cfg(test)]
mod tests;

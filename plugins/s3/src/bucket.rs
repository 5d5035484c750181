//! A bucket: where it is, how its requests are signed, and its requests as the engine makes them.

use crate::capabilities::Capabilities;
use crate::client::{Shared, tls};
use crate::clock::Clock;
use crate::copy;
use crate::credential::{Blame, Cache, Chain};
use crate::delete;
use crate::endpoint::{Endpoint, Rules};
use crate::error::{S3Error, blames_credentials};
use crate::get::{self, Body};
use crate::list;
use crate::pace::Pace;
use crate::profile::Profiles;
use crate::region::{FALLBACK, Located, REGION_HEADER, asked_for};
use crate::request::Call;
use crate::settings::BucketSettings;
use crate::write::checksum::same_etag;
use crate::write::multipart;
use crate::write::object::{self, Target};
use crate::write::{self, publication::Publishing};
use arc_swap::ArcSwapOption;
use aws_credential_types::Credentials;
use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;
use tf_fs_object_store::http::{self, Http, date, xml};
use tf_fs_object_store::{
    Attributes, CommitStrategy, Content, CopyOptions, GetHead, GetOptions, ListOptions, Multipart,
    Name, ObjectMeta, ObjectStore, Page, Part, Payload, Range, Settings, StoredObject, WriteLimits,
};
use tf_fs_plugin::prelude::*;

/// A bucket of a store.
pub(crate) struct Bucket {
    pub(crate) name: Arc<str>,
    pub(crate) settings: Arc<BucketSettings>,
    pub(crate) http: Http,
    /// Whether uploads carry a checksum that the store verifies.
    pub(crate) checksums: bool,
    pub(crate) capabilities: Arc<Capabilities>,
    pub(crate) pace: Pace,
    rules: Rules,
    located: Located,
    /// The endpoint in the current region.
    endpoint: ArcSwapOption<Endpoint>,
    /// `None`: anonymous.
    credentials: Option<Cache>,
    clock: Clock,
}

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bucket")
            .field("name", &self.name)
            .field("region", &self.located.region())
            .field("rules", &self.rules)
            .finish_non_exhaustive()
    }
}

impl Bucket {
    /// Opens a bucket: finds out where it is, and makes no request to it yet.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for certificates that cannot be used.
    pub(crate) async fn open(
        name: Arc<str>,
        settings: Arc<BucketSettings>,
        shared: &Shared,
    ) -> Result<Self> {
        let profiles = Profiles::load(settings.profile.as_ref()).unwrap_or_else(|error| {
            // Without credentials it is an error, where they are looked for.
            log::debug!("{error}");
            Profiles::default()
        });
        let tls = tls(&settings, &profiles);
        if !tls.verify {
            log::warn!(
                "bucket {name}: any certificate is accepted, so that everybody on the way can read and change the \
                 data; to trust a certificate of your own set AWS_CA_BUNDLE or ca_file and leave verify_tls alone"
            );
        }
        let http = shared.http(&tls, &settings)?;
        let services = shared.services(&tls)?;
        let url = settings.endpoint_url.as_deref().or_else(|| profiles.endpoint("s3"));
        let url = url.map(|url| url.trim_end_matches('/').to_owned());
        let is_amazon = url.as_deref().is_none_or(is_amazon);
        let region = settings.region.as_deref().or_else(|| profiles.region()).map(str::to_owned);
        let region = match region {
            // Not a region, but it counts as one.
            Some(region) if region == "aws-global" => FALLBACK.to_owned(),
            Some(region) => region,
            // The region of an instance says nothing about another store.
            None if is_amazon => {
                let of_instance = services.region_of_instance(&profiles).await;
                of_instance.unwrap_or_else(|| FALLBACK.to_owned())
            }
            None => FALLBACK.to_owned(),
        };
        let path_style =
            settings.path_style.unwrap_or_else(|| match profiles.s3("addressing_style") {
                Some("path") => true,
                Some("virtual") => false,
                _ => !is_amazon,
            });
        let flag = |key| profiles.get(key).is_some_and(|value| value.eq_ignore_ascii_case("true"));
        let rules = Rules {
            path_style,
            url,
            use_fips: settings.use_fips.unwrap_or_else(|| flag("use_fips_endpoint")),
            use_dualstack: settings.use_dualstack.unwrap_or_else(|| flag("use_dualstack_endpoint")),
        };
        let checksums = settings.checksums.unwrap_or_else(|| {
            let when = profiles.get("request_checksum_calculation").unwrap_or_default();
            !when.eq_ignore_ascii_case("when_required")
        });
        let chain = Chain::new(&settings, &region, services);
        let bucket = Self {
            capabilities: shared.capabilities(rules.url.as_deref(), &name),
            credentials: (!settings.anonymous).then(|| Cache::new(chain)),
            pace: Pace::new(settings.adaptive_retries),
            located: Located::new(&region),
            endpoint: ArcSwapOption::empty(),
            clock: Clock::default(),
            name,
            settings,
            http,
            checksums,
            rules,
        };
        let url = bucket.resolve_endpoint();
        let url = url.map_or_else(|error| error.to_string(), |endpoint| endpoint.base.to_string());
        log::debug!("bucket {}: {url} in {region}", bucket.name);
        Ok(bucket)
    }

    /// Returns whether both are buckets of one store, which can copy from one to the other.
    pub(crate) fn is_of_store_of(&self, other: &Self) -> bool {
        self.rules.url == other.rules.url
    }

    /// Returns where requests for the bucket's objects go.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if the settings and the bucket's name contradict each other.
    pub(crate) fn resolve_endpoint(&self) -> Result<Arc<Endpoint>> {
        let region = self.located.region();
        if let Some(endpoint) = &*self.endpoint.load()
            && Arc::ptr_eq(&endpoint.region, &region)
        {
            return Ok(Arc::clone(endpoint));
        }
        let endpoint = self.rules.endpoint(&self.name, &region).map_err(|error| {
            Error::invalid_argument(format_args!(
                "bucket {}: it has no URL: {error}; look at its name, endpoint_url, addressing_style and region",
                self.name
            ))
        })?;
        let endpoint = Arc::new(endpoint);
        self.endpoint.store(Some(Arc::clone(&endpoint)));
        Ok(endpoint)
    }

    /// Returns the store's time.
    pub(crate) fn now(&self) -> SystemTime {
        self.clock.now()
    }

    /// Returns the credentials to sign with; `None`: requests are not signed.
    ///
    /// # Errors
    /// [`S3Error::NoCredentials`] with the sources that were tried.
    pub(crate) async fn credentials(&self) -> Result<Option<Credentials>, S3Error> {
        let Some(cache) = &self.credentials else { return Ok(None) };
        cache.get().await.map(Some).map_err(S3Error::NoCredentials)
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
        let code = xml::error_field(body, "Code").filter(|_| (400..=499).contains(&status));
        // The date of a response from a cache is of an earlier time.
        let there = || header("date").filter(|_| header("age").is_none()).and_then(date);
        let may_renew = |blame| self.credentials.as_ref().is_some_and(|cache| cache.expire(blame));
        match code.as_deref() {
            Some("RequestTimeTooSkewed") => there().is_some_and(|there| self.clock.set(there)),
            Some(code) => blames_credentials(code).is_some_and(may_renew),
            // To a HEAD a store only tells its time. It responds with 400 if a session has expired, with 403 if a key
            // does not exist any more, and with 401 if it is not Amazon's.
            None if body.is_empty() => match status {
                403 if there().is_some_and(|there| self.clock.is_far_from(there)) => {
                    there().is_some_and(|there| self.clock.set(there))
                }
                401 | 403 => may_renew(Blame::Possible),
                400 => may_renew(Blame::PossibleForSessions),
                _ => false,
            },
            None => false,
        }
    }
}

/// Returns whether a URL is one of Amazon's.
pub(crate) fn is_amazon(url: &str) -> bool {
    let uri: Option<http::Uri> = url.parse().ok();
    uri.as_ref()
        .and_then(http::Uri::host)
        .is_some_and(|host| host.ends_with(".amazonaws.com") || host.ends_with(".amazonaws.com.cn"))
}

impl ObjectStore for Bucket {
    type Error = S3Error;
    type Body = Body;

    const LIST: &'static str = "ListObjectsV2";
    const PERMISSION_TO_LIST: &'static str = "s3:ListBucket";
    const PERMISSION_TO_READ: &'static str = "s3:GetObject";
    const SUPPORTS_START_AFTER: bool = true;
    const STABLE_PAGE_TOKENS: bool = true;
    // The engine's HTTP client ends them.
    const HAS_TIMEOUTS: bool = true;

    fn settings(&self) -> &Settings {
        &self.settings.engine
    }

    fn endpoint(&self) -> String {
        self.resolve_endpoint().map(|endpoint| endpoint.base.to_string()).unwrap_or_default()
    }

    /// Returns what tells the bucket from those of the same name elsewhere. A partition of Amazon's has one bucket of
    /// each name, and its region may be unknown before the first request.
    fn cache_scope(&self) -> Option<String> {
        Some(self.rules.url.clone().unwrap_or_else(|| {
            let region = self.located.region();
            let parts = ["cn-", "us-gov-", "us-iso", "eusc-"];
            let partition = parts.into_iter().find(|part| region.starts_with(part));
            format!("amazon {}", partition.unwrap_or_default())
        }))
    }

    async fn get(&self, options: GetOptions<'_>) -> Result<(GetHead, Body), S3Error> {
        get::get(self, options).await
    }

    async fn list(&self, options: &ListOptions, token: Option<&str>) -> Result<Page, S3Error> {
        list::objects(self, options, token).await
    }

    async fn head(&self, name: &Name) -> Result<ObjectMeta, S3Error> {
        object::head(self, name).await
    }

    async fn put_marker(&self, marker: &Name) -> Result<(), S3Error> {
        object::put_marker(self, marker).await
    }

    async fn delete(&self, name: &Name) -> Result<(), S3Error> {
        let call = Call::object("DeleteObject", http::Method::DELETE, &name.key);
        self.send(call).await.map(drop)
    }

    fn delete_many_limit(&self) -> usize {
        1000
    }

    fn can_batch_delete(&self, key: &str) -> bool {
        delete::fits_xml(key)
    }

    async fn delete_many(
        &self,
        directory: &Name,
        keys: &[String],
    ) -> Result<Vec<(String, S3Error)>, S3Error> {
        delete::delete_many(self, directory, keys).await
    }

    async fn copy(
        from: &Arc<Self>,
        to: &Arc<Self>,
        options: CopyOptions<'_>,
    ) -> Result<Option<ObjectMeta>, S3Error> {
        copy::copy(from, to, options).await
    }

    /// Returns whether the ETags and sizes are equal. A copy of an object that was made from parts has another ETag, so
    /// nothing tells it from a file of the same length.
    fn is_copy(source: &ObjectMeta, destination: &ObjectMeta) -> bool {
        match (&source.etag, &destination.etag) {
            (Some(source_tag), Some(tag)) => {
                same_etag(source_tag, tag)
                    && source.size.is_some()
                    && source.size == destination.size
            }
            _ => false,
        }
    }

    fn write_limits(&self) -> Option<WriteLimits> {
        Some(write::limits())
    }

    async fn stored(&self, name: &Name) -> Result<(StoredObject, Attributes), S3Error> {
        Target::plain(self, name).find().await
    }

    async fn is_ours(
        &self,
        _: &Name,
        sent: Payload<'_>,
        found: &StoredObject,
    ) -> Result<Option<bool>, S3Error> {
        Ok(write::is_ours(sent, found))
    }

    async fn create_multipart(
        &self,
        to: tf_fs_object_store::PutOptions<'_>,
    ) -> Result<String, S3Error> {
        multipart::create(&Target::of(self, to)).await
    }

    async fn put_part(
        &self,
        upload: Multipart<'_>,
        number: u32,
        content: &Content,
    ) -> Result<Part, S3Error> {
        multipart::put_part(self, upload, number, content).await
    }

    async fn copy_part(
        &self,
        upload: Multipart<'_>,
        number: u32,
        source: &StoredObject,
        range: Range,
    ) -> Result<Part, S3Error> {
        multipart::copy_part(self, upload, number, source, range).await
    }

    async fn abort_multipart(&self, upload: Multipart<'_>) -> Result<(), S3Error> {
        multipart::abort(self, upload.name, upload.id).await
    }

    // Stores differ in the conditions that they take.
    fn commit_strategy<'a>(
        &'a self,
        to: tf_fs_object_store::PutOptions<'a>,
        sent: Payload<'a>,
    ) -> impl CommitStrategy<Error = S3Error> + 'a {
        Publishing::new(Target::of(self, to), to.mode, sent)
    }
}

#[cfg(test)]
mod tests;

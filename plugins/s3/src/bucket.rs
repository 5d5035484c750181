//! A bucket: where it is and how its requests are signed.

use crate::capabilities::{Capabilities, Condition, Support};
use crate::clock::{Clock, told};
use crate::credential::{Blame, Cache, Chain};
use crate::endpoint::{Endpoint, Rules, is_amazon};
use crate::error::{S3Error, blames_credentials};
use crate::pace::Pace;
use crate::profile::Profiles;
use crate::region::{FALLBACK, Located, REGION_HEADER, asked_for};
use crate::settings::BucketSettings;
use crate::shared::{Shared, tls};
use arc_swap::ArcSwapOption;
use aws_credential_types::Credentials;
use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;
use tf_fs_object_store::http::{Http, xml};
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
        let there = || told(&header);
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

    /// Returns what is known of a kind of condition: what the settings say, else what the store has shown.
    pub(crate) fn support(&self, condition: Condition) -> Support {
        self.decided(condition).unwrap_or_else(|| self.capabilities.support(condition))
    }

    /// Returns where to record what the store shows of a kind of condition; `None` if the settings say it.
    pub(crate) fn learns(&self, condition: Condition) -> Option<&Capabilities> {
        self.decided(condition).is_none().then_some(&*self.capabilities)
    }

    fn decided(&self, condition: Condition) -> Option<Support> {
        let settings = &self.settings;
        let form = match condition {
            Condition::PutOver | Condition::PutNew => settings.put_conditions,
            Condition::CompleteOver | Condition::CompleteNew => settings.complete_conditions,
            Condition::CopyOf => settings.copy_conditions,
        };
        form.map(Support::from)
    }

    /// Returns what tells the bucket from those of the same name elsewhere. A partition of Amazon's has one bucket of
    /// each name, and its region may be unknown before the first request.
    pub(crate) fn scope(&self) -> String {
        self.rules.url.clone().unwrap_or_else(|| {
            let region = self.located.region();
            let parts = ["cn-", "us-gov-", "us-iso", "eusc-"];
            let partition = parts.into_iter().find(|part| region.starts_with(part));
            format!("amazon {}", partition.unwrap_or_default())
        })
    }
}

#[cfg(test)]
mod tests;

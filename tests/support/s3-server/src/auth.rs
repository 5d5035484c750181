//! Access control: keys, session tokens, regions, public buckets, names of hosts.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use s3s::access::{S3Access, S3AccessContext};
use s3s::auth::{S3Auth, SecretKey};
use s3s::host::{S3Host, VirtualHost};
use s3s::path::S3Path;
use s3s::validation::{AwsNameValidation, NameValidation};
use s3s::{S3Error, S3ErrorCode, S3Result, s3_error};

use crate::store::Store;

/// A pair of keys that the server accepts, or no longer accepts.
#[derive(Clone, Debug)]
pub struct Credentials {
    /// Access key identifier.
    pub access_key: String,
    /// Secret access key.
    pub secret_key: String,
    /// If set, every request must carry this `x-amz-security-token`.
    pub session_token: Option<String>,
    /// Requests with this key are refused with `ExpiredToken`.
    pub expired: bool,
}

impl Credentials {
    /// Creates long-lived keys.
    pub fn new(access_key: impl Into<String>, secret_key: impl Into<String>) -> Credentials {
        let (access_key, secret_key) = (access_key.into(), secret_key.into());
        Credentials { access_key, secret_key, session_token: None, expired: false }
    }

    /// Makes them keys of a session, which are valid only with `token`.
    #[must_use]
    pub fn session_token(mut self, token: impl Into<String>) -> Credentials {
        self.session_token = Some(token.into());
        self
    }

    /// Makes them expired keys.
    #[must_use]
    pub fn expired(mut self) -> Credentials {
        self.expired = true;
        self
    }
}

/// The keys of the server, by access key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keys(Arc<Mutex<BTreeMap<String, Credentials>>>);

impl Keys {
    pub(crate) fn set(&self, all: impl IntoIterator<Item = Credentials>) {
        let all = all.into_iter().map(|one| (one.access_key.clone(), one)).collect();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = all;
    }

    fn get(&self, access_key: &str) -> Option<Credentials> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(access_key).cloned()
    }
}

#[async_trait::async_trait]
impl S3Auth for Keys {
    async fn get_secret_key(&self, access_key: &str) -> S3Result<SecretKey> {
        match self.get(access_key) {
            None => Err(s3_error!(
                InvalidAccessKeyId,
                "The AWS Access Key Id you provided does not exist in our records."
            )),
            Some(keys) if keys.expired => {
                Err(s3_error!(ExpiredToken, "The provided token has expired."))
            }
            Some(keys) => Ok(SecretKey::from(keys.secret_key)),
        }
    }
}

/// Decides what a signed or unsigned request may do.
pub(crate) struct Access {
    pub(crate) keys: Keys,
    pub(crate) store: Arc<Store>,
}

/// Returns the region in the scope of a SigV4 signature.
fn signed_region(cx: &S3AccessContext<'_>) -> Option<String> {
    let header =
        cx.headers().get(http::header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let scope = match header {
        Some(header) => header.split_once("Credential=")?.1.split(',').next()?.to_owned(),
        None => {
            let query = cx.uri().query()?;
            let scope = query.split('&').find_map(|pair| pair.strip_prefix("X-Amz-Credential="))?;
            percent_encoding::percent_decode_str(scope).decode_utf8_lossy().into_owned()
        }
    };
    scope.rsplit('/').nth(2).map(str::to_owned)
}

#[async_trait::async_trait]
impl S3Access for Access {
    async fn check(&self, cx: &mut S3AccessContext<'_>) -> S3Result<()> {
        let bucket = match cx.s3_path() {
            S3Path::Root => None,
            S3Path::Bucket { bucket } | S3Path::Object { bucket, .. } => Some(bucket.clone()),
        };
        let known = bucket.as_ref().and_then(|bucket| {
            self.store.bucket(bucket, |bucket| Ok((bucket.public, bucket.region.clone()))).ok()
        });
        let Some(credentials) = cx.credentials() else {
            // A public bucket may be read, and listed, by anyone.
            let reads = *cx.method() == http::Method::GET || *cx.method() == http::Method::HEAD;
            return match known {
                Some((true, _)) if reads => Ok(()),
                _ => Err(s3_error!(AccessDenied, "Access Denied")),
            };
        };
        let wanted = self.keys.get(&credentials.access_key).and_then(|keys| keys.session_token);
        let token = cx.headers().get("x-amz-security-token").and_then(|value| value.to_str().ok());
        if wanted.as_deref() != token {
            return Err(s3_error!(
                InvalidToken,
                "The provided token is malformed or otherwise invalid."
            ));
        }
        if let (Some((_, Some(region))), Some(signed)) = (known, signed_region(cx))
            && region != signed
        {
            let message = format!(
                "The authorization header is malformed; the region '{signed}' is wrong; expecting '{region}'"
            );
            let mut error =
                S3Error::with_message(S3ErrorCode::AuthorizationHeaderMalformed, message);
            let mut headers = http::HeaderMap::new();
            if let Ok(region) = region.parse() {
                headers.insert("x-amz-bucket-region", region);
            }
            error.set_headers(headers);
            return Err(error);
        }
        Ok(())
    }
}

/// `{bucket}.localhost` and `{bucket}.s3.localhost` name a bucket, any other host does not.
pub(crate) struct Hosts;

/// Returns the bucket in a `Host` header.
pub(crate) fn bucket_of(host: &str) -> Option<&str> {
    let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
    let bucket = host.strip_suffix(".localhost")?;
    let bucket = bucket.strip_suffix(".s3").unwrap_or(bucket);
    (bucket != "s3").then_some(bucket)
}

/// The names of buckets: Amazon's, also after a tenant of Ceph and a `:`.
pub(crate) struct Names;

impl NameValidation for Names {
    fn validate_bucket_name(&self, name: &str) -> bool {
        let name = name.split_once(':').map_or(name, |(_, name)| name);
        AwsNameValidation::new().validate_bucket_name(name)
    }
}

impl S3Host for Hosts {
    fn parse_host_header<'a>(&'a self, host: &'a str) -> S3Result<VirtualHost<'a>> {
        Ok(match bucket_of(host) {
            Some(bucket) => VirtualHost::new(host).with_bucket(bucket),
            None => VirtualHost::new(host),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::bucket_of;

    #[test]
    fn buckets_in_hosts() {
        assert_eq!(bucket_of("b.localhost:9000"), Some("b"));
        assert_eq!(bucket_of("my.dotted.bucket.s3.localhost"), Some("my.dotted.bucket"));
        assert_eq!(bucket_of("localhost:80"), None);
        assert_eq!(bucket_of("s3.localhost"), None);
        assert_eq!(bucket_of("127.0.0.1:80"), None);
    }
}

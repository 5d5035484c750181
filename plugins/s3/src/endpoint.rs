//! Where requests for a bucket go: the bucket in the host or in the path of the URL, Amazon's endpoints, access points.
//!
//! <https://docs.aws.amazon.com/general/latest/gr/s3.html>

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::net::Ipv4Addr;
use std::sync::Arc;
use tf_fs_object_store::http::{Uri, names_server};

/// All but S3's unreserved characters.
pub(crate) const ESCAPED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Where requests for a bucket's objects go.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Endpoint {
    /// Scheme, host and port, and in a path style URL the bucket; without `/` at the end.
    pub(crate) base: Arc<str>,
    /// The `Host` header.
    pub(crate) authority: String,
    pub(crate) signing_region: String,
    pub(crate) signing_name: &'static str,
    /// The region for which it was found.
    pub(crate) region: Arc<String>,
}

/// The settings that decide where a bucket is, besides its region.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    pub(crate) url: Option<String>,
    pub(crate) path_style: bool,
    pub(crate) use_fips: bool,
    pub(crate) use_dualstack: bool,
}

/// The domains of Amazon's partitions, by the beginnings of their regions.
const PARTITIONS: [(&str, &str, &str); 8] = [
    ("cn-", "aws-cn", "amazonaws.com.cn"),
    ("us-gov-", "aws-us-gov", "amazonaws.com"),
    ("us-iso-", "aws-iso", "c2s.ic.gov"),
    ("us-isob-", "aws-iso-b", "sc2s.sgov.gov"),
    ("eu-isoe-", "aws-iso-e", "cloud.adc-e.uk"),
    ("us-isof-", "aws-iso-f", "csp.hci.ic.gov"),
    ("eusc-", "aws-eusc", "amazonaws.eu"),
    ("", "aws", "amazonaws.com"),
];

/// The service behind access points of Outposts.
const OUTPOSTS: &str = "s3-outposts";

/// Returns the part of the host for the outpost, if a bucket is the alias of an access point there.
fn outpost_of_alias(bucket: &str) -> Option<String> {
    let name = bucket.strip_suffix("--op-s3").filter(|name| name.is_ascii())?;
    let (_, tail) = name.split_at_checked(name.len().checked_sub(43)?)?;
    match tail.split_at(1) {
        ("o", rest) => Some(format!("op-{}", &rest[..17])),
        ("e", _) => Some("ec2".to_owned()),
        _ => None,
    }
}

fn partition(region: &str) -> (&'static str, &'static str) {
    let partition = PARTITIONS.iter().find(|(start, ..)| region.starts_with(start));
    partition.map_or(("aws", "amazonaws.com"), |(_, name, suffix)| (name, suffix))
}

/// Returns the domain of Amazon's endpoints in a region.
pub(crate) fn suffix(region: &str) -> &'static str {
    partition(region).1
}

impl Rules {
    /// Returns where requests for a bucket go; without a name those for the list of buckets.
    ///
    /// # Errors
    /// What the settings and the name contradict each other in.
    pub(crate) fn endpoint(&self, bucket: &str, region: &Arc<String>) -> Result<Endpoint, String> {
        let custom = self.url.as_deref().map(Custom::parse).transpose()?;
        if custom.is_some() {
            ensure(!self.use_dualstack, || "use_dualstack is for Amazon's own endpoints".into())?;
            ensure(!self.use_fips, || "use_fips is for Amazon's own endpoints".into())?;
        } else {
            ensure(is_label(region), || {
                format!("the region `{region}` cannot be a part of a host")
            })?;
        }
        ensure(!(self.use_fips && partition(region).0 == "aws-cn"), || {
            "there are no FIPS endpoints in China".into()
        })?;
        let (mut signing_region, mut signing_name) = (region.to_string(), "s3");
        let base = if bucket.starts_with("arn:") {
            ensure(!self.path_style, || "an access point has no URL in path style".into())?;
            let point = AccessPoint::parse(bucket, region)?;
            signing_region = point.region.to_owned();
            let name = format!("{}-{}", point.name, point.account);
            let (name, service, variant) = match point.outpost {
                Some(outpost) => {
                    let what = "endpoints of Outposts have neither use_fips nor use_dualstack";
                    ensure(!self.use_fips && !self.use_dualstack, || what.into())?;
                    signing_name = OUTPOSTS;
                    (format!("{name}.{outpost}"), OUTPOSTS, String::new())
                }
                None => (name, "s3-accesspoint", self.variant()),
            };
            match &custom {
                Some(custom) if service == OUTPOSTS => {
                    format!("https://{name}.{}", custom.authority)
                }
                Some(custom) => custom.with_host(&name),
                None => {
                    let region = point.region;
                    format!("https://{name}.{service}{variant}.{region}.{}", suffix(region))
                }
            }
        } else if let Some(outpost) = outpost_of_alias(bucket).filter(|_| custom.is_none()) {
            signing_name = OUTPOSTS;
            format!("https://{bucket}.{outpost}.{OUTPOSTS}.{region}.{}", suffix(region))
        } else {
            let in_host = !self.path_style && fits_host(bucket, custom.as_ref());
            match &custom {
                Some(custom) if in_host && !custom.is_address() => custom.with_host(bucket),
                Some(custom) => custom.with_path(bucket),
                None => {
                    let host = format!("s3{}.{region}.{}", self.variant(), suffix(region));
                    match in_host {
                        true => format!("https://{bucket}.{host}"),
                        false => with_bucket(&format!("https://{host}"), bucket),
                    }
                }
            }
        };
        let base = base.trim_end_matches('/');
        let uri: Uri = base.parse().map_err(|error| format!("{base}: {error}"))?;
        let authority = uri.authority().filter(|_| names_server(&uri));
        let authority = authority
            .ok_or_else(|| format!("{base}: no host, or a port that is not a number"))?
            .as_str();
        let usual = if uri.scheme_str() == Some("https") { ":443" } else { ":80" };
        Ok(Endpoint {
            authority: authority.strip_suffix(usual).unwrap_or(authority).to_owned(),
            base: base.into(),
            signing_region,
            signing_name,
            region: Arc::clone(region),
        })
    }

    /// Returns what follows the service in the host.
    fn variant(&self) -> String {
        let fips = if self.use_fips { "-fips" } else { "" };
        let dualstack = if self.use_dualstack { ".dualstack" } else { "" };
        format!("{fips}{dualstack}")
    }
}

fn ensure(holds: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why()) }
}

/// An endpoint of the settings.
struct Custom<'a> {
    scheme: &'a str,
    authority: &'a str,
    /// Empty, or with `/` in front and none at the end.
    path: &'a str,
}

impl<'a> Custom<'a> {
    fn parse(url: &'a str) -> Result<Self, String> {
        let (scheme, rest) = url.split_once("://").ok_or_else(|| format!("{url}: no scheme"))?;
        let (authority, _) = rest.split_once('/').unwrap_or((rest, ""));
        Ok(Self { scheme, authority, path: rest[authority.len()..].trim_end_matches('/') })
    }

    /// Returns whether the host is an IPv4 address, which nothing can be in front of.
    fn is_address(&self) -> bool {
        let host = self.authority.split(':').next().unwrap_or_default();
        host.parse::<Ipv4Addr>().is_ok() || self.authority.starts_with('[')
    }

    fn with_host(&self, name: &str) -> String {
        format!("{}://{name}.{}{}", self.scheme, self.authority, self.path)
    }

    fn with_path(&self, bucket: &str) -> String {
        with_bucket(&format!("{}://{}{}", self.scheme, self.authority, self.path), bucket)
    }
}

fn with_bucket(base: &str, bucket: &str) -> String {
    match bucket.is_empty() {
        true => base.to_owned(),
        false => format!("{base}/{}", utf8_percent_encode(bucket, ESCAPED)),
    }
}

/// Returns whether a bucket can be in the host. A certificate is for one name in front of the host, so names with dots
/// are for `http` only.
fn fits_host(bucket: &str, custom: Option<&Custom<'_>>) -> bool {
    let may_have_dots = custom.is_some_and(|custom| custom.scheme == "http");
    let is_end = |byte: Option<&u8>| {
        byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    let is_segment = |name: &str| {
        (3..=63).contains(&name.len())
            && is_end(name.as_bytes().first())
            && is_end(name.as_bytes().last())
            && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    };
    match may_have_dots {
        true => bucket.split('.').all(is_segment),
        false => is_segment(bucket),
    }
}

/// Returns whether this can be one part of a host's name.
fn is_label(text: &str) -> bool {
    (1..=63).contains(&text.len())
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// An access point, as its ARN names it.
struct AccessPoint<'a> {
    region: &'a str,
    account: &'a str,
    name: &'a str,
    outpost: Option<&'a str>,
}

impl<'a> AccessPoint<'a> {
    fn parse(arn: &'a str, of_settings: &str) -> Result<Self, String> {
        let mut fields = arn.splitn(6, ':').skip(2);
        let mut next = || fields.next().unwrap_or_default();
        let (service, region, account, resource) = (next(), next(), next(), next());
        let parts: Vec<&str> = resource.split([':', '/']).collect();
        let (outpost, name) = match (service, &parts[..]) {
            ("s3", ["accesspoint", name]) => (None, *name),
            ("s3-outposts", ["outpost", outpost, "accesspoint", name]) => (Some(*outpost), *name),
            _ => return Err(format!("{arn} is not the ARN of an access point")),
        };
        for label in [region, account, name].into_iter().chain(outpost) {
            ensure(is_label(label), || format!("`{label}` cannot be a part of a host"))?;
        }
        // Credentials of one partition are not valid in another.
        let (own, other) = (partition(region), partition(of_settings));
        ensure(own == other, || {
            format!(
                "the access point is in the partition {}, the region {of_settings} in {}",
                own.0, other.0
            )
        })?;
        Ok(Self { region, account, name, outpost })
    }
}

/// Returns whether a URL is one of Amazon's.
pub(crate) fn is_amazon(url: &str) -> bool {
    let uri: Option<Uri> = url.parse().ok();
    uri.as_ref()
        .and_then(Uri::host)
        .is_some_and(|host| host.ends_with(".amazonaws.com") || host.ends_with(".amazonaws.com.cn"))
}

#[cfg(test)]
mod tests;

//! `s3://bucket/key`, and `s3://tenant:bucket/key` for a tenant of Ceph, with the key exactly as written.

use tf_fs_object_store::Name;
use tf_fs_plugin::prelude::*;

/// The longest key that S3 allows, in bytes.
const MAX_KEY: usize = 1024;
/// The longest bucket name, of the old kind that is still in use.
const MAX_BUCKET: usize = 255;
/// Files without a bucket: the plugin's reports on itself.
const RESERVED: [&str; 3] = ["metrics.json", "config.json", "stores.json"];

/// Creates the name of a key in a bucket.
///
/// # Errors
/// `INVALID_ARGUMENT`, with what to write instead.
pub(crate) fn new(bucket: &str, key: &str) -> Result<Name> {
    ensure!(
        !bucket.is_empty() || key.is_empty() || RESERVED.contains(&key),
        Error::invalid_argument(format_args!("s3:///{key}: no bucket; write s3://bucket/key"))
    );
    ensure!(
        key.len() <= MAX_KEY,
        Error::invalid_argument(format_args!(
            "s3://{bucket}/…: the key has {} bytes, but S3 allows {MAX_KEY}; shorten it",
            key.len()
        ))
    );
    Ok(Name::new("s3", bucket, key))
}

/// Splits a URI or a pattern into its bucket and the key after the `/`, neither of them unescaped. The text after the
/// bucket may have wildcards.
///
/// # Errors
/// `INVALID_ARGUMENT` for what cannot be a bucket of any store.
pub(crate) fn split(uri: Uri<'_>) -> Result<(&str, &str)> {
    let text = std::str::from_utf8(uri.as_bytes()).map_err(|_| {
        Error::invalid_argument(format_args!("{uri}: S3's keys are UTF-8; rename the object"))
    })?;
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    let (bucket, key) = match rest.strip_prefix("arn:") {
        Some(_) => split_arn(rest).ok_or_else(|| {
            Error::invalid_argument(format_args!(
                "{uri}: of ARNs only those of access points name a bucket; write s3://bucket/key"
            ))
        })?,
        None => rest.split_once('/').unwrap_or((rest, "")),
    };
    check_bucket(bucket)?;
    check_supported(bucket)?;
    Ok((bucket, key))
}

/// Splits an ARN after the name of the access point, which follows `accesspoint` and a `/` or `:`.
fn split_arn(rest: &str) -> Option<(&str, &str)> {
    const POINT: &str = "accesspoint";
    let point = rest.match_indices(POINT).find_map(|(at, _)| {
        let before = rest[..at].ends_with([':', '/']);
        let end = at + POINT.len();
        (before && rest[end..].starts_with([':', '/'])).then_some(end + 1)
    })?;
    let name = rest[point..].find('/').map_or(rest.len(), |slash| point + slash);
    let key = rest[name..].strip_prefix('/').unwrap_or_default();
    (name > point && !rest[..point].contains("://")).then_some((&rest[..name], key))
}

/// Refuses buckets of kinds that need more than a bucket does.
fn check_supported(bucket: &str) -> Result<()> {
    let why = if bucket.starts_with("arn:") {
        let mut fields = bucket.split(':').skip(2);
        match (fields.next(), fields.next()) {
            (Some("s3"), Some("")) => MULTI_REGION,
            (Some("s3-object-lambda"), _) => OBJECT_LAMBDA,
            _ => return Ok(()),
        }
    } else if bucket.ends_with(".mrap") {
        MULTI_REGION
    } else if bucket.ends_with("--ol-s3") {
        OBJECT_LAMBDA
    } else if bucket.ends_with("--x-s3") || bucket.ends_with("--xa-s3") {
        DIRECTORY
    } else {
        return Ok(());
    };
    Err(Error::new(Code::Unimplemented, format!("s3://{bucket}: {why}")))
}

const MULTI_REGION: &str = "multi-region access points are not supported: their requests have a signature of another kind (SigV4A); name an access point of one region, or a bucket";
const DIRECTORY: &str = "directory buckets (S3 Express One Zone) are not supported: they list only prefixes that end in `/`, so no name can be looked up; name a general purpose bucket";
const OBJECT_LAMBDA: &str = "S3 Object Lambda is not supported: a function makes the bytes of each response, and files are read in ranges; name the access point or the bucket behind it";

/// Refuses mistakes that cannot be a bucket of any store. The store judges the rest: names of old buckets break today's
/// rules.
fn check_bucket(bucket: &str) -> Result<()> {
    if bucket.starts_with("arn:") || bucket.is_empty() {
        return Ok(());
    }
    // Not shown: there may be a password in it.
    ensure!(
        !bucket.contains('@'),
        Error::invalid_argument(
            "s3://…@…: credentials do not belong into a name; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and write s3://bucket/key"
        )
    );
    let (tenant, name) = match bucket.split_once(':') {
        Some((tenant, name)) => (Some(tenant), name),
        None => (None, bucket),
    };
    ensure!(
        tenant.is_none() || !name.bytes().all(|byte| byte.is_ascii_digit()),
        Error::invalid_argument(format_args!(
            "s3://{bucket}: a name has a bucket, not a host with a port; set AWS_ENDPOINT_URL, and write s3://bucket/key, \
             or s3://tenant:bucket/key for a tenant of Ceph"
        ))
    );
    ensure!(
        !bucket.contains(['*', '?', '[']),
        Error::invalid_argument(format_args!(
            "s3://{bucket}: wildcards are not supported in a bucket's name; name the bucket and use wildcards after it"
        ))
    );
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    if let Some(odd) = tenant.unwrap_or_default().chars().chain(name.chars()).find(|&c| !fits(c)) {
        return Err(Error::invalid_argument(format_args!(
            "s3://{}: no bucket has {odd:?} in its name; write s3://bucket/key",
            bucket.escape_debug()
        )));
    }
    ensure!(
        name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.len() <= MAX_BUCKET,
        Error::invalid_argument(format_args!(
            "s3://{bucket}: a bucket's name begins with a letter or digit and has at most {MAX_BUCKET} of them; write s3://bucket/key"
        ))
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Client;
    use tf_fs_object_store::Client as _;

    #[track_caller]
    fn parsed(uri: &[u8], bucket: &str, key: &str) {
        let name = Client::parse(Uri::new(uri)).expect("a name");
        assert_eq!((&*name.bucket, &*name.key), (bucket, key));
    }

    #[track_caller]
    fn refused(uri: impl AsRef<[u8]>, text: &str) {
        let error = Client::parse(Uri::new(uri.as_ref())).expect_err("no name");
        assert_eq!(error.code(), Code::InvalidArgument);
        assert_eq!(error.message(), text);
    }

    #[test]
    fn keys_are_exact() {
        for key in [
            "k", "a/b", "/x", "//", "./x", "../x", "a//b", "d/", "..", "?a=b", "#x", "%20", "%2F",
            "+", "a b", "a\nb", "\ta", "😀", "e\u{301}", "é", "[1]*?\\", " a ", "a:b@c", " ",
            " \t",
        ] {
            parsed(format!("s3://bucket/{key}").as_bytes(), "bucket", key);
        }
        parsed("s3://b".as_bytes(), "b", "");
        parsed("s3://b/".as_bytes(), "b", "");
        parsed("s3a://b/k".as_bytes(), "b", "k");
    }

    #[test]
    fn the_store_judges_odd_buckets() {
        for bucket in ["B_UP", "192.168.1.1", "ab", &"x".repeat(64), "a.b", "my-ap-1234-s3alias"] {
            parsed(format!("s3://{bucket}/k").as_bytes(), bucket, "k");
        }
    }

    #[test]
    fn no_bucket() {
        parsed(b"s3://", "", "");
        parsed(b"s3:///", "", "");
        parsed(b"/", "", "");
        parsed(b"s3:///metrics.json", "", "metrics.json");
        parsed(b"s3:///config.json", "", "config.json");
        refused("s3:///k", "s3:///k: no bucket; write s3://bucket/key");
    }

    #[test]
    fn access_points() {
        let arn = "arn:aws:s3:us-west-2:123456789012:accesspoint/mine";
        parsed(format!("s3://{arn}/a/b").as_bytes(), arn, "a/b");
        parsed(format!("s3://{arn}").as_bytes(), arn, "");
        let arn = "arn:aws:s3-outposts:us-west-2:123456789012:outpost/op-1/accesspoint/mine";
        parsed(format!("s3://{arn}/accesspoint/x").as_bytes(), arn, "accesspoint/x");
        let text = "s3://arn:aws:s3:::bucket/key: of ARNs only those of access points name a bucket; write s3://bucket/key";
        refused("s3://arn:aws:s3:::bucket/key", text);
        for (bucket, why) in [
            (
                "arn:aws:s3::123456789012:accesspoint/mfzwi23gnjvgw.mrap",
                "multi-region access points",
            ),
            ("arn:aws-cn:s3::123456789012:accesspoint:m.mrap", "multi-region access points"),
            ("mfzwi23gnjvgw.mrap", "multi-region access points"),
            (
                "arn:aws:s3-object-lambda:us-west-2:123456789012:accesspoint/olap",
                "S3 Object Lambda",
            ),
            ("olap-1234--ol-s3", "S3 Object Lambda"),
            ("data--euw1-az1--x-s3", "directory buckets"),
            ("data--euw1-az1--xa-s3", "directory buckets"),
        ] {
            let uri = format!("s3://{bucket}/key");
            let error = split(Uri::new(uri.as_bytes())).unwrap_err();
            assert_eq!(error.code(), Code::Unimplemented, "{error}");
            assert!(error.message().contains(&format!("{why} ")), "{error}");
        }
    }

    #[test]
    fn tenants_of_ceph() {
        for bucket in ["tenant:data", "t_1:my.data", "a-b:B_UP", ":data", "minio:9000x"] {
            parsed(format!("s3://{bucket}/a:b/c").as_bytes(), bucket, "a:b/c");
            parsed(format!("s3://{bucket}").as_bytes(), bucket, "");
        }
        for bucket in ["t:", ":", "a:b:c", "t/:b", "t :b", "t:-b"] {
            let name = Client::parse(Uri::new(format!("s3://{bucket}/k").as_bytes()));
            assert!(name.is_err() || bucket.contains('/'), "{bucket}");
        }
    }

    #[test]
    fn bad_names() {
        refused(
            "s3://user:pw@b/k",
            "s3://…@…: credentials do not belong into a name; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and write s3://bucket/key",
        );
        refused(
            "s3://b:80/k",
            "s3://b:80: a name has a bucket, not a host with a port; set AWS_ENDPOINT_URL, and write s3://bucket/key, or s3://tenant:bucket/key for a tenant of Ceph",
        );
        refused(
            "s3://b*/k",
            "s3://b*: wildcards are not supported in a bucket's name; name the bucket and use wildcards after it",
        );
        refused("s3://b\n/k", "s3://b\\n: no bucket has '\\n' in its name; write s3://bucket/key");
        refused(
            "s3://../k",
            "s3://..: a bucket's name begins with a letter or digit and has at most 255 of them; write s3://bucket/key",
        );
        refused(b"s3://b/\xff", "s3://b/\\xff: S3's keys are UTF-8; rename the object");
        parsed(format!("s3://b/{}", "k".repeat(1024)).as_bytes(), "b", &"k".repeat(1024));
        refused(
            format!("s3://b/{}", "é".repeat(512) + "k"),
            "s3://b/…: the key has 1025 bytes, but S3 allows 1024; shorten it",
        );
    }

    #[test]
    fn directories_are_no_files() {
        for uri in ["s3://b", "s3://b/", "s3://b/d/", "s3://"] {
            let error = Client::file(Uri::new(uri.as_bytes())).expect_err("a directory");
            assert_eq!(error.code(), Code::FailedPrecondition);
            assert_eq!(error.message(), format!("{uri}: is a directory"));
        }
    }
}

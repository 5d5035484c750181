//! `sftp://remote/path`: a remote is the name of a section in the settings file, or a host.

use crate::scheme::{self, SCHEMES, Scheme};
use std::borrow::Cow;
use tf_fs_object_store::Name;
use tf_fs_plugin::prelude::*;

/// The key of the file without a remote that shows all settings.
pub(crate) const CONFIG: &str = "config.json";
/// The key of the file without a remote that shows what was counted.
pub(crate) const METRICS: &str = "metrics.json";

/// Bytes of the longest path: that of Linux. Servers accept URLs of 8 KiB and more, in which each byte may be three.
pub(crate) const LONGEST: usize = 4096;

/// Splits a name into scheme and remote, which the engine calls a bucket, and the key after the next `/`.
///
/// # Errors
/// `INVALID_ARGUMENT` for other schemes, and for what cannot be a remote. It does not show credentials.
pub(crate) fn split(uri: Uri<'_>) -> Result<(&str, &str)> {
    let text = std::str::from_utf8(uri.as_bytes()).map_err(|_| {
        Error::invalid_argument(format_args!("{uri}: names are UTF-8; rename the file"))
    })?;
    let known = SCHEMES.iter().find_map(|scheme| {
        let rest = text.strip_prefix(scheme.name)?.strip_prefix("://")?;
        Some((scheme.name, text.len() - rest.len(), rest))
    });
    let (scheme, start, rest) = known.ok_or_else(|| {
        let names: Vec<_> = SCHEMES.iter().map(|scheme| scheme.name).collect();
        Error::invalid_argument(format_args!(
            "the name has another scheme; write one of {}://remote/path",
            names.join("://, ")
        ))
    })?;
    let is_repository = matches!(scheme, "hf" | "github");
    let len = match is_repository {
        true => repository(scheme, rest)?,
        false => rest.find('/').unwrap_or(rest.len()),
    };
    let (remote, key) = (&rest[..len], rest[len..].strip_prefix('/').unwrap_or_default());
    if !is_repository {
        check(remote)?;
    }
    // No scheme has a list of all remotes.
    let end = if remote.is_empty() { 0 } else { start + remote.len() };
    Ok((&text[..end], key))
}

/// Returns the length of `OWNER/NAME`; on the Hub with `datasets/` or `spaces/` in front, and maybe `@REVISION` behind. A report
/// of the plugin has no repository.
///
/// # Errors
/// `INVALID_ARGUMENT` for less than that.
fn repository(scheme: &str, rest: &str) -> Result<usize> {
    if rest.is_empty() || rest.starts_with('/') {
        return Ok(0);
    }
    let is_hub = scheme == "hf";
    let has_kind = is_hub && ["datasets/", "spaces/"].iter().any(|kind| rest.starts_with(kind));
    let mut slashes = rest.match_indices('/').map(|(at, _)| at).skip(if has_kind { 1 } else { 0 });
    let (owner, end) = (slashes.next(), slashes.next().unwrap_or(rest.len()));
    let is_repository = owner.is_some_and(|owner| owner + 1 < end)
        && !rest[..end]
            .contains(|c: char| c.is_whitespace() || c.is_control() || r"*?[]\#".contains(c));
    ensure!(
        is_repository && (is_hub || !rest[..end].contains('@')),
        Error::invalid_argument(match is_hub {
            true =>
                "hf:// needs a repository; write hf://datasets/OWNER/NAME/path, or hf://OWNER/NAME/path for a model",
            false => "github:// needs a repository; write github://OWNER/NAME/path",
        })
    );
    Ok(end)
}

/// Checks the name of a remote: a host, with a port or without, or what a section can be called.
///
/// # Errors
/// `INVALID_ARGUMENT` for what would mean something else in a URL.
fn check(remote: &str) -> Result<()> {
    ensure!(
        !remote.contains('@'),
        Error::invalid_argument(
            "credentials do not belong into names, which show up in logs; put them into the settings file that \
             TF_OPENDAL_CONFIG names, or into TF_OPENDAL_URL, TF_OPENDAL_USER and TF_OPENDAL_PASSWORD"
        )
    );
    ensure!(
        !remote.contains(|c: char| c.is_whitespace() || c.is_control() || r"*?[]\#%".contains(c))
            || remote.starts_with('['),
        Error::invalid_argument(format_args!(
            "`{}` is not the name of a remote or a host; write scheme://remote/path",
            remote.escape_debug()
        ))
    );
    Ok(())
}

/// Returns the name of a section as names have it.
///
/// # Errors
/// As [`check`].
pub(crate) fn canonical(section: &str) -> Result<Cow<'_, str>> {
    check(section)?;
    Ok(section.into())
}

/// Returns the scheme and the remote of a bucket.
///
/// # Errors
/// `INTERNAL` for what is not one of [`split`].
pub(crate) fn server(bucket: &str) -> Result<(&'static Scheme, &str)> {
    let (scheme, remote) = bucket.split_once("://").unwrap_or_default();
    let scheme = scheme::find(scheme);
    Ok((scheme.ok_or_else(|| Error::internal("a bucket without a scheme"))?, remote))
}

/// Creates the name of a file or directory. Repeated slashes count as one, as servers have it.
///
/// # Errors
/// `INVALID_ARGUMENT` for a component `.` or `..`: the server would resolve it, even to what is above the remote.
pub(crate) fn new(bucket: &str, key: &str) -> Result<Name> {
    let mut clean = String::with_capacity(key.len());
    for part in key.split_inclusive('/').filter(|part| *part != "/") {
        ensure!(
            !matches!(part.trim_end_matches('/'), "." | ".."),
            Error::invalid_argument(format_args!(
                "{}: a server would resolve `.` and `..`; write the path without them",
                Name::new(SCHEMES[0].name, bucket, key)
            ))
        );
        clean.push_str(part);
    }
    ensure!(
        clean.len() <= LONGEST,
        Error::invalid_argument(format_args!(
            "{bucket}/…: the path has {} bytes, and at most {LONGEST} are sent; shorten it",
            clean.len()
        ))
    );
    Ok(Name::new(SCHEMES[0].name, bucket, &clean))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_a_remote_and_a_key() {
        for (text, bucket, key) in [
            ("webdav://nas/a/b", "webdav://nas", "a/b"),
            ("webdavs://h.example:8443/a%2Fb?c#d/", "webdavs://h.example:8443", "a%2Fb?c#d/"),
            ("webdav://[::1]:80/x", "webdav://[::1]:80", "x"),
            ("webdav://nas", "webdav://nas", ""),
            ("webdavs:///config.json", "", "config.json"),
            ("hdfs://namenode:8020/a", "hdfs://namenode:8020", "a"),
            ("hf://datasets/o/n/a/b", "hf://datasets/o/n", "a/b"),
            ("hf://o/n@v1.0/a", "hf://o/n@v1.0", "a"),
            ("hf://spaces/o/n", "hf://spaces/o/n", ""),
            ("hf:///config.json", "", "config.json"),
        ] {
            assert_eq!(split(Uri::new(text.as_bytes())).unwrap(), (bucket, key));
        }
        for Scheme { name, .. } in
            SCHEMES.iter().filter(|scheme| scheme.name != "hf" && scheme.name != "github")
        {
            let bucket = format!("{name}://h:1");
            let (scheme, remote) = server(&bucket).unwrap();
            assert_eq!((scheme.name, remote), (*name, "h:1"));
        }
    }

    #[test]
    fn a_repository_has_an_owner() {
        for text in ["hf://o", "hf://datasets/o", "hf://datasets", "hf://o//a", "hf://o/n*/a"] {
            let error = split(Uri::new(text.as_bytes())).unwrap_err();
            assert!(error.message().contains("hf://datasets/OWNER/NAME"), "{error}");
        }
    }

    #[test]
    fn no_error_shows_credentials() {
        for text in [
            "webdav://u:planted@h/x",
            "webdav://planted@h",
            "http://planted/x",
            "webdav://h?planted/x",
        ] {
            let error = split(Uri::new(text.as_bytes())).unwrap_err();
            assert_eq!(error.code(), Code::InvalidArgument);
            assert!(!error.message().contains("planted") || !text.contains('@'), "{error}");
        }
    }

    #[test]
    fn a_key_stays_below_its_remote() {
        for (key, clean) in
            [("a//b", "a/b"), ("/a", "a"), ("a/", "a/"), ("a//", "a/"), ("..a/.b", "..a/.b")]
        {
            assert_eq!(new("webdav://h", key).unwrap().key, clean);
        }
        let long = "x".repeat(LONGEST);
        assert_eq!(new("webdav://h", &long).unwrap().key, long);
        assert_eq!(
            new("webdav://h", &format!("{long}x")).unwrap_err().code(),
            Code::InvalidArgument
        );
        for key in ["..", "../x", "a/../b", "a/..", "./a", "a/./b", "a/."] {
            assert_eq!(new("webdav://h", key).unwrap_err().code(), Code::InvalidArgument, "{key}");
        }
    }
}

//! `az://account/container/blob`, and the other spellings, with the blob's name exactly as written.
//!
//! A bucket of the engine is an account and a container: `account/container`. An account alone is a bucket too, whose
//! directories are its containers. An account with another host than Azure's public one keeps that host in the name.

use std::borrow::Cow;
use tf_fs_object_store::Name;
use tf_fs_plugin::prelude::*;

/// The scheme of names in errors, whatever was written.
pub(crate) const SCHEME: &str = "az";
/// `az:///config.json`: the settings.
pub(crate) const REPORT: &str = "config.json";
/// The longest name that Azure allows, in characters.
const MAX_KEY: usize = 1024;
/// Where accounts of the public cloud are.
pub(crate) const PUBLIC: &str = ".blob.core.windows.net";
/// Where all of Azure's accounts are: credentials are sent nowhere else, unless the settings name an endpoint.
pub(crate) const HOSTS: [&str; 4] =
    [PUBLIC, ".blob.core.chinacloudapi.cn", ".blob.core.usgovcloudapi.net", ZONES];
/// Accounts in DNS zones: `account.z01.blob.storage.azure.net`.
const ZONES: &str = ".blob.storage.azure.net";

/// Creates the name of a blob in a container, whose bucket may have any spelling.
///
/// # Errors
/// `INVALID_ARGUMENT`, with what to write instead.
pub(crate) fn new(bucket: &str, key: &str) -> Result<Name> {
    let bucket = canonical(bucket)?;
    ensure!(
        key.is_empty() || bucket.contains('/') || bucket.is_empty() && key == REPORT,
        Error::invalid_argument(format_args!(
            "az://{bucket}/{key}: no container; write az://account/container/blob"
        ))
    );
    let characters = key.chars().count();
    ensure!(
        characters <= MAX_KEY,
        Error::invalid_argument(format_args!(
            "az://{bucket}/…: the blob's name has {characters} characters, but Azure allows {MAX_KEY}; shorten it"
        ))
    );
    ensure!(
        !key.contains('\\'),
        Error::invalid_argument(format_args!(
            "az://{bucket}/{}: Azure takes `\\` for `/`; write `/`, or choose another name",
            key.escape_debug()
        ))
    );
    // Readers of a URL may treat them as another path: as the container itself, or the account.
    ensure!(
        !matches!(key, "." | ".."),
        Error::invalid_argument(format_args!(
            "az://{bucket}/{key}: a blob cannot be named `{key}`; choose another name"
        ))
    );
    Ok(Name::new(SCHEME, &bucket, key))
}

/// Splits a URI into account and container, and the blob's name after them, as they are written. In a pattern, the
/// latter may have wildcards.
///
/// # Errors
/// `INVALID_ARGUMENT` for what cannot be a container of any account.
pub(crate) fn split(uri: Uri<'_>) -> Result<(&str, &str)> {
    let text = std::str::from_utf8(uri.as_bytes()).map_err(|_| {
        Error::invalid_argument(format_args!("{uri}: Azure's names are UTF-8; rename the blob"))
    })?;
    let (scheme, rest) = text.split_once("://").unwrap_or((SCHEME, text));
    if rest.strip_prefix('/') == Some(REPORT) {
        return Ok(("", REPORT));
    }
    let container = match rest.find('/') {
        Some(slash) if !scheme.starts_with("abfs") => {
            let end = rest[slash + 1..].find('/').map_or(rest.len(), |end| slash + 1 + end);
            // `az://account/` is the account.
            if end == slash + 1 { slash } else { end }
        }
        Some(slash) => slash,
        None => rest.len(),
    };
    let (bucket, key) = rest.split_at(container);
    canonical(bucket)?;
    Ok((bucket, key.strip_prefix('/').unwrap_or_default()))
}

/// Returns `account/container` for any spelling.
pub(crate) fn canonical(bucket: &str) -> Result<Cow<'_, str>> {
    let refused = |why: &str| {
        Err(Error::invalid_argument(format_args!(
            "az://{}: {why}; write az://account/container/blob",
            bucket.escape_debug()
        )))
    };
    let (account, container) = match bucket.split_once('@') {
        // `abfss://container@account.dfs.core.windows.net`.
        Some((container, account)) => {
            // The part before an `@` may have a password.
            if container.contains([':', '/']) || !account.contains('.') {
                return Err(Error::invalid_argument(
                    "az://…@…: credentials do not belong into a name; set AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN, and write az://account/container/blob",
                ));
            }
            (Cow::from(account.replacen(".dfs.", ".blob.", 1)), container)
        }
        None => {
            let (account, container) = bucket.split_once('/').unwrap_or((bucket, ""));
            (account.into(), container)
        }
    };
    if bucket.is_empty() {
        return Ok("".into());
    }
    if bucket.contains(['*', '?', '[', '\\']) {
        return refused("wildcards are not supported in the names of accounts and containers");
    }
    let account = match account.contains('.') {
        false => &*account,
        true => match HOSTS.iter().find(|host| account.ends_with(**host)) {
            Some(&PUBLIC) => {
                let name = account.strip_suffix(PUBLIC).unwrap_or_default();
                // It would be another spelling of the host that is left.
                if name.contains('.') {
                    return refused("this is not a host of Azure Blob Storage");
                }
                name
            }
            Some(_) => &*account,
            None => return refused("this is not a host of Azure Blob Storage"),
        },
    };
    let (name, host) = account.split_at(account.find('.').unwrap_or(account.len()));
    // `storage.example.com.blob.core.windows.net` is not the host of an account: only a DNS zone may precede Azure's.
    let zone = host.strip_suffix(ZONES).unwrap_or_default();
    if !host.is_empty() && !HOSTS.contains(&host) && (zone.len() < 2 || zone[1..].contains('.')) {
        return refused("this is not a host of Azure Blob Storage");
    }
    if name.is_empty() || !name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit()) {
        return refused("an account has lower-case letters and digits in its name");
    }
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '$');
    if !container.chars().all(fits) {
        return refused("a container has letters, digits and `-` in its name");
    }
    Ok(match container {
        "" => account.to_owned().into(),
        container => format!("{account}/{container}").into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Client;
    use tf_fs_object_store::Client as _;

    #[track_caller]
    fn parsed(uri: &str, bucket: &str, key: &str) {
        let name = Client::parse(Uri::new(uri.as_bytes())).expect(uri);
        assert_eq!((&*name.bucket, &*name.key), (bucket, key), "{uri}");
    }

    #[track_caller]
    fn refused(uri: &str, text: &str) {
        let error = Client::parse(Uri::new(uri.as_bytes())).expect_err(uri);
        assert_eq!((error.code(), error.message()), (Code::InvalidArgument, text));
    }

    #[test]
    fn names_are_exact() {
        for key in [
            "k", "a/b", "/x", "//", "./x", "../x", "a/../b", "a//b", "d/", "?a=b", "#x", "%41",
            "%2F", "+", "a b", "a\nb", "😀", "e\u{301}", "é", "[1]*?", " a ", "a:b@c", "...",
        ] {
            for bucket in ["az://acc/con", "az://acc.blob.core.windows.net/con"] {
                parsed(&format!("{bucket}/{key}"), "acc/con", key);
            }
            for scheme in ["abfs", "abfss"] {
                parsed(&format!("{scheme}://con@acc.dfs.core.windows.net/{key}"), "acc/con", key);
            }
        }
    }

    #[test]
    fn containers_and_accounts_are_directories() {
        for uri in ["az://acc/con", "az://acc/con/", "abfss://con@acc.dfs.core.windows.net/"] {
            parsed(uri, "acc/con", "");
        }
        for uri in ["az://acc", "az://acc/", "az://acc.blob.core.windows.net/"] {
            parsed(uri, "acc", "");
        }
        parsed("az://", "", "");
        parsed("az://acc/$root/k", "acc/$root", "k");
        for other in ["acc.blob.core.usgovcloudapi.net/con", "acc.z01.blob.storage.azure.net/con"] {
            parsed(&format!("az://{other}/k"), other, "k");
        }
        let other = "abfss://con@evil.com.dfs.core.windows.net/k";
        assert!(Client::parse(Uri::new(other.as_bytes())).is_err());
    }

    #[test]
    fn invalid_names_are_refused() {
        let write = "write az://account/container/blob";
        for (uri, why) in [
            ("az://evil.example.com/c/k", "this is not a host of Azure Blob Storage"),
            ("az://blob.core.windows.net.evil.com/c", "this is not a host of Azure Blob Storage"),
            // The part before Azure's host is a host too.
            ("az://evil.com.blob.core.windows.net/c", "this is not a host of Azure Blob Storage"),
            ("az://a.b.blob.core.chinacloudapi.cn/c", "this is not a host of Azure Blob Storage"),
            ("az://a.b.z1.blob.storage.azure.net/c", "this is not a host of Azure Blob Storage"),
            (
                "az://acc/c*/k",
                "wildcards are not supported in the names of accounts and containers",
            ),
            ("az://ACC/c/k", "an account has lower-case letters and digits in its name"),
            ("az://acc/c_d/k", "a container has letters, digits and `-` in its name"),
        ] {
            let bucket = uri["az://".len()..].trim_end_matches("/k");
            refused(uri, &format!("az://{bucket}: {why}; {write}"));
        }
        refused(
            "az://user:secret@acc/c/k",
            "az://…@…: credentials do not belong into a name; set AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN, and write az://account/container/blob",
        );
        refused("az://acc//k", "az://acc//k: no container; write az://account/container/blob");
        refused("az://acc/c/..", "az://acc/c/..: a blob cannot be named `..`; choose another name");
        let text = r"az://acc/c/a\\b: Azure takes `\` for `/`; write `/`, or choose another name";
        refused(r"az://acc/c/a\b", text);
        let long = "é".repeat(1024);
        parsed(&format!("az://acc/c/{long}"), "acc/c", &long);
        refused(
            &format!("az://acc/c/{long}e"),
            "az://acc/c/…: the blob's name has 1025 characters, but Azure allows 1024; shorten it",
        );
    }
}

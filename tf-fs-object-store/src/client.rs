//! The trait of an account, which the author of a store implements.

use crate::{BucketPage, Name, ObjectStore, Settings, StoreError};
use std::fmt::Debug;
use std::future::Future;
use std::sync::Arc;
use tf_fs_plugin::prelude::*;

/// An account of a store, which opens its buckets.
///
/// A plugin has one for each process and settings. The engine creates it again in a forked child.
pub trait Client: Debug + Send + Sync + Sized + 'static {
    /// A bucket of the store.
    type Store: ObjectStore;

    /// The schemes of the names, without `://`. The first one is that of errors about no bucket.
    ///
    /// With one scheme, a bucket is the text between `://` and the next `/`. Aliases, such as `s3a` for `s3`, are left out:
    /// they name the same buckets. With several schemes a bucket begins with its scheme, as in `webdav://host`, so that
    /// [`open`](Self::open) knows it, and buckets of two schemes are never one.
    const SCHEMES: &'static [&'static str];

    /// Returns the first of [`SCHEMES`](Self::SCHEMES).
    fn scheme() -> &'static str {
        Self::SCHEMES.first().copied().unwrap_or_default()
    }

    /// Returns how many bytes the longest key of this bucket has: 1,024 in most stores.
    fn max_key_len(_bucket: &str) -> usize {
        1024
    }

    /// Returns the engine's settings for requests that are not for a bucket.
    fn settings(&self) -> Settings {
        Settings::default()
    }

    /// Returns whether [`list_buckets`](Self::list_buckets) ends by itself when it makes no progress, as
    /// [`ObjectStore::has_timeouts`] does for requests to a bucket.
    fn has_timeouts(&self) -> bool {
        false
    }

    /// Finds out how to reach the bucket of this name. The engine keeps the result. It makes no request to the bucket:
    /// the first operation finds out whether it exists.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if the settings are wrong.
    fn open(&self, bucket: &Arc<str>) -> impl Future<Output = Result<Self::Store>> + Send;

    /// Lists a page of the account's buckets, from `token` on: [`BucketPage::next`] of an earlier page.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the store has no such list, which is the default.
    fn list_buckets(
        &self,
        _token: Option<&str>,
    ) -> impl Future<Output = Result<BucketPage, <Self::Store as ObjectStore>::Error>> + Send {
        async { Err(StoreError::unsupported("list of buckets")) }
    }

    /// Splits a URI or a pattern into its bucket and the key after the `/`, neither of them unescaped. The text after
    /// the bucket may have wildcards.
    ///
    /// By default a bucket is the text between `://` and the next `/`, with its scheme if there are
    /// [several](Self::SCHEMES).
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for what cannot be a bucket of any store, and for names that are not UTF-8.
    fn split(uri: Uri<'_>) -> Result<(&str, &str)> {
        let text = std::str::from_utf8(uri.as_bytes()).map_err(|_| {
            Error::invalid_argument(format_args!("{uri}: keys are UTF-8; rename the object"))
        })?;
        let (scheme, rest) = text.split_once("://").unwrap_or((Self::scheme(), text));
        let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
        ensure!(
            !bucket.contains(['*', '?', '[', '@']),
            Error::invalid_argument(format_args!(
                "{scheme}://: neither wildcards nor credentials belong into the first part of a name; write \
                 {scheme}://bucket/key"
            ))
        );
        let has_scheme = Self::SCHEMES.len() > 1 && !bucket.is_empty();
        let end = text.len() - rest.len() + bucket.len();
        Ok((if has_scheme { &text[..end] } else { bucket }, key))
    }

    /// Creates a name from a bucket and a key. A bucket itself has an empty key; the list of buckets has neither.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a key that no object can have: by default one without a bucket, and one of more than
    /// [`max_key_len`](Self::max_key_len) bytes.
    fn name(bucket: &str, key: &str) -> Result<Name> {
        ensure!(
            !bucket.is_empty() || key.is_empty(),
            Error::invalid_argument(format_args!(
                "{0}:///{key}: no bucket; write {0}://bucket/key",
                Self::scheme()
            ))
        );
        let longest = Self::max_key_len(bucket);
        ensure!(
            key.len() <= longest,
            Error::invalid_argument(format_args!(
                "{}…: the key has {} bytes, but the store allows {longest}; shorten it",
                Name::new(Self::scheme(), bucket, ""),
                key.len()
            ))
        );
        Ok(Name::new(Self::scheme(), bucket, key))
    }

    /// Returns what `uri` names: an object, a directory, a bucket, or the list of buckets.
    ///
    /// # Errors
    /// As [`split`](Self::split) and [`name`](Self::name).
    fn parse(uri: Uri<'_>) -> Result<Name> {
        let (bucket, key) = Self::split(uri)?;
        Self::name(bucket, key)
    }

    /// Returns what `uri` names, if that can be a file.
    ///
    /// # Errors
    /// As [`parse`](Self::parse); `FAILED_PRECONDITION` for a bucket or a name that ends in `/`.
    fn file(uri: Uri<'_>) -> Result<Name> {
        let name = Self::parse(uri)?;
        if name.is_always_directory() {
            return Err(Error::expected_file(uri));
        }
        Ok(name)
    }
}

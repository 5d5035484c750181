//! Pages of `ListObjectsV2`.

use crate::connection::Bucket;
use crate::failure::failure;
use aws_sdk_s3::error::SdkError;
use aws_sdk_s3::operation::list_objects_v2::ListObjectsV2Error;
use aws_sdk_s3::types::{EncodingType, RequestPayer};
use futures_util::stream::{self, Stream};
use percent_encoding::percent_decode;
use std::borrow::Cow;
use std::cell::Cell;
use std::sync::Arc;
use std::time::SystemTime;
use tf_fs_object_store::{Known, Name, Object, Page, Query};
use tf_fs_plugin::prelude::*;

/// Why there is no page.
#[derive(Debug)]
pub(super) enum NoPage {
    Failed(Box<SdkError<ListObjectsV2Error>>),
    /// XML that ends too early has fewer names in it, and is XML all the same to the SDK.
    CutOff,
}

impl NoPage {
    #[cold]
    pub(super) fn of(self, name: &Name) -> Error {
        match self {
            Self::Failed(error) => failure("ListObjectsV2", name, *error),
            Self::CutOff => Error::data_loss(format_args!(
                "{name}: ListObjectsV2: the store's answer is cut off; try again, and ask whoever runs the store"
            )),
        }
    }
}

/// Who pays for a request.
pub(super) fn payer(bucket: &Bucket) -> Option<RequestPayer> {
    bucket.settings.requester_pays.then_some(RequestPayer::Requester)
}

/// One page, as the store answers.
pub(super) async fn page(
    bucket: &Bucket,
    query: &Query,
    token: Option<&str>,
) -> Result<Page, NoPage> {
    let output = bucket
        .client
        .list_objects_v2()
        .bucket(&*bucket.name)
        .set_prefix((!query.prefix.is_empty()).then(|| query.prefix.clone()))
        .set_delimiter(query.by_directory.then(|| "/".into()))
        // XML cannot hold every character that a key can.
        .encoding_type(EncodingType::Url)
        .set_start_after(query.after.clone().filter(|_| token.is_none()))
        .set_continuation_token(token.map(str::to_owned))
        .set_max_keys(query.max_keys)
        .set_request_payer(payer(bucket))
        .send()
        .await
        .map_err(|error| NoPage::Failed(error.into()))?;
    let Some(is_truncated) = output.is_truncated() else { return Err(NoPage::CutOff) };
    let names = output.contents().len() + output.common_prefixes().len();
    if output.key_count().is_some_and(|count| usize::try_from(count) != Ok(names)) {
        return Err(NoPage::CutOff);
    }
    let is_encoded = output.encoding_type() == Some(&EncodingType::Url);
    let text = |text: String| if is_encoded { decode(&text) } else { text };
    let mut page = Page { is_truncated, next: output.next_continuation_token, ..Page::default() };
    for object in output.contents.unwrap_or_default() {
        let Some(key) = object.key.map(text).filter(|key| key.starts_with(&query.prefix)) else {
            continue;
        };
        let known = Known {
            size: object.size.and_then(|size| u64::try_from(size).ok()).unwrap_or(0),
            modified: object
                .last_modified
                .and_then(|time| SystemTime::try_from(time).ok())
                .unwrap_or(SystemTime::UNIX_EPOCH),
            etag: object.e_tag.unwrap_or_default(),
        };
        page.objects.push(Object { key, known });
    }
    for directory in output.common_prefixes.unwrap_or_default() {
        page.directories.extend(
            directory
                .prefix
                .map(text)
                .filter(|found| found.starts_with(&query.prefix) && found.ends_with('/')),
        );
    }
    Ok(page)
}

/// A key of an answer with `encoding-type=url`, where a blank may be a `+`.
fn decode(text: &str) -> String {
    let text: Cow<'_, str> =
        if text.contains('+') { text.replace('+', " ").into() } else { text.into() };
    percent_decode(text.as_bytes()).decode_utf8_lossy().into_owned()
}

/// The names that one operation may keep. A store may go on naming new ones for ever.
#[derive(Debug)]
pub(super) struct Allowance(Cell<usize>);

impl Allowance {
    pub(super) fn new(bucket: &Bucket) -> Self {
        Self(Cell::new(bucket.settings.engine.max_listed_names))
    }

    /// Takes `names` of it.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` if so many are not left.
    pub(super) fn take(&self, bucket: &Bucket, name: &Name, names: usize) -> Result<()> {
        let left = self.0.get().checked_sub(names).ok_or_else(|| {
            Error::resource_exhausted(format_args!(
                "{name}: the store lists more than {} names; name a smaller directory, or set max_listed_names",
                bucket.settings.engine.max_listed_names
            ))
        })?;
        self.0.set(left);
        Ok(())
    }
}

/// All pages of a listing, one after the other.
#[derive(Debug)]
pub(super) struct Pages<'a> {
    pub(super) bucket: Arc<Bucket>,
    /// For errors.
    pub(super) name: &'a Name,
    query: Query,
    token: Option<String>,
    is_done: bool,
    /// A token of before: a store that gives one again would be asked for ever. It is replaced after 1, 2, 4, 8 …
    /// pages (Brent's algorithm), so that a circle of any length is noticed without keeping all tokens.
    landmark: Option<String>,
    pages: u64,
    /// How the last page that was not empty began.
    first: Option<String>,
    empty: usize,
}

/// Pages without a key that are asked for one after the other. A store passes over deleted versions so.
const MAX_EMPTY: usize = 1000;

impl<'a> Pages<'a> {
    pub(super) fn new(bucket: &Arc<Bucket>, name: &'a Name, query: Query) -> Self {
        Self {
            bucket: Arc::clone(bucket),
            name,
            query,
            token: None,
            is_done: false,
            landmark: None,
            pages: 0,
            first: None,
            empty: 0,
        }
    }

    /// Whether there is no further page.
    pub(super) fn is_done(&self) -> bool {
        self.is_done
    }

    /// The next page, `None` after the last.
    ///
    /// # Errors
    /// As the store says; `DATA_LOSS` if its pages go round in circles.
    pub(super) async fn next(&mut self) -> Result<Option<Page>> {
        if self.is_done {
            return Ok(None);
        }
        let page = page(&self.bucket, &self.query, self.token.as_deref())
            .await
            .map_err(|error| error.of(self.name))?;
        self.is_done = !page.is_truncated;
        if page.is_truncated {
            let Some(token) = page.next.clone().filter(|token| !token.is_empty()) else {
                return Err(self.broken("says that there is more, but not how to get it"));
            };
            if self.landmark.as_ref() == Some(&token) {
                return Err(self.broken("comes round to where it was"));
            }
            self.pages += 1;
            if self.pages.is_power_of_two() {
                self.landmark = Some(token.clone());
            }
            self.token = Some(token);
        }
        match page.first() {
            Some(first) if self.first.as_deref() == Some(first) => {
                return Err(self.broken("shows the same names again"));
            }
            Some(first) => {
                self.first = Some(first.to_owned());
                self.empty = 0;
            }
            None => self.empty += 1,
        }
        if self.empty > MAX_EMPTY {
            return Err(self.broken("has nothing but empty pages"));
        }
        Ok(Some(page))
    }

    /// The next page, whose names are kept.
    ///
    /// # Errors
    /// As [`next`](Self::next) and [`Allowance::take`].
    pub(super) async fn next_kept(&mut self, allowance: &Allowance) -> Result<Option<Page>> {
        let page = self.next().await?;
        if let Some(page) = &page {
            allowance.take(&self.bucket, self.name, page.objects.len() + page.directories.len())?;
        }
        Ok(page)
    }

    /// The pages as a stream, so that something can be done with each while the next is on its way.
    pub(super) fn stream(self) -> impl Stream<Item = Result<Page>> + use<'a> {
        stream::try_unfold(self, |mut pages| async move {
            Ok(pages.next().await?.map(|page| (page, pages)))
        })
    }

    #[cold]
    fn broken(&mut self, what: &str) -> Error {
        self.is_done = true;
        Error::data_loss(format_args!(
            "{}: ListObjectsV2: the store's listing {what}; ask whoever runs the store",
            self.name
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_decoded() {
        for (encoded, key) in [
            ("a/b", "a/b"),
            ("a+b%20c%2Bd", "a b c+d"),
            ("%F0%9F%98%80%01%0A", "😀\u{1}\n"),
            ("100%", "100%"),
        ] {
            assert_eq!(decode(encoded), key);
        }
    }
}

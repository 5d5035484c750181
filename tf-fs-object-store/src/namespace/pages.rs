//! The pages of a listing, one after the other.

use crate::retry::FinalError;
use crate::{ErrorKind, ListOptions, Name, ObjectStore, Page, Settings, StoreError, request};
use futures_util::stream::{self, Stream};
use std::cell::Cell;
use tf_fs_plugin::prelude::*;

/// The number of names that one operation may keep. A store may return new ones for ever.
#[derive(Debug)]
pub(super) struct Allowance {
    left: Cell<usize>,
    all: usize,
}

impl Allowance {
    pub(super) fn new(settings: &Settings) -> Self {
        let all = settings.max_listed_names;
        Self { left: Cell::new(all), all }
    }

    /// Takes `names` from the allowance.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` if fewer are left.
    pub(super) fn take(&self, name: &Name, names: usize) -> Result<()> {
        let left = self.left.get().checked_sub(names).ok_or_else(|| {
            Error::resource_exhausted(format_args!(
                "{name}: the store lists more than {} names; name a smaller directory, or set max_listed_names",
                self.all
            ))
        })?;
        self.left.set(left);
        Ok(())
    }
}

/// All pages of a listing, one after the other.
#[derive(Debug)]
pub(super) struct Pages<'a, S> {
    bucket: &'a S,
    /// For errors.
    name: &'a Name,
    options: ListOptions,
    token: Option<String>,
    is_done: bool,
    /// An earlier token: a store that returns one again would be queried for ever. It is replaced after 1, 2, 4, 8 …
    /// pages (Brent's algorithm), so that a cycle of any length is detected without keeping all tokens.
    landmark: Option<String>,
    pages: u64,
    /// The first name of the last page that was not empty.
    first: Option<String>,
    /// Whether that page was one common prefix.
    is_prefix: bool,
    empty: usize,
    /// For the names that were not requested.
    allowance: Allowance,
}

/// Why there is no page.
pub(super) enum NoPage<F> {
    /// The request failed.
    Failed(FinalError<F>),
    /// The listing cannot be right.
    Broken(Error),
}

impl<F: StoreError> NoPage<F> {
    /// Returns whether [`ObjectStore::head`] may still find one object: users who may read objects may not always list
    /// them, and some stores cannot list.
    pub(super) fn head_may_tell(&self) -> bool {
        self.is(ErrorKind::Denied) || self.is(ErrorKind::Unsupported)
    }

    pub(super) fn is(&self, kind: ErrorKind) -> bool {
        matches!(self, Self::Failed(failure) if failure.kind() == kind)
    }

    /// Returns the error for the user.
    pub(super) fn into_error(self) -> Error {
        match self {
            Self::Failed(failure) => failure.into_error(),
            Self::Broken(error) => error,
        }
    }
}

impl<F: StoreError> From<NoPage<F>> for Error {
    fn from(none: NoPage<F>) -> Self {
        none.into_error()
    }
}

/// The most pages without a key in a row. A store returns them to skip deleted versions.
pub(super) const MAX_EMPTY: usize = 1000;

impl<'a, S: ObjectStore> Pages<'a, S> {
    pub(super) fn new(bucket: &'a S, name: &'a Name, options: ListOptions) -> Self {
        Self {
            bucket,
            name,
            options,
            token: None,
            is_done: false,
            landmark: None,
            pages: 0,
            first: None,
            is_prefix: false,
            empty: 0,
            allowance: Allowance::new(bucket.settings()),
        }
    }

    /// Returns whether there is no further page.
    pub(super) fn is_done(&self) -> bool {
        self.is_done
    }

    /// Returns the next page, `None` after the last.
    ///
    /// # Errors
    /// As the store says; `DATA_LOSS` if its pages go round in circles.
    pub(super) async fn next(&mut self) -> Result<Option<Page>> {
        self.try_next().await.map_err(|error| error.into_error())
    }

    /// Returns the next page with a name in it, `None` if there is none: a page may be empty although others follow, or
    /// have only names with another prefix.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub(super) async fn next_named(&mut self) -> Result<Option<Page>, NoPage<S::Error>> {
        while let Some(page) = self.try_next().await? {
            if page.first().is_some() {
                return Ok(Some(page));
            }
        }
        Ok(None)
    }

    async fn try_next(&mut self) -> Result<Option<Page>, NoPage<S::Error>> {
        if self.is_done {
            return Ok(None);
        }
        let page = request::list(self.bucket, self.name, &self.options, self.token.as_deref());
        let page = page.await.map_err(NoPage::Failed)?;
        self.is_done = !page.is_truncated();
        match page.next.as_deref() {
            None => {}
            Some("") => self.continue_after(&page)?,
            Some(token) if self.landmark.as_deref() == Some(token) => {
                return Err(self.broken("comes round to where it was"));
            }
            Some(token) => {
                self.pages += 1;
                if self.pages.is_power_of_two() {
                    self.landmark = Some(token.to_owned());
                }
                self.token = Some(token.to_owned());
            }
        }
        if let Some(first) = page.first() {
            let is_repeated = self.first.as_deref() == Some(first);
            // A store may end a page within a common prefix, and begin the next page with the same one.
            if is_repeated && !self.is_prefix {
                return Err(self.broken("shows the same names again"));
            }
            self.empty = if is_repeated { self.empty + 1 } else { 0 };
            self.first = Some(first.to_owned());
            self.is_prefix = page.objects.is_empty() && page.last() == Some(first);
        } else {
            self.empty += 1;
        }
        if self.empty > MAX_EMPTY {
            return Err(self.broken("has nothing but empty pages"));
        }
        self.allowance.take(self.name, page.strays).map_err(NoPage::Broken)?;
        Ok(Some(page))
    }

    /// Continues after the last name of this page: the store says that there is more, but not how to get it.
    fn continue_after(&mut self, page: &Page) -> Result<(), NoPage<S::Error>> {
        let last = page.last().filter(|_| self.bucket.supports_start_after() && page.is_in_order());
        let after = last.map(|last| match page.common_prefixes.last() {
            // The keys in a common prefix follow it.
            Some(prefix) if prefix == last => format!("{last}\u{10fffd}"),
            _ => last.to_owned(),
        });
        if after.is_none() || after <= self.options.start_after {
            return Err(self.broken("says that there is more, but not how to get it"));
        }
        self.options.start_after = after;
        self.token = None;
        Ok(())
    }

    /// Returns the next page, and takes its names from the allowance.
    ///
    /// # Errors
    /// As [`next`](Self::next) and [`Allowance::take`].
    pub(super) async fn next_kept(&mut self, allowance: &Allowance) -> Result<Option<Page>> {
        let page = self.next().await?;
        if let Some(page) = &page {
            allowance.take(self.name, page.objects.len() + page.common_prefixes.len())?;
        }
        Ok(page)
    }

    /// Returns the pages as a stream, so that each can be processed while the next is on its way.
    pub(super) fn stream(self) -> impl Stream<Item = Result<Page>> + use<'a, S> {
        stream::try_unfold(self, |mut pages| async move {
            Ok(pages.next().await?.map(|page| (page, pages)))
        })
    }

    #[cold]
    fn broken(&mut self, what: &str) -> NoPage<S::Error> {
        self.is_done = true;
        NoPage::Broken(Error::data_loss(format_args!(
            "{}: {}: the store's listing {what}; ask whoever runs the store",
            self.name,
            self.bucket.terms().list
        )))
    }
}

//! How this process reaches a store, and what it knows of it.

use crate::read::Reads;
use crate::{Client, ListingCache, Name, Process, UnpublishedWrites};
use arc_swap::ArcSwapOption;
use std::collections::{BTreeSet, HashMap};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tf_fs_plugin::prelude::*;

/// How this process reaches a store, and what it knows of it.
#[derive(Debug)]
pub struct Connection<C: Client> {
    /// Threads and memory.
    pub process: Arc<Process>,
    /// The client that opens buckets.
    pub client: C,
    /// The results of recent listings.
    pub listings: Arc<ListingCache>,
    /// The files that this process is writing.
    pub unpublished: Arc<UnpublishedWrites>,
    /// The state that open files share.
    pub(crate) reads: Arc<Reads>,
    buckets: Mutex<HashMap<Arc<str>, Arc<C::Store>>>,
}

/// A filesystem of a plugin, which has the connection of this process.
pub trait Connect: Clone + Send + Sync + 'static {
    /// The client that the connection is made with.
    type Client: Client;

    /// Returns the connection of this process with the current settings. In a forked child it is not its parent's.
    ///
    /// # Errors
    /// If the settings are wrong, or no threads can be started.
    fn connection(&self) -> Result<Arc<Connection<Self::Client>>>;
}

/// The connection of this process, which the filesystem of a plugin keeps.
#[derive(Debug)]
pub struct CurrentConnection<C: Client>(ArcSwapOption<Connection<C>>);

impl<C: Client> Default for CurrentConnection<C> {
    fn default() -> Self {
        Self(ArcSwapOption::empty())
    }
}

impl<C: Client> CurrentConnection<C> {
    /// Returns the connection of this process if its settings are current, or else makes it with what is known of the
    /// one before. `make` never gets the connection of a parent before a fork.
    ///
    /// # Errors
    /// Those of `is_up_to_date` and `make`.
    pub fn get(
        &self,
        is_up_to_date: impl Fn(&C) -> Result<bool>,
        make: impl Fn(Option<&Connection<C>>) -> Result<Connection<C>>,
    ) -> Result<Arc<Connection<C>>> {
        loop {
            let current = self.0.load_full();
            let own = current.as_ref().filter(|connection| connection.is_of_this_process());
            if let Some(connection) = own
                && is_up_to_date(&connection.client)?
            {
                return Ok(Arc::clone(connection));
            }
            let new = Arc::new(make(own.map(|connection| &**connection))?);
            let before = self.0.compare_and_swap(&current, Some(new));
            if let Some(old) = &*before
                && !old.is_of_this_process()
            {
                // Its threads were not forked with it: waiting for them would never end.
                std::mem::forget(Arc::clone(old));
            }
        }
    }

    /// Forgets what listings showed.
    pub fn flush_caches(&self) {
        if let Some(connection) = &*self.0.load()
            && connection.is_of_this_process()
        {
            connection.listings.clear();
        }
    }
}

impl<C: Client> Connection<C> {
    /// Creates the first connection of this process.
    pub fn new(process: Arc<Process>, client: C) -> Self {
        Self {
            process,
            client,
            listings: Arc::default(),
            unpublished: Arc::default(),
            reads: Arc::default(),
            buckets: Mutex::default(),
        }
    }

    /// Creates a connection with other settings, which keeps what is known, and the buckets for which `keep` is true.
    /// It keeps nothing of a connection of another process.
    pub fn renewed(
        &self,
        process: Arc<Process>,
        client: C,
        keep: impl Fn(&C, &str, &C::Store) -> bool,
    ) -> Self {
        if !self.is_of_this_process() {
            // A lock of it may be held for ever.
            return Self::new(process, client);
        }
        let mut buckets = self.lock().clone();
        let mut known: BTreeSet<Arc<str>> = buckets.keys().cloned().collect();
        buckets.retain(|name, bucket| keep(&client, name, bucket));
        // Buckets that a thread opened in an earlier connection are not among these.
        known.append(&mut self.listings.buckets());
        for name in known.iter().filter(|name| !buckets.contains_key(*name)) {
            // Cached listings may come from another store or another account.
            self.listings.invalidate_below(&Name::new(C::scheme(), name, ""));
        }
        Self {
            process,
            client,
            listings: Arc::clone(&self.listings),
            unpublished: Arc::clone(&self.unpublished),
            reads: Arc::clone(&self.reads),
            buckets: Mutex::new(buckets),
        }
    }

    /// Returns whether this process made it, rather than a parent before a fork.
    pub fn is_of_this_process(&self) -> bool {
        self.process.is_current()
    }

    /// Runs `future` on the calling TensorFlow thread.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.process.block_on(future)
    }

    /// Returns the bucket of this name. The first call finds out how to reach it.
    ///
    /// # Errors
    /// As [`Client::open`].
    pub async fn bucket(&self, name: &Arc<str>) -> Result<Arc<C::Store>> {
        if let Some(bucket) = self.lock().get(name) {
            return Ok(Arc::clone(bucket));
        }
        let new = self.client.open(name).await?;
        Ok(Arc::clone(self.lock().entry(Arc::clone(name)).or_insert_with(|| Arc::new(new))))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<C::Store>>> {
        self.buckets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

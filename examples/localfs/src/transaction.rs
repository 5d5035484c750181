//! Transactions: paths whose changes become durable together.

use crate::error::describe;
use crate::fsync::sync_path;
use crate::name::LocalPath;
use crate::root::Root;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use tf_fs_plugin::sync::{Mutex, MutexGuard};
use tf_fs_plugin::{Error, Result};

/// A group of paths. When it ends, every file and directory in it is durable, with its name, or
/// durably gone if it was deleted. It groups; it does not isolate: others see each change at once,
/// and nothing is rolled back.
#[derive(Debug)]
pub struct Transaction {
    id: u64,
    members: Mutex<BTreeMap<PathBuf, Member>>,
}

#[derive(Debug)]
struct Member {
    root: Arc<Root>,
    uri: String,
}

/// The number and the paths, for people.
impl fmt::Display for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "transaction {}:", self.id)?;
        let members = lock(&self.members);
        if members.is_empty() {
            f.write_str(" no paths")?;
        }
        for (index, member) in members.values().enumerate() {
            let separator = if index == 0 { " " } else { ", " };
            write!(f, "{separator}{}", member.uri)?;
        }
        Ok(())
    }
}

/// The transactions that have not ended, by each path in them.
#[derive(Debug, Default)]
pub(crate) struct Transactions {
    started: AtomicU64,
    by_path: Mutex<HashMap<PathBuf, Arc<Transaction>>>,
}

type ByPath<'a> = MutexGuard<'a, HashMap<PathBuf, Arc<Transaction>>>;

impl Transactions {
    pub(crate) fn start(&self) -> Arc<Transaction> {
        let id = self.started.fetch_add(1, Ordering::Relaxed) + 1;
        Arc::new(Transaction { id, members: Mutex::default() })
    }

    pub(crate) fn end(&self, transaction: &Arc<Transaction>) -> Result<()> {
        let members = {
            let mut by_path = lock(&self.by_path);
            by_path.retain(|_, other| !Arc::ptr_eq(other, transaction));
            std::mem::take(&mut *lock(&transaction.members))
        };
        // All are tried, so that one bad path does not stop the others.
        let mut result = Ok(());
        for (path, member) in members {
            let synced =
                sync_path(&member.root, &path).map_err(|error| describe(error, member.uri));
            result = result.and(synced);
        }
        result
    }

    pub(crate) fn add(
        &self,
        root: &Arc<Root>,
        place: &LocalPath<'_>,
        transaction: &Arc<Transaction>,
    ) -> Result<()> {
        Self::add_locked(&mut lock(&self.by_path), root, place, transaction)
    }

    pub(crate) fn find(&self, place: &LocalPath<'_>) -> Option<Arc<Transaction>> {
        lock(&self.by_path).get(&*place.path).cloned()
    }

    pub(crate) fn find_or_start(
        &self,
        root: &Arc<Root>,
        place: &LocalPath<'_>,
    ) -> Result<Arc<Transaction>> {
        // One lock for both steps, so that two callers get one transaction.
        let mut by_path = lock(&self.by_path);
        if let Some(found) = by_path.get(&*place.path) {
            return Ok(Arc::clone(found));
        }
        let started = self.start();
        Self::add_locked(&mut by_path, root, place, &started)?;
        Ok(started)
    }

    fn add_locked(
        by_path: &mut ByPath<'_>,
        root: &Arc<Root>,
        place: &LocalPath<'_>,
        transaction: &Arc<Transaction>,
    ) -> Result<()> {
        let path = place.path.to_path_buf();
        match by_path.get(&path) {
            Some(other) if Arc::ptr_eq(other, transaction) => return Ok(()),
            Some(other) => {
                return Err(Error::failed_precondition(format_args!(
                    "{}: is in transaction {} already; end that first",
                    place.uri, other.id
                )));
            }
            None => {}
        }
        let member = Member { root: Arc::clone(root), uri: place.uri.to_string() };
        lock(&transaction.members).insert(path.clone(), member);
        by_path.insert(path, Arc::clone(transaction));
        Ok(())
    }
}

/// Takes a lock. Its data is complete between any two statements, so a panic leaves nothing half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

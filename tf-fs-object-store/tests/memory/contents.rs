//! The objects of the store in memory, its behaviour, and the faults of its requests.

use bytes::Bytes;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Mutex;
use std::time::Duration;
use tf_fs_object_store::{ErrorKind, RequestError, Settings, StoreError};
use tf_fs_plugin::prelude::*;

/// The store's objects, its log of requests, and its behaviour.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    /// By key, with a number as the version.
    pub(crate) objects: BTreeMap<String, (Bytes, u64)>,
    pub(crate) log: Vec<String>,
    /// The faults of the next requests of a kind, such as `get`.
    pub(crate) faults: HashMap<&'static str, VecDeque<Option<Fault>>>,
    /// Listings say that there is more, and return the same token again.
    pub(crate) circles: bool,
    /// Pages without a name before each one with names.
    pub(crate) empty_pages: usize,
    /// Those pages have names that were not requested.
    pub(crate) strays: bool,
    /// Tokens count names: they go on later when names before them are gone.
    pub(crate) shifts: bool,
    /// Names are listed in the reverse order.
    pub(crate) reverse: bool,
    /// A page begins with the common prefix that the one before ended with, and ends within it, so many times.
    pub(crate) repeats: usize,
    /// Listings ignore the delimiter.
    pub(crate) flat: bool,
    /// Listings say that there is more, but not how to get it.
    pub(crate) no_tokens: bool,
    pub(crate) cannot: Vec<&'static str>,
    pub(crate) weak_etags: bool,
    /// No condition of a GET holds.
    pub(crate) refuses_conditions: bool,
    /// The most bytes of a response.
    pub(crate) most: Option<u64>,
    pub(crate) hides_sizes: bool,
    /// Names a page, instead of 3.
    pub(crate) page: Option<usize>,
    /// A directory is deleted alone, and only when it is empty.
    pub(crate) hierarchical: bool,
    pub(crate) undeletable: Option<String>,
    /// One request renames an object.
    pub(crate) renames: bool,
    /// One request tells what a name is.
    pub(crate) looks_up: bool,
    /// The range of each GET: the first byte, and the end.
    pub(crate) ranges: Vec<(u64, u64)>,
    /// Whether requests with [`Fault::Waits`] or [`Fault::WaitsDone`] go on, and how many have come to wait.
    pub(crate) gate: (bool, usize),
    /// Keys that one request deletes.
    pub(crate) delete_limit: usize,
    /// The response to such a request confirms nothing.
    pub(crate) is_quiet: bool,
    /// So many of those requests delete only their first key: for the others the store reports that it is overloaded.
    pub(crate) throttled: usize,
    /// Those of the bucket when it is first used.
    pub(crate) settings: Settings,
    /// Requests under way, and the most there were.
    pub(crate) in_flight: (usize, usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Fails(ErrorKind),
    /// It says nothing of the store, and is retried at once.
    RetryNow(ErrorKind),
    BreaksOff,
    /// It is done, and the response lost.
    Lost,
    /// It is never answered.
    Hangs,
    /// It waits for the gate, before or after it is done.
    Waits,
    WaitsDone,
    /// The store's code panics while the body arrives.
    Panics,
}

/// Logs a request, and lets it fail if it is to.
pub(super) async fn begin(
    contents: &Mutex<Contents>,
    kind: &'static str,
    what: &str,
) -> Result<Option<Fault>, RequestError> {
    let fault = {
        let mut contents = contents.lock().unwrap();
        contents.log.push(format!("{kind} {what}"));
        if contents.cannot.contains(&kind) {
            return Err(RequestError::unsupported(kind));
        }
        contents.faults.get_mut(kind).and_then(VecDeque::pop_front).flatten()
    };
    match fault {
        Some(Fault::Fails(kind)) => Err(RequestError::new(kind, "injected")),
        Some(Fault::RetryNow(kind)) => {
            Err(RequestError::new(kind, "injected").with_immediate_retry())
        }
        Some(Fault::Hangs) => std::future::pending().await,
        Some(Fault::Waits) => {
            pass(contents).await;
            Ok(None)
        }
        fault => Ok(fault),
    }
}

/// Waits until the gate is open.
pub(super) async fn pass(contents: &Mutex<Contents>) {
    contents.lock().unwrap().gate.1 += 1;
    while !contents.lock().unwrap().gate.0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

impl Contents {
    pub(super) fn etag(&self, version: u64) -> String {
        format!("{}\"{version}\"", if self.weak_etags { "W/" } else { "" })
    }
}

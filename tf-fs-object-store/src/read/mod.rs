//! Files open for reading.

mod assumption;
mod cache_writer;
mod chunk;
mod file;
mod headless;
mod prefetch_history;
#[cfg(feature = "ranges")]
mod ranges;
mod readahead;
mod segment;
mod source;
mod version;
mod whole;

use crate::disk::Disks;
use crate::{Client, Connection, Name, Range};
use chunk::ChunkPool;
use prefetch_history::PrefetchHistory;
use source::{Fetch, Source};
use std::sync::Arc;
use tf_fs_plugin::prelude::*;
use version::Trusts;

pub(crate) use file::File;
#[cfg(feature = "ranges")]
pub use ranges::Ranges;
pub(crate) use whole::Whole;

/// The state that all files open for reading share in a process.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    chunks: Arc<ChunkPool>,
    habits: PrefetchHistory,
    disks: Disks,
    trusts: Trusts,
}

/// Requests the size of an object, where only a GET tells it.
///
/// # Errors
/// `NOT_FOUND`, and those of the request.
pub(crate) async fn size<C: Client>(connection: &Connection<C>, name: &Name) -> Result<u64> {
    let store = connection.bucket(&name.bucket).await?;
    let source = Arc::new(Source::new(name.clone(), store, Arc::clone(&connection.reads)));
    let head = Fetch::new(source, Range::new(0, 1), "open").open().await?;
    head.map(|head| head.size).ok_or_else(|| Error::not_found(name))
}

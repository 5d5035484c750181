//! All bytes of an object, one after the other, without reading ahead.

use super::source::{Fetch, Source};
use super::version::Version;
use crate::{Client, Connection, Name, ObjectStore, Range, StoredObject};
use bytes::BufMut;
use std::sync::Arc;
use tf_fs_plugin::prelude::*;

/// The bytes of one version of an object.
pub(crate) struct Whole<S: ObjectStore>(Fetch<S>);

impl<S: ObjectStore> Whole<S> {
    pub(crate) fn new(
        connection: &Connection<impl Client<Store = S>>,
        store: Arc<S>,
        name: Name,
        object: &StoredObject,
    ) -> Self {
        let source = Source::new(name, store, Arc::clone(&connection.reads));
        let &StoredObject { size, ref etag, modified, .. } = object;
        let _ = source.pin(Version { size, etag: etag.clone(), modified });
        Self(Fetch::new(Arc::new(source), Range::new(0, size), "get"))
    }

    /// Adds bytes to `to` as soon as some arrive, and returns how many; 0 at the end.
    pub(crate) async fn fill(&mut self, to: &mut (impl BufMut + Send)) -> Result<usize> {
        self.0.fill(to).await
    }
}

//! The objects of a store in memory, and the faults of its requests.

use bytes::Bytes;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::{Duration, UNIX_EPOCH};
use tf_fs_object_store::{
    Attributes, ErrorKind, ObjectMeta, PutMode, PutOptions, RequestError, StoredObject, WriteLimits,
};
use tf_fs_plugin::prelude::*;

/// The store's objects and its log of requests.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    pub(crate) objects: BTreeMap<String, Object>,
    pub(crate) uploads: HashMap<String, BTreeMap<u32, Bytes>>,
    pub(crate) log: Vec<String>,
    /// The faults of the next requests of a kind.
    pub(crate) faults: VecDeque<(&'static str, Fault)>,
    /// Whether the store tells what bytes an object has.
    pub(crate) has_checksums: bool,
    /// What the store says of the bytes of each object instead.
    pub(crate) claimed: Option<String>,
    /// How the store tells versions.
    pub(crate) versions: Versions,
    pub(crate) writes: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Versions {
    #[default]
    Strong,
    Weak,
    /// By modification times only.
    Times,
}

#[derive(Clone, Debug)]
pub(crate) struct Object {
    pub(crate) bytes: Bytes,
    pub(crate) version: u64,
    pub(crate) attributes: Attributes,
    sum: String,
}

#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// It succeeds.
    Succeeds,
    /// Nothing was done.
    Fails(ErrorKind),
    /// Nothing was done, which says nothing of the store, and is retried at once.
    RetryNow(ErrorKind),
    /// It was done, and the response lost.
    Lost,
    /// It was done and the response lost, and then somebody else wrote this.
    LostAndReplaced(&'static [u8]),
    /// It was done, and then somebody else wrote this.
    Replaced(&'static [u8]),
    /// Somebody else writes this first.
    Raced(&'static [u8]),
    /// It was done, and the response says that the object has no bytes.
    Empty,
}

impl Contents {
    pub(crate) fn put(&mut self, key: &str, bytes: Bytes, attributes: Attributes) -> StoredObject {
        self.writes += 1;
        let sum = sum(&bytes);
        let object = Object { bytes, version: self.writes, attributes, sum };
        let stored = self.shown(&object);
        self.objects.insert(key.into(), object);
        stored
    }

    pub(crate) fn shown(&self, object: &Object) -> StoredObject {
        let checksum = self.claimed.clone().unwrap_or_else(|| object.sum.clone());
        let stored = StoredObject::new(object.bytes.len() as u64)
            .with_checksum(self.has_checksums.then_some(checksum));
        match self.versions {
            Versions::Strong => stored.with_etag(format!("\"{}\"", object.version)),
            Versions::Weak => stored.with_etag(format!("W/\"{}\"", object.version)),
            Versions::Times => {
                stored.with_modified(UNIX_EPOCH + Duration::from_secs(object.version))
            }
        }
    }

    pub(crate) fn meta(&self, object: &Object) -> ObjectMeta {
        let StoredObject { size, etag, modified, .. } = self.shown(object);
        let mut meta = ObjectMeta::new(size);
        (meta.etag, meta.modified) = (etag, modified);
        meta
    }

    /// Logs a request. Returns the fault that it meets after it is done, or why it is not done.
    pub(crate) fn begin(
        &mut self,
        kind: &'static str,
        key: &str,
        line: String,
    ) -> Result<Option<Fault>, RequestError> {
        self.log.push(line);
        let at = self.faults.iter().position(|(of, _)| *of == kind);
        match at.and_then(|at| self.faults.remove(at)).map(|(_, fault)| fault) {
            Some(Fault::Fails(kind)) => Err(RequestError::new(kind, "injected")),
            Some(Fault::RetryNow(kind)) => {
                Err(RequestError::new(kind, "injected").with_immediate_retry())
            }
            Some(Fault::Succeeds) => Ok(None),
            Some(Fault::Raced(theirs)) => {
                self.put(key, Bytes::from_static(theirs), Attributes::default());
                Ok(None)
            }
            fault => Ok(fault),
        }
    }

    pub(crate) fn make(
        &mut self,
        limits: &WriteLimits,
        to: PutOptions<'_>,
        bytes: Bytes,
        fault: Option<Fault>,
    ) -> Result<StoredObject, RequestError> {
        let key = &to.name.key;
        let there = self.objects.get(key).map(|object| self.shown(object).etag);
        let holds = match to.mode {
            PutMode::Overwrite => true,
            PutMode::Create => there.is_none(),
            // As a server does, for which no weak one is equal.
            PutMode::Update(stored) if self.versions == Versions::Strong => {
                there.is_some_and(|etag| etag == stored.etag)
            }
            PutMode::Update(stored) => stored.etag.is_none(),
        };
        let checks = match to.mode {
            PutMode::Create => limits.checks_create,
            PutMode::Overwrite | PutMode::Update(_) => limits.checks_update,
        };
        if checks && !holds {
            return Err(RequestError::new(ErrorKind::Precondition, "precondition"));
        }
        let stored = self.put(key, bytes, to.attributes.clone());
        match fault {
            None => return Ok(stored),
            Some(Fault::Empty) => return Ok(StoredObject::new(0).with_etag(stored.etag)),
            Some(Fault::Replaced(theirs)) => {
                self.put(key, Bytes::from_static(theirs), Attributes::default());
                return Ok(stored);
            }
            Some(Fault::LostAndReplaced(theirs)) => {
                self.put(key, Bytes::from_static(theirs), Attributes::default());
            }
            Some(_) => {}
        }
        Err(RequestError::new(ErrorKind::Transient, "no response"))
    }
}

pub(crate) fn sum(bytes: &[u8]) -> String {
    bytes.iter().map(|&byte| u64::from(byte)).sum::<u64>().to_string()
}

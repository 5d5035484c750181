//! The filesystem of the store in memory, and what a test does with it.

use super::{Contents, Fault, Memory};
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};
use tf_fs_object_store::{Connect, Connection, Name, Process, Reader};
use tf_fs_plugin::prelude::*;

#[derive(Clone)]
pub(crate) struct Plugin(pub(crate) Arc<Connection<Memory>>);

impl Connect for Plugin {
    type Client = Memory;

    fn connection(&self) -> Result<Arc<Connection<Memory>>> {
        Ok(Arc::clone(&self.0))
    }
}

/// Returns a store with these objects, each of which holds its own key.
pub(crate) fn plugin(keys: &[&str]) -> Plugin {
    let process = Process::current("mem", 2, 64 << 20).unwrap();
    let plugin = Plugin(Arc::new(Connection::new(process, Memory::default())));
    for key in keys {
        plugin.put(key, key.as_bytes().to_vec());
    }
    plugin
}

/// Reads a range.
pub(crate) fn range(reader: &Reader<Plugin>, offset: usize, len: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; len];
    let mut buf = ReadBuf::from_slice(&mut bytes);
    reader.read_at(offset as u64, &mut buf)?;
    Ok(buf.filled().to_vec())
}

pub(crate) fn name(key: &str) -> Name {
    Name::new("mem", "b", key)
}

impl Plugin {
    pub(crate) fn contents(&self) -> MutexGuard<'_, Contents> {
        self.0.client.contents()
    }

    pub(crate) fn put(&self, key: &str, bytes: Vec<u8>) {
        self.0.client.put(key, bytes);
    }

    /// Sets what happens to the next requests of a kind.
    pub(crate) fn inject(&self, kind: &'static str, faults: impl IntoIterator<Item = Fault>) {
        self.contents().faults.insert(kind, faults.into_iter().map(Some).collect());
    }

    pub(crate) fn requests(&self, kind: &str) -> Vec<String> {
        let contents = self.contents();
        contents.log.iter().filter(|line| line.starts_with(kind)).cloned().collect()
    }

    pub(crate) fn keys(&self) -> Vec<String> {
        self.0.client.keys()
    }

    pub(crate) fn read(&self, key: &str, piece: usize) -> Result<Vec<u8>> {
        let reader = Reader::open(self, name(key))?;
        let mut bytes = Vec::new();
        loop {
            let mut piece = vec![0; piece];
            let mut buf = ReadBuf::from_slice(&mut piece);
            reader.read_at(bytes.len() as u64, &mut buf)?;
            bytes.extend_from_slice(buf.filled());
            if bytes.len() as u64 == reader.size() {
                return Ok(bytes);
            }
        }
    }

    pub(crate) fn open(&self, key: &str) -> Result<Reader<Self>> {
        Reader::open(self, name(key))
    }

    /// Returns the ranges that GETs asked for since the last call.
    pub(crate) fn take_ranges(&self) -> Vec<(u64, u64)> {
        std::mem::take(&mut self.contents().ranges)
    }

    /// Waits until so many requests are at the gate.
    pub(crate) fn wait_for(&self, count: usize) {
        let began = Instant::now();
        while self.contents().gate.1 < count {
            assert!(began.elapsed() < Duration::from_secs(20), "{:?}", self.contents().log);
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    pub(crate) fn children(&self, key: &str) -> Result<Vec<String>> {
        let entries = self.0.get_children(&name(key))?;
        Ok(entries.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect())
    }

    pub(crate) fn glob(&self, pattern: &str) -> Result<Vec<String>> {
        let entries = self.0.get_matching_paths(Uri::new(pattern.as_bytes()))?;
        Ok(entries.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect())
    }
}

//! Shared code of the tests: Azurite, and files by name.

use az::{Azure, BlobFilesystem};
use azurite::{ACCOUNT, Azurite, KEY};
use std::sync::LazyLock;
use tf_fs_plugin::prelude::*;

/// One server for all tests but those of `conformance`.
pub(crate) static AZURITE: LazyLock<Azurite> = LazyLock::new(Azurite::start);

/// Settings that let failures show within milliseconds.
pub(crate) const IMPATIENT: &[(&str, &str)] = &[
    ("retry_timeout_ms", "20000"),
    ("retry_backoff_ms", "5"),
    ("connect_timeout_ms", "10000"),
    ("stall_timeout_ms", "20000"),
    ("listing_ttl_ms", "0"),
];

/// A container for one test, and the plugin with the account's key.
pub(crate) struct Store {
    pub(crate) az: BlobFilesystem,
    pub(crate) container: &'static str,
}

/// Returns the endpoint of the account behind this server or proxy.
pub(crate) fn endpoint(server: &str) -> String {
    format!("{server}/{ACCOUNT}")
}

/// Returns the plugin with these options and [`IMPATIENT`], at this server or proxy.
pub(crate) fn plugin(server: &str, options: &[(&str, &str)]) -> BlobFilesystem {
    let endpoint = endpoint(server);
    let all = [IMPATIENT, &[("blob_endpoint", &*endpoint)], options].concat();
    BlobFilesystem::new_with(Azure::with(&all).expect("the options are accepted"))
}

impl Store {
    pub(crate) fn new(container: &'static str) -> Self {
        Self::with(container, &[("account_key", KEY)])
    }

    pub(crate) fn with(container: &'static str, options: &[(&str, &str)]) -> Self {
        AZURITE.create_container(container);
        Self { az: plugin(AZURITE.endpoint(), options), container }
    }

    /// Returns the same container with another plugin.
    pub(crate) fn by(&self, az: BlobFilesystem) -> Self {
        Self { az, container: self.container }
    }

    pub(crate) fn uri(&self, key: &str) -> String {
        format!("az://{ACCOUNT}/{}/{key}", self.container)
    }

    pub(crate) fn write(&self, key: &str, content: &[u8]) -> Result<()> {
        let uri = self.uri(key);
        let mut file = self.az.new_writable_file(Uri::new(uri.as_bytes()))?;
        file.append(content)?;
        file.close()
    }

    pub(crate) fn read(&self, key: &str) -> Result<Vec<u8>> {
        read(&self.az, &self.uri(key))
    }

    pub(crate) fn children(&self, key: &str) -> Result<Vec<String>> {
        let uri = self.uri(key);
        let entries = self.az.get_children(Uri::new(uri.as_bytes()))?;
        Ok(entries.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect())
    }

    /// Returns the names of all blobs, as Microsoft's client sees them.
    pub(crate) fn keys(&self) -> Vec<String> {
        let script = format!(
            "const all = []; for await (const b of service.getContainerClient({:?}).listBlobsFlat()) all.push(b.name); return all",
            self.container
        );
        let all = AZURITE.script(&script);
        let names = all.as_array().expect("a list").iter();
        names.map(|name| name.as_str().expect("a name").to_owned()).collect()
    }

    /// Runs JavaScript with `blob`, Microsoft's client of this block blob.
    pub(crate) fn script(&self, key: &str, script: &str) -> serde_json::Value {
        AZURITE.script(&format!(
            "const blob = service.getContainerClient({:?}).getBlockBlobClient({key:?}); {script}",
            self.container
        ))
    }
}

/// Returns all bytes of a file, in one read.
pub(crate) fn read(az: &BlobFilesystem, uri: &str) -> Result<Vec<u8>> {
    let file = az.new_random_access_file(Uri::new(uri.as_bytes()))?;
    let mut bytes = vec![0; 2 << 20];
    let mut buf = ReadBuf::from_slice(&mut bytes);
    file.read_at(0, &mut buf)?;
    let len = buf.filled().len();
    bytes.truncate(len);
    Ok(bytes)
}

/// Returns bytes that differ from those at neighbouring positions.
pub(crate) fn content(len: usize) -> Vec<u8> {
    (0..len).map(|position| (position % 251) as u8).collect()
}

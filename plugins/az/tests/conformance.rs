//! `az://` on Azurite against what TensorFlow requires of a filesystem.

use az::Az;
use azurite::{ACCOUNT, Azurite, KEY};
use std::sync::LazyLock;
use tempfile::TempDir;
use tf_fs_plugin::{FilesystemOption, OptionValues, Result};
use tf_plugin_testing::filesystem::{Host, TestRoot};

/// Another container of the same account.
const OTHER: &str = "other";

/// A separate server: Azurite has one thread.
static AZURITE: LazyLock<Azurite> = LazyLock::new(|| {
    let azurite = Azurite::start();
    for name in ["plain", "cached", OTHER] {
        azurite.create_container(name);
    }
    azurite
});

/// A container in it, with the disk cache or without.
struct Container(Option<TempDir>);

impl Container {
    fn plain() -> Self {
        Self(None)
    }

    fn cached() -> Self {
        Self(Some(tempfile::tempdir().expect("a scratch directory")))
    }

    fn disk_cache(&self) -> Option<String> {
        self.0.as_ref().map(|directory| format!("{}:64MiB", directory.path().display()))
    }
}

fn settings() -> [(&'static str, &'static str, String); 3] {
    [
        ("blob_endpoint", "TF_AZ_BLOB_ENDPOINT", format!("{}/{ACCOUNT}", AZURITE.endpoint())),
        ("account_key", "AZURE_STORAGE_KEY", KEY.to_owned()),
        ("listing_ttl_ms", "TF_AZ_LISTING_TTL_MS", "0".to_owned()),
    ]
}

impl TestRoot for Container {
    fn uri(&self) -> String {
        format!("az://{ACCOUNT}/{}/", if self.0.is_some() { "cached" } else { "plain" })
    }

    fn prepare(&self, host: &Host) -> Result<()> {
        let az = host.filesystem("az")?;
        let set = |key: &str, value: String| {
            let values = OptionValues::Buffer(vec![value.into_bytes()]);
            az.set_filesystem_configuration(&[FilesystemOption::new(key, values)])
        };
        for (key, _, value) in settings() {
            set(key, value)?;
        }
        let key = format!("bucket.{ACCOUNT}/cached.disk_cache");
        self.disk_cache().map_or(Ok(()), |cache| set(&key, cache))
    }

    fn environment(&self) -> Vec<(String, String)> {
        let all = settings().map(|(_, variable, value)| (variable.to_owned(), value));
        let cache = self.disk_cache().map(|cache| ("TF_AZ_DISK_CACHE".to_owned(), cache));
        all.into_iter().chain(cache).collect()
    }
}

macro_rules! conformance_of {
    ($container:path) => {
        tf_plugin_testing::filesystem::conformance! {
            Az,
            root: once($container),
            malformed: "az://user:pw@account/container/blob",
            other_host: format!("az://{ACCOUNT}/{OTHER}/"),
            visible: flush,
            directories: implied,
            without: [
                name_with_backslash => "Azure takes a backslash for a slash",
                translate_name_cleans => "names are exact: none is cleaned",
                untidy_names => "names are exact: none is cleaned",
            ],
        }
    };
}

conformance_of!(Container::plain);

/// The same with the disk cache.
mod on_disk {
    use super::{ACCOUNT, Az, Container, OTHER};

    conformance_of!(Container::cached);
}

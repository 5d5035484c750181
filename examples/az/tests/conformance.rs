//! `az://` on Azurite against what TensorFlow requires of a filesystem.

use az::Az;
use azurite::{ACCOUNT, Azurite, KEY};
use tf_fs_plugin::{FilesystemOption, OptionValues, Result};
use tf_plugin_testing::filesystem::{Host, TestRoot};

/// Another container of the same account.
const OTHER: &str = "other";

struct Container(Azurite);

impl Container {
    fn new() -> Self {
        let azurite = Azurite::with_container("conformance");
        azurite.create_container(OTHER);
        Self(azurite)
    }

    fn settings(&self) -> [(&'static str, &'static str, String); 3] {
        [
            ("blob_endpoint", "TF_AZ_BLOB_ENDPOINT", format!("{}/{ACCOUNT}", self.0.endpoint())),
            ("account_key", "AZURE_STORAGE_KEY", KEY.to_owned()),
            ("listing_ttl_ms", "TF_AZ_LISTING_TTL_MS", "0".to_owned()),
        ]
    }
}

impl TestRoot for Container {
    fn uri(&self) -> String {
        format!("az://{ACCOUNT}/conformance/")
    }

    fn prepare(&self, host: &Host) -> Result<()> {
        for (key, _, value) in self.settings() {
            let values = OptionValues::Buffer(vec![value.into_bytes()]);
            host.filesystem("az")?
                .set_filesystem_configuration(&[FilesystemOption::new(key, values)])?;
        }
        Ok(())
    }

    fn environment(&self) -> Vec<(String, String)> {
        self.settings().map(|(_, variable, value)| (variable.to_owned(), value)).into()
    }
}

tf_plugin_testing::filesystem::conformance! {
    Az,
    root: once(Container::new),
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

//! `az://account/container/blob` for TensorFlow: Azure Blob Storage.
//!
//! `tf-fs-object-store` does what no protocol decides: threads, memory, reading ahead, parts of uploads, operations by
//! name, retries, and HTTP itself.
//!
//! | Module | Job |
//! |---|---|
//! | `name` | `az://account/container/blob` and its other spellings, exactly as written |
//! | `settings` | environment, settings file, TensorFlow's options |
//! | `account`, `credential` | where an account is, and how requests to it are authorized: key, SAS, tokens of Entra |
//! | `sign` | the signature with an account's key |
//! | `client`, `bucket`, `store` | opens containers; a container; its requests as the engine makes them |
//! | `request`, `error` | one request, and what Azure's error codes mean |
//! | `list`, `write`, `blocks` | pages of listings; block blobs and their blocks |
//! | `copy`, `delete` | copies made by the store; deletions of several blobs in a batch |

#![forbid(unsafe_code)]

mod account;
mod blocks;
mod bucket;
mod client;
mod copy;
mod credential;
mod delete;
mod error;
#[cfg(test)]
mod fuzz;
mod list;
mod name;
mod request;
mod settings;
mod sign;
mod store;
mod write;

pub use FilesystemPlugins as Az;

use client::Client;
use settings::Config;
use std::sync::Arc;
use tf_fs_object_store::{Name, ObjectFilesystem, Resources, StorePlugin};
use tf_fs_plugin::prelude::*;

/// Azure Blob Storage as the engine's plugin.
#[derive(Debug, Default)]
pub struct Azure(Arc<Config>);

/// Azure Blob Storage as TensorFlow uses it.
pub type BlobFilesystem = ObjectFilesystem<Azure>;

filesystem_plugins! {
    "az" | "abfs" | "abfss" => BlobFilesystem
}

impl Azure {
    /// Creates the plugin with these options, for tests.
    ///
    /// # Errors
    /// As [`StorePlugin::set_options`].
    #[doc(hidden)]
    pub fn with(options: &[(&str, &str)]) -> Result<Self> {
        let new = Self::default();
        for (key, value) in options {
            let values = OptionValues::Buffer(vec![value.as_bytes().to_vec()]);
            new.0.set(&[FilesystemOption::new(*key, values)])?;
        }
        Ok(new)
    }
}

impl StorePlugin for Azure {
    type Client = Client;

    fn connect(&self, before: Option<&Client>) -> Result<Client> {
        Ok(Client::new(self.0.settings()?, &self.0, before))
    }

    fn is_up_to_date(&self, client: &Client) -> Result<bool> {
        Ok(client.has(&self.0.settings()?))
    }

    fn resources(&self) -> Result<Resources> {
        let settings = self.0.settings()?;
        Ok(Resources::new(settings.threads, settings.memory_budget))
    }

    fn report(&self, _: &BlobFilesystem, name: &Name) -> Result<Option<Vec<u8>>> {
        let is_report = name.bucket.is_empty() && name.key == name::REPORT;
        is_report.then(|| self.0.json().map(String::into_bytes)).transpose()
    }

    fn options(&self) -> Result<Vec<FilesystemOption>> {
        self.0.options()
    }

    fn set_options(&self, options: &[FilesystemOption]) -> Result<()> {
        self.0.set(options)
    }
}

//! `az://account/container/blob` for TensorFlow: Azure Blob Storage.
//!
//! What no protocol decides is in `tf-fs-object-store`: threads, memory, reading ahead, parts of uploads, everything by
//! name, retries, and HTTP itself.
//!
//! | Module | Job |
//! |---|---|
//! | `name` | `az://account/container/blob` and its other spellings, exactly as written |
//! | `settings` | environment variables and TensorFlow's options |
//! | `account`, `credential` | where an account is, and who may use it: key, SAS, tokens of Entra |
//! | `sign` | the signature by an account's key |
//! | `client`, `container` | Azure as the engine uses it |
//! | `request`, `failure` | one request, and what its refusal means |
//! | `list`, `write`, `blocks` | pages of listings; block blobs and their blocks |
//! | `copy`, `batch` | copies made by the store; deletions of several blobs |
//! | `xml` | what Azure writes in XML |

#![forbid(unsafe_code)]

mod account;
mod batch;
mod blocks;
mod client;
mod container;
mod copy;
mod credential;
mod failure;
mod list;
mod name;
mod request;
mod settings;
mod sign;
mod write;
mod xml;

pub use FilesystemPlugins as Az;

use client::Client;
use settings::Config;
use std::sync::Arc;
use tf_fs_object_store::{ObjectFilesystem, Resources, StorePlugin};
use tf_fs_plugin::prelude::*;

/// Azure Blob Storage as the engine's plugin.
#[derive(Debug, Default)]
pub struct Azure(Config);

/// Azure Blob Storage as TensorFlow uses it.
pub type BlobFilesystem = ObjectFilesystem<Azure>;

filesystem_plugins! {
    "az" | "abfs" | "abfss" => BlobFilesystem
}

impl Azure {
    /// With these options, for tests.
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

    fn connect(&self, _before: Option<&Client>) -> Result<Client> {
        Client::new(self.0.get()?)
    }

    fn is_up_to_date(&self, client: &Client) -> Result<bool> {
        self.0.get().map(|settings| Arc::ptr_eq(&settings, client.settings()))
    }

    fn resources(&self) -> Result<Resources> {
        let settings = self.0.get()?;
        let (threads, memory) =
            (settings.size("threads", 4), settings.size("memory_budget_bytes", 256 << 20));
        Ok(Resources::new(threads, memory))
    }

    fn options(&self) -> Result<Vec<FilesystemOption>> {
        self.0.options()
    }

    fn set_options(&self, options: &[FilesystemOption]) -> Result<()> {
        self.0.set(options)
    }
}

//! `webdav://`, `sftp://`, `ftp://`, `webhdfs://`, `hf://` and others for TensorFlow: files on servers that have directories, and
//! objects in buckets.
//!
//! `tf-fs-object-store` does what no protocol decides: threads, memory, reading ahead, operations by name, retries, and HTTP
//! itself. [OpenDAL](https://docs.rs/opendal-core)'s clients speak WebDAV, and the protocols of buckets.
//!
//! | Module | Job |
//! |---|---|
//! | `scheme`, `name` | the schemes; `sftp://remote/path`, and names that no server gets |
//! | `settings`, `place` | environment, settings file, TensorFlow's options; where a remote is |
//! | `client` | opens remotes |
//! | `store`, `bucket` | a remote as the engine uses it: with directories, or with objects |
//! | `opendal` | a client of OpenDAL with the engine's types |
//! | `service`, `services` | what a protocol does; one module for each |
//! | `copy`, `spool` | copies through this process; large files on their way |
//! | `error` | the engine's errors, through OpenDAL and back |
//! | `metrics` | what was counted |

#![forbid(unsafe_code)]

mod bucket;
mod client;
mod copy;
mod error;
mod metrics;
mod name;
mod opendal;
mod place;
mod scheme;
mod service;
mod services;
mod settings;
mod spool;
mod store;

pub use FilesystemPlugins as OpenDal;

use bucket::Bucket;
use client::{Client, Opened};
use settings::Config;
use std::marker::PhantomData;
use store::Remote;
use tf_fs_object_store::metrics::report;
use tf_fs_object_store::{Connect as _, Name, ObjectFilesystem, Resources, StorePlugin};
use tf_fs_plugin::prelude::*;

/// Services as the engine's plugin.
#[derive(Debug)]
pub struct Services<S>(Config, PhantomData<fn() -> S>);

impl<S> Default for Services<S> {
    fn default() -> Self {
        Self(Config::default(), PhantomData)
    }
}

/// Services with files in directories.
pub type Remotes = Services<Remote>;

/// Services with objects in buckets.
pub type Buckets = Services<Bucket>;

/// Files in directories as TensorFlow uses them.
pub type RemoteFilesystem = ObjectFilesystem<Remotes>;

/// Objects in buckets as TensorFlow uses them.
pub type BucketFilesystem = ObjectFilesystem<Buckets>;

filesystem_plugins! {
    "webdav" | "webdavs" | "sftp" | "ftp" | "ftps" | "webhdfs" | "swebhdfs" | "hdfs" | "hf" | "github" | "ipfs"
        => RemoteFilesystem,
    "b2" | "memory" => BucketFilesystem
}

impl<S> Services<S> {
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

impl<S: Opened> StorePlugin for Services<S> {
    type Client = Client<S>;

    fn connect(&self, _: Option<&Client<S>>) -> Result<Client<S>> {
        Ok(Client::new(self.0.settings()?))
    }

    fn is_up_to_date(&self, client: &Client<S>) -> Result<bool> {
        Ok(client.has(&self.0.settings()?))
    }

    fn resources(&self) -> Result<Resources> {
        let settings = self.0.settings()?;
        Ok(Resources::new(settings.threads, settings.memory_budget))
    }

    fn report(&self, filesystem: &ObjectFilesystem<Self>, name: &Name) -> Result<Option<Vec<u8>>> {
        if !name.bucket.is_empty() {
            return Ok(None);
        }
        Ok(match &*name.key {
            name::CONFIG => Some(self.0.json()?.into_bytes()),
            name::METRICS => {
                let budget = &filesystem.connection()?.process.budget;
                let limit = self.0.settings()?.memory_budget;
                Some(report(metrics::json(budget.used(), limit)))
            }
            _ => None,
        })
    }

    fn options(&self) -> Result<Vec<FilesystemOption>> {
        self.0.options()
    }

    fn set_options(&self, options: &[FilesystemOption]) -> Result<()> {
        self.0.set(options)
    }
}

//! `s3://` for TensorFlow: Amazon S3 and every store that speaks its protocol.
//!
//! `SEMANTICS.md` tells what users may rely on, `README.md` how to use it; both are in this crate's directory.
//!
//! `tf-fs-object-store` does what no protocol decides: threads, memory, reading ahead, writing in parts, operations by
//! name, retries.
//!
//! | Module | Job |
//! |---|---|
//! | `name` | `s3://bucket/key`, with the key exactly as written |
//! | `config` | settings: environment, settings file, TensorFlow's options |
//! | `connection` | clients, one a bucket: region, endpoint, credentials |
//! | `cause` | why an attempt failed, and whether another one can help |
//! | `failure` | S3's errors as TensorFlow's codes |
//! | `metrics` | counters, and how Python reads them |
//! | `report` | what Python reads about the plugin itself |
//! | `ask` | what a store can do, to know before |
//! | `get` | one ranged GET |
//! | `write` | the requests behind files open for writing: PUT, multipart upload |
//! | `names` | the requests behind operations by name: listings, deletion, copies |
//! | `store` | S3 as the engine uses it |

#![forbid(unsafe_code)]

mod ask;
mod cause;
mod config;
mod connection;
mod failure;
#[cfg(test)]
mod fuzz;
mod get;
mod metrics;
mod name;
mod names;
mod report;
mod store;
mod write;

pub use FilesystemPlugins as S3;
pub use ask::{Abilities, Ability, ask};
#[cfg(feature = "ranges")]
pub use get::{Ranges, Way};

use config::Config;
use connection::{Bucket, Client};
use tf_fs_object_store::{Name, ObjectFilesystem, Resources, StorePlugin};
use tf_fs_plugin::prelude::*;

/// Amazon S3 and compatible stores, as TensorFlow uses them.
type Filesystem = ObjectFilesystem<Plugin>;

filesystem_plugins! {
    "s3" | "s3a" | "s3n" => Filesystem
}

/// The settings of the plugin.
#[derive(Debug, Default)]
struct Plugin {
    config: Config,
}

impl StorePlugin for Plugin {
    type Client = Client;

    fn connect(&self, before: Option<&Client>) -> Result<Client> {
        Ok(Client::new(self.config.settings()?, before))
    }

    fn is_up_to_date(&self, client: &Client) -> Result<bool> {
        Ok(client.has(&self.config.settings()?))
    }

    fn can_reuse_bucket(&self, client: &Client, name: &str, bucket: &Bucket) -> bool {
        client.would_open(name, bucket)
    }

    fn resources(&self) -> Result<Resources> {
        let settings = self.config.settings()?;
        Ok(Resources::new(settings.threads, settings.memory_budget))
    }

    fn report(&self, filesystem: &Filesystem, name: &Name) -> Result<Option<Vec<u8>>> {
        report::content(filesystem, name)
    }

    fn options(&self) -> Result<Vec<FilesystemOption>> {
        self.config.options()
    }

    fn set_options(&self, options: &[FilesystemOption]) -> Result<()> {
        self.config.set(options)
    }
}

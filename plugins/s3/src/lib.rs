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
//! | `settings`, `profile` | settings: environment, settings file, TensorFlow's options; the AWS configuration files |
//! | `client`, `shared` | opens buckets; what they share |
//! | `bucket` | a bucket as the engine uses it |
//! | `endpoint`, `region`, `clock`, `pace` | where its requests go, with which time, and how often |
//! | `credential` | where credentials come from |
//! | `request`, `sign` | one request: its URL, its headers, its response; its signature |
//! | `error` | what a refusal means, as TensorFlow's codes |
//! | `get`, `list`, `delete`, `copy` | ranged GETs, pages of listings, deletions of several objects, copies by the store |
//! | `write` | the requests behind files open for writing: PUT, multipart upload |
//! | `capabilities`, `probe` | what a store can do, as its responses show; the same, to know before |
//! | `metrics`, `report` | counters; what Python reads about the plugin itself |

#![forbid(unsafe_code)]

mod bucket;
mod capabilities;
mod client;
mod clock;
mod copy;
mod credential;
mod delete;
mod endpoint;
mod error;
#[cfg(test)]
mod fuzz;
mod get;
mod list;
mod metrics;
mod name;
mod pace;
mod probe;
mod profile;
#[cfg(feature = "ranges")]
mod ranges;
mod region;
mod report;
mod request;
mod settings;
mod shared;
mod sign;
mod store;
mod write;

pub use FilesystemPlugins as S3;
pub use probe::{Observed, Probed, probe};
#[cfg(feature = "ranges")]
pub use ranges::Ranges;

use bucket::Bucket;
use client::Client;
use settings::Config;
use tf_fs_object_store::{Name, ObjectFilesystem, Resources, StorePlugin};
use tf_fs_plugin::prelude::*;

/// What requests say of the plugin.
const AGENT: &str = concat!("tensorflow-s3/", env!("CARGO_PKG_VERSION"));

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

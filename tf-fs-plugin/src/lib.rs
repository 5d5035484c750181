//! Write TensorFlow filesystem plugins in safe Rust.
//!
//! Implement [`Filesystem`] for your type, put [`#[filesystem_plugin]`](macro@filesystem_plugin) on
//! the `impl`, and build a `cdylib`, which TensorFlow 2.12 and later load. You need TensorFlow
//! neither to build nor to test the plugin.
//!
//! ```
//! use tf_fs_plugin::prelude::*;
//!
//! /// `env://NAME` reads as the environment variable `NAME`.
//! struct EnvFs;
//! struct Value(Vec<u8>);
//!
//! #[filesystem_plugin(scheme = "env")]
//! impl Filesystem for EnvFs {
//!     type Reader = Value;
//!
//!     fn new(_scheme: &str) -> Result<Self> {
//!         Ok(Self)
//!     }
//!     fn new_random_access_file(&self, uri: Uri<'_>) -> Result<Value> {
//!         let value = std::env::var(uri.host_str()?).map_err(|_| Error::not_found(uri))?;
//!         Ok(Value(value.into_bytes()))
//!     }
//!     fn stat(&self, uri: Uri<'_>) -> Result<FileStatistics> {
//!         Ok(FileStatistics::file(self.new_random_access_file(uri)?.0.len() as u64))
//!     }
//! }
//!
//! impl RandomAccessFile for Value {
//!     fn read_at(&self, offset: u64, buf: &mut ReadBuf<'_>) -> Result<()> {
//!         buf.fill_from(&self.0, offset);
//!         Ok(())
//!     }
//! }
//! ```
//!
//! # Operations that you do not implement
//!
//! | Operation | Runs |
//! |---|---|
//! | `new_random_access_file`, `new_writable_file`, `new_appendable_file`, `new_read_only_memory_region_from_file`, `create_dir`, `delete_file`, `delete_dir`, `stat`, `get_children` | nothing: TensorFlow returns `UNIMPLEMENTED` |
//! | `is_directory`, `get_file_size`, `paths_exist`, `delete_recursively`, `flush_caches` | TensorFlow's default, made of the operations above |
//! | `path_exists` | the SDK's default, from `stat`; TensorFlow has none |
//! | `translate_name` | the SDK's default, because TensorFlow's drops the host |
//! | `recursively_create_dir` | the SDK's default, because TensorFlow's never ends if the root is missing |
//! | `get_matching_paths` | the SDK's default, because TensorFlow's crashes on a wildcard in the host and hides errors |
//! | `rename_file`, `copy_file` | the SDK's default, because TensorFlow's loses a file that is renamed or copied to its own name, and copies into a directory |
//! | `flush`, `sync`, `close` of a [`WritableFile`] | nothing, `flush`, and `flush`; TensorFlow has no default for `close` |
//! | transactions, configuration | nothing: TensorFlow does not call them, except for `set_filesystem_configuration` |
//!
//! # Threads
//! TensorFlow calls a plugin from several threads at once, so everything is `Send` and `Sync`. A
//! writable file is used by one thread at a time.
//!
//! # Failure
//! Every operation returns [`Result`]; an [`Error`] carries one of TensorFlow's [codes](Code),
//! converts from `std::io::Error`, and takes causes and context. A panic is caught: the operation
//! fails with `INTERNAL` and names the operation, the message and the source location. Locks that it
//! held are poisoned, as always in Rust. This needs unwinding: with `panic = "abort"` in the profile
//! the plugin does not compile.
//!
//! # Loading
//! `import tensorflow` registers a plugin in `site-packages/tensorflow-plugins/` or one that
//! `TF_PLUGGABLE_DEVICE_LIBRARY_PATH` names, unless the attribute has `autoload = false` or the
//! environment `TF_FS_PLUGIN_AUTOLOAD=0`. `tf.experimental.register_filesystem_plugin(path)` registers
//! it by hand. Registering the same file twice is not an error. A copy of the file is another plugin,
//! whose scheme is already registered. TensorFlow never unloads a plugin and never drops a
//! filesystem, so nothing may depend on `Drop` of the [`Filesystem`] itself.
//!
//! # Logging
//! Log lines of the crate `log` appear on stderr in the format of TensorFlow's own; see [`logging`].
//!
//! # Tests
//! The crate [`tf-plugin-testing`](https://docs.rs/tf-plugin-testing) has an in-process host that calls a plugin as
//! TensorFlow does, conformance tests (`conformance!`) and fault injection.
//!
//! # Names that TensorFlow cannot pass
//! TensorFlow cuts a name at its first NUL before a plugin sees it, and Python cannot show a listing
//! with names that are not UTF-8.

#![cfg_attr(docsrs, feature(doc_cfg))]

// Lets the macros' paths also work in this crate's own tests.
extern crate self as tf_fs_plugin;

#[expect(unsafe_code, reason = "the C boundary")]
mod abi;
mod defaults;
pub mod entries;
mod file;
mod filesystem;
#[cfg(test)]
mod fuzz;
pub mod glob;
mod operations;
mod options;
mod statistics;
mod uri;

pub(crate) use abi::read_buf;

pub use abi::mapped_region::MappedRegion;
pub use abi::read_buf::ReadBuf;
pub use abi::region_content::RegionContent;
pub use entries::Entries;
pub use file::{AlignedRegion, RandomAccessFile, ReadOnlyMemoryRegion, Unsupported, WritableFile};
pub use filesystem::{DeleteRecursivelyError, Filesystem};
pub use operations::{OperationTable, Operations};
pub use options::{FilesystemOption, OptionValues};
pub use statistics::FileStatistics;
pub use tf_fs_plugin_macros::{filesystem, filesystem_plugin, filesystem_plugins};
pub use tf_plugin_core::{Code, Error, ProcessOrigin, Result, ResultExt, ensure, logging, sync};
pub use uri::Uri;

/// The names that nearly every plugin needs: `use tf_fs_plugin::prelude::*;`.
pub mod prelude {
    pub use crate::{
        AlignedRegion, Code, DeleteRecursivelyError, Entries, Error, FileStatistics, Filesystem,
        FilesystemOption, OptionValues, RandomAccessFile, ReadBuf, ReadOnlyMemoryRegion,
        RegionContent, Result, ResultExt, Uri, WritableFile, ensure, filesystem, filesystem_plugin,
        filesystem_plugins,
    };
}

/// Used by the macros' output only; it changes without notice.
#[doc(hidden)]
pub mod __private {
    pub use crate::abi::autoload::autoload;
    pub use crate::abi::register::{Plugin, Registration, Scheme, init_plugin};
    pub use tf_fs_sys::{TF_FilesystemPluginInfo, TF_InitPluginFn};
    pub use tf_plugin_core::__private::elf_note;

    /// Functions for the in-process host of `tf-plugin-testing` beyond the C interface.
    pub mod testing {
        pub use crate::abi::configuration::{OwnedOption, from_host};
        pub use crate::abi::register::{register_all, registration_of, with_handoff};

        /// The SDK's own defaults.
        pub mod defaults {
            pub use crate::defaults::{
                copy_file, get_matching_paths, path_exists, recursively_create_dir, rename_file,
            };
        }
    }
}

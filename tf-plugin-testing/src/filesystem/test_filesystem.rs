//! A registered filesystem.

use super::abi::mounted::{Mounted, Tables};
use std::sync::Arc;
use tf_fs_sys::TF_Filesystem;
use tf_plugin_core::{Code, Error};

/// A registered filesystem. Its methods have the names of the operations in
/// `filesystem_interface.h`. Each accepts any name with a scheme, while [`Host`](super::Host)
/// chooses the filesystem by the scheme.
///
/// For a null slot, a method does what TensorFlow's default does, or returns `UNIMPLEMENTED` where
/// TensorFlow has none. All other errors are the plugin's, unless the method says more.
#[derive(Clone, Debug)]
pub struct TestFilesystem {
    pub(super) mounted: Arc<Mounted>,
}

/// Returns TensorFlow's error for a null slot without a default.
#[cold]
pub(super) fn unsupported(name: &[u8], cpp_name: &str) -> Error {
    Error::new(
        Code::Unimplemented,
        format!("Filesystem for {} does not support {cpp_name}()", name.escape_ascii()),
    )
}

impl TestFilesystem {
    /// Returns the scheme, as it was registered.
    #[must_use]
    pub fn scheme(&self) -> &[u8] {
        &self.mounted.scheme
    }

    /// Returns the host's copies of the plugin's tables, to see which slots are filled, or to call
    /// them as the host would not.
    #[must_use]
    pub fn tables(&self) -> Tables {
        self.mounted.tables
    }

    /// Returns the pointer that the C functions of its table get. It is valid while this value or a clone exists.
    #[must_use]
    pub fn as_ptr(&self) -> *mut TF_Filesystem {
        self.mounted.as_ptr()
    }

    pub(super) fn violation(&self, op: &'static str, subject: &[u8], what: impl Into<String>) {
        self.mounted.violation(op, subject, what);
    }
}

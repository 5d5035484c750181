//! The process that created a value.

use crate::abi::fork;

/// Distinguishes the process that created it from its forks.
///
/// After `fork` a child has a copy of the memory, but not the threads, and shares open files and sockets with its
/// parent. A value of one process (a runtime, a connection, an upload) keeps an `ProcessOrigin` and checks it before use.
///
/// It counts forks, because the process ID is not enough: a child may get the ID of a parent that has ended. Cloning or
/// comparing it needs no system call. Forks are counted from when the first plugin of this library is registered or the
/// first `ProcessOrigin` is created. A child that is created without the C library's `fork`, such as by `vfork`, is not
/// detected.
///
/// ```
/// use tf_fs_plugin::ProcessOrigin;
///
/// struct Upload {
///     origin: ProcessOrigin,
/// }
///
/// let upload = Upload { origin: ProcessOrigin::current() };
/// assert!(upload.origin.is_current(), "`false` in a child");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessOrigin(u32);

impl ProcessOrigin {
    /// Returns the origin of the current process.
    #[must_use]
    pub fn current() -> Self {
        fork::watch();
        Self(fork::generation())
    }

    /// Returns whether this process created it, and not a parent of this process.
    #[inline]
    #[must_use]
    pub fn is_current(self) -> bool {
        self.0 == fork::generation()
    }
}

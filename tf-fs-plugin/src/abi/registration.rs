//! A scheme with the tables that serve it, and the number of its filesystems that the host has.

use crate::operations::Operations;
use core::sync::atomic::AtomicUsize;
use tf_fs_sys::{
    TF_FilesystemOps, TF_RandomAccessFileOps, TF_ReadOnlyMemoryRegionOps, TF_WritableFileOps,
};
use tf_plugin_core::__private::elf_note::ElfNote;

/// Builds a table with these slots. A slot without `if` is always filled; one with `if` is filled
/// if the author wrote any of the operations after it, and null otherwise.
macro_rules! table {
    ($($slot:ident $(if $($op:ident)|+)?;)* ..$others:expr) => {
        TF_FilesystemOps { $($slot: table!(@$slot $($($op)|+)?),)* ..$others }
    };
    (@$slot:ident) => { Some($slot::<F>) };
    (@$slot:ident $($op:ident)|+) => {
        if F::PROVIDED.intersects(Operations::NONE$(.union(Operations::$op))+) { Some($slot::<F>) } else { None }
    };
}
pub(super) use table;

/// A scheme as a type, because the C function `init` has no argument that could name it.
pub trait Scheme: 'static {
    /// Returns the registration of this scheme.
    fn registration() -> &'static Registration;
}

/// A scheme and the tables that serve it.
#[derive(Debug)]
pub struct Registration {
    pub(super) scheme: &'static str,
    /// The operations that the author has written.
    pub(super) provided: Operations,
    pub(super) tables: &'static Tables,
    /// How many filesystems of this registration the host has. Two concurrent registrations create
    /// two for a moment, of which the host then cleans one up.
    pub(super) live: AtomicUsize,
}

#[derive(Debug)]
pub(super) struct Tables {
    pub(super) filesystem: TF_FilesystemOps,
    pub(super) random_access_file: Option<TF_RandomAccessFileOps>,
    pub(super) writable_file: Option<TF_WritableFileOps>,
    pub(super) memory_region: Option<TF_ReadOnlyMemoryRegionOps>,
}

impl Registration {
    /// Returns the ELF note in which the shared library describes this registration.
    #[must_use]
    pub const fn note<const N: usize>(&self, panic_abort: bool) -> ElfNote<N> {
        ElfNote::filesystem(self.scheme, self.provided.bits(), panic_abort)
    }

    /// Returns the scheme without `://`.
    #[must_use]
    pub const fn scheme(&self) -> &'static str {
        self.scheme
    }
}

//! Which operations of the header an author has written.

use std::mem::offset_of;

use tf_fs_sys::TF_FilesystemOps;

/// A set of operations of `TF_FilesystemOps`.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Ops(u64);

// `init` and `cleanup` are always there.
macro_rules! ops {
    ({ $($always:tt)* } { $($op:ident $name:ident;)* }) => {
        impl Ops {
            $(
                #[doc = concat!("The operation `", stringify!($op), "`.")]
                pub const $name: Self =
                    Self(1 << (offset_of!(TF_FilesystemOps, $op) / size_of::<usize>()));
            )*

            /// All operations with their names in `filesystem_interface.h`, in the order of
            /// `TF_FilesystemOps`.
            pub const NAMES: &'static [(&'static str, Self)] =
                &[$((stringify!($op), Self::$name)),*];
        }
    };
}
tf_fs_sys::for_each_operation!(ops);

impl Ops {
    /// No operation.
    pub const NONE: Self = Self(0);

    /// The operations of both sets.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// One bit an operation, at its position in `TF_FilesystemOps`.
    pub(crate) const fn bits(self) -> u64 {
        self.0
    }

    /// Whether all operations of `other` are in this set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any operation of `other` is in this set.
    #[must_use]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl std::fmt::Debug for Ops {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set()
            .entries(Self::NAMES.iter().filter(|(_, op)| self.contains(*op)).map(|(name, _)| name))
            .finish()
    }
}

/// Which operations a filesystem provides. Written by `#[filesystem_plugin]` and `#[filesystem]`,
/// which read the names of the methods in the `impl`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` implements `Filesystem` but has no operation table",
    label = "missing `#[filesystem_plugin(scheme = \"...\")]`",
    note = "put `#[filesystem_plugin(scheme = \"...\")]` on `impl Filesystem for {Self}`, or `#[filesystem]` if `filesystem_plugins!` exports it"
)]
pub trait OperationTable {
    /// The operations that the `impl` contains. An operation outside this set is a null pointer for
    /// TensorFlow, or the SDK's own default where TensorFlow's is dangerous.
    const PROVIDED: Ops;
}

//! Which operations of the header an author has written.

/// A set of operations of `TF_FilesystemOps`.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Ops(u64);

macro_rules! ops {
    ($($name:ident = $index:literal, $op:ident;)*) => {
        impl Ops {
            $(
                #[doc = concat!("The operation `", stringify!($op), "`.")]
                pub const $name: Self = Self(1 << $index);
            )*

            /// All operations with their names in `filesystem_interface.h`, in the order of
            /// `TF_FilesystemOps`.
            pub const NAMES: &'static [(&'static str, Self)] =
                &[$((stringify!($op), Self::$name)),*];
        }
    };
}

// The index is the position in `TF_FilesystemOps`; `init` and `cleanup`, 0 and 1, are always there.
ops! {
    NEW_RANDOM_ACCESS_FILE = 2, new_random_access_file;
    NEW_WRITABLE_FILE = 3, new_writable_file;
    NEW_APPENDABLE_FILE = 4, new_appendable_file;
    NEW_READ_ONLY_MEMORY_REGION_FROM_FILE = 5, new_read_only_memory_region_from_file;
    CREATE_DIR = 6, create_dir;
    RECURSIVELY_CREATE_DIR = 7, recursively_create_dir;
    DELETE_FILE = 8, delete_file;
    DELETE_DIR = 9, delete_dir;
    DELETE_RECURSIVELY = 10, delete_recursively;
    RENAME_FILE = 11, rename_file;
    COPY_FILE = 12, copy_file;
    PATH_EXISTS = 13, path_exists;
    PATHS_EXIST = 14, paths_exist;
    STAT = 15, stat;
    IS_DIRECTORY = 16, is_directory;
    GET_FILE_SIZE = 17, get_file_size;
    TRANSLATE_NAME = 18, translate_name;
    GET_CHILDREN = 19, get_children;
    GET_MATCHING_PATHS = 20, get_matching_paths;
    FLUSH_CACHES = 21, flush_caches;
    START_TRANSACTION = 22, start_transaction;
    END_TRANSACTION = 23, end_transaction;
    ADD_TO_TRANSACTION = 24, add_to_transaction;
    GET_TRANSACTION_FOR_PATH = 25, get_transaction_for_path;
    GET_OR_START_TRANSACTION_FOR_PATH = 26, get_or_start_transaction_for_path;
    DECODE_TRANSACTION_TOKEN = 27, decode_transaction_token;
    GET_FILESYSTEM_CONFIGURATION = 28, get_filesystem_configuration;
    SET_FILESYSTEM_CONFIGURATION = 29, set_filesystem_configuration;
    GET_FILESYSTEM_CONFIGURATION_OPTION = 30, get_filesystem_configuration_option;
    SET_FILESYSTEM_CONFIGURATION_OPTION = 31, set_filesystem_configuration_option;
    GET_FILESYSTEM_CONFIGURATION_KEYS = 32, get_filesystem_configuration_keys;
}

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

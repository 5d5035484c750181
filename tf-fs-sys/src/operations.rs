//! The operations of [`TF_FilesystemOps`], listed once: masks, tables and tests derive from this list.

use crate::filesystem_ops::TF_FilesystemOps;

/// Calls a macro with the operations of [`TF_FilesystemOps`], in the order of the table: first, in
/// braces, those that TensorFlow requires, then, in braces, all others. An operation is its name,
/// the same in capitals, and a semicolon.
///
/// # Examples
/// ```
/// macro_rules! count {
///     ({ $($demanded:ident $_d:ident;)* } { $($other:ident $_o:ident;)* }) => {
///         [$(stringify!($demanded),)*].len() + [$(stringify!($other),)*].len()
///     };
/// }
/// assert_eq!(tf_fs_sys::for_each_operation!(count), tf_fs_sys::OPERATIONS.len());
/// ```
#[macro_export]
macro_rules! for_each_operation {
    ($then:ident) => {
        $then! {
            {
                init INIT;
                cleanup CLEANUP;
            }
            {
                new_random_access_file NEW_RANDOM_ACCESS_FILE;
                new_writable_file NEW_WRITABLE_FILE;
                new_appendable_file NEW_APPENDABLE_FILE;
                new_read_only_memory_region_from_file NEW_READ_ONLY_MEMORY_REGION_FROM_FILE;
                create_dir CREATE_DIR;
                recursively_create_dir RECURSIVELY_CREATE_DIR;
                delete_file DELETE_FILE;
                delete_dir DELETE_DIR;
                delete_recursively DELETE_RECURSIVELY;
                rename_file RENAME_FILE;
                copy_file COPY_FILE;
                path_exists PATH_EXISTS;
                paths_exist PATHS_EXIST;
                stat STAT;
                is_directory IS_DIRECTORY;
                get_file_size GET_FILE_SIZE;
                translate_name TRANSLATE_NAME;
                get_children GET_CHILDREN;
                get_matching_paths GET_MATCHING_PATHS;
                flush_caches FLUSH_CACHES;
                start_transaction START_TRANSACTION;
                end_transaction END_TRANSACTION;
                add_to_transaction ADD_TO_TRANSACTION;
                get_transaction_for_path GET_TRANSACTION_FOR_PATH;
                get_or_start_transaction_for_path GET_OR_START_TRANSACTION_FOR_PATH;
                decode_transaction_token DECODE_TRANSACTION_TOKEN;
                get_filesystem_configuration GET_FILESYSTEM_CONFIGURATION;
                set_filesystem_configuration SET_FILESYSTEM_CONFIGURATION;
                get_filesystem_configuration_option GET_FILESYSTEM_CONFIGURATION_OPTION;
                set_filesystem_configuration_option SET_FILESYSTEM_CONFIGURATION_OPTION;
                get_filesystem_configuration_keys GET_FILESYSTEM_CONFIGURATION_KEYS;
            }
        }
    };
}

macro_rules! define {
    ({ $($demanded:ident $_demanded:ident;)* } { $($other:ident $_other:ident;)* }) => {
        /// The names of the operations of [`TF_FilesystemOps`], in the order of the table.
        pub const OPERATIONS: [&str; size_of::<TF_FilesystemOps>() / size_of::<usize>()] =
            [$(stringify!($demanded),)* $(stringify!($other),)*];

        // The list is in the order of the table.
        const _: () = {
            let offsets = [
                $(core::mem::offset_of!(TF_FilesystemOps, $demanded),)*
                $(core::mem::offset_of!(TF_FilesystemOps, $other),)*
            ];
            let mut at = 0;
            while at < offsets.len() {
                assert!(offsets[at] == at * size_of::<usize>());
                at += 1;
            }
        };

        impl TF_FilesystemOps {
            /// The table without any operation: its default, as a constant.
            pub const EMPTY: Self = Self { $($demanded: None,)* $($other: None,)* };
        }
    };
}
for_each_operation!(define);

//! The tables of a filesystem.

use std::ffi::{c_char, c_int, c_void};
use std::mem::offset_of;

use tf_fs_sys::*;

use super::format::text;
use super::object_names::PATHS;
use super::tables::tables;
use crate::call::Call;

fn listed(call: &mut Call, count: c_int) {
    if call.is_ok() {
        call.count(count.into(), "entry", "entries");
    }
}

/// Adds the source and the target of a rename or a copy.
unsafe fn moved(call: &mut Call, src: Path, dst: Path) {
    // SAFETY: null, or C strings of the host's.
    unsafe {
        call.path(src);
        call.argument(format_args!("to"));
        call.path(dst);
    }
}

/// Adds the name of an option; its value may be a secret.
unsafe fn option(call: &mut Call, option: *const TF_Filesystem_Option) {
    // SAFETY: null, or an option of the host's.
    unsafe {
        if let Some(option) = option.as_ref() {
            call.path(option.name);
            call.argument(format_args!("(value hidden)"));
        }
    }
}

type Fs = *const TF_Filesystem;
type Path = *const c_char;
type Status = *mut TF_Status;
type NewToken = *mut *mut TF_TransactionToken;

tables! {
    /// `TF_FilesystemOps`.
    operations: TF_FilesystemOps, 16 {
        fn init(filesystem: *mut TF_Filesystem, status: Status);
        fn cleanup as "filesystem.cleanup" (filesystem: *mut TF_Filesystem);
        fn new_random_access_file(filesystem: Fs, path: Path, file: *mut TF_RandomAccessFile, status: Status)
            => |call| call.opened(file, path);
        fn new_writable_file(filesystem: Fs, path: Path, file: *mut TF_WritableFile, status: Status)
            => |call| call.opened(file, path);
        fn new_appendable_file(filesystem: Fs, path: Path, file: *mut TF_WritableFile, status: Status)
            => |call| call.opened(file, path);
        fn new_read_only_memory_region_from_file(
            filesystem: Fs, path: Path, region: *mut TF_ReadOnlyMemoryRegion, status: Status
        ) => |call| call.opened(region, path);
        fn create_dir(filesystem: Fs, path: Path, status: Status);
        fn recursively_create_dir(filesystem: Fs, path: Path, status: Status);
        fn delete_file(filesystem: Fs, path: Path, status: Status);
        fn delete_dir(filesystem: Fs, path: Path, status: Status);
        fn delete_recursively(
            filesystem: Fs, path: Path, undeleted_files: *mut u64, undeleted_dirs: *mut u64, status: Status
        ) => |call| {
            if let (Some(files), Some(dirs)) = (undeleted_files.as_ref(), undeleted_dirs.as_ref()) {
                call.value(format_args!("{files} files and {dirs} directories left"));
            }
        };
        fn rename_file(filesystem: Fs, src: Path, dst: Path, status: Status) => only |call, ()| moved(call, src, dst);
        fn copy_file(filesystem: Fs, src: Path, dst: Path, status: Status) => only |call, ()| moved(call, src, dst);
        fn path_exists(filesystem: Fs, path: Path, status: Status);
        fn paths_exist(filesystem: Fs, paths: *mut *mut c_char, num_files: c_int, statuses: *mut *mut TF_Status) -> bool
            => |call| call.argument(format_args!("{num_files} paths"));
        fn stat(filesystem: Fs, path: Path, stats: *mut TF_FileStatistics, status: Status) => |call| {
            if let Some(stats) = stats.as_ref().filter(|_| call.is_ok()) {
                if stats.is_directory {
                    call.value(format_args!("directory"));
                } else {
                    call.value(format_args!("file of {} bytes", stats.length));
                }
            }
        };
        fn is_directory(filesystem: Fs, path: Path, status: Status) -> bool;
        fn get_file_size(filesystem: Fs, path: Path, status: Status) -> i64;
        fn translate_name(filesystem: Fs, uri: Path) -> *mut c_char;
        fn get_children(filesystem: Fs, path: Path, entries: *mut *mut *mut c_char, status: Status) -> c_int
            => |call, count| listed(call, count);
        fn get_matching_paths(filesystem: Fs, path: Path, entries: *mut *mut *mut c_char, status: Status) -> c_int
            => |call, count| listed(call, count);
        fn flush_caches(filesystem: Fs);
        fn start_transaction(filesystem: Fs, token: NewToken, status: Status) -> c_int;
        fn end_transaction(filesystem: Fs, token: *mut TF_TransactionToken, status: Status) -> c_int;
        fn add_to_transaction(filesystem: Fs, path: Path, token: *mut TF_TransactionToken, status: Status) -> c_int;
        fn get_transaction_for_path(filesystem: Fs, path: Path, token: NewToken, status: Status) -> c_int;
        fn get_or_start_transaction_for_path(filesystem: Fs, path: Path, token: NewToken, status: Status) -> c_int;
        fn decode_transaction_token(filesystem: Fs, token: *const TF_TransactionToken) -> *mut c_char;
        fn get_filesystem_configuration(
            filesystem: Fs, options: *mut *mut TF_Filesystem_Option, num_options: *mut c_int, status: Status
        ) => |call| {
            if let Some(count) = num_options.as_ref() {
                call.count((*count).into(), "option", "options");
            }
        };
        fn set_filesystem_configuration(
            filesystem: Fs, options: *const TF_Filesystem_Option, num_options: c_int, status: Status
        ) => |call| {
            for index in 0..usize::try_from(num_options).unwrap_or_default() {
                option(call, options.wrapping_add(index));
            }
            call.hide_reason();
        };
        fn get_filesystem_configuration_option(
            filesystem: Fs, key: Path, option: *mut *mut TF_Filesystem_Option, status: Status
        );
        fn set_filesystem_configuration_option(
            filesystem: Fs, option: *const TF_Filesystem_Option, status: Status
        ) => |call| {
            super::option(call, option);
            call.hide_reason();
        };
        fn get_filesystem_configuration_keys(
            filesystem: Fs, keys: *mut *mut c_char, num_keys: *mut c_int, status: Status
        ) => |call| {
            if let Some(count) = num_keys.as_ref() {
                call.count((*count).into(), "key", "keys");
            }
        };
    }

    /// `TF_RandomAccessFileOps`.
    readers: TF_RandomAccessFileOps, 16 {
        fn cleanup as "random_access_file.cleanup" (file: *mut TF_RandomAccessFile) => |call| {
            call.file(file);
            PATHS.forget(file.addr());
        };
        fn read(
            file: *const TF_RandomAccessFile, offset: u64, n: usize, buffer: *mut c_char, status: Status
        ) -> i64 => |call, read| {
            call.argument(format_args!("{n} at {offset}"));
            call.bytes(u64::try_from(read).unwrap_or_default());
        };
    }

    /// `TF_WritableFileOps`.
    writers: TF_WritableFileOps, 16 {
        fn cleanup as "writable_file.cleanup" (file: *mut TF_WritableFile) => |call| {
            call.file(file);
            PATHS.forget(file.addr());
        };
        fn append(file: *const TF_WritableFile, buffer: Path, n: usize, status: Status)
            // The buffer is not a path, although its type says so.
            => only |call, ()| {
                call.file(file);
                call.argument(format_args!("{n} bytes"));
                if call.is_ok() {
                    call.bytes += n as u64;
                }
            };
        fn tell(file: *const TF_WritableFile, status: Status) -> i64;
        fn flush(file: *const TF_WritableFile, status: Status);
        fn sync(file: *const TF_WritableFile, status: Status);
        fn close(file: *const TF_WritableFile, status: Status);
    }

    /// `TF_ReadOnlyMemoryRegionOps`.
    regions: TF_ReadOnlyMemoryRegionOps, 16 {
        fn cleanup as "read_only_memory_region.cleanup" (region: *mut TF_ReadOnlyMemoryRegion) => |call| {
            call.file(region);
            PATHS.forget(region.addr());
        };
        fn data(region: *const TF_ReadOnlyMemoryRegion) -> *const c_void;
        fn length(region: *const TF_ReadOnlyMemoryRegion) -> u64;
    }
}

/// Wraps the functions that `TF_InitPlugin` has offered.
///
/// # Safety
/// As the plugin has filled it: so many schemes as it says, with tables as large as it says that may be written.
pub(super) unsafe fn wrap(info: &TF_FilesystemPluginInfo) {
    if info.ops.is_null() {
        return;
    }
    for index in 0..info.num_schemes {
        // SAFETY: the plugin has filled `num_schemes` entries, with C strings and tables of the sizes beside them.
        unsafe {
            let ops = &*info.ops.add(index);
            let scheme = format!("{}://", text(ops.scheme));
            wrap_operations(ops.filesystem_ops, ops.filesystem_ops_size, &scheme);
            readers::wrap(ops.random_access_file_ops, ops.random_access_file_ops_size, &scheme);
            writers::wrap(ops.writable_file_ops, ops.writable_file_ops_size, &scheme);
            let size = ops.read_only_memory_region_ops_size;
            regions::wrap(ops.read_only_memory_region_ops, size, &scheme);
        }
    }
}

/// Wraps a filesystem's operations, in either layout.
///
/// # Safety
/// Null, or a table of so many bytes that may be written.
pub(super) unsafe fn wrap_operations(table: *mut TF_FilesystemOps, size: usize, subject: &str) {
    // TensorFlow 2.22 has removed operations from the middle, under the same ABI number: the size shows the layout.
    if table.is_null() || size != size_of::<TF_FilesystemOpsWithoutTransactions>() {
        let newer = tf_fs_sys::host::release() >= Some((2, 22));
        // Behind the operations that all releases have, this host reads other functions than older headers declare.
        let known = if newer { offset_of!(TF_FilesystemOps, start_transaction) } else { size };
        // SAFETY: `table` is null, or has `size` bytes that may be written.
        return unsafe { operations::wrap(table, size.min(known), subject) };
    }
    let table = table.cast::<TF_FilesystemOpsWithoutTransactions>();
    // SAFETY: a table of this layout, by its size; the second one is this function's own.
    unsafe {
        let mut whole = TF_FilesystemOps::from(table.read());
        operations::wrap(&raw mut whole, size_of_val(&whole), subject);
        table.write(whole.without_transactions());
    }
}

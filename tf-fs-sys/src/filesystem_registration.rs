//! Versions and registration in `tensorflow/c/experimental/filesystem/filesystem_interface.h`, its sections 3 and 4. The
//! rules in [`filesystem`](crate::filesystem) hold here too.

use crate::filesystem_ops::{
    TF_FilesystemOps, TF_RandomAccessFileOps, TF_ReadOnlyMemoryRegionOps, TF_WritableFileOps,
};
use core::ffi::{c_char, c_int, c_void};
use core::mem::size_of;

// Section 3 of the header: versions. With another ABI number the host refuses the plugin; another
// API number is only logged. Of a table the host copies the smaller of both sides' sizes.

/// API number of [`TF_RandomAccessFileOps`].
pub const TF_RANDOM_ACCESS_FILE_OPS_API: c_int = 0;
/// ABI number of [`TF_RandomAccessFileOps`].
pub const TF_RANDOM_ACCESS_FILE_OPS_ABI: c_int = 0;
/// Size in bytes of [`TF_RandomAccessFileOps`].
pub const TF_RANDOM_ACCESS_FILE_OPS_SIZE: usize = size_of::<TF_RandomAccessFileOps>();
/// API number of [`TF_WritableFileOps`].
pub const TF_WRITABLE_FILE_OPS_API: c_int = 0;
/// ABI number of [`TF_WritableFileOps`].
pub const TF_WRITABLE_FILE_OPS_ABI: c_int = 0;
/// Size in bytes of [`TF_WritableFileOps`].
pub const TF_WRITABLE_FILE_OPS_SIZE: usize = size_of::<TF_WritableFileOps>();
/// API number of [`TF_ReadOnlyMemoryRegionOps`].
pub const TF_READ_ONLY_MEMORY_REGION_OPS_API: c_int = 0;
/// ABI number of [`TF_ReadOnlyMemoryRegionOps`].
pub const TF_READ_ONLY_MEMORY_REGION_OPS_ABI: c_int = 0;
/// Size in bytes of [`TF_ReadOnlyMemoryRegionOps`].
pub const TF_READ_ONLY_MEMORY_REGION_OPS_SIZE: usize = size_of::<TF_ReadOnlyMemoryRegionOps>();
/// API number of [`TF_FilesystemOps`].
pub const TF_FILESYSTEM_OPS_API: c_int = 0;
/// ABI number of [`TF_FilesystemOps`].
pub const TF_FILESYSTEM_OPS_ABI: c_int = 0;
/// Size in bytes of [`TF_FilesystemOps`].
pub const TF_FILESYSTEM_OPS_SIZE: usize = size_of::<TF_FilesystemOps>();

// Section 4 of the header: registration.

/// A plugin's offer for one scheme. `scheme` and the four tables come from the plugin's
/// allocator; the host frees them after it has copied what it needs, also when it refuses the scheme.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct TF_FilesystemPluginOps {
    /// The scheme without `://`, NUL-terminated.
    pub scheme: *mut c_char,
    /// [`TF_FILESYSTEM_OPS_ABI`].
    pub filesystem_ops_abi: c_int,
    /// [`TF_FILESYSTEM_OPS_API`].
    pub filesystem_ops_api: c_int,
    /// [`TF_FILESYSTEM_OPS_SIZE`]. 0 crashes the host.
    pub filesystem_ops_size: usize,
    /// The filesystem's operations.
    pub filesystem_ops: *mut TF_FilesystemOps,
    /// [`TF_RANDOM_ACCESS_FILE_OPS_ABI`].
    pub random_access_file_ops_abi: c_int,
    /// [`TF_RANDOM_ACCESS_FILE_OPS_API`].
    pub random_access_file_ops_api: c_int,
    /// [`TF_RANDOM_ACCESS_FILE_OPS_SIZE`]. 0 crashes the host.
    pub random_access_file_ops_size: usize,
    /// Operations of files open for reading; null if the filesystem opens none.
    pub random_access_file_ops: *mut TF_RandomAccessFileOps,
    /// [`TF_WRITABLE_FILE_OPS_ABI`].
    pub writable_file_ops_abi: c_int,
    /// [`TF_WRITABLE_FILE_OPS_API`].
    pub writable_file_ops_api: c_int,
    /// [`TF_WRITABLE_FILE_OPS_SIZE`].
    pub writable_file_ops_size: usize,
    /// Operations of files open for writing; null if the filesystem opens none.
    pub writable_file_ops: *mut TF_WritableFileOps,
    /// [`TF_READ_ONLY_MEMORY_REGION_OPS_ABI`].
    pub read_only_memory_region_ops_abi: c_int,
    /// [`TF_READ_ONLY_MEMORY_REGION_OPS_API`].
    pub read_only_memory_region_ops_api: c_int,
    /// [`TF_READ_ONLY_MEMORY_REGION_OPS_SIZE`].
    pub read_only_memory_region_ops_size: usize,
    /// Operations of mapped files; null if the filesystem maps none.
    pub read_only_memory_region_ops: *mut TF_ReadOnlyMemoryRegionOps,
}

/// Filled by `TF_InitPlugin`; zeroed on entry.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct TF_FilesystemPluginInfo {
    /// Number of elements in `ops`.
    pub num_schemes: usize,
    /// One element per scheme, from the plugin's allocator; freed by the host.
    pub ops: *mut TF_FilesystemPluginOps,
    /// Allocates `size` bytes. The host requires it but never calls it.
    pub plugin_memory_allocate: Option<unsafe extern "C" fn(size: usize) -> *mut c_void>,
    /// Frees what the plugin allocated for the host. Called with null too.
    pub plugin_memory_free: Option<unsafe extern "C" fn(ptr: *mut c_void)>,
}

/// Type of the function `TF_InitPlugin` that a plugin exports. The header declares it without a
/// result; the host calls it as if it returned an `int` and ignores that. It is called once for each
/// registration of the same shared library.
pub type TF_InitPluginFn = unsafe extern "C" fn(plugin_info: *mut TF_FilesystemPluginInfo);

/// Writes this crate's version metadata, the twelve `_abi`, `_api` and `_size` fields, into `ops`.
pub const fn TF_SetFilesystemVersionMetadata(ops: &mut TF_FilesystemPluginOps) {
    ops.filesystem_ops_abi = TF_FILESYSTEM_OPS_ABI;
    ops.filesystem_ops_api = TF_FILESYSTEM_OPS_API;
    ops.filesystem_ops_size = TF_FILESYSTEM_OPS_SIZE;
    ops.random_access_file_ops_abi = TF_RANDOM_ACCESS_FILE_OPS_ABI;
    ops.random_access_file_ops_api = TF_RANDOM_ACCESS_FILE_OPS_API;
    ops.random_access_file_ops_size = TF_RANDOM_ACCESS_FILE_OPS_SIZE;
    ops.writable_file_ops_abi = TF_WRITABLE_FILE_OPS_ABI;
    ops.writable_file_ops_api = TF_WRITABLE_FILE_OPS_API;
    ops.writable_file_ops_size = TF_WRITABLE_FILE_OPS_SIZE;
    ops.read_only_memory_region_ops_abi = TF_READ_ONLY_MEMORY_REGION_OPS_ABI;
    ops.read_only_memory_region_ops_api = TF_READ_ONLY_MEMORY_REGION_OPS_API;
    ops.read_only_memory_region_ops_size = TF_READ_ONLY_MEMORY_REGION_OPS_SIZE;
}

//! `tensorflow/c/experimental/filesystem/filesystem_interface.h`: the modular filesystem API.
//!
//! Notes on behaviour say what TensorFlow 2.12 to 2.21 really does, which is not always what the
//! header promises. "The plugin's allocator" is the pair of hooks in [`TF_FilesystemPluginInfo`](crate::TF_FilesystemPluginInfo).
//! Pointers are non-null unless a note says otherwise; the host owns what it passes in and keeps it
//! alive for the length of the call only.
//!
//! The tables of operations are in [`filesystem_ops`](crate::filesystem_ops), what a plugin registers in
//! [`filesystem_registration`](crate::filesystem_registration).

use core::ffi::{c_char, c_int, c_void};

/// A file that is open for reading at any offset, from several threads at a time.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TF_RandomAccessFile {
    /// The plugin's state; the host never looks at it. Null until `new_random_access_file` sets it.
    pub plugin_file: *mut c_void,
}

/// A file that is open for appending, used by one thread at a time.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TF_WritableFile {
    /// The plugin's state; the host never looks at it. Null until `new_writable_file` or
    /// `new_appendable_file` sets it.
    pub plugin_file: *mut c_void,
}

/// A file mapped into memory.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TF_ReadOnlyMemoryRegion {
    /// The plugin's state; the host never looks at it. Null until
    /// `new_read_only_memory_region_from_file` sets it.
    pub plugin_memory_region: *mut c_void,
}

/// One filesystem, which serves a scheme.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TF_Filesystem {
    /// The plugin's state; the host never looks at it. Null until `init` sets it.
    pub plugin_filesystem: *mut c_void,
}

/// A token for a transaction of a filesystem.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TF_TransactionToken {
    /// The plugin's state for the transaction.
    pub token: *mut c_void,
    /// The filesystem that created the token.
    pub owner: *mut TF_Filesystem,
}

/// A buffer inside [`TF_Filesystem_Option_Value_Union`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TF_Filesystem_Option_Value_Buffer {
    /// The bytes, not NUL-terminated; from the plugin's allocator when the plugin returns it.
    pub buf: *mut c_char,
    /// Number of bytes in `buf`.
    pub buf_length: c_int,
}

/// One value of an option; [`TF_Filesystem_Option_Value::type_tag`] says which member holds it.
#[repr(C)]
#[derive(Clone, Copy)]
pub union TF_Filesystem_Option_Value_Union {
    /// For [`TF_Filesystem_Option_Type_Int`].
    pub int_val: i64,
    /// For [`TF_Filesystem_Option_Type_Real`].
    pub real_val: f64,
    /// For [`TF_Filesystem_Option_Type_Buffer`].
    pub buffer_val: TF_Filesystem_Option_Value_Buffer,
}

/// The values of an option, all of one type.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TF_Filesystem_Option_Value {
    /// A [`TF_Filesystem_Option_Type`].
    pub type_tag: c_int,
    /// Number of elements in `values`.
    pub num_values: c_int,
    /// The values; copy them to store them.
    pub values: *mut TF_Filesystem_Option_Value_Union,
}

/// Type of an option's values: one of the three constants below.
pub type TF_Filesystem_Option_Type = core::ffi::c_uint;
/// 64-bit integers.
pub const TF_Filesystem_Option_Type_Int: TF_Filesystem_Option_Type = 0;
/// Doubles.
pub const TF_Filesystem_Option_Type_Real: TF_Filesystem_Option_Type = 1;
/// Byte buffers.
pub const TF_Filesystem_Option_Type_Buffer: TF_Filesystem_Option_Type = 2;
/// Number of option types; not a type itself.
pub const TF_Filesystem_Num_Option_Types: TF_Filesystem_Option_Type = 3;

/// A configuration option of a filesystem.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TF_Filesystem_Option {
    /// The key, NUL-terminated.
    pub name: *mut c_char,
    /// A description for people, NUL-terminated. Null when the host sets an option.
    pub description: *mut c_char,
    /// Non-zero if the option belongs to a file rather than to the whole filesystem.
    pub per_file: c_int,
    /// The option's value.
    pub value: *mut TF_Filesystem_Option_Value,
}

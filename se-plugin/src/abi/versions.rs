//! The versioning strategy of the C API.
//!
//! A struct of the API begins with `struct_size`: the end of the last field that the creator of the struct
//! knows. Fields are only ever appended, and 0 or null means "not provided". The rules follow from this, and
//! each rule is one function here:
//!
//! - A field of the host's struct is read only if `struct_size` covers it; else it reads as 0 or null
//!   ([`read`], `field!`).
//! - A field is written only if `struct_size` covers it, because the host's stack is behind the struct. Then
//!   `struct_size` is set to the end of the filled part ([`fill`]).
//! - Fields that only a newer host knows are not changed.
//! - `struct_size` 0 is refused ([`VersionError::NoSize`]), and so is another major version
//!   ([`check_major_version`]).

use core::fmt;
use core::ptr;
pub use tf_fs_sys::Versioned;
use tf_plugin_core::Error;

/// Why a struct of the host is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionError {
    /// There is no struct.
    Null { record: &'static str },
    /// `struct_size` is 0: the struct is not initialised.
    NoSize { record: &'static str },
    /// `struct_size` does not reach as far as this plugin needs.
    TooShort { record: &'static str, size: usize, needed: usize },
    /// The host has another major version.
    MajorVersion { api: &'static str, ours: [i32; 3], host: [i32; 3] },
}

impl fmt::Display for VersionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null { record } => {
                write!(f, "TensorFlow passed no {record}; use TensorFlow 2.12 or later")
            }
            Self::NoSize { record } => write!(
                f,
                "the struct_size of TensorFlow's {record} is 0; use TensorFlow 2.12 or later"
            ),
            Self::TooShort { record, size, needed } => write!(
                f,
                "TensorFlow's {record} has {size} bytes and this plugin needs {needed}; use TensorFlow \
                 2.12 or later"
            ),
            Self::MajorVersion { api, ours, host } => {
                let [ours, host] =
                    [ours, host].map(|[major, minor, patch]| format!("{major}.{minor}.{patch}"));
                write!(
                    f,
                    "this plugin is made for version {ours} of the {api} C API and TensorFlow has {host}, \
                     whose major version differs; use a plugin and a TensorFlow of one major version"
                )
            }
        }
    }
}

impl From<VersionError> for Error {
    #[cold]
    fn from(error: VersionError) -> Self {
        Self::invalid_argument(error)
    }
}

/// Returns the `struct_size` of a struct of the host.
///
/// # Safety
/// `record` is null or points to a struct that begins with `struct_size`.
#[inline]
pub(crate) unsafe fn size_of_host<T: Versioned>(record: *const T) -> Result<usize, VersionError> {
    if record.is_null() {
        return Err(VersionError::Null { record: T::NAME });
    }
    // SAFETY: non-null; `struct_size` is the first field, as `Versioned` promises.
    match unsafe { record.cast::<usize>().read() } {
        0 => Err(VersionError::NoSize { record: T::NAME }),
        // A size that does not cover `struct_size` itself is as wrong as 0.
        size if size < size_of::<usize>() => {
            Err(VersionError::TooShort { record: T::NAME, size, needed: size_of::<usize>() })
        }
        size => Ok(size),
    }
}

/// Returns a copy of the host's struct, in which the fields that it does not cover are 0 or null.
///
/// # Safety
/// `record` is null or points to a struct of which `struct_size` bytes can be read.
pub unsafe fn read<T: Versioned>(record: *const T) -> Result<T, VersionError> {
    // SAFETY: `record` is null, or points to a struct with `struct_size` readable bytes.
    let host = unsafe { size_of_host(record)? };
    let mut copy = T::default();
    // SAFETY: only bytes of fields within both structs; every field of the host's has a value of its
    // type, and in `copy` no field overlaps another.
    unsafe {
        (&raw mut copy).cast::<usize>().write(host);
        for field in T::FIELDS.iter().filter(|field| field.end <= host) {
            let from = record.cast::<u8>().add(field.start);
            let to = (&raw mut copy).cast::<u8>().add(field.start);
            ptr::copy_nonoverlapping(from, to, field.len());
        }
    }
    Ok(copy)
}

/// Refuses a struct of the host that has fewer than `needed` bytes.
///
/// # Safety
/// `record` is null or points to a struct that begins with `struct_size`.
pub(crate) unsafe fn require<T: Versioned>(
    record: *const T,
    needed: usize,
) -> Result<(), VersionError> {
    // SAFETY: `record` is null, or points to a struct that begins with `struct_size`.
    let size = unsafe { size_of_host(record)? };
    if size < needed {
        return Err(VersionError::TooShort { record: T::NAME, size, needed });
    }
    Ok(())
}

/// Returns a copy as [`read`] does, and refuses a struct that has fewer than `needed` bytes.
///
/// # Safety
/// As for [`read`].
pub(crate) unsafe fn read_at_least<T: Versioned>(
    record: *const T,
    needed: usize,
) -> Result<T, VersionError> {
    // SAFETY: `record` is null, or points to a struct with `struct_size` readable bytes.
    unsafe {
        require(record, needed)?;
        read(record)
    }
}

/// Copies the fields that the host's struct covers into it, and sets its `struct_size` to the end of the
/// last of them. Returns that size.
///
/// # Safety
/// `record` is null or points to a struct of which `struct_size` bytes can be written.
#[inline]
pub unsafe fn fill<T: Versioned>(record: *mut T, with: &T) -> Result<usize, VersionError> {
    // SAFETY: `record` is null, or points to a struct with `struct_size` writable bytes.
    let host = unsafe { size_of_host(record)? };
    if host >= T::STRUCT_SIZE {
        // SAFETY: all bytes up to the end of the last field, which are within both structs.
        unsafe {
            let behind = size_of::<usize>();
            ptr::copy_nonoverlapping(
                ptr::from_ref(with).cast::<u8>().add(behind),
                record.cast::<u8>().add(behind),
                T::STRUCT_SIZE - behind,
            );
            record.cast::<usize>().write(T::STRUCT_SIZE);
        }
        return Ok(T::STRUCT_SIZE);
    }
    // SAFETY: `record` is not null and covers the `host` bytes that `size_of_host` returned.
    Ok(unsafe { fill_part(record, with, host) })
}

/// Does the work of [`fill`] for a struct that ends before the last field.
///
/// # Safety
/// `record` points to a struct of which `host` bytes can be written, `struct_size` among them.
#[cold]
unsafe fn fill_part<T: Versioned>(record: *mut T, with: &T, host: usize) -> usize {
    let mut filled = size_of::<usize>();
    // SAFETY: only bytes of fields within both structs.
    unsafe {
        for field in T::FIELDS.iter().filter(|field| field.end <= host) {
            let from = ptr::from_ref(with).cast::<u8>().add(field.start);
            ptr::copy_nonoverlapping(from, record.cast::<u8>().add(field.start), field.len());
            filled = field.end;
        }
        record.cast::<usize>().write(filled);
    }
    filled
}

/// Returns one field of a host's struct, or `None` if there is no struct or it does not cover the field. An
/// unsafe operation: the pointer is null or points to a struct of which `struct_size` bytes can be read.
macro_rules! field {
    ($record:expr => $type:ident.$field:ident) => {
        $crate::abi::versions::read_field(
            $record,
            core::mem::offset_of!($type, $field),
            |record: &$type| &record.$field,
        )
    };
}
pub(crate) use field;

/// Implements `field!`.
///
/// # Safety
/// `record` is null or points to a struct of which `struct_size` bytes can be read; `offset` is that of
/// the field that `pick` picks.
#[inline]
pub(crate) unsafe fn read_field<T: Versioned, V: Copy>(
    record: *const T,
    offset: usize,
    _pick: fn(&T) -> &V,
) -> Option<V> {
    // SAFETY: `record` is null, or points to a struct with `struct_size` readable bytes.
    let host = unsafe { size_of_host(record).ok()? };
    // SAFETY: the field lies within the struct, as was just checked.
    (offset + size_of::<V>() <= host)
        .then(|| unsafe { record.cast::<u8>().add(offset).cast::<V>().read() })
}

/// Refuses a host with another major version. Minor and patch versions do not matter: releases have
/// appended fields without raising them.
pub(crate) fn check_major_version(
    api: &'static str,
    ours: [i32; 3],
    host: [i32; 3],
) -> Result<(), VersionError> {
    if ours[0] == host[0] { Ok(()) } else { Err(VersionError::MajorVersion { api, ours, host }) }
}

#[cfg(test)]
mod tests;

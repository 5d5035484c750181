//! The versioning strategy of the C API, all of it.
//!
//! A struct of the API begins with `struct_size`: the end of the last field that the side which made the
//! struct knows. Fields are only ever appended, and 0 or null means "not provided". From this follow the
//! rules, each of which is one function here:
//!
//! - A field of the host's struct is read only if `struct_size` covers it; else it reads as 0 or null
//!   ([`read`], `field!`).
//! - A field is written only if `struct_size` covers it, because beyond is the host's stack; then
//!   `struct_size` says how far the struct is filled ([`fill`]).
//! - Fields that only a newer host knows are left alone.
//! - `struct_size` 0 is refused ([`Refusal::NoSize`]), and so is another major version
//!   ([`check_major_version`]).

use core::fmt;
use core::ptr;
use tf_fs_sys::{
    SE_CreateDeviceFnsParams, SE_CreateDeviceParams, SE_CreateStreamExecutorParams,
    SE_PlatformRegistrationParams, SP_AllocatorStats, SP_Device, SP_DeviceFns, SP_DeviceMemoryBase,
    SP_Platform, SP_PlatformFns, SP_StreamExecutor, SP_StreamOptions, SP_TimerFns,
    TF_ProfilerRegistrationParams, TP_Optimizer, TP_OptimizerConfigs,
    TP_OptimizerRegistrationParams, TP_Profiler, TP_ProfilerFns,
};
use tf_plugin_core::Error;

/// A field behind `struct_size`: where it begins and how long it is, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    pub(crate) offset: usize,
    pub(crate) size: usize,
}

impl Field {
    pub(crate) const fn end(self) -> usize {
        self.offset + self.size
    }
}

/// A struct that begins with `struct_size`.
///
/// # Safety
/// `struct_size` is the first field, zeros are a valid value, and `FIELDS` are all other fields.
pub unsafe trait Versioned: Copy + Default {
    /// The name in the header.
    const NAME: &'static str;
    /// All fields but `struct_size`, in their order.
    const FIELDS: &'static [Field];
    /// The end of the last field.
    const STRUCT_SIZE: usize;
}

/// The size of the field that the function picks.
const fn size_of_field<Record, Value>(_pick: fn(&Record) -> &Value) -> usize {
    size_of::<Value>()
}

/// Where the field that the function picks lies, if it begins at `offset`.
pub(crate) const fn field_at<Record, Value>(offset: usize, pick: fn(&Record) -> &Value) -> Field {
    Field { offset, size: size_of_field(pick) }
}

macro_rules! versioned {
    ($($record:ident { $($field:ident),* $(,)? })*) => {
        $(
            // SAFETY: `struct_size` comes first in each of these structs of integers, pointers and optional
            // functions; that the list is complete is what the pattern below checks.
            unsafe impl Versioned for $record {
                const NAME: &'static str = stringify!($record);
                const FIELDS: &'static [Field] = &[
                    $(field_at(core::mem::offset_of!($record, $field), |record: &$record| &record.$field)),*
                ];
                const STRUCT_SIZE: usize = {
                    let fields = <$record as Versioned>::FIELDS;
                    fields[fields.len() - 1].end()
                };
            }
            const _: fn($record) = |$record { struct_size: _, $($field: _),* }| {};
            const _: () = assert!(core::mem::offset_of!($record, struct_size) == 0);
        )*

        #[cfg(test)]
        fn every_size_of_each() {
            $(tests::every_size::<$record>();)*
        }
    };
}

versioned! {
    SE_PlatformRegistrationParams {
        ext, major_version, minor_version, patch_version, platform, platform_fns, destroy_platform,
        destroy_platform_fns,
    }
    SP_Platform { ext, name, r#type, supports_unified_memory, use_bfc_allocator, force_memory_growth }
    SP_PlatformFns {
        ext, get_device_count, create_device, destroy_device, create_device_fns, destroy_device_fns,
        create_stream_executor, destroy_stream_executor, create_timer_fns, destroy_timer_fns,
    }
    SE_CreateDeviceParams { ext, ordinal, device }
    SP_Device { ext, ordinal, device_handle, hardware_name, device_vendor, pci_bus_id }
    SE_CreateDeviceFnsParams { ext, device_fns }
    SP_DeviceFns { ext, get_numa_node, get_memory_bandwidth, get_gflops }
    SE_CreateStreamExecutorParams { ext, stream_executor }
    SP_StreamExecutor {
        ext, allocate, deallocate, host_memory_allocate, host_memory_deallocate,
        unified_memory_allocate, unified_memory_deallocate, get_allocator_stats, device_memory_usage,
        create_stream, destroy_stream, create_stream_dependency, get_stream_status, create_event,
        destroy_event, get_event_status, record_event, wait_for_event, create_timer, destroy_timer,
        start_timer, stop_timer, memcpy_dtoh, memcpy_htod, memcpy_dtod, sync_memcpy_dtoh,
        sync_memcpy_htod, sync_memcpy_dtod, block_host_for_event, block_host_until_done,
        synchronize_all_activity, mem_zero, memset, memset32, host_callback,
    }
    SP_StreamOptions { ext, has_priority, priority }
    SP_TimerFns { ext, nanoseconds }
    SP_AllocatorStats {
        num_allocs, bytes_in_use, peak_bytes_in_use, largest_alloc_size, has_bytes_limit, bytes_limit,
        bytes_reserved, peak_bytes_reserved, has_bytes_reservable_limit, bytes_reservable_limit,
        largest_free_block_bytes,
    }
    SP_DeviceMemoryBase { ext, opaque, size, payload }
    TP_OptimizerRegistrationParams {
        ext, major_version, minor_version, patch_version, device_type, optimizer_configs, optimizer,
    }
    TP_Optimizer { ext, create_func, optimize_func, destroy_func }
    TP_OptimizerConfigs {
        ext, disable_model_pruning, implementation_selector, function_optimization,
        common_subgraph_elimination, arithmetic_optimization, debug_stripper, constant_folding,
        shape_optimization, auto_mixed_precision, auto_mixed_precision_onednn_bfloat16,
        auto_mixed_precision_mkl, pin_to_host_optimization, layout_optimizer, remapping,
        loop_optimization, dependency_optimization, auto_parallel, memory_optimization,
        scoped_allocator_optimization,
    }
    TF_ProfilerRegistrationParams {
        ext, major_version, minor_version, patch_version, profiler, profiler_fns, destroy_profiler,
        destroy_profiler_fns,
    }
    TP_Profiler { ext, device_type }
    TP_ProfilerFns { ext, start, stop, collect_data_xspace }
}

/// Why a struct of the host is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is no struct.
    Null { record: &'static str },
    /// `struct_size` is 0: the struct is not initialised.
    NoSize { record: &'static str },
    /// `struct_size` does not reach as far as this plugin needs.
    TooShort { record: &'static str, found: usize, needed: usize },
    /// The host has another major version.
    MajorVersion { api: &'static str, ours: [i32; 3], host: [i32; 3] },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null { record } => {
                write!(f, "TensorFlow passed no {record}; use a release from 2.12 on")
            }
            Self::NoSize { record } => write!(
                f,
                "the struct_size of TensorFlow's {record} is 0; use a release from 2.12 on"
            ),
            Self::TooShort { record, found, needed } => write!(
                f,
                "TensorFlow's {record} has {found} bytes and this plugin needs {needed}; use a release \
                 from 2.12 on"
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

impl From<Refusal> for Error {
    #[cold]
    fn from(refusal: Refusal) -> Self {
        Self::invalid_argument(refusal)
    }
}

/// The `struct_size` of a struct of the host.
///
/// # Safety
/// `record` is null or points to a struct that begins with `struct_size`.
#[inline]
pub(crate) unsafe fn size_of_host<T: Versioned>(record: *const T) -> Result<usize, Refusal> {
    if record.is_null() {
        return Err(Refusal::Null { record: T::NAME });
    }
    // SAFETY: non-null; `struct_size` is the first field, as `Versioned` promises.
    match unsafe { record.cast::<usize>().read() } {
        0 => Err(Refusal::NoSize { record: T::NAME }),
        // What does not even cover `struct_size` itself means as little.
        found if found < size_of::<usize>() => {
            Err(Refusal::TooShort { record: T::NAME, found, needed: size_of::<usize>() })
        }
        found => Ok(found),
    }
}

/// A copy of the host's struct in which the fields that it does not cover are 0 or null.
///
/// # Safety
/// `record` is null or points to a struct of which `struct_size` bytes can be read.
pub unsafe fn read<T: Versioned>(record: *const T) -> Result<T, Refusal> {
    // SAFETY: `record` is null, or points to a struct with `struct_size` readable bytes.
    let host = unsafe { size_of_host(record)? };
    let mut copy = T::default();
    // SAFETY: only bytes of fields within both structs; every field of the host's has a value of its
    // type, and in `copy` no field overlaps another.
    unsafe {
        (&raw mut copy).cast::<usize>().write(host);
        for field in T::FIELDS.iter().filter(|field| field.end() <= host) {
            let from = record.cast::<u8>().add(field.offset);
            ptr::copy_nonoverlapping(
                from,
                (&raw mut copy).cast::<u8>().add(field.offset),
                field.size,
            );
        }
    }
    Ok(copy)
}

/// As [`read`], for a struct without which nothing can be done unless `needed` bytes of it are there.
///
/// # Safety
/// As for [`read`].
pub(crate) unsafe fn read_at_least<T: Versioned>(
    record: *const T,
    needed: usize,
) -> Result<T, Refusal> {
    // SAFETY: `record` is null, or points to a struct with `struct_size` readable bytes.
    unsafe {
        let found = size_of_host(record)?;
        if found < needed {
            return Err(Refusal::TooShort { record: T::NAME, found, needed });
        }
        read(record)
    }
}

/// Copies the fields that the host's struct covers into it, and sets its `struct_size` to the end of the
/// last of them. Answers that size.
///
/// # Safety
/// `record` is null or points to a struct of which `struct_size` bytes can be written.
#[inline]
pub unsafe fn fill<T: Versioned>(record: *mut T, with: &T) -> Result<usize, Refusal> {
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

/// The rest of [`fill`], for a struct that ends before the last field.
///
/// # Safety
/// `record` points to a struct of which `host` bytes can be written, `struct_size` among them.
#[cold]
unsafe fn fill_part<T: Versioned>(record: *mut T, with: &T, host: usize) -> usize {
    let mut filled = size_of::<usize>();
    // SAFETY: only bytes of fields within both structs.
    unsafe {
        for field in T::FIELDS.iter().filter(|field| field.end() <= host) {
            let from = ptr::from_ref(with).cast::<u8>().add(field.offset);
            ptr::copy_nonoverlapping(from, record.cast::<u8>().add(field.offset), field.size);
            filled = field.end();
        }
        record.cast::<usize>().write(filled);
    }
    filled
}

/// One field of a host's struct, or `None` if there is no struct or it does not cover the field. An
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

/// The body of `field!`.
///
/// # Safety
/// `record` is null or points to a struct of which `struct_size` bytes can be read; `offset` is that of
/// the field that `pick` picks.
#[inline]
pub(crate) unsafe fn read_field<T: Versioned, V: Copy>(
    record: *const T,
    offset: usize,
    pick: fn(&T) -> &V,
) -> Option<V> {
    // SAFETY: `record` is null, or points to a struct with `struct_size` readable bytes.
    let host = unsafe { size_of_host(record).ok()? };
    // SAFETY: the field lies within the struct, as was just checked.
    (field_at(offset, pick).end() <= host)
        .then(|| unsafe { record.cast::<u8>().add(offset).cast::<V>().read() })
}

/// Refuses a host whose major version is another. Minor and patch versions tell nothing: releases
/// appended fields without raising them.
pub(crate) fn check_major_version(
    api: &'static str,
    ours: [i32; 3],
    host: [i32; 3],
) -> Result<(), Refusal> {
    if ours[0] == host[0] { Ok(()) } else { Err(Refusal::MajorVersion { api, ours, host }) }
}

#[cfg(test)]
mod tests;

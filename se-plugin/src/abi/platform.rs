//! The plugin's entry point, and the callbacks of the platform.

use super::device_type::device_type;
use super::executor;
use super::exports::PlatformExport;
use super::loads::{initialize, name_of_load};
use super::state::{DeviceState, into_handle, share, take};
use super::versions::{
    self, VersionError, Versioned as _, check_major_version, field, fill, read_at_least,
};
use crate::device_limit::limit;
use crate::kernel::register::{register as register_kernels, register_optional};
use crate::platform::Platform;
use core::ffi::{c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};
use std::ffi::CString;
use std::sync::{Arc, OnceLock};
use tf_fs_sys::{
    Record as _, SE_CreateDeviceFnsParams, SE_CreateDeviceParams, SE_CreateStreamExecutorParams,
    SE_MAJOR, SE_MINOR, SE_PATCH, SE_PlatformRegistrationParams, SP_Device, SP_Platform,
    SP_PlatformFns, SP_StreamExecutor, SP_TimerFns, TF_Status,
};
use tf_plugin_core::__private::boundary::{self, guard, guard_logged, log_error};
use tf_plugin_core::{Error, Result};

/// A platform as one load registers it; `SP_Platform::ext` is a counted reference to it.
struct PlatformState<P: Platform> {
    name: CString,
    kind: CString,
    /// Whether there will be no devices, if that is known before they are counted.
    declined: AtomicBool,
    devices: OnceLock<Vec<Arc<DeviceState<P::Device>>>>,
    /// The author's platform. It has opened the devices, and may own what they use.
    platform: OnceLock<P>,
}

impl<P: Platform> PlatformState<P> {
    /// Creates the platform of a load. A repeated load has no devices, and another name and type, since
    /// TensorFlow aborts on one that is registered already.
    fn new(load: usize) -> Result<Self> {
        let name = |name: &str| CString::new(name_of_load(name, load)).map_err(Error::internal);
        Ok(Self {
            name: name(P::NAME)?,
            kind: name(device_type::<P>())?,
            declined: AtomicBool::new(load > 0),
            devices: OnceLock::new(),
            platform: OnceLock::new(),
        })
    }

    /// Records that there will be no devices, and logs why.
    fn decline(&self, why: &dyn core::fmt::Display) {
        if !self.declined.swap(true, Ordering::AcqRel) {
            log_error(&format_args!("{} has no devices: {why}", P::TYPE));
        }
    }

    /// Returns the devices, which are opened when they are first counted: TensorFlow 2.12 and 2.13 abort if
    /// one that was counted cannot be opened.
    fn devices(&self) -> &[Arc<DeviceState<P::Device>>] {
        self.devices.get_or_init(|| {
            let mut devices = Vec::new();
            if self.declined.load(Ordering::Acquire) {
                return devices;
            }
            let limit = limit();
            if limit == 0 {
                register_optional::<P>();
                return devices;
            }
            let opened = boundary::catch("get_device_count", || {
                let new = P::new()?;
                let platform = self.platform.get_or_init(|| new);
                let count = platform.device_count()?.min(limit).min(c_int::MAX as usize);
                for ordinal in 0..count {
                    let device = platform.open(ordinal)?;
                    let insists = P::USE_BFC_ALLOCATOR;
                    let state = DeviceState::new(device, insists, P::FORCE_MEMORY_GROWTH)?;
                    devices.push(Arc::new(state));
                }
                Ok(())
            });
            match opened {
                Ok(()) => {}
                Err(error) if devices.is_empty() => {
                    log_error(&format_args!("{} has no devices: {error:#}", P::TYPE));
                }
                Err(error) => log_error(&format_args!(
                    "{} has {} devices, the next cannot be opened: {error:#}",
                    device_type::<P>(),
                    devices.len()
                )),
            }
            // Without devices, they only tell tools which kernels there are.
            let has_optional = boundary::catch("has_optional_kernels", || {
                let platform = self.platform.get();
                Ok(devices.is_empty() || platform.is_some_and(P::has_optional_kernels))
            });
            match has_optional {
                Ok(true) => register_optional::<P>(),
                Ok(false) => {}
                Err(error) => {
                    log_error(&format_args!("optional kernels are not registered: {error:#}"))
                }
            }
            devices
        })
    }
}

/// Implements `SE_InitPlugin`.
///
/// TensorFlow aborts on an error from here. So after a failure the tables are complete, the status is OK and
/// there are 0 devices. Only without room for the tables does TensorFlow abort; the status says why.
///
/// # Safety
/// `params` is null, or points to a struct of which `struct_size` bytes can be read and written, and so do
/// the pointers in it; `status` is null or a status of the host.
pub unsafe fn init_plugin<P: Platform>(
    params: *mut SE_PlatformRegistrationParams,
    status: *mut TF_Status,
    export: &PlatformExport,
) {
    let body = || {
        let load = export.loads.fetch_add(1, Ordering::AcqRel);
        // SAFETY: `params` is null or covers `struct_size` bytes, as the host's call of `SE_InitPlugin`
        // guarantees.
        unsafe { register::<P>(params, load, export)? };
        if load == 0 {
            register_kernels::<P>();
        }
        Ok(())
    };
    // SAFETY: `status` is null or a status of the host.
    unsafe { initialize("SE_InitPlugin", &device_type::<P>(), status, body) };
}

/// Registers the platform.
/// # Safety
/// As for [`init_plugin`].
unsafe fn register<P: Platform>(
    params: *mut SE_PlatformRegistrationParams,
    load: usize,
    export: &PlatformExport,
) -> Result<()> {
    // SAFETY: `params` is null or covers `struct_size` readable bytes.
    let host = unsafe { read_at_least(params, SE_PlatformRegistrationParams::STRUCT_SIZE) };
    let host = host?;
    let state = Arc::new(PlatformState::<P>::new(load)?);
    let _ = export.kind.set(state.kind.clone());
    let version = check_major_version(
        "StreamExecutor",
        [SE_MAJOR, SE_MINOR, SE_PATCH],
        [host.major_version, host.minor_version, host.patch_version],
    );
    if let Err(refusal) = version {
        state.decline(&refusal);
    }
    let platform = SP_Platform {
        name: state.name.as_ptr(),
        r#type: state.kind.as_ptr(),
        supports_unified_memory: 0,
        use_bfc_allocator: P::USE_BFC_ALLOCATOR.into(),
        force_memory_growth: P::FORCE_MEMORY_GROWTH.into(),
        ext: into_handle::<_, c_void>(state),
        ..SP_Platform::default()
    };
    // SAFETY: `host.platform` and `host.platform_fns` are null or cover `struct_size` bytes; `params` covers
    // all fields, as `read_at_least` has seen. The strings live in the state, as long as `ext`.
    unsafe {
        let needed = core::mem::offset_of!(SP_Platform, r#type) + size_of_val(&platform.r#type);
        let room = read_at_least(host.platform, needed);
        let room = room.and_then(|_| {
            let needed = core::mem::offset_of!(SP_PlatformFns, create_timer_fns);
            read_at_least(host.platform_fns, needed)
        });
        if let Err(refusal) = room {
            drop(take::<PlatformState<P>, _>(platform.ext));
            return Err(refusal.into());
        }
        fill(host.platform, &platform)?;
        fill(host.platform_fns, &platform_fns::<P>())?;
        (*params).destroy_platform = Some(destroy_platform::<P>);
        (*params).destroy_platform_fns = Some(destroy_platform_fns);
    }
    Ok(())
}

const fn platform_fns<P: Platform>() -> SP_PlatformFns {
    SP_PlatformFns {
        struct_size: SP_PlatformFns::STRUCT_SIZE,
        ext: ptr::null_mut(),
        get_device_count: Some(get_device_count::<P>),
        create_device: Some(create_device::<P>),
        destroy_device: Some(destroy_device::<P>),
        create_device_fns: Some(create_device_fns::<P>),
        destroy_device_fns: Some(destroy_table),
        create_stream_executor: Some(create_stream_executor::<P>),
        destroy_stream_executor: Some(destroy_table),
        create_timer_fns: Some(create_timer_fns::<P>),
        destroy_timer_fns: Some(destroy_table),
    }
}

/// Returns the platform of a struct of the host's.
///
/// # Safety
/// `platform` is null or was filled by [`register`] for this `P`.
unsafe fn state<P: Platform>(platform: *const SP_Platform) -> Result<Arc<PlatformState<P>>> {
    // SAFETY: `platform` is null, or `register` filled it: `ext` is then from an `Arc<PlatformState<P>>` that
    // lives until `destroy_platform`.
    let state =
        unsafe { field!(platform => SP_Platform.ext).and_then(|ext| share::<_, c_void>(ext)) };
    state.ok_or_else(|| {
        Error::failed_precondition("TensorFlow passed no platform, or a destroyed one")
    })
}

unsafe extern "C" fn destroy_platform<P: Platform>(platform: *mut SP_Platform) {
    let body = || {
        // SAFETY: the host passes the struct that `register` has filled, which covers `ext` if `field!`
        // finds it; `ext` is cleared, so the reference is given back once.
        unsafe {
            if let Some(ext) = field!(platform => SP_Platform.ext) {
                (*platform).ext = ptr::null_mut();
                drop(take::<PlatformState<P>, c_void>(ext));
            }
        }
        Ok(())
    };
    guard_logged("destroy_platform", || (), body);
}

unsafe extern "C" fn destroy_platform_fns(_: *mut SP_PlatformFns) {}

/// Callbacks of a platform that have a status.
macro_rules! callbacks {
    ($(fn $name:ident($platform:ident $(, $argument:ident: $type:ty)*) $body:block)*) => {$(
        unsafe extern "C" fn $name<P: Platform>(
            $platform: *const SP_Platform,
            $($argument: $type,)*
            status: *mut TF_Status,
        ) {
            // SAFETY: the host passes the platform, a status, and between them null, places to fill, or structs with
            // their sizes.
            unsafe { guard(stringify!($name), status, (), || $body) };
        }
    )*};
}

callbacks! {
    fn get_device_count(platform, count: *mut c_int) {
        let devices = state::<P>(platform).map(|state| state.devices().len());
        if let Some(count) = count.as_mut() {
            *count = *devices.as_ref().unwrap_or(&0) as c_int;
        }
        devices.map(drop)
    }
    fn create_device(platform, params: *mut SE_CreateDeviceParams) {
        let params = read_at_least(params, SE_CreateDeviceParams::STRUCT_SIZE)?;
        let needed = core::mem::offset_of!(SP_Device, hardware_name);
        read_at_least(params.device, needed)?;
        let state = state::<P>(platform)?;
        let ordinal = params.ordinal;
        let device = usize::try_from(ordinal).ok().and_then(|at| state.devices().get(at));
        let device = device.ok_or_else(|| {
            Error::invalid_argument(format!(
                "{} has no device {ordinal}: there are {}",
                device_type::<P>(),
                state.devices().len()
            ))
        })?;
        let [name, vendor, pci] =
            device.description().map(|text| text.map_or(ptr::null(), core::ffi::CStr::as_ptr));
        // The strings live as long as the handle, which `destroy_device` takes back.
        let described = SP_Device {
            ordinal,
            device_handle: into_handle::<_, c_void>(Arc::clone(device)),
            hardware_name: name,
            device_vendor: vendor,
            pci_bus_id: pci,
            ..SP_Device::default()
        };
        fill(params.device, &described)?;
        Ok(())
    }
    fn create_device_fns(platform, params: *mut SE_CreateDeviceFnsParams) {
        let filled = read_at_least(params, SE_CreateDeviceFnsParams::STRUCT_SIZE)
            .and_then(|params| fill(params.device_fns, &executor::device_fns::<P::Device>()));
        note::<P>(platform, filled.map(drop))
    }
    fn create_stream_executor(platform, params: *mut SE_CreateStreamExecutorParams) {
        let filled = read_at_least(params, SE_CreateStreamExecutorParams::STRUCT_SIZE);
        let filled = filled.and_then(|params| {
            let size = versions::size_of_host(params.stream_executor)?;
            fill(params.stream_executor, &executor::table::<P::Device>())?;
            let needed = SP_StreamExecutor::STRUCT_SIZE;
            if size < needed {
                let record = SP_StreamExecutor::NAME;
                return Err(VersionError::TooShort { record, size, needed });
            }
            executor::add_stream_options::<P::Device>(params.stream_executor, size);
            Ok(())
        });
        note::<P>(platform, filled)
    }
    fn create_timer_fns(platform, timer_fns: *mut SP_TimerFns) {
        let filled = fill(timer_fns, &executor::timer_fns::<P::Device>());
        note::<P>(platform, filled.map(drop))
    }
}

unsafe extern "C" fn destroy_device<P: Platform>(_: *const SP_Platform, device: *mut SP_Device) {
    let body = || {
        // SAFETY: the host passes a struct that `create_device` has filled, which covers the handle if
        // `field!` finds it; the handle is cleared, so the reference is given back once.
        unsafe {
            if let Some(handle) = field!(device => SP_Device.device_handle) {
                (*device).device_handle = ptr::null_mut();
                drop(take::<DeviceState<P::Device>, c_void>(handle));
            }
        }
        Ok(())
    };
    guard_logged("destroy_device", || (), body);
}

/// Declines all devices if a struct of the host's could not be filled. An error would abort the process.
///
/// # Safety
/// As for [`state`].
unsafe fn note<P: Platform>(
    platform: *const SP_Platform,
    filled: Result<(), VersionError>,
) -> Result<()> {
    if let Err(refusal) = filled {
        // SAFETY: `platform` is null, or `register` filled it for this `P`.
        unsafe { state::<P>(platform)? }.decline(&refusal);
    }
    Ok(())
}

/// Does nothing: a table owns nothing.
unsafe extern "C" fn destroy_table<T>(_: *const SP_Platform, _: *mut T) {}

//! Opens a plugin and calls its entry points, in the order of `import tensorflow` and then of
//! `register_filesystem_plugin`.

use std::cell::RefCell;
use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::mem::{offset_of, transmute};
use std::path::Path;
use std::process::ExitCode;
use std::ptr::NonNull;

use cargo_tf_plugin::host::{Library, sized, text};
use cargo_tf_plugin::probe::{Event, Platform, Slot, Table};
use cargo_tf_plugin::tables;
use tf_fs_sys::*;

use super::events::{begin, leave, step, tell};
use super::stubs::Status;

/// Loads `plugin` and writes what it does to the file `report`.
pub(crate) fn run(plugin: &OsStr, report: &OsStr) -> ExitCode {
    if let Err(error) = begin(report) {
        eprintln!("error: cannot write {}: {error}", Path::new(report).display());
        return ExitCode::FAILURE;
    }
    step("dlopen");
    match Library::open(Path::new(plugin)) {
        Ok(library) => {
            let loaded = Loaded(library);
            loaded.imported();
            loaded.registered();
            loaded.described();
            tell(&Event::Done);
        }
        Err(reason) => tell(&Event::Refused(reason)),
    }
    leave()
}

/// More devices than this are not created to learn their names.
const MOST_NAMED: c_int = 16;

/// Reports the name of a device's hardware, if it has one. Returns `None` if the device cannot be created.
fn name_device(platform: &SP_Platform, fns: &SP_PlatformFns, ordinal: c_int) -> Option<()> {
    let (create, destroy) = (fns.create_device?, fns.destroy_device?);
    let device = guarded(sized::<SP_Device>());
    let mut params = SE_CreateDeviceParams { ordinal, device, ..sized() };
    // SAFETY: the platform as the plugin has filled it, structs with their sizes and a status.
    if !call("create_device", |status| unsafe { create(platform, &raw mut params, status) }) {
        return None;
    }
    // SAFETY: a string of the plugin's, or null.
    if let Some(name) = unsafe { text(device.hardware_name) } {
        tell(&Event::Hardware(name));
    }
    step("destroy_device");
    // SAFETY: a device that the plugin has created, destroyed once.
    unsafe { destroy(platform, device) };
    Some(())
}

/// A plugin's library, whose contents this reports.
pub(super) struct Loaded(pub(super) Library);

impl Loaded {
    /// Calls the entry points that `import tensorflow` calls.
    fn imported(&self) {
        // SAFETY: the type that the header gives to each of these names; `TF_InitKernel` takes no arguments.
        unsafe {
            let device = self.0.symbol(c"SE_InitPlugin");
            let device = device.map(|at| transmute::<NonNull<c_void>, SE_InitPluginFn>(at));
            let count_devices = device.and_then(|function| self.device(function));
            if let Some(function) = self.0.symbol(c"TF_InitKernel") {
                step("TF_InitKernel");
                transmute::<NonNull<c_void>, TF_InitKernelFn>(function)();
            }
            if let Some(function) = self.0.symbol(c"TF_InitGraph") {
                self.graph(transmute::<NonNull<c_void>, TF_InitGraphFn>(function));
            }
            if let Some(function) = self.0.symbol(c"TF_InitProfiler") {
                self.profiler(transmute::<NonNull<c_void>, TF_InitProfilerFn>(function));
            }
            if let Some(count_devices) = count_devices {
                count_devices();
            }
        }
    }

    /// Reports the description of the library's ops, if it has one.
    fn described(&self) {
        let Some(function) = self.0.symbol(c"tf_plugin_ops") else { return };
        step("tf_plugin_ops");
        // SAFETY: the SDK's `op_plugin!` gives this type to the name.
        let function = unsafe {
            transmute::<NonNull<c_void>, unsafe extern "C" fn() -> *const c_char>(function)
        };
        // SAFETY: it returns null, or a C string that lasts as long as the library.
        if let Some(description) = unsafe { text(function()) } {
            tell(&Event::Ops(description));
        }
    }

    /// Loads the device. Returns a function that counts the devices, if the plugin offers that.
    fn device(&self, function: SE_InitPluginFn) -> Option<impl FnOnce() + use<>> {
        let (platform, fns) = (guarded(sized::<SP_Platform>()), guarded(sized::<SP_PlatformFns>()));
        let params = guarded(SE_PlatformRegistrationParams {
            major_version: SE_MAJOR,
            minor_version: SE_MINOR,
            patch_version: SE_PATCH,
            platform,
            platform_fns: fns,
            ..sized()
        });
        // SAFETY: structs with their sizes, and a status.
        if !call("SE_InitPlugin", |status| unsafe { function(params, status) }) {
            return None;
        }
        step("reading what SE_InitPlugin has filled in");
        // SAFETY: strings of the plugin's, or null.
        let (name, device_type) = unsafe { (text(platform.name), text(platform.r#type)) };
        let fns = *fns;
        tell(&Event::Platform(Platform {
            name,
            device_type,
            size: platform.struct_size as u64,
            unified_memory: platform.supports_unified_memory != 0,
            bfc_allocator: platform.use_bfc_allocator != 0,
            memory_growth: platform.force_memory_growth != 0,
            destroy: [params.destroy_platform.is_some(), params.destroy_platform_fns.is_some()],
            functions: self.functions(&fns),
        }));
        let platform: &'static SP_Platform = platform;
        if let Some(create) = fns.create_device_fns {
            self.filled("create_device_fns", sized(), |table, status| {
                let mut params = SE_CreateDeviceFnsParams { device_fns: table, ..sized() };
                // SAFETY: the platform that the plugin has filled, structs with their sizes and a status.
                unsafe { create(platform, &raw mut params, status) }
            })?;
        }
        if let Some(create) = fns.create_stream_executor {
            // With the last field that TensorFlow 2.22 has, which no older plugin touches.
            let table = SP_StreamExecutorWithStreamOptions {
                executor: SP_StreamExecutor {
                    struct_size: SP_STREAMEXECUTOR_WITH_STREAM_OPTIONS_STRUCT_SIZE,
                    ..Default::default()
                },
                create_stream_with_options: None,
            };
            self.filled("create_stream_executor", table, |table, status| {
                let stream_executor = table.cast();
                let mut params = SE_CreateStreamExecutorParams { stream_executor, ..sized() };
                // SAFETY: the platform that the plugin has filled, structs with their sizes and a status.
                unsafe { create(platform, &raw mut params, status) }
            })?;
        }
        if let Some(create) = fns.create_timer_fns {
            self.filled("create_timer_fns", sized(), |table, status| {
                // SAFETY: the platform that the plugin has filled, a struct with its size and a status.
                unsafe { create(platform, table, status) }
            })?;
        }
        let count = fns.get_device_count?;
        Some(move || {
            let mut devices: c_int = 0;
            let fine = call("get_device_count", |status| {
                // SAFETY: the platform as the plugin has filled it, a number and a status.
                unsafe { count(platform, &raw mut devices, status) }
            });
            if fine {
                tell(&Event::Devices(devices.into()));
                let mut ordinals = 0..devices.min(MOST_NAMED);
                let _ = ordinals.try_for_each(|ordinal| name_device(platform, &fns, ordinal));
            }
        })
    }

    /// Lets a function fill a table, and reports the table. Returns `None` if the function fails.
    fn filled<T: Record + Copy + 'static>(
        &self,
        name: &str,
        table: T,
        function: impl FnOnce(*mut T, *mut TF_Status),
    ) -> Option<()> {
        let table = guarded(table);
        let fine = call(name, |status| function(table, status));
        fine.then(|| tell(&Event::Functions(self.functions(table))))
    }

    fn graph(&self, function: TF_InitGraphFn) {
        let optimizer = guarded(sized::<TP_Optimizer>());
        let params = guarded(TP_OptimizerRegistrationParams {
            major_version: GO_MAJOR,
            minor_version: GO_MINOR,
            patch_version: GO_PATCH,
            optimizer_configs: guarded(sized::<TP_OptimizerConfigs>()),
            optimizer,
            ..sized()
        });
        // SAFETY: structs with their sizes, and a status.
        if call("TF_InitGraph", |status| unsafe { function(params, status) }) {
            tell(&Event::Optimizer {
                // SAFETY: a string of the plugin's, or null.
                device_type: unsafe { text(params.device_type) },
                functions: self.functions(optimizer),
            });
        }
    }

    fn profiler(&self, function: TF_InitProfilerFn) {
        let (profiler, fns) = (guarded(sized::<TP_Profiler>()), guarded(sized::<TP_ProfilerFns>()));
        let params = guarded(TF_ProfilerRegistrationParams {
            major_version: TP_MAJOR,
            minor_version: TP_MINOR,
            patch_version: TP_PATCH,
            profiler,
            profiler_fns: fns,
            ..sized()
        });
        // SAFETY: structs with their sizes, and a status.
        if call("TF_InitProfiler", |status| unsafe { function(params, status) }) {
            tell(&Event::Profiler {
                // SAFETY: a string of the plugin's, or null.
                device_type: unsafe { text(profiler.device_type) },
                functions: self.functions(fns),
                destroy: [params.destroy_profiler.is_some(), params.destroy_profiler_fns.is_some()],
            });
        }
    }

    /// Describes a struct of the host: its size, then `ext`, then the function pointers.
    fn functions<T: Record + Copy>(&self, of: &T) -> Table {
        let (name, fields) = tables::names::<T>();
        const FIRST: usize = offset_of!(SP_PlatformFns, get_device_count) / size_of::<usize>();
        let words = size_of::<T>() / size_of::<usize>();
        assert_eq!(words - FIRST, fields.len(), "{name}");
        // SAFETY: `of` is that many words, which are numbers or pointers, all of them initialised.
        let words =
            unsafe { std::slice::from_raw_parts(std::ptr::from_ref(of).cast::<usize>(), words) };
        let slots = fields.iter().zip(&words[FIRST..]);
        Table {
            name: name.to_owned(),
            present: true,
            abi: None,
            api: None,
            size: words[0] as u64,
            slots: slots.map(|(field, pointer)| self.slot(field, *pointer)).collect(),
        }
    }

    pub(super) fn slot(&self, name: &str, pointer: usize) -> Slot {
        let filled = pointer != 0;
        let elsewhere = filled.then(|| self.elsewhere(pointer)).flatten();
        Slot { name: name.to_owned(), filled, elsewhere }
    }

    /// Returns the library of an address, unless it is the plugin.
    fn elsewhere(&self, address: usize) -> Option<String> {
        let base_of = |address: *const c_void| {
            // SAFETY: `Dl_info` is pointers, for which zeros are a value; any address will do.
            unsafe {
                let mut info: libc::Dl_info = std::mem::zeroed();
                (libc::dladdr(address, &raw mut info) != 0)
                    .then(|| (info.dli_fbase as usize, text(info.dli_fname).unwrap_or_default()))
            }
        };
        let own = ENTRY_POINTS.iter().find_map(|name| self.0.symbol(name));
        let own = own.and_then(|own| base_of(own.as_ptr()));
        match base_of(address as *const c_void) {
            Some((base, _)) if own.is_some_and(|(own, _)| own == base) => None,
            Some((_, file)) => Some(file),
            None => Some("no library".to_owned()),
        }
    }
}

const ENTRY_POINTS: [&CStr; 5] =
    [c"TF_InitPlugin", c"SE_InitPlugin", c"TF_InitKernel", c"TF_InitGraph", c"TF_InitProfiler"];

/// Calls a function that has a status, and reports an error. Returns whether it succeeded.
pub(super) fn call(name: &str, function: impl FnOnce(*mut TF_Status)) -> bool {
    step(name);
    let mut status = Status::new();
    function((&raw mut status).cast());
    let failure = status.take();
    let fine = failure.is_none();
    if let Some((code, message)) = failure {
        tell(&Event::Error { function: name.to_owned(), code, message });
    }
    GUARDS.with_borrow_mut(|guards| {
        guards.retain(|(record, behind)| {
            // SAFETY: bytes that stay for the rest of the process. The plugin may have written to
            // them, which the compiler cannot see.
            let untouched = unsafe { behind.read_volatile() } == UNTOUCHED;
            if !untouched {
                let (function, record) = (name.to_owned(), (*record).to_owned());
                tell(&Event::Overrun { function, record });
            }
            untouched
        });
    });
    fine
}

const UNTOUCHED: [u8; 256] = [0xa5; 256];

thread_local! {
    /// The bytes behind the structs that the plugin fills in, with the structs' names.
    static GUARDS: RefCell<Vec<(&'static str, *const [u8; 256])>> = const { RefCell::new(Vec::new()) };
}

/// Allocates a struct of the host, with bytes behind it that a plugin must not change: in TensorFlow they would be the
/// stack. It stays for the rest of the process, as long as TensorFlow's platform object.
fn guarded<T: Record + 'static>(value: T) -> &'static mut T {
    #[repr(C)]
    struct Guarded<T> {
        value: T,
        behind: [u8; 256],
    }
    let Guarded { value, behind } = Box::leak(Box::new(Guarded { value, behind: UNTOUCHED }));
    GUARDS.with_borrow_mut(|guards| guards.push((tables::names::<T>().0, behind)));
    value
}

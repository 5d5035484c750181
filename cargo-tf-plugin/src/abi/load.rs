//! Opens a plugin and calls its entry points, in the order of `import tensorflow` and then of
//! `register_filesystem_plugin`.

use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::fs::File;
use std::mem::{offset_of, transmute};
use std::path::Path;
use std::process::ExitCode;
use std::ptr::NonNull;
use std::sync::Mutex;

use cargo_tf_plugin::host::Library;
use cargo_tf_plugin::probe::{Event, Platform, Slot, Table};
use cargo_tf_plugin::tables;
use rustix::process::{Resource, Rlimit, setrlimit};
use tf_fs_sys::*;

use super::events::{REPORT, leave, step, tell};
use super::standins::{Status, text};

/// Loads `plugin` and writes what it does to the file `report`.
pub(crate) fn run(plugin: &OsStr, report: &OsStr) -> ExitCode {
    let report = match File::create(report) {
        Ok(report) => report,
        Err(error) => {
            eprintln!("error: cannot write {}: {error}", Path::new(report).display());
            return ExitCode::FAILURE;
        }
    };
    // Crashes are expected here and leave nothing behind.
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    let _ = setrlimit(Resource::Core, none);
    let _ = REPORT.set(Mutex::new(report));
    step("dlopen");
    match Library::open(Path::new(plugin)) {
        Ok(library) => {
            let loaded = Loaded(library);
            loaded.imported();
            loaded.registered();
            tell(&Event::Done);
        }
        Err(reason) => tell(&Event::Refused(reason)),
    }
    leave()
}

/// A plugin's library, from which this tells what it sees.
pub(super) struct Loaded(pub(super) Library);

impl Loaded {
    /// The entry points that `import tensorflow` calls.
    fn imported(&self) {
        let mut count_devices = None;
        if let Some(function) = self.0.symbol(c"SE_InitPlugin") {
            // SAFETY: the type that the header gives to the function of this name.
            let function: SE_InitPluginFn = unsafe { transmute(function) };
            count_devices = self.device(function);
        }
        if let Some(function) = self.0.symbol(c"TF_InitKernel") {
            step("TF_InitKernel");
            // SAFETY: the header gives this type to `TF_InitKernel`, which takes no arguments.
            unsafe {
                let function: TF_InitKernelFn = transmute(function);
                function();
            }
        }
        if let Some(function) = self.0.symbol(c"TF_InitGraph") {
            // SAFETY: the header gives this type to `TF_InitGraph`.
            self.graph(unsafe { transmute::<NonNull<c_void>, TF_InitGraphFn>(function) });
        }
        if let Some(function) = self.0.symbol(c"TF_InitProfiler") {
            // SAFETY: the header gives this type to `TF_InitProfiler`.
            self.profiler(unsafe { transmute::<NonNull<c_void>, TF_InitProfilerFn>(function) });
        }
        if let Some(count_devices) = count_devices {
            count_devices();
        }
    }

    /// The function that returns the number of devices, if the plugin can be asked.
    fn device(&self, function: SE_InitPluginFn) -> Option<impl FnOnce() + use<>> {
        // For the rest of the process: TensorFlow's platform object lives as long.
        let platform = Guarded::leak(SP_Platform {
            struct_size: SP_PLATFORM_STRUCT_SIZE,
            ..SP_Platform::default()
        });
        let mut fns = Guarded::new(SP_PlatformFns {
            struct_size: SP_PLATFORM_FNS_STRUCT_SIZE,
            ..SP_PlatformFns::default()
        });
        let mut params = Guarded::new(SE_PlatformRegistrationParams {
            struct_size: SE_PLATFORM_REGISTRATION_PARAMS_STRUCT_SIZE,
            major_version: SE_MAJOR,
            minor_version: SE_MINOR,
            patch_version: SE_PATCH,
            platform: &raw mut platform.value,
            platform_fns: &raw mut fns.value,
            ..SE_PlatformRegistrationParams::default()
        });
        const INIT: &str = "SE_InitPlugin";
        let fine = call(INIT, |status| {
            // SAFETY: structs with their sizes, and a status.
            unsafe { function(&raw mut params.value, status) }
        });
        platform.check(INIT, "SP_Platform");
        fns.check(INIT, "SP_PlatformFns");
        params.check(INIT, "SE_PlatformRegistrationParams");
        if !fine {
            return None;
        }
        step("reading what SE_InitPlugin has filled in");
        // SAFETY: strings of the plugin's, or null.
        let (name, device_type) =
            unsafe { (text(platform.value.name), text(platform.value.r#type)) };
        let fns = fns.value;
        tell(&Event::Platform(Platform {
            name,
            device_type,
            size: platform.value.struct_size as u64,
            unified_memory: platform.value.supports_unified_memory != 0,
            bfc_allocator: platform.value.use_bfc_allocator != 0,
            memory_growth: platform.value.force_memory_growth != 0,
            destroy: [
                params.value.destroy_platform.is_some(),
                params.value.destroy_platform_fns.is_some(),
            ],
            functions: self.functions(tables::PLATFORM_FNS, fns.struct_size, &fns),
        }));
        let platform = &platform.value;
        if let Some(function) = fns.create_device_fns {
            let mut device_fns = Guarded::new(SP_DeviceFns {
                struct_size: SP_DEVICE_FNS_STRUCT_SIZE,
                ..SP_DeviceFns::default()
            });
            let mut params = SE_CreateDeviceFnsParams {
                struct_size: SE_CREATE_DEVICE_FNS_PARAMS_STRUCT_SIZE,
                device_fns: &raw mut device_fns.value,
                ..SE_CreateDeviceFnsParams::default()
            };
            const NAME: &str = "create_device_fns";
            let fine = call(NAME, |status| {
                // SAFETY: `platform` is the one that the plugin filled, `params` names a struct with its size,
                // and `status` is a status.
                unsafe { function(platform, &raw mut params, status) }
            });
            device_fns.check(NAME, "SP_DeviceFns");
            if !fine {
                return None;
            }
            let fns = device_fns.value;
            tell(&Event::Functions(self.functions(tables::DEVICE_FNS, fns.struct_size, &fns)));
        }
        if let Some(function) = fns.create_stream_executor {
            // With the last field that TensorFlow 2.22 has, which no older plugin touches.
            let mut executor = Guarded::new(SP_StreamExecutorWithStreamOptions {
                executor: SP_StreamExecutor {
                    struct_size: SP_STREAMEXECUTOR_WITH_STREAM_OPTIONS_STRUCT_SIZE,
                    ..SP_StreamExecutor::default()
                },
                create_stream_with_options: None,
            });
            let mut params = SE_CreateStreamExecutorParams {
                struct_size: SE_CREATE_STREAM_EXECUTOR_PARAMS_STRUCT_SIZE,
                stream_executor: &raw mut executor.value.executor,
                ..SE_CreateStreamExecutorParams::default()
            };
            const NAME: &str = "create_stream_executor";
            let fine = call(NAME, |status| {
                // SAFETY: `platform` is the one that the plugin filled, `params` names a struct with its size,
                // and `status` is a status.
                unsafe { function(platform, &raw mut params, status) }
            });
            executor.check(NAME, "SP_StreamExecutor");
            if !fine {
                return None;
            }
            let fns = executor.value;
            let size = fns.executor.struct_size;
            tell(&Event::Functions(self.functions(tables::STREAM_EXECUTOR, size, &fns)));
        }
        if let Some(function) = fns.create_timer_fns {
            let mut timer_fns = Guarded::new(SP_TimerFns {
                struct_size: SP_TIMER_FNS_STRUCT_SIZE,
                ..SP_TimerFns::default()
            });
            const NAME: &str = "create_timer_fns";
            let fine = call(NAME, |status| {
                // SAFETY: `platform` is the one that the plugin filled, `timer_fns` has its size set, and
                // `status` is a status.
                unsafe { function(platform, &raw mut timer_fns.value, status) }
            });
            timer_fns.check(NAME, "SP_TimerFns");
            if !fine {
                return None;
            }
            let fns = timer_fns.value;
            tell(&Event::Functions(self.functions(tables::TIMER_FNS, fns.struct_size, &fns)));
        }
        let count = fns.get_device_count?;
        let platform: &'static SP_Platform = platform;
        Some(move || {
            let mut devices: c_int = 0;
            let fine = call("get_device_count", |status| {
                // SAFETY: the platform as the plugin has filled it, a number and a status.
                unsafe { count(platform, &raw mut devices, status) }
            });
            if fine {
                tell(&Event::Devices(devices.into()));
            }
        })
    }

    fn graph(&self, function: TF_InitGraphFn) {
        let mut optimizer = Guarded::new(TP_Optimizer {
            struct_size: TP_OPTIMIZER_STRUCT_SIZE,
            ..TP_Optimizer::default()
        });
        let mut configs = Guarded::new(TP_OptimizerConfigs {
            struct_size: TP_OPTIMIZER_CONFIGS_STRUCT_SIZE,
            ..TP_OptimizerConfigs::default()
        });
        let mut params = Guarded::new(TP_OptimizerRegistrationParams {
            struct_size: TP_OPTIMIZER_REGISTRATION_PARAMS_STRUCT_SIZE,
            major_version: GO_MAJOR,
            minor_version: GO_MINOR,
            patch_version: GO_PATCH,
            optimizer_configs: &raw mut configs.value,
            optimizer: &raw mut optimizer.value,
            ..TP_OptimizerRegistrationParams::default()
        });
        const NAME: &str = "TF_InitGraph";
        let fine = call(NAME, |status| {
            // SAFETY: structs with their sizes, and a status.
            unsafe { function(&raw mut params.value, status) }
        });
        optimizer.check(NAME, "TP_Optimizer");
        configs.check(NAME, "TP_OptimizerConfigs");
        params.check(NAME, "TP_OptimizerRegistrationParams");
        if fine {
            let fns = optimizer.value;
            tell(&Event::Optimizer {
                // SAFETY: a string of the plugin's, or null.
                device_type: unsafe { text(params.value.device_type) },
                functions: self.functions(tables::OPTIMIZER, fns.struct_size, &fns),
            });
        }
    }

    fn profiler(&self, function: TF_InitProfilerFn) {
        let mut profiler = Guarded::new(TP_Profiler {
            struct_size: TP_PROFILER_STRUCT_SIZE,
            ..TP_Profiler::default()
        });
        let mut fns = Guarded::new(TP_ProfilerFns {
            struct_size: TP_PROFILER_FNS_STRUCT_SIZE,
            ..TP_ProfilerFns::default()
        });
        let mut params = Guarded::new(TF_ProfilerRegistrationParams {
            struct_size: TF_PROFILER_REGISTRATION_PARAMS_STRUCT_SIZE,
            major_version: TP_MAJOR,
            minor_version: TP_MINOR,
            patch_version: TP_PATCH,
            profiler: &raw mut profiler.value,
            profiler_fns: &raw mut fns.value,
            ..TF_ProfilerRegistrationParams::default()
        });
        const NAME: &str = "TF_InitProfiler";
        let fine = call(NAME, |status| {
            // SAFETY: structs with their sizes, and a status.
            unsafe { function(&raw mut params.value, status) }
        });
        profiler.check(NAME, "TP_Profiler");
        fns.check(NAME, "TP_ProfilerFns");
        params.check(NAME, "TF_ProfilerRegistrationParams");
        if fine {
            let fns = fns.value;
            tell(&Event::Profiler {
                // SAFETY: a string of the plugin's, or null.
                device_type: unsafe { text(profiler.value.device_type) },
                functions: self.functions(tables::PROFILER_FNS, fns.struct_size, &fns),
                destroy: [
                    params.value.destroy_profiler.is_some(),
                    params.value.destroy_profiler_fns.is_some(),
                ],
            });
        }
    }

    /// The function pointers of a struct of the host's: all that comes behind `struct_size` and `ext`.
    fn functions<T: Copy>(&self, (name, fields): tables::Names, size: usize, of: &T) -> Table {
        const FIRST: usize = offset_of!(SP_PlatformFns, get_device_count);
        let room = (size_of::<T>() - FIRST) / size_of::<usize>();
        assert_eq!(room, fields.len(), "{name}");
        let pointers = std::ptr::from_ref(of).cast::<u8>();
        let slots = fields.iter().enumerate().map(|(at, field)| {
            // SAFETY: a pointer in the struct, which has as many as there are names.
            let pointer =
                unsafe { pointers.add(FIRST + at * size_of::<usize>()).cast::<usize>().read() };
            self.slot(field, pointer)
        });
        Table {
            name: name.to_owned(),
            present: true,
            abi: None,
            api: None,
            size: size as u64,
            slots: slots.collect(),
        }
    }

    pub(super) fn slot(&self, name: &str, pointer: usize) -> Slot {
        let filled = pointer != 0;
        let elsewhere = filled.then(|| self.elsewhere(pointer)).flatten();
        Slot { name: name.to_owned(), filled, elsewhere }
    }

    /// Where an address is, unless it is in the plugin.
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

/// Calls a function that returns a status, and tells what it answers. Whether that is OK.
pub(super) fn call(name: &str, function: impl FnOnce(*mut TF_Status)) -> bool {
    step(name);
    let mut status = Status::new();
    function((&raw mut status).cast());
    let Some((code, message)) = status.take() else { return true };
    tell(&Event::Error { function: name.to_owned(), code, message });
    false
}

/// A struct of the host's with something behind it that a plugin must leave alone: in TensorFlow it would be the stack.
#[repr(C)]
struct Guarded<T> {
    value: T,
    behind: [u8; 256],
}

impl<T> Guarded<T> {
    const PATTERN: u8 = 0xa5;

    fn new(value: T) -> Self {
        Self { value, behind: [Self::PATTERN; 256] }
    }

    fn leak(value: T) -> &'static mut Self {
        Box::leak(Box::new(Self::new(value)))
    }

    fn check(&self, function: &str, record: &str) {
        // The plugin had a pointer to it, which the compiler knows nothing of.
        if std::hint::black_box(&self.behind).iter().any(|byte| *byte != Self::PATTERN) {
            tell(&Event::Overrun { function: function.to_owned(), record: record.to_owned() });
        }
    }
}

/// A C string is never longer than what is told about it.
const _: () = assert!(size_of::<c_char>() == 1);

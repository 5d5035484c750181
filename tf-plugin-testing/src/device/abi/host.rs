//! A host into which a platform is loaded.

use super::guarded::{Guarded, check_name, sizes};
use crate::abi::status::{Status, install};
use crate::violations::{Log, Violation};
use core::ffi::CStr;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use se_plugin::__private::testing::release_override;
use se_plugin::__private::testing::versions::Versioned;
use se_plugin::__private::{PlatformExport, init_plugin};
use se_plugin::{Error, Platform, Result};
use std::sync::Arc;
use tf_fs_sys::{
    SE_CreateDeviceFnsParams, SE_CreateStreamExecutorParams, SE_PlatformRegistrationParams,
    SP_Device, SP_DeviceFns, SP_Platform, SP_PlatformFns,
    SP_STREAMEXECUTOR_WITH_STREAM_OPTIONS_STRUCT_SIZE, SP_Stream, SP_StreamExecutor,
    SP_StreamExecutorWithStreamOptions, SP_StreamOptions, SP_TimerFns, TF_Status,
};
use tf_plugin_core::__private::boundary::logged_by;

sizes! {
    Sizes {
        params: SE_PlatformRegistrationParams,
        platform: SP_Platform,
        platform_fns: SP_PlatformFns,
        device_fns: SP_DeviceFns,
        stream_executor: SP_StreamExecutor,
        timer_fns: SP_TimerFns,
        device: SP_Device,
    }
    tf_fs_sys::SE_MAJOR,
    /// Whether the error of a copy is an exception, as in TensorFlow since 2.17; by default it
    /// would end the process.
    takes_errors
}

type CreateStreamWithOptions = Option<
    unsafe extern "C" fn(*const SP_Device, *const SP_StreamOptions, *mut SP_Stream, *mut TF_Status),
>;

/// A host into which one platform is loaded.
#[derive(Debug)]
pub struct Host {
    pub(super) log: Arc<Log>,
    pub(super) sizes: Sizes,
    pub(super) platform: SP_Platform,
    pub(super) fns: SP_PlatformFns,
    pub(super) device_fns: SP_DeviceFns,
    pub(super) executor: SP_StreamExecutor,
    pub(super) create_stream_with_options: CreateStreamWithOptions,
    pub(super) timer_fns: SP_TimerFns,
    destroy_platform: unsafe extern "C" fn(*mut SP_Platform),
    /// How many objects were created and are not destroyed.
    pub(super) live: AtomicI64,
    /// Whether an error that the plugin only logs is a violation.
    is_strict: AtomicBool,
}

// SAFETY: the pointers in the structs are the plugin's, whose callbacks are called from any thread.
unsafe impl Send for Host {}
// SAFETY: the header allows any thread to call the plugin's callbacks, several at once; the structs do not
// change.
unsafe impl Sync for Host {}

impl Host {
    /// Loads the platform as TensorFlow does.
    ///
    /// # Errors
    /// Returns the errors with which TensorFlow would abort, with its texts.
    pub fn load<P: Platform>() -> Result<Self> {
        Self::load_with::<P>(Sizes::default(), &PlatformExport::new())
    }

    /// Does [`load`](Self::load) as a host of these sizes and version. `export` counts the loads.
    pub fn load_with<P: Platform>(sizes: Sizes, export: &PlatformExport) -> Result<Self> {
        install();
        let log = Arc::new(Log::default());
        let mut platform = Guarded::<SP_Platform>::new(sizes.platform);
        let mut fns = Guarded::<SP_PlatformFns>::new(sizes.platform_fns);
        let whole = SE_PlatformRegistrationParams {
            major_version: sizes.major,
            minor_version: tf_fs_sys::SE_MINOR,
            patch_version: tf_fs_sys::SE_PATCH,
            platform: platform.as_mut_ptr(),
            platform_fns: fns.as_mut_ptr(),
            ..Default::default()
        };
        let mut params = Guarded::holding(sizes.params, &whole);
        let status = Status::new(&log, "SE_InitPlugin", b"");
        // SAFETY: the structs that the function wants.
        unsafe { init_plugin::<P>(params.as_mut_ptr(), status.as_ptr(), export) };
        status.result()?;
        let params = params.take(&log, "SE_InitPlugin")?;
        let platform = platform.take(&log, "SE_InitPlugin")?;
        let fns = fns.take(&log, "SE_InitPlugin")?;
        assert!(params.destroy_platform_fns.is_some(), "the SDK fills its table");
        for text in [platform.name, platform.r#type] {
            // SAFETY: null, or a C string that lives as long as the platform.
            unsafe { check_name(text) }?;
        }
        let mut host = Self {
            log,
            sizes,
            platform,
            fns,
            device_fns: SP_DeviceFns::default(),
            executor: SP_StreamExecutor::default(),
            create_stream_with_options: None,
            timer_fns: SP_TimerFns::default(),
            destroy_platform: params.destroy_platform.expect("every callback is there"),
            live: AtomicI64::new(0),
            is_strict: AtomicBool::new(false),
        };
        host.load_tables()?;
        Ok(host)
    }

    fn load_tables(&mut self) -> Result<()> {
        let mut device_fns = Guarded::<SP_DeviceFns>::new(self.sizes.device_fns);
        let mut params = SE_CreateDeviceFnsParams {
            struct_size: 24,
            device_fns: device_fns.as_mut_ptr(),
            ..Default::default()
        };
        let create = self.fns.create_device_fns.expect("every callback is there");
        // SAFETY: the structs that the callback wants.
        self.status("create_device_fns", |status| unsafe {
            create(&self.platform, &mut params, status)
        })?;
        self.device_fns = device_fns.take(&self.log, "create_device_fns")?;

        let mut executor = Guarded::<SP_StreamExecutor>::new(self.sizes.stream_executor);
        let mut params = SE_CreateStreamExecutorParams {
            struct_size: 24,
            stream_executor: executor.as_mut_ptr(),
            ..Default::default()
        };
        let create = self.fns.create_stream_executor.expect("every callback is there");
        // SAFETY: the platform that the plugin filled, `params` with its size, whose executor has as much
        // memory as it says, and a status.
        self.status("create_stream_executor", |status| unsafe {
            create(&self.platform, &mut params, status);
        })?;
        self.executor = executor.take(&self.log, "create_stream_executor")?;
        if self.executor.struct_size >= SP_STREAMEXECUTOR_WITH_STREAM_OPTIONS_STRUCT_SIZE {
            let longer = executor.as_mut_ptr().cast::<SP_StreamExecutorWithStreamOptions>();
            // SAFETY: there is memory for far more, and what the plugin has not filled is null or the guard, which
            // was looked at.
            self.create_stream_with_options =
                unsafe { (&raw const (*longer).create_stream_with_options).read() };
        }

        let mut timer_fns = Guarded::<SP_TimerFns>::new(self.sizes.timer_fns);
        if let Some(create) = self.fns.create_timer_fns {
            // SAFETY: the platform that the plugin filled, timer functions with as much memory as they say, and
            // a status.
            self.status("create_timer_fns", |status| unsafe {
                create(&self.platform, timer_fns.as_mut_ptr(), status);
            })?;
            self.timer_fns = timer_fns.take(&self.log, "create_timer_fns")?;
        }
        Ok(())
    }

    pub(super) fn status(&self, op: &'static str, call: impl FnOnce(*mut TF_Status)) -> Result<()> {
        let status = Status::new(&self.log, op, b"");
        call(status.as_ptr());
        status.result()
    }

    /// Makes a failure of a callback without a status a violation, such as a panic in `deallocate`.
    pub(in crate::device) fn be_strict(&self) {
        self.is_strict.store(true, Ordering::Relaxed);
    }

    /// Calls a callback that has no status: what it cannot do is in the log alone.
    pub(super) fn quietly(&self, op: &'static str, call: impl FnOnce()) {
        let logged = logged_by(call);
        if self.is_strict.load(Ordering::Relaxed) {
            logged.into_iter().for_each(|error| self.log.add(op, b"", error));
        }
    }

    /// Returns the null members of `SP_StreamExecutor`, `SP_PlatformFns` and `SP_TimerFns`: the struct, and the offset.
    #[must_use]
    pub fn null_members(&self) -> Vec<(&'static str, usize)> {
        fn nulls<T: Versioned>(record: &T) -> impl Iterator<Item = (&'static str, usize)> {
            let words = ptr::from_ref(record).cast::<usize>();
            // SAFETY: each field from 16 on is a pointer of a word.
            let is_null = move |at: &usize| unsafe { words.add(at / 8).read() } == 0;
            (16..T::STRUCT_SIZE).step_by(8).filter(is_null).map(|at| (T::NAME, at))
        }
        nulls(&self.executor).chain(nulls(&self.fns)).chain(nulls(&self.timer_fns)).collect()
    }

    /// Returns the name and the type that were registered.
    #[must_use]
    pub fn names(&self) -> [String; 2] {
        // SAFETY: C strings that live as long as the platform; checked to be there.
        [self.platform.name, self.platform.r#type]
            .map(|text| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
    }

    /// Returns the number of devices, or the plugin's error.
    pub fn device_count(&self) -> Result<usize> {
        let mut count = -1;
        let get = self.fns.get_device_count.expect("every callback is there");
        release_override::with(self.sizes.takes_errors, || {
            // SAFETY: the platform as it was filled.
            self.status("get_device_count", |status| unsafe {
                get(&self.platform, &mut count, status)
            })
        })?;
        usize::try_from(count).map_err(Error::internal)
    }

    /// Returns how many devices, streams, events and timers exist.
    #[must_use]
    pub fn live(&self) -> i64 {
        self.live.load(Ordering::Acquire)
    }

    /// Returns what the plugin did that would harm TensorFlow, since the last call.
    #[must_use]
    pub fn violations(&self) -> Vec<Violation> {
        self.log.take()
    }

    /// Panics if there are violations, or if something that was created is not destroyed.
    #[track_caller]
    pub(in crate::device) fn check(&self) {
        self.log.check();
        assert_eq!(self.live(), 0, "devices, streams, events and timers that are not destroyed");
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // SAFETY: the platform as it was filled, destroyed once; devices borrow the host.
        unsafe { (self.destroy_platform)(&mut self.platform) };
    }
}

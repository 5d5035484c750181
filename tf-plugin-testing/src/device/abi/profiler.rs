//! The host's side of profilers.

use super::guarded::{Guarded, check_name, sizes};
use crate::abi::status::{Status, install};
use crate::violations::{Log, Violation};
use core::ptr;
use se_plugin::__private::testing::versions::Versioned as _;
use se_plugin::__private::{Exported, init_profiler};
use se_plugin::{Error, Result};
use std::sync::Arc;
use tf_fs_sys::{
    TF_ProfilerRegistrationParams, TF_Status, TP_MAJOR, TP_MINOR, TP_PATCH, TP_Profiler,
    TP_ProfilerFns,
};

sizes! {
    ProfilerSizes {
        params: TF_ProfilerRegistrationParams,
        profiler: TP_Profiler,
        profiler_fns: TP_ProfilerFns,
    }
    TP_MAJOR
}

/// A host into which the profiler of a plugin is loaded.
#[derive(Debug)]
pub struct ProfilerHost {
    pub(super) log: Arc<Log>,
    pub(super) device_type: String,
    pub(super) profiler: TP_Profiler,
    pub(super) fns: TP_ProfilerFns,
}

// SAFETY: the pointers in the structs are the plugin's, whose callbacks are called from any thread.
unsafe impl Send for ProfilerHost {}
// SAFETY: the header allows any thread to call the plugin's callbacks, several at once; the structs do not
// change.
unsafe impl Sync for ProfilerHost {}

type Callback = unsafe extern "C" fn(*const TP_Profiler, *mut TF_Status);

impl ProfilerHost {
    /// Loads the profiler of a platform with `#[device_plugin]` as TensorFlow does.
    ///
    /// # Errors
    /// Returns the errors with which TensorFlow would abort, with its texts.
    pub fn load<P: Exported>() -> Result<Self> {
        Self::load_with::<P>(ProfilerSizes::default(), 0)
    }

    /// Does [`load`](Self::load) as a host of these sizes and version, and after `load` earlier loads.
    pub fn load_with<P: Exported>(sizes: ProfilerSizes, load: usize) -> Result<Self> {
        const OP: &str = "TF_InitProfiler";
        install();
        let log = Arc::new(Log::default());
        let mut profiler = Guarded::<TP_Profiler>::new(sizes.profiler);
        let mut fns = Guarded::<TP_ProfilerFns>::new(sizes.profiler_fns);
        let whole = TF_ProfilerRegistrationParams {
            major_version: sizes.major,
            minor_version: TP_MINOR,
            patch_version: TP_PATCH,
            profiler: profiler.as_mut_ptr(),
            profiler_fns: fns.as_mut_ptr(),
            ..Default::default()
        };
        let mut params = Guarded::holding(sizes.params, &whole);
        let status = Status::new(&log, OP, b"");
        // SAFETY: the structs that the function wants.
        unsafe { init_profiler::<P>(params.as_mut_ptr(), status.as_ptr(), Some(load)) };
        status.result()?;
        let params = params.take(&log, OP)?;
        let [mut first, mut second] = [profiler.take(&log, OP)?; 2];
        let [mut first_fns, mut second_fns] = [fns.take(&log, OP)?; 2];
        // SAFETY: null, or a C string that lives as long as the process.
        let device_type = unsafe { check_name(first.device_type) }?;
        let (kept, kept_fns) = (first, first_fns);
        let destroy = params.destroy_profiler.expect("every callback is there");
        let destroy_fns = params.destroy_profiler_fns.expect("every callback is there");
        // TensorFlow destroys two copies, before it uses a third.
        for (profiler, fns) in [(&mut first, &mut first_fns), (&mut second, &mut second_fns)] {
            // SAFETY: structs that the plugin has filled.
            unsafe {
                destroy(profiler);
                destroy_fns(fns);
            }
        }
        Ok(Self { log, device_type, profiler: kept, fns: kept_fns })
    }

    /// Returns the device type that the profiler is registered for.
    #[must_use]
    pub fn device_type(&self) -> &str {
        &self.device_type
    }

    fn call(&self, op: &'static str, callback: Option<Callback>) -> Result<()> {
        let status = Status::new(&self.log, op, b"");
        // SAFETY: the profiler and a status.
        unsafe { callback.expect("every callback is there")(&self.profiler, status.as_ptr()) };
        status.result()
    }

    /// Profiles what `body` does. Returns a serialised `XSpace`, which is empty if there is nothing.
    ///
    /// # Errors
    /// Returns the plugin's first error, which TensorFlow logs.
    pub fn profile(&self, body: impl FnOnce()) -> Result<Vec<u8>> {
        let started = self.call("start", self.fns.start);
        body();
        let stopped = self.call("stop", self.fns.stop);
        started.and(stopped)?;
        self.collect()
    }

    /// Collects the data, as after a profile; returns the plugin's error if that fails.
    pub fn collect(&self) -> Result<Vec<u8>> {
        const OP: &str = "collect_data_xspace";
        /// A value that an uninitialised number may have.
        const JUNK: usize = 0x7a7a_7a7a;
        let collect = self.fns.collect_data_xspace.expect("every callback is there");
        let mut size = JUNK;
        let status = Status::new(&self.log, OP, b"");
        // SAFETY: the profiler, no buffer, a place for the size, and a status.
        unsafe { collect(&self.profiler, ptr::null_mut(), &mut size, status.as_ptr()) };
        if size == JUNK {
            self.log.add(OP, b"", "the size was not set; TensorFlow would take any number for it");
            return status.result().and(Err(Error::internal("the size was not set")));
        }
        // If there is an error with a size, TensorFlow looks at the size alone.
        if size == 0 {
            return status.result().map(|()| Vec::new());
        }
        status.result()?;
        self.take(size)
    }

    /// Takes `size` bytes, as after a call for the size.
    pub fn take(&self, size: usize) -> Result<Vec<u8>> {
        let collect = self.fns.collect_data_xspace.expect("every callback is there");
        let (mut buffer, mut asked) = (vec![0; size], size);
        let status = Status::new(&self.log, "collect_data_xspace", b"");
        // SAFETY: the profiler, a buffer with its size, and a status.
        unsafe { collect(&self.profiler, buffer.as_mut_ptr(), &mut asked, status.as_ptr()) };
        status.result().map(|()| buffer)
    }

    /// Returns what the plugin did that would harm TensorFlow, since the last call.
    #[must_use]
    pub fn violations(&self) -> Vec<Violation> {
        self.log.take()
    }
}

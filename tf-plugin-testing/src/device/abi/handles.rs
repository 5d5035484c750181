//! The host's side of streams, events and timers.

use super::device::{TestDevice, call, memory_base, plain};
use super::guarded::Guarded;
use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::Ordering;
use se_plugin::{DevicePtr, Error, EventStatus, Pattern, Result, ensure};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tf_fs_sys::{
    SE_EVENT_COMPLETE, SE_EVENT_PENDING, SE_StatusCallbackFn, SP_Event, SP_Stream,
    SP_StreamOptions, SP_Timer, TF_Code, TF_Status,
};

/// A stream; the null stream if it could not be created. Its methods return the plugin's errors.
///
/// # Panics
/// Each method that takes another handle panics if that belongs to another host. To record an event
/// and to time work, the handle must belong to the same device.
pub struct TestStream<'d>(pub(super) &'d TestDevice<'d>, pub(super) SP_Stream);
/// An event; the null event if it could not be created. Its methods return the plugin's errors.
pub struct TestEvent<'d>(pub(super) &'d TestDevice<'d>, pub(super) SP_Event);
/// A timer.
pub struct TestTimer<'d>(pub(super) &'d TestDevice<'d>, pub(super) SP_Timer);

/// Formats handles without the device, which would add too much, and destroys them when they are dropped.
macro_rules! handles {
    ($($handle:ident, $destroy:ident;)*) => {$(
        impl core::fmt::Debug for $handle<'_> {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.debug_tuple(stringify!($handle)).field(&self.1).finish()
            }
        }

        impl Drop for $handle<'_> {
            fn drop(&mut self) {
                self.0.host.quietly(stringify!($destroy), || {
                    // Null, or created and not destroyed before.
                    plain!(self.0, executor.$destroy(self.1));
                });
                self.0.host.live.fetch_sub((!self.1.is_null()).into(), Ordering::AcqRel);
            }
        }
    )*};
}
handles! {
    TestStream, destroy_stream;
    TestEvent, destroy_event;
    TestTimer, destroy_timer;
}

// SAFETY: the header lets any thread use handles, several at a time.
unsafe impl Send for TestStream<'_> {}
// SAFETY: the header allows any thread to use a handle, several at once.
unsafe impl Sync for TestStream<'_> {}
// SAFETY: the header allows any thread to use a handle, several at once.
unsafe impl Send for TestEvent<'_> {}
// SAFETY: the header allows any thread to use a handle, several at once.
unsafe impl Sync for TestEvent<'_> {}

impl TestDevice<'_> {
    /// Creates a stream. After an error, callers can go on with the null stream, as older releases do.
    pub fn stream(&self) -> (TestStream<'_>, Result<()>) {
        let mut stream = ptr::null_mut();
        let result = call!(self, create_stream(&mut stream));
        self.made_stream("create_stream", stream, result)
    }

    fn made_stream(
        &self,
        op: &'static str,
        stream: SP_Stream,
        result: Result<()>,
    ) -> (TestStream<'_>, Result<()>) {
        if result.is_ok() == stream.is_null() {
            self.host.log.add(op, b"", "handle and status contradict each other");
        }
        self.host.live.fetch_add((!stream.is_null()).into(), Ordering::AcqRel);
        (TestStream(self, stream), result)
    }

    /// Creates a stream with options in a struct of `size` bytes, or without options, as TensorFlow does since 2.22.
    /// Returns `None` if the plugin does not offer that, because this host's struct has no room for it.
    pub fn stream_with_options(
        &self,
        options: Option<(usize, Option<i32>)>,
    ) -> Option<(TestStream<'_>, Result<()>)> {
        const OP: &str = "create_stream_with_options";
        let create = self.host.create_stream_with_options?;
        let mut given = options.map(|(size, priority)| {
            let options = SP_StreamOptions {
                has_priority: priority.is_some().into(),
                priority: priority.unwrap_or_default(),
                ..SP_StreamOptions::default()
            };
            let mut given = Guarded::holding(size.max(8), &options);
            given.words[0] = size as u64;
            given
        });
        let mut stream = ptr::null_mut();
        let options = given.as_mut().map_or(ptr::null(), |given| given.as_mut_ptr().cast_const());
        // SAFETY: a device, options of their size or none, and a place for the stream.
        let result = self.host.status(OP, |status| unsafe {
            create(&self.device, options, &mut stream, status);
        });
        Some(self.made_stream(OP, stream, result))
    }

    /// Returns the null stream, which TensorFlow up to 2.16 passes where it has no stream.
    #[must_use]
    pub fn null_stream(&self) -> TestStream<'_> {
        TestStream(self, ptr::null_mut())
    }

    /// Creates an event.
    ///
    /// # Errors
    /// Returns the plugin's error, on which TensorFlow aborts since 2.17.
    pub fn event(&self) -> Result<TestEvent<'_>> {
        let mut event = ptr::null_mut();
        call!(self, create_event(&mut event))?;
        self.host.live.fetch_add(1, Ordering::AcqRel);
        Ok(TestEvent(self, event))
    }

    /// Returns the null event.
    #[must_use]
    pub fn null_event(&self) -> TestEvent<'_> {
        TestEvent(self, ptr::null_mut())
    }

    /// Creates a timer.
    pub fn timer(&self) -> Result<TestTimer<'_>> {
        let mut timer = ptr::null_mut();
        call!(self, create_timer(&mut timer))?;
        self.host.live.fetch_add((!timer.is_null()).into(), Ordering::AcqRel);
        Ok(TestTimer(self, timer))
    }
}

impl TestStream<'_> {
    /// Copies to the device and waits for an event behind the copy, as TensorFlow does.
    pub fn copy_to_device(&self, target: DevicePtr, source: &[u8]) -> Result<()> {
        let mut target = memory_base(Some(target), source.len() as u64);
        let len = source.len() as u64;
        let started = call!(self.0, memcpy_htod(self.1, &mut target, source.as_ptr().cast(), len));
        self.finish();
        started
    }

    /// Copies to the host and waits for an event behind the copy, as TensorFlow does.
    pub fn copy_to_host(&self, target: &mut [u8], source: DevicePtr) -> Result<()> {
        let len = target.len() as u64;
        let source = memory_base(Some(source), len);
        let started = call!(self.0, memcpy_dtoh(self.1, target.as_mut_ptr().cast(), &source, len));
        self.finish();
        started
    }

    /// Enqueues a copy within the device.
    pub fn copy_on_device(&self, target: DevicePtr, source: DevicePtr, bytes: u64) -> Result<()> {
        let (mut target, source) =
            (memory_base(Some(target), bytes), memory_base(Some(source), bytes));
        call!(self.0, memcpy_dtod(self.1, &mut target, &source, bytes))
    }

    /// Enqueues a fill, with the callback for the pattern.
    pub fn fill(&self, target: DevicePtr, pattern: Pattern, bytes: u64) -> Result<()> {
        let mut target = memory_base(Some(target), bytes);
        match pattern {
            Pattern::Zero => call!(self.0, mem_zero(self.1, &mut target, bytes)),
            Pattern::Byte(byte) => call!(self.0, memset(self.1, &mut target, byte, bytes)),
            Pattern::Word(word) => call!(self.0, memset32(self.1, &mut target, word, bytes)),
        }
    }

    /// Records an event. Its status is ignored, as in TensorFlow.
    pub fn record_event(&self, event: &TestEvent<'_>) {
        self.0.must_be(event.0, "record_event");
        let _ = call!(self.0, record_event(self.1, event.1));
    }

    /// Makes later work wait for an event.
    pub fn wait_event(&self, event: &TestEvent<'_>) -> Result<()> {
        self.0.must_share_host(event.0, "wait_for_event");
        call!(self.0, wait_for_event(self.1, event.1))
    }

    /// Makes later work wait for another stream.
    pub fn wait_stream(&self, other: &TestStream<'_>) -> Result<()> {
        self.0.must_share_host(other.0, "create_stream_dependency");
        call!(self.0, create_stream_dependency(self.1, other.1))
    }

    /// Waits for the stream.
    pub fn synchronize(&self) -> Result<()> {
        call!(self.0, block_host_until_done(self.1))
    }

    /// Returns the status of the stream.
    pub fn status(&self) -> Result<()> {
        call!(self.0, get_stream_status(self.1))
    }

    /// Starts or stops a timer.
    pub fn time(&self, timer: &TestTimer<'_>, start: bool) -> Result<()> {
        self.0.must_be(timer.0, if start { "start_timer" } else { "stop_timer" });
        if start {
            call!(self.0, start_timer(self.1, timer.1))
        } else {
            call!(self.0, stop_timer(self.1, timer.1))
        }
    }

    /// Enqueues a callback. The receiver gets the status code of each call of it.
    ///
    /// # Errors
    /// Returns `INTERNAL` with TensorFlow's text if the plugin refuses.
    pub fn host_callback(&self) -> Result<Receiver<TF_Code>> {
        self.host_callback_that(|| ())
    }

    /// Enqueues a callback, as [`host_callback`](Self::host_callback) does, whose first call does this before it sends its
    /// code.
    ///
    /// # Errors
    /// As for [`host_callback`](Self::host_callback).
    pub fn host_callback_that(
        &self,
        work: impl FnOnce() + Send + 'static,
    ) -> Result<Receiver<TF_Code>> {
        let (sender, receiver) = channel::<TF_Code>();
        let callback = Callback { sender, work: Mutex::new(Some(Box::new(work))) };
        // Never freed, so that a second call is found and does not crash.
        let argument = Box::into_raw(Box::new(callback)).cast::<c_void>();
        let callback: SE_StatusCallbackFn = Some(called);
        let accepted = plain!(self.0, executor.host_callback(self.1, callback, argument));
        ensure!(accepted != 0, Error::internal("Failed to host callback."));
        Ok(receiver)
    }

    /// Waits for all work as TensorFlow does: by polling an event.
    fn finish(&self) {
        if self.1.is_null() {
            return;
        }
        if let Ok(event) = self.0.event() {
            self.record_event(&event);
            while event.status() == EventStatus::Pending {
                std::thread::sleep(Duration::from_micros(10));
            }
        }
    }
}

/// The argument of [`called`].
struct Callback {
    sender: Sender<TF_Code>,
    /// `None` after the first call.
    work: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

unsafe extern "C" fn called(argument: *mut c_void, status: *mut TF_Status) {
    use tf_fs_sys::StatusFunctions;
    use tf_fs_sys::host::Table as _;
    // SAFETY: the argument from above, which is never freed, and the plugin's status.
    unsafe {
        let Callback { sender, work } = &*argument.cast::<Callback>();
        let work = work.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(work) = work {
            work();
        }
        let code = StatusFunctions::get().map_or(u32::MAX, |host| (host.TF_GetCode)(status));
        // The receiver may be dropped already.
        let _ = sender.send(code);
    }
}

impl TestEvent<'_> {
    /// Returns the status of the event. A value on which TensorFlow would abort is a violation.
    #[must_use]
    pub fn status(&self) -> EventStatus {
        match plain!(self.0, executor.get_event_status(self.1)) {
            SE_EVENT_PENDING => EventStatus::Pending,
            SE_EVENT_COMPLETE => EventStatus::Complete,
            other => {
                let text =
                    format!("Unexpected Event status: {other}; TensorFlow aborts the process");
                self.0.host.log.add("get_event_status", b"", text);
                EventStatus::Complete
            }
        }
    }

    /// Waits for the event.
    pub fn wait(&self) -> Result<()> {
        call!(self.0, block_host_for_event(self.1))
    }
}

impl TestTimer<'_> {
    /// Returns the time between start and stop.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        let nanoseconds = self.0.host.timer_fns.nanoseconds.expect("every callback is there");
        // SAFETY: a living timer.
        Duration::from_nanos(unsafe { nanoseconds(self.1) })
    }
}

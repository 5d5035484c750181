//! A wrapper for a device that fails, waits or panics on demand.

use super::abi::Host;
use crate::faults::{Fault, Faults, faults_of_each};
use se_plugin::{
    AllocatorStats, Device, DevicePtr, Event, EventStatus, HostAllocator, HostBuf, HostCallback,
    HostSource, HostTarget, MemoryUsage, Pattern, Platform, Stream, StreamOptions, Timer,
};
use std::cell::RefCell;
use std::time::Duration;
use tf_plugin_core::Result;

/// The operations that can meet a fault, separated by spaces.
const OPERATIONS: &str = "get_device_count create_device allocate deallocate device_memory_usage create_stream \
    create_stream_with_options create_event create_timer sync_memcpy_htod sync_memcpy_dtoh sync_memcpy_dtod \
    synchronize_all_activity memcpy_htod memcpy_dtoh memcpy_dtod mem_zero memset memset32 \
    create_stream_dependency record_event wait_for_event host_callback block_host_until_done get_stream_status \
    get_event_status block_host_for_event start_timer stop_timer";

fn no_faults() -> Faults {
    Faults::of(OPERATIONS.split(' '), "stream_executor.h")
}

thread_local! {
    /// The controls of the next platform, whose constructor has no argument for them.
    static NEXT: RefCell<Option<Faults>> = const { RefCell::new(None) };
}

/// A platform whose devices behave like those of `P`, until [`Faults`] change that. For tests of
/// what happens when a GPU falls off the bus, is full or responds late.
///
/// Calls are named as in `stream_executor.h` (`memcpy_htod`, `record_event`, `allocate` …), and counted from 0 for all
/// devices of the platform together. [`Fault::Shorten`] has no effect here. Kernels are registered for `P`, and not for
/// `Faulty<P>`. The platform's devices, streams and events are `Faulty`, too.
///
/// ```
/// # mod toy { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/device/toy.rs")); }
/// # use toy::*;
/// use se_plugin::Code;
/// use tf_plugin_testing::device::{Fault, Faulty};
///
/// let (host, faults) = Faulty::<Toy>::load()?;
/// let device = host.device(0)?;
/// let (stream, created) = device.stream();
/// created?;
/// let memory = device.allocate(64).expect("there is room");
///
/// faults.at("memcpy_htod", 1, Fault::Fail(Code::Unavailable));
/// stream.copy_to_device(memory, &[1; 64])?;
/// stream.synchronize()?;
/// stream.copy_to_device(memory, &[2; 64])?; // enqueued, and so far without an error
/// assert_eq!(stream.synchronize().unwrap_err().code(), Code::Unavailable);
/// device.deallocate(memory);
/// # drop(stream);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct Faulty<T> {
    inner: T,
    faults: Faults,
}

impl<P: Platform> Faulty<P> {
    /// Wraps a platform that the test has created; no fault is set yet.
    #[must_use]
    pub fn new(inner: P) -> (Self, Faults) {
        let faults = no_faults();
        (Self { inner, faults: faults.clone() }, faults)
    }

    /// Loads the platform into a host, as [`Host::load`] does. The calls that this makes are counted.
    pub fn load() -> Result<(Host, Faults)> {
        let faults = no_faults();
        Self::load_with(&faults).map(|host| (host, faults))
    }

    fn load_with(faults: &Faults) -> Result<Host> {
        NEXT.with_borrow_mut(|next| *next = Some(faults.clone()));
        let host = Host::load::<Self>();
        if let Ok(host) = &host {
            // The platform is created when its devices are first counted. If that fails, it has no devices.
            let _ = host.device_count();
        }
        NEXT.with_borrow_mut(|next| *next = None);
        host
    }
}

impl<T> Faulty<T> {
    /// Wraps what `make` creates from `inner`, with the same faults. The call may itself meet a fault of `operation`.
    fn wrap<U>(
        &self,
        operation: &'static str,
        make: impl FnOnce(&T) -> Result<U>,
    ) -> Result<Faulty<U>> {
        let inner = self.faults.call(operation, || make(&self.inner))?;
        Ok(Faulty { inner, faults: self.faults.clone() })
    }
}

/// Defines methods that call the same method of `inner`, and may meet a fault of the operation with this name.
macro_rules! forward {
    ($($method:ident($($arg:ident: $type:ty),*) -> $answer:ty = $name:literal;)*) => {$(
        fn $method(&self, $($arg: $type),*) -> Result<$answer> {
            self.faults.call($name, || self.inner.$method($($arg),*))
        }
    )*};
}

/// Defines methods that call the same method of `inner`, and never meet a fault.
macro_rules! pass {
    ($($method:ident -> $answer:ty;)*) => {$(
        fn $method(&self) -> $answer {
            self.inner.$method()
        }
    )*};
}

impl<P: Platform> Platform for Faulty<P> {
    const NAME: &'static str = P::NAME;
    const TYPE: &'static str = P::TYPE;
    const USE_BFC_ALLOCATOR: bool = P::USE_BFC_ALLOCATOR;
    const FORCE_MEMORY_GROWTH: bool = P::FORCE_MEMORY_GROWTH;
    type Device = Faulty<P::Device>;

    fn new() -> Result<Self> {
        let (mut platform, _) = Self::new(P::new()?);
        if let Some(faults) = NEXT.with_borrow_mut(Option::take) {
            platform.faults = faults;
        }
        Ok(platform)
    }

    forward! {
        device_count() -> usize = "get_device_count";
    }

    fn open(&self, ordinal: usize) -> Result<Self::Device> {
        self.wrap("create_device", |platform| platform.open(ordinal))
    }
}

impl<D: Device> Device for Faulty<D> {
    type Stream = Faulty<D::Stream>;
    type Event = Faulty<D::Event>;

    forward! {
        allocate(bytes: u64) -> DevicePtr = "allocate";
        deallocate(memory: DevicePtr) -> () = "deallocate";
        memory_usage() -> MemoryUsage = "device_memory_usage";
    }

    fn create_stream(&self) -> Result<Self::Stream> {
        self.wrap("create_stream", D::create_stream)
    }

    fn create_stream_with_options(&self, options: &StreamOptions) -> Result<Self::Stream> {
        let make = |device: &D| device.create_stream_with_options(options);
        self.wrap("create_stream_with_options", make)
    }

    fn create_event(&self) -> Result<Self::Event> {
        self.wrap("create_event", D::create_event)
    }

    forward! {
        copy_to_device(target: DevicePtr, source: &[u8]) -> () = "sync_memcpy_htod";
        copy_to_host(target: HostBuf<'_>, source: DevicePtr) -> () = "sync_memcpy_dtoh";
        copy_on_device(target: DevicePtr, source: DevicePtr, bytes: u64) -> () = "sync_memcpy_dtod";
        synchronize() -> () = "synchronize_all_activity";
    }

    pass! {
        allocator_stats -> Option<AllocatorStats>;
        host_allocator -> Option<&dyn HostAllocator>;
    }

    fn create_timer(&self) -> Result<Box<dyn Timer<Self::Stream>>> {
        Ok(Box::new(self.wrap("create_timer", D::create_timer)?))
    }

    pass! {
        hardware_name -> Option<String>;
        vendor -> Option<String>;
        pci_bus_id -> Option<String>;
        numa_node -> Option<u16>;
        memory_bandwidth -> Option<u64>;
        gflops -> Option<f64>;
    }
}

impl<S: Stream> Stream for Faulty<S> {
    type Event = Faulty<S::Event>;

    forward! {
        copy_to_device(target: DevicePtr, source: HostSource) -> () = "memcpy_htod";
        copy_to_host(target: HostTarget, source: DevicePtr) -> () = "memcpy_dtoh";
        copy_on_device(target: DevicePtr, source: DevicePtr, bytes: u64) -> () = "memcpy_dtod";
    }

    fn fill(&self, target: DevicePtr, pattern: Pattern, bytes: u64) -> Result<()> {
        let name = match pattern {
            Pattern::Zero => "mem_zero",
            Pattern::Byte(_) => "memset",
            Pattern::Word(_) => "memset32",
        };
        self.faults.call(name, || self.inner.fill(target, pattern, bytes))
    }

    fn wait_stream(&self, other: &Self) -> Result<()> {
        let wait = || self.inner.wait_stream(&other.inner);
        self.faults.call("create_stream_dependency", wait)
    }

    fn record_event(&self, event: &Self::Event) -> Result<()> {
        self.faults.call("record_event", || self.inner.record_event(&event.inner))
    }

    fn wait_event(&self, event: &Self::Event) -> Result<()> {
        self.faults.call("wait_for_event", || self.inner.wait_event(&event.inner))
    }

    forward! {
        host_callback(callback: HostCallback) -> () = "host_callback";
        synchronize() -> () = "block_host_until_done";
        status() -> () = "get_stream_status";
    }
}

impl<E: Event> Event for Faulty<E> {
    forward! {
        status() -> EventStatus = "get_event_status";
        wait() -> () = "block_host_for_event";
    }
}

impl<S: Stream> Timer<Faulty<S>> for Faulty<Box<dyn Timer<S>>> {
    fn start(&self, stream: &Faulty<S>) -> Result<()> {
        self.faults.call("start_timer", || self.inner.start(&stream.inner))
    }

    fn stop(&self, stream: &Faulty<S>) -> Result<()> {
        self.faults.call("stop_timer", || self.inner.stop(&stream.inner))
    }

    pass! {
        elapsed -> Duration;
    }
}

/// Runs a scenario once without a fault, and then once for each call that it made, which meets the
/// fault: "each call fails once" in one line. Returns how many runs there were.
///
/// Each run has its own platform and host. `scenario` gets whether a fault will happen. An operation that TensorFlow
/// calls without a status cannot report a fault; the device's status then does.
///
/// How often an event's status is polled varies. If a run polls less often than the first one did, a fault at one of
/// the last calls does not happen. That is accepted, and the call may stay untested.
///
/// ```
/// # mod toy { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/device/toy.rs")); }
/// # use toy::*;
/// use se_plugin::Code;
/// use tf_plugin_testing::device::{Fault, sweep};
///
/// let runs = sweep::<Toy>(Fault::Fail(Code::Unavailable), |host, fails| {
///     let Ok(device) = host.device(0) else { return assert!(fails) };
///     if let Some(memory) = device.allocate(64) {
///         let copied = device.copy_to_device(memory, &[1; 64]);
///         assert!(fails || copied.is_ok());
///         device.deallocate(memory);
///     }
/// });
/// assert!(runs >= 4);
/// ```
///
/// # Panics
/// Panics if the scenario does, if a run does not reach the call that is to meet the fault, if the platform cannot be
/// registered although no call of it fails, or if the plugin breaks a rule of the C boundary.
#[track_caller]
pub fn sweep<P: Platform>(fault: Fault, scenario: impl Fn(&Host, bool)) -> u64 {
    let run = |call: Option<u64>| {
        let faults = no_faults();
        if let Some(call) = call {
            faults.at_call(call, fault);
        }
        match Faulty::<P>::load_with(&faults) {
            Ok(host) => {
                scenario(&host, call.is_some());
                host.check();
            }
            Err(error) => assert!(call.is_some(), "the platform cannot be registered: {error:#}"),
        }
        faults
    };
    // This one is polled until the event is complete.
    faults_of_each(&["get_event_status"], run)
}

//! Devices with one defect each: the cases find every one, and none in a device without.

use se_plugin::host::{Delay, HostDevice, HostMemory, WorkerEvent, WorkerStream};
use se_plugin::prelude::*;
use se_plugin::{AllocatorStats, HostTimer, Timer};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tf_plugin_testing::device::{Case, Fault, Verdict, cases, run_case, sweep};

/// What is wrong with a device.
macro_rules! list {
    ($($name:ident $text:literal => $case:ident,)*) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms, reason = "numbers with names")]
        #[derive(Clone, Copy, PartialEq, Eq)]
        #[repr(usize)]
        enum Defect { $($name,)* }

        /// What is wrong, the case that is to find it, and how it answers.
        const DEFECTS: &[(&str, &Case, fn(&'static Case, Duration) -> Verdict)] =
            &[$(($text, &cases::$case, run_case::<Defective<{ Defect::$name as usize }>>),)*];
    };
}

tf_plugin_conformance_tests::device_defects!(list);

const SIZE: u64 = 64 << 20;

/// A platform whose devices have the defect with this number.
struct Defective<const D: usize>;

const fn is<const D: usize>(defect: Defect) -> bool {
    D == defect as usize
}

fn wrong<T>(what: &str) -> Result<T> {
    Err(Error::unavailable(what.to_owned()))
}

impl<const D: usize> Platform for Defective<D> {
    const NAME: &'static str = "DEFECTIVE";
    const TYPE: &'static str = "DEFECTIVE";
    type Device = Broken<D>;

    fn new() -> Result<Self> {
        Ok(Self)
    }
    fn device_count(&self) -> Result<usize> {
        Ok(1)
    }
    fn open(&self, _ordinal: usize) -> Result<Broken<D>> {
        let delay = Delay::up_to(Duration::from_micros(300), 1);
        Ok(Broken {
            device: HostDevice::new(HostMemory::new(SIZE)?).with_delay(delay),
            streams: AtomicU64::new(0),
            shadow: Arc::default(),
        })
    }
}

struct Broken<const D: usize> {
    device: HostDevice,
    streams: AtomicU64,
    shadow: Arc<Shadow>,
}

/// What a defect needs to remember.
#[derive(Default)]
struct Shadow {
    freed: AtomicU64,
    last: Mutex<Option<DevicePtr>>,
    staging: Mutex<Vec<u8>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The address `bytes` behind another.
fn behind(address: DevicePtr, bytes: u64) -> DevicePtr {
    DevicePtr::new(address.address() + bytes).expect("it is behind an address")
}

impl<const D: usize> Device for Broken<D> {
    type Stream = BrokenStream<D>;
    type Event = BrokenEvent<D>;

    fn allocate(&self, bytes: u64) -> Result<DevicePtr> {
        if is::<D>(Defect::MemoryTwice)
            && bytes <= 4096
            && let Some(last) = lock(&self.shadow.last).take()
        {
            return Ok(last);
        }
        let memory = match self.device.allocate(bytes) {
            Err(_) if is::<D>(Defect::LittleForMuch) => self.device.allocate(256),
            result => result,
        }?;
        if is::<D>(Defect::Misaligned) {
            return Ok(behind(memory, 64));
        }
        if bytes >= 4096 {
            *lock(&self.shadow.last) = Some(memory);
        }
        Ok(memory)
    }
    fn deallocate(&self, memory: DevicePtr) -> Result<()> {
        if is::<D>(Defect::MemoryLeaks) || is::<D>(Defect::MemoryTwice) {
            return Ok(());
        }
        self.shadow.freed.fetch_add(1, Ordering::Relaxed);
        let offset = if is::<D>(Defect::Misaligned) { 64 } else { 0 };
        let start = DevicePtr::new(memory.address() - offset).expect("an address");
        self.device.deallocate(start)
    }
    fn memory_usage(&self) -> Result<MemoryUsage> {
        let MemoryUsage { free, total } = self.device.memory_usage()?;
        if is::<D>(Defect::FreeAboveTotal) {
            return Ok(MemoryUsage { free: total + 1, total });
        }
        let freed = self.shadow.freed.load(Ordering::Relaxed);
        let lost = if is::<D>(Defect::UsageOnlyFalls) { freed * 4096 } else { 0 };
        Ok(MemoryUsage { free: free.saturating_sub(lost), total })
    }
    fn create_stream(&self) -> Result<BrokenStream<D>> {
        let number = self.streams.fetch_add(1, Ordering::Relaxed);
        if is::<D>(Defect::StreamsRunOut) && number >= 100 {
            return wrong("there are 100 streams already");
        }
        let stream = self.device.create_stream()?;
        let has_waited = AtomicBool::new(false);
        Ok(BrokenStream { stream, has_waited, shadow: Arc::clone(&self.shadow) })
    }
    fn create_event(&self) -> Result<BrokenEvent<D>> {
        Ok(BrokenEvent { event: self.device.create_event()?, recorded: AtomicBool::new(false) })
    }
    fn copy_to_device(&self, target: DevicePtr, source: &[u8]) -> Result<()> {
        let mut len = source.len();
        if is::<D>(Defect::SyncToDeviceShort) {
            len -= len % 4;
        }
        self.device.copy_to_device(target, &source[..len])
    }
    fn copy_to_host(&self, mut target: HostBuf<'_>, source: DevicePtr) -> Result<()> {
        let short = usize::from(is::<D>(Defect::SyncToHostShort));
        let mut part = vec![0; target.len() - short];
        self.device.copy_to_host(HostBuf::from_slice(&mut part), source)?;
        target.write(0, &part);
        Ok(())
    }
    fn copy_on_device(&self, target: DevicePtr, source: DevicePtr, bytes: u64) -> Result<()> {
        let far = u64::from(is::<D>(Defect::SyncOnDeviceFar));
        self.device.copy_on_device(target, source, bytes + far)
    }
    fn synchronize(&self) -> Result<()> {
        if is::<D>(Defect::DeviceNoBlock) {
            return Ok(());
        }
        self.device.synchronize()
    }
    fn allocator_stats(&self) -> Option<AllocatorStats> {
        let mut stats = self.device.allocator_stats()?;
        if is::<D>(Defect::StatsForget) {
            stats.in_use = 0;
        }
        Some(stats)
    }
    fn create_timer(&self) -> Result<Box<dyn Timer<BrokenStream<D>>>> {
        Ok(Box::new(BrokenTimer::<D>(HostTimer::default(), Instant::now())))
    }
    fn gflops(&self) -> Option<f64> {
        is::<D>(Defect::NotANumber).then_some(f64::NAN)
    }
    fn pci_bus_id(&self) -> Option<String> {
        let whole = "0000:00:02.1";
        Some(if is::<D>(Defect::PciShort) { &whole[5..] } else { whole }.to_owned())
    }
    fn vendor(&self) -> Option<String> {
        Some(if is::<D>(Defect::NoVendor) { "" } else { "Nobody" }.to_owned())
    }
}

struct BrokenStream<const D: usize> {
    stream: WorkerStream,
    has_waited: AtomicBool,
    shadow: Arc<Shadow>,
}

impl<const D: usize> BrokenStream<D> {
    /// Makes the byte at `at` another one.
    fn spoil(&self, at: DevicePtr) -> Result<()> {
        self.stream.fill(at, Pattern::Byte(0x99), 1)
    }
}

impl<const D: usize> Stream for BrokenStream<D> {
    type Event = BrokenEvent<D>;

    fn copy_to_device(&self, target: DevicePtr, source: HostSource) -> Result<()> {
        let len = source.len() as u64;
        self.stream.copy_to_device(target, source)?;
        if is::<D>(Defect::CopyToDeviceShort) {
            self.spoil(behind(target, len - 1))?;
        }
        Ok(())
    }
    fn copy_to_host(&self, target: HostTarget, source: DevicePtr) -> Result<()> {
        let len = target.len();
        if is::<D>(Defect::CopyToHostShort) {
            self.spoil(behind(source, len as u64 - 1))?;
        }
        if is::<D>(Defect::OneStagingBuffer) {
            let mut content = vec![0; len];
            self.stream.synchronize()?;
            self.stream.memory().read("staging", &mut content, source)?;
            *lock(&self.shadow.staging) = content;
            std::thread::yield_now();
            let staged = lock(&self.shadow.staging).clone();
            let mut target = target;
            let fits = staged.len().min(len);
            target.write(0, &staged[..fits]);
            target.complete(Ok(()));
            return Ok(());
        }
        self.stream.copy_to_host(target, source)
    }
    fn copy_on_device(&self, target: DevicePtr, source: DevicePtr, bytes: u64) -> Result<()> {
        let mut from = source;
        if is::<D>(Defect::CopyOnDeviceInSteps) {
            from = DevicePtr::new(source.address() & !255).expect("an address");
        }
        self.stream.copy_on_device(target, from, bytes)?;
        if is::<D>(Defect::CopyOnDeviceShort) {
            self.spoil(behind(target, bytes - 1))?;
        }
        Ok(())
    }
    fn fill(&self, target: DevicePtr, pattern: Pattern, bytes: u64) -> Result<()> {
        let mut bytes = bytes;
        let mut pattern = pattern;
        if is::<D>(Defect::FillShort) {
            bytes -= bytes % 4;
        }
        if is::<D>(Defect::FillFar) {
            bytes += 4;
        }
        if let Pattern::Word(word) = pattern
            && is::<D>(Defect::FillLowByte)
        {
            pattern = Pattern::Byte(word as u8);
        }
        if bytes == 0 || pattern == Pattern::Zero && is::<D>(Defect::ZeroNothing) {
            return Ok(());
        }
        if is::<D>(Defect::FillAtOnce) {
            let mut content = vec![0; bytes as usize];
            pattern.fill(&mut content);
            return self.stream.memory().write("fill", target, &content);
        }
        self.stream.fill(target, pattern, bytes)
    }
    fn wait_stream(&self, other: &Self) -> Result<()> {
        if is::<D>(Defect::NoStreamWait) {
            return Ok(());
        }
        self.has_waited.store(true, Ordering::Relaxed);
        self.stream.wait_stream(&other.stream)
    }
    fn record_event(&self, event: &BrokenEvent<D>) -> Result<()> {
        let again = event.recorded.swap(true, Ordering::Relaxed);
        if is::<D>(Defect::RecordNothing) || again && is::<D>(Defect::RecordOnce) {
            return Ok(());
        }
        self.stream.record_event(&event.event)
    }
    fn wait_event(&self, event: &BrokenEvent<D>) -> Result<()> {
        if is::<D>(Defect::NoEventWait) {
            return Ok(());
        }
        self.stream.wait_event(&event.event)
    }
    fn host_callback(&self, callback: HostCallback) -> Result<()> {
        if is::<D>(Defect::CallbackDropped) {
            return Ok(());
        }
        if is::<D>(Defect::CallbackEarly) {
            callback.complete(Ok(()));
            return Ok(());
        }
        self.stream.host_callback(callback)
    }
    fn synchronize(&self) -> Result<()> {
        let is_done = is::<D>(Defect::WaitIsNoWork) && self.has_waited.load(Ordering::Relaxed);
        if is_done || is::<D>(Defect::StreamNoBlock) {
            return Ok(());
        }
        self.stream.synchronize()
    }
    fn status(&self) -> Result<()> {
        let event = WorkerEvent::new();
        self.stream.record_event(&event)?;
        if is::<D>(Defect::StatusBusy) && event.status()? == EventStatus::Pending {
            return wrong("the stream is busy");
        }
        self.stream.status()
    }
}

struct BrokenEvent<const D: usize> {
    event: WorkerEvent,
    recorded: AtomicBool,
}

impl<const D: usize> Event for BrokenEvent<D> {
    fn status(&self) -> Result<EventStatus> {
        if is::<D>(Defect::EventEarly) {
            return Ok(EventStatus::Complete);
        }
        if is::<D>(Defect::EventNever) && self.recorded.load(Ordering::Relaxed) {
            return Ok(EventStatus::Pending);
        }
        self.event.status()
    }
    fn wait(&self) -> Result<()> {
        if is::<D>(Defect::EventNoBlock) {
            return Ok(());
        }
        self.event.wait()
    }
}

struct BrokenTimer<const D: usize>(HostTimer, Instant);

impl<const D: usize> Timer<BrokenStream<D>> for BrokenTimer<D> {
    fn start(&self, stream: &BrokenStream<D>) -> Result<()> {
        self.0.start(stream)
    }
    fn stop(&self, stream: &BrokenStream<D>) -> Result<()> {
        self.0.stop(stream)
    }
    fn elapsed(&self) -> Duration {
        match D {
            d if d == Defect::TimerZero as usize => Duration::ZERO,
            d if d == Defect::TimerRuns as usize => self.1.elapsed(),
            _ => Timer::<BrokenStream<D>>::elapsed(&self.0),
        }
    }
}

/// A device without a defect: its number is that of none.
type Sound = Defective<{ usize::MAX }>;

mod sound {
    tf_plugin_testing::device::conformance!(super::Sound);
}

/// How long a case may take on a device with a defect.
const LIMIT: Duration = Duration::from_secs(30);

/// How often a case may look for a defect.
const ATTEMPTS: usize = 5;

/// Whether a case has failed by what it says of the device, not by its own end.
fn is_finding(verdict: &Verdict) -> bool {
    let Verdict::Failed(found) = verdict else { return false };
    !["the test panicked", "it is not done", "there is no thread", "the test has ended"]
        .iter()
        .any(|end| found[0].what.starts_with(end))
}

#[test]
fn each_defect_is_found() {
    let (next, missed) = (Mutex::new(DEFECTS.iter()), Mutex::new(Vec::new()));
    let look = || {
        while let Some(&(what, case, run)) = { lock(&next).next() } {
            // Who does not wait is seen if the work is late, which a busy machine decides.
            let mut verdicts = (0..ATTEMPTS).map(|_| run(case, LIMIT));
            match verdicts.find(is_finding) {
                Some(Verdict::Failed(found)) => println!("{what}: {case:?}: {}", found[0]),
                _ => lock(&missed).push(format!("{what}: {case:?}")),
            }
        }
    };
    // Two, because one waits 20 s for an event that never is.
    std::thread::scope(|scope| {
        scope.spawn(look);
        look();
    });
    let missed = lock(&missed);
    assert!(missed.is_empty(), "not found: {missed:#?}");
}

#[test]
#[should_panic = "is allocated already"]
fn a_sweep_fails_where_a_rule_of_the_c_boundary_is_broken() {
    sweep::<Defective<{ Defect::MemoryTwice as usize }>>(Fault::Panic, |host, _| {
        let device = host.device(0).expect("nothing fails");
        let _ = [device.allocate(8192), device.allocate(64)];
    });
}

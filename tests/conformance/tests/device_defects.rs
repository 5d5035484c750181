//! Devices with one defect each: the cases find every one, and none in a device without.

use se_plugin::host::{Delay, HostDevice, HostMemory, WorkerEvent, WorkerStream};
use se_plugin::prelude::*;
use se_plugin::{AllocatorStats, HostTimer, Timer};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tf_plugin_testing::device::{Case, Fault, Outcome, cases, failed_work, run_case, sweep};

/// The defect of a device.
macro_rules! list {
    ($($name:ident $text:literal => $case:ident,)*) => {
        #[derive(Clone, Copy, PartialEq, Eq)]
        enum Defect { $($name,)* }

        /// The defect, and the case that must find it.
        const DEFECTS: &[(Defect, &str, &Case)] = &[$((Defect::$name, $text, &cases::$case),)*];
    };
}

tf_plugin_conformance_tests::device_defects!(list);

const SIZE: u64 = 64 << 20;

/// The defects of the devices that each platform opens from now on.
static DEFECT: [Mutex<Option<Defect>>; 5] = [const { Mutex::new(None) }; 5];

/// One of the platforms: tests that run at once have one each.
struct Defective<const P: usize>;

impl<const P: usize> Platform for Defective<P> {
    const NAME: &'static str = "DEFECTIVE";
    const TYPE: &'static str = "DEFECTIVE";
    type Device = Broken;

    fn new() -> Result<Self> {
        Ok(Self)
    }
    fn device_count(&self) -> Result<usize> {
        Ok(2)
    }
    fn open(&self, ordinal: usize) -> Result<Broken> {
        let delay = Delay::up_to(Duration::from_micros(300), 1);
        Ok(Broken {
            device: HostDevice::new(HostMemory::new(SIZE)?).with_delay(delay),
            streams: AtomicU64::new(0),
            shadow: Arc::new(Shadow {
                defect: *lock(&DEFECT[P]),
                ordinal,
                is_forgetful: P == FORGETFUL,
                ..Shadow::default()
            }),
        })
    }
}

struct Broken {
    device: HostDevice,
    streams: AtomicU64,
    shadow: Arc<Shadow>,
}

/// A defect, and what it needs to remember.
#[derive(Default)]
struct Shadow {
    defect: Option<Defect>,
    freed: AtomicU64,
    last: Mutex<Option<DevicePtr>>,
    staging: Mutex<Vec<u8>>,
    held: Mutex<Option<HostCallback>>,
    ordinal: usize,
    /// Whether failures of enqueued work are not noted.
    is_forgetful: bool,
}

/// An address of the first device.
static OF_THE_FIRST: AtomicU64 = AtomicU64::new(0);

impl Shadow {
    fn is(&self, defect: Defect) -> bool {
        self.defect == Some(defect)
    }
    fn unless(&self, defect: Defect, work: impl FnOnce() -> Result<()>) -> Result<()> {
        if self.is(defect) { Ok(()) } else { work() }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The address `bytes` behind another.
fn behind(address: DevicePtr, bytes: u64) -> DevicePtr {
    DevicePtr::new(address.address() + bytes).expect("it is behind an address")
}

impl Device for Broken {
    type Stream = BrokenStream;
    type Event = BrokenEvent;

    fn allocate(&self, bytes: u64) -> Result<DevicePtr> {
        if self.shadow.is(Defect::MemoryTwice)
            && bytes <= 4096
            && let Some(last) = lock(&self.shadow.last).take()
        {
            return Ok(last);
        }
        let memory = match self.device.allocate(bytes) {
            Err(_) if self.shadow.is(Defect::LittleForMuch) => self.device.allocate(256),
            result => result,
        }?;
        if self.shadow.is(Defect::Misaligned) {
            return Ok(behind(memory, 64));
        }
        if self.shadow.is(Defect::OneAddressSpace) {
            let first = match self.shadow.ordinal {
                0 => memory.address(),
                _ => OF_THE_FIRST.load(Ordering::Relaxed),
            };
            OF_THE_FIRST.store(first, Ordering::Relaxed);
            return Ok(DevicePtr::new(first).expect("an address"));
        }
        if bytes >= 4096 {
            *lock(&self.shadow.last) = Some(memory);
        }
        Ok(memory)
    }
    fn deallocate(&self, memory: DevicePtr) -> Result<()> {
        if self.shadow.is(Defect::MemoryLeaks) || self.shadow.is(Defect::MemoryTwice) {
            return Ok(());
        }
        self.shadow.freed.fetch_add(1, Ordering::Relaxed);
        let offset = if self.shadow.is(Defect::Misaligned) { 64 } else { 0 };
        let start = DevicePtr::new(memory.address() - offset).expect("an address");
        self.device.deallocate(start)?;
        assert!(!self.shadow.is(Defect::DeallocatePanics), "the driver has lost its list");
        Ok(())
    }
    fn memory_usage(&self) -> Result<MemoryUsage> {
        let MemoryUsage { free, total } = self.device.memory_usage()?;
        if self.shadow.is(Defect::FreeAboveTotal) {
            return Ok(MemoryUsage { free: total + 1, total });
        }
        let freed = self.shadow.freed.load(Ordering::Relaxed);
        let lost = if self.shadow.is(Defect::UsageOnlyFalls) { freed * 4096 } else { 0 };
        Ok(MemoryUsage { free: free.saturating_sub(lost), total })
    }
    fn create_stream(&self) -> Result<BrokenStream> {
        let number = self.streams.fetch_add(1, Ordering::Relaxed);
        if self.shadow.is(Defect::StreamsRunOut) && number >= 100 {
            return Err(Error::unavailable("there are 100 streams already"));
        }
        let stream = self.device.create_stream()?;
        let has_waited = AtomicBool::new(false);
        Ok(BrokenStream { stream, has_waited, shadow: Arc::clone(&self.shadow) })
    }
    fn create_event(&self) -> Result<BrokenEvent> {
        let (event, recorded) = (self.device.create_event()?, AtomicBool::new(false));
        Ok(BrokenEvent { event, recorded, shadow: Arc::clone(&self.shadow) })
    }
    fn copy_to_device(&self, target: DevicePtr, source: &[u8]) -> Result<()> {
        let mut len = source.len();
        if self.shadow.is(Defect::SyncToDeviceShort) {
            len -= len % 4;
        }
        self.device.copy_to_device(target, &source[..len])
    }
    fn copy_to_host(&self, mut target: HostBuf<'_>, source: DevicePtr) -> Result<()> {
        let short = usize::from(self.shadow.is(Defect::SyncToHostShort));
        let mut part = vec![0; target.len() - short];
        self.device.copy_to_host(HostBuf::from_slice(&mut part), source)?;
        target.write(0, &part);
        Ok(())
    }
    fn copy_on_device(&self, target: DevicePtr, source: DevicePtr, bytes: u64) -> Result<()> {
        let far = u64::from(self.shadow.is(Defect::SyncOnDeviceFar));
        self.device.copy_on_device(target, source, bytes + far)
    }
    fn synchronize(&self) -> Result<()> {
        let ended = self.shadow.unless(Defect::DeviceNoBlock, || self.device.synchronize());
        if self.shadow.is_forgetful { Ok(()) } else { ended }
    }
    fn allocator_stats(&self) -> Option<AllocatorStats> {
        let mut stats = self.device.allocator_stats()?;
        if self.shadow.is(Defect::StatsForget) {
            stats.in_use = 0;
        }
        Some(stats)
    }
    fn create_timer(&self) -> Result<Box<dyn Timer<BrokenStream>>> {
        let shadow = Arc::clone(&self.shadow);
        Ok(Box::new(BrokenTimer(HostTimer::default(), Instant::now(), shadow)))
    }
    fn gflops(&self) -> Option<f64> {
        self.shadow.is(Defect::NotANumber).then_some(f64::NAN)
    }
    fn pci_bus_id(&self) -> Option<String> {
        let whole = "0000:00:02.1";
        Some(if self.shadow.is(Defect::PciShort) { &whole[5..] } else { whole }.to_owned())
    }
    fn vendor(&self) -> Option<String> {
        Some(if self.shadow.is(Defect::NoVendor) { "" } else { "Nobody" }.to_owned())
    }
}

struct BrokenStream {
    stream: WorkerStream,
    has_waited: AtomicBool,
    shadow: Arc<Shadow>,
}

impl BrokenStream {
    /// Makes the byte at `at` another one.
    fn spoil(&self, at: DevicePtr) -> Result<()> {
        self.stream.fill(at, Pattern::Byte(0x99), 1)
    }
}

impl Stream for BrokenStream {
    type Event = BrokenEvent;

    fn copy_to_device(&self, target: DevicePtr, source: HostSource) -> Result<()> {
        let len = source.len() as u64;
        self.stream.copy_to_device(target, source)?;
        if self.shadow.is(Defect::CopyToDeviceShort) {
            self.spoil(behind(target, len - 1))?;
        }
        Ok(())
    }
    fn copy_to_host(&self, target: HostTarget, source: DevicePtr) -> Result<()> {
        let len = target.len();
        if self.shadow.is(Defect::CopyToHostShort) {
            self.spoil(behind(source, len as u64 - 1))?;
        }
        if self.shadow.is(Defect::OneStagingBuffer) {
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
        if self.shadow.is(Defect::CopyOnDeviceInSteps) {
            from = DevicePtr::new(source.address() & !255).expect("an address");
        }
        self.stream.copy_on_device(target, from, bytes)?;
        if self.shadow.is(Defect::CopyOnDeviceShort) {
            self.spoil(behind(target, bytes - 1))?;
        }
        Ok(())
    }
    fn fill(&self, target: DevicePtr, pattern: Pattern, bytes: u64) -> Result<()> {
        let (mut bytes, mut pattern) = (bytes, pattern);
        if self.shadow.is(Defect::FillShort) {
            bytes -= bytes % 4;
        }
        if self.shadow.is(Defect::FillFar) {
            bytes += 4;
        }
        if let Pattern::Word(word) = pattern
            && self.shadow.is(Defect::FillLowByte)
        {
            pattern = Pattern::Byte(word as u8);
        }
        if bytes == 0 || pattern == Pattern::Zero && self.shadow.is(Defect::ZeroNothing) {
            return Ok(());
        }
        if self.shadow.is(Defect::FillAtOnce) {
            let mut content = vec![0; bytes as usize];
            pattern.fill(&mut content);
            return self.stream.memory().write("fill", target, &content);
        }
        self.stream.fill(target, pattern, bytes)
    }
    fn wait_stream(&self, other: &Self) -> Result<()> {
        self.has_waited.store(true, Ordering::Relaxed);
        self.shadow.unless(Defect::NoStreamWait, || self.stream.wait_stream(&other.stream))
    }
    fn record_event(&self, event: &BrokenEvent) -> Result<()> {
        let again = event.recorded.swap(true, Ordering::Relaxed);
        if self.shadow.is(Defect::RecordNothing) || again && self.shadow.is(Defect::RecordOnce) {
            return Ok(());
        }
        self.stream.record_event(&event.event)
    }
    fn wait_event(&self, event: &BrokenEvent) -> Result<()> {
        self.shadow.unless(Defect::NoEventWait, || self.stream.wait_event(&event.event))
    }
    fn host_callback(&self, callback: HostCallback) -> Result<()> {
        if self.shadow.is(Defect::CallbackDropped) {
            return Ok(());
        }
        if self.shadow.is(Defect::CallbackEarly) {
            callback.complete(Ok(()));
            return Ok(());
        }
        if self.shadow.is(Defect::CallbackOnCaller) {
            self.stream.synchronize()?;
            callback.complete(Ok(()));
            return Ok(());
        }
        if self.shadow.is(Defect::CallbackBeside) {
            return self.stream.host_callback(HostCallback::new(|outcome| {
                std::thread::spawn(|| callback.complete(outcome));
                Ok(())
            }));
        }
        let mut held = lock(&self.shadow.held);
        if self.shadow.is(Defect::CallbacksSwapped) && held.is_none() {
            *held = Some(callback);
            return Ok(());
        }
        self.stream.host_callback(callback)?;
        held.take().map_or(Ok(()), |first| self.stream.host_callback(first))
    }
    fn synchronize(&self) -> Result<()> {
        let is_done =
            self.shadow.is(Defect::WaitIsNoWork) && self.has_waited.load(Ordering::Relaxed);
        if is_done || self.shadow.is(Defect::StreamNoBlock) {
            return Ok(());
        }
        self.stream.synchronize()
    }
    fn status(&self) -> Result<()> {
        let event = WorkerEvent::new();
        self.stream.record_event(&event)?;
        if self.shadow.is(Defect::StatusBusy) && event.status()? == EventStatus::Pending {
            return Err(Error::unavailable("the stream is busy"));
        }
        if self.shadow.is_forgetful { Ok(()) } else { self.stream.status() }
    }
}

struct BrokenEvent {
    event: WorkerEvent,
    recorded: AtomicBool,
    shadow: Arc<Shadow>,
}

impl Event for BrokenEvent {
    fn status(&self) -> Result<EventStatus> {
        if self.shadow.is(Defect::EventEarly) {
            return Ok(EventStatus::Complete);
        }
        if self.shadow.is(Defect::EventNever) && self.recorded.load(Ordering::Relaxed) {
            return Ok(EventStatus::Pending);
        }
        self.event.status()
    }
    fn wait(&self) -> Result<()> {
        self.shadow.unless(Defect::EventNoBlock, || self.event.wait())
    }
}

struct BrokenTimer(HostTimer, Instant, Arc<Shadow>);

impl Timer<BrokenStream> for BrokenTimer {
    fn start(&self, stream: &BrokenStream) -> Result<()> {
        self.0.start(stream)
    }
    fn stop(&self, stream: &BrokenStream) -> Result<()> {
        self.0.stop(stream)
    }
    fn elapsed(&self) -> Duration {
        match self.2.defect {
            Some(Defect::TimerZero) => Duration::ZERO,
            Some(Defect::TimerRuns) => self.1.elapsed(),
            _ => Timer::<BrokenStream>::elapsed(&self.0),
        }
    }
}

/// Has no defect.
type Sound = Defective<0>;

mod sound {
    tf_plugin_testing::device::conformance!(super::Sound);
}

/// How long a case may take on a device with a defect.
const LIMIT: Duration = Duration::from_secs(30);

/// How often a case may look for a defect.
const ATTEMPTS: usize = 5;

/// Whether a case has failed by what it says of the device, not by its own end.
fn is_finding(outcome: &Outcome) -> bool {
    let Outcome::Failed(found) = outcome else { return false };
    !["the test panicked", "it is not done", "there is no thread", "the test has ended"]
        .iter()
        .any(|end| found[0].what.starts_with(end))
}

/// Takes one defect after the other, and adds those that are not found.
fn look<const P: usize>(
    next: &Mutex<std::slice::Iter<'_, (Defect, &str, &'static Case)>>,
    missed: &Mutex<Vec<String>>,
) {
    while let Some(&(defect, what, case)) = { lock(next).next() } {
        *lock(&DEFECT[P]) = Some(defect);
        // A missing wait shows only if the work is late, which depends on the machine's load.
        let mut verdicts = (0..ATTEMPTS).map(|_| run_case::<Defective<P>>(case, LIMIT));
        match verdicts.find(is_finding) {
            Some(Outcome::Failed(found)) => println!("{what}: {case:?}: {}", found[0]),
            _ => lock(missed).push(format!("{what}: {case:?}")),
        }
    }
}

#[test]
fn each_defect_is_found() {
    let (next, missed) = (Mutex::new(DEFECTS.iter()), Mutex::new(Vec::new()));
    // Two, because one waits 20 s for an event that never is.
    std::thread::scope(|scope| {
        scope.spawn(|| look::<1>(&next, &missed));
        look::<2>(&next, &missed);
    });
    let missed = lock(&missed);
    assert!(missed.is_empty(), "not found: {missed:#?}");
}

/// The platform whose devices note no failure.
const FORGETFUL: usize = 4;

#[test]
fn failed_work_must_be_reported() {
    fn fail(stream: &BrokenStream) -> Result<()> {
        let fails = |[]: [&[u8]; 0], []: [&mut [u8]; 0]| Err(Error::internal("requested"));
        stream.stream.launch("a bad kernel", [], [], fails)
    }
    assert_eq!(failed_work::<Sound>(fail), Outcome::Passed);
    // Work that succeeds is not what was promised.
    let found = [failed_work::<Defective<FORGETFUL>>(fail), failed_work::<Sound>(|_| Ok(()))];
    for outcome in found {
        let Outcome::Failed(found) = outcome else { panic!("not found") };
        assert_eq!(found.len(), 2, "{found:#?}");
    }
}

#[test]
#[should_panic = "is allocated already"]
fn a_sweep_fails_where_a_rule_of_the_c_boundary_is_broken() {
    *lock(&DEFECT[3]) = Some(Defect::MemoryTwice);
    sweep::<Defective<3>>(Fault::Panic, |host, _| {
        let device = host.device(0).expect("nothing fails");
        let _ = [device.allocate(8192), device.allocate(64)];
    });
}

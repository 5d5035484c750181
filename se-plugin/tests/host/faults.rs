//! A device whose methods fail or panic on request: no call ends the process, and each failure is told.

use hostdevice::{Fence, HostDevice, HostPlatform, Queue};
use se_plugin::prelude::*;
use se_plugin::testing::Host;
use std::sync::{Mutex, MutexGuard, PoisonError};

static FAULT: Mutex<(&str, bool)> = Mutex::new(("", false));
/// Copies that nobody has made yet.
static KEPT: Mutex<Vec<HostSource>> = Mutex::new(Vec::new());
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn fault(op: &'static str, panics: bool) {
    *FAULT.lock().unwrap_or_else(PoisonError::into_inner) = (op, panics);
}

fn alone() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

fn trip(op: &str) -> Result<()> {
    let (wanted, panics) = *FAULT.lock().unwrap_or_else(PoisonError::into_inner);
    match (wanted == op, panics) {
        (false, _) => Ok(()),
        (true, true) => panic!("asked for it"),
        (true, false) => Err(Error::unavailable("asked for it")),
    }
}

struct Faulty;
struct FaultyDevice(HostDevice);
struct FaultyStream(Queue);
struct FaultyEvent(Fence);

impl Platform for Faulty {
    const NAME: &'static str = "FAULTY";
    const TYPE: &'static str = "FAULTY";
    type Device = FaultyDevice;

    fn new() -> Result<Self> {
        trip("new").map(|()| Self)
    }
    fn device_count(&self) -> Result<usize> {
        trip("device_count").map(|()| 1)
    }
    fn open(&self, ordinal: usize) -> Result<FaultyDevice> {
        trip("open")?;
        HostPlatform::new()?.open(ordinal).map(FaultyDevice)
    }
}

impl Device for FaultyDevice {
    type Stream = FaultyStream;
    type Event = FaultyEvent;

    fn allocate(&self, bytes: u64) -> Result<DevicePtr> {
        trip("allocate").and_then(|()| self.0.allocate(bytes))
    }
    fn deallocate(&self, memory: DevicePtr) -> Result<()> {
        trip("deallocate").and_then(|()| self.0.deallocate(memory))
    }
    fn memory_usage(&self) -> Result<MemoryUsage> {
        trip("memory_usage").and_then(|()| self.0.memory_usage())
    }
    fn create_stream(&self) -> Result<FaultyStream> {
        trip("create_stream").and_then(|()| self.0.create_stream()).map(FaultyStream)
    }
    fn create_event(&self) -> Result<FaultyEvent> {
        trip("create_event").and_then(|()| self.0.create_event()).map(FaultyEvent)
    }
    fn copy_to_device(&self, target: DevicePtr, source: &[u8]) -> Result<()> {
        trip("sync_to_device").and_then(|()| self.0.copy_to_device(target, source))
    }
    fn copy_to_host(&self, target: &mut [u8], source: DevicePtr) -> Result<()> {
        trip("sync_to_host").and_then(|()| self.0.copy_to_host(target, source))
    }
    fn copy_on_device(&self, target: DevicePtr, source: DevicePtr, bytes: u64) -> Result<()> {
        self.0.copy_on_device(target, source, bytes)
    }
    fn synchronize(&self) -> Result<()> {
        trip("synchronize").and_then(|()| self.0.synchronize())
    }
}

impl Stream for FaultyStream {
    type Event = FaultyEvent;

    fn copy_to_device(&self, target: DevicePtr, source: HostSource) -> Result<()> {
        if trip("keep the token").is_err() {
            KEPT.lock().unwrap_or_else(PoisonError::into_inner).push(source);
            return Ok(());
        }
        trip("copy_to_device").and_then(|()| self.0.copy_to_device(target, source))
    }
    fn copy_to_host(&self, target: HostTarget, source: DevicePtr) -> Result<()> {
        trip("copy_to_host").and_then(|()| self.0.copy_to_host(target, source))
    }
    fn copy_on_device(&self, target: DevicePtr, source: DevicePtr, bytes: u64) -> Result<()> {
        trip("copy_on_device").and_then(|()| self.0.copy_on_device(target, source, bytes))
    }
    fn fill(&self, target: DevicePtr, pattern: Pattern, bytes: u64) -> Result<()> {
        trip("fill").and_then(|()| self.0.fill(target, pattern, bytes))
    }
    fn wait_for_stream(&self, other: &Self) -> Result<()> {
        trip("wait_for_stream").and_then(|()| self.0.wait_for_stream(&other.0))
    }
    fn record(&self, event: &FaultyEvent) -> Result<()> {
        trip("record").and_then(|()| self.0.record(&event.0))
    }
    fn wait(&self, event: &FaultyEvent) -> Result<()> {
        trip("wait").and_then(|()| self.0.wait(&event.0))
    }
    fn host_callback(&self, callback: HostCallback) -> Result<()> {
        trip("host_callback").and_then(|()| self.0.host_callback(callback))
    }
    fn synchronize(&self) -> Result<()> {
        trip("stream_synchronize").and_then(|()| self.0.synchronize())
    }
    fn status(&self) -> Result<()> {
        trip("stream_status").and_then(|()| self.0.status())
    }
}

impl Event for FaultyEvent {
    fn status(&self) -> Result<EventStatus> {
        trip("event_status").and_then(|()| self.0.status())
    }
    fn wait(&self) -> Result<()> {
        trip("event_wait").and_then(|()| self.0.wait())
    }
}

/// Runs everything with one fault and answers the error of the next `synchronize_all_activity`, once the
/// fault is over.
fn run(op: &'static str, panics: bool) -> Result<()> {
    fault("", false);
    let host = Host::load::<Faulty>().unwrap();
    assert_eq!(host.device_count().unwrap(), 1);
    let after = {
        let device = host.device(0).unwrap();
        let memory = device.allocate(64).unwrap();
        let target = device.allocate(64).unwrap();
        fault(op, panics);
        let mut back = [0; 64];
        let ((stream, _), (other, _)) = (device.stream(), device.stream());
        let _ = stream.copy_to_device(memory, &[1; 64]);
        let _ = stream.copy_on_device(target, memory, 64);
        let _ = stream.fill(memory, Pattern::Zero, 64);
        let _ = stream.copy_to_host(&mut back, target);
        let _ = other.wait_for_stream(&stream);
        let event = device.event().expect("an event in any case");
        stream.record(&event);
        let _ = other.wait(&event);
        let _ = event.status();
        let _ = event.wait();
        stream.record(&device.null_event());
        let _ = device.null_event().status();
        let called = stream.host_callback().expect("made in any case");
        let _ = (stream.synchronize(), stream.status(), device.memory_usage());
        fault("", false);
        stream.synchronize().ok();
        assert_eq!(called.try_iter().count(), 1, "{op}: the host callback is made once");
        fault(op, panics);
        let _ = device.copy_to_device(memory, &[2; 64]);
        let _ = device.copy_to_host(&mut back, memory);
        device.deallocate(memory);
        let _ = device.allocate(5000).map(|memory| device.deallocate(memory));
        fault("", false);
        device.synchronize()
    };
    assert_eq!(host.live(), 0, "{op}");
    assert_eq!(host.violations(), [], "{op}");
    after
}

#[test]
fn failures_that_the_host_does_not_take_are_sticky() {
    let _alone = alone();
    for panics in [false, true] {
        for op in [
            "create_stream",
            "copy_to_device",
            "copy_on_device",
            "fill",
            "wait_for_stream",
            "record",
            "wait",
            "event_status",
            "allocate",
        ] {
            let error = run(op, panics).expect_err(op);
            assert!(error.message().contains("asked for it"), "{op}: {error}");
            let is_panic = error.message().contains("plugin panicked in");
            assert_eq!(is_panic, panics, "{op}: {error}");
        }
    }
}

/// The callback is made while the method ends, so this is the first failure.
#[test]
fn a_host_callback_that_is_thrown_away_is_sticky() {
    let _alone = alone();
    for panics in [false, true] {
        let error = run("host_callback", panics).expect_err("sticky");
        assert!(error.message().contains("`HostCallback` was dropped"), "{error}");
    }
}

#[test]
fn failures_that_the_host_takes_leave_the_device_well() {
    let _alone = alone();
    for panics in [false, true] {
        for op in [
            "",
            "create_event",
            "copy_to_host",
            "synchronize",
            "stream_synchronize",
            "stream_status",
            "event_wait",
            "sync_to_device",
            "sync_to_host",
            "memory_usage",
            "deallocate",
        ] {
            run(op, panics).unwrap_or_else(|error| panic!("{op}: {error}"));
        }
    }
}

#[test]
fn what_cannot_be_opened_is_not_counted() {
    let _alone = alone();
    for panics in [false, true] {
        for op in ["new", "device_count", "open"] {
            fault(op, panics);
            let host = Host::load::<Faulty>().unwrap();
            assert_eq!(host.device_count().unwrap(), 0, "{op}");
            fault("", false);
            assert_eq!(host.device_count().unwrap(), 0, "{op}: the answer is stable");
            assert!(host.device(0).is_err());
            assert_eq!(host.null_members(), []);
        }
    }
}

/// The host frees the memory as soon as an event behind the copy is complete.
#[test]
fn no_event_is_complete_before_the_copies_in_front_of_it() {
    let _alone = alone();
    for completes in [true, false] {
        fault("", false);
        let host = Host::load::<Faulty>().unwrap();
        let device = host.device(0).unwrap();
        let memory = device.allocate(64).unwrap();
        let (stream, _) = device.stream();
        fault("keep the token", false);
        std::thread::scope(|scope| {
            let copy = scope.spawn(|| stream.copy_to_device(memory, &[3; 64]));
            let source = loop {
                match KEPT.lock().unwrap_or_else(PoisonError::into_inner).pop() {
                    Some(source) => break source,
                    None => std::thread::yield_now(),
                }
            };
            std::thread::sleep(std::time::Duration::from_millis(50));
            assert!(!copy.is_finished(), "the event is complete and the token is not");
            let mut content = [0; 64];
            if completes {
                source.copy_to(&mut content);
                assert_eq!(content, [3; 64]);
            } else {
                drop(source);
            }
            copy.join().unwrap().unwrap();
        });
        fault("", false);
        let result = device.synchronize();
        assert_eq!(result.is_ok(), completes, "{result:?}");
    }
}

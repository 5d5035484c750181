//! A device whose methods fail or panic on request: no call ends the process, and each failure is told.

use crate::abi::Counted;
use se_plugin::__private::Loads;
use se_plugin::host::{HostDevice, HostMemory, WorkerEvent, WorkerStream};
use se_plugin::prelude::*;
use se_plugin::{AllocatorStats, HostAllocator};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tf_plugin_testing::device::{Host, Sizes};

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
        (true, true) => panic!("requested it"),
        (true, false) => Err(Error::unavailable("requested it")),
    }
}

struct Faulty;
struct FaultyDevice(HostDevice);
struct FaultyStream(WorkerStream);
struct FaultyEvent(WorkerEvent);

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
    fn open(&self, _: usize) -> Result<FaultyDevice> {
        trip("open")?;
        Ok(FaultyDevice(HostDevice::new(HostMemory::new(64 << 20)?)))
    }
}

impl Device for FaultyDevice {
    type Stream = FaultyStream;
    type Event = FaultyEvent;

    fn allocate(&self, bytes: u64) -> Result<DevicePtr> {
        trip("allocate")?;
        let memory = self.0.allocate(bytes)?;
        if trip("align").is_err() {
            self.0.deallocate(memory)?;
            return Ok(DevicePtr::new(memory.address() + 8).expect("not 0"));
        }
        Ok(memory)
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
    fn copy_to_host(&self, target: HostBuf<'_>, source: DevicePtr) -> Result<()> {
        trip("sync_to_host").and_then(|()| self.0.copy_to_host(target, source))
    }
    fn copy_on_device(&self, target: DevicePtr, source: DevicePtr, bytes: u64) -> Result<()> {
        trip("sync_on_device").and_then(|()| self.0.copy_on_device(target, source, bytes))
    }
    fn synchronize(&self) -> Result<()> {
        trip("synchronize").and_then(|()| self.0.synchronize())
    }
    fn allocator_stats(&self) -> Option<AllocatorStats> {
        trip("allocator_stats").ok().map(|()| STATS)
    }
    fn host_allocator(&self) -> Option<&dyn HostAllocator> {
        trip("host_allocator").ok().map(|()| &MEMORY as &dyn HostAllocator)
    }
    fn hardware_name(&self) -> Option<String> {
        trip("hardware_name").ok().map(|()| String::from("a name"))
    }
    fn vendor(&self) -> Option<String> {
        trip("vendor").ok().map(|()| String::from("NUL \0 in the middle"))
    }
    fn pci_bus_id(&self) -> Option<String> {
        trip("pci_bus_id").ok().map(|()| String::from("0000:00:02.1"))
    }
    fn numa_node(&self) -> Option<u16> {
        trip("numa_node").ok().map(|()| 3)
    }
    fn memory_bandwidth(&self) -> Option<u64> {
        trip("memory_bandwidth").ok().map(|()| u64::MAX)
    }
    fn gflops(&self) -> Option<f64> {
        trip("gflops").ok().map(|()| 2.5)
    }
}

static MEMORY: Counted = Counted::new(|| trip("host memory"));

const STATS: AllocatorStats = AllocatorStats {
    allocations: 1,
    in_use: 2,
    peak_in_use: 3,
    largest_allocation: 4,
    limit: Some(5),
    reserved: 6,
    peak_reserved: 7,
    reservable_limit: None,
    largest_free_block: u64::MAX,
};

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
    fn wait_stream(&self, other: &Self) -> Result<()> {
        trip("wait_stream").and_then(|()| self.0.wait_stream(&other.0))
    }
    fn record_event(&self, event: &FaultyEvent) -> Result<()> {
        trip("record_event").and_then(|()| self.0.record_event(&event.0))
    }
    fn wait_event(&self, event: &FaultyEvent) -> Result<()> {
        trip("wait_event").and_then(|()| self.0.wait_event(&event.0))
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

fn load(takes_errors: bool) -> Host {
    let sizes = Sizes { takes_errors, ..Sizes::default() };
    Host::load_with::<Faulty>(sizes, &Loads::new()).unwrap()
}

/// Runs everything with one fault and answers the error of the next `synchronize_all_activity`, once the
/// fault is over. `takes_errors`: in a host that takes errors of copies.
fn run(op: &'static str, panics: bool, takes_errors: bool) -> Result<()> {
    fault("", false);
    let host = load(takes_errors);
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
        let _ = other.wait_stream(&stream);
        let event = device.event().expect("an event in any case");
        stream.record_event(&event);
        let _ = other.wait_event(&event);
        let _ = event.status();
        let _ = event.wait();
        stream.record_event(&device.null_event());
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
    let always = ["create_stream", "fill", "record_event", "event_status", "allocate"];
    let without = ["copy_to_device", "copy_on_device", "wait_stream", "wait_event"];
    for panics in [false, true] {
        let cases = always.iter().flat_map(|op| [(op, false), (op, true)]);
        for (op, takes) in cases.chain(without.iter().map(|op| (op, false))) {
            let error = run(op, panics, takes).expect_err(op);
            assert!(error.message().contains("requested it"), "{op}: {error}");
            let is_panic = error.message().contains("plugin panicked in");
            assert_eq!(is_panic, panics, "{op}: {error}");
        }
        for op in without {
            run(op, panics, true).unwrap_or_else(|error| panic!("{op}: {error}"));
        }
    }
}

/// The callback is made while the method ends, so this is the first failure.
#[test]
fn a_host_callback_that_is_thrown_away_is_sticky() {
    let _alone = alone();
    for panics in [false, true] {
        for takes in [false, true] {
            let error = run("host_callback", panics, takes).expect_err("sticky");
            assert!(error.message().contains("`HostCallback` was dropped"), "{error}");
        }
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
            for takes in [false, true] {
                run(op, panics, takes).unwrap_or_else(|error| panic!("{op}: {error}"));
            }
        }
    }
}

/// What the failing method itself answers.
#[test]
fn errors_are_answered_where_the_host_takes_them() {
    let _alone = alone();
    for takes in [false, true] {
        fault("", false);
        let host = load(takes);
        assert_eq!(host.device_count().unwrap(), 1);
        let device = host.device(0).unwrap();
        let [memory, target] = [(); 2].map(|()| device.allocate(64).unwrap());
        let ((stream, _), (other, _)) = (device.stream(), device.stream());
        let event = device.event().unwrap();
        let mut back = [0; 64];
        let mut answers = |op| {
            fault(op, false);
            let answers = [
                stream.copy_to_device(memory, &[1; 64]),
                stream.copy_on_device(target, memory, 64),
                stream.wait_stream(&other),
                stream.wait_event(&event),
            ];
            let fetched = stream.copy_to_host(&mut back, memory);
            fault("", false);
            (answers.map(|answer| answer.is_err()), fetched.is_err())
        };
        let none = [false; 4];
        assert_eq!(answers("copy_to_host"), (none, true), "always");
        if takes {
            for (index, op) in
                ["copy_to_device", "copy_on_device", "wait_stream", "wait_event"].iter().enumerate()
            {
                let mut one = none;
                one[index] = true;
                assert_eq!(answers(op), (one, false), "{op}");
            }
            device.synchronize().unwrap();
        } else {
            assert_eq!(
                answers("copy_to_device"),
                (none, true),
                "its own, and of the failed device"
            );
        }
        fault("fill", false);
        assert_eq!(stream.fill(memory, Pattern::Zero, 64).is_err(), takes);
        fault("", false);
        // Nobody has looked at that, so from now on nothing works.
        let all = [takes; 4];
        assert_eq!(answers(""), (all, true));
        assert!(device.synchronize().is_err() && stream.status().is_err());
        device.deallocate(memory);
        device.deallocate(target);
    }
}

#[test]
fn a_stream_that_could_not_be_made_says_why() {
    let _alone = alone();
    for (takes, panics) in [(false, false), (false, true), (true, false), (true, true)] {
        fault("", false);
        let host = load(takes);
        assert_eq!(host.device_count().unwrap(), 1);
        let device = host.device(0).unwrap();
        let memory = device.allocate(64).unwrap();
        fault("create_stream", panics);
        let (stream, made) = device.stream();
        made.unwrap();
        fault("", false);
        let event = device.event().unwrap();
        stream.record_event(&event);
        assert_eq!(event.status(), EventStatus::Complete);
        let errors = [
            Some(stream.copy_to_device(memory, &[1; 64])).filter(|_| takes),
            Some(stream.copy_to_host(&mut [0; 64], memory)),
            Some(stream.status()),
            Some(stream.synchronize()),
            Some(device.synchronize()),
        ];
        for error in errors.into_iter().flatten() {
            let error = error.expect_err("there is no stream");
            assert!(error.message().contains("requested it"), "{error}");
        }
        let called = stream.host_callback().unwrap();
        assert!(called.recv().is_ok_and(|code| code != 0), "with an error");
        device.deallocate(memory);
        drop((stream, event));
        drop(device);
        assert_eq!((host.live(), host.violations()), (0, vec![]));
    }
}

/// TensorFlow counts on multiples of 256; and it repeats a small request forever when it gets nothing.
#[test]
fn an_address_that_is_not_aligned_is_refused() {
    let _alone = alone();
    fault("", false);
    let host = load(true);
    assert_eq!(host.device_count().unwrap(), 1);
    let device = host.device(0).unwrap();
    fault("align", false);
    assert!(device.allocate(5000).is_none());
    let memory = device.allocate(256).expect("no endless loop");
    fault("", false);
    assert_eq!(memory.address() % 256, 0);
    let error = device.synchronize().expect_err("it was not aligned");
    assert!(error.message().contains("multiple of 256"), "{error}");
    device.deallocate(memory);
    drop(device);
    assert_eq!((host.live(), host.violations()), (0, vec![]));
}

/// TensorFlow up to 2.16 goes on without a stream when there is none.
#[test]
fn null_handles_are_tolerated() {
    let _alone = alone();
    fault("", false);
    for takes in [false, true] {
        let host = load(takes);
        assert_eq!(host.device_count().unwrap(), 1);
        let device = host.device(0).unwrap();
        let memory = device.allocate(64).unwrap();
        let (stream, event) = (device.null_stream(), device.null_event());
        let (real, _) = device.stream();
        stream.synchronize().unwrap();
        event.wait().unwrap();
        assert_eq!(event.status(), EventStatus::Complete);
        stream.record_event(&event);
        real.record_event(&event);
        let answers = [
            stream.copy_to_device(memory, &[1; 64]),
            stream.copy_on_device(memory, memory, 64),
            stream.fill(memory, Pattern::Byte(1), 64),
            stream.wait_stream(&real),
            real.wait_stream(&stream),
            stream.wait_event(&event),
            real.wait_event(&event),
        ];
        // Where TensorFlow does not take the errors, the device reports them.
        assert!(answers.iter().all(|answer| answer.is_err() == takes), "{answers:?}");
        assert_eq!(device.synchronize().is_err(), !takes);
        assert!(stream.copy_to_host(&mut [0; 64], memory).is_err());
        assert!(stream.status().is_err());
        let called = stream.host_callback().unwrap();
        assert!(called.recv().is_ok_and(|code| code != 0), "with an error");
        device.deallocate(memory);
        drop((stream, event, real));
        drop(device);
        assert_eq!((host.live(), host.violations()), (0, vec![]));
    }
}

#[test]
fn a_device_describes_itself() {
    let _alone = alone();
    for panics in [false, true] {
        fault("", false);
        let host = load(false);
        assert_eq!(host.device_count().unwrap(), 1);
        let device = host.device(0).unwrap();
        let texts = [Some("a name"), None, Some("0000:00:02.1")];
        assert_eq!(device.description().each_ref().map(Option::as_deref), texts);
        assert_eq!(device.figures(), (3, i64::MAX, 2.5));
        for (op, figures) in [
            ("numa_node", (-1, i64::MAX, 2.5)),
            ("memory_bandwidth", (3, -1, 2.5)),
            ("gflops", (3, i64::MAX, -1.0)),
        ] {
            fault(op, panics);
            assert_eq!(device.figures(), figures, "{op}");
        }
        // The latest that is known stands in.
        fault("", false);
        // With it the SDK sets memory aside.
        let first = device.allocate(4096).unwrap();
        let free = device.memory_usage().expect("known")[0];
        let memory = device.allocate(4096).unwrap();
        fault("memory_usage", panics);
        assert_eq!(device.memory_usage().expect("known before")[0], free);
        fault("", false);
        assert_eq!(device.memory_usage().expect("known")[0], free - 4096);
        device.deallocate(memory);
        device.deallocate(first);
    }
    for op in ["hardware_name", "vendor", "pci_bus_id", "host_allocator"] {
        for panics in [false, true] {
            fault(op, panics);
            let host = load(false);
            let count = usize::from(!panics);
            assert_eq!(host.device_count().unwrap(), count, "{op}");
            fault("", false);
            let Ok(device) = host.device(0) else { continue };
            let known = device.description().iter().flatten().count();
            assert_eq!(
                known,
                if op.contains("name") || op.contains("pci") { 1 } else { 2 },
                "{op}"
            );
        }
    }
    fault("memory_usage", false);
    assert_eq!(load(false).device_count().unwrap(), 0, "TensorFlow would run nothing at all");
    fault("", false);
}

#[test]
fn statistics_reach_as_far_as_the_struct() {
    let _alone = alone();
    fault("", false);
    let host = load(false);
    assert_eq!(host.device_count().unwrap(), 1);
    let device = host.device(0).unwrap();
    let all = device.allocator_stats(96).expect("known");
    assert_eq!(
        [all.num_allocs, all.bytes_in_use, all.peak_bytes_in_use, all.largest_alloc_size],
        [1, 2, 3, 4]
    );
    assert_eq!((all.has_bytes_limit, all.bytes_limit), (1, 5));
    assert_eq!((all.bytes_reserved, all.peak_bytes_reserved), (6, 7));
    assert_eq!((all.has_bytes_reservable_limit, all.bytes_reservable_limit), (0, 0));
    assert_eq!(all.largest_free_block_bytes, i64::MAX);
    for size in 8..=96 + 64 {
        let stats = device.allocator_stats(size).expect("known");
        let read = [
            (16, stats.num_allocs, 1),
            (40, stats.largest_alloc_size, 4),
            (41, stats.has_bytes_limit.into(), 1),
            (56, stats.bytes_limit, 5),
            (96, stats.largest_free_block_bytes, i64::MAX),
        ];
        for (end, found, whole) in read {
            assert_eq!(found, if end <= size { whole } else { 0 }, "{end} of {size}");
        }
    }
    for size in 0..8 {
        assert_eq!(device.allocator_stats(size).map(|stats| stats.num_allocs), None, "{size}");
    }
    for panics in [false, true] {
        fault("allocator_stats", panics);
        assert!(device.allocator_stats(96).is_none());
    }
    fault("", false);
    drop(device);
    assert_eq!(host.violations(), []);
}

#[test]
fn host_memory_is_the_devices_own() {
    let _alone = alone();
    fault("", false);
    let host = load(false);
    assert_eq!(host.device_count().unwrap(), 1);
    let device = host.device(0).unwrap();
    let [live, total] = MEMORY.counts();
    for bytes in [1, 64, 5000] {
        assert!(device.host_memory(bytes) >= 64);
    }
    assert_eq!(device.host_memory(0), 0);
    assert_eq!(MEMORY.counts(), [live, total + 3]);
    for panics in [false, true] {
        fault("host memory", panics);
        assert_eq!(device.host_memory(64), 0, "null");
        fault("host_allocator", panics);
        assert_eq!(device.host_memory(64), 0, "no memory of another kind");
    }
    fault("", false);
    assert_eq!(MEMORY.counts()[0], live);
}

#[test]
fn copies_without_a_stream_are_done_at_once() {
    let _alone = alone();
    fault("", false);
    let host = load(true);
    assert_eq!(host.device_count().unwrap(), 1);
    let device = host.device(0).unwrap();
    let [one, two] = [(); 2].map(|()| device.allocate(64).unwrap());
    let mut back = [0; 64];
    device.copy_to_device(one, &[7; 64]).unwrap();
    device.copy_on_device(two, one, 64).unwrap();
    device.copy_to_host(&mut back, two).unwrap();
    assert_eq!(back, [7; 64]);
    device.copy_to_device(one, &[]).unwrap();
    device.copy_on_device(two, one, 0).unwrap();
    for panics in [false, true] {
        for op in ["sync_to_device", "sync_to_host", "sync_on_device"] {
            fault(op, panics);
            let answers = [
                device.copy_to_device(one, &[7; 64]),
                device.copy_on_device(two, one, 64),
                device.copy_to_host(&mut back, two),
            ];
            let failed = answers.iter().filter(|answer| answer.is_err()).count();
            assert_eq!(failed, 1, "{op}: {answers:?}");
        }
    }
    fault("", false);
    device.synchronize().unwrap();
    device.deallocate(one);
    device.deallocate(two);
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
            assert!(host.null_members().is_empty());
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

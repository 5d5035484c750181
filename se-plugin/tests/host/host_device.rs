//! The ready-made parts, alone and as a device of the host's.

use se_plugin::host::{
    Delay, DeviceRange, FinishedTask, HostDevice, HostMemory, WorkerEvent, WorkerStream,
};
use se_plugin::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

const SIZE: u64 = 1 << 20;

/// Enqueues a task that ends when something is sent to the returned channel.
fn hold_up(stream: &WorkerStream) -> mpsc::Sender<()> {
    let (go, gate) = mpsc::channel();
    let wait = move |[]: [&[u8]; 0], []: [&mut [u8]; 0]| gate.recv().map_err(Error::internal);
    stream.launch("slow", [], [], wait).unwrap();
    go
}

/// Creates a stream on its own memory.
fn worker() -> (HostMemory, WorkerStream) {
    let memory = HostMemory::new(SIZE).unwrap();
    let stream = WorkerStream::new(&memory, Delay::NONE);
    (memory, stream)
}

fn range(memory: &HostMemory, bytes: u64) -> DeviceRange {
    DeviceRange::new(memory.allocate(bytes).unwrap(), bytes)
}

fn content(memory: &HostMemory, range: DeviceRange) -> Vec<u8> {
    let mut content = vec![0; range.bytes() as usize];
    memory.read("test", &mut content, range.start().unwrap()).unwrap();
    content
}

#[test]
fn a_stream_copies_into_the_memory_of_another() {
    let ((memory, stream), (other, _)) = (worker(), worker());
    let expected: Vec<u8> = (0..10_000).map(|at| (at * 7) as u8).collect();
    let [from, to] = [&memory, &other].map(|memory| range(memory, 10_000));
    memory.write("test", from.start().unwrap(), &expected).unwrap();
    stream.copy_on_device(to.start().unwrap(), from.start().unwrap(), 10_000).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(content(&other, to), expected);
}

/// A cause whose destructor panics.
#[derive(Debug)]
struct PanicsOnDrop;

impl std::fmt::Display for PanicsOnDrop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a bad end")
    }
}

impl std::error::Error for PanicsOnDrop {}

impl Drop for PanicsOnDrop {
    fn drop(&mut self) {
        panic!("in the destructor")
    }
}

#[test]
fn the_first_failure_stays_and_ends_the_work() {
    for panics in [false, true] {
        let (memory, stream) = worker();
        let target = range(&memory, 8);
        memory.write("test", target.start().unwrap(), &[1; 8]).unwrap();
        let (go, gate) = mpsc::channel::<()>();
        stream
            .launch("Broken", [], [], move |[], []| {
                gate.recv().unwrap();
                assert!(!panics, "requested it");
                Err(Error::unavailable("requested it").with_source(PanicsOnDrop))
            })
            .unwrap();
        stream
            .launch("Later", [], [target], |[], [target]| {
                target.fill(2);
                Err(Error::internal("not the first"))
            })
            .unwrap();
        let (sender, called) = mpsc::channel();
        let callback = HostCallback::new(move |outcome| {
            sender.send(outcome.is_err()).unwrap();
            Ok(())
        });
        stream.host_callback(callback).unwrap();
        go.send(()).unwrap();
        let error = stream.synchronize().unwrap_err();
        assert!(error.message().contains("`Broken`"), "{error}");
        assert!(error.message().contains("requested it"), "{error}");
        assert_eq!(called.try_recv(), Ok(true), "callbacks are made, with the failure");
        assert_eq!(content(&memory, target), [1; 8], "what comes later is not done");
        let refused = stream.launch("Refused", [], [], |[], []| Ok(())).unwrap_err();
        assert_eq!(refused.message(), error.message());
        assert!(stream.status().is_err());
        let event = WorkerEvent::new();
        stream.record_event(&event).unwrap();
        event.wait().unwrap();
    }
}

#[test]
fn an_error_of_work_that_is_waited_for_is_the_callers() {
    let (memory, stream) = worker();
    let target = range(&memory, 8);
    let fails = |[]: [&[u8]; 0], [_]: [&mut [u8]; 1]| Err(Error::invalid_argument("by zero"));
    let error = stream.run("Div", [], [target], fails).unwrap_err();
    assert_eq!((error.code(), error.message()), (Code::InvalidArgument, "by zero"));
    let panics = |[]: [&[u8]; 0], []: [&mut [u8]; 0]| panic!("requested it");
    let error = stream.run("Div", [], [], panics).unwrap_err();
    assert!(error.message().contains("requested it"), "{error}");
    stream
        .run("Fill", [], [target], |[], [target]| {
            target.fill(3);
            Ok(())
        })
        .unwrap();
    assert_eq!(content(&memory, target), [3; 8]);
    stream.synchronize().unwrap();
}

#[test]
fn ranges_are_checked_on_the_callers_thread() {
    let (memory, stream) = worker();
    let target = range(&memory, 8);
    let behind = DeviceRange::new(target.start().unwrap(), 9);
    let error = stream.launch("MatMul", [behind], [], |[_], []| Ok(())).unwrap_err();
    assert!(error.message().contains("`MatMul`"), "{error}");
    let elsewhere = DevicePtr::new(4096).unwrap();
    assert!(stream.fill(elsewhere, Pattern::Zero, 8).is_err());
    assert!(stream.copy_on_device(target.start().unwrap(), elsewhere, 8).is_err());
    assert!(stream.copy_on_device(elsewhere, target.start().unwrap(), 8).is_err());
    // Work in place names its range once, as written.
    stream.launch("twice", [target], [target], |[_], [_]| Ok(())).unwrap();
    let error = stream.synchronize().unwrap_err();
    assert!(error.message().contains("among what it writes"), "{error}");
}

#[test]
fn a_task_that_waits_for_its_own_stream_fails() {
    let stream = Arc::new(worker().1);
    let same = Arc::clone(&stream);
    // The task drops its reference, which may be the last one.
    stream.launch("own", [], [], move |[], []| same.synchronize()).unwrap();
    let error = stream.synchronize().unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition);
}

#[test]
fn the_delays_are_there() {
    let memory = HostMemory::new(SIZE).unwrap();
    let stream = WorkerStream::new(&memory, Delay::up_to(Duration::from_millis(20), 3));
    let start = Instant::now();
    for _ in 0..5 {
        stream.launch("nothing", [], [], |[], []| Ok(())).unwrap();
    }
    stream.synchronize().unwrap();
    assert!(start.elapsed() > Duration::from_millis(10), "{:?}", start.elapsed());
}

/// Frees memory that enqueued work still uses, as TensorFlow does without `USE_BFC_ALLOCATOR`.
#[test]
fn memory_in_use_is_not_allocated_again() {
    let device = HostDevice::new(HostMemory::new(SIZE).unwrap());
    let [busy, idle] = [(); 2].map(|()| device.create_stream().unwrap());
    let memory = device.allocate(SIZE / 2).unwrap();
    let go = hold_up(&busy);
    busy.fill(memory, Pattern::Byte(1), SIZE / 2).unwrap();
    device.deallocate(memory).unwrap();
    assert!(device.deallocate(memory).is_err(), "freed twice");
    let other = device.allocate(SIZE / 2).unwrap();
    assert_ne!(other, memory);
    assert_eq!(device.memory_usage().unwrap().free, 0);
    idle.fill(other, Pattern::Byte(2), SIZE / 2).unwrap();
    let is_freed = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(20));
            is_freed.store(true, Ordering::Release);
            go.send(()).unwrap();
        });
        assert_eq!(device.allocate(SIZE / 2).unwrap(), memory, "once it is free");
        assert!(is_freed.load(Ordering::Acquire), "it was waited for");
    });
    device.synchronize().unwrap();
    assert_eq!(device.allocate(1).unwrap_err().code(), Code::ResourceExhausted);
    device.deallocate(other).unwrap();
    device.deallocate(memory).unwrap();
    assert_eq!(device.memory_usage().unwrap().free, SIZE);
    assert!(device.deallocate(other).is_err(), "freed twice");
}

/// Checks that the whole device reports the failure of one stream.
#[test]
fn streams_of_a_device_fail_together() {
    let device = HostDevice::new(HostMemory::new(SIZE).unwrap());
    let [one, two] = [(); 2].map(|()| device.create_stream().unwrap());
    one.launch("Broken", [], [], |[], []| Err(Error::unavailable("requested it"))).unwrap();
    let error = device.synchronize().unwrap_err();
    assert!(error.message().contains("`Broken`"), "{error}");
    assert!(two.launch("Refused", [], [], |[], []| Ok(())).is_err());
}

#[test]
fn an_observer_is_told_of_each_task() {
    let (sender, ran) = mpsc::channel();
    let sender = std::sync::Mutex::new(sender);
    let tell = move |task: &FinishedTask| sender.lock().unwrap().send(*task).unwrap();
    let device = HostDevice::new(HostMemory::new(SIZE).unwrap()).with_observer(tell);
    let before = se_plugin::profiler::now();
    let [one, two] = [(); 2].map(|()| device.create_stream().unwrap());
    let memory = device.allocate(8).unwrap();
    two.fill(memory, Pattern::Zero, 8).unwrap();
    one.wait_stream(&two).unwrap();
    let nap = Duration::from_millis(5);
    one.launch("MatMul", [], [], move |[], []| {
        std::thread::sleep(nap);
        Ok(())
    })
    .unwrap();
    let fails = |[]: [&[u8]; 0], []: [&mut [u8]; 0]| Err(Error::internal("requested it"));
    one.launch("Broken", [], [], fails).unwrap();
    one.launch("Skipped", [], [], |[], []| Ok(())).unwrap_or_default();
    assert!(device.synchronize().is_err());
    let ran: Vec<_> = ran.try_iter().collect();
    let told: Vec<_> = ran.iter().map(|task| (task.stream, task.op, task.failed)).collect();
    assert_eq!(told, [(1, "fill", false), (0, "MatMul", false), (0, "Broken", true)]);
    assert!(ran[1].duration >= nap && ran[0].start >= before);
    assert!(ran[2].start >= ran[1].start + ran[1].duration.as_nanos() as u64);
}

/// As a host's callback may: it blocks, and calls the device, its own stream included.
#[test]
fn a_callback_calls_the_device() {
    let ((memory, stream), other) = (worker(), WorkerStream::new(&worker().0, Delay::NONE));
    let stream = Arc::new(stream);
    let (called, done) = mpsc::channel();
    let (inner, inner_memory) = (Arc::clone(&stream), memory.clone());
    let callback = HostCallback::new(move |outcome| {
        let range = range(&inner_memory, 4096);
        let start = range.start().unwrap();
        inner.fill(start, Pattern::Byte(3), 4096)?;
        // Another stream works meanwhile.
        other.synchronize()?;
        std::thread::sleep(Duration::from_millis(10));
        called.send(range).map_err(Error::internal)?;
        outcome
    });
    stream.host_callback(callback).unwrap();
    stream.synchronize().unwrap();
    let filled = done.try_recv().expect("the stream waits for the callback");
    stream.synchronize().unwrap();
    assert!(content(&memory, filled).iter().all(|byte| *byte == 3));
    memory.deallocate(filled.start().unwrap()).unwrap();
}

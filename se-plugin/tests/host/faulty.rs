//! The fault layer for devices: each call meets its fault, and without one nothing is different.

use crate::platform::devices;
use se_plugin::Code;
use se_plugin::host::{HostDevice, HostMemory};
use se_plugin::prelude::*;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;
use tf_plugin_testing::device::{
    Case, Fault, Faults, Faulty, Host, TestDevice, TestStream, Verdict, run_case, sweep,
};

fn open(_: usize) -> Result<HostDevice> {
    Ok(HostDevice::new(HostMemory::new(64 << 20)?))
}

devices!(Toy = "TOY": 1 of HostDevice, open);

#[test]
fn without_a_fault_nothing_is_different() {
    let limit = Duration::from_secs(60);
    let next = Mutex::new(Case::all().iter());
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                loop {
                    let case = next.lock().expect("no panic").next();
                    let Some(case) = case else { return };
                    let (plain, faulty) =
                        (run_case::<Toy>(case, limit), run_case::<Faulty<Toy>>(case, limit));
                    assert!(!matches!(plain, Verdict::Failed(_)), "{case:?}: {plain:?}");
                    assert_eq!(plain, faulty, "{case:?}");
                }
            });
        }
    });
}

// A platform that says otherwise than others wherever it can.
devices!(
    Other = "OTHER_NAME", "OTHER_TYPE":
    3 of HostDevice, open, USE_BFC_ALLOCATOR, FORCE_MEMORY_GROWTH
);

#[test]
fn what_a_platform_says_of_itself_stays() {
    fn said<P: Platform>() -> String {
        let host = Host::load::<P>().expect("loaded");
        let device = host.device(2).expect("a third device");
        let stats = device.allocator_stats(std::mem::size_of::<[u64; 16]>());
        let own = [P::USE_BFC_ALLOCATOR, P::FORCE_MEMORY_GROWTH];
        let device = (device.description(), device.figures(), stats.is_some());
        format!("{own:?} {:?} {device:?}", host.names())
    }
    let plain = said::<Other>();
    assert_eq!(said::<Faulty<Other>>(), plain);
    assert!(plain.starts_with("[false, false] [\"OTHER_NAME\", \"OTHER_TYPE\"]"), "{plain}");
}

const SIZE: usize = 64;

/// One call on a device, or on a stream with two pieces of its memory; `Err` if TensorFlow gets to know.
type Call = fn(&TestDevice<'_>, &TestStream<'_>, [DevicePtr; 2]) -> Result<()>;

/// Each operation with what makes TensorFlow call it, those of [`EARLY`] excepted.
const CALLS: [(&str, Call); 26] = [
    ("allocate", |device, _, _| {
        let memory = device.allocate(8).ok_or_else(|| Error::resource_exhausted("null"))?;
        device.deallocate(memory);
        Ok(())
    }),
    ("deallocate", |device, _, _| {
        device.deallocate(device.allocate(8).expect("there is room"));
        Ok(())
    }),
    ("device_memory_usage", |device, _, _| {
        device.memory_usage().map(drop).ok_or_else(|| Error::internal("false"))
    }),
    ("create_stream", |device, _, _| device.stream().1),
    ("create_event", |device, _, _| device.event().map(drop)),
    ("create_timer", |device, _, _| device.timer().map(drop)),
    ("sync_memcpy_htod", |device, _, [a, _]| device.copy_to_device(a, &[1; SIZE])),
    ("sync_memcpy_dtoh", |device, _, [a, _]| device.copy_to_host(&mut [0; SIZE], a)),
    ("sync_memcpy_dtod", |device, _, [a, b]| device.copy_on_device(a, b, SIZE as u64)),
    ("synchronize_all_activity", |device, _, _| device.synchronize()),
    ("memcpy_htod", |_, stream, [a, _]| stream.copy_to_device(a, &[1; SIZE])),
    ("memcpy_dtoh", |_, stream, [a, _]| stream.copy_to_host(&mut [0; SIZE], a)),
    ("memcpy_dtod", |_, stream, [a, b]| stream.copy_on_device(a, b, SIZE as u64)),
    ("mem_zero", |_, stream, [a, _]| stream.fill(a, Pattern::Zero, SIZE as u64)),
    ("memset", |_, stream, [a, _]| stream.fill(a, Pattern::Byte(1), SIZE as u64)),
    ("memset32", |_, stream, [a, _]| stream.fill(a, Pattern::Word(1), SIZE as u64)),
    ("create_stream_dependency", |device, stream, _| stream.wait_stream(&device.stream().0)),
    ("record_event", |device, stream, _| {
        stream.record_event(&device.event()?);
        stream.synchronize()
    }),
    ("wait_for_event", |device, stream, _| {
        let event = device.event()?;
        stream.record_event(&event);
        stream.wait_event(&event)
    }),
    ("get_event_status", |device, stream, _| {
        let event = device.event()?;
        stream.record_event(&event);
        stream.synchronize()?;
        // Also where that fails: any other answer would abort.
        assert_eq!(event.status(), EventStatus::Complete);
        Ok(())
    }),
    ("block_host_for_event", |device, stream, _| {
        let event = device.event()?;
        stream.record_event(&event);
        event.wait()
    }),
    ("host_callback", |_, stream, _| stream.host_callback().map(drop)),
    ("block_host_until_done", |_, stream, _| stream.synchronize()),
    ("get_stream_status", |_, stream, _| stream.status()),
    ("start_timer", |device, stream, _| stream.time(&device.timer()?, true)),
    ("stop_timer", |device, stream, _| {
        let timer = device.timer()?;
        stream.time(&timer, true)?;
        stream.time(&timer, false)
    }),
];

/// Makes one call on a new device, with faults, and says how many were met.
fn with(call: Call, set: impl FnOnce(&Faults)) -> (Result<()>, u64) {
    let (host, faults) = Faulty::<Toy>::load().expect("loaded");
    let device = host.device(0).expect("a device");
    let (stream, created) = device.stream();
    created.expect("a stream");
    let memory = [(); 2].map(|()| device.allocate(SIZE as u64).expect("there is room"));
    faults.reset();
    set(&faults);
    let answer = call(&device, &stream, memory);
    let met = faults.met();
    faults.reset();
    // What was only enqueued fails here.
    let answer = answer.and(stream.synchronize()).and(device.synchronize());
    for memory in memory {
        device.deallocate(memory);
    }
    drop(stream);
    drop(device);
    assert_eq!((host.live(), host.violations()), (0, vec![]));
    (answer, met)
}

/// For these the SDK stands in: with the figures that it had last, and by waiting for the stream. To free has no status; that
/// it failed is in the log.
const SILENT: [&str; 3] = ["deallocate", "device_memory_usage", "create_event"];

#[test]
fn each_operation_meets_its_fault() {
    let mut wrong = Vec::new();
    for (operation, call) in CALLS {
        for fault in
            [Fault::Fail(Code::Unavailable), Fault::FailAfter(Code::Unavailable), Fault::Panic]
        {
            let (answer, met) = with(call, |faults| {
                faults.at(operation, 0, fault);
            });
            assert_eq!(met, 1, "{operation}, {fault:?}");
            if answer.is_ok() != SILENT.contains(&operation) {
                wrong.push((operation, fault, answer));
            }
        }
        let (answer, met) = with(call, |faults| {
            faults.always("create_device", Fault::Panic);
        });
        assert_eq!(met, 0, "{operation}");
        answer.unwrap_or_else(|error| panic!("{operation}: {error:#}"));
    }
    assert!(wrong.is_empty(), "TensorFlow does not get to know, or does: {wrong:#?}");
}

/// One call of the platform itself.
type Early = fn(&Faulty<Toy>) -> Result<()>;

/// The operations that come before a stream is there, and one for which the host has no room.
const EARLY: [(&str, Early); 3] = [
    ("get_device_count", |platform| platform.device_count().map(drop)),
    ("create_device", |platform| platform.open(0).map(drop)),
    ("create_stream_with_options", |platform| {
        platform.open(0)?.create_stream_with_options(&StreamOptions::default()).map(drop)
    }),
];

#[test]
fn what_comes_before_streams_meets_its_fault() {
    for (operation, call) in EARLY {
        let (platform, faults) = Faulty::new(Toy);
        call(&platform).expect("nothing fails");
        faults.at(operation, 1, Fault::Fail(Code::Unavailable));
        let error = call(&platform).expect_err("it was told to fail");
        assert_eq!((error.code(), faults.met()), (Code::Unavailable, 1), "{operation}");
    }
}

/// A scenario of a copy there, a fill, a copy within and a copy back: whatever fails, either it is told or the
/// bytes are right.
#[test]
fn no_failure_is_lost() {
    for fault in [Fault::Fail(Code::Unavailable), Fault::Panic] {
        let runs = sweep::<Toy>(fault, |host, fails| {
            let outcome = (|| -> Result<Vec<u8>> {
                let device = host.device(0)?;
                let (stream, created) = device.stream();
                created?;
                let null = || Error::resource_exhausted("null");
                let [a, b] = [device.allocate(SIZE as u64), device.allocate(SIZE as u64)];
                let mut read = vec![0; SIZE];
                let source = [9; SIZE];
                let copied = a.zip(b).ok_or_else(null).and_then(|(a, b)| {
                    stream.copy_to_device(a, &source)?;
                    stream.fill(a, Pattern::Byte(5), 8)?;
                    stream.copy_on_device(b, a, SIZE as u64)?;
                    stream.copy_to_host(&mut read, b)
                });
                let done = stream.synchronize();
                for memory in [a, b].into_iter().flatten() {
                    device.deallocate(memory);
                }
                copied.and(done).map(|()| read)
            })();
            match outcome {
                Ok(read) => assert_eq!(read, [&[5; 8][..], &[9; SIZE - 8]].concat()),
                Err(error) => assert!(fails, "{error:#}"),
            }
        });
        assert!(runs >= 10, "{runs}");
    }
}

#[test]
fn an_operation_of_another_header_is_none() {
    let (_, faults) = Faulty::new(Toy);
    let stat = std::panic::AssertUnwindSafe(|| faults.calls_of("stat"));
    let panic = std::panic::catch_unwind(stat).expect_err("there is none");
    let text = panic.downcast_ref::<String>().expect("a text");
    let start = "there is no operation `stat`; the names are those of stream_executor.h: ";
    let names = text.strip_prefix(start).unwrap_or_else(|| panic!("{text}"));
    let tried = CALLS.map(|(name, _)| name).into_iter().chain(EARLY.map(|(name, _)| name));
    let names: BTreeSet<_> = names.split(", ").collect();
    assert_eq!(tried.collect::<BTreeSet<_>>(), names, "each operation is tried");
}

//! The fault layer for devices: each call meets its fault, which is reported, and without faults nothing is different.

use crate::platform::devices;
use se_plugin::__private::PlatformExport;
use se_plugin::Code;
use se_plugin::host::{HostDevice, HostMemory};
use se_plugin::prelude::*;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;
use tf_plugin_testing::device::{
    Case, Fault, Faults, Faulty, Host, Outcome, Sizes, TestDevice, TestStream, run_case, sweep,
};

fn open(_: usize) -> Result<HostDevice> {
    Ok(HostDevice::new(HostMemory::new(64 << 20)?))
}

devices!(Toy = "TOY": 1 of HostDevice, open);

thread_local! {
    /// The faults of the platform that was created last.
    static FAULTS: Cell<Option<Faults>> = const { Cell::new(None) };
}

/// [`Faulty`] for a host of any version.
struct Controlled(Faulty<Toy>);

impl Platform for Controlled {
    const NAME: &'static str = Toy::NAME;
    const TYPE: &'static str = Toy::TYPE;
    type Device = <Faulty<Toy> as Platform>::Device;

    fn new() -> Result<Self> {
        let (platform, faults) = Faulty::new(Toy);
        FAULTS.set(Some(faults));
        Ok(Self(platform))
    }
    fn device_count(&self) -> Result<usize> {
        self.0.device_count()
    }
    fn open(&self, ordinal: usize) -> Result<Self::Device> {
        self.0.open(ordinal)
    }
}

/// Runs `body` with a device, in a host that takes errors of copies or does not. Then checks that all is freed.
pub(crate) fn with_device<R>(
    takes_errors: bool,
    body: impl FnOnce(&TestDevice<'_>, &Faults) -> R,
) -> R {
    let sizes = Sizes { takes_errors, ..Sizes::default() };
    let host = Host::load_with::<Controlled>(sizes, &PlatformExport::new()).expect("loaded");
    assert_eq!(host.device_count().expect("counted"), 1);
    let faults = FAULTS.take().expect("the platform was made");
    let result = body(&host.device(0).expect("a device"), &faults);
    assert_eq!((host.live(), host.violations()), (0, vec![]));
    result
}

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
                    assert!(!matches!(plain, Outcome::Failed(_)), "{case:?}: {plain:?}");
                    assert_eq!(plain, faulty, "{case:?}");
                }
            });
        }
    });
}

// A platform that differs from others in every setting.
devices!(
    Other = "OTHER_NAME", "OTHER_TYPE":
    3 of HostDevice, open, USE_BFC_ALLOCATOR, FORCE_MEMORY_GROWTH
);

#[test]
fn what_a_platform_says_of_itself_stays() {
    fn description<P: Platform>() -> String {
        let host = Host::load::<P>().expect("loaded");
        let device = host.device(2).expect("a third device");
        let stats = device.allocator_stats(std::mem::size_of::<[u64; 16]>());
        let options = [P::USE_BFC_ALLOCATOR, P::FORCE_MEMORY_GROWTH];
        let device = (device.description(), device.figures(), stats.is_some());
        format!("{options:?} {:?} {device:?}", host.names())
    }
    let plain = description::<Other>();
    assert_eq!(description::<Faulty<Other>>(), plain);
    assert!(plain.starts_with("[false, false] [\"OTHER_NAME\", \"OTHER_TYPE\"]"), "{plain}");
}

const SIZE: usize = 64;

/// One call on a device, or on a stream with two pieces of its memory; `Err` if the host's call itself fails.
type Call = fn(&TestDevice<'_>, &TestStream<'_>, [DevicePtr; 2]) -> Result<()>;

/// Where a failure is reported, in a host that does not take errors of copies and in one that does: whether the host's
/// call returns it, and whether the device keeps it and reports it from then on.
type Known = [[bool; 2]; 2];

const ANSWERED: Known = [[true, false]; 2];
const KEPT: Known = [[false, true]; 2];
const BOTH: Known = [[true, true]; 2];
/// Where the host aborts on an error, the device keeps it.
const OF_COPIES: Known = [[false, true], [true, false]];
/// The host ignores the error of a fill.
const OF_FILLS: Known = [[false, true], [true, true]];
/// The SDK replaces the call, by the latest known figures or by waiting for the stream. A failure to free is only in
/// the log, since that call has no status.
const LOGGED: Known = [[false, false]; 2];

/// Each operation, except those of [`EARLY`], with a function that makes the host call it.
const CALLS: [(&str, Known, Call); 26] = [
    ("allocate", BOTH, |device, _, _| {
        // Null has no error text; the device keeps the error.
        let null = || device.synchronize().expect_err("kept");
        device.deallocate(device.allocate(5000).ok_or_else(null)?);
        Ok(())
    }),
    ("deallocate", LOGGED, |device, _, _| {
        device.deallocate(device.allocate(8).expect("there is room"));
        Ok(())
    }),
    ("device_memory_usage", LOGGED, |device, _, _| {
        device.memory_usage().map(drop).ok_or_else(|| Error::internal("false"))
    }),
    ("create_stream", KEPT, |device, _, _| device.stream().1),
    ("create_event", LOGGED, |device, stream, _| {
        let event = device.event()?;
        stream.record_event(&event);
        device.stream().0.wait_event(&event)?;
        event.wait()
    }),
    ("create_timer", ANSWERED, |device, _, _| device.timer().map(drop)),
    ("sync_memcpy_htod", ANSWERED, |device, _, [a, _]| device.copy_to_device(a, &[1; SIZE])),
    ("sync_memcpy_dtoh", ANSWERED, |device, _, [a, _]| device.copy_to_host(&mut [0; SIZE], a)),
    ("sync_memcpy_dtod", ANSWERED, |device, _, [a, b]| device.copy_on_device(a, b, SIZE as u64)),
    ("synchronize_all_activity", ANSWERED, |device, _, _| device.synchronize()),
    ("memcpy_htod", OF_COPIES, |_, stream, [a, _]| stream.copy_to_device(a, &[1; SIZE])),
    ("memcpy_dtoh", ANSWERED, |_, stream, [a, _]| stream.copy_to_host(&mut [0; SIZE], a)),
    ("memcpy_dtod", OF_COPIES, |_, stream, [a, b]| stream.copy_on_device(a, b, SIZE as u64)),
    ("mem_zero", OF_FILLS, |_, stream, [a, _]| stream.fill(a, Pattern::Zero, SIZE as u64)),
    ("memset", OF_FILLS, |_, stream, [a, _]| stream.fill(a, Pattern::Byte(1), SIZE as u64)),
    ("memset32", OF_FILLS, |_, stream, [a, _]| stream.fill(a, Pattern::Word(1), SIZE as u64)),
    ("create_stream_dependency", OF_COPIES, |device, stream, _| {
        stream.wait_stream(&device.stream().0)
    }),
    ("record_event", KEPT, |device, stream, _| {
        stream.record_event(&device.event()?);
        Ok(())
    }),
    ("wait_for_event", OF_COPIES, |device, stream, _| {
        let event = device.event()?;
        stream.record_event(&event);
        stream.wait_event(&event)
    }),
    ("get_event_status", KEPT, |device, stream, _| {
        let event = device.event()?;
        stream.record_event(&event);
        stream.synchronize()?;
        // Also if that fails: any other result would abort.
        assert_eq!(event.status(), EventStatus::Complete);
        Ok(())
    }),
    ("block_host_for_event", ANSWERED, |device, stream, _| {
        let event = device.event()?;
        stream.record_event(&event);
        event.wait()
    }),
    ("host_callback", KEPT, |_, stream, _| {
        let called = stream.host_callback()?;
        let _ = stream.synchronize();
        assert_eq!(called.try_iter().count(), 1, "the callback is made once");
        Ok(())
    }),
    ("block_host_until_done", ANSWERED, |_, stream, _| stream.synchronize()),
    ("get_stream_status", ANSWERED, |_, stream, _| stream.status()),
    ("start_timer", ANSWERED, |device, stream, _| stream.time(&device.timer()?, true)),
    ("stop_timer", ANSWERED, |device, stream, _| {
        let timer = device.timer()?;
        stream.time(&timer, true)?;
        stream.time(&timer, false)
    }),
];

/// Makes one call on a new device, with faults. Returns its result, what the device and the stream report afterwards,
/// and how many faults were met.
fn with(takes_errors: bool, call: Call, set: impl FnOnce(&Faults)) -> ([Result<()>; 3], u64) {
    with_device(takes_errors, |device, faults| {
        let (stream, created) = device.stream();
        created.expect("a stream");
        let memory = [(); 2].map(|()| device.allocate(SIZE as u64).expect("there is room"));
        faults.reset();
        set(faults);
        let answer = call(device, &stream, memory);
        let met = faults.met();
        faults.reset();
        let kept = device.synchronize();
        // After a failure of the device, nothing works.
        let copied = stream.copy_to_device(memory[0], &[1; SIZE]);
        assert_eq!(copied.is_err(), kept.is_err() && takes_errors, "{copied:?}");
        let copied = stream.copy_to_host(&mut [0; SIZE], memory[0]);
        assert_eq!(copied.is_err(), kept.is_err(), "{copied:?}");
        let status = stream.status();
        for memory in memory {
            device.deallocate(memory);
        }
        ([answer, kept, status], met)
    })
}

#[test]
fn each_operation_meets_its_fault() {
    for (takes_errors, (operation, known, call)) in
        [false, true].into_iter().flat_map(|takes| CALLS.map(|row| (takes, row)))
    {
        for fault in
            [Fault::Fail(Code::Unavailable), Fault::FailAfter(Code::Unavailable), Fault::Panic]
        {
            let context = format!("{operation}, {fault:?}, {takes_errors}");
            let (results, met) = with(takes_errors, call, |faults| {
                faults.at(operation, 0, fault);
            });
            assert_eq!(met, 1, "{context}");
            let [answer, kept] = known[usize::from(takes_errors)];
            // The stream does not report what the device, another stream or an event failed at.
            let of_others = ["allocate", "create_stream", "get_event_status"];
            let of_stream = kept && !of_others.contains(&operation);
            let failed = results.each_ref().map(Result::is_err);
            assert_eq!(failed, [answer, kept, of_stream], "{context}: {results:?}");
            let (code, text) = match (operation, fault) {
                // The callback is made while the method ends, so that is the first failure.
                ("host_callback", Fault::Fail(_) | Fault::Panic) => {
                    (Code::Cancelled, "`HostCallback` was dropped")
                }
                (_, Fault::Panic) => (Code::Internal, "was told to panic"),
                _ => (Code::Unavailable, "was told to fail"),
            };
            for error in results.into_iter().filter_map(Result::err) {
                assert_eq!(error.code(), code, "{context}: {error}");
                assert!(error.message().contains(text), "{context}: {error}");
            }
        }
        let (results, met) = with(takes_errors, call, |faults| {
            faults.always("create_device", Fault::Panic);
        });
        assert_eq!(met, 0, "{operation}");
        assert!(results.iter().all(Result::is_ok), "{operation}: {results:?}");
    }
}

/// One call of the platform itself.
type Early = fn(&Faulty<Toy>) -> Result<()>;

/// The operations that come before a stream exists, and one for which the host has no room.
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

/// Runs a copy to the device, a fill, a copy on it and a copy back. After each possible failure, either it is
/// reported or the bytes are right.
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
    let tried = CALLS.map(|(name, ..)| name).into_iter().chain(EARLY.map(|(name, _)| name));
    let names: BTreeSet<_> = names.split(", ").collect();
    assert_eq!(tried.collect::<BTreeSet<_>>(), names, "each operation is tried");
}

//! A device whose methods fail or panic on request: no call ends the process, and each failure is told.

use crate::failing_device::{Faulty, KEPT, SWITCH, fault, with_device};
use se_plugin::prelude::*;
use std::sync::PoisonError;
use tf_plugin_testing::device::Host;

/// Runs everything with one fault and answers the error of the next `synchronize_all_activity`, once the
/// fault is over. `takes_errors`: in a host that takes errors of copies.
fn run(op: &'static str, panics: bool, takes_errors: bool) -> Result<()> {
    with_device(takes_errors, |device| {
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
        let met = fault("", false);
        stream.synchronize().ok();
        assert_eq!(called.try_iter().count(), 1, "{op}: the host callback is made once");
        fault(op, panics);
        let _ = device.copy_to_device(memory, &[2; 64]);
        let _ = device.copy_to_host(&mut back, memory);
        device.deallocate(memory);
        let _ = device.allocate(5000).map(|memory| device.deallocate(memory));
        let _ = device.synchronize();
        let met = met + fault("", false);
        assert!(met > 0 || op.is_empty(), "`{op}` was never called");
        device.synchronize()
    })
}

#[test]
fn failures_that_the_host_does_not_take_are_sticky() {
    let _alone = SWITCH.alone();
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
    let _alone = SWITCH.alone();
    for panics in [false, true] {
        for takes in [false, true] {
            let error = run("host_callback", panics, takes).expect_err("sticky");
            assert!(error.message().contains("`HostCallback` was dropped"), "{error}");
        }
    }
}

#[test]
fn failures_that_the_host_takes_leave_the_device_well() {
    let _alone = SWITCH.alone();
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
    let _alone = SWITCH.alone();
    for takes in [false, true] {
        with_device(takes, |device| {
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
                for (index, op) in ["copy_to_device", "copy_on_device", "wait_stream", "wait_event"]
                    .iter()
                    .enumerate()
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
        });
    }
}

#[test]
fn a_stream_that_could_not_be_made_says_why() {
    let _alone = SWITCH.alone();
    for (takes, panics) in [(false, false), (false, true), (true, false), (true, true)] {
        with_device(takes, |device| {
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
        });
    }
}

/// TensorFlow counts on multiples of 256; and it repeats a small request forever when it gets nothing.
#[test]
fn an_address_that_is_not_aligned_is_refused() {
    let _alone = SWITCH.alone();
    with_device(true, |device| {
        fault("align", false);
        assert!(device.allocate(5000).is_none());
        let memory = device.allocate(256).expect("no endless loop");
        fault("", false);
        assert_eq!(memory.address() % 256, 0);
        let error = device.synchronize().expect_err("it was not aligned");
        assert!(error.message().contains("multiple of 256"), "{error}");
        device.deallocate(memory);
    });
}

/// TensorFlow up to 2.16 goes on without a stream when there is none.
#[test]
fn null_handles_are_tolerated() {
    let _alone = SWITCH.alone();
    for takes in [false, true] {
        with_device(takes, |device| {
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
        });
    }
}

#[test]
fn copies_without_a_stream_are_done_at_once() {
    let _alone = SWITCH.alone();
    with_device(true, |device| {
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
    });
}

#[test]
fn what_cannot_be_opened_is_not_counted() {
    let _alone = SWITCH.alone();
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
    let _alone = SWITCH.alone();
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

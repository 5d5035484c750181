//! Streams that could not be created, null handles, addresses that are not aligned, platforms that do not open, and
//! copies that are late or dropped: no call ends the process, and each failure is reported.

use crate::faulty::with_device;
use crate::platform::{SOURCES, SWITCH, Switched, with_switched};
use se_plugin::prelude::*;
use std::sync::PoisonError;
use tf_plugin_testing::device::{Fault, Host};

#[test]
fn a_stream_that_could_not_be_made_says_why() {
    for (takes, fault) in [false, true].into_iter().flat_map(|takes| {
        [Fault::Fail(Code::Unavailable), Fault::Panic].map(|fault| (takes, fault))
    }) {
        with_device(takes, |device, faults| {
            let memory = device.allocate(64).unwrap();
            faults.always("create_stream", fault);
            let (stream, made) = device.stream();
            made.unwrap();
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
                assert!(error.message().contains("was told to"), "{error}");
            }
            let called = stream.host_callback().unwrap();
            assert!(called.recv().is_ok_and(|code| code != 0), "with an error");
            device.deallocate(memory);
        });
    }
}

/// Checks alignment: TensorFlow relies on multiples of 256, and repeats a small request forever if it is refused.
#[test]
fn an_address_that_is_not_aligned_is_refused() {
    with_switched(|device| {
        SWITCH.set("align", false);
        assert!(device.allocate(5000).is_none());
        let memory = device.allocate(256).expect("no endless loop");
        SWITCH.set("", false);
        assert_eq!(memory.address() % 256, 0);
        let error = device.synchronize().expect_err("it was not aligned");
        assert!(error.message().contains("multiple of 256"), "{error}");
        device.deallocate(memory);
    });
}

/// Passes null, as TensorFlow 2.16 and earlier do after a stream could not be created.
#[test]
fn null_handles_are_tolerated() {
    for takes in [false, true] {
        with_device(takes, |device, _| {
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
            // If TensorFlow does not take the errors, the device reports them.
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
fn copies_of_nothing_are_done_at_once() {
    with_device(true, |device, _| {
        let memory = device.allocate(64).unwrap();
        device.copy_to_device(memory, &[]).unwrap();
        device.copy_on_device(memory, memory, 0).unwrap();
        device.deallocate(memory);
    });
}

#[test]
fn what_cannot_be_opened_is_not_counted() {
    let _alone = SWITCH.alone();
    for panics in [false, true] {
        for op in ["new", "device_count", "open"] {
            SWITCH.set(op, panics);
            let host = Host::load::<Switched>().unwrap();
            assert_eq!(host.device_count().unwrap(), 0, "{op}");
            SWITCH.set("", false);
            assert_eq!(host.device_count().unwrap(), 0, "{op}: the answer is stable");
            assert!(host.device(0).is_err());
            assert!(host.null_members().is_empty());
        }
    }
}

/// Checks events, since the host frees the memory as soon as an event behind the copy is complete.
#[test]
fn no_event_is_complete_before_the_copies_in_front_of_it() {
    for completes in [true, false] {
        with_switched(|device| {
            let memory = device.allocate(64).unwrap();
            let (stream, _) = device.stream();
            SWITCH.set("keep the token", false);
            std::thread::scope(|scope| {
                let copy = scope.spawn(|| stream.copy_to_device(memory, &[3; 64]));
                let source = loop {
                    match SOURCES.lock().unwrap_or_else(PoisonError::into_inner).pop() {
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
            let result = device.synchronize();
            assert_eq!(result.is_ok(), completes, "{result:?}");
        });
    }
}

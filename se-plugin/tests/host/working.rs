//! A device that works.

use crate::platform::HostPlatform;
use se_plugin::{EventStatus, Pattern};
use std::time::Duration;
use tf_plugin_testing::device::{Host, TestDevice};

fn with_device(body: impl FnOnce(&TestDevice<'_>)) {
    let host = Host::load::<HostPlatform>().unwrap();
    assert_eq!(host.device_count().unwrap(), 1);
    body(&host.device(0).unwrap());
    assert_eq!(host.live(), 0);
    assert_eq!(host.violations(), []);
}

fn content(len: usize, salt: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + salt) as u8).collect()
}

#[test]
fn every_callback_is_there() {
    let host = Host::load::<HostPlatform>().unwrap();
    assert!(host.null_members().is_empty());
    assert_eq!(host.names(), ["RUST_TEST", "RUST_TEST"]);
}

#[test]
fn content_survives_each_kind_of_copy() {
    with_device(|device| {
        let (stream, made) = device.stream();
        made.unwrap();
        for len in [1, 3, 256, 100_000] {
            let there = content(len, 1);
            let [a, b] = [(); 2].map(|()| device.allocate(len as u64).unwrap());
            stream.copy_to_device(a, &there).unwrap();
            stream.copy_on_device(b, a, len as u64).unwrap();
            let mut back = vec![0; len];
            stream.copy_to_host(&mut back, b).unwrap();
            assert_eq!(back, there);
            let other = content(len, 2);
            device.copy_to_device(b, &other).unwrap();
            device.copy_to_host(&mut back, b).unwrap();
            assert_eq!(back, other);
            device.deallocate(a);
            device.deallocate(b);
        }
        device.synchronize().unwrap();
    });
}

#[test]
fn fills_reach_to_their_ends_and_no_further() {
    with_device(|device| {
        let (stream, _) = device.stream();
        let memory = device.allocate(64).unwrap();
        for (pattern, expected) in [
            (Pattern::Byte(7), [7; 4]),
            (Pattern::Zero, [0; 4]),
            (Pattern::Word(0x0102_0304), 0x0102_0304_u32.to_ne_bytes()),
        ] {
            stream.copy_to_device(memory, &[0xff; 64]).unwrap();
            stream.fill(memory, pattern, 40).unwrap();
            let mut back = [0; 64];
            stream.copy_to_host(&mut back, memory).unwrap();
            assert!(back[..40].chunks(4).all(|chunk| chunk == expected), "{pattern:?} {back:?}");
            assert!(back[40..].iter().all(|&byte| byte == 0xff), "{pattern:?} {back:?}");
        }
        device.deallocate(memory);
    });
}

#[test]
fn events_and_dependencies_wait() {
    with_device(|device| {
        let ((one, _), (two, _)) = (device.stream(), device.stream());
        let event = device.event().unwrap();
        assert_eq!(event.status(), EventStatus::Complete, "never recorded");
        let called = one.host_callback().unwrap();
        one.record_event(&event);
        two.wait_event(&event).unwrap();
        two.wait_stream(&one).unwrap();
        two.synchronize().unwrap();
        assert_eq!(called.try_recv(), Ok(0), "before what waits for it");
        event.wait().unwrap();
        assert_eq!(event.status(), EventStatus::Complete);
        one.status().unwrap();
    });
}

#[test]
fn a_host_callback_is_made_once() {
    with_device(|device| {
        let (stream, _) = device.stream();
        let called: Vec<_> = (0..100).map(|_| stream.host_callback().unwrap()).collect();
        stream.synchronize().unwrap();
        for receiver in called {
            assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [0]);
        }
    });
}

#[test]
fn timers_run() {
    with_device(|device| {
        let (stream, _) = device.stream();
        let timer = device.timer().unwrap();
        assert_eq!(timer.elapsed(), Duration::ZERO);
        stream.time(&timer, true).unwrap();
        stream.synchronize().unwrap();
        std::thread::sleep(Duration::from_millis(5));
        stream.time(&timer, false).unwrap();
        stream.synchronize().unwrap();
        assert!(timer.elapsed() >= Duration::from_millis(5), "{:?}", timer.elapsed());
    });
}

#[test]
fn host_memory_is_aligned() {
    with_device(|device| {
        for bytes in [1, 63, 4096] {
            assert!(device.host_memory(bytes) >= 64);
        }
        assert_eq!(device.host_memory(0), 0);
    });
}

#[test]
fn eight_threads_use_one_stream() {
    with_device(|device| {
        let (stream, _) = device.stream();
        std::thread::scope(|scope| {
            for salt in 0..8 {
                let stream = &stream;
                scope.spawn(move || {
                    for round in 0..50 {
                        let there = content(1000 + salt, salt + round);
                        let memory = device.allocate(there.len() as u64).unwrap();
                        stream.copy_to_device(memory, &there).unwrap();
                        let mut back = vec![0; there.len()];
                        stream.copy_to_host(&mut back, memory).unwrap();
                        assert_eq!(back, there);
                        let called = stream.host_callback().unwrap();
                        stream.synchronize().unwrap();
                        assert_eq!(called.try_recv(), Ok(0));
                        device.deallocate(memory);
                    }
                });
            }
        });
        device.synchronize().unwrap();
    });
}

/// TensorFlow repeats requests of up to 2304 bytes forever when they get nothing.
#[test]
fn small_requests_get_memory_that_was_set_aside() {
    with_device(|device| {
        let memory = [1 << 20, 62 << 20].map(|bytes| device.allocate(bytes).unwrap());
        assert!(device.allocate(64 * 1024 + 1).is_none());
        let small: [_; 16] = std::array::from_fn(|_| device.allocate(64 * 1024).expect("memory"));
        for (value, &small) in (1..).zip(&small) {
            device.copy_to_device(small, &[value; 4]).unwrap();
        }
        for (value, &small) in (1..).zip(&small) {
            let mut back = [0; 4];
            device.copy_to_host(&mut back, small).unwrap();
            assert_eq!(back, [value; 4]);
        }
        assert!(device.allocate(64 * 1024).is_none(), "all of it is in use");
        device.deallocate(small[7]);
        assert_eq!(device.allocate(2304), Some(small[7]));
        for memory in small.into_iter().chain(memory) {
            device.deallocate(memory);
        }
    });
}

/// When that is used up, too.
#[test]
fn small_requests_get_memory_that_reports_that_there_is_none() {
    with_device(|device| {
        assert!(device.allocate(1 << 30).is_none());
        let all = device.allocate(63 << 20).unwrap();
        let aside: [_; 16] = std::array::from_fn(|_| device.allocate(64 * 1024).expect("memory"));
        assert!(device.allocate(2305).is_none());
        let [small, another] = [(); 2].map(|()| device.allocate(2304).expect("no endless loop"));
        assert_ne!(small, another);
        let mut back = [0; 4];
        let error = device.copy_to_host(&mut back, small).unwrap_err();
        assert_eq!(error.code(), se_plugin::Code::ResourceExhausted);
        for memory in [small, another, all].into_iter().chain(aside) {
            device.deallocate(memory);
        }
        assert!(device.allocate(256).is_some_and(|memory| memory < small));
    });
}

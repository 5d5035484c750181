//! Checks that two device plugins do the same, so that they are worth comparing.
#![allow(unused_must_use, reason = "the status says what each call came to")]

use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;

use cargo_tf_plugin::host::Device;

use crate::same::must_agree;

/// Runs the same calls on both devices, which must be fresh.
pub fn check(a: &Device, b: &Device) -> Result<()> {
    must_agree(&transcript(a), &transcript(b))
}

static CALLED: AtomicU64 = AtomicU64::new(0);

/// What the device answers to every measured callback, called rightly and wrongly. It has a sticky error
/// afterwards; nothing else is left behind.
fn transcript(device: &Device) -> Vec<String> {
    let mut lines = Vec::new();
    // The texts are the plugins' own.
    let mut say = |what: &str, answer: String| {
        lines.push(format!("{what}: {answer}, code {}", device.status.code()));
    };
    let allocate = |len| device.allocate_raw(len).unwrap_or(0);
    let usage = || format!("{:?}", device.memory_usage().ok());
    let stats = || format!("{:?}", device.allocator_stats().ok());
    let bytes: Vec<u8> = (0..=255).cycle().take(1000).collect();
    let mut back = vec![0; 1000];
    let sum = |bytes: &[u8]| {
        let weighted =
            bytes.iter().enumerate().map(|(index, &byte)| index as u64 * u64::from(byte));
        weighted.sum::<u64>().to_string()
    };

    // Where memory lies is the same, since both allocate in the same way.
    let places = [1, 256, 257, 4096, 0, 1 << 29, 1 << 29, 100, 5000].map(allocate);
    say("allocate", format!("{places:x?}"));
    say("device_memory_usage", usage());
    say("get_allocator_stats", stats());
    device.deallocate(places[2]);
    device.deallocate(0);
    let again = allocate(500);
    say("allocate what was free", format!("{}", again == places[2]));
    let refused = allocate(1 << 30);
    say("allocate too much", format!("{refused:x}"));
    say("get_allocator_stats", stats());
    let all: Vec<u64> = (0..).map(|_| allocate(1 << 20)).take_while(|&at| at != 0).collect();
    let small: Vec<u64> =
        (0..).map(|_| allocate(256)).take_while(|&at| at >> 48 != 0xffff).collect();
    say("allocate all", format!("{} and {}", all.len(), small.len()));
    let [none, null] = [allocate(256), 0];
    say("allocate where nothing is left", format!("{none:x}"));
    all.into_iter().chain(small).for_each(|at| drop(device.deallocate(at)));
    say("device_memory_usage", usage());

    let (a, b) = (places[3], places[8]);
    device.copy_to_device(a, &bytes);
    say("sync_memcpy_htod", String::new());
    device.copy_on_device(b, a, 999);
    say("sync_memcpy_dtod", String::new());
    device.copy_to_host(&mut back[..999], b);
    say("sync_memcpy_dtoh", sum(&back));
    for (what, at) in [("nowhere", null), ("where nothing is left", none), ("outside", 64)] {
        device.copy_to_device(at, &bytes);
        say("sync_memcpy_htod", what.into());
        device.copy_to_host(&mut back, at);
        say("sync_memcpy_dtoh", what.into());
        device.copy_on_device(a, at, 1000);
        say("sync_memcpy_dtod", what.into());
    }
    device.copy_to_device(null, &[]);
    say("sync_memcpy_htod", "of nothing".into());

    let stream = || device.stream().unwrap_or_else(|_| device.null_stream());
    let (stream, other) = (stream(), stream());
    say("create_stream", String::new());
    let event = device.event().unwrap_or_else(|_| device.null_event());
    let is = || format!("{:?}", event.status().ok());
    say("create_event", String::new());
    say("get_event_status", format!("{} before it is recorded", is()));
    event.wait();
    say("block_host_for_event", "before it is recorded".into());
    let mut backwards: Vec<u8> = bytes.iter().rev().copied().collect();
    stream.copying(&mut backwards, |copies| {
        copies.to_device(a);
        say("memcpy_htod", String::new());
        stream.record(&event);
        say("record_event", String::new());
    });
    say("get_event_status", is());
    other.wait(&event);
    say("wait_for_event", String::new());
    other.wait_for_stream(&stream);
    say("create_stream_dependency", String::new());
    let fills: [(_, &dyn Fn(u64, usize)); 3] = [
        ("mem_zero", &|at, len| drop(stream.zero(at, len))),
        ("memset", &|at, len| drop(stream.set(at, 9, len))),
        ("memset32", &|at, len| drop(stream.set_words(at, 0x0102_0304, len))),
    ];
    for (what, fill) in fills {
        fill(b, 996);
        say(what, String::new());
        device.copy_to_host(&mut back, b);
        say(what, sum(&back));
        fill(null, 0);
        say(what, "of nothing".into());
    }
    other.copy_on_device(b, a, 500);
    say("memcpy_dtod", String::new());
    other.copying(&mut back, |copies| {
        copies.to_host(b);
        say("memcpy_dtoh", String::new());
    });
    say("memcpy_dtoh", sum(&back));
    let called = CALLED.load(Ordering::Relaxed);
    let accepted = other.host_callback(&CALLED).is_ok();
    other.synchronize();
    say("host_callback", format!("{accepted}, {}", CALLED.load(Ordering::Relaxed) - called));
    say("block_host_until_done", String::new());
    event.wait();
    say("block_host_for_event", String::new());
    device.synchronize();
    say("synchronize_all_activity", String::new());
    stream.status();
    say("get_stream_status", String::new());
    let (no_stream, no_event) = (device.null_stream(), device.null_event());
    no_stream.synchronize();
    say("block_host_until_done", "without a stream".into());
    say("get_event_status", format!("{:?} without an event", no_event.status().ok()));
    stream.record(&no_event);
    say("record_event", "without an event".into());
    no_stream.record(&event);
    say("record_event", "without a stream".into());
    no_stream.status();
    say("get_stream_status", "without a stream".into());

    // From here on the device keeps an error that its host would abort for.
    stream.copying(&mut back, |copies| drop(copies.to_device(none)));
    say("memcpy_htod", "where nothing is left".into());
    device.synchronize();
    say("synchronize_all_activity", "after an error".into());
    stream.status();
    say("get_stream_status", "after an error".into());
    stream.copying(&mut back, |copies| drop(copies.to_host(b)));
    say("memcpy_dtoh", "after an error".into());
    stream.record(&event);
    say("record_event", "after an error".into());
    say("get_event_status", format!("{} after an error", is()));
    for at in places.into_iter().filter(|&at| at != 0 && at != places[2]).chain([again]) {
        device.deallocate(at);
    }
    say("device_memory_usage", usage());
    lines
}

//! Checks that two device plugins do the same, so that they are worth comparing.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;

use cargo_tf_plugin::host::Device;

use crate::equivalence::ensure_equal;

/// Runs the same calls on both devices, which must be fresh.
pub fn check(a: &Device, b: &Device) -> Result<()> {
    ensure_equal(&transcript(a), &transcript(b))
}

static CALLED: AtomicU64 = AtomicU64::new(0);

/// Returns the results of every measured callback, called rightly and wrongly. It has a sticky error
/// afterwards; nothing else is left behind.
fn transcript(device: &Device) -> Vec<String> {
    let mut lines = Vec::new();
    // The texts are the plugins' own.
    let mut say = |what: &str, answer: &dyn Debug| {
        lines.push(format!("{what}: {answer:?}, code {}", device.status.code()));
    };
    let allocate = |len| device.allocate_raw(len).unwrap_or(0);
    let bytes: Vec<u8> = (0..=255).cycle().take(1000).collect();
    let mut back = vec![0; 1000];
    let sum = |bytes: &[u8]| {
        let weighted =
            bytes.iter().enumerate().map(|(index, &byte)| index as u64 * u64::from(byte));
        weighted.sum::<u64>()
    };

    // Where memory lies is the same, since both allocate in the same way.
    let places = [1, 256, 257, 4096, 0, 1 << 29, 1 << 29, 100, 5000].map(allocate);
    say("allocate", &places);
    say("device_memory_usage", &device.memory_usage().ok());
    say("get_allocator_stats", &device.allocator_stats().ok());
    for freed in [places[2], 0] {
        let _ = device.deallocate(freed);
    }
    let again = allocate(500);
    say("allocate what was free", &(again == places[2]));
    say("allocate too much", &allocate(1 << 30));
    say("get_allocator_stats", &device.allocator_stats().ok());
    let all: Vec<u64> = (0..).map(|_| allocate(1 << 20)).take_while(|&at| at != 0).collect();
    let small: Vec<u64> =
        (0..).map(|_| allocate(256)).take_while(|&at| at >> 48 != 0xffff).collect();
    say("allocate all", &[all.len(), small.len()]);
    let [none, null] = [allocate(256), 0];
    say("allocate where nothing is left", &none);
    all.into_iter().chain(small).for_each(|at| drop(device.deallocate(at)));
    say("device_memory_usage", &device.memory_usage().ok());

    let (a, b) = (places[3], places[8]);
    say("sync_memcpy_htod", &device.copy_to_device(a, &bytes).is_ok());
    say("sync_memcpy_dtod", &device.copy_on_device(b, a, 999).is_ok());
    say("sync_memcpy_dtoh", &device.copy_to_host(&mut back[..999], b).is_ok());
    say("sync_memcpy_dtoh", &sum(&back));
    for (what, at) in [("nowhere", null), ("where nothing is left", none), ("outside", 64)] {
        say("sync_memcpy_htod", &(what, device.copy_to_device(at, &bytes).is_ok()));
        say("sync_memcpy_dtoh", &(what, device.copy_to_host(&mut back, at).is_ok()));
        say("sync_memcpy_dtod", &(what, device.copy_on_device(a, at, 1000).is_ok()));
    }
    say("sync_memcpy_htod of nothing", &device.copy_to_device(null, &[]).is_ok());

    let stream = || device.stream().unwrap_or_else(|_| device.null_stream());
    let (stream, other) = (stream(), stream());
    say("create_stream", &());
    let event = device.event().unwrap_or_else(|_| device.null_event());
    say("create_event", &());
    say("get_event_status before it is recorded", &event.status().ok());
    say("block_host_for_event before it is recorded", &event.wait().is_ok());
    let mut backwards: Vec<u8> = bytes.iter().rev().copied().collect();
    stream.copying(&mut backwards, |copies| {
        say("memcpy_htod", &copies.to_device(a).is_ok());
        say("record_event", &stream.record(&event).is_ok());
    });
    say("get_event_status", &event.status().ok());
    say("wait_for_event", &other.wait(&event).is_ok());
    say("create_stream_dependency", &other.wait_for_stream(&stream).is_ok());
    let fills: [(_, &dyn Fn(u64, usize) -> bool); 3] = [
        ("mem_zero", &|at, len| stream.zero(at, len).is_ok()),
        ("memset", &|at, len| stream.set(at, 9, len).is_ok()),
        ("memset32", &|at, len| stream.set_words(at, 0x0102_0304, len).is_ok()),
    ];
    for (what, fill) in fills {
        say(what, &fill(b, 996));
        say(what, &(device.copy_to_host(&mut back, b).is_ok(), sum(&back)));
        say(what, &("of nothing", fill(null, 0)));
    }
    say("memcpy_dtod", &other.copy_on_device(b, a, 500).is_ok());
    other.copying(&mut back, |copies| say("memcpy_dtoh", &copies.to_host(b).is_ok()));
    say("memcpy_dtoh", &sum(&back));
    let called = CALLED.load(Ordering::Relaxed);
    say("host_callback", &other.host_callback(&CALLED).is_ok());
    say("block_host_until_done", &other.synchronize().is_ok());
    say("host_callback", &(CALLED.load(Ordering::Relaxed) - called));
    say("block_host_for_event", &event.wait().is_ok());
    say("synchronize_all_activity", &device.synchronize().is_ok());
    say("get_stream_status", &stream.status().is_ok());
    let (no_stream, no_event) = (device.null_stream(), device.null_event());
    say("block_host_until_done without a stream", &no_stream.synchronize().is_ok());
    say("get_event_status without an event", &no_event.status().ok());
    say("record_event without an event", &stream.record(&no_event).is_ok());
    say("record_event without a stream", &no_stream.record(&event).is_ok());
    say("get_stream_status without a stream", &no_stream.status().is_ok());

    // From here on the device keeps an error that its host would abort for.
    stream.copying(&mut back, |copies| drop(copies.to_device(none)));
    say("memcpy_htod where nothing is left", &());
    say("synchronize_all_activity after an error", &device.synchronize().is_ok());
    say("get_stream_status after an error", &stream.status().is_ok());
    stream.copying(&mut back, |copies| drop(copies.to_host(b)));
    say("memcpy_dtoh after an error", &());
    say("record_event after an error", &stream.record(&event).is_ok());
    say("get_event_status after an error", &event.status().ok());
    for at in places.into_iter().filter(|&at| at != 0 && at != places[2]).chain([again]) {
        let _ = device.deallocate(at);
    }
    say("device_memory_usage", &device.memory_usage().ok());
    lines
}

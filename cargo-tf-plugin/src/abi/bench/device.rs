//! Devices: the rows.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cargo_tf_plugin::bench::{Job, bytes};
use cargo_tf_plugin::host::{CallError, CallResult, Device, Library, Memory, Stream};
use cargo_tf_plugin::tables;
use tf_fs_sys::SE_EVENT_COMPLETE;

use super::rows::{Result, RowError, Rows, repeated};

/// Operations in a sample.
const ANY: u64 = 1 << 20;

/// Operations in a sample that are all enqueued at once.
const QUEUED: u64 = 256;

const SIZES: [usize; 4] = [4 << 10, 256 << 10, 4 << 20, 32 << 20];

pub(super) fn run(library: Library, job: &Job) -> Result<()> {
    // For the rest of the process, as in TensorFlow.
    let device: &'static Device =
        Box::leak(Box::new(Device::load(library).map_err(RowError::Failed)?));
    let rows = &mut Rows::new(job);
    rows.group("Memory");
    memory(device, rows)?;
    rows.group("Copies that wait");
    waiting_copies(device, rows)?;
    rows.group("Copies on a stream");
    enqueued_copies(device, rows)?;
    rows.group("Streams and events");
    streams(device, rows)
}

fn memory(device: &Device, rows: &Rows<'_>) -> Result<()> {
    for size in [256, 64 << 10, 1 << 20, 64 << 20] {
        rows.row(format!("allocate and deallocate {}", bytes(size as u64)), None, || {
            // `Memory` ignores a null one, and would use up all memory.
            if device.table.deallocate.is_none() {
                return Err(CallError::Missing(tables::STREAM_EXECUTOR.0, "deallocate").into());
            }
            rows.repeat(ANY, || device.allocate(size).map(drop))
        })?;
    }
    rows.row("host_memory_allocate and _deallocate 1 MiB", None, || {
        rows.repeat(ANY, || device.host_memory(1 << 20))
    })?;
    rows.row("device_memory_usage", None, || rows.repeat(ANY, || device.memory_usage().map(drop)))
}

/// Allocates memory and fills it: pages that were never written are faster to read than others.
fn filled(device: &Device, size: usize) -> Result<Memory<'_>> {
    let memory = device.allocate(size)?;
    device.copy_to_device(memory.address, &vec![7; size])?;
    Ok(memory)
}

fn waiting_copies(device: &Device, rows: &Rows<'_>) -> Result<()> {
    for size in SIZES {
        let named = |op: &str| format!("{op} {}", bytes(size as u64));
        rows.row(named("sync_memcpy_htod"), Some(size as u64), || {
            let (to, host) = (device.allocate(size)?, vec![7; size]);
            rows.repeat(ANY, || device.copy_to_device(to.address, &host))
        })?;
        rows.row(named("sync_memcpy_dtoh"), Some(size as u64), || {
            let (from, mut host) = (filled(device, size)?, vec![0; size]);
            rows.repeat(ANY, || device.copy_to_host(&mut host, from.address))
        })?;
        rows.row(named("sync_memcpy_dtod"), Some(size as u64), || {
            let (from, to) = (filled(device, size)?, device.allocate(size)?);
            rows.repeat(ANY, || device.copy_on_device(to.address, from.address, size))
        })?;
    }
    Ok(())
}

fn enqueued_copies(device: &Device, rows: &Rows<'_>) -> Result<()> {
    // First the throughput of many copies, then the time of one.
    let each = SIZES.map(|size| (size, false)).into_iter().chain([(SIZES[0], true)]);
    for (size, alone) in each {
        let then = if alone { ", then block_host_until_done" } else { "" };
        let named = |op: &str| format!("{op} {}{then}", bytes(size as u64));
        rows.row(named("memcpy_htod"), Some(size as u64), || {
            let (to, stream) = (device.allocate(size)?, device.stream()?);
            stream.copying(&mut vec![7; size], |copies| {
                let copy = || copies.to_device(to.address);
                rows.time(QUEUED, |times| waited(&stream, times, alone, copy))
            })
        })?;
        rows.row(named("memcpy_dtoh"), Some(size as u64), || {
            let (from, stream) = (filled(device, size)?, device.stream()?);
            stream.copying(&mut vec![0; size], |copies| {
                let copy = || copies.to_host(from.address);
                rows.time(QUEUED, |times| waited(&stream, times, alone, copy))
            })
        })?;
        rows.row(named("memcpy_dtod"), Some(size as u64), || {
            let (from, to) = (filled(device, size)?, device.allocate(size)?);
            let stream = device.stream()?;
            let copy = || stream.copy_on_device(to.address, from.address, size);
            rows.time(QUEUED, |times| waited(&stream, times, alone, copy))
        })?;
        rows.row(named("mem_zero"), Some(size as u64), || {
            let (at, stream) = (device.allocate(size)?, device.stream()?);
            let zero = || stream.zero(at.address, size);
            rows.time(QUEUED, |times| waited(&stream, times, alone, zero))
        })?;
    }
    Ok(())
}

fn streams(device: &Device, rows: &Rows<'_>) -> Result<()> {
    rows.row("create_stream and destroy_stream", None, || {
        rows.repeat(ANY, || device.stream().map(drop))
    })?;
    rows.row("create_event and destroy_event", None, || {
        rows.repeat(ANY, || device.event().map(drop))
    })?;
    rows.row("record_event, then block_host_for_event", None, || {
        let (stream, event) = (device.stream()?, device.event()?);
        rows.repeat(ANY, || stream.record(&event).and_then(|()| event.wait()))
    })?;
    rows.row("get_event_status, of a complete event", None, || {
        let (stream, event) = (device.stream()?, device.event()?);
        stream.record(&event)?;
        stream.finish()?;
        rows.repeat(ANY, || match event.status()? {
            SE_EVENT_COMPLETE => Ok(()),
            other => Err(CallError::Wrong(format!("it returns {other}, not SE_EVENT_COMPLETE"))),
        })
    })?;
    rows.row("a stream waits for another's event", None, || {
        let (first, second, event) = (device.stream()?, device.stream()?, device.event()?);
        let wait = || first.record(&event).and_then(|()| second.wait(&event));
        rows.time(QUEUED, |times| waited(&second, times, false, wait))
    })?;
    rows.row("create_stream_dependency", None, || {
        let (first, second) = (device.stream()?, device.stream()?);
        let depend = || second.wait_for_stream(&first);
        rows.time(QUEUED, |times| waited(&second, times, false, depend))
    })?;
    rows.row("host_callback, then block_host_until_done", None, || {
        let stream = device.stream()?;
        let calls: &'static AtomicU64 = Box::leak(Box::new(AtomicU64::new(0)));
        let mut wanted = 0;
        rows.time(QUEUED, |times| {
            let call = || stream.host_callback(calls).and_then(|()| stream.finish());
            let took = repeated(times, call)?;
            wanted += times;
            match calls.load(Ordering::Acquire) {
                called if called == wanted => Ok(took),
                called => {
                    Err(RowError::Failed(format!("{called} of {wanted} callbacks were called")))
                }
            }
        })
    })?;
    rows.row("block_host_until_done, of an idle stream", None, || {
        let stream = device.stream()?;
        rows.repeat(ANY, || stream.synchronize())
    })?;
    rows.row("synchronize_all_activity, of an idle device", None, || {
        let _stream = device.stream()?;
        rows.repeat(ANY, || device.synchronize())
    })
}

/// Enqueues an operation so many times and waits for all, or with `alone` for each. Returns the time.
fn waited<'d>(
    stream: &Stream<'_>,
    times: u64,
    alone: bool,
    mut enqueue: impl FnMut() -> CallResult<'d>,
) -> Result<Duration> {
    let start = Instant::now();
    let mut enqueued = Ok(());
    for _ in 0..times {
        enqueued = enqueue().map_err(RowError::from);
        if enqueued.is_err() {
            break;
        }
        if alone {
            stream.finish()?;
        }
    }
    // Also after an error: operations in the queue use memory that will be freed.
    if !alone || enqueued.is_err() {
        stream.finish()?;
    }
    enqueued?;
    Ok(start.elapsed())
}

//! The measured callbacks.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Result, ensure};
use tf_fs_sys::{SE_EVENT_COMPLETE, TF_OK};

use cargo_tf_plugin::host::{Device, Event, Memory, Stream, code_name};

use crate::{comparison, done};

/// Length of what most copies copy.
const SMALL: usize = 4 << 10;
/// Length of what is copied in few copies.
const LARGE: usize = 1 << 20;
/// Events that rows use in turns.
const EVENTS: usize = 64;

/// Calls, so many times; how many of the calls did what they are for, in rows that look at it.
type Run = fn(&mut Session<'_>, usize) -> usize;

/// A row of the table: a callback, or what TensorFlow makes of several.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    name: &'static str,
    operations: usize,
    /// How many bytes a copy has.
    bytes: usize,
    /// Makes what the row destroys.
    make: Run,
    run: Run,
}

const fn row(name: &'static str, run: Run) -> Row {
    Row { name, operations: 1000, bytes: SMALL, make: |_, _| 0, run }
}

impl Row {
    /// All rows, in the order of the table.
    pub const ALL: &[Self] = &[
        row("`allocate`", allocate),
        Row { make: allocate, ..row("`deallocate`", |s, _| each(s.made_memory.drain(..))) },
        row("`get_allocator_stats`", |s, n| {
            each((0..n).filter(|_| s.device.allocator_stats().is_ok()))
        }),
        row("`device_memory_usage`", |s, n| {
            each((0..n).filter(|_| s.device.memory_usage().is_ok()))
        }),
        Row { operations: 200, ..row("`create_stream`", create_streams) },
        Row {
            operations: 200,
            make: create_streams,
            ..row("`destroy_stream`", |s, _| each(s.made_streams.drain(..)))
        },
        row("`create_stream_dependency`", |s, n| {
            times(n, || s.streams[0].wait_for_stream(&s.streams[1]))
        }),
        row("`get_stream_status`", |s, n| times(n, || s.streams[0].status())),
        row("`create_event`", create_events),
        Row { make: create_events, ..row("`destroy_event`", |s, _| each(s.made_events.drain(..))) },
        row("`record_event`", |s, n| each(turns(s, n).map(|(event, stream)| stream.record(event)))),
        row("`get_event_status`", |s, n| each(turns(s, n).filter(|(event, _)| is_complete(event)))),
        row("`wait_for_event`", |s, n| each(turns(s, n).map(|(event, stream)| stream.wait(event)))),
        row("`block_host_for_event`", |s, n| each(turns(s, n).map(|(event, _)| event.wait()))),
        row("`block_host_until_done`", |s, n| times(n, || s.streams[0].synchronize())),
        row("`synchronize_all_activity`", |s, n| times(n, || s.device.synchronize())),
        row("`memcpy_htod` 4 KiB", copy_to_device),
        row("`memcpy_dtoh` 4 KiB", copy_to_host),
        row("`memcpy_dtod` 4 KiB", |s, n| {
            times(n, || {
                s.streams[0].copy_on_device(s.places[0].address, s.places[1].address, SMALL)
            })
        }),
        Row { operations: 10, bytes: LARGE, ..row("`memcpy_htod` 1 MiB", copy_to_device) },
        Row { operations: 10, bytes: LARGE, ..row("`memcpy_dtoh` 1 MiB", copy_to_host) },
        row("`sync_memcpy_htod` 4 KiB", |s, n| {
            times(n, || s.device.copy_to_device(s.places[0].address, &s.buffer))
        }),
        row("`sync_memcpy_dtoh` 4 KiB", |s, n| {
            times(n, || s.device.copy_to_host(&mut s.buffer, s.places[0].address))
        }),
        row("`sync_memcpy_dtod` 4 KiB", |s, n| {
            times(n, || s.device.copy_on_device(s.places[0].address, s.places[1].address, SMALL))
        }),
        row("`mem_zero` 4 KiB", |s, n| times(n, || s.streams[0].zero(s.places[0].address, SMALL))),
        row("`memset` 4 KiB", |s, n| times(n, || s.streams[0].set(s.places[0].address, 7, SMALL))),
        row("`memset32` 4 KiB", |s, n| {
            times(n, || s.streams[0].set_words(s.places[0].address, 7, SMALL))
        }),
        row("`host_callback`", |s, n| {
            let accepted = each((0..n).filter(|_| s.streams[0].host_callback(&CALLED).is_ok()));
            if accepted == n { CALLED.load(Ordering::Relaxed) as usize } else { accepted }
        }),
        row("a tensor of 4 KiB to the device", |s, n| {
            let mut buffer = std::mem::take(&mut s.buffer);
            let [stream, second] = &s.streams;
            let complete = second.copying(&mut buffer, |copies| {
                each(turns(s, n).filter(|(event, _)| {
                    let _ = second.wait_for_stream(stream);
                    let _ = copies.to_device(s.places[0].address);
                    let _ = second.record(event);
                    is_complete(event)
                }))
            });
            s.buffer = buffer;
            complete
        }),
    ];
}

impl comparison::Row for Row {
    fn name(self) -> &'static str {
        self.name
    }

    fn operations(self) -> usize {
        self.operations
    }
}

/// How many there are of what the calls return.
fn each<T>(calls: impl Iterator<Item = T>) -> usize {
    calls.fold(0, |count, _| count + 1)
}

fn times<T>(operations: usize, mut call: impl FnMut() -> T) -> usize {
    each((0..operations).map(|_| call()))
}

/// The events in turns, each with one of the streams.
fn turns<'s, 'd>(
    session: &'s Session<'d>,
    operations: usize,
) -> impl Iterator<Item = (&'s Event<'d>, &'s Stream<'d>)> {
    session.events.iter().zip(session.streams.iter().cycle()).cycle().take(operations)
}

fn is_complete(event: &Event<'_>) -> bool {
    event.status().is_ok_and(|is| is == SE_EVENT_COMPLETE)
}

fn allocate(session: &mut Session<'_>, operations: usize) -> usize {
    session.made_memory.extend((0..operations).flat_map(|_| session.device.allocate(SMALL)));
    session.made_memory.len()
}

fn create_streams(session: &mut Session<'_>, operations: usize) -> usize {
    session.made_streams.extend((0..operations).flat_map(|_| session.device.stream()));
    session.made_streams.len()
}

fn create_events(session: &mut Session<'_>, operations: usize) -> usize {
    session.made_events.extend((0..operations).flat_map(|_| session.device.event()));
    session.made_events.len()
}

fn copy_to_device(session: &mut Session<'_>, operations: usize) -> usize {
    let Session { streams, places, buffer, .. } = session;
    streams[0].copying(buffer, |copies| times(operations, || copies.to_device(places[0].address)))
}

fn copy_to_host(session: &mut Session<'_>, operations: usize) -> usize {
    let Session { streams, places, buffer, .. } = session;
    streams[0].copying(buffer, |copies| times(operations, || copies.to_host(places[0].address)))
}

/// A row on a plugin, ready to run.
#[derive(Debug)]
pub struct Session<'d> {
    device: &'d Device,
    row: Row,
    streams: [Stream<'d>; 2],
    events: Vec<Event<'d>>,
    /// Device memory to copy from and to.
    places: [Memory<'d>; 2],
    buffer: Vec<u8>,
    /// The handles that the row itself creates or destroys.
    made_memory: Vec<Memory<'d>>,
    made_streams: Vec<Stream<'d>>,
    made_events: Vec<Event<'d>>,
    /// The sum of the last round: see [`Run`].
    worked: usize,
}

/// The calls of the host's callbacks so far.
static CALLED: AtomicU64 = AtomicU64::new(0);

impl<'d> Session<'d> {
    /// Makes what the row needs.
    pub fn new(device: &'d Device, row: Row) -> Result<Self> {
        let session = Self {
            device,
            row,
            streams: [done(device.stream())?, done(device.stream())?],
            events: (0..EVENTS).map(|_| done(device.event())).collect::<Result<_>>()?,
            places: [done(device.allocate(row.bytes))?, done(device.allocate(row.bytes))?],
            buffer: vec![7; row.bytes],
            made_memory: Vec::new(),
            made_streams: Vec::new(),
            made_events: Vec::new(),
            worked: 0,
        };
        for place in &session.places {
            done(device.copy_to_device(place.address, &session.buffer))?;
        }
        Ok(session)
    }
}

impl comparison::Session for Session<'_> {
    /// Makes what the row destroys, or the reverse.
    fn prepare(&mut self) -> Result<()> {
        self.made_memory.clear();
        self.made_streams.clear();
        self.made_events.clear();
        (self.row.make)(self, self.row.operations);
        for (event, stream) in turns(self, EVENTS) {
            let _ = stream.record(event);
        }
        CALLED.store(0, Ordering::Relaxed);
        Ok(())
    }

    fn run(&mut self, operations: usize) {
        self.worked = (self.row.run)(self, operations);
        black_box(&self.buffer);
    }

    fn check(&mut self) -> Result<()> {
        let Row { name, operations, .. } = self.row;
        let (status, worked) = (&self.device.status, self.worked);
        let code = status.code();
        ensure!(code == TF_OK, "{name}: {}: {}", code_name(code), status.message());
        ensure!(worked == operations, "{name}: {worked} of {operations} worked");
        Ok(())
    }
}

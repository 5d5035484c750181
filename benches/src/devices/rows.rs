//! The measured callbacks.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Result, ensure};
use tf_fs_sys::{SE_EVENT_COMPLETE, TF_OK};

use cargo_tf_plugin::host::{Device, Event, Stream, code_name};

use crate::contest::{self, Row as _};
use crate::done;

const KIB: usize = 1024;
/// Length of what most copies copy.
const SMALL: usize = 4 * KIB;
/// Length of what is copied in few copies.
const LARGE: usize = 1024 * KIB;
/// Events that rows use in turns.
const EVENTS: usize = 64;

macro_rules! rows {
    ($($row:ident $name:literal)*) => {
        /// A row of the table: a callback, or what TensorFlow makes of several.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Row {
            $(
                #[doc = concat!($name, ".")]
                $row,
            )*
        }

        impl Row {
            /// All rows, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$row,)*];

            fn text(self) -> &'static str {
                match self {
                    $(Self::$row => $name,)*
                }
            }
        }
    };
}
rows! {
    Allocate "`allocate`"
    Deallocate "`deallocate`"
    AllocatorStats "`get_allocator_stats`"
    MemoryUsage "`device_memory_usage`"
    CreateStream "`create_stream`"
    DestroyStream "`destroy_stream`"
    WaitForStream "`create_stream_dependency`"
    StreamStatus "`get_stream_status`"
    CreateEvent "`create_event`"
    DestroyEvent "`destroy_event`"
    Record "`record_event`"
    EventStatus "`get_event_status`"
    WaitForEvent "`wait_for_event`"
    BlockForEvent "`block_host_for_event`"
    BlockUntilDone "`block_host_until_done`"
    Synchronize "`synchronize_all_activity`"
    ToDevice "`memcpy_htod` 4 KiB"
    ToHost "`memcpy_dtoh` 4 KiB"
    OnDevice "`memcpy_dtod` 4 KiB"
    LargeToDevice "`memcpy_htod` 1 MiB"
    LargeToHost "`memcpy_dtoh` 1 MiB"
    SyncToDevice "`sync_memcpy_htod` 4 KiB"
    SyncToHost "`sync_memcpy_dtoh` 4 KiB"
    SyncOnDevice "`sync_memcpy_dtod` 4 KiB"
    Zero "`mem_zero` 4 KiB"
    Byte "`memset` 4 KiB"
    Word "`memset32` 4 KiB"
    HostCallback "`host_callback`"
    Transfer "a tensor of 4 KiB to the device"
}

impl Row {
    /// How many bytes a copy has.
    fn bytes(self) -> usize {
        match self {
            Self::LargeToDevice | Self::LargeToHost => LARGE,
            _ => SMALL,
        }
    }
}

impl contest::Row for Row {
    fn name(self) -> String {
        self.text().to_owned()
    }

    fn operations(self) -> usize {
        match self {
            Self::LargeToDevice | Self::LargeToHost => 10,
            Self::CreateStream | Self::DestroyStream => 200,
            _ => 1000,
        }
    }
}

/// A row on a plugin, ready to run.
#[derive(Debug)]
pub struct Session<'d> {
    device: &'d Device,
    row: Row,
    streams: [Stream<'d>; 2],
    events: Vec<Event<'d>>,
    /// Device memory to copy from and to.
    places: [u64; 2],
    buffer: Vec<u8>,
    /// What the row itself makes or destroys.
    made_memory: Vec<u64>,
    made_streams: Vec<Stream<'d>>,
    made_events: Vec<Event<'d>>,
    answers: u64,
}

/// The calls of the host's callbacks so far.
static CALLED: AtomicU64 = AtomicU64::new(0);

impl<'d> Session<'d> {
    /// Makes what the row needs.
    pub fn new(device: &'d Device, row: Row) -> Result<Self> {
        let bytes = row.bytes();
        let session = Self {
            device,
            row,
            streams: [done(device.stream())?, done(device.stream())?],
            events: (0..EVENTS).map(|_| done(device.event())).collect::<Result<_>>()?,
            places: [done(device.allocate_raw(bytes))?, done(device.allocate_raw(bytes))?],
            buffer: vec![7; bytes],
            made_memory: Vec::new(),
            made_streams: Vec::new(),
            made_events: Vec::new(),
            answers: 0,
        };
        for place in session.places {
            ensure!(place != 0, "the plugin allocates nothing");
            done(device.copy_to_device(place, &session.buffer))?;
        }
        Ok(session)
    }

    fn done(&self) -> Result<()> {
        let (status, name) = (&self.device.status, self.row.name());
        let code = status.code();
        ensure!(code == TF_OK, "{name}: {}: {}", code_name(code), status.message());
        Ok(())
    }

    fn release(&mut self) {
        self.made_memory.drain(..).for_each(|address| drop(self.device.deallocate(address)));
        self.made_streams.clear();
        self.made_events.clear();
    }
}

impl contest::Session for Session<'_> {
    /// Makes what the row destroys, or the reverse.
    fn prepare(&mut self) -> Result<()> {
        let Self { device, row, .. } = *self;
        let wanted = |destroys: Row| if row == destroys { row.operations() } else { 0 };
        self.release();
        let memory = (0..wanted(Row::Deallocate)).flat_map(|_| device.allocate_raw(SMALL));
        self.made_memory.extend(memory);
        self.made_streams.extend((0..wanted(Row::DestroyStream)).flat_map(|_| device.stream()));
        self.made_events.extend((0..wanted(Row::DestroyEvent)).flat_map(|_| device.event()));
        for (index, event) in self.events.iter().enumerate() {
            let _ = self.streams[index % 2].record(event);
        }
        self.answers = 0;
        CALLED.store(0, Ordering::Relaxed);
        Ok(())
    }

    fn run(&mut self, operations: usize) {
        let Self { device, row, places: [place, other], .. } = *self;
        let [stream, second] = &self.streams;
        let turns = self.events.iter().zip([stream, second].into_iter().cycle());
        let turns = turns.cycle().take(operations);
        let each = 0..operations;
        match row {
            Row::Allocate => self.made_memory.extend(each.flat_map(|_| device.allocate_raw(SMALL))),
            Row::Deallocate => {
                self.made_memory.drain(..).for_each(|address| drop(device.deallocate(address)));
            }
            Row::AllocatorStats => {
                self.answers = each.filter(|_| device.allocator_stats().is_ok()).count() as u64;
            }
            Row::MemoryUsage => {
                self.answers = each.filter(|_| device.memory_usage().is_ok()).count() as u64;
            }
            Row::CreateStream => self.made_streams.extend(each.flat_map(|_| device.stream())),
            Row::DestroyStream => self.made_streams.clear(),
            Row::WaitForStream => each.for_each(|_| drop(stream.wait_for_stream(second))),
            Row::StreamStatus => each.for_each(|_| drop(stream.status())),
            Row::CreateEvent => self.made_events.extend(each.flat_map(|_| device.event())),
            Row::DestroyEvent => self.made_events.clear(),
            Row::Record => turns.for_each(|(event, stream)| drop(stream.record(event))),
            Row::EventStatus => {
                let complete = turns
                    .filter(|(event, _)| event.status().is_ok_and(|is| is == SE_EVENT_COMPLETE));
                self.answers = complete.count() as u64;
            }
            Row::WaitForEvent => turns.for_each(|(event, stream)| drop(stream.wait(event))),
            Row::BlockForEvent => turns.for_each(|(event, _)| drop(event.wait())),
            Row::BlockUntilDone => each.for_each(|_| drop(stream.synchronize())),
            Row::Synchronize => each.for_each(|_| drop(device.synchronize())),
            Row::ToDevice | Row::LargeToDevice => stream.copying(&mut self.buffer, |copies| {
                each.for_each(|_| drop(copies.to_device(place)));
            }),
            Row::ToHost | Row::LargeToHost => stream.copying(&mut self.buffer, |copies| {
                each.for_each(|_| drop(copies.to_host(place)));
            }),
            Row::OnDevice => each.for_each(|_| drop(stream.copy_on_device(place, other, SMALL))),
            Row::SyncToDevice => {
                each.for_each(|_| drop(device.copy_to_device(place, &self.buffer)))
            }
            Row::SyncToHost => {
                each.for_each(|_| drop(device.copy_to_host(&mut self.buffer, place)))
            }
            Row::SyncOnDevice => {
                each.for_each(|_| drop(device.copy_on_device(place, other, SMALL)))
            }
            Row::Zero => each.for_each(|_| drop(stream.zero(place, SMALL))),
            Row::Byte => each.for_each(|_| drop(stream.set(place, 7, SMALL))),
            Row::Word => each.for_each(|_| drop(stream.set_words(place, 7, SMALL))),
            Row::HostCallback => {
                self.answers =
                    each.filter(|_| stream.host_callback(&CALLED).is_ok()).count() as u64;
            }
            Row::Transfer => second.copying(&mut self.buffer, |copies| {
                self.answers = turns
                    .filter(|(event, _)| {
                        let _ = second.wait_for_stream(stream);
                        let _ = copies.to_device(place);
                        let _ = second.record(event);
                        event.status().is_ok_and(|is| is == SE_EVENT_COMPLETE)
                    })
                    .count() as u64;
            }),
        }
        black_box(&self.buffer);
    }

    fn check(&mut self) -> Result<()> {
        let (row, operations) = (self.row, self.row.operations() as u64);
        self.done()?;
        let found = match row {
            Row::Allocate => {
                self.made_memory.iter().filter(|&&address| address != 0).count() as u64
            }
            Row::AllocatorStats
            | Row::MemoryUsage
            | Row::EventStatus
            | Row::HostCallback
            | Row::Transfer => self.answers,
            _ => operations,
        };
        ensure!(found == operations, "{}: {found} of {operations} worked", row.name());
        let called = CALLED.load(Ordering::Relaxed);
        ensure!(
            row != Row::HostCallback || called == operations,
            "{called} of {operations} callbacks were called"
        );
        Ok(())
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        self.release();
        self.places.into_iter().for_each(|place| drop(self.device.deallocate(place)));
    }
}

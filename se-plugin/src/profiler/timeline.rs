//! A ready-made profiler.

use super::interface::Profiler;
use super::xspace::{XEvent, XLine, XPlane, XSpace};
use crate::sync::lock;
use core::sync::atomic::{AtomicBool, Ordering};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tf_plugin_core::Result;

/// The largest number of events in a profile: about 100 MB, and more than the trace viewer shows.
const MAX_EVENTS: usize = 1_000_000;

/// Returns the time in nanoseconds since the Unix epoch, by the clock that TensorFlow's own profiler uses.
#[must_use]
pub fn now() -> u64 {
    nanoseconds(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// A profiler that records the events of a plugin's devices, from any thread.
///
/// While no profiler runs, recording costs one atomic load.
#[derive(Debug)]
pub struct Timeline {
    device_type: &'static str,
    is_active: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    lines: Vec<(usize, Cow<'static, str>)>,
    started: u64,
    events: Vec<Event>,
    left_out: usize,
}

#[derive(Debug)]
struct Event {
    line: Line,
    name: Cow<'static, str>,
    start: u64,
    duration: Duration,
}

/// A line of a [`Timeline`], such as a stream of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Line(u32);

/// A running event: it is recorded when this is dropped.
#[derive(Debug)]
#[must_use = "what goes on ends when this is dropped"]
pub struct Span<'t> {
    timeline: &'t Timeline,
    line: Line,
    /// `None` while no profiler runs.
    begun: Option<(Cow<'static, str>, u64)>,
}

impl Timeline {
    /// Creates a timeline for devices of this type, for a `static`.
    #[must_use]
    pub const fn new(device_type: &'static str) -> Self {
        Self {
            device_type,
            is_active: AtomicBool::new(false),
            state: Mutex::new(State {
                lines: Vec::new(),
                started: 0,
                events: Vec::new(),
                left_out: 0,
            }),
        }
    }

    /// Returns the line of a device with this name. It stays for the life of the timeline: look it up once, when a
    /// stream is created, and not for each event.
    #[must_use]
    pub fn line(&self, ordinal: usize, name: impl Into<Cow<'static, str>>) -> Line {
        let line = (ordinal, name.into());
        let lines = &mut lock(&self.state).lines;
        let number = lines.iter().position(|other| *other == line).unwrap_or_else(|| {
            lines.push(line);
            lines.len() - 1
        });
        // No plugin has so many streams; more would only share a line.
        Line(u32::try_from(number).unwrap_or(u32::MAX))
    }

    /// Returns whether a profiler runs.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.is_active.load(Ordering::Relaxed)
    }

    /// Records an event that began at `start_ns`, in nanoseconds since the Unix epoch ([`now`]), and took
    /// `duration`. Does nothing while no profiler runs, or if the event began before the profile.
    pub fn record(
        &self,
        line: Line,
        name: impl Into<Cow<'static, str>>,
        start_ns: u64,
        duration: Duration,
    ) {
        if !self.is_active() {
            return;
        }
        let mut state = lock(&self.state);
        if start_ns < state.started {
            return;
        }
        if state.events.len() >= MAX_EVENTS {
            state.left_out += 1;
            return;
        }
        state.events.push(Event { line, name: name.into(), start: start_ns, duration });
    }

    /// Begins an event of the calling thread, by the host's clock.
    pub fn span(&self, line: Line, name: impl Into<Cow<'static, str>>) -> Span<'_> {
        let begun = self.is_active().then(|| (name.into(), now()));
        Span { timeline: self, line, begun }
    }
}

impl Drop for Span<'_> {
    fn drop(&mut self) {
        if let Some((name, start)) = self.begun.take() {
            let duration = Duration::from_nanos(now().saturating_sub(start));
            self.timeline.record(self.line, name, start, duration);
        }
    }
}

impl Profiler for Timeline {
    fn start(&self) -> Result<()> {
        let mut state = lock(&self.state);
        state.events.clear();
        state.left_out = 0;
        state.started = now();
        self.is_active.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn stop(&self) -> Result<()> {
        self.is_active.store(false, Ordering::Relaxed);
        Ok(())
    }

    fn collect(&self) -> Result<XSpace> {
        let mut state = lock(&self.state);
        let events = std::mem::take(&mut state.events);
        let left_out = std::mem::take(&mut state.left_out);
        let mut planes: BTreeMap<usize, BTreeMap<u32, XLine>> = BTreeMap::new();
        for Event { line, name, start, duration } in events {
            let Some((ordinal, line_name)) = state.lines.get(line.0 as usize) else { continue };
            let line = planes.entry(*ordinal).or_default().entry(line.0).or_insert_with(|| XLine {
                id: line.0 + 1,
                name: line_name.clone(),
                events: Vec::new(),
            });
            line.events.push(XEvent {
                name,
                start_ns: start,
                duration_ps: nanoseconds(duration).saturating_mul(1000),
                stats: Vec::new(),
            });
        }
        drop(state);
        if left_out > 0 {
            log::warn!(
                "the profile of {} leaves out {left_out} events; profile for a shorter time",
                self.device_type
            );
        }
        let planes = planes.into_iter().map(|(ordinal, lines)| XPlane {
            id: u32::try_from(ordinal).unwrap_or(u32::MAX),
            name: format!("{}{}:{ordinal}", XPlane::DEVICE, self.device_type).into(),
            lines: lines.into_values().collect(),
            stats: Vec::new(),
        });
        Ok(XSpace { planes: planes.collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_micros(3);

    #[test]
    fn events_come_back_by_device_and_line() {
        static TIMELINE: Timeline = Timeline::new("MY_DEVICE");
        let [a, b, c] = [(0, "Stream 1"), (0, "Stream 2"), (1, "Stream 1")]
            .map(|(at, name)| TIMELINE.line(at, name));
        assert_eq!(TIMELINE.line(0, "Stream 2"), b);
        assert!(a != b && b != c && a != c);
        TIMELINE.record(a, "nobody profiles", now(), LONG);
        TIMELINE.start().unwrap();
        assert!(TIMELINE.is_active());
        let start = now();
        TIMELINE.record(a, "before", 1, LONG);
        TIMELINE.record(b, "one", start, LONG);
        TIMELINE.record(c, String::from("two"), start + 7, LONG);
        drop(TIMELINE.span(b, "three"));
        TIMELINE.stop().unwrap();
        TIMELINE.record(a, "after", now(), LONG);
        let XSpace { planes } = TIMELINE.collect().unwrap();
        let names: Vec<_> = planes.iter().map(|plane| (plane.id, &*plane.name)).collect();
        let expected = [(0, "/device:CUSTOM:MY_DEVICE:0"), (1, "/device:CUSTOM:MY_DEVICE:1")];
        assert_eq!(names, expected);
        let [line] = &planes[0].lines[..] else { panic!("{planes:?}") };
        assert_eq!((line.id, &*line.name), (2, "Stream 2"));
        let event = &line.events[0];
        assert_eq!((&*event.name, event.start_ns, event.duration_ps), ("one", start, 3_000_000));
        assert_eq!(line.events[1].name, "three");
        assert_eq!(planes[1].lines[0].events[0].name, "two");
        assert_eq!(TIMELINE.collect().unwrap(), XSpace::default(), "all was handed over");
    }

    #[test]
    fn a_profile_ends_somewhere() {
        let timeline = Timeline::new("MY_DEVICE");
        let line = timeline.line(0, "Stream 1");
        timeline.start().unwrap();
        let start = now();
        for _ in 0..MAX_EVENTS + 2 {
            timeline.record(line, "event", start, LONG);
        }
        assert_eq!(lock(&timeline.state).left_out, 2);
        let space = timeline.collect().unwrap();
        assert_eq!(space.planes[0].lines[0].events.len(), MAX_EVENTS);
        timeline.record(line, "of a profile that nobody collected", start, LONG);
        timeline.start().unwrap();
        assert_eq!(timeline.collect().unwrap(), XSpace::default());
    }
}

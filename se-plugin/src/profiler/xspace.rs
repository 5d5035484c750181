//! The data that a profiler returns: TensorFlow's `XSpace`.

use prost::encoding::double;
use std::borrow::Cow;
use std::collections::HashMap;
use tf_op_plugin::__private::wire::{put_bytes, put_bytes_if_any, put_message, put_varint};

/// A profile: planes with lines with events.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct XSpace {
    /// One for each device.
    pub planes: Vec<XPlane>,
}

/// A group of lines, such as a device.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct XPlane {
    /// Unique among the planes of one prefix, and less than 50.
    pub id: u32,
    /// The name, from which TensorBoard derives the kind of the plane. Names of a plugin's devices begin with
    /// [`XPlane::DEVICE`]; the trace viewer skips others.
    pub name: Cow<'static, str>,
    /// One for each stream.
    pub lines: Vec<XLine>,
    /// Values about the whole plane.
    pub stats: Vec<XStat>,
}

impl XPlane {
    /// The prefix of the names of planes that TensorBoard's trace viewer shows as devices.
    pub const DEVICE: &'static str = "/device:CUSTOM:";
}

/// A line of events that do not overlap, or are nested.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct XLine {
    /// Unique in the plane.
    pub id: u32,
    /// The name that users see.
    pub name: Cow<'static, str>,
    /// The events, in any order.
    pub events: Vec<XEvent>,
}

/// An event with a duration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct XEvent {
    /// The name that users see, such as `MatMul`. Events of one name are counted together.
    pub name: Cow<'static, str>,
    /// When it began: nanoseconds since the Unix epoch, see [`now`](super::now).
    pub start_ns: u64,
    /// How long it took, in picoseconds.
    pub duration_ps: u64,
    /// More values about it.
    pub stats: Vec<XStat>,
}

/// A named value.
#[derive(Clone, Debug, PartialEq)]
pub struct XStat {
    /// The name. TensorBoard knows some, such as `tf_op` or `bytes_accessed`.
    pub name: Cow<'static, str>,
    /// The value.
    pub value: StatValue,
}

/// The value of an [`XStat`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum StatValue {
    /// A number.
    F64(f64),
    /// A number.
    U64(u64),
    /// A number.
    I64(i64),
    /// A text.
    Str(Cow<'static, str>),
}

/// Numbers for the names of a plane, which its events refer to.
#[derive(Default)]
struct Names<'a> {
    numbers: HashMap<&'a str, u64>,
    names: Vec<&'a str>,
}

impl<'a> Names<'a> {
    fn number(&mut self, name: &'a str) -> u64 {
        *self.numbers.entry(name).or_insert_with(|| {
            self.names.push(name);
            self.names.len() as u64
        })
    }

    /// Appends the map of numbers to names.
    fn encode(&self, out: &mut Vec<u8>, field: u32) {
        for (number, name) in (1..).zip(&self.names) {
            put_message(out, field, |entry| {
                put_varint(entry, 1, number);
                put_message(entry, 2, |metadata| {
                    put_varint(metadata, 1, number);
                    put_bytes_if_any(metadata, 2, name.as_bytes());
                });
            });
        }
    }
}

impl XSpace {
    /// Returns the serialised message.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for plane in &self.planes {
            put_message(&mut out, 1, |out| plane.encode(out));
        }
        out
    }
}

impl XPlane {
    fn encode(&self, out: &mut Vec<u8>) {
        let (mut events, mut stats) = (Names::default(), Names::default());
        put_varint(out, 1, self.id.into());
        put_bytes(out, 2, self.name.as_bytes());
        for line in &self.lines {
            put_message(out, 3, |out| line.encode(out, &mut events, &mut stats));
        }
        for stat in &self.stats {
            put_message(out, 6, |out| stat.encode(out, &mut stats));
        }
        events.encode(out, 4);
        stats.encode(out, 5);
    }
}

impl XLine {
    fn encode<'a>(&'a self, out: &mut Vec<u8>, names: &mut Names<'a>, stats: &mut Names<'a>) {
        let mut events: Vec<&XEvent> = self.events.iter().collect();
        // Of two events that begin at the same time, the longer one contains the other.
        events.sort_by_key(|event| (event.start_ns, std::cmp::Reverse(event.duration_ps)));
        let start = events.first().map_or(0, |event| event.start_ns);
        put_varint(out, 1, self.id.into());
        put_bytes_if_any(out, 2, self.name.as_bytes());
        put_varint(out, 3, start);
        for event in events {
            put_message(out, 4, |out| {
                put_varint(out, 1, names.number(&event.name));
                put_varint(out, 2, (event.start_ns - start).saturating_mul(1000));
                put_varint(out, 3, event.duration_ps);
                for stat in &event.stats {
                    put_message(out, 4, |out| stat.encode(out, stats));
                }
            });
        }
    }
}

impl XStat {
    fn encode<'a>(&'a self, out: &mut Vec<u8>, names: &mut Names<'a>) {
        put_varint(out, 1, names.number(&self.name));
        match &self.value {
            StatValue::F64(value) => double::encode(2, value, out),
            StatValue::U64(value) => put_varint(out, 3, *value),
            StatValue::I64(value) => put_varint(out, 4, *value as u64),
            StatValue::Str(value) => put_bytes(out, 5, value.as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(name: &'static str, start_ns: u64, duration_ps: u64) -> XEvent {
        XEvent { name: name.into(), start_ns, duration_ps, stats: Vec::new() }
    }

    /// Compares the bytes with those that TensorFlow's own Python reads as this space.
    #[test]
    fn a_space_is_that_of_tensorflow() {
        let stats = vec![
            XStat { name: "bytes".into(), value: StatValue::U64(300) },
            XStat { name: "cost".into(), value: StatValue::F64(1.0) },
        ];
        let space = XSpace {
            planes: vec![XPlane {
                id: 1,
                name: "P".into(),
                lines: vec![XLine {
                    id: 2,
                    name: "L".into(),
                    events: vec![event("b", 12, 5), XEvent { stats, ..event("a", 10, 3) }],
                }],
                stats: vec![
                    XStat { name: "cost".into(), value: StatValue::Str("x".into()) },
                    XStat { name: "bytes".into(), value: StatValue::I64(-1) },
                ],
            }],
        };
        let line = b"\x08\x02\x12\x01L\x18\x0a\
            \x22\x1a\x08\x01\x10\x00\x18\x03\x22\x05\x08\x01\x18\xac\x02\x22\x0b\x08\x02\x11\0\0\0\0\0\0\xf0\x3f\
            \x22\x07\x08\x02\x10\xd0\x0f\x18\x05";
        let mut plane = b"\x08\x01\x12\x01P\x1a".to_vec();
        plane.push(line.len() as u8);
        plane.extend_from_slice(line);
        plane.extend_from_slice(
            b"\x32\x05\x08\x02\x2a\x01x\x32\x0d\x08\x01\x20\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\
            \x22\x09\x08\x01\x12\x05\x08\x01\x12\x01a\x22\x09\x08\x02\x12\x05\x08\x02\x12\x01b\
            \x2a\x0d\x08\x01\x12\x09\x08\x01\x12\x05bytes\x2a\x0c\x08\x02\x12\x08\x08\x02\x12\x04cost",
        );
        let mut expected = vec![0x0a, plane.len() as u8];
        expected.extend_from_slice(&plane);
        assert_eq!(space.encode(), expected);
    }

    #[test]
    fn nothing_is_nothing() {
        assert!(XSpace::default().encode().is_empty());
        let line =
            XSpace { planes: vec![XPlane { lines: vec![XLine::default()], ..XPlane::default() }] };
        assert_eq!(line.encode(), b"\x0a\x0a\x08\x00\x12\x00\x1a\x04\x08\x00\x18\x00");
    }
}

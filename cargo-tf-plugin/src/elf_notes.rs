//! The notes that the SDKs leave in a plugin.

use object::Endianness;
use serde::Serialize;

/// The SDK's note about a scheme, a platform or an op.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Note {
    pub(crate) of: NoteOf,
    /// The scheme, the device type, or the op.
    pub(crate) text: String,
    /// The version of the SDK.
    pub(crate) sdk: String,
    pub(crate) panic: Panic,
    /// The operations that the author has implemented: a bit for each slot of `TF_FilesystemOps`.
    #[serde(skip)]
    pub(crate) provided: u64,
    /// Whether the library notes which defaults its writers use.
    #[serde(skip)]
    pub(crate) has_defaults: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum NoteOf {
    Filesystem,
    Device,
    Op,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Panic {
    Unwind,
    Abort,
}

/// The kind of a note about a default in `WritableFile`.
pub(crate) const WRITER_DEFAULT: u32 = 3;

/// Reads a number in a note.
pub(crate) fn number(description: &[u8], at: usize, endian: Endianness) -> Option<u32> {
    use object::Endian as _;
    let bytes = description.get(at..at + 4)?.try_into().ok()?;
    Some(endian.read_u32(bytes))
}

impl Note {
    /// Parses a note; returns `None` for an unknown layout, of a future SDK.
    pub(crate) fn parse(kind: u32, description: &[u8], endian: Endianness) -> Option<Self> {
        let number = |at| number(description, at, endian);
        let text = |bytes: &[u8]| {
            let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
            String::from_utf8_lossy(text).into_owned()
        };
        let layout = number(0)?;
        if ![1, 2].contains(&layout) {
            return None;
        }
        Some(Self {
            of: match kind {
                1 => NoteOf::Filesystem,
                2 => NoteOf::Device,
                4 => NoteOf::Op,
                _ => return None,
            },
            panic: if number(4)? == 0 { Panic::Unwind } else { Panic::Abort },
            provided: u64::from(number(8)?) | u64::from(number(12)?) << 32,
            sdk: text(description.get(16..32)?),
            text: text(description.get(32..)?),
            has_defaults: layout == 2,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_read_as_far_as_they_are_known() {
        let mut description = [[1, 0, 0, 0], [1, 0, 0, 0], [4, 0, 0, 0], [1, 0, 0, 0]].concat();
        description.extend(*b"0.1.0\0\0\0\0\0\0\0\0\0\0\0mem\0");
        let note = Note {
            of: NoteOf::Filesystem,
            text: "mem".to_owned(),
            sdk: "0.1.0".to_owned(),
            panic: Panic::Abort,
            provided: 4 | 1 << 32,
            has_defaults: false,
        };
        assert_eq!(Note::parse(1, &description, Endianness::Little), Some(note));
        assert_eq!(Note::parse(3, &description, Endianness::Little), None);
        assert_eq!(Note::parse(1, &description[..30], Endianness::Little), None);
        let op = Note::parse(4, &description, Endianness::Little).expect("a note about an op");
        assert_eq!((op.of, &*op.text), (NoteOf::Op, "mem"));
        description[0] = 2;
        let newer =
            Note::parse(1, &description, Endianness::Little).expect("a layout that is known");
        assert!(newer.has_defaults);
        description[0] = 3;
        assert_eq!(Note::parse(1, &description, Endianness::Little), None);
    }
}

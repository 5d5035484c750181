//! ELF notes of a plugin, one for each scheme, device platform and op, which `cargo tf-plugin check` reads without
//! running the plugin.
//!
//! The tables alone do not distinguish an operation of the author from a default of the SDK: both are a
//! pointer. A note adds no export, it is kept by the linker and by `strip`, and nothing reads it at run time.

/// An ELF note with a text of `N` bytes, filled up with NULs. The numbers are in the machine's byte order.
#[derive(Debug)]
#[repr(C, align(4))]
pub struct ElfNote<const N: usize> {
    name_size: u32,
    description_size: u32,
    kind: u32,
    /// `tf-plugin`, NUL-terminated and filled up to a multiple of four.
    name: [u8; 12],
    /// The version of the layout from here on.
    layout: u32,
    /// 0: a panic unwinds; 1: it aborts.
    panic_abort: u32,
    /// The operations that the author has written, a bit each; the lower half first.
    provided: [u32; 2],
    /// The version of this crate, as text.
    sdk: [u8; 16],
    /// The scheme, the device type, or the op.
    text: [u8; N],
}

/// Whether the SDK's defaults leave notes, too: the assemblers of these machines know the directives.
const DEFAULTS_LEAVE_NOTES: bool =
    cfg!(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)));

/// 2 if defaults leave notes, too; 1 where they cannot.
pub const LAYOUT: u32 = if DEFAULTS_LEAVE_NOTES { 2 } else { 1 };

/// A note about a scheme.
const FILESYSTEM: u32 = 1;
/// A note about a device platform.
const DEVICE: u32 = 2;
/// A note that a type of the library has a default of `WritableFile`.
pub const WRITER_DEFAULT: u32 = 3;

/// A note about an op.
const OP: u32 = 4;

/// Returns the size of the text in a note about `text`: a multiple of four, because linkers put notes in a row.
#[must_use]
pub const fn size(text: &str) -> usize {
    text.len().next_multiple_of(4)
}

impl<const N: usize> ElfNote<N> {
    /// Creates a note about a scheme, for which the author has written the operations `provided`, one bit each.
    #[must_use]
    pub const fn filesystem(scheme: &str, provided: u64, panic_abort: bool) -> Self {
        Self::new(FILESYSTEM, scheme, provided, panic_abort)
    }

    /// Creates a note about a platform of devices.
    #[must_use]
    pub const fn device(kind: &str, panic_abort: bool) -> Self {
        Self::new(DEVICE, kind, 0, panic_abort)
    }

    /// Creates a note about an op.
    #[must_use]
    pub const fn op(name: &str, panic_abort: bool) -> Self {
        Self::new(OP, name, 0, panic_abort)
    }

    const fn new(kind: u32, text: &str, provided: u64, panic_abort: bool) -> Self {
        Self {
            name_size: 10,
            description_size: 32 + N as u32,
            kind,
            name: *b"tf-plugin\0\0\0",
            layout: LAYOUT,
            panic_abort: panic_abort as u32,
            provided: [provided as u32, (provided >> 32) as u32],
            sdk: padded(env!("CARGO_PKG_VERSION")),
            text: padded(text),
        }
    }
}

const fn padded<const N: usize>(text: &str) -> [u8; N] {
    let text = text.as_bytes();
    let mut bytes = [0; N];
    let mut at = 0;
    while at < text.len() && at < N {
        bytes[at] = text[at];
        at += 1;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_as_long_as_it_says() {
        let note = ElfNote::<{ size("mem.v2") }>::new(FILESYSTEM, "mem.v2", 1 << 15, true);
        assert_eq!(size_of_val(&note), 12 + 12 + note.description_size as usize);
        assert_eq!(note.text, *b"mem.v2\0\0");
        assert_eq!(note.provided, [1 << 15, 0]);
        assert_eq!(note.panic_abort, 1);
        assert!(note.sdk.starts_with(env!("CARGO_PKG_VERSION").as_bytes()));
        assert_eq!(ElfNote::<0>::new(FILESYSTEM, "", 1 << 32, false).provided, [0, 1]);
    }
}

//! The names in the directory: where a block is, and which names are those of blocks.

use std::fmt;

/// The folder of files that are being written. Only a rename moves them to where they are read.
pub(super) const NEW: &str = "new";

/// Where a block is in the directory.
#[derive(Debug)]
pub(super) struct BlockPath {
    pub(super) folder: String,
    pub(super) file: String,
}

impl BlockPath {
    /// Returns the place of a block of the object with this name, which has 32 hexadecimal digits.
    pub(super) fn new(name: &str, index: u64) -> Self {
        // Spread over 256 folders, also the blocks of one object.
        let first = u8::from_str_radix(&name[..2], 16).unwrap_or_default();
        let folder = format!("{:02x}", first.wrapping_add(index as u8));
        Self { folder, file: format!("{name}-{index}") }
    }

    /// Returns whether a folder of this name has blocks.
    pub(super) fn is_folder(name: &str) -> bool {
        name.len() == 2 && is_hexadecimal(name)
    }

    /// Returns whether a file of this name is a block. Nothing else is ever deleted.
    pub(super) fn is_file(name: &str) -> bool {
        name.split_once('-').is_some_and(|(name, index)| {
            name.len() == 32 && is_hexadecimal(name) && index.parse::<u64>().is_ok()
        })
    }
}

fn is_hexadecimal(name: &str) -> bool {
    name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

impl fmt::Display for BlockPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.folder, self.file)
    }
}

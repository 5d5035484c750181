//! Listings and patterns.

use super::file::number;
use super::mounted::c_path;
use crate::filesystem::defaults;
use crate::filesystem::test_filesystem::{TestFilesystem, unsupported};
use core::ffi::{CStr, c_char};
use core::ptr;
use tf_fs_plugin::Uri;
use tf_fs_sys::TF_ListOp;
use tf_plugin_core::Result;

impl TestFilesystem {
    /// Returns the names of the entries of a directory.
    pub fn get_children(&self, uri: impl AsRef<[u8]>) -> Result<Vec<Vec<u8>>> {
        let uri = uri.as_ref();
        let slot = self.mounted.tables.filesystem.get_children;
        let slot = slot.ok_or_else(|| unsupported(uri, "GetChildren"))?;
        let path = self.translate_name(uri)?;
        let is_entry = |name: &[u8]| !name.contains(&b'/') && !matches!(name, b"" | b"." | b"..");
        let otherwise = "is not the last component of a name";
        self.list("get_children", slot, &path, is_entry, otherwise)
    }

    /// Returns the names that match a pattern, which is passed to the plugin unchanged.
    ///
    /// # Errors
    /// Returns the plugin's error. TensorFlow's default ignores the errors of `get_children` and crashes on a wildcard
    /// in the host; for that this host notes a violation and returns `INTERNAL`.
    pub fn get_matching_paths(&self, pattern: impl AsRef<[u8]>) -> Result<Vec<Vec<u8>>> {
        let pattern = pattern.as_ref();
        let Some(slot) = self.mounted.tables.filesystem.get_matching_paths else {
            return defaults::get_matching_paths(self, pattern);
        };
        let scheme = Uri::new(pattern).scheme();
        let is_path = |name: &[u8]| !name.is_empty() && Uri::new(name).scheme() == scheme;
        let otherwise = "is not a complete name with the pattern's scheme";
        self.list("get_matching_paths", slot, pattern, is_path, otherwise)
    }

    /// Calls a slot, takes ownership of its names, and checks them and their number.
    fn list(
        &self,
        op: &'static str,
        slot: TF_ListOp,
        subject: &[u8],
        is_right: impl Fn(&[u8]) -> bool,
        otherwise: &str,
    ) -> Result<Vec<Vec<u8>>> {
        let violation = |what: String| self.violation(op, subject, what);
        let blocks = &self.mounted.blocks;
        let c = c_path(subject);
        let mut array: *mut *mut c_char = ptr::null_mut();
        // SAFETY: an initialised filesystem of this table, a C string, a place that holds null and a
        // status.
        let (result, count) = self.mounted.call(op, subject, |status| unsafe {
            slot(self.as_ptr(), c.as_ptr(), &mut array, status)
        });
        let len = if array.is_null() { 0 } else { usize::try_from(count).unwrap_or(0) };
        let mut names = Vec::with_capacity(len);
        if count >= 0 {
            // SAFETY: null, or an array of `count` elements, each null or a C string from the
            // plugin's allocator, all the host's to free now. Nothing is freed before all was read,
            // because one block may be in the array twice.
            unsafe {
                let strings: Vec<*mut c_char> =
                    (0..len).map(|index| array.add(index).read()).collect();
                let fresh_array = blocks.receive(op, subject, array);
                let fresh: Vec<bool> =
                    strings.iter().map(|&string| blocks.receive(op, subject, string)).collect();
                for &string in &strings {
                    match string.is_null() {
                        true => violation("an entry is null; TensorFlow would crash".into()),
                        false => names.push(CStr::from_ptr(string).to_bytes().to_vec()),
                    }
                }
                for (string, fresh) in strings.into_iter().zip(fresh) {
                    if fresh && !string.is_null() {
                        blocks.free(string);
                    }
                }
                // TensorFlow frees the null array too.
                if fresh_array {
                    blocks.free(array);
                }
            }
        }
        number(&self.mounted, op, subject, &result, count.into(), "an empty list");
        if count > 0 && array.is_null() {
            violation(format!("returned {count} without entries; TensorFlow would crash"));
        }
        let mut sorted: Vec<&Vec<u8>> = names.iter().collect();
        sorted.sort_unstable();
        for pair in sorted.windows(2).filter(|pair| pair[0] == pair[1]) {
            violation(format!("\"{}\" is in the list twice", pair[0].escape_ascii()));
        }
        for name in names.iter().filter(|name| !is_right(name)) {
            violation(format!("\"{}\" {otherwise}", name.escape_ascii()));
        }
        result.map(|()| names)
    }
}

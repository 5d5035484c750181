//! Listings and patterns.

use super::abi::calls::Listing;
use super::handle::{TestFilesystem, unsupported};
use super::{defaults, path};
use tf_plugin_core::Result;

impl TestFilesystem {
    /// The names of the entries of a directory.
    pub fn get_children(&self, uri: impl AsRef<[u8]>) -> Result<Vec<Vec<u8>>> {
        const OP: &str = "get_children";
        let uri = uri.as_ref();
        let slot = self.mounted.tables.filesystem.get_children;
        let slot = slot.ok_or_else(|| unsupported(uri, "GetChildren"))?;
        let path = self.translate_name(uri)?;
        let (result, listing) = self.mounted.raw_list(OP, slot, &path);
        let names = self.judge_listing(OP, &path, &result, listing);
        for name in &names {
            if name.contains(&b'/') || matches!(&name[..], b"" | b"." | b"..") {
                let what =
                    format!("\"{}\" is not the last component of a name", name.escape_ascii());
                self.violation(OP, &path, what);
            }
        }
        result.map(|()| names)
    }

    /// The names that match a pattern, which reaches the plugin as it is.
    ///
    /// # Errors
    /// That of the plugin. TensorFlow's default swallows the errors of `get_children` and crashes on
    /// a wildcard in the host; there this host notes a violation and returns `INTERNAL`.
    pub fn get_matching_paths(&self, pattern: impl AsRef<[u8]>) -> Result<Vec<Vec<u8>>> {
        const OP: &str = "get_matching_paths";
        let pattern = pattern.as_ref();
        let Some(slot) = self.mounted.tables.filesystem.get_matching_paths else {
            return defaults::get_matching_paths(self, pattern);
        };
        let (result, listing) = self.mounted.raw_list(OP, slot, pattern);
        let names = self.judge_listing(OP, pattern, &result, listing);
        let scheme = path::parse(pattern).scheme;
        for name in &names {
            if name.is_empty() || path::parse(name).scheme != scheme {
                let what = format!(
                    "\"{}\" is not a complete name with the pattern's scheme",
                    name.escape_ascii()
                );
                self.violation(OP, pattern, what);
            }
        }
        result.map(|()| names)
    }

    fn judge_listing(
        &self,
        op: &'static str,
        subject: &[u8],
        result: &Result<()>,
        listing: Listing,
    ) -> Vec<Vec<u8>> {
        let count = listing.count;
        let violation = |what: String| self.violation(op, subject, what);
        if result.is_ok() && count < 0 {
            violation(format!(
                "returned {count} with OK, which TensorFlow takes for an empty list"
            ));
        }
        if result.is_err() && count != -1 {
            violation(format!("returned {count} with an error; return -1"));
        }
        if listing.no_array {
            violation(format!("returned {count} without entries; TensorFlow would crash"));
        }
        let mut names = Vec::with_capacity(listing.entries.len());
        for entry in listing.entries {
            match entry {
                Some(name) => names.push(name),
                None => violation(String::from("an entry is null; TensorFlow would crash")),
            }
        }
        let mut sorted: Vec<&Vec<u8>> = names.iter().collect();
        sorted.sort_unstable();
        for pair in sorted.windows(2) {
            if pair[0] == pair[1] {
                violation(format!("\"{}\" is in the list twice", pair[0].escape_ascii()));
            }
        }
        names
    }
}

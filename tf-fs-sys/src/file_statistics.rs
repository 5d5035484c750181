//! `tensorflow/c/tf_file_statistics.h`: the result of `stat`.

/// The result of `stat`. The host passes an uninitialised one and copies all three fields when
/// the status is `TF_OK`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TF_FileStatistics {
    /// Length of the file in bytes; 0 for a directory. The host passes a negative length through.
    pub length: i64,
    /// Time of the last modification, nanoseconds since the Unix epoch.
    pub mtime_nsec: i64,
    /// Whether the path names a directory.
    pub is_directory: bool,
}

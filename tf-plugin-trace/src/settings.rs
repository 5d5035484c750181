//! The environment variables with which `cargo tf-plugin run` selects what to trace.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::OnceLock;

/// The plugin's file. Without it nothing is traced.
pub const LIBRARY: &str = "TF_PLUGIN_TRACE_LIBRARY";

/// The output for lines: a file, to which they are appended, or `-` for standard error. Without it there are no lines.
pub const CALLS: &str = "TF_PLUGIN_TRACE_CALLS";

/// A file of Chrome's trace event format, to which events are appended; its beginning must exist.
/// Without it there are no events.
pub const CHROME: &str = "TF_PLUGIN_TRACE_CHROME";

/// The time from which times are counted: nanoseconds of the clock `CLOCK_MONOTONIC`.
pub const START: &str = "TF_PLUGIN_TRACE_START";

/// The process identifier of the program; lines of other processes name theirs.
pub const PROCESS: &str = "TF_PLUGIN_TRACE_PROCESS";

/// A file that the first process creates that has loaded the plugin. The program removes it at its
/// end, or reports that no process has loaded the plugin.
pub const LOADED: &str = "TF_PLUGIN_TRACE_LOADED";

/// `1` to colour standard error.
pub const COLOUR: &str = "TF_PLUGIN_TRACE_COLOUR";

/// The headings above the lines.
pub const HEADINGS: &str = "     time s  thread             took  call";

/// The values of the environment variables.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    pub(crate) library: Option<PathBuf>,
    pub(crate) calls: Option<OsString>,
    pub(crate) chrome: Option<OsString>,
    pub(crate) start: u64,
    pub(crate) process: u32,
    pub(crate) loaded: Option<PathBuf>,
    pub(crate) colour: bool,
}

impl Settings {
    /// Returns the settings, which are read once.
    pub(crate) fn get() -> &'static Self {
        static SETTINGS: OnceLock<Settings> = OnceLock::new();
        SETTINGS.get_or_init(|| {
            let given = |name| env::var_os(name).filter(|value| !value.is_empty());
            let number = |name| given(name)?.to_str()?.parse::<u64>().ok();
            Self {
                library: given(LIBRARY).and_then(|path| PathBuf::from(path).canonicalize().ok()),
                calls: given(CALLS),
                chrome: given(CHROME),
                start: number(START).unwrap_or_default(),
                process: number(PROCESS).and_then(|id| id.try_into().ok()).unwrap_or_default(),
                loaded: given(LOADED).map(PathBuf::from),
                colour: given(COLOUR).is_some_and(|value| value == "1"),
            }
        })
    }

    /// Returns whether each call is written.
    pub(crate) fn writes_calls(&self) -> bool {
        self.calls.is_some() || self.chrome.is_some()
    }
}

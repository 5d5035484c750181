//! Local time, which only libc knows.

use std::time::{Duration, SystemTime};

/// Returns the current time as in TensorFlow's log lines: `2026-11-20 18:34:00.123456`.
pub(crate) fn local_time() -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let seconds = libc::time_t::try_from(now.as_secs()).unwrap_or(libc::time_t::MAX);
    // SAFETY: `tm` is plain data for which zeros are a value; both pointers are to locals.
    let tm = unsafe {
        let mut tm: libc::tm = core::mem::zeroed();
        libc::localtime_r(&raw const seconds, &raw mut tm);
        tm
    };
    format!(
        "{:04}-{:02}-{:02} {:02}:{:02}:{:02}.{:06}",
        i64::from(tm.tm_year) + 1900,
        tm.tm_mon + 1,
        tm.tm_mday,
        tm.tm_hour,
        tm.tm_min,
        tm.tm_sec,
        now.subsec_micros()
    )
}

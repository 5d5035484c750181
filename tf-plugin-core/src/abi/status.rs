//! Writing TensorFlow's status.

use super::bytes::has_nul;
use super::failure_log::log_error;
use super::panic::{Panic, discard};
use crate::error::{Code, Error};
use core::ffi::CStr;
use std::any::Any;
use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tf_fs_sys::host::{MissingSymbol, Table};
use tf_fs_sys::{StatusFunctions, TF_Code, TF_OK, TF_Status};

/// The maximum length of a message in bytes.
const MAX_MESSAGE: usize = 4096;

/// The content of a status that comes with a value.
pub enum SlotStatus {
    /// `TF_OK`.
    Ok,
    /// A frequent result that always has the same text, and so needs no allocation.
    Static(Code, &'static CStr),
    /// An error.
    Err(Error),
}

/// Sets code and message. Without a host, which then has no status either, it only logs that.
///
/// # Safety
/// `status` must be a status of the host.
#[inline]
unsafe fn set(status: *mut TF_Status, code: TF_Code, message: &CStr) {
    match StatusFunctions::get() {
        // SAFETY: the function gets a status of the host, a code in range and a C string in UTF-8.
        Ok(host) => unsafe { (host.TF_SetStatus)(status, code, message.as_ptr()) },
        Err(missing) => lost(missing),
    }
}

#[cold]
fn lost(missing: MissingSymbol) {
    log_error(&format_args!("a status is lost: {missing}"));
}

/// Writes the content of a status that comes with a value. A known message is UTF-8.
///
/// # Safety
/// `status` must be a status of the host.
#[inline]
pub(super) unsafe fn write(op: &'static str, status: *mut TF_Status, outcome: SlotStatus) {
    // SAFETY: `status` is a status of the host.
    unsafe {
        match outcome {
            SlotStatus::Ok => set(status, TF_OK, c""),
            SlotStatus::Static(code, message) => set(status, code.as_raw(), message),
            SlotStatus::Err(error) => write_error(op, status, error),
        }
    }
}

/// Sets the code, the message with its causes, and the payloads of an error.
///
/// # Safety
/// `status` must be a status of the host.
#[cold]
#[inline(never)]
pub unsafe fn write_error(op: &'static str, status: *mut TF_Status, mut error: Error) {
    // An error that is only a message runs no code of the author's.
    if let Some(text) = error.take_text() {
        let text = Message::of(text);
        // SAFETY: `status` is one of the host.
        return unsafe { set(status, error.code().as_raw(), text.as_c_str()) };
    }
    // SAFETY: `status` is one of the host.
    unsafe { write_details(op, status, error) }
}

/// Writes an error with causes or payloads, for [`write_error`].
///
/// # Safety
/// `status` must be a status of the host.
#[cold]
#[inline(never)]
unsafe fn write_details(op: &'static str, status: *mut TF_Status, error: Error) {
    let code = error.code();
    // The causes' `Display` and their destructors are the author's code and may panic, one after the
    // other: a second panic while the first unwinds would abort the process.
    let written = catch_unwind(AssertUnwindSafe(|| {
        let text = Message::new(format_args!("{error:#}"));
        // SAFETY: `status` is a status of the host.
        unsafe { set(status, code.as_raw(), text.as_c_str()) };
        for (key, value) in error.payloads() {
            let (key, value) =
                (Message::new(format_args!("{key}")), Message::new(format_args!("{value}")));
            if let Ok(StatusFunctions { TF_SetPayload: Some(set_payload), .. }) =
                StatusFunctions::get()
            {
                // SAFETY: a status of the host and two C strings.
                unsafe { set_payload(status, key.as_c_str().as_ptr(), value.as_c_str().as_ptr()) };
            }
        }
    }));
    if let Err(payload) = written {
        let panic = Panic::take(op, payload);
        let text = Message::new(format_args!("{code:?} error, but its text is lost: {panic}"));
        // SAFETY: `status` is a status of the host.
        unsafe { set(status, code.as_raw(), text.as_c_str()) };
    }
    discard(op, error);
}

/// Sets `INTERNAL` with the message and the place of a panic.
///
/// # Safety
/// `status` must be a status of the host.
#[cold]
#[inline(never)]
pub(super) unsafe fn write_panic(
    op: &'static str,
    status: *mut TF_Status,
    payload: Box<dyn Any + Send>,
) {
    let text = Message::new(format_args!("{}", Panic::take(op, payload)));
    // SAFETY: `status` is a status of the host.
    unsafe { set(status, Code::Internal.as_raw(), text.as_c_str()) };
}

/// A message as it may cross the boundary: UTF-8, no NUL inside, at most [`MAX_MESSAGE`] bytes, NUL
/// at the end.
struct Message(Vec<u8>);

impl Message {
    fn new(text: core::fmt::Arguments<'_>) -> Self {
        let mut message = Self(Vec::with_capacity(128));
        // Only a full message stops the writing.
        if message.write_fmt(text).is_err() {
            message.0.extend_from_slice("…".as_bytes());
        }
        message.0.push(0);
        message
    }

    /// Creates a message as [`new`](Self::new) does, in the text's own memory if nothing has to change.
    fn of(text: String) -> Self {
        if text.len() > MAX_MESSAGE || has_nul(text.as_bytes()) {
            return Self::new(format_args!("{text}"));
        }
        let mut bytes = text.into_bytes();
        bytes.push(0);
        Self(bytes)
    }

    fn as_c_str(&self) -> &CStr {
        // SAFETY: both constructors end the message with the only NUL in it.
        unsafe { CStr::from_bytes_with_nul_unchecked(&self.0) }
    }
}

impl Write for Message {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        for (index, piece) in text.split('\0').enumerate() {
            let escape = if index == 0 { "" } else { "\\0" };
            for part in [escape, piece] {
                let room = MAX_MESSAGE - self.0.len();
                if part.len() > room {
                    let end = (0..=room).rfind(|&end| part.is_char_boundary(end)).unwrap_or(0);
                    self.0.extend_from_slice(&part.as_bytes()[..end]);
                    return Err(core::fmt::Error);
                }
                self.0.extend_from_slice(part.as_bytes());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::guard::guard;
    use super::*;
    use std::process::Command;

    /// Returns the message that both constructors agree on.
    #[track_caller]
    fn message(text: &str) -> String {
        let [formatted, taken] =
            [Message::new(format_args!("{text}")), Message::of(String::from(text))]
                .map(|message| message.as_c_str().to_str().expect("UTF-8").to_owned());
        assert_eq!(formatted, taken);
        taken
    }

    #[test]
    fn a_nul_is_shown_and_does_not_cut() {
        assert_eq!(message("a\0b\0"), "a\\0b\\0");
        assert_eq!(message("a"), "a");
        assert_eq!(message(""), "");
    }

    #[test]
    fn long_messages_end_at_a_character() {
        let long = message(&"é".repeat(5000));
        assert!(long.len() <= MAX_MESSAGE + '…'.len_utf8());
        assert!(long.ends_with("é…"));
        let uneven = message(&format!("a{}", "é".repeat(5000)));
        assert!(uneven.ends_with("é…"));
    }

    /// Runs in a separate process, which has this logger alone.
    #[test]
    fn a_logger_that_panics_does_not_unwind_out_of_a_slot() {
        const CHILD: &str = "TF_PLUGIN_TEST_PANICKING_LOGGER";
        struct Panics;
        impl log::Log for Panics {
            fn enabled(&self, _: &log::Metadata<'_>) -> bool {
                true
            }
            fn log(&self, record: &log::Record<'_>) {
                panic!("cannot log: {}", record.args());
            }
            fn flush(&self) {}
        }
        if std::env::var_os(CHILD).is_some() {
            log::set_logger(&Panics).expect("the only logger");
            log::set_max_level(log::LevelFilter::Error);
            let status = core::ptr::dangling_mut();
            // SAFETY: without a host nothing looks at the status.
            unsafe { guard("slot", status, (), || Ok(())) };
            return;
        }
        let mut child = Command::new(std::env::current_exe().expect("a path"));
        child.arg("a_logger_that_panics_does_not_unwind_out_of_a_slot").env(CHILD, "1");
        let output = child.output().expect("the test runs itself");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
    }
}

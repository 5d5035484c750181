//! Panics of an author's code: their text and their place.

use super::failure_log::log_error;
use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::Once;

/// Replaces a panic's message that is not text.
const NO_TEXT: &str = "(no text)";

/// A caught panic: the operation, the message, and the place if the hook saw it.
pub struct Panic {
    op: &'static str,
    message: String,
    place: Option<String>,
}

thread_local! {
    /// Where the last panic of this thread happened, and what it said.
    static PLACE: RefCell<Option<(String, String)>> = const { RefCell::new(None) };
}

/// Installs a hook that keeps the place of each panic for `Panic::take`, and then runs the previous
/// hook, which by default prints the panic to stderr. A plugin's shared library has its own copy of
/// Rust's standard library, so this is the plugin's hook alone.
pub fn watch_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info: &PanicHookInfo<'_>| {
            let place = info.location().map(|place| {
                let payload = info.payload();
                let text = payload.downcast_ref::<&'static str>().copied();
                let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
                let text = text.unwrap_or(NO_TEXT);
                (format!("{}:{}", place.file(), place.line()), String::from(text))
            });
            // A panic while this thread's locals are being destroyed has no place, and needs none.
            let _ = PLACE.try_with(|slot| slot.replace(place));
            previous(info);
        }));
    });
}

impl Panic {
    /// Takes the message out of the payload of a panic in `op`, and adds the place.
    #[must_use]
    pub fn take(op: &'static str, payload: Box<dyn Any + Send>) -> Self {
        // First, because dropping the payload may panic at another place.
        let place = PLACE.try_with(RefCell::take).unwrap_or_default();
        let message = match payload.downcast::<String>() {
            Ok(text) => *text,
            Err(payload) => match payload.downcast::<&'static str>() {
                Ok(text) => String::from(*text),
                Err(payload) => {
                    // The payload is the author's type; its destructor may panic too. The payload
                    // of that panic is leaked, because it may do the same, unless it is just text.
                    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(payload)))
                        && !again.is::<String>()
                        && !again.is::<&'static str>()
                    {
                        core::mem::forget(again);
                    }
                    String::from(NO_TEXT)
                }
            },
        };
        // Another text is that of an earlier panic, which the author caught: a panic that is
        // resumed does not pass through the hook.
        let place = place.filter(|(_, text)| *text == message).map(|(place, _)| place);
        Self { op, message, place }
    }
}

impl core::fmt::Display for Panic {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "plugin panicked in `{}`", self.op)?;
        if let Some(place) = &self.place {
            write!(f, " at {place}")?;
        }
        write!(f, ": {}", self.message)
    }
}

/// Drops a value of the author's, whose destructor may panic: a panic is logged.
#[inline]
pub fn discard<T>(op: &'static str, value: T) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
        log_error(&Panic::take(op, payload));
    }
}

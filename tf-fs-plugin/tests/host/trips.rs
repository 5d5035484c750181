//! Places where a test makes a plugin fail or panic.

use std::cell::{Cell, RefCell};
use tf_fs_plugin::{Code, Error, Result};

/// The fault at a place that a test has armed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Trip {
    /// Panics with a text.
    Panic,
    /// Panics with a value that is not text and whose destructor panics.
    PanicWithBomb,
    /// Fails with this code.
    Fail(Code),
    /// Fails with an error whose text panics while it is written.
    FailWithBadText,
    /// Fails with an error whose source panics when it is dropped.
    FailWithBomb,
    /// Fails with an error whose text and whose destructor panic.
    FailWithBoth,
}

#[derive(Debug)]
struct Armed {
    place: String,
    trip: Trip,
    /// How often the place is passed before it trips.
    after: usize,
}

thread_local! {
    static ARMED: RefCell<Option<Armed>> = const { RefCell::new(None) };
    /// The line of the last panic on purpose.
    static LINE: Cell<u32> = const { Cell::new(0) };
}

/// Returns the line of this file in which this thread last panicked on purpose.
pub(crate) fn panic_line() -> u32 {
    LINE.get()
}

/// Makes a place of this thread trip once, after it was passed `after` times.
pub(crate) fn arm(place: &str, trip: Trip, after: usize) {
    let place = place.to_owned();
    ARMED.set(Some(Armed { place, trip, after }));
}

/// Disarms the place and returns whether it had not tripped.
pub(crate) fn disarm() -> bool {
    ARMED.take().is_some()
}

/// A value that panics when it is dropped, and an error that may panic when it is shown.
#[derive(Debug)]
pub(crate) struct Bomb {
    silent: bool,
    live: bool,
}

impl Bomb {
    /// One that has a text, and panics when it is dropped.
    pub(crate) const QUIET: Self = Self { silent: true, live: true };
}

impl Drop for Bomb {
    fn drop(&mut self) {
        if self.live {
            panic!("a bomb was dropped");
        }
    }
}

impl std::fmt::Display for Bomb {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.silent {
            return f.write_str("a quiet bomb");
        }
        panic!("a bomb was shown");
    }
}

impl std::error::Error for Bomb {}

/// Fails or panics if a test has armed this place on this thread.
pub(crate) fn trip(place: &str) -> Result<()> {
    let trip = ARMED.with_borrow_mut(|armed| {
        let entry = armed.as_mut().filter(|entry| entry.place == place)?;
        if entry.after > 0 {
            entry.after -= 1;
            return None;
        }
        armed.take().map(|entry| entry.trip)
    });
    let error = |silent, live| {
        Err(Error::data_loss("the disk is on fire").with_source(Bomb { silent, live }))
    };
    match trip {
        None => Ok(()),
        Some(Trip::Panic) => {
            LINE.set(line!() + 1);
            panic!("boom in {place}")
        }
        Some(Trip::PanicWithBomb) => {
            let bomb = Bomb::QUIET;
            LINE.set(line!() + 1);
            std::panic::panic_any(bomb)
        }
        Some(Trip::Fail(code)) => Err(Error::new(code, format!("{place} was told to fail"))),
        Some(Trip::FailWithBadText) => error(false, false),
        Some(Trip::FailWithBomb) => error(true, true),
        Some(Trip::FailWithBoth) => error(false, true),
    }
}

/// Panics in a place that returns no result.
pub(crate) fn trip_or_panic(place: &str) {
    if let Err(error) = trip(place) {
        panic!("{error}");
    }
}

//! One running call: it begins, returns, is counted and written.

use std::process;

use super::system::{self, errno, now, set_errno};
use crate::call::Call;
use crate::output;
use crate::settings::Settings;
use crate::totals::Slot;

pub(super) struct CallGuard<'a> {
    slot: &'a Slot,
    member: usize,
    start: u64,
}

impl<'a> CallGuard<'a> {
    pub(super) fn new(slot: &'a Slot, member: usize) -> Self {
        Self { slot, member, start: now() }
    }

    /// Ends the call: `describe` adds the texts, and it is reported. `errno` keeps the plugin's value.
    pub(super) fn returned(self, describe: impl FnOnce(&mut Call)) {
        let errno = errno();
        self.report(describe);
        std::mem::forget(self);
        set_errno(errno);
    }

    /// Counts the call, and writes it if requested.
    fn report(&self, describe: impl FnOnce(&mut Call)) {
        let &Self { slot, member, start } = self;
        let took = now().saturating_sub(start);
        let mut call = Call::new();
        describe(&mut call);
        slot.counts[member].add(took, call.error.is_some(), call.bytes);
        #[cfg(test)]
        super::samples::reported(slot, member, &call);
        if call.is_written {
            let settings = Settings::get();
            output::write(
                settings,
                &output::Event {
                    subject: &slot.subject,
                    operation: slot.members[member],
                    call: &call,
                    start: start.saturating_sub(settings.start),
                    took,
                    process: process::id(),
                    thread: system::thread(),
                },
            );
        }
    }
}

/// Only dropped when the plugin throws an exception through the call.
impl Drop for CallGuard<'_> {
    fn drop(&mut self) {
        self.report(|call| call.failed("an exception".to_owned()));
    }
}

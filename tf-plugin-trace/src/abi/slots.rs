//! Where the functions are kept that are wrapped.
//!
//! C functions without user data: what a wrapper calls is known by the wrapper alone. So there are several of each,
//! and each table of the plugin's gets its own set, a slot.

use std::ptr;
use std::sync::atomic::Ordering;

use crate::totals::{Count, Slot, Slots};

impl<const COUNT: usize> Slots<COUNT> {
    /// The slot in use with this number.
    #[inline]
    pub(super) fn get(&self, number: usize) -> &Slot {
        // SAFETY: wrappers of a slot are handed out after it was filled; slots are never freed.
        unsafe { &*self.raw()[number].load(Ordering::Acquire) }
    }

    /// The slots in use.
    pub(super) fn used(&self) -> impl Iterator<Item = &Slot> {
        self.raw().iter().filter_map(|slot| {
            // SAFETY: null, or a leaked box.
            unsafe { slot.load(Ordering::Acquire).as_ref() }
        })
    }

    /// The slot with these functions, a new one if there was none; nothing when all are in use.
    pub(super) fn claim(&self, subject: &str, functions: &[usize]) -> Option<usize> {
        let mut fresh: *mut Slot = ptr::null_mut();
        let mut found = None;
        for (number, slot) in self.raw().iter().enumerate() {
            let mut held = slot.load(Ordering::Acquire);
            if held.is_null() {
                if fresh.is_null() {
                    fresh = Box::into_raw(Box::new(Slot {
                        subject: subject.to_owned(),
                        functions: functions.to_owned(),
                        members: self.members(),
                        counts: functions.iter().map(|_| Count::default()).collect(),
                    }));
                }
                let order = (Ordering::AcqRel, Ordering::Acquire);
                match slot.compare_exchange(ptr::null_mut(), fresh, order.0, order.1) {
                    Ok(_) => return Some(number),
                    Err(other) => held = other,
                }
            }
            // SAFETY: a slot is never freed once it is published.
            let held = unsafe { &*held };
            if held.subject == subject && held.functions == functions {
                found = Some(number);
                break;
            }
        }
        if !fresh.is_null() {
            // SAFETY: it was not published.
            drop(unsafe { Box::from_raw(fresh) });
        }
        found
    }
}

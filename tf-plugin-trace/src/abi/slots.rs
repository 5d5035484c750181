//! The original functions that are wrapped.
//!
//! C functions have no user data: only the wrapper itself can know what it calls. So there are
//! several wrappers of each function, and each table of the plugin gets its own set, a slot.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::totals::{Count, Slot};

/// The slots of one kind of table. They are filled and never emptied.
pub(super) struct Slots<const COUNT: usize> {
    members: &'static [&'static str],
    slots: [AtomicPtr<Slot>; COUNT],
}

impl<const COUNT: usize> Slots<COUNT> {
    pub(super) const fn new(members: &'static [&'static str]) -> Self {
        Self { members, slots: [const { AtomicPtr::new(ptr::null_mut()) }; COUNT] }
    }

    /// Returns the used slot with this number.
    #[inline]
    pub(super) fn get(&self, number: usize) -> &Slot {
        // SAFETY: wrappers of a slot are handed out after it was filled; slots are never freed.
        unsafe { &*self.slots[number].load(Ordering::Acquire) }
    }

    /// Returns the used slots.
    pub(super) fn used(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter().filter_map(|slot| {
            // SAFETY: null, or a leaked box.
            unsafe { slot.load(Ordering::Acquire).as_ref() }
        })
    }

    /// Finds the slot with these functions, or fills a new one; returns `None` if all are used.
    pub(super) fn claim(&self, subject: &str, functions: &[usize]) -> Option<usize> {
        let fresh = Box::into_raw(Box::new(Slot {
            subject: subject.to_owned(),
            functions: functions.to_owned(),
            members: self.members,
            counts: functions.iter().map(|_| Count::default()).collect(),
        }));
        let mut is_published = false;
        let number = self.slots.iter().position(|slot| {
            let (null, order) = (ptr::null_mut(), (Ordering::AcqRel, Ordering::Acquire));
            let Err(held) = slot.compare_exchange(null, fresh, order.0, order.1) else {
                is_published = true;
                return true;
            };
            // SAFETY: a slot is never freed once it is published.
            let held = unsafe { &*held };
            held.subject == subject && held.functions == functions
        });
        if !is_published {
            // SAFETY: it was not published.
            drop(unsafe { Box::from_raw(fresh) });
        }
        number
    }
}

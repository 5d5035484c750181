//! Texts for objects of the host: the path that a file was opened with, and why a kernel has failed.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

const ROOM: usize = 4096;
/// How many places an object may be away from its first one.
const NEAR: usize = 64;

/// Texts by the address of the host's object, without a lock. An object that finds no free place has no text.
pub(super) struct ObjectNames {
    objects: [AtomicUsize; ROOM],
    texts: [AtomicPtr<String>; ROOM],
}

/// The paths of open files, of all filesystems.
pub(super) static PATHS: ObjectNames = ObjectNames::new();

/// Why kernels have failed that are running or being created, by the context that TensorFlow passes to them.
pub(super) static FAILURES: ObjectNames = ObjectNames::new();

impl ObjectNames {
    const fn new() -> Self {
        Self {
            objects: [const { AtomicUsize::new(0) }; ROOM],
            texts: [const { AtomicPtr::new(ptr::null_mut()) }; ROOM],
        }
    }

    fn near(object: usize) -> impl Iterator<Item = usize> {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(object);
        #[expect(clippy::cast_possible_truncation, reason = "any bits of the hash will do")]
        let first = hash as usize;
        (0..NEAR).map(move |step| first.wrapping_add(step) % ROOM)
    }

    fn find(&self, object: usize) -> Option<usize> {
        Self::near(object).find(|place| self.objects[*place].load(Ordering::Acquire) == object)
    }

    /// Sets the text of an object, and replaces an earlier one.
    pub(super) fn set(&self, object: usize, text: String) {
        let place = self.find(object).or_else(|| {
            Self::near(object).find(|place| {
                let order = (Ordering::AcqRel, Ordering::Acquire);
                self.objects[*place].compare_exchange(0, object, order.0, order.1).is_ok()
            })
        });
        if let Some(place) = place {
            let text = Box::into_raw(Box::new(text));
            drop(owned(self.texts[place].swap(text, Ordering::AcqRel)));
        }
    }

    /// Returns the text of an object that lives during the call.
    pub(super) fn get(&self, object: usize) -> Option<String> {
        let text = self.texts[self.find(object)?].load(Ordering::Acquire);
        // SAFETY: null, or a box that lives until the object's own `cleanup`, which by the header comes after every
        // other call with it.
        unsafe { text.as_ref() }.cloned()
    }

    /// Removes and returns the text of an object that was deleted.
    pub(super) fn take(&self, object: usize) -> Option<String> {
        let place = self.find(object)?;
        let text = owned(self.texts[place].swap(ptr::null_mut(), Ordering::AcqRel));
        self.objects[place].store(0, Ordering::Release);
        text
    }

    /// Removes the text of an object that was deleted.
    pub(super) fn forget(&self, object: usize) {
        drop(self.take(object));
    }
}

fn owned(text: *mut String) -> Option<String> {
    // SAFETY: from `Box::into_raw`, and taken out of its place by this thread alone.
    (!text.is_null()).then(|| *unsafe { Box::from_raw(text) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_known_while_its_object_lives() {
        let paths = Box::new(ObjectNames::new());
        for object in 1..=3000 {
            paths.set(object * 16, object.to_string());
        }
        for object in 1..=3000 {
            assert_eq!(paths.get(object * 16), Some(object.to_string()));
        }
        paths.set(32, "other".to_owned());
        assert_eq!(paths.get(32).as_deref(), Some("other"));
        for object in 1..=3000 {
            paths.forget(object * 16);
        }
        assert_eq!(paths.get(32), None);
        // More objects than places: some have no text, and none has the text of another.
        let known = (1..=2 * ROOM).filter(|object| {
            paths.set(object * 8, object.to_string());
            paths.get(object * 8).is_some_and(|path| path == object.to_string())
        });
        assert!((ROOM / 2..=ROOM).contains(&known.count()));
        for object in 1..=2 * ROOM {
            paths.forget(object * 8);
        }
    }
}

//! Vectors whose memory TensorFlow takes over.

use super::memory::Memory;
use crate::parallel;
use core::fmt;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ptr;
use tf_plugin_core::Result;

/// A vector in [`Memory`]. Elements have no destructors.
pub(crate) struct AlignedVec<T> {
    memory: Memory,
    len: usize,
    /// How many elements fit into the memory: kept, as each added element needs it.
    capacity: usize,
    elements: PhantomData<T>,
}

impl<T: Copy> AlignedVec<T> {
    /// Creates an empty vector, without memory.
    pub(crate) const fn new() -> Self {
        const { assert!(size_of::<T>() > 0 && align_of::<T>() <= super::memory::ALIGNMENT) };
        Self { memory: Memory::none(), len: 0, capacity: 0, elements: PhantomData }
    }

    const fn start(&self) -> *mut T {
        self.memory.start().as_ptr().cast()
    }

    #[inline]
    const fn capacity(&self) -> usize {
        self.capacity
    }

    /// Makes room for `additional` elements after the present ones; for more if `amortized`, so that a vector can grow step by
    /// step. Returns `false` if there is no memory.
    #[must_use]
    #[inline]
    pub(crate) fn try_reserve(&mut self, additional: usize, amortized: bool) -> bool {
        self.capacity() - self.len >= additional || self.grow(additional, amortized)
    }

    #[cold]
    fn grow(&mut self, additional: usize, amortized: bool) -> bool {
        let Some(needed) = self.len.checked_add(additional) else { return false };
        let wanted = match amortized {
            true => needed.max(self.capacity().saturating_mul(2)).max(8),
            false => needed,
        };
        let bytes = wanted.checked_mul(size_of::<T>());
        let Some(memory) = bytes.and_then(Memory::new) else { return false };
        // SAFETY: `len` elements are initialised here, and the new memory, which is another, has room for more.
        unsafe { ptr::copy_nonoverlapping(self.start(), memory.start().as_ptr().cast(), self.len) };
        self.capacity = memory.bytes() / size_of::<T>();
        self.memory = memory;
        true
    }

    /// Returns the memory after the elements.
    fn spare(&mut self) -> &mut [MaybeUninit<T>] {
        let (len, capacity) = (self.len, self.capacity());
        // SAFETY: the memory has `capacity` elements, of which those from `len` on may be uninitialised.
        unsafe { core::slice::from_raw_parts_mut(self.start().add(len).cast(), capacity - len) }
    }

    /// Adds an element; there must be [room](Self::try_reserve).
    #[inline]
    pub(crate) fn push(&mut self, element: T) {
        assert!(self.len < self.capacity(), "there is no room");
        // SAFETY: there is room for one more element, which is initialised then.
        unsafe {
            self.end().write(element);
            self.add_one();
        }
    }

    /// Returns the address of the next element, for which there must be [room](Self::try_reserve).
    #[inline]
    pub(super) const fn end(&mut self) -> *mut T {
        debug_assert!(self.len < self.capacity());
        self.start().wrapping_add(self.len)
    }

    /// Counts the element that was written at the [end](Self::end).
    ///
    /// # Safety
    /// There was room for it, and it is initialised.
    #[inline]
    pub(super) const unsafe fn add_one(&mut self) {
        self.len += 1;
    }

    /// Forgets the elements, which have no destructors.
    pub(super) const fn clear(&mut self) {
        self.len = 0;
    }

    /// Adds `f` of each item, while there is room. A loop that the compiler can vectorize.
    pub(crate) fn extend<I>(&mut self, items: impl Iterator<Item = I>, mut f: impl FnMut(I) -> T) {
        let mut written = 0;
        for (place, item) in self.spare().iter_mut().zip(items) {
            place.write(f(item));
            written += 1;
        }
        self.len += written;
    }

    /// Adds `f` of each item, by several threads: parts of at least `grain` items each. Returns an error and adds nothing if
    /// `f` panics. There must be [room](Self::try_reserve).
    pub(crate) fn extend_parallel<I: Sync>(
        &mut self,
        name: &'static str,
        threads: usize,
        grain: usize,
        items: &[I],
        f: impl Fn(&I) -> T + Sync,
    ) -> Result<()>
    where
        T: Send,
    {
        let spare = &mut self.spare()[..items.len()];
        parallel::run_mut(name, threads, spare, grain, |start, part| {
            for (place, item) in part.iter_mut().zip(&items[start..]) {
                place.write(f(item));
            }
            Ok(())
        })?;
        // `run_mut` has succeeded: each part was written to its end.
        self.len += items.len();
        Ok(())
    }

    pub(crate) fn as_slice(&self) -> &[T] {
        // SAFETY: `len` elements are initialised; without memory, `start` is aligned and `len` is 0.
        unsafe { core::slice::from_raw_parts(self.start(), self.len) }
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [T] {
        // SAFETY: as in `as_slice`; `&mut self` is the only reference.
        unsafe { core::slice::from_raw_parts_mut(self.start(), self.len) }
    }

    /// Gives the memory away, with the number of initialised elements from its start.
    pub(super) fn into_memory(self) -> (Memory, usize) {
        (self.memory, self.len)
    }
}

impl<T: Copy + fmt::Debug> fmt::Debug for AlignedVec<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_aligned_and_keeps_its_elements() {
        let mut vec = AlignedVec::new();
        for number in 0..1000_u32 {
            assert!(vec.try_reserve(1, true));
            vec.push(number);
            assert!(vec.as_slice().as_ptr().addr().is_multiple_of(64));
        }
        assert!(vec.as_slice().iter().copied().eq(0..1000));
        vec.as_mut_slice()[7] = 0;
        let (memory, len) = vec.into_memory();
        assert_eq!((memory.bytes(), len), (4096, 1000));
        assert!(AlignedVec::<u64>::new().as_slice().is_empty());
    }

    #[test]
    fn parts_are_written_by_threads_or_not_at_all() {
        let items: Vec<u32> = (0..10_000).collect();
        let mut vec = AlignedVec::new();
        assert!(vec.try_reserve(1 + items.len(), false));
        vec.push(7);
        vec.extend_parallel("op", 3, 100, &items, |item| item + 1).unwrap();
        assert!(vec.as_slice()[1..].iter().copied().eq(1..=10_000));
        assert!(vec.try_reserve(items.len(), false));
        let failed = vec.extend_parallel("op", 3, 100, &items, |&item| {
            assert_ne!(item, 5000);
            item
        });
        assert!(failed.is_err());
        assert_eq!(vec.as_slice().len(), 10_001);
    }

    #[test]
    fn too_much_memory_is_refused() {
        let mut vec = AlignedVec::<u64>::new();
        assert!(!vec.try_reserve(usize::MAX, false));
        assert!(!vec.try_reserve(usize::MAX / 8, true));
        assert!(vec.as_slice().is_empty());
    }
}

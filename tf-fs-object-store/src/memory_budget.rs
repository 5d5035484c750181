//! Memory for data on its way, shared by all open files of a process.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A limit on the bytes held at a time.
#[derive(Debug)]
pub struct MemoryBudget {
    limit: AtomicUsize,
    used: AtomicUsize,
}

/// Bytes of the budget, given back when dropped.
#[derive(Debug)]
#[must_use = "dropping it gives the bytes back"]
pub struct Reservation {
    budget: Arc<MemoryBudget>,
    bytes: usize,
}

impl MemoryBudget {
    /// Creates a budget of `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self { limit: AtomicUsize::new(limit), used: AtomicUsize::new(0) }
    }

    /// Changes the limit. Bytes that are reserved already stay so.
    pub fn resize(&self, limit: usize) {
        self.limit.store(limit, Ordering::Release);
    }

    /// Reserves `bytes` if they are free now.
    pub fn try_reserve(self: &Arc<Self>, bytes: usize) -> Option<Reservation> {
        let limit = self.limit.load(Ordering::Acquire);
        self.used
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |used| {
                used.checked_add(bytes).filter(|&sum| sum <= limit)
            })
            .ok()
            .map(|_| Reservation { budget: Arc::clone(self), bytes })
    }

    /// Reserves `bytes`, free or not: for work that has to go on and has nothing to wait for.
    pub fn overdraw(self: &Arc<Self>, bytes: usize) -> Reservation {
        self.used.fetch_add(bytes, Ordering::AcqRel);
        Reservation { budget: Arc::clone(self), bytes }
    }

    /// Returns the limit in bytes.
    pub fn limit(&self) -> usize {
        self.limit.load(Ordering::Acquire)
    }

    /// Returns the number of bytes held now.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Acquire)
    }
}

impl Reservation {
    /// Gives back all but `bytes`.
    pub fn shrink(&mut self, bytes: usize) {
        if let Some(surplus) = self.bytes.checked_sub(bytes) {
            self.bytes = bytes;
            self.budget.used.fetch_sub(surplus, Ordering::AcqRel);
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.shrink(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_the_limit() {
        let budget = Arc::new(MemoryBudget::new(10));
        let six = budget.try_reserve(6).unwrap();
        assert!(budget.try_reserve(5).is_none());
        let four = budget.try_reserve(4).unwrap();
        assert_eq!(budget.used(), 10);
        drop(six);
        assert_eq!(budget.used(), 4);
        drop(four);
        assert_eq!(budget.used(), 0);
        assert!(budget.try_reserve(usize::MAX).is_none());
    }

    #[test]
    fn a_reservation_shrinks_but_never_grows() {
        let budget = Arc::new(MemoryBudget::new(10));
        let mut held = budget.try_reserve(8).unwrap();
        held.shrink(3);
        assert_eq!(budget.used(), 3);
        held.shrink(9);
        assert_eq!(budget.used(), 3);
        drop(held);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn a_larger_limit_lets_more_in() {
        let budget = Arc::new(MemoryBudget::new(4));
        let _held = budget.try_reserve(4).unwrap();
        assert!(budget.try_reserve(4).is_none());
        budget.resize(8);
        assert_eq!(budget.limit(), 8);
        assert!(budget.try_reserve(4).is_some());
    }

    #[test]
    fn urgent_memory_exceeds_the_budget_and_is_counted() {
        let budget = Arc::new(MemoryBudget::new(4));
        let large = budget.overdraw(9);
        assert_eq!(budget.used(), 9);
        assert!(budget.try_reserve(1).is_none());
        drop(large);
        assert!(budget.try_reserve(4).is_some());
    }
}

//! Whether a file's version is only what was remembered of the object.

use std::sync::atomic::{AtomicU8, Ordering};

/// An assumed version is confirmed by the first response that agrees with it, or given up for the current one. Never
/// both, however many threads read: no byte of a version that is given up is returned.
#[derive(Debug)]
pub(super) struct Assumption(AtomicU8);

// Relaxed is enough: there is one variable, and all threads see its changes in the same order.
const ASSUMED: u8 = 0;
const CONFIRMED: u8 = 1;
const GIVEN_UP: u8 = 2;

impl Assumption {
    /// Creates an assumption: the version is what was remembered.
    pub(super) fn made() -> Self {
        Self(AtomicU8::new(ASSUMED))
    }

    /// Creates no assumption: the version is what the store says.
    pub(super) fn none() -> Self {
        Self(AtomicU8::new(CONFIRMED))
    }

    /// Records that the store agrees. Returns `false` if the version was given up before.
    pub(super) fn confirm(&self) -> bool {
        self.settle(CONFIRMED)
    }

    /// Records that the store disagrees. Returns `false` if it had agreed before.
    pub(super) fn give_up(&self) -> bool {
        self.settle(GIVEN_UP)
    }

    pub(super) fn is_confirmed(&self) -> bool {
        self.0.load(Ordering::Relaxed) == CONFIRMED
    }

    fn settle(&self, outcome: u8) -> bool {
        // Nearly always it is settled: no write then.
        let before = match self.0.load(Ordering::Relaxed) {
            ASSUMED => self
                .0
                .compare_exchange(ASSUMED, outcome, Ordering::Relaxed, Ordering::Relaxed)
                .map_or_else(|other| other, |_| outcome),
            settled => settled,
        };
        before == outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    #[test]
    fn the_first_settled_version_stays() {
        let assumption = Assumption::made();
        assert!(!assumption.is_confirmed());
        assert!(assumption.confirm() && assumption.is_confirmed());
        assert!(!assumption.give_up() && assumption.confirm() && assumption.is_confirmed());
        let assumption = Assumption::made();
        assert!(assumption.give_up() && !assumption.is_confirmed());
        assert!(!assumption.confirm() && assumption.give_up() && !assumption.is_confirmed());
        assert!(Assumption::none().is_confirmed() && !Assumption::none().give_up());
    }

    #[test]
    fn threads_agree_on_the_outcome() {
        for _ in 0..200 {
            let (assumption, barrier) = (Assumption::made(), Barrier::new(4));
            let settled = std::thread::scope(|threads| {
                let threads = [0, 1, 2, 3].map(|i| {
                    let (assumption, barrier) = (&assumption, &barrier);
                    threads.spawn(move || {
                        barrier.wait();
                        match i % 2 {
                            0 => assumption.confirm(),
                            _ => !assumption.give_up(),
                        }
                    })
                });
                threads.map(|thread| thread.join().unwrap())
            });
            assert_eq!(settled, [assumption.is_confirmed(); 4]);
        }
    }
}

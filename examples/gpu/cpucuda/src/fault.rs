//! What goes wrong: a fault from the environment, and a kernel that fails.

use std::cell::Cell;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The fault: a kind, a function and a number, as in `lost cuLaunchKernel 3`.
pub(crate) const FAULT: &str = "CPU_CUDA_FAULT";
/// What the library writes to stderr when the fault happens.
pub const HAPPENED: &str = "cpu-cuda: ";

static ENVIRONMENT: LazyLock<Option<Fault>> = LazyLock::new(Fault::of_environment);
static LOST: AtomicBool = AtomicBool::new(false);
static HUNG: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Whether the call of this thread is the one that hangs the card.
    static HANGS: Cell<bool> = const { Cell::new(false) };
}

struct Fault {
    hangs: bool,
    function: String,
    number: u64,
    calls: AtomicU64,
}

impl Fault {
    fn of_environment() -> Option<Self> {
        let text = std::env::var(FAULT).ok()?;
        let mut words = text.split(' ');
        let (kind, function, number) = (words.next()?, words.next()?, words.next()?);
        let (hangs, number) = (kind == "hang", number.parse().ok()?);
        Some(Self { hangs, function: function.to_owned(), number, calls: AtomicU64::new(0) })
    }
}

/// Counts a call. Whether the card is lost in it.
pub(crate) fn happens(function: &str) -> bool {
    let Some(fault) = ENVIRONMENT.as_ref().filter(|fault| fault.function == function) else {
        return false;
    };
    if fault.calls.fetch_add(1, Ordering::Relaxed) + 1 != fault.number {
        return false;
    }
    if fault.hangs {
        eprintln!("{HAPPENED}hang in {function}");
        HANGS.set(true);
        return false;
    }
    eprintln!("{HAPPENED}lost in {function}");
    LOST.store(true, Ordering::SeqCst);
    true
}

/// Loses the card because of a kernel.
pub(crate) fn lose(why: &str) {
    eprintln!("{HAPPENED}lost: {why}");
    LOST.store(true, Ordering::SeqCst);
}

/// Whether all calls that need the context fail.
pub(crate) fn is_lost() -> bool {
    LOST.load(Ordering::SeqCst)
}

/// Whether the work that this thread enqueues now hangs its stream. True once.
pub(crate) fn hangs_stream() -> bool {
    let hangs = HANGS.replace(false);
    if hangs {
        HUNG.store(true, Ordering::SeqCst);
    }
    hangs
}

/// Never returns if a stream hangs: what frees memory waits for the card.
pub(crate) fn park_if_hung() {
    while HUNG.load(Ordering::SeqCst) {
        std::thread::park();
    }
}

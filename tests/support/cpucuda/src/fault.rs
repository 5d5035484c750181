//! Faults: one from the environment, and kernels that fail.

use crate::device;
use std::cell::Cell;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The fault: a kind, a function and a number, as in `lost cuLaunchKernel 3`.
pub(crate) const FAULT: &str = "CPU_CUDA_FAULT";
/// The start of the line that the library writes to stderr when the fault happens.
pub const HAPPENED: &str = "cpu-cuda: ";

static ENVIRONMENT: LazyLock<Option<Fault>> = LazyLock::new(Fault::of_environment);
static HUNG: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Whether the call of this thread hangs the GPU.
    static HANGS: Cell<bool> = const { Cell::new(false) };
}

/// The effect of the fault on the call.
enum Kind {
    /// It loses the GPU.
    Lost,
    /// Its work never finishes.
    Hang,
    /// It fails, with no effect on other calls.
    Fail,
    /// It does nothing, and succeeds.
    Skip,
}

struct Fault {
    kind: Kind,
    function: String,
    number: u64,
    calls: AtomicU64,
}

impl Fault {
    fn of_environment() -> Option<Self> {
        let text = std::env::var(FAULT).ok()?;
        let mut words = text.split(' ');
        let (kind, function, number) = (words.next()?, words.next()?, words.next()?);
        let kind = match kind {
            "lost" => Kind::Lost,
            "hang" => Kind::Hang,
            "fail" => Kind::Fail,
            "skip" => Kind::Skip,
            _ => return None,
        };
        let (function, number) = (function.to_owned(), number.parse().ok()?);
        Some(Self { kind, function, number, calls: AtomicU64::new(0) })
    }
}

/// Counts a call. Returns whether it fails or is skipped.
pub(crate) fn happens(function: &str) -> bool {
    let Some(fault) = ENVIRONMENT.as_ref().filter(|fault| fault.function == function) else {
        return false;
    };
    if fault.calls.fetch_add(1, Ordering::Relaxed) + 1 != fault.number {
        return false;
    }
    match fault.kind {
        Kind::Lost => {
            device::current().lose(&format!("lost in {function}"));
        }
        Kind::Hang => {
            eprintln!("{HAPPENED}hang in {function}");
            HANGS.set(true);
        }
        Kind::Fail => eprintln!("{HAPPENED}failed in {function}"),
        Kind::Skip => eprintln!("{HAPPENED}skipped {function}"),
    }
    !matches!(fault.kind, Kind::Hang)
}

/// Returns whether a call with the fault reports success.
pub(crate) fn is_silent() -> bool {
    ENVIRONMENT.as_ref().is_some_and(|fault| matches!(fault.kind, Kind::Skip))
}

/// Returns whether the work that this thread enqueues now hangs its stream. This is true only once.
pub(crate) fn hangs_stream() -> bool {
    let hangs = HANGS.replace(false);
    if hangs {
        HUNG.store(true, Ordering::SeqCst);
    }
    hangs
}

/// Never returns if a stream hangs: calls that free memory wait for the GPU.
pub(crate) fn park_if_hung() {
    while HUNG.load(Ordering::SeqCst) {
        std::thread::park();
    }
}

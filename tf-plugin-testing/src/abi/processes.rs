//! Child processes for tests, and how processes end.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

/// The exit status of a forked child whose work panicked.
pub(crate) const PANICKED: i32 = 200;

/// Runs `work` in a forked child, which has only this thread, and waits for it. The child exits with what `work`
/// returns. If `seconds` is not 0, a child that takes longer is ended by `SIGALRM`.
pub fn in_a_child(seconds: u32, work: impl FnOnce() -> i32) -> ExitStatus {
    // SAFETY: the copy runs `work` and ends here. What it calls takes no lock that another thread may hold, or is
    // tried for that and ended by the alarm.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // A child does not inherit this setting.
        end_with_parent();
        // SAFETY: it takes a number only.
        unsafe { libc::alarm(seconds) };
        let status = catch_unwind(AssertUnwindSafe(work)).unwrap_or(PANICKED);
        // Skips the exit handlers: what hangs may hang in those, too.
        // SAFETY: ends this process.
        unsafe { libc::_exit(status) };
    }
    assert!(child > 0, "cannot fork: {}", io::Error::last_os_error());
    let mut status = 0;
    loop {
        // SAFETY: a child of this process that nobody else waits for.
        let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
        let error = io::Error::last_os_error();
        if waited == child {
            return ExitStatus::from_raw(status);
        }
        let again = error.kind() == io::ErrorKind::Interrupted;
        assert!(again, "cannot wait for the copy: {error}");
    }
}

/// Returns whether threads start in this process. In a program with a Rust `main`, the standard library takes a lock
/// when a thread begins or ends, to report stack overflows. If a child is forked meanwhile, no thread ever begins in
/// it. TensorFlow's programs have no Rust `main`, so plugins do not meet that lock there.
pub fn threads_start() -> bool {
    const PATIENCE: Duration = Duration::from_secs(1);
    let began = Instant::now();
    let Ok(thread) = std::thread::Builder::new().spawn(|| ()) else { return false };
    while !thread.is_finished() {
        if began.elapsed() > PATIENCE {
            return false;
        }
        std::thread::sleep(Duration::from_micros(100));
    }
    true
}

/// Kills every process of the group that `child` leads.
pub(crate) fn kill_group(child: &Child) {
    let Ok(group) = libc::pid_t::try_from(child.id()) else { return };
    // SAFETY: it takes numbers only. Of most groups there is nothing left, which is not a failure here.
    unsafe { libc::kill(-group, libc::SIGKILL) };
}

/// Makes this process end when its parent does: a process in its own group gets no signal of the
/// terminal.
pub(crate) fn end_with_parent() {
    #[cfg(target_os = "linux")]
    // SAFETY: it takes numbers only. A kernel that does not know it leaves the process to end by itself.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn children_in_which_no_thread_starts_are_told_from_those_that_hang() {
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        let _ = std::thread::spawn(|| ()).join();
                    }
                });
            }
            let began = Instant::now();
            let mut ends = std::iter::from_fn(|| {
                (began.elapsed() < Duration::from_secs(2)).then(|| {
                    in_a_child(20, || match threads_start() {
                        true => i32::from(std::thread::spawn(|| ()).join().is_err()),
                        false => 0,
                    })
                })
            });
            let failed = ends.find(|end| !end.success());
            stop.store(true, Ordering::Relaxed);
            assert_eq!(failed, None);
        });
    }
}

//! Ending processes.

use std::process::Child;

/// Kills all that is in the process group that `child` was made the leader of.
pub(in crate::testing) fn kill_group(child: &Child) {
    let Ok(group) = libc::pid_t::try_from(child.id()) else { return };
    // SAFETY: it takes numbers only. Of most groups there is nothing left, which is no failure here.
    unsafe { libc::kill(-group, libc::SIGKILL) };
}

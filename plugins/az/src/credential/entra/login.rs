//! Tokens of the user of `az login`, from the program `az`.

use super::{RESOURCE, Token, token_of};
use rustix::process::{Pid, Signal, kill_process_group};
use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tf_fs_object_store::http::HttpError;

/// How long `az` may take: it is a Python program that makes requests.
const CLI_TIMEOUT: Duration = Duration::from_secs(30);

/// Requests a token of the user of `az login`; `None` if there is no `az`, or no user.
pub(super) async fn cli(az: &str, tenant: Option<&str>) -> Result<Option<Token>, HttpError> {
    let mut command = Command::new(az);
    command.args(["account", "get-access-token", "--output", "json", "--resource", RESOURCE]);
    if let Some(tenant) = tenant {
        command.args(["--tenant", tenant]);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    // `az` is a script that starts Python: both are killed together.
    command.process_group(0);
    let Ok(child) = command.spawn() else { return Ok(None) };
    let mut child = Running(child);
    let started = tokio::time::Instant::now();
    // Its output fits into the pipe.
    let status = loop {
        match child.0.try_wait() {
            Ok(None) if started.elapsed() <= CLI_TIMEOUT => {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            status => break status.ok().flatten(),
        }
    };
    let (Some(status), Some(mut stdout)) = (status, child.0.stdout.take()) else { return Ok(None) };
    let mut output = Vec::new();
    let is_read = status.success() && stdout.read_to_end(&mut output).is_ok();
    Ok(is_read.then(|| token_of(&output)).flatten())
}

/// A program that is killed, with all that it started, when it is dropped: the engine drops requests that take too
/// long.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Once it was waited for, another process may have its number.
        if let Ok(None) = self.0.try_wait() {
            let _ = kill_process_group(Pid::from_child(&self.0), Signal::KILL);
            let _ = self.0.wait();
        }
    }
}

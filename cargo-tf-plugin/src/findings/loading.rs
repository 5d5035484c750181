//! Findings about loading a plugin.

use crate::explain::explain;
use crate::findings::Findings;
use crate::probe::{End, Run};
use crate::releases::Release;

pub(crate) fn refused(reason: &str, tensorflow: &[Release], findings: &mut Findings) {
    // This is known already, and reported for each release.
    let of_tensorflow =
        reason.contains("libtensorflow_") || reason.contains("undefined symbol: _Z");
    if of_tensorflow && tensorflow.iter().any(|release| !release.missing.is_empty()) {
        return;
    }
    if of_tensorflow && tensorflow.is_empty() {
        findings.note(
            "was not loaded: it takes TensorFlow's libraries",
            "name a TensorFlow with `--tf VERSION`, and what is missing in it is listed",
        );
        return;
    }
    let known = explain(reason);
    let cause = known.map_or_else(String::new, |known| format!(" {}", known.cause));
    findings.error(
        format!("cannot be loaded: {reason}.{cause}"),
        known.map_or("install what is missing, or build the plugin again", |known| known.fix),
    );
}

pub(crate) fn failed(function: &str, code: &str, message: &str, findings: &mut Findings) {
    let failure = format!("`{function}` returns {code}: {message}");
    if function.starts_with("init of") {
        findings.error(
            format!("{failure}; TensorFlow raises that and does not register the scheme"),
            "do nothing in `init` (in Rust: `new`) that can fail, such as reaching a server: do it on first use",
        );
    } else if function == "get_device_count" {
        findings.warn(
            format!("{failure}; TensorFlow logs that and treats it as 0 devices"),
            "return OK with 0",
        );
    } else {
        findings.error(
            format!("{failure}; TensorFlow aborts the process, also in `import tensorflow`"),
            "return OK, and let `get_device_count` return 0 if the device cannot be used",
        );
    }
}

pub(crate) fn end(run: &Run, findings: &mut Findings) {
    let step = &run.last_step;
    let fix = "run it in a debugger: the plugin's own output is below, if it has any";
    match &run.end {
        End::Done | End::Refused | End::Unavailable | End::NotRun => {}
        End::Killed(signal) => findings.error(
            format!("ends the process with {signal} in {step}: so it does with TensorFlow"),
            fix,
        ),
        End::Exited(code) => findings.error(
            format!("ends the process with status {code} in {step}: so it does with TensorFlow"),
            "do not call `exit`; report an error by the status",
        ),
        End::Flooded(bytes) => findings.error(
            format!("has written {} MiB to its output in {step}, and was ended", bytes >> 20),
            "let it say less",
        ),
        End::Hung(seconds) => findings.error(
            format!("has not come back from {step} within {seconds} s: TensorFlow waits forever"),
            "do nothing there that waits, such as reaching a server; a longer limit is `--timeout SECONDS`",
        ),
    }
}

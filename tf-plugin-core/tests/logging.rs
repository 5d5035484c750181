//! The log lines of a plugin, in a separate process.

use std::process::Command;
use tf_plugin_core::logging;

/// Tells the process that it is the one to log.
const CHILD: &str = "TF_FS_PLUGIN_TEST_LOGS";

/// Returns what the child writes to stderr with TensorFlow's variable at `level`.
fn logged(level: Option<&str>) -> String {
    let mut child = Command::new(std::env::current_exe().expect("a path"));
    child.args(["--exact", "lines_go_to_stderr_as_tensorflow_writes_them", "--nocapture"]);
    child.env(CHILD, "1").env_remove("TF_CPP_MIN_LOG_LEVEL").env_remove("TF_CPP_MAX_VLOG_LEVEL");
    if let Some(level) = level {
        child.env("TF_CPP_MIN_LOG_LEVEL", level);
    }
    let output = child.output().expect("the test runs itself");
    assert!(output.status.success());
    String::from_utf8(output.stderr).expect("UTF-8")
}

#[test]
fn lines_go_to_stderr_as_tensorflow_writes_them() {
    if std::env::var_os(CHILD).is_some() {
        logging::init();
        log::info!("said by log");
        log::error!("shouted by log");
        tracing::warn!(size = 3, "said by tracing");
        return;
    }
    let quiet = logged(None);
    let lines: Vec<&str> = quiet.lines().collect();
    let [error, warning] = lines[..] else { panic!("not two lines: {quiet}") };
    let (time, text) = error.split_once(": E ").expect("a severity");
    assert_eq!((time.len(), &time[4..5], &time[10..11]), (26, "-", " "), "{error}");
    let (place, text) = text.split_once("] ").expect("a place");
    let line = place.strip_prefix("logging.rs:").expect("the name of this file");
    assert!(line.parse::<u32>().is_ok_and(|line| line > 0), "{error}");
    assert_eq!(text, "shouted by log");
    assert!(warning.contains(": W logging.rs:"), "{warning}");
    assert!(warning.contains("said by tracing") && warning.contains("size=3"), "{warning}");

    assert_eq!(logged(Some("0")).lines().count(), 3);
    assert_eq!(logged(Some("2")).lines().count(), 1);
    assert_eq!(logged(Some("3")), "");
}

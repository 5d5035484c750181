//! A server with the REST API of HDFS: HDFS itself cannot run here. A client of others judges it.

use crate::install::hdfs as installed;
use std::path::Path;
use std::process::Command;

pub(crate) fn webhdfs(port: u16, at: &Path) -> Command {
    std::fs::write(at.join("webhdfs.py"), include_str!("webhdfs.py")).expect("a file");
    let mut command = Command::new("python3");
    command.arg(at.join("webhdfs.py")).arg(port.to_string()).arg(at.join("files"));
    command
}

/// Runs Python code with `client`, a client of the package `hdfs`, on a server at this host, and returns what it prints.
///
/// # Panics
/// If it fails.
#[must_use]
pub fn hdfs_client(host: &str, code: &str) -> String {
    let code = format!(
        "from hdfs import InsecureClient\nclient = InsecureClient('http://{host}', user='somebody')\n{code}"
    );
    let output = Command::new(installed().join("bin/python"))
        .args(["-c", &code])
        .output()
        .expect("it was installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

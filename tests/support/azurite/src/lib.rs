//! Azurite, Microsoft's emulator of Azure Blob Storage, for tests: installed by npm into `target/`, started on a free port
//! of this machine, in memory. [`Proxy`] puts faults between it and a client.

#![forbid(unsafe_code)]

mod install;
mod proxy;

pub use proxy::{Fault, Proxy};

use serde_json::Value;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// The account of Azurite.
pub const ACCOUNT: &str = "devstoreaccount1";
/// Its key, which Azurite's documentation publishes.
pub const KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// A running server. It ends when it is dropped, and with this process.
#[derive(Debug)]
pub struct Azurite {
    endpoint: String,
    child: Child,
    pipes: Mutex<(ChildStdin, BufReader<ChildStdout>)>,
}

impl Azurite {
    /// Starts an empty server. The first call on a machine installs it, which takes a minute.
    ///
    /// # Panics
    /// If it cannot be installed or does not start; the text says what to do.
    #[must_use]
    pub fn start() -> Self {
        Self::start_with(&[], &[])
    }

    /// Starts a server with TLS, which it requires for tokens. It accepts any token that names an issuer, an audience
    /// and a time. `certificate` and `key` are files in PEM; the certificate is self-signed.
    ///
    /// # Panics
    /// As [`start`](Self::start).
    #[must_use]
    pub fn with_tls(certificate: &str, key: &str) -> Self {
        let arguments = ["--oauth", "basic", "--cert", certificate, "--key", key];
        Self::start_with(&arguments, &[("NODE_EXTRA_CA_CERTS", certificate)])
    }

    fn start_with(arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let installed = install::installed();
        let mut child = Command::new(install::NODE)
            .envs(environment.iter().copied())
            .arg(installed.join("launch.js"))
            .args(["--inMemoryPersistence", "--blobPort", "0", "--silent", "--disableTelemetry"])
            .args(arguments)
            .env("AZURITE_KEY", KEY)
            .current_dir(installed)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Node.js makes a pipe non-blocking and, when killed, leaves it so: our stderr would then lose test output.
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{} does not run: {error}", install::NODE));
        let input = child.stdin.take().expect("it is piped");
        let mut output = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut errors = child.stderr.take().expect("it is piped");
        // To its end, or the server would stop when it writes to it.
        let errors = thread::spawn(move || {
            io::copy(&mut errors, &mut io::stderr())
                .or_else(|_| io::copy(&mut errors, &mut io::sink()))
        });
        let mut endpoint = String::new();
        output.read_line(&mut endpoint).expect("Azurite says where it is");
        let endpoint = endpoint.trim().to_owned();
        if !endpoint.starts_with("http") {
            // Its last output, which is written before this thread goes on.
            let _ = child.kill();
            let _ = errors.join();
            let _ = child.wait();
            panic!("Azurite did not start; its output is above");
        }
        Self { endpoint, child, pipes: Mutex::new((input, output)) }
    }

    /// Starts a server with this container.
    ///
    /// # Panics
    /// As [`start`](Self::start).
    #[must_use]
    pub fn with_container(name: &str) -> Self {
        let azurite = Self::start();
        azurite.create_container(name);
        azurite
    }

    /// Returns scheme, host and port.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Creates a container.
    ///
    /// # Panics
    /// If that fails.
    pub fn create_container(&self, name: &str) {
        self.script(&format!("await service.getContainerClient({name:?}).create()"));
    }

    /// Runs JavaScript, the body of an async function. It has `service`, a client of the account by Microsoft's
    /// library, and `sdk`, that library. Returns its result.
    ///
    /// # Panics
    /// If it throws.
    pub fn script(&self, script: &str) -> Value {
        let mut pipes = self.pipes.lock().unwrap_or_else(PoisonError::into_inner);
        let (input, output) = &mut *pipes;
        writeln!(input, "{}", Value::from(script)).expect("Azurite runs");
        let mut line = String::new();
        output.read_line(&mut line).expect("Azurite runs");
        let mut said: Value = serde_json::from_str(&line).expect("Azurite runs, and says JSON");
        assert!(said.get("error").is_none(), "{script}: {}", said["error"]);
        said["value"].take()
    }
}

impl Drop for Azurite {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_errors_of_a_server_have_a_pipe_of_their_own() {
        let errors =
            |process: String| fs::read_link(format!("/proc/{process}/fd/2")).expect("an open file");
        let azurite = Azurite::start();
        assert_ne!(errors(azurite.child.id().to_string()), errors(String::from("self")));
    }
}

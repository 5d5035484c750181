//! A server with the API of the Hugging Face Hub: the Hub itself cannot run here. Hugging Face's own client judges it.

use crate::install::hugging_face;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use tempfile::TempDir;

/// A running server. It ends when it is dropped, and with this process.
#[derive(Debug)]
pub struct Hub {
    child: Child,
    pipes: Mutex<(ChildStdin, BufReader<ChildStdout>)>,
    endpoint: String,
    directory: TempDir,
}

impl Drop for Hub {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Hub {
    /// Starts a server without repositories.
    ///
    /// # Panics
    /// If it does not start; the text says what to do.
    #[must_use]
    pub fn start() -> Self {
        let mut child = Command::new("python3")
            .args(["-c", include_str!("hub.py")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("python3 does not run: {error}"));
        let input = child.stdin.take().expect("it is piped");
        let mut output = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut endpoint = String::new();
        output.read_line(&mut endpoint).expect("it says where it is");
        let directory = tempfile::tempdir().expect("a scratch directory");
        let endpoint = endpoint.trim().to_owned();
        Self { child, pipes: Mutex::new((input, output)), endpoint, directory }
    }

    /// Returns scheme, host and port.
    #[must_use]
    pub fn endpoint(&self) -> String {
        self.endpoint.clone()
    }

    /// Adds files to a revision of a repository: paths, contents, and whether they are large, so that another server has them.
    ///
    /// # Panics
    /// If the server has ended.
    pub fn add(&self, repository: &str, revision: &str, files: &[(&str, &[u8], bool)]) {
        let content = self.directory.path().join("content");
        for (path, bytes, is_large) in files {
            std::fs::write(&content, bytes).expect("a file");
            self.tell(&format!(
                "{{\"do\": \"add\", \"repository\": {repository:?}, \"revision\": {revision:?}, \"path\": {path:?}, \
                 \"is_large\": {is_large}, \"content\": {content:?}}}"
            ));
        }
    }

    /// Shows a repository to those with this token only.
    pub fn protect(&self, repository: &str, token: &str) {
        self.tell(&format!(
            "{{\"do\": \"protect\", \"repository\": {repository:?}, \"token\": {token:?}}}"
        ));
    }

    /// Returns whether the server of the bytes was sent a token.
    #[must_use]
    pub fn leaked(&self) -> bool {
        self.tell("{\"do\": \"nothing\"}").trim() == "true"
    }

    fn tell(&self, command: &str) -> String {
        let mut pipes = self.pipes.lock().unwrap_or_else(PoisonError::into_inner);
        writeln!(pipes.0, "{command}").expect("it runs");
        let mut answer = String::new();
        pipes.1.read_line(&mut answer).expect("it runs");
        answer
    }

    /// Runs Python code with `fs`, the filesystem of Hugging Face's own client, on this server, and returns what it prints.
    ///
    /// # Panics
    /// If it fails.
    #[must_use]
    pub fn official(&self, code: &str) -> String {
        let code = format!("from huggingface_hub import HfFileSystem\nfs = HfFileSystem()\n{code}");
        let output = Command::new(hugging_face().join("bin/python"))
            .args(["-c", &code])
            .env("HF_ENDPOINT", &self.endpoint)
            .env("HF_HOME", self.directory.path())
            .env("HF_HUB_DISABLE_XET", "1")
            .env("HF_HUB_DISABLE_TELEMETRY", "1")
            .output()
            .expect("it was installed");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8")
    }
}

//! An S3 server for the tests, and `plugins/s3` with the settings for one.

use crate::overlay::Overlay;
use crate::python::Python;
use crate::{LIBRARY, Plugin};
use cargo_tf_plugin::TensorFlow;
use s3_server::{Options, Server};
use std::env;
use std::process::Command;

/// The credentials of the tests; the server knows them.
const ACCESS_KEY: &str = "tests";
const SECRET_KEY: &str = "tests-secret";

/// The project's own server, `tests/support/s3-server`, with one empty bucket. It ends with the value.
#[derive(Debug)]
pub struct Store {
    bucket: &'static str,
    endpoint: String,
    server: Server,
}

impl Store {
    /// Starts one. `fast`: with ETags that cost nothing, for large objects.
    pub fn new(bucket: &'static str, fast: bool) -> Self {
        let server = Server::start(Options {
            access_key: ACCESS_KEY.to_owned(),
            secret_key: SECRET_KEY.to_owned(),
            buckets: vec![bucket.to_owned()],
            fast,
            ..Options::default()
        });
        let server = server.expect("the server starts");
        Self { bucket, endpoint: server.endpoint(), server }
    }

    /// `http://127.0.0.1:PORT`.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// A URI below the bucket, without `/` at the end.
    pub fn root(&self) -> String {
        format!("s3://{}/tests", self.bucket)
    }

    /// The server, with its log and what it stores.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// The settings for this server, in the way that users give them: AWS's environment variables.
    fn variables(&self) -> Vec<(&'static str, &str)> {
        vec![
            ("AWS_ENDPOINT_URL", self.endpoint.as_str()),
            ("AWS_ACCESS_KEY_ID", ACCESS_KEY),
            ("AWS_SECRET_ACCESS_KEY", SECRET_KEY),
            ("AWS_REGION", "us-east-1"),
            // Settings of the person who runs the tests must not apply.
            ("AWS_CONFIG_FILE", "/dev/null"),
            ("AWS_SHARED_CREDENTIALS_FILE", "/dev/null"),
            ("AWS_EC2_METADATA_DISABLED", "true"),
            ("NO_PROXY", "127.0.0.1"),
        ]
    }

    /// Gives a Python process the settings for this server.
    pub fn settings(&self, mut python: Python) -> Python {
        self.set(&mut python.command);
        python
    }

    /// A script in a fork of a process that has imported TensorFlow, with the plugin and the settings for this server.
    pub fn python(&self, tensorflow: &TensorFlow, script: &str) -> Python {
        let python = self.settings(Python::new(tensorflow, script));
        python.env(LIBRARY, Plugin::of("s3").path()).in_a_fork()
    }

    /// A script in its own Python, with the settings for this server.
    pub fn python_in(&self, overlay: &Overlay, script: &str) -> Python {
        self.settings(Python::with_interpreter(overlay.python(), script))
    }

    /// Gives any process the settings for this server.
    pub fn set(&self, command: &mut Command) {
        // Not those that the person who runs the tests may have.
        for (name, _) in env::vars_os() {
            let text = name.to_string_lossy();
            let is_foreign = ["AWS_", "S3_"].iter().any(|prefix| text.starts_with(prefix));
            if is_foreign || text.to_lowercase().ends_with("_proxy") {
                command.env_remove(&name);
            }
        }
        command.envs(self.variables());
    }
}

/// A Python in which `import tensorflow` loads the plugin, and nothing else does.
pub fn installed(tensorflow: &TensorFlow) -> Overlay {
    let overlay = Overlay::new(tensorflow);
    Plugin::of("s3").copy_to(&overlay.plugins());
    overlay
}

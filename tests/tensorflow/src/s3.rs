//! S3 servers for the tests, and `examples/s3` with the settings for one.

use crate::overlay::Overlay;
use crate::python::Python;
use crate::{LIBRARY, Plugin, script};
use cargo_tf_plugin::{Packages, TensorFlow};
use s3_server::{Options, Server};
use std::env;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdin, Command, Stdio};

/// What the tests sign with; the servers that check signatures know them.
const ACCESS_KEY: &str = "tests";
const SECRET_KEY: &str = "tests-secret";

/// A server with one empty bucket. It ends with the value.
#[derive(Debug)]
pub struct Store {
    bucket: &'static str,
    endpoint: String,
    running: Running,
}

#[derive(Debug)]
#[expect(dead_code, reason = "held until the end")]
enum Running {
    Own(Server),
    Moto(Moto),
}

impl Store {
    /// The project's own server, `examples/s3/server`. `fast`: with ETags that cost nothing, for large objects.
    pub fn own(bucket: &'static str, fast: bool) -> Self {
        let server = Server::start(Options {
            access_key: ACCESS_KEY.to_owned(),
            secret_key: SECRET_KEY.to_owned(),
            buckets: vec![bucket.to_owned()],
            fast,
            ..Options::default()
        });
        let server = server.expect("the server starts");
        Self { bucket, endpoint: server.endpoint(), running: Running::Own(server) }
    }

    /// [moto](https://docs.getmoto.org), from the package index. It does not check signatures.
    pub fn moto(bucket: &'static str) -> Self {
        let (moto, endpoint) = Moto::start(bucket);
        Self { bucket, endpoint, running: Running::Moto(moto) }
    }

    /// `http://127.0.0.1:PORT`.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// A URI below the bucket, without `/` at the end.
    pub fn root(&self) -> String {
        format!("s3://{}/tests", self.bucket)
    }

    /// The project's server behind it.
    pub fn server(&self) -> &Server {
        match &self.running {
            Running::Own(server) => server,
            other => panic!("{other:?} is not the project's own server"),
        }
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
#[derive(Debug)]
pub struct Installed(Overlay);

impl Installed {
    /// Puts the plugin to the packages of a TensorFlow release, and `more` packages that are not there.
    pub fn new(tensorflow: &TensorFlow, more: Option<&Packages>) -> Self {
        let overlay = Overlay::new(tensorflow);
        Plugin::of("s3").copy_to(&overlay.plugins());
        if let Some(more) = more {
            overlay.link_missing(more.site_packages());
        }
        Self(overlay)
    }

    /// A script with the settings for a server.
    pub fn python(&self, store: &Store, script: &str) -> Python {
        store.settings(Python::with_interpreter(self.0.python(), script))
    }
}

/// The process of moto's server, and what looks into it.
#[derive(Debug)]
struct Moto {
    process: Child,
    /// Its end is the server's.
    input: Option<ChildStdin>,
}

impl Moto {
    fn start(bucket: &str) -> (Self, String) {
        let directory = script("../examples/s3");
        let requirements = fs::read_to_string(directory.join("demo-requirements.txt"))
            .expect("the requirements can be read");
        let packages = Packages::provide("s3-demo", &requirements, None)
            .unwrap_or_else(|error| panic!("{error:#}"));
        let mut process = Command::new(packages.python())
            .arg(directory.join("demo_server.py"))
            .arg(bucket)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("Python runs");
        let output = process.stdout.take().expect("it is piped");
        let input = process.stdin.take();
        let moto = Self { process, input };
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).expect("the server says something");
        let endpoint = line.trim().trim_matches('"').to_owned();
        assert!(endpoint.starts_with("http://127.0.0.1:"), "moto says {line:?}");
        (moto, endpoint)
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        drop(self.input.take());
        if let Err(error) = self.process.wait() {
            eprintln!("moto: {error}");
        }
    }
}

//! The programs that are compared, and what each needs to run.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use cargo_tf_plugin::workspace::Workspace;
use cargo_tf_plugin::{NEWEST, Packages, TensorFlow};
use s3_server::Handle;
use tf_plugin_benches::worker::Worker;

/// The last TensorFlow that tensorflow-io's plugin loads into.
const LAST_WITH_TENSORFLOW_IO: &str = "2.16.2";

/// The second is a part of TensorFlow's own environment only up to Python 3.11.
const TENSORFLOW_IO: &str = "
tensorflow-io==0.37.1
tensorflow-io-gcs-filesystem==0.37.1";

/// The newest that agree on one botocore.
const OTHERS: &str = "
boto3==1.43.117
aiobotocore==3.10.0
s3fs==2026.9.0
# s3torchconnector itself would bring PyTorch, 7 GB with its CUDA libraries; its client does all the work.
s3torchconnectorclient==1.5.0";

/// A way to S3, or around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Client {
    /// This project's plugin in the newest TensorFlow.
    Plugin,
    /// The same with an earlier library.
    Before,
    /// tensorflow-io in the last TensorFlow that it works with.
    TensorflowIo,
    /// AWS's SDK for Python.
    Boto3,
    /// The filesystem of fsspec.
    S3fs,
    /// The AWS Common Runtime beneath s3torchconnector.
    Torch,
    /// The newest TensorFlow on files in memory: as fast as TensorFlow itself is.
    Memory,
}

impl Client {
    /// Those that are neither TensorFlow's own files nor filesystems of TensorFlow.
    pub const OTHERS: [Self; 3] = [Self::Boto3, Self::S3fs, Self::Torch];

    /// What the tables call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Plugin => "this plugin",
            Self::Before => "before",
            Self::TensorflowIo => "tensorflow-io",
            Self::Boto3 => "boto3",
            Self::S3fs => "s3fs",
            Self::Torch => "s3torchconnector",
            Self::Memory => "TensorFlow, files in memory",
        }
    }

    /// The short form of the name, without spaces.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Self::Plugin => "plugin",
            Self::Torch => "s3torchconnectorclient",
            Self::Memory => "memory",
            _ => self.name(),
        }
    }
}

/// Everything installed and built.
#[derive(Debug)]
pub struct Clients {
    newest: TensorFlow,
    plugin: PathBuf,
    before: Option<PathBuf>,
    peers: Option<Peers>,
    directory: PathBuf,
}

#[derive(Debug)]
struct Peers {
    tensorflow: TensorFlow,
    tensorflow_io: Packages,
    others: Packages,
}

impl Clients {
    /// Builds the plugin, unless there is one at `plugin`, and installs what is missing, with `peers` also the other
    /// clients. `before` is an earlier library. Relative paths begin at the root of the workspace.
    ///
    /// # Errors
    /// When something does not build or cannot be installed.
    pub fn provide(peers: bool, plugin: Option<&Path>, before: Option<&Path>) -> Result<Self> {
        let workspace = Workspace::current()?;
        let newest = TensorFlow::pinned(NEWEST)?;
        let directory = workspace.target_dir().join("s3-bench");
        let peers = peers
            .then(|| -> Result<Peers> {
                let tensorflow = TensorFlow::pinned(LAST_WITH_TENSORFLOW_IO)?;
                // Beside that TensorFlow, not in its environment, which others use too.
                let tensorflow_io =
                    Packages::provide("tensorflow-io", TENSORFLOW_IO, Some(tensorflow.python()))?;
                let others = Packages::provide("s3-clients", OTHERS, Some(newest.python()))?;
                Ok(Peers { tensorflow, tensorflow_io, others })
            })
            .transpose()?;
        std::fs::create_dir_all(&directory)
            .with_context(|| format!("cannot make {}", directory.display()))?;
        let plugin = match plugin {
            // Cargo runs a benchmark in the directory of its package.
            Some(plugin) => workspace.root().join(plugin),
            None => workspace.build_plugin("s3")?,
        };
        let before = before.map(|before| workspace.root().join(before));
        Ok(Self { newest, plugin, before, peers, directory })
    }

    /// Whether `client` is there.
    #[must_use]
    pub fn has(&self, client: Client) -> bool {
        match client {
            Client::Plugin | Client::Memory => true,
            Client::Before => self.before.is_some(),
            _ => self.peers.is_some(),
        }
    }

    /// The libraries whose sizes are compared: the plugin, and tensorflow-io's.
    #[must_use]
    pub fn libraries(&self) -> (&Path, Option<PathBuf>) {
        let library = "tensorflow_io/python/ops/libtensorflow_io_plugins.so";
        (
            &self.plugin,
            self.peers.as_ref().map(|peers| peers.tensorflow_io.site_packages().join(library)),
        )
    }

    /// A Python process that runs `script` of the folder `clients` with `subject` as its first argument, for this
    /// client; its files are below `memory` if they are not in the bucket of `server`.
    ///
    /// # Errors
    /// When the client was not provided.
    pub fn command(
        &self,
        client: Client,
        (script, subject): (&str, &str),
        server: &Handle,
        memory: &Path,
    ) -> Result<Command> {
        let peers = || self.peers.as_ref().context("the other clients are not installed");
        let (mut command, packages) = match client {
            Client::Plugin | Client::Before | Client::Memory => {
                (self.newest.python_command(), None)
            }
            Client::TensorflowIo => {
                let peers = peers()?;
                (peers.tensorflow.python_command(), Some(peers.tensorflow_io.site_packages()))
            }
            Client::Boto3 | Client::S3fs | Client::Torch => {
                (Command::new(peers()?.others.python()), None)
            }
        };
        // The user's own settings would lead elsewhere.
        for (name, _) in env::vars_os() {
            let name_text = name.to_string_lossy();
            let foreign =
                ["AWS_", "S3_", "PYTHON"].iter().any(|start| name_text.starts_with(start));
            if foreign || name_text.to_ascii_lowercase().ends_with("_proxy") {
                command.env_remove(&name);
            }
        }
        command
            .env("AWS_ENDPOINT_URL", server.endpoint())
            // tensorflow-io's name for it.
            .env("S3_ENDPOINT", server.endpoint())
            .env("AWS_ACCESS_KEY_ID", server.access_key())
            .env("AWS_SECRET_ACCESS_KEY", server.secret_key())
            .env("AWS_REGION", "us-east-1")
            .env("AWS_DEFAULT_REGION", "us-east-1")
            .env("AWS_EC2_METADATA_DISABLED", "true")
            .env("PYTHONUNBUFFERED", "1");
        // The server does as Amazon S3, and is trusted as that is.
        for conditions in ["PUT", "COMPLETE", "COPY"] {
            command.env(format!("TF_S3_{conditions}_CONDITIONS"), "quoted");
        }
        if let Some(packages) = packages {
            command.env("PYTHONPATH", packages);
        }
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients").join(script);
        command.arg("-B").arg(script).arg(subject);
        match client {
            Client::Plugin => command.arg("--plugin").arg(&self.plugin),
            Client::Before => {
                command.arg("--plugin").arg(self.before.as_ref().context("no earlier library")?)
            }
            Client::TensorflowIo => command.args(["--import", "tensorflow_io"]),
            Client::Memory => command.arg("--root").arg(memory),
            Client::Boto3 | Client::S3fs | Client::Torch => &mut command,
        };
        Ok(command)
    }

    /// Starts a process that waits for operations.
    ///
    /// # Errors
    /// When it does not start.
    pub fn worker(&self, client: Client, server: &Handle, memory: &Path) -> Result<Worker> {
        let subject = match client {
            Client::Boto3 | Client::S3fs | Client::Torch => client.id(),
            _ => "tensorflow",
        };
        let command = self.command(client, ("worker.py", subject), server, memory)?;
        let messages = self.directory.join(format!("{}.log", client.id()));
        Worker::start(command, &messages)
            .with_context(|| format!("{} does not start", client.name()))
    }
}

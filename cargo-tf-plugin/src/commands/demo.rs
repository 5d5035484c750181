//! `cargo tf-plugin demo`: TensorFlow trains a model on files in an example's filesystem, or on an example's device.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};

use crate::output::note;
use crate::workspace::Workspace;
use crate::{NEWEST, Packages, TensorFlow};

/// The arguments of `demo`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples, in a clone of the project:
  cargo tf-plugin demo                      s3://, with a server on this machine
  cargo tf-plugin demo refdevice --tf 2.16.2
  cargo tf-plugin demo memfs --python ~/venv/bin/python")]
pub struct Demo {
    /// The example to show.
    #[arg(value_enum, default_value_t = Example::S3)]
    example: Example,

    /// TensorFlow release to use; installed into the target directory on first use.
    #[arg(long, value_name = "VERSION", default_value = NEWEST, conflicts_with = "python")]
    tf: String,

    /// Use the TensorFlow that this Python interpreter has; nothing is installed into it.
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,
}

/// An example with a demo.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Example {
    /// A training job on s3://, with a server on this machine: killed, resumed, served.
    S3,
    /// A training job in memory.
    Memfs,
    /// Keras on the reference device, compared with TensorFlow's CPU.
    Refdevice,
}

impl Example {
    /// Its package, with `demo.py` in its directory.
    fn package(self) -> &'static str {
        match self {
            Self::S3 => "s3",
            Self::Memfs => "memfs",
            Self::Refdevice => "refdevice",
        }
    }

    /// How long it compiles where nothing of it is there, on two cores.
    fn build_time(self) -> &'static str {
        match self {
            // Optimised as a whole, by one thread at the end.
            Self::S3 => "about 3 minutes",
            Self::Memfs => "less than a minute",
            Self::Refdevice => "1 to 2 minutes",
        }
    }

    /// Whether its demo needs a Python of its own beside TensorFlow's, with the packages in
    /// `demo-requirements.txt`.
    fn has_tools(self) -> bool {
        match self {
            Self::S3 | Self::Refdevice => true,
            Self::Memfs => false,
        }
    }
}

impl Demo {
    /// Provides TensorFlow and what else the demo needs, builds the example and runs its demo script.
    ///
    /// # Errors
    /// When a Python package cannot be provided, the example does not build, or the script finds a wrong result.
    pub fn run(self) -> Result<()> {
        let workspace = Workspace::current().context("run the demo in a clone of the project")?;
        let name = self.example.package();
        let Some(package) = workspace.package_dir(name) else {
            bail!(
                "the workspace in {} has no package `{name}`; run the demo in a clone of the project",
                workspace.root().display()
            );
        };
        let tensorflow = match &self.python {
            Some(python) => TensorFlow::from_python(python)?,
            None => TensorFlow::pinned(&self.tf)?,
        };
        let tools =
            self.example.has_tools().then(|| self.tools(package, &tensorflow)).transpose()?;
        note!(
            "compiling {name}: {} on two cores the first time, then seconds",
            self.example.build_time()
        );
        let plugin = workspace.build_plugin(name)?;
        let mut command = tensorflow.python_command();
        command.arg(package.join("demo.py")).arg(&plugin);
        if let Some(tools) = tools {
            command.arg("--tools").arg(tools.python());
        }
        let status = command
            .status()
            .with_context(|| format!("cannot run {}", tensorflow.python().display()))?;
        if !status.success() {
            bail!("the demo failed ({status}); its messages are above");
        }
        Ok(())
    }

    /// A server, a data set: what the demo needs beside TensorFlow, and not in its environment.
    fn tools(&self, package: &Path, tensorflow: &TensorFlow) -> Result<Packages> {
        let file = package.join("demo-requirements.txt");
        let requirements =
            fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let base = self.python.is_some().then(|| tensorflow.python());
        let name = format!("{}-demo", self.example.package());
        Packages::provide(&name, &requirements, base).context(
            "the demo needs a Python environment of its own beside TensorFlow's; TF_PLUGIN_PYTHON \
             names the Python to make it with",
        )
    }
}

//! `cargo tf-plugin demo`: TensorFlow trains a model on files in an example's filesystem, on an example's device, or with a
//! plugin's ops.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, ValueEnum};

use crate::commands::build::What;
use crate::output::note;
use crate::wheel::Wheel;
use crate::workspace::Workspace;
use crate::{NEWEST, Packages, TensorFlow};

/// The arguments of `demo`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples, in a clone of the project:
  cargo tf-plugin demo                      s3://, with a server on this machine
  cargo tf-plugin demo gpu                  the GPU, or lavapipe on the CPU
  cargo tf-plugin demo tokenizers           Hugging Face's tokenizers in a Keras model
  cargo tf-plugin demo refdevice --tf 2.16.2
  cargo tf-plugin demo memfs --python ~/venv/bin/python")]
pub struct Demo {
    /// The example to show.
    #[arg(value_enum, default_value_t = Example::S3)]
    example: Example,

    /// TensorFlow release to use; installed into the target directory on first use.
    #[arg(long, value_name = "VERSION", default_value = NEWEST, conflicts_with = "python")]
    tf: String,

    /// End each training on a device after so many steps; how well the model has learnt does not count then.
    #[arg(long, value_name = "N")]
    steps: Option<u32>,

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
    /// Keras on the GPU, by CUDA or Vulkan, compared with TensorFlow's CPU; without a GPU, on lavapipe.
    Gpu,
    /// Hugging Face's tokenizers: a classifier that is trained on raw text, and served on raw text.
    Tokenizers,
}

impl Demo {
    /// Provides TensorFlow and the demo's other requirements, builds the example and runs its demo script.
    pub fn run(self) -> Result<()> {
        let workspace = Workspace::current().context("run the demo in a clone of the project")?;
        // The time of a first build on two cores; and the Python packages that the demo needs in addition to
        // TensorFlow: the name of their environment, and the requirements file beside the demo's script.
        let device_tools = Some(("device-demo", "requirements.txt"));
        let (name, build_time, tools) = match self.example {
            // Whole-program optimisation, which ends with a single thread.
            Example::S3 => ("s3", "about 3 minutes", Some(("s3-demo", "demo-requirements.txt"))),
            Example::Memfs => ("memfs", "less than a minute", None),
            Example::Refdevice => ("refdevice", "1 to 2 minutes", device_tools),
            Example::Gpu => ("gpu", "1 to 2 minutes", device_tools),
            Example::Tokenizers => (
                "tensorflow-tokenizers",
                "about 3 minutes",
                Some(("tokenizers-demo", "demo-requirements.txt")),
            ),
        };
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
        // All devices have one demo.
        let is_device = matches!(self.example, Example::Refdevice | Example::Gpu);
        ensure!(
            is_device || self.steps.is_none(),
            "--steps is for refdevice and gpu; leave it out"
        );
        let scripts = if is_device {
            workspace.root().join("examples/device_demo")
        } else {
            package.to_owned()
        };
        let tools = tools.map(|tools| self.tools(tools, &scripts, &tensorflow)).transpose()?;
        note!("compiling {name}: {build_time} on two cores the first time, then seconds");
        let plugin = match self.example {
            // It is used through its Python package.
            Example::Tokenizers => wheel(name)?,
            _ => workspace.build_plugin(name)?,
        };
        let mut command = tensorflow.python_command();
        command.arg(scripts.join("demo.py")).arg(&plugin);
        if is_device {
            command.args(["--example", name, "--steps", &self.steps.unwrap_or(0).to_string()]);
        }
        if matches!(self.example, Example::Gpu) {
            command.arg("--software").arg(workspace.build_program("lavapipe")?);
        }
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

    /// Provides the demo's other requirements, such as a server or a data set, outside TensorFlow's environment.
    fn tools(
        &self,
        (name, file): (&str, &str),
        examples: &Path,
        tensorflow: &TensorFlow,
    ) -> Result<Packages> {
        let file = examples.join(file);
        let requirements =
            fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let base = self.python.is_some().then(|| tensorflow.python());
        Packages::provide(name, &requirements, base).context(
            "the demo needs a second Python environment next to TensorFlow's; set TF_PLUGIN_PYTHON to \
             the Python to create it with",
        )
    }
}

/// Makes the wheel of a package, and returns its path.
fn wheel(package: &str) -> Result<PathBuf> {
    let (project, library) = What::package(Some(package.to_owned())).build()?;
    let wheel = Wheel::new(&project, &library, None)?;
    wheel.write(&project.workspace.target_dir().join("wheels"))
}

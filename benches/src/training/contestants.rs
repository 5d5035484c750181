//! The programs that train, and what each needs to run.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use cargo_tf_plugin::workspace::Workspace;
use cargo_tf_plugin::{NEWEST, Packages, TensorFlow};
use clap::ValueEnum;

use crate::worker::Worker;

/// For machines without them. PyTorch and JAX bring CUDA's libraries, several GB.
const TORCH: &str = "torch\ntorchvision\nkeras";
const JAX: &str = "jax[cuda13]\nkeras";

/// A library that trains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Contestant {
    /// Keras on TensorFlow with this project's plugin.
    Plugin,
    /// Keras on TensorFlow's CPU, to compare losses with.
    Cpu,
    /// Keras on PyTorch.
    KerasOnTorch,
    /// Keras on JAX.
    KerasOnJax,
    /// PyTorch without Keras.
    Torch,
}

impl Contestant {
    /// What the table calls it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Plugin => "this plugin",
            Self::Cpu => "TensorFlow's CPU",
            Self::KerasOnTorch => "Keras on PyTorch",
            Self::KerasOnJax => "Keras on JAX",
            Self::Torch => "PyTorch",
        }
    }

    /// The argument of `contestant.py`.
    fn library(self) -> &'static str {
        match self {
            Self::Plugin | Self::Cpu => "tensorflow",
            Self::KerasOnTorch => "torch",
            Self::KerasOnJax => "jax",
            Self::Torch => "plain",
        }
    }
}

/// Where the programs are.
#[derive(Debug)]
pub struct Contestants {
    /// The library of the plugin.
    pub plugin: PathBuf,
    /// The Python that has PyTorch, torchvision and Keras; by default one is installed below the target directory.
    pub torch: Option<PathBuf>,
    /// The Python that has JAX and Keras; by default one is installed below the target directory.
    pub jax: Option<PathBuf>,
    /// Lets PyTorch and JAX compute float32 with fewer bits, as they do by default.
    pub tf32: bool,
    /// The environment of the plugin, such as that of lavapipe.
    pub environment: Vec<(&'static str, OsString)>,
}

impl Contestants {
    /// Starts a process that waits for a model.
    ///
    /// # Errors
    /// When something cannot be installed or does not start.
    pub fn start(&self, contestant: Contestant) -> Result<Worker> {
        let given = |python: &Option<PathBuf>, name, requirements| match python {
            Some(python) => Ok(Command::new(python)),
            None => Packages::provide(name, requirements, None)
                .map(|packages| Command::new(packages.python())),
        };
        let mut command = match contestant {
            Contestant::Plugin | Contestant::Cpu => TensorFlow::pinned(NEWEST)?.python_command(),
            Contestant::KerasOnTorch | Contestant::Torch => given(&self.torch, "torch", TORCH)?,
            Contestant::KerasOnJax => given(&self.jax, "jax", JAX)?,
        };
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("training/contestant.py");
        command.arg("-B").arg(script).arg(contestant.library());
        if self.tf32 {
            command.arg("--tf32");
        }
        match contestant {
            Contestant::Plugin => {
                command.arg("--plugin").arg(&self.plugin);
                command.envs(self.environment.iter().map(|(name, value)| (name, value)));
            }
            // What the plugin's process sees is not for the CPU's.
            Contestant::Cpu => {
                command.env("CUDA_VISIBLE_DEVICES", "-1");
            }
            _ => {}
        }
        let directory = Workspace::current()?.target_dir().join("bench-training");
        fs::create_dir_all(&directory)?;
        let messages = directory.join(format!("{}.log", contestant.library()));
        Worker::start(command, &messages)
            .with_context(|| format!("{} does not start", contestant.name()))
    }
}

//! `cargo tf-plugin demo`: TensorFlow trains a model on files that live in the example filesystem.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::workspace::Workspace;
use crate::{NEWEST, TensorFlow};

/// The package whose plugin the demo uses.
const PACKAGE: &str = "memfs";

/// The arguments of `demo`.
#[derive(Args, Debug)]
pub struct Demo {
    /// TensorFlow release to use; installed into the target directory on first use.
    #[arg(long, value_name = "VERSION", default_value = NEWEST, conflicts_with = "python")]
    tf: String,

    /// Use the TensorFlow that this Python interpreter has.
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,
}

impl Demo {
    /// Provides TensorFlow, builds the example and runs its demo script.
    ///
    /// # Errors
    /// When TensorFlow cannot be provided, the example does not build, or the script finds a wrong result.
    pub fn run(self) -> Result<()> {
        let workspace = Workspace::current()?;
        let Some(package) = workspace.package_dir(PACKAGE) else {
            bail!(
                "the workspace in {} has no package `{PACKAGE}`; run the demo in a clone of the project",
                workspace.root().display()
            );
        };
        let tensorflow = match &self.python {
            Some(python) => TensorFlow::from_python(python)?,
            None => TensorFlow::pinned(&self.tf)?,
        };
        let plugin = workspace.build_plugin(PACKAGE)?;
        let status = tensorflow
            .python_command()
            .arg(package.join("demo.py"))
            .arg(&plugin)
            .status()
            .with_context(|| format!("cannot run {}", tensorflow.python().display()))?;
        if !status.success() {
            bail!("the demo failed ({status}); its messages are above");
        }
        Ok(())
    }
}

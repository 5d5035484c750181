//! `cargo tf-plugin new`: a crate for a plugin, ready to build.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::output::{note, say};
use crate::template::{self, Kind, Names, Sdk};

/// The arguments of `new`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  cargo tf-plugin new notes --fs          a filesystem, notes://
  cargo tf-plugin new blobs --object-store
                                          a filesystem on an object store, blobs://
  cargo tf-plugin new my-ops --ops        ops for the CPU, with a Python module
  cargo tf-plugin new my-npu --device     a device, /device:MY_NPU:0, with a kernel
  cargo tf-plugin new my-npu --device --driver
                                          the same on a driver of your own, with unsafe code
  cargo tf-plugin new my-gpu --gpu        a GPU with OpenCL, /device:MY_GPU:0, with all ops
  cargo tf-plugin new cloud2 --both --device-type CLOUD")]
pub struct New {
    /// Name of the package: lower-case letters, digits and `-`.
    name: String,

    #[command(flatten)]
    kind: KindArguments,

    /// Create the device on a driver of your own, in place of a ready-made device on the host.
    #[arg(long, requires = "device", conflicts_with_all = ["fs", "object_store", "gpu", "both", "ops"])]
    driver: bool,

    /// The new directory; by default the package's name, in the current directory.
    #[arg(long, value_name = "DIR")]
    path: Option<PathBuf>,

    /// The filesystem's scheme; by default the name without `-`.
    #[arg(long, conflicts_with_all = ["device", "gpu", "ops"])]
    scheme: Option<String>,

    /// The type of the device; by default the name in capital letters.
    #[arg(long, value_name = "TYPE", conflicts_with_all = ["fs", "object_store", "ops"])]
    device_type: Option<String>,

    /// Depend on the SDK in a clone of its repository; the default if this command was built from one.
    #[arg(long, value_name = "CLONE")]
    sdk: Option<PathBuf>,
}

#[derive(Args, Clone, Copy, Debug)]
#[group(required = true, multiple = false)]
struct KindArguments {
    /// Create a filesystem.
    #[arg(long)]
    fs: bool,

    /// Create a filesystem on an object store: you write the requests.
    #[arg(long)]
    object_store: bool,

    /// Create a device.
    #[arg(long)]
    device: bool,

    /// Create a device on GPUs: you write the backend for an API.
    #[arg(long)]
    gpu: bool,

    /// Create a filesystem and a device in one library.
    #[arg(long)]
    both: bool,

    /// Create ops for the CPU.
    #[arg(long)]
    ops: bool,
}

impl New {
    /// Creates the crate: all of it, or nothing.
    pub fn run(self) -> Result<()> {
        let kind = match self.kind {
            KindArguments { fs: true, .. } => Kind::Filesystem,
            KindArguments { object_store: true, .. } => Kind::ObjectStore,
            KindArguments { device: true, .. } if self.driver => Kind::Driver,
            KindArguments { device: true, .. } => Kind::Device,
            KindArguments { gpu: true, .. } => Kind::Gpu,
            KindArguments { ops: true, .. } => Kind::Ops,
            KindArguments { .. } => Kind::Both,
        };
        let names =
            Names::new(&self.name, kind, self.scheme.as_deref(), self.device_type.as_deref())?;
        let sdk = self.sdk.as_deref().map_or_else(|| Ok(Sdk::own()), Sdk::at)?;
        let engine = match kind {
            Kind::ObjectStore => Some("the engine for object stores, tf-fs-object-store"),
            Kind::Gpu => Some("the engine for GPUs, se-plugin-gpu"),
            _ => None,
        };
        if let Some(engine) = engine.filter(|_| sdk == Sdk::Published) {
            bail!(
                "{engine}, is not published yet; clone the SDK's repository and name it with `--sdk`"
            );
        }
        let directory = self.path.unwrap_or_else(|| self.name.clone().into());
        make(kind, &names, &sdk, &directory)?;

        let what = match kind {
            Kind::Filesystem => format!("a filesystem, {}://", names.scheme),
            Kind::ObjectStore => format!("a filesystem on an object store, {}://", names.scheme),
            Kind::Device | Kind::Driver => format!("a device, /device:{}:0", names.device_type),
            Kind::Gpu => format!("a GPU with OpenCL, /device:{}:0", names.device_type),
            Kind::Ops => "ops for the CPU".to_owned(),
            Kind::Both => format!(
                "a filesystem, {}://, and a device, /device:{}:0",
                names.scheme, names.device_type
            ),
        };
        say!("Created {}: {what}.\n", directory.display())?;
        say!("  cd {}", directory.display())?;
        say!("  cargo test             # without TensorFlow: 1 to 3 minutes the first time")?;
        say!("  cargo tf-plugin test   # and in a real TensorFlow")?;
        say!("  cargo tf-plugin wheel  # a wheel for `pip install`")?;
        Ok(())
    }
}

fn make(kind: Kind, names: &Names, sdk: &Sdk, directory: &Path) -> Result<()> {
    if directory.symlink_metadata().is_ok() {
        bail!("{} already exists; name another directory with `--path`", directory.display());
    }
    let directory = std::path::absolute(directory)?;
    let (Some(parent), Some(name)) = (directory.parent(), directory.file_name()) else {
        bail!("cannot create {}; name a directory with `--path`", directory.display());
    };
    if directory.to_str().is_none() {
        bail!(
            "cargo cannot work in {}, which is not UTF-8; name another directory with `--path`",
            directory.display()
        );
    }
    if !parent.is_dir() {
        bail!("the directory {} does not exist; create it first", parent.display());
    }
    let failed = || format!("cannot make a directory in {}; is it writable?", parent.display());
    // Next to its final place, so that the finished crate appears there at once.
    let scratch = tempfile::Builder::new()
        .prefix(".tf-plugin-new")
        .tempdir_in(parent)
        .with_context(failed)?;
    let growing = scratch.path().join(name);
    fs::create_dir(&growing).with_context(failed)?;
    let files = template::write(kind, names, sdk, &growing)?;
    format(&files);
    fs::rename(&growing, &directory)
        .with_context(|| format!("cannot rename {} to {}", growing.display(), directory.display()))
}

/// Formats the Rust files: where lines break depends on the length of the names in them.
fn format(files: &[PathBuf]) {
    let sources = files.iter().filter(|file| file.extension().is_some_and(|end| end == "rs"));
    let output = Command::new("rustfmt").args(["--edition", "2024"]).args(sources).output();
    if !output.is_ok_and(|output| output.status.success()) {
        note!(
            "note: rustfmt is not here, so lines may break in other places than `cargo fmt` would choose"
        );
    }
}

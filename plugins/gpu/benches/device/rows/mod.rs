//! The measurements, each with a reference in the same run.

mod copies;
mod kernels;
mod launches;
mod step;

use crate::backend::{Cuda, Vulkan};
use crate::contestant::{Bare, Contestant};
use crate::plugin::Plugin;
use crate::sizes::Sizes;
use crate::table::Row;
use anyhow::{Context as _, Result};
use clap::ValueEnum;

/// The driver interface to a GPU.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Backend {
    Cuda,
    Vulkan,
}

impl Backend {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Cuda => "cuda",
            Self::Vulkan => "vulkan",
        }
    }

    /// Returns the value for this backend.
    fn of<T>(self, cuda: T, vulkan: T) -> T {
        match self {
            Self::Cuda => cuda,
            Self::Vulkan => vulkan,
        }
    }
}

/// A GPU, opened by the plugin and by a program without it.
pub(crate) struct Bench {
    pub(crate) backend: Backend,
    pub(crate) sizes: Sizes,
    pub(crate) plugin: Plugin,
    bare: Box<dyn Bare>,
}

impl Bench {
    /// Opens the GPU that the settings in the environment name, by the backend there.
    pub(crate) fn open(backend: Backend, sizes: Sizes) -> Result<Self> {
        let plugin = Plugin::open()?;
        let bare: Box<dyn Bare> = match backend {
            Backend::Cuda => Box::new(Cuda::open(&plugin.gpu_name)?),
            Backend::Vulkan => Box::new(Vulkan::open(&plugin.gpu_name)?),
        };
        Ok(Self { backend, sizes, plugin, bare })
    }

    fn clear(&mut self) {
        self.plugin.clear();
        self.bare.clear();
    }

    /// Returns the plugin and the bare program, in this order.
    fn both(&mut self) -> [&mut dyn Contestant; 2] {
        [&mut self.plugin, &mut *self.bare]
    }

    /// Allocates a tensor in both, with the same number.
    fn tensor(&mut self, bytes: &[u8]) -> Result<usize> {
        let mut tensor = 0;
        for contestant in self.both() {
            tensor = contestant.allocate(bytes.len())?;
            contestant.write(tensor, bytes)?;
        }
        Ok(tensor)
    }

    /// Runs a part, and frees its tensors.
    pub(crate) fn run(&mut self, (name, part): (&str, Part)) -> Result<Vec<Row>> {
        let rows = part(self).with_context(|| format!("cannot measure {name}"));
        self.clear();
        rows
    }
}

type Part = fn(&mut Bench) -> Result<Vec<Row>>;

/// All parts.
pub(crate) const PARTS: [(&str, Part); 5] = [
    ("copies", copies::rows),
    ("elementwise", kernels::elementwise),
    ("products", kernels::products),
    ("launches", launches::rows),
    ("step", step::rows),
];

/// Formats a size for people.
fn mebibytes(bytes: usize) -> String {
    format!("{} MiB", bytes >> 20)
}

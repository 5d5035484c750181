//! `cargo tf-plugin wheel`: the file that `pip install` takes.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::commands::build::What;
use crate::output::{note, say, utf8};
use crate::wheel;

/// The arguments of `wheel`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  cargo tf-plugin wheel                            for systems like this one, and newer
  cargo tf-plugin wheel --compat manylinux_2_28 -o dist
  pip install target/wheels/*.whl

The metadata comes from Cargo.toml. The wheel does not require TensorFlow: one file serves 2.12 and newer. Wheels are
reproducible: the same library gives the same bytes. SOURCE_DATE_EPOCH sets the time of the files in it.")]
pub struct Wheel {
    #[command(flatten)]
    what: What,

    /// Directory to write the wheel to; by default `wheels` in the target directory.
    #[arg(long, short, value_name = "DIR")]
    out_dir: Option<PathBuf>,

    /// Print the wheel's properties as one line of JSON.
    #[arg(long)]
    json: bool,
}

impl Wheel {
    /// Builds the plugin and packs it into a wheel.
    pub fn run(self) -> Result<()> {
        if let (true, Some(directory)) = (self.json, &self.out_dir) {
            utf8(directory)?;
        }
        let (project, library) = self.what.build()?;
        let wheel = wheel::Wheel::new(&project, &library, self.what.compat)?;
        let directory =
            self.out_dir.unwrap_or_else(|| project.workspace.target_dir().join("wheels"));
        let path = wheel.write(&directory)?;
        if self.json {
            let known = serde_json::json!({
                "path": path,
                "bytes": wheel.content.len(),
                "module": wheel.module,
                "foreign_libraries": library.foreign(),
            });
            say!("{known}")?;
            return Ok(());
        }
        say!("{} ({} KiB)\n", path.display(), wheel.content.len().div_ceil(1024))?;
        say!("  pip install {}", path.display())?;
        say!("  python -m {} doctor", wheel.module)?;
        let foreign = library.foreign();
        if !foreign.is_empty() {
            note!(
                "\nwarning: the plugin needs {}, which not every Linux has: this wheel is for this machine and such as it,\n\
                 and PyPI refuses it; link those libraries statically",
                foreign.join(", ")
            );
        }
        Ok(())
    }
}

//! `cargo tf-plugin build`: the shared library that users install, and the systems that it works on.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;

use crate::artefact::Artefact;
use crate::build::{Linking, ZIGBUILD, cargo};
use crate::output::say;
use crate::platform::Compat;
use crate::project::Project;

/// The arguments of `build`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  cargo tf-plugin build                            for this machine
  cargo tf-plugin build --compat manylinux_2_28    for systems as old as RHEL 8 and Debian 11
  cargo tf-plugin build --target aarch64-unknown-linux-gnu

With cargo-zigbuild on the machine (`pip install cargo-zigbuild ziglang`), zig links for the target and the glibc
that you request. The profile is the one that TF_PLUGIN_PROFILE in the environment names, else
`package.metadata.tf-plugin.profile` in the manifest, else `release`.")]
pub struct Build {
    #[command(flatten)]
    what: What,

    /// Print the library's properties as one line of JSON.
    #[arg(long)]
    json: bool,
}

/// The package to build, and its target systems.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct What {
    /// Package of the workspace to build.
    #[arg(long, short, value_name = "NAME")]
    package: Option<String>,

    /// Target to build for, such as aarch64-unknown-linux-gnu.
    #[arg(long, value_name = "TRIPLE")]
    target: Option<String>,

    /// Oldest systems that the library must work on; fails if it needs a newer glibc.
    #[arg(long, value_name = "TAG")]
    pub(crate) compat: Option<Compat>,
}

impl What {
    /// Selects a package, built as users of this machine install it.
    pub(crate) fn package(package: Option<String>) -> Self {
        Self { package, ..Self::default() }
    }

    pub(crate) fn build(&self) -> Result<(Project, Artefact)> {
        let project = Project::find(self.package.as_deref())?;
        let linking = self.linking(project.workspace.root())?;
        let library = Artefact::read_plugin(&project.workspace.build(&project.package, &linking)?)?;
        if let Some(compat) = self.compat {
            library.keeps(compat)?;
        }
        Ok((project, library))
    }

    fn linking(&self, root: &Path) -> Result<Linking> {
        if let Some(target) = &self.target {
            look_at(target, root)?;
        }
        let own_linker = |target: &String| env::var_os(linker_variable(target)).is_some();
        let zig = match (&self.target, self.compat) {
            (Some(target), _) if own_linker(target) => false,
            (None, None) => false,
            // Runs it to see whether it is installed.
            _ => {
                Command::new(ZIGBUILD).arg("--version").output().is_ok_and(|it| it.status.success())
            }
        };
        if let Some(target) = self.target.as_ref().filter(|target| !zig && !own_linker(target)) {
            try_linker(target, root)?;
        }
        let target = match (&self.target, self.compat) {
            (target, Some(compat)) if zig => {
                let target = target.clone().map_or_else(|| host(root), Ok)?;
                Some(format!("{target}.{}", compat.0))
            }
            (target, _) => target.clone(),
        };
        Ok(Linking { target, zig })
    }
}

impl Build {
    /// Builds the library and prints where it is and where it works.
    pub fn run(self) -> Result<()> {
        let (_, library) = self.what.build()?;
        let (glibc, foreign) = (library.glibc(), library.foreign());
        let platform = library.platform(self.what.compat);
        if self.json {
            let known = serde_json::json!({
                "path": library.path,
                "bytes": library.size,
                "glibc": glibc.to_string(),
                "platform": platform,
                "foreign_libraries": foreign,
            });
            say!("{known}")?;
            return Ok(());
        }
        say!("plugin    {}", library.path.display())?;
        say!("size      {} KiB", library.size.div_ceil(1024))?;
        say!("glibc     {glibc} or newer")?;
        say!("platform  {platform}")?;
        if !foreign.is_empty() {
            say!("needs     {}, which not every Linux has", foreign.join(", "))?;
        }
        Ok(())
    }
}

/// Checks that this Rust can build plugins for a target.
fn look_at(target: &str, root: &Path) -> Result<()> {
    let printed = rustc(root, &["--print", "target-libdir", "--target", target])?;
    let Some(libraries) = printed else {
        bail!("rustc knows no target `{target}`; `rustc --print target-list` lists them");
    };
    if !target.ends_with("-linux-gnu") {
        bail!(
            "TensorFlow is published for no such target as {target}; name one that ends in -linux-gnu"
        );
    }
    if !Path::new(libraries.trim()).is_dir() {
        bail!(
            "Rust's standard library for {target} is not here; get it with `rustup target add {target}`"
        );
    }
    Ok(())
}

/// Checks whether this machine's linker, unless cargo's configuration names another one, can link
/// for a target: before everything is compiled, and without the linker's long messages.
fn try_linker(target: &str, root: &Path) -> Result<()> {
    let scratch = tempfile::tempdir().context("cannot make a scratch directory")?;
    let failed = || format!("cannot write in {}", scratch.path().display());
    let manifest = scratch.path().join("Cargo.toml");
    let text = "[package]\nname = \"linked\"\nedition = \"2024\"\n\n\
                [lib]\npath = \"linked.rs\"\ncrate-type = [\"cdylib\"]\n\n[workspace]\n";
    fs::write(&manifest, text).with_context(failed)?;
    fs::write(scratch.path().join("linked.rs"), "").with_context(failed)?;
    let mut cargo = cargo();
    // Cargo reads the configuration of the directory that it runs in.
    let output = cargo
        .current_dir(root)
        .args(["build", "--color", "never", "--offline", "--target", target, "--manifest-path"])
        .arg(&manifest)
        .arg("--target-dir")
        .arg(scratch.path().join("target"))
        .output()
        .with_context(|| format!("cannot run {}", cargo.get_program().display()))?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    // The build itself reports other problems.
    let missing = ["linking with `cc` failed", "linker `cc` not found"];
    if missing.iter().any(|text| stderr.contains(text)) {
        let advice = format!(
            "this machine's linker, `cc`, cannot link for {target}: `pip install cargo-zigbuild ziglang` brings one for \
             every target; or install one and name it with {}",
            linker_variable(target)
        );
        return Err(anyhow!(cause(&stderr).to_owned()).context(advice));
    }
    Ok(())
}

/// Returns the last line in which a linker itself says what is wrong. rustc's message has its
/// command in front, and the compiler that called the linker only says at the end that it failed.
fn cause(stderr: &str) -> &str {
    let lines = stderr.lines().skip_while(|line| !line.starts_with("error: link"));
    let error = lines.clone().next().unwrap_or_default();
    let notes = lines.skip(1).take_while(|line| !line.starts_with("error"));
    let notes = notes.map(|line| line.trim().trim_start_matches("= note:").trim());
    let of_linker = |line: &&str| {
        !line.is_empty()
            && *line != "|"
            && !line.starts_with("collect2:")
            // Further lines of lld about an error, and after the last one.
            && !line.starts_with(">>>")
            && !line.contains("too many errors emitted")
            && !line.starts_with("some arguments are omitted")
            // The command.
            && !line.contains("\"cc\" ")
    };
    notes.filter(of_linker).last().unwrap_or_else(|| error.trim_start_matches("error: "))
}

fn host(root: &Path) -> Result<String> {
    let version = rustc(root, &["-vV"])?.unwrap_or_default();
    let line = version.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(line.context("rustc does not say which target this machine is")?.to_owned())
}

fn rustc(root: &Path, arguments: &[&str]) -> Result<Option<String>> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(&rustc)
        .args(arguments)
        .current_dir(root)
        .output()
        .with_context(|| format!("cannot run {}; install Rust with rustup", rustc.display()))?;
    Ok(output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned()))
}

/// Returns the variable in which cargo expects the linker for a target.
fn linker_variable(target: &str) -> String {
    format!("CARGO_TARGET_{}_LINKER", target.to_ascii_uppercase().replace(['-', '.'], "_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_is_what_the_linker_says() {
        let failed = "   Compiling linked v0.0.0\n\
                      error: linking with `cc` failed: exit status: 1\n  |\n\
                      \x20 = note:  \"cc\" \"-m64\" \"a.o\"\n\
                      \x20 = note: some arguments are omitted. use `--verbose` to show all linker arguments\n";
        let after = "\nerror: could not compile `linked` (lib) due to 1 previous error\n";
        let linker = "  = note: /usr/bin/ld: a.o: Relocations in generic ELF (EM: 183)\n\
                      \x20         /usr/bin/ld: a.o: file in wrong format\n\
                      \x20         collect2: error: ld returned 1 exit status\n          \n";
        let text = format!("{failed}{linker}{after}");
        assert_eq!(cause(&text), "/usr/bin/ld: a.o: file in wrong format");
        let linker = "  = note: rust-lld: error: a.o is incompatible with elf64-x86-64\n\
                      \x20         >>> referenced by b.o\n\
                      \x20         rust-lld: error: too many errors emitted, stopping now\n\
                      \x20         collect2: error: ld returned 1 exit status\n";
        let text = format!("{failed}{linker}{after}");
        assert_eq!(cause(&text), "rust-lld: error: a.o is incompatible with elf64-x86-64");
        let text = format!("{failed}{after}");
        assert_eq!(cause(&text), "linking with `cc` failed: exit status: 1");
        let none =
            "error: linker `cc` not found\n  |\n  = note: No such file or directory (os error 2)\n";
        assert_eq!(cause(none), "No such file or directory (os error 2)");
    }
}

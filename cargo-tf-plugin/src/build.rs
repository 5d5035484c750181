//! Builds plugins.

use std::env;
use std::env::consts::{ARCH, DLL_EXTENSION};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use cargo_metadata::{Artifact, Message, Package, Target};
use serde_json::Value;

use crate::artefact::Artefact;
use crate::workspace::Workspace;

impl Workspace {
    /// Builds a package of the workspace as the shared library that users install, and returns its path.
    ///
    /// The profile is `release`, unless the package's manifest names another one:
    ///
    /// ```toml
    /// [package.metadata.tf-plugin]
    /// profile = "dist"
    /// ```
    ///
    /// `TF_PLUGIN_PROFILE` in the environment takes precedence.
    ///
    /// With the profiles `release` and `dev` this builds what cargo builds of the package alone, and neither rebuilds
    /// what the other has built. With any other profile only the shared library is built, even if the package is also
    /// a Rust library: if it builds both, cargo skips whole-program optimisation (`lto`).
    pub fn build_plugin(&self, package: &str) -> Result<PathBuf> {
        let Some(package) = self.package(package) else {
            bail!("the workspace in {} has no package `{package}`", self.root().display());
        };
        self.build(package, &Linking::default())
    }

    /// Builds the program of a package that has its name, in the profile `dev`, and returns its path.
    pub(crate) fn build_program(&self, package: &str) -> Result<PathBuf> {
        let mut command = cargo();
        command.current_dir(self.root()).args(["build", "--package", package, "--bin", package]);
        let program = built(command, package)?.into_iter().find_map(|artifact| artifact.executable);
        program.map(Into::into).with_context(|| format!("cargo has built no program `{package}`"))
    }

    /// Builds a package as [`Workspace::build_plugin`] does, for any target.
    pub(crate) fn build(&self, package: &Package, linking: &Linking) -> Result<PathBuf> {
        let name = &package.name;
        has_library(package)?;
        let named = env::var("TF_PLUGIN_PROFILE").unwrap_or_default();
        let profile = if named.is_empty() { profile(package)? } else { &named };
        let mut command = if linking.zig { cargo_as(ZIGBUILD.into()) } else { cargo() };
        // A different list of crate types is a different configuration of the target: cargo would
        // rebuild it each time, here and at the next `cargo build --release`.
        match profile {
            RELEASE | "dev" => command.args(["build", "--lib"]),
            _ => command.args(["rustc", "--lib", "--crate-type", "cdylib"]),
        };
        command.current_dir(self.root()).args(["--package", name, "--profile", profile]);
        if let Some(target) = &linking.target {
            command.args(["--target", target]);
        }
        let artifacts = built(command, name)?.into_iter();
        let artifacts = artifacts
            .filter(|artifact| artifact.target.is_cdylib() && artifact.package_id == package.id);
        let files = artifacts.flat_map(|artifact| artifact.filenames);
        let files = files.filter(|file| file.extension() == Some(DLL_EXTENSION)).map(Into::into);
        chosen(files.collect(), linking.target.is_none(), name)
    }
}

/// Chooses the library for this machine among those that cargo has built: its configuration may name other targets.
fn chosen(mut files: Vec<PathBuf>, for_this_machine: bool, package: &str) -> Result<PathBuf> {
    if files.is_empty() {
        bail!("cargo has built no shared library of the package `{package}`");
    }
    if for_this_machine {
        // A file that cannot be read is reported where it is used.
        files.retain(|file| {
            Artefact::read_for_any_machine(file).map_or(true, |library| library.machine == ARCH)
        });
    }
    files.into_iter().next().with_context(|| {
        format!(
            "cargo has built the package `{package}` for other machines than this one ({ARCH}), as CARGO_BUILD_TARGET or \
             `build.target` of its configuration says; unset it, or add this machine's target. `build` and `wheel` take \
             another one with `--target`"
        )
    })
}

/// Runs a build of a package, with cargo's messages on standard error. Returns the artefacts.
fn built(mut command: Command, package: &str) -> Result<Vec<Artifact>> {
    command.arg("--message-format=json-render-diagnostics").stderr(Stdio::inherit());
    let built = command
        .output()
        .with_context(|| format!("cannot run {}", command.get_program().display()))?;
    let status = built.status;
    if !status.success() {
        bail!("the package `{package}` does not build ({status}); cargo's messages are above");
    }
    let messages = Message::parse_stream(&*built.stdout).filter_map(|message| match message {
        Ok(Message::CompilerArtifact(artifact)) => Some(Ok(artifact)),
        Ok(_) => None,
        Err(error) => Some(Err(error)),
    });
    messages.collect::<Result<_, _>>().context("cannot read cargo's messages")
}

/// Refuses a package that builds no shared library.
pub(crate) fn has_library(package: &Package) -> Result<()> {
    if package.targets.iter().any(Target::is_cdylib) {
        return Ok(());
    }
    bail!(
        "the package `{}` makes no shared library; write `crate-type = [\"cdylib\", \"rlib\"]` below `[lib]` in its \
         Cargo.toml",
        package.name
    )
}

/// How a plugin is linked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Linking {
    /// The target to build for, with the version of glibc appended for zig; `None` for this machine.
    pub(crate) target: Option<String>,
    /// Whether to link with zig, by cargo-zigbuild.
    pub(crate) zig: bool,
}

/// The program of cargo-zigbuild, which takes cargo's subcommands.
pub(crate) const ZIGBUILD: &str = "cargo-zigbuild";

/// Returns a command for the cargo that runs this command, or for the one on `PATH`.
pub(crate) fn cargo() -> Command {
    cargo_as(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

fn cargo_as(program: OsString) -> Command {
    let mut command = Command::new(program);
    forget_package(&mut command);
    command
}

/// Removes cargo's variables about the current package from a process's environment. If the process
/// is or starts another cargo, build scripts that read them would run again whenever the package
/// changes, and everything that depends on them would be built again.
pub fn forget_package(command: &mut Command) {
    for (name, _) in env::vars_os() {
        let of_a_package = name.to_str().is_some_and(|name| {
            name == "OUT_DIR"
                || name.starts_with("CARGO_PKG_")
                || name.starts_with("CARGO_MANIFEST_")
        });
        if of_a_package {
            command.env_remove(name);
        }
    }
}

/// The profile if the manifest names none.
const RELEASE: &str = "release";

/// Returns the profile of a package: `release`, or the one that its manifest names.
fn profile(package: &Package) -> Result<&str> {
    match &package.metadata["tf-plugin"]["profile"] {
        Value::Null => Ok(RELEASE),
        Value::String(profile) => Ok(profile),
        other => bail!(
            "`package.metadata.tf-plugin.profile` of the package `{}` is {other}; name a profile, such as \"release\"",
            package.name
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cargo_does_not_learn_which_package_runs_it() {
        // Cargo has set it for this test.
        assert_eq!(env::var("CARGO_PKG_NAME").as_deref(), Ok("cargo-tf-plugin"));
        let command = cargo();
        let passed =
            |name: &str| command.get_envs().all(|(other, value)| other != name || value.is_some());
        for name in ["CARGO_PKG_NAME", "CARGO_PKG_VERSION", "CARGO_MANIFEST_DIR", "OUT_DIR"] {
            assert!(!passed(name), "{name}");
        }
        assert!(passed("CARGO_TARGET_DIR") && passed("CARGO_HOME"));
    }

    #[test]
    fn the_library_of_this_machine_is_chosen_of_several_targets() {
        let scratch = tempfile::tempdir().expect("a directory");
        let [x86_64, aarch64] = [62, 183].map(|machine| {
            let mut header = [0; 64];
            header[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
            (header[16], header[18], header[20], header[52]) = (3, machine, 1, 64);
            let path = scratch.path().join(machine.to_string());
            std::fs::write(&path, header).expect("written");
            path
        });
        let (own, other) = if ARCH == "x86_64" { (x86_64, aarch64) } else { (aarch64, x86_64) };
        let both = vec![other.clone(), own.clone()];
        assert_eq!(chosen(both, true, "x").expect("one is"), own);
        assert_eq!(chosen(vec![other.clone()], false, "x").expect("it was named"), other);
        let error = chosen(vec![other], true, "x").expect_err("none is").to_string();
        assert!(error.contains("`x` for other machines than this one"), "{error}");
    }

    #[test]
    fn a_manifest_names_the_profile_or_says_nothing() {
        let workspace = Workspace::current().expect("tests run in the workspace");
        let mut package = workspace.package("s3").expect("an example").clone();
        assert_eq!(profile(&package).expect("a profile"), "dist-small");
        package.metadata = Value::Null;
        assert_eq!(profile(&package).expect("a profile"), "release");
        package.metadata = serde_json::json!({"tf-plugin": {"profile": 1}});
        let error = profile(&package).expect_err("no name").to_string();
        assert!(error.contains("package `s3` is 1; name a profile"), "{error}");
    }
}

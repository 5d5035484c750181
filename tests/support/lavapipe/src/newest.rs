//! A newer lavapipe, with cooperative matrices, and a newer glslang, which supports them: from the release after Debian
//! 12, with all that they need, including the C library. So the dynamic linker of that release starts programs.

use crate::tree::{Tree, libraries};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

const PACKAGES: &str = "libvulkan1 mesa-vulkan-drivers vulkan-validationlayers glslang-tools";
const SUITES: &str = "trixie trixie-backports";

/// Returns the command for a program of this machine with only this driver, and with the validation layer on.
///
/// # Panics
/// Panics if it cannot be installed; the text says why.
#[must_use]
pub fn command(program: &Path) -> Command {
    let root = installed();
    let mut command = linked(program);
    command.envs(crate::environment_in(root));
    // Programs that this one starts use the C library of the machine.
    command.env_remove("LD_LIBRARY_PATH");
    command
}

/// Returns the command for the compiler from GLSL to SPIR-V.
///
/// # Panics
/// Panics as [`command`] does.
#[must_use]
pub fn glslang() -> Command {
    linked(&installed().join("usr/bin/glslangValidator"))
}

fn linked(program: &Path) -> Command {
    let libraries = libraries(installed());
    let linker = match std::env::consts::ARCH {
        "x86_64" => "ld-linux-x86-64.so.2",
        _ => "ld-linux-aarch64.so.1",
    };
    // Libraries that only the machine has come last.
    let mut path = libraries.clone().into_os_string();
    if let Some(others) = std::env::var_os("LD_LIBRARY_PATH") {
        path.push(":");
        path.push(others);
    }
    let mut command = Command::new(libraries.join(linker));
    command.arg("--library-path").arg(path).arg(program);
    command
}

fn installed() -> &'static Path {
    static INSTALLED: OnceLock<PathBuf> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        // apt-get with its own state, in which nothing is installed, and with the package source of this machine.
        let download = format!(
            "mkdir -p state/lists/partial cache/archives/partial
             : >status
             from=$(apt-get indextargets --format '$(REPO_URI)' 'Origin: Debian' 'Label: Debian' | head -n 1)
             [ -n \"$from\" ] || {{ echo 'apt-get knows no packages of Debian; run `apt-get update`' >&2; exit 1; }}
             for suite in {SUITES}; do
               echo \"deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $from $suite main\"
             done >sources.list
             own() {{
               apt-get -qq -o Dir::State=\"$PWD/state\" -o Dir::State::status=\"$PWD/status\" -o Dir::Cache=\"$PWD/cache\" \
                 -o Dir::Etc::SourceList=\"$PWD/sources.list\" -o Dir::Etc::SourceParts=- -o Acquire::Languages=none \
                 -o APT::Sandbox::User=\"$(id -un)\" \"$@\"
             }}
             own update
             own --yes --no-install-recommends --target-release trixie-backports --download-only install {PACKAGES}
             mv cache/archives/*.deb ."
        );
        let tree = Tree { name: "lavapipe-newest", version: "1", download };
        tree.install().unwrap_or_else(|error| {
            panic!("the newer lavapipe, of Debian's {SUITES}, cannot be fetched: {error}")
        })
    })
}

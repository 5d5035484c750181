//! Crates outside of the workspace, as authors have them.

use cargo_tf_plugin::workspace::Workspace;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// The profiles of the workspace, so that what these crates depend on is built once for all of them and where it can be
/// with the workspace. None is optimised: that the libraries of users work is shown with the feature `optimised`.
const SETTINGS: [&str; 1] = ["profile.release.opt-level=0"];

/// Where templates and documents expect the SDK.
const SDK: [&str; 2] = ["path = \"../../../", "path = \"../tf-fs-plugin/"];

/// A file of the workspace.
pub fn read(path: &str) -> String {
    fs::read_to_string(workspace().root().join(path)).expect("it is there")
}

/// Where cargo puts what it builds.
pub fn target() -> PathBuf {
    workspace().target_dir()
}

fn workspace() -> Workspace {
    Workspace::current().expect("tests run in the workspace")
}

/// Builds a crate of these files, in the profile `dev` or `release`, and returns its library. What is built stays for the
/// next time.
pub fn build(name: &str, manifest: &str, sources: &[(&str, String)], release: bool) -> PathBuf {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let workspace = workspace();
    let directory = workspace.target_dir().join("outside").join(name);
    let sdk = format!("path = \"{}/", workspace.root().display());
    let manifest = SDK.iter().fold(manifest.to_owned(), |text, from| text.replace(from, &sdk));
    assert!(manifest.contains(&sdk), "{manifest}");
    let own = if manifest.contains("[workspace]") { "" } else { "\n[workspace]\n" };
    let write = |file: &str, text: &str| {
        let path = directory.join(file);
        fs::create_dir_all(path.parent().expect("a directory")).expect("made");
        // Unchanged crates are not built again.
        if fs::read_to_string(&path).ok().as_deref() != Some(text) {
            fs::write(path, text).expect("written");
        }
    };
    write("Cargo.toml", &format!("{manifest}{own}"));
    // The profiles of the workspace, so that what it has built is not built again.
    let of_workspace = fs::read_to_string(workspace.root().join("Cargo.toml")).expect("a manifest");
    let start = of_workspace.find("[profile.").expect("profiles are the end of it");
    write(".cargo/config.toml", &of_workspace[start..]);
    sources.iter().for_each(|(file, text)| write(file, text));
    // The versions that the workspace was tested with.
    fs::copy(workspace.root().join("Cargo.lock"), directory.join("Cargo.lock")).expect("copied");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet"]).current_dir(&directory);
    cargo.env("CARGO_TARGET_DIR", workspace.target_dir());
    cargo.args(SETTINGS.iter().flat_map(|setting| ["--config", setting]));
    if release {
        cargo.arg("--release");
    }
    let built = cargo.output().expect("cargo runs");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let profile = if release { "release" } else { "debug" };
    workspace.target_dir().join(profile).join(format!("lib{}.so", name.replace('-', "_")))
}

/// A document's first code block in a language.
pub fn block<'d>(document: &'d str, language: &str) -> &'d str {
    let (_, rest) = document
        .split_once(&format!("```{language}\n"))
        .unwrap_or_else(|| panic!("the document has no block of {language}"));
    rest.split_once("```").expect("the block ends").0
}

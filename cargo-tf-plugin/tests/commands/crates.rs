//! New crates, and a TensorFlow that their wheels are installed into.

use std::env;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::output::{json, names, root, text};
use crate::overlay::Overlay;
use crate::program;
use cargo_tf_plugin::workspace::Workspace;
use cargo_tf_plugin::{CANDIDATES, MATRIX, NEWEST, Packages, TensorFlow};

/// Returns the target directory, which is kept between runs, and shared by all new crates and the workspace.
pub(super) fn target() -> PathBuf {
    let workspace = Workspace::current().expect("tests run in the workspace");
    workspace.target_dir().to_owned()
}

/// The command for new crates, in the profile of the workspace.
pub(super) fn tool(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = program::tool();
    command.current_dir(directory).args(arguments).env("CARGO_TARGET_DIR", target());
    command.env("CARGO", env!("CARGO")).env("TF_PLUGIN_PROFILE", "dev");
    command.env_remove("SOURCE_DATE_EPOCH");
    command
}

/// Runs a command that exits with `code`, and returns its output.
#[track_caller]
pub(super) fn exits(command: &mut Command, code: i32) -> String {
    let output = command.output().expect("it runs");
    assert_eq!(output.status.code(), Some(code), "{command:?}: {}", text(&output));
    text(&output)
}

#[track_caller]
pub(super) fn succeeds(command: &mut Command) -> String {
    exits(command, 0)
}

#[track_caller]
pub(super) fn fails(command: &mut Command) -> String {
    exits(command, 1)
}

pub(super) fn cargo(directory: &Path, arguments: &[&str]) -> String {
    let mut cargo = program::quick(Command::new(env!("CARGO")));
    succeeds(cargo.args(arguments).current_dir(directory).env("CARGO_TARGET_DIR", target()))
}

/// A new crate, in a directory that is removed with it. It is outside of the workspace, as an
/// author's is, and always at the same place, because cargo keeps what it builds for each path.
pub(super) struct Fresh {
    pub(super) parent: PathBuf,
    pub(super) directory: PathBuf,
}

impl Drop for Fresh {
    fn drop(&mut self) {
        // The next run removes what stays.
        let _ = fs::remove_dir_all(&self.parent);
        // Only the last one finds it empty.
        let _ = self.parent.parent().map(fs::remove_dir);
    }
}

impl Fresh {
    pub(super) fn make(name: &str, arguments: &[&str]) -> Self {
        let mut clone = DefaultHasher::new();
        target().hash(&mut clone);
        let parent = format!("tf-plugin-author-{:x}", clone.finish());
        let parent = env::temp_dir().join(parent).join(name);
        if parent.exists() {
            fs::remove_dir_all(&parent).expect("removed");
        }
        fs::create_dir_all(&parent).expect("made");
        succeeds(tool(&parent, &["new", name]).args(arguments));
        assert_eq!(names(&parent), [name], "something is left beside the new crate");
        fs::create_dir(parent.join(".cargo")).expect("made");
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
        // The profiles of the workspace, so that what it has built is not built again.
        let manifest = fs::read_to_string(root.join("Cargo.toml")).expect("a manifest");
        let profiles = &manifest[manifest.find("[profile.").expect("profiles are the end of it")..];
        fs::write(parent.join(".cargo/config.toml"), profiles).expect("written");
        let directory = parent.join(name);
        // The versions that the workspace was tested with, so that nothing is built twice.
        fs::copy(root.join("Cargo.lock"), directory.join("Cargo.lock")).expect("copied");
        Self { parent, directory }
    }

    /// Gives its dependencies the features that they have in the workspace, which has built them. With `matrix` the
    /// crate stays as its author has it.
    pub(super) fn shares_dependencies(&self, features: &[&str]) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("tests/features");
        let shared = format!("tf-plugin-features = {{ path = {path:?}, features = {features:?} }}");
        if !cfg!(feature = "matrix") {
            self.edit("Cargo.toml", "[dependencies]\n", &format!("[dependencies]\n{shared}\n"));
        }
    }

    pub(super) fn is_formatted(&self) {
        cargo(&self.directory, &["fmt", "--check"]);
    }

    pub(super) fn edit(&self, file: &str, from: &str, to: &str) {
        let path = self.directory.join(file);
        let content = fs::read_to_string(&path).expect("it is there");
        assert!(content.contains(from), "`{from}` is missing in {content}");
        fs::write(path, content.replace(from, to)).expect("written");
    }

    pub(super) fn append(&self, file: &str, text: &str) {
        let path = self.directory.join(file);
        let content = fs::read_to_string(&path).expect("it is there");
        fs::write(path, content + text).expect("written");
    }

    pub(super) fn wheel(&self, directory: &Path) -> PathBuf {
        let known = json(tool(&self.directory, &["wheel", "--json", "--out-dir"]).arg(directory));
        let mut files = fs::read_dir(directory).expect("a directory");
        let wheel = files.next().expect("a wheel").expect("an entry").path();
        assert!(files.next().is_none(), "more than the wheel is in {}", directory.display());
        assert_eq!(known["path"].as_str(), wheel.to_str(), "{known}");
        assert_eq!(known["bytes"], fs::metadata(&wheel).expect("a file").len(), "{known}");
        wheel
    }
}

/// A site-packages with TensorFlow, into which a test may install packages.
pub(super) struct Site(pub(super) Overlay);

impl Site {
    pub(super) fn new() -> Self {
        Self::of(program::environment(&[]))
    }

    pub(super) fn of(environment: Overlay) -> Self {
        let site = Self(environment);
        fs::remove_dir(site.0.plugins()).expect("nothing is in it");
        site
    }

    pub(super) fn files(&self) -> Vec<String> {
        names(self.0.plugins().parent().expect("site-packages"))
    }

    pub(super) fn python(&self, arguments: &[&str]) -> Command {
        let mut command = program::quick(Command::new(self.0.python()));
        command.args(arguments).env("TF_CPP_MIN_LOG_LEVEL", "1");
        for name in ["TF_FS_PLUGIN_AUTOLOAD", "TF_PLUGGABLE_DEVICE_LIBRARY_PATH"] {
            command.env_remove(name);
        }
        command
    }

    pub(super) fn pip(&self, arguments: &[&str]) -> String {
        let pip = ["-m", "pip", "--disable-pip-version-check", "--no-input"];
        succeeds(self.python(&pip).args(arguments).env("PIP_NO_INDEX", "1"))
    }
}

/// Returns the wheel of a package of the workspace, which is built into this directory.
pub(super) fn wheel_of(package: &str, directory: &Path) -> String {
    let mut wheel = program::tool();
    wheel.current_dir(root()).args(["tf-plugin", "wheel", "--json", "--package", package]);
    json(wheel.arg("--out-dir").arg(directory))["path"].as_str().expect("a path").to_owned()
}

/// Installs the wheel of a package of the workspace.
pub(super) fn install(site: &Site, package: &str) {
    let scratch = tempfile::tempdir().expect("a directory");
    site.pip(&["install", "--no-deps", &wheel_of(package, scratch.path())]);
}

/// The releases to install wheels in: with `matrix` all of them.
pub(super) fn releases() -> Vec<&'static str> {
    let mut releases = vec![NEWEST];
    if cfg!(feature = "matrix") {
        releases.extend(MATRIX.iter().chain(CANDIDATES));
    }
    releases
}

/// Returns an environment with a TensorFlow release and a wheel.
pub(super) fn site_with(release: &str, wheel: &str) -> Site {
    let tensorflow = TensorFlow::pinned(release).expect("TensorFlow is provided");
    let site = Site::of(Overlay::new(&tensorflow));
    site.pip(&["install", "--no-deps", wheel]);
    site
}

/// Says what the file lacks to be a valid wheel for other systems.
pub(super) fn judge(wheel: &Path) -> String {
    let tools = Packages::provide("wheel-tools", "auditwheel==6.4.2\npackaging==25.0\n", None)
        .expect("auditwheel is provided");
    let script = include_str!("scripts/judge.py");
    let valid = succeeds(Command::new(tools.python()).args(["-c", script]).arg(wheel));
    let audit = ["-m", "auditwheel", "show"];
    valid + &succeeds(Command::new(tools.python()).args(audit).arg(wheel))
}

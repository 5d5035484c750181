//! Plugins built by cargo as an author builds them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A crate around a file in `fixtures/`, outside of this workspace.
struct Fixture {
    source: &'static str,
    edition: &'static str,
    /// The manifest's `[profile.dev]`.
    profile: &'static str,
    /// The name by which the crate knows `tf-fs-plugin`.
    sdk: &'static str,
}

impl Fixture {
    const fn new(source: &'static str) -> Self {
        let (edition, profile, sdk) = ("2024", "", "tf-fs-plugin");
        Self { source, edition, profile, sdk }
    }

    fn package(&self) -> String {
        let panic = if self.profile.is_empty() { "" } else { "_with_profile" };
        format!("fixture_{}_{}{panic}", self.source, self.edition)
    }

    /// Runs a command of cargo without network, with the versions on which this workspace agreed.
    fn cargo(&self, command: &str) -> Output {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let workspace = here.join("../..");
        let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let package = self.package();
        let folder = scratch.join(&package);
        fs::create_dir_all(&folder).unwrap();
        let manifest = format!(
            "[package]
             name = {package:?}
             version = '0.0.0'
             edition = {edition:?}
             description = 'Fixture'
             license = 'MIT'
             repository = 'https://example.org'
             readme = 'README.md'
             keywords = ['fixture']
             categories = ['filesystem']

             [lib]
             path = {source:?}
             crate-type = ['cdylib', 'rlib']

             [dependencies]
             {sdk} = {{ package = 'tf-fs-plugin', path = {path:?}, version = '*' }}

             [profile.dev]
             debug = 'none'
             {profile}

             [workspace]",
            edition = self.edition,
            source = here.join("fixtures").join(self.source).with_extension("rs"),
            sdk = self.sdk,
            path = workspace.join("tf-fs-plugin"),
            profile = self.profile,
        );
        fs::write(folder.join("Cargo.toml"), manifest).unwrap();
        fs::copy(workspace.join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
        Command::new(env!("CARGO"))
            .args([command, "--offline", "--color", "never"])
            .current_dir(&folder)
            .env("CARGO_TARGET_DIR", target())
            .output()
            .unwrap()
    }
}

/// The workspace's, which has most of what the crates depend on.
fn target() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().to_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn succeed(output: &Output) {
    assert!(output.status.success(), "{}", stderr(output));
}

#[test]
fn strict_crates_of_each_edition_have_no_warning() {
    for edition in ["2021", "2024"] {
        succeed(&Fixture { edition, ..Fixture::new("plugin") }.cargo("clippy"));
        succeed(&Fixture { edition, sdk: "tf", ..Fixture::new("plugins") }.cargo("clippy"));
    }
}

#[test]
fn a_strict_crate_has_no_warning_in_its_tests_and_documentation() {
    let fixture = Fixture::new("plugin");
    succeed(&fixture.cargo("test"));
    succeed(&fixture.cargo("doc"));
    let documented = pages(&target().join("doc").join(fixture.package()));
    assert!(documented.iter().any(|page| page == "index.html"), "{documented:?}");
    // The macro that refuses a second plugin is in the crate, and hidden.
    let macros: Vec<_> = documented.iter().filter(|page| page.starts_with("macro.")).collect();
    assert!(macros.is_empty(), "{macros:?}");
}

/// Names of the files that rustdoc has written for a crate.
fn pages(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn panic_abort_is_an_error_with_the_fix() {
    let profile = "panic = 'abort'";
    let output = Fixture { profile, ..Fixture::new("plugin") }.cargo("build");
    assert!(!output.status.success());
    let stderr = stderr(&output);
    let errors: Vec<_> = stderr.lines().filter(|line| line.starts_with("error")).collect();
    let [error, cargo] = errors[..] else { panic!("{stderr}") };
    assert_eq!(
        error,
        "error: with `panic = \"abort\"` a panic in this plugin would kill the Python process instead \
         of becoming an error; remove `panic = \"abort\"` from the profile in Cargo.toml, or write \
         `allow_panic_abort`"
    );
    assert!(cargo.starts_with("error: could not compile"), "{stderr}");
    assert!(stderr.contains("#[filesystem_plugin(schemes(\"empty\", \"void\"))]\n"), "{stderr}");
}

#[test]
fn panic_abort_can_be_allowed() {
    let profile = "panic = 'abort'";
    succeed(&Fixture { profile, sdk: "tf", ..Fixture::new("plugins") }.cargo("build"));
}

//! Plugins built by cargo as an author builds them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use object::{Object as _, ObjectSymbol as _};

/// A crate around a file in `fixtures/`, outside of this workspace.
struct Fixture {
    source: &'static str,
    edition: &'static str,
    /// What the manifest has under `[profile.dev]`.
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
             debug = false
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

    /// Path of the shared library.
    fn build(&self) -> PathBuf {
        succeed(&self.cargo("build"));
        let [prefix, suffix] = [std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX];
        target().join("debug").join(format!("{prefix}{}{suffix}", self.package()))
    }
}

fn target() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("target")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn succeed(output: &Output) {
    assert!(output.status.success(), "{}", stderr(output));
}

/// Names of C functions, and of libraries.
#[derive(Debug)]
struct Symbols {
    exported: Vec<String>,
    imported: Vec<String>,
    libraries: Vec<String>,
}

fn symbols(library: &Path) -> Symbols {
    let data = fs::read(library).unwrap();
    let file = object::File::parse(&*data).unwrap();
    // In Mach-O each C name has an underscore in front.
    let prefix = if file.format() == object::BinaryFormat::MachO { "_" } else { "" };
    let names = |defined: bool| -> Vec<String> {
        let symbols = file.dynamic_symbols().filter(|symbol| symbol.is_definition() == defined);
        let names = symbols
            .map(|symbol| symbol.name().unwrap())
            .map(|name| name.strip_prefix(prefix).unwrap_or(name));
        let mut names: Vec<_> = names.filter(|name| !name.is_empty()).map(String::from).collect();
        names.sort();
        names
    };
    let libraries = file.import_libraries().unwrap();
    Symbols {
        exported: names(true),
        imported: names(false),
        libraries: libraries
            .map(|library| String::from_utf8_lossy(library.unwrap().name()).into_owned())
            .collect(),
    }
}

/// The library loads without TensorFlow: it finds the functions of TensorFlow once it runs.
fn assert_needs_no_tensorflow(symbols: &Symbols) {
    let tensorflow = |name: &&String| name.starts_with("TF_") || name.starts_with("TSL_");
    let imported: Vec<_> = symbols.imported.iter().filter(tensorflow).collect();
    assert!(imported.is_empty(), "{imported:?}");
    // What is always there shows that imports are seen at all.
    assert!(symbols.imported.iter().any(|name| name == "dlsym"), "{symbols:?}");
    assert!(!symbols.libraries.is_empty());
    let tensorflow = |name: &&String| name.contains("tensorflow");
    let libraries: Vec<_> = symbols.libraries.iter().filter(tensorflow).collect();
    assert!(libraries.is_empty(), "{libraries:?}");
}

#[test]
fn a_plugin_exports_two_functions() {
    let symbols = symbols(&Fixture::new("plugin").build());
    assert_eq!(symbols.exported, ["TF_InitKernel", "TF_InitPlugin"]);
    assert_needs_no_tensorflow(&symbols);
}

#[test]
fn without_autoload_a_plugin_exports_one_function() {
    let symbols = symbols(&Fixture::new("not_registered_on_import").build());
    assert_eq!(symbols.exported, ["TF_InitPlugin"]);
    assert_needs_no_tensorflow(&symbols);
}

#[test]
fn a_plugin_of_several_types_under_another_name_exports_the_same() {
    let fixture = Fixture { sdk: "tf", ..Fixture::new("plugins") };
    assert_eq!(symbols(&fixture.build()).exported, ["TF_InitPlugin"]);
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
    let fixture = Fixture { profile, ..Fixture::new("panic_abort_allowed") };
    assert_eq!(symbols(&fixture.build()).exported, ["TF_InitKernel", "TF_InitPlugin"]);
}

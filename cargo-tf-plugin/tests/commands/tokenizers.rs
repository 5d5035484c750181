//! `plugins/tokenizers` in TensorFlow: the wheel that users install.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::crates::{Site, releases, site_with, succeeds, wheel_of};
use crate::output::{assert_all, root};
use cargo_tf_plugin::{NEWEST, Packages};

const REQUIREMENTS: &str =
    include_str!("../../../plugins/tokenizers/tests/scripts/requirements.txt");

/// Returns an environment with a TensorFlow release and the wheel.
fn site(release: &str) -> Site {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    site_with(release, &wheel_of("tensorflow-tokenizers", scratch.path()))
}

fn script(name: &str) -> PathBuf {
    root().join("plugins/tokenizers/tests/scripts").join(name)
}

/// Runs Python's tokenizers: see `reference.py`.
fn reference(command: &str, directory: &Path, numbers: &[usize]) {
    let packages = Packages::provide("tokenizers", REQUIREMENTS, None).expect("the packages");
    let mut python = Command::new(packages.python());
    python.arg("-B").arg(script("reference.py")).arg(command).arg(directory);
    succeeds(python.args(numbers.iter().map(usize::to_string)));
}

/// Writes tokenizers into a new directory.
fn tokenizers() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a scratch directory");
    reference("train", directory.path(), &[]);
    directory
}

/// Runs a script of the plugin's tests, which prints `ok`.
fn run(site: &Site, name: &str, arguments: &[&Path]) {
    let printed = succeeds(site.python(&["-B"]).arg(script(name)).args(arguments));
    assert!(printed.lines().any(|line| line == "ok"), "{name}: {printed}");
}

#[test]
fn ids_in_tensorflow_are_those_of_python_s_tokenizers() {
    let directory = tokenizers();
    let (random, share) = if tf_plugin_fuzz::is_whole() { (5000, 8) } else { (100, 400) };
    reference("run", directory.path(), &[0, random, share]);
    run(&site(NEWEST), "parity.py", &[directory.path()]);
}

#[test]
fn programs_use_tokenizers() {
    let tokenizers = tokenizers();
    for release in releases() {
        let scratch = tempfile::tempdir().expect("a scratch directory");
        run(&site(release), "uses.py", &[&tokenizers.path().join("minilm.json"), scratch.path()]);
    }
}

/// Returns the programs in the plugin's README: a block that begins with an import begins one, the next ones go on.
fn programs() -> Vec<String> {
    let readme = fs::read_to_string(root().join("plugins/tokenizers/README.md")).expect("a file");
    let blocks = readme.split("```python\n").skip(1);
    let mut programs: Vec<String> = Vec::new();
    for block in blocks.map(|rest| rest.split("```").next().unwrap_or_default()) {
        match programs.last_mut() {
            Some(program) if !block.starts_with("import ") => program.push_str(block),
            _ => programs.push(block.to_owned()),
        }
    }
    programs
}

#[test]
fn the_readme_s_programs_run_with_the_wheel_alone() {
    let tokenizers = tokenizers();
    for release in releases() {
        let site = site(release);
        let scratch = tempfile::tempdir().expect("a scratch directory");
        let to = |name: &str| scratch.path().join(name);
        fs::copy(tokenizers.path().join("minilm.json"), to("tokenizer.json")).expect("copied");
        fs::write(to("lines.txt"), "Hello, world!\n\nunaffable\n").expect("written");
        let mut printed = String::new();
        let programs = programs();
        assert_eq!(programs.len(), 3, "{programs:?}");
        for program in programs {
            // Keras 2 exports models by `save`, as the README says.
            let program = match release {
                "2.12.1" => program
                    .replace(".export(\"served\")", ".save(\"served\")")
                    .replace(".serve(", ".signatures[\"serving_default\"](")
                    .replace("]))", "]))[\"dense\"]"),
                _ => program,
            };
            printed += &succeeds(site.python(&["-c", &program]).current_dir(scratch.path()));
        }
        let [first, last] =
            ["[[101, 7592, 1010, 2088, 999, 102], [101, 102]", "[101, 14477, 20961, 3468, 102]]>"];
        assert_all(&printed, &[first, last, "served [", "loaded ["]);
        let doctor = succeeds(&mut site.python(&["-m", "tensorflow_tokenizers", "doctor"]));
        assert_all(&doctor, &["7 of 7 are registered: HfDetokenize, ", "has the plugin."]);
        site.pip(&["uninstall", "--yes", "tensorflow-tokenizers"]);
        assert!(!site.0.plugins().exists(), "something is left");
    }
}

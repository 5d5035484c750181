//! The published interfaces of this repository, compared with the recorded ones.

use cargo_metadata::{Metadata, MetadataCommand, Package};
use cargo_tf_plugin::forget_package;
use public_api::PublicApi;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The repository.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("this package is two directories deep").to_owned()
}

/// Runs cargo in the repository.
pub fn cargo(arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO"));
    forget_package(&mut command);
    let output = command
        .current_dir(root())
        .args(arguments)
        .envs(environment.iter().copied())
        .output()
        .expect("cargo can be run");
    assert!(
        output.status.success(),
        "`cargo {}` fails:\n{}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// Returns cargo's metadata of the packages of this repository.
pub fn metadata() -> Metadata {
    MetadataCommand::new()
        .current_dir(root())
        .no_deps()
        .exec()
        .expect("cargo describes the workspace")
}

/// Whether the package is for others.
pub fn is_published(package: &Package) -> bool {
    package.publish.is_none()
}

/// Whether the package is a library for others. `cargo-tf-plugin` is a command, and what it has as a library is for the
/// tests of this repository.
pub fn is_library(package: &Package) -> bool {
    is_published(package) && package.name.as_str() != "cargo-tf-plugin"
}

/// The public items of each library, one a line: what users of the crate can name. Builds in `target`, all at once.
pub fn interfaces(packages: &[&str], target: &Path) -> Vec<String> {
    // Rustdoc writes JSON in nightly releases only, and in others when it is told that they are one. Crates ask in
    // their build scripts whether they are, so it has its own target directory.
    let target_text = target.to_str().expect("the path is UTF-8");
    let mut arguments = vec!["doc", "--no-deps", "--lib", "--all-features"];
    arguments.extend(["--locked", "--target-dir", target_text]);
    arguments.extend(packages.iter().flat_map(|package| ["--package", package]));
    let flags = "-Zunstable-options --output-format=json";
    let _ = cargo(&arguments, &[("RUSTC_BOOTSTRAP", "1"), ("RUSTDOCFLAGS", flags)]);
    let interface = |package: &&str| {
        let json = target.join("doc").join(format!("{}.json", package.replace('-', "_")));
        let interface: PublicApi = public_api::Builder::from_rustdoc_json(&json)
            .omit_blanket_impls(true)
            .omit_auto_trait_impls(true)
            .build()
            .unwrap_or_else(|error| panic!("{} cannot be read: {error}", json.display()));
        interface.items().map(|item| format!("{item}\n")).collect()
    };
    packages.iter().map(interface).collect()
}

/// A file of the repository.
pub fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

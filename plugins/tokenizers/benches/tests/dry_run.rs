//! The benchmark on a few texts, with a wheel of the profile `dev`: each contestant runs, and those of one implementation have
//! the same ids.

use std::path::{Path, PathBuf};
use std::process::Command;

use cargo_tf_plugin::forget_package;
use cargo_tf_plugin::workspace::Workspace;
use tf_plugin_tokenizers_benches::clients::{Client, Clients};
use tf_plugin_tokenizers_benches::tables::{Size, TOKENIZERS, memory, speed};

/// tensorflow-text differs in some texts, of which few are measured here.
const SIZE: Size = Size { batches: &[(7, 100)], rounds: 1, many: (200, 32), tolerance: 0.02 };

/// Builds the wheel by the command of this workspace, with the features for which `cargo test --workspace` has built both.
fn wheel(directory: &Path) -> PathBuf {
    let workspace = Workspace::current().expect("tests run in the workspace");
    let cargo = workspace.root().join("cargo-tf-plugin/tests/commands/scripts/cargo.sh");
    let run = |command: &mut Command| {
        forget_package(command);
        command.current_dir(workspace.root()).env("TF_PLUGIN_TEST_CARGO", env!("CARGO"));
        command.env("CARGO", &cargo).env("TF_PLUGIN_PROFILE", "dev");
        let status = command.status().expect("it runs");
        assert!(status.success(), "{command:?}: {status}");
    };
    run(Command::new(&cargo).args(["build", "--quiet", "--package", "cargo-tf-plugin"]));
    let tool = workspace.target_dir().join("debug/cargo-tf-plugin");
    let package = ["wheel", "--package", "tensorflow-tokenizers", "--out-dir"];
    run(Command::new(tool).args(package).arg(directory));
    let mut files = directory.read_dir().expect("a directory");
    files.next().expect("a wheel").expect("an entry").path()
}

#[test]
fn each_contestant_runs_and_has_the_same_ids() {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let wheel = wheel(scratch.path());
    let clients = Clients::provide("tokenizers-dry-run", Some(&wheel), SIZE).expect("clients");
    for (tokenizer, others) in TOKENIZERS {
        let table = speed(&clients, tokenizer, others, SIZE).expect("the same ids").to_string();
        let names = others.iter().copied().chain([Client::PyFunction]).map(Client::name);
        for part in names.chain(["the crate", "\n| 7 "]) {
            assert!(table.contains(part), "{part}: {table}");
        }
    }
    let table = memory(&clients, SIZE).expect("memory").to_string();
    assert!(table.contains("200 texts in batches of 32"), "{table}");
}

//! The table of targets has all of them.

use std::fs;
use std::path::{Path, PathBuf};

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() && entry.file_name() != "target" {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The names of the tests that call `fuzz!`.
fn targets(source: &str) -> Vec<String> {
    let tests = source.split("#[test]").skip(1).filter(|test| test.contains("fuzz!("));
    let names = tests.filter_map(|test| test.split_once("fn ")?.1.split_once('('));
    names.map(|(name, _)| name.to_owned()).collect()
}

#[test]
fn the_table_has_all_targets() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let mut all = Vec::new();
    for folder in [
        "tf-fs-plugin",
        "se-plugin",
        "se-plugin-gpu",
        "tf-plugin-core",
        "tf-fs-object-store",
        "plugins",
    ] {
        sources(&root.join(folder), &mut all);
    }
    let mut found: Vec<String> =
        all.iter().flat_map(|path| targets(&fs::read_to_string(path).unwrap())).collect();
    let readme = include_str!("../README.md");
    let rows = readme.lines().filter(|line| line.starts_with("| `"));
    let cell = |row: &str| row.split('`').nth(3).unwrap().rsplit("::").next().unwrap().to_owned();
    let mut listed: Vec<String> = rows.map(cell).collect();
    listed.sort();
    found.sort();
    assert_eq!(found, listed, "tests/fuzz/README.md has a row for each target");
}

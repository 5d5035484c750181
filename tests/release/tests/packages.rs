//! The published packages: one version, complete metadata, all files.

use cargo_metadata::Package;
use std::collections::BTreeSet;
use std::fs;
use tf_plugin_release_tests::{cargo, is_published, metadata, read, root};

/// Fails with all that is wrong, a line each.
#[track_caller]
fn nothing_is(wrong: &[String]) {
    assert!(wrong.is_empty(), "\n  {}\n", wrong.join("\n  "));
}

fn published() -> Vec<Package> {
    metadata().packages.into_iter().filter(is_published).collect()
}

/// Everything in a text that is between two others.
fn between<'t>(text: &'t str, start: &str, end: char) -> Vec<&'t str> {
    text.split(start).skip(1).filter_map(|rest| rest.split(end).next()).collect()
}

/// The version that all packages are to have: that of the workspace.
fn version() -> String {
    let manifest = read("Cargo.toml");
    let (_, package) = manifest.split_once("[workspace.package]").expect("the workspace's package");
    between(package, "version = \"", '"').first().expect("a version").to_string()
}

#[test]
fn all_packages_have_one_version() {
    let version = version();
    let mut wrong = Vec::new();
    let metadata = metadata();
    let members: BTreeSet<_> =
        metadata.packages.iter().map(|package| package.name.as_str()).collect();
    for package in &metadata.packages {
        if package.version.to_string() != version {
            wrong.push(format!(
                "{} has version {}, and the workspace {version}: write `version.workspace = true` into {}",
                package.name, package.version, package.manifest_path
            ));
        }
        // Those that are published depend on one another in exactly this version: the macros write code for it.
        for dependency in &package.dependencies {
            let wanted = format!("={version}");
            let is_left_out = dependency.req.to_string() == "*" && dependency.path.is_some();
            if members.contains(dependency.name.as_str())
                && !is_left_out
                && dependency.req.to_string() != wanted
            {
                wrong.push(format!(
                    "{} wants {} {}: write {wanted} into [workspace.dependencies] of Cargo.toml",
                    package.name, dependency.name, dependency.req
                ));
            }
        }
    }
    nothing_is(&wrong);
}

#[test]
fn published_packages_say_what_the_registry_shows() {
    let oldest = read("Cargo.toml");
    let oldest = between(&oldest, "rust-version = \"", '"')[0].to_owned();
    let mut wrong = Vec::new();
    for package in published() {
        let mut says = |holds: bool, what: &str| {
            if !holds {
                wrong.push(format!("{}: {what} ({})", package.name, package.manifest_path));
            }
        };
        let description = package.description.as_deref().unwrap_or_default();
        says(
            (20..=120).contains(&description.len()),
            "`description` is a line of 20 to 120 letters",
        );
        says(!description.ends_with('.'), "`description` has no full stop at its end");
        says(
            package.license.as_deref() == Some("MIT OR Apache-2.0"),
            "`license` is the workspace's",
        );
        says((1..=5).contains(&package.keywords.len()), "the registry takes 1 to 5 `keywords`");
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_+".contains(c);
        let is_keyword = |word: &String| word.len() <= 20 && word.chars().all(plain);
        says(package.keywords.iter().all(is_keyword), "`keywords` have 20 letters at most");
        says((1..=5).contains(&package.categories.len()), "the registry takes 1 to 5 `categories`");
        let documentation = format!("https://docs.rs/{}", package.name);
        says(package.documentation.as_ref() == Some(&documentation), "`documentation` is its page");
        says(package.readme.is_some(), "`readme` is a file for the registry's page");
        let version = package
            .rust_version
            .as_ref()
            .map(|version| format!("{}.{}", version.major, version.minor));
        says(version.as_ref() == Some(&oldest), "`rust-version` is the workspace's");
        if !package.features.is_empty() {
            let documented = package.metadata.pointer("/docs/rs/all-features");
            says(
                documented.is_some_and(|all| all == true),
                "the documentation shows what features add: `[package.metadata.docs.rs] all-features = true`",
            );
        }
    }
    nothing_is(&wrong);
}

/// That they hold what their code includes is found by `.ci/release check packages`, which builds them alone.
#[test]
fn packages_hold_the_licences_and_no_rubbish() {
    let mut wrong = Vec::new();
    for package in published() {
        let listed =
            cargo(&["package", "--list", "--allow-dirty", "--package", &package.name], &[]);
        let listed = String::from_utf8(listed.stdout).expect("names in UTF-8");
        let files: BTreeSet<&str> = listed.lines().collect();
        let said = package.manifest_path.parent().expect("a directory");
        for file in ["LICENSE-APACHE", "LICENSE-MIT", "README.md"] {
            if !files.contains(file) {
                wrong.push(format!("{}: its package lacks {file}", package.name));
            } else if file != "README.md"
                && fs::read(said.join(file)).ok() != fs::read(root().join(file)).ok()
            {
                wrong.push(format!("{}: {file} is not that of the repository", package.name));
            }
        }
        for file in &files {
            let is_rubbish = [".orig", ".rej", ".so", ".whl"].iter().any(|end| file.ends_with(end));
            if is_rubbish && *file != "Cargo.toml.orig" {
                wrong.push(format!("{}: its package has {file}", package.name));
            }
        }
    }
    nothing_is(&wrong);
}

#[test]
fn the_changelog_has_this_version() {
    let (text, version) = (read("CHANGELOG.md"), version());
    let headings: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    assert!(!headings.is_empty(), "CHANGELOG.md has no chapters");
    // Before the first release there is none with a version.
    let newest = headings.iter().find(|heading| **heading != "Unreleased");
    assert!(
        newest.is_none_or(|newest| newest.starts_with(&format!("{version} - "))),
        "the newest release in CHANGELOG.md is {newest:?}, and is to be `{version} - YYYY-MM-DD`"
    );
    for heading in &headings {
        let is_date = |date: &str| {
            date.len() == 10
                && date.split('-').map(str::len).eq([4, 2, 2])
                && date.chars().all(|c| c.is_ascii_digit() || c == '-')
        };
        assert!(
            *heading == "Unreleased"
                || heading.split_once(" - ").is_some_and(|(_, date)| is_date(date)),
            "`## {heading}` in CHANGELOG.md is to be `## Unreleased` or `## 1.2.3 - YYYY-MM-DD`"
        );
    }
    let kinds = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"];
    for kind in text.lines().filter_map(|line| line.strip_prefix("### ")) {
        assert!(kinds.contains(&kind), "`### {kind}` in CHANGELOG.md is none of {kinds:?}");
    }
}

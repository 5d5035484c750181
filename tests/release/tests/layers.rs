//! Which crate stands on which: each depends on those above it only.

use cargo_metadata::DependencyKind;
use std::collections::BTreeSet;
use tf_plugin_release_tests::{is_published, metadata};

/// The published crates from the bottom up, and what each depends on among them, its tests apart. A plugin for devices so
/// needs nothing of the SDK for filesystems, and the other way round; kernels of devices stand on those of ops.
const LAYERS: [(&str, &[&str]); 9] = [
    ("tf-fs-sys", &[]),
    ("tf-plugin-core", &["tf-fs-sys"]),
    ("tf-fs-plugin-macros", &["tf-fs-sys"]),
    ("tf-fs-plugin", &["tf-fs-plugin-macros", "tf-fs-sys", "tf-plugin-core"]),
    ("tf-op-plugin", &["tf-fs-plugin-macros", "tf-fs-sys", "tf-plugin-core"]),
    ("se-plugin", &["tf-fs-plugin-macros", "tf-fs-sys", "tf-op-plugin", "tf-plugin-core"]),
    (
        "tf-plugin-testing",
        &["se-plugin", "tf-fs-plugin", "tf-fs-sys", "tf-op-plugin", "tf-plugin-core"],
    ),
    ("tf-plugin-trace", &["tf-fs-sys"]),
    ("cargo-tf-plugin", &["tf-fs-sys"]),
];

#[test]
fn crates_depend_on_those_below_them_only() {
    let packages = metadata().packages;
    let members: BTreeSet<&str> = packages.iter().map(|package| package.name.as_str()).collect();
    let published = packages.iter().filter(|package| is_published(package));
    let published: BTreeSet<&str> = published.map(|package| package.name.as_str()).collect();
    assert_eq!(
        published,
        LAYERS.iter().map(|(name, _)| *name).collect(),
        "a package that is new here is either added to `LAYERS`, or has `publish = false`"
    );
    for (layer, (name, wanted)) in LAYERS.iter().enumerate() {
        let below: BTreeSet<&str> = LAYERS[..layer].iter().map(|(name, _)| *name).collect();
        assert!(wanted.iter().all(|one| below.contains(one)), "{name} is below what it stands on");
        let package = packages.iter().find(|package| package.name.as_str() == *name);
        let dependencies = &package.expect("a member of the workspace").dependencies;
        let found: BTreeSet<&str> = dependencies
            .iter()
            .filter(|one| one.kind != DependencyKind::Development)
            .map(|one| one.name.as_str())
            .filter(|one| members.contains(one))
            .collect();
        assert_eq!(
            found,
            wanted.iter().copied().collect(),
            "{name} depends on other crates than its layer allows; take the dependency out, or change `LAYERS`"
        );
    }
}

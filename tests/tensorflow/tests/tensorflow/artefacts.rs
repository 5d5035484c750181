//! The exports and dependencies of the examples' libraries; with the feature `optimised`, their sizes for users.

use cargo_tf_plugin::Artefact;
#[cfg(feature = "optimised")]
use std::process::Command;
use tf_plugin_tensorflow_tests::Plugin;
#[cfg(feature = "optimised")]
use tf_plugin_tensorflow_tests::outside;

/// What every Linux has. Nothing of TensorFlow, and no C++ runtime.
const SYSTEM: &[&str] =
    &["libc.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1", "libm.so.6"];

/// A plugin of a few operations has this many bytes at most. One that drags in an unexpected library, or its
/// debugging symbols, has more.
const LARGEST: u64 = 2 << 20;

/// One with HTTP and TLS in it.
const LARGEST_WITH_TLS: u64 = 4_000_000;

/// That of `s3://`, with the sources of credentials and the signer in it, too; tensorflow-io's library has 39.6 MB.
const LARGEST_S3: u64 = 7_000_000;

#[track_caller]
fn check(package: &'static str, exports: &[&str], largest: u64) {
    let library = Artefact::read(Plugin::of(package).path()).expect("a shared library");
    assert_eq!(library.entry_points, exports, "{package}'s exports");
    assert!(library.other_exports.is_empty(), "{package} exports {:?}", library.other_exports);

    // Bound at run time: an undefined one stops TensorFlow 2.12 to 2.18 from loading the library.
    for imports in [&library.c_imports, &library.cpp_imports] {
        assert!(imports.is_empty(), "{package} imports {imports:?}");
    }
    let finds_functions = library.versions.values().flatten().any(|name| name == "dlsym");
    assert!(finds_functions, "{package} finds no functions: {:?}", library.versions);
    for name in &library.needed {
        assert!(SYSTEM.contains(&name.as_str()), "{package} needs {name}");
    }
    let is_libc = |name: &String| name == "libc.so.6";
    assert!(library.needed.iter().any(is_libc), "{package} needs {:?}", library.needed);
    assert!(!library.text_relocations, "{package} has text relocations");
    if cfg!(feature = "optimised") {
        assert!(library.size <= largest, "{package} has {} bytes", library.size);
    }
    println!("{package}: {} bytes, needs {:?}", library.size, library.needed);
}

/// What a device exports.
const DEVICE: &[&str] = &["SE_InitPlugin", "TF_InitGraph", "TF_InitProfiler"];

/// What a filesystem exports.
const FILESYSTEM: &[&str] = &["TF_InitPlugin", "TF_InitKernel"];

#[test]
fn libraries_export_their_entry_points_and_need_what_every_linux_has() {
    check("memfs", FILESYSTEM, LARGEST);
    check("https", FILESYSTEM, LARGEST_WITH_TLS);
    check("localfs", FILESYSTEM, LARGEST);
    // Without automatic registration there is one entry point.
    check("manualfs", &["TF_InitPlugin"], LARGEST);
    check("s3", FILESYSTEM, LARGEST_S3);
    // Each op has a kernel for each of its types.
    check("refdevice", DEVICE, 10_000_000);
    // A device of few kernels.
    check("hostdevice", DEVICE, LARGEST);
    check("bothfs", &[FILESYSTEM, DEVICE].concat(), LARGEST);
}

/// `lto` trims the exports of a release build. A crate with its own C functions is among its dependencies: they
/// are hidden in every profile.
#[cfg(feature = "optimised")]
#[test]
fn s3_as_cargo_builds_it_for_release() {
    let mut cargo = Command::new(env!("CARGO"));
    let status = cargo.args(["build", "--package", "s3", "--release"]).status();
    assert!(status.expect("cargo runs").success());
    let library = outside::target().join("release/libs3.so");
    let library = Artefact::read(&library).expect("cargo has built it");
    assert_eq!(library.entry_points, FILESYSTEM);
    assert!(library.other_exports.is_empty(), "{:?}", library.other_exports);
}

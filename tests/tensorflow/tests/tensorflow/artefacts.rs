//! What the shared libraries of the examples export and need; with the feature `optimised`, how large users get them.

use object::read::elf::{Dyn, ElfFile64, FileHeader, SectionHeader};
use object::{Endianness, Object, ObjectSymbol, elf};
use std::collections::BTreeSet;
#[cfg(feature = "optimised")]
use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};
use tf_plugin_tensorflow_tests::Plugin;

/// What every Linux has. Nothing of TensorFlow, and no C++ runtime.
const SYSTEM: &[&str] =
    &["libc.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1", "libm.so.6"];

/// A plugin of a few operations has this many bytes at most. One that drags in an unexpected library, or its
/// debugging symbols, has more.
const LARGEST: usize = 2 << 20;

/// One with HTTP and TLS in it.
const LARGEST_WITH_TLS: usize = 4_000_000;

/// That of `s3://`, with the AWS SDK, HTTP and TLS in it; tensorflow-io's library has 39.6 MB.
const LARGEST_S3: usize = 13_000_000;

/// The names in the dynamic symbol table, and the libraries that the dynamic linker loads.
struct Library {
    size: usize,
    exported: BTreeSet<String>,
    imported: BTreeSet<String>,
    needed: BTreeSet<String>,
    has_text_relocations: bool,
}

impl Library {
    fn read(content: &[u8]) -> Self {
        let file: ElfFile64<'_, Endianness> = ElfFile64::parse(content).expect("an ELF file");
        let (mut exported, mut imported) = (BTreeSet::new(), BTreeSet::new());
        for symbol in file.dynamic_symbols() {
            let name = symbol.name().expect("a name is text").to_owned();
            let names = if symbol.is_undefined() { &mut imported } else { &mut exported };
            names.insert(name);
        }
        imported.remove("");

        let endian = file.endian();
        let sections = file.elf_header().sections(endian, content).expect("sections");
        let mut needed = BTreeSet::new();
        let mut has_text_relocations = false;
        for section in sections.iter() {
            let dynamic = section.dynamic(endian, content).expect("a dynamic section");
            let Some((entries, strings)) = dynamic else { continue };
            let strings = sections.strings(endian, content, strings).expect("strings");
            for entry in entries {
                if entry.tag(endian) == elf::DT_NEEDED {
                    let name = entry.string(endian, strings).expect("a name");
                    needed.insert(String::from_utf8(name.to_vec()).expect("text"));
                }
                has_text_relocations |= entry.tag(endian) == elf::DT_TEXTREL;
            }
        }
        Self { size: content.len(), exported, imported, needed, has_text_relocations }
    }
}

#[track_caller]
fn check(package: &'static str, exports: &[&str], largest: usize) {
    let library = Library::read(&Plugin::of(package).read());
    let exports: BTreeSet<String> = exports.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(library.exported, exports, "{package}'s exports");

    // Bound at run time: an undefined one stops TensorFlow 2.12 to 2.18 from loading the library.
    for name in &library.imported {
        let of_tensorflow = ["TF_", "TFE_", "TSL_", "SE_", "SP_", "_ZN"];
        assert!(
            !of_tensorflow.iter().any(|prefix| name.starts_with(prefix)),
            "{package} imports {name}"
        );
    }
    assert!(
        library.imported.contains("dlsym"),
        "{package} finds no functions: {:?}",
        library.imported
    );
    for name in &library.needed {
        assert!(SYSTEM.contains(&name.as_str()), "{package} needs {name}");
    }
    assert!(library.needed.contains("libc.so.6"), "{package} needs {:?}", library.needed);
    assert!(!library.has_text_relocations, "{package} has text relocations");
    if cfg!(feature = "optimised") {
        assert!(library.size <= largest, "{package} has {} bytes", library.size);
    }
    println!("{package}: {} bytes, needs {:?}", library.size, library.needed);
}

/// What a device exports.
const DEVICE: &[&str] =
    &["SE_InitPlugin", "TF_InitGraph", "TF_InitProfiler", "tf_plugin_device_type"];

/// What a filesystem exports.
const FILESYSTEM: &[&str] = &["TF_InitKernel", "TF_InitPlugin"];

#[test]
fn libraries_export_their_entry_points_and_need_what_every_linux_has() {
    check("memfs", FILESYSTEM, LARGEST);
    check("https", FILESYSTEM, LARGEST_WITH_TLS);
    check("localfs", FILESYSTEM, LARGEST);
    // Without automatic registration there is one entry point.
    check("manualfs", &["TF_InitPlugin"], LARGEST);
    check("s3", FILESYSTEM, LARGEST_S3);
    // Each of 131 operations is there for each of its types.
    check("refdevice", DEVICE, 10_000_000);
    // A device of few kernels.
    check("hostdevice", DEVICE, LARGEST);
    check("bothfs", &[DEVICE, FILESYSTEM].concat(), LARGEST);
}

/// What users get has its exports trimmed by `lto`. A crate with C functions of its own is among its dependencies: they
/// are hidden in every profile.
#[cfg(feature = "optimised")]
#[test]
fn s3_as_cargo_builds_it_for_release() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the workspace");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--package", "s3", "--release", "--message-format=json"]);
    let output = cargo.current_dir(root).stderr(Stdio::inherit()).output().expect("cargo runs");
    assert!(output.status.success(), "{}", output.status);
    let messages = String::from_utf8_lossy(&output.stdout);
    let library = messages
        .split('"')
        .find(|word| word.ends_with("/libs3.so") && word.contains("/release/"))
        .expect("cargo names the library");
    let library = Library::read(&fs::read(library).expect("cargo has built it"));
    let entries = FILESYSTEM.iter().map(|name| (*name).to_owned());
    assert_eq!(library.exported, entries.collect());
}

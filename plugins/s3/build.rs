//! Keeps the C functions of a dependency out of what the shared library exports.
//!
//! `crc-fast`, which the AWS SDK uses, has a C interface, and cargo exports the C functions of all crates of a library.
//! Nobody calls these. A linker hides a symbol from the outside if one of its objects says so; this writes such an object,
//! which works with each linker, profile and kind of optimisation, unlike arguments of a linker.

use object::write::{Object, Symbol, SymbolSection};
use object::{Architecture, BinaryFormat, Endianness, SymbolFlags, SymbolKind, SymbolScope, elf};
use std::env;
use std::error::Error;
use std::fs;
use std::path::Path;

/// What is hidden, after `crc_fast_`. A test of the library's exports notices what is missing here.
const HIDDEN: &[&str] = &[
    "checksum",
    "checksum_combine",
    "checksum_combine_with_params",
    "checksum_file",
    "checksum_file_with_params",
    "checksum_with_params",
    "clear_error",
    "crc32_iscsi",
    "crc32_iso_hdlc",
    "crc64_nvme",
    "digest_combine",
    "digest_finalize",
    "digest_finalize_reset",
    "digest_free",
    "digest_get_amount",
    "digest_get_state",
    "digest_new",
    "digest_new_with_init_state",
    "digest_new_with_params",
    "digest_reset",
    "digest_update",
    "error_message",
    "get_calculator_target",
    "get_custom_params",
    "get_last_error",
    "get_version",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    if env::var("CARGO_CFG_TARGET_OS")? != "linux" {
        return Ok(());
    }
    let architecture = match env::var("CARGO_CFG_TARGET_ARCH")?.as_str() {
        "x86_64" => Architecture::X86_64,
        "aarch64" => Architecture::Aarch64,
        // TensorFlow has no plugins there.
        _ => return Ok(()),
    };
    let mut file = Object::new(BinaryFormat::Elf, architecture, Endianness::Little);
    for name in HIDDEN {
        // Weak: a version of the dependency need not have it.
        file.add_symbol(Symbol {
            name: format!("crc_fast_{name}").into_bytes(),
            value: 0,
            size: 0,
            kind: SymbolKind::Unknown,
            scope: SymbolScope::Linkage,
            weak: true,
            section: SymbolSection::Undefined,
            flags: SymbolFlags::Elf {
                st_info: elf::SymbolInfo::new(elf::STB_WEAK, elf::STT_NOTYPE),
                st_other: elf::STV_HIDDEN.into(),
            },
        });
    }
    let path = Path::new(&env::var("OUT_DIR")?).join("hidden.o");
    fs::write(&path, file.write()?)?;
    println!("cargo::rustc-cdylib-link-arg={}", path.display());
    Ok(())
}

//! What a shared library exports.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;

use object::{Object as _, ObjectSymbol as _};

use crate::rust_source::RustSource;

/// The names that the library at `path` defines for others.
///
/// # Errors
/// When the file cannot be read or is no shared library.
pub fn exports(path: &Path) -> Result<BTreeSet<String>, String> {
    let explain = |problem: &dyn std::fmt::Display| format!("{}: {problem}", path.display());
    let file = File::open(path).map_err(|problem| explain(&problem))?;
    // SAFETY: a private mapping that is only read; TensorFlow's libraries do not change once installed.
    let map = unsafe { memmap2::Mmap::map(&file) }.map_err(|problem| explain(&problem))?;
    let library = object::File::parse(&*map).map_err(|problem| explain(&problem))?;
    let mut names = BTreeSet::new();
    for symbol in library.dynamic_symbols() {
        let mut name = symbol.name_bytes().map_err(|problem| explain(&problem))?;
        if library.format() == object::BinaryFormat::MachO {
            // There each C name has an underscore in front.
            name = name.strip_prefix(b"_").unwrap_or(name);
        }
        // Mangled names are not C functions, and there are hundreds of thousands.
        if symbol.is_definition() && !name.starts_with(b"_Z") {
            names.insert(String::from_utf8_lossy(name).into_owned());
        }
    }
    Ok(names)
}

/// The host functions of `source`, required or optional, that are not among the `exported` names, sorted.
#[must_use]
pub fn missing<'a>(
    source: &'a RustSource,
    required: bool,
    exported: &BTreeSet<String>,
) -> Vec<&'a str> {
    let mut names: Vec<&str> = source
        .host_functions()
        .filter(|function| function.required == required)
        .map(|function| function.name.as_str())
        .filter(|name| !exported.contains(*name))
        .collect();
    names.sort_unstable();
    names
}

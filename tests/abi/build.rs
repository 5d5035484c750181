//! Generates the code that measures every declaration of `tf-fs-sys`, and doctored copies of its
//! sources with the code that measures those.

// The library has the same files, and uses what is unused here.
#[allow(dead_code, unreachable_pub)]
#[path = "src/doctored.rs"]
mod doctored;
#[allow(dead_code, unreachable_pub)]
#[path = "src/headers.rs"]
mod headers;
#[path = "src/release_2_22.rs"]
#[allow(unreachable_pub)]
mod release_2_22;
#[allow(dead_code, unreachable_pub)]
#[path = "src/rust_source.rs"]
mod rust_source;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use doctored::DOCTORED;
use headers::{HEADERS, NEEDED_MODULES, OTHER_MODULES};
use rust_source::{Module, Record, RustSource};

type Error = Box<dyn std::error::Error>;

fn main() -> Result<(), Error> {
    let sources = read_sources()?;
    let needed = read_needed()?;
    let out_dir = PathBuf::from(env::var("OUT_DIR")?);

    let mut code = String::new();
    measure_function(&mut code, "tf_fs_sys", "tf_fs_sys", &parse(&sources)?)?;
    fs::write(out_dir.join("measure.rs"), code)?;

    let added = fs::read_to_string(sources_directory()?.join("stream_executor_2_22.rs"))?;
    let mut copies = Vec::new();
    for (name, text) in &sources {
        copies.push((name.clone(), release_2_22::apply(name, text, &added)?));
    }
    let mut code = String::new();
    copy(&mut code, release_2_22::NAME, &needed, &copies, &parse(&copies)?)?;
    fs::write(out_dir.join("release_2_22.rs"), code)?;

    let mut code = String::new();
    let mut table = String::from("&[\n");
    for doctored in DOCTORED {
        let mut copies = Vec::new();
        for (name, text) in &sources {
            copies.push((name.clone(), doctored.apply(name, text)?));
        }
        let source = parse(&copies).map_err(|problem| format!("{}: {problem}", doctored.name))?;
        copy(&mut code, doctored.name, &needed, &copies, &source)?;
        writeln!(table, "(\"{0}\", {0}::measure),", doctored.name)?;
    }
    table.push(']');
    fs::write(out_dir.join("doctored.rs"), code)?;
    fs::write(out_dir.join("doctored_table.rs"), table)?;

    println!("cargo::rerun-if-changed=build.rs");
    for module in ["doctored", "headers", "release_2_22", "rust_source"] {
        println!("cargo::rerun-if-changed=src/{module}.rs");
    }
    // How the C++ compiler is chosen.
    for variable in ["HOST", "TARGET"] {
        println!("cargo::rustc-env=ABI_TESTS_{variable}={}", env::var(variable)?);
    }
    Ok(())
}

fn sources_directory() -> Result<PathBuf, Error> {
    Ok(Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../../tf-fs-sys/src"))
}

/// Name and text of each module that the declarations need.
fn read_needed() -> Result<Vec<(String, String)>, Error> {
    let directory = sources_directory()?;
    let read = |name: &&str| {
        let path = directory.join(name).with_extension("rs");
        Ok(((*name).to_owned(), fs::read_to_string(path)?))
    };
    NEEDED_MODULES.iter().map(read).collect()
}

/// Name and text of each module that mirrors a header.
fn read_sources() -> Result<Vec<(String, String)>, Error> {
    let directory = sources_directory()?;
    println!("cargo::rerun-if-changed={}", directory.display());
    let mut sources = Vec::new();
    for entry in fs::read_dir(&directory)? {
        let path = entry?.path();
        let Some(name) = path.file_stem().and_then(|stem| stem.to_str()) else {
            continue;
        };
        if OTHER_MODULES.contains(&name) {
            continue;
        }
        if !HEADERS.iter().any(|header| header.module == name) {
            return Err(format!(
                "no header is known for {}; add a line to HEADERS in src/headers.rs of the ABI tests",
                path.display()
            )
            .into());
        }
        sources.push((name.to_owned(), fs::read_to_string(&path)?));
    }
    for header in HEADERS {
        if !sources.iter().any(|(name, _)| name == header.module) {
            return Err(format!(
                "tf-fs-sys has no module {} for {}; write it, or take the line out of HEADERS",
                header.module, header.path
            )
            .into());
        }
    }
    sources.sort();
    Ok(sources)
}

fn parse(sources: &[(String, String)]) -> Result<RustSource, String> {
    RustSource::parse(sources.iter().map(|(name, text)| (name.as_str(), text.as_str())))
}

/// A module with copies of the sources and a function that measures them.
fn copy(
    code: &mut String,
    name: &str,
    needed: &[(String, String)],
    copies: &[(String, String)],
    source: &RustSource,
) -> Result<(), Error> {
    writeln!(
        code,
        "#[allow(dead_code, unused_imports, unexpected_cfgs, missing_docs, unreachable_pub, \
         non_camel_case_types, non_snake_case, non_upper_case_globals, clippy::all)]\n\
         pub mod {name} {{"
    )?;
    let mut module = |name_of_module: &str, text: &str| {
        let text = text.replace("crate::", &format!("crate::{name}::"));
        writeln!(code, "pub mod {name_of_module} {{")?;
        // Most of a module is documentation, which would only cost time here.
        for line in text.lines().filter(|line| !is_documentation(line)) {
            writeln!(code, "{line}")?;
        }
        writeln!(code, "}}")
    };
    for (name, text) in needed {
        module(name, text)?;
    }
    for (name, text) in copies {
        // What binds host functions and nothing else has nothing to measure, and needs `host.rs`.
        if measurable(&source.modules[name]) {
            module(name, text)?;
        }
    }
    measure_function(code, "measure", &format!("crate::{name}"), source)?;
    code.push_str("}\n");
    Ok(())
}

fn is_documentation(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("///") || line.starts_with("//!")
}

fn measurable(module: &Module) -> bool {
    !(module.records.is_empty()
        && module.opaque.is_empty()
        && module.aliases.is_empty()
        && module.constants.is_empty()
        && module.functions.is_empty())
}

/// A function that measures `source`, whose modules are below the path `root`.
fn measure_function(
    code: &mut String,
    function: &str,
    root: &str,
    source: &RustSource,
) -> Result<(), Error> {
    writeln!(
        code,
        "/// Measures the declarations.\n\
         #[must_use]\n\
         #[allow(clippy::cast_lossless, clippy::unnecessary_cast)]\n\
         pub fn {function}() -> ::tf_plugin_abi_tests::measured::Measured {{\n\
         use ::tf_plugin_abi_tests::measured::{{Measured, MeasuredField, MeasuredRecord}};\n\
         let mut measured = Measured::default();"
    )?;
    for (name, module) in &source.modules {
        let path = format!("{root}::{name}");
        for record in &module.records {
            measure_record(code, &path, record)?;
        }
        for name in &module.opaque {
            let opaque = Record { name: name.clone(), is_union: false, fields: Vec::new() };
            measure_record(code, &path, &opaque)?;
        }
        for (constant, _) in &module.constants {
            writeln!(
                code,
                "measured.constants.push((\"{constant}\", {path}::{constant} as i128));"
            )?;
        }
        for function in &module.functions {
            if let Some(record) = &function.fills {
                need_plain_bytes(source, record)?;
                writeln!(
                    code,
                    "// SAFETY: a `#[repr(C)]` struct of integers and raw pointers.\n\
                     let bytes = unsafe {{\n\
                     ::tf_plugin_abi_tests::measured::filled_by({path}::{0})\n\
                     }};\n\
                     measured.filled.push((\"{0}\", bytes));",
                    function.name
                )?;
            }
        }
    }
    code.push_str("measured\n}\n");
    Ok(())
}

fn measure_record(code: &mut String, path: &str, record: &Record) -> Result<(), Error> {
    let ty = format!("{path}::{}", record.name);
    writeln!(
        code,
        "measured.records.push(MeasuredRecord {{\n\
         name: \"{}\",\n\
         size: ::std::mem::size_of::<{ty}>(),\n\
         align: ::std::mem::align_of::<{ty}>(),\n\
         fields: vec![",
        record.name
    )?;
    for field in &record.fields {
        // Raw, because C has fields with names that are keywords in Rust.
        let name = &field.name;
        let field = format!("r#{name}");
        let (offset, size) = if record.is_union {
            (
                format!("::memoffset::offset_of_union!({ty}, {field})"),
                format!(
                    "::tf_plugin_abi_tests::measured::field_size(|value| {ty} {{ {field}: value }})"
                ),
            )
        } else {
            (
                format!("::memoffset::offset_of!({ty}, {field})"),
                format!("::memoffset::span_of!({ty}, {field}).len()"),
            )
        };
        writeln!(code, "MeasuredField {{ name: \"{name}\", offset: {offset}, size: {size} }},")?;
    }
    code.push_str("] });\n");
    Ok(())
}

/// Refuses a record that cannot be filled with garbage, such as one with a function pointer.
fn need_plain_bytes(source: &RustSource, record: &str) -> Result<(), Error> {
    let fields = source
        .modules
        .values()
        .flat_map(|module| &module.records)
        .find(|known| known.name == record)
        .map(|known| known.fields.as_slice())
        .unwrap_or_default();
    let plain = |cpp: &str| {
        cpp.ends_with('*') || cpp.starts_with("std::") || cpp == "int" || cpp == "unsigned int"
    };
    match fields.iter().find(|field| !plain(&field.cpp)) {
        None if !fields.is_empty() => Ok(()),
        None => Err(format!("`{record}`, which a function fills, has no fields").into()),
        Some(field) => Err(format!(
            "`{record}::{}` is neither integer nor pointer, so `{record}` cannot be filled with \
             garbage; teach the ABI tests' build script another way to call what fills it",
            field.name
        )
        .into()),
    }
}

//! Generates the code that measures every record and constant of `tf-fs-sys`.

#[path = "src/records.rs"]
mod records;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use syn::ext::IdentExt as _;
use syn::{Fields, Item, Visibility};

type Error = Box<dyn std::error::Error>;

fn main() -> Result<(), Error> {
    let sources = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../../tf-fs-sys/src");
    println!("cargo::rerun-if-changed={}", sources.display());
    let mut code = String::from("[\n");
    for entry in fs::read_dir(&sources)? {
        let path = entry?.path();
        let module = path.file_stem().and_then(|stem| stem.to_str()).ok_or("a module's name")?;
        if matches!(module, "lib" | "layout" | "host" | "operations") {
            continue;
        }
        for item in records::expanded(syn::parse_file(&fs::read_to_string(&path)?)?.items)? {
            measure(&mut code, &format!("tf_fs_sys::{module}"), &item)?;
        }
    }
    code.push_str("]\n");
    fs::write(PathBuf::from(env::var("OUT_DIR")?).join("measured.rs"), code)?;
    Ok(())
}

/// Writes a line for each number, under the name that bindgen gives to it.
fn measure(code: &mut String, module: &str, item: &Item) -> Result<(), Error> {
    let (name, fields) = match item {
        Item::Struct(item) if is_public(&item.vis) => (&item.ident, item.fields.clone()),
        Item::Union(item) if is_public(&item.vis) => {
            (&item.ident, Fields::Named(item.fields.clone()))
        }
        Item::Const(item) if is_public(&item.vis) => {
            let name = &item.ident;
            writeln!(code, "(\"Value of {name}\", {module}::{name} as i128),")?;
            return Ok(());
        }
        _ => return Ok(()),
    };
    let ty = format!("{module}::{name}");
    writeln!(code, "(\"Size of {name}\", size_of::<{ty}>() as i128),")?;
    writeln!(code, "(\"Alignment of {name}\", align_of::<{ty}>() as i128),")?;
    for field in fields.iter().filter(|field| is_public(&field.vis)) {
        let field = field.ident.as_ref().ok_or("a field without a name")?;
        writeln!(
            code,
            "(\"Offset of field: {name}::{}\", std::mem::offset_of!({ty}, {field}) as i128),",
            field.unraw()
        )?;
    }
    Ok(())
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

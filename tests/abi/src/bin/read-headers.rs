//! Prints the declarations of a C++ file as bindgen sees them. A separate program, because bindgen finds
//! clang's library by the environment of its process.
//!
//! Arguments: the file, a pattern of the headers to print, a pattern of the names to print, and the
//! arguments of clang.

use std::env;
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let mut next = || arguments.next().ok_or("too few arguments");
    let declarations = bindgen::builder()
        .header(next()?)
        .allowlist_file(next()?)
        .allowlist_item(next()?)
        .allowlist_recursively(false)
        .default_enum_style(bindgen::EnumVariation::Consts)
        .prepend_enum_name(false)
        .generate_comments(false)
        .formatter(bindgen::Formatter::None)
        .clang_args(arguments)
        .generate()?;
    println!("{declarations}");
    Ok(())
}

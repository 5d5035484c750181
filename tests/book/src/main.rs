//! Builds the book into `target/book`. The argument is where links to files outside of the book lead: by default the clone.

use std::env::args;
use tf_plugin_book_tests::{build, root};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let to = root().join("target/book");
    build(&to, &args().nth(1).unwrap_or_else(|| String::from("../..")))?;
    println!("{}", to.join("index.html").display());
    Ok(())
}

//! Builds the book into `target/book`.

use tf_plugin_book_tests::{build, root};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let to = root().join("target/book");
    build(&to, "../..")?;
    println!("{}", to.join("index.html").display());
    Ok(())
}

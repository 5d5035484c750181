//! Makes a picture of what a command writes to a terminal: reads it, with its colours, and writes an SVG.
//!
//! ```sh
//! command="cargo tf-plugin run --package memfs --trace -- python notes.py"
//! TF_CPP_MIN_LOG_LEVEL=2 TF_ENABLE_ONEDNN_OPTS=0 script -qec "$command" /dev/null |
//!   cargo run -p tf-plugin-book-tests --example picture "$command" > docs/trace.svg
//! ```
//!
//! The argument is the command that the picture shows.

use anstyle_svg::{Term, WIN10_CONSOLE};
use std::env::args;
use std::io::{Read, stdin};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let command = args().nth(1).ok_or("name the command that the picture shows")?;
    let mut text = String::new();
    stdin().read_to_string(&mut text)?;
    // A terminal's ends of lines, and cargo's own words about what it builds.
    let lines = text.lines().filter(|line| {
        let words =
            ["Adding", "Blocking", "Compiling", "Finished", "Locking", "Running", "Updating"];
        // Cargo writes them in bold and ends that behind them.
        !words.iter().any(|word| line.contains(&format!("{word}\u{1b}[0m ")))
    });
    let text: Vec<_> = lines.map(str::trim_end).collect();
    let text = format!("$ {command}\n{}", text.join("\n").trim_end());
    let picture = Term::new().palette(WIN10_CONSOLE).render_svg(&text);
    // Dim text must be readable too, in a font that browsers on Linux have.
    let picture = picture.replace("opacity: 0.4", "opacity: 0.65");
    println!("{}", picture.replace("Consolas,", "Consolas, DejaVu Sans Mono,"));
    Ok(())
}

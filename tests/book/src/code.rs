//! Following the book: its files are written, its commands run, its Python collected.

use crate::{Block, Document, book, root};
use cargo_tf_plugin::commands;
use clap::Parser;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The words by which a paragraph says why the tests do not run the block after it.
pub const NOT_RUN: &str = "not run by the tests";

/// The command `cargo tf-plugin`.
#[derive(Parser)]
struct Tool {
    #[command(subcommand)]
    command: commands::Command,
}

/// Python of a page, and what it prints there.
#[derive(Clone, Debug)]
pub struct Script {
    /// Where it is: `page.md:line`.
    pub place: String,
    /// The directory to run it in.
    pub directory: PathBuf,
    /// The code.
    pub code: String,
    /// The block of text that follows.
    pub expected: Option<String>,
}

/// A crate that the book's readers create.
#[derive(Debug)]
pub struct Follower {
    directory: PathBuf,
    /// The artefacts that cargo has built, of all crates of the book and of the workspace.
    target: PathBuf,
    /// Where commands are found.
    path: OsString,
    /// The Python so far.
    pub scripts: Vec<Script>,
}

impl Follower {
    /// One that works in `directory`, as if that were next to a clone of the repository. What cargo builds there
    /// stays in `target`; the command `python` is the one in the directory `python`.
    pub fn new(directory: PathBuf, target: PathBuf, python: &Path) -> Self {
        let mut path = python.as_os_str().to_owned();
        path.push(":");
        path.push(env::var_os("PATH").unwrap_or_default());
        Self { directory, target, path, scripts: Vec::new() }
    }

    /// Where it works.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Does what a page says. The paragraph in front of a block names the file that it is for, and says `Add` if
    /// the file continues.
    pub fn follow(&mut self, page: &str) {
        self.follow_blocks(page, |_| true);
    }

    /// Runs the commands and the Python of a page whose Rust another test reads.
    pub fn use_page(&mut self, page: &str) {
        self.follow_blocks(page, |block| matches!(block.language(), "sh" | "python" | "text"));
    }

    fn follow_blocks(&mut self, page: &str, is_followed: impl Fn(&Block) -> bool) {
        let document = Document::read(&book().join(page));
        let commands: String = document
            .blocks
            .iter()
            .filter(|block| block.language() == "sh")
            .map(|block| block.code.as_str())
            .collect();
        let is_run_by_command = |block: &Block| {
            block.file().is_some_and(|file| commands.contains(&format!("python {file}")))
        };
        let mut blocks = document.blocks.into_iter().filter(is_followed).peekable();
        while let Some(block) = blocks.next() {
            let place = format!("{page}:{}", block.line);
            if block.paragraph.contains(NOT_RUN) {
                continue;
            }
            match block.language() {
                "sh" => {
                    let said = self.run(&block, &place);
                    if block.code.contains(".py")
                        && let Some(expected) = blocks.next_if(|next| next.language() == "text")
                    {
                        assert_eq!(said, expected.code, "{place}");
                    }
                }
                "python" if is_run_by_command(&block) => self.write(&block, &place),
                "python" => self.scripts.push(Script {
                    place,
                    directory: self.directory.clone(),
                    code: block.code,
                    expected: blocks
                        .next_if(|next| next.language() == "text")
                        .map(|next| next.code),
                }),
                "text" => {}
                "diff" => self.change(&block, &place),
                // It is run as documentation.
                "rust" if block.file().is_none() => {}
                _ => self.write(&block, &place),
            }
        }
    }

    /// Creates the crate of a page, whose first blocks are `Cargo.toml` and `src/lib.rs`.
    pub fn start(&mut self, name: &str, page: &str) {
        self.directory.push(name);
        fs::create_dir_all(self.directory.join("src")).expect("made");
        settle(&self.directory, &self.target);
        let blocks = Document::read(&book().join(page)).blocks;
        let first = |language| blocks.iter().find(|block: &&Block| block.language() == language);
        let (manifest, code) = first("toml").zip(first("rust")).expect("the page has a crate");
        fs::write(self.directory.join("Cargo.toml"), in_place(&manifest.code)).expect("written");
        fs::write(self.directory.join("src/lib.rs"), &code.code).expect("written");
    }

    /// Writes the file of a block.
    pub fn write(&self, block: &Block, place: &str) {
        let Some(name) = block.file() else {
            panic!("{place}: the paragraph before it names no file: {:?}", block.paragraph)
        };
        let path = self.directory.join(name);
        fs::create_dir_all(path.parent().unwrap_or(&path)).expect("made");
        let begin = if block.adds() {
            fs::read_to_string(&path).unwrap_or_else(|error| panic!("{place}: {name}: {error}"))
                + "\n"
        } else {
            String::new()
        };
        fs::write(path, begin + &in_place(&block.code)).expect("written");
    }

    /// Replaces lines of `src/lib.rs`: each that begins with `-` by the one with `+` that follows it.
    fn change(&self, block: &Block, place: &str) {
        let path = self.directory.join("src/lib.rs");
        let mut code = fs::read_to_string(&path).expect("the crate has code");
        let lines: Vec<_> = block.code.lines().collect();
        for pair in lines.chunks(2) {
            let &[old, new] = pair else { panic!("{place}: a line without its other") };
            let (old, new) = (old.strip_prefix('-'), new.strip_prefix('+'));
            let (old, new) = old.zip(new).unwrap_or_else(|| panic!("{place}: {pair:?}"));
            let old = format!("{old}\n");
            assert_eq!(code.matches(&old).count(), 1, "{place}: {old}");
            code = code.replace(&old, &format!("{new}\n"));
        }
        fs::write(path, code).expect("written");
    }

    /// Removes what cargo has built of the crate's library: it will be somewhere else the next time. `cargo clean` would also remove
    /// the tests of other packages that have the name of one of its tests, such as `conformance`.
    pub fn clean(&self) {
        let name = self.directory.file_name().unwrap_or_default().to_string_lossy();
        let library = name.replace('-', "_");
        let starts = [format!("{name}-"), format!("{library}-"), format!("lib{library}-")];
        for directory in ["deps", ".fingerprint", "incremental"] {
            let Ok(entries) = fs::read_dir(self.target.join("debug").join(directory)) else {
                continue;
            };
            for path in entries.flatten().map(|entry| entry.path()) {
                let file = path.file_name().unwrap_or_default().to_string_lossy();
                // A hash follows, or the rest of the name of another crate.
                let is_own =
                    |rest: &str| rest.chars().take_while(char::is_ascii_hexdigit).count() > 12;
                if starts.iter().any(|start| file.strip_prefix(&**start).is_some_and(is_own)) {
                    let removed = if path.is_dir() {
                        fs::remove_dir_all(&path)
                    } else {
                        fs::remove_file(&path)
                    };
                    removed.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
                }
            }
        }
    }

    /// Creates a crate as the page says: from the clone, next to it.
    fn create(&mut self, commands: &str, place: &str) {
        let (new, rest) = commands.split_once('\n').unwrap_or((commands, ""));
        let (command, name) =
            new.split_once(" --path ../").unwrap_or_else(|| panic!("{place}: {new}"));
        assert_eq!(rest, format!("cd ../{name}\n"), "{place}");
        self.directory.push(name);
        // Without `cargo`.
        let words = command.split(' ').skip(1).map(OsString::from);
        let path = ["--path".into(), self.directory.clone().into_os_string()];
        let tool = Tool::try_parse_from(words.chain(path))
            .unwrap_or_else(|error| panic!("{place}: {error}"));
        tool.command.run().unwrap_or_else(|error| panic!("{place}: {error:#}"));
        settle(&self.directory, &self.target);
    }

    /// Runs commands, and returns what they write to standard output.
    fn run(&mut self, block: &Block, place: &str) -> String {
        if block.code.starts_with("cargo tf-plugin new ") {
            self.create(&block.code, place);
            return String::new();
        }
        let output = Command::new("bash")
            .args(["-euc", &block.code])
            .current_dir(&self.directory)
            .env("CARGO_TARGET_DIR", &self.target)
            .env("PATH", &self.path)
            .output()
            .unwrap_or_else(|error| panic!("{place}: cannot run bash: {error}"));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{place}: {}\n{out}{err}", output.status);
        // `cargo new` makes a directory for what follows.
        let words: Vec<_> = block.code.split_whitespace().collect();
        if words.starts_with(&["cargo", "new"]) {
            self.directory.push(words.last().expect("a name"));
            settle(&self.directory, &self.target);
        }
        out
    }
}

/// A manifest with the SDK where it is. Beside the crate, as the book has it, cargo would take it for another one each
/// time, and build it again.
fn in_place(manifest: &str) -> String {
    manifest.replace("\"../tf-fs-plugin/", &format!("\"{}/", root().display()))
}

/// Lets `target` of a crate be what all crates of the book share, and takes the versions of libraries that the
/// workspace was tested with.
fn settle(krate: &Path, target: &Path) {
    symlink(target, krate.join("target")).expect("linked");
    fs::copy(root().join("Cargo.lock"), krate.join("Cargo.lock")).expect("copied");
}

impl Block {
    /// Whether the block continues its file, as the paragraph in front of it says.
    fn adds(&self) -> bool {
        self.paragraph.contains("Add to ") || self.paragraph.trim_end().ends_with("Add:")
    }

    /// The file that the paragraph in front of the block names last; `src/lib.rs` for one that continues the last.
    pub fn file(&self) -> Option<&str> {
        if self.paragraph.trim_end().ends_with("Add:") {
            return Some("src/lib.rs");
        }
        let words = self.paragraph.split_whitespace();
        let trimmed = words.map(|word| word.trim_end_matches([':', ',', '.']));
        trimmed.rev().find(|word| word.ends_with(&format!(".{}", self.extension())))
    }

    fn extension(&self) -> &str {
        match self.language() {
            "rust" => "rs",
            "cpp" => "cc",
            "python" => "py",
            other => other,
        }
    }
}

//! Following the book: its files are written, its commands run, its Python collected.

use crate::{Block, Document, book, root};
use std::env;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a paragraph has in it that says why the tests do not run the block after it.
pub const NOT_RUN: &str = "not run by the tests";

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
    /// What cargo has built, of all crates of the book and of the workspace.
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
        let document = Document::read(&book().join(page));
        let mut blocks = document.blocks.into_iter().peekable();
        while let Some(block) = blocks.next() {
            let place = format!("{page}:{}", block.line);
            if block.paragraph.contains(NOT_RUN) {
                continue;
            }
            match block.language() {
                "sh" => self.run(&block, &place),
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

    /// Forgets what cargo has built of the crate itself: it will be somewhere else the next time.
    pub fn clean(&self) {
        let name = self.directory.file_name().unwrap_or_default();
        let mut cargo = Command::new("cargo");
        cargo.args(["clean", "--quiet", "--package"]).arg(name).current_dir(&self.directory);
        let status = cargo.env("CARGO_TARGET_DIR", &self.target).status().expect("cargo runs");
        assert!(status.success(), "cargo clean: {status}");
    }

    fn run(&mut self, block: &Block, place: &str) {
        let output = Command::new("bash")
            .args(["-euc", &block.code])
            .current_dir(&self.directory)
            .env("CARGO_TARGET_DIR", &self.target)
            .env("PATH", &self.path)
            .output()
            .unwrap_or_else(|error| panic!("{place}: cannot run bash: {error}"));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let said = text(&output.stdout) + &text(&output.stderr);
        assert!(output.status.success(), "{place}: {}\n{said}", output.status);
        // `cargo new` makes a directory for what follows.
        let words: Vec<_> = block.code.split_whitespace().collect();
        if words.starts_with(&["cargo", "new"]) {
            self.directory.push(words.last().expect("a name"));
            settle(&self.directory, &self.target);
        }
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
            other => other,
        }
    }
}

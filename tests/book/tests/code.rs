//! The book's commands and code work, and print what the book says.

use cargo_tf_plugin::workspace::Workspace;
use cargo_tf_plugin::{NEWEST, TensorFlow};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;
use tf_fs_plugin::{Code, Error};
use tf_plugin_book_tests::code::{Follower, NOT_RUN, Script};
use tf_plugin_book_tests::{Document, book, documents, root};

/// Pages whose blocks are followed, in order, by the test below.
const FOLLOWED: &[&str] = &[
    "first-filesystem.md",
    "errors.md",
    "kernels.md",
    "graph-passes.md",
    "first-op.md",
    "ops.md",
    "migrating-op-from-cpp.md",
    "migrating-cpp.md",
    "publishing.md",
];

/// Where options of `cargo tf-plugin` in the book are parsed; the commands are not run.
const PARSED: &str = "cargo-tf-plugin/src/commands/mod.rs";

/// Languages of a page whose blocks another test reads, and which.
const ELSEWHERE: &[(&str, &[&str], &str)] = &[
    ("object-store.md", &["rust", "python"], "tests/tensorflow/tests/tensorflow/object_store.rs"),
    ("existing-client.md", &["rust"], "tf-fs-object-store/tests/adapter.rs"),
    ("existing-client.md", &["rs"], "tests/book/tests/code.rs"),
    ("first-device.md", &["rust", "python"], "tests/tensorflow/tests/tensorflow/readme.rs"),
    ("gpu-device.md", &["rust"], "tests/book/tests/code.rs"),
    ("gpu-backend.md", &["rust"], "tests/book/tests/code.rs"),
    ("gpu-backend.md", &["sh"], PARSED),
    ("ops.md", &["rs"], "tests/book/tests/code.rs"),
    ("check.md", &["sh"], PARSED),
    ("trace.md", &["python"], "cargo-tf-plugin/tests/commands/trace.rs"),
    ("trace.md", &["sh"], PARSED),
    ("coverage.md", &["python"], "cargo-tf-plugin/tests/commands/coverage.rs"),
    ("coverage.md", &["sh"], PARSED),
    ("packaging.md", &["sh"], PARSED),
    ("performance.md", &["sh"], PARSED),
    ("testing.md", &["rust"], "tf-plugin-testing/src/lib.rs"),
];

/// Blocks that no test reads.
const PARTS: &[(&str, &str)] = &[
    // `cargo build --release`; the test builds the same crate.
    ("first-device.md", "sh"),
    // Uses of macros and functions, with names of the reader's.
    ("testing.md", "rs"),
    ("op-conformance.md", "rs"),
    // It opens a driver, which few machines have.
    ("devices.md", "rs"),
];

/// Pages whose Rust is compiled and run as documentation of this crate.
const DOCUMENTATION: &[&str] = &["errors.md", "ops.md"];

#[test]
fn every_block_is_run_or_says_why_not() {
    for page in documents(&book()) {
        let name = page.file_name().expect("a name").to_str().expect("UTF-8").to_owned();
        for block in Document::read(&page).blocks {
            let is_file = block.language() != "rust" || block.file().is_some();
            let language = block.language();
            let is_run = FOLLOWED.contains(&&*name) && is_file
                || ELSEWHERE.iter().any(|(page, of, _)| *page == name && of.contains(&language))
                || PARTS.contains(&(&name, language))
                || language == "rust" && DOCUMENTATION.contains(&&*name)
                || block.paragraph.contains(NOT_RUN);
            let is_code = matches!(language, "rust" | "rs" | "python" | "sh" | "cpp");
            assert!(
                is_run || !is_code,
                "{name}:{}: nothing runs this {:?}",
                block.line,
                block.info
            );
        }
    }
    for (page, _, test) in ELSEWHERE {
        let test = fs::read_to_string(root().join(test)).expect("the test is there");
        let mut words = test.split(['"', ' ']);
        let is_read = words.any(|word| word.ends_with(&format!("docs/{page}")));
        assert!(is_read, "{page} is read by another test");
    }
}

/// The lines without what they are indented by.
fn lines(code: &str) -> Vec<&str> {
    code.lines().map(str::trim_start).collect()
}

/// Pages that show parts of a crate, the language of the blocks that do, and the crate.
const SHOWN: &[(&str, &str, &str)] = &[
    ("docs/gpu-device.md", "rust", "se-plugin-gpu"),
    ("docs/gpu-backend.md", "rust", "plugins/gpu"),
    // `rust` is documentation that is run.
    ("docs/ops.md", "rs", "examples/textops"),
    // `rust` is of the tests of the engine.
    ("docs/existing-client.md", "rs", "plugins/opendal"),
];

#[test]
fn the_code_of_the_crates_is_theirs() {
    for (page, language, krate) in SHOWN {
        let blocks = Document::read(&root().join(page)).blocks;
        assert!(blocks.iter().any(|block| block.language() == *language), "{page} has no code");
        for block in blocks.iter().filter(|block| block.language() == *language) {
            let file =
                block.file().unwrap_or_else(|| panic!("{page}:{} names no file", block.line));
            let of_crate = fs::read_to_string(root().join(krate).join(file)).expect("a file");
            let shown = lines(&block.code);
            let is_there = lines(&of_crate).windows(shown.len()).any(|part| part == shown);
            assert!(is_there, "{page}:{}: this is not in {file}", block.line);
        }
    }
}

/// Runs scripts in one process of TensorFlow with a device, one after the other, and what each prints.
fn run(tensorflow: &TensorFlow, scripts: &[Script], device: &Path) -> Vec<String> {
    const MARK: &str = "--- the next block of the book ---";
    let mut all = String::from("import os\n");
    for Script { directory, code, place, .. } in scripts {
        // Each in a separate scope, as if it were run alone.
        writeln!(
            all,
            "print({MARK:?}, flush=True)\nos.chdir({:?})\nexec(compile({code:?}, {place:?}, 'exec'), {{'__name__': '__main__'}})",
            directory.display().to_string(),
        )
        .expect("a string");
    }
    let directory = tempfile::tempdir().expect("a scratch directory");
    let script = directory.path().join("book.py");
    fs::write(&script, all).expect("written");
    let mut command = tensorflow.python_command();
    command.arg(script).env("TF_PLUGGABLE_DEVICE_LIBRARY_PATH", device);
    let output = command.output().expect("Python runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{}\n{out}{err}", output.status);
    out.split(&format!("{MARK}\n")).skip(1).map(str::to_owned).collect()
}

#[test]
fn the_pages_can_be_followed() {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    // With the profiles of the workspace, which has built most of what the crates depend on.
    let target = Workspace::current().expect("a workspace").target_dir();
    let manifest = fs::read_to_string(root().join("Cargo.toml")).expect("a manifest");
    let profiles = &manifest[manifest.find("[profile.").expect("profiles are the end of it")..];
    fs::create_dir(scratch.path().join(".cargo")).expect("made");
    fs::write(scratch.path().join(".cargo/config.toml"), profiles).expect("written");

    let tensorflow = TensorFlow::pinned(NEWEST).unwrap_or_else(|error| panic!("{error:#}"));
    let bin = tensorflow.python().parent().expect("Python is in a directory");

    let mut filesystem = Follower::new(scratch.path().to_owned(), target.clone(), bin);
    filesystem.follow("first-filesystem.md");
    filesystem.follow("errors.md");
    filesystem.follow("migrating-cpp.md");
    filesystem.follow("publishing.md");

    let mut op = Follower::new(scratch.path().to_owned(), target.clone(), bin);
    op.follow("first-op.md");
    op.follow("migrating-op-from-cpp.md");
    // Where the example is that the page describes.
    let mut textops = Follower::new(root(), target.clone(), bin);
    textops.use_page("ops.md");

    // The crate of a page that another test follows.
    let mut device = Follower::new(scratch.path().to_owned(), target, bin);
    device.start("firstdevice", "first-device.md");
    device.follow("kernels.md");
    device.follow("graph-passes.md");

    // A device has to be there before TensorFlow does anything.
    let library = device.directory().join("target/debug/libfirstdevice.so");
    let plugin = filesystem.directory().join("target/debug/libfirstfs.so");
    fs::copy(&plugin, filesystem.directory().join("libcopy.so")).expect("copied");
    let mut scripts =
        [&device.scripts[..], &filesystem.scripts, &op.scripts, &textops.scripts].concat();
    scripts.push(exceptions(scratch.path()));
    scripts.push(provoked(filesystem.directory()));
    let said = run(&tensorflow, &scripts, &library);
    assert_eq!(said.len(), scripts.len());
    for (script, said) in scripts.iter().zip(said) {
        let expected = script.expected.as_ref().expect("the book says what is printed");
        assert!(&said == expected, "{} prints\n{said}instead of\n{expected}", script.place);
    }
    filesystem.clean();
    op.clean();
    device.clean();
}

/// The table of causes, codes and exceptions: each row's Rust, name and number of the code, and exception.
fn codes() -> Vec<(String, String, u32, String)> {
    let rows = Document::read(&book().join("errors.md")).rows;
    let parse = |row: Vec<String>| {
        let [_, rust, code, exception] = row.try_into().ok()?;
        let (name, number) = code.strip_suffix(')')?.split_once(" (")?;
        Some((rust, name.to_owned(), number.parse().ok()?, exception))
    };
    rows.into_iter().filter_map(parse).collect()
}

/// Asks TensorFlow for the codes of the exceptions in the table.
fn exceptions(directory: &Path) -> Script {
    let (mut code, mut expected) = (String::from("import tensorflow as tf\n"), String::new());
    for (_, _, number, exception) in codes() {
        writeln!(code, "print(tf.errors.{exception}(None, None, '').error_code)")
            .expect("a string");
        writeln!(expected, "{number}").expect("a string");
    }
    let place = String::from("the table of errors.md");
    Script { place, directory: directory.to_owned(), code, expected: Some(expected) }
}

#[test]
fn the_table_of_codes_is_that_of_the_sdk() {
    type Constructor = fn(&str) -> Error;
    let constructors: [(&str, Constructor); 13] = [
        ("not_found(uri)", |text| Error::not_found(text)),
        ("already_exists(uri)", |text| Error::already_exists(text)),
        ("expected_file(uri)", |text| Error::expected_file(text)),
        ("expected_directory(uri)", |text| Error::expected_directory(text)),
        ("expected_empty_directory(uri)", |text| Error::expected_empty_directory(text)),
        ("failed_precondition(text)", |text| Error::failed_precondition(text)),
        ("invalid_argument(text)", |text| Error::invalid_argument(text)),
        ("permission_denied(text)", |text| Error::permission_denied(text)),
        ("resource_exhausted(text)", |text| Error::resource_exhausted(text)),
        ("unavailable(text)", |text| Error::unavailable(text)),
        ("data_loss(text)", |text| Error::data_loss(text)),
        ("unimplemented(what)", |text| Error::unimplemented(text)),
        ("internal(text)", |text| Error::internal(text)),
    ];
    let mut seen = BTreeSet::new();
    for (rust, name, number, _) in codes() {
        let code = Code::from_raw(number).expect("a code");
        assert_eq!(name.replace('_', "").to_lowercase(), format!("{code:?}").to_lowercase());
        seen.insert(number);
        if let Some(by_code) = rust.strip_prefix("Error::new(Code::") {
            assert_eq!(by_code, format!("{code:?}, text)"));
        } else if let Some(constructor) = rust.strip_prefix("Error::") {
            let made = constructors.iter().find(|(name, _)| *name == constructor);
            let (_, make) = made.unwrap_or_else(|| panic!("there is no {rust}"));
            assert_eq!(make("x").code(), code, "{rust}");
        } else {
            assert_eq!(code, Code::OutOfRange, "{rust}");
        }
    }
    assert_eq!(seen, (1..=16).collect(), "each code is there");
}

/// Texts of errors in `troubleshooting.md` that a few lines of Python provoke.
const PROVOKED: &[(&str, &str)] = &[
    (
        "register('target/no/such/library.so')",
        "The file to load file system plugin from does not exist",
    ),
    ("register('libcopy.so')", "cannot open shared object file"),
    ("register('./libnothing.so')", "undefined symbol: TF_InitPlugin"),
    ("register('./libcopy.so')", "already registered"),
    ("register(__import__('pathlib').Path('libcopy.so'))", "TypeError"),
    ("tf.io.gfile.GFile('nobody://a').read()", "File system scheme 'nobody' not implemented"),
    ("tf.io.gfile.GFile('table://a', 'w').write('')", "does not support NewWritableFile()"),
];

/// Provokes them.
fn provoked(directory: &Path) -> Script {
    let page = fs::read_to_string(book().join("troubleshooting.md")).expect("there");
    // A library that is not a plugin.
    let source = directory.join("nothing.cc");
    fs::write(&source, "").expect("written");
    let mut compiler = Command::new("c++");
    compiler.args(["-shared", "-fPIC", "-o", "libnothing.so"]).arg(source).current_dir(directory);
    assert!(compiler.status().expect("there is a C++ compiler").success());
    let mut code = String::from(
        "import tensorflow as tf\nregister = tf.experimental.register_filesystem_plugin\n",
    );
    let mut expected = String::new();
    for (statement, text) in PROVOKED {
        assert!(page.contains(&text.replace("nobody", "x")), "`{text}` is not on the page");
        writeln!(
            code,
            "try:\n    {statement}\nexcept Exception as error:\n    said = type(error).__name__ + ': ' + str(error)\n    \
             print({text:?} if {text:?} in said else said)"
        )
        .expect("a string");
        writeln!(expected, "{text}").expect("a string");
    }
    let place = String::from("the tables of troubleshooting.md");
    Script { place, directory: directory.to_owned(), code, expected: Some(expected) }
}

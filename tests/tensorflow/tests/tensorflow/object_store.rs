//! `memstore://`: the book's chapter is the crate, its Python prints what the chapter says, and TensorFlow uses it.

use super::conformance::passes_on_a_store;
use cargo_tf_plugin::TensorFlow;
use tf_plugin_tensorflow_tests::outside::read;
use tf_plugin_tensorflow_tests::python::Python;
use tf_plugin_tensorflow_tests::{Example, each_tensorflow, scenarios};

each_tensorflow!(consumers; oldest and newest: conformance, the_chapter_prints_what_it_says);

/// The blocks of the chapter in one language.
fn blocks(language: &str) -> Vec<String> {
    let page = read("docs/object-store.md");
    let begin = format!("\n```{language}\n");
    let rest = page.split(&begin).skip(1);
    rest.map(|block| block.split_once("\n```\n").expect("a block ends").0.to_owned()).collect()
}

/// Code without what only separates blocks.
fn lines(code: &str) -> Vec<&str> {
    code.lines().filter(|line| !line.is_empty()).collect()
}

#[test]
fn the_chapter_is_the_crate() {
    let blocks = blocks("rust");
    let (tests, code) = blocks.split_last().expect("it has code");
    assert_eq!(lines(&code.join("\n")), lines(&read("examples/memstore/src/lib.rs")));
    assert!(read("examples/memstore/tests/conformance.rs").contains(tests), "{tests}");
}

fn the_chapter_prints_what_it_says(tensorflow: &TensorFlow) {
    let (scripts, texts) = (blocks("python"), blocks("text"));
    let library = Example::memstore().plugin.path().display().to_string();
    let script = scripts[0].replace("target/release/libmemstore.so", &library);
    assert!(script.contains(&library), "{script}");
    let said = Python::code(tensorflow, &script, |python| python).success().stdout;
    assert_eq!(said.trim_end(), texts[0]);
}

fn conformance(tensorflow: &TensorFlow) {
    let example = Example::memstore();
    let library = example.plugin.path();
    passes_on_a_store(tensorflow, library, &example.root, &[], None, &[]);
}

fn consumers(tensorflow: &TensorFlow) {
    let example = Example::memstore();
    scenarios::run(tensorflow, scenarios::python(tensorflow, example.package, &example.root));
}

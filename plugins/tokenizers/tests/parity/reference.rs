//! Runs `reference.py`, and reads what it writes.

use cargo_tf_plugin::Packages;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use tensorflow_tokenizers::truncation::{Side, Strategy, Truncation};

const REQUIREMENTS: &str = include_str!("../scripts/requirements.txt");

pub(crate) type Texts = Vec<Vec<u8>>;

/// How texts are encoded.
#[derive(Debug)]
pub(crate) struct Setting {
    /// One of so many texts is encoded.
    pub(crate) share: usize,
    pub(crate) pair: bool,
    pub(crate) add_special_tokens: bool,
    pub(crate) truncation: Truncation,
}

/// Returns a Python with the packages.
pub(crate) fn python() -> PathBuf {
    let packages = Packages::provide("tokenizers", REQUIREMENTS, None).expect("the packages");
    packages.python().to_owned()
}

pub(crate) fn train(python: &Path, directory: &Path) {
    reference(python, "train", directory, &[]);
}

pub(crate) fn run(python: &Path, directory: &Path, seed: usize, random: usize, share: usize) {
    reference(python, "run", directory, &[seed, random, share]);
}

fn reference(python: &Path, command: &str, directory: &Path, numbers: &[usize]) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts/reference.py");
    let mut python = Command::new(python);
    python
        .arg("-B")
        .arg(script)
        .arg(command)
        .arg(directory)
        .args(numbers.iter().map(usize::to_string));
    let status = python.status().expect("Python runs");
    assert!(status.success(), "reference.py {command}: {status}");
}

/// Returns the names of the tokenizers in a directory.
pub(crate) fn tokenizers(directory: &Path) -> Vec<String> {
    let files = std::fs::read_dir(directory).expect("the directory");
    let paths = files.map(|file| file.expect("a file").path());
    let mut names: Vec<String> = paths
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .filter(|name| name != "settings")
        .collect();
    names.sort();
    names
}

pub(crate) fn texts(directory: &Path) -> Texts {
    let mut reader = Reader::open(&directory.join("texts.bin"));
    let mut texts = Vec::new();
    while !reader.rest.as_slice().is_empty() {
        let length = reader.number();
        texts.push(reader.bytes(length));
    }
    texts
}

pub(crate) fn settings(directory: &Path) -> Vec<Setting> {
    let text = std::fs::read(directory.join("settings.json")).expect("the settings");
    let settings: Vec<Value> = serde_json::from_slice(&text).expect("a list");
    settings.iter().map(setting).collect()
}

fn setting(value: &Value) -> Setting {
    let number = |name: &str| value[name].as_u64().and_then(|number| usize::try_from(number).ok());
    let truncation = number("max_length").map_or(Truncation::None, |max_length| Truncation::To {
        max_length,
        strategy: match value["strategy"].as_str() {
            Some("longest_first") => Strategy::LongestFirst,
            Some("only_first") => Strategy::OnlyFirst,
            Some("only_second") => Strategy::OnlySecond,
            other => panic!("{other:?} is not a strategy"),
        },
        side: if value["side"] == "left" { Side::Left } else { Side::Right },
    });
    Setting {
        share: number("share").expect("a share"),
        pair: value["pair"].as_bool().expect("a bool"),
        add_special_tokens: value["add_special_tokens"].as_bool().expect("a bool"),
        truncation,
    }
}

/// Reads a file of numbers of 4 bytes and of texts.
pub(crate) struct Reader {
    rest: std::vec::IntoIter<u8>,
}

impl Reader {
    pub(crate) fn open(path: &Path) -> Self {
        Self { rest: std::fs::read(path).expect("the results of Python").into_iter() }
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        let bytes: Vec<u8> = self.rest.by_ref().take(length).collect();
        assert_eq!(bytes.len(), length, "the file of Python's results ends early");
        bytes
    }

    pub(crate) fn number(&mut self) -> usize {
        self.numbers(1)[0]
    }

    pub(crate) fn ids(&mut self, length: usize) -> Vec<u32> {
        let bytes = self.bytes(4 * length);
        bytes.as_chunks::<4>().0.iter().map(|number| u32::from_le_bytes(*number)).collect()
    }

    pub(crate) fn numbers(&mut self, length: usize) -> Vec<usize> {
        self.ids(length).into_iter().map(|number| number as usize).collect()
    }

    pub(crate) fn text(&mut self) -> String {
        let length = self.number();
        String::from_utf8(self.bytes(length)).expect("Python wrote UTF-8")
    }

    pub(crate) fn end(&self) {
        assert!(self.rest.as_slice().is_empty(), "Python wrote more results");
    }
}

//! The results are those of Python's `tokenizers`, at the version of the crate: ids, type ids, offsets in characters and
//! bytes, texts, and the size of the vocabulary.
//!
//! `reference.py` describes the files that it writes.

mod reference;

use reference::{Reader, Setting, Texts};
use std::path::Path;
use tensorflow_tokenizers::Tokenizer;
use tensorflow_tokenizers::decode::UnknownIds;
use tensorflow_tokenizers::encode::{Encoder, Options, Unit};
use tensorflow_tokenizers::rows::Rows;

/// What is compared: one of so many texts that are not random, in the first set, and sets of random texts.
struct Amount {
    share: usize,
    sets: usize,
    random: usize,
}

#[test]
fn results_are_those_of_python() {
    // 100,000 random texts. All others would take an hour.
    let everything = Amount { share: 8, sets: 20, random: 5000 };
    let sample = Amount { share: 40, sets: 1, random: 800 };
    let amount = if tf_plugin_fuzz::is_whole() { everything } else { sample };
    let directory = tempfile::tempdir().expect("a scratch directory");
    let python = reference::python();
    reference::train(&python, directory.path());
    for seed in 0..amount.sets {
        let share = if seed == 0 { amount.share } else { 40 * amount.share };
        reference::run(&python, directory.path(), seed, amount.random, share);
        let texts = reference::texts(directory.path());
        let settings = reference::settings(directory.path());
        let names = reference::tokenizers(directory.path());
        assert_eq!(names.len(), 8, "{names:?}");
        std::thread::scope(|scope| {
            for name in &names {
                let (directory, texts, settings) = (directory.path(), &texts, &settings);
                scope.spawn(move || compare(directory, name, texts, settings));
            }
        });
    }
}

/// Compares all results of a tokenizer.
fn compare(directory: &Path, name: &str, texts: &Texts, settings: &[Setting]) {
    let json = std::fs::read(directory.join(name).with_extension("json")).expect("the tokenizer");
    let tokenizer = Tokenizer::from_json(&json).expect(name);
    let mut expected = Reader::open(&directory.join(name).with_extension("bin"));
    assert_eq!(tokenizer.vocabulary_size(), expected.number(), "{name}: size of the vocabulary");
    let mut first = Vec::new();
    for setting in settings {
        for number in (0..texts.len()).step_by(setting.share) {
            let pair = setting.pair.then(|| &*texts[(number + 1) % texts.len()]);
            let at = || {
                format!(
                    "{name}, text {number} {:?}, {pair:?}, {setting:?}",
                    String::from_utf8_lossy(&texts[number])
                )
            };
            let row = encode(&tokenizer, setting, &texts[number], pair, Some(Unit::Chars));
            if expected.number() == 1 {
                assert!(row.is_err(), "{}: Python fails", at());
                continue;
            }
            let row = row.unwrap_or_else(|error| panic!("{}: {error}", at()));
            let length = expected.number();
            assert_eq!(row.ids, expected.ids(length), "{}", at());
            assert_eq!(row.type_ids, expected.ids(length), "{}: type ids", at());
            assert_eq!(row.starts, expected.numbers(length), "{}: starts", at());
            assert_eq!(row.limits, expected.numbers(length), "{}: limits", at());
            let bytes = encode(&tokenizer, setting, &texts[number], pair, Some(Unit::Bytes))
                .expect("in bytes");
            assert_eq!(bytes.starts, expected.numbers(length), "{}: starts in bytes", at());
            assert_eq!(bytes.limits, expected.numbers(length), "{}: limits in bytes", at());
            // Without offsets the crate takes another way.
            let fast =
                encode(&tokenizer, setting, &texts[number], pair, None).expect("without offsets");
            assert_eq!(
                (fast.ids, fast.type_ids),
                (row.ids.clone(), row.type_ids),
                "{}: without offsets",
                at()
            );
            if std::ptr::eq(setting, &settings[0]) {
                first.push(row.ids);
            }
        }
    }
    for (number, ids) in first.iter().enumerate() {
        for skip in [true, false] {
            let text = tokenizer
                .decode(ids.iter().map(|&id| i64::from(id)), 0, skip, UnknownIds::Strict)
                .expect("a text");
            assert_eq!(text, expected.text(), "{name}, text {number}, skip_special_tokens={skip}");
        }
    }
    expected.end();
}

/// Encodes a text or a pair.
fn encode(
    tokenizer: &Tokenizer,
    setting: &Setting,
    text: &[u8],
    pair: Option<&[u8]>,
    offsets: Option<Unit>,
) -> tf_plugin_core::Result<Rows> {
    let options = Options {
        add_special_tokens: setting.add_special_tokens,
        truncation: setting.truncation,
        offsets,
        type_ids: true,
    };
    let mut rows = Rows::default();
    Encoder::new(tokenizer, options, pair.is_some())?.worker().encode(text, pair, &mut rows)?;
    Ok(rows)
}

#![doc = include_str!("../README.md")]
#![allow(unexpected_cfgs, reason = "`cargo bolero test` sets `fuzzing`")]

use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, RngSeed, TestRunner};
use std::borrow::Cow;
use std::env;
use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};

#[cfg(fuzzing)]
#[doc(hidden)]
pub use bolero;

/// Returns whether everything is tried.
///
/// # Panics
/// If `TF_PLUGIN_TESTS` is set to anything but `all`.
#[must_use]
pub fn is_whole() -> bool {
    match env::var("TF_PLUGIN_TESTS").as_deref() {
        Err(_) => false,
        Ok("all") => true,
        Ok(other) => {
            panic!("TF_PLUGIN_TESTS is `{other}`; set it to `all`, or leave it unset for a sample")
        }
    }
}

/// The settings of a test with random input: so many cases in a sample, or in all. The sample is the same on every day;
/// otherwise the seed is new. A failure shows the seed and the shortest input that fails. `PROPTEST_CASES` and
/// `PROPTEST_RNG_SEED` set either.
#[must_use]
pub fn random(sample: u32, all: u32) -> Config {
    let default = Config::default();
    let cases = match env::var_os("PROPTEST_CASES") {
        Some(_) => default.cases,
        None if is_whole() => all,
        None => sample,
    };
    let seed = match default.rng_seed {
        RngSeed::Fixed(seed) => seed,
        RngSeed::Random if is_whole() => RandomState::new().build_hasher().finish(),
        RngSeed::Random => 0,
    };
    println!("PROPTEST_RNG_SEED={seed} PROPTEST_CASES={cases} tries the same again");
    Config {
        cases,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        max_shrink_iters: 400,
        ..default
    }
}

/// Calls the second argument, a function of `&[u8]`, with many inputs. It panics where a property does not hold.
///
/// The first argument is an array of words, of which most inputs are made: the tokens of the format, and whole examples.
#[cfg(not(fuzzing))]
#[macro_export]
macro_rules! fuzz {
    ($words:expr, $target:expr $(,)?) => {
        $crate::run(&$words, $target)
    };
}

/// As without `cargo bolero test`; libFuzzer makes the inputs.
#[cfg(fuzzing)]
#[macro_export]
macro_rules! fuzz {
    ($words:expr, $target:expr $(,)?) => {{
        let _ = $words;
        let target = $crate::target($target);
        $crate::bolero::check!().for_each(|bytes: &[u8]| target(bytes))
    }};
}

#[cfg(fuzzing)]
#[doc(hidden)]
pub fn target<F: Fn(&[u8])>(target: F) -> F {
    target
}

/// The inputs of a sample.
const SAMPLE: u32 = 4_000;

#[doc(hidden)]
pub fn run(words: &[&'static str], target: impl Fn(&[u8])) {
    let outcome = TestRunner::new(random(SAMPLE, 50 * SAMPLE)).run(&inputs(words), |input| {
        target(&input.0);
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}

/// Shown as a byte string in Rust.
struct Input(Vec<u8>);

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}\"", self.0.escape_ascii())
    }
}

/// Words and noise in any order; and a word of which some bytes are others, or missing.
fn inputs(words: &[&'static str]) -> impl Strategy<Value = Input> {
    let noise = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..4),
        any::<char>().prop_map(|c| c.to_string().into_bytes()),
        any::<u64>().prop_map(|number| number.to_string().into_bytes()),
    ];
    let words = select(words.to_vec()).prop_map(|word| word.as_bytes().to_vec());
    let piece = prop_oneof![4 => words.clone(), 1 => noise];
    let joined = prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat());
    let changes = prop::collection::vec((any::<Index>(), any::<Option<u8>>()), 0..4);
    let changed = (words, changes).prop_map(|(mut word, changes)| {
        for (at, byte) in changes.into_iter().take(word.len()) {
            let at = at.index(word.len());
            match byte {
                Some(byte) => word[at] = byte,
                None => drop(word.remove(at)),
            }
            if word.is_empty() {
                break;
            }
        }
        word
    });
    prop_oneof![3 => joined, 1 => changed].prop_map(Input)
}

/// Returns the input as text.
#[must_use]
pub fn text(input: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(input)
}

/// Returns the input in two parts, which a zero byte or the middle separates.
#[must_use]
pub fn halves(input: &[u8]) -> (&[u8], &[u8]) {
    match input.iter().position(|&byte| byte == 0) {
        Some(zero) => (&input[..zero], &input[zero + 1..]),
        None => input.split_at(input.len() / 2),
    }
}

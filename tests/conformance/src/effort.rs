//! How much the tests try: a sample, the same each time, or with `TF_PLUGIN_TESTS=all` everything.

use proptest::test_runner::{Config, RngSeed};
use std::env;
use std::hash::{BuildHasher, Hasher, RandomState};

/// Whether everything is tried.
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

/// Of how many cases of a sweep one is tried: `sample`, or 1.
#[must_use]
pub fn one_in(sample: usize) -> usize {
    if is_whole() { 1 } else { sample }
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

/// What `try_one` finds, a second and a third time if all that is `wrong` is that something took too long: the patience
/// of a sweep is short, and a machine with other things to do may use it up. What hangs does so each time.
pub fn unhurried<T>(
    mut try_one: impl FnMut() -> Option<T>,
    wrong: impl Fn(&T) -> &Vec<String>,
) -> Option<T> {
    let is_late = |what: &String| what.starts_with("took ") || what.contains("made no progress");
    for _ in 0..2 {
        let tried = try_one()?;
        if wrong(&tried).is_empty() || !wrong(&tried).iter().all(is_late) {
            return Some(tried);
        }
    }
    try_one()
}

#[cfg(test)]
mod tests {
    use super::unhurried;

    /// What a sweep reports of attempts that find this, and how many it makes.
    fn reported(found: &[&[&str]]) -> (Vec<String>, usize) {
        let mut attempts = 0;
        let try_one = || {
            let wrong = found[attempts].iter().map(|&what| what.to_owned()).collect::<Vec<_>>();
            attempts += 1;
            Some(wrong)
        };
        let wrong = unhurried(try_one, |wrong| wrong).unwrap_or_default();
        (wrong, attempts)
    }

    #[test]
    fn only_what_is_late_is_tried_again() {
        let late = "took 9s";
        assert_eq!(reported(&[&[late], &["h made no progress for"], &[]]), (vec![], 3));
        assert_eq!(reported(&[&[late], &[late], &[late]]), (vec![late.to_owned()], 3));
        assert_eq!(reported(&[&[late, "lost"]]), (vec![late.to_owned(), "lost".to_owned()], 1));
        assert_eq!(reported(&[&[]]), (vec![], 1));
    }
}

//! How much the tests try: a sample, the same each time, or with `TF_PLUGIN_TESTS=all` everything.

pub use tf_plugin_fuzz::{is_whole, random};

/// Of how many cases of a sweep one is tried: `sample`, or 1.
#[must_use]
pub fn one_in(sample: usize) -> usize {
    if is_whole() { 1 } else { sample }
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

//! Names of ops that a host does not have.

/// What a name may consist of.
const LETTERS: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

/// Returns the op of the host that a name without one seems to mean: the two differ in one letter.
///
/// Returns `None` too if the host has another version of the op, since the name is then one of another release.
pub(crate) fn meant(name: &str, mut has: impl FnMut(&str) -> bool) -> Option<String> {
    let (base, version) = match name.rsplit_once('V') {
        Some((base, version)) if version.parse::<u8>().is_ok() => (base, version),
        _ => (name, ""),
    };
    let versions = ["", "V2", "V3", "V4", "V5"].map(|version| format!("{base}{version}"));
    if versions.iter().any(|other| has(other)) {
        return None;
    }
    let is_whole = |at: &usize| base.is_char_boundary(*at);
    let mut near = (0..=base.len()).filter(is_whole).flat_map(|at| around(base, at));
    near.find_map(|other| {
        // Versions are not misspelt, and names without one are found too.
        let versioned = (!version.is_empty()).then(|| format!("{other}V{version}"));
        versioned.into_iter().chain([other]).find(|other| has(other))
    })
}

/// Returns the names that differ from this one at a place: one letter less, more or another, or two in the other order.
fn around(name: &str, at: usize) -> impl Iterator<Item = String> {
    let (head, tail) = name.split_at(at);
    let mut rest = tail.chars();
    let first = rest.next();
    let after = rest.as_str();
    let second = rest.next();
    let swapped =
        first.zip(second).map(|(first, second)| format!("{head}{second}{first}{}", rest.as_str()));
    let less = first.map(|_| format!("{head}{after}"));
    let others = LETTERS.chars().flat_map(move |letter| {
        let other = first.map(|_| format!("{head}{letter}{after}"));
        other.into_iter().chain([format!("{head}{letter}{tail}")])
    });
    less.into_iter().chain(swapped).chain(others)
}

#[cfg(test)]
mod tests {
    use super::meant;

    #[test]
    fn a_letter_too_much_too_few_another_or_at_another_place() {
        let has =
            |name: &str| ["Tanh", "MatMul", "BatchMatMulV2", "FusedBatchNormV3"].contains(&name);
        for (name, expected) in [
            ("Tanhh", "Tanh"),
            ("Tnh", "Tanh"),
            ("tanh", "Tanh"),
            ("Tahn", "Tanh"),
            ("Matmul", "MatMul"),
            ("BatchMatmulV2", "BatchMatMulV2"),
            ("FusedBatchNromV3", "FusedBatchNormV3"),
        ] {
            assert_eq!(meant(name, has).as_deref(), Some(expected), "{name}");
        }
        // Other versions, which another release has, and other ops.
        for name in ["BatchMatMulV3", "BatchMatMul", "TanhV2", "MyTanh", "", "Ünh", "V2"] {
            assert_eq!(meant(name, has), None, "{name}");
        }
    }

    /// `import tensorflow` waits for all of them.
    #[test]
    fn a_candidate_is_looked_up_once() {
        for (name, versions) in [("MyUnknownOp", 1), ("MyUnknownOpV2", 2)] {
            let mut count = 0;
            let has = |_: &str| {
                count += 1;
                false
            };
            assert_eq!(meant(name, has), None);
            // At each place less, swapped, another and more; at the end only more.
            let places = "MyUnknownOp".len();
            let letters = super::LETTERS.len();
            let candidates = places * (1 + 2 * letters) + (places - 1) + letters;
            assert_eq!(count, 5 + versions * candidates, "{name}");
        }
    }
}

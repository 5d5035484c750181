//! Values from one source.

use super::table::Setting;
use super::value::{Kind, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The values that one source sets.
pub(super) type Layer = BTreeMap<&'static str, Entry>;

/// A value and where it is from.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The value.
    pub value: Value,
    /// Where it is from.
    pub source: Source,
}

/// Where a value is from.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// Nobody set it.
    Default,
    /// The settings file of this path.
    File(Arc<str>),
    /// The environment variable of this name.
    Variable(Arc<str>),
    /// A TensorFlow option.
    Option,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path) => write!(f, "settings file {path}"),
            Self::Variable(name) => write!(f, "environment variable {name}"),
            Self::Option => f.write_str("option"),
        }
    }
}

/// Returns a place that names a bucket, without the password or signature that it may contain.
pub(super) fn shown(place: &str) -> Cow<'_, str> {
    if let Some((before, _)) = place.split_once('?') {
        return format!("{}?…", shown(before)).into();
    }
    match place.rsplit_once('@') {
        Some((before, rest)) if before.contains(':') => format!("…@{rest}").into(),
        _ => place.into(),
    }
}

/// Describes what is wrong with `text` as the value that `place` gives to `setting`.
pub(super) fn complaint(
    place: &dyn fmt::Display,
    setting: &Setting,
    text: &str,
    reason: Option<String>,
) -> String {
    let shown = match setting.kind {
        Kind::Secret => String::new(),
        // It may hold a password, or a signature.
        Kind::Url | Kind::UrlOf(_) if text.contains(['@', '?']) => String::new(),
        _ => format!(" `{}`", text.escape_debug()),
    };
    let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    format!("{place}: the value{shown} cannot be used{reason}; write {}", setting.kind)
}

/// Returns the candidate that is most similar to `word`, if one is similar at all.
pub(super) fn nearest(word: &str, candidates: impl Iterator<Item = String>) -> Option<String> {
    candidates
        .map(|candidate| (distance(word, &candidate), candidate))
        .min()
        .filter(|(distance, candidate)| distance * 3 <= candidate.len())
        .map(|(_, candidate)| candidate)
}

/// Returns the edit distance of `a` and `b`: how many letters to insert, remove or replace.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, &y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found() {
        let names = || ["TF_S3_READ_PART_BYTES", "TF_S3_THREADS"].map(String::from).into_iter();
        assert_eq!(
            nearest("TF_S3_READ_PART_BYTE", names()).as_deref(),
            Some("TF_S3_READ_PART_BYTES")
        );
        assert_eq!(nearest("TF_S3_THREAD", names()).as_deref(), Some("TF_S3_THREADS"));
        assert_eq!(nearest("COLOUR", names()), None);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}

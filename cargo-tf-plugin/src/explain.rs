//! Error texts of TensorFlow and of the dynamic linker about plugins, with their cause and a fix.

use std::sync::LazyLock;

use serde::Serialize;

/// The page whose table this reads, so that the command and the book say the same.
const PAGE: &str = include_str!("check.md");

const HEADING: &str = "| The text contains | Cause | What to do |";

/// A known failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Known {
    /// The parts of the text, which must all occur.
    #[serde(skip)]
    parts: Vec<&'static str>,
    pub(crate) cause: &'static str,
    pub(crate) fix: &'static str,
}

/// The rows of the table in [`PAGE`]. The first match counts, so special rows come before general ones.
static KNOWN: LazyLock<Vec<Known>> = LazyLock::new(|| {
    let (_, table) = PAGE.split_once(HEADING).unwrap_or_default();
    let rows = table.lines().skip(2).take_while(|line| !line.is_empty());
    let rows = rows.filter_map(|row| {
        let row = row.strip_prefix("| ")?.strip_suffix(" |")?;
        let (parts, rest) = row.split_once(" | ")?;
        let (cause, fix) = rest.split_once(" | ")?;
        // A text with a backquote in it is between double backquotes and spaces.
        let plain = |part: &'static str| match part.strip_prefix("`` ") {
            Some(part) => part.trim_end_matches(" ``"),
            None => part.trim_matches('`'),
        };
        Some(Known { parts: parts.split(" … ").map(plain).collect(), cause, fix })
    });
    rows.collect()
});

/// Returns what is known about an error text, or about a line of a log: the most special match.
pub(crate) fn explain(text: &str) -> Option<&'static Known> {
    let says = |known: &&Known| {
        text.lines().any(|line| known.parts.iter().all(|part| line.contains(part)))
    };
    KNOWN.iter().find(says)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_as_they_come_are_explained() {
        for (text, word) in [
            ("libx.so: undefined symbol: TF_InitPlugin", "not a filesystem plugin"),
            ("libx.so: undefined symbol: TF_SetStatus", "up to 2.18"),
            ("libx.so: undefined symbol: _ZN3tsl5mutex6unlockEv", "C++"),
            ("File system for s3 already registered", "first one wins"),
            (
                "stream_executor.cc:550] INTERNAL: platform is already registered with name: \"X\"",
                "same platform",
            ),
            (
                "libtensorflow_framework.so.2: cannot open shared object file: No such file",
                "names TensorFlow's",
            ),
            (
                "File system scheme 's3' not implemented (file: 's3://a/b')",
                "No plugin for the scheme",
            ),
            ("'create_device' field in SP_PlatformFns must be set.", "demands"),
            ("Device name/type 'MY2' must match [A-Z][A-Z_]*.", "capital letters"),
            ("/lib/libc.so.6: version `GLIBC_2.38' not found (required by x)", "newer Linux"),
        ] {
            let known = explain(text).unwrap_or_else(|| panic!("{text} is not known"));
            assert!(known.cause.contains(word), "{text}: {}", known.cause);
        }
        assert_eq!(explain("all is well"), None);
    }

    #[test]
    fn every_row_of_the_page_is_known() {
        let (_, table) = PAGE.split_once(HEADING).expect("the table");
        let rows = table.lines().skip(2).take_while(|line| line.starts_with('|')).count();
        assert!(rows > 30 && KNOWN.len() == rows, "{} of {rows}", KNOWN.len());
        let quoted = KNOWN.iter().flat_map(|known| &known.parts).filter(|part| part.contains('`'));
        assert!(quoted.eq(["version `GLIBC_", "version `GLIBCXX_"].iter()));
    }

    /// Checks that each entry is found by its own text, so that none is hidden by one before it.
    #[test]
    fn no_entry_hides_another() {
        for known in KNOWN.iter() {
            let text = known.parts.join(" … ");
            let explanation = explain(&text).expect("it contains the parts");
            assert_eq!(explanation.parts, known.parts, "{text}");
        }
    }
}

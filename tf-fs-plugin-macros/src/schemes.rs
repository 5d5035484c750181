//! Which schemes TensorFlow can reach.

use crate::errors::Errors;
use crate::strings;
use proc_macro2::{Literal, Span};
use syn::LitStr;

/// The schemes that TensorFlow registers itself, in all versions.
const BUILT_IN: [&str; 3] = ["file", "ram", "gs"];

/// The schemes of one plugin, without duplicates.
#[derive(Default)]
pub(crate) struct Schemes(Vec<String>);

impl Schemes {
    /// Adds a scheme and returns it as the author wrote it, unless there is a mistake in it.
    pub(crate) fn add(&mut self, literal: &LitStr, errors: &mut Errors) -> Option<Literal> {
        let scheme = literal.value();
        if let Err(message) = check(&scheme) {
            errors.at(literal.span(), message);
            return None;
        }
        if self.0.contains(&scheme) {
            errors.at(
                literal.span(),
                format!("the scheme \"{scheme}\" is listed twice; remove one of the two"),
            );
            return None;
        }
        self.0.push(scheme);
        Some(literal.token())
    }
}

/// Reads a string literal that names a scheme; `example` is what to write.
pub(crate) fn literal(input: syn::parse::ParseStream<'_>, example: &str) -> syn::Result<LitStr> {
    let span = if input.is_empty() { Span::call_site() } else { input.span() };
    let literal = strings::literal(input).map_err(|_| {
        syn::Error::new(span, format!("a scheme is a string literal; write {example}"))
    })?;
    if literal.suffix().is_empty() {
        Ok(literal)
    } else {
        let message = format!("a scheme has no suffix `{}`; remove it", literal.suffix());
        Err(syn::Error::new(literal.span(), message))
    }
}

/// Checks the rule of TensorFlow's URI parser: `[A-Za-z][A-Za-z0-9.]+`, case-sensitive. A name with
/// any other scheme, such as one letter, silently goes to the local filesystem.
fn check(scheme: &str) -> Result<(), String> {
    const RULE: &str = "a scheme is an ASCII letter followed by ASCII letters, digits and `.`";
    if scheme.is_empty() {
        return Err(
            "a scheme cannot be empty, because TensorFlow itself serves paths without one; \
             write \"mem\" for `mem://...`"
                .to_owned(),
        );
    }
    if let Some((before, _)) = scheme.split_once(':') {
        let fix = match check(before) {
            Ok(()) => format!("write \"{before}\""),
            Err(problem) => problem,
        };
        return Err(format!("a scheme is written without `://`; {fix}"));
    }
    if BUILT_IN.contains(&scheme) {
        return Err(format!(
            "the scheme \"{scheme}\" is TensorFlow's own, and registering it fails; choose another"
        ));
    }
    let first = scheme.chars().next();
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '.';
    let bad = first
        .filter(|c| !c.is_ascii_alphabetic())
        .or_else(|| scheme.chars().find(|c| !allowed(*c)));
    let Some(bad) = bad else {
        if scheme.len() < 2 {
            return Err(format!(
                "TensorFlow never finds the scheme \"{scheme}\": it takes one letter for a drive, and files go to the \
                 local disk; write two or more"
            ));
        }
        return Ok(());
    };
    let fix = suggestion(scheme)
        .map_or_else(|| "choose another".to_owned(), |fix| format!("write \"{fix}\""));
    Err(format!("TensorFlow never finds the scheme {scheme:?} because of {bad:?}: {RULE}; {fix}"))
}

/// Returns a scheme without the characters that TensorFlow does not accept, if the rest is a scheme.
fn suggestion(scheme: &str) -> Option<String> {
    if !scheme.is_ascii() {
        return None;
    }
    let kept: String = scheme
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || *c == '.')
        .skip_while(|c| !c.is_ascii_alphabetic())
        .collect();
    check(&kept).is_ok().then_some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(scheme: &str) -> String {
        check(scheme).expect_err(scheme)
    }

    #[test]
    fn what_tensorflow_reaches_is_good() {
        for scheme in ["mem", "s3", "aa", "probe.v2", "S3", "PROBE", "gs2", "File", "x.", "hdfs"] {
            assert_eq!(check(scheme), Ok(()), "{scheme}");
        }
    }

    #[test]
    fn each_problem_has_its_reason_and_fix() {
        assert_eq!(problem("s3://"), "a scheme is written without `://`; write \"s3\"");
        assert_eq!(problem("s3:"), "a scheme is written without `://`; write \"s3\"");
        assert_eq!(problem("s3://bucket"), "a scheme is written without `://`; write \"s3\"");
        assert!(problem("").starts_with("a scheme cannot be empty"));
        assert!(problem("://").contains("cannot be empty"));
        assert!(problem("gs://").ends_with("choose another"));
        assert!(problem("a").contains("one letter"));
        assert!(problem("a://").ends_with("write two or more"));
        for scheme in BUILT_IN {
            assert!(problem(scheme).contains("TensorFlow's own"), "{scheme}");
        }
    }

    #[test]
    fn a_bad_character_is_named_and_left_out() {
        for (scheme, character, fix) in [
            ("my-fs", "'-'", "write \"myfs\""),
            ("my_fs", "'_'", "write \"myfs\""),
            ("S 3", "' '", "write \"S3\""),
            ("3dd", "'3'", "write \"dd\""),
            (".mem", "'.'", "write \"mem\""),
            ("m\0em", "'\\0'", "write \"mem\""),
            ("mém", "'é'", "choose another"),
            ("s3/", "'/'", "write \"s3\""),
            ("-1", "'-'", "choose another"),
            ("g-s", "'-'", "choose another"),
        ] {
            let problem = problem(scheme);
            assert!(problem.contains(&format!("because of {character}:")), "{problem}");
            assert!(problem.ends_with(fix), "{problem}");
        }
    }
}

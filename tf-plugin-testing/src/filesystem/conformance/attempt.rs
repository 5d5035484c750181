//! One attempt of a case.

use super::case::Case;
use super::run::{Run, Source, Stop};
use crate::filesystem::declared::Declared;
use crate::filesystem::host::Host;
use crate::verdict::Verdict;

/// Runs a case below the root, in directories whose names begin with the prefix, and deletes them if it passes.
/// `first_file` is one that has to be there already.
pub(super) fn attempt(
    host: &Host,
    (root, prefix): (&str, String),
    declared: &Declared,
    case: &Case,
    source: Source<'_>,
    first_file: Option<&str>,
) -> Verdict {
    let fs = host.filesystem_for(format!("{root}/")).unwrap_or_else(|error| {
        let schemes = host.schemes();
        panic!(
            "the root {root}/ belongs to no filesystem of this host, which has {schemes:?}: {error}"
        )
    });
    let mut run = Run::new(host, fs.clone(), root, declared, source, prefix);
    let outcome = first_file.map_or(Ok(()), |file| run.is_provided(file));
    let outcome = outcome.and_then(|()| (case.run)(&mut run));
    let cells: Vec<String> = run.cells().collect();
    for violation in host.take_violations() {
        run.deviation(format_args!("a rule of the C boundary was broken: {violation}"));
    }
    let skipped = match outcome {
        Ok(()) | Err(Stop::Failed) => None,
        Err(Stop::Skip(reason)) => Some(reason),
        Err(Stop::NothingToTestWith(text)) => {
            run.deviation(text);
            None
        }
    };
    let (deviations, unimplemented) = run.into_parts();
    if !deviations.is_empty() {
        return Verdict::Failed(deviations);
    }
    if matches!(source, Source::Written) {
        for cell in cells {
            let _ = fs.delete_recursively(cell);
        }
    }
    // Of tidying up only.
    let _ = host.take_violations();
    skipped.or(unimplemented).map_or(Verdict::Passed, Verdict::Skipped)
}

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
    let mut run = Run {
        host,
        tables: fs.tables(),
        fs,
        root,
        declared,
        source,
        prefix,
        cells: Vec::new(),
        deviations: Vec::new(),
        unimplemented: None,
    };
    let outcome = first_file.map_or(Ok(()), |file| run.is_provided(file));
    let skipped = match outcome.and_then(|()| (case.run)(&mut run)) {
        Ok(()) | Err(Stop::Failed) => None,
        Err(Stop::Skip(reason)) => Some(reason),
    };
    for violation in host.take_violations() {
        run.deviation(format_args!("a rule of the C boundary was broken: {violation}"));
    }
    let verdict = Verdict::of(run.deviations, skipped.or(run.unimplemented));
    if !matches!(verdict, Verdict::Failed(_)) && matches!(source, Source::Written) {
        for cell in run.cells {
            let _ = run.fs.delete_recursively(cell);
        }
        // Of tidying up only.
        let _ = host.take_violations();
    }
    verdict
}

//! Runs one case, and says how it ends.

use super::case::Case;
use super::run::{Run, Source, Stop};
use crate::abi::exit_report::Running;
use crate::deviation::Deviation;
use crate::filesystem::host::Host;
use crate::filesystem::semantics::Semantics;
use crate::outcome::Outcome;

/// Runs a case below the root, in directories whose names begin with the prefix, and deletes them
/// if it passes. `first_file` is a file that must exist already.
pub(super) fn attempt(
    host: &Host,
    (root, prefix): (&str, String),
    semantics: &Semantics,
    case: &Case,
    source: Source<'_>,
    first_file: Option<&str>,
) -> Outcome {
    let fs = host.filesystem_for(format!("{root}/")).unwrap_or_else(|error| {
        let schemes = host.schemes();
        panic!(
            "the root {root}/ belongs to no filesystem of this host, which has {schemes:?}: {error}"
        )
    });
    let mut run = Run {
        host,
        fs,
        root,
        semantics,
        source,
        prefix,
        cells: Vec::new(),
        deviations: Vec::new(),
        unimplemented: None,
    };
    let _running = Running::new(case.name);
    let provided = first_file.map_or(Ok(()), |file| run.is_provided(file));
    let ended = provided.and_then(|()| (case.run)(&mut run));
    let outcome = ended.and_then(|()| run.unimplemented.take().map(Stop::Skip).map_or(Ok(()), Err));
    let violations = host.take_violations().into_iter().map(Deviation::of_violation);
    let outcome = Outcome::of(run.deviations, outcome, violations);
    if !matches!(outcome, Outcome::Failed(_)) && matches!(source, Source::Written) {
        for cell in run.cells {
            let _ = run.fs.delete_recursively(cell);
        }
        // These are from deleting the directories only.
        let _ = host.take_violations();
    }
    outcome
}

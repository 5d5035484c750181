//! Renaming and copying between two hosts of a scheme.

use super::directories::Transfer;
use super::run::{CONTENT, Outcome, Run, Stop};

const THEIRS: &[u8] = b"the other host's";

/// To the same path on another host, so that the hosts alone tell the two files apart, and back to a new name.
pub(super) fn to_another_host(run: &mut Run<'_>, op: &Transfer) -> Outcome {
    let Some(other) = run.declared.other_host.clone() else {
        return Err(Stop::skip(
            "no `other_host` is declared, a directory on another host of the scheme",
        ));
    };
    let cell = run.cell()?;
    let path = cell.get(run.root.len()..).unwrap_or_default();
    let there = format!("{}{path}", other.trim_end_matches('/'));
    if run.has_directories() {
        run.make_dirs(&there)?;
    }
    let outcome = there_and_back(run, op, &cell, &there);
    let _ = run.fs.delete_recursively(&there);
    outcome
}

fn there_and_back(run: &mut Run<'_>, op: &Transfer, cell: &str, there: &str) -> Outcome {
    let (here, theirs) = (format!("{cell}/file"), format!("{there}/file"));
    run.write(&theirs, THEIRS)?;
    run.holds("the same path was written on another host", &here, CONTENT);
    let what = format!("{} to another host", op.name);
    let done = (op.call)(&run.fs, &here, &theirs);
    if !run.expect(&what, &done, None) {
        run.holds(format!("{what}, which failed"), &here, CONTENT);
        run.holds(format!("{what}, which failed"), &theirs, THEIRS);
        return Ok(());
    }
    run.holds(&what, &theirs, CONTENT);
    if op.is_move {
        run.is_gone(&what, &here);
    } else {
        run.holds(&what, &here, CONTENT);
    }
    let back = format!("{cell}/back");
    run.must(format_args!("{} from another host", op.name), (op.call)(&run.fs, &theirs, &back))?;
    run.holds("back from another host", &back, CONTENT);
    if op.is_move {
        run.is_gone("back from another host", &theirs);
    } else {
        run.holds("back from another host", &theirs, CONTENT);
    }
    Ok(())
}

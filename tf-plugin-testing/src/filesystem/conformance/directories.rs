//! The header's table: creating, deleting, renaming and copying, also between two hosts with the same scheme.

use super::conditions::{Codes, FP, Is, NOT_FOUND, OK};
use super::run::{CONTENT, Run, Step, Stop};
use crate::filesystem::semantics::Directories;
use crate::filesystem::test_filesystem::TestFilesystem;
use tf_fs_plugin::DeleteRecursivelyError;
use tf_plugin_core::{Code, Error, Result};

pub(super) fn is_there(run: &mut Run<'_>, what: &str, _: Is, path: &str) {
    let found = run.fs.is_directory(path);
    run.expect(format_args!("{what}: is_directory afterwards"), &found, None);
}

pub(super) fn recursively_create_dir_of_the_root(run: &mut Run<'_>) -> Step {
    let root = run.fs.recursively_create_dir(format!("{}/", run.root));
    run.expect("recursively_create_dir of the root", &root, None);
    Ok(())
}

pub(super) fn delete_recursively(run: &Run<'_>, path: &str) -> Result<()> {
    run.fs.delete_recursively(path).map_err(|left| untouched(path, left))
}

pub(super) fn is_gone(run: &mut Run<'_>, what: &str, _: Is, path: &str) {
    let found = run.fs.path_exists(path);
    run.expect(format_args!("{what}: path_exists afterwards"), &found, NOT_FOUND);
    let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
    let found = run.fs.is_directory(parent);
    if run.has_directories() {
        run.expect(format_args!("{what}: its parent afterwards"), &found, None);
    }
}

/// Returns the error of a `delete_recursively` that failed before it began; `DATA_LOSS` if it says
/// that more than the one directory is left. TensorFlow reads both counters even after an error.
fn untouched(path: &str, left: DeleteRecursivelyError) -> Error {
    let DeleteRecursivelyError { error, files, dirs } = left;
    if error.code() == Code::Unimplemented || (files, dirs) == (0, 1) {
        return error;
    }
    let what = format!("{path}: {files} files and {dirs} directories are left, not 0 and 1");
    Error::data_loss(what).with_source(error)
}

/// `rename_file` or `copy_file`.
pub(super) struct Transfer {
    pub(super) name: &'static str,
    pub(super) call: fn(&TestFilesystem, &str, &str) -> Result<()>,
    pub(super) is_move: bool,
}

pub(super) const RENAME_FILE: Transfer =
    Transfer { name: "rename_file", call: |fs, src, dst| fs.rename_file(src, dst), is_move: true };

pub(super) const COPY_FILE: Transfer =
    Transfer { name: "copy_file", call: |fs, src, dst| fs.copy_file(src, dst), is_move: false };

/// The codes that `rename_file` and `copy_file` must return for the source and the target.
const FROM: Codes = [NOT_FOUND, NOT_FOUND, OK, FP, FP];
const TO: Codes = [OK, NOT_FOUND, FP, FP, FP];

/// Moves or copies from a path of this condition to a new name.
pub(super) fn from(run: &mut Run<'_>, op: &Transfer, is: Is) -> Step {
    let cell = run.cell()?;
    let src = run.path(&cell, is)?;
    let what = format!("{} from {is:?} to a new name", op.name);
    let dst = format!("{cell}/new");
    let result = (op.call)(&run.fs, &src, &dst);
    let mut allowed = run.allowed(&FROM, is);
    let is_directory = matches!(is, Is::EmptyDir | Is::FullDir);
    if is_directory && op.is_move && run.semantics.directories == Directories::Implied {
        // TensorFlow's own filesystems also do it, one name after the other.
        allowed.push(None);
        if result.is_ok() {
            whole_directory_moved(run, &what, is, (&cell, &src, &dst));
            return Ok(());
        }
    }
    moved(run, &what, &result, &allowed, (&cell, &src, &dst), op.is_move);
    Ok(())
}

/// Checks that everything moved to the new name, and nothing else did.
fn whole_directory_moved(
    run: &mut Run<'_>,
    what: &str,
    is: Is,
    (cell, src, dst): (&str, &str, &str),
) {
    let content: &[&str] = if is == Is::FullDir { &["file"] } else { &[] };
    run.lists(what, dst, content);
    for name in content {
        run.holds(what, &format!("{dst}/{name}"), CONTENT);
        run.is_gone(what, &format!("{src}/{name}"));
    }
    run.is_gone(what, src);
    // The name `empty_file` begins with `empty`, but the file is not in that directory.
    run.holds(what, &format!("{cell}/empty_file"), b"");
    run.holds(what, &format!("{cell}/file"), CONTENT);
    if is == Is::EmptyDir {
        run.holds(what, &format!("{cell}/full/file"), CONTENT);
    }
}

/// Moves or copies from a file to a path of this condition.
pub(super) fn to(run: &mut Run<'_>, op: &Transfer, is: Is) -> Step {
    let cell = run.cell()?;
    let dst = run.path(&cell, is)?;
    let src = format!("{cell}/file");
    let what = format!("{} from a file to {is:?}", op.name);
    let result = (op.call)(&run.fs, &src, &dst);
    let allowed = run.allowed(&TO, is);
    moved(run, &what, &result, &allowed, (&cell, &src, &dst), op.is_move);
    Ok(())
}

pub(super) fn to_existing(run: &mut Run<'_>, op: &Transfer) -> Step {
    let cell = run.cell()?;
    let (src, dst) = (format!("{cell}/file"), format!("{cell}/empty_file"));
    let what = format!("{} from a file to an existing file", op.name);
    let result = (op.call)(&run.fs, &src, &dst);
    moved(run, &what, &result, &[None], (&cell, &src, &dst), op.is_move);
    Ok(())
}

pub(super) fn empty_to_existing(run: &mut Run<'_>, op: &Transfer) -> Step {
    let cell = run.cell()?;
    let (src, dst) = (format!("{cell}/empty_file"), format!("{cell}/file"));
    let what = format!("{} from an empty file to an existing file", op.name);
    if run.expect(&what, &(op.call)(&run.fs, &src, &dst), None) {
        run.expect_that(
            format_args!("{what}: the effect"),
            run.has(&dst, b"") && run.exists(&src) != op.is_move,
        );
    }
    Ok(())
}

pub(super) fn to_itself(run: &mut Run<'_>, op: &Transfer) -> Step {
    let cell = run.cell()?;
    let same = format!("{cell}/file");
    let what = format!("{} from a file to itself", op.name);
    if run.expect(&what, &(op.call)(&run.fs, &same, &same), None) {
        run.expect_that(format_args!("{what}: the content is there"), run.has(&same, CONTENT));
    }
    Ok(())
}

fn moved(
    run: &mut Run<'_>,
    what: &str,
    result: &Result<()>,
    want: &[Option<Code>],
    (cell, src, dst): (&str, &str, &str),
    is_move: bool,
) {
    if run.expect_any(what, result, want) && result.is_ok() {
        let is_below = dst.strip_prefix(src).is_some_and(|rest| rest.starts_with('/'));
        let source = match is_move {
            // The name below the old one makes the old one a directory.
            true if is_below && run.semantics.directories == Directories::Implied => {
                !run.fs.stat(src).is_ok_and(|found| !found.is_directory)
            }
            true => !run.exists(src),
            false => run.has(src, CONTENT),
        };
        run.expect_that(format_args!("{what}: the effect"), run.has(dst, CONTENT) && source);
    } else if result.is_err() {
        run.untouched(what, cell);
        let is_new = dst.ends_with("/new");
        run.expect_that(
            format_args!("{what}: failed, but the target is there"),
            !is_new || !run.exists(dst),
        );
    }
}

/// Moves or copies, which has to succeed; skips the case if the operation is not implemented.
pub(super) fn transfer(run: &mut Run<'_>, op: &Transfer, src: &str, dst: &str) -> Result<(), Stop> {
    run.must(format_args!("{} from {src} to {dst}", op.name), (op.call)(&run.fs, src, dst))
}

/// The content of the file at the same path on another host.
const THEIRS: &[u8] = b"the other host's";

/// Moves or copies to the same path on another host, where only the hosts tell the files apart, and back to a new name.
pub(super) fn to_another_host(run: &mut Run<'_>, op: &Transfer) -> Step {
    let Some(other) = run.semantics.other_host.clone() else {
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

fn there_and_back(run: &mut Run<'_>, op: &Transfer, cell: &str, there: &str) -> Step {
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

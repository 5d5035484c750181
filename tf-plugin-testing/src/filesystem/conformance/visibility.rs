//! When written bytes become visible, and that nothing can be written where files are provided.

use super::conditions::{FP, NOT_FOUND};
use super::replaced;
use super::run::{Run, Step, Stop, needs};
use super::steps::{create, created, file};
use crate::filesystem::TestWritableFile;
use crate::filesystem::semantics::Visibility;
use tf_plugin_core::{Code, Result};

/// Checks that nothing can be changed where files are provided.
pub(super) fn changes_are_refused(run: &mut Run<'_>) -> Step {
    needs(!run.may_change(), "files are not declared to be provided")?;
    let cell = run.cell()?;
    let (file, new) = (format!("{cell}/file"), format!("{cell}/new"));
    let fs = run.fs.clone();
    let left = |result: Result<(), tf_fs_plugin::DeleteRecursivelyError>| {
        result.map_err(|left| left.error)
    };
    for (op, answer) in [
        ("new_writable_file of a new name", fs.new_writable_file(&new).map(drop)),
        ("new_writable_file of a file", fs.new_writable_file(&file).map(drop)),
        ("new_appendable_file of a file", fs.new_appendable_file(&file).map(drop)),
        ("create_dir of a new name", fs.create_dir(&new)),
        ("recursively_create_dir of a new name", fs.recursively_create_dir(&new)),
        ("copy_file to a new name", fs.copy_file(&file, &new)),
        ("rename_file to a new name", fs.rename_file(&file, &new)),
        ("delete_file of a file", fs.delete_file(&file)),
        ("delete_recursively of a file", left(fs.delete_recursively(&file))),
        ("delete_recursively of a directory", left(fs.delete_recursively(format!("{cell}/full")))),
    ] {
        let refusals = [Code::Unimplemented, Code::PermissionDenied, Code::FailedPrecondition];
        if !answer.as_ref().is_err_and(|error| refusals.contains(&error.code())) {
            run.expect(op, &answer, Some(Code::PermissionDenied));
        }
        run.expect(format_args!("{op}: path_exists of it"), &run.fs.path_exists(&new), NOT_FOUND);
        run.untouched(op, &cell);
    }
    Ok(())
}

/// Checks that a reader sees what `publish` has made visible.
pub(super) fn visible_after(
    run: &mut Run<'_>,
    what: &str,
    publish: fn(&mut TestWritableFile) -> Result<()>,
) -> Step {
    run.needs_visible_at_flush()?;
    let (path, mut writer) = created(run)?;
    let mut content = Vec::new();
    for piece in [&b"one "[..], b"two "] {
        run.must("append", writer.append(piece))?;
        content.extend_from_slice(piece);
        run.must(what, publish(&mut writer))?;
        run.holds(what, &path, &content);
        run.gives(what, run.fs.get_file_size(&path), content.len() as u64);
    }
    run.must("close", writer.close())
}

pub(super) fn visibility_is_declared_right(run: &mut Run<'_>) -> Step {
    match run.semantics.visible {
        Visibility::Create => {
            return Err(Stop::skip("files are declared to be visible at create"));
        }
        Visibility::InPlace => return replaced::in_place_is_declared_right(run),
        Visibility::Flush | Visibility::Close => {}
    }
    let path = file(run, b"old")?;
    let mut writer = create(run, &path)?;
    run.must("append", writer.append(b"half of the"))?;
    let mut when = "flush";
    if run.semantics.visible == Visibility::Close {
        // An error is fine: there may be nothing to flush that others can see.
        let _ = writer.flush();
        when = "close";
    }
    let seen = run.fs.read_file(&path);
    let what = format!("before the {when} that files are declared to be visible at");
    // The process that writes the file may be refused.
    if run.expect_any(&what, &seen, &[None, FP])
        && let Ok(seen) = seen
    {
        run.expect_bytes(what, &seen, b"old");
    }
    run.must("close", writer.close())?;
    run.holds("closed", &path, b"half of the");
    Ok(())
}

//! The header's table: queries about paths, listings, patterns and names.

use super::conditions::{Codes, Is, NOT_FOUND, OK};
use super::run::{CONTENT, Run, Step};

const ANYTHING: Codes = [NOT_FOUND, NOT_FOUND, OK, OK, OK];

pub(super) fn kind_and_length(run: &mut Run<'_>, what: &str, is: Is, path: &str) {
    if let Ok(found) = run.fs.stat(path) {
        let is_file = is == Is::File;
        let length = if is_file { CONTENT.len() as u64 } else { found.length };
        let right = found.is_directory != is_file && found.length == length;
        run.expect_that(format_args!("{what}: kind and length"), right);
    }
}

pub(super) fn length(run: &mut Run<'_>, what: &str, _: Is, path: &str) {
    run.gives(what, run.fs.get_file_size(path), 7);
}

pub(super) fn root_is_a_directory(run: &mut Run<'_>) -> Step {
    let root = run.fs.is_directory(format!("{}/", run.root));
    run.expect("is_directory of the root", &root, None);
    Ok(())
}

const SOME: [Is; 4] = [Is::File, Is::EmptyDir, Is::BelowFile, Is::Missing];

pub(super) fn paths_exist(run: &mut Run<'_>) -> Step {
    let paths = some_paths(run)?;
    let answers = run.fs.paths_exist(&paths);
    for (is, answer) in SOME.into_iter().zip(&run.must("paths_exist", answers)?) {
        let allowed = run.allowed(&ANYTHING, is);
        run.expect_any(format_args!("paths_exist of {is:?}"), answer, &allowed);
    }
    Ok(())
}

fn some_paths(run: &mut Run<'_>) -> Step<Vec<String>> {
    let cell = run.cell()?;
    SOME.into_iter().map(|is| run.path(&cell, is)).collect()
}

pub(super) fn paths_exist_without_statuses(run: &mut Run<'_>) -> Step {
    let all_paths = some_paths(run)?;
    for (paths, want) in [
        (&all_paths[..2], true),
        (&all_paths[..], false),
        (&all_paths[3..], false),
        (&all_paths[..0], true),
    ] {
        let all = run.fs.all_paths_exist(paths).unwrap_or(!want);
        let what = format!("paths_exist without statuses, {} paths: {want}", paths.len());
        run.expect_that(what, all == want);
    }
    Ok(())
}

pub(super) fn entries(run: &mut Run<'_>, what: &str, is: Is, path: &str) {
    let want: &[&[u8]] = if is == Is::FullDir { &[b"file"] } else { &[] };
    run.names(what, run.fs.get_children(path), want);
}

pub(super) fn get_children_of_files_and_directories(run: &mut Run<'_>) -> Step {
    let cell = run.cell()?;
    let all = ["empty", "empty_file", "file", "full"];
    let want = &all[usize::from(!run.has_directories())..];
    run.lists("files and directories, each once", &cell, want);
    Ok(())
}

/// Checks what one pattern matches.
pub(super) fn glob(run: &mut Run<'_>, pattern: &str, want: &[&str]) -> Step {
    let cell = run.cell()?;
    for name in ["part-0", "part-1", "part-x", "full/part-0"] {
        if let Err(error) = run.make_file(&format!("{cell}/{name}"), name.as_bytes()) {
            run.deviation(format_args!("write of {name}: {error:#}"));
        }
    }
    let has_empty = run.has_directories();
    let want = want.iter().filter(|name| **name != "empty" || has_empty);
    run.matches(&format!("{cell}/{pattern}"), want.map(|name| format!("{cell}/{name}")));
    Ok(())
}

pub(super) fn translate_name_of_roots(run: &mut Run<'_>) -> Step {
    let scheme = run.fs.scheme().escape_ascii().to_string();
    for root in ["://", ":///", ":////"] {
        let name = run.fs.translate_name(format!("{scheme}{root}"));
        run.gives(format_args!("translate_name of {scheme}{root}"), name, b"/".to_vec());
    }
    Ok(())
}

pub(super) fn translate_name_cleans(run: &mut Run<'_>) -> Step {
    let cell = run.cell()?;
    for (name, want) in
        [("./a_file", "a_file"), ("a/convoluted/../path/./to/.//.///a/file", "a/path/to/a/file")]
    {
        let translated = run.fs.translate_name(format!("{cell}/{name}"));
        let whole = run.fs.translate_name(format!("{cell}/{want}")).unwrap_or_default();
        run.gives(format_args!("translate_name of {name}"), translated, whole);
    }
    Ok(())
}

pub(super) fn untidy_names(run: &mut Run<'_>) -> Step {
    let cell = run.cell()?;
    run.expect_that(
        "a name that is not in canonical form names the same file",
        run.has(&format!("{cell}//full/./../full/file"), CONTENT),
    );
    Ok(())
}

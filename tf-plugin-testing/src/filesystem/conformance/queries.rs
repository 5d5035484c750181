//! The header's table: questions about paths, listings, patterns and names.

use super::conditions::{Codes, Is, NOT_FOUND};
use super::run::{CONTENT, Does, Outcome, Run};

const ANYTHING: Codes = Codes {
    missing: NOT_FOUND,
    parent_missing: NOT_FOUND,
    file: None,
    empty_dir: None,
    full_dir: None,
};

pub(super) const PATH_EXISTS: Does =
    Does { call: |run, path| run.fs.path_exists(path), after: |_, _, _| {} };

pub(super) const STAT: Does = Does {
    call: |run, path| run.fs.stat(path).map(drop),
    after: |run, is, path| {
        if let Ok(found) = run.fs.stat(path) {
            let is_file = is == Is::File;
            let length = if is_file { CONTENT.len() as u64 } else { found.length };
            run.expect_that(
                format_args!("stat of {is:?}: kind and length"),
                found.is_directory != is_file && found.length == length,
            );
        }
    },
};

pub(super) const IS_DIRECTORY: Does =
    Does { call: |run, path| run.fs.is_directory(path), after: |_, _, _| {} };

pub(super) const GET_FILE_SIZE: Does = Does {
    call: |run, path| run.fs.get_file_size(path).map(drop),
    after: |run, is, path| {
        run.expect_that(
            format_args!("get_file_size of {is:?}: 7"),
            run.fs.get_file_size(path).is_ok_and(|size| size == 7),
        );
    },
};

pub(super) fn root_is_a_directory(run: &mut Run<'_>) -> Outcome {
    let root = run.fs.is_directory(format!("{}/", run.root));
    run.expect("is_directory of the root", &root, None);
    Ok(())
}

const SOME: [Is; 4] = [Is::File, Is::EmptyDir, Is::BelowFile, Is::Missing];

pub(super) fn paths_exist(run: &mut Run<'_>) -> Outcome {
    let cell = run.cell()?;
    let mut paths = Vec::new();
    for is in SOME {
        paths.push(run.path(&cell, is)?);
    }
    match run.fs.paths_exist(&paths) {
        Ok(answers) => {
            for (is, answer) in SOME.into_iter().zip(&answers) {
                run.expect_any(
                    format_args!("paths_exist of {is:?}"),
                    answer,
                    &run.allowed(&ANYTHING, is),
                );
            }
        }
        Err(error) => run.deviation(format_args!("paths_exist: {error:#}")),
    }
    Ok(())
}

pub(super) fn paths_exist_without_statuses(run: &mut Run<'_>) -> Outcome {
    let cell = run.cell()?;
    let mut all_paths = Vec::new();
    for is in SOME {
        all_paths.push(run.path(&cell, is)?);
    }
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

pub(super) const GET_CHILDREN: Does = Does {
    call: |run, path| run.fs.get_children(path).map(drop),
    after: |run, is, path| {
        let want: &[&[u8]] = if is == Is::FullDir { &[b"file"] } else { &[] };
        run.expect_that(
            format_args!("get_children of {is:?}: the names"),
            run.fs.get_children(path).is_ok_and(|names| names == want),
        );
    },
};

pub(super) fn get_children_of_files_and_directories(run: &mut Run<'_>) -> Outcome {
    let cell = run.cell()?;
    if let Ok(mut names) = run.fs.get_children(&cell) {
        names.sort_unstable();
        let want: &[&[u8]] = if run.has_directories() {
            &[b"empty", b"empty_file", b"file", b"full"]
        } else {
            &[b"empty_file", b"file", b"full"]
        };
        run.expect_that("get_children: files and directories, each once", names == want);
    }
    Ok(())
}

/// What one pattern matches.
pub(super) fn glob(run: &mut Run<'_>, pattern: &str, want: &[&str]) -> Outcome {
    let cell = run.cell()?;
    for name in ["part-0", "part-1", "part-x", "full/part-0"] {
        if let Err(error) = run.make_file(&format!("{cell}/{name}"), name.as_bytes()) {
            run.deviation(format_args!("write of {name}: {error:#}"));
        }
    }
    let found = run.fs.get_matching_paths(format!("{cell}/{pattern}"));
    if run.expect(format_args!("get_matching_paths of {pattern}"), &found, None)
        && let Ok(mut found) = found
    {
        found.sort_unstable();
        let has_empty = run.has_directories();
        let want = want.iter().filter(|name| **name != "empty" || has_empty);
        let want: Vec<_> = want.map(|name| format!("{cell}/{name}").into_bytes()).collect();
        run.expect_that(format_args!("get_matching_paths of {pattern}: the names"), found == want);
    }
    Ok(())
}

pub(super) fn translate_name_of_roots(run: &mut Run<'_>) -> Outcome {
    let scheme = run.fs.scheme().escape_ascii().to_string();
    for root in ["://", ":///", ":////"] {
        let name = run.fs.translate_name(format!("{scheme}{root}"));
        run.expect_that(
            format_args!("translate_name of {scheme}{root}: /"),
            name.is_ok_and(|name| name == b"/"),
        );
    }
    Ok(())
}

pub(super) fn translate_name_cleans(run: &mut Run<'_>) -> Outcome {
    let cell = run.cell()?;
    for (name, want) in
        [("./a_file", "a_file"), ("a/convoluted/../path/./to/.//.///a/file", "a/path/to/a/file")]
    {
        let translated = run.fs.translate_name(format!("{cell}/{name}"));
        let whole = run.fs.translate_name(format!("{cell}/{want}"));
        let holds = match (translated, whole) {
            (Ok(translated), Ok(whole)) => translated == whole,
            _ => false,
        };
        run.expect_that(format_args!("translate_name of {name}: ends in {want}"), holds);
    }
    Ok(())
}

pub(super) fn untidy_names(run: &mut Run<'_>) -> Outcome {
    let cell = run.cell()?;
    run.expect_that(
        "a name that is not in canonical form names the same file",
        run.has(&format!("{cell}//full/./../full/file"), CONTENT),
    );
    Ok(())
}

//! Directories, listings, deleting, renaming and copying beyond the header's table.

use super::conditions::{FP, NOT_FOUND};
use super::directories::{COPY_FILE, RENAME_FILE, Transfer, transfer};
use super::run::{CONTENT, Run, Step};
use super::steps::{begun, file, files, pattern};
use crate::violations::names_shown;

// Listings.

pub(super) fn listing_is_one_level(run: &mut Run<'_>) -> Step {
    let cell = files(run, &["a/x", "a/b/y"])?;
    run.make_dirs(&format!("{cell}/a/b/c"))?;
    run.lists("three levels", &cell, &["a"]);
    run.lists("three levels", &format!("{cell}/a"), &["b", "x"]);
    if run.has_directories() {
        run.lists("three levels", &format!("{cell}/a/b"), &["c", "y"]);
    }
    Ok(())
}

pub(super) fn listing_of_prefix_siblings(run: &mut Run<'_>) -> Step {
    let dirs = ["a", "ab", "a.b", "a-b"];
    let cell = files(run, &dirs.map(|dir| format!("{dir}/in_{dir}")))?;
    for dir in dirs {
        run.lists("siblings", &format!("{cell}/{dir}"), &[format!("in_{dir}")]);
    }
    Ok(())
}

pub(super) fn listing_of_many_files(run: &mut Run<'_>) -> Step {
    let names: Vec<_> = (0..300).map(|index| format!("part-{index:05}-of-00300")).collect();
    let cell = files(run, &names)?;
    run.lists("300 files", &cell, &names);
    Ok(())
}

pub(super) fn listing_follows_changes(run: &mut Run<'_>) -> Step {
    let cell = files(run, &["keep", "a"])?;
    run.lists("one more file", &cell, &["keep", "a"]);
    transfer(run, &RENAME_FILE, &format!("{cell}/a"), &format!("{cell}/b"))?;
    run.lists("renamed", &cell, &["keep", "b"]);
    transfer(run, &COPY_FILE, &format!("{cell}/b"), &format!("{cell}/c"))?;
    run.lists("copied", &cell, &["keep", "b", "c"]);
    run.must("delete_file", run.fs.delete_file(format!("{cell}/b")))?;
    run.lists("deleted", &cell, &["keep", "c"]);
    Ok(())
}

pub(super) fn root_lists_its_entries(run: &mut Run<'_>) -> Step {
    let cell = files(run, &["file"])?;
    let listed = run.fs.get_children(format!("{}/", run.root));
    let names = run.must("get_children of the root", listed)?;
    let name = cell.rsplit('/').next().unwrap_or_default();
    run.expect_that(
        format_args!("get_children of the root: {} lacks {name}", names_shown(&names)),
        names.iter().any(|other| other == name.as_bytes()),
    );
    Ok(())
}

// Patterns.

/// Checks what a pattern matches among files of these names.
pub(super) fn glob_among(run: &mut Run<'_>, names: &[&str], pattern: &str, want: &[&str]) -> Step {
    let cell = files(run, names)?;
    run.matches(&format!("{cell}/{pattern}"), want.iter().map(|name| format!("{cell}/{name}")));
    Ok(())
}

pub(super) fn glob_of_nothing(run: &mut Run<'_>) -> Step {
    run.cell()?;
    run.matches("", []);
    Ok(())
}

// Directories.

pub(super) fn recursively_create_keeps_content(run: &mut Run<'_>) -> Step {
    let cell = run.cell()?;
    run.must(
        "recursively_create_dir of a directory that is there",
        run.fs.recursively_create_dir(format!("{cell}/full")),
    )?;
    run.holds("created once more", &format!("{cell}/full/file"), CONTENT);
    Ok(())
}

pub(super) fn a_file_becomes_a_directory(run: &mut Run<'_>) -> Step {
    let path = file(run, CONTENT)?;
    run.must("delete_file", run.fs.delete_file(&path))?;
    run.must("create_dir where a file was", run.fs.create_dir(&path))?;
    run.expect("is_directory", &run.fs.is_directory(&path), None);
    run.write(&format!("{path}/below"), CONTENT)?;
    run.holds("in a directory where a file was", &format!("{path}/below"), CONTENT);
    Ok(())
}

pub(super) fn a_directory_becomes_a_file(run: &mut Run<'_>) -> Step {
    let cell = run.cell()?;
    let path = format!("{cell}/full");
    delete_tree(run, &path)?;
    run.write(&path, CONTENT)?;
    run.holds("where a directory was", &path, CONTENT);
    run.expect("is_directory of a file where a directory was", &run.fs.is_directory(&path), FP);
    Ok(())
}

// Deleting.

pub(super) fn delete_tree(run: &mut Run<'_>, path: &str) -> Step {
    let deleted = run.fs.delete_recursively(path).map_err(|left| left.error);
    run.must(format_args!("delete_recursively of {path}"), deleted)
}

pub(super) fn deleting_a_tree_keeps_prefix_siblings(run: &mut Run<'_>) -> Step {
    let cell = files(run, &["run/file", "run1/file", "run.old/file"])?;
    delete_tree(run, &format!("{cell}/run"))?;
    run.is_gone("delete_recursively", &format!("{cell}/run/file"));
    for dir in ["run1", "run.old"] {
        let file = format!("{dir}/file");
        run.holds("run was deleted", &format!("{cell}/{file}"), file.as_bytes());
    }
    Ok(())
}

pub(super) fn deleting_a_deep_tree(run: &mut Run<'_>) -> Step {
    let dirs = ["tree/a/b/c", "tree/a/d", "tree/e"].into_iter();
    let names = dirs.flat_map(|dir| (0..5).map(move |index| format!("{dir}/file{index}")));
    let cell = files(run, &names.collect::<Vec<_>>())?;
    let tree = format!("{cell}/tree");
    delete_tree(run, &tree)?;
    run.is_gone("delete_recursively", &tree);
    for below in ["a", "a/b/c", "a/b/c/file3", "e/file0"] {
        run.is_gone("delete_recursively", &format!("{tree}/{below}"));
    }
    let none: [&str; 0] = [];
    if run.has_directories() {
        run.lists("its only entry was deleted", &cell, &none);
    }
    Ok(())
}

pub(super) fn a_directory_of_directories_is_not_empty(run: &mut Run<'_>) -> Step {
    run.needs_real_directories()?;
    let cell = run.cell()?;
    let inner = format!("{cell}/empty/inner");
    run.must("create_dir", run.fs.create_dir(&inner))?;
    let deleted = run.fs.delete_dir(format!("{cell}/empty"));
    run.expect("delete_dir of a directory that holds a directory", &deleted, FP);
    run.expect("is_directory of what it holds", &run.fs.is_directory(&inner), None);
    Ok(())
}

pub(super) fn a_deleted_file_leaves_its_directory(run: &mut Run<'_>) -> Step {
    run.needs_real_directories()?;
    let cell = run.cell()?;
    let dir = format!("{cell}/full");
    run.must("delete_file", run.fs.delete_file(format!("{dir}/file")))?;
    let found = run.fs.is_directory(&dir);
    run.expect("is_directory of the directory of a deleted file", &found, None);
    run.expect("delete_dir of the directory of a deleted file", &run.fs.delete_dir(&dir), None);
    Ok(())
}

pub(super) fn a_file_is_deleted_while_it_is_written(run: &mut Run<'_>) -> Step {
    run.needs_visible_at_create()?;
    let (path, mut writer) = begun(run, b"some")?;
    run.must("delete_file of a file that is open for writing", run.fs.delete_file(&path))?;
    // These may succeed or fail, but must not bring the file back.
    let _ = writer.append(b"more");
    let _ = writer.close();
    drop(writer);
    run.is_gone("deleted while it was written", &path);
    run.write(&path, b"anew")?;
    run.holds("written again", &path, b"anew");
    Ok(())
}

// Renaming and copying.

pub(super) fn prefix_siblings_stay(run: &mut Run<'_>, op: &Transfer) -> Step {
    let cell = files(run, &["ckpt-1", "ckpt-10", "ckpt-1.index", "moved1"])?;
    transfer(run, op, &format!("{cell}/ckpt-1"), &format!("{cell}/moved"))?;
    run.holds("from ckpt-1 to moved", &format!("{cell}/moved"), b"ckpt-1");
    for name in ["ckpt-10", "ckpt-1.index", "moved1"] {
        run.holds("beside ckpt-1", &format!("{cell}/{name}"), name.as_bytes());
    }
    let mut want = vec!["ckpt-10", "ckpt-1.index", "moved", "moved1"];
    if !op.is_move {
        want.push("ckpt-1");
    }
    run.lists("from ckpt-1 to moved", &cell, &want);
    Ok(())
}

pub(super) fn large_files(run: &mut Run<'_>, op: &Transfer) -> Step {
    for len in [128 << 10, (256 << 10) + 1, 1 << 20, (1 << 20) + 4097] {
        let content = pattern(len);
        let path = file(run, &content)?;
        let dst = format!("{path}2");
        transfer(run, op, &path, &dst)?;
        run.holds("whole", &dst, &content);
        if op.is_move {
            run.is_gone("whole", &path);
        }
    }
    Ok(())
}

pub(super) fn into_another_directory(run: &mut Run<'_>, op: &Transfer) -> Step {
    let cell = run.cell()?;
    let dst = format!("{cell}/full/new");
    transfer(run, op, &format!("{cell}/file"), &dst)?;
    run.holds("in another directory", &dst, CONTENT);
    run.holds("beside it", &format!("{cell}/full/file"), CONTENT);
    run.lists("in another directory", &format!("{cell}/full"), &["file", "new"]);
    Ok(())
}

pub(super) fn missing_source_keeps_the_target(run: &mut Run<'_>, op: &Transfer) -> Step {
    let cell = run.cell()?;
    let target = format!("{cell}/file");
    let moved = (op.call)(&run.fs, &format!("{cell}/missing"), &target);
    run.expect("from a missing path to a file", &moved, NOT_FOUND);
    run.holds("after it failed", &target, CONTENT);
    Ok(())
}

pub(super) fn replacing_a_longer_file(run: &mut Run<'_>, op: &Transfer) -> Step {
    let cell = run.bare_cell()?;
    let (src, dst) = (format!("{cell}/short"), format!("{cell}/long"));
    run.write(&src, b"short")?;
    run.write(&dst, pattern(50_000))?;
    transfer(run, op, &src, &dst)?;
    run.holds("over a longer file", &dst, b"short");
    Ok(())
}

pub(super) fn renaming_around(run: &mut Run<'_>) -> Step {
    let cell = files(run, &["a", "b"])?;
    for (src, dst) in [("a", "t"), ("b", "a"), ("t", "b")] {
        transfer(run, &RENAME_FILE, &format!("{cell}/{src}"), &format!("{cell}/{dst}"))?;
    }
    run.holds("exchanged", &format!("{cell}/a"), b"b");
    run.holds("exchanged", &format!("{cell}/b"), b"a");
    run.lists("exchanged", &cell, &["a", "b"]);
    Ok(())
}

pub(super) fn a_copy_is_a_separate_file(run: &mut Run<'_>) -> Step {
    let cell = run.bare_cell()?;
    let (src, dst) = (format!("{cell}/src"), format!("{cell}/dst"));
    run.write(&src, b"first")?;
    transfer(run, &COPY_FILE, &src, &dst)?;
    run.write(&src, b"changed")?;
    run.holds("the source was changed", &dst, b"first");
    run.must("delete_file", run.fs.delete_file(&dst))?;
    run.holds("the copy was deleted", &src, b"changed");
    Ok(())
}

pub(super) fn renaming_before_the_writer_is_dropped(run: &mut Run<'_>) -> Step {
    let (src, mut writer) = begun(run, CONTENT)?;
    let dst = format!("{src}2");
    run.must("close", writer.close())?;
    transfer(run, &RENAME_FILE, &src, &dst)?;
    run.expect("flush after close and rename_file", &writer.flush(), None);
    run.expect("a second close, after rename_file", &writer.close(), None);
    drop(writer);
    run.holds("renamed before the writer was dropped", &dst, CONTENT);
    run.is_gone("renamed before the writer was dropped", &src);
    Ok(())
}

pub(super) fn many_paths_exist(run: &mut Run<'_>) -> Step {
    let cell = run.cell()?;
    let paths: Vec<_> = (0..200)
        .map(|index| format!("{cell}/{}", if index % 3 == 0 { "file" } else { "missing" }))
        .collect();
    let answers = run.fs.paths_exist(&paths);
    let answers = run.must("paths_exist of 200 paths", answers)?;
    let found: Vec<_> = answers.iter().map(|answer| answer.is_ok()).collect();
    let want: Vec<_> = (0..paths.len()).map(|index| index % 3 == 0).collect();
    run.expect_eq("paths_exist: which are there", found, want);
    Ok(())
}

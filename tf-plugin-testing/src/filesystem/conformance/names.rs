//! Names that are easily mistaken for other ones.

use super::conditions::NOT_FOUND;
use super::run::{CONTENT, Run, Step};
use crate::filesystem::test_filesystem::TestFilesystem;
use tf_fs_plugin::Uri;

/// Does everything that TensorFlow does with a name, next to another file.
pub(super) fn name(run: &mut Run<'_>, name: &str) -> Step {
    let cell = run.bare_cell()?;
    let (path, other) = (format!("{cell}/{name}"), format!("{cell}/other"));
    run.write(&other, b"other")?;
    run.write(&path, CONTENT)?;
    run.holds("written", &path, CONTENT);
    let found = run.fs.path_exists(&path);
    run.expect(format_args!("path_exists of {path}"), &found, None);
    let length = run.fs.stat(&path).map(|found| found.length);
    run.gives(format_args!("length of {path}"), length, 7);
    run.lists("beside another file", &cell, &[name, "other"]);
    if !run.may_change() {
        return Ok(());
    }
    let moved = format!("{cell}/moved");
    if run.expect(format_args!("rename_file of {path}"), &run.fs.rename_file(&path, &moved), None) {
        run.holds("renamed", &moved, CONTENT);
        run.expect(format_args!("rename_file to {path}"), &run.fs.rename_file(&moved, &path), None);
        run.holds("renamed back", &path, CONTENT);
    }
    if run.expect(format_args!("delete_file of {path}"), &run.fs.delete_file(&path), None) {
        let found = run.fs.path_exists(&path);
        run.expect(format_args!("path_exists of the deleted {path}"), &found, NOT_FOUND);
        run.holds("beside a deleted file", &other, b"other");
    }
    Ok(())
}

pub(super) fn name_deep(run: &mut Run<'_>) -> Step {
    let cell = run.bare_cell()?;
    let dir = format!("{cell}/{}", ["d"; 24].join("/"));
    run.make_dirs(&dir)?;
    let path = format!("{dir}/file");
    run.write(&path, CONTENT)?;
    run.holds("24 directories deep", &path, CONTENT);
    run.lists("24 directories deep", &dir, &["file"]);
    Ok(())
}

/// Checks that none of these names is mistaken for another one.
pub(super) fn distinct(run: &mut Run<'_>, names: &[&str]) -> Step {
    let cell = run.bare_cell()?;
    for (index, name) in names.iter().enumerate() {
        run.write(&format!("{cell}/{name}"), name.repeat(index + 1))?;
    }
    run.lists("distinct names", &cell, names);
    for (index, name) in names.iter().enumerate() {
        run.holds("distinct names", &format!("{cell}/{name}"), name.repeat(index + 1).as_bytes());
    }
    if run.may_change() {
        let deleted = run.fs.delete_file(format!("{cell}/{}", names[0]));
        run.must("delete_file of the first", deleted)?;
        run.lists("one of them deleted", &cell, &names[1..]);
    }
    Ok(())
}

/// Checks a path that does not exist although the names of others begin with it.
pub(super) fn prefix_is_not_a_path(run: &mut Run<'_>) -> Step {
    let cell = run.bare_cell()?;
    run.write(&format!("{cell}/part-00001"), CONTENT)?;
    let path = format!("{cell}/part-0000");
    type Look = fn(&TestFilesystem, &str) -> tf_plugin_core::Result<()>;
    let looks: [(&str, Look); 6] = [
        ("path_exists", |fs, path| fs.path_exists(path)),
        ("stat", |fs, path| fs.stat(path).map(drop)),
        ("is_directory", |fs, path| fs.is_directory(path)),
        ("new_random_access_file", |fs, path| fs.new_random_access_file(path).map(drop)),
        ("get_children", |fs, path| fs.get_children(path).map(drop)),
        ("delete_file", |fs, path| fs.delete_file(path)),
    ];
    for (op, look) in looks {
        if op == "delete_file" && !run.may_change() {
            continue;
        }
        run.expect(format_args!("{op} of a part of a name"), &look(&run.fs, &path), NOT_FOUND);
    }
    run.holds("a part of its name was requested", &format!("{cell}/part-00001"), CONTENT);
    Ok(())
}

pub(super) fn same_name_as_file_and_in_directory(run: &mut Run<'_>) -> Step {
    let cell = run.cell()?;
    run.write(&format!("{cell}/full/empty_file"), b"below")?;
    run.holds("the same name above", &format!("{cell}/empty_file"), b"");
    run.holds("the same name below", &format!("{cell}/full/empty_file"), b"below");
    if !run.may_change() {
        return Ok(());
    }
    run.must("delete_file", run.fs.delete_file(format!("{cell}/empty_file")))?;
    run.holds("the same name above was deleted", &format!("{cell}/full/empty_file"), b"below");
    Ok(())
}

pub(super) fn translate_name_of_canonical_names(run: &mut Run<'_>) -> Step {
    let cell = run.cell()?;
    for name in ["file", "full/file", "a b/ü%20?#"] {
        let path = format!("{cell}/{name}");
        let once = run.fs.translate_name(&path).unwrap_or_default();
        let twice = run.fs.translate_name(&once).unwrap_or_default();
        run.expect_bytes(format_args!("translate_name of what it made of {path}"), &twice, &once);
    }
    Ok(())
}

/// Checks that `translate_name` keeps host and scheme: its result still names the file.
pub(super) fn translate_name_keeps_the_host(run: &mut Run<'_>) -> Step {
    let cell = run.cell()?;
    let path = format!("{cell}/file");
    let translated = run.must("translate_name", run.fs.translate_name(&path))?;
    let what =
        format!("reading {}, which translate_name made of {path}", translated.escape_ascii());
    run.gives(what, run.fs.read_file(&translated), CONTENT.to_vec());
    let host = Uri::new(run.root.as_bytes()).host();
    run.expect_that(
        format_args!("translate_name of {path} lost the host: {}", translated.escape_ascii()),
        host.is_empty() || translated.windows(host.len()).any(|part| part == host),
    );
    Ok(())
}

pub(super) fn slash_at_the_end(run: &mut Run<'_>) -> Step {
    let cell = run.cell()?;
    let dir = format!("{cell}/full/");
    run.expect(format_args!("is_directory of {dir}"), &run.fs.is_directory(&dir), None);
    run.lists("with a slash at the end", &dir, &["file"]);
    Ok(())
}

//! Steps that many cases begin with.

use super::run::{Run, Step};
use crate::filesystem::{TestRandomAccessFile, TestWritableFile};

/// Returns bytes in which every position is recognisable.
pub(super) fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|index| (index ^ (index >> 8) ^ (index >> 16)) as u8).collect()
}

/// Returns the path for a file in a new directory.
pub(super) fn place(run: &mut Run<'_>) -> Step<String> {
    Ok(format!("{}/data", run.bare_cell()?))
}

/// Creates one file in a new directory.
pub(super) fn file(run: &mut Run<'_>, content: &[u8]) -> Step<String> {
    let path = place(run)?;
    run.write(&path, content)?;
    Ok(path)
}

pub(super) fn create(run: &mut Run<'_>, path: &str) -> Step<TestWritableFile> {
    run.must(format_args!("new_writable_file of {path}"), run.fs.new_writable_file(path))
}

/// Creates a new directory with these files, each of which holds its name.
pub(super) fn files(run: &mut Run<'_>, names: &[impl AsRef<str>]) -> Step<String> {
    let cell = run.bare_cell()?;
    let mut made = vec![cell.clone()];
    for name in names.iter().map(AsRef::as_ref) {
        let path = format!("{cell}/{name}");
        let dir = path.rsplit_once('/').map_or("", |(dir, _)| dir).to_owned();
        if !made.contains(&dir) {
            run.make_dirs(&dir)?;
            made.push(dir);
        }
        run.write(&path, name)?;
    }
    Ok(cell)
}

/// Appends and closes.
pub(super) fn finish(run: &mut Run<'_>, mut writer: TestWritableFile, content: &[u8]) -> Step {
    run.must("append", writer.append(content))?;
    run.must("close", writer.close())
}

pub(super) fn open(run: &mut Run<'_>, path: &str) -> Step<TestRandomAccessFile> {
    run.must(format_args!("new_random_access_file of {path}"), run.fs.new_random_access_file(path))
}

/// Opens a new file for writing in a new directory.
pub(super) fn created(run: &mut Run<'_>) -> Step<(String, TestWritableFile)> {
    let path = place(run)?;
    let writer = create(run, &path)?;
    Ok((path, writer))
}

/// Opens a new file for writing in a new directory, and appends to it.
pub(super) fn begun(
    run: &mut Run<'_>,
    content: impl AsRef<[u8]>,
) -> Step<(String, TestWritableFile)> {
    let (path, mut writer) = created(run)?;
    run.must("append", writer.append(content.as_ref()))?;
    Ok((path, writer))
}

/// Opens an existing file to append to it, or skips the case.
pub(super) fn append(run: &mut Run<'_>, path: &str) -> Step<TestWritableFile> {
    run.needs_append()?;
    run.must(format_args!("new_appendable_file of {path}"), run.fs.new_appendable_file(path))
}

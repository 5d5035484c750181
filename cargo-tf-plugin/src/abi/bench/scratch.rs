//! The directory in which a filesystem is measured: creates it, and removes it again.

use std::ffi::{CStr, CString};

use cargo_tf_plugin::bench::{Event, Job};
use cargo_tf_plugin::host::Filesystem;

use super::rows::{Result, RowError};
use crate::abi::events::tell;

pub(super) fn c(path: &str) -> Result<CString> {
    CString::new(path).map_err(|_| RowError::Failed(format!("`{path}` has a NUL in it")))
}

/// Returns a name as TensorFlow passes it to the operations.
pub(super) fn path(fs: &Filesystem, uri: &str) -> Result<CString> {
    if fs.ops.translate_name.is_some() {
        return Ok(fs.translate_name(&c(uri)?, CStr::to_owned)?);
    }
    // TensorFlow's default removes scheme and host.
    let rest = uri.split_once("://").map_or(uri, |(_, rest)| rest);
    c(rest.find('/').map_or("/", |at| &rest[at..]))
}

/// Creates the first of the directories that can be created, and writes to it.
pub(super) fn directory(fs: &Filesystem, job: &Job) -> Result<String> {
    if fs.ops.new_writable_file.is_none() {
        return Err(RowError::Failed(
            "the plugin writes no files (there is no `new_writable_file`); name an existing file with `--file \
             URI`, then what reads is measured"
                .to_owned(),
        ));
    }
    for directory in &job.directories {
        let at = path(fs, directory)?;
        // Only what is created here may be removed: some plugins and hosts drop parts of a name.
        let refuse = |why: String| tell(&Event::Refused(directory.clone(), why));
        if fs.stat(&at).is_ok() || fs.path_exists(&at).is_ok() {
            refuse("it already exists".to_owned());
            continue;
        }
        tell(&Event::Directory(directory.clone()));
        match fs.create_dir(&at).map_err(RowError::from) {
            // A store without directories needs none.
            Ok(()) | Err(RowError::Absent(_)) => {}
            Err(why) => {
                refuse(why.to_string());
                continue;
            }
        }
        let file = path(fs, &format!("{directory}/first"))?;
        let written = fs.write(&file, 1, b"1").and_then(|()| fs.delete_file(&file));
        match written.map_err(RowError::from) {
            Ok(()) => return Ok(directory.clone()),
            Err(why) => {
                remove(fs, directory);
                refuse(why.to_string());
            }
        }
    }
    Err(RowError::Failed("no directory can be made and written to".to_owned()))
}

/// Removes a directory of this process with everything in it.
pub(super) fn remove(fs: &Filesystem, directory: &str) {
    let Ok(at) = path(fs, directory) else { return };
    let _ = fs.delete_recursively(&at);
    // Also one by one: the result of the call may be wrong, so what is left is checked.
    let mut problem = None;
    remove_below(fs, directory, &mut problem);
    // A store without directories has none that could exist.
    let remains = || fs.stat(&at).is_ok() || !children(fs, &at).is_empty();
    if let Some(why) = problem
        && remains()
    {
        tell(&Event::Left(directory.to_owned(), why.to_string()));
    }
}

/// Returns the entries of a directory; none if they cannot be listed.
pub(super) fn children(fs: &Filesystem, path: &CStr) -> Vec<String> {
    let mut names = Vec::new();
    let _ = fs.get_children(path, |name| names.push(name.to_string_lossy().into_owned()));
    names.iter().filter_map(|name| own_child(name)).map(str::to_owned).collect()
}

fn remove_below(fs: &Filesystem, directory: &str, problem: &mut Option<RowError>) {
    let Ok(at) = path(fs, directory) else { return };
    for name in children(fs, &at) {
        let name = format!("{directory}/{name}");
        let Ok(path) = path(fs, &name) else { continue };
        if fs.stat(&path).is_ok_and(|statistics| statistics.is_directory) {
            remove_below(fs, &name, problem);
        } else if let Err(why) = fs.delete_file(&path) {
            problem.get_or_insert(why.into());
        }
    }
    if let Err(why) = fs.delete_dir(&at) {
        problem.get_or_insert(why.into());
    }
}

/// Returns the name of an entry if it can only be below the directory: an unfinished plugin may also list `..`.
fn own_child(name: &str) -> Option<&str> {
    let name = name.trim_end_matches('/');
    name.split('/').all(|part| !["", ".", ".."].contains(&part)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::own_child;

    #[test]
    fn nothing_outside_of_a_directory_is_a_child() {
        for (name, child) in
            [("a", "a"), ("a/", "a"), ("list/file-3", "list/file-3"), ("..a", "..a")]
        {
            assert_eq!(own_child(name), Some(child));
        }
        for name in ["", ".", "..", "../x", "/etc", "a/../..", "a//b", "/"] {
            assert_eq!(own_child(name), None, "{name}");
        }
    }
}

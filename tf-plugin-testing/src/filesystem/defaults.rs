//! TensorFlow's defaults for null slots, with their faults: where a default would never end or
//! would crash, there is a violation and an error.

use super::abi::fnmatch::matches;
use super::test_filesystem::TestFilesystem;
use std::collections::VecDeque;
use tf_fs_plugin::{DeleteRecursivelyError, Uri};
use tf_plugin_core::{Code, Error, Result};

/// Removes scheme and host, as TensorFlow does.
pub(super) fn translate_name(name: &[u8]) -> Vec<u8> {
    if name.is_empty() {
        return Vec::new();
    }
    Uri::canonical(Uri::new(name).path()).into_owned()
}

/// Goes up from `uri` to a directory that exists, and creates the directories below it.
pub(super) fn recursively_create_dir(fs: &TestFilesystem, uri: &[u8]) -> Result<()> {
    let mut here = Uri::new(uri);
    let scheme = here.scheme().len();
    if scheme == 0 || uri.len() == scheme + 3 + here.host().len() {
        // TensorFlow goes up the path, which is empty. It passes no name without a scheme.
        return Ok(());
    }
    let mut missing = Vec::new();
    loop {
        match fs.path_exists(here) {
            Ok(()) => match fs.is_directory(here) {
                Ok(()) => break,
                Err(error) if error.code() == Code::Unimplemented => return Err(error),
                Err(_) => {
                    let path = here.path().escape_ascii();
                    let what = format!("{path} is not a directory");
                    return Err(Error::failed_precondition(what));
                }
            },
            Err(error) if error.code() == Code::NotFound => {}
            Err(error) => return Err(error),
        }
        if !here.file_name().is_empty() {
            missing.push(here.file_name());
        }
        let Some(parent) = here.parent() else {
            let what = "the root is NOT_FOUND, on which TensorFlow's default never ends";
            fs.violation("recursively_create_dir", uri, what);
            return Err(Error::internal(what));
        };
        here = parent;
    }
    let mut dir = here.as_bytes().to_vec();
    for name in missing.iter().rev() {
        dir = Uri::new(&dir).join(name);
        match fs.create_dir(&dir) {
            Err(error) if error.code() != Code::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// How many bytes TensorFlow copies at a time.
const COPY_CHUNK: usize = 128 << 10;

/// Reads and appends; copies into `dst` if that is a directory.
pub(super) fn copy_file(
    src_fs: &TestFilesystem,
    src: &[u8],
    dst_fs: &TestFilesystem,
    dst: &[u8],
) -> Result<()> {
    let reader = src_fs.new_random_access_file(src)?;
    let is_into = dst_fs.is_directory(dst).is_ok();
    let target = if is_into { Uri::new(dst).join(Uri::new(src).file_name()) } else { dst.to_vec() };
    let mut writer = dst_fs.new_writable_file(target)?;
    let mut offset = 0;
    loop {
        let (piece, status) = reader.read_with_status(offset, COPY_CHUNK);
        let at_end = match status {
            Ok(()) => false,
            Err(error) if error.code() == Code::OutOfRange => true,
            Err(error) => return Err(error),
        };
        writer.append(&piece)?;
        offset += piece.len() as u64;
        if at_end {
            return writer.close();
        }
        if piece.is_empty() {
            let what = "answered OK with no bytes, on which TensorFlow's copy never ends";
            src_fs.violation("read", src, what);
            return Err(Error::internal(what));
        }
    }
}

/// Deletes files on the way down, directories on the way up, and continues after an error; joins as `JoinPath` does.
pub(super) fn delete_recursively(
    fs: &TestFilesystem,
    uri: &[u8],
) -> Result<(), DeleteRecursivelyError> {
    fs.path_exists(uri)?;
    if fs.is_directory(uri).is_err() {
        return fs.delete_file(uri).map_err(|error| DeleteRecursivelyError {
            error,
            files: 1,
            dirs: 0,
        });
    }
    let (mut files, mut dirs) = (0, 0);
    let mut first_error = None;
    let mut queue = VecDeque::from([uri.to_vec()]);
    let mut found = Vec::new();
    while let Some(dir) = queue.pop_front() {
        match fs.get_children(&dir) {
            Ok(children) => {
                for child in children {
                    let child = Uri::new(&dir).join(child.strip_prefix(b"/").unwrap_or(&child));
                    if fs.is_directory(&child).is_ok() {
                        queue.push_back(child);
                    } else if let Err(error) = fs.delete_file(&child) {
                        files += 1;
                        first_error.get_or_insert(error);
                    }
                }
            }
            Err(error) => {
                dirs += 1;
                first_error.get_or_insert(error);
            }
        }
        found.push(dir);
    }
    for dir in found.iter().rev() {
        if let Err(error) = fs.delete_dir(dir) {
            dirs += 1;
            first_error.get_or_insert(error);
        }
    }
    match first_error {
        None => Ok(()),
        Some(error) => Err(DeleteRecursivelyError { error, files, dirs }),
    }
}

/// Lists level by level below the part without wildcards. An error of `get_children` counts as an
/// empty directory.
pub(super) fn get_matching_paths(fs: &TestFilesystem, glob: &[u8]) -> Result<Vec<Vec<u8>>> {
    let is_wildcard = |byte: &u8| matches!(byte, b'*' | b'?' | b'[' | b'\\');
    if glob.is_empty() {
        return Ok(Vec::new());
    }
    let Some(first) = glob.iter().position(is_wildcard) else {
        return Ok(match fs.path_exists(glob) {
            Ok(()) => vec![glob.to_vec()],
            Err(_) => Vec::new(),
        });
    };
    if Uri::new(glob).host().iter().any(is_wildcard) {
        let what = "the pattern has a wildcard in the host, on which TensorFlow's default crashes";
        fs.violation("get_matching_paths", glob, what);
        return Err(Error::internal(what));
    }
    let slash = glob[..first].iter().rposition(|&byte| byte == b'/');
    let fixed = slash.map_or(&b"."[..], |slash| &glob[..slash]);
    let mut level = vec![fixed.to_vec()];
    let levels: Vec<&[u8]> =
        glob[slash.map_or(0, |slash| slash + 1)..].split(|&byte| byte == b'/').collect();
    for (index, component) in levels.iter().enumerate() {
        let is_last = index + 1 == levels.len();
        let mut next = Vec::new();
        for dir in &level {
            for child in fs.get_children(dir).unwrap_or_default() {
                if !matches(component, &child) {
                    continue;
                }
                let path = Uri::new(dir).join(child);
                // TensorFlow checks every match, also on the last level.
                let is_directory = fs.is_directory(&path).is_ok();
                if is_last || is_directory {
                    next.push(path);
                }
            }
        }
        level = next;
    }
    Ok(level)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_default_translation_loses_the_host() {
        for (name, expected) in [
            ("probe://bucket/a//b/../c/./d/", "/a/c/d"),
            ("probe://bucket", "/"),
            ("probe://b/../../x", "/x"),
            ("probe://b/%41", "/%41"),
            ("", ""),
        ] {
            assert_eq!(super::translate_name(name.as_bytes()), expected.as_bytes(), "{name}");
        }
    }
}

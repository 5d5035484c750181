//! The SDK's own defaults, for operations that the author has not written and for which TensorFlow's
//! default hangs, crashes or returns wrong results. They are written against the safe trait only.

use crate::entries::Entries;
use crate::file::{RandomAccessFile, WritableFile};
use crate::filesystem::Filesystem;
use crate::glob;
use crate::operations::Operations;
use crate::read_buf::ReadBuf;
use crate::uri::Uri;
use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use tf_plugin_core::ensure;
use tf_plugin_core::{Code, Error, Result};

pub(crate) fn unknown_option(key: &str) -> Error {
    Error::not_found(format_args!("option `{key}`"))
}

/// Returns the canonical form, except that the root of the empty host becomes `/`, which is what
/// TensorFlow expects of `x://`.
pub(crate) fn translate_name(uri: &[u8]) -> Cow<'_, [u8]> {
    let clean = Uri::canonical(uri);
    // In canonical form only a root ends with a slash.
    if clean.last() == Some(&b'/') && Uri::new(&clean).host().is_empty() {
        return Cow::Borrowed(b"/");
    }
    clean
}

/// Returns whether `stat` finds the path.
///
/// # Errors
/// Those of `stat`, except `NOT_FOUND`.
pub fn path_exists<F: Filesystem>(fs: &F, uri: Uri<'_>) -> Result<bool> {
    match fs.stat(uri) {
        Ok(_) => Ok(true),
        Err(error) if error.code() == Code::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Creates a directory and those of its ancestors that are missing.
///
/// # Errors
/// Those of `create_dir`, except `ALREADY_EXISTS` for an existing directory.
pub fn recursively_create_dir<F: Filesystem>(fs: &F, uri: Uri<'_>) -> Result<()> {
    if uri.is_root() {
        return Ok(());
    }
    // Upwards to the nearest ancestor whose parent exists, then down again. The root is never
    // created, so this ends for every filesystem.
    let mut missing = Vec::new();
    for directory in std::iter::once(uri).chain(uri.ancestors()) {
        match create_one(fs, directory) {
            Ok(()) => break,
            // An existing directory is a success, even if `create_dir` failed with another code.
            Err(error) if error.code() != Code::NotFound => {
                return if fs.is_directory(uri).unwrap_or(false) { Ok(()) } else { Err(error) };
            }
            Err(error) if directory.parent().is_none_or(|parent| parent.is_root()) => {
                return Err(error);
            }
            Err(_) => missing.push(directory),
        }
    }
    missing.into_iter().rev().try_for_each(|directory| create_one(fs, directory))
}

/// Creates a directory unless it exists: another thread may have been faster.
fn create_one<F: Filesystem>(fs: &F, uri: Uri<'_>) -> Result<()> {
    match fs.create_dir(uri) {
        Err(error) if error.code() == Code::AlreadyExists => {
            if fs.is_directory(uri)? {
                Ok(())
            } else {
                Err(Error::expected_directory(uri))
            }
        }
        other => other,
    }
}

/// Returns whether both names are the same file, so that there is nothing to do. Fails for a directory.
fn is_same_file<F: Filesystem>(fs: &F, src: Uri<'_>, dst: Uri<'_>) -> Result<bool> {
    if src != dst {
        return Ok(false);
    }
    if fs.is_directory(src)? { Err(Error::expected_file(src)) } else { Ok(true) }
}

/// Copies a file and deletes the source.
///
/// # Errors
/// Those of the operations that it calls.
pub fn rename_file<F: Filesystem>(fs: &F, src: Uri<'_>, dst: Uri<'_>) -> Result<()> {
    // Before anything is touched.
    ensure!(
        F::PROVIDED.contains(Operations::DELETE_FILE),
        Error::new(
            Code::Unimplemented,
            format!(
                "{src}: rename_file is not supported: the plugin has neither rename_file nor delete_file"
            )
        )
    );
    if is_same_file(fs, src, dst)? {
        return Ok(());
    }
    fs.copy_file(src, dst)?;
    fs.delete_file(src).map_err(|error| {
        error.context(format_args!("copied to {dst}, but could not delete the source"))
    })
}

/// The number of bytes that are copied at a time.
const COPY_CHUNK: usize = 1 << 20;

/// Reads a file and writes another one.
///
/// # Errors
/// Those of the operations that it calls.
pub fn copy_file<F: Filesystem>(fs: &F, src: Uri<'_>, dst: Uri<'_>) -> Result<()> {
    if is_same_file(fs, src, dst)? {
        return Ok(());
    }
    let reader = fs.new_random_access_file(src)?;
    let mut memory = Vec::new();
    memory
        .try_reserve_exact(COPY_CHUNK)
        .map_err(|_| Error::resource_exhausted("no memory to copy a file"))?;
    memory.resize(COPY_CHUNK, 0);
    // The source is read once before the destination is touched, so that most failures leave both.
    let mut chunk = ReadBuf::from_slice(&mut memory);
    chunk.read_exact_or_end(&reader, 0)?;
    let existed = match fs.path_exists(dst) {
        Err(error) if error.code() == Code::Unimplemented => true,
        existed => existed?,
    };
    let mut writer = fs.new_writable_file(dst)?;
    // Copies and drops the file in separate calls, as TensorFlow's default does: a panic of the
    // destructor while another panic unwinds would abort the process.
    let copied = catch_unwind(AssertUnwindSafe(|| copy_rest(&reader, &mut writer, chunk)));
    let closed = catch_unwind(AssertUnwindSafe(|| drop(writer)));
    if !matches!(copied, Ok(Ok(()))) && !existed {
        // The first error is returned, not one of the cleanup.
        let _ = fs.delete_file(dst);
    }
    match (copied, closed) {
        (Err(panic), _) | (Ok(_), Err(panic)) => resume_unwind(panic),
        (Ok(copied), Ok(())) => copied,
    }
}

fn copy_rest(
    reader: &impl RandomAccessFile,
    writer: &mut impl WritableFile,
    mut chunk: ReadBuf<'_>,
) -> Result<()> {
    let mut offset = 0;
    while !chunk.filled().is_empty() {
        writer.append(chunk.filled())?;
        offset += chunk.filled().len() as u64;
        chunk.clear();
        chunk.read_exact_or_end(reader, offset)?;
    }
    writer.close()
}

/// Lists the paths that match a pattern.
///
/// # Errors
/// Those of `get_children` and `is_directory`.
pub fn get_matching_paths<F: Filesystem>(fs: &F, pattern: Uri<'_>) -> Result<Entries> {
    if pattern.as_bytes().is_empty() {
        return Ok(Entries::new());
    }
    if !glob::is_literal(pattern.host()) {
        return Err(Error::invalid_argument(format_args!(
            "{pattern}: wildcards are not supported in a host; name the host and use wildcards after it"
        )));
    }
    let (prefix, path) = pattern.split_path();
    let mut candidates = vec![prefix.to_vec()];
    let mut all_exist = false;
    for component in path.split(|&byte| byte == b'/').skip(1) {
        all_exist = !glob::is_literal(component);
        if all_exist {
            candidates = expand(fs, &candidates, component)?;
        } else {
            let name = glob::unescape(component);
            for path in &mut candidates {
                path.push(b'/');
                path.extend_from_slice(&name);
            }
        }
    }
    let mut matches = Vec::with_capacity(candidates.len());
    for path in candidates {
        if all_exist || exists(fs, &path)? {
            matches.push(path);
        }
    }
    matches.sort_unstable();
    Ok(matches.into_iter().collect())
}

/// Returns the entries of each directory that match one component of a pattern.
fn expand<F: Filesystem>(fs: &F, dirs: &[Vec<u8>], component: &[u8]) -> Result<Vec<Vec<u8>>> {
    let mut matches = Vec::new();
    for dir in dirs {
        let children = match fs.get_children(Uri::new(&translated(fs, dir))) {
            Ok(children) => children,
            // Not a directory after all, or gone: nothing there matches.
            Err(error) if is_absent(&error) => continue,
            Err(error) => return Err(error),
        };
        let candidates = children.iter().filter(|name| Entries::is_listable(name));
        matches.extend(candidates.filter(|name| glob::matches(component, name)).map(|name| {
            let mut path = dir.clone();
            path.push(b'/');
            path.extend_from_slice(name);
            path
        }));
    }
    Ok(matches)
}

/// Returns a path in the form in which TensorFlow passes it to the other operations.
fn translated<'p, F: Filesystem>(fs: &F, path: &'p [u8]) -> Cow<'p, [u8]> {
    if F::PROVIDED.contains(Operations::TRANSLATE_NAME) {
        fs.translate_name(path).into()
    } else {
        Uri::canonical(path)
    }
}

fn exists<F: Filesystem>(fs: &F, path: &[u8]) -> Result<bool> {
    let translated = translated(fs, path);
    let uri = Uri::new(&translated);
    // A trailing slash requires a directory.
    let outcome = if path.ends_with(b"/") { fs.is_directory(uri) } else { fs.path_exists(uri) };
    match outcome {
        Err(error) if is_absent(&error) => Ok(false),
        other => other,
    }
}

fn is_absent(error: &Error) -> bool {
    matches!(error.code(), Code::NotFound | Code::FailedPrecondition)
}

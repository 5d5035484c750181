//! The slots of a filesystem, except for transactions and configuration.

use super::alloc::{Block, c_buffer, c_string, give_entries};
use super::files::{OpenWriter, RegionState};
use super::init_handoff;
use super::registration::{Scheme, table};
use super::state::{Path, State, bytes, drop_state, null_argument, place, slots};
use crate::defaults;
use crate::filesystem::{DeleteRecursivelyError, Filesystem};
use crate::operations::Operations;
use crate::uri::Uri;
use core::ffi::{c_char, c_int};
use core::sync::atomic::Ordering;
use tf_fs_sys::{
    TF_FileStatistics, TF_Filesystem, TF_FilesystemOps, TF_RandomAccessFile,
    TF_ReadOnlyMemoryRegion, TF_Status, TF_WritableFile,
};
use tf_plugin_core::__private::boundary::{
    SlotResult, SlotStatus, discard, guard, guard_logged, guard_slot_result, watch_panics,
};
use tf_plugin_core::{Error, Result};

/// A place for names that the host frees.
type Names = *mut *mut *mut c_char;

/// The slot that creates a filesystem.
pub(super) type Init = unsafe extern "C" fn(*mut TF_Filesystem, *mut TF_Status);

/// Returns the table of `F`, without transactions and configuration.
///
/// A null slot means TensorFlow's default. Where that is dangerous, or where TensorFlow has none although one follows
/// from the author's methods, the slot is filled and the trait's default body runs.
pub(super) const fn ops<F: Filesystem>(init: Init) -> TF_FilesystemOps {
    table! {
        cleanup;
        new_random_access_file if NEW_RANDOM_ACCESS_FILE;
        new_writable_file if NEW_WRITABLE_FILE;
        new_appendable_file if NEW_APPENDABLE_FILE;
        new_read_only_memory_region_from_file if NEW_READ_ONLY_MEMORY_REGION_FROM_FILE;
        create_dir if CREATE_DIR;
        recursively_create_dir;
        delete_file if DELETE_FILE;
        delete_dir if DELETE_DIR;
        delete_recursively if DELETE_RECURSIVELY;
        rename_file;
        copy_file;
        path_exists if PATH_EXISTS | STAT;
        paths_exist if PATHS_EXIST;
        stat if STAT;
        is_directory if IS_DIRECTORY;
        get_file_size if GET_FILE_SIZE;
        translate_name;
        get_children if GET_CHILDREN;
        get_matching_paths;
        flush_caches if FLUSH_CACHES;
        ..TF_FilesystemOps { init: Some(init), ..TF_FilesystemOps::EMPTY }
    }
}

pub(super) unsafe extern "C" fn init<F: Filesystem, S: Scheme>(
    filesystem: *mut TF_Filesystem,
    status: *mut TF_Status,
) {
    let state = || {
        let registration = S::registration();
        Ok(State::new(F::new(registration.scheme())?, registration))
    };
    // SAFETY: the host passes a zeroed filesystem and a status.
    unsafe { init_with(filesystem, status, state) }
}

/// Implements `init` for a filesystem that a test has created.
pub(super) unsafe extern "C" fn init_given<F: Filesystem>(
    filesystem: *mut TF_Filesystem,
    status: *mut TF_Status,
) {
    let state = || {
        let (given, registration) = init_handoff::take::<F>()
            .ok_or_else(|| Error::internal("the host runs `init` a second time"))?;
        Ok(State::new(given, registration))
    };
    // SAFETY: the host passes a zeroed filesystem and a status.
    unsafe { init_with(filesystem, status, state) }
}

/// Runs `init` with the state that `state` creates.
///
/// # Safety
/// `filesystem` and `status` must be null or valid.
unsafe fn init_with<F: Filesystem>(
    filesystem: *mut TF_Filesystem,
    status: *mut TF_Status,
    state: impl FnOnce() -> Result<State<F>>,
) {
    // SAFETY: `filesystem` is null or valid and used by nothing else while it is set up; `status` is the host's.
    unsafe {
        guard("init", status, (), || {
            watch_panics();
            let filesystem = place(filesystem)?;
            let state = state();
            // After `new`, so that the author can install another logger there.
            crate::logging::init();
            let state = state?;
            state.registration.live.fetch_add(1, Ordering::AcqRel);
            filesystem.plugin_filesystem = Box::into_raw(Box::new(state)).cast();
            Ok(())
        });
    }
}

unsafe extern "C" fn cleanup<F: Filesystem>(filesystem: *mut TF_Filesystem) {
    guard_logged(
        "cleanup",
        || (),
        || {
            // SAFETY: the host passes a filesystem of this table, for the last time.
            unsafe {
                if let Ok(state) = State::<F>::of(filesystem) {
                    state.registration.live.fetch_sub(1, Ordering::AcqRel);
                    drop_state::<State<F>>(&mut (*filesystem).plugin_filesystem);
                }
            }
            Ok(())
        },
    );
}

slots! {
    fn new_random_access_file(filesystem: state, path: Path, file: *mut TF_RandomAccessFile) {
        let file = place(file)?;
        let reader = state.with_uri(path, |uri| state.filesystem.new_random_access_file(uri))?;
        file.plugin_file = Box::into_raw(Box::new(reader)).cast();
        Ok(())
    }
    fn new_writable_file(filesystem: state, path: Path, file: *mut TF_WritableFile) {
        let file = place(file)?;
        let writer = state.with_uri(path, |uri| state.filesystem.new_writable_file(uri))?;
        file.plugin_file = OpenWriter::into_raw(writer);
        Ok(())
    }
    fn new_appendable_file(filesystem: state, path: Path, file: *mut TF_WritableFile) {
        let file = place(file)?;
        let writer = state.with_uri(path, |uri| state.filesystem.new_appendable_file(uri))?;
        file.plugin_file = OpenWriter::into_raw(writer);
        Ok(())
    }
    fn new_read_only_memory_region_from_file(
        filesystem: state, path: Path, region: *mut TF_ReadOnlyMemoryRegion
    ) {
        let place = place(region)?;
        place.plugin_memory_region = state.with_uri(path, |uri| {
            let region = state.filesystem.new_read_only_memory_region_from_file(uri)?;
            RegionState::into_raw(region).map_err(|error| error.context(uri))
        })?;
        Ok(())
    }
    fn create_dir(filesystem: state, path: Path) {
        state.with_uri(path, |uri| state.filesystem.create_dir(uri))
    }
    fn recursively_create_dir(filesystem: state, path: Path) {
        state.with_uri(path, |uri| state.filesystem.recursively_create_dir(uri))
    }
    fn delete_file(filesystem: state, path: Path) {
        state.with_uri(path, |uri| state.filesystem.delete_file(uri))
    }
    fn delete_dir(filesystem: state, path: Path) {
        state.with_uri(path, |uri| state.filesystem.delete_dir(uri))
    }
    fn rename_file(filesystem: state, src: Path, dst: Path) {
        state.with_uris(src, dst, |src, dst| state.filesystem.rename_file(src, dst))
    }
    fn copy_file(filesystem: state, src: Path, dst: Path) {
        state.with_uris(src, dst, |src, dst| state.filesystem.copy_file(src, dst))
    }
    fn path_exists(filesystem: state, path: Path) {
        state.with_uri(path, |uri| {
            if F::PROVIDED.contains(Operations::PATH_EXISTS) {
                require(state.filesystem.path_exists(uri)?, uri)
            } else {
                // Does what `path_exists` would do, without creating the error twice.
                state.filesystem.stat(uri).map(drop)
            }
        })
    }
    fn stat(filesystem: state, path: Path, stats: *mut TF_FileStatistics) {
        if stats.is_null() {
            return Err(null_argument());
        }
        let answer = state.with_uri(path, |uri| state.filesystem.stat(uri))?;
        // The place is uninitialised, so it is only written.
        stats.write(TF_FileStatistics {
            length: signed(answer.length)?,
            mtime_nsec: answer.modified_nanos(),
            is_directory: answer.is_directory,
        });
        Ok(())
    }
    fn is_directory(filesystem: state, path: Path) -> bool, or false {
        state.with_uri(path, |uri| match state.filesystem.is_directory(uri)? {
            true => Ok(true),
            false => Err(Error::expected_directory(uri)),
        })
    }
    fn get_file_size(filesystem: state, path: Path) -> i64, or -1 {
        state.with_uri(path, |uri| signed(state.filesystem.get_file_size(uri)?))
    }
    fn get_children(filesystem: state, path: Path, entries: Names) -> c_int, or -1 {
        let entries = place(entries)?;
        let children = state.with_uri(path, |uri| {
            let children = state.filesystem.get_children(uri)?.without_dots();
            match children.with_slash() {
                Some(name) => Err(no_child_name(uri, name)),
                None => Ok(children),
            }
        })?;
        give_entries(&children, entries)
    }
    fn get_matching_paths(filesystem: state, glob: Path, entries: Names) -> c_int, or -1 {
        let entries = place(entries)?;
        let pattern = Uri::new(bytes(glob)?);
        if !F::PROVIDED.contains(Operations::TRANSLATE_NAME) {
            state.check_scheme(pattern)?;
        }
        give_entries(&state.filesystem.get_matching_paths(pattern)?, entries)
    }
}

unsafe extern "C" fn delete_recursively<F: Filesystem>(
    filesystem: *const TF_Filesystem,
    path: *const c_char,
    undeleted_files: *mut u64,
    undeleted_dirs: *mut u64,
    status: *mut TF_Status,
) {
    // SAFETY: the host passes a filesystem of this table, a C string, two counters and a status. The counters may be
    // null; the host reads them with any status, so they are always written, also after a panic.
    unsafe {
        let (files, dirs) = guard_slot_result("delete_recursively", status, (0, 1), || {
            let state = State::<F>::of(filesystem)?;
            let deleted =
                state.with_uri(path, |uri| Ok(state.filesystem.delete_recursively(uri)))?;
            Ok(match deleted {
                Ok(()) => SlotResult { value: (0, 0), status: SlotStatus::Ok },
                Err(DeleteRecursivelyError { error, files, dirs }) => {
                    SlotResult { value: (files, dirs), status: SlotStatus::Err(error) }
                }
            })
        });
        if let Some(place) = undeleted_files.as_mut() {
            *place = files;
        }
        if let Some(place) = undeleted_dirs.as_mut() {
            *place = dirs;
        }
    }
}

/// Turns the result of `path_exists` into the status.
fn require(exists: bool, uri: Uri<'_>) -> Result<()> {
    if exists { Ok(()) } else { Err(Error::not_found(uri)) }
}

unsafe extern "C" fn paths_exist<F: Filesystem>(
    filesystem: *const TF_Filesystem,
    paths: *mut *mut c_char,
    num_files: c_int,
    statuses: *mut *mut TF_Status,
) -> bool {
    const OP: &str = "paths_exist";
    // SAFETY: the host passes a filesystem of this table, `num_files` C strings and, unless `statuses`
    // is null, as many statuses.
    unsafe {
        let count = usize::try_from(num_files).unwrap_or(0);
        let mut answers = guard_logged(OP, Vec::new, || {
            let state = State::<F>::of(filesystem)?;
            if count > 0 && paths.is_null() {
                return Err(null_argument());
            }
            // A path that does not belong to this filesystem gets its own error; the others are requested in one call.
            let names: Vec<Result<Vec<u8>>> = (0..count)
                .map(|index| state.with_uri(*paths.add(index), |uri| Ok(uri.as_bytes().to_vec())))
                .collect();
            let uris: Vec<Uri<'_>> = names.iter().flatten().map(|name| Uri::new(name)).collect();
            let mut exist = state.filesystem.paths_exist(&uris).into_iter();
            Ok(names
                .iter()
                .map(|name| match name {
                    Ok(name) => require(exist.next().unwrap_or_else(too_few)?, Uri::new(name)),
                    Err(error) => Err(Error::new(error.code(), error.message().to_owned())),
                })
                .collect())
        })
        .into_iter();
        let mut all = true;
        for index in 0..count {
            let answer = answers.next().unwrap_or_else(too_few);
            all &= answer.is_ok();
            if statuses.is_null() || (*statuses.add(index)).is_null() {
                discard(OP, answer);
            } else {
                guard(OP, *statuses.add(index), (), || answer);
            }
        }
        all
    }
}

#[cold]
fn too_few<T>() -> Result<T> {
    Err(Error::internal("`paths_exist` failed, or returned too few answers; see the log"))
}

/// Converts a length to the host's type.
fn signed(length: u64) -> Result<i64> {
    i64::try_from(length)
        .map_err(|_| Error::internal(format_args!("length {length} is out of range")))
}

unsafe extern "C" fn translate_name<F: Filesystem>(
    filesystem: *const TF_Filesystem,
    uri: *const c_char,
) -> *mut c_char {
    // SAFETY: the host passes a filesystem of this table and a C string. Null would abort the process,
    // so the result is always a string; only without any memory left it is null.
    unsafe {
        let uri = bytes(uri).unwrap_or_default();
        let unchanged = || c_buffer(uri).map_or(core::ptr::null_mut(), Block::into_raw);
        guard_logged("translate_name", unchanged, || {
            let state = State::<F>::of(filesystem);
            let name = if F::PROVIDED.contains(Operations::TRANSLATE_NAME) {
                c_string(&state?.filesystem.translate_name(uri))
            } else {
                // Nearly always a canonical name of a file in this filesystem, which stays as it is.
                let canonical = state.ok().and_then(|state| Uri::with_prefix(uri, state.prefix()));
                match canonical {
                    Some(canonical) if canonical.is_canonical() && !canonical.is_root() => {
                        c_buffer(uri)
                    }
                    _ => c_buffer(&defaults::translate_name(uri)),
                }
            };
            Ok(name?.into_raw())
        })
    }
}

#[cold]
fn no_child_name(uri: Uri<'_>, name: &[u8]) -> Error {
    Error::internal(format_args!(
        "{uri}: `get_children` returned \"{}\", which is not a name of an entry; leave the directory and \
         slashes out",
        name.escape_ascii()
    ))
}

unsafe extern "C" fn flush_caches<F: Filesystem>(filesystem: *const TF_Filesystem) {
    guard_logged(
        "flush_caches",
        || (),
        || {
            // SAFETY: the host passes a filesystem of this table.
            unsafe { State::<F>::of(filesystem) }?.filesystem.flush_caches();
            Ok(())
        },
    );
}

//! Defects at the C boundary, which the SDK does not let anybody write: functions around those of a
//! plugin that is right.

use crate::defect::Defect;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr;
use std::collections::BTreeSet;
use std::sync::{OnceLock, PoisonError};
use tf_fs_plugin::__private::init_plugin;
use tf_fs_plugin::sync::{Mutex, MutexGuard};
use tf_fs_sys::host::Table;
use tf_fs_sys::{
    StatusFunctions, TF_Code, TF_FAILED_PRECONDITION, TF_Filesystem, TF_FilesystemOps,
    TF_FilesystemPluginInfo, TF_INVALID_ARGUMENT, TF_NOT_FOUND, TF_OK, TF_OUT_OF_RANGE,
    TF_RandomAccessFile, TF_RandomAccessFileOps, TF_ReadOnlyMemoryRegion, TF_Status,
    TF_UNAVAILABLE, TF_WritableFile, TF_WritableFileOps,
};
use tf_plugin_testing::filesystem::{Host, Plugin};

/// The functions of the plugin that is right. There is one such plugin in a program.
struct Right {
    filesystem: TF_FilesystemOps,
    reader: TF_RandomAccessFileOps,
    writer: TF_WritableFileOps,
}

static RIGHT: OnceLock<Right> = OnceLock::new();

fn right() -> &'static Right {
    RIGHT.get().expect("the functions were registered")
}

/// Some state that nobody looks at.
const STATE: *mut c_void = ptr::without_provenance_mut(0x1000);

/// The states of the writers that were closed.
fn closed() -> MutexGuard<'static, BTreeSet<usize>> {
    static CLOSED: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());
    CLOSED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A host with `P`, a plugin that is right in all but one defect, which is in a function of the table.
/// Only one such host may live at a time, and `P` must be the same each time.
pub fn raw_host<P: Plugin>(defect: Defect) -> Host {
    let host = Host::new();
    // SAFETY: the tables are the SDK's, and the functions that replace some of them keep the header's
    // promises on memory: they call those of the SDK with what they got.
    let registered = unsafe {
        host.register_raw(|info| {
            init_plugin(info, P::registrations());
            doctor_plugin(info, defect);
        })
    };
    registered.expect("registered");
    host
}

/// Puts a defect of the C boundary into a plugin of one scheme that is right; none if the defect is another, or the
/// plugin is registered already and offers nothing more.
///
/// # Safety
/// `info` must be what the SDK made of it, with all tables of what it offers.
pub unsafe fn doctor_plugin(info: *mut TF_FilesystemPluginInfo, defect: Defect) {
    // SAFETY: `info` is the struct that the SDK's `init_plugin` filled.
    if !defect.is_raw() || unsafe { (*info).num_schemes } == 0 {
        return;
    }
    // SAFETY: `num_schemes` is not 0, so the SDK has allocated the tables of the first scheme, and nothing else
    // refers to them yet.
    let (filesystem, reader, writer) = unsafe {
        let ops = &mut *(*info).ops;
        (&mut *ops.filesystem_ops, &mut *ops.random_access_file_ops, &mut *ops.writable_file_ops)
    };
    RIGHT.get_or_init(|| Right { filesystem: *filesystem, reader: *reader, writer: *writer });
    doctor(defect, filesystem, reader, writer);
}

fn doctor(
    defect: Defect,
    filesystem: &mut TF_FilesystemOps,
    reader: &mut TF_RandomAccessFileOps,
    writer: &mut TF_WritableFileOps,
) {
    match defect {
        Defect::RawForgetsOutOfRange => reader.read = Some(read_forgets),
        Defect::RawEndWithAllBytes => reader.read = Some(read_ends_with_all),
        Defect::RawReadOfNothingEnds => reader.read = Some(read_of_nothing_ends),
        Defect::RawLeaksOnFailedOpen => filesystem.new_random_access_file = Some(open_leaks),
        Defect::RawOpensNothing => filesystem.new_random_access_file = Some(open_nothing),
        Defect::RawSecondCloseFails => {
            writer.close = Some(close_once);
            writer.cleanup = Some(cleanup_writer);
        }
        Defect::RawFlushAfterCloseFails => {
            writer.close = Some(close_and_note);
            writer.flush = Some(flush_open);
            writer.cleanup = Some(cleanup_writer);
        }
        Defect::RawNoClose => writer.close = None,
        Defect::RawIsDirectoryReturns => filesystem.is_directory = Some(is_directory_returns),
        Defect::RawCountersUnset => filesystem.delete_recursively = Some(counters_unset),
        Defect::RawSizeMinusOne => filesystem.get_file_size = Some(size_minus_one),
        Defect::RawCodeOutOfRange => filesystem.path_exists = Some(code_17),
        Defect::RawListsTooMany => filesystem.get_children = Some(lists_none_on_error),
        Defect::RawEmptyRegionFails => {
            filesystem.new_read_only_memory_region_from_file = Some(empty_region_fails);
        }
        Defect::RawNoTranslateName => filesystem.translate_name = None,
        Defect::RawNoCopyFile => filesystem.copy_file = None,
        Defect::RawNoRenameFile => filesystem.rename_file = None,
        other => panic!("{other:?} is not a defect of the C boundary"),
    }
}

/// # Safety
/// `status` must be a status of the host.
unsafe fn code(status: *mut TF_Status) -> TF_Code {
    let host = StatusFunctions::get().expect("the host has its functions");
    // SAFETY: `status` is a status of the host.
    unsafe { (host.TF_GetCode)(status) }
}

/// # Safety
/// As [`code`].
unsafe fn set(status: *mut TF_Status, code: TF_Code) {
    const BROKEN: &CStr = c"broken";
    let host = StatusFunctions::get().expect("the host has its functions");
    // SAFETY: `status` is a status of the host, and `BROKEN` a C string.
    unsafe { (host.TF_SetStatus)(status, code, BROKEN.as_ptr()) }
}

/// Functions that call the right one, bound to `right`, and then change the answer.
macro_rules! wrappers {
    ($($name:ident = $table:ident.$slot:ident($($arg:ident: $type:ty),*; $status:ident) $(-> $ret:ty)? |$answer:ident| $body:block)*) => {$(
        unsafe extern "C" fn $name($($arg: $type,)* $status: *mut TF_Status) $(-> $ret)? {
            let slot = right().$table.$slot.expect("the right plugin has all operations");
            // SAFETY: the host passes what the header says, which goes on as it is; places to fill
            // are valid, and the status is the host's.
            unsafe {
                let $answer = slot($($arg,)* $status);
                $body
            }
        }
    )*};
}

type Fs = *const TF_Filesystem;
type Path = *const c_char;
type Reader = *const TF_RandomAccessFile;
type Writer = *const TF_WritableFile;
type Entries = *mut *mut *mut c_char;

wrappers! {
    read_forgets = reader.read(file: Reader, offset: u64, n: usize, buffer: *mut c_char; status) -> i64 |read| {
        if code(status) == TF_OUT_OF_RANGE {
            set(status, TF_OK);
        }
        read
    }
    read_ends_with_all = reader.read(file: Reader, offset: u64, n: usize, buffer: *mut c_char; status) -> i64 |read| {
        if code(status) == TF_OK && n > 0 {
            set(status, TF_OUT_OF_RANGE);
        }
        read
    }
    read_of_nothing_ends = reader.read(file: Reader, offset: u64, n: usize, buffer: *mut c_char; status) -> i64 |read| {
        if n == 0 {
            set(status, TF_OUT_OF_RANGE);
        }
        read
    }
    open_leaks = filesystem.new_random_access_file(fs: Fs, path: Path, file: *mut TF_RandomAccessFile; status) |_answer| {
        if code(status) != TF_OK {
            (*file).plugin_file = STATE;
        }
    }
    open_nothing = filesystem.new_random_access_file(fs: Fs, path: Path, file: *mut TF_RandomAccessFile; status) |_answer| {
        if code(status) == TF_NOT_FOUND {
            set(status, TF_OK);
        }
    }
    close_once = writer.close(file: Writer; status) |_answer| {
        if !closed().insert((*file).plugin_file.addr()) {
            set(status, TF_FAILED_PRECONDITION);
        }
    }
    close_and_note = writer.close(file: Writer; status) |_answer| {
        closed().insert((*file).plugin_file.addr());
    }
    flush_open = writer.flush(file: Writer; status) |_answer| {
        if closed().contains(&(*file).plugin_file.addr()) {
            set(status, TF_FAILED_PRECONDITION);
        }
    }
    is_directory_returns = filesystem.is_directory(fs: Fs, path: Path; status) -> bool |found| {
        if code(status) == TF_FAILED_PRECONDITION {
            set(status, TF_OK);
        }
        found
    }
    size_minus_one = filesystem.get_file_size(fs: Fs, path: Path; status) -> i64 |size| {
        if code(status) == TF_FAILED_PRECONDITION {
            set(status, TF_OK);
        }
        size
    }
    code_17 = filesystem.path_exists(fs: Fs, path: Path; status) |_answer| {
        if code(status) == TF_NOT_FOUND {
            set(status, 17);
        }
    }
    lists_none_on_error = filesystem.get_children(fs: Fs, path: Path, entries: Entries; status) -> c_int |count| {
        count.max(0)
    }
    empty_region_fails = filesystem.new_read_only_memory_region_from_file(fs: Fs, path: Path, region: *mut TF_ReadOnlyMemoryRegion; status) |_answer| {
        if code(status) == TF_INVALID_ARGUMENT {
            set(status, TF_UNAVAILABLE);
        }
    }
}

unsafe extern "C" fn cleanup_writer(file: *mut TF_WritableFile) {
    let cleanup = right().writer.cleanup.expect("the right plugin has all operations");
    // SAFETY: the host passes an open file, for the last time.
    unsafe {
        closed().remove(&(*file).plugin_file.addr());
        cleanup(file);
    }
}

unsafe extern "C" fn counters_unset(
    fs: Fs,
    path: Path,
    files: *mut u64,
    dirs: *mut u64,
    status: *mut TF_Status,
) {
    let delete =
        right().filesystem.delete_recursively.expect("the right plugin has all operations");
    let (mut some, mut others) = (0, 0);
    // SAFETY: the host passes what the header says; the counters are valid.
    unsafe {
        delete(fs, path, &raw mut some, &raw mut others, status);
        if code(status) == TF_OK {
            *files = some;
            *dirs = others;
        }
    }
}

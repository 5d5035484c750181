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

/// The functions of a plugin.
#[derive(Clone, Copy)]
struct Tables {
    filesystem: TF_FilesystemOps,
    reader: TF_RandomAccessFileOps,
    writer: TF_WritableFileOps,
}

/// Those of the plugin that is right. There is one such plugin in a program.
static RIGHT: OnceLock<Tables> = OnceLock::new();

fn right() -> &'static Tables {
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
    unsafe {
        let ops = &mut *(*info).ops;
        let mut tables = Tables {
            filesystem: *ops.filesystem_ops,
            reader: *ops.random_access_file_ops,
            writer: *ops.writable_file_ops,
        };
        RIGHT.get_or_init(|| tables);
        doctor(defect, &mut tables);
        *ops.filesystem_ops = tables.filesystem;
        *ops.random_access_file_ops = tables.reader;
        *ops.writable_file_ops = tables.writer;
    }
}

fn doctor(defect: Defect, tables: &mut Tables) {
    let Tables { filesystem, writer, .. } = tables;
    match defect {
        Defect::RawNoClose => writer.close = None,
        Defect::RawNoTranslateName => filesystem.translate_name = None,
        Defect::RawNoCopyFile => filesystem.copy_file = None,
        Defect::RawNoRenameFile => filesystem.rename_file = None,
        Defect::RawCountersUnset => filesystem.delete_recursively = Some(counters_unset),
        Defect::RawSecondCloseFails | Defect::RawFlushAfterCloseFails => {
            writer.cleanup = Some(cleanup_writer);
        }
        _ => {}
    }
    wrap(defect, tables);
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

/// # Safety
/// As [`code`].
unsafe fn change(status: *mut TF_Status, from: TF_Code, to: TF_Code) {
    // SAFETY: `status` is a status of the host.
    unsafe {
        if code(status) == from {
            set(status, to);
        }
    }
}

/// For each defect the function that calls the right one and then changes the answer.
macro_rules! wrappers {
    ($($defect:ident = $table:ident.$slot:ident($($arg:ident: $type:ty),*; $status:ident) $(-> $ret:ty)? |$answer:ident| $body:block)*) => {
        fn wrap(defect: Defect, tables: &mut Tables) {$(
            if defect == Defect::$defect {
                unsafe extern "C" fn broken($($arg: $type,)* $status: *mut TF_Status) $(-> $ret)? {
                    let slot = right().$table.$slot.expect("the right plugin has all operations");
                    // SAFETY: the host passes what the header says, which goes on as it is; places to fill
                    // are valid, and the status is the host's.
                    unsafe {
                        let $answer = slot($($arg,)* $status);
                        $body
                    }
                }
                tables.$table.$slot = Some(broken);
            }
        )*}
    };
}

type Fs = *const TF_Filesystem;
type Path = *const c_char;
type Reader = *const TF_RandomAccessFile;
type Writer = *const TF_WritableFile;
type Entries = *mut *mut *mut c_char;

wrappers! {
    RawForgetsOutOfRange = reader.read(file: Reader, offset: u64, n: usize, buffer: *mut c_char; status) -> i64 |read| {
        change(status, TF_OUT_OF_RANGE, TF_OK);
        read
    }
    RawEndWithAllBytes = reader.read(file: Reader, offset: u64, n: usize, buffer: *mut c_char; status) -> i64 |read| {
        if code(status) == TF_OK && n > 0 {
            set(status, TF_OUT_OF_RANGE);
        }
        read
    }
    RawReadOfNothingEnds = reader.read(file: Reader, offset: u64, n: usize, buffer: *mut c_char; status) -> i64 |read| {
        if n == 0 {
            set(status, TF_OUT_OF_RANGE);
        }
        read
    }
    RawLeaksOnFailedOpen = filesystem.new_random_access_file(fs: Fs, path: Path, file: *mut TF_RandomAccessFile; status) |_answer| {
        if code(status) != TF_OK {
            (*file).plugin_file = STATE;
        }
    }
    RawOpensNothing = filesystem.new_random_access_file(fs: Fs, path: Path, file: *mut TF_RandomAccessFile; status) |_answer| {
        change(status, TF_NOT_FOUND, TF_OK);
    }
    RawSecondCloseFails = writer.close(file: Writer; status) |_answer| {
        if !closed().insert((*file).plugin_file.addr()) {
            set(status, TF_FAILED_PRECONDITION);
        }
    }
    RawFlushAfterCloseFails = writer.close(file: Writer; status) |_answer| {
        closed().insert((*file).plugin_file.addr());
    }
    RawFlushAfterCloseFails = writer.flush(file: Writer; status) |_answer| {
        if closed().contains(&(*file).plugin_file.addr()) {
            set(status, TF_FAILED_PRECONDITION);
        }
    }
    RawIsDirectoryReturns = filesystem.is_directory(fs: Fs, path: Path; status) -> bool |found| {
        change(status, TF_FAILED_PRECONDITION, TF_OK);
        found
    }
    RawSizeMinusOne = filesystem.get_file_size(fs: Fs, path: Path; status) -> i64 |size| {
        change(status, TF_FAILED_PRECONDITION, TF_OK);
        size
    }
    RawCodeOutOfRange = filesystem.path_exists(fs: Fs, path: Path; status) |_answer| {
        change(status, TF_NOT_FOUND, 17);
    }
    RawListsTooMany = filesystem.get_children(fs: Fs, path: Path, entries: Entries; status) -> c_int |count| {
        count.max(0)
    }
    RawEmptyRegionFails = filesystem.new_read_only_memory_region_from_file(fs: Fs, path: Path, region: *mut TF_ReadOnlyMemoryRegion; status) |_answer| {
        change(status, TF_INVALID_ARGUMENT, TF_UNAVAILABLE);
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

//! Operations of hand-made plugins, most of them wrong in one way each.

use super::hand_made::{STATE, c_string, raw_block, set};
use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr;
use std::cell::Cell;
use tf_fs_sys::host::Table;
use tf_fs_sys::{
    StatusFunctions, TF_FAILED_PRECONDITION, TF_FileStatistics, TF_Filesystem,
    TF_Filesystem_Option, TF_Filesystem_Option_Value, TF_Filesystem_Option_Value_Buffer,
    TF_Filesystem_Option_Value_Union, TF_NOT_FOUND, TF_OK, TF_OUT_OF_RANGE, TF_RandomAccessFile,
    TF_ReadOnlyMemoryRegion, TF_Status, TF_TransactionToken, TF_UNAVAILABLE, TF_WritableFile,
};

thread_local! {
    /// The status of the last call, for misuse after its end.
    static KEPT: Cell<*mut TF_Status> = const { Cell::new(ptr::null_mut()) };
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

/// Defines slots that write results, set a status and return: `name(arguments) -> type { code, value; statements }`.
macro_rules! slots {
    ($(
        $(#[$doc:meta])*
        $name:ident($($arg:ident: $type:ty),*) $(-> $ret:ty)? { $code:expr $(, $value:expr)? $(; $($before:tt)*)? }
    )*) => {$(
        $(#[$doc])*
        pub(crate) unsafe extern "C" fn $name($($arg: $type,)* status: *mut TF_Status) $(-> $ret)? {
            $(let _ = $arg;)*
            // SAFETY: the host passes a status, and what the header says between: C strings, places for answers, and a
            // buffer of `n` bytes, which has a margin on each side.
            unsafe {
                $($($before)*)?
                set(status, $code, c"broken");
            }
            $($value)?
        }
    )*};
}

type Fs = *const TF_Filesystem;
type Path = *const c_char;
type Reader = *const TF_RandomAccessFile;
type Writer = *const TF_WritableFile;
type Buffer = *mut c_char;
type Names = *mut *mut *mut c_char;
type NewToken = *mut *mut TF_TransactionToken;
type Statistics = *mut TF_FileStatistics;

slots! {
    ok_path(fs: Fs, path: Path) { TF_OK }
    not_found(fs: Fs, path: Path) { TF_NOT_FOUND }
    code_17(fs: Fs, path: Path) { 17 }
    open_nothing(fs: Fs, path: Path, file: *mut TF_RandomAccessFile) { TF_OK }
    open_reader(fs: Fs, path: Path, file: *mut TF_RandomAccessFile) { TF_OK; (*file).plugin_file = STATE; }
    open_reader_and_fail(fs: Fs, path: Path, file: *mut TF_RandomAccessFile) {
        TF_UNAVAILABLE; (*file).plugin_file = STATE;
    }
    open_writer(fs: Fs, path: Path, file: *mut TF_WritableFile) { TF_OK; (*file).plugin_file = STATE; }
    open_region(fs: Fs, path: Path, region: *mut TF_ReadOnlyMemoryRegion) {
        TF_OK; (*region).plugin_memory_region = STATE;
    }
    read_too_much(f: Reader, o: u64, n: usize, b: Buffer) -> i64 { TF_OK, n as i64 + 1 }
    read_minus_one(f: Reader, o: u64, n: usize, b: Buffer) -> i64 { TF_OK, -1 }
    read_short(f: Reader, o: u64, n: usize, b: Buffer) -> i64 { TF_OK, 0 }
    read_all_at_end(f: Reader, o: u64, n: usize, b: Buffer) -> i64 { TF_OUT_OF_RANGE, n as i64 }
    read_nothing_written(f: Reader, o: u64, n: usize, b: Buffer) -> i64 { TF_OK, n as i64 }
    read_error_with_bytes(f: Reader, o: u64, n: usize, b: Buffer) -> i64 { TF_UNAVAILABLE, 1 }
    read_end_minus_one(f: Reader, o: u64, n: usize, b: Buffer) -> i64 { TF_OUT_OF_RANGE, -1 }
    /// Writes `n` bytes and one outside: for offset 0 behind them, else before.
    read_outside(f: Reader, offset: u64, n: usize, buffer: Buffer) -> i64 {
        TF_OK, n as i64;
        ptr::write_bytes(buffer, b'x', n);
        let outside = if offset == 0 { buffer.add(n) } else { buffer.sub(1) };
        *outside = !*outside;
    }
    /// Writes all bytes except the one in the middle.
    read_but_one(f: Reader, o: u64, n: usize, buffer: Buffer) -> i64 {
        TF_OK, n as i64;
        let left_out = buffer.add(n / 2).read();
        ptr::write_bytes(buffer, b'x', n);
        buffer.add(n / 2).write(left_out);
    }
    append(f: Writer, buffer: *const c_char, n: usize) {
        TF_OK; assert_eq!(buffer.is_null(), n == 0, "nothing comes as null");
    }
    tell_negative(f: Writer) -> i64 { TF_OK, -5 }
    tell_error_with_value(f: Writer) -> i64 { TF_UNAVAILABLE, 5 }
    counters_unset(fs: Fs, path: Path, files: *mut u64, dirs: *mut u64) { TF_NOT_FOUND }
    counters_left(fs: Fs, path: Path, files: *mut u64, dirs: *mut u64) { TF_OK; (*files, *dirs) = (2, 1); }
    stat_unset(fs: Fs, path: Path, stats: Statistics) { TF_OK }
    stat_negative(fs: Fs, path: Path, stats: Statistics) {
        TF_OK;
        (*stats).length = -1;
        (*stats).mtime_nsec = -1_500_000_000;
        (*stats).is_directory = false;
    }
    stat_fails_but_writes(fs: Fs, path: Path, stats: Statistics) { TF_NOT_FOUND; (*stats).length = 3; }
    /// Writes a byte that is not a `bool` of C++.
    stat_odd_bool(fs: Fs, path: Path, stats: Statistics) {
        TF_OK;
        (*stats).length = 3;
        (*stats).mtime_nsec = 3;
        (&raw mut (*stats).is_directory).cast::<u8>().write(2);
    }
    is_directory_true_for_a_file(fs: Fs, path: Path) -> bool { TF_FAILED_PRECONDITION, true }
    is_directory_false_and_ok(fs: Fs, path: Path) -> bool { TF_OK, false }
    size_minus_one(fs: Fs, path: Path) -> i64 { TF_OK, -1 }
    size_with_error(fs: Fs, path: Path) -> i64 { TF_NOT_FOUND, 0 }
    list_negative(fs: Fs, path: Path, entries: Names) -> c_int { TF_OK, -1 }
    list_no_array(fs: Fs, path: Path, entries: Names) -> c_int { TF_OK, 2 }
    list_error_with_count(fs: Fs, path: Path, entries: Names) -> c_int { TF_NOT_FOUND, 0 }
    list_odd_names(fs: Fs, path: Path, entries: Names) -> c_int {
        TF_OK, 5;
        assert!((*entries).is_null());
        *entries = list([Some(c""), Some(c"a/b"), Some(c".."), Some(c"a"), Some(c"a")]);
    }
    list_null_entry(fs: Fs, path: Path, entries: Names) -> c_int {
        TF_OK, 2;
        assert!((*entries).is_null());
        *entries = list([Some(c"x://h/a"), None]);
    }
    list_without_scheme(fs: Fs, path: Path, entries: Names) -> c_int { TF_OK, 1; *entries = list([Some(c"/a")]); }
    /// Lists a directory that holds `sub`, at any depth.
    list_sub(fs: Fs, path: Path, entries: Names) -> c_int {
        TF_OK, 2; *entries = list([Some(c"sub"), Some(c"other")]);
    }
    /// Returns the same block as two entries.
    list_one_block_twice(fs: Fs, path: Path, entries: Names) -> c_int {
        TF_OK, 2;
        *entries = list([Some(c"a"), None]);
        *(*entries).add(1) = **entries;
    }
    start_nothing(fs: Fs, token: NewToken) -> c_int { TF_OK, 0 }
    start_with_one(fs: Fs, token: NewToken) -> c_int { TF_NOT_FOUND, 1 }
    start_foreign(fs: Fs, token: NewToken) -> c_int { TF_OK, 0; *token = (&raw const FOREIGN.0).cast_mut(); }
    keys_without_their_number(fs: Fs, keys: *mut *mut c_char, count: *mut c_int) {
        TF_OK; (*keys, *count) = (c_string("keys", c"a"), -1);
    }
    options_without_their_number(fs: Fs, options: *mut *mut TF_Filesystem_Option, count: *mut c_int) {
        TF_OK; (*options, *count) = (raw_block("options", 1).cast(), -1);
    }
    buffer_without_a_name(fs: Fs, options: *mut *mut TF_Filesystem_Option, count: *mut c_int) {
        TF_OK;
        let buffer_val = TF_Filesystem_Option_Value_Buffer { buf: c_string("buffer", c"b"), buf_length: 1 };
        let values = block_of("values", TF_Filesystem_Option_Value_Union { buffer_val });
        let value = block_of("value", TF_Filesystem_Option_Value { type_tag: 2, num_values: 1, values });
        let (name, description, per_file) = (ptr::null_mut(), ptr::null_mut(), 0);
        (*options, *count) = (block_of("options", TF_Filesystem_Option { name, description, per_file, value }), 1);
    }
}

fn block_of<T>(name: &'static str, value: T) -> *mut T {
    let block = raw_block(name, size_of::<T>()).cast::<T>();
    // SAFETY: a fresh block of this size; `malloc` aligns for any C type.
    unsafe { block.write(value) };
    block
}

/// Allocates an array of entries, in which `None` becomes null.
fn list<const N: usize>(names: [Option<&CStr>; N]) -> *mut *mut c_char {
    let entries = names.map(|name| name.map_or(ptr::null_mut(), |name| c_string("entry", name)));
    block_of("entries", entries).cast()
}

pub(crate) unsafe extern "C" fn sub_is_a_directory(
    _: Fs,
    path: Path,
    status: *mut TF_Status,
) -> bool {
    // SAFETY: the host passes a C string and a status.
    unsafe {
        let is_directory = CStr::from_ptr(path).to_bytes().ends_with(b"sub");
        set(status, if is_directory { TF_OK } else { TF_FAILED_PRECONDITION }, c"");
        is_directory
    }
}

pub(crate) unsafe extern "C" fn length_zero(_: *const TF_ReadOnlyMemoryRegion) -> u64 {
    0
}

pub(crate) unsafe extern "C" fn data_null(_: *const TF_ReadOnlyMemoryRegion) -> *const c_void {
    ptr::null()
}

pub(crate) unsafe extern "C" fn length_that_changes(_: *const TF_ReadOnlyMemoryRegion) -> u64 {
    CALLS.set(CALLS.get() + 1);
    CALLS.get() % 7 + 1
}

pub(crate) unsafe extern "C" fn init_that_leaks(fs: *mut TF_Filesystem, status: *mut TF_Status) {
    // SAFETY: the host passes a filesystem to fill and a status.
    unsafe {
        (*fs).plugin_filesystem = STATE;
        set(status, TF_UNAVAILABLE, c"broken");
    }
}

pub(crate) unsafe extern "C" fn never_set(_: Fs, _: Path, _: *mut TF_Status) {}

pub(crate) unsafe extern "C" fn null_message(_: Fs, _: Path, status: *mut TF_Status) {
    let host = StatusFunctions::get().expect("installed");
    // SAFETY: a status of the host; the null message is what is tested.
    unsafe { (host.TF_SetStatus)(status, TF_NOT_FOUND, ptr::null()) }
}

pub(crate) unsafe extern "C" fn latin1_message(_: Fs, _: Path, status: *mut TF_Status) {
    // SAFETY: a status of the host and a C string.
    unsafe { set(status, TF_NOT_FOUND, c"\xe9") }
}

/// Sets the status of the previous call.
pub(crate) unsafe extern "C" fn late(_: Fs, _: Path, status: *mut TF_Status) {
    let before = KEPT.replace(status);
    // SAFETY: the first is a status of the host that is gone, which is what is tested; the host does
    // not follow the pointer.
    unsafe {
        if !before.is_null() {
            set(before, TF_OK, c"");
        }
        set(status, TF_OK, c"");
    }
}

pub(crate) unsafe extern "C" fn deletes_the_status(_: Fs, _: Path, status: *mut TF_Status) {
    let host = StatusFunctions::get().expect("installed");
    // SAFETY: a status of the host, which is not the plugin's to delete, as is tested.
    unsafe { (host.TF_DeleteStatus)(status) }
}

pub(crate) unsafe extern "C" fn translate_to_null(_: Fs, _: Path) -> *mut c_char {
    ptr::null_mut()
}

pub(crate) unsafe extern "C" fn paths_exist_lies(
    _: Fs,
    _: *mut *mut c_char,
    count: c_int,
    statuses: *mut *mut TF_Status,
) -> bool {
    for index in 0..usize::try_from(count).expect("a count") {
        // SAFETY: the host passes `count` statuses or null.
        unsafe {
            if !statuses.is_null() {
                set(*statuses.add(index), TF_NOT_FOUND, c"broken");
            }
        }
    }
    true
}

static FOREIGN: Foreign =
    Foreign(TF_TransactionToken { token: ptr::null_mut(), owner: ptr::null_mut() });
struct Foreign(TF_TransactionToken);
// SAFETY: never written.
unsafe impl Sync for Foreign {}

pub(crate) unsafe extern "C" fn decode_to_null(
    _: Fs,
    _: *const TF_TransactionToken,
) -> *mut c_char {
    ptr::null_mut()
}

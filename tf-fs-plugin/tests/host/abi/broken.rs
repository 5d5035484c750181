//! Operations of hand-made plugins, most of them wrong in one way each.

use super::hand_made::{STATE, c_string, raw_block, set};
use core::ffi::{c_char, c_int, c_void};
use core::ptr;
use std::cell::Cell;
use tf_fs_sys::host::Table;
use tf_fs_sys::{
    StatusFunctions, TF_FAILED_PRECONDITION, TF_FileStatistics, TF_Filesystem,
    TF_Filesystem_Option, TF_NOT_FOUND, TF_OK, TF_OUT_OF_RANGE, TF_RandomAccessFile,
    TF_ReadOnlyMemoryRegion, TF_Status, TF_TransactionToken, TF_UNAVAILABLE, TF_WritableFile,
};

thread_local! {
    /// The status of the last call, for misuse after its end.
    static KEPT: Cell<*mut TF_Status> = const { Cell::new(ptr::null_mut()) };
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

/// Slots that only answer: `name(arguments) -> type { code, value }`.
macro_rules! answers {
    ($($name:ident($($arg:ident: $type:ty),*; $status:ident) $(-> $ret:ty)? { $code:expr $(, $value:expr)? })*) => {$(
        pub(crate) unsafe extern "C" fn $name($($arg: $type,)* $status: *mut TF_Status) $(-> $ret)? {
            $(let _ = $arg;)*
            // SAFETY: the host passes a status.
            unsafe { set($status, $code, c"broken") };
            $($value)?
        }
    )*};
}

type Fs = *const TF_Filesystem;
type Path = *const c_char;

answers! {
    ok_path(fs: Fs, path: Path; status) { TF_OK }
    not_found(fs: Fs, path: Path; status) { TF_NOT_FOUND }
    code_17(fs: Fs, path: Path; status) { 17 }
    open_nothing(fs: Fs, path: Path, file: *mut TF_RandomAccessFile; status) { TF_OK }
    read_too_much(f: *const TF_RandomAccessFile, o: u64, n: usize, b: *mut c_char; status) -> i64 { TF_OK, n as i64 + 1 }
    read_minus_one(f: *const TF_RandomAccessFile, o: u64, n: usize, b: *mut c_char; status) -> i64 { TF_OK, -1 }
    read_short(f: *const TF_RandomAccessFile, o: u64, n: usize, b: *mut c_char; status) -> i64 { TF_OK, 0 }
    read_all_at_end(f: *const TF_RandomAccessFile, o: u64, n: usize, b: *mut c_char; status) -> i64 { TF_OUT_OF_RANGE, n as i64 }
    read_nothing_written(f: *const TF_RandomAccessFile, o: u64, n: usize, b: *mut c_char; status) -> i64 { TF_OK, n as i64 }
    read_error_with_bytes(f: *const TF_RandomAccessFile, o: u64, n: usize, b: *mut c_char; status) -> i64 { TF_UNAVAILABLE, 1 }
    read_end_minus_one(f: *const TF_RandomAccessFile, o: u64, n: usize, b: *mut c_char; status) -> i64 { TF_OUT_OF_RANGE, -1 }
    tell_negative(f: *const TF_WritableFile; status) -> i64 { TF_OK, -5 }
    tell_error_with_value(f: *const TF_WritableFile; status) -> i64 { TF_UNAVAILABLE, 5 }
    counters_unset(fs: Fs, path: Path, files: *mut u64, dirs: *mut u64; status) { TF_NOT_FOUND }
    stat_unset(fs: Fs, path: Path, stats: *mut TF_FileStatistics; status) { TF_OK }
    is_directory_true_for_a_file(fs: Fs, path: Path; status) -> bool { TF_FAILED_PRECONDITION, true }
    is_directory_false_and_ok(fs: Fs, path: Path; status) -> bool { TF_OK, false }
    size_minus_one(fs: Fs, path: Path; status) -> i64 { TF_OK, -1 }
    size_with_error(fs: Fs, path: Path; status) -> i64 { TF_NOT_FOUND, 0 }
    list_negative(fs: Fs, path: Path, entries: *mut *mut *mut c_char; status) -> c_int { TF_OK, -1 }
    list_no_array(fs: Fs, path: Path, entries: *mut *mut *mut c_char; status) -> c_int { TF_OK, 2 }
    list_error_with_count(fs: Fs, path: Path, entries: *mut *mut *mut c_char; status) -> c_int { TF_NOT_FOUND, 0 }
    start_nothing(fs: Fs, token: *mut *mut TF_TransactionToken; status) -> c_int { TF_OK, 0 }
    start_with_one(fs: Fs, token: *mut *mut TF_TransactionToken; status) -> c_int { TF_NOT_FOUND, 1 }
}

/// Slots with a body: `name(arguments; status) -> type { ... }`.
macro_rules! slots {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $type:ty),*; $status:ident) $(-> $ret:ty)? $body:block)*) => {$(
        $(#[$doc])*
        pub(crate) unsafe extern "C" fn $name($($arg: $type,)* $status: *mut TF_Status) $(-> $ret)? $body
    )*};
}

/// Slots that fill in a state, and then set a status.
macro_rules! opening {
    ($($name:ident($file:ident.$state:ident) { $code:ident, $message:literal })*) => {$(
        pub(crate) unsafe extern "C" fn $name(
            _: Fs,
            _: Path,
            file: *mut $file,
            status: *mut TF_Status,
        ) {
            // SAFETY: the host passes a place for the file and a status, both valid.
            unsafe {
                (*file).$state = STATE;
                set(status, $code, $message);
            }
        }
    )*};
}
opening! {
    open_reader(TF_RandomAccessFile.plugin_file) { TF_OK, c"" }
    open_reader_and_fail(TF_RandomAccessFile.plugin_file) { TF_UNAVAILABLE, c"broken" }
    open_writer(TF_WritableFile.plugin_file) { TF_OK, c"" }
    open_region(TF_ReadOnlyMemoryRegion.plugin_memory_region) { TF_OK, c"" }
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

/// Sets the status of the call before.
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

/// A listing: `None` is a null entry.
unsafe fn list(
    names: &[Option<&core::ffi::CStr>],
    entries: *mut *mut *mut c_char,
    status: *mut TF_Status,
) -> c_int {
    let array = raw_block("entries", size_of_val(names)).cast::<*mut c_char>();
    for (index, name) in names.iter().enumerate() {
        let entry = name.map_or(ptr::null_mut(), |name| c_string("entry", name));
        // SAFETY: the array has as many elements as there are names.
        unsafe { array.add(index).write(entry) };
    }
    // SAFETY: the host passes a place for the array, which holds null, and a status.
    unsafe {
        assert!((*entries).is_null());
        *entries = array;
        set(status, TF_OK, c"");
    }
    c_int::try_from(names.len()).expect("few names")
}

/// Listings of these names.
macro_rules! listing {
    ($($(#[$doc:meta])* $name:ident: [$($entry:expr),*];)*) => {$(
        $(#[$doc])*
        pub(crate) unsafe extern "C" fn $name(
            _: Fs,
            _: Path,
            entries: *mut *mut *mut c_char,
            status: *mut TF_Status,
        ) -> c_int {
            // SAFETY: the host passes a place for the array, which holds null, and a status.
            unsafe { list(&[$($entry),*], entries, status) }
        }
    )*};
}
listing! {
    list_odd_names: [Some(c""), Some(c"a/b"), Some(c".."), Some(c"a"), Some(c"a")];
    list_null_entry: [Some(c"x://h/a"), None];
    list_without_scheme: [Some(c"/a")];
    /// A directory that holds `sub`, at any depth.
    list_sub: [Some(c"sub"), Some(c"other")];
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

slots! {
    /// Writes `n` bytes and one on each side.
    read_outside(_file: *const TF_RandomAccessFile, offset: u64, n: usize, buffer: *mut c_char; status) -> i64 {
        // SAFETY: the host's buffer has margins, which is what is tested; offset 0 means behind, else
        // before.
        unsafe {
            ptr::write_bytes(buffer, b'x', n);
            let outside = if offset == 0 { buffer.add(n) } else { buffer.sub(1) };
            *outside = !*outside;
            set(status, TF_OK, c"");
        }
        n as i64
    }
    counters_left(_fs: Fs, _path: Path, files: *mut u64, dirs: *mut u64; status) {
        // SAFETY: the host passes two counters and a status.
        unsafe {
            *files = 2;
            *dirs = 1;
            set(status, TF_OK, c"");
        }
    }
    stat_negative(_fs: Fs, _path: Path, stats: *mut TF_FileStatistics; status) {
        // SAFETY: the host passes statistics to fill and a status.
        unsafe {
            stats.write(TF_FileStatistics {
                length: -1,
                mtime_nsec: -1_500_000_000,
                is_directory: false,
            });
            set(status, TF_OK, c"");
        }
    }
    stat_fails_but_writes(_fs: Fs, _path: Path, stats: *mut TF_FileStatistics; status) {
        // SAFETY: the host passes a place for the statistics and a status, both valid.
        unsafe {
            (*stats).length = 3;
            set(status, TF_NOT_FOUND, c"broken");
        }
    }
    stat_odd_bool(_fs: Fs, _path: Path, stats: *mut TF_FileStatistics; status) {
        // SAFETY: the host passes a place for the statistics and a status, both valid; a byte is written where C++
        // has a `bool`.
        unsafe {
            (*stats).length = 3;
            (*stats).mtime_nsec = 3;
            (&raw mut (*stats).is_directory).cast::<u8>().write(2);
            set(status, TF_OK, c"");
        }
    }
    /// The same block as two entries.
    list_one_block_twice(_fs: Fs, _path: Path, entries: *mut *mut *mut c_char; status) -> c_int {
        // SAFETY: the host's arguments are passed on; the array has two elements.
        unsafe {
            let count = list(&[Some(c"a"), None], entries, status);
            *(*entries).add(1) = **entries;
            count
        }
    }
    start_foreign(_fs: Fs, token: *mut *mut TF_TransactionToken; status) -> c_int {
        // SAFETY: the host passes a place for the token and a status.
        unsafe {
            *token = (&raw const FOREIGN.0).cast_mut();
            set(status, TF_OK, c"");
        }
        0
    }
    /// All but the byte in the middle.
    read_but_one(_file: *const TF_RandomAccessFile, _offset: u64, n: usize, buffer: *mut c_char; status) -> i64 {
        // SAFETY: the host passes a buffer of `n` bytes and a status.
        unsafe {
            let left_out = buffer.add(n / 2).read();
            ptr::write_bytes(buffer, b'x', n);
            buffer.add(n / 2).write(left_out);
            set(status, TF_OK, c"");
        }
        n as i64
    }
    keys_without_their_number(_fs: Fs, keys: *mut *mut c_char, count: *mut c_int; status) {
        // SAFETY: the host passes two places for the answer and a status.
        unsafe {
            (*keys, *count) = (c_string("keys", c"a"), -1);
            set(status, TF_OK, c"");
        }
    }
    options_without_their_number(_fs: Fs, options: *mut *mut TF_Filesystem_Option, count: *mut c_int; status) {
        // SAFETY: the host passes two places for the answer and a status.
        unsafe {
            (*options, *count) = (raw_block("options", 1).cast(), -1);
            set(status, TF_OK, c"");
        }
    }
    append(_file: *const TF_WritableFile, buffer: *const c_char, n: usize; status) {
        assert_eq!(buffer.is_null(), n == 0, "nothing comes as null");
        // SAFETY: the host passes a status.
        unsafe { set(status, TF_OK, c"") }
    }
    sub_is_a_directory(_fs: Fs, path: Path; status) -> bool {
        // SAFETY: the host passes a C string and a status.
        unsafe {
            let is_directory = core::ffi::CStr::from_ptr(path).to_bytes().ends_with(b"sub");
            let code = if is_directory { TF_OK } else { TF_FAILED_PRECONDITION };
            set(status, code, c"");
            is_directory
        }
    }
}

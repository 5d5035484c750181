//! Calls of slots with arguments that no host passes.

use core::ffi::{CStr, c_char, c_int};
use core::ptr;
use std::ffi::CString;
use tf_fs_plugin::__private::init_plugin;
use tf_fs_plugin::{Code, Error, Result};
use tf_fs_sys::host::Table;
use tf_fs_sys::*;
use tf_plugin_testing::filesystem::{
    Host, Plugin, Tables, TestFilesystem, TestRandomAccessFile, TestTransaction, TestWritableFile,
};

/// A status as a plugin could make one itself.
struct Status(*mut TF_Status);

impl Status {
    fn new() -> Self {
        // SAFETY: takes nothing.
        Self(unsafe { (functions().TF_NewStatus)() })
    }

    fn result(&self) -> Result<()> {
        // SAFETY: a living status.
        let (code, message) = unsafe {
            let code = (functions().TF_GetCode)(self.0);
            (code, CStr::from_ptr((functions().TF_Message)(self.0)))
        };
        match Code::from_raw(code) {
            None => Ok(()),
            Some(code) => Err(Error::new(code, message.to_string_lossy().into_owned())),
        }
    }
}

impl Drop for Status {
    fn drop(&mut self) {
        // SAFETY: a living status, for the last time.
        unsafe { (functions().TF_DeleteStatus)(self.0) }
    }
}

fn functions() -> &'static StatusFunctions {
    StatusFunctions::get().expect("a host was made")
}

/// Which arguments of a call are not null.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arguments {
    pub(crate) filesystem: bool,
    /// With a filesystem: whether it has a state, as after `init` and before `cleanup`.
    pub(crate) state: bool,
    pub(crate) path: bool,
    /// Where the result goes, for slots that write one.
    pub(crate) place: bool,
    pub(crate) status: bool,
}

impl Arguments {
    pub(crate) const ALL: Self =
        Self { filesystem: true, state: true, path: true, place: true, status: true };
}

/// The result of a slot.
#[derive(Debug)]
pub(crate) struct CallResult {
    pub(crate) status: Result<()>,
    /// Its result, if it is not `void`; a pointer counts as whether it is non-null.
    pub(crate) returned: Option<i64>,
}

/// Calls a slot of a filesystem by its name, with `path` where it takes paths.
pub(crate) fn call(fs: &TestFilesystem, op: &str, path: &str, arguments: Arguments) -> CallResult {
    let Tables { filesystem: ops, .. } = fs.tables();
    let status = Status::new();
    let s = if arguments.status { status.0 } else { ptr::null_mut() };
    let mut empty = TF_Filesystem { plugin_filesystem: ptr::null_mut() };
    let f: *const TF_Filesystem = match (arguments.filesystem, arguments.state) {
        (true, true) => fs.as_ptr(),
        (true, false) => &raw mut empty,
        (false, _) => ptr::null(),
    };
    let string = CString::new(path).expect("no NUL");
    let p = if arguments.path { string.as_ptr() } else { ptr::null() };
    fn place<T>(arguments: Arguments, value: &mut T) -> *mut T {
        if arguments.place { value } else { ptr::null_mut() }
    }
    let is_done = || arguments.status && status.result().is_ok();
    let written_only_if_done = |is_written: bool| {
        assert!(is_done() || !is_written, "{op} did nothing but wrote an answer");
    };
    // SAFETY: every argument is null, which is what is tested, or valid as the header says; what a
    // slot opens or allocates for the host is freed.
    let returned = unsafe {
        macro_rules! slot {
            ($($($name:ident)+: $function:ident => $body:expr;)*) => {
                match op {
                    $($(stringify!($name) => {
                        let $function = ops.$name.expect("the filesystem writes all operations");
                        $body
                    })+)*
                    other => panic!("no call for `{other}`"),
                }
            };
        }
        let list = |slot: TF_ListOp| {
            let mut entries: *mut *mut c_char = ptr::null_mut();
            let count = slot(f, p, place(arguments, &mut entries), s);
            written_only_if_done(!entries.is_null());
            if !entries.is_null() {
                for index in 0..usize::try_from(count).expect("a count") {
                    libc::free(entries.add(index).read().cast());
                }
                libc::free(entries.cast());
            }
            Some(i64::from(count))
        };
        macro_rules! void {
            ($call:expr) => {{
                $call;
                None
            }};
        }
        macro_rules! open {
            ($slot:ident, $type:ident.$state:ident, $table:ident) => {{
                let mut opened = $type { $state: ptr::null_mut() };
                $slot(f, p, place(arguments, &mut opened), s);
                written_only_if_done(!opened.$state.is_null());
                fs.tables().$table.cleanup.expect("required")(&mut opened);
                None
            }};
        }
        let token_from = |slot: &dyn Fn(*mut *mut TF_TransactionToken) -> c_int| {
            let mut token = ptr::null_mut();
            let returned = slot(place(arguments, &mut token));
            written_only_if_done(!token.is_null());
            Some(i64::from(returned))
        };
        slot! {
            new_random_access_file: slot => open!(slot, TF_RandomAccessFile.plugin_file, random_access_file);
            new_writable_file new_appendable_file: slot => open!(slot, TF_WritableFile.plugin_file, writable_file);
            new_read_only_memory_region_from_file: slot =>
                open!(slot, TF_ReadOnlyMemoryRegion.plugin_memory_region, read_only_memory_region);
            create_dir recursively_create_dir delete_file delete_dir path_exists: slot => void!(slot(f, p, s));
            delete_recursively: slot => {
                let (mut files, mut dirs) = (7, 7);
                slot(f, p, place(arguments, &mut files), place(arguments, &mut dirs), s);
                // Always written if there is a place.
                let left = if is_done() { (0, 0) } else { (0, 1) };
                assert!(!arguments.place || (files, dirs) == left);
                None
            };
            rename_file copy_file: slot => void!(slot(f, p, c"full://h/other".as_ptr(), s));
            paths_exist: slot => {
                let mut paths = [p.cast_mut(), p.cast_mut()];
                let mut statuses = [s, s];
                let paths = if arguments.path { paths.as_mut_ptr() } else { ptr::null_mut() };
                Some(i64::from(slot(f, paths, 2, place(arguments, &mut statuses).cast())))
            };
            stat: slot => {
                let mut statistics = TF_FileStatistics::default();
                slot(f, p, place(arguments, &mut statistics), s);
                written_only_if_done(statistics != TF_FileStatistics::default());
                None
            };
            is_directory: slot => Some(i64::from(slot(f, p, s)));
            get_file_size: slot => Some(slot(f, p, s));
            translate_name: slot => {
                let name = slot(f, p);
                libc::free(name.cast());
                Some(i64::from(!name.is_null()))
            };
            get_children get_matching_paths: slot => list(slot);
            flush_caches: slot => void!(slot(f));
            start_transaction: slot => token_from(&|token| slot(f, token, s));
            end_transaction: slot => Some(i64::from(slot(f, ptr::null_mut(), s)));
            add_to_transaction: slot => Some(i64::from(slot(f, p, ptr::null_mut(), s)));
            get_transaction_for_path get_or_start_transaction_for_path: slot => token_from(&|token| slot(f, p, token, s));
            decode_transaction_token: slot => {
                let text = slot(f, ptr::null());
                libc::free(text.cast());
                Some(i64::from(!text.is_null()))
            };
            get_filesystem_configuration: slot => {
                let (mut options, mut count) = (ptr::null_mut::<TF_Filesystem_Option>(), 0);
                slot(f, place(arguments, &mut options), place(arguments, &mut count), s);
                assert_eq!(count, 0, "the tests set no option before");
                written_only_if_done(!options.is_null());
                libc::free(options.cast());
                None
            };
            set_filesystem_configuration: slot => void!(slot(f, ptr::null(), 1, s));
            get_filesystem_configuration_option: slot => {
                let mut option = ptr::null_mut();
                slot(f, p, place(arguments, &mut option), s);
                written_only_if_done(!option.is_null());
                None
            };
            set_filesystem_configuration_option: slot => void!(slot(f, ptr::null(), s));
            get_filesystem_configuration_keys: slot => {
                let (mut keys, mut count) = (ptr::null_mut::<c_char>(), 0);
                slot(f, place(arguments, &mut keys), place(arguments, &mut count), s);
                written_only_if_done(!keys.is_null() || count != 0);
                libc::free(keys.cast());
                None
            };
        }
    };
    CallResult { status: status.result(), returned }
}

/// Runs `cleanup` on a filesystem that is null, and on one that was cleaned up already.
pub(crate) fn clean_up_nothing(fs: &TestFilesystem) {
    let cleanup = fs.tables().filesystem.cleanup.expect("required");
    let mut empty = TF_Filesystem { plugin_filesystem: ptr::null_mut() };
    // SAFETY: null and an empty filesystem, which is what is tested.
    unsafe {
        cleanup(ptr::null_mut());
        cleanup(&mut empty);
        cleanup(&mut empty);
    }
}

/// Runs `init` with null pointers.
pub(crate) fn init_nothing(fs: &TestFilesystem) -> Result<()> {
    let init = fs.tables().filesystem.init.expect("required");
    let status = Status::new();
    let mut empty = TF_Filesystem { plugin_filesystem: ptr::null_mut() };
    // SAFETY: null pointers, which is what is tested, and an empty filesystem.
    unsafe {
        init(&mut empty, ptr::null_mut());
        assert!(empty.plugin_filesystem.is_null(), "no status, no filesystem");
        init(ptr::null_mut(), ptr::null_mut());
        init(ptr::null_mut(), status.0);
    }
    status.result()
}

/// A buffer for [`read`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Buffer {
    Null,
    /// One of eight bytes.
    Small,
}

/// Reads with any arguments; returns the slot's result and its status.
pub(crate) fn read(
    file: &TestRandomAccessFile,
    tables: &Tables,
    offset: u64,
    n: usize,
    buffer: Buffer,
) -> (i64, Result<()>) {
    assert!(n <= 8 || buffer == Buffer::Null || isize::try_from(n).is_err());
    let status = Status::new();
    let mut memory = [0_u8; 8];
    let place = match buffer {
        Buffer::Null => ptr::null_mut(),
        Buffer::Small => memory.as_mut_ptr().cast(),
    };
    // SAFETY: an open file and a status; the buffer is null or has `n` bytes, or `n` is more than any
    // buffer has, which is what is tested.
    let returned = unsafe {
        tables.random_access_file.read.expect("filled")(file.as_ptr(), offset, n, place, status.0)
    };
    (returned, status.result())
}

/// Appends a null buffer, or eight bytes of which `n` are said to be there.
pub(crate) fn append(
    file: &TestWritableFile,
    tables: &Tables,
    buffer: Buffer,
    n: usize,
) -> Result<()> {
    assert!(n <= 8 || buffer == Buffer::Null || isize::try_from(n).is_err());
    let status = Status::new();
    let memory = [b'x'; 8];
    let start = match buffer {
        Buffer::Null => ptr::null(),
        Buffer::Small => memory.as_ptr().cast(),
    };
    // SAFETY: an open file and a status; the buffer is null or has `n` bytes, or `n` is more than any
    // buffer has, which is what is tested.
    unsafe {
        tables.writable_file.append.expect("filled")(file.as_ptr(), start, n, status.0);
    }
    status.result()
}

/// Calls each slot of the file tables with a file that is null or not open, with and without a status.
pub(crate) fn call_closed_files(tables: &Tables) -> Vec<(&'static str, CallResult)> {
    let mut reader = TF_RandomAccessFile { plugin_file: ptr::null_mut() };
    let mut writer = TF_WritableFile { plugin_file: ptr::null_mut() };
    let mut region = TF_ReadOnlyMemoryRegion { plugin_memory_region: ptr::null_mut() };
    let mut answers = Vec::new();
    let mut note = |op, call: &dyn Fn(*mut TF_Status) -> Option<i64>| {
        // Without a status nothing is done or reported.
        let silent = call(ptr::null_mut());
        let status = Status::new();
        let returned = call(status.0);
        assert_eq!(silent, returned, "{op}");
        answers.push((op, CallResult { status: status.result(), returned }));
    };
    let reads = tables.random_access_file;
    let writes = tables.writable_file;
    let maps = tables.read_only_memory_region;
    for closed in [ptr::null_mut(), &raw mut reader] {
        // SAFETY: a file that is null or empty, which is what is tested.
        unsafe {
            note("read", &|s| Some(reads.read.expect("filled")(closed, 0, 0, ptr::null_mut(), s)));
            reads.cleanup.expect("required")(closed);
        }
    }
    for closed in [ptr::null_mut(), &raw mut writer] {
        // SAFETY: a file that is null or empty, which the functions must accept.
        unsafe {
            note("append", &|s| {
                writes.append.expect("filled")(closed, ptr::null(), 0, s);
                None
            });
            note("tell", &|s| Some(writes.tell.expect("filled")(closed, s)));
            for (op, slot) in
                [("flush", writes.flush), ("sync", writes.sync), ("close", writes.close)]
            {
                note(op, &|s| {
                    slot.expect("filled")(closed, s);
                    None
                });
            }
            writes.cleanup.expect("required")(closed);
        }
    }
    for closed in [ptr::null_mut(), &raw mut region] {
        // SAFETY: a region that is null or empty, which the functions must accept.
        unsafe {
            assert!(maps.data.expect("required")(closed).is_null());
            assert_eq!(maps.length.expect("required")(closed), 0);
            maps.cleanup.expect("required")(closed);
        }
    }
    answers
}

/// Cleans a reader up twice and then reads from it; the host's own cleanup is the third.
pub(crate) fn clean_up_twice(file: &TestRandomAccessFile, tables: &Tables) -> (i64, Result<()>) {
    let cleanup = tables.random_access_file.cleanup.expect("required");
    // SAFETY: an open file; after the first call its state is null, which is what is tested.
    unsafe {
        cleanup(file.as_ptr());
        cleanup(file.as_ptr());
    }
    read(file, tables, 0, 1, Buffer::Small)
}

/// Requests a negative number of paths.
pub(crate) fn paths_exist_negative(fs: &TestFilesystem) -> bool {
    let slot = fs.tables().filesystem.paths_exist.expect("filled");
    // SAFETY: no path and no status are looked at.
    unsafe { slot(fs.as_ptr(), ptr::null_mut(), -3, ptr::null_mut()) }
}

/// Requests a path and a null one, with a status each.
pub(crate) fn paths_exist_with_null(fs: &TestFilesystem, path: &str) -> (bool, [Result<()>; 2]) {
    let slot = fs.tables().filesystem.paths_exist.expect("filled");
    let path = CString::new(path).expect("no NUL");
    let mut paths = [path.as_ptr().cast_mut(), ptr::null_mut()];
    let statuses = [Status::new(), Status::new()];
    let mut raw = [statuses[0].0, statuses[1].0];
    // SAFETY: an initialised filesystem, a C string and a null path, which is what is tested, and two
    // statuses.
    let all = unsafe { slot(fs.as_ptr(), paths.as_mut_ptr(), 2, raw.as_mut_ptr()) };
    (all, [statuses[0].result(), statuses[1].result()])
}

/// The error in an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadOption {
    UnknownType,
    NullName,
    NameNotUtf8,
    NullValue,
    NullValues,
    NegativeNumber,
    NullBuffer,
    NegativeBuffer,
    NegativeCount,
    NullOptions,
}

/// Sets a bad option through both slots and returns their statuses.
pub(crate) fn set_bad_option(fs: &TestFilesystem, bad: BadOption) -> [Option<Result<()>>; 2] {
    let is = |what: BadOption| what == bad;
    let mut text = *b"abc";
    let mut union = TF_Filesystem_Option_Value_Union {
        buffer_val: TF_Filesystem_Option_Value_Buffer {
            buf: if is(BadOption::NullBuffer) { ptr::null_mut() } else { text.as_mut_ptr().cast() },
            buf_length: if is(BadOption::NegativeBuffer) { -1 } else { 3 },
        },
    };
    let type_tag = if is(BadOption::UnknownType) { 3 } else { TF_Filesystem_Option_Type_Buffer };
    let mut value = TF_Filesystem_Option_Value {
        type_tag: type_tag as c_int,
        num_values: if is(BadOption::NegativeNumber) { -1 } else { 1 },
        values: if is(BadOption::NullValues) { ptr::null_mut() } else { &raw mut union },
    };
    let name = match bad {
        BadOption::NullName => ptr::null(),
        BadOption::NameNotUtf8 => c"\xff".as_ptr(),
        _ => c"key".as_ptr(),
    };
    let option = TF_Filesystem_Option {
        name: name.cast_mut(),
        description: ptr::null_mut(),
        per_file: 0,
        value: if is(BadOption::NullValue) { ptr::null_mut() } else { &raw mut value },
    };
    let count = if is(BadOption::NegativeCount) { -1 } else { 1 };
    let options = if is(BadOption::NullOptions) { ptr::null() } else { &raw const option };
    let ops = fs.tables().filesystem;
    let (many, one) = (Status::new(), Status::new());
    // SAFETY: an initialised filesystem, options that are wrong in one way, which is what is tested,
    // and a status.
    unsafe {
        ops.set_filesystem_configuration.expect("filled")(fs.as_ptr(), options, count, many.0);
        if is(BadOption::NegativeCount) {
            return [Some(many.result()), None];
        }
        ops.set_filesystem_configuration_option.expect("filled")(fs.as_ptr(), options, one.0);
    }
    [Some(many.result()), Some(one.result())]
}

/// Ends a token that the plugin did not create: an address of the host's.
pub(crate) fn end_made_up_token(fs: &TestFilesystem) -> (c_int, Result<()>) {
    let mut made_up = TF_TransactionToken { token: ptr::null_mut(), owner: fs.as_ptr() };
    let status = Status::new();
    // SAFETY: an initialised filesystem, a token that it did not give, which is what is tested, and a
    // status.
    let returned = unsafe {
        fs.tables().filesystem.end_transaction.expect("filled")(fs.as_ptr(), &mut made_up, status.0)
    };
    (returned, status.result())
}

/// Returns the owner in the token of a live transaction, and whether the token has a state.
pub(crate) fn token_content(transaction: &TestTransaction) -> (*mut TF_Filesystem, bool) {
    // SAFETY: the transaction was not ended, so its token is valid.
    let token = unsafe { *transaction.as_ptr() };
    (token.owner, !token.token.is_null())
}

/// Registers as TensorFlow does: through the body of the exported `TF_InitPlugin`.
pub(crate) fn register_exported<P: Plugin>(host: &Host) -> Result<()> {
    // SAFETY: the plugin is made with this SDK, and `info` is zeroed.
    unsafe { host.register_raw(|info| init_plugin(info, P::registrations())) }
}

/// Calls the body of `TF_InitPlugin` with null.
pub(crate) fn init_plugin_without_info<P: Plugin>() {
    // SAFETY: null is allowed.
    unsafe { init_plugin(ptr::null_mut(), P::registrations()) }
}

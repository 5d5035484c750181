//! Tests every function of every table, called as TensorFlow calls it.

use std::mem::transmute;
use std::panic::{catch_unwind, panic_any};

use tf_fs_sys::*;

use super::samples::{CALLED, ERRNO, FAILING, REPORTED, RETURNED, install, leaked};
use super::system::errno;
use super::{device, entry_points, filesystem};

/// Replaces addresses of arguments by their index, and that of the fakes' result by a name.
fn named(text: &str, arguments: &[u64], result: u64) -> String {
    let mut text = text.to_owned();
    for (at, argument) in arguments.iter().enumerate() {
        text = text.replace(&format!("{argument:#x}"), &format!("#{}", at + 1));
    }
    if result > 4096 { text.replace(&format!("{result:#x}"), "#result") } else { text }
}

/// Wraps a table of fakes and calls each of its functions. The fakes get what is passed, the caller
/// gets what they return, and there is one report for each, whose text is returned.
macro_rules! each {
    ($($module:tt)::+, $subject:literal, $failing:literal) => {{
        install();
        FAILING.set($failing);
        let original = $($module)::+::fakes::table();
        let mut table = original;
        // SAFETY: a table and its size.
        unsafe { $($module)::+::wrap(&raw mut table, size_of_val(&original), $subject) };
        CALLED.take();
        REPORTED.take();
        let calls = $($module)::+::fakes::call_each(&table);
        assert_eq!(errno(), ERRNO);
        let (called, reported) = (CALLED.take(), REPORTED.take());
        assert_eq!(calls.len(), $($module)::+::MEMBERS.len());
        assert_eq!((called.len(), reported.len()), (calls.len(), calls.len()));
        let mut lines = Vec::new();
        for (((name, arguments, result), called), [subject, operation, texts, answer]) in
            calls.into_iter().zip(called).zip(reported)
        {
            assert_eq!(subject, $subject);
            let original = operation.rsplit('.').next();
            assert_eq!(original, Some(name), "{operation}");
            assert_eq!(arguments, called, "{name}");
            let text = format!("{operation}: {texts} -> {answer}");
            lines.push(named(&text, &arguments, result));
            if result != 0 && result < 4096 {
                assert!([RETURNED as u64, 1].contains(&result), "{name} returns {result}");
            }
        }
        lines
    }};
}

#[track_caller]
fn assert_lines(lines: &[String], expected: &str) {
    let expected: Vec<_> =
        expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let lines: Vec<_> = lines.iter().map(|line| line.trim_end()).collect();
    assert_eq!(lines, expected, "\n{}", lines.join("\n"));
}

#[test]
fn every_entry_point_is_traced() {
    let fine = "
        TF_InitPlugin:  -> 0 schemes
        SE_InitPlugin:  -> OK
        TF_InitKernel:  ->
        TF_InitGraph:  -> null
        TF_InitProfiler:  -> OK";
    assert_lines(&each!(entry_points::points, "", false), fine);
    // The same function has the same wrapper.
    let wrapper = entry_points::wrapper(2, 64);
    assert!(wrapper.addr() != 64 && entry_points::wrapper(2, 64) == wrapper);
}

#[test]
fn every_operation_of_a_filesystem_is_traced() {
    let fine = "
        init:  -> OK
        filesystem.cleanup:  ->
        new_random_access_file: path2 -> OK
        new_writable_file: path2 -> OK
        new_appendable_file: path2 -> OK
        new_read_only_memory_region_from_file: path2 -> OK
        create_dir: path2 -> OK
        recursively_create_dir: path2 -> OK
        delete_file: path2 -> OK
        delete_dir: path2 -> OK
        delete_recursively: path2 -> 0 files and 0 directories left
        rename_file: path2 to path3 -> OK
        copy_file: path2 to path3 -> OK
        path_exists: path2 -> OK
        paths_exist: 3 paths -> true
        stat: path2 -> file of 0 bytes
        is_directory: path2 -> true
        get_file_size: path2 -> 5
        translate_name: path2 -> path5
        get_children: path2 -> 5 entries
        get_matching_paths: path2 -> 5 entries
        flush_caches:  ->
        start_transaction:  -> 5
        end_transaction: token #2 -> 5
        add_to_transaction: path2 token #3 -> 5
        get_transaction_for_path: path2 -> 5
        get_or_start_transaction_for_path: path2 -> 5
        decode_transaction_token: token #2 -> path5
        get_filesystem_configuration:  -> 0 options
        set_filesystem_configuration: null (value hidden) null (value hidden) null (value hidden) -> OK
        get_filesystem_configuration_option: path2 -> OK
        set_filesystem_configuration_option: null (value hidden) -> OK
        get_filesystem_configuration_keys:  -> 0 keys";
    assert_lines(&each!(filesystem::operations, "a://", false), fine);

    let mut failed = each!(filesystem::operations, "a://", true);
    failed.retain(|line| !line.contains("NOT_FOUND: gone"));
    // Functions without a status, and those whose status may contain the secret value.
    let without = "
        filesystem.cleanup:  ->
        paths_exist: 3 paths -> true
        translate_name: path2 -> path5
        flush_caches:  ->
        decode_transaction_token: token #2 -> path5
        set_filesystem_configuration: null (value hidden) null (value hidden) null (value hidden) -> NOT_FOUND
        set_filesystem_configuration_option: null (value hidden) -> NOT_FOUND";
    assert_lines(&failed, without);
}

#[test]
fn every_operation_of_a_file_is_traced() {
    let reader = "
        random_access_file.cleanup: file #1 ->
        read: file #1 3 at 2 -> 5 bytes";
    assert_lines(&each!(filesystem::readers, "a://", false), reader);
    let failed = "
        random_access_file.cleanup: file #1 ->
        read: file #1 3 at 2 -> NOT_FOUND: gone; 5 bytes";
    assert_lines(&each!(filesystem::readers, "a://", true), failed);
    let writer = "
        writable_file.cleanup: file #1 ->
        append: file #1 3 bytes -> OK
        tell: file #1 -> 5
        flush: file #1 -> OK
        sync: file #1 -> OK
        close: file #1 -> OK";
    assert_lines(&each!(filesystem::writers, "a://", false), writer);
    let region = "
        read_only_memory_region.cleanup: file #1 ->
        data: file #1 -> #result
        length: file #1 -> 5";
    assert_lines(&each!(filesystem::regions, "a://", false), region);
}

#[test]
fn every_function_of_a_platform_is_traced() {
    let platform = "
        get_device_count:  -> 0
        create_device: :0 -> OK
        destroy_device: :0 ->
        create_device_fns:  -> OK
        destroy_device_fns:  ->
        create_stream_executor:  -> OK
        destroy_stream_executor:  ->
        create_timer_fns:  -> OK
        destroy_timer_fns:  ->";
    assert_lines(&each!(device::platform, "X", false), platform);
    let failed = each!(device::platform, "X", true);
    assert_eq!(failed.iter().filter(|line| line.contains("NOT_FOUND: gone")).count(), 5);
    let registration = "
        destroy_platform:  ->
        destroy_platform_fns:  ->";
    assert_lines(&each!(device::registration, "X", false), registration);
    let device = "
        get_numa_node: :0 -> 5
        get_memory_bandwidth: :0 -> 5
        get_gflops: :0 -> 5";
    assert_lines(&each!(device::device, "X", false), device);
    assert_lines(&each!(device::timer, "X", false), "nanoseconds: timer #1 -> 5");

    // There are only so many tables of a kind; further ones are not wrapped, and earlier ones are found again.
    let original = device::timer::fakes::table();
    let address = |table: &SP_TimerFns| table.nanoseconds.map(|function| function as usize);
    let wrapped = |subject: &str| {
        let mut table = original;
        // SAFETY: a table and its size.
        unsafe { device::timer::wrap(&raw mut table, size_of_val(&original), subject) };
        address(&table) != address(&original)
    };
    let subjects = ["X", "Y", "Z", "A", "B", "C", "X", "A"];
    let expected = [true, true, true, true, false, false, true, true];
    assert_eq!(subjects.map(wrapped), expected);
}

#[test]
fn every_function_of_a_stream_executor_is_traced() {
    let executor = "
        allocate: :0 2 bytes -> no memory
        deallocate: :0 0x0 ->
        host_memory_allocate: :0 2 bytes -> #result
        host_memory_deallocate: :0 #2 ->
        unified_memory_allocate: :0 2 bytes -> #result
        unified_memory_deallocate: :0 #2 ->
        get_allocator_stats: :0 -> true 0 in use
        device_memory_usage: :0 -> true 0 of 0 free
        create_stream: :0 -> stream 0xbeef
        destroy_stream: :0 stream #2 ->
        create_stream_dependency: :0 stream #2 waits for #3 -> OK
        get_stream_status: :0 stream #2 -> OK
        create_event: :0 -> event 0xbeef
        destroy_event: :0 event #2 ->
        get_event_status: :0 event #2 -> 5
        record_event: :0 stream #2 event #3 -> OK
        wait_for_event: :0 stream #2 event #3 -> OK
        create_timer: :0 -> timer 0xbeef
        destroy_timer: :0 timer #2 ->
        start_timer: :0 stream #2 timer #3 -> OK
        stop_timer: :0 stream #2 timer #3 -> OK
        memcpy_dtoh: :0 stream #2 5 bytes -> OK
        memcpy_htod: :0 stream #2 5 bytes -> OK
        memcpy_dtod: :0 stream #2 5 bytes -> OK
        sync_memcpy_dtoh: :0 4 bytes -> OK
        sync_memcpy_htod: :0 4 bytes -> OK
        sync_memcpy_dtod: :0 4 bytes -> OK
        block_host_for_event: :0 event #2 -> OK
        block_host_until_done: :0 stream #2 -> OK
        synchronize_all_activity: :0 -> OK
        mem_zero: :0 stream #2 4 bytes -> OK
        memset: :0 stream #2 5 bytes of 0x04 -> OK
        memset32: :0 stream #2 5 bytes of 0x00000004 -> OK
        host_callback: :0 stream #2 -> true";
    assert_lines(&each!(device::executor, "X", false), executor);
    let mut failed = each!(device::executor, "X", true);
    failed.retain(|line| !line.contains("NOT_FOUND: gone"));
    // Functions without a status.
    assert_eq!(failed.len(), 13, "{failed:#?}");
    let added = "create_stream_with_options: :0 -> stream 0xbeef";
    assert_lines(&each!(device::stream_options, "X", false), added);
    let failed = "create_stream_with_options: :0 -> NOT_FOUND: gone";
    assert_lines(&each!(device::stream_options, "X", true), failed);
}

#[test]
fn every_function_of_a_graph_pass_and_of_a_profiler_is_traced() {
    let optimizer = "
        create_func:  -> #result
        optimize_func: graph of 0 bytes -> graph of 0 bytes
        destroy_func:  ->";
    assert_lines(&each!(device::optimizer, "X", false), optimizer);
    let profiling = "
        destroy_profiler:  ->
        destroy_profiler_fns:  ->";
    assert_lines(&each!(device::profiling, "X", false), profiling);
    let profiler = "
        start:  -> OK
        stop:  -> OK
        collect_data_xspace: all -> 0 bytes";
    assert_lines(&each!(device::profiler, "X", false), profiler);
}

#[test]
fn a_table_is_wrapped_as_far_as_it_goes() {
    const COUNT: usize = size_of::<TF_FilesystemOps>() / size_of::<usize>();
    // SAFETY: a function that may be absent is as large as an address, and 0 if it is.
    let addresses = |table| unsafe { transmute::<TF_FilesystemOps, [usize; COUNT]>(table) };
    let original = TF_FilesystemOps { stat: None, ..filesystem::operations::fakes::table() };
    let wrapped = |mut table: TF_FilesystemOps, size, subject: &str| {
        // SAFETY: a table that is as large as this, or larger.
        unsafe { filesystem::operations::wrap(&raw mut table, size, subject) };
        table
    };
    // The table of an older plugin, which ends behind `stat`; and one that ends inside a member.
    let end = std::mem::offset_of!(TF_FilesystemOps, is_directory);
    for size in [end, end + 7] {
        let table = wrapped(original, size, "older://");
        let pairs = addresses(table).into_iter().zip(addresses(original));
        for (at, (now, before)) in pairs.enumerate() {
            let is_wrapped = at < end / 8 && before != 0;
            assert_eq!(now != before, is_wrapped, "{at}");
        }
        assert!(table.stat.is_none(), "what is absent stays absent");
        // Wrapped functions are not wrapped again: nothing calls itself.
        let again = wrapped(table, size_of_val(&original), "older://");
        assert_eq!(addresses(again), addresses(table));
    }
    // The same functions have the same wrappers under one name, and different ones under another name.
    let whole = |subject| addresses(wrapped(original, size_of_val(&original), subject));
    assert_eq!(whole("one://"), whole("one://"));
    assert!(whole("one://") != whole("two://"));
    // SAFETY: null is not a table.
    unsafe { filesystem::operations::wrap(std::ptr::null_mut(), 264, "none://") };
}

#[test]
fn an_exception_passes_and_is_reported() {
    unsafe extern "C-unwind" fn throws(_: *const TF_Filesystem) {
        panic_any("thrown");
    }
    type Throws = unsafe extern "C-unwind" fn(*const TF_Filesystem);
    type Function = unsafe extern "C" fn(*const TF_Filesystem);
    install();
    // SAFETY: called as what it is below.
    let flush_caches = Some(unsafe { transmute::<Throws, Function>(throws) });
    // SAFETY: a table and its size.
    let mut table = unsafe { std::mem::zeroed::<TF_FilesystemOps>() };
    table.flush_caches = flush_caches;
    // SAFETY: a table and its size.
    unsafe { filesystem::operations::wrap(&raw mut table, size_of_val(&table), "thrown://") };
    let address = |function: Option<Function>| function.map(|function| function as usize);
    assert!(address(table.flush_caches) != address(flush_caches));
    // SAFETY: a wrapper lets exceptions through.
    let call = unsafe { transmute::<Function, Throws>(table.flush_caches.expect("wrapped")) };
    REPORTED.take();
    // SAFETY: the function looks at no argument.
    let thrown = catch_unwind(|| unsafe { call(std::ptr::null()) }).expect_err("it is thrown");
    assert_eq!(thrown.downcast_ref(), Some(&"thrown"));
    assert_eq!(
        REPORTED.take(),
        [["thrown://", "flush_caches", "", "an exception"].map(str::to_owned)]
    );
}

#[test]
fn a_file_is_called_by_the_path_that_it_was_opened_with() {
    install();
    FAILING.set(false);
    let mut operations = filesystem::operations::fakes::table();
    let mut readers = filesystem::readers::fakes::table();
    // SAFETY: tables and their sizes; files and C strings of the tests' own.
    unsafe {
        filesystem::operations::wrap(&raw mut operations, size_of_val(&operations), "path://");
        filesystem::readers::wrap(&raw mut readers, size_of_val(&readers), "path://");
        let (file, status) = (leaked(0), leaked(0));
        let (open, read, cleanup) =
            (operations.new_random_access_file, readers.read, readers.cleanup);
        let path = c"path://user:secret@host/a";
        open.expect("wrapped")(std::ptr::null(), path.as_ptr(), file, status);
        REPORTED.take();
        read.expect("wrapped")(file, 7, 8, std::ptr::null_mut(), status);
        cleanup.expect("wrapped")(file);
        read.expect("wrapped")(file, 7, 8, std::ptr::null_mut(), status);
        let texts: Vec<_> = REPORTED.take().into_iter().map(|[_, _, texts, _]| texts).collect();
        let known = "path://***@host/a";
        assert_eq!(
            texts,
            [format!("{known} 8 at 7"), known.to_owned(), format!("file {file:p} 8 at 7")]
        );
    }
}

/// Checks that the offsets of an operation are those of the layout that the size shows.
#[test]
fn a_table_of_tensorflow_2_22_is_traced_to_its_end() {
    install();
    FAILING.set(false);
    let original = filesystem::operations::fakes::table();
    let mut table = original.without_transactions();
    let size = size_of_val(&table);
    // SAFETY: a table and its size.
    unsafe {
        filesystem::wrap_operations((&raw mut table).cast(), size, "newer://");
    }
    let wrapped = TF_FilesystemOps::from(table);
    REPORTED.take();
    CALLED.take();
    let set = wrapped.set_filesystem_configuration.expect("it is there");
    // SAFETY: no options and a status.
    unsafe { set(std::ptr::null(), std::ptr::null(), 0, leaked(0)) };
    let reported = REPORTED.take();
    let names: Vec<_> = reported.iter().map(|[subject, name, ..]| (&**subject, &**name)).collect();
    assert_eq!(names, [("newer://", "set_filesystem_configuration")]);
    assert_eq!(CALLED.take().len(), 1);
    const COUNT: usize = size_of::<TF_FilesystemOpsWithoutTransactions>() / size_of::<usize>();
    // SAFETY: a function that may be absent is as large as an address, and 0 if it is.
    let addresses =
        |table| unsafe { transmute::<TF_FilesystemOpsWithoutTransactions, [usize; COUNT]>(table) };
    let pairs = addresses(table).into_iter().zip(addresses(original.without_transactions()));
    assert!(pairs.into_iter().all(|(now, before)| now != before && now != 0));
    // The offset in the header of 2.22.
    let set = original.set_filesystem_configuration.expect("it is there") as usize;
    assert_eq!(addresses(original.without_transactions())[184 / size_of::<usize>()], set);
}

#[test]
fn values_of_options_are_hidden() {
    install();
    FAILING.set(false);
    let mut table = filesystem::operations::fakes::table();
    let mut values = [TF_Filesystem_Option_Value_Union { int_val: 424_242 }];
    let mut value =
        TF_Filesystem_Option_Value { type_tag: 0, num_values: 1, values: values.as_mut_ptr() };
    let option = |name: &'static std::ffi::CStr, value| TF_Filesystem_Option {
        name: name.as_ptr().cast_mut(),
        description: std::ptr::null_mut(),
        per_file: 0,
        value,
    };
    let options = [option(c"key", &raw mut value), option(c"token", &raw mut value)];
    REPORTED.take();
    // SAFETY: a table and its size; options of the tests' own.
    unsafe {
        filesystem::operations::wrap(&raw mut table, size_of_val(&table), "options://");
        let (all, one) =
            (table.set_filesystem_configuration, table.set_filesystem_configuration_option);
        all.expect("wrapped")(std::ptr::null(), options.as_ptr(), 2, leaked(0));
        one.expect("wrapped")(std::ptr::null(), options.as_ptr(), leaked(0));
    }
    let texts: Vec<_> = REPORTED.take().into_iter().map(|[_, _, texts, _]| texts).collect();
    assert_eq!(texts, ["key (value hidden) token (value hidden)", "key (value hidden)"]);
}

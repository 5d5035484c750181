//! Registration as TensorFlow does it, and its defaults for null slots.

use crate::abi::broken;
use crate::abi::hand_made::{self, Offer, Plan, counts, failing_init, register, take_freed};
use crate::support::fails;
use tf_fs_plugin::Code;
use tf_fs_sys::{TF_FilesystemOps, TF_FilesystemPluginOps, TF_ReadOnlyMemoryRegionOps};
use tf_plugin_testing::filesystem::Host;

fn filesystem(offer: &mut Offer) -> &mut TF_FilesystemOps {
    offer.filesystem.as_mut().expect("a table")
}

/// One of TensorFlow's checks: a mistake, and the code and the text of its error.
type Row = (fn(&mut Offer), Code, &'static str);

const FP: Code = Code::FailedPrecondition;

/// A table with a version that is not TensorFlow's.
macro_rules! abi {
    ($field:ident = $version:literal, $name:literal) => {
        (
            |offer| offer.metadata.push(|ops| ops.$field = $version),
            FP,
            concat!(
                "Plugin ABI (",
                $version,
                ") for ",
                $name,
                " operations doesn't match expected core ABI (0). Plugin cannot be loaded."
            ),
        )
    };
}

/// A part that is required.
macro_rules! lacks {
    ($break_it:expr, $what:literal) => {
        ($break_it, FP, concat!("Trying to register filesystem without ", $what))
    };
}

/// A slot that opens a kind of file that has no table.
macro_rules! opens {
    ($slot:ident = $open:ident, $table:ident, $what:literal) => {
        (
            |offer| {
                filesystem(offer).$slot = Some(broken::$open);
                offer.$table = None;
            },
            FP,
            concat!(
                "Filesystem allows creation of ",
                $what,
                " but no operations on them have been supplied."
            ),
        )
    };
}

fn region(offer: &mut Offer) -> &mut TF_ReadOnlyMemoryRegionOps {
    offer.memory_region.as_mut().expect("a table")
}

const ROWS: &[Row] = &[
    (
        |offer| offer.scheme = None,
        Code::InvalidArgument,
        "Attempted to register filesystem with `nullptr` URI scheme",
    ),
    abi!(filesystem_ops_abi = 7, "filesystem"),
    abi!(random_access_file_ops_abi = 7, "random access file"),
    abi!(writable_file_ops_abi = -1, "writable file"),
    abi!(read_only_memory_region_ops_abi = 7, "read only memory region"),
    lacks!(|offer| offer.filesystem = None, "operations"),
    lacks!(|offer| filesystem(offer).init = None, "`init` operation"),
    lacks!(|offer| filesystem(offer).cleanup = None, "`cleanup` operation"),
    lacks!(
        |offer| offer.random_access_file = Some(Default::default()),
        "`cleanup` operation on random access files"
    ),
    lacks!(
        |offer| offer.writable_file = Some(Default::default()),
        "`cleanup` operation on writable files"
    ),
    lacks!(
        |offer| *region(offer) = Default::default(),
        "`cleanup` operation on read only memory regions"
    ),
    lacks!(|offer| region(offer).data = None, "`data` operation on read only memory regions"),
    lacks!(|offer| region(offer).length = None, "`length` operation on read only memory regions"),
    opens!(new_random_access_file = open_reader, random_access_file, "random access files"),
    opens!(new_writable_file = open_writer, writable_file, "writable files"),
    opens!(new_appendable_file = open_writer, writable_file, "writable files"),
    opens!(
        new_read_only_memory_region_from_file = open_region,
        memory_region,
        "readonly memory regions"
    ),
];

#[test]
fn each_check_of_a_scheme_has_tensorflows_code_and_text() {
    for (index, (break_it, code, text)) in ROWS.iter().enumerate() {
        let host = Host::new();
        let mut offer = Offer::good(c"hand");
        break_it(&mut offer);
        let (inits, cleanups) = counts();
        let error = register(&host, &Plan::of([offer])).expect_err(text);
        assert_eq!((error.code(), error.message()), (*code, *text), "row {index}");
        assert!(host.schemes().is_empty());
        assert_eq!(counts(), (inits, cleanups), "nothing runs in a refused scheme");
        assert_eq!(hand_made::live_blocks(), [""; 0], "refused schemes are freed too");
    }
}

/// Makes all mistakes of `rows` at once and then fixes them one by one: each time the first
/// remaining one must be reported.
#[track_caller]
fn check_order(rows: &[usize]) {
    for first in 0..rows.len() {
        let mut offer = Offer::good(c"hand");
        for &row in rows[first..].iter().rev() {
            ROWS[row].0(&mut offer);
        }
        let error = register(&Host::new(), &Plan::of([offer])).expect_err("refused");
        assert_eq!(error.message(), ROWS[rows[first]].2);
    }
}

#[test]
fn the_checks_come_in_tensorflows_order() {
    check_order(&[0, 1, 2, 3, 4, 6, 7, 8, 9, 10]);
    // A table that is not there at all cannot lack a function too.
    check_order(&[0, 1, 4, 5]);
    check_order(&[5, 8, 9, 10]);
    check_order(&[10, 13]);
    check_order(&[9, 13, 16]);
    check_order(&[6, 13, 14, 16]);
    check_order(&[4, 11, 12, 13, 15]);
    // Without a table its version is not checked.
    let mut offer = Offer::without_files(c"hand");
    offer.metadata.push(|ops| {
        ops.random_access_file_ops_abi = 7;
        ops.writable_file_ops_abi = 7;
        ops.read_only_memory_region_ops_abi = 7;
    });
    register(&Host::new(), &Plan::of([offer])).expect("only the filesystem counts");
}

#[test]
fn without_a_hook_nothing_is_registered_or_freed() {
    for (allocate, free, hook) in [
        (false, true, "plugin_memory_allocate"),
        (true, false, "plugin_memory_free"),
        (false, false, "plugin_memory_allocate"),
    ] {
        let host = Host::new();
        let plan = Plan { allocate, free, no_array: true, ..Plan::of([]) };
        let error = register(&host, &plan).expect_err(hook);
        assert_eq!(error.code(), FP);
        assert_eq!(
            error.message(),
            format!("Cannot load filesystem plugin which does not provide `{hook}`")
        );
        assert_eq!(take_freed(), [""; 0]);
    }
}

#[test]
fn blocks_are_freed_in_tensorflows_order_null_included() {
    let host = Host::new();
    take_freed();
    let plan = Plan::of([Offer::good(c"one"), Offer::without_files(c"two")]);
    register(&host, &plan).expect("a good plugin");
    let freed = "scheme, filesystem, random access file, writable file, memory region, scheme, filesystem, \
        null, null, null, ops";
    assert_eq!(take_freed().join(", "), freed);
    assert_eq!(host.schemes(), ["one", "two"]);
}

#[test]
fn no_scheme_is_fine() {
    let host = Host::new();
    register(&host, &Plan::of([])).expect("zero schemes");
    assert!(host.schemes().is_empty());
}

#[test]
fn schemes_without_an_array_are_found_out() {
    let host = Host::new();
    let plan = Plan { no_array: true, ..Plan::of([Offer::good(c"hand")]) };
    register(&host, &plan).expect("nothing to refuse");
    assert!(host.take_violations()[0].what.contains("no array"));
}

#[test]
fn a_taken_scheme_is_cleaned_up_and_the_first_stays() {
    let host = Host::new();
    let plan = Plan::of([Offer::good(c"hand")]);
    let (inits, cleanups) = counts();
    register(&host, &plan).expect("free");
    let error = register(&host, &plan).expect_err("taken");
    assert_eq!(error.code(), Code::AlreadyExists);
    assert_eq!(error.message(), "File system for hand already registered");
    assert_eq!(counts(), (inits + 2, cleanups + 1));
    assert_eq!(host.schemes(), ["hand"]);
    drop(host);
    assert_eq!(counts(), (inits + 2, cleanups + 2));
}

#[test]
fn all_schemes_are_tried_and_the_first_error_is_told() {
    let host = Host::new();
    let refused = Offer { filesystem: None, ..Offer::good(c"refused") };
    let mut failing = Offer::good(c"failing");
    filesystem(&mut failing).init = Some(failing_init);
    let plan = Plan::of([Offer::good(c"first"), failing, refused, Offer::good(c"last")]);
    let (inits, cleanups) = counts();
    fails(register(&host, &plan), Code::NotFound, "no credentials");
    assert_eq!(host.schemes(), ["first", "last"]);
    assert_eq!(counts(), (inits + 3, cleanups), "no cleanup after a failed init");
}

#[test]
fn a_newer_and_an_older_plugin_work() {
    let newer = Offer {
        metadata: vec![|ops| {
            ops.filesystem_ops_size += 64;
            ops.filesystem_ops_api = 3;
            ops.writable_file_ops_size = usize::MAX;
        }],
        tail: 64,
        ..Offer::good(c"newer")
    };
    let mut older = Offer {
        // Up to `delete_file`; the rest of the table is not this plugin's.
        metadata: vec![|ops| ops.filesystem_ops_size = 9 * size_of::<usize>()],
        ..Offer::good(c"older")
    };
    filesystem(&mut older).delete_file = Some(broken::ok_path);
    filesystem(&mut older).delete_dir = Some(broken::ok_path);
    let host = Host::new();
    register(&host, &Plan::of([newer, older])).expect("both work");
    let older = host.filesystem("older").expect("registered");
    assert!(older.tables().filesystem.delete_file.is_some());
    assert!(older.tables().filesystem.delete_dir.is_none(), "cut off");
    older.delete_file("older://h/x").expect("it is there");
    fails(
        older.delete_dir("older://h/x"),
        Code::Unimplemented,
        "Filesystem for older://h/x does not support DeleteDir()",
    );
    let newer = host.filesystem("newer").expect("registered");
    assert!(newer.tables().filesystem.init.is_some());
}

#[test]
fn a_size_that_cuts_a_required_function_off_is_refused_where_tensorflow_crashes() {
    type Cut = fn(&mut TF_FilesystemPluginOps);
    let cuts: &[(Cut, &str)] = &[
        (|ops| ops.filesystem_ops_size = 0, "`init`"),
        (|ops| ops.filesystem_ops_size = 8, "`cleanup`"),
        (|ops| ops.random_access_file_ops_size = 0, "`cleanup` of random access files"),
        (|ops| ops.writable_file_ops_size = 0, "`cleanup` of writable files"),
        (|ops| ops.read_only_memory_region_ops_size = 8, "`data` of memory regions"),
    ];
    for (cut, what) in cuts {
        let host = Host::new();
        let offer = Offer { metadata: vec![*cut], ..Offer::good(c"cut") };
        fails(register(&host, &Plan::of([offer])), Code::Internal, what);
        let violations = host.take_violations();
        assert_eq!(violations.len(), 1, "{violations:?}");
        assert!(violations[0].what.contains(what), "{violations:?}");
    }
    let host = Host::new();
    let offer =
        Offer { metadata: vec![|ops| ops.filesystem_ops_size = 9 * 8 + 3], ..Offer::good(c"cut") };
    register(&host, &Plan::of([offer])).expect("the whole pointers are fine");
    let violations = host.take_violations();
    assert!(violations[0].what.contains("half an address"), "{violations:?}");
}

#[test]
fn a_name_finds_its_filesystem_as_in_tensorflow() {
    let host = Host::new();
    let plan = Plan::of([Offer::good(c"a.2"), Offer::good(c"my-fs"), Offer::good(c"A")]);
    register(&host, &plan).expect("registration accepts anything");
    assert_eq!(host.filesystem_for("a.2://h/x").expect("found").scheme(), b"a.2");
    fails(host.path_exists("my-fs://h/x"), Code::Unimplemented, "local filesystem");
    assert!(host.filesystem("my-fs").is_ok());
    fails(
        host.path_exists("a://h/x"),
        Code::Unimplemented,
        "File system scheme 'a' not implemented (file: 'a://h/x')",
    );
    fails(
        host.rename_file("A://h/x", "a.2://h/x"),
        Code::Unimplemented,
        "Renaming A://h/x to a.2://h/x not implemented",
    );
}

#[test]
fn null_slots_behave_as_in_tensorflow() {
    let host = Host::new();
    let mut offer = Offer::good(c"x");
    filesystem(&mut offer).new_writable_file = Some(broken::open_writer);
    filesystem(&mut offer).new_random_access_file = Some(broken::open_reader);
    register(&host, &Plan::of([offer])).expect("good");
    let unimplemented = |result: tf_fs_plugin::Result<()>, name: &str| {
        fails(
            result,
            Code::Unimplemented,
            &format!("Filesystem for x://h/p does not support {name}()"),
        );
    };
    const P: &str = "x://h/p";
    unimplemented(host.new_appendable_file(P).map(drop), "NewAppendableFile");
    unimplemented(
        host.new_read_only_memory_region_from_file(P).map(drop),
        "NewReadOnlyMemoryRegionFromFile",
    );
    unimplemented(host.create_dir(P), "CreateDir");
    unimplemented(host.delete_file(P), "DeleteFile");
    unimplemented(host.delete_dir(P), "DeleteDir");
    unimplemented(host.path_exists(P), "FileExists");
    unimplemented(host.stat(P).map(drop), "Stat");
    unimplemented(host.get_children(P).map(drop), "GetChildren");
    unimplemented(host.is_directory(P), "FileExists");
    unimplemented(host.get_file_size(P).map(drop), "Stat");
    unimplemented(host.recursively_create_dir(P), "FileExists");
    assert_eq!(["x://", "x://h"].map(|name| host.recursively_create_dir(name).is_ok()), [true; 2]);
    unimplemented(host.delete_recursively(P).map_err(|left| left.error), "FileExists");
    assert_eq!(host.get_matching_paths(P).expect("swallowed"), [b""; 0]);
    assert_eq!(host.translate_name("x://h/a//../p/").expect("default"), b"/p");
    host.flush_caches();
    let fs = host.filesystem("x").expect("registered");
    fails(
        fs.set_filesystem_configuration(&[]),
        Code::Unimplemented,
        "Filesystem does not support SetConfiguration()",
    );
    fails(fs.start_transaction(), Code::Unimplemented, "start_transaction");
    let mut writer = host.new_writable_file(P).expect("opened");
    fails(writer.append(b"x"), Code::Unimplemented, "Append() not implemented for /p");
    fails(writer.close(), Code::Unimplemented, "Close() not implemented for /p");
    fails(writer.tell(), Code::Unimplemented, "Tell() not implemented for /p");
    writer.flush().expect("flush has a default");
    writer.sync().expect("sync is flush");
    let reader = host.new_random_access_file(P).expect("opened");
    fails(reader.read(0, 1), Code::Unimplemented, "Read() not implemented for /p");
}

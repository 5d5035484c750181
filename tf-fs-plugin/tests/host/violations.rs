//! Each way to break a rule of the C boundary is found out, by name.

use crate::abi::broken;
use crate::abi::hand_made::{self, Offer, Plan, register};
use crate::support::{code, fails};
use tf_fs_plugin::Code;
use tf_fs_plugin::prelude::*;
use tf_fs_sys::{TF_FilesystemOps, TF_RandomAccessFileOps, TF_WritableFileOps};
use tf_plugin_testing::filesystem::Host;

const P: &str = "x://h/p";

/// Runs `call` on a plugin that `break_it` has broken, and checks that exactly one violation comes of
/// it, with this operation and part of its text.
#[track_caller]
fn found(break_it: impl FnOnce(&mut Offer), call: impl FnOnce(&Host), operation: &str, part: &str) {
    let host = Host::new();
    let mut offer = Offer::good(c"x");
    break_it(&mut offer);
    let registered = register(&host, &Plan::of([offer]));
    assert!(registered.is_ok() || operation == "init", "{registered:?}");
    call(&host);
    let violations = host.take_violations();
    assert_eq!(violations.len(), 1, "{part}: {violations:#?}");
    assert_eq!(violations[0].operation, operation);
    assert!(violations[0].to_string().contains(part), "{part}: {violations:?}");
    drop(host);
    assert_eq!(hand_made::live_blocks(), [""; 0]);
}

fn filesystem(change: impl FnOnce(&mut TF_FilesystemOps)) -> impl FnOnce(&mut Offer) {
    |offer| change(offer.filesystem.as_mut().expect("a table"))
}

fn reader(read: tf_fs_sys::TF_RandomAccessFileOps) -> impl FnOnce(&mut Offer) {
    move |offer| {
        let ops = offer.filesystem.as_mut().expect("a table");
        ops.new_random_access_file = Some(broken::open_reader);
        offer.random_access_file =
            Some(TF_RandomAccessFileOps { cleanup: Some(hand_made::cleanup_reader), ..read });
    }
}

macro_rules! read {
    ($slot:ident) => {
        reader(TF_RandomAccessFileOps { read: Some(broken::$slot), ..Default::default() })
    };
}

#[test]
fn reads() {
    let read_8 = |host: &Host| {
        let file = host.new_random_access_file(P).expect("opened");
        let _ = file.read_with_status(0, 8);
    };
    found(read!(read_too_much), read_8, "read", "returned 9: TensorFlow would read past");
    found(read!(read_minus_one), read_8, "read", "returned -1: with OK");
    found(read!(read_short), read_8, "read", "needs OUT_OF_RANGE");
    found(read!(read_all_at_end), read_8, "read", "returned 8: with OUT_OF_RANGE");
    found(read!(read_nothing_written), read_8, "read", "never wrote byte 0");
    found(read!(read_error_with_bytes), read_8, "read", "returned 1: with an error");
    found(read!(read_end_minus_one), read_8, "read", "returned -1: with OUT_OF_RANGE");
    for offset in [0, 1] {
        found(
            read!(read_outside),
            |host| {
                let file = host.new_random_access_file(P).expect("opened");
                assert_eq!(file.read(offset, 8).expect("read"), b"xxxxxxxx");
            },
            "read",
            "wrote outside of the buffer",
        );
    }
}

#[test]
fn opening() {
    found(
        |offer| {
            read!(read_short)(offer);
            filesystem(|ops| ops.new_random_access_file = Some(broken::open_nothing))(offer);
        },
        |host| drop(host.new_random_access_file(P).expect("opened")),
        "new_random_access_file",
        "without setting the file",
    );
    found(
        filesystem(|ops| ops.new_random_access_file = Some(broken::open_reader_and_fail)),
        |host| assert_eq!(code(host.new_random_access_file(P)), Code::Unavailable),
        "new_random_access_file",
        "left a state behind",
    );
    found(
        filesystem(|ops| ops.init = Some(broken::init_that_leaks)),
        |_| {},
        "init",
        "left a state behind",
    );
}

#[test]
fn regions() {
    let region = |change: fn(&mut tf_fs_sys::TF_ReadOnlyMemoryRegionOps)| {
        move |offer: &mut Offer| {
            let ops = offer.filesystem.as_mut().expect("a table");
            ops.new_read_only_memory_region_from_file = Some(broken::open_region);
            change(offer.memory_region.as_mut().expect("a table"));
        }
    };
    let open = |host: &Host| {
        drop(host.new_read_only_memory_region_from_file(P).expect("opened"));
    };
    const OP: &str = "new_read_only_memory_region_from_file";
    found(region(|ops| ops.length = Some(broken::length_zero)), open, OP, "INVALID_ARGUMENT");
    found(region(|ops| ops.data = Some(broken::data_null)), open, OP, "`data` is null");
    found(
        region(|ops| ops.length = Some(broken::length_that_changes)),
        open,
        OP,
        "answer differently",
    );
    let host = Host::new();
    let mut offer = Offer::good(c"x");
    region(|_| {})(&mut offer);
    register(&host, &Plan::of([offer])).expect("good");
    let region = host.new_read_only_memory_region_from_file(P).expect("opened");
    assert_eq!(region.to_vec(), hand_made::CONTENT);
}

#[test]
fn statuses() {
    let call = |host: &Host| {
        let _ = host.delete_file(P);
    };
    let op = |slot| filesystem(move |ops| ops.delete_file = Some(slot));
    found(op(broken::never_set), call, "delete_file", "on \"/p\": the status was never set");
    found(op(broken::null_message), call, "delete_file", "message of the status is null");
    found(op(broken::latin1_message), call, "delete_file", "not UTF-8");
    found(
        op(broken::code_17),
        |host| assert_eq!(code(host.delete_file(P)), Code::Unknown),
        "delete_file",
        "code 17",
    );
    found(
        op(broken::late),
        |host| {
            call(host);
            assert_eq!(host.take_violations(), []);
            call(host);
        },
        "delete_file",
        "TF_SetStatus on the status after the operation had returned",
    );
    found(op(broken::deletes_the_status), call, "delete_file", "deleted the host's status");
}

#[test]
fn metadata() {
    found(
        filesystem(|ops| ops.delete_recursively = Some(broken::counters_unset)),
        |host| assert_eq!(host.delete_recursively(P).unwrap_err().error.code(), Code::NotFound),
        "delete_recursively",
        "counter unset",
    );
    found(
        filesystem(|ops| ops.delete_recursively = Some(broken::counters_left)),
        |host| host.delete_recursively(P).expect("OK"),
        "delete_recursively",
        "OK with 2 files and 1 directories left",
    );
    let stat = |host: &Host| {
        let _ = host.stat(P);
    };
    let op = |slot| filesystem(move |ops| ops.stat = Some(slot));
    found(op(broken::stat_unset), stat, "stat", "left a field unset");
    found(op(broken::stat_negative), stat, "stat", "length is negative");
    found(op(broken::stat_odd_bool), stat, "stat", "neither true nor false");
    found(op(broken::stat_fails_but_writes), stat, "stat", "although it failed");
    found(
        filesystem(|ops| ops.is_directory = Some(broken::is_directory_true_for_a_file)),
        |host| assert_eq!(code(host.is_directory(P)), Code::FailedPrecondition),
        "is_directory",
        "returned true",
    );
    found(
        filesystem(|ops| ops.is_directory = Some(broken::is_directory_false_and_ok)),
        |host| host.is_directory(P).expect("TensorFlow looks at the status only"),
        "is_directory",
        "returned false",
    );
    found(
        filesystem(|ops| ops.get_file_size = Some(broken::size_minus_one)),
        |host| drop(host.get_file_size(P)),
        "get_file_size",
        "returned -1 with OK",
    );
    found(
        filesystem(|ops| ops.get_file_size = Some(broken::size_with_error)),
        |host| assert_eq!(code(host.get_file_size(P)), Code::NotFound),
        "get_file_size",
        "returned 0 with an error",
    );
    found(
        filesystem(|ops| ops.translate_name = Some(broken::translate_to_null)),
        |host| fails(host.stat_of_nothing(P), Code::Internal, "returned nullptr"),
        "translate_name",
        "aborts the process",
    );
    found(
        filesystem(|ops| ops.paths_exist = Some(broken::paths_exist_lies)),
        |host| drop(host.paths_exist(&[P])),
        "paths_exist",
        "returned true, but the statuses",
    );
}

/// A call that needs a translated name.
trait StatOfNothing {
    fn stat_of_nothing(&self, uri: &str) -> tf_fs_plugin::Result<Vec<u8>>;
}

impl StatOfNothing for Host {
    fn stat_of_nothing(&self, uri: &str) -> tf_fs_plugin::Result<Vec<u8>> {
        self.translate_name(uri)
    }
}

/// A file of 5 bytes that can be read forever.
struct Endless;

impl RandomAccessFile for Endless {
    fn read_at(&self, _: u64, buf: &mut ReadBuf<'_>) -> Result<()> {
        buf.fill_with(|rest| {
            rest.fill(b'x');
            Ok::<_, Error>(rest.len())
        })?;
        Ok(())
    }
}

#[tf_fs_plugin::filesystem]
impl Filesystem for Endless {
    type Reader = Self;

    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }
    fn new_random_access_file(&self, _: Uri<'_>) -> Result<Self> {
        Ok(Self)
    }
    fn stat(&self, _: Uri<'_>) -> Result<FileStatistics> {
        Ok(FileStatistics::file(5))
    }
}

#[test]
fn files_without_an_end() {
    let host = Host::new();
    host.serve("x", Endless).expect("registered");
    let error = host.read_file(P).expect_err("no end");
    assert_eq!(error.code(), Code::DataLoss);
    let text = "has given 16777216 bytes of a file of 5 bytes, and does not end";
    assert!(error.message().contains(text), "{error}");
    let violations = host.take_violations();
    assert_eq!(violations.len(), 1, "{violations:#?}");
    assert!(violations[0].to_string().contains(text), "{violations:?}");
}

#[test]
fn listings() {
    let children = |host: &Host| drop(host.get_children(P));
    let op = |slot| filesystem(move |ops| ops.get_children = Some(slot));
    const OP: &str = "get_children";
    found(op(broken::list_negative), children, OP, "returned -1 with OK");
    found(op(broken::list_no_array), children, OP, "returned 2 without entries");
    found(op(broken::list_error_with_count), children, OP, "returned 0 with an error");

    let host = Host::new();
    let mut offer = Offer::good(c"x");
    op(broken::list_odd_names)(&mut offer);
    filesystem(|ops| ops.get_matching_paths = Some(broken::list_null_entry))(&mut offer);
    register(&host, &Plan::of([offer])).expect("good");
    let _ = host.get_children(P);
    let texts: Vec<String> =
        host.take_violations().into_iter().map(|violation| violation.what).collect();
    assert_eq!(
        texts,
        [
            "\"a\" is in the list twice",
            "\"\" is not the last component of a name",
            "\"a/b\" is not the last component of a name",
            "\"..\" is not the last component of a name",
        ]
    );
    assert_eq!(host.get_matching_paths("x://h/*").expect("OK"), [b"x://h/a"]);
    assert!(host.take_violations()[0].what.contains("entry is null"));
    drop(host);

    let host = Host::new();
    let mut offer = Offer::good(c"x");
    op(broken::list_one_block_twice)(&mut offer);
    filesystem(|ops| ops.get_matching_paths = Some(broken::list_without_scheme))(&mut offer);
    register(&host, &Plan::of([offer])).expect("good");
    let _ = host.get_children(P);
    let violations = host.take_violations();
    assert!(violations[0].what.contains("came twice"), "{violations:?}");
    let _ = host.get_matching_paths("x://h/*");
    let violations = host.take_violations();
    assert!(violations[0].what.contains("pattern's scheme"), "{violations:?}");
    assert_eq!(hand_made::live_blocks(), [""; 0]);
}

#[test]
fn writers() {
    let tell = |slot| {
        move |offer: &mut Offer| {
            let ops = offer.filesystem.as_mut().expect("a table");
            ops.new_writable_file = Some(broken::open_writer);
            offer.writable_file = Some(TF_WritableFileOps {
                cleanup: Some(hand_made::cleanup_writer),
                tell: Some(slot),
                ..Default::default()
            });
        }
    };
    let call = |host: &Host| drop(host.new_writable_file(P).expect("opened").tell());
    found(tell(broken::tell_negative), call, "tell", "returned -5 with OK");
    found(tell(broken::tell_error_with_value), call, "tell", "returned 5 with an error");
}

#[test]
fn transactions() {
    let start = |host: &Host| drop(host.filesystem("x").expect("there").start_transaction());
    let op = |slot| filesystem(move |ops| ops.start_transaction = Some(slot));
    const OP: &str = "start_transaction";
    found(op(broken::start_nothing), start, OP, "OK without a token");
    found(op(broken::start_with_one), start, OP, "returned 1 where -1 belongs");
    found(op(broken::start_foreign), start, OP, "owner of the token");
    found(
        filesystem(|ops| {
            ops.start_transaction = Some(broken::start_foreign);
            ops.decode_transaction_token = Some(broken::decode_to_null);
        }),
        |host| {
            let fs = host.filesystem("x").expect("there");
            let token = fs.start_transaction().expect("started");
            let _ = host.take_violations();
            fails(fs.decode_transaction_token(&token), Code::Internal, "null");
        },
        "decode_transaction_token",
        "returned null",
    );
}

#[test]
fn the_defaults_that_never_end_or_crash() {
    found(
        filesystem(|ops| ops.path_exists = Some(broken::not_found)),
        |host| assert_eq!(code(host.recursively_create_dir("x://h/a/b")), Code::Internal),
        "recursively_create_dir",
        "never ends",
    );
    found(
        |offer| {
            read!(read_short)(offer);
            filesystem(|ops| ops.new_writable_file = Some(broken::open_writer))(offer);
            offer.writable_file.as_mut().expect("a table").append = Some(broken::append);
        },
        |host| {
            assert_eq!(code(host.copy_file(P, "x://h/q")), Code::Internal);
            // The read itself is one violation, as in `reads`.
            let violations = host.take_violations();
            assert!(violations[0].what.contains("needs OUT_OF_RANGE"));
            assert!(violations[1].what.contains("never ends"), "{violations:?}");
            let _ = host.delete_file(P);
            let _ = host.filesystem("x").expect("there").copy_file(P, "x://h/q");
            assert_eq!(host.take_violations().len(), 2);
            let _ = host.get_matching_paths("x://h*/q");
        },
        "get_matching_paths",
        "wildcard in the host",
    );
}

#[test]
#[should_panic(
    expected = "the plugin broke 1 rule(s) of the C boundary:\n  `delete_file` on \"/p\": the status was never set"
)]
fn the_end_of_the_host_panics_with_the_list() {
    let host = Host::new();
    let mut offer = Offer::good(c"x");
    filesystem(|ops| ops.delete_file = Some(broken::never_set))(&mut offer);
    register(&host, &Plan::of([offer])).expect("good");
    let _ = host.delete_file(P);
}

#[test]
#[should_panic(expected = "on which TensorFlow's default crashes")]
fn check_panics_with_the_list() {
    let host = Host::new();
    register(&host, &Plan::of([Offer::good(c"x")])).expect("good");
    let _ = host.get_matching_paths("x://h*/q");
    host.check();
}

#[test]
fn tensorflows_glob_swallows_errors_and_asks_about_each_match() {
    let host = Host::new();
    let mut offer = Offer::good(c"x");
    filesystem(|ops| {
        ops.get_children = Some(broken::list_sub);
        ops.path_exists = Some(broken::ok_path);
        ops.is_directory = Some(broken::sub_is_a_directory);
    })(&mut offer);
    register(&host, &Plan::of([offer])).expect("good");
    let found = host.get_matching_paths("x://h/s*/*/o?her").expect("OK");
    assert_eq!(found, [b"x://h/sub/sub/other"]);
    assert_eq!(host.get_matching_paths("x://h/a/b").expect("OK"), [b"x://h/a/b"]);
    assert_eq!(host.get_matching_paths("").expect_err("no scheme").code(), Code::Unimplemented);
    let fs = host.filesystem("x").expect("there");
    assert_eq!(fs.get_matching_paths("").expect("OK"), [b""; 0]);
}

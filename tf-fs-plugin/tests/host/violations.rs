//! Each way to break a rule of the C boundary is detected and named.

use crate::abi::broken;
use crate::abi::hand_made::{self, Offer, Plan, register};
use crate::support::{code, fails};
use tf_fs_plugin::Code;
use tf_fs_plugin::prelude::*;
use tf_fs_sys::{TF_FilesystemOps, TF_RandomAccessFileOps, TF_WritableFileOps};
use tf_plugin_testing::filesystem::Host;

const P: &str = "x://h/p";

/// Creates a host, and registers a plugin that `break_it` has broken.
fn offered(break_it: impl FnOnce(&mut Offer)) -> (Host, Result<()>) {
    let host = Host::new();
    let mut offer = Offer::good(c"x");
    break_it(&mut offer);
    let registered = register(&host, &Plan::of([offer]));
    (host, registered)
}

/// Creates a host with a plugin that `break_it` has broken.
fn broken_host(break_it: impl FnOnce(&mut Offer)) -> Host {
    let (host, registered) = offered(break_it);
    registered.expect("registered");
    host
}

/// Runs `call` on a plugin that `break_it` has broken, and checks that it causes exactly one
/// violation, with this operation and part of its text.
#[track_caller]
fn found(break_it: impl FnOnce(&mut Offer), call: impl FnOnce(&Host), operation: &str, part: &str) {
    let (host, registered) = offered(break_it);
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

/// Calls [`found`] for a slot of the filesystem's table and the operation of its name.
macro_rules! found {
    ($slot:ident => $broken:ident, $part:literal, $call:expr) => {
        found(filesystem(|ops| ops.$slot = Some(broken::$broken)), $call, stringify!($slot), $part)
    };
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
    let read_much = |host: &Host| {
        let file = host.new_random_access_file(P).expect("opened");
        assert_eq!(file.read(0, 1 << 20).expect("read").len(), 1 << 20);
    };
    found(read!(read_but_one), read_much, "read", "never wrote byte 524288");
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
    found! { new_random_access_file => open_reader_and_fail, "left a state behind",
    |host| assert_eq!(code(host.new_random_access_file(P)), Code::Unavailable) }
    found! { init => init_that_leaks, "left a state behind", |_| {} }
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
    let host = broken_host(region(|_| {}));
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
    found! { delete_file => null_message, "message of the status is null", call }
    found! { delete_file => latin1_message, "not UTF-8", call }
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
    found! { delete_file => deletes_the_status, "deleted the host's status", call }
}

#[test]
fn metadata() {
    found! { delete_recursively => counters_unset, "counter unset",
    |host| assert_eq!(host.delete_recursively(P).unwrap_err().error.code(), Code::NotFound) }
    found! { delete_recursively => counters_left, "OK with 2 files and 1 directories left",
    |host| host.delete_recursively(P).expect("OK") }
    let stat = |host: &Host| {
        let _ = host.stat(P);
    };
    found! { stat => stat_unset, "left a field unset", stat }
    found! { stat => stat_negative, "length is negative", stat }
    found! { stat => stat_odd_bool, "neither true nor false", stat }
    found! { stat => stat_fails_but_writes, "although it failed", stat }
    found! { is_directory => is_directory_true_for_a_file, "returned true",
    |host| assert_eq!(code(host.is_directory(P)), Code::FailedPrecondition) }
    found! { is_directory => is_directory_false_and_ok, "returned false",
    |host| host.is_directory(P).expect("TensorFlow looks at the status only") }
    found! { get_file_size => size_minus_one, "returned -1 with OK",
    |host| drop(host.get_file_size(P)) }
    found! { get_file_size => size_with_error, "returned 0 with an error",
    |host| assert_eq!(code(host.get_file_size(P)), Code::NotFound) }
    found! { translate_name => translate_to_null, "aborts the process",
    |host| fails(host.translate_name(P), Code::Internal, "returned nullptr") }
    found! { paths_exist => paths_exist_lies, "returned true, but the statuses",
    |host| drop(host.paths_exist(&[P])) }
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
    found! { get_children => list_negative, "returned -1 with OK", children }
    found! { get_children => list_no_array, "returned 2 without entries", children }
    found! { get_children => list_error_with_count, "returned 0 with an error", children }
    found! { get_matching_paths => list_null_entry, "entry is null",
    |host| assert_eq!(host.get_matching_paths("x://h/*").expect("OK"), [b"x://h/a"]) }
    found! { get_matching_paths => list_without_scheme, "pattern's scheme",
    |host| drop(host.get_matching_paths("x://h/*")) }

    let listed = |slot| {
        let host = broken_host(filesystem(|ops| ops.get_children = Some(slot)));
        let _ = host.get_children(P);
        let violations = host.take_violations().into_iter();
        violations.map(|violation| violation.what).collect::<Vec<_>>()
    };
    assert_eq!(
        listed(broken::list_odd_names),
        [
            "\"a\" is in the list twice",
            "\"\" is not the last component of a name",
            "\"a/b\" is not the last component of a name",
            "\"..\" is not the last component of a name",
        ]
    );
    let violations = listed(broken::list_one_block_twice);
    assert!(violations[0].contains("came twice"), "{violations:?}");
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
    found! { start_transaction => start_nothing, "OK without a token", start }
    found! { start_transaction => start_with_one, "returned 1 where -1 belongs", start }
    found! { start_transaction => start_foreign, "owner of the token", start }
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
fn configuration() {
    found! { get_filesystem_configuration => options_without_their_number,
    "OK without the number of options",
    |host| drop(host.filesystem("x").expect("there").get_filesystem_configuration().expect("OK")) }
    found! { get_filesystem_configuration_keys => keys_without_their_number,
    "OK without keys or their number",
    |host| drop(host.filesystem("x").expect("there").get_filesystem_configuration_keys().expect("OK")) }
    found! { get_filesystem_configuration => buffer_without_a_name, "an option has no description",
    |host| fails(host.filesystem("x").expect("there").get_filesystem_configuration(), Code::InvalidArgument,
        "an option cannot be read: the name of an option: unexpected null pointer") }
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
    let host = broken_host(filesystem(|ops| ops.delete_file = Some(broken::never_set)));
    let _ = host.delete_file(P);
}

#[test]
#[should_panic(expected = "on which TensorFlow's default crashes")]
fn check_panics_with_the_list() {
    let host = broken_host(|_| {});
    let _ = host.get_matching_paths("x://h*/q");
    host.check();
}

#[test]
fn tensorflows_glob_swallows_errors_and_queries_each_match() {
    let host = broken_host(filesystem(|ops| {
        ops.get_children = Some(broken::list_sub);
        ops.path_exists = Some(broken::ok_path);
        ops.is_directory = Some(broken::sub_is_a_directory);
    }));
    let paths = host.get_matching_paths("x://h/s*/*/o?her").expect("OK");
    assert_eq!(paths, [b"x://h/sub/sub/other"]);
    assert_eq!(host.get_matching_paths("x://h/a/b").expect("OK"), [b"x://h/a/b"]);
    assert_eq!(host.get_matching_paths("").expect_err("no scheme").code(), Code::Unimplemented);
    let fs = host.filesystem("x").expect("there");
    assert_eq!(fs.get_matching_paths("").expect("OK"), [b""; 0]);
}

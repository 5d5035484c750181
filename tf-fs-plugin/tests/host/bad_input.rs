//! Arguments that no host should pass: a clear error or nothing at all, never a crash.

use crate::abi::raw::{self, Arguments, BadOption, Buffer, call};
use crate::full::Full;
use crate::support::{code, fails};
use tf_fs_plugin::{Code, Operations};
use tf_plugin_testing::filesystem::{Host, TestFilesystem};

const FILE: &str = "full://h/file";

fn fixture() -> (Host, TestFilesystem) {
    let host = Host::load::<Full>().expect("loaded");
    let fs = host.filesystem("full").expect("there");
    fs.write_file(FILE, "content").expect("written");
    (host, fs)
}

/// Returns what an operation returns when it fails, besides its status.
pub(crate) fn fallback(op: &str) -> Option<i64> {
    match op {
        "get_file_size"
        | "get_children"
        | "get_matching_paths"
        | "start_transaction"
        | "end_transaction"
        | "add_to_transaction"
        | "get_transaction_for_path"
        | "get_or_start_transaction_for_path" => Some(-1),
        "paths_exist" | "is_directory" => Some(0),
        // Always a string.
        "translate_name" | "decode_transaction_token" => Some(1),
        _ => None,
    }
}

fn has_status(op: &str) -> bool {
    !matches!(op, "translate_name" | "flush_caches" | "decode_transaction_token")
}

#[test]
fn without_a_status_nothing_happens() {
    let (_host, fs) = fixture();
    for (op, _) in Operations::NAMES.iter().filter(|(op, _)| has_status(op)) {
        if *op == "paths_exist" {
            // It may be called without statuses, and then only returns a value.
            continue;
        }
        for path in [FILE, "full://h/new"] {
            let answer = call(&fs, op, path, Arguments { status: false, ..Arguments::ALL });
            assert!(answer.status.is_ok(), "{op}: {answer:?}");
            assert_eq!(answer.returned, fallback(op), "{op}");
        }
    }
    assert_eq!(fs.get_children("full://h/").expect("listed"), [b"file"]);
    assert_eq!(fs.read_file(FILE).expect("there"), b"content");
}

#[test]
fn without_a_filesystem_nothing_is_open() {
    let (_host, fs) = fixture();
    for arguments in [
        Arguments { filesystem: false, ..Arguments::ALL },
        Arguments { state: false, ..Arguments::ALL },
    ] {
        for (op, _) in Operations::NAMES {
            let answer = call(&fs, op, FILE, arguments);
            assert_eq!(answer.returned, fallback(op), "{op}");
            match *op {
                // It has no status of its own to report this.
                "paths_exist" => fails(answer.status, Code::Internal, "paths_exist"),
                op if has_status(op) => {
                    fails(answer.status, Code::FailedPrecondition, "is not open");
                }
                _ => answer.status.expect("no status"),
            }
        }
    }
    raw::clean_up_nothing(&fs);
    fails(raw::init_nothing(&fs), Code::InvalidArgument, "null pointer");
}

#[test]
fn null_paths_and_places_are_invalid_arguments() {
    const NO_PATH: &str = "flush_caches start_transaction end_transaction decode_transaction_token \
        get_filesystem_configuration set_filesystem_configuration \
        set_filesystem_configuration_option get_filesystem_configuration_keys";
    const PLACE: &str = "new_random_access_file new_writable_file new_appendable_file \
        new_read_only_memory_region_from_file stat get_children get_matching_paths \
        start_transaction get_transaction_for_path get_or_start_transaction_for_path \
        get_filesystem_configuration get_filesystem_configuration_option \
        get_filesystem_configuration_keys";
    let (host, fs) = fixture();
    for (op, _) in Operations::NAMES {
        if !NO_PATH.split(' ').any(|known| known == *op) {
            let answer = call(&fs, op, FILE, Arguments { path: false, ..Arguments::ALL });
            assert_eq!(answer.returned, fallback(op), "{op}");
            match *op {
                "translate_name" => {}
                "paths_exist" => fails(answer.status, Code::Internal, "paths_exist"),
                // The token is looked at first.
                "add_to_transaction" => fails(answer.status, Code::NotFound, "transaction"),
                _ => fails(answer.status, Code::InvalidArgument, "null pointer"),
            }
        }
        if PLACE.split(' ').any(|known| known == *op) {
            let answer = call(&fs, op, FILE, Arguments { place: false, ..Arguments::ALL });
            assert_eq!(answer.returned, fallback(op), "{op}");
            fails(answer.status, Code::InvalidArgument, "null pointer");
        }
    }
    // Options that are null.
    for op in ["set_filesystem_configuration", "set_filesystem_configuration_option"] {
        let answer = call(&fs, op, FILE, Arguments::ALL);
        fails(answer.status, Code::InvalidArgument, "null pointer");
    }
    // Counters and statuses may be null.
    assert!(raw::paths_exist_negative(&fs), "no path is missing");
    let (all, [first, second]) = raw::paths_exist_with_null(&fs, FILE);
    assert!(!all);
    first.expect("it is there");
    fails(second, Code::InvalidArgument, "null pointer");
    let answer =
        call(&fs, "delete_recursively", FILE, Arguments { place: false, ..Arguments::ALL });
    answer.status.expect("deleted");
    assert_eq!(code(fs.stat(FILE)), Code::NotFound);
    host.check();
}

#[test]
fn files_that_are_not_open() {
    let (_host, fs) = fixture();
    let answers = raw::call_closed_files(&fs.tables());
    assert_eq!(answers.len(), 12);
    for (index, (op, answer)) in answers.into_iter().enumerate() {
        let expected = matches!(op, "read" | "tell").then_some(-1);
        assert_eq!(answer.returned, expected, "{op}");
        // The first of each kind is a null pointer, the second a file that was never opened.
        let (code, part) = if index == 0 || (2..7).contains(&index) {
            (Code::InvalidArgument, "null pointer")
        } else {
            (Code::FailedPrecondition, "is not open")
        };
        fails(answer.status, code, part);
    }
}

#[test]
fn reads_of_any_size_and_place() {
    let (_host, fs) = fixture();
    let tables = fs.tables();
    let file = fs.new_random_access_file(FILE).expect("opened");
    for offset in [0, 7, 8, u64::MAX] {
        for buffer in [Buffer::Null, Buffer::Small] {
            let (returned, status) = raw::read(&file, &tables, offset, 0, buffer);
            assert_eq!(returned, 0);
            status.expect("nothing is always there");
        }
    }
    for n in [1, usize::MAX, isize::MAX as usize + 1] {
        let (returned, status) = raw::read(&file, &tables, 0, n, Buffer::Null);
        assert_eq!(returned, -1);
        fails(status, Code::InvalidArgument, &format!("cannot read {n} bytes"));
    }
    let (returned, status) = raw::read(&file, &tables, 0, isize::MAX as usize + 1, Buffer::Small);
    assert_eq!((returned, code(status)), (-1, Code::InvalidArgument));
    for offset in [7, 8, 1 << 40, u64::MAX - 1, u64::MAX] {
        let (returned, status) = raw::read(&file, &tables, offset, 8, Buffer::Small);
        assert_eq!((returned, code(status)), (0, Code::OutOfRange), "offset {offset}");
    }
    let (returned, status) = raw::read(&file, &tables, 3, 8, Buffer::Small);
    assert_eq!((returned, code(status)), (4, Code::OutOfRange));
    let (returned, status) = raw::clean_up_twice(&file, &tables);
    assert_eq!(returned, -1);
    fails(status, Code::FailedPrecondition, "is not open");
}

#[test]
fn appends_of_any_size() {
    let (_host, fs) = fixture();
    let tables = fs.tables();
    let mut file = fs.new_writable_file("full://h/new").expect("opened");
    raw::append(&file, &tables, Buffer::Null, 0).expect("nothing is always fine");
    raw::append(&file, &tables, Buffer::Small, 0).expect("nothing is always fine");
    raw::append(&file, &tables, Buffer::Small, 8).expect("appended");
    for (buffer, n) in [
        (Buffer::Null, 1),
        (Buffer::Null, usize::MAX),
        (Buffer::Small, usize::MAX),
        (Buffer::Small, isize::MAX as usize + 1),
    ] {
        assert_eq!(code(raw::append(&file, &tables, buffer, n)), Code::InvalidArgument);
    }
    assert_eq!(file.tell().expect("told"), 8);
    file.close().expect("closed");
    assert_eq!(fs.read_file("full://h/new").expect("there"), b"xxxxxxxx");
}

#[test]
fn names_of_any_length_and_bytes() {
    let (host, fs) = fixture();
    let long = format!("full://h/{}", "x".repeat(1 << 16));
    fs.write_file(&long, "long").expect("no limit");
    assert_eq!(fs.read_file(&long).expect("there"), b"long");
    fs.delete_file(&long).expect("deleted");
    let error = fs.delete_file(&long).expect_err("gone");
    assert_eq!(error.code(), Code::NotFound);
    assert!(error.message().len() <= 4096 + 3, "{} bytes", error.message().len());
    let deep = format!("full://h{}", "/d".repeat(1_000));
    fs.recursively_create_dir(&deep).expect("created");
    fs.is_directory(&deep).expect("there");
    fs.delete_recursively("full://h/d").expect("deleted");

    let raw = b"full://h/\xff\xfe\x80";
    fs.write_file(raw, "bytes").expect("written");
    assert_eq!(
        fs.get_children("full://h").expect("listed"),
        [b"file".to_vec(), b"\xff\xfe\x80".to_vec()]
    );
    fs.delete_file(raw).expect("deleted");
    let error = fs.delete_file(raw).expect_err("gone");
    assert!(error.message().contains(r"full://h/\xff\xfe\x80"), "{error}");

    // As in TensorFlow, a NUL cuts the name.
    assert_eq!(fs.read_file(b"full://h/file\0no").expect("there"), b"content");
    host.check();
}

mod plain {
    //! A filesystem without its own `translate_name`, so that the SDK checks the names.

    use tf_fs_plugin::*;

    #[derive(Debug)]
    pub(super) struct Plain;
    export!(Plain: "plain" => Plain);

    #[filesystem]
    impl Filesystem for Plain {
        fn new(_: &str) -> Result<Self> {
            Ok(Self)
        }

        fn path_exists(&self, uri: Uri<'_>) -> Result<bool> {
            Ok(uri.as_bytes() == b"plain://h/a")
        }

        /// Fails with the name that arrived.
        fn create_dir(&self, uri: Uri<'_>) -> Result<()> {
            Err(Error::data_loss(uri))
        }

        /// Returns one result too many or too few.
        fn paths_exist(&self, uris: &[Uri<'_>]) -> Vec<Result<bool>> {
            let answers = if uris.len() == 3 { 2 } else { uris.len() + 1 };
            (0..answers).map(|_| Ok(true)).collect()
        }
    }
}

#[test]
fn names_of_another_scheme_are_refused() {
    let host = Host::load::<plain::Plain>().expect("loaded");
    let fs = host.filesystem("plain").expect("there");
    for foreign in ["other://h/a", "plainer://h/a", "PLAIN://h/a"] {
        fails(
            call(&fs, "path_exists", foreign, Arguments::ALL).status,
            Code::FailedPrecondition,
            "this filesystem serves `plain://`",
        );
    }
    // A name that was not translated still arrives in canonical form.
    for (name, canonical) in [
        ("plain://h/b/..//a/.", "plain://h/a"),
        ("plain://h", "plain://h/"),
        ("/", "plain:///"),
        ("/x", "/x"),
        ("", "/"),
        ("plain://h/../..", "plain://h/"),
    ] {
        fails(call(&fs, "create_dir", name, Arguments::ALL).status, Code::DataLoss, canonical);
    }
}

#[test]
fn paths_exist_with_a_wrong_number_of_answers() {
    let host = Host::load::<plain::Plain>().expect("loaded");
    let two = host.paths_exist(&["plain://h/a", "plain://h/b"]).expect("asked");
    assert!(two.iter().all(Result::is_ok), "a surplus is dropped: {two:?}");
    let mut three =
        host.paths_exist(&["plain://h/a", "plain://h/b", "plain://h/c"]).expect("asked");
    assert!(three[..2].iter().all(Result::is_ok));
    fails(three.remove(2), Code::Internal, "too few");
    assert_eq!(host.paths_exist(&[""; 0]).expect("asked").len(), 0);
}

#[test]
fn bad_options() {
    let (_host, fs) = fixture();
    for (bad, part) in [
        (BadOption::UnknownType, "unknown type 3"),
        (BadOption::NullName, "null pointer"),
        (BadOption::NameNotUtf8, "not valid UTF-8"),
        (BadOption::NullValue, "null pointer"),
        (BadOption::NullValues, "null pointer"),
        (BadOption::NegativeNumber, "-1 is not a number of values"),
        (BadOption::NullBuffer, "null pointer"),
        (BadOption::NegativeBuffer, "-1 is not a number of values"),
        (BadOption::NegativeCount, "-1 is not a number of values"),
        (BadOption::NullOptions, "null pointer"),
    ] {
        for status in raw::set_bad_option(&fs, bad).into_iter().flatten() {
            fails(status, Code::InvalidArgument, part);
        }
    }
    assert_eq!(fs.get_filesystem_configuration().expect("listed"), []);
}

#[test]
fn tokens_that_are_none() {
    let (host, fs) = fixture();
    let (_other_host, other) = fixture();
    let (returned, status) = raw::end_made_up_token(&fs);
    assert_eq!((returned, code(status)), (-1, Code::NotFound));
    let foreign = other.start_transaction().expect("started");
    let token = fs.start_transaction().expect("started");
    assert_eq!(code(fs.end_transaction(&foreign)), Code::NotFound);
    assert_eq!(code(fs.add_to_transaction(FILE, &foreign)), Code::NotFound);
    assert_eq!(fs.decode_transaction_token(&foreign).expect("a text"), "(unknown transaction)");
    fs.end_transaction(&token).expect("ended");
    assert_eq!(code(fs.end_transaction(&token)), Code::NotFound);
    assert_eq!(code(fs.add_to_transaction(FILE, &token)), Code::NotFound);
    other.end_transaction(&foreign).expect("the foreign one is unharmed");
    host.check();
}

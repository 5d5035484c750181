//! Transactions and configuration: what goes in comes out, and is freed.

use crate::abi::raw;
use crate::full::{Full, alive, last_transaction};
use crate::support::{code, fails};
use tf_fs_plugin::{Code, FilesystemOption, OptionValues};
use tf_plugin_testing::filesystem::{Host, TestFilesystem};

const A: &str = "full://h/a";
const B: &str = "full://h/b";

fn fixture() -> (Host, TestFilesystem) {
    let host = Host::load::<Full>().expect("loaded");
    let fs = host.filesystem("full").expect("there");
    (host, fs)
}

#[test]
fn a_transaction_from_start_to_end() {
    let (host, fs) = fixture();
    let one = fs.start_transaction().expect("started");
    let state = last_transaction();
    assert_eq!(raw::token_content(&one), (fs.as_ptr(), true));
    assert_eq!(code(fs.get_transaction_for_path(A)), Code::NotFound);
    host.add_to_transaction(A, &one).expect("added");
    let again = host.get_transaction_for_path("full://h/x/../a").expect("found");
    assert!(again == one, "one transaction has one token");
    let two = host.get_or_start_transaction_for_path(B).expect("started");
    assert!(one != two);
    assert!(host.get_or_start_transaction_for_path(B).expect("found") == two);
    fails(host.add_to_transaction(A, &two), Code::FailedPrecondition, "another transaction");
    assert_eq!(host.decode_transaction_token(&one).expect("text"), "[full://h/a]\\0");
    assert!(state.upgrade().is_some());
    host.end_transaction(&one).expect("ended");
    assert!(state.upgrade().is_none(), "nobody keeps it");
    fails(host.end_transaction(&one), Code::NotFound, "has ended");
    assert_eq!(code(host.get_transaction_for_path(A)), Code::NotFound);
    assert!(host.get_transaction_for_path(B).expect("found") == two);
    drop((one, two, again, fs, host));
    assert_eq!(alive(), 0, "what was not ended is freed with the filesystem");
}

#[test]
fn a_transaction_is_gone_even_if_ending_it_fails() {
    use crate::trips::{Trip, arm};
    let (host, fs) = fixture();
    let one = fs.start_transaction().expect("started");
    arm("end_transaction", Trip::Fail(Code::Unavailable), 0);
    assert_eq!(code(host.end_transaction(&one)), Code::Unavailable);
    assert_eq!(code(host.end_transaction(&one)), Code::NotFound);
}

fn options() -> Vec<FilesystemOption> {
    vec![
        FilesystemOption::new(
            "buffer",
            OptionValues::Buffer(vec![b"with\0NUL".to_vec(), Vec::new(), b"\xff".to_vec()]),
        )
        .with_description("bytes of any kind"),
        FilesystemOption::new("empty", OptionValues::Real(Vec::new())),
        FilesystemOption::new("int", OptionValues::Int(vec![i64::MIN, 0, i64::MAX])).per_file(),
        FilesystemOption::new("real", OptionValues::Real(vec![-0.5, f64::INFINITY])),
        FilesystemOption::new("schlüssel", OptionValues::Int(vec![1])).with_description("größe"),
    ]
}

#[test]
fn options_of_each_type_survive_the_round_trip() {
    let (host, fs) = fixture();
    assert_eq!(fs.get_filesystem_configuration().expect("listed"), []);
    assert_eq!(fs.get_filesystem_configuration_keys().expect("listed"), [""; 0]);
    fs.set_filesystem_configuration(&options()).expect("set");
    assert_eq!(fs.get_filesystem_configuration().expect("listed"), options());
    assert_eq!(
        fs.get_filesystem_configuration_keys().expect("listed"),
        ["buffer", "empty", "int", "real", "schlüssel"]
    );
    for option in options() {
        assert_eq!(fs.get_filesystem_configuration_option(&option.name).expect("there"), option);
    }
    fails(fs.get_filesystem_configuration_option("none"), Code::NotFound, "option `none`");
    let changed = FilesystemOption::new("int", OptionValues::Real(vec![2.0]));
    fs.set_filesystem_configuration_option(&changed).expect("set");
    assert_eq!(fs.get_filesystem_configuration_option("int").expect("there"), changed);
    let fixed = FilesystemOption::new("fixed", OptionValues::Int(vec![]));
    fails(fs.set_filesystem_configuration_option(&fixed), Code::InvalidArgument, "cannot be set");
    assert_eq!(code(fs.set_filesystem_configuration(&[fixed])), Code::InvalidArgument);
    fs.set_filesystem_configuration(&[]).expect("nothing to set");
    host.check();
}

#[test]
fn the_other_configuration_operations_follow_from_one() {
    use tf_fs_plugin::*;

    #[derive(Debug)]
    struct Listed;
    export!(Listed: "listed" => Listed);
    #[tf_fs_plugin::filesystem]
    impl Filesystem for Listed {
        fn new(_: &str) -> Result<Self> {
            Ok(Self)
        }
        fn get_filesystem_configuration(&self) -> Result<Vec<FilesystemOption>> {
            Ok(options())
        }
        fn set_filesystem_configuration_option(&self, option: &FilesystemOption) -> Result<()> {
            Err(Error::not_found(&option.name))
        }
    }
    let host = Host::load::<Listed>().expect("loaded");
    let fs = host.filesystem("listed").expect("there");
    assert_eq!(fs.get_filesystem_configuration_keys().expect("listed").len(), 5);
    let option = fs.get_filesystem_configuration_option("int").expect("there");
    assert_eq!(option, options()[2]);
    fails(fs.get_filesystem_configuration_option("none"), Code::NotFound, "option `none`");
    fails(fs.set_filesystem_configuration(&options()), Code::NotFound, "buffer: not found");
}

#[test]
fn names_with_a_nul_are_the_plugins_fault() {
    use tf_fs_plugin::*;

    #[derive(Debug)]
    struct Nul;
    export!(Nul: "nul" => Nul);
    #[tf_fs_plugin::filesystem]
    impl Filesystem for Nul {
        fn new(_: &str) -> Result<Self> {
            Ok(Self)
        }
        fn get_filesystem_configuration(&self) -> Result<Vec<FilesystemOption>> {
            Ok(vec![FilesystemOption::new("a\0b", OptionValues::Int(vec![]))])
        }
        fn get_filesystem_configuration_keys(&self) -> Result<Vec<String>> {
            Ok(vec![String::from("a\0b")])
        }
        fn get_children(&self, _: Uri<'_>) -> Result<Entries> {
            Ok(["good", "a\0b", "", ".", "..", "...", "\n"].into_iter().collect())
        }
        fn get_matching_paths(&self, _: Uri<'_>) -> Result<Entries> {
            Ok(["nul://h/good", "nul://h/a\0b", "nul://h/good2"].into_iter().collect())
        }
        fn translate_name(&self, _: &[u8]) -> Vec<u8> {
            b"a\0b".to_vec()
        }
    }
    let host = Host::load::<Nul>().expect("loaded");
    let fs = host.filesystem("nul").expect("there");
    fails(fs.get_filesystem_configuration(), Code::Internal, "NUL inside");
    fails(fs.get_filesystem_configuration_keys(), Code::Internal, "NUL inside");
    assert_eq!(fs.get_children("nul://h/").expect("listed"), [&b"good"[..], b"...", b"\n"]);
    let matches = fs.get_matching_paths("nul://h/*").expect("listed");
    assert_eq!(matches, [b"nul://h/good".to_vec(), b"nul://h/good2".to_vec()]);
    assert_eq!(fs.translate_name("nul://h/x").expect("unchanged"), b"nul://h/x");
}

#[test]
fn payloads_and_causes_reach_the_host() {
    use tf_fs_plugin::*;

    #[derive(Debug)]
    struct Telling;
    export!(Telling: "telling" => Telling);
    #[tf_fs_plugin::filesystem]
    impl Filesystem for Telling {
        fn new(_: &str) -> Result<Self> {
            Ok(Self)
        }
        fn delete_file(&self, uri: Uri<'_>) -> Result<()> {
            Err(Error::unavailable("no answer")
                .with_source(std::io::Error::other("reset\0by peer"))
                .with_payload("type.example/Retry", "after 3 s")
                .with_payload("type.example/Host", "h\0")
                .context(uri))
        }
    }
    let host = Host::load::<Telling>().expect("loaded");
    let error = host.delete_file("telling://h/x").expect_err("it always fails");
    assert_eq!(error.code(), Code::Unavailable);
    assert_eq!(error.message(), "telling://h/x: no answer: reset\\0by peer");
    let payloads: Vec<_> = error.payloads().collect();
    assert_eq!(payloads, [("type.example/Retry", "after 3 s"), ("type.example/Host", "h\\0")]);
}

#[test]
fn statistics_keep_their_nanoseconds() {
    use std::time::{Duration, SystemTime};
    let (_host, fs) = fixture();
    fs.write_file(A, "x").expect("written");
    let statistics = fs.stat(A).expect("there");
    assert_eq!(
        statistics.modified,
        SystemTime::UNIX_EPOCH + Duration::new(1_700_000_000, 123_456_789)
    );
    assert!(!statistics.is_directory);
    assert!(fs.stat("full://h").expect("there").is_directory);
}

//! The fault layer, around memfs.

use memfs::MemFs;
use std::time::{Duration, Instant};
use tf_fs_plugin::Code;
use tf_plugin_testing::filesystem::{
    Case, Conformance, Fault, Faults, Faulty, Host, Outcome, TestFilesystem, sweep,
};

fn host() -> (Host, Faults) {
    let (faulty, faults) = Faulty::new(MemFs::default());
    let host = Host::new();
    host.serve("mem", faulty).expect("registered");
    host.read_once();
    (host, faults)
}

/// Which slots are filled.
fn slots(filesystem: &TestFilesystem) -> Vec<String> {
    let text = format!("{:?}", filesystem.tables());
    let fields = text.split(", ").map(|field| match field.split_once(": Some(") {
        Some((name, _)) => format!("{name} is there"),
        None => field.to_owned(),
    });
    fields.collect()
}

#[test]
fn tensorflow_sees_the_same_slots() {
    let plain = Host::load::<MemFs>().expect("loaded");
    let (faulty, _) = host();
    let (plain, faulty) =
        (plain.filesystem("mem").expect("there"), faulty.filesystem("mem").expect("there"));
    assert_eq!(slots(&plain), slots(&faulty));
    assert!(
        slots(&plain).iter().any(|slot| slot.ends_with("stat is there")),
        "{:?}",
        slots(&plain)
    );
    assert!(slots(&plain).contains(&String::from("is_directory: None")), "{:?}", slots(&plain));
}

#[test]
fn without_faults_nothing_changes() {
    let (host, faults) = host();
    let conformance = Conformance::new(&host, "mem://box/");
    for case in Case::all().iter().filter(|case| !case.name().starts_with("random")) {
        let outcome = conformance.run(case);
        assert!(!matches!(outcome, Outcome::Failed(_)), "{case:?}: {outcome:#?}");
    }
    assert_eq!(faults.met(), 0);
    assert!(faults.calls_of("stat") > 100 && faults.calls_of("read") > 100, "{}", faults.calls());
}

#[test]
fn one_call_fails_and_does_nothing() {
    let (host, faults) = host();
    faults.at("append", 1, Fault::Fail(Code::ResourceExhausted));
    let mut file = host.new_writable_file("mem://box/file").expect("made");
    file.append(b"one").expect("the first");
    assert_eq!(file.append(b"two").expect_err("told").code(), Code::ResourceExhausted);
    file.append(b"three").expect("the third");
    file.close().expect("closed");
    assert_eq!(host.read_file("mem://box/file").expect("there"), b"onethree");
    assert_eq!((faults.met(), faults.calls_of("append")), (1, 3));
}

#[test]
fn an_answer_is_lost_after_the_call() {
    let (host, faults) = host();
    faults.at("create_dir", 0, Fault::FailAfter(Code::DeadlineExceeded));
    let error = host.create_dir("mem://box/dir").expect_err("told");
    assert_eq!(
        (error.code(), error.message()),
        (Code::DeadlineExceeded, "`create_dir` was told to fail")
    );
    host.is_directory("mem://box/dir").expect("made nevertheless");
}

#[test]
fn every_nth_and_every_call() {
    let (host, faults) = host();
    let codes =
        |n: usize| -> Vec<bool> { (0..n).map(|_| host.stat("mem://box/").is_ok()).collect() };
    faults.every("stat", 3, Fault::Fail(Code::Unavailable));
    assert_eq!(codes(7), [true, true, false, true, true, false, true]);
    faults.reset();
    assert_eq!(codes(4), [true; 4]);
    faults.always("stat", Fault::Fail(Code::Unavailable));
    assert_eq!(codes(3), [false; 3]);
}

#[test]
fn defaults_of_the_sdk_meet_faults_in_what_they_call() {
    let (host, faults) = host();
    host.write_file("mem://box/a", "content").expect("written");
    faults.always("append", Fault::Fail(Code::ResourceExhausted));
    // memfs has no `copy_file`: the SDK's reads and appends.
    let error = host.copy_file("mem://box/a", "mem://box/b").expect_err("no space");
    assert_eq!(error.code(), Code::ResourceExhausted);
    assert_eq!(host.path_exists("mem://box/b").expect_err("cleaned up").code(), Code::NotFound);
}

#[test]
fn short_reads_are_no_end_of_file() {
    let (host, faults) = host();
    let content: Vec<u8> = (0..=255).cycle().take(10_000).collect();
    host.write_file("mem://box/file", &content).expect("written");
    faults.always("read", Fault::Shorten(7));
    assert_eq!(host.read_file("mem://box/file").expect("read"), content);
    assert!(faults.calls_of("read") > 1400, "{}", faults.calls_of("read"));
}

#[test]
fn a_panic_becomes_an_internal_error() {
    let (host, faults) = host();
    host.write_file("mem://box/file", "content").expect("written");
    faults.at("read", 0, Fault::Panic);
    let error = host.read_file("mem://box/file").expect_err("a panic");
    assert_eq!(error.code(), Code::Internal);
    assert!(error.message().contains("`read` was told to panic"), "{error}");
    assert_eq!(host.read_file("mem://box/file").expect("goes on"), b"content");
}

#[test]
fn a_delay_waits_and_then_calls() {
    let (host, faults) = host();
    faults.at("create_dir", 0, Fault::Delay(Duration::from_millis(30)));
    let start = Instant::now();
    host.create_dir("mem://box/dir").expect("made");
    assert!(start.elapsed() >= Duration::from_millis(30));
}

#[test]
fn the_same_seed_gives_the_same_faults() {
    let run = |seed| {
        let (host, faults) = host();
        faults.at_random(seed, 0.25, &[Fault::Fail(Code::Unavailable), Fault::Fail(Code::Aborted)]);
        let codes = (0..400).map(|_| host.stat("mem://box/").err().map(|error| error.code()));
        let codes: Vec<_> = codes.collect();
        assert!((60..140).contains(&faults.met()), "{} of 400", faults.met());
        for code in [None, Some(Code::Unavailable), Some(Code::Aborted)] {
            assert!(codes.contains(&code), "{code:?}");
        }
        codes
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
#[should_panic(
    expected = "there is no operation `open`; the names are those of filesystem_interface.h"
)]
fn an_unknown_operation_is_refused() {
    host().1.at("open", 0, Fault::Panic);
}

/// Each of the calls that saving and loading a file consists of fails once: the error always comes out.
#[test]
fn a_sweep_over_saving_and_loading() {
    for fault in [Fault::Fail(Code::Unavailable), Fault::FailAfter(Code::Unavailable), Fault::Panic]
    {
        let runs = sweep("mem", MemFs::default, fault, |host, fails| {
            let saved = host
                .write_file("mem://box/new", "content")
                .and_then(|()| host.copy_file("mem://box/new", "mem://box/copy"))
                .and_then(|()| host.rename_file("mem://box/copy", "mem://box/file"))
                .and_then(|()| host.read_file("mem://box/file"));
            match saved {
                Ok(content) => {
                    assert_eq!((fails, &content[..]), (false, &b"content"[..]), "{fault:?}")
                }
                Err(error) => {
                    let want =
                        if fault == Fault::Panic { Code::Internal } else { Code::Unavailable };
                    assert_eq!((fails, error.code()), (true, want), "{error}");
                }
            }
        });
        assert!(runs > 10, "{runs} runs");
    }
}

#[test]
#[should_panic(
    expected = "call 1 was to fail and was not made: 1 calls this time, 2 without a fault"
)]
fn a_sweep_whose_fault_is_not_met_is_none() {
    sweep("mem", MemFs::default, Fault::Fail(Code::Unavailable), |host, fails| {
        let _ = host.stat("mem://box/");
        if !fails {
            let _ = host.stat("mem://box/");
        }
    });
}

#[test]
#[should_panic(expected = "the scenario makes no call")]
fn a_sweep_without_a_call_is_none() {
    sweep("mem", MemFs::default, Fault::Panic, |_, _| {});
}

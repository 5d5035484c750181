//! The memory of files open for writing, which all files of a process share: a process of its own.

#[allow(dead_code, reason = "the store of `writing`, which does more with it")]
#[path = "writing/store.rs"]
mod store;

use store::{atomic, parts, store};
use tf_fs_object_store::Process;
use tf_fs_plugin::prelude::*;

#[test]
fn files_open_for_writing_keep_to_the_budget() {
    const BUDGET: usize = 3 << 20;
    let in_parts = store(atomic().with_parts(parts()));
    let whole = store(atomic());
    let process = Process::current("mem", 2, BUDGET).unwrap();
    let budget = &process.budget;

    // The writer waits for parts, so that the file can be larger than the memory.
    let mut writer = in_parts.create("f").unwrap();
    for _ in 0..200 {
        writer.append(&[1; 100_000]).unwrap();
        assert!(budget.used() <= BUDGET, "{}", budget.used());
    }
    writer.close().unwrap();
    drop(writer);
    assert_eq!(in_parts.bytes("f").unwrap().len(), 20_000_000);
    assert_eq!(budget.used(), 0);

    // A file that has to be in memory as a whole is refused, and its memory is free again.
    let mut large = whole.create("large").unwrap();
    let appended = (0..200).try_for_each(|_| large.append(&[1; 100_000]));
    let error = appended.unwrap_err();
    assert_eq!(error.code(), Code::ResourceExhausted, "{error:#}");
    assert!(error.message().contains("memory budget of 3145728 bytes"), "{error:#}");
    assert_eq!(large.close().unwrap_err().code(), Code::ResourceExhausted);
    assert_eq!(budget.used(), 0);
    assert_eq!(whole.bytes("large"), None);

    // A small file is written although others hold all memory: this thread may be what they wait for.
    let _all = budget.try_reserve(BUDGET).unwrap();
    let mut small = whole.create("small").unwrap();
    small.append(&[1; 100_000]).unwrap();
    small.close().unwrap();
    let mut writer = in_parts.create("g").unwrap();
    for _ in 0..50 {
        writer.append(&[1; 100_000]).unwrap();
    }
    writer.close().unwrap();
    assert_eq!(in_parts.bytes("g").unwrap().len(), 5_000_000);
}

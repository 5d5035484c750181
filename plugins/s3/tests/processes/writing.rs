//! Files open for writing, and the ends and forks of processes.

use super::one_at_a_time;
use std::time::Duration;
use tf_fs_plugin::Code;
use tf_plugin_s3_tests::abi::{Ended, in_fork};
use tf_plugin_s3_tests::{Store, content, eventually, host};

const MIB: usize = 1 << 20;

#[test]
fn a_forked_child_leaves_its_parents_files_alone() {
    let _alone = one_at_a_time();
    let store = Store::with("writing-fork", &[("write_part_bytes", "5MiB")]);
    for (size, flush) in [(100, false), (11 * MIB, false), (6 * MIB, true)] {
        let bytes = content(size, 1);
        let mut file = host().new_writable_file(store.uri("file")).unwrap();
        file.append(&bytes).unwrap();
        if flush {
            file.flush().unwrap();
        }
        // What the parent sends in the background has arrived.
        let parts = if size > 10 * MIB { 2 } else { 0 };
        let stored =
            || store.uploads(store.bucket()).iter().map(|upload| upload.parts.len()).sum::<usize>();
        assert!(eventually(Duration::from_secs(10), || stored() == parts));
        store.quiet();
        store.reset_log();
        let mut slot = Some(file);
        let (ended, took) = in_fork(Duration::from_secs(10), || {
            let mut file = slot.take().unwrap();
            let answers = [file.append(b"x"), file.flush(), file.sync(), file.close()];
            let told = file.tell().map(drop);
            drop(file);
            let codes: Vec<_> = answers
                .into_iter()
                .chain([told])
                .map(|answer| {
                    answer.map_or_else(|error| format!("{:?}", error.code()), |()| "OK".into())
                })
                .collect();
            codes.join(" ")
        })
        .unwrap();
        let refused = vec![format!("{:?}", Code::FailedPrecondition); 5].join(" ");
        assert_eq!(ended, Ended::Answered(refused), "{size}");
        assert!(took < Duration::from_secs(1), "{took:?}");
        // The child has not aborted, completed or sent anything.
        assert_eq!(store.log().len(), 0, "{:?}", store.counts());

        let mut file = slot.unwrap();
        file.append(b"and more").unwrap();
        file.close().unwrap();
        assert_eq!(store.get("file"), Some([&bytes[..], b"and more"].concat()), "{size}");
        assert_eq!(store.open_uploads(), [""; 0]);
    }
}

#[test]
fn a_forked_child_writes_files_of_its_own() {
    let _alone = one_at_a_time();
    let store = Store::with("writing-child", &[("write_part_bytes", "5MiB")]);
    let bytes = content(11 * MIB, 1);
    let mut file = host().new_writable_file(store.uri("parent")).unwrap();
    file.append(&bytes).unwrap();
    let (ended, _) = in_fork(Duration::from_secs(20), || {
        let mut file = host().new_writable_file(store.uri("child")).unwrap();
        file.append(&bytes).unwrap();
        file.close().map_or_else(|error| error.to_string(), |()| "stored".into())
    })
    .unwrap();
    assert_eq!(ended, Ended::Answered("stored".into()));
    assert_eq!(store.get("child").as_ref(), Some(&bytes));
    file.close().unwrap();
    assert_eq!(store.get("parent").as_ref(), Some(&bytes));
}

#[test]
fn forks_while_files_are_written_end_well() {
    let _alone = one_at_a_time();
    // At any moment of the parent's threads.
    let store = Store::with("writing-forks", &[("write_part_bytes", "5MiB")]);
    let bytes = content(11 * MIB, 1);
    for round in 0..20 {
        let mut slot = host().new_writable_file(store.uri("file")).ok();
        slot.as_mut().unwrap().append(&bytes).unwrap();
        std::thread::sleep(Duration::from_millis(round));
        let (ended, _) = in_fork(Duration::from_secs(10), || {
            drop(slot.take());
            let mut file = host().new_writable_file(store.uri("child")).unwrap();
            file.append(b"child").unwrap();
            file.close().map_or_else(|error| error.to_string(), |()| "stored".into())
        })
        .unwrap();
        assert_eq!(ended, Ended::Answered("stored".into()), "{round}");
        slot.unwrap().close().unwrap();
        assert_eq!(store.get("file").as_ref(), Some(&bytes));
    }
    assert_eq!(store.open_uploads(), [""; 0]);
}

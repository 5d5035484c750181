//! Sixteen threads on one host.

use crate::full::Full;
use crate::support::code;
use std::sync::atomic::{AtomicUsize, Ordering};
use tf_fs_plugin::Code;
use tf_plugin_testing::filesystem::Host;

const THREADS: usize = 16;
const ROUNDS: usize = 60;

#[test]
fn all_operations_from_all_threads() {
    let host = Host::load::<Full>().expect("loaded");
    let created = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (host, created) = (&host, &created);
            scope.spawn(move || {
                let dir = format!("full://h/t{thread}");
                host.create_dir(&dir).expect("its own");
                for round in 0..ROUNDS {
                    let name = |tail: &str| format!("{dir}/{round}{tail}");
                    let content = name("").into_bytes().repeat(round);
                    host.write_file(name(""), &content).expect("written");
                    assert!(host.read_file(name("")).expect("there") == content);
                    host.copy_file(name(""), name("c")).expect("copied");
                    host.rename_file(name("c"), name("d")).expect("renamed");
                    assert_eq!(host.stat(name("d")).expect("there").length, content.len() as u64);
                    if !content.is_empty() {
                        let region = host.new_read_only_memory_region_from_file(name("d"));
                        assert!(region.expect("mapped").to_vec() == content);
                    }
                    let mut writer = host.new_appendable_file(name("")).expect("opened");
                    writer.append(b"!").expect("appended");
                    host.delete_file(name("d")).expect("deleted");
                    writer.close().expect("closed");
                    let transaction =
                        host.get_or_start_transaction_for_path(name("")).expect("started");
                    host.end_transaction(&transaction).expect("ended");
                    // All of them want the same directory.
                    match host.create_dir(format!("full://h/shared{round}")) {
                        Ok(()) => drop(created.fetch_add(1, Ordering::Relaxed)),
                        Err(error) => assert_eq!(error.code(), Code::AlreadyExists),
                    }
                    assert_eq!(code(host.stat("full://h/none")), Code::NotFound);
                    host.flush_caches();
                }
                assert_eq!(host.get_children(&dir).expect("listed").len(), ROUNDS);
            });
        }
    });
    let shared = host.get_matching_paths("full://h/shared*").expect("listed");
    assert_eq!(shared.len(), ROUNDS);
    assert!(created.load(Ordering::Relaxed) >= ROUNDS);
    host.check();
}

#[test]
fn one_file_read_by_all() {
    let host = Host::load::<Full>().expect("loaded");
    let content: Vec<u8> = (0..100_000_u32).map(|index| (index * 31 % 251) as u8).collect();
    host.write_file("full://h/a", &content).expect("written");
    let file = host.new_random_access_file("full://h/a").expect("opened");
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (file, content) = (&file, &content);
            scope.spawn(move || {
                for round in 0..200 {
                    let offset = (thread * 6007 + round * 499) % (content.len() + 100);
                    let n = round * 13;
                    let end = (offset + n).min(content.len());
                    let read = file.read(offset as u64, n).expect("read");
                    assert!(read == content[offset.min(end)..end], "{offset} {n}");
                }
            });
        }
    });
}

#[test]
fn a_writer_may_move_between_threads() {
    let host = Host::load::<Full>().expect("loaded");
    let mut file = host.new_writable_file("full://h/a").expect("opened");
    for index in 0..8_u8 {
        file = std::thread::scope(|scope| {
            let work = scope.spawn(move || {
                file.append(&[b'0' + index]).expect("appended");
                file
            });
            work.join().expect("no panic")
        });
    }
    file.close().expect("closed");
    assert_eq!(host.read_file("full://h/a").expect("there"), b"01234567");
}

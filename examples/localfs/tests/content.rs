//! The content of files where it depends on the machine: buffers, full disks, odd names, many writers.
//! `tests/conformance` checks that what is written can be read.

mod common;

use common::{TestDir, code, read_at};
use localfs::LocalFs;
use tf_fs_plugin::prelude::*;

fn set(fs: &LocalFs, name: &str, value: i64) {
    let option = FilesystemOption::new(name, OptionValues::Int(vec![value]));
    fs.set_filesystem_configuration_option(&option).unwrap();
}

/// Returns bytes in which every position differs from its neighbours.
fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i ^ (i >> 8) ^ (i >> 16)) as u8).collect()
}

#[test]
fn a_file_is_there_from_its_creation_on() {
    for area in TestDir::both() {
        let (name, other) = (area.uri("file"), area.uri("other"));
        let (uri, other) = (Uri::new(&name), Uri::new(&other));
        let fs = &area.fs;
        let mut writer = fs.new_writable_file(uri).unwrap();
        assert_eq!(writer.tell().unwrap(), 0);
        assert!(fs.path_exists(uri).unwrap());
        assert_eq!(fs.get_file_size(uri).unwrap(), 0);
        assert!(!fs.is_directory(uri).unwrap());
        assert_eq!(code(fs.create_dir(uri)), Code::AlreadyExists);
        let reader = fs.new_random_access_file(uri).unwrap();
        writer.append(b"ab").unwrap();
        assert_eq!(read_at(&reader, 0, 5), b"", "it is in the buffer");
        writer.flush().unwrap();
        assert_eq!(read_at(&reader, 0, 5), b"ab", "an open reader sees what was flushed");
        fs.copy_file(uri, other).unwrap();
        assert_eq!(area.read("other"), b"ab");
        fs.rename_file(uri, other).unwrap();
        writer.append(b"cd").unwrap();
        writer.sync().unwrap();
        assert_eq!(area.read("other"), b"abcd", "the writer writes to the file, not to the name");
        fs.delete_file(other).unwrap();
        writer.append(b"ef").unwrap();
        writer.close().unwrap();
        assert_eq!(area.names("."), [""; 0]);
    }
}

#[test]
fn two_appenders_lose_nothing() {
    for area in TestDir::both() {
        let name = area.uri("file");
        let mut writers = [0, 1].map(|_| area.fs.new_appendable_file(Uri::new(&name)).unwrap());
        for round in 0..10 {
            for writer in &mut writers {
                writer.append(&[round; 3]).unwrap();
                writer.flush().unwrap();
            }
        }
        let expected: Vec<u8> = (0..10).flat_map(|round| [round; 6]).collect();
        assert_eq!(area.read("file"), expected);
    }
}

#[test]
fn buffers_of_every_size_write_the_same() {
    for capacity in [0, 1, 7, 64, 1 << 20] {
        let area = TestDir::confined();
        set(&area.fs, "write_buffer_bytes", capacity);
        let name = area.uri("file");
        let mut writer = area.fs.new_writable_file(Uri::new(&name)).unwrap();
        let mut expected = Vec::new();
        for len in [0, 1, 2, 5, 7, 8, 63, 64, 65, 1, 0, 1000, 3] {
            let piece = pattern(len);
            writer.append(&piece).unwrap();
            expected.extend_from_slice(&piece);
            assert_eq!(writer.tell().unwrap(), expected.len() as u64);
            let on_disk = area.read("file");
            assert!(expected.starts_with(&on_disk));
            assert!(expected.len() - on_disk.len() <= capacity as usize, "over the buffer");
        }
        writer.close().unwrap();
        assert_eq!(area.read("file"), expected, "{capacity}");
    }
}

#[test]
fn a_writer_that_is_dropped_writes_out() {
    let area = TestDir::confined();
    let name = area.uri("file");
    let mut writer = area.fs.new_writable_file(Uri::new(&name)).unwrap();
    writer.append(b"con").unwrap();
    writer.append(b"tent").unwrap();
    assert_eq!(area.read("file"), b"", "small pieces are gathered");
    drop(writer);
    assert_eq!(area.read("file"), b"content");
}

/// Writes to `/dev/full`, which takes no byte, like a full disk, on every machine.
#[test]
fn a_full_disk() {
    let fs = LocalFs::unconfined();
    let uri = Uri::new(b"local:///dev/full");
    let full = Code::ResourceExhausted;
    // The buffer keeps what could not be written, so each try fails again.
    let mut writer = fs.new_writable_file(uri).unwrap();
    writer.append(b"content").unwrap();
    for _ in 0..2 {
        assert_eq!(code(writer.flush()), full);
        assert_eq!(code(writer.sync()), full);
        assert_eq!(code(writer.close()), full);
    }
    assert_eq!(writer.tell().unwrap(), 7);
    // A piece that does not fit after that is not taken.
    assert_eq!(code(writer.append(&pattern(1 << 20))), full);
    assert_eq!(writer.tell().unwrap(), 7);
    // Without the buffer.
    let mut writer = fs.new_appendable_file(uri).unwrap();
    assert_eq!(code(writer.append(&pattern(1 << 20))), full);
    assert_eq!(writer.tell().unwrap(), 0);
    let error = writer.append(&pattern(1 << 20)).unwrap_err();
    assert!(error.to_string().contains("local:///dev/full"), "{error}");
}

/// Limits the size of a file, which then takes only a part of a large piece.
#[test]
fn a_piece_written_half_is_never_taken_for_a_whole() {
    const LIMITED: &str = "LOCALFS_TEST_LIMITED";
    if let Some(path) = std::env::var_os(LIMITED) {
        let uri = [b"local://", path.as_encoded_bytes()].concat();
        let mut writer = LocalFs::unconfined().new_writable_file(Uri::new(&uri)).unwrap();
        writer.append(&pattern(1 << 20)).unwrap();
        let limit = rustix::process::Rlimit { current: Some(3 << 19), maximum: None };
        rustix::process::setrlimit(rustix::process::Resource::Fsize, limit).unwrap();
        let error = writer.append(&pattern(1 << 20)).unwrap_err();
        assert_eq!(error.code(), Code::ResourceExhausted, "{error}");
        for result in [writer.append(b"x"), writer.flush(), writer.sync(), writer.close()] {
            assert_eq!(code(result), Code::DataLoss);
        }
        assert_eq!(code(writer.tell()), Code::DataLoss);
        return;
    }
    // The limit is for a whole process, and its signal kills a process that does not ignore it. The
    // shell ignores it, and so does the process that replaces the shell.
    let area = TestDir::confined();
    let status = std::process::Command::new("sh")
        .args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "a_piece_written_half_is_never_taken_for_a_whole"])
        .env(LIMITED, area.path("file"))
        .stdout(std::process::Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    assert_eq!(area.read("file").len(), 3 << 19);
}

#[test]
fn large_content() {
    for area in TestDir::both() {
        let content = pattern(64 << 20);
        let (name, copy) = (area.uri("large"), area.uri("copy"));
        let mut writer = area.fs.new_writable_file(Uri::new(&name)).unwrap();
        for piece in content.chunks(3_000_000) {
            writer.append(piece).unwrap();
        }
        writer.close().unwrap();
        area.fs.copy_file(Uri::new(&name), Uri::new(&copy)).unwrap();
        let reader = area.fs.new_random_access_file(Uri::new(&copy)).unwrap();
        assert!(read_at(&reader, 0, content.len() + 1) == content);
        assert!(read_at(&reader, 12_345_678, 1_000_000) == content[12_345_678..13_345_678]);
        let region = area.fs.new_read_only_memory_region_from_file(Uri::new(&copy)).unwrap();
        assert!(region.content().to_vec() == content);
        assert!(region.content().as_ptr().addr().is_multiple_of(AlignedRegion::ALIGNMENT));
    }
}

#[test]
fn a_file_whose_length_the_system_does_not_know() {
    let fs = LocalFs::unconfined();
    let uri = Uri::new(b"local:///proc/self/status");
    assert_eq!(fs.get_file_size(uri).unwrap(), 0);
    let reader = fs.new_random_access_file(uri).unwrap();
    let content = read_at(&reader, 0, 1 << 20);
    assert!(content.starts_with(b"Name:") && content.len() > 100);
    // The system returns this one in small pieces.
    let reader = fs.new_random_access_file(Uri::new(b"local:///proc/self/smaps")).unwrap();
    assert!(read_at(&reader, 0, 1 << 20).len() > 1 << 13);
    let area = TestDir::unconfined();
    fs.copy_file(uri, Uri::new(&area.uri("status"))).unwrap();
    assert!(area.read("status").starts_with(b"Name:"));
}

#[test]
fn names_that_are_not_text() {
    for area in TestDir::both() {
        let (dir, file) = (area.uri(b"d\xff"), area.uri(b"d\xff/\xfe\x01\n*"));
        let fs = &area.fs;
        fs.create_dir(Uri::new(&dir)).unwrap();
        let mut writer = fs.new_writable_file(Uri::new(&file)).unwrap();
        writer.append(b"x").unwrap();
        writer.close().unwrap();
        assert_eq!(fs.get_file_size(Uri::new(&file)).unwrap(), 1);
        let children = fs.get_children(Uri::new(&dir)).unwrap();
        assert_eq!(children.iter().collect::<Vec<_>>(), [b"\xfe\x01\n*"]);
        let matches = fs.get_matching_paths(Uri::new(&area.uri(b"d\xff/*"))).unwrap();
        assert_eq!(matches.iter().collect::<Vec<_>>(), [&file[..]]);
        fs.rename_file(Uri::new(&file), Uri::new(&area.uri(b"\x80"))).unwrap();
        fs.delete_recursively(Uri::new(&dir)).unwrap();
        fs.delete_file(Uri::new(&area.uri(b"\x80"))).unwrap();
        assert!(!fs.path_exists(Uri::new(&dir)).unwrap());
    }
}

#[test]
fn names_as_long_as_they_can_be() {
    for area in TestDir::both() {
        let name = area.uri("n".repeat(255));
        let mut writer = area.fs.new_writable_file(Uri::new(&name)).unwrap();
        writer.close().unwrap();
        area.fs.copy_file(Uri::new(&name), Uri::new(&area.uri("c".repeat(255)))).unwrap();
        area.fs.rename_file(Uri::new(&name), Uri::new(&area.uri("r".repeat(255)))).unwrap();
        let long = area.uri("n".repeat(256));
        assert_eq!(code(area.fs.new_writable_file(Uri::new(&long))), Code::FailedPrecondition);
        assert_eq!(area.names("."), ["c".repeat(255), "r".repeat(255)]);
    }
}

/// Copies eight files to one name at a time: the last copy wins, completely.
#[test]
fn copies_to_one_name_from_many_threads() {
    for area in TestDir::both() {
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let area = &area;
                scope.spawn(move || {
                    let (fs, target) = (&area.fs, area.uri("target"));
                    let source = area.uri(format!("source-{thread}"));
                    area.write(&format!("source-{thread}"), [thread as u8; 100]);
                    for _ in 0..50 {
                        fs.copy_file(Uri::new(&source), Uri::new(&target)).unwrap();
                        let copy = fs.new_random_access_file(Uri::new(&target)).unwrap();
                        let copy = read_at(&copy, 0, 200);
                        assert!(copy.len() == 100 && copy.iter().all(|byte| *byte == copy[0]));
                    }
                });
            }
        });
        assert!(!area.names(".").iter().any(|name| name.starts_with('.')));
    }
}

#[test]
fn recursive_deletion_by_many() {
    let area = TestDir::confined();
    for i in 0..20 {
        area.mkdir(&format!("tree/{i}/a/b"));
        for j in 0..20 {
            area.write(&format!("tree/{i}/a/{j}"), "");
        }
    }
    let uri = area.uri("tree");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| match area.fs.delete_recursively(Uri::new(&uri)) {
                Ok(()) => {}
                Err(left) => assert_eq!(left.error.code(), Code::NotFound, "{}", left.error),
            });
        }
    });
    assert_eq!(area.names("."), [""; 0]);
}

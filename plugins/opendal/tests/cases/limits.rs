//! Servers whose disk is full or cannot be written to, and one that takes names of another case for the same.

use crate::common::{children, error, plugin_of, read, uri, write};
use file_servers::{Disk, Kind, Mode, Server};
use tf_fs_plugin::prelude::*;

fn on_each(kinds: &[Kind], disk: Disk, test: impl Fn(Kind, &Server) + Sync) {
    std::thread::scope(|scope| {
        for &kind in kinds {
            let test = &test;
            scope.spawn(move || {
                test(kind, &Server::start_with(kind, Mode { disk, ..Mode::default() }));
            });
        }
    });
}

#[test]
fn a_full_disk_loses_no_file() {
    // Not those that fail by themselves on a full disk, or keep what they have written of the new file.
    let kinds = [Kind::Apache, Kind::OpenSsh, Kind::RcloneSftp, Kind::Vsftpd, Kind::Pyftpdlib];
    on_each(&kinds, Disk::Small, |kind, server| {
        // A part of 64 KiB is streamed by SFTP and FTP.
        for part in ["16MiB", "64KiB"] {
            let fs = plugin_of(
                server,
                &[
                    ("retry_timeout_ms", "300"),
                    ("stall_timeout_ms", "2000"),
                    ("write_part_bytes", part),
                ],
            );
            let name = format!("{}/f", server.uri());
            write(&fs, &name, &[1; 1000]).unwrap_or_else(|error| panic!("{kind:?}: {error:#}"));
            let (code, text) = error(write(&fs, &name, &[2; 2 << 20]));
            println!("{kind:?} {part}: {code:?}: {text}");
            assert!(text.contains(&server.host()), "{kind:?}: {text}");
            if kind == Kind::Apache {
                assert_eq!(code, Code::ResourceExhausted, "{text}");
            }
            assert_eq!(read(&fs, &name).unwrap(), [1; 1000], "{kind:?}");
            assert_eq!(children(&fs, &server.uri()).unwrap(), ["f"], "{kind:?}");
            // There is room again: nothing of the failed file takes it.
            write(&fs, &name, &[3; 200_000]).unwrap_or_else(|error| panic!("{kind:?}: {error:#}"));
            assert_eq!(read(&fs, &name).unwrap(), [3; 200_000], "{kind:?}");
        }
    });
}

#[test]
fn a_read_only_share_refuses_changes() {
    // All that have a disk.
    let kinds: Vec<_> = Kind::ALL.into_iter().filter(|kind| *kind != Kind::WebHdfs).collect();
    on_each(&kinds, Disk::ReadOnly, |kind, server| {
        let fs = plugin_of(server, &[("retry_timeout_ms", "300")]);
        std::fs::write(server.files().join("f"), "there").unwrap();
        std::fs::create_dir(server.files().join("d")).unwrap();
        let at = |name: &str| format!("{}/{name}", server.uri());
        let (f, new) = (at("f"), at("new"));
        for (what, outcome) in [
            ("write", write(&fs, &f, b"x")),
            ("write a new one", write(&fs, &new, b"x")),
            ("delete", fs.delete_file(uri(&f))),
            ("rename", fs.rename_file(uri(&f), uri(&new))),
            ("copy", fs.copy_file(uri(&f), uri(&new))),
            ("create a directory", fs.create_dir(uri(&at("e")))),
            ("delete a directory", fs.delete_dir(uri(&at("d")))),
        ] {
            let (code, text) = error(outcome);
            println!("{kind:?} {what}: {code:?}: {text}");
            assert!(text.contains(&server.host()), "{kind:?}: {what}: {text}");
        }
        let there = std::fs::read_dir(server.files()).unwrap();
        let mut there: Vec<_> = there.map(|entry| entry.unwrap().file_name()).collect();
        there.sort();
        assert_eq!(there, ["d", "f"], "{kind:?}");
        assert_eq!(std::fs::read(server.files().join("f")).unwrap(), b"there", "{kind:?}");
        // rclone keeps what it has seen of a directory for minutes.
        if !matches!(kind, Kind::Rclone | Kind::RcloneSftp) {
            assert_eq!(read(&fs, &f).unwrap(), b"there", "{kind:?}");
        }
    });
}

#[test]
fn another_case_is_the_same_file_where_the_server_says_so() {
    let mode = Mode { ignores_case: true, ..Mode::default() };
    let server = Server::start_with(Kind::Pyftpdlib, mode);
    let fs = plugin_of(&server, &[]);
    let at = |name: &str| format!("{}/{name}", server.uri());
    write(&fs, &at("File"), b"one").unwrap();
    assert_eq!(read(&fs, &at("file")).unwrap(), b"one");
    write(&fs, &at("FILE"), b"two").unwrap();
    assert_eq!(read(&fs, &at("File")).unwrap(), b"two");
    let names = children(&fs, &server.uri()).unwrap();
    assert!(names.len() == 1 && names[0].eq_ignore_ascii_case("file"), "{names:?}");
    // It is not deleted as what is in the way of its new name.
    let renamed = fs.rename_file(uri(&at("file")), uri(&at("fILE")));
    println!("{renamed:?}");
    assert_eq!(read(&fs, &at("file")).unwrap(), b"two");
    let copied = fs.copy_file(uri(&at("file")), uri(&at("FILe")));
    println!("{copied:?}");
    assert_eq!(read(&fs, &at("file")).unwrap(), b"two");
    fs.create_dir(uri(&at("Dir"))).unwrap();
    write(&fs, &at("dir/x"), b"x").unwrap();
    assert_eq!(children(&fs, &at("DIR")).unwrap(), ["x"]);
    fs.delete_recursively(uri(&at("dIR"))).map_err(|left| left.error).unwrap();
    assert!(!fs.path_exists(uri(&at("Dir"))).unwrap());
}

//! What users rely on, on each server of SFTP and FTP, and what differs between them.

use crate::common::{
    FILES, children, content, error, keeps_names, on_each_of, plugin_of, read, read_in, uri, write,
};
use file_servers::{Kind, PASSWORD, Server, USER};
use tf_fs_plugin::prelude::*;

/// Runs a test on a new server of each kind, all at the same time.
fn on_each(test: impl Fn(Kind, &Server, &str) + Sync) {
    on_each_of(&FILES, |kind, server| test(kind, server, &server.uri()));
}

#[test]
fn names_are_exact() {
    let names = [
        "a b",
        " front",
        "100%",
        "p%2Fq",
        "h#i",
        "ü",
        "q?r",
        "semi;c",
        "lt<x>",
        "quote'x\"",
        "star*",
        "[br]",
        "colon:x",
        "~tilde",
        "-dash",
        "日本",
        ".hidden",
        "UPPER",
        "upper",
        "a=b; c",
    ];
    on_each(|kind, server, root| {
        let fs = plugin_of(server, &[]);
        fs.create_dir(uri(&format!("{root}/d"))).unwrap();
        keeps_names(kind, &fs, server, root, &names, names.to_vec());
    });
}

/// More than is held in memory, and more than one part of a read.
#[test]
fn large_files_are_streamed() {
    let large = content(20 << 20);
    on_each(|kind, server, root| {
        let fs = plugin_of(
            server,
            &[
                ("read_part_bytes", "1MiB"),
                ("write_part_bytes", "1MiB"),
                ("memory_budget_bytes", "16MiB"),
            ],
        );
        let name = format!("{root}/large");
        write(&fs, &name, &large).unwrap_or_else(|error| panic!("{kind:?}: {error:#}"));
        assert!(std::fs::read(server.files().join("large")).unwrap() == large, "{kind:?}");
        for piece in [300_000, 40 << 20] {
            assert!(read_in(&fs, &name, piece).unwrap() == large, "{kind:?}");
        }
        let file = fs.new_random_access_file(uri(&name)).unwrap();
        let mut memory = [0; 100];
        let mut buf = ReadBuf::from_slice(&mut memory);
        file.read_at((20 << 20) - 10, &mut buf).unwrap();
        assert_eq!(buf.filled(), &large[large.len() - 10..], "{kind:?}");
        write(&fs, &format!("{root}/empty"), b"").unwrap();
        assert_eq!(read(&fs, &format!("{root}/empty")).unwrap(), b"", "{kind:?}");
        // A copy through this process.
        fs.copy_file(uri(&name), uri(&format!("{root}/copy"))).unwrap();
        assert!(std::fs::read(server.files().join("copy")).unwrap() == large, "{kind:?}");
        // Nothing else is left.
        let there = std::fs::read_dir(server.files()).unwrap();
        let mut there: Vec<_> = there.map(|entry| entry.unwrap().file_name()).collect();
        there.sort();
        assert_eq!(there, ["copy", "empty", "large"], "{kind:?}");
    });
}

#[test]
fn a_tree_is_listed_and_deleted() {
    on_each(|kind, server, root| {
        let fs = plugin_of(server, &[]);
        for name in ["t/empty", "t/s/u", "t2"] {
            fs.recursively_create_dir(uri(&format!("{root}/{name}"))).unwrap();
        }
        for name in ["t/a", "t/s/b", "t/s/u/c", "t2/d"] {
            write(&fs, &format!("{root}/{name}"), b"x").unwrap();
        }
        assert_eq!(children(&fs, &format!("{root}/t")).unwrap(), ["a", "empty", "s"], "{kind:?}");
        assert!(fs.is_directory(uri(&format!("{root}/t/empty"))).unwrap(), "{kind:?}");
        assert!(!fs.is_directory(uri(&format!("{root}/t/a"))).unwrap(), "{kind:?}");
        let found = fs.get_matching_paths(uri(&format!("{root}/t*/*/?"))).unwrap();
        assert_eq!(
            found.iter().collect::<Vec<_>>(),
            [format!("{root}/t/s/b").as_bytes(), format!("{root}/t/s/u").as_bytes()],
            "{kind:?}"
        );
        for full in [
            fs.delete_dir(uri(&format!("{root}/t/s"))),
            fs.delete_file(uri(&format!("{root}/t/s"))),
            write(&fs, &format!("{root}/t"), b"x"),
        ] {
            assert_eq!(error(full).0, Code::FailedPrecondition, "{kind:?}");
        }
        assert_eq!(read(&fs, &format!("{root}/t/s/u/c")).unwrap(), b"x", "{kind:?}");
        fs.rename_file(uri(&format!("{root}/t")), uri(&format!("{root}/moved"))).unwrap();
        assert_eq!(read(&fs, &format!("{root}/moved/s/u/c")).unwrap(), b"x", "{kind:?}");
        fs.delete_recursively(uri(&format!("{root}/moved"))).map_err(|left| left.error).unwrap();
        let files = server.files();
        assert!(!files.join("moved").exists() && files.join("t2/d").exists(), "{kind:?}");
        for name in ["none", "none/below", "none/"] {
            let outcome = children(&fs, &format!("{root}/{name}"));
            assert_eq!(error(outcome).0, Code::NotFound, "{kind:?}: {name}");
        }
    });
}

#[test]
fn files_are_replaced_and_appended_to() {
    on_each(|kind, server, root| {
        let fs = plugin_of(server, &[]);
        let name = format!("{root}/log");
        write(&fs, &name, b"before").unwrap();
        write(&fs, &name, b"one ").unwrap();
        for word in ["two ", "three"] {
            let mut file = fs.new_appendable_file(uri(&name)).unwrap();
            file.append(word.as_bytes()).unwrap();
            file.close().unwrap();
        }
        assert_eq!(read(&fs, &name).unwrap(), b"one two three", "{kind:?}");
    });
}

#[test]
fn a_change_of_an_open_file_is_an_error() {
    on_each(|kind, server, root| {
        let options = [("read_part_bytes", "64KiB"), ("read_concurrency", "1")];
        let fs = plugin_of(server, &options);
        let name = format!("{root}/f");
        write(&fs, &name, &content(4 << 20)).unwrap();
        let file = fs.new_random_access_file(uri(&name)).unwrap();
        let mut memory = [0; 10];
        file.read_at(0, &mut ReadBuf::from_slice(&mut memory)).unwrap();
        write(&plugin_of(server, &[]), &name, &content(3 << 20)).unwrap();
        let mut buf = ReadBuf::from_slice(&mut memory);
        let (code, text) = error(file.read_at(2 << 20, &mut buf));
        assert_eq!(code, Code::FailedPrecondition, "{kind:?}: {text}");
        assert!(text.contains("changed while it was open"), "{kind:?}: {text}");
    });
}

#[test]
fn wrong_credentials_are_told_and_not_shown() {
    for kind in [Kind::RcloneSftp, Kind::Pyftpdlib] {
        let server = Server::with_password(kind);
        let own = plugin_of(&server, &[]);
        let name = format!("{}/f", server.uri());
        write(&own, &name, b"x").unwrap_or_else(|error| panic!("{kind:?}: {error:#}"));
        for options in [
            [("user", USER), ("password", "planted-wrong")],
            [("user", "other"), ("password", PASSWORD)],
        ] {
            let fs = plugin_of(&server, &options);
            for outcome in [
                read(&fs, &name).map(drop),
                write(&fs, &name, b"y"),
                children(&fs, &server.uri()).map(drop),
            ] {
                let (code, text) = error(outcome);
                assert_eq!(code, Code::Unauthenticated, "{kind:?}: {text}");
                assert!(text.contains("beside the url of this server"), "{kind:?}: {text}");
                assert!(!text.contains("planted") && !text.contains(PASSWORD), "{kind:?}: {text}");
            }
        }
        assert_eq!(std::fs::read(server.files().join("f")).unwrap(), b"x", "{kind:?}");
    }
}

#[test]
fn a_host_whose_key_is_not_known_gets_nothing() {
    let server = Server::start(Kind::OpenSsh);
    let name = format!("{}/f", server.uri());
    let known = tempfile::NamedTempFile::new().unwrap();
    let settings = server.settings();
    let of = |wanted: &str| settings.iter().find(|(key, _)| *key == wanted).unwrap().1.clone();
    let (url, user, key_file) = (of("url"), of("user"), of("key_file"));
    let common = [("url", &*url), ("user", &*user), ("key_file", &*key_file)];
    let unknown = known.path().display().to_string();
    for (key, value, part) in [
        ("known_hosts", &*unknown, "ssh-keyscan"),
        ("host_key", "SHA256:planted", "somebody may be between"),
    ] {
        let fs = crate::common::plugin(&[&common[..], &[(key, value)]].concat());
        let (code, text) = error(write(&fs, &name, b"x"));
        assert_eq!(code, Code::Unavailable, "{text}");
        assert!(text.contains(part) && text.contains("SHA256:"), "{text}");
        assert!(!server.files().join("f").exists());
    }
    // As `ssh-keyscan` writes it.
    let public =
        std::fs::read_to_string(server.files().parent().unwrap().join("host.pub")).unwrap();
    let host = server.host().replace("127.0.0.1", "[127.0.0.1]");
    std::fs::write(known.path(), format!("{host} {public}")).unwrap();
    let fs = crate::common::plugin(&[&common[..], &[("known_hosts", &*unknown)]].concat());
    write(&fs, &name, b"x").unwrap();
}

#[test]
fn links_are_followed() {
    let server = Server::start(Kind::OpenSsh);
    let fs = plugin_of(&server, &[]);
    let files = server.files();
    std::fs::create_dir(files.join("d")).unwrap();
    std::fs::write(files.join("d/f"), "x").unwrap();
    std::os::unix::fs::symlink("d", files.join("to_directory")).unwrap();
    std::os::unix::fs::symlink("d/f", files.join("to_file")).unwrap();
    std::os::unix::fs::symlink("none", files.join("to_nothing")).unwrap();
    let root = server.uri();
    assert_eq!(children(&fs, &root).unwrap(), ["d", "to_directory", "to_file"]);
    assert!(fs.is_directory(uri(&format!("{root}/to_directory"))).unwrap());
    assert_eq!(read(&fs, &format!("{root}/to_directory/f")).unwrap(), b"x");
    assert_eq!(read(&fs, &format!("{root}/to_file")).unwrap(), b"x");
}

#[test]
fn a_line_break_is_no_command() {
    let server = Server::start(Kind::Pyftpdlib);
    let fs = plugin_of(&server, &[]);
    write(&fs, &format!("{}/victim", server.uri()), b"x").unwrap();
    let name = format!("{}/a\r\nDELE /victim", server.uri());
    for outcome in [write(&fs, &name, b"x"), read(&fs, &name).map(drop), fs.delete_file(uri(&name))]
    {
        let (code, text) = error(outcome);
        assert_eq!(code, Code::InvalidArgument, "{text}");
    }
    assert!(server.files().join("victim").exists());
}

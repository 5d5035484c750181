//! What users rely on, on each server, and what differs between them.

use crate::common::{
    KINDS, children, content, error, keeps_names, on_each_of, plugin, read, read_in, uri, write,
};
use azurite::Proxy;
use file_servers::{Kind, PASSWORD, Server, USER};
use tensorflow_opendal::RemoteFilesystem;
use tf_fs_plugin::prelude::*;

/// Runs a test on a new server of each kind, all at the same time.
fn on_each(test: impl Fn(Kind, &Server, &str) + Sync) {
    on_each_of(&KINDS, |kind, server| test(kind, server, &format!("webdav://{}", server.host())));
}

#[test]
fn names_are_exact() {
    let names = [
        "a b",
        "100%",
        "p%2Fq",
        "h#i",
        "ü",
        "q?r",
        "semi;c",
        "plus+x",
        "amp&x",
        "lt<x>",
        "quote'x\"",
        "star*",
        "[br]",
        "colon:x",
        "~tilde",
        "!x",
        "comma,x",
        "a=b",
        "日本",
        ".hidden",
        "UPPER",
        "upper",
    ];
    on_each(|kind, server, root| {
        let fs = plugin(&[]);
        // WsgiDAV cuts the name of a destination there.
        let mut names = names.to_vec();
        names.retain(|name| kind != Kind::Wsgidav || !name.contains(['?', ';']));
        // nginx lists no names with a dot in front.
        let mut listed = names.clone();
        listed.retain(|name| kind != Kind::Nginx || !name.starts_with('.'));
        keeps_names(kind, &fs, server, root, &names, listed);
    });
}

#[test]
fn large_files_are_read_in_parts_and_written_whole() {
    let large = content(20 << 20);
    on_each(|kind, server, root| {
        let fs = plugin(&[("read_part_bytes", "1MiB")]);
        let name = format!("{root}/large");
        write(&fs, &name, &large).unwrap();
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
        // Nothing else is left.
        let mut there: Vec<_> = std::fs::read_dir(server.files())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        there.retain(|name| name != ".DAV");
        there.sort();
        assert_eq!(there, ["empty", "large"], "{kind:?}");
    });
}

#[test]
fn a_tree_is_listed_and_deleted() {
    on_each(|kind, server, root| {
        let fs = plugin(&[]);
        for name in ["t/a", "t/s/b", "t/s/u/c", "t2/d"] {
            write(&fs, &format!("{root}/{name}"), b"x").unwrap();
        }
        fs.create_dir(uri(&format!("{root}/t/empty"))).unwrap();
        assert_eq!(children(&fs, &format!("{root}/t")).unwrap(), ["a", "empty", "s"], "{kind:?}");
        assert!(fs.is_directory(uri(&format!("{root}/t/empty"))).unwrap(), "{kind:?}");
        assert!(!fs.is_directory(uri(&format!("{root}/t/a"))).unwrap(), "{kind:?}");
        let found = fs.get_matching_paths(uri(&format!("{root}/t*/*/?"))).unwrap();
        assert_eq!(
            found.iter().collect::<Vec<_>>(),
            [format!("{root}/t/s/b").as_bytes(), format!("{root}/t/s/u").as_bytes()],
            "{kind:?}"
        );
        let full = fs.delete_dir(uri(&format!("{root}/t/s")));
        assert_eq!(error(full).0, Code::FailedPrecondition, "{kind:?}");
        // A name is not deleted as a file if it is a directory: all in it would be gone.
        let directory = fs.delete_file(uri(&format!("{root}/t/s")));
        assert_eq!(error(directory).0, Code::FailedPrecondition, "{kind:?}");
        let over = write(&fs, &format!("{root}/t"), b"x");
        assert_eq!(error(over).0, Code::FailedPrecondition, "{kind:?}");
        assert_eq!(read(&fs, &format!("{root}/t/s/u/c")).unwrap(), b"x", "{kind:?}");
        let copy = fs.copy_file(uri(&format!("{root}/t/s")), uri(&format!("{root}/t/copy")));
        assert_eq!(error(copy).0, Code::FailedPrecondition, "{kind:?}");
        fs.rename_file(uri(&format!("{root}/t")), uri(&format!("{root}/moved"))).unwrap();
        assert_eq!(read(&fs, &format!("{root}/moved/s/u/c")).unwrap(), b"x", "{kind:?}");
        assert!(fs.is_directory(uri(&format!("{root}/moved/empty"))).unwrap(), "{kind:?}");
        assert!(!server.files().join("t").exists(), "{kind:?}");
        fs.delete_recursively(uri(&format!("{root}/moved"))).map_err(|left| left.error).unwrap();
        assert!(
            !server.files().join("moved").exists() && server.files().join("t2/d").exists(),
            "{kind:?}"
        );
    });
}

#[test]
fn appended_bytes_follow_those_that_are_there() {
    on_each(|kind, _, root| {
        let fs = plugin(&[]);
        let name = format!("{root}/log");
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
fn only_those_with_the_password_come_in() {
    std::thread::scope(|scope| {
        for kind in KINDS {
            scope.spawn(move || {
                let server = Server::with_password(kind);
                let (root, url) =
                    (format!("webdav://{}", server.host()), format!("http://{}", server.host()));
                let own = plugin(&[("url", &*url), ("user", USER), ("password", PASSWORD)]);
                write(&own, &format!("{root}/f"), b"x").unwrap();
                assert_eq!(read(&own, &format!("{root}/f")).unwrap(), b"x", "{kind:?}");
                let wrong =
                    plugin(&[("url", &*url), ("user", USER), ("password", "planted-wrong")]);
                let elsewhere = plugin(&[
                    ("url", "http://127.0.0.1:1"),
                    ("user", USER),
                    ("password", PASSWORD),
                ]);
                for fs in [plugin(&[]), wrong, elsewhere] {
                    for outcome in [
                        read(&fs, &format!("{root}/f")).map(drop),
                        write(&fs, &format!("{root}/g"), b"y"),
                        children(&fs, &root).map(drop),
                        fs.delete_file(uri(&format!("{root}/f"))),
                    ] {
                        let (code, text) = error(outcome);
                        assert_eq!(code, Code::Unauthenticated, "{kind:?}: {text}");
                        assert!(text.contains("set user and password"), "{kind:?}: {text}");
                        assert!(
                            !text.contains("planted") && !text.contains(PASSWORD),
                            "{kind:?}: {text}"
                        );
                    }
                }
                assert!(
                    server.files().join("f").exists() && !server.files().join("g").exists(),
                    "{kind:?}"
                );
            });
        }
    });
}

#[test]
fn a_directory_that_is_not_there_is_not_found() {
    on_each(|kind, _, root| {
        let fs = plugin(&[]);
        for name in ["none", "none/below", "none/"] {
            let outcome = children(&fs, &format!("{root}/{name}"));
            assert_eq!(error(outcome).0, Code::NotFound, "{kind:?}: {name}");
            assert!(!fs.path_exists(uri(&format!("{root}/{name}"))).unwrap(), "{kind:?}: {name}");
        }
        write(&fs, &format!("{root}/f"), b"x").unwrap();
        assert!(!fs.path_exists(uri(&format!("{root}/f/"))).unwrap(), "{kind:?}");
        assert!(!fs.path_exists(uri(&format!("{root}/f/below"))).unwrap(), "{kind:?}");
    });
}

#[test]
fn a_change_of_an_open_file_is_an_error() {
    on_each(|kind, _, root| {
        let fs = plugin(&[("read_part_bytes", "64KiB"), ("read_concurrency", "1")]);
        let name = format!("{root}/f");
        write(&fs, &name, &content(4 << 20)).unwrap();
        let file = fs.new_random_access_file(uri(&name)).unwrap();
        let mut memory = [0; 10];
        file.read_at(0, &mut ReadBuf::from_slice(&mut memory)).unwrap();
        // nginx makes ETags of the time in seconds and the length.
        std::thread::sleep(std::time::Duration::from_millis(1_100));
        let mut changed = content(4 << 20);
        changed.reverse();
        write(&plugin(&[]), &name, &changed).unwrap();
        let mut buf = ReadBuf::from_slice(&mut memory);
        let (code, text) = error(file.read_at(3 << 20, &mut buf));
        assert_eq!(code, Code::FailedPrecondition, "{kind:?}: {text}");
        assert!(text.contains("changed while it was open"), "{kind:?}: {text}");
        assert!(buf.filled().is_empty(), "{kind:?}");
    });
}

/// Requests are counted, so that a change of OpenDAL or of the engine shows.
#[test]
fn requests_of_each_operation() {
    let server = Server::start(Kind::Nginx);
    let proxy = Proxy::new(&format!("http://{}", server.host()));
    let root = proxy.endpoint().replace("http", "webdav");
    let requests = |options: &[(&str, &str)], operation: &dyn Fn(&RemoteFilesystem)| {
        let fs = plugin(options);
        proxy.clear();
        operation(&fs);
        let log = proxy.log();
        log.iter()
            .map(|line| line.split(' ').next().unwrap().to_owned())
            .collect::<Vec<_>>()
            .join(" ")
    };
    let name = format!("{root}/d/f");
    write(&plugin(&[]), &name, b"x").unwrap();
    let new = |fs: &RemoteFilesystem| write(fs, &name, b"bytes").unwrap();
    assert_eq!(
        requests(&[], &new),
        "PROPFIND PUT PROPFIND PROPFIND PROPFIND MOVE GET",
        "parent, upload, what is replaced, source, parent, move, result"
    );
    assert_eq!(requests(&[("atomic_put", "1")], &new), "PROPFIND PUT");
    assert_eq!(requests(&[], &|fs| drop(read(fs, &name).unwrap())), "GET");
    assert_eq!(requests(&[], &|fs| assert!(fs.stat(uri(&name)).is_ok())), "PROPFIND");
    assert_eq!(requests(&[], &|fs| drop(children(fs, &format!("{root}/d")).unwrap())), "PROPFIND");
    let large = format!("{root}/large");
    write(&plugin(&[]), &large, &content(20 << 20)).unwrap();
    let gets = requests(&[], &|fs| drop(read(fs, &large).unwrap()));
    // How far it reads ahead depends on the time.
    assert!(gets.split(' ').all(|method| method == "GET") && gets.len() < 40, "{gets}");
}

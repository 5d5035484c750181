//! URLs as they are written, and what HTTP does not support.

use crate::server::{Content, Reply, Server};
use crate::{error, fs, read};
use tf_fs_plugin::prelude::*;

#[test]
fn a_url_is_sent_as_it_was_written() {
    let content = Content::new(10, 0);
    let server = Server::new(move |request, _| content.reply(request));
    for (path, sent) in [
        ("a//b/../c%2F?x=%41&y=/z", "/a//b/../c%2F?x=%41&y=/z"),
        ("./%2e%2E/", "/./%2e%2E/"),
        ("", "/"),
        ("a b/ü", "/a%20b/%C3%BC"),
        ("x?", "/x?"),
    ] {
        assert_eq!(read(&fs(), &server.url(path)).unwrap().len(), 10, "{path}");
        for request in server.take_log() {
            assert_eq!(request.target, sent);
        }
    }
}

#[test]
fn names_without_wildcards_match_themselves() {
    let content = Content::new(10, 0);
    let server = Server::new(move |request, _| match request.target.starts_with("/f") {
        true => content.reply(request),
        false => Reply::new(404),
    });
    let fs = fs();
    let matching = |path: &str| {
        let url = server.url(path);
        let found = fs.get_matching_paths(Uri::new(url.as_bytes()))?;
        Ok::<_, Error>(
            found.iter().map(|name| String::from_utf8(name.to_vec()).unwrap()).collect::<Vec<_>>(),
        )
    };
    for path in ["f", "f?x=1", "f/"] {
        assert_eq!(matching(path).unwrap(), [server.url(path)]);
    }
    assert!(matching("missing").unwrap().is_empty());
    for path in ["f*", "f[ab]", "*/f"] {
        let (code, text) = error(matching(path));
        assert_eq!(code, Code::Unimplemented);
        assert!(text.contains("name each file"), "{text}");
    }
}

#[test]
fn nothing_is_written_and_nothing_is_listed() {
    let server = Server::new(|_, _| Reply::new(200));
    let (fs, url) = (fs(), server.url("f?signature=sesame"));
    let uri = Uri::new(url.as_bytes());
    let outcomes = [
        fs.new_writable_file(uri).map(drop),
        fs.new_appendable_file(uri).map(drop),
        fs.create_dir(uri),
        fs.recursively_create_dir(uri),
        fs.delete_file(uri),
        fs.delete_dir(uri),
        fs.rename_file(uri, uri),
        fs.copy_file(uri, uri),
        fs.get_children(uri).map(drop),
    ];
    for outcome in outcomes {
        let (code, text) = error(outcome);
        assert_eq!(code, Code::Unimplemented);
        assert!(text.contains("; ") && !text.contains("sesame"), "{text}");
    }
    assert!(server.take_log().is_empty());
}

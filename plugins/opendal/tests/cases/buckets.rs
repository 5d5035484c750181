//! Buckets, of which the one in memory runs here, and what the others need.

use crate::common::{buckets, children, content, error, read, read_in, uri, write};
use tf_fs_plugin::prelude::*;

#[test]
fn objects_are_written_listed_and_deleted() {
    let fs = buckets(&[("read_part_bytes", "64KiB"), ("write_part_bytes", "64KiB")]);
    let at = |name: &str| format!("memory://objects/{name}");
    let large = content(1 << 20);
    for name in ["t/a", "t/s/b", "t/s/u/c", "t2/d"] {
        write(&fs, &at(name), name.as_bytes()).unwrap();
    }
    write(&fs, &at("large"), &large).unwrap();
    write(&fs, &at("empty"), b"").unwrap();
    assert!(read_in(&fs, &at("large"), 300_000).unwrap() == large);
    assert_eq!(read(&fs, &at("empty")).unwrap(), b"");
    fs.create_dir(uri(&at("t/none"))).unwrap();
    assert_eq!(children(&fs, &at("t")).unwrap(), ["a", "none", "s"]);
    assert_eq!(children(&fs, "memory://objects").unwrap(), ["empty", "large", "t", "t2"]);
    assert!(fs.is_directory(uri(&at("t/none"))).unwrap());
    assert!(!fs.path_exists(uri(&at("t/x"))).unwrap());
    let found = fs.get_matching_paths(uri(&at("t*/*"))).unwrap();
    let expected = ["t/a", "t/none", "t/s", "t2/d"].map(at);
    assert!(found.iter().eq(expected.iter().map(String::as_bytes)), "{found:?}");
    let mut file = fs.new_appendable_file(uri(&at("t/a"))).unwrap();
    file.append(b" and more").unwrap();
    file.close().unwrap();
    assert_eq!(read(&fs, &at("t/a")).unwrap(), b"t/a and more");
    // OpenDAL's memory has no copies.
    let renamed = fs.rename_file(uri(&at("t/a")), uri(&at("t/new")));
    assert_eq!(error(renamed).0, Code::Unimplemented);
    fs.delete_recursively(uri(&at("t"))).map_err(|left| left.error).unwrap();
    assert_eq!(children(&fs, "memory://objects").unwrap(), ["empty", "large", "t2"]);
    assert_eq!(error(read(&fs, &at("t/a"))).0, Code::NotFound);
    // It is kept when settings change, and another bucket has nothing of it.
    assert_eq!(read(&buckets(&[("read_concurrency", "1")]), &at("t2/d")).unwrap(), b"t2/d");
    assert_eq!(error(read(&fs, "memory://other/t2/d")).0, Code::NotFound);
}

#[test]
fn an_account_needs_its_settings() {
    let (kind, url) = (("type", "b2"), "https://api.backblazeb2.com");
    let key = [("user", "id"), ("password", "planted")];
    let webdav = [("type", "webdav"), ("url", "https://h.example"), key[0], key[1]];
    for (options, part) in [
        (&[][..], "set type to"),
        (&webdav, "set type to"),
        (&[kind, ("url", "ftp://h.example"), key[0], key[1]], "set type to"),
        (&[kind, ("url", url)], "user and password are not set"),
        (&[kind, ("url", url), key[0]], "user and password are not set"),
    ] {
        let (code, text) = error(read(&buckets(options), "b2://bucket/f"));
        assert_eq!(code, Code::InvalidArgument, "{text}");
        assert!(text.contains(part) && text.contains("b2"), "{text}");
        assert!(!text.contains("planted"), "{text}");
    }
    for (url, part) in [
        ("https://h.example", "which b2:// needs"),
        ("https://api.backblazeb2.com", "bucket_id is not set"),
    ] {
        let fs = buckets(&[("type", "b2"), ("url", url), key[0], key[1]]);
        let (code, text) = error(read(&fs, "b2://bucket/f"));
        assert_eq!(code, Code::InvalidArgument, "{text}");
        assert!(text.contains(part), "{text}");
    }
}

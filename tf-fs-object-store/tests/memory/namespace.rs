//! Everything by name.

use crate::store::{Contents, Memory, Plugin, name, plugin};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tf_fs_object_store::{Client as _, Connection};
use tf_fs_plugin::prelude::*;

#[test]
fn a_key_that_no_store_takes_is_refused_before_its_directories_are_looked_at() {
    assert!(Memory::name("b", &"k".repeat(1024)).is_ok());
    let error = Memory::name("b", &"deep/".repeat(200_000)).unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    assert_eq!(
        error.message(),
        "mem://b/…: the key has 1000000 bytes, but the store allows 1024; shorten it"
    );
}

#[test]
fn directories_are_what_keys_imply() {
    let plugin = plugin(&["d/a", "d/e/f", "d/e/g", "d.x", "top"]);
    let connection = &plugin.0;
    let children = |key| {
        let entries = connection.get_children(&name(key)).unwrap();
        entries.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect::<Vec<_>>()
    };
    assert_eq!(children(""), ["d", "d.x", "top"]);
    assert_eq!(children("d"), ["a", "e"]);
    assert!(connection.is_directory(&name("d/e")).unwrap());
    assert!(!connection.is_directory(&name("d.x")).unwrap());
    assert_eq!(connection.stat(&name("d/e/f")).unwrap(), {
        FileStatistics::file(5).with_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1))
    });
    assert_eq!(connection.stat(&name("d/x")).unwrap_err().code(), Code::NotFound);
    let found = connection.get_matching_paths(Uri::new(b"mem://b/*/e/?")).unwrap();
    let found: Vec<_> = found.iter().map(|path| path.to_vec()).collect();
    assert_eq!(found, [b"mem://b/d/e/f".to_vec(), b"mem://b/d/e/g".to_vec()]);
    connection.create_dir(&name("new")).unwrap();
    assert_eq!(connection.create_dir(&name("new")).unwrap_err().code(), Code::AlreadyExists);
    assert_eq!(connection.delete_dir(&name("d")).unwrap_err().code(), Code::FailedPrecondition);
    connection.delete_dir(&name("new")).unwrap();
}

#[test]
fn a_store_that_deletes_one_at_a_time_deletes_a_tree() {
    let keys: Vec<String> = (0..10).map(|n| format!("d/{}/{n}", n % 3)).collect();
    let plugin = plugin(&keys.iter().map(String::as_str).chain(["d2"]).collect::<Vec<_>>());
    plugin.0.delete_recursively(&name("d")).unwrap();
    assert_eq!(plugin.requests("delete").len(), 10);
    assert_eq!(plugin.contents().objects.keys().collect::<Vec<_>>(), ["d2"]);
}

#[test]
fn listings_that_go_round_in_circles_end() {
    let plugin = plugin(&["a", "b"]);
    plugin.contents().circles = true;
    assert_eq!(plugin.0.get_children(&name("")).unwrap_err().code(), Code::DataLoss);
}

/// The second connection is made by a thread that changes settings, while another uses the first.
#[test]
fn other_settings_end_what_a_bucket_of_an_older_connection_showed() {
    let plugin = plugin(&["d/k"]);
    plugin.contents().settings.listing_ttl = Duration::from_secs(60);
    let first = &plugin.0;
    let renewed = |before: &Connection<Memory>, keep: bool| {
        before.renewed(Arc::clone(&before.process), before.client.clone(), |_, _, _| keep)
    };
    let second = renewed(first, true);
    first.get_children(&name("d")).unwrap();
    plugin.contents().objects.clear();
    assert!(second.path_exists(&name("d/k")).unwrap(), "it is remembered");
    let third = renewed(&second, false);
    assert!(!third.path_exists(&name("d/k")).unwrap());
}

/// Keys whose components TensorFlow cannot list: `.` and `..`, on which its `walk` never ends, empty ones, and those with
/// a NUL. A user of `os.path.join("s3://b/run", "./logs")` makes one.
const ODD: [&str; 14] = [
    "d/.", "d/..", "d/./x", "d/../x", "d//x", "d///", "d/n\0/x", "d/n\0", "d/s/./x", "./x", "../x",
    ".", "/x", "\0",
];
const EVEN: [&str; 6] = ["d/...", "d/.h", "d/l\nf", "d/ok", "d/s/ok", "top"];

#[test]
fn keys_that_cannot_be_listed_hide_no_others_and_can_be_named() {
    for (ttl, page) in [(0, 3), (60, 3), (60, 1000)] {
        let plugin = plugin(&[&ODD[..], &EVEN[..]].concat());
        plugin.contents().settings.listing_ttl = Duration::from_secs(ttl);
        plugin.contents().page = Some(page);
        let connection = &plugin.0;
        for _ in 0..2 {
            assert_eq!(plugin.children("").unwrap(), ["d", "top"]);
            assert_eq!(plugin.children("d").unwrap(), ["...", ".h", "l\nf", "ok", "s"]);
            assert_eq!(plugin.children("d/s").unwrap(), ["ok"]);
            for (pattern, found) in [
                ("*", &["d", "top"][..]),
                ("d/*", &["d/...", "d/.h", "d/l\nf", "d/ok", "d/s"]),
                ("d/.*", &["d/...", "d/.h"]),
                ("*/?", &["d/s"]),
                ("*/*/x", &[]),
                ("d/*/*", &["d/s/ok"]),
                ("d/./*", &["d/./x"]),
                ("d//*", &["d//x"]),
                ("*/./x", &["d/./x"]),
            ] {
                let found: Vec<_> = found.iter().map(|key| format!("mem://b/{key}")).collect();
                let pattern = format!("mem://b/{pattern}");
                assert_eq!(plugin.glob(&pattern).unwrap(), found, "{pattern}");
            }
            for key in ODD.iter().chain(&EVEN) {
                assert!(connection.path_exists(&name(key)).unwrap(), "{key:?} {ttl}");
                let is_directory = connection.is_directory(&name(key)).unwrap();
                assert_eq!(is_directory, key.ends_with('/'), "{key:?} {ttl}");
                let uri = format!("mem://b/{key}");
                assert!(connection.paths_exist(&[Uri::new(uri.as_bytes())]).remove(0).unwrap());
            }
            for key in ["d/./", "d/../", "d//", "d///", "./", "d/n\0/", "d/s/."] {
                assert!(connection.is_directory(&name(key)).unwrap(), "{key:?} {ttl}");
            }
            assert_eq!(plugin.children("d/.").unwrap(), ["x"]);
            assert_eq!(plugin.children("d/s/.").unwrap(), ["x"]);
            assert_eq!(plugin.children("d//").unwrap(), ["x"]);
            assert!(!connection.path_exists(&name("d/./y")).unwrap());
            assert!(!connection.path_exists(&name("d//y")).unwrap());
        }
        assert_eq!(plugin.read("d//x", 10).unwrap(), b"d//x");
        // None of them is left behind.
        let below: Vec<&str> =
            ODD.iter().chain(&EVEN).copied().filter(|key| key.starts_with("d/")).collect();
        connection.rename_file(&name("d"), &name("e")).unwrap();
        let keys = plugin.keys();
        for key in &below {
            assert!(
                !keys.contains(&(*key).to_owned()) && keys.contains(&key.replacen('d', "e", 1)),
                "{key:?}"
            );
        }
        assert_eq!(keys.len(), ODD.len() + EVEN.len());
        assert_eq!(
            connection.delete_dir(&name("e/.")).unwrap_err().code(),
            Code::FailedPrecondition
        );
        connection.rename_file(&name("e/./x"), &name("e/../y")).unwrap();
        assert_eq!(plugin.children("e/..").unwrap(), ["x", "y"]);
        connection.delete_recursively(&name("e/..")).map_err(|left| left.error).unwrap();
        connection.delete_file(&name("e//x")).unwrap();
        assert_eq!(plugin.keys().len(), keys.len() - 3);
        connection.delete_recursively(&name("e")).map_err(|left| left.error).unwrap();
        assert_eq!(plugin.keys(), ["\0", ".", "../x", "./x", "/x", "top"]);
    }
}

/// A directory that has nothing else is there, and empty.
#[test]
fn a_directory_of_keys_that_cannot_be_listed_is_empty() {
    for key in ["d/./x", "d/..", "d//x", "d/\0"] {
        let plugin = plugin(&[key]);
        assert_eq!(plugin.children("d").unwrap(), [""; 0], "{key:?}");
        assert!(plugin.0.is_directory(&name("d")).unwrap(), "{key:?}");
        assert_eq!(plugin.0.delete_dir(&name("d")).unwrap_err().code(), Code::FailedPrecondition);
        plugin.0.delete_recursively(&name("d")).map_err(|left| left.error).unwrap();
        assert_eq!(plugin.keys(), [""; 0]);
    }
}

/// Returns what each operation by name says of the same objects.
pub(crate) fn operations(plugin: &Plugin) -> Vec<String> {
    let connection = &plugin.0;
    let mut said = Vec::new();
    for key in ["", "d", "d/", "d/a", "d/e", "d.x", "top", "to", "d/e/f", "missing", "deep/x"] {
        let found = connection.stat(&name(key)).map(|stat| (stat.is_directory, stat.length));
        let is_directory = connection.is_directory(&name(key)).map_err(|error| error.code());
        said.push(format!("{key}: {:?} {is_directory:?}", found.map_err(|error| error.code())));
        let children = plugin.children(key).map_err(|error| error.code());
        said.push(format!("{key}: {:?} {children:?}", connection.path_exists(&name(key)).unwrap()));
    }
    let uris = ["mem://b/d/a", "mem://b/d/z", "mem://b/d/e", "mem://b/top", "mem://b/none"];
    let uris: Vec<Uri<'_>> = uris.iter().map(|uri| Uri::new(uri.as_bytes())).collect();
    said.push(format!(
        "{:?}",
        connection.paths_exist(&uris).into_iter().flatten().collect::<Vec<_>>()
    ));
    for pattern in ["*", "d/*", "*/e/?", "d*", "*/*/*", "d/e/f", "none*"] {
        said.push(format!("{pattern}: {:?}", plugin.glob(&format!("mem://b/{pattern}")).unwrap()));
    }
    let mut tell = |what: &str, outcome: Result<()>| {
        said.push(format!(
            "{what}: {:?} {:?}",
            outcome.map_err(|error| error.code()),
            plugin.keys()
        ));
    };
    tell("mkdir d", connection.create_dir(&name("d")));
    tell("mkdir new", connection.create_dir(&name("new")));
    tell("makedirs d/e", connection.recursively_create_dir(&name("d/e")));
    tell("rmdir d", connection.delete_dir(&name("d")));
    tell("rmdir deep", connection.delete_dir(&name("deep")));
    tell("rmdir new", connection.delete_dir(&name("new")));
    tell("rm d", connection.delete_file(&name("d")));
    tell("rm top", connection.delete_file(&name("top")));
    tell("cp d", connection.copy_file(&name("d"), &name("x")));
    tell("cp d/a d/e", connection.copy_file(&name("d/a"), &name("d/e")));
    tell("cp d/a new/a", connection.copy_file(&name("d/a"), &name("new/a")));
    tell("mv none", connection.rename_file(&name("none"), &name("x")));
    tell("mv d/a", connection.rename_file(&name("d/a"), &name("d/b.c")));
    tell("mv d", connection.rename_file(&name("d"), &name("moved")));
    tell("rmtree moved", connection.delete_recursively(&name("moved")).map_err(|left| left.error));
    tell("rmtree none", connection.delete_recursively(&name("none")).map_err(|left| left.error));
    said
}

/// Lists one directory after the other, and looks up one name after the other.
fn walk(plugin: &Plugin) {
    for n in 0..30 {
        for file in 0..=n % 5 {
            plugin.put(&format!("w/{n:02}/{file}"), b"x".to_vec());
        }
        plugin.put(&format!("w/{n:02}.x"), b"x".to_vec());
    }
    assert_eq!(plugin.children("w").unwrap().len(), 60);
    for n in 0..30 {
        assert_eq!(plugin.children(&format!("w/{n:02}")).unwrap().len(), n % 5 + 1, "{n}");
    }
    for n in 0..30 {
        assert!(plugin.0.path_exists(&name(&format!("w/{n:02}"))).unwrap());
        assert!(plugin.0.path_exists(&name(&format!("w/{n:02}.x"))).unwrap());
        assert!(!plugin.0.path_exists(&name(&format!("w/{n:02}.y"))).unwrap());
    }
}

pub(crate) const KEYS: [&str; 10] =
    ["d/a", "d/e/f", "d/e/g", "d/e/h", "d/e/i", "d.x", "d.y", "deep/x/y/z/1", "top", "top2"];

#[test]
fn empty_pages_before_others_hide_nothing() {
    let told = operations(&plugin(&KEYS));
    // The cache changes the requests, not the results.
    for ttl in [0, 60] {
        for empty in [0, 1, 2, 7] {
            let plugin = plugin(&KEYS);
            plugin.contents().empty_pages = empty;
            plugin.contents().settings.listing_ttl = Duration::from_secs(ttl);
            assert_eq!(operations(&plugin), told, "{empty} empty pages, {ttl} s");
            walk(&plugin);
        }
    }
    let plugin = plugin(&KEYS);
    plugin.contents().empty_pages = 1001;
    for error in [
        plugin.children("d").unwrap_err(),
        plugin.0.stat(&name("d")).unwrap_err(),
        plugin.0.stat(&name("d/")).unwrap_err(),
        plugin.0.delete_dir(&name("d")).unwrap_err(),
        plugin.0.delete_recursively(&name("d")).unwrap_err().error,
    ] {
        assert_eq!(error.code(), Code::DataLoss, "{error:#}");
    }
    assert_eq!(plugin.keys().len(), KEYS.len());
}

/// Stores differ from S3: in the order of names, in where a page ends, in what a listing says of itself.
#[test]
fn listings_that_differ_from_those_of_s3_hide_nothing() {
    let told = operations(&plugin(&KEYS));
    type Change = fn(&mut Contents);
    let odd: [(&str, Change); 5] = [
        ("the names are in another order", |store| store.reverse = true),
        ("a prefix is on two pages", |store| store.repeats = 1),
        ("a prefix is on many pages", |store| store.repeats = 9),
        ("the delimiter is ignored", |store| store.flat = true),
        ("no token says how to continue", |store| store.no_tokens = true),
    ];
    for (what, change) in odd {
        for (ttl, page) in [(0, 3), (60, 3), (0, 2), (60, 1000)] {
            let plugin = plugin(&KEYS);
            {
                let mut contents = plugin.contents();
                change(&mut contents);
                contents.settings.listing_ttl = Duration::from_secs(ttl);
                contents.page = Some(page);
            }
            assert_eq!(operations(&plugin), told, "{what}, {ttl} s, {page} names a page");
            walk(&plugin);
        }
    }
    // Without a token and without an order nothing tells where to continue.
    let plugin = plugin(&KEYS);
    plugin.contents().reverse = true;
    plugin.contents().no_tokens = true;
    assert_eq!(plugin.children("d").unwrap(), ["a", "e"]);
    assert_eq!(plugin.children("").unwrap_err().code(), Code::DataLoss);
    // A lookup does not read all of them for ever.
    let plugin =
        crate::store::plugin(&["d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7", "d8", "d9"]);
    plugin.contents().reverse = true;
    plugin.contents().settings.max_listed_names = 5;
    let error = plugin.0.stat(&name("d")).unwrap_err();
    assert_eq!(error.code(), Code::ResourceExhausted, "{error:#}");
    // A prefix that is repeated for ever.
    let plugin = crate::store::plugin(&["d/a", "e/a"]);
    plugin.contents().page = Some(1);
    plugin.contents().repeats = 2000;
    assert_eq!(plugin.children("").unwrap_err().code(), Code::DataLoss);
}

#[test]
fn names_that_were_not_requested_hide_no_others() {
    let told = operations(&plugin(&KEYS));
    let plugin = plugin(&KEYS);
    plugin.contents().empty_pages = 3;
    plugin.contents().strays = true;
    assert_eq!(operations(&plugin), told);
    // They are not looked through for ever.
    let plugin = crate::store::plugin(&KEYS);
    plugin.contents().empty_pages = 1000;
    plugin.contents().strays = true;
    plugin.contents().settings.max_listed_names = 20;
    let error = plugin.0.stat(&name("d.x")).unwrap_err();
    assert_eq!(error.code(), Code::ResourceExhausted, "{error:#}");
    assert_eq!(plugin.requests("list").len(), 21);
}

#[test]
fn a_tree_is_deleted_although_each_deletion_moves_the_pages_that_follow() {
    let keys: Vec<String> = (0..200).map(|n| format!("d/{n:03}")).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).chain(["other"]).collect();
    let plugin = plugin(&keys);
    plugin.contents().shifts = true;
    plugin.contents().page = Some(20);
    plugin.contents().delete_limit = 1000;
    plugin.0.delete_recursively(&name("d")).map_err(|left| left.error).unwrap();
    assert_eq!(plugin.keys(), ["other"]);
    assert!(plugin.requests("list").len() < 40, "{:?}", plugin.requests("list").len());
    // One page needs no second look.
    let before = plugin.requests("list").len();
    plugin.put("d/x", vec![1]);
    plugin.0.delete_recursively(&name("d")).map_err(|left| left.error).unwrap();
    assert_eq!(plugin.requests("list").len(), before + 1);
}

#[test]
fn keys_that_a_response_says_nothing_of_are_deleted_alone() {
    let keys: Vec<String> = (0..20).map(|n| format!("d/{n:02}")).collect();
    let plugin = plugin(&keys.iter().map(String::as_str).collect::<Vec<_>>());
    plugin.contents().delete_limit = 1000;
    plugin.contents().is_quiet = true;
    plugin.0.delete_recursively(&name("d")).map_err(|left| left.error).unwrap();
    assert_eq!(plugin.keys(), [""; 0]);
    assert_eq!(plugin.requests("delete").len(), 20);
    // A key that cannot be deleted alone either is left.
    plugin.put("d/a", vec![1]);
    plugin.put("d/b", vec![1]);
    plugin.contents().undeletable = Some("d/a".into());
    let left = plugin.0.delete_recursively(&name("d")).unwrap_err();
    assert_eq!((left.files, left.dirs), (1, 1), "{:#}", left.error);
    assert_eq!(plugin.keys(), ["d/a"]);
}

#[test]
fn a_copy_is_of_what_is_there_whatever_a_listing_showed() {
    let plugin = plugin(&["d/a", "d/b"]);
    plugin.contents().settings.listing_ttl = Duration::from_secs(60);
    assert_eq!(plugin.children("d").unwrap(), ["a", "b"]);
    plugin.put("d/a", b"new".to_vec());
    plugin.0.copy_file(&name("d/a"), &name("copy")).unwrap();
    plugin.0.rename_file(&name("d/a"), &name("moved")).unwrap();
    for key in ["copy", "moved"] {
        assert_eq!(plugin.read(key, 10).unwrap(), b"new");
    }
}

#[test]
fn equal_versions_are_not_copies() {
    // The version of this store is a counter, so it is the same for objects that have nothing in common.
    let plugin = plugin(&["d/a", "d/b"]);
    plugin.put("e/b", b"xxx".to_vec());
    let error = plugin.0.rename_file(&name("d"), &name("e")).unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition, "{error:#}");
    assert_eq!(plugin.keys(), ["d/a", "d/b", "e/b"]);
    assert_eq!(plugin.read("d/b", 10).unwrap(), b"d/b");
}

#[test]
fn as_many_keys_are_deleted_together_as_the_store_takes() {
    let keys: Vec<String> = (0..70).map(|n| format!("d/{n:02}")).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    for limit in [1, 2, 1000] {
        let plugin = plugin(&keys);
        plugin.contents().delete_limit = limit;
        plugin.contents().page = Some(20);
        plugin.0.delete_recursively(&name("d")).unwrap();
        assert!(plugin.keys().is_empty());
        let together = plugin.requests("many");
        assert!(together.iter().all(|line| line[5..].parse::<usize>().unwrap() <= limit));
        assert_eq!(together.is_empty(), limit == 1, "{limit}");
        let most = plugin.contents().in_flight.1;
        let (least, limit) = if limit == 1 { (10, 16) } else { (2, 4) };
        assert!((least..=limit).contains(&most), "{most} at a time");
    }
    // A store whose first request shows it.
    let plugin = plugin(&keys);
    plugin.contents().delete_limit = 1000;
    plugin.contents().cannot = vec!["many"];
    plugin.0.delete_recursively(&name("d")).unwrap();
    assert_eq!(plugin.requests("delete").len(), 70);
}

#[test]
fn directories_that_have_to_be_empty_are_deleted_after_what_is_in_them() {
    let keys =
        ["d/", "d/a", "d/e/", "d/e/f/", "d/e/f/1", "d/e/f/2", "d/g/", "d/g/3", "d/h/", "d/z"];
    // The files are on pages after the directories.
    for page in [2, 100] {
        let plugin = plugin(&keys);
        plugin.contents().hierarchical = true;
        plugin.contents().delete_limit = 1000;
        plugin.contents().page = Some(page);
        plugin.0.delete_recursively(&name("d")).map_err(|left| left.error).unwrap();
        assert!(plugin.keys().is_empty());
        let deleted = plugin.requests("delete");
        let directories: Vec<_> = deleted.iter().filter(|line| line.ends_with('/')).collect();
        assert_eq!(directories.len(), 5, "each once: {deleted:?}");
    }
    // A name that cannot be deleted keeps its parents, which are not tried.
    let plugin = plugin(&keys);
    plugin.contents().hierarchical = true;
    plugin.contents().page = Some(100);
    plugin.contents().undeletable = Some("d/e/f/1".into());
    let left = plugin.0.delete_recursively(&name("d")).unwrap_err();
    assert_eq!((left.files, left.dirs), (1, 3), "{:#}", left.error);
    assert_eq!(plugin.keys(), ["d/", "d/e/", "d/e/f/", "d/e/f/1"]);
    plugin.contents().undeletable = Some("d/e/f/".into());
    plugin.contents().log.clear();
    let left = plugin.0.delete_recursively(&name("d")).unwrap_err();
    assert_eq!((left.files, left.dirs), (0, 3), "{:#}", left.error);
    assert_eq!(plugin.requests("delete"), ["delete d/e/f/1", "delete d/e/f/"]);
}

#[test]
fn keys_that_a_store_is_too_busy_for_are_deleted_later() {
    let keys = ["d/a", "d/b", "d/c", "d/d"];
    // Two of three attempts, which each say so of all keys but one.
    let busy = plugin(&keys);
    busy.contents().delete_limit = 1000;
    busy.contents().throttled = 2;
    busy.contents().page = Some(10);
    busy.0.delete_recursively(&name("d")).map_err(|left| left.error).unwrap();
    assert!(busy.keys().is_empty());
    assert_eq!(busy.requests("many"), ["many 4", "many 3", "many 2"]);
    let busier = plugin(&keys);
    busier.contents().delete_limit = 1000;
    busier.contents().throttled = 3;
    busier.contents().page = Some(10);
    let left = busier.0.delete_recursively(&name("d")).unwrap_err();
    assert_eq!((left.error.code(), left.files, left.dirs), (Code::Unavailable, 1, 1));
    assert!(left.error.message().contains("(3 attempts)"), "{}", left.error);
    assert_eq!(busier.keys(), ["d/d"]);
}

#[test]
fn a_store_that_stays_too_busy_is_waited_for_once() {
    let keys: Vec<_> = (0..40).map(|i| format!("d/{i:02}")).collect();
    let plugin = plugin(&keys.iter().map(String::as_str).collect::<Vec<_>>());
    plugin.contents().delete_limit = 5;
    plugin.contents().page = Some(100);
    plugin.contents().throttled = usize::MAX;
    let left = plugin.0.delete_recursively(&name("d")).unwrap_err();
    assert_eq!(left.error.code(), Code::Unavailable);
    // Three attempts for each of the four that begin before one has given up, and one for each other.
    assert_eq!(plugin.requests("many").len(), 4 * 3 + 4);
}

#[test]
fn sizes_that_listings_do_not_tell_are_looked_up() {
    let plugin = plugin(&["d/file"]);
    plugin.contents().hides_sizes = true;
    assert_eq!(plugin.0.stat(&name("d/file")).unwrap().length, 6);
    assert_eq!(plugin.requests("get").len(), 1);
    assert_eq!(plugin.read("d/file", 10).unwrap(), b"d/file");
}

#[test]
fn buckets_are_listed_page_by_page() {
    let root = tf_fs_object_store::Name::new("mem", "", "");
    let names = plugin(&[]).0.get_children(&root).unwrap();
    assert_eq!(names.iter().map(<[u8]>::to_vec).collect::<Vec<_>>(), [b"b", b"c"]); // A page may have none although there are more.
    let plugin = plugin(&[]);
    plugin.contents().empty_pages = 3;
    assert_eq!(plugin.0.get_children(&root).unwrap().iter().count(), 2);
    plugin.contents().empty_pages = 2000;
    assert_eq!(plugin.0.get_children(&root).unwrap_err().code(), Code::DataLoss);
}

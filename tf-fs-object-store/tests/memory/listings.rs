//! How many requests names take, and what is remembered of listings.

use crate::store::{Fault, Plugin, name, plugin};
use std::time::Duration;
use tf_fs_object_store::ErrorKind;
use tf_fs_plugin::prelude::*;

/// Returns a store with these keys, pages of a thousand names, and listings that are trusted for `ttl` seconds.
fn with_keys(keys: impl IntoIterator<Item = String>, ttl: u64) -> Plugin {
    let plugin = plugin(&[]);
    plugin.contents().settings.listing_ttl = Duration::from_secs(ttl);
    plugin.contents().page = Some(1000);
    plugin.contents().delete_limit = 1000;
    keys.into_iter().for_each(|key| plugin.put(&key, b"x".to_vec()));
    plugin
}

/// Returns the requests that `work` makes, by kind, in the order of their names.
#[track_caller]
fn requests<T>(plugin: &Plugin, work: impl FnOnce() -> T) -> (T, String) {
    plugin.contents().log.clear();
    let result = work();
    let mut counts = std::collections::BTreeMap::<String, usize>::new();
    for line in plugin.requests("") {
        *counts.entry(line.split(' ').next().unwrap().to_owned()).or_default() += 1;
    }
    let counts: Vec<_> = counts.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    (result, counts.join(", "))
}

fn code<T>(outcome: Result<T>) -> Option<Code> {
    outcome.err().map(|error| error.code())
}

fn codes<T>(outcome: Result<T>) -> Result<T, Code> {
    outcome.map_err(|error| error.code())
}

/// Returns the keys that match a pattern.
fn glob(plugin: &Plugin, pattern: &str) -> Vec<String> {
    let found = plugin.glob(&format!("mem://b/{pattern}")).unwrap();
    found.iter().map(|uri| uri["mem://b/".len()..].to_owned()).collect()
}

#[test]
fn each_question_is_one_listing() {
    let keys = ["d/file", "d/empty", "marked/"].map(str::to_owned);
    let plugin = with_keys(keys, 0);
    let store = &plugin.0;
    for (key, is_directory) in [
        ("d/file", false),
        ("d/empty", false),
        ("d", true),
        ("d/", true),
        ("marked", true),
        ("", true),
    ] {
        let key = &name(key);
        let (found, count) = requests(&plugin, || store.stat(key).unwrap());
        assert_eq!((found.is_directory, &*count), (is_directory, "1 list"), "{key}");
        assert_eq!(requests(&plugin, || store.path_exists(key).unwrap()), (true, count.clone()));
        assert_eq!(requests(&plugin, || store.is_directory(key).unwrap()), (is_directory, count));
    }
    for key in ["missing", "d/missing", "d/file/x", "d/fil", "none/", "d/file/"] {
        let (found, count) = requests(&plugin, || code(store.stat(&name(key))));
        assert_eq!((found, &*count), (Some(Code::NotFound), "1 list"), "{key}");
    }
    for (key, expected, count) in [
        ("nothing", Code::NotFound, "1 get, 1 list"),
        ("d", Code::FailedPrecondition, "1 get, 1 list"),
    ] {
        let (opened, counted) = requests(&plugin, || code(plugin.open(key)));
        assert_eq!((opened, &*counted), (Some(expected), count), "{key}");
    }
}

#[test]
fn siblings_do_not_hide_a_directory() {
    let siblings = (0..250).flat_map(|n| [format!("ckpt-{n:03}"), format!("ckpt.{n:03}/part")]);
    let plugin = with_keys(siblings.chain(["ckpt/model".to_owned()]), 0);
    let stat = |key: &str| {
        requests(&plugin, || codes(plugin.0.stat(&name(key))).map(|stat| stat.is_directory))
    };
    assert_eq!(stat("ckpt"), (Ok(true), "2 list".to_owned()));
    assert_eq!(stat("ckpt-").0, Err(Code::NotFound));
    assert_eq!(stat("ckpt-007"), (Ok(false), "1 list".to_owned()));
    plugin.contents().objects.remove("ckpt/model");
    assert_eq!(stat("ckpt").0, Err(Code::NotFound));
    plugin.put("ckpt", b"whole".to_vec());
    assert_eq!(stat("ckpt"), (Ok(false), "1 list".to_owned()));
}

#[test]
fn a_listing_answers_what_follows_it() {
    let keys = (0..20).map(|n| format!("d/part-{n:02}")).chain(["d/sub/file".to_owned()]);
    let plugin = with_keys(keys, 60);
    let store = &plugin.0;
    let (children, count) = requests(&plugin, || plugin.children("d").unwrap());
    assert_eq!((children.len(), &*count), (21, "1 list"));
    let ((), count) = requests(&plugin, || {
        for n in 0..20 {
            let key = name(&format!("d/part-{n:02}"));
            assert_eq!(store.stat(&key).unwrap().length, 1);
            assert!(!store.is_directory(&key).unwrap());
        }
        assert!(store.is_directory(&name("d/sub")).unwrap());
        assert_eq!(code(store.stat(&name("d/none/missing"))), Some(Code::NotFound));
    });
    assert_eq!(count, "");
    // Each is deleted with one request.
    let ((), count) = requests(&plugin, || {
        (0..5).for_each(|n| store.delete_file(&name(&format!("d/part-{n:02}"))).unwrap());
    });
    assert_eq!(count, "5 delete");
    // A second listing must show new names.
    plugin.put("d/other", b"x".to_vec());
    assert_eq!(plugin.children("d").unwrap().len(), 17);
    // A pattern answers, too.
    let trees = (0..200).flat_map(|n| [format!("d/{n:03}"), format!("t/{}/{n:03}", n % 7)]);
    let plugin = with_keys(trees, 60);
    let (found, count) = requests(&plugin, || {
        let found = [glob(&plugin, "d/*"), glob(&plugin, "t/*/*")].concat();
        found.iter().for_each(|key| assert_eq!(plugin.0.stat(&name(key)).unwrap().length, 1));
        assert!(plugin.0.is_directory(&name("t/3")).unwrap());
        assert_eq!(code(plugin.0.stat(&name("d/999"))), Some(Code::NotFound));
        found.len()
    });
    assert_eq!((found, &*count), (400, "2 list"));
}

#[test]
fn questions_about_all_names_of_a_large_directory_go_on_page_by_page() {
    let plugin = with_keys((0..2500).map(|n| format!("d/{n:04}")), 600);
    assert_eq!(glob(&plugin, "d/0*").len(), 1000);
    let stat = |n: usize| codes(plugin.0.stat(&name(&format!("d/{n:04}")))).map(|stat| stat.length);
    let ((), count) = requests(&plugin, || {
        (900..2500).for_each(|n| assert_eq!(stat(n), Ok(1)));
        assert_eq!(stat(2500), Err(Code::NotFound));
    });
    assert!(["2 list", "3 list", "4 list"].contains(&&*count), "{count}");
    // A few questions are not a walk: each is a request.
    let plugin = with_keys((0..2500).map(|n| format!("e/{n:04}")), 600);
    glob(&plugin, "e/0*");
    let stat = |n: usize| plugin.0.stat(&name(&format!("e/{n:04}"))).unwrap();
    let (_, count) = requests(&plugin, || [0, 1, 1500, 1501].map(stat));
    assert_eq!(count, "2 list");
}

#[test]
fn many_names_are_looked_up_together() {
    let keys = (0..40).map(|n| format!("d/{n:02}")).chain(["e/x/file", "e/y"].map(str::to_owned));
    let plugin = with_keys(keys, 0);
    let mut uris: Vec<String> = (0..50).map(|n| format!("mem://b/d/{n:02}")).collect();
    uris.extend(["e/x", "e/y", "e/z", "", "lone/a"].map(|key| format!("mem://b/{key}")));
    let uris: Vec<Uri<'_>> = uris.iter().map(|uri| Uri::new(uri.as_bytes())).collect();
    let (exist, count) = requests(&plugin, || plugin.0.paths_exist(&uris));
    let exist: Vec<bool> = exist.into_iter().map(Result::unwrap).collect();
    let expected: Vec<bool> = (0..55).map(|n| n < 40 || [50, 51, 53].contains(&n)).collect();
    assert_eq!(exist, expected);
    // One for `d`, one for `e`, and one each for the bucket and the lone name.
    assert_eq!(count, "4 list");
}

#[test]
fn a_pattern_takes_the_way_with_few_requests() {
    // A tree: one listing. Many small directories: a flat listing.
    let tree = with_keys((0..500).map(|n| format!("tree/{}/{}/{n}", n % 20, n / 20 % 6)), 0);
    let (found, count) = requests(&tree, || glob(&tree, "tree/*/*/*").len());
    assert_eq!((found, &*count), (500, "1 list"));
    let lists = |plugin: &Plugin, pattern: &str| {
        let (found, _) = requests(plugin, || glob(plugin, pattern).len());
        (found, plugin.requests("list").len())
    };
    let flat = with_keys((0..3000).map(|n| format!("runs/{:03}/part-{}", n / 10, n % 10)), 0);
    let (found, count) = lists(&flat, "runs/*/part-[35]");
    assert!(found == 600 && count <= 5, "{found} by {count}");
    // Few large ones, of which one matches: one by one.
    let level =
        with_keys((0..20_000).map(|n| format!("runs/{}/deep/part-{}", n / 5000, n % 5000)), 0);
    for (pattern, expected, most) in [
        ("runs/2/*/part-77", 1, 3),
        ("runs/*/*", 4, 8),
        ("runs/*/deep/part-4999", 4, 8),
        ("runs/3/*/*", 5000, 7),
    ] {
        let (found, count) = lists(&level, pattern);
        assert!(found == expected && count <= most, "{pattern}: {found} by {count}");
    }
    // One large directory after many small ones: the flat listing is given up.
    let small = (0..200).map(|n| format!("{n:03}/x"));
    let mixed = with_keys(small.chain((0..30_000).map(|n| format!("150/y{n}"))), 0);
    let (found, count) = lists(&mixed, "*/x");
    assert!(found == 200 && count <= 400, "{found} by {count}");
}

/// Counts files as Python's `gfile.walk` asks.
fn walk(plugin: &Plugin, key: &str) -> usize {
    assert!(plugin.0.is_directory(&name(key)).unwrap());
    let below = plugin.children(key).unwrap().into_iter().map(|child| format!("{key}/{child}"));
    let is_directory = |key: &String| plugin.0.is_directory(&name(key)).unwrap();
    let (directories, files): (Vec<_>, Vec<_>) = below.partition(is_directory);
    files.len() + directories.iter().map(|directory| walk(plugin, directory)).sum::<usize>()
}

#[test]
fn a_walk_needs_few_requests() {
    let marker = ["t/empty/".to_owned()];
    let small = (0..500).map(|n| format!("t/{}/{}/{n}", n % 20, n / 20 % 6)).chain(marker);
    // With thousands of files a request shows a thousand of them. A directory larger than a page is shown whole.
    let many = (0..4000).map(|n| format!("t/{:03}/{n}", n % 400));
    let deep = (0..3500).flat_map(|n| [format!("t/a/{}/{n}", n % 3), format!("t/b/{n}")]);
    let trees: [(Vec<String>, usize, usize); 3] =
        [(small.collect(), 500, 3), (many.collect(), 4000, 8), (deep.collect(), 7000, 24)];
    for (keys, files, most) in trees {
        let plugin = with_keys(keys, 60);
        assert_eq!(walk(&plugin, "t"), files);
        let count = plugin.requests("list").len();
        assert!(count <= most, "{files}: {count}");
    }
}

#[test]
fn destinations_whose_names_begin_alike_are_looked_up_together() {
    let names = ["ckpt.part.data", "ckpt.part.index", "ckpt.data"];
    let keys = names.iter().map(|name| format!("d/{name}.tmp"));
    let plugin = with_keys(keys.chain(["d/ckpt.taken/x".to_owned()]), 60);
    let rename = |from: &str, to: &str| plugin.0.rename_file(&name(from), &name(to));
    let ((), count) = requests(&plugin, || {
        names.iter().for_each(|to| rename(&format!("d/{to}.tmp"), &format!("d/{to}")).unwrap());
    });
    assert_eq!(count, "3 copy, 3 delete, 1 list");
    assert_eq!(code(rename("d/ckpt.data", "d/ckpt.taken")), Some(Code::FailedPrecondition));
    // More of them than one request shows, which is found out once.
    let many = (0..1200).map(|n| format!("many/part.{n:04}"));
    let plugin = with_keys(many.chain(["many/part.9999/x".to_owned()]), 60);
    let rename = |from: &str, to: &str| plugin.0.rename_file(&name(from), &name(to));
    for (from, to, lists) in [("0000", "8000", "2 list"), ("0001", "8001", "1 list")] {
        let (from, to) = (format!("many/part.{from}"), format!("many/part.{to}"));
        let (renamed, count) = requests(&plugin, || codes(rename(&from, &to)));
        assert_eq!((renamed, count), (Ok(()), format!("1 copy, 1 delete, {lists}")));
    }
    let taken = rename("many/part.0002", "many/part.9999");
    assert_eq!(code(taken), Some(Code::FailedPrecondition));
}

#[test]
fn a_directory_is_renamed_as_a_whole_or_not() {
    let keys = || ["d/", "d/a", "d/s/b", "d//odd", "d-1", "d.x/c"].map(str::to_owned);
    let plugin = with_keys(keys(), 60);
    plugin.children("d").unwrap();
    let rename = |from: &str, to: &str| plugin.0.rename_file(&name(from), &name(to));
    // A copy that is refused takes back those that were made, and those that are on their way.
    plugin.inject("copy", [Fault::Waits, Fault::Fails(ErrorKind::Denied)]);
    std::thread::scope(|threads| {
        let renaming = threads.spawn(|| code(rename("d", "e")));
        plugin.wait_for(1);
        std::thread::sleep(Duration::from_millis(50));
        plugin.contents().gate.0 = true;
        assert_eq!(renaming.join().unwrap(), Some(Code::PermissionDenied));
    });
    let before: std::collections::BTreeSet<_> = keys().into();
    assert!(plugin.keys().iter().eq(&before), "{:?}", plugin.keys());
    for key in ["e/a", "e"] {
        assert_eq!(code(plugin.0.stat(&name(key))), Some(Code::NotFound), "{key}");
    }
    // All is copied, but not all is deleted.
    plugin.inject("many", [Fault::Fails(ErrorKind::Denied)]);
    let error = rename("d", "f").unwrap_err();
    assert!(format!("{error:#}").contains("rename it again"), "{error:#}");
    assert_eq!(plugin.keys().len(), 10);
    plugin.0.delete_recursively(&name("f")).map_err(|left| left.error).unwrap();
    rename("d", "new/place").unwrap();
    let after = ["d-1", "d.x/c", "new/place/", "new/place//odd", "new/place/a", "new/place/s/b"];
    assert_eq!(plugin.keys(), after);
    for (src, dst) in [("new", "new/x"), ("new/place", "new"), ("new", "d-1"), ("new", "")] {
        assert_eq!(code(rename(src, dst)), Some(Code::FailedPrecondition), "{src} {dst}");
    }
    // A file whose deletion is refused is there twice.
    plugin.inject("delete", [Fault::Fails(ErrorKind::Denied)]);
    let error = rename("d-1", "d-2").unwrap_err();
    assert!(format!("{error:#}").contains("the source could not be deleted"), "{error:#}");
    assert_eq!(plugin.keys()[..2], ["d-1", "d-2"]);
}

#[test]
fn a_tree_that_cannot_be_listed_to_the_end_waits_for_the_deletions_under_way() {
    let plugin = with_keys((0..1500).map(|n| format!("d/{n:04}")), 0);
    plugin.inject("many", [Fault::Waits]);
    plugin.contents().faults.insert("list", [None, Some(Fault::Fails(ErrorKind::Denied))].into());
    std::thread::scope(|threads| {
        let deleting = threads.spawn(|| plugin.0.delete_recursively(&name("d")).unwrap_err());
        plugin.wait_for(1);
        std::thread::sleep(Duration::from_millis(50));
        plugin.contents().gate.0 = true;
        let left = deleting.join().unwrap();
        assert_eq!((left.error.code(), left.dirs), (Code::PermissionDenied, 1));
    });
    assert_eq!(plugin.keys().len(), 500);
}

#[test]
fn a_directory_that_this_process_emptied_can_be_removed_once() {
    let plugin = with_keys(["tmp/a", "tmp/b"].map(str::to_owned), 60);
    plugin.0.delete_file(&name("tmp/a")).unwrap();
    plugin.0.rename_file(&name("tmp/b"), &name("final")).unwrap();
    assert_eq!(code(plugin.0.stat(&name("tmp"))), Some(Code::NotFound));
    plugin.0.delete_dir(&name("tmp")).unwrap();
    assert_eq!(code(plugin.0.delete_dir(&name("tmp"))), Some(Code::NotFound));
    assert_eq!(plugin.keys(), ["final"]);
    let left = plugin.0.delete_recursively(&name("tmp")).unwrap_err();
    assert_eq!((left.error.code(), left.files, left.dirs), (Code::NotFound, 0, 1));
    let left = plugin.0.delete_recursively(&name("")).unwrap_err();
    assert_eq!(left.error.code(), Code::FailedPrecondition);
    assert!(left.error.message().contains("this would empty the bucket"), "{}", left.error);
    assert_eq!(plugin.keys(), ["final"]);
}

#[test]
fn requests_that_need_not_wait_for_others_are_made_at_once() {
    type Work = fn(&Plugin) -> bool;
    let trees = || (0..80).map(|n| format!("d/{}/{n}", n % 4));
    let exist: Work = |plugin| {
        let uris = ["d/0/0", "e/x", "f/x", "g/x"].map(|key| format!("mem://b/{key}"));
        let uris: Vec<_> = uris.iter().map(|uri| Uri::new(uri.as_bytes())).collect();
        plugin.0.paths_exist(&uris).into_iter().flatten().eq([true, false, false, false])
    };
    let cases: [(&str, usize, usize, Work); 3] = [
        ("list", 0, 4, exist),
        // A lookup of the source, one of the destination, and then the copies.
        ("copy", 1, 16, |plugin| plugin.0.rename_file(&name("d"), &name("e")).is_ok()),
        // The second page is listed while the first is deleted.
        ("many", 0, 2, |plugin| plugin.0.delete_recursively(&name("d")).is_ok()),
    ];
    for (kind, first, count, work) in cases {
        let plugin = with_keys(trees(), 0);
        plugin.contents().page = Some(40);
        let faults = (0..first + count).map(|n| (n >= first).then_some(Fault::Waits));
        plugin.contents().faults.insert(kind, faults.collect());
        std::thread::scope(|threads| {
            let working = threads.spawn(|| work(&plugin));
            plugin.wait_for(count);
            plugin.contents().gate.0 = true;
            assert!(working.join().unwrap(), "{kind}");
        });
    }
}

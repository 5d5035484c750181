//! Entries that the cache keeps, and entries that it drops.

use super::*;

const TTL: Duration = Duration::from_secs(3600);

fn name(key: &str) -> Name {
    Name::new("mem", "b", key)
}

fn known(size: u64) -> ObjectMeta {
    ObjectMeta::new(size).with_etag("\"e\"".to_owned())
}

/// Returns a listing. `x/` is a directory, `x` an object of one byte.
fn listed(directory: &str, children: &[&str]) -> ListedRange {
    let mut children: Vec<Child> = children
        .iter()
        .map(|child| Child {
            name: child.trim_end_matches('/').into(),
            object: (!child.ends_with('/')).then(|| known(1)),
            is_directory: child.ends_with('/'),
        })
        .collect();
    children.sort_by(|a, b| a.name.cmp(&b.name));
    ListedRange { directory: directory.into(), children, ..ListedRange::default() }
}

fn holding(directory: &str, children: &[&str]) -> ListingCache {
    let listings = ListingCache::default();
    let began = listings.begin();
    listings.insert(&name(directory), listed(directory, children), began, TTL, false);
    listings
}

#[test]
fn a_listing_answers_for_what_it_showed_and_what_it_did_not_show() {
    let listings = holding("d/", &["a", "s/"]);
    assert_eq!(listings.object(&name("d/a")), Some(known(1)));
    assert_eq!(listings.find(&name("d/a")), Some(Lookup::File(known(1))));
    assert_eq!(listings.find(&name("d/s")), Some(Lookup::Directory));
    assert_eq!(listings.find(&name("d/s/")), Some(Lookup::Directory));
    assert_eq!(listings.find(&name("d/a/")), Some(Lookup::Missing));
    assert_eq!(listings.find(&name("d/x")), Some(Lookup::Missing));
    assert_eq!(listings.find(&name("d/a/x")), Some(Lookup::Missing));
    assert_eq!(listings.find(&name("d/x/y/z")), Some(Lookup::Missing));
    assert_eq!(listings.find(&name("d/s/x")), None);
    assert_eq!(listings.find(&name("d")), None);
    assert_eq!(listings.find(&name("")), None);
    let other = Name::new("mem", "c", "d/a");
    assert_eq!(listings.find(&other), None);
}

#[test]
fn a_part_of_a_listing_answers_for_that_part() {
    let listings = ListingCache::default();
    let part = |names: &str, after: Option<&str>, upto: Option<&str>| ListedRange {
        names: names.into(),
        after: after.map(str::to_owned),
        upto: upto.map(str::to_owned),
        ..listed("d/", &["pb"])
    };
    let began = listings.begin();
    listings.insert(&name("d"), part("p", None, None), began, TTL, false);
    assert_eq!(listings.find(&name("d/pa")), Some(Lookup::Missing));
    assert_eq!(listings.find(&name("d/q")), None);
    listings.insert(&name("d"), part("", Some("pa"), Some("pc")), began, TTL, false);
    for (key, is_known) in
        [("d/pa", false), ("d/pb", true), ("d/pc", false), ("d/pd", false), ("d/a", false)]
    {
        assert_eq!(listings.find(&name(key)).is_some(), is_known, "{key}");
    }
    // The page ended with the directory `pc/`. `pc-1`, which sorts before it, was covered too.
    listings.insert(&name("d"), part("", None, Some("pc/")), began, TTL, false);
    for (key, is_known) in [("d/pc", true), ("d/pc-1", true), ("d/pc0", false), ("d/pd", false)] {
        assert_eq!(listings.find(&name(key)).is_some(), is_known, "{key}");
    }
}

#[test]
fn changes_of_this_process_are_seen_at_once() {
    let listings = holding("d/", &["a", "b", "s/"]);
    listings.invalidate(&name("d/a"));
    assert_eq!(listings.find(&name("d/a")), None);
    assert_eq!(listings.object(&name("d/b")), Some(known(1)));
    listings.invalidate(&name("d/new/x/y"));
    assert_eq!(listings.find(&name("d/new")), None);
    assert_eq!(listings.find(&name("d/new/x")), None);
    listings.invalidate_below(&name("d"));
    assert_eq!(listings.find(&name("d/b")), None);
}

#[test]
fn a_listing_that_began_before_a_change_does_not_hide_it() {
    let listings = ListingCache::default();
    let began = listings.begin();
    listings.invalidate(&name("d/a"));
    listings.insert(&name("d"), listed("d/", &["b"]), began, TTL, false);
    assert_eq!(listings.find(&name("d/a")), None);
    assert_eq!(listings.find(&name("d/b")), Some(Lookup::File(known(1))));
    let began = listings.begin();
    listings.invalidate_below(&name("e"));
    listings.insert(&name("e/f"), listed("e/f/", &["b"]), began, TTL, false);
    assert_eq!(listings.find(&name("e/f/b")), None);
    let began = listings.begin();
    for _ in 0..=MAX_CHANGES {
        listings.invalidate(&name("far/away"));
    }
    listings.insert(&name("g"), listed("g/", &["b"]), began, TTL, false);
    assert_eq!(listings.find(&name("g/b")), None);
    let began = listings.begin();
    listings.clear();
    listings.insert(&name("g"), listed("g/", &["b"]), began, TTL, false);
    assert_eq!(listings.find(&name("g/b")), None);
}

#[test]
fn the_time_of_a_listing_is_over_at_last() {
    let listings = ListingCache::default();
    let began = listings.begin();
    listings.insert(&name("d"), listed("d/", &["a"]), began, Duration::ZERO, false);
    assert_eq!(listings.find(&name("d/a")), None);
    let ttl = Duration::from_millis(30);
    listings.insert(&name("d"), listed("d/", &["a"]), listings.begin(), ttl, false);
    assert!(listings.find(&name("d/a")).is_some());
    std::thread::sleep(ttl);
    assert_eq!(listings.find(&name("d/a")), None);
}

#[test]
fn children_are_given_once_and_only_if_all_are_known() {
    let listings = ListingCache::default();
    listings.insert(&name("d"), listed("d/", &["a"]), listings.begin(), TTL, true);
    assert_eq!(listings.take_children("b", "d/"), Some(vec!["a".into()]));
    assert_eq!(listings.take_children("b", "d/"), None);
    listings.insert(&name("d"), listed("d/", &["a"]), listings.begin(), TTL, true);
    listings.invalidate(&name("d/b"));
    assert_eq!(listings.take_children("b", "d/"), None);
}

#[test]
fn walks_are_told_after_the_time_of_a_listing() {
    let listings = ListingCache::default();
    let children: Vec<String> = (0..SCAN).map(|n| n.to_string()).collect();
    let children: Vec<&str> = children.iter().map(String::as_str).collect();
    let ttl = Duration::from_millis(30);
    listings.insert(&name("d"), listed("d/", &children), listings.begin(), ttl, false);
    for child in &children {
        listings.find(&name(&format!("d/{child}")));
    }
    assert!(!listings.is_scan(&name("d/x")));
    std::thread::sleep(ttl);
    assert!(listings.is_scan(&name("d/x")));
    assert!(!listings.is_scan(&name("e/x")));
    assert!(listings.is_walk(&name("d/x/")) && listings.is_walk(&name("d/x")));
    assert!(!listings.is_walk(&name("d")) && !listings.is_walk(&name("")));
}

#[test]
fn single_names_are_remembered_until_this_process_changes_something_there() {
    let file = || Lookup::File(known(1));
    for (changed, is_kept) in
        [("d/a", false), ("d/a/below", false), ("d", false), ("d/ab", true), ("e", true)]
    {
        let listings = ListingCache::default();
        let began = listings.begin();
        listings.insert_name(&name("d/a"), &file(), began, TTL);
        assert_eq!(listings.find(&name("d/a")), Some(file()));
        listings.invalidate(&name(changed));
        assert_eq!(listings.find(&name("d/a")).is_some(), is_kept, "{changed}");
        // Requested before the change, answered after it.
        listings.insert_name(&name("d/a"), &file(), began, TTL);
        assert_eq!(listings.find(&name("d/a")).is_some(), is_kept, "{changed}");
        listings.insert_absence(&name("d/a"), began, TTL);
        assert_eq!(listings.find(&name("d/a/x")).is_some(), is_kept, "{changed}");
    }
    let listings = ListingCache::default();
    listings.insert_name(&name("gone"), &Lookup::Missing, listings.begin(), Duration::ZERO);
    assert_eq!(listings.find(&name("gone")), None);
    listings.insert_name(&name("gone"), &Lookup::Missing, listings.begin(), TTL);
    assert_eq!(listings.find(&name("gone")), Some(Lookup::Missing));
    listings.invalidate_below(&name(""));
    assert_eq!(listings.find(&name("gone")), None);
}

#[test]
fn a_write_tells_what_is_there() {
    let listings = ListingCache::default();
    let began = listings.begin();
    for directory in ["d", "d/e"] {
        listings.insert_absence(&name(directory), began, TTL);
    }
    assert_eq!(listings.find(&name("d/x/y")), Some(Lookup::Missing));
    listings.record_write(&name("d/e/f"), Some(known(7)), listings.begin(), TTL);
    assert_eq!(listings.find(&name("d/e/f")), Some(Lookup::File(known(7))));
    for directory in ["d", "d/", "d/e", "d/e/"] {
        assert_eq!(listings.find(&name(directory)), Some(Lookup::Directory), "{directory}");
    }
    for missing in ["d/x", "d/e/x", "d/x/y"] {
        assert_eq!(listings.find(&name(missing)), Some(Lookup::Missing), "{missing}");
    }
    // Gone, and with it perhaps the directories: nothing is known of them.
    listings.invalidate(&name("d/e/f"));
    for unknown in ["d", "d/e", "d/e/f"] {
        assert_eq!(listings.find(&name(unknown)), None, "{unknown}");
    }
    assert_eq!(listings.find(&name("d/e/x")), Some(Lookup::Missing));
    // An object beside a directory of its name.
    listings.record_write(&name("a"), Some(known(1)), listings.begin(), TTL);
    listings.record_write(&name("a/b"), Some(known(2)), listings.begin(), TTL);
    listings.record_write(&name("m/"), None, listings.begin(), TTL);
    assert_eq!(listings.find(&name("a")), Some(Lookup::File(known(1))));
    assert_eq!(listings.find(&name("a/b")), Some(Lookup::File(known(2))));
    assert_eq!(listings.find(&name("m/")), Some(Lookup::Directory));
    assert_eq!(listings.find(&name("m")), None);
    listings.record_write(&name("a"), None, listings.begin(), TTL);
    assert_eq!(listings.find(&name("a")), None);
    assert_eq!(listings.find(&name("a/b")), Some(Lookup::File(known(2))));
    listings.record_write(&name("b"), Some(known(1)), listings.begin(), Duration::ZERO);
    assert_eq!(listings.find(&name("b")), None);
}

#[test]
fn two_concurrent_writes_leave_nothing_cached() {
    let listings = ListingCache::default();
    let (first, second) = (listings.begin(), listings.begin());
    listings.record_write(&name("a"), Some(known(1)), first, TTL);
    assert_eq!(listings.find(&name("a")), Some(Lookup::File(known(1))));
    listings.record_write(&name("b"), Some(known(3)), second, TTL);
    assert_eq!(listings.find(&name("b")), Some(Lookup::File(known(3))));
    listings.record_write(&name("a"), Some(known(2)), second, TTL);
    assert_eq!(listings.find(&name("a")), None);
}

#[test]
fn a_write_into_a_directory_keeps_the_entries_of_its_parents() {
    let listings = holding("d/", &["a", "s/"]);
    listings.record_write(&name("d/s/x"), None, listings.begin(), TTL);
    assert_eq!(listings.find(&name("d/s")), Some(Lookup::Directory));
    listings.record_write(&name("d/a/x"), None, listings.begin(), TTL);
    assert_eq!(listings.find(&name("d/a")), None);
    listings.invalidate(&name("d/s/x"));
    assert_eq!(listings.find(&name("d/s")), None);
}

#[test]
fn a_part_of_a_listing_does_not_take_the_place_of_the_whole() {
    let listings = holding("d/", &["a", "pb"]);
    let part = ListedRange { names: "p".into(), upto: Some("pz".into()), ..listed("d/", &["pb"]) };
    assert!(!listings.is_long("b", "d/", "p"));
    listings.insert(&name("d"), part, listings.begin(), TTL, false);
    assert_eq!(listings.find(&name("d/a")), Some(Lookup::File(known(1))));
    assert!(!listings.is_long("b", "d/", "p"));
    let part = ListedRange { names: "p".into(), upto: Some("pz".into()), ..listed("e/", &["pb"]) };
    listings.insert(&name("e"), part, listings.begin(), TTL, false);
    assert!(listings.is_long("b", "e/", "p") && !listings.is_long("b", "e/", "q"));
}

#[test]
fn the_answer_to_the_later_of_two_lookups_is_kept() {
    let listings = ListingCache::default();
    let first = listings.begin();
    std::thread::sleep(Duration::from_millis(2));
    let second = listings.begin();
    listings.insert_name(&name("a"), &Lookup::File(known(2)), second, TTL);
    listings.insert_name(&name("a"), &Lookup::Missing, first, TTL);
    assert_eq!(listings.find(&name("a")), Some(Lookup::File(known(2))));
    listings.insert_absence(&name("a"), first, TTL);
    assert_eq!(listings.find(&name("a")), Some(Lookup::File(known(2))));
    listings.insert(&name("d"), listed("d/", &["new"]), second, TTL, false);
    listings.insert(&name("d"), listed("d/", &["old"]), first, TTL, false);
    listings.insert_absence(&name("d"), first, TTL);
    assert_eq!(listings.find(&name("d/new")), Some(Lookup::File(known(1))));
    assert_eq!(listings.find(&name("d/old")), Some(Lookup::Missing));
    assert_eq!(listings.find(&name("d")), None);
    // The other way round.
    listings.insert_name(&name("b"), &Lookup::Missing, first, TTL);
    listings.insert_name(&name("b"), &Lookup::File(known(2)), second, TTL);
    assert_eq!(listings.find(&name("b")), Some(Lookup::File(known(2))));
}

#[test]
fn a_name_that_is_remembered_gets_its_new_answer_however_many_there_are() {
    let listings = ListingCache::default();
    let began = listings.begin();
    for n in 0..MAX_NAMES {
        listings.insert_name(&name(&n.to_string()), &Lookup::Missing, began, TTL);
    }
    listings.insert_name(&name("too many"), &Lookup::Missing, began, TTL);
    assert_eq!(listings.find(&name("too many")), None);
    listings.insert_name(&name("7"), &Lookup::File(known(2)), listings.begin(), TTL);
    assert_eq!(listings.find(&name("7")), Some(Lookup::File(known(2))));
}

#[test]
fn memory_is_bounded() {
    let listings = ListingCache::default();
    let children: Vec<String> = (0..1000).map(|n| format!("{n:0100}")).collect();
    let children: Vec<&str> = children.iter().map(String::as_str).collect();
    for n in 0..1000 {
        let directory = format!("{n}/");
        listings.insert(
            &name(&directory),
            listed(&directory, &children),
            listings.begin(),
            TTL,
            false,
        );
    }
    let state = listings.read();
    let bytes: usize = state.listings.values().map(|listing| listing.bytes).sum();
    assert!(state.bytes == bytes && bytes <= MAX_BYTES && bytes > MAX_BYTES / 2);
    assert!(state.listings.contains_key(&*id("b", "999/")));
}

//! How often a request is made, and what a store need not have.

use crate::store::{Fault, Plugin, name, plugin};
use std::time::{Duration, Instant};
use tf_fs_object_store::ErrorKind;
use tf_fs_plugin::prelude::*;

/// An operation that makes a request of a kind.
type Operation = fn(&Plugin) -> Result<()>;

/// A request of each kind, by the operation that makes it.
const REQUESTS: [(&str, Operation); 7] = [
    ("get", |plugin| plugin.read("f", 1).map(drop)),
    ("list", |plugin| plugin.children("d").map(drop)),
    ("put", |plugin| plugin.0.create_dir(&name("new"))),
    ("delete", |plugin| plugin.0.delete_file(&name("f"))),
    ("many", |plugin| plugin.0.delete_recursively(&name("d")).map_err(|left| left.error)),
    ("copy", |plugin| plugin.0.copy_file(&name("f"), &name("copy"))),
    ("buckets", |plugin| {
        plugin.0.get_children(&tf_fs_object_store::Name::new("mem", "", "")).map(drop)
    }),
];

fn store() -> Plugin {
    let plugin = plugin(&["f", "d/a", "d/b"]);
    plugin.contents().delete_limit = 10;
    plugin
}

#[test]
fn each_request_is_retried_by_the_kind_of_its_error() {
    for (request, operation) in REQUESTS {
        for (kind, attempts, code) in [
            (ErrorKind::Transient, 3, Code::Unavailable),
            (ErrorKind::InvalidResponse, 3, Code::Unavailable),
            (ErrorKind::Precondition, 1, Code::FailedPrecondition),
            (ErrorKind::Permanent, 1, Code::Unknown),
        ] {
            let plugin = store();
            plugin.inject(request, [Fault::Fails(kind); 9]);
            let error = operation(&plugin).unwrap_err();
            assert_eq!(error.code(), code, "{request}: {error:#}");
            assert_eq!(plugin.requests(request).len(), attempts, "{request} {kind:?}");
        }
        let plugin = store();
        let before = plugin.requests(request).len();
        plugin.inject(request, [Fault::Fails(ErrorKind::Transient); 2]);
        operation(&plugin).unwrap_or_else(|error| panic!("{request}: {error:#}"));
        assert!(plugin.requests(request).len() >= before + 3, "{request}");
    }
}

#[test]
fn an_error_to_retry_immediately_is_retried_whatever_its_kind_and_not_counted() {
    for (request, operation) in REQUESTS {
        for kind in [ErrorKind::Transient, ErrorKind::Denied, ErrorKind::Permanent] {
            let plugin = store();
            plugin.inject(request, [Fault::RetryNow(kind); 20]);
            operation(&plugin).unwrap_or_else(|error| panic!("{request} {kind:?}: {error:#}"));
            // In the end its kind decides.
            let plugin = store();
            plugin.inject(request, [Fault::RetryNow(ErrorKind::Permanent); 200]);
            assert_eq!(operation(&plugin).unwrap_err().code(), Code::Unknown, "{request}");
            assert_eq!(plugin.requests(request).len(), 81, "{request}");
        }
    }
    // A missing object need not be deleted.
    let plugin = store();
    plugin.inject("delete", [Fault::Fails(ErrorKind::NotFound)]);
    plugin.0.delete_file(&name("f")).unwrap();
    let plugin = store();
    plugin.inject("get", [Fault::RetryNow(ErrorKind::NotFound)]);
    assert_eq!(plugin.read("f", 1).unwrap_err().code(), Code::NotFound);
    assert_eq!(plugin.requests("get").len(), 1);
}

#[test]
fn a_request_that_is_never_answered_ends() {
    for (request, operation) in REQUESTS.iter().filter(|(request, _)| *request != "copy") {
        let store = || {
            let plugin = store();
            plugin.contents().settings.stall_timeout = Duration::from_millis(20);
            plugin
        };
        let plugin = store();
        plugin.inject(request, [Fault::Hangs]);
        operation(&plugin).unwrap_or_else(|error| panic!("{request}: {error:#}"));
        let plugin = store();
        plugin.inject(request, [Fault::Hangs; 9]);
        let start = Instant::now();
        assert_eq!(operation(&plugin).unwrap_err().code(), Code::DeadlineExceeded, "{request}");
        assert!(start.elapsed() < Duration::from_secs(20), "{request}");
    }
}

#[test]
fn time_ends_the_attempts_whatever_their_number() {
    for (kind, operation) in REQUESTS {
        for (timeout, is_once) in [(200, false), (0, true)] {
            let plugin = store();
            plugin.contents().settings.max_attempts = 1_000_000;
            plugin.contents().settings.retry_timeout = Duration::from_millis(timeout);
            plugin.inject(kind, [Fault::Fails(ErrorKind::Transient); 10_000]);
            let start = Instant::now();
            let error = operation(&plugin).unwrap_err();
            assert_eq!(error.code(), Code::Unavailable, "{kind}: {error:#}");
            assert!(start.elapsed() < Duration::from_secs(10), "{kind}");
            assert_eq!(plugin.requests(kind).len() == 1, is_once, "{kind} {timeout}");
        }
    }
}

#[test]
fn an_unsupported_operation_is_unimplemented_and_loses_nothing() {
    for (request, operation) in
        REQUESTS.iter().filter(|(request, _)| !["get", "many"].contains(request))
    {
        let plugin = store();
        plugin.contents().cannot = vec![*request];
        let error = operation(&plugin).unwrap_err();
        assert_eq!(error.code(), Code::Unimplemented, "{request}: {error:#}");
        assert_eq!(plugin.keys(), ["d/a", "d/b", "f"], "{request}");
    }
    let plugin = store();
    plugin.contents().cannot = vec!["copy"];
    for (src, dst) in [("f", "c"), ("d", "e")] {
        let error = plugin.0.rename_file(&name(src), &name(dst)).unwrap_err();
        assert_eq!(error.code(), Code::Unimplemented, "{error:#}");
    }
    assert!(plugin.requests("delete").is_empty());
}

#[test]
fn a_store_without_listings_is_read_and_its_files_are_found() {
    let plugin = store();
    plugin.contents().cannot = vec!["list", "put", "delete", "copy"];
    assert_eq!(plugin.read("d/a", 10).unwrap(), b"d/a");
    assert_eq!(plugin.0.stat(&name("f")).unwrap().length, 1);
    assert!(!plugin.0.is_directory(&name("f")).unwrap());
    assert!(plugin.0.path_exists(&name("d/a")).unwrap());
    assert!(!plugin.0.path_exists(&name("d")).unwrap());
    assert_eq!(plugin.0.stat(&name("none")).unwrap_err().code(), Code::NotFound);
    let before = plugin.requests("get").len();
    assert_eq!(plugin.read("none", 1).unwrap_err().code(), Code::NotFound);
    assert_eq!(plugin.requests("get").len(), before + 1);
    let exist = plugin.0.paths_exist(&[Uri::new(b"mem://b/f"), Uri::new(b"mem://b/none")]);
    assert_eq!(exist.into_iter().flatten().collect::<Vec<_>>(), [true, false]);
    assert_eq!(plugin.glob("mem://b/f").unwrap(), ["mem://b/f"]);
    assert_eq!(plugin.glob("mem://b/*").unwrap_err().code(), Code::Unimplemented);
    assert_eq!(plugin.children("d").unwrap_err().code(), Code::Unimplemented);
    assert_eq!(plugin.0.create_dir(&name("new")).unwrap_err().code(), Code::Unimplemented);
    assert_eq!(plugin.0.delete_file(&name("f")).unwrap_err().code(), Code::Unimplemented);
}

#[test]
fn single_objects_are_found_without_permission_to_list() {
    let denied = || {
        let plugin = store();
        plugin.inject("list", [Fault::Fails(ErrorKind::Denied); 9]);
        plugin
    };
    assert_eq!(denied().0.stat(&name("f")).unwrap().length, 1);
    // It may be a directory.
    let error = denied().0.stat(&name("none")).unwrap_err();
    assert_eq!(error.code(), Code::PermissionDenied);
    assert!(
        format!("{error:#}").contains("the permission to list would tell; grant it"),
        "{error:#}"
    );
    let plugin = denied();
    plugin.inject("get", [Fault::Fails(ErrorKind::Denied)]);
    let error = plugin.0.stat(&name("f")).unwrap_err();
    assert!(format!("{error:#}").contains("no permission, or no such object"), "{error:#}");
    assert_eq!(denied().children("d").unwrap_err().code(), Code::PermissionDenied);
}

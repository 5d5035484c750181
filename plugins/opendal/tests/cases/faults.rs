//! A fault at each request of each operation: a retry, or an error, and nothing partial is visible. A writer that is killed
//! before any of its requests leaves the old file or the new one.

use crate::common::{children, content, plugin, read, uri, write};
use azurite::{Fault, Proxy};
use file_servers::{Kind, Server};
use tensorflow_opendal::RemoteFilesystem;
use tf_fs_plugin::prelude::*;

/// A server, and a proxy with faults in front of it.
struct Faulty {
    server: Server,
    proxy: Proxy,
    direct: RemoteFilesystem,
}

impl Faulty {
    fn new(kind: Kind) -> Self {
        let server = Server::start(kind);
        let proxy = Proxy::new(&format!("http://{}", server.host()));
        Self { server, proxy, direct: plugin(&[]) }
    }

    fn direct(&self, key: &str) -> String {
        format!("webdav://{}/{key}", self.server.host())
    }

    fn through(&self, key: &str) -> String {
        format!("{}/{key}", self.proxy.endpoint().replace("http", "webdav"))
    }

    /// Runs `operation` without faults to count its requests, then with each of `faults` at each of them, after `prepare`.
    /// `check` looks at the result, without faults; it gets whether the operation succeeded.
    fn sweep(
        &self,
        faults: &[Fault],
        prepare: impl Fn(&Self),
        operation: impl Fn(&Self, &RemoteFilesystem) -> Result<()>,
        check: impl Fn(&Self, bool),
    ) {
        prepare(self);
        self.proxy.clear();
        operation(self, &plugin(&[])).unwrap();
        check(self, true);
        let requests = self.proxy.log();
        assert!(!requests.is_empty());
        for &fault in faults {
            for (at, request) in requests.iter().enumerate() {
                prepare(self);
                self.proxy.fault(at, 1, fault);
                let outcome = operation(self, &plugin(&[]));
                assert!(self.proxy.log().len() > at, "the fault was not met");
                self.proxy.clear();
                if let Err(error) = &outcome {
                    panic!("{fault:?} at request {at}, {request}: {error:#}");
                }
                check(self, true);
            }
        }
        // From this request on none is served, none gets a response, or none is complete: the process was killed, or the server
        // is gone.
        for fault in [Fault::CutBefore, Fault::CutAfter, Fault::CutRequest] {
            for at in 0..requests.len() {
                prepare(self);
                self.proxy.fault(at, usize::MAX / 2, fault);
                let outcome = operation(self, &plugin(&[("retry_timeout_ms", "0")]));
                self.proxy.clear();
                check(self, outcome.is_ok());
            }
        }
    }
}

/// Returns whether a file is the old or the new one, and the new one if the operation succeeded.
fn is_old_or_new(found: &[u8], old: &[u8], new: &[u8], is_done: bool) -> bool {
    found == new || !is_done && found == old
}

fn writing(kind: Kind, faults: &[Fault]) {
    let new = content(100_000);
    Faulty::new(kind).sweep(
        faults,
        |faulty| write(&faulty.direct, &faulty.direct("d/f"), b"before").unwrap(),
        |faulty, fs| write(fs, &faulty.through("d/f"), &new),
        |faulty, is_done| {
            let found = read(&faulty.direct, &faulty.direct("d/f")).unwrap();
            assert!(is_old_or_new(&found, b"before", &new, is_done), "{} bytes", found.len());
            assert_eq!(children(&faulty.direct, &faulty.direct("d")).unwrap(), ["f"]);
        },
    );
}

#[test]
fn writing_on_apache() {
    writing(Kind::Apache, &[]);
}

#[test]
fn writing_on_nginx() {
    writing(Kind::Nginx, &Fault::ALL);
}

#[test]
fn writing_on_rclone() {
    writing(Kind::Rclone, &[]);
}

#[test]
fn writing_on_wsgidav() {
    writing(Kind::Wsgidav, &[]);
}

#[test]
fn appending() {
    Faulty::new(Kind::Nginx).sweep(
        &Fault::ALL,
        |faulty| write(&faulty.direct, &faulty.direct("f"), b"before").unwrap(),
        |faulty, fs| {
            let name = faulty.through("f");
            let mut file = fs.new_appendable_file(uri(&name))?;
            file.append(b" and after")?;
            file.close()
        },
        |faulty, is_done| {
            let found = read(&faulty.direct, &faulty.direct("f")).unwrap();
            assert!(is_old_or_new(&found, b"before", b"before and after", is_done), "{found:?}");
        },
    );
}

#[test]
fn reading() {
    let body = content(200_000);
    Faulty::new(Kind::Nginx).sweep(
        &Fault::ALL,
        |faulty| write(&faulty.direct, &faulty.direct("f"), &body).unwrap(),
        |faulty, fs| {
            let found = read(fs, &faulty.through("f"))?;
            assert!(found == body);
            Ok(())
        },
        |_, _| (),
    );
}

#[test]
fn renaming() {
    Faulty::new(Kind::Nginx).sweep(
        &Fault::ALL,
        |faulty| {
            let _ = faulty.direct.delete_file(uri(&faulty.direct("new")));
            write(&faulty.direct, &faulty.direct("old"), b"bytes").unwrap();
        },
        |faulty, fs| fs.rename_file(uri(&faulty.through("old")), uri(&faulty.through("new"))),
        |faulty, is_done| {
            let names = children(&faulty.direct, &faulty.direct("")).unwrap();
            assert!(names == ["new"] || !is_done && names == ["old"], "{names:?}");
            assert_eq!(read(&faulty.direct, &faulty.direct(&names[0])).unwrap(), b"bytes");
        },
    );
}

#[test]
fn deleting_and_listing() {
    Faulty::new(Kind::Nginx).sweep(
        &Fault::ALL,
        |faulty| {
            for key in ["d/a", "d/b/c", "d/e"] {
                write(&faulty.direct, &faulty.direct(key), b"x").unwrap();
            }
        },
        |faulty, fs| {
            assert_eq!(children(fs, &faulty.through("d"))?, ["a", "b", "e"]);
            fs.delete_recursively(uri(&faulty.through("d"))).map_err(|left| left.error)
        },
        |faulty, is_done| {
            let is_there = faulty.direct.path_exists(uri(&faulty.direct("d"))).unwrap();
            assert!(!(is_there && is_done));
        },
    );
}

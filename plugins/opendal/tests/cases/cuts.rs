//! A writer that is killed at any moment leaves the old file or the new one: the connection of SFTP, or that of FTP for
//! commands, ends after any number of bytes.

use crate::common::{children, content, plugin_of, read, uri, write};
use file_servers::{Kind, Server};
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use tf_fs_plugin::prelude::*;

/// A proxy that passes on so many bytes of the client in all, or of the server, and then none.
pub(crate) struct Cutter {
    address: SocketAddr,
    pub(crate) left: Arc<AtomicUsize>,
}

impl Cutter {
    fn new(server: SocketAddr) -> Self {
        Self::start(server, false)
    }

    /// Cuts what the server sends.
    pub(crate) fn of_answers(server: SocketAddr) -> Self {
        Self::start(server, true)
    }

    /// Returns host and port.
    pub(crate) fn host(&self) -> String {
        self.address.to_string()
    }

    /// Lets so many bytes pass from now on.
    pub(crate) fn allow(&self, bytes: usize) {
        self.left.store(bytes, Ordering::Relaxed);
    }

    /// Returns how many bytes pass while this runs.
    pub(crate) fn used(&self, run: impl FnOnce()) -> usize {
        self.allow(usize::MAX);
        run();
        usize::MAX - self.left.load(Ordering::Relaxed)
    }

    fn start(server: SocketAddr, of_answers: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let left = Arc::new(AtomicUsize::new(usize::MAX));
        let shared = Arc::clone(&left);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let left = Arc::clone(&shared);
                // Broken connections are its purpose.
                thread::spawn(move || -> std::io::Result<()> {
                    let server = TcpStream::connect(server)?;
                    let (from, to) = if of_answers { (server, client) } else { (client, server) };
                    pass(from, to, &left)
                });
            }
        });
        Self { address, left }
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, left: &AtomicUsize) -> std::io::Result<()> {
    let (mut back, mut answers) = (from.try_clone()?, to.try_clone()?);
    thread::spawn(move || {
        let _ = std::io::copy(&mut answers, &mut back);
        let _ = back.shutdown(Shutdown::Both);
    });
    let mut bytes = [0; 4096];
    loop {
        let n = from.read(&mut bytes)?;
        let take = |left: usize| left.checked_sub(n.min(left));
        let before = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        let sent = n.min(before.unwrap_or(0));
        to.write_all(&bytes[..sent])?;
        if n == 0 || sent < n {
            let _ = from.shutdown(Shutdown::Both);
            return to.shutdown(Shutdown::Both);
        }
    }
}

fn writing(kind: Kind, steps: usize) {
    let server = Server::start(kind);
    let direct = plugin_of(&server, &[]);
    let cutter = Cutter::new(server.host().parse().unwrap());
    let through = server.uri().replace(&server.host(), &cutter.address.to_string());
    let url = server.settings()[0].1.replace(&server.host(), &cutter.address.to_string());
    let new = content(300_000);
    // Both ways to write: at once, and as a stream.
    for part in ["16MiB", "64KiB"] {
        let write_new = || {
            let options = [
                ("url", &*url),
                ("retry_timeout_ms", "0"),
                ("write_part_bytes", part),
                ("connections", "1"),
            ];
            let fs = plugin_of(&server, &options);
            write(&fs, &format!("{through}/d/f"), &new)
        };
        let prepare = || {
            let name = format!("{}/d", server.uri());
            let _ = direct.create_dir(uri(&name));
            write(&direct, &format!("{name}/f"), b"before").unwrap();
        };
        prepare();
        let all = cutter.used(|| write_new().unwrap());
        for step in 0..steps {
            prepare();
            cutter.allow(all * step / steps);
            let outcome = write_new();
            let name = format!("{}/d", server.uri());
            let found = read(&direct, &format!("{name}/f")).unwrap();
            let is_new = found == new;
            assert!(
                is_new || outcome.is_err() && found == b"before",
                "{kind:?} {step}: {}",
                found.len()
            );
            assert_eq!(children(&direct, &name).unwrap(), ["f"], "{kind:?} {step}");
        }
    }
}

#[test]
fn writing_on_openssh() {
    writing(Kind::OpenSsh, 24);
}

#[test]
fn writing_on_rclone_sftp() {
    writing(Kind::RcloneSftp, 12);
}

#[test]
fn writing_on_vsftpd() {
    writing(Kind::Vsftpd, 24);
}

#[test]
fn writing_on_pyftpdlib() {
    writing(Kind::Pyftpdlib, 24);
}

#[test]
fn writing_on_webhdfs() {
    writing(Kind::WebHdfs, 24);
}

/// A connection that was closed while nobody used it is made again.
#[test]
fn an_idle_connection_may_end() {
    for kind in [Kind::OpenSsh, Kind::Pyftpdlib] {
        let server = Server::start(kind);
        let cutter = Cutter::new(server.host().parse().unwrap());
        let through = server.uri().replace(&server.host(), &cutter.address.to_string());
        let url = server.settings()[0].1.replace(&server.host(), &cutter.address.to_string());
        let fs = plugin_of(&server, &[("url", &*url)]);
        write(&fs, &format!("{through}/f"), b"x").unwrap();
        cutter.allow(0);
        // It ends with the next bytes; then all is well again.
        let left = Arc::clone(&cutter.left);
        let heal = thread::spawn(move || {
            thread::sleep(std::time::Duration::from_millis(300));
            left.store(usize::MAX, Ordering::Relaxed);
        });
        assert_eq!(read(&fs, &format!("{through}/f")).unwrap(), b"x", "{kind:?}");
        heal.join().unwrap();
    }
}

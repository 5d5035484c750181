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

/// A proxy that passes on so many bytes of the client in all, and then none.
struct Cutter {
    address: SocketAddr,
    left: Arc<AtomicUsize>,
}

impl Cutter {
    fn new(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let left = Arc::new(AtomicUsize::new(usize::MAX));
        let shared = Arc::clone(&left);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let left = Arc::clone(&shared);
                // Broken connections are its purpose.
                thread::spawn(move || drop(pass(client, server, &left)));
            }
        });
        Self { address, left }
    }
}

fn pass(mut client: TcpStream, server: SocketAddr, left: &AtomicUsize) -> std::io::Result<()> {
    let mut server = TcpStream::connect(server)?;
    let (mut back, mut answers) = (client.try_clone()?, server.try_clone()?);
    thread::spawn(move || {
        let _ = std::io::copy(&mut answers, &mut back);
        let _ = back.shutdown(Shutdown::Both);
    });
    let mut bytes = [0; 4096];
    loop {
        let n = client.read(&mut bytes)?;
        let before = left.load(Ordering::Relaxed);
        let sent = n.min(before);
        server.write_all(&bytes[..sent])?;
        left.store(before - sent, Ordering::Relaxed);
        if n == 0 || sent < n {
            let _ = client.shutdown(Shutdown::Both);
            return server.shutdown(Shutdown::Both);
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
        cutter.left.store(usize::MAX, Ordering::Relaxed);
        write_new().unwrap();
        let all = usize::MAX - cutter.left.load(Ordering::Relaxed);
        for step in 0..steps {
            prepare();
            cutter.left.store(all * step / steps, Ordering::Relaxed);
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
        cutter.left.store(0, Ordering::Relaxed);
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

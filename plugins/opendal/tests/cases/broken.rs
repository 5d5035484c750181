//! Servers of FTP and SFTP that break off, and one of FTP that lists what cannot be a name.

use crate::common::{children, content, error, plugin, plugin_of, read, read_in, uri, write};
use crate::cuts::Cutter;
use file_servers::{Kind, Server};
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tf_fs_plugin::prelude::*;

/// Settings without patience: these servers never get better.
pub(crate) const NO_PATIENCE: [(&str, &str); 2] =
    [("retry_timeout_ms", "0"), ("stall_timeout_ms", "2000")];

/// What a server of FTP sends.
#[derive(Clone)]
struct Ftp {
    /// In response to MLSD.
    listing: Vec<u8>,
    /// In response to RETR, of a file that has ten bytes as MLST says.
    data: &'static [u8],
    /// The most of them at a time.
    most: usize,
    /// After data; none: the connection ends.
    last: &'static str,
    /// How long after an upload it replies.
    late: Duration,
}

impl Default for Ftp {
    fn default() -> Self {
        Self {
            listing: Vec::new(),
            data: b"0123456789",
            most: usize::MAX,
            last: "226 done",
            late: Duration::ZERO,
        }
    }
}

impl Ftp {
    /// Starts it. It ends with the process. Returns its host.
    fn start(self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let host = listener.local_addr().unwrap().to_string();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let server = self.clone();
                // The client may give up.
                std::thread::spawn(move || drop(server.talk(client)));
            }
        });
        host
    }

    fn talk(self, mut client: TcpStream) -> std::io::Result<()> {
        let lines = BufReader::new(client.try_clone()?).lines();
        let passive = TcpListener::bind("127.0.0.1:0")?;
        let port = passive.local_addr()?.port();
        let mut reply = |text: &str| client.write_all(format!("{text}\r\n").as_bytes());
        reply("220 ready")?;
        let mut start = 0;
        for line in lines {
            let line = line?;
            let sent = match line.split(' ').next().unwrap_or_default() {
                "FEAT" => {
                    reply("211-Features:\r\n MLST type*;size*;modify*;\r\n211 End")?;
                    continue;
                }
                "USER" => "230 welcome",
                "PWD" => "257 \"/\"",
                "EPSV" => &*format!("229 Entering (|||{port}|)"),
                "MLST" => "250-Listing\r\n type=file;size=10;modify=20260101000000; /f\r\n250 End",
                "REST" => {
                    start = line[5..].parse().unwrap();
                    "350 go on"
                }
                "TYPE" | "CWD" | "OPTS" => "200 yes",
                "RNFR" => "350 to what",
                "RNTO" | "DELE" => "250 done",
                "STOR" => {
                    reply("150 send it")?;
                    passive.accept()?.0.read_to_end(&mut Vec::new())?;
                    std::thread::sleep(self.late);
                    self.last
                }
                "MLSD" | "RETR" => {
                    reply("150 here it comes")?;
                    let rest = &self.data[std::mem::take(&mut start).min(self.data.len())..];
                    let part = &rest[..self.most.min(rest.len())];
                    let bytes = if line.starts_with("MLSD") { &*self.listing } else { part };
                    passive.accept()?.0.write_all(bytes)?;
                    self.last
                }
                _ => "502 no",
            };
            if sent.is_empty() {
                break;
            }
            reply(sent)?;
        }
        Ok(())
    }
}

/// Names that a directory cannot have, and the last one, which it can.
pub(crate) const ODD: [&str; 9] =
    ["../x", "..", ".", "b/c", "/etc/passwd", "n\0ul", "", "d/", "\\..\\"];

#[test]
fn names_that_cannot_be_are_left_out_of_ftp() {
    let mut listing = String::from("type=cdir; /d\r\nno facts\r\ntype=file;size=1; a\r\n");
    for name in ODD {
        let _ = write!(listing, "type=file;size=1; {name}\r\ntype=dir; {name}\r\n");
    }
    // 10 MB of one name, and of one fact.
    let long = "x".repeat(10 << 20);
    let _ = write!(listing, "type=file;size=1; {long}\r\ntype=file;{long}=1;size=1; e\r\n");
    let mut listing = listing.into_bytes();
    listing.extend_from_slice(b"type=file;size=1; \xff\xfe\r\ntype=file;size=1; z");
    let host = Ftp { listing, ..Ftp::default() }.start();
    let fs = plugin(&NO_PATIENCE);
    assert_eq!(children(&fs, &format!("ftp://{host}/d")).unwrap(), ["\\..\\", "a", "e", "z"]);
}

#[test]
fn data_that_break_off_are_no_file() {
    for (most, last) in [
        (5, "226 done"),
        (5, "426 broken off"),
        (5, ""),
        (5, "999 what"),
        (0, "226 done"),
        (0, "550 gone"),
        (10, "nonsense"),
    ] {
        let host = Ftp { most, last, ..Ftp::default() }.start();
        match read(&plugin(&NO_PATIENCE), &format!("ftp://{host}/f")) {
            // It goes on where the data broke off, or only the connection is lost after all bytes.
            Ok(bytes) => assert!(most > 0 && bytes == b"0123456789", "{most} {last}: {bytes:?}"),
            Err(error) => assert!(error.to_string().contains(&host) && most < 10, "{error:#}"),
        }
    }
    // More bytes than the file has.
    let host = Ftp { data: b"0123456789and more", ..Ftp::default() }.start();
    let bytes = read(&plugin(&NO_PATIENCE), &format!("ftp://{host}/f")).unwrap();
    assert_eq!(bytes, b"0123456789");
}

/// It copies or checks what it has, as its size shows, or has no room for the rest.
#[test]
fn a_server_that_has_all_bytes_may_take_its_time() {
    let host = Ftp { late: Duration::from_secs(7), ..Ftp::default() }.start();
    let name = format!("ftp://{host}/f");
    write(&plugin(&NO_PATIENCE), &name, b"0123456789").unwrap();
    let since = Instant::now();
    let host = Ftp { late: Duration::from_secs(30), ..Ftp::default() }.start();
    let outcome = write(&plugin(&NO_PATIENCE), &format!("ftp://{host}/f"), b"0123456789 and more");
    let (code, text) = error(outcome);
    assert_eq!(code, Code::DeadlineExceeded, "{text}");
    assert!(since.elapsed() < Duration::from_secs(25), "{:?}", since.elapsed());
}

/// A connection of SFTP, or that of FTP for commands, ends after any number of the server's bytes.
fn reading(kind: Kind) {
    const STEPS: usize = 16;
    let server = Server::start(kind);
    let direct = plugin_of(&server, &[]);
    let bytes = content(600_000);
    write(&direct, &format!("{}/d/f", server.uri()), &bytes).unwrap();
    let cutter = Cutter::of_answers(server.host().parse().unwrap());
    let through = server.uri().replace(&server.host(), &cutter.host());
    let url = server.settings()[0].1.replace(&server.host(), &cutter.host());
    let name = format!("{through}/d/f");
    let open = |retries: &str| {
        let options = [("url", &*url), ("retry_timeout_ms", retries), ("read_part_bytes", "64KiB")];
        plugin_of(&server, &options)
    };
    let all = cutter.used(|| assert!(read_in(&open("0"), &name, 100_000).unwrap() == bytes));
    for step in 0..STEPS {
        cutter.allow(all * step / STEPS);
        for found in [read_in(&open("0"), &name, 100_000), read(&open("0"), &name)] {
            assert!(found.is_err() || found.unwrap() == bytes, "{kind:?} {step}");
        }
        let listed = children(&open("0"), &format!("{through}/d"));
        assert!(listed.is_err() || listed.unwrap() == ["f"], "{kind:?} {step}");
        // The network comes back, and nobody notices.
        cutter.allow(all * step / STEPS);
        let heal = Arc::clone(&cutter.left);
        let healed = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(200));
            heal.store(usize::MAX, std::sync::atomic::Ordering::Relaxed);
        });
        let found = read_in(&open("20000"), &name, 100_000);
        assert!(found.unwrap() == bytes, "{kind:?} {step}");
        healed.join().unwrap();
    }
}

#[test]
fn reading_on_openssh() {
    reading(Kind::OpenSsh);
}

#[test]
fn reading_on_rclone_sftp() {
    reading(Kind::RcloneSftp);
}

#[test]
fn reading_on_vsftpd() {
    reading(Kind::Vsftpd);
}

#[test]
fn reading_on_pyftpdlib() {
    reading(Kind::Pyftpdlib);
}

#[test]
fn replies_that_are_none_are_errors() {
    for first in ["", "no FTP at all\r\n", "220-never\r\n", "22", "230 early\r\n421 bye\r\n"] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let host = listener.local_addr().unwrap().to_string();
        std::thread::spawn(move || {
            for mut client in listener.incoming().flatten() {
                let _ = client.write_all(first.as_bytes());
            }
        });
        for scheme in ["ftp", "sftp"] {
            let outcome = plugin(&NO_PATIENCE).get_file_size(uri(&format!("{scheme}://{host}/f")));
            let (code, text) = error(outcome);
            assert!(text.contains(&host) && code != Code::NotFound, "{scheme} {first:?}: {text}");
        }
    }
}

//! A server of SFTP that lists what cannot be a name, and sends other bytes than were requested.

use crate::broken::{NO_PATIENCE, ODD};
use crate::common::{children, error, plugin, read, uri};
use russh::keys::ssh_key::private::Ed25519Keypair;
use russh::keys::{HashAlg, PrivateKey};
use russh::server::{Auth, ChannelOpenHandle, Config, Handler, Msg, Session, run_stream};
use russh::{Channel, ChannelId};
use std::sync::Arc;
use tf_fs_plugin::prelude::*;

/// The types of packets that it knows.
mod kind {
    pub(super) const INIT: u8 = 1;
    pub(super) const VERSION: u8 = 2;
    pub(super) const OPEN: u8 = 3;
    pub(super) const READ: u8 = 5;
    pub(super) const FSTAT: u8 = 8;
    pub(super) const OPENDIR: u8 = 11;
    pub(super) const READDIR: u8 = 12;
    pub(super) const STAT: u8 = 17;
    pub(super) const STATUS: u8 = 101;
    pub(super) const HANDLE: u8 = 102;
    pub(super) const DATA: u8 = 103;
    pub(super) const NAME: u8 = 104;
    pub(super) const ATTRS: u8 = 105;
}

/// What it sends.
#[derive(Clone, Default)]
struct Sftp {
    /// What follows the id in response to the first READDIR.
    names: Vec<u8>,
    /// What follows the id in response to READ, of a file of ten bytes; none: the end of the file.
    data: Vec<u8>,
    /// What has arrived, until it is a packet.
    received: Vec<u8>,
    has_listed: bool,
}

/// Returns bytes with their number in front.
fn text(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u32).to_be_bytes()[..], bytes].concat()
}

/// Returns the attributes of a file with so many bytes.
fn attributes(size: u64) -> Vec<u8> {
    // Its size and its mode.
    let (flags, mode) = (5_u32.to_be_bytes(), 0o100_644_u32.to_be_bytes());
    [&flags[..], &size.to_be_bytes(), &mode].concat()
}

/// Returns the names of a listing.
fn names(names: &[&[u8]]) -> Vec<u8> {
    let mut all = (names.len() as u32).to_be_bytes().to_vec();
    for name in names {
        all.extend([text(name), text(b"as ls -l"), attributes(1)].concat());
    }
    all
}

impl Sftp {
    /// Starts it. It ends with the process. Returns its host, and the fingerprint of its key.
    fn start(self) -> (String, String) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let key = PrivateKey::from(Ed25519Keypair::from_seed(&[7; 32]));
        let fingerprint = key.public_key().fingerprint(HashAlg::Sha256).to_string();
        let config = Arc::new(Config { keys: vec![key], ..Config::default() });
        std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                listener.set_nonblocking(true).unwrap();
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                while let Ok((client, _)) = listener.accept().await {
                    let (config, server) = (Arc::clone(&config), self.clone());
                    tokio::spawn(async move {
                        // The client may give up.
                        if let Ok(session) = run_stream(config, client, server).await {
                            let _ = session.await;
                        }
                    });
                }
            });
        });
        (host, fingerprint)
    }

    /// Returns the response to a packet of this type with this id.
    fn answer(&mut self, kind: u8, id: &[u8]) -> Vec<u8> {
        let status = |code: u32| {
            (kind::STATUS, [&code.to_be_bytes()[..], &text(b"no"), &text(b"")].concat())
        };
        let (kind, rest) = match kind {
            kind::INIT => return [&[0, 0, 0, 5, kind::VERSION][..], &3_u32.to_be_bytes()].concat(),
            kind::OPEN | kind::OPENDIR => (kind::HANDLE, text(b"handle")),
            kind::STAT | kind::FSTAT => (kind::ATTRS, attributes(10)),
            kind::READDIR if !std::mem::replace(&mut self.has_listed, true) => {
                (kind::NAME, self.names.clone())
            }
            kind::READ if !self.data.is_empty() => (kind::DATA, self.data.clone()),
            kind::READ | kind::READDIR => status(1),
            _ => status(0),
        };
        let packet = [&[kind], id, &rest].concat();
        text(&packet)
    }
}

impl Handler for Sftp {
    type Error = russh::Error;

    async fn auth_password(&mut self, _: &str, _: &str) -> std::result::Result<Auth, russh::Error> {
        Ok(Auth::Accept)
    }

    async fn channel_open_session(
        &mut self,
        _: Channel<Msg>,
        reply: ChannelOpenHandle,
        _: &mut Session,
    ) -> std::result::Result<(), russh::Error> {
        reply.accept().await;
        Ok(())
    }

    async fn subsystem_request(
        &mut self,
        channel: ChannelId,
        _: &str,
        session: &mut Session,
    ) -> std::result::Result<(), russh::Error> {
        session.channel_success(channel)
    }

    async fn data(
        &mut self,
        channel: ChannelId,
        data: &[u8],
        session: &mut Session,
    ) -> std::result::Result<(), russh::Error> {
        self.received.extend_from_slice(data);
        while let Some(len) = self.received.first_chunk::<4>() {
            let end = 4 + u32::from_be_bytes(*len) as usize;
            if self.received.len() < end {
                break;
            }
            let packet: Vec<u8> = self.received.drain(..end).skip(4).collect();
            let answer = self.answer(packet[0], &packet[1..5]);
            session.data(channel, answer)?;
        }
        Ok(())
    }
}

/// Returns the plugin for such a server, and its host.
fn on(server: Sftp) -> (impl Filesystem, String) {
    let (host, key) = server.start();
    let (url, user) = (format!("sftp://{host}"), [("user", "me"), ("password", "walnut")]);
    let options = [&NO_PATIENCE[..], &[("url", &*url), ("host_key", &*key)], &user].concat();
    (plugin(&options), url)
}

#[test]
fn names_that_cannot_be_are_left_out() {
    let long = vec![b'x'; 1 << 20];
    let odd = ODD.map(str::as_bytes);
    let all = [&[b"a", &*long, b"\xff\xfe"][..], &odd, &[b"z"]].concat();
    let (fs, root) = on(Sftp { names: names(&all), ..Sftp::default() });
    assert_eq!(children(&fs, &format!("{root}/d")).unwrap(), ["\\..\\", "a", "z"]);
}

#[test]
fn a_listing_that_is_none_is_an_error() {
    let whole = names(&[b"a", b"b"]);
    for listing in [
        // Fewer names than it says, a name with a wrong length, and more than any packet has.
        whole[..whole.len() - 10].to_vec(),
        [&1_u32.to_be_bytes()[..], &u32::MAX.to_be_bytes()].concat(),
        u32::MAX.to_be_bytes().to_vec(),
        vec![0; 5 << 20],
        Vec::new(),
    ] {
        let len = listing.len();
        let (fs, root) = on(Sftp { names: listing, ..Sftp::default() });
        let (code, message) = error(children(&fs, &format!("{root}/d")));
        assert!(code == Code::Unavailable && message.contains(&root), "{len}: {code:?} {message}");
    }
}

#[test]
fn other_bytes_than_were_requested_are_errors() {
    for data in [
        // Too many, a wrong length, and none although the file has ten.
        text(&[b'x'; (32 << 10) + 1]),
        u32::MAX.to_be_bytes().to_vec(),
        text(b""),
        Vec::new(),
    ] {
        let len = data.len();
        let (fs, root) = on(Sftp { data, ..Sftp::default() });
        assert_eq!(fs.get_file_size(uri(&format!("{root}/f"))).unwrap(), 10);
        let (code, message) = error(read(&fs, &format!("{root}/f")));
        assert!(code == Code::Unavailable && message.contains(&root), "{len}: {code:?} {message}");
    }
    // Fewer at a time are not wrong, and neither is a file that has grown.
    for data in [&b"x"[..], b"xxxxxxxxxxx"] {
        let (fs, root) = on(Sftp { data: text(data), ..Sftp::default() });
        assert_eq!(read(&fs, &format!("{root}/f")).unwrap(), b"xxxxxxxxxx");
    }
}

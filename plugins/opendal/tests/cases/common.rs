//! Shared code of the tests: files by name, and the servers.

use file_servers::{Kind, Server};
use tensorflow_opendal::{BucketFilesystem, Buckets, RemoteFilesystem, Remotes};
use tf_fs_plugin::prelude::*;

/// The servers of WebDAV.
pub(crate) const KINDS: [Kind; 4] = [Kind::Apache, Kind::Nginx, Kind::Rclone, Kind::Wsgidav];
/// The servers of SFTP, FTP and WebHDFS.
pub(crate) const FILES: [Kind; 5] =
    [Kind::OpenSsh, Kind::RcloneSftp, Kind::Vsftpd, Kind::Pyftpdlib, Kind::WebHdfs];

/// Settings that let failures show soon.
const IMPATIENT: &[(&str, &str)] = &[
    ("retry_timeout_ms", "20000"),
    ("retry_backoff_ms", "5"),
    ("stall_timeout_ms", "20000"),
    ("listing_ttl_ms", "0"),
];

/// Runs a test on a new server of each kind, all at the same time.
pub(crate) fn on_each_of(kinds: &[Kind], test: impl Fn(Kind, &Server) + Sync) {
    std::thread::scope(|scope| {
        for &kind in kinds {
            let test = &test;
            scope.spawn(move || test(kind, &Server::start(kind)));
        }
    });
}

/// Copies and renames files with these names, of which the server lists some, and looks at them through the plugin and on the server.
pub(crate) fn keeps_names(
    kind: Kind,
    fs: &impl Filesystem,
    server: &Server,
    root: &str,
    names: &[&str],
    mut listed: Vec<&str>,
) {
    for name in names {
        write(fs, &format!("{root}/d/{name}"), name.as_bytes())
            .unwrap_or_else(|error| panic!("{kind:?}: {error:#}"));
    }
    listed.sort_unstable();
    assert_eq!(children(fs, &format!("{root}/d")).unwrap(), listed, "{kind:?}");
    for name in names {
        let file = format!("{root}/d/{name}");
        assert_eq!(read(fs, &file).unwrap(), name.as_bytes(), "{kind:?}");
        assert_eq!(fs.get_file_size(uri(&file)).unwrap(), name.len() as u64, "{kind:?}");
        // The server has it under this very name.
        let there = std::fs::read(server.files().join("d").join(name)).unwrap();
        assert_eq!(there, name.as_bytes(), "{kind:?}: {name}");
    }
    let from = format!("{root}/d/100%");
    fs.copy_file(uri(&from), uri(&format!("{root}/d/c ü%"))).unwrap();
    fs.rename_file(uri(&from), uri(&format!("{root}/e f"))).unwrap();
    assert_eq!(read(fs, &format!("{root}/d/c ü%")).unwrap(), b"100%", "{kind:?}");
    assert_eq!(read(fs, &format!("{root}/e f")).unwrap(), b"100%", "{kind:?}");
    assert_eq!(error(read(fs, &from)).0, Code::NotFound, "{kind:?}");
}

/// Returns the plugin with these options.
pub(crate) fn plugin(options: &[(&str, &str)]) -> RemoteFilesystem {
    let all = [IMPATIENT, options].concat();
    RemoteFilesystem::new_with(Remotes::with(&all).expect("the options are accepted"))
}

/// Returns the plugin for buckets with these options.
pub(crate) fn buckets(options: &[(&str, &str)]) -> BucketFilesystem {
    let all = [IMPATIENT, options].concat();
    BucketFilesystem::new_with(Buckets::with(&all).expect("the options are accepted"))
}

/// Returns the plugin with the settings of this server, and these options.
pub(crate) fn plugin_of(server: &Server, options: &[(&str, &str)]) -> RemoteFilesystem {
    let settings = server.settings();
    let mut all: Vec<_> = settings.iter().map(|(key, value)| (*key, &**value)).collect();
    all.extend(options);
    plugin(&all)
}

pub(crate) fn uri(name: &str) -> Uri<'_> {
    Uri::new(name.as_bytes())
}

pub(crate) fn write(fs: &impl Filesystem, name: &str, content: &[u8]) -> Result<()> {
    let mut file = fs.new_writable_file(uri(name))?;
    file.append(content)?;
    file.close()
}

/// Returns all bytes of a file, in pieces of this size.
pub(crate) fn read_in(fs: &impl Filesystem, name: &str, piece: usize) -> Result<Vec<u8>> {
    let file = fs.new_random_access_file(uri(name))?;
    let (mut bytes, mut memory) = (Vec::new(), vec![0; piece]);
    loop {
        let mut buf = ReadBuf::from_slice(&mut memory);
        file.read_at(bytes.len() as u64, &mut buf)?;
        let n = buf.filled().len();
        bytes.extend_from_slice(&memory[..n]);
        if n < piece {
            return Ok(bytes);
        }
    }
}

pub(crate) fn read(fs: &impl Filesystem, name: &str) -> Result<Vec<u8>> {
    read_in(fs, name, 4 << 20)
}

pub(crate) fn children(fs: &impl Filesystem, name: &str) -> Result<Vec<String>> {
    let entries = fs.get_children(uri(name))?;
    let mut names: Vec<_> =
        entries.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
    names.sort();
    Ok(names)
}

/// Returns code and text of something that has to fail.
#[track_caller]
pub(crate) fn error<T>(outcome: Result<T>) -> (Code, String) {
    match outcome {
        Ok(_) => panic!("it succeeded"),
        Err(error) => (error.code(), format!("{error:#}")),
    }
}

/// Returns bytes that differ from those at neighbouring positions.
pub(crate) fn content(len: usize) -> Vec<u8> {
    (0..len).map(|position| (position % 251) as u8).collect()
}

//! What each server guarantees, asked of the server: the table of the README.
//!
//! `OPENDAL_WRITE_GUARANTEES=1` writes the table.

use crate::common::{FILES, KINDS, children, content, plugin_of, read, uri, write};
use file_servers::{Kind, Server};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tf_fs_plugin::prelude::*;

const ROWS: [&str; 4] = [
    "Names that begin with a dot are listed",
    "`A` and `a` are two files",
    "A change of an open file within one second, to one of the same length, is seen",
    "Names that cannot be written",
];

/// Names that servers may refuse, or make another name of.
const ODD: [&str; 12] =
    ["a b", "a?b", "a#b", "a%b", "a%2Fb", "a;b", "a:b", "a*b", "a\\b", "a\"b", " a", "a "];

fn second() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// Returns whether a change is seen that comes in the same second as the file.
fn sees_a_change_at_once(server: &Server, name: &str) -> bool {
    let options = [("read_part_bytes", "64KiB"), ("read_concurrency", "1")];
    let (fs, other) = (plugin_of(server, &options), plugin_of(server, &[]));
    let (first, mut last) = (content(1 << 20), content(1 << 20));
    last.reverse();
    for _ in 0..20 {
        // Early in a second.
        let past = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().subsec_millis();
        std::thread::sleep(Duration::from_millis(u64::from(1_010 - past.min(1_000))));
        let began = second();
        write(&other, name, &first).unwrap();
        let file = fs.new_random_access_file(uri(name)).unwrap();
        let mut memory = [0; 10];
        file.read_at(0, &mut ReadBuf::from_slice(&mut memory)).unwrap();
        write(&other, name, &last).unwrap();
        if second() == began {
            return file.read_at(900_000, &mut ReadBuf::from_slice(&mut memory)).is_err();
        }
    }
    panic!("two writes take more than a second");
}

fn ask(kind: Kind) -> [String; 4] {
    let server = Server::start(kind);
    let (fs, root) = (plugin_of(&server, &[]), server.uri());
    let yes = |yes| if yes { "yes" } else { "no" }.to_owned();
    fs.create_dir(uri(&format!("{root}/d"))).unwrap();
    for name in [".x", "A", "a"] {
        write(&fs, &format!("{root}/d/{name}"), name.as_bytes()).unwrap();
    }
    let listed = children(&fs, &format!("{root}/d")).unwrap();
    let differ = read(&fs, &format!("{root}/d/A")).unwrap() == b"A"
        && read(&fs, &format!("{root}/d/a")).unwrap() == b"a";
    let refused = |name: &&str| {
        let file = format!("{root}/d/{name}");
        let is_there = || std::fs::read(server.files().join("d").join(name));
        write(&fs, &file, b"odd").is_err()
            || is_there().is_ok_and(|bytes| bytes != b"odd")
            || is_there().is_err()
    };
    let refused: Vec<_> =
        ODD.iter().filter(|name| refused(name)).map(|name| format!("`{name}`")).collect();
    [
        yes(listed.contains(&".x".to_owned())),
        yes(differ),
        yes(sees_a_change_at_once(&server, &format!("{root}/d/f"))),
        if refused.is_empty() { "none".to_owned() } else { refused.join(", ") },
    ]
}

#[test]
fn the_readme_has_this_table() {
    let kinds = KINDS.into_iter().chain(FILES);
    let kinds: Vec<_> = kinds.filter(|kind| *kind != Kind::WebHdfs).collect();
    let answers: Vec<_> = std::thread::scope(|scope| {
        let asked: Vec<_> = kinds.iter().map(|&kind| scope.spawn(move || ask(kind))).collect();
        asked.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let line = |cells: Vec<&str>| format!("| {} |\n", cells.join(" | "));
    let mut table = line([vec!["Server"], ROWS.to_vec()].concat());
    table += &line(vec!["---"; ROWS.len() + 1]);
    for (kind, answers) in kinds.iter().zip(&answers) {
        let name = match kind {
            Kind::Apache => "WebDAV: Apache 2.4, `mod_dav`",
            Kind::Nginx => "WebDAV: nginx 1.22, `dav-ext`",
            Kind::Rclone => "WebDAV: rclone 1.60",
            Kind::Wsgidav => "WebDAV: WsgiDAV 4.4",
            Kind::OpenSsh => "SFTP: OpenSSH 9.2",
            Kind::RcloneSftp => "SFTP: rclone 1.60",
            Kind::Vsftpd => "FTP: vsftpd 3.0",
            Kind::Pyftpdlib => "FTP: pyftpdlib 2.2",
            Kind::WebHdfs => unreachable!("it is not HDFS"),
        };
        table += &line([vec![name], answers.iter().map(String::as_str).collect()].concat());
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let readme = std::fs::read_to_string(&path).unwrap();
    let (before, rest) =
        readme.split_once("<!-- guarantees -->\n").expect("the mark before the table");
    let (ours, after) = rest.split_once("<!-- end of guarantees -->").expect("the mark after it");
    if std::env::var_os("OPENDAL_WRITE_GUARANTEES").is_some() {
        let new = format!("{before}<!-- guarantees -->\n{table}<!-- end of guarantees -->{after}");
        std::fs::write(path, new).unwrap();
    } else {
        assert_eq!(ours, table, "OPENDAL_WRITE_GUARANTEES=1 writes the table");
    }
}

/// Readers of a file that is replaced see all of one version. On some servers the file is missing for a moment: those that delete
/// it before they move another one to its name.
fn replaced(kind: Kind, options: &[(&str, &str)], may_be_missing: bool) {
    let server = Server::start(kind);
    let (fs, other) = (plugin_of(&server, options), plugin_of(&server, options));
    let name = format!("{}/f", server.uri());
    // Each version has a length and bytes of its own.
    let version = |number: u8| vec![number; 200_000 + 1_000 * usize::from(number)];
    write(&fs, &name, &version(0)).unwrap();
    let is_done = AtomicBool::new(false);
    let mut seen = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 1..30 {
                write(&fs, &name, &version(number))
                    .unwrap_or_else(|error| panic!("{kind:?}: {error:#}"));
            }
            is_done.store(true, Ordering::Relaxed);
        });
        while !is_done.load(Ordering::Relaxed) {
            match read(&other, &name) {
                Ok(bytes) => {
                    seen += 1;
                    assert!(
                        bytes.len() >= 200_000 && bytes == version(bytes[0]),
                        "{kind:?}: {}",
                        bytes.len()
                    );
                }
                // It was replaced while it was read, or each time while it was opened.
                Err(error)
                    if error.code() == Code::FailedPrecondition
                        || error.to_string().contains("changed while") => {}
                Err(error) => {
                    assert!(
                        may_be_missing && error.code() == Code::NotFound,
                        "{kind:?}: {error:#}"
                    );
                }
            }
        }
    });
    assert!(seen > 0, "{kind:?}");
}

#[test]
fn a_reader_sees_one_version() {
    let gaps = [Kind::WebHdfs, Kind::Apache];
    std::thread::scope(|scope| {
        // These may tell the size of one version with the bytes of another.
        let mixes = |kind: &Kind| matches!(kind, Kind::Rclone | Kind::RcloneSftp | Kind::Wsgidav);
        for kind in KINDS.into_iter().chain(FILES).filter(|kind| !mixes(kind)) {
            scope.spawn(move || replaced(kind, &[], gaps.contains(&kind)));
        }
        for kind in [Kind::Apache, Kind::Nginx] {
            scope.spawn(move || replaced(kind, &[("atomic_put", "1")], false));
        }
    });
}

//! Servers for tests: WebDAV by Apache, nginx, rclone and wsgidav, SFTP by OpenSSH and rclone, FTP by vsftpd and
//! pyftpdlib, and the APIs of HDFS and the Hugging Face Hub. From Debian's packages and PyPI, installed below
//! `target/`, started on a free port of this machine, each with a directory of its own.

#![forbid(unsafe_code)]

mod dav;
mod ftp;
mod hdfs;
mod hub;
mod install;
mod ssh;

pub use hdfs::hdfs_client;
pub use hub::Hub;

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The user that a server with a password knows.
pub const USER: &str = "someone";
/// That user's password.
pub const PASSWORD: &str = "walnut-orchard";
/// It as Apache's files of users have it: its SHA-1 in base64.
const HASHED: &str = "{SHA}J/ZLzGkTlhqkDYUrjqryl2FibYw=";

/// A user and a group without rights, whom a server that root starts serves.
const NOBODY: u32 = 65534;

/// A program that serves files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Apache with `mod_dav` and `mod_dav_fs`.
    Apache,
    /// nginx with `dav` and `dav-ext`.
    Nginx,
    /// `rclone serve webdav`.
    Rclone,
    /// WsgiDAV on Cheroot.
    Wsgidav,
    /// OpenSSH's sshd with its `internal-sftp`.
    OpenSsh,
    /// `rclone serve sftp`.
    RcloneSftp,
    /// vsftpd.
    Vsftpd,
    /// pyftpdlib.
    Pyftpdlib,
    /// A server with the REST API of HDFS.
    WebHdfs,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Apache,
        Self::Nginx,
        Self::Rclone,
        Self::Wsgidav,
        Self::OpenSsh,
        Self::RcloneSftp,
        Self::Vsftpd,
        Self::Pyftpdlib,
        Self::WebHdfs,
    ];

    /// Returns the scheme of names, without TLS.
    #[must_use]
    pub fn scheme(self) -> &'static str {
        match self {
            Self::Apache | Self::Nginx | Self::Rclone | Self::Wsgidav => "webdav",
            Self::OpenSsh | Self::RcloneSftp => "sftp",
            Self::Vsftpd | Self::Pyftpdlib => "ftp",
            Self::WebHdfs => "webhdfs",
        }
    }
}

/// How a server is started.
#[derive(Clone, Debug, Default)]
pub struct Mode {
    /// Whether it is for [`USER`] with [`PASSWORD`] only.
    pub has_password: bool,
    /// The files of the certificate and the key of a server with TLS.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// Whether vsftpd begins TLS with the first byte.
    pub is_implicit: bool,
    /// Whether pyftpdlib takes names that differ only in upper and lower case for one.
    pub ignores_case: bool,
    /// What its files are on.
    pub disk: Disk,
}

/// What the files of a server are on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Disk {
    /// The disk of the tests.
    #[default]
    Shared,
    /// One of 512 KiB, which only the server sees.
    Small,
    /// One that nobody can write to.
    ReadOnly,
}

impl Disk {
    /// Returns a command that runs this one where the files are on such a disk.
    fn of(self, command: Command, files: &Path) -> Command {
        let mount = match self {
            Self::Shared => return command,
            Self::Small => "mount -t tmpfs -o size=512k,mode=777 tmpfs \"$1\"",
            Self::ReadOnly => "mount --bind \"$1\" \"$1\" && mount -o remount,bind,ro \"$1\"",
        };
        let mut mounted = Command::new("unshare");
        if !rustix::process::geteuid().is_root() {
            mounted.args(["--user", "--map-root-user"]);
        }
        mounted.args(["--mount", "sh", "-ec", &format!("{mount}; shift; exec \"$@\""), "sh"]);
        mounted.arg(files).arg(command.get_program()).args(command.get_args());
        mounted.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        mounted
    }
}

/// Runs the server of the arguments until it ends or standard input does: a killed test drops nothing.
const KEEPER: &str = r#"exec 3<&0
"$@" </dev/null 3<&- & server=$!
{ read -r _ <&3; kill -9 "$server" 2>/dev/null; } &
wait "$server""#;

/// A running server. It ends when it is dropped, and with this process.
#[derive(Debug)]
pub struct Server {
    kind: Kind,
    mode: Mode,
    child: Child,
    port: u16,
    directory: TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

impl Server {
    /// Starts a server for everybody. The first call on a machine installs it.
    ///
    /// # Panics
    /// If it cannot be installed or does not start; the text says what to do.
    #[must_use]
    pub fn start(kind: Kind) -> Self {
        Self::start_with(kind, Mode::default())
    }

    /// Starts a server for [`USER`] with [`PASSWORD`] only.
    ///
    /// # Panics
    /// As [`start`](Self::start).
    #[must_use]
    pub fn with_password(kind: Kind) -> Self {
        Self::start_with(kind, Mode { has_password: true, ..Mode::default() })
    }

    /// Starts a server.
    ///
    /// # Panics
    /// As [`start`](Self::start).
    #[must_use]
    pub fn start_with(kind: Kind, mode: Mode) -> Self {
        let directory = tempfile::tempdir().expect("a scratch directory");
        let files = directory.path().join("files");
        std::fs::create_dir(&files).expect("a scratch directory");
        // A port may be taken by others before the server has it.
        for _ in 0..5 {
            let port = free_port();
            let command = match kind {
                Kind::Apache => dav::apache(port, directory.path(), &mode),
                Kind::Nginx => dav::nginx(port, directory.path(), &mode),
                Kind::Rclone => dav::rclone(port, directory.path(), &mode),
                Kind::Wsgidav => dav::start_wsgidav(port, directory.path(), &mode),
                Kind::OpenSsh => ssh::openssh(port, directory.path()),
                Kind::RcloneSftp => ssh::rclone(port, directory.path(), &mode),
                Kind::Vsftpd => ftp::vsftpd(port, directory.path(), &mode),
                Kind::Pyftpdlib => ftp::pyftpdlib(port, directory.path(), &mode),
                Kind::WebHdfs => hdfs::webhdfs(port, directory.path()),
            };
            let log = std::fs::File::create(directory.path().join("log")).expect("a log");
            let mut child = kept(&mode.disk.of(command, &files))
                .current_dir(directory.path())
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .stderr(log)
                .spawn()
                .unwrap_or_else(|error| panic!("{kind:?} does not run: {error}"));
            let end = Instant::now() + Duration::from_secs(60);
            while Instant::now() < end && child.try_wait().expect("a child").is_none() {
                if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                    return Self { kind, mode, child, port, directory };
                }
                thread::sleep(Duration::from_millis(20));
            }
            drop(child.stdin.take());
            let _ = child.wait();
        }
        let log = std::fs::read_to_string(directory.path().join("log")).unwrap_or_default();
        panic!("{kind:?} does not start: {log}");
    }

    /// Returns host and port.
    #[must_use]
    pub fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Returns the scheme of names, host and port, and the path to what it serves.
    #[must_use]
    pub fn uri(&self) -> String {
        let tls = if self.mode.tls.is_some() { "s" } else { "" };
        // OpenSSH serves all that the user may see, and vsftpd no root that can be written to.
        let path = match self.kind {
            Kind::OpenSsh => self.files().display().to_string(),
            Kind::Vsftpd => "/files".to_owned(),
            _ => String::new(),
        };
        format!("{}{tls}://{}{path}", self.kind.scheme(), self.host())
    }

    /// Returns the plugin's settings for this server: keys and values.
    ///
    /// # Panics
    /// If the key of the server cannot be read.
    #[must_use]
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        let protocol = match (self.kind.scheme(), &self.mode.tls) {
            ("webdav" | "webhdfs", None) => "http",
            ("webdav", Some(_)) => "https",
            ("ftp", Some(_)) => "ftps",
            (scheme, _) => scheme,
        };
        let mut settings = vec![("url", format!("{protocol}://{}", self.host()))];
        let at = self.directory.path();
        match self.kind {
            Kind::OpenSsh => settings.extend(ssh::settings(at)),
            Kind::RcloneSftp => {
                settings.push(("host_key", ssh::fingerprint(at)));
                settings.extend([("user", USER.to_owned()), ("password", PASSWORD.to_owned())]);
            }
            _ if self.mode.has_password => {
                settings.extend([("user", USER.to_owned()), ("password", PASSWORD.to_owned())]);
            }
            _ => {}
        }
        if self.mode.is_implicit {
            settings.push(("implicit_tls", "1".to_owned()));
        }
        if let Some((certificate, _)) = &self.mode.tls {
            settings.push(("ca_file", certificate.display().to_string()));
        }
        settings
    }

    /// Returns the directory that it serves.
    #[must_use]
    pub fn files(&self) -> PathBuf {
        self.directory.path().join("files")
    }
}

/// Returns the command of a shell that runs this one.
fn kept(command: &Command) -> Command {
    let mut keeper = Command::new("sh");
    keeper.args(["-c", KEEPER, "sh"]).arg(command.get_program()).args(command.get_args());
    keeper.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    keeper
}

/// Returns a port that is free, below those that Linux gives to connections and to sockets without a port of their own (32768 and
/// up by default, ip(7)). No other call in this process returns it soon, and processes begin in different places; only another
/// program with ports of its own can take it before a server has it.
///
/// # Panics
/// If none is free.
#[must_use]
pub fn free_port() -> u16 {
    const FIRST: u32 = 10_000;
    const COUNT: u32 = 22_000;
    static CALLS: AtomicU32 = AtomicU32::new(0);
    // Processes that run at the same time have numbers close to each other: the upper bits of the product are far apart.
    let first = std::process::id().wrapping_mul(0x9E37_79B1) >> 8;
    (0..COUNT)
        .map(|_| FIRST + first.wrapping_add(CALLS.fetch_add(1, Ordering::Relaxed)) % COUNT)
        .map(|port| u16::try_from(port).expect("less than 32,000"))
        .find(|&port| TcpListener::bind(("127.0.0.1", port)).is_ok())
        .expect("a port that is free")
}

/// Lets the user without rights write to these files and directories, if root starts the server.
fn give_to_nobody(at: &Path, names: &[&str]) {
    use std::os::unix::fs::{PermissionsExt as _, chown};
    if !rustix::process::geteuid().is_root() {
        return;
    }
    std::fs::set_permissions(at, std::fs::Permissions::from_mode(0o755)).expect("own files");
    for name in names {
        chown(at.join(name), Some(NOBODY), Some(NOBODY)).expect("root may");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_ends_when_it_is_dropped() {
        for kind in Kind::ALL {
            let server = Server::start(kind);
            let host = server.host();
            drop(server);
            // A child that sshd forked for a connection has the listening socket, too, until it runs and closes it.
            let end = Instant::now() + Duration::from_secs(30);
            while TcpStream::connect(&host).is_ok() {
                assert!(Instant::now() < end, "{kind:?}");
                thread::sleep(Duration::from_millis(20));
            }
        }
    }
}

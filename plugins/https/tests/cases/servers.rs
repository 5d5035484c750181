//! Servers that others wrote: nginx, and Python's own.

use crate::server::authority;
use crate::{error, fs, open, read, read_in, settings};
use file_servers::free_port;
use https::{Https, Settings};
use std::io::Write;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tf_fs_plugin::prelude::*;

/// A server in a separate process, which ends when it is dropped, and the directory that it serves.
struct Running {
    child: Child,
    port: u16,
    tls: u16,
    directory: TempDir,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/{path}", self.port)
    }

    fn write(&self, path: &str, content: &[u8]) {
        let path = self.directory.path().join("www").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        // A new file, as a deployment replaces it: open readers keep the old one.
        let mut file = tempfile::NamedTempFile::new_in(path.parent().unwrap()).unwrap();
        file.write_all(content).unwrap();
        file.persist(path).unwrap();
    }
}

/// Returns nginx: that of the system, or else of the system's distribution, unpacked below the target directory.
fn nginx() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let tools = Path::new(env!("CARGO_TARGET_TMPDIR")).join("nginx");
        let unpacked = tools.join("usr/sbin/nginx");
        let known = [Path::new("/usr/sbin/nginx"), Path::new("/usr/local/sbin/nginx"), &unpacked];
        if let Some(program) = known.into_iter().find(|program| program.exists()) {
            return program.to_owned();
        }
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let script = "apt-get download -qq nginx && dpkg-deb --extract nginx_*.deb unpacked";
        let output =
            Command::new("sh").args(["-ec", script]).current_dir(&directory).output().unwrap();
        assert!(
            output.status.success(),
            "nginx is missing and cannot be fetched; install it (`apt-get install nginx`): {}",
            String::from_utf8_lossy(&output.stderr)
        );
        // Another process may have been faster.
        let _ = std::fs::rename(directory.path().join("unpacked"), &tools);
        unpacked
    })
}

/// Starts the `command` for two ports and a directory, and waits until it listens.
fn start(command: impl Fn(u16, u16, &Path) -> Command) -> Running {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("www")).unwrap();
    // A port may be taken by others before the server has it.
    for _ in 0..5 {
        let (port, tls) = (free_port(), free_port());
        let log = std::fs::File::create(directory.path().join("log")).unwrap();
        let mut child = command(port, tls, directory.path())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("the server can be started");
        let end = Instant::now() + Duration::from_secs(30);
        while Instant::now() < end && child.try_wait().unwrap().is_none() {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Running { child, port, tls, directory };
            }
            thread::sleep(Duration::from_millis(20));
        }
        let _ = child.kill();
        let _ = child.wait();
    }
    let log = std::fs::read_to_string(directory.path().join("log")).unwrap_or_default();
    panic!("the server does not start: {log}");
}

fn start_nginx() -> Running {
    start(|port, tls, directory| {
        let (key, certificate, _) = authority("127.0.0.1");
        let at = directory.display();
        std::fs::write(directory.join("key.pem"), key).unwrap();
        std::fs::write(directory.join("certificate.pem"), certificate.0).unwrap();
        std::fs::write(directory.join("authority.pem"), certificate.1).unwrap();
        let configuration = format!(
            "daemon off; master_process off; pid {at}/pid; error_log stderr;
             events {{}}
             http {{
                 access_log off;
                 client_body_temp_path {at}/a; proxy_temp_path {at}/b; fastcgi_temp_path {at}/c;
                 uwsgi_temp_path {at}/d; scgi_temp_path {at}/e;
                 limit_req_zone $binary_remote_addr zone=one:1m rate=5r/s;
                 server {{
                     listen 127.0.0.1:{port};
                     listen 127.0.0.1:{tls} ssl;
                     ssl_certificate {at}/certificate.pem; ssl_certificate_key {at}/key.pem;
                     root {at}/www;
                     gzip on; gzip_types *; gzip_min_length 1;
                     location /whole/ {{ max_ranges 0; }}
                     location /compressed/ {{ gzip_static always; }}
                     location /limited/ {{ limit_req zone=one; limit_req_status 429; }}
                     location /denied/ {{ deny all; }}
                     location /moved/ {{ rewrite ^/moved/(.*)$ /$1 permanent; }}
                     location /gone/ {{ return 410; }}
                 }}
             }}"
        );
        std::fs::write(directory.join("conf"), configuration).unwrap();
        let mut command = Command::new(nginx());
        command
            .arg("-p")
            .arg(directory)
            .arg("-e")
            .arg("stderr")
            .arg("-c")
            .arg(directory.join("conf"));
        command
    })
}

fn start_python() -> Running {
    start(|port, _, directory| {
        let mut command = Command::new("python3");
        let port = port.to_string();
        command.args(["-m", "http.server", &port, "--bind", "127.0.0.1", "--directory"]);
        command.arg(directory.join("www"));
        command
    })
}

/// Returns bytes of which no two places look alike.
fn bytes(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed;
    let next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}

#[test]
fn nginx_serves_files_of_all_kinds() {
    let server = start_nginx();
    let large = bytes(20 << 20, 1);
    for path in ["f.txt", "whole/f", "a b/ü%.txt", "x//y"] {
        server.write(path, &large);
    }
    server.write("empty", b"");
    let fs = fs();
    for path in ["f.txt", "f.txt?query=1", "whole/f", "a b/ü%25.txt", "x//y", "moved/f.txt"] {
        let url = server.url(path);
        let uri = Uri::new(url.as_bytes());
        assert_eq!(fs.get_file_size(uri).unwrap(), 20 << 20, "{path}");
        assert!(fs.path_exists(uri).unwrap() && !fs.is_directory(uri).unwrap());
        for piece in [300_000, 40 << 20] {
            assert!(read_in(&open(&fs, &url).unwrap(), piece).unwrap() == large, "{path}");
        }
    }
    assert_eq!(read(&fs, &server.url("empty")).unwrap(), b"");
    for (path, code) in [
        ("missing", Code::NotFound),
        ("gone/x", Code::NotFound),
        ("denied/x", Code::PermissionDenied),
    ] {
        assert_eq!(error(open(&fs, &server.url(path))).0, code, "{path}");
    }
}

#[test]
fn nginx_over_tls() {
    let server = start_nginx();
    let content = bytes(5 << 20, 2);
    server.write("f", &content);
    let ca_file = Some(server.directory.path().join("authority.pem"));
    let fs = Https::with(Settings { ca_file, ..settings() });
    let url = format!("https://127.0.0.1:{}/f", server.tls);
    assert!(read(&fs, &url).unwrap() == content);
    assert_eq!(error(open(&crate::fs(), &url)).0, Code::Unavailable, "not trusted");
}

#[test]
fn nginx_files_that_are_stored_compressed_are_decoded() {
    let server = start_nginx();
    let content = bytes(100_000, 3).iter().map(|byte| byte % 4).collect::<Vec<u8>>();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(&content).unwrap();
    server.write("compressed/f.gz", &encoder.finish().unwrap());
    let (fs, url) = (Https::with(Settings::default()), server.url("compressed/f"));
    assert_eq!(fs.get_file_size(Uri::new(url.as_bytes())).unwrap(), 100_000);
    assert!(read(&fs, &url).unwrap() == content);
}

#[test]
fn nginx_files_that_are_replaced_while_open_are_errors() {
    let server = start_nginx();
    server.write("f", &bytes(30 << 20, 4));
    let file = open(&fs(), &server.url("f")).unwrap();
    // Its ETag is made from the time in seconds and the size.
    thread::sleep(Duration::from_millis(1_100));
    let new = bytes(30 << 20, 5);
    server.write("f", &new);
    let mut memory = [0; 100];
    let mut buf = ReadBuf::from_slice(&mut memory);
    let (code, text) = error(file.read_at(29 << 20, &mut buf));
    assert_eq!((code, buf.filled().len()), (Code::FailedPrecondition, 0), "{text}");
    assert!(read(&fs(), &server.url("f")).unwrap() == new);
}

#[test]
fn nginx_that_limits_requests_is_waited_for() {
    let server = start_nginx();
    let content = bytes(1000, 6);
    server.write("limited/f", &content);
    let fs = fs();
    for _ in 0..4 {
        assert!(read(&fs, &server.url("limited/f")).unwrap() == content);
    }
}

#[test]
fn pythons_server_sends_whole_files() {
    let server = start_python();
    let content = bytes(20 << 20, 7);
    server.write("d/f", &content);
    server.write("empty", b"");
    let (fs, url) = (fs(), server.url("d/f"));
    let uri = Uri::new(url.as_bytes());
    assert_eq!(fs.get_file_size(uri).unwrap(), 20 << 20);
    assert!(fs.path_exists(uri).unwrap());
    let file = open(&fs, &url).unwrap();
    assert!(read_in(&file, 1 << 20).unwrap() == content);
    // An open file is one version.
    server.write("d/f", b"new");
    assert!(read_in(&file, 30 << 20).unwrap() == content);
    assert_eq!(read(&fs, &server.url("empty")).unwrap(), b"");
    assert_eq!(error(open(&fs, &server.url("missing"))).0, Code::NotFound);
    assert!(!fs.path_exists(Uri::new(server.url("missing").as_bytes())).unwrap());
}

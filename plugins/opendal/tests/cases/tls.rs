//! Certificates of servers: one that is trusted, one that is not, and one of another host.

use crate::common::{error, plugin, plugin_of, read, write};
use file_servers::{Kind, Mode, Server};
use std::path::PathBuf;
use tempfile::TempDir;
use tf_fs_plugin::prelude::*;

/// The files of a certificate for this host and of its key.
fn certificate(host: &str) -> (TempDir, (PathBuf, PathBuf)) {
    let directory = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed([host.to_owned()]).unwrap();
    let (certificate, key) = (directory.path().join("cert.pem"), directory.path().join("key.pem"));
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    (directory, (certificate, key))
}

#[test]
fn a_certificate_has_to_be_trusted_and_for_this_host() {
    for kind in [Kind::Nginx, Kind::Vsftpd, Kind::Pyftpdlib] {
        let (_files, tls) = certificate("127.0.0.1");
        let server = Server::start_with(kind, Mode { tls: Some(tls), ..Mode::default() });
        let name = format!("{}/f", server.uri());
        let fs = plugin_of(&server, &[]);
        let large = crate::common::content(3 << 20);
        for round in 0..4 {
            write(&fs, &name, &large).unwrap_or_else(|error| panic!("{kind:?} {round}: {error:#}"));
            assert!(read(&fs, &name).unwrap() == large, "{kind:?}");
        }
        let untrusting = plugin(&[("retry_timeout_ms", "100")]);
        let (code, text) = error(read(&untrusting, &name));
        assert_eq!(code, Code::Unavailable, "{kind:?}: {text}");
        assert!(text.contains("certificate"), "{kind:?}: {text}");

        let (_files, tls) = certificate("elsewhere.example");
        let other = Server::start_with(kind, Mode { tls: Some(tls), ..Mode::default() });
        let fs = plugin_of(&other, &[("retry_timeout_ms", "100")]);
        let (code, text) = error(write(&fs, &format!("{}/f", other.uri()), b"x"));
        assert_eq!(code, Code::Unavailable, "{kind:?}: {text}");
        assert!(text.contains("certificate") || text.contains("elsewhere"), "{kind:?}: {text}");
        assert!(!other.files().join("f").exists(), "{kind:?}");
    }
}

#[test]
fn tls_may_begin_with_the_first_byte() {
    let (_files, tls) = certificate("127.0.0.1");
    let mode = Mode { tls: Some(tls), is_implicit: true, ..Mode::default() };
    let server = Server::start_with(Kind::Vsftpd, mode);
    let name = format!("{}/f", server.uri());
    let fs = plugin_of(&server, &[]);
    let large = crate::common::content(3 << 20);
    write(&fs, &name, &large).unwrap();
    assert!(read(&fs, &name).unwrap() == large);
    assert_eq!(crate::common::children(&fs, &server.uri()).unwrap(), ["f"]);
    // It does not wait for a greeting without TLS.
    let explicit = plugin_of(
        &server,
        &[("implicit_tls", "0"), ("retry_timeout_ms", "0"), ("stall_timeout_ms", "500")],
    );
    let (code, text) = error(read(&explicit, &name));
    assert!(matches!(code, Code::Unavailable | Code::DeadlineExceeded), "{text}");
}

/// Without TLS the server does not let anybody in, and `ftps://` does not go on without.
#[test]
fn tls_is_not_left_out() {
    let server = Server::start(Kind::Pyftpdlib);
    let name = format!("ftps://{}/f", server.host());
    let (code, text) = error(write(&plugin(&[("retry_timeout_ms", "100")]), &name, b"x"));
    assert!(matches!(code, Code::Unimplemented | Code::Unavailable), "{text}");
    assert!(!server.files().join("f").exists());
}

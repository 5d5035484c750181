//! Which server a name leads to, and in which process.

use crate::common::{children, error, plugin, read, uri, write};
use file_servers::{Kind, PASSWORD, Server, USER};
use std::process::Command;
use tensorflow_opendal::{RemoteFilesystem, Remotes};
use tf_fs_plugin::prelude::*;

#[test]
fn a_remote_is_a_place_on_a_server() {
    let server = Server::start(Kind::Apache);
    std::fs::create_dir_all(server.files().join("my files/ü%")).unwrap();
    let host = server.host();
    let url = format!("http://{host}/my%20files/%C3%BC%25/");
    let fs = plugin(&[("remote.nas.url", &url), ("remote.tls.url", "http://h")]);
    // Apache runs as another user if root starts it.
    let all = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(server.files().join("my files/ü%"), all).unwrap();
    write(&fs, "webdav://nas/d/f", b"x").unwrap();
    assert_eq!(std::fs::read(server.files().join("my files/ü%/d/f")).unwrap(), b"x");
    assert_eq!(children(&fs, "webdav://nas").unwrap(), ["d"]);
    assert_eq!(read(&fs, &format!("webdav://{host}/my files/ü%/d/f")).unwrap(), b"x");
    for (name, part) in [
        ("webdavs://tls/x", "has no TLS"),
        ("webdav://no host/x", "not the name of a remote"),
        ("webdav://nas/../x", "`.` and `..`"),
        ("webdav:///x", "no remote"),
    ] {
        let (code, text) = error(read(&fs, name));
        assert_eq!(code, Code::InvalidArgument, "{text}");
        assert!(text.contains(part), "{text}");
    }
    let other = fs.copy_file(uri("webdav://nas/d/f"), uri(&format!("webdav://{host}/copy")));
    assert_eq!(error(other).0, Code::Unimplemented);
}

#[test]
fn a_missing_collection_is_named() {
    let server = Server::start(Kind::Nginx);
    let url = format!("http://{}/none", server.host());
    let fs = plugin(&[("remote.nas.url", &url)]);
    let (code, text) = error(children(&fs, "webdav://nas"));
    assert_eq!(code, Code::NotFound, "{text}");
}

#[test]
fn a_server_that_is_gone_is_unavailable() {
    let host = Server::start(Kind::Nginx).host();
    let fs = plugin(&[("retry_timeout_ms", "100")]);
    let (code, text) = error(read(&fs, &format!("webdav://{host}/f")));
    assert_eq!(code, Code::Unavailable, "{text}");
    assert!(text.contains("no response from"), "{text}");
}

const CHILD: &str = "OPENDAL_CHILD";

/// Environment and settings file, as a process finds them.
#[test]
fn settings_come_from_the_environment_and_a_file() {
    if let Some(name) = std::env::var_os(CHILD) {
        let fs = RemoteFilesystem::new_with(Remotes::default());
        let name = name.into_string().unwrap();
        write(&fs, &name, b"bytes").unwrap();
        assert_eq!(read(&fs, &name).unwrap(), b"bytes");
        return;
    }
    let server = Server::with_password(Kind::Nginx);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("opendal.toml");
    let host = server.host();
    let text = format!(
        "[remote.nas]\ntype = \"webdav\"\nurl = \"http://{host}\"\nuser = \"{USER}\"\npassword = \"{PASSWORD}\"\n"
    );
    std::fs::write(&file, text).unwrap();
    let url = format!("http://{host}");
    let by_file = [("TF_OPENDAL_CONFIG", file.to_str().unwrap())];
    let by_variables =
        [("TF_OPENDAL_URL", &*url), ("TF_OPENDAL_USER", USER), ("TF_OPENDAL_PASSWORD", PASSWORD)];
    for (name, variables) in
        [("webdav://nas/a".to_owned(), &by_file[..]), (format!("webdav://{host}/b"), &by_variables)]
    {
        let child = Command::new(std::env::current_exe().unwrap())
            .args([
                "remotes::settings_come_from_the_environment_and_a_file",
                "--exact",
                "--nocapture",
            ])
            .env(CHILD, &name)
            .envs(variables.iter().copied())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&child.stdout) + String::from_utf8_lossy(&child.stderr);
        assert!(child.status.success(), "{name}: {text}");
    }
}

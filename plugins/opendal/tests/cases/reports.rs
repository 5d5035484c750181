//! `sftp:///config.json` and `metrics.json`: what the plugin says of itself.

use crate::common::{buckets, children, error, plugin_of, read, uri, write};
use file_servers::{Kind, Server};
use serde_json::Value;
use tf_fs_plugin::prelude::*;

fn json(fs: &impl Filesystem, name: &str) -> Value {
    let file = read(fs, name).unwrap_or_else(|error| panic!("{name}: {error:#}"));
    serde_json::from_slice(&file).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn all_settings_are_shown_but_secrets() {
    let server = Server::with_password(Kind::Pyftpdlib);
    let fs = plugin_of(&server, &[("read_part_bytes", "1MiB"), ("remote.nas.url", "http://nas")]);
    let config = json(&fs, "ftp:///config.json");
    let text = config.to_string();
    assert!(text.contains("read_part_bytes") && text.contains("1048576"), "{text}");
    assert!(text.contains("http://nas") && text.contains(&server.host()), "{text}");
    assert!(!text.contains(file_servers::PASSWORD), "{text}");
    // Each scheme has it, and no name but these two.
    assert_eq!(json(&fs, "sftp:///config.json"), config);
    assert_eq!(json(&fs, "hf:///config.json"), config);
    assert!(json(&buckets(&[]), "memory:///config.json").is_object());
    assert_eq!(error(read(&fs, "ftp:///other.json")).0, Code::InvalidArgument);
    assert!(write(&fs, "ftp:///config.json", b"x").is_err());
}

#[test]
fn operations_and_failures_are_counted() {
    let server = Server::start(Kind::Pyftpdlib);
    let fs = plugin_of(&server, &[]);
    let count = |metrics: &Value, operation: &str| {
        let all = metrics["requests"].as_object().unwrap_or_else(|| panic!("{metrics}"));
        all.get(operation).map_or(0, |all| all["attempts"].as_u64().expect("a number"))
    };
    let before = json(&fs, "ftp:///metrics.json");
    let at = |name: &str| format!("{}/{name}", server.uri());
    write(&fs, &at("f"), b"x").unwrap();
    read(&fs, &at("f")).unwrap();
    children(&fs, &server.uri()).unwrap();
    fs.rename_file(uri(&at("f")), uri(&at("g"))).unwrap();
    fs.delete_file(uri(&at("g"))).unwrap();
    assert!(read(&fs, &at("g")).is_err());
    let after = json(&fs, "ftp:///metrics.json");
    for operation in ["Read", "Stat", "List", "Write", "Delete", "Rename"] {
        assert!(count(&after, operation) > count(&before, operation), "{operation}: {after}");
    }
}

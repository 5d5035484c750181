//! Redirects into this machine and its network, in a network namespace with addresses of all kinds.

use crate::server::{Content, Reply, Server};
use crate::{read, settings};
use https::{Https, Settings};
use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::process::Command;
use tf_fs_plugin::prelude::*;

/// One of each zone, and several forms of those that matter.
const ADDRESSES: [&str; 8] = [
    "93.184.216.34",
    "93.184.216.35",
    "10.1.2.3",
    "192.168.7.8",
    "127.0.0.1",
    "169.254.169.254",
    "fd00:ec2::254",
    "fd12::1",
];

/// Which redirects are followed, by the address that the user names: others are refused.
const FOLLOWED: [(&str, &[&str]); 5] = [
    ("93.184.216.34", &["93.184.216.34", "93.184.216.35", "pub.test"]),
    (
        "10.1.2.3",
        &[
            "93.184.216.34",
            "93.184.216.35",
            "pub.test",
            "10.1.2.3",
            "192.168.7.8",
            "[fd12::1]",
            "priv.test",
        ],
    ),
    (
        "127.0.0.1",
        &[
            "93.184.216.34",
            "93.184.216.35",
            "pub.test",
            "10.1.2.3",
            "192.168.7.8",
            "[fd12::1]",
            "priv.test",
            "127.0.0.1",
            "localhost",
            "127.1",
            "0x7f000001",
            "0.0.0.0",
            "[::ffff:127.0.0.1]",
            "loop.test",
        ],
    ),
    (
        "169.254.169.254",
        &[
            "93.184.216.34",
            "93.184.216.35",
            "pub.test",
            "169.254.169.254",
            "[::ffff:169.254.169.254]",
            "[fd00:ec2::254]",
            "meta.test",
        ],
    ),
    // A name counts as its address.
    ("pub.test", &["93.184.216.34", "93.184.216.35", "pub.test"]),
];

const HOSTS: &str = "93.184.216.34 pub.test\n10.1.2.3 priv.test\n127.0.0.1 localhost loop.test\n\
                     169.254.169.254 meta.test\n";

#[test]
#[ignore = "part of redirects_into_other_networks_are_refused"]
fn follows_redirects_in_a_namespace() {
    let content = Content::new(5000, 0);
    let mut targets: Vec<&str> = FOLLOWED.iter().flat_map(|(_, all)| *all).copied().collect();
    targets.sort_unstable();
    targets.dedup();
    let servers: Vec<Server> = ADDRESSES
        .iter()
        .map(|address| {
            let copy = content.clone();
            let address = SocketAddr::new(address.parse::<IpAddr>().unwrap(), 8000);
            Server::at(address, move |request, _| match request.target.strip_prefix("/to/") {
                Some(host) => {
                    Reply::new(302).header("Location", format!("http://{host}:8000/file"))
                }
                None => copy.reply(request),
            })
        })
        .collect();
    let mut wrong = String::new();
    let fs = Https::with(settings());
    for (from, followed) in FOLLOWED {
        for target in &targets {
            for server in &servers {
                server.take_log();
            }
            let before: usize = servers.iter().map(Server::connections).sum();
            let url = format!("http://{from}:8000/to/{target}");
            // The second time over other connections, if it has read a range.
            for _ in 0..2 {
                let outcome = read(&fs, &url);
                let is_right = match &outcome {
                    Ok(bytes) => bytes.len() == 5000 && followed.contains(target),
                    Err(error) => {
                        let text = format!("{error:#}");
                        !followed.contains(target)
                            && error.code() == Code::FailedPrecondition
                            && text.contains("TF_HTTPS_LOCAL_REDIRECTS")
                    }
                };
                if !is_right {
                    let _ = writeln!(wrong, "{from} to {target}: {:?}", outcome.map(|b| b.len()));
                }
            }
            let logs = servers.iter().flat_map(Server::take_log);
            let reached = logs.filter(|request| request.target == "/file").count();
            let connections = servers.iter().map(Server::connections).sum::<usize>() - before;
            if !followed.contains(target) && (reached > 0 || connections > 2) {
                let _ = writeln!(wrong, "{from} to {target}: {reached} requests, {connections}");
            }
        }
    }
    // As a setting allows.
    let fs = Https::with(Settings { local_redirects: true, ..settings() });
    for target in &targets {
        let url = format!("http://93.184.216.34:8000/to/{target}");
        if let Err(error) = read(&fs, &url) {
            let _ = writeln!(wrong, "{target}: {error:#}");
        }
    }
    // And what the user names is read.
    let fs = Https::with(settings());
    for address in ["127.0.0.1", "169.254.169.254", "[fd00:ec2::254]", "meta.test"] {
        if let Err(error) = read(&fs, &format!("http://{address}:8000/file")) {
            let _ = writeln!(wrong, "{address}: {error:#}");
        }
    }
    println!("wrong: [{wrong}]");
}

#[test]
fn redirects_into_other_networks_are_refused() {
    // Root needs no namespace of users, which some systems forbid.
    const NAMESPACES: [&[&str]; 2] =
        [&["--user", "--map-root-user", "--net", "--mount"], &["--net", "--mount"]];
    let can = |namespace: &&&[&str]| {
        let tried = Command::new("unshare").args(**namespace).arg("true").output();
        tried.is_ok_and(|output| output.status.success())
    };
    let namespace = NAMESPACES.iter().find(can).expect(
        "`unshare` makes no network namespace; allow namespaces of users, or run this test as root",
    );
    let hosts = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(hosts.path(), HOSTS).unwrap();
    let added: String = ADDRESSES
        .iter()
        .filter(|address| **address != "127.0.0.1")
        .map(|address| {
            let bits = if address.contains(':') { "128 nodad" } else { "32" };
            format!("ip addr add {address}/{bits} dev lo && ")
        })
        .collect();
    let script = format!(
        "ip link set lo up && {added} mount --bind {} /etc/hosts && exec \"$0\" \"$@\"",
        hosts.path().display()
    );
    let mut command = Command::new("unshare");
    command.args(*namespace).args(["sh", "-c", &script]);
    command.arg(std::env::current_exe().unwrap());
    let test = "local::follows_redirects_in_a_namespace";
    command.args([test, "--exact", "--ignored", "--nocapture"]);
    for name in ["http_proxy", "https_proxy", "all_proxy"] {
        command.env_remove(name).env_remove(name.to_uppercase());
    }
    let output = command.output().unwrap();
    let (text, errors) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("wrong: []"), "{text}{errors}");
}

//! Starts a server until standard input ends. It prints the root of names, the directory that it serves, and the settings of
//! `tensorflow-opendal` for it: a key and a value a line, and then an empty line.
//!
//! `cargo run --package file-servers --example serve -- openssh`

use file_servers::{Kind, Server};

fn main() -> Result<(), String> {
    let wanted = std::env::args().nth(1).unwrap_or_default();
    let kind = Kind::ALL.into_iter().find(|kind| format!("{kind:?}").eq_ignore_ascii_case(&wanted));
    let kind =
        kind.ok_or_else(|| format!("no server is named {wanted:?}; name one of {:?}", Kind::ALL))?;
    let server = Server::start(kind);
    println!("uri {}\nfiles {}", server.uri(), server.files().display());
    for (key, value) in server.settings() {
        println!("{key} {value}");
    }
    println!();
    let ended = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
    ended.map(drop).map_err(|error| error.to_string())
}

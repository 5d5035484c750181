//! The life of a process that uses a filesystem plugin once, without Python.
//!
//! `load-and-leave <directory of TensorFlow's libraries> <plugin> <URI>` writes a file, reads it, leaves another one
//! open, and ends. Status 101 and a message if anything is not as it must be.
#![forbid(unsafe_code)]

use std::ffi::CString;
use std::path::Path;
use tf_plugin_tensorflow_tests::abi::Host;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [libraries, plugin, uri] = &arguments[..] else {
        panic!("usage: load-and-leave <directory> <plugin> <URI>");
    };
    let text = |text: &str| CString::new(text).expect("no NUL in an argument");
    let host = Host::load(Path::new(libraries)).expect("TensorFlow loads without Python");
    host.register(&text(plugin)).expect("the plugin registers");

    let content = uri.repeat(1000);
    let mut writer = host.create(&text(uri)).expect("create");
    writer.append(content.as_bytes()).expect("append");
    writer.close().expect("close");
    assert!(host.read_file(uri.as_bytes()) == Ok(content.into_bytes()), "the content differs");

    // A program may end without having closed its files: only `close` ends a `Writer`.
    let mut open = host.create(&text(&format!("{uri}-open"))).expect("create");
    open.append(b"never closed").expect("append");
}

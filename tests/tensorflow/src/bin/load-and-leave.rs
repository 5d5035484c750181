//! The life of a process that uses a filesystem plugin once, without Python.
//!
//! `load-and-leave <directory of TensorFlow's libraries> <plugin> <URI>` writes a file, reads it, leaves another one
//! open, and ends. Status 101 and a message if anything is not as it must be.
#![forbid(unsafe_code)]

use std::mem;
use std::path::Path;
use tf_plugin_testing::__private::{Tensor, TensorFlow};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [libraries, plugin, uri] = &arguments[..] else {
        panic!("usage: load-and-leave <directory> <plugin> <URI>");
    };
    let host = TensorFlow::load(Path::new(libraries)).expect("TensorFlow loads without Python");
    host.register_filesystem(Path::new(plugin)).expect("the plugin registers");

    let content = uri.repeat(1000);
    let mut writer = host.create(uri).expect("create");
    writer.append(content.as_bytes()).expect("append");
    writer.close().expect("close");
    let context = host.context().expect("a context");
    let read = context.strings("ReadFile", &[Tensor::string(uri)]).expect("read");
    assert!(read == [content.into_bytes()], "the content differs");

    // A program may end without having closed its files.
    let mut open = host.create(&format!("{uri}-open")).expect("create");
    open.append(b"never closed").expect("append");
    mem::forget(open);
}

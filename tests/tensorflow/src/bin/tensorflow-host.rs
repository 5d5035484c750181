//! A process with TensorFlow and a filesystem plugin, but without Python, whose memory does not grow.
//!
//! `tensorflow-host <directory of TensorFlow's libraries> <plugin> <root URI>` does some work below the root over and
//! over. Status 101 and a message if that takes more and more memory.
#![forbid(unsafe_code)]

use std::fs;
use std::path::Path;
use tf_fs_plugin::Code;
use tf_plugin_tensorflow_tests::abi::bytes_in_use;
use tf_plugin_testing::__private::{Tensor, TensorFlow};

/// How often the work is done while memory is counted.
const ROUNDS: usize = 4000;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [libraries, plugin, root] = &arguments[..] else {
        panic!("usage: tensorflow-host <directory> <plugin> <root URI>");
    };
    let host = TensorFlow::load(Path::new(libraries)).expect("TensorFlow loads without Python");
    let before = host.stat(root).expect_err("no plugin is registered");
    assert_eq!(before.code(), Code::Unimplemented, "{before}");
    host.register_filesystem(Path::new(plugin)).expect("the plugin registers");
    let context = host.context().expect("a context");
    let (file, missing) = (format!("{root}/file"), format!("{root}/missing"));
    // Made once: TensorFlow frees no long string of a tensor that C has filled.
    let [named, nothing] =
        [&file, &missing].map(|uri| context.handle(&Tensor::string(uri)).expect("a tensor"));
    let run = |operation, uri| -> tf_fs_plugin::Result<Tensor> {
        context.execute(operation, &[uri], None, None, 1)?[0].tensor()
    };
    host.create_dir(root).expect("create_dir");
    let work = |rounds: usize| {
        for _ in 0..rounds {
            let mut writer = host.create(&file).expect("create");
            writer.append(b"content").expect("append");
            writer.close().expect("close");
            assert_eq!(run("ReadFile", &named).expect("read"), Tensor::string("content"));
            host.children(root).expect("children");
            run("MatchingFiles", &named).expect("matching");
            for result in [host.stat(&missing).map(drop), run("ReadFile", &nothing).map(drop)] {
                assert_eq!(result.expect_err("nothing is there").code(), Code::NotFound);
            }
        }
    };
    work(2000);
    let (heap, resident) = (bytes_in_use(), resident_bytes());
    work(ROUNDS);
    let (heap, resident) =
        (bytes_in_use().saturating_sub(heap), resident_bytes().saturating_sub(resident));
    println!("{ROUNDS} rounds: heap +{heap} bytes, resident +{resident} bytes");
    // An allocation takes 32 bytes at least: not one is lost a round.
    assert!(heap < 16 * ROUNDS, "the heap has grown by {heap} bytes in {ROUNDS} rounds");
    assert!(resident < 8 << 20, "the process has grown by {resident} bytes in {ROUNDS} rounds");
}

fn resident_bytes() -> usize {
    let status = fs::read_to_string("/proc/self/statm").expect("procfs");
    let pages = status.split(' ').nth(1).expect("a second number");
    pages.parse::<usize>().expect("a number") * 4096
}

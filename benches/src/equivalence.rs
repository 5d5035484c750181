//! Checks that two plugins give the same answers, so that they are worth comparing.

use std::ffi::CStr;
use std::fmt::Debug;

use anyhow::{Result, ensure};

use cargo_tf_plugin::host::Filesystem;

use crate::c;

/// Runs the same operations on both plugins, which must be fresh.
pub fn check(a: &Filesystem, b: &Filesystem) -> Result<()> {
    ensure_equal(&transcript(a), &transcript(b))
}

/// Compares what two plugins have answered, a line each time.
pub(crate) fn ensure_equal(a: &[String], b: &[String]) -> Result<()> {
    for (a, b) in a.iter().zip(b) {
        ensure!(a == b, "the plugins differ:\n  {a}\n  {b}");
    }
    ensure!(a.len() == b.len(), "one plugin returns more often than the other");
    Ok(())
}

/// Returns the results of operations of every measured kind, with good and bad paths; nothing is
/// left behind.
fn transcript(plugin: &Filesystem) -> Vec<String> {
    // The last one is empty.
    const PATHS: &str = "mem://same|mem://same/|mem://same/d|mem://same/d/|\
        mem://same//d/./e/../f|mem://same/d/f|mem://same/d/f/below|mem://same/d/f/be/low|\
        mem://same/d/.hidden|mem://same/../../d/f|mem://same/nothing/here|mem://other/d/f|\
        mem:///d|ram://same/d|/|/d|";
    let mut lines = Vec::new();
    let mut say = |what: &str, answer: &dyn Debug| {
        let (code, message) = (plugin.status.code(), plugin.status.message());
        // Texts that name a path are the filesystem's; the others are the SDK's, which may change.
        let message = if message.contains("://") { message } else { String::new() };
        lines.push(format!("{what}: {answer:?} {code} {message}"));
    };
    for path in ["mem://same/d", "mem://same/d", "mem://same/x/y"] {
        say("create_dir", &plugin.create_dir(&c(path)).is_ok());
    }

    let mut writer = plugin.create(&c("mem://same/d/f"), false);
    if let Ok(writer) = &mut writer {
        for data in [&b"hello, "[..], b"", b"world"] {
            say("append", &writer.append(data).is_ok());
            say("tell", &writer.tell().ok());
        }
        for _ in 0..2 {
            say("close", &writer.close().is_ok());
            say("flush", &writer.flush().is_ok());
        }
        say("append after close", &writer.append(b"late").is_ok());
        say("tell after close", &writer.tell().ok());
    }
    drop(writer);
    say("write", &plugin.write(&c("mem://same/d/.hidden"), 1, b"?").is_ok());
    if let Ok(mut writer) = plugin.create(&c("mem://same/d/.hidden"), true) {
        say("append to what is there", &writer.append(b"!").is_ok());
        say("tell", &writer.tell().ok());
    }

    for path in PATHS.split('|') {
        let name = c(path);
        say(path, &("translate_name", plugin.translate_name(&name, CStr::to_owned).ok()));
        say(path, &("path_exists", plugin.path_exists(&name).is_ok()));
        say(path, &("stat", plugin.stat(&name).ok()));
        let mut children = Vec::new();
        let count = plugin.get_children(&name, |child| children.push(child.to_owned())).ok();
        say(path, &("get_children", count, children));
        match plugin.open(&name) {
            Err(_) => say(path, &"not opened"),
            Ok(reader) => {
                for (offset, length) in [(0, 12), (0, 5), (7, 5), (7, 9), (12, 1), (99, 4), (3, 0)]
                {
                    let mut buffer = vec![b'-'; length];
                    let (read, _) = reader.read(offset, &mut buffer);
                    say(path, &("read", read, String::from_utf8_lossy(&buffer)));
                }
            }
        }
    }
    for (path, directory) in [
        ("mem://same/d", true),
        ("mem://same/d", false),
        ("mem://same/d/f", true),
        ("mem://same/d/f", false),
        ("mem://same/d/.hidden", false),
        ("mem://same/d/f", false),
        ("mem://same/d", true),
        ("mem://same/d", true),
        ("mem://same/", false),
    ] {
        let name = c(path);
        let deleted = if directory { plugin.delete_dir(&name) } else { plugin.delete_file(&name) };
        say(path, &("delete, directory", directory, deleted.is_ok()));
    }
    lines
}

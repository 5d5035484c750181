//! A process with TensorFlow and a filesystem plugin, but without Python.
//!
//! `tensorflow-host <directory of TensorFlow's libraries> <plugin> <root URI>` runs every case below the
//! root, and writes a line a case. A wrong result ends the process with a message and status 101.
#![forbid(unsafe_code)]

use std::ffi::{CStr, CString};
use std::fmt::Debug;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::Instant;
use tf_fs_sys::{
    TF_ALREADY_EXISTS, TF_Code, TF_FAILED_PRECONDITION, TF_NOT_FOUND, TF_UNIMPLEMENTED,
};
use tf_plugin_tensorflow_tests::abi::{Failure, Host, Result, bytes_in_use};

/// What a case works with.
struct Place {
    host: Host,
    plugin: CString,
    /// A directory of the case's own, without `/` at the end.
    base: String,
}

impl Place {
    /// The name of something in the case's directory.
    fn at(&self, name: &str) -> CString {
        CString::new(format!("{}/{name}", self.base)).expect("no NUL in a name")
    }

    fn read(&self, name: &str) -> Result<Vec<u8>> {
        self.host.read_file(self.at(name).as_bytes())
    }

    fn write(&self, name: &str, content: &[u8]) {
        ok(self.host.write_file(self.at(name).as_bytes(), content), name);
    }

    /// `scheme://host` of the directory, and the path in it.
    fn split(&self) -> (&str, &str) {
        let authority = self.base.find("://").expect("a URI") + 3;
        let path = self.base[authority..].find('/').expect("a path");
        self.base.split_at(authority + path)
    }
}

#[track_caller]
fn ok<T>(result: Result<T>, what: &str) -> T {
    result.unwrap_or_else(|failure| panic!("{what}: {failure}"))
}

/// The result must be a failure with this code and a message that is text and contains all `words`.
#[track_caller]
fn fails<T: Debug>(result: Result<T>, code: TF_Code, words: &[&str]) {
    let failure = result.expect_err("a failure");
    assert_eq!(failure.code, code, "{failure}");
    let message = str::from_utf8(&failure.message).expect("a message is UTF-8");
    for word in words {
        assert!(message.contains(word), "{word:?} is not in {message:?}");
    }
}

type Case = (&'static str, fn(&Place));

const CASES: &[Case] = &[
    ("registration", registration),
    ("a_file_from_creation_to_deletion", a_file_from_creation_to_deletion),
    ("contents", contents),
    ("directories", directories),
    ("operators", operators),
    ("codes", codes),
    ("long_names", long_names),
    ("names_that_are_not_utf8", names_that_are_not_utf8),
    ("embedded_nul", embedded_nul),
    ("dot_dot", dot_dot),
    ("other_schemes", other_schemes),
    ("sixteen_threads", sixteen_threads),
    ("no_leak", no_leak),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments == ["--list"] {
        for (name, _) in CASES {
            println!("{name}");
        }
        return;
    }
    let [libraries, plugin, root] = &arguments[..] else {
        panic!("usage: tensorflow-host <directory> <plugin> <root URI>");
    };
    let host = Host::load(Path::new(libraries)).expect("TensorFlow loads without Python");
    let plugin = CString::new(plugin.as_str()).expect("no NUL in an argument");
    let mut place = Place { host, plugin, base: String::new() };
    fails(
        place.host.stat(&CString::new(root.as_str()).expect("no NUL in an argument")),
        TF_UNIMPLEMENTED,
        &["not implemented"],
    );
    ok(place.host.register(&place.plugin), "the registration");
    for (name, case) in CASES {
        place.base = format!("{root}/{name}");
        // Creates the directory with all that is missing above.
        place.write("keep", b"");
        let started = Instant::now();
        case(&place);
        let base = CString::new(place.base.as_str()).expect("no NUL in a name");
        assert_eq!(place.host.delete_recursively(&base), (Ok(()), 0, 0), "{name}: the clean-up");
        println!("ok {name} {:.2}s", started.elapsed().as_secs_f32());
    }
}

fn registration(place: &Place) {
    let register = || place.host.register(&place.plugin);
    for _ in 0..3 {
        ok(register(), "registering what is registered");
    }
    // Of several at once, all but one may learn that another was first.
    let results: Vec<Result<()>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(register)).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    for result in results {
        if let Err(Failure { code, .. }) = result {
            assert_eq!(code, TF_ALREADY_EXISTS);
        }
    }
    ok(register(), "registering after that");
    assert_eq!(place.read("keep"), Ok(Vec::new()), "the file from before");

    let scratch = std::env::temp_dir().join(format!("no-plugin-{}.so", std::process::id()));
    fs::write(&scratch, b"this is no library").expect("a scratch file");
    let text = |path: &Path| CString::new(path.to_str().expect("UTF-8")).expect("no NUL");
    fails(place.host.register(&text(&scratch)), TF_NOT_FOUND, &["no-plugin"]);
    fs::remove_file(&scratch).expect("the scratch file is there");
    fails(place.host.register(&text(&scratch)), TF_NOT_FOUND, &["no-plugin"]);
    fails(place.host.register(c"libm.so.6"), TF_NOT_FOUND, &["TF_InitPlugin"]);
    place.write("after", b"still there");
    assert_eq!(place.read("after"), Ok(b"still there".to_vec()));
}

fn a_file_from_creation_to_deletion(place: &Place) {
    let (host, name) = (&place.host, place.at("file"));
    fails(host.stat(&name), TF_NOT_FOUND, &["file"]);
    let mut writer = ok(host.create(&name), "create");
    // It is there before anything was written.
    let statistics = ok(host.stat(&name), "stat of a new file");
    assert_eq!((statistics.length, statistics.is_directory), (0, false));
    ok(writer.append(b"one "), "append");
    ok(writer.append(b""), "append of nothing");
    ok(writer.append(b"two"), "append");
    ok(writer.flush(), "flush");
    assert_eq!(ok(host.stat(&name), "stat").length, 7, "length after flush");
    assert_eq!(place.read("file"), Ok(b"one two".to_vec()), "content after flush");
    ok(writer.append(b" three"), "append after flush");
    ok(writer.sync(), "sync");
    assert_eq!(place.read("file"), Ok(b"one two three".to_vec()), "content after sync");
    ok(writer.close(), "close");
    // A second writer starts anew.
    let mut writer = ok(host.create(&name), "create over a file");
    assert_eq!(ok(host.stat(&name), "stat").length, 0, "length of an overwritten file");
    ok(writer.append(b"new"), "append");
    ok(writer.close(), "close");
    assert_eq!(place.read("file"), Ok(b"new".to_vec()), "content after close");
    // Deleted while open: the writer goes on into nothing.
    let mut writer = ok(host.create(&name), "create");
    ok(host.delete_file(&name), "delete of an open file");
    ok(writer.append(b"unseen"), "append to a deleted file");
    ok(writer.close(), "close of a deleted file");
    fails(host.stat(&name), TF_NOT_FOUND, &["file"]);
    fails(host.delete_file(&name), TF_NOT_FOUND, &["file"]);
}

fn contents(place: &Place) {
    // Around the sizes of the buffers in use, with every byte value.
    for size in [0, 1, 255, 4095, 4096, 65_537, 131_072, 1 << 20, (8 << 20) + 1] {
        let content: Vec<u8> = (0..size).map(|index| (index * 31 % 251) as u8).collect();
        let mut writer = ok(place.host.create(&place.at("sized")), "create");
        for piece in content.chunks(100_000) {
            ok(writer.append(piece), "append");
        }
        ok(writer.close(), "close");
        let statistics = ok(place.host.stat(&place.at("sized")), "stat");
        assert_eq!(statistics.length, size as i64);
        assert!(place.read("sized") == Ok(content), "the content of {size} bytes differs");
    }
    let mut writer = ok(place.host.create(&place.at("pieces")), "create");
    for number in 0..10_000 {
        ok(writer.append(format!("{number:04}").as_bytes()), "append");
    }
    ok(writer.close(), "close");
    let expected: String = (0..10_000).map(|number| format!("{number:04}")).collect();
    assert!(place.read("pieces") == Ok(expected.into_bytes()), "10,000 small pieces");
}

fn directories(place: &Place) {
    let host = &place.host;
    let children = |name: &str| -> Result<Vec<Vec<u8>>> {
        let mut names = host.children(&place.at(name))?;
        names.sort();
        Ok(names)
    };
    ok(host.create_dir(&place.at("dir")), "create_dir");
    assert!(ok(host.stat(&place.at("dir")), "stat").is_directory);
    assert_eq!(children("dir"), Ok(vec![]), "an empty directory");
    ok(host.create_dir(&place.at("dir/sub")), "create_dir");
    ok(host.create_dir(&place.at("dir/empty")), "create_dir");
    place.write("dir/file", b"1");
    place.write("dir/sub/deep", b"2");
    let expected: [&[u8]; 3] = [b"empty", b"file", b"sub"];
    assert_eq!(children("dir"), Ok(expected.map(<[u8]>::to_vec).to_vec()));
    fails(host.create_dir(&place.at("dir")), TF_ALREADY_EXISTS, &["dir"]);
    fails(host.delete_dir(&place.at("dir")), TF_FAILED_PRECONDITION, &["dir"]);
    ok(host.delete_dir(&place.at("dir/empty")), "delete_dir");
    fails(host.children(&place.at("dir/empty")), TF_NOT_FOUND, &["empty"]);
    for number in 0..1000 {
        place.write(&format!("dir/{number:03}"), b"");
    }
    assert_eq!(ok(children("dir"), "children").len(), 1002);
    assert_eq!(host.delete_recursively(&place.at("dir")), (Ok(()), 0, 0));
    fails(host.stat(&place.at("dir")), TF_NOT_FOUND, &["dir"]);
    let (result, files, dirs) = host.delete_recursively(&place.at("dir"));
    fails(result, TF_NOT_FOUND, &["dir"]);
    assert_eq!((files, dirs), (0, 1), "what is left where nothing was");
}

fn operators(place: &Place) {
    place.write("made/by/the/operator/part-0", b"zero");
    place.write("made/by/the/operator/part-1", b"");
    place.write("made/other", b"\0\xff");
    assert_eq!(place.read("made/by/the/operator/part-0"), Ok(b"zero".to_vec()));
    assert_eq!(place.read("made/by/the/operator/part-1"), Ok(Vec::new()));
    assert_eq!(place.read("made/other"), Ok(b"\0\xff".to_vec()));
    let found = |pattern: &str| -> Result<Vec<String>> {
        let names = place.host.matching_files(place.at(pattern).as_bytes())?;
        let text = |name| String::from_utf8(name).expect("UTF-8");
        let mut names: Vec<String> = names.into_iter().map(text).collect();
        names.sort();
        Ok(names)
    };
    let full = |name: &str| format!("{}/{name}", place.base);
    assert_eq!(
        found("made/by/*/operator/part-[01]"),
        Ok(vec![full("made/by/the/operator/part-0"), full("made/by/the/operator/part-1")])
    );
    assert_eq!(found("made/*"), Ok(vec![full("made/by"), full("made/other")]));
    assert_eq!(found("made/othe?"), Ok(vec![full("made/other")]));
    assert_eq!(found("made/x*"), Ok(vec![]));
    fails(place.read("made/nothing"), TF_NOT_FOUND, &["made/nothing"]);
    fails(place.read("made"), TF_FAILED_PRECONDITION, &["made"]);
}

fn codes(place: &Place) {
    let host = &place.host;
    place.write("file", b"content");
    ok(host.create_dir(&place.at("dir")), "create_dir");
    let open = |name: &str| host.create(&place.at(name)).map(|writer| ok(writer.close(), name));
    for (name, code) in [
        ("missing/x", TF_NOT_FOUND),
        ("missing/x/y", TF_NOT_FOUND),
        ("file/x", TF_FAILED_PRECONDITION),
    ] {
        let at = place.at(name);
        fails(open(name), code, &[&place.base]);
        fails(host.stat(&at), code, &[&place.base]);
        fails(host.children(&at), code, &[&place.base]);
        fails(host.create_dir(&at), code, &[&place.base]);
        fails(host.delete_dir(&at), code, &[&place.base]);
        fails(host.delete_file(&at), code, &[&place.base]);
        fails(place.read(name), code, &[&place.base]);
        let (result, files, dirs) = host.delete_recursively(&at);
        fails(result, code, &[&place.base]);
        assert_eq!((files, dirs), (0, 1));
    }
    fails(open("dir"), TF_FAILED_PRECONDITION, &["dir"]);
    fails(host.create_dir(&place.at("file")), TF_ALREADY_EXISTS, &["file"]);
    fails(host.delete_dir(&place.at("file")), TF_FAILED_PRECONDITION, &["file"]);
    fails(host.delete_file(&place.at("dir")), TF_FAILED_PRECONDITION, &["dir"]);
    fails(host.children(&place.at("file")), TF_FAILED_PRECONDITION, &["file"]);
    assert_eq!(place.read("file"), Ok(b"content".to_vec()), "after all that");
}

/// Whatever a plugin answers to an odd name, it must say so in words, and the rest must stay usable.
fn try_everything(place: &Place, name: &CStr) {
    let host = &place.host;
    let say = |result: Result<()>| {
        if let Err(failure) = result {
            assert!(!failure.message.is_empty(), "no message: {failure}");
            assert!(failure.message.len() <= 5000, "{} bytes", failure.message.len());
            assert!(str::from_utf8(&failure.message).is_ok(), "not UTF-8: {failure}");
        }
    };
    say(host.stat(name).map(drop));
    say(host.create(name).and_then(|mut writer| {
        writer.append(b"content")?;
        writer.close()
    }));
    let content = host.read_file(name.to_bytes());
    assert!(content.as_ref().is_err() || content == Ok(b"content".to_vec()), "{content:?}");
    say(content.map(drop));
    say(host.children(name).map(drop));
    say(host.matching_files(name.to_bytes()).map(drop));
    say(host.delete_file(name));
    say(host.create_dir(name));
    say(host.delete_dir(name));
    say(host.delete_recursively(name).0);
    assert!(host.stat(name).is_err(), "it is there after all was deleted");
}

fn long_names(place: &Place) {
    try_everything(place, &place.at(&"x".repeat(1 << 20)));
    try_everything(place, &place.at(&"x/".repeat(1 << 19)));
    // Names the root, so nothing is deleted here.
    ok(place.host.stat(&place.at(&"../".repeat(1 << 18))), "stat of the root by a long way");
    let host_part = format!("{}{}/x", place.split().0, "h".repeat(1 << 20));
    try_everything(place, &CString::new(host_part).expect("no NUL"));
    let only = ok(place.host.children(&place.at("")), "children");
    assert_eq!(only, [b"keep"], "nothing is left behind");
}

fn names_that_are_not_utf8(place: &Place) {
    for bytes in [&b"\xff"[..], b"a\xc3", b"\xed\xa0\x80", b"\xf8\x88\x80\x80\x80/below"] {
        let name = [place.base.as_bytes(), b"/", bytes].concat();
        try_everything(place, &CString::new(name).expect("no NUL"));
    }
    let only = ok(place.host.children(&place.at("")), "children");
    assert_eq!(only, [b"keep"], "nothing is left behind");
}

/// The host hands C strings to plugins, so a name ends at its first NUL.
fn embedded_nul(place: &Place) {
    let name = |name: &str| format!("{}/{name}", place.base).into_bytes();
    ok(place.host.write_file(&name("a\0hidden"), b"content"), "write");
    assert_eq!(place.read("a"), Ok(b"content".to_vec()));
    assert_eq!(place.host.read_file(&name("a\0other")), Ok(b"content".to_vec()));
    assert_eq!(ok(place.host.children(&place.at("")), "children").len(), 2);
}

fn dot_dot(place: &Place) {
    ok(place.host.create_dir(&place.at("sub")), "create_dir");
    place.write("sub/../file", b"here");
    assert_eq!(place.read("file"), Ok(b"here".to_vec()));
    assert_eq!(place.read("./sub/.//..//file"), Ok(b"here".to_vec()));
    let (authority, path) = place.split();
    let climbing = format!("{authority}{}{path}/file", "/..".repeat(40));
    assert_eq!(place.host.read_file(climbing.as_bytes()), Ok(b"here".to_vec()));
    // Above the root there is the root, never the directory that the process works in.
    let escape = CString::new(format!("{authority}{}/proc/self/environ", "/..".repeat(40)));
    let straight = CString::new(format!("{authority}/proc/self/environ"));
    let exists = |name: CString| place.host.stat(&name).is_ok();
    assert_eq!(exists(escape.expect("no NUL")), exists(straight.expect("no NUL")));
}

fn other_schemes(place: &Place) {
    let (authority, path) = place.split();
    let (scheme, host) = authority.split_once("://").expect("a URI");
    // Schemes are case-sensitive, and none is a part of another.
    for other in [scheme.to_uppercase(), format!("{scheme}x"), format!("x{scheme}")] {
        let name = CString::new(format!("{other}://{host}{path}/keep")).expect("no NUL");
        fails(place.host.stat(&name), TF_UNIMPLEMENTED, &["not implemented"]);
    }
}

fn sixteen_threads(place: &Place) {
    place.write("shared", &vec![7; 300_000]);
    thread::scope(|scope| {
        for thread in 0..16 {
            scope.spawn(move || {
                let directory = format!("thread-{thread}");
                for round in 0..20 {
                    let name = format!("{directory}/{round}");
                    let content = vec![thread * 16 + round % 16; 1000 * usize::from(round)];
                    place.write(&name, &content);
                    assert_eq!(place.read(&name), Ok(content));
                    assert_eq!(place.read("shared").map(|content| content.len()), Ok(300_000));
                    // The others come and go in there.
                    ok(place.host.children(&place.at("")), "children");
                    let pattern = place.at(&format!("{directory}/*"));
                    let found = ok(place.host.matching_files(pattern.as_bytes()), "matching");
                    assert_eq!(found.len(), usize::from(round) + 1);
                }
                let left = place.host.delete_recursively(&place.at(&directory));
                assert_eq!(left, (Ok(()), 0, 0));
            });
        }
    });
    assert_eq!(ok(place.host.children(&place.at("")), "children").len(), 2);
}

/// Neither the allocator nor the system knows of more memory after many operations of each kind.
fn no_leak(place: &Place) {
    let host = &place.host;
    let (file, missing) = (place.at("file"), place.at("missing"));
    let work = |rounds: usize| {
        for _ in 0..rounds {
            let mut writer = ok(host.create(&file), "create");
            ok(writer.append(b"content"), "append");
            ok(writer.close(), "close");
            ok(host.read_file(file.as_bytes()), "read");
            ok(host.children(&place.at("")), "children");
            ok(host.matching_files(file.as_bytes()), "matching");
            fails(host.stat(&missing), TF_NOT_FOUND, &[]);
            fails(host.read_file(missing.as_bytes()), TF_NOT_FOUND, &[]);
        }
    };
    work(2000);
    let (heap, resident) = (bytes_in_use(), resident_bytes());
    work(20_000);
    let (heap, resident) =
        (bytes_in_use().saturating_sub(heap), resident_bytes().saturating_sub(resident));
    println!("20,000 rounds: heap +{heap} bytes, resident +{resident} bytes");
    // Less than 4 bytes a round: not one lost allocation.
    assert!(heap < 80_000, "the heap has grown by {heap} bytes in 20,000 rounds");
    assert!(resident < 8 << 20, "the process has grown by {resident} bytes in 20,000 rounds");
}

fn resident_bytes() -> usize {
    let status = fs::read_to_string("/proc/self/statm").expect("procfs");
    let pages = status.split(' ').nth(1).expect("a second number");
    pages.parse::<usize>().expect("a number") * 4096
}

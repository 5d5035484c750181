//! What `s3://` promises of writes on every store, whatever it can do: asked below a name that nobody else uses.

use crate::{content, fs};
use tf_fs_plugin::Code;
use tf_plugin_testing::filesystem::TestWritableFile;

const MIB: usize = 1 << 20;

/// Sizes below and above what is sent in one request, and below and above what the store copies at a flush.
const SIZES: [usize; 3] = [100, 6 * MIB, 9 * MIB];

fn read(uri: &str) -> Vec<u8> {
    fs().read_file(uri).expect("it is read")
}

/// What another process does: a separate writer, without any checks.
fn put(uri: &str, bytes: &[u8]) {
    let mut file = fs().new_writable_file(uri).expect("it opens");
    file.append(bytes).expect("it is appended");
    file.close().expect("it is closed");
}

fn append_to(uri: &str) -> TestWritableFile {
    fs().new_appendable_file(uri).expect("it opens for appending")
}

/// Flushes publish what was appended, whatever the size.
///
/// # Panics
/// If they do not.
pub fn flushes_publish(base: &str) {
    for size in SIZES {
        let uri = format!("{base}flushed-{size}");
        let bytes = content(size + 3 * MIB, 1);
        let mut file = fs().new_writable_file(&uri).expect("it opens");
        let mut end = 0;
        for piece in [size, MIB, MIB, MIB - 1, 1] {
            file.append(&bytes[end..end + piece]).expect("it is appended");
            end += piece;
            file.flush().unwrap_or_else(|error| panic!("{size}, {end}: {error:#}"));
            assert!(read(&uri) == bytes[..end], "{size}, {end}");
        }
        file.close().expect("it is closed");
        assert!(read(&uri) == bytes, "{size}");
    }
}

/// Appends continue after the existing content, also after what was made of parts.
///
/// # Panics
/// If they do not.
pub fn appends_go_on(base: &str) {
    for size in SIZES {
        let uri = format!("{base}appended-{size}");
        let mut bytes = content(size, 1);
        put(&uri, &bytes);
        for more in [10, 9 * MIB, 10] {
            let more = content(more, 2);
            let mut file = append_to(&uri);
            file.append(&more).expect("it is appended");
            file.close().unwrap_or_else(|error| panic!("{size}: {error:#}"));
            bytes.extend(more);
            assert!(read(&uri) == bytes, "{size}");
        }
    }
}

/// What another process wrote while a file was open for appending, or between two flushes, stays, and the writer is told.
///
/// # Panics
/// If not.
pub fn theirs_stays(base: &str) {
    for size in SIZES {
        let uri = format!("{base}theirs-{size}");
        let check = |mut file: TestWritableFile, what: &str| {
            file.append(b"more").expect("it is appended");
            put(&uri, b"theirs");
            let error = file.close().expect_err(what);
            let text = format!("{size}, {what}: {error:#}");
            // Garage ends the uploads of a name that another object is put to.
            if !text.contains("NoSuchUpload") {
                assert_eq!(error.code(), Code::FailedPrecondition, "{text}");
                assert!(text.contains("another process"), "{text}");
            }
            drop(file);
            assert_eq!(read(&uri), b"theirs", "{size}, {what}");
        };
        put(&uri, &content(size, 1));
        check(append_to(&uri), "append");
        let mut file = fs().new_writable_file(&uri).expect("it opens");
        file.append(&content(size, 1)).expect("it is appended");
        file.flush().expect("it is flushed");
        check(file, "flush");
        fs().delete_file(&uri).expect("it is deleted");
        let mut file = append_to(&uri);
        file.append(&content(size, 1)).expect("it is appended");
        check(file, "append to nothing");
    }
}

/// Copies and renames are whole, also of what was made of parts.
///
/// # Panics
/// If they are not.
pub fn copies_are_whole(base: &str) {
    for size in SIZES {
        let [uri, copy, renamed] =
            ["source", "copy", "renamed"].map(|name| format!("{base}{name}-{size}"));
        let bytes = content(size, 1);
        put(&uri, &bytes);
        // What was just written is known, and named in a condition.
        fs().copy_file(&uri, &copy).expect("it is copied");
        assert!(read(&copy) == bytes, "{size}");
        fs().rename_file(&uri, &renamed).expect("it is renamed");
        assert!(read(&renamed) == bytes, "{size}");
        assert_eq!(fs().path_exists(&uri).expect_err("it is gone").code(), Code::NotFound);
    }
}

/// All of them.
///
/// # Panics
/// If one does not hold.
pub fn all(base: &str) {
    flushes_publish(base);
    appends_go_on(base);
    theirs_stays(base);
    copies_are_whole(base);
}

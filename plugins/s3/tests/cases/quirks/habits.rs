//! What other stores do, as public reports describe it: `s3://` works there with the settings that its README names, and without
//! them an error names the setting.

use super::{MIB, store};
use s3_server::{Habit, Quirks};
use tf_plugin_s3_tests::{Store, code, content, fs, guarantees};

/// Writes a file of three parts and appends as much to it.
fn in_parts(store: &Store) -> tf_fs_plugin::Result<()> {
    let bytes = content(20 * MIB, 1);
    let mut file = fs().new_writable_file(store.uri("large"))?;
    for piece in bytes.chunks(3 * MIB) {
        file.append(piece)?;
    }
    file.close()?;
    let mut file = fs().new_appendable_file(store.uri("large"))?;
    file.append(&bytes)?;
    file.close()?;
    assert!(store.get("large").unwrap() == bytes.repeat(2));
    Ok(())
}

#[test]
fn parts_of_one_length() {
    let store = store("quirks-equal", Quirks::of_habits(&[Habit::EqualParts]));
    store.set(&[("write_part_bytes", "8MiB")]);
    // What is there is the first part of what is appended to: parts of different lengths.
    let error = in_parts(&store).unwrap_err();
    assert!(error.to_string().contains("set TF_S3_WRITE_PARTS_EQUAL=1"), "{error:#}");
    assert_eq!(error.code(), tf_fs_plugin::Code::FailedPrecondition, "{error:#}");
    store.set(&[("write_parts_equal", "1"), ("write_part_bytes", "8MiB")]);
    in_parts(&store).unwrap();
    guarantees::appends_go_on(&store.uri(""));
    assert_eq!(store.open_uploads(), [""; 0]);
}

#[test]
fn no_checksums() {
    let store = store("quirks-b2", Quirks::of_habits(&[Habit::NoChecksums]));
    let error = fs()
        .new_writable_file(store.uri("file"))
        .and_then(|mut file| {
            file.append(b"x")?;
            file.close()
        })
        .unwrap_err();
    let setting = "AWS_REQUEST_CHECKSUM_CALCULATION=when_required";
    assert!(error.to_string().contains(setting), "{error:#}");
    store.set(&[("checksums", "when_required")]);
    in_parts(&store).unwrap();
    guarantees::all(&store.uri(""));
}

#[test]
fn virtual_hosts_only() {
    let store = store("quirks-oss", Quirks::of_habits(&[Habit::VirtualHostsOnly]));
    let endpoint = store.endpoint().replace("127.0.0.1", "localhost");
    store.set(&[("endpoint_url", &endpoint)]);
    store.put("file", "bytes");
    let error = fs().read_file(store.uri("file")).unwrap_err();
    assert!(error.to_string().contains("set TF_S3_ADDRESSING_STYLE=virtual"), "{error:#}");
    store.set(&[("endpoint_url", &endpoint), ("addressing_style", "virtual")]);
    assert_eq!(fs().read_file(store.uri("file")).unwrap(), b"bytes");
    guarantees::all(&store.uri(""));
}

#[test]
fn a_directory_that_head_finds_is_no_file() {
    let store = store("quirks-weed", Quirks::of_habits(&[Habit::HeadOfMarker]));
    fs().create_dir(store.uri("d")).unwrap();
    store.put("d/file", "bytes");
    fs().is_directory(store.uri("d")).unwrap();
    assert_eq!(code(fs().read_file(store.uri("d"))), tf_fs_plugin::Code::FailedPrecondition);
    let mut file = fs().new_writable_file(store.uri("d")).unwrap();
    file.append(b"a file").unwrap();
    file.close().unwrap();
    assert_eq!(fs().read_file(store.uri("d")).unwrap(), b"a file");
    fs().delete_file(store.uri("d")).unwrap();
    assert_eq!(store.get("d/file").unwrap(), b"bytes");
    guarantees::all(&store.uri(""));
}

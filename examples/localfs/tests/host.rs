//! The plugin as TensorFlow uses it: through the tables of C functions, with the host's checks.

use localfs::LocalFs;
use tempfile::TempDir;
use tf_fs_plugin::{Code, FilesystemOption, OperationTable, Operations, OptionValues};
use tf_plugin_testing::filesystem::Host;

fn host() -> (Host, TempDir, String) {
    let directory = tempfile::tempdir().unwrap();
    let base = format!("local://{}", directory.path().display());
    (Host::load::<LocalFs>().unwrap(), directory, base)
}

#[test]
fn every_operation_is_its_own() {
    for (name, op) in Operations::NAMES {
        // The SDK's is right for paths of a machine.
        let expected = *name != "translate_name";
        assert_eq!(LocalFs::PROVIDED.contains(*op), expected, "{name}");
    }
}

#[test]
fn files() {
    let (host, _directory, base) = host();
    let name = format!("{base}/file");
    let mut writer = host.new_writable_file(&name).unwrap();
    assert_eq!(writer.tell().unwrap(), 0);
    writer.append(b"content").unwrap();
    writer.append(b"").unwrap();
    assert_eq!(writer.tell().unwrap(), 7);
    writer.flush().unwrap();
    writer.sync().unwrap();
    writer.close().unwrap();
    // As TensorFlow's buffered file does.
    writer.flush().unwrap();
    writer.close().unwrap();
    assert_eq!(writer.append(b"more").unwrap_err().code(), Code::FailedPrecondition);
    drop(writer);

    let reader = host.new_random_access_file(&name).unwrap();
    assert_eq!(reader.read(0, 7).unwrap(), b"content");
    let (tail, status) = reader.read_with_status(4, 10);
    assert_eq!((&tail[..], status.unwrap_err().code()), (&b"ent"[..], Code::OutOfRange));
    let (none, status) = reader.read_with_status(7, 1);
    assert_eq!((&none[..], status.unwrap_err().code()), (&b""[..], Code::OutOfRange));
    assert_eq!(reader.read(100, 0).unwrap(), b"");

    let region = host.new_read_only_memory_region_from_file(&name).unwrap();
    assert_eq!(region.to_vec(), b"content");
    assert!(region.content().as_ptr().addr().is_multiple_of(64));
    host.write_file(format!("{base}/empty"), b"").unwrap();
    let empty = host.new_read_only_memory_region_from_file(format!("{base}/empty"));
    assert_eq!(empty.unwrap_err().code(), Code::InvalidArgument);

    drop(host.new_appendable_file(&name).unwrap());
    assert_eq!(host.read_file(&name).unwrap(), b"content");
}

#[test]
fn names_as_users_write_them() {
    let (host, _directory, base) = host();
    host.create_dir(format!("{base}/dir/")).unwrap();
    host.write_file(format!("{base}//dir/./x/../file"), b"content").unwrap();
    assert_eq!(host.read_file(format!("{base}/dir/file")).unwrap(), b"content");
    for root in ["local://", "local:///", "local:////..//"] {
        host.is_directory(root).unwrap();
    }
    let matches = host.get_matching_paths(format!("{base}/*/f*")).unwrap();
    assert_eq!(matches, [format!("{base}/dir/file").into_bytes()]);
    assert_eq!(host.get_children(format!("{base}/dir")).unwrap(), [b"file"]);
    assert_eq!(host.stat("local://host/x").unwrap_err().code(), Code::FailedPrecondition);
}

#[test]
fn deleting_and_moving() {
    let (host, _directory, base) = host();
    let path = |name: &str| format!("{base}/{name}");
    host.recursively_create_dir(path("a/b/c")).unwrap();
    host.write_file(path("a/file"), b"content").unwrap();
    host.copy_file(path("a/file"), path("a/b/copy")).unwrap();
    host.rename_file(path("a/file"), path("a/b/c/moved")).unwrap();
    assert_eq!(host.path_exists(path("a/file")).unwrap_err().code(), Code::NotFound);
    let answers = host.paths_exist(&[path("a/b/copy"), path("a/b/copy/x"), path("no")]).unwrap();
    let codes: Vec<_> = answers.iter().map(|a| a.as_ref().err().map(|e| e.code())).collect();
    assert_eq!(codes, [None, Some(Code::FailedPrecondition), Some(Code::NotFound)]);
    host.delete_recursively(path("a")).unwrap();
    let left = host.delete_recursively(path("a")).unwrap_err();
    assert_eq!((left.error.code(), left.files, left.dirs), (Code::NotFound, 0, 1));
    host.flush_caches();
}

#[test]
fn transactions_and_options() {
    let (host, _directory, base) = host();
    let file = format!("{base}/file");
    host.write_file(&file, b"content").unwrap();
    let filesystem = host.filesystem("local").unwrap();
    let one = filesystem.start_transaction().unwrap();
    filesystem.add_to_transaction(&file, &one).unwrap();
    assert!(filesystem.get_transaction_for_path(&file).unwrap() == one);
    assert!(filesystem.get_or_start_transaction_for_path(&file).unwrap() == one);
    let text = filesystem.decode_transaction_token(&one).unwrap();
    assert!(text.ends_with(&format!(": {file}")), "{text}");
    filesystem.end_transaction(&one).unwrap();
    assert_eq!(filesystem.end_transaction(&one).unwrap_err().code(), Code::NotFound);
    let gone = filesystem.get_transaction_for_path(&file);
    assert_eq!(gone.unwrap_err().code(), Code::NotFound);

    let keys = filesystem.get_filesystem_configuration_keys().unwrap();
    assert_eq!(keys, ["root", "write_buffer_bytes", "sync_on_close"]);
    let option = FilesystemOption::new("sync_on_close", OptionValues::Int(vec![1]));
    filesystem.set_filesystem_configuration(std::slice::from_ref(&option)).unwrap();
    let answer = filesystem.get_filesystem_configuration_option("sync_on_close").unwrap();
    assert_eq!(answer.values, option.values);
    assert_eq!(filesystem.get_filesystem_configuration().unwrap().len(), 3);
    host.write_file(&file, b"durable").unwrap();
    assert_eq!(host.read_file(&file).unwrap(), b"durable");
    let unknown = filesystem.get_filesystem_configuration_option("no_such_option");
    assert_eq!(unknown.unwrap_err().code(), Code::NotFound);
}

#[test]
fn a_copy_of_a_region_stays_when_the_file_changes() {
    let (host, directory, base) = host();
    let name = format!("{base}/file");
    // More than a page: that is mapped, and the rest is a copy.
    host.write_file(&name, vec![1; 10_000]).unwrap();
    let region = host.new_read_only_memory_region_from_file(&name).unwrap();
    let copy = region.to_vec();
    let file = std::fs::File::options().write(true).open(directory.path().join("file")).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &[2; 100], 0).unwrap();
    assert_eq!(copy, vec![1; 10_000]);
    assert_eq!(region.to_vec()[..101], [&[2; 100][..], &[1]].concat());
    assert_eq!(region.content().len(), 10_000);
}

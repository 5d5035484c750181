//! The plugin as TensorFlow uses it: through the tables of C functions, with the host's checks.

use localfs::LocalFs;
use tempfile::TempDir;
use tf_fs_plugin::{Code, OperationTable, Operations};
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

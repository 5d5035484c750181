//! The host's statuses, in a process of its own: they are counted, and their misuse is found out.

#[allow(unsafe_code, reason = "calls the functions that the host gives to plugins")]
mod abi;

use tf_fs_plugin::Code;
use tf_fs_plugin::testing::Host;

/// One test, since the count is of the process.
#[test]
fn statuses_are_counted() {
    let host = Host::new();
    assert_eq!(Host::live_statuses(), 0);
    let status = abi::new_status();
    assert_eq!(Host::live_statuses(), 1);
    abi::set_from_io_error(status, 2, c"opening");
    let (code, message) = abi::content(status);
    assert_eq!(Code::from_raw(code), Some(Code::NotFound));
    assert!(message.starts_with("opening: No such file"), "{message}");
    abi::set_from_io_error(status, 0, c"fine");
    assert_eq!(abi::content(status), (0, String::new()));
    abi::set(status, 13, c"bad", &[(c"k", c"v"), (c"k2", c"v2"), (c"k", c"again")]);
    assert_eq!(abi::payloads(status), [("k2", "v2"), ("k", "again")].map(own));
    abi::set(status, 0, c"no message and no payload with OK", &[(c"k", c"v")]);
    assert_eq!((abi::content(status), abi::payloads(status)), ((0, String::new()), vec![]));
    abi::delete(status);
    abi::delete_null();
    assert_eq!(Host::live_statuses(), 0);
    drop(host);

    // A pointer that is no status ends the process, with a word about it.
    if std::env::var_os(CHILD).is_some() {
        abi::set(status, 0, c"", &[]);
    }
    let this = std::env::current_exe().expect("the test");
    let child = std::process::Command::new(this)
        .args(["--exact", "statuses_are_counted", "--nocapture"])
        .env(CHILD, "1")
        .output()
        .expect("started");
    let text = String::from_utf8_lossy(&child.stderr);
    assert!(!child.status.success() && text.contains("which is no status"), "{text}");
}

const CHILD: &str = "TF_FS_PLUGIN_TEST_OF_A_DELETED_STATUS";

fn own((key, value): (&str, &str)) -> (String, String) {
    (key.to_owned(), value.to_owned())
}

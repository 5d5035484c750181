//! The wheel of `plugins/opendal`: one file for every TensorFlow, which uses its schemes without an import.

use crate::crates::{releases, site_with, succeeds, wheel_of};
use crate::output::assert_all;
use file_servers::{Kind, Server};
use std::fs;

const USE_IT: &str = "
import sys
import tensorflow as tf
name = sys.argv[1]
tf.io.gfile.makedirs(name)
with tf.io.TFRecordWriter(name + '/records') as writer:
    writer.write(b'written')
[record] = tf.data.TFRecordDataset(name + '/records')
print(tf.__version__.replace('-', ''), record.numpy(), tf.io.gfile.listdir(name))";

#[test]
fn one_wheel_serves_every_tensorflow() {
    let (server, scratch) = (Server::start(Kind::OpenSsh), tempfile::tempdir().expect("a scratch"));
    let wheel = wheel_of("tensorflow-opendal", scratch.path());
    for release in releases() {
        let site = site_with(release, &wheel);
        let mut python = site.python(&["-c", USE_IT, &format!("{}/{release}", server.uri())]);
        for (key, value) in server.settings() {
            python.env(format!("TF_OPENDAL_{}", key.to_uppercase()), value);
        }
        let printed = succeeds(&mut python);
        assert_all(&printed, &[&format!("{release} b'written' ['records']")]);
        let there = fs::read(server.files().join(release).join("records")).expect("it is there");
        assert!(there.windows(7).any(|bytes| bytes == b"written"), "{there:?}");
        let doctor = succeeds(&mut site.python(&["-m", "tensorflow_opendal", "doctor"]));
        assert_all(&doctor, &["sftp", "webdav", "has the plugin."]);
        site.pip(&["uninstall", "--yes", "tensorflow-opendal"]);
        assert!(!site.0.plugins().exists(), "{release}: something is left");
    }
}

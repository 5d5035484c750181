//! What TensorFlow and Keras do with files, on `sftp://` and `ftp://`: `tests/python/scenarios.py` on OpenSSH and on vsftpd. Here
//! and in `webdav`, a server of each protocol runs in more than one release. The other servers run in the newest alone: a
//! release decides how the plugin is called, and not what it sends.

use cargo_tf_plugin::TensorFlow;
use file_servers::{Kind, Server};
use tf_plugin_tensorflow_tests::{each_tensorflow, scenarios};

each_tensorflow!(scenarios_on_openssh; oldest and newest: scenarios_on_vsftpd);

fn scenarios_on_openssh(tensorflow: &TensorFlow) {
    on(tensorflow, Kind::OpenSsh);
}

fn scenarios_on_vsftpd(tensorflow: &TensorFlow) {
    on(tensorflow, Kind::Vsftpd);
}

#[cfg(feature = "matrix")]
#[test]
fn scenarios_on_the_other_servers() {
    let tensorflow = tf_plugin_tensorflow_tests::tensorflow(cargo_tf_plugin::NEWEST);
    for kind in [Kind::Apache, Kind::Rclone, Kind::RcloneSftp, Kind::Pyftpdlib, Kind::WebHdfs] {
        println!("{kind:?}");
        on(&tensorflow, kind);
    }
}

fn on(tensorflow: &TensorFlow, kind: Kind) {
    let server = Server::start(kind);
    let root = format!("{}/tests", server.uri());
    let python = scenarios::python(tensorflow, "tensorflow-opendal", &root);
    let variable = |key: &str| format!("TF_OPENDAL_{}", key.to_uppercase());
    let variables = server.settings().into_iter().map(|(key, value)| (variable(key), value));
    scenarios::run(tensorflow, python.envs(variables));
}

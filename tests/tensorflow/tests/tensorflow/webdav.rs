//! What TensorFlow and Keras do with files, on `webdav://`: `tests/python/scenarios.py` on nginx, which replaces files in one step,
//! and on WsgiDAV, which does not.

use cargo_tf_plugin::TensorFlow;
use file_servers::{Kind, Server};
use tf_plugin_tensorflow_tests::{each_tensorflow, scenarios};

each_tensorflow!(scenarios_on_nginx; oldest and newest: scenarios_on_wsgidav);

fn scenarios_on_nginx(tensorflow: &TensorFlow) {
    on(tensorflow, Kind::Nginx);
}

fn scenarios_on_wsgidav(tensorflow: &TensorFlow) {
    on(tensorflow, Kind::Wsgidav);
}

fn on(tensorflow: &TensorFlow, kind: Kind) {
    let server = Server::start(kind);
    let root = format!("webdav://{}/tests", server.host());
    scenarios::run(tensorflow, scenarios::python(tensorflow, "tensorflow-opendal", &root));
}

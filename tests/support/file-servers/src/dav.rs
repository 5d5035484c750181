//! Servers of WebDAV: Apache, nginx, rclone and wsgidav.

use crate::install::{self, debian, wsgidav};
use crate::{HASHED, Mode, NOBODY, PASSWORD, USER, give_to_nobody};
use std::path::Path;
use std::process::Command;

pub(crate) fn apache(port: u16, at: &Path, mode: &Mode) -> Command {
    let root = debian("apache2-bin");
    let write = |name: &str, text: String| std::fs::write(at.join(name), text).expect("a file");
    let mut modules = vec!["mpm_event", "authn_core", "authz_core", "dav", "dav_fs", "dav_lock"];
    let mut access = "Require all granted".to_owned();
    if mode.has_password {
        modules.extend(["authn_file", "authz_user", "auth_basic"]);
        write("users", format!("{USER}:{HASHED}\n"));
        access = format!(
            "AuthType Basic\nAuthName dav\nAuthUserFile {}/users\nRequire valid-user",
            at.display()
        );
    }
    std::fs::create_dir_all(at.join("lock")).expect("a directory");
    give_to_nobody(at, &["files", "lock"]);
    let modules: Vec<_> = modules
        .iter()
        .map(|name| {
            format!(
                "LoadModule {name}_module {}/usr/lib/apache2/modules/mod_{name}.so",
                root.display()
            )
        })
        .collect();
    let (modules, place) = (modules.join("\n"), at.display());
    write(
        "conf",
        format!(
            "ServerRoot {place}\nServerName 127.0.0.1\nListen 127.0.0.1:{port}\nPidFile {place}/pid\n\
             ErrorLog /dev/stderr\nUser #{NOBODY}\nGroup #{NOBODY}\n{modules}\nDavLockDB {place}/lock/db\n\
             DocumentRoot {place}/files\n<Directory {place}/files>\nDav On\n{access}\n</Directory>\n"
        ),
    );
    let mut command = Command::new(root.join("usr/sbin/apache2"));
    command.arg("-f").arg(at.join("conf")).arg("-DFOREGROUND").arg("-X");
    command.env("LD_LIBRARY_PATH", install::libraries(root));
    command
}

pub(crate) fn nginx(port: u16, at: &Path, mode: &Mode) -> Command {
    let root = debian("libnginx-mod-http-dav-ext nginx-common nginx");
    let place = at.display();
    let mut access = String::new();
    if mode.has_password {
        std::fs::write(at.join("users"), format!("{USER}:{{PLAIN}}{PASSWORD}\n")).expect("a file");
        access = format!("auth_basic dav; auth_basic_user_file {place}/users;");
    }
    let tls = match &mode.tls {
        Some((certificate, key)) => format!(
            " ssl; ssl_certificate {}; ssl_certificate_key {}",
            certificate.display(),
            key.display()
        ),
        None => String::new(),
    };
    let configuration = format!(
        "load_module {}/usr/lib/nginx/modules/ngx_http_dav_ext_module.so;
         daemon off; master_process off; pid {place}/pid; error_log stderr;
         events {{}}
         http {{
             access_log off;
             client_body_temp_path {place}/a; proxy_temp_path {place}/b; fastcgi_temp_path {place}/c;
             uwsgi_temp_path {place}/d; scgi_temp_path {place}/e;
             server {{
                 listen 127.0.0.1:{port}{tls};
                 root {place}/files;
                 client_max_body_size 0;
                 dav_methods PUT DELETE MKCOL COPY MOVE;
                 dav_ext_methods PROPFIND OPTIONS;
                 {access}
             }}
         }}",
        root.display()
    );
    std::fs::write(at.join("conf"), configuration).expect("a file");
    let mut command = Command::new(root.join("usr/sbin/nginx"));
    command.arg("-p").arg(at).args(["-e", "stderr", "-c"]).arg(at.join("conf"));
    command
}

pub(crate) fn rclone(port: u16, at: &Path, mode: &Mode) -> Command {
    let mut command = Command::new(debian("rclone").join("usr/bin/rclone"));
    command.args(["serve", "webdav", "--config", "/dev/null", "--addr"]);
    command.arg(format!("127.0.0.1:{port}")).arg(at.join("files"));
    if mode.has_password {
        command.args(["--user", USER, "--pass", PASSWORD]);
    }
    command
}

pub(crate) fn start_wsgidav(port: u16, at: &Path, mode: &Mode) -> Command {
    let users = match mode.has_password {
        true => format!("{{\"{USER}\": {{\"password\": \"{PASSWORD}\"}}}}"),
        false => "true".to_owned(),
    };
    let configuration = format!(
        "{{\"host\": \"127.0.0.1\", \"port\": {port}, \"server\": \"cheroot\",
          \"provider_mapping\": {{\"/\": \"{}\"}}, \"simple_dc\": {{\"user_mapping\": {{\"*\": {users}}}}},
          \"http_authenticator\": {{\"accept_basic\": true, \"accept_digest\": false, \"default_to_digest\": false}},
          \"property_manager\": true, \"lock_storage\": true, \"verbose\": 1}}",
        at.join("files").display()
    );
    std::fs::write(at.join("wsgidav.json"), configuration).expect("a file");
    let mut command = Command::new(wsgidav().join("bin/python"));
    command.args(["-m", "wsgidav.server.server_cli", "--config"]).arg(at.join("wsgidav.json"));
    command
}

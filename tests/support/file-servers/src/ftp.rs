//! Servers of FTP: vsftpd and pyftpdlib.

use crate::install::{debian, libraries, pyftpdlib as installed};
use crate::{Mode, PASSWORD, USER, give_to_nobody};
use std::path::Path;
use std::process::Command;

pub(crate) fn vsftpd(port: u16, at: &Path, mode: &Mode) -> Command {
    let root = debian("vsftpd");
    let place = at.display();
    std::fs::create_dir_all(at.join("empty")).expect("a directory");
    give_to_nobody(at, &[]);
    // For whichever user it serves: that one's home has to be there, and nobody has none. That user must not be able to write
    // to the root of what is served.
    let all = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(at.join("files"), all).expect("own files");
    assert!(!mode.has_password, "vsftpd knows the users of the system only");
    let user = match rustix::process::geteuid().is_root() {
        true => "ftp_username=daemon",
        false => "run_as_launching_user=YES",
    };
    let tls = match &mode.tls {
        // The connections for data have to resume the session of that for commands, as is its default.
        Some((certificate, key)) => format!(
            "ssl_enable=YES\nallow_anon_ssl=YES\nforce_anon_logins_ssl=YES\nforce_anon_data_ssl=YES\nssl_ciphers=HIGH\n\
             implicit_ssl={}\nrsa_cert_file={}\nrsa_private_key_file={}\n",
            if mode.is_implicit { "YES" } else { "NO" },
            certificate.display(),
            key.display()
        ),
        None => String::new(),
    };
    let configuration = format!(
        "listen=YES\nlisten_address=127.0.0.1\nlisten_port={port}\nbackground=NO\n{user}\nconnect_from_port_20=NO\n\
         secure_chroot_dir={place}/empty\nseccomp_sandbox=NO\nanonymous_enable=YES\nlocal_enable=NO\nno_anon_password=YES\n\
         anon_root={place}\nwrite_enable=YES\nanon_upload_enable=YES\n\
         anon_mkdir_write_enable=YES\nanon_other_write_enable=YES\nanon_world_readable_only=NO\nanon_umask=022\n\
         utf8_filesystem=YES\nmax_clients=200\nmax_per_ip=200\nxferlog_enable=NO\n{tls}"
    );
    std::fs::write(at.join("conf"), configuration).expect("a file");
    let mut command = Command::new(root.join("usr/sbin/vsftpd"));
    command.arg(at.join("conf")).env("LD_LIBRARY_PATH", libraries(root));
    command
}

pub(crate) fn pyftpdlib(port: u16, at: &Path, mode: &Mode) -> Command {
    let (user, password) = if mode.has_password { (USER, PASSWORD) } else { ("anonymous", "") };
    let (handler, tls) = match &mode.tls {
        Some((certificate, key)) => (
            "TLS_FTPHandler",
            format!(
                "Handler.certfile = {:?}\nHandler.keyfile = {:?}\nHandler.tls_control_required = True\n\
                 Handler.tls_data_required = True",
                certificate, key
            ),
        ),
        None => ("FTPHandler", String::new()),
    };
    // As a server on a disk of Windows.
    let case = match mode.ignores_case {
        true => include_str!("ignores_case.py"),
        false => "",
    };
    let script = format!(
        "from pyftpdlib.authorizers import DummyAuthorizer
from pyftpdlib.handlers import {handler} as Base
from pyftpdlib.servers import FTPServer
class Handler(Base):
    authorizer = DummyAuthorizer()
    auth_failed_timeout = 0
    max_login_attempts = 100
Handler.authorizer.add_user({user:?}, {password:?}, {files:?}, perm='elradfmwMT')
Handler.authorizer.validate_authentication = (
    Handler.authorizer.validate_authentication if {password:?} else lambda *_: None)
{tls}
{case}
FTPServer(('127.0.0.1', {port}), Handler).serve_forever()
",
        files = at.join("files"),
    );
    std::fs::write(at.join("server.py"), script).expect("a file");
    let mut command = Command::new(installed().join("bin/python"));
    command.arg(at.join("server.py"));
    command
}

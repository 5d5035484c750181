//! Servers of SFTP: OpenSSH and rclone.

use crate::install::{debian, libraries, run};
use crate::{Mode, PASSWORD, USER, give_to_nobody};
use std::path::Path;
use std::process::Command;

/// With `ssh-keygen`.
const OPENSSH: &str = "openssh-server openssh-client openssh-sftp-server";

/// Makes the key of the server and that of the user.
fn make_keys(at: &Path) {
    let root = debian(OPENSSH);
    let script = format!(
        "for name in host user; do
             [ -e $name ] || LD_LIBRARY_PATH={} {}/usr/bin/ssh-keygen -q -t ed25519 -N '' -C '' -f $name
         done",
        libraries(root).display(),
        root.display()
    );
    run(&script, at).unwrap_or_else(|error| panic!("ssh-keygen: {error}"));
}

/// Returns the fingerprint of the server's key.
pub(crate) fn fingerprint(at: &Path) -> String {
    let root = debian(OPENSSH);
    let output = Command::new(root.join("usr/bin/ssh-keygen"))
        .env("LD_LIBRARY_PATH", libraries(root))
        .arg("-lf")
        .arg(at.join("host.pub"))
        .output()
        .expect("it ran before");
    let text = String::from_utf8_lossy(&output.stdout);
    text.split(' ').nth(1).expect("its length, and the fingerprint").to_owned()
}

/// Returns the settings that log the user in to OpenSSH.
pub(crate) fn settings(at: &Path) -> Vec<(&'static str, String)> {
    let user = match rustix::process::geteuid().is_root() {
        true => "nobody".to_owned(),
        false => std::env::var("USER").expect("the name of the user"),
    };
    let key = at.join("user").display().to_string();
    vec![("user", user), ("key_file", key), ("host_key", fingerprint(at))]
}

/// sshd runs as the user without rights if root starts it: as root it needs an account and a directory of the system.
pub(crate) fn openssh(port: u16, at: &Path) -> Command {
    let root = debian(OPENSSH);
    make_keys(at);
    std::fs::copy(at.join("user.pub"), at.join("allowed")).expect("a file");
    give_to_nobody(at, &["files", "host", "allowed"]);
    let place = at.display();
    // With PAM an account without a password is not taken for a locked one.
    let configuration = format!(
        "ListenAddress 127.0.0.1\nPort {port}\nHostKey {place}/host\nAuthorizedKeysFile {place}/allowed\n\
         PidFile none\nStrictModes no\nUsePAM yes\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n\
         MaxStartups 100\nMaxSessions 100\nSubsystem sftp internal-sftp\nForceCommand internal-sftp\n"
    );
    std::fs::write(at.join("conf"), configuration).expect("a file");
    let mut command = match rustix::process::geteuid().is_root() {
        true => {
            let mut command = Command::new("setpriv");
            command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
            command.arg(root.join("usr/sbin/sshd"));
            command
        }
        false => Command::new(root.join("usr/sbin/sshd")),
    };
    // `-r`: it does not start itself again.
    command.args(["-D", "-e", "-r", "-f"]).arg(at.join("conf"));
    command.env("LD_LIBRARY_PATH", libraries(root));
    command
}

pub(crate) fn rclone(port: u16, at: &Path, _: &Mode) -> Command {
    make_keys(at);
    let mut command = Command::new(debian("rclone").join("usr/bin/rclone"));
    command.args(["serve", "sftp", "--config", "/dev/null", "--addr"]);
    command.arg(format!("127.0.0.1:{port}")).arg(at.join("files"));
    command.arg("--key").arg(at.join("host"));
    // It serves nobody without a password.
    command.args(["--user", USER, "--pass", PASSWORD]);
    command
}

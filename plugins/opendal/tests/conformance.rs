//! Each scheme on real servers against what TensorFlow requires of a filesystem.

use file_servers::{Kind, Server};
use tf_fs_plugin::{FilesystemOption, OptionValues, Result};
use tf_plugin_testing::filesystem::{Host, TestRoot};

/// A server of its own for each module.
struct Root(Kind, Server);

impl Root {
    fn new(kind: Kind) -> Self {
        Self(kind, Server::start(kind))
    }

    /// The settings of this server, as names begin.
    fn settings(&self, before: &str) -> Vec<(String, String)> {
        let settings = self.1.settings().into_iter();
        settings.map(|(key, value)| (format!("{before}{key}"), value)).collect()
    }
}

impl TestRoot for Root {
    fn uri(&self) -> String {
        format!("{}/", self.1.uri())
    }

    fn prepare(&self, host: &Host) -> Result<()> {
        // The servers of other modules have settings in the same process.
        let mut settings = self.settings(&format!("remote.{}.", self.1.host()));
        settings.push(("listing_ttl_ms".to_owned(), "0".to_owned()));
        let option = |(key, value): (String, String)| {
            FilesystemOption::new(key, OptionValues::Buffer(vec![value.into_bytes()]))
        };
        let options: Vec<_> = settings.into_iter().map(option).collect();
        host.filesystem(self.0.scheme())?.set_filesystem_configuration(&options)
    }

    fn environment(&self) -> Vec<(String, String)> {
        let mut settings = self.settings("");
        settings.push(("listing_ttl_ms".to_owned(), "0".to_owned()));
        let variable = |key: &str| format!("TF_OPENDAL_{}", key.to_uppercase());
        settings.into_iter().map(|(key, value)| (variable(&key), value)).collect()
    }
}

/// Directories are real, but the parents of a file are created with it, and servers tell a file that has something below it from
/// one that is not there in different ways or not at all.
macro_rules! conformance_of {
    ($name:ident, $kind:expr, $malformed:literal $(, $case:ident => $why:literal)*) => {
        mod $name {
            use super::{Kind, Root};

            tf_plugin_testing::filesystem::conformance! {
                tensorflow_opendal::OpenDal,
                root: once(|| Root::new($kind)),
                malformed: $malformed,
                visible: flush,
                directories: implied,
                without: [
                    translate_name_cleans => "names with `.` and `..` are refused",
                    untidy_names => "names with `.` and `..` are refused",
                    $($case => $why,)*
                ],
            }
        }
    };
}

/// Servers of WebDAV.
macro_rules! conformance_of_webdav {
    ($name:ident, $kind:expr $(, $case:ident => $why:literal)*) => {
        conformance_of!(
            $name,
            $kind,
            "webdav://user:pw@host/path",
            one_creates_a_directory => "OpenDAL takes a directory that is there for one that it has created"
            $(, $case => $why)*
        );
    };
}

conformance_of_webdav!(apache, Kind::Apache);
conformance_of_webdav!(
    nginx,
    Kind::Nginx,
    name_with_leading_dot => "dav-ext lists no names with a dot in front",
    name_three_dots => "dav-ext lists no names with a dot in front",
    glob_matches_hidden_files => "dav-ext lists no names with a dot in front"
);
#[cfg(feature = "matrix")]
conformance_of_webdav!(
    rclone,
    Kind::Rclone,
    listing_during_writes => "rclone deletes a file before it moves another one to its name",
    create_dir_of_below_file => "rclone says that it has created a directory below a file",
    recursively_create_dir_of_below_file => "rclone says that it has created a directory below a file"
);
#[cfg(feature = "matrix")]
conformance_of_webdav!(
    wsgidav,
    Kind::Wsgidav,
    name_with_question_mark => "WsgiDAV takes the `?` in a destination for a query",
    name_with_control => "WsgiDAV drops control characters of a destination"
);

conformance_of!(openssh, Kind::OpenSsh, "sftp://user:pw@host/path");
#[cfg(feature = "matrix")]
conformance_of!(rclone_sftp, Kind::RcloneSftp, "sftp://user:pw@host/path");

#[cfg(feature = "matrix")]
conformance_of!(vsftpd, Kind::Vsftpd, "ftp://user:pw@host/path");
#[cfg(feature = "matrix")]
conformance_of!(pyftpdlib, Kind::Pyftpdlib, "ftp://user:pw@host/path");

#[cfg(feature = "matrix")]
conformance_of!(webhdfs, Kind::WebHdfs, "webhdfs://user:pw@host/path");

//! The schemes: which protocol each is, and which URLs its remotes have.

/// A scheme of names.
#[derive(Debug, PartialEq)]
pub(crate) struct Scheme {
    /// As in `webdav://`.
    pub(crate) name: &'static str,
    /// The protocol, as the setting `type` names it.
    pub(crate) protocol: &'static str,
    /// The schemes that the `url` of a remote may have. The first one is that of a host without settings, if there is one.
    pub(crate) urls: &'static [&'static str],
    /// Whether a host without settings can be a remote.
    pub(crate) takes_hosts: bool,
}

const fn scheme(
    name: &'static str,
    protocol: &'static str,
    urls: &'static [&'static str],
) -> Scheme {
    Scheme { name, protocol, urls, takes_hosts: true }
}

/// All of them.
pub(crate) const SCHEMES: &[Scheme] = &[
    scheme("webdav", "webdav", &["http", "https"]),
    scheme("webdavs", "webdav", &["https"]),
    scheme("sftp", "sftp", &["sftp"]),
    scheme("ftp", "ftp", &["ftp", "ftps"]),
    scheme("ftps", "ftp", &["ftps"]),
    scheme("webhdfs", "webhdfs", &["http", "https"]),
    scheme("swebhdfs", "webhdfs", &["https"]),
    // The port in such a name is not that of WebHDFS.
    Scheme { takes_hosts: false, ..scheme("hdfs", "webhdfs", &["http", "https"]) },
    // A remote is a repository: `datasets/OWNER/NAME@REVISION`.
    scheme("hf", "hf", &[]),
    // A repository: `OWNER/NAME`.
    scheme("github", "github", &[]),
    // The address of a directory.
    scheme("ipfs", "ipfs", &[]),
    // A remote is a bucket.
    scheme("b2", "b2", &["https"]),
    scheme("memory", "memory", &[]),
];

/// Those with files in directories.
pub(crate) const FILES: &[&str] = &[
    "webdav", "webdavs", "sftp", "ftp", "ftps", "webhdfs", "swebhdfs", "hdfs", "hf", "github",
    "ipfs",
];
/// Those with objects in buckets.
pub(crate) const BUCKETS: &[&str] = &["b2", "memory"];

/// The schemes of URLs, with the port that each has if it names none.
pub(crate) const PORTS: &[(&str, u16)] =
    &[("http", 80), ("https", 443), ("sftp", 22), ("ftp", 21), ("ftps", 21)];

/// Returns the scheme of this name.
pub(crate) fn find(name: &str) -> Option<&'static Scheme> {
    SCHEMES.iter().find(|scheme| scheme.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_scheme_has_a_name_and_urls_with_a_port() {
        assert!(SCHEMES.iter().map(|scheme| scheme.name).eq([FILES, BUCKETS].concat()));
        for scheme in SCHEMES {
            for url in scheme.urls {
                assert!(PORTS.iter().any(|(known, _)| known == url), "{url}");
            }
        }
    }
}

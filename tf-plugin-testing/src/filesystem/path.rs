//! TensorFlow's functions on names, which its defaults are made of.

use tf_fs_plugin::Uri;

/// A name in its three parts. Without a `scheme://` that TensorFlow's parser accepts, all is path.
#[derive(Clone, Copy)]
pub(super) struct Parts<'a> {
    pub(super) scheme: &'a [u8],
    pub(super) host: &'a [u8],
    pub(super) path: &'a [u8],
}

pub(super) fn parse(name: &[u8]) -> Parts<'_> {
    let uri = Uri::new(name);
    let (scheme, host) = (uri.scheme().as_bytes(), uri.host());
    let start = if scheme.is_empty() { 0 } else { scheme.len() + 3 + host.len() };
    Parts { scheme, host, path: &name[start..] }
}

/// Puts a name together again.
pub(super) fn create(scheme: &[u8], host: &[u8], path: &[u8]) -> Vec<u8> {
    if scheme.is_empty() {
        return path.to_vec();
    }
    [scheme, b"://", host, path].concat()
}

/// Resolves `.`, `..` and repeated slashes, lexically.
pub(super) fn clean(path: &[u8]) -> Vec<u8> {
    let rooted = path.first() == Some(&b'/');
    let mut kept: Vec<&[u8]> = Vec::new();
    for part in path.split(|&byte| byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." if kept.last().is_some_and(|last| *last != b"..") => {
                kept.pop();
            }
            b".." if rooted => {}
            part => kept.push(part),
        }
    }
    let joined = kept.join(&b'/');
    match (rooted, joined.is_empty()) {
        (true, _) => [b"/", joined.as_slice()].concat(),
        (false, true) => b".".to_vec(),
        (false, false) => joined,
    }
}

/// TensorFlow's default of `translate_name`: it loses scheme and host.
pub(super) fn default_translate_name(name: &[u8]) -> Vec<u8> {
    if name.is_empty() {
        return Vec::new();
    }
    match parse(name).path {
        b"" => b"/".to_vec(),
        path => clean(path),
    }
}

/// Splits a name before its last component. The directory keeps scheme and host, and the root's
/// directory is the root.
fn split(name: &[u8]) -> (Vec<u8>, &[u8]) {
    let Parts { scheme, host, path } = parse(name);
    match path.iter().rposition(|&byte| byte == b'/') {
        None if scheme.is_empty() => (Vec::new(), path),
        None => (create(scheme, host, b""), path),
        Some(0) => (create(scheme, host, b"/"), &path[1..]),
        Some(slash) => (create(scheme, host, &path[..slash]), &path[slash + 1..]),
    }
}

pub(super) fn dirname(name: &[u8]) -> Vec<u8> {
    split(name).0
}

pub(super) fn basename(name: &[u8]) -> &[u8] {
    split(name).1
}

/// Joins two names with exactly one slash.
pub(super) fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    if directory.is_empty() {
        return name.to_vec();
    }
    let directory = directory.strip_suffix(b"/").unwrap_or(directory);
    let name = name.strip_prefix(b"/").unwrap_or(name);
    [directory, b"/", name].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_translation_loses_the_host() {
        for (name, expected) in [
            ("probe://bucket/a//b/../c/./d/", "/a/c/d"),
            ("probe://bucket", "/"),
            ("probe://b/../../x", "/x"),
            ("probe://b/%41", "/%41"),
            ("", ""),
        ] {
            assert_eq!(default_translate_name(name.as_bytes()), expected.as_bytes(), "{name}");
        }
    }

    #[test]
    fn names_are_split_and_joined() {
        assert_eq!(dirname(b"x://h/a/b"), b"x://h/a");
        assert_eq!(dirname(b"x://h/a"), b"x://h/");
        assert_eq!(dirname(b"/"), b"/");
        assert_eq!(dirname(b"a"), b"");
        assert_eq!(basename(b"x://h/a/b"), b"b");
        assert_eq!(basename(b"x://h/a/"), b"");
        assert_eq!(join(b"x://h/", b"a"), b"x://h/a");
        assert_eq!(join(b"", b"a"), b"a");
        assert_eq!(clean(b"../a/./..//b"), b"../b");
    }
}

//! Checksums and ETags, which prove that the store has the bytes that were sent.

use aws_smithy_types::base64;
use crc32fast::Hasher;
use md5::{Digest as _, Md5};
use tf_fs_object_store::Content;

/// The CRC32 of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Crc32(u32);

impl Crc32 {
    pub(crate) fn of<'c>(chunks: impl IntoIterator<Item = &'c [u8]>) -> Self {
        let mut hasher = Hasher::new();
        for chunk in chunks {
            hasher.update(chunk);
        }
        Self(hasher.finalize())
    }

    pub(super) fn of_content(content: &Content) -> Self {
        Self::of(content.chunks().iter().map(AsRef::as_ref))
    }

    /// Returns the checksum of these bytes followed by `len` bytes with the checksum `next`.
    pub(super) fn followed_by(self, next: Self, len: u64) -> Self {
        let mut hasher = Hasher::new_with_initial(self.0);
        hasher.combine(&Hasher::new_with_initial_len(next.0, len));
        Self(hasher.finalize())
    }

    /// Returns the form of requests and responses.
    pub(crate) fn to_base64(self) -> String {
        base64::encode(self.0.to_be_bytes())
    }

    pub(super) fn from_base64(text: &str) -> Option<Self> {
        let bytes = base64::decode(text).ok()?;
        Some(Self(u32::from_be_bytes(bytes.try_into().ok()?)))
    }
}

/// Returns what S3 calls the composite checksum of an object: that of its parts' checksums, and their number.
pub(super) fn composite(parts: &[Crc32]) -> String {
    let checksums: Vec<_> = parts.iter().map(|part| part.0.to_be_bytes()).collect();
    let of_checksums = Crc32::of(checksums.iter().map(<[u8; 4]>::as_slice));
    format!("{}-{}", of_checksums.to_base64(), parts.len())
}

/// Returns the ETag that most stores give to an object of this content.
pub(super) fn md5_etag(content: &Content) -> String {
    let mut digest = Md5::new();
    for chunk in content.chunks() {
        digest.update(chunk);
    }
    format!("\"{}\"", hex(&digest.finalize()))
}

/// Returns the ETag that most stores give to an object of parts with these ETags; `None` if one is of another kind.
pub(crate) fn md5_etag_of_parts<'e>(
    etags: impl ExactSizeIterator<Item = &'e str>,
) -> Option<String> {
    let count = etags.len();
    let mut digest = Md5::new();
    for etag in etags {
        digest.update(md5_in(etag)?);
    }
    Some(format!("\"{}-{count}\"", hex(&digest.finalize())))
}

/// Returns whether two ETags are the same; stores differ in the quotes, and what is before a store weakens some.
pub(crate) fn same_etag(one: &str, other: &str) -> bool {
    let quoted = |etag: &str| format!("\"{}\"", bare(etag));
    tf_fs_object_store::same_etag(&quoted(one), &quoted(other))
}

/// Returns the ETag without quotes, and without the `W/` of a weak one.
fn bare(etag: &str) -> &str {
    etag.strip_prefix("W/").unwrap_or(etag).trim_matches('"')
}

fn md5_in(etag: &str) -> Option<[u8; 16]> {
    let digits = bare(etag).as_bytes();
    let mut bytes = [0; 16];
    if digits.len() != 32 {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crc32_is_the_one_of_the_standard() {
        // The check value of CRC-32/ISO-HDLC.
        assert_eq!(Crc32::of([&b"123456789"[..]]), Crc32(0xcbf4_3926));
        assert_eq!(Crc32::of([&b"1234"[..], b"", b"56789"]), Crc32(0xcbf4_3926));
        assert_eq!(Crc32(0xcbf4_3926).to_base64(), "y/Q5Jg==");
        assert_eq!(Crc32::from_base64("y/Q5Jg=="), Some(Crc32(0xcbf4_3926)));
        assert_eq!(Crc32::from_base64("y/Q5"), None);
        assert_eq!(Crc32::from_base64("y/Q5Jg==-3"), None);
    }

    #[test]
    fn parts_make_a_whole() {
        let (one, two) = (Crc32::of([&b"1234"[..]]), Crc32::of([&b"56789"[..]]));
        assert_eq!(one.followed_by(two, 5), Crc32::of([&b"123456789"[..]]));
        let nothing = Crc32::of([]);
        assert_eq!(nothing.followed_by(one, 4), one);
        assert_eq!(one.followed_by(nothing, 0), one);
    }

    #[test]
    fn composites_name_the_number_of_parts() {
        let part = Crc32(0x0102_0304);
        let expected = Crc32::of([&[1, 2, 3, 4, 1, 2, 3, 4][..]]).to_base64();
        assert_eq!(composite(&[part, part]), format!("{expected}-2"));
    }

    #[test]
    fn etags_of_parts() {
        // MD5 of the two digests of "" and "a".
        let etags = ["\"d41d8cd98f00b204e9800998ecf8427e\"", "0cc175b9c0f1b6a831c399e269772661"];
        let bytes: Vec<u8> = etags.iter().flat_map(|etag| md5_in(etag).unwrap()).collect();
        let expected = format!("\"{}-2\"", hex(&Md5::digest(bytes)));
        assert_eq!(md5_etag_of_parts(etags.into_iter()), Some(expected));
        assert_eq!(md5_etag_of_parts(["\"not-an-md5\""].into_iter()), None);
        assert_eq!(md5_etag_of_parts(["\"zz1d8cd98f00b204e9800998ecf8427e\""].into_iter()), None);
        assert!(same_etag("\"a\"", "a") && same_etag("W/\"a\"", "a") && !same_etag("a", "b"));
    }
}

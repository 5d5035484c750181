//! Packets of SFTP, version 3, as OpenSSH speaks it: <https://datatracker.ietf.org/doc/html/draft-ietf-secsh-filexfer-02>.

use crate::service::Entry;
use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use std::time::{Duration, UNIX_EPOCH};
use tf_fs_object_store::http::HttpError;
use tf_fs_object_store::{ObjectMeta, StoreError as _};

/// The version that both sides speak.
pub(super) const VERSION: u32 = 3;
/// Bytes of the largest packet that a server may send: names of a directory, or bytes of a file.
pub(super) const LARGEST: usize = 4 << 20;

/// The types of packets.
pub(super) mod kind {
    pub(in super::super) const INIT: u8 = 1;
    pub(in super::super) const VERSION: u8 = 2;
    pub(in super::super) const OPEN: u8 = 3;
    pub(in super::super) const CLOSE: u8 = 4;
    pub(in super::super) const READ: u8 = 5;
    pub(in super::super) const WRITE: u8 = 6;
    pub(in super::super) const FSTAT: u8 = 8;
    pub(in super::super) const OPENDIR: u8 = 11;
    pub(in super::super) const READDIR: u8 = 12;
    pub(in super::super) const REMOVE: u8 = 13;
    pub(in super::super) const MKDIR: u8 = 14;
    pub(in super::super) const RMDIR: u8 = 15;
    pub(in super::super) const STAT: u8 = 17;
    pub(in super::super) const RENAME: u8 = 18;
    pub(in super::super) const STATUS: u8 = 101;
    pub(in super::super) const HANDLE: u8 = 102;
    pub(in super::super) const DATA: u8 = 103;
    pub(in super::super) const NAME: u8 = 104;
    pub(in super::super) const ATTRS: u8 = 105;
    pub(in super::super) const EXTENDED: u8 = 200;
    pub(in super::super) const EXTENDED_REPLY: u8 = 201;
}

/// What a status says.
pub(super) mod status {
    pub(in super::super) const OK: u32 = 0;
    pub(in super::super) const EOF: u32 = 1;
    pub(in super::super) const NO_SUCH_FILE: u32 = 2;
    pub(in super::super) const PERMISSION_DENIED: u32 = 3;
    pub(in super::super) const NO_CONNECTION: u32 = 6;
    pub(in super::super) const CONNECTION_LOST: u32 = 7;
    pub(in super::super) const UNSUPPORTED: u32 = 8;
}

/// How a file is opened.
pub(super) mod open {
    pub(in super::super) const READ: u32 = 1;
    /// To write, created if it is not there, and empty.
    pub(in super::super) const CREATE: u32 = 0x2 | 0x8 | 0x10;
}

/// A request without its id.
pub(super) struct Request(BytesMut);

impl Request {
    /// Begins a request of this type.
    pub(super) fn new(kind: u8) -> Self {
        let mut bytes = BytesMut::with_capacity(128);
        bytes.put_u32(0);
        bytes.put_u8(kind);
        bytes.put_u32(0);
        Self(bytes)
    }

    pub(super) fn text(mut self, text: &[u8]) -> Self {
        self.0.put_u32(u32::try_from(text.len()).unwrap_or(u32::MAX));
        self.0.put_slice(text);
        self
    }

    pub(super) fn number(mut self, number: u32) -> Self {
        self.0.put_u32(number);
        self
    }

    pub(super) fn long(mut self, number: u64) -> Self {
        self.0.put_u64(number);
        self
    }

    /// Returns its bytes, of which `after` more follow.
    pub(super) fn finish(mut self, id: u32, after: usize) -> Bytes {
        let len = u32::try_from(self.0.len() - 4 + after).unwrap_or(u32::MAX);
        self.0[..4].copy_from_slice(&len.to_be_bytes());
        self.0[5..9].copy_from_slice(&id.to_be_bytes());
        self.0.freeze()
    }
}

/// The fields of a packet.
#[derive(Clone, Debug)]
pub(super) struct Fields(pub(super) Bytes);

impl Fields {
    fn take(&mut self, len: usize) -> Result<Bytes, HttpError> {
        match len <= self.0.len() {
            true => Ok(self.0.split_to(len)),
            false => Err(HttpError::invalid("a packet of SFTP is too short")),
        }
    }

    pub(super) fn number(&mut self) -> Result<u32, HttpError> {
        Ok(self.take(4)?.get_u32())
    }

    pub(super) fn long(&mut self) -> Result<u64, HttpError> {
        Ok(self.take(8)?.get_u64())
    }

    pub(super) fn bytes(&mut self) -> Result<Bytes, HttpError> {
        let len = self.number()?;
        self.take(usize::try_from(len).unwrap_or(usize::MAX))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn attributes(&mut self) -> Result<Attributes, HttpError> {
        let flags = self.number()?;
        let mut attributes = Attributes::default();
        if flags & 0x1 != 0 {
            attributes.size = Some(self.long()?);
        }
        if flags & 0x2 != 0 {
            self.take(8)?;
        }
        if flags & 0x4 != 0 {
            attributes.mode = Some(self.number()?);
        }
        if flags & 0x8 != 0 {
            self.take(4)?;
            attributes.modified = Some(self.number()?);
        }
        if flags & 0x8000_0000 != 0 {
            for _ in 0..self.number()? {
                self.bytes()?;
                self.bytes()?;
            }
        }
        Ok(attributes)
    }
}

/// What a server tells of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Attributes {
    pub(super) size: Option<u64>,
    mode: Option<u32>,
    /// In seconds.
    modified: Option<u32>,
}

impl Attributes {
    pub(super) fn is_directory(&self) -> bool {
        self.mode.is_some_and(|mode| mode & 0o170_000 == 0o040_000)
    }

    pub(super) fn is_link(&self) -> bool {
        self.mode.is_some_and(|mode| mode & 0o170_000 == 0o120_000)
    }

    pub(super) fn entry(&self) -> Entry {
        if self.is_directory() {
            return Entry::directory();
        }
        let modified =
            self.modified.map(|seconds| UNIX_EPOCH + Duration::from_secs(seconds.into()));
        Entry::file(ObjectMeta::new(self.size.unwrap_or(0)).with_modified(modified))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_its_length_and_id() {
        let request = Request::new(kind::READ).text(b"h").long(1).number(2).finish(7, 0);
        let expected =
            [0, 0, 0, 22, 5, 0, 0, 0, 7, 0, 0, 0, 1, b'h', 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2];
        assert_eq!(&request[..], &expected[..]);
        let request = Request::new(kind::WRITE).finish(1, 100);
        assert_eq!(request[3], 105);
    }

    #[test]
    fn attributes_are_read_in_their_order() {
        let mut bytes = BytesMut::new();
        bytes.put_u32(0x8000_000f);
        bytes.put_u64(5);
        bytes.put_u64(0);
        bytes.put_u32(0o100_644);
        bytes.put_u32(1);
        bytes.put_u32(2);
        bytes.put_u32(1);
        bytes.put_slice(&[0, 0, 0, 1, b'a', 0, 0, 0, 0]);
        let whole = bytes.freeze();
        let attributes = Fields(whole.clone()).attributes().unwrap();
        let modified = UNIX_EPOCH + Duration::from_secs(2);
        assert_eq!(attributes.entry(), Entry::file(ObjectMeta::new(5).with_modified(modified)));
        for len in 0..whole.len() {
            assert!(Fields(whole.slice(..len)).attributes().is_err(), "{len}");
        }
        let directory = Attributes { mode: Some(0o040_755), ..Attributes::default() };
        assert_eq!(directory.entry(), Entry::directory());
    }
}

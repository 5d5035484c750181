//! Files of the cache. `tests/fuzz` lists all targets.

use super::DiskCache;
use super::block::{BLOCK, Block, Header, write};
use crate::Range;
use std::fs::File;
use std::io::{Seek, Write};
use tf_fs_plugin::ReadBuf;
use tf_plugin_fuzz::{fuzz, halves, text};

/// Returns the header and the bytes in a file of these bytes.
fn read(file: File) -> Option<(Header, Vec<u8>)> {
    let block = Block::open(file).ok()?;
    let mut bytes = vec![0; block.len as usize];
    block.read(Range::new(0, block.len), &mut ReadBuf::from_slice(&mut bytes)).ok()?;
    Some((block.header, bytes))
}

#[test]
fn blocks() {
    let words = ["TFBLOCK1", "\0\0\0\0", "\u{1}", "etag", "0123456789abcdef0123456789abcdef"];
    fuzz!(words, |bytes| {
        let file = |bytes: &[u8]| {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(bytes).unwrap();
            file
        };
        assert_eq!(read(file(bytes)), None, "it has no checksum");

        let (etag, content) = halves(bytes);
        let etag: String = text(etag).chars().take(90).collect();
        let index = u64::from(bytes.first().copied().unwrap_or_default());
        let size = index * BLOCK + content.len() as u64;
        let header = Header { digest: [7; 32], index, size, etag };
        let mut whole = tempfile::tempfile().unwrap();
        let (first, second) = content.split_at(content.len() / 3);
        write(&mut whole, &header, &[first, second]).unwrap();
        let found = read(whole.try_clone().unwrap());
        assert_eq!(found.as_ref(), Some(&(header, content.to_vec())));

        // One byte is another.
        let at = content.len() as u64 * 37 % 600;
        whole.seek(std::io::SeekFrom::Start(at)).unwrap();
        whole.write_all(&bytes[..bytes.len().min(1)]).unwrap();
        let damaged = read(whole);
        assert!(damaged.is_none() || damaged == found);
    });
}

#[test]
fn settings() {
    let words = ["/c", ":", "16MiB", "100GiB", " ", "TiB", "18446744073709551615", "b"];
    fuzz!(words, |bytes| {
        if let Ok(cache) = text(bytes).parse::<DiskCache>() {
            assert_eq!(cache.to_string().parse::<DiskCache>().unwrap(), cache);
        }
    });
}

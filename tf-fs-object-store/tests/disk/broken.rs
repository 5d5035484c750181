//! Blocks that are not what was written are dropped, and fetched again.

use super::{GIB, MIB, blocks, content, directory, kept, open, process, range};
use std::fs;
use std::path::Path;

/// Does to each block of a file what `damage` does, and reads it in pieces of several lengths.
fn survives(what: &str, damage: impl Fn(&Path)) {
    let (directory, body) = (directory(), content(MIB + 300_000, 0));
    let first = process(&directory, GIB);
    first.put("f", body.clone());
    first.read("f", MIB).unwrap();
    kept(&directory, 2);
    for piece in [5000, 10 * MIB] {
        for block in blocks(&directory) {
            damage(&block);
            let process = process(&directory, GIB);
            process.put("f", body.clone());
            let read = process.read("f", piece).unwrap();
            assert!(read == body, "{what}: {} in {piece}", block.display());
            kept(&directory, 2);
            super::eventually(&format!("{what}: it is there again"), || {
                let again = super::process(&directory, GIB);
                again.put("f", body.clone());
                assert!(again.read("f", piece).unwrap() == body);
                again.requests("get").len() == 1
            });
        }
    }
}

#[test]
fn cut_off() {
    for len in [0, 511, 512, 100_000, 700_000] {
        survives("cut off", |block| {
            let file = fs::OpenOptions::new().write(true).open(block).unwrap();
            file.set_len(len.min(file.metadata().unwrap().len() - 1)).unwrap();
        });
    }
}

#[test]
fn one_bit() {
    for at in [3, 20, 45, 50, 57, 61, 70, 140, 510, 600, 800_000] {
        survives("one bit", |block| {
            let mut bytes = fs::read(block).unwrap();
            let at = at.min(bytes.len() - 1);
            bytes[at] ^= 4;
            fs::write(block, bytes).unwrap();
        });
    }
}

#[test]
fn zeros_too_much_and_another_block() {
    survives("zeros", |block| {
        let len = fs::metadata(block).unwrap().len();
        fs::write(block, vec![0; len as usize]).unwrap();
    });
    survives("the end is zeros, as after a power failure", |block| {
        let mut bytes = fs::read(block).unwrap();
        let len = bytes.len();
        bytes[len / 2..].fill(0);
        fs::write(block, bytes).unwrap();
    });
    survives("too much", |block| {
        let mut bytes = fs::read(block).unwrap();
        bytes.push(0);
        fs::write(block, bytes).unwrap();
    });
    survives("missing", |block| fs::remove_file(block).unwrap());
    survives("a link", |block| {
        fs::rename(block, block.with_extension("moved")).unwrap();
        std::os::unix::fs::symlink(block.with_extension("moved"), block).unwrap();
        fs::remove_file(block.with_extension("moved")).unwrap();
    });
}

#[test]
fn another_block_under_its_name() {
    let (directory, body) = (directory(), content(3 * MIB, 0));
    let first = process(&directory, GIB);
    first.put("f", body.clone());
    first.put("g", content(3 * MIB, 9));
    for key in ["f", "g"] {
        first.read(key, MIB).unwrap();
    }
    kept(&directory, 6);
    let all = blocks(&directory);
    let bytes: Vec<_> = all.iter().map(|block| fs::read(block).unwrap()).collect();
    for (i, block) in all.iter().enumerate() {
        fs::write(block, &bytes[(i + 1) % all.len()]).unwrap();
    }
    let second = process(&directory, GIB);
    second.put("f", body.clone());
    assert!(second.read("f", 500_000).unwrap() == body);
}

#[test]
fn a_block_that_breaks_while_its_file_is_open() {
    let (directory, body) = (directory(), content(3 * MIB, 0));
    let process = process(&directory, GIB);
    process.put("f", body.clone());
    process.read("f", MIB).unwrap();
    kept(&directory, 3);
    let reader = open(&process, "f").unwrap();
    assert!(range(&reader, MIB, 1000).unwrap() == body[MIB..MIB + 1000]);
    for block in blocks(&directory) {
        let mut bytes = fs::read(&block).unwrap();
        bytes[900_000] ^= 1;
        fs::write(&block, bytes).unwrap();
    }
    assert!(range(&reader, 0, 3 * MIB).unwrap() == body);
}

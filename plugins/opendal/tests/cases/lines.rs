//! Counts the lines that put OpenDAL's clients under the engine.

use std::path::Path;

/// The most lines of what all families share, and of what each of them adds.
const MOST: usize = 150;
const PARTS: [(&str, &str); 4] = [
    ("shared", "opendal.rs"),
    ("objects in buckets", "bucket.rs"),
    ("files to read", "services/reading.rs"),
    ("WebDAV", "services/webdav.rs"),
];

/// Returns the lines of code of a file: neither empty, nor comments, nor tests.
fn lines(file: &str) -> usize {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(file);
    let source = std::fs::read_to_string(path).unwrap();
    let code = source.split("#[cfg(test)]").next().unwrap();
    let is_code = |line: &&str| !line.is_empty() && !line.starts_with("//");
    code.lines().map(str::trim).filter(is_code).count()
}

#[test]
fn a_client_takes_few_lines() {
    for (part, file) in PARTS {
        let count = lines(file);
        println!("{part}: {count} lines");
        assert!(count <= MOST, "{part}: {count} lines, and {MOST} are allowed");
    }
}

//! Counts the code of each backend.

use libtest_mimic::Failed;
use std::fs;
use std::path::Path;

/// The backends, and the most lines that each may have: those of Vulkan and CUDA also find and load their libraries, and CUDA
/// has cuBLAS, and cuDNN with its trials.
const BACKENDS: [(&str, usize); 3] = [("vulkan", 800), ("cuda", 1950), ("opencl", 350)];

/// Returns the lines of code of a file or directory: neither empty, nor comments, nor tests.
fn lines(path: &Path) -> usize {
    if path.is_dir() {
        let entries = fs::read_dir(path).unwrap();
        return entries.map(|entry| lines(&entry.unwrap().path())).sum();
    }
    let source = fs::read_to_string(path).unwrap();
    let code = source.split("#[cfg(test)]").next().unwrap();
    let is_code = |line: &&str| !line.is_empty() && !line.starts_with("//");
    code.lines().map(str::trim).filter(is_code).count()
}

pub(crate) fn are_few() -> Result<(), Failed> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut all = 0;
    for (backend, most) in BACKENDS {
        let count = lines(&sources.join(backend));
        println!("{backend}: {count} lines");
        if count == 0 || count > most {
            return Err(format!("{backend} has {count} lines, and may have {most}").into());
        }
        all += count;
    }
    let rest = lines(&sources) - all;
    println!("the rest of the plugin: {rest} lines");
    if rest > 150 {
        return Err(format!("the plugin has {rest} lines in addition to its backends").into());
    }
    Ok(())
}

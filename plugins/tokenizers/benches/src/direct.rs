//! The crate `tokenizers`, called without TensorFlow.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::sync::Mutex;
use std::thread;

use anyhow::{Context as _, Result, anyhow};
use tokenizers::Tokenizer;

/// Reads a tokenizer without its truncation and padding.
///
/// # Errors
/// When the file is not a tokenizer.
pub fn read(path: &Path) -> Result<Tokenizer> {
    let failed = |error| anyhow!("{}: {error}", path.display());
    let mut tokenizer = Tokenizer::from_file(path).map_err(failed)?;
    tokenizer.with_truncation(None).map_err(failed)?;
    tokenizer.with_padding(None);
    Ok(tokenizer)
}

/// Tokenizes the first lines of a file in batches, which threads take in turn, and returns the number of ids.
///
/// # Errors
/// When the file cannot be read, or a line cannot be tokenized.
pub fn tokenize(
    tokenizer: &Tokenizer,
    file: &Path,
    batch: usize,
    lines: usize,
    threads: usize,
) -> Result<i64> {
    let file = File::open(file).with_context(|| format!("cannot open {}", file.display()))?;
    let lines = Mutex::new(BufReader::new(file).lines().take(lines));
    let one = || -> Result<i64> {
        let mut count = 0;
        loop {
            let texts = {
                let mut lines = lines.lock().map_err(|_| anyhow!("another thread has failed"))?;
                lines.by_ref().take(batch).collect::<Result<Vec<_>, _>>()?
            };
            if texts.is_empty() {
                return Ok(count);
            }
            for text in texts {
                let encoding = tokenizer.encode_fast(text, false);
                count += encoding.map_err(|error| anyhow!(error))?.get_ids().len() as i64;
            }
        }
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(one)).collect();
        let counts = threads.into_iter().map(|thread| {
            thread.join().map_err(|_| anyhow!("a thread of the tokenizer has panicked"))?
        });
        counts.sum()
    })
}

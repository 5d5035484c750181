//! What is in the server: the objects that are read, what a row begins with, and whether it left what it should.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use s3_server::{Counters, Handle, Options, Server};

use crate::rows::{DELETED, KIB, LISTED, MIB, Part, Row, TREE};

/// The bucket of everything.
pub const BUCKET: &str = "bench";

/// How many small files and directories there are; each is looked at once by each client.
pub const SMALL_FILES: u64 = 4000;

/// The server with all that the rows read.
#[derive(Debug)]
pub struct Store(Server);

impl std::ops::Deref for Store {
    type Target = Handle;

    fn deref(&self) -> &Handle {
        &self.0
    }
}

impl Store {
    /// Starts the server; the large files come from `files`, which TensorFlow has made.
    ///
    /// # Errors
    /// When it does not start or a file is missing.
    pub fn start(files: &Path) -> Result<Self> {
        let options = Options { buckets: vec![BUCKET.into()], fast: true, ..Options::default() };
        let server = Server::start(options).context("the server does not start")?;
        let put = |key: &str, content: &Bytes| server.put(BUCKET, key, content.clone());
        for directory in ["big", "tfrecord"] {
            for entry in fs::read_dir(files.join(directory))? {
                let entry = entry?;
                let key = format!("{directory}/{}", entry.file_name().display());
                put(&key, &fs::read(entry.path())?.into());
            }
        }
        let small = Bytes::from(vec![b'x'; KIB as usize]);
        for part in [Part::Whole, Part::Tenth] {
            let name = part.name();
            for index in 0..part.of(LISTED) {
                put(&format!("listed-{name}/part-{index:05}"), &small);
            }
            for file in 0..part.of(TREE) {
                let (a, b, c) = (file / 25, file / 5 % 5, file % 5);
                put(&format!("tree-{name}/a-{a:02}/b-{b}/c-{c}"), &small);
            }
        }
        for index in 0..SMALL_FILES {
            put(&format!("small/f-{index:05}"), &small);
            put(&format!("dirs/d-{index:05}/file"), &small);
        }
        // All of them are the same bytes in memory.
        let content = Bytes::from(vec![b'm'; 100 * MIB as usize]);
        put("copy/source", &content);
        for index in 0..16 {
            put(&format!("many/f-{index:02}"), &content.slice(..64 * MIB as usize));
        }
        Ok(Self(server))
    }

    /// Puts what `row` begins with below `out`.
    pub fn prepare(&self, row: &Row, part: Part, out: &str) {
        let content = |length: u64| self.read(BUCKET, "copy/source", 0..length).unwrap_or_default();
        match row.run {
            "append" => {
                self.put(BUCKET, &format!("{out}/log"), content(8 * MIB));
            }
            "rename" => {
                self.put(BUCKET, &format!("{out}/before"), content(100 * MIB));
            }
            "rmtree" => {
                for index in 0..part.of(DELETED) {
                    let key =
                        format!("{out}/many-{}/d-{:02}/f-{index:03}", part.name(), index / 20);
                    self.put(BUCKET, &key, "x");
                }
            }
            _ => {}
        }
    }

    /// Checks that `row` left below `out` what it should; then removes that.
    ///
    /// # Errors
    /// When something is missing, has another length, or is too much.
    pub fn verify(&self, row: &Row, out: &str) -> Result<()> {
        let inside = format!("{out}/");
        let keys: Vec<String> =
            self.keys(BUCKET).into_iter().filter(|key| key.starts_with(&inside)).collect();
        let length = |key: &str| self.stat(BUCKET, key).map_or(0, |info| info.len);
        let found: Vec<(&str, u64)> =
            keys.iter().map(|key| (&key[inside.len()..], length(key))).collect();
        let total: u64 = found.iter().map(|(_, length)| length).sum();
        let has = |name: &str| found.iter().any(|(found, _)| found.ends_with(name));
        let right = match row.run {
            "write_large" => found == [("large", 256 * MIB)],
            "write_small" => found.len() as u64 == row.count && total == row.count * KIB,
            "append" => found == [("log", 8 * MIB + KIB)],
            "flush" => found == [("flushed", 16 * MIB)],
            "event_log" => {
                total > 10_000_000 && found.iter().any(|(name, _)| name.contains(".tfevents."))
            }
            "copy" => found == [("copied", 100 * MIB)],
            "rename" => found == [("after", 100 * MIB)],
            "rmtree" => found.is_empty(),
            "checkpoint_write" => total > 100 * MIB && has("written/ckpt.index"),
            "manager_save" => total > 100 * MIB && has("managed/checkpoint"),
            "model_save" => total > 100 * MIB && has("saved/saved_model.pb"),
            _ => true,
        };
        let uploads = self.uploads(BUCKET);
        for key in &keys {
            self.delete(BUCKET, key);
        }
        ensure!(right, "`{}` left {found:?}", row.run);
        ensure!(uploads.is_empty(), "`{}` left {} uploads behind", row.run, uploads.len());
        Ok(())
    }

    /// The counts since they were last taken, once no request is under way.
    #[must_use]
    pub fn take_counters(&self) -> Counters {
        let started = Instant::now();
        while self.log().iter().any(|request| request.duration.is_none())
            && started.elapsed() < Duration::from_secs(2)
        {
            thread::sleep(Duration::from_millis(2));
        }
        self.reset_log()
    }
}

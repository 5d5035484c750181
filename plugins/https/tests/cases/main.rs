//! `https://` and `http://` against servers that do what a test says, right and wrong.

mod faults;
mod grammar;
mod headers;
mod heads;
mod local;
mod naming;
mod reading;
mod redirects;
mod server;
mod servers;
mod trust;
mod versions;
mod whole;

use https::{File, Https, Settings};
use std::time::Duration;
use tf_fs_plugin::prelude::*;

/// Returns the usual settings. A busy machine takes no server for one that stalls: tests count requests.
fn settings() -> Settings {
    Settings {
        retry_timeout: Duration::from_secs(10),
        stall_timeout: Duration::from_secs(20),
        // Each query is a request.
        cache: Duration::from_millis(1),
        ..Settings::default()
    }
}

/// Returns settings for servers that stall.
fn impatient() -> Settings {
    Settings { stall_timeout: Duration::from_millis(400), ..settings() }
}

fn fs() -> Https {
    Https::with(settings())
}

fn open(fs: &Https, url: &str) -> Result<File> {
    fs.new_random_access_file(Uri::new(url.as_bytes()))
}

/// Returns all bytes of a file, read from its beginning in pieces of this size.
fn read_in(file: &impl RandomAccessFile, piece: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut memory = vec![0; piece];
    loop {
        let mut buf = ReadBuf::from_slice(&mut memory);
        file.read_at(bytes.len() as u64, &mut buf)?;
        let n = buf.filled().len();
        bytes.extend_from_slice(&memory[..n]);
        if n < piece {
            return Ok(bytes);
        }
    }
}

fn read(fs: &Https, url: &str) -> Result<Vec<u8>> {
    read_in(&open(fs, url)?, 1 << 20)
}

/// Returns the error of something that has to fail.
fn error<T>(outcome: Result<T>) -> (Code, String) {
    match outcome {
        Ok(_) => panic!("it succeeded"),
        Err(error) => (error.code(), format!("{error:#}")),
    }
}

//! Counting instructions: a part of this process runs again under callgrind.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::abi::COUNTED_SYMBOL;
pub use crate::abi::tf_plugin_bench_counted as counted;

/// Instructions of one row on one plugin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Count {
    /// In the plugin and in what it calls.
    pub total: u64,
    /// In all that was counted: the plugin's callers included.
    pub all: u64,
    /// Of those in the plugin, in TensorFlow's `TF_SetStatus` and in what that calls.
    pub status: u64,
}

/// Runs this program under callgrind with `arguments` and the path of each plugin in turn, and counts in each
/// call of [`counted`], in their order, the instructions that it spends in that plugin. The profiles of each,
/// for `callgrind_annotate`, stay in a separate folder below `profiles`.
pub fn count_each<const N: usize>(
    names: [&str; N],
    plugins: &[PathBuf; N],
    arguments: [&OsStr; 2],
    calls: usize,
    profiles: &Path,
) -> Result<[Vec<Count>; N]> {
    let mut counts = [const { Vec::new() }; N];
    for ((name, plugin), counts) in names.iter().zip(plugins).zip(&mut counts) {
        eprintln!("counting instructions: {name}");
        let directory = profiles.join(plugin.file_stem().unwrap_or_default());
        fs::create_dir_all(&directory).with_context(|| directory.display().to_string())?;
        let out = directory.join("callgrind");
        let mut command = Command::new("valgrind");
        command
            .args(["--tool=callgrind", "--quiet", "--collect-atstart=no"])
            .arg(format!("--toggle-collect={COUNTED_SYMBOL}"))
            .arg(format!("--dump-after={COUNTED_SYMBOL}"))
            // Plain names and numbers, as `read` wants them.
            .args(["--compress-strings=no", "--compress-pos=no"])
            .arg(format!("--callgrind-out-file={}", out.display()))
            .arg(env::current_exe()?)
            .args(arguments)
            .arg(plugin);
        let status = match command.status() {
            Err(error) if error.kind() == ErrorKind::NotFound => bail!(
                "valgrind, which counts the instructions, is not on this machine; install it \
                 (Debian and Ubuntu: `apt-get install valgrind`) or measure time only with `-- --time`"
            ),
            status => status.context("cannot run valgrind")?,
        };
        ensure!(status.success(), "valgrind or the program under it failed ({status})");
        *counts = (1..=calls)
            .map(|part| {
                let file = PathBuf::from(format!("{}.{part}", out.display()));
                let profile = fs::read(&file).with_context(|| file.display().to_string())?;
                let count = read(&String::from_utf8_lossy(&profile), plugin);
                ensure!(count.total > 0, "row {part} of {calls} cost nothing in {name}");
                Ok(count)
            })
            .collect::<Result<_>>()?;
    }
    Ok(counts)
}

/// Sums, from a profile in callgrind's format without compression, what calls into `plugin` cost, and
/// what its calls of `TF_SetStatus` cost.
fn read(profile: &str, plugin: &Path) -> Count {
    let plugin = plugin.display().to_string();
    let mut count = Count { total: 0, all: 0, status: 0 };
    let (mut object, mut called_object, mut called) = ("", None, "");
    let mut lines = profile.lines();
    while let Some(line) = lines.next() {
        match line.split_once('=') {
            Some(("ob", name)) => object = name,
            Some(("cob", name)) => called_object = Some(name),
            Some(("cfn", name)) => called = name,
            Some(("calls", _)) => {
                // The next line: where the call stands, and what it cost with all below it.
                let cost = lines.next().and_then(|line| line.split(' ').nth(1));
                let cost = cost.and_then(|cost| cost.parse::<u64>().ok()).unwrap_or(0);
                let from = object == plugin;
                let into = called_object.take().unwrap_or(object) == plugin;
                if into && !from {
                    count.total += cost;
                }
                if from && !into && called == "TF_SetStatus" {
                    count.status += cost;
                }
            }
            _ => {
                if let Some(all) = line.strip_prefix("totals: ") {
                    count.all = all.trim().parse().unwrap_or(0);
                }
            }
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_into_the_plugin_and_of_the_status_are_summed() {
        let profile = "\
events: Ir
ob=/bench
fn=run
10 500
cob=/plugin.so
cfn=stat
calls=3 7
12 90
cob=/libc.so
cfn=malloc
calls=1 1
13 1000
ob=/plugin.so
fn=stat
7 30
cfn=helper
calls=3 20
8 15
cob=/tensorflow.so
cfn=TF_SetStatus
calls=3 0
9 24
totals: 1645
";
        let count = read(profile, Path::new("/plugin.so"));
        assert_eq!(count, Count { total: 90, all: 1645, status: 24 });
    }
}

//! Standard output and standard error, which somebody may have closed or which may be full: a command ends with a
//! message then, and never with a panic in the midst of its work.

use std::fmt::Display;
use std::fs::Permissions;
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};

/// Writes to standard output what the command was run for. A reader that has gone (`… | head`) had enough.
///
/// # Errors
/// When it cannot be written, as where a disk is full.
pub(crate) fn print(text: impl Display) -> Result<()> {
    let mut stdout = anstream::stdout();
    let written = write!(stdout, "{text}").and_then(|()| stdout.flush());
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write to standard output"),
    }
}

/// Writes a line to standard error; one that cannot be written is lost, and the work goes on.
pub(crate) fn print_note(line: impl Display) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// A line on standard error that says what is being done and goes away again; hidden where that is not a terminal.
pub(crate) fn progress(what: String) -> ProgressBar {
    let bar = ProgressBar::new_spinner().with_message(what);
    if let Ok(style) = ProgressStyle::with_template("{spinner} [{elapsed}] {wide_msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}

/// The directory that a file is in.
pub(crate) fn parent(file: &Path) -> &Path {
    file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A path as JSON has it.
///
/// # Errors
/// When it is not UTF-8, of which `serde_json::json!` would make a panic.
pub(crate) fn utf8(path: &Path) -> Result<&str> {
    path.to_str().with_context(|| {
        format!(
            "{} is not UTF-8, which JSON must be; name another directory, with TMPDIR for scratch",
            path.display()
        )
    })
}

/// Writes a file as a whole or not at all; another process may be reading it.
pub(crate) fn write_file(path: &Path, content: &[u8]) -> io::Result<()> {
    write_as(path, content, 0o666)
}

/// As [`write_file`], for a program.
pub(crate) fn write_program(path: &Path, content: &[u8]) -> io::Result<()> {
    write_as(path, content, 0o777)
}

fn write_as(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let mut new = tempfile::Builder::new();
    // Of which the user's mask takes away what others may not.
    let mut new = new.permissions(Permissions::from_mode(mode)).tempfile_in(parent(path))?;
    new.write_all(content)?;
    // Closed before it has its name: a program that is open for writing does not run.
    new.into_temp_path().persist(path)?;
    Ok(())
}

/// [`print`] with a line of the given format.
macro_rules! say {
    ($($format:tt)*) => {
        $crate::output::print(format!("{}\n", format_args!($($format)*)))
    };
}

/// [`print_note`] with the given format.
macro_rules! note {
    ($($format:tt)*) => {
        $crate::output::print_note(format_args!($($format)*))
    };
}

pub(crate) use {note, say};

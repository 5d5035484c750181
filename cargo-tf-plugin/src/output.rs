//! Standard output and standard error, which may be closed or full: a command then ends with a
//! message, and does not panic in the middle of its work.

use std::fmt::Display;
use std::fs::Permissions;
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};

/// Writes the command's result to standard output. A reader that has gone (`… | head`) is not an error.
///
/// # Errors
/// Returns an error if the text cannot be written, for example to a full disk.
pub(crate) fn print(text: impl Display) -> Result<()> {
    let mut stdout = anstream::stdout();
    let written = write!(stdout, "{text}").and_then(|()| stdout.flush());
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write to standard output"),
    }
}

/// Writes a line to standard error; if that fails, the line is lost and the work goes on.
pub(crate) fn print_note(line: impl Display) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Shows a temporary line on standard error that says what is being done; hidden if that is not a terminal.
pub(crate) fn progress(what: String) -> ProgressBar {
    let bar = ProgressBar::new_spinner().with_message(what);
    if let Ok(style) = ProgressStyle::with_template("{spinner} [{elapsed}] {wide_msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}

/// Returns the directory of a file.
pub(crate) fn parent(file: &Path) -> &Path {
    file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Returns a path as text for JSON.
///
/// # Errors
/// Returns an error if the path is not UTF-8, on which `serde_json::json!` would panic.
pub(crate) fn utf8(path: &Path) -> Result<&str> {
    path.to_str().with_context(|| {
        format!(
            "{} is not UTF-8, which JSON must be; name another directory, with TMPDIR for scratch",
            path.display()
        )
    })
}

/// Writes a file as a whole or not at all; another process may be reading the old one.
pub(crate) fn write_file(path: &Path, content: &[u8]) -> io::Result<()> {
    write_as(path, content, 0o666)
}

/// Writes a program as [`write_file`] writes a file.
pub(crate) fn write_program(path: &Path, content: &[u8]) -> io::Result<()> {
    write_as(path, content, 0o777)
}

fn write_as(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let mut new = tempfile::Builder::new();
    // The user's mask removes permissions for others.
    let mut new = new.permissions(Permissions::from_mode(mode)).tempfile_in(parent(path))?;
    new.write_all(content)?;
    // Closed before it gets its name: a program that is open for writing cannot run.
    new.into_temp_path().persist(path)?;
    Ok(())
}

/// Calls [`print`] with a line of the given format.
macro_rules! say {
    ($($format:tt)*) => {
        $crate::output::print(format!("{}\n", format_args!($($format)*)))
    };
}

/// Calls [`print_note`] with the given format.
macro_rules! note {
    ($($format:tt)*) => {
        $crate::output::print_note(format_args!($($format)*))
    };
}

pub(crate) use {note, say};

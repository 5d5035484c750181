//! A report as text for people.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};

use crate::artefact::demangled;
use crate::elf_notes::{NoteOf, Panic};
use crate::findings::{Finding, Severity};
use crate::operations::By;
use crate::ops::Op;
use crate::probe::{End, Kernel};
use crate::report::{Device, Filesystem, Report};
use crate::tables::{self, Need};

/// The width at which long lines are wrapped.
const WIDTH: usize = 100;

pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
pub(crate) const CAREFUL: Style = AnsiColor::Yellow.on_default();

pub(crate) fn painted(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// Wraps a text into lines, of which all but the first are indented.
pub(crate) fn wrapped(text: &str, indent: usize) -> String {
    let mut lines = String::new();
    let mut column = indent;
    for word in text.split(' ') {
        let length = word.chars().count();
        if column > indent && column + 1 + length > WIDTH {
            let _ = write!(lines, "\n{:indent$}", "");
            column = indent;
        } else if column > indent {
            lines.push(' ');
            column += 1;
        }
        lines.push_str(word);
        column += length;
    }
    lines
}

/// Formats a number of bytes for people.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{:.0} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

/// Formats the whole report; `verbose` adds what is the same for nearly every plugin.
pub(crate) fn text(report: &Report, verbose: bool) -> String {
    let mut text = String::new();
    head(&mut text, report, verbose);
    for filesystem in &report.filesystems {
        text.push('\n');
        schemes(&mut text, filesystem, verbose);
    }
    if let Some(device) = &report.device {
        text.push('\n');
        platform(&mut text, device, verbose);
    }
    if !report.described_ops.is_empty() {
        text.push('\n');
        ops(&mut text, &report.described_ops, verbose);
    }
    if !report.kernels.is_empty() || !report.ops.is_empty() {
        text.push('\n');
        kernels(&mut text, report, verbose);
    }
    if !report.tensorflow.is_empty() {
        text.push('\n');
        releases(&mut text, report, verbose);
    }
    text.push('\n');
    findings(&mut text, &report.findings);
    output(&mut text, &report.run.output);
    text
}

pub(crate) fn line(text: &mut String, name: &str, value: &str) {
    let _ = writeln!(text, "  {name:<16}{}", wrapped(value, 18));
}

fn head(text: &mut String, report: &Report, verbose: bool) {
    let artefact = &report.artefact;
    let name = artefact.path.file_name().unwrap_or_default().to_string_lossy();
    let _ = writeln!(text, "{}", painted(BOLD, &name));
    line(text, "file", &artefact.path.display().to_string());
    line(text, "size", &size(artefact.size));
    line(text, "sha256", &artefact.sha256);
    line(text, "machine", &artefact.machine);
    let families = [("CXXABI", "CXXABI"), ("GLIBC", "glibc"), ("GLIBCXX", "libstdc++ GLIBCXX")];
    let floors = families.iter().filter_map(|(family, name)| {
        let floor = artefact.floors.get(*family)?;
        Some(format!("{name} {} ({})", floor.version, floor.because[0]))
    });
    let floors: Vec<String> = floors.collect();
    if !floors.is_empty() {
        line(text, "needs at least", &floors.join(", "));
    }
    line(text, "wheel tag", &artefact.platform(None));
    line(text, "libraries", &list(&artefact.needed));
    line(text, "entry points", &list(&artefact.entry_points));
    let (c, cpp) = (artefact.c_imports.len(), artefact.cpp_imports.len());
    let imports = match (c, cpp) {
        (0, 0) => "nothing".to_owned(),
        _ => format!("{c} C functions, {cpp} C++ functions"),
    };
    line(text, "of TensorFlow", &imports);
    if let Some(note) = artefact.notes.first() {
        let panic = match note.panic {
            Panic::Unwind => "unwind, and become errors",
            Panic::Abort => "abort the process",
        };
        line(text, "made with", &format!("the Rust SDK {}", note.sdk));
        line(text, "panics", panic);
    }
    if report.run.end == End::NotRun {
        for note in &artefact.notes {
            match note.of {
                NoteOf::Filesystem => line(text, "scheme", &format!("{}://", note.text)),
                NoteOf::Device => line(text, "device type", &note.text),
                NoteOf::Op => line(text, "op", &note.text),
            }
        }
        line(text, "its code", "has not run (--no-run): what it registers is not known");
        return;
    }
    if artefact.entry_points.contains(&"TF_InitPlugin") {
        let how = if report.registers_on_import {
            "by itself, on `import tensorflow`"
        } else {
            "by `tf.experimental.register_filesystem_plugin`"
        };
        line(text, "registered", how);
    }
    let kept = match report.run.withheld.as_slice() {
        [] => String::new(),
        [one] => format!(", without {one}"),
        names if verbose => format!(", without {}", names.join(", ")),
        names => format!(", without {} variables that may hold secrets (--verbose)", names.len()),
    };
    line(text, "its code", &format!("has run as you, in a separate process{kept}"));
    if let Some(version) = &report.loaded_with {
        line(text, "loaded with", &format!("the libraries of TensorFlow {version}"));
    }
}

/// Writes a function, who implements it followed by so many spaces, and its effect.
fn row(text: &mut String, name: &str, by: String, spaces: usize, effect: &str) {
    let _ = match effect {
        "" => writeln!(text, "    {name:<38}{by}"),
        effect => writeln!(text, "    {name:<38}{by}{:spaces$} {effect}", ""),
    };
}

fn list(names: &[impl Borrow<str>]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(" ") }
}

fn schemes(text: &mut String, filesystem: &Filesystem, verbose: bool) {
    let schemes: Vec<String> =
        filesystem.schemes.iter().map(|scheme| format!("{scheme}://")).collect();
    let _ = writeln!(text, "{}", painted(BOLD, &format!("Filesystem {}", schemes.join(", "))));
    let _ = writeln!(text, "  {:<28} {:>3} {:>3} {:>5}", "table", "ABI", "API", "size");
    for table in &filesystem.tables {
        if table.present {
            let newer = match table.size_in_2_22 {
                Some(size) => format!("  ({size} in TensorFlow 2.22)"),
                None => String::new(),
            };
            let _ = writeln!(
                text,
                "  {:<28} {:>3} {:>3} {:>5}{newer}",
                table.name, table.abi, table.api, table.size
            );
        } else {
            let _ = writeln!(text, "  {:<28} {}", table.name, painted(DIM, "none"));
        }
    }
    for table in filesystem.tables.iter().filter(|table| table.present) {
        let _ = writeln!(text, "\n  {}", table.name);
        let mut never = 0;
        for operation in &table.operations {
            // All of them are the same to users: TensorFlow calls none.
            if !verbose && operation.by == By::NeverCalled {
                never += 1;
                continue;
            }
            let (style, by) = match operation.by {
                By::Yours => (GOOD, "yours"),
                By::SdkDefault => (Style::new(), "the SDK's default"),
                By::YoursOrSdk => (Style::new(), "yours or the SDK's"),
                By::TensorflowDefault => (Style::new(), "TensorFlow's default"),
                By::Unimplemented => (CAREFUL, "unimplemented"),
                By::NeverCalled => (DIM, "none"),
                By::Missing => (BAD, "missing"),
            };
            row(text, &operation.name, painted(style, by), 20 - by.len(), &operation.effect);
        }
        if never > 0 {
            let what = format!("{never} of transactions and configuration");
            row(text, &what, painted(DIM, "none"), 16, "TensorFlow never calls them");
        }
    }
}

fn platform(text: &mut String, device: &Device, verbose: bool) {
    let platform = &device.platform;
    let null = || "(null)".to_owned();
    let device_type = platform.device_type.clone().unwrap_or_else(null);
    let _ = writeln!(text, "{}", painted(BOLD, &format!("Device {device_type}")));
    line(text, "platform", &platform.name.clone().unwrap_or_else(null));
    line(text, "devices", device.on_this_machine().as_deref().unwrap_or("unknown"));
    let memory = match (platform.bfc_allocator, platform.memory_growth) {
        (true, true) => "TensorFlow divides regions that grow on demand",
        (true, false) => "TensorFlow takes nearly all of it at once and divides it",
        (false, _) => "one call of `allocate` a tensor",
    };
    line(text, "memory", memory);
    let for_type = |of: &Option<String>| match of {
        Some(of) => format!("for {of}"),
        None => "none".to_owned(),
    };
    line(text, "graph pass", &for_type(&device.graph_pass_for));
    line(text, "profiler", &for_type(&device.profiler_for));
    let _ = writeln!(text, "\n  {:<28} {:>5}  functions", "struct", "size");
    let _ = writeln!(text, "  {:<28} {:>5}", "SP_Platform", platform.size);
    for table in &device.tables {
        let filled = table.slots.iter().filter(|slot| slot.filled).count();
        let all = table.slots.len();
        let count = format!("{filled} of {all}");
        let style = if filled == all { GOOD } else { CAREFUL };
        let _ =
            writeln!(text, "  {:<28} {:>5}  {}", table.name, table.size, painted(style, &count));
        for slot in &table.slots {
            let (style, by, effect) = if slot.filled {
                (GOOD, "filled", "")
            } else {
                match tables::need(&table.name, &slot.name) {
                    Need::Always => (BAD, "missing", "TensorFlow aborts the process"),
                    Need::UpTo213 => {
                        (CAREFUL, "missing", "TensorFlow 2.12 and 2.13 abort the process")
                    }
                    Need::Unchecked(effect) => (BAD, "missing", effect),
                    Need::Optional(effect) => (Style::new(), "none", effect),
                }
            };
            if verbose || !slot.filled {
                row(text, &slot.name, painted(style, by), 8 - by.len(), effect);
            }
        }
    }
}

/// Writes the ops of a library, as Python sees them; `verbose` adds their documentation.
fn ops(text: &mut String, ops: &[Op], verbose: bool) {
    let _ = writeln!(text, "{}", painted(BOLD, &counted(ops.len(), "op")));
    for op in ops {
        let mut first = op.doc.trim().lines();
        let _ =
            writeln!(text, "\n  {}  {}", painted(BOLD, &op.name), first.next().unwrap_or_default());
        if verbose {
            for line in first {
                let line = format!("{:1$}{line}", "", op.name.len() + 4);
                let _ = writeln!(text, "{}", line.trim_end());
            }
        }
        for (name, value) in op.facts(verbose) {
            let _ = writeln!(text, "    {name:<14}{}", wrapped(&value, 18));
        }
    }
}

fn kernels(text: &mut String, report: &Report, verbose: bool) {
    let mut ops: BTreeMap<&str, Vec<&Kernel>> = BTreeMap::new();
    // The SDK's kernels, which only fail, have a negative priority.
    for kernel in report.kernels.iter().filter(|kernel| kernel.priority >= 0) {
        ops.entry(&kernel.op).or_default().push(kernel);
    }
    let count = ops.values().map(Vec::len).sum();
    let title = format!("{} for {}", counted(count, "kernel"), counted(ops.len(), "op"));
    let _ = writeln!(text, "{}", painted(BOLD, &title));
    if !report.ops.is_empty() {
        line(text, "ops of its own", &report.ops.join(" "));
    }
    if verbose {
        for (op, kernels) in ops {
            let types: Vec<String> = kernels
                .iter()
                .map(|kernel| match kernel.types.as_slice() {
                    [] => "any".to_owned(),
                    types => types.join("+"),
                })
                .collect();
            let _ = writeln!(text, "  {op:<32} {}", wrapped(&types.join(" "), 35));
        }
    } else {
        let _ = writeln!(text, "  {}", painted(DIM, "`--verbose` lists them"));
    }
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn releases(text: &mut String, report: &Report, verbose: bool) {
    let _ = writeln!(text, "{}", painted(BOLD, "What it imports of TensorFlow, by release"));
    for release in &report.tensorflow {
        let missing = &release.missing;
        let hidden = release.hides_functions() && !report.artefact.needs_tensorflow();
        let row = if missing.is_empty() && hidden {
            painted(BAD, "all there, but hidden from plugins that name no library for them")
        } else if missing.is_empty() {
            painted(GOOD, "all there")
        } else {
            painted(BAD, &format!("{} missing", missing.len()))
        };
        let _ = writeln!(text, "  TensorFlow {:<9} {row}", release.version);
        let shown = if verbose { missing.len() } else { 3.min(missing.len()) };
        for name in &missing[..shown] {
            let name = demangled(name);
            let short: String = name.chars().take(WIDTH - 24).collect();
            let more = if short.len() < name.len() { "…" } else { "" };
            let _ = writeln!(text, "    {short}{more}");
        }
        if shown < missing.len() {
            let more = missing.len() - shown;
            let _ = writeln!(text, "    {DIM}{more} more; `--verbose` lists them{DIM:#}");
        }
    }
}

/// Writes all findings, the worst first.
pub(crate) fn findings(text: &mut String, findings: &[Finding]) {
    for finding in findings {
        let (style, word) = match finding.severity {
            Severity::Error => (BAD, "error"),
            Severity::Warning => (CAREFUL, "warning"),
            Severity::Note => (DIM, "note"),
        };
        let what = wrapped(&finding.what, 9);
        let _ = writeln!(text, "{style}{word}{style:#}{:<1$} {what}", "", 8 - word.len());
        let _ = writeln!(text, "{:9}{} {}", "", painted(DIM, "fix:"), wrapped(&finding.fix, 14));
    }
    let count = |severity| findings.iter().filter(|one| one.severity == severity).count();
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    if findings.iter().any(|finding| finding.severity != Severity::Note) {
        let _ = writeln!(text, "{}, {}", counted(errors, "error"), counted(warnings, "warning"));
    } else {
        let _ = writeln!(text, "{}", painted(GOOD, "no errors, no warnings"));
    }
}

fn output(text: &mut String, output: &[String]) {
    if !output.is_empty() {
        let _ = writeln!(text, "\n{}", painted(BOLD, "What the plugin has said"));
        for line in output {
            let _ = writeln!(text, "  | {line}");
        }
    }
}

/// Says whether a report is about a filesystem, a device, or both.
pub(crate) fn kind(report: &Report) -> &'static str {
    let filesystem = !report.filesystems.is_empty()
        || report.artefact.notes.iter().any(|note| note.of == NoteOf::Filesystem);
    let device = report.device.is_some();
    match (filesystem, device) {
        (true, true) => "filesystem, device",
        (true, false) => "filesystem",
        (false, true) => "device",
        (false, false) if !report.described_ops.is_empty() => "ops",
        (false, false) if !report.kernels.is_empty() || !report.ops.is_empty() => "kernels",
        (false, false) if report.artefact.entry_points.is_empty() => "no plugin",
        (false, false) => "plugin",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_broken_between_words() {
        let text = wrapped(&"word ".repeat(40), 8);
        assert!(text.lines().all(|line| line.len() <= WIDTH), "{text}");
        assert!(text.lines().skip(1).all(|line| line.starts_with("        word")), "{text}");
        assert_eq!(wrapped("a b", 2), "a b");
    }
}

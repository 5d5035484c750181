//! A plugin's file, read without running it.

use crate::artefact::{Artefact, demangled, is_tensorflow_library};
use crate::elf_notes::Panic;
use crate::findings::{Findings, Severity};
use crate::releases::Release;

pub(crate) fn look(artefact: &Artefact, tensorflow: &[Release], findings: &mut Findings) {
    if artefact.entry_points.is_empty() {
        findings.error(
            "exports none of the functions that TensorFlow looks for, so it is not a plugin",
            "export `TF_InitPlugin` (a filesystem), `SE_InitPlugin` (a device) or `TF_InitKernel` (ops); in Rust, the \
             macros `#[filesystem_plugin]`, `#[device_plugin]` and `op_plugin!` do",
        );
    }
    for name in ["TFNPD_InitPlugin", "GetPjrtApi"] {
        if artefact.entry_points.contains(&name) {
            findings.note(
                format!("exports `{name}`, an interface that this command does not look at"),
                "try it in TensorFlow",
            );
        }
    }
    let count = artefact.other_exports.len();
    if count > 0 {
        findings.note(
            format!(
                "exports {count} other {}, such as {}",
                if count == 1 { "name" } else { "names" },
                demangled(&artefact.other_exports[0])
            ),
            "harmless in TensorFlow, which keeps each plugin's names apart; `-fvisibility=hidden` hides them",
        );
    }
    let complete = tensorflow.iter().filter(|release| release.missing.is_empty());
    let complete: Vec<String> = complete.map(|release| release.version.clone()).collect();
    for release in tensorflow {
        if let [first, rest @ ..] = release.missing.as_slice() {
            let more = match rest.len() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let fix = match complete.as_slice() {
                [] => "use only the C interface".to_owned(),
                [one] => {
                    format!("use only the C interface, or TensorFlow {one}, which has them all")
                }
                releases => format!(
                    "use only the C interface, or TensorFlow {}, which have them all",
                    releases.join(", ")
                ),
            };
            findings.error(
                format!(
                    "cannot be loaded by TensorFlow {}: it lacks {}{more}",
                    release.version,
                    demangled(first),
                ),
                fix,
            );
        }
    }
    if !artefact.cpp_imports.is_empty() {
        let count = artefact.cpp_imports.len();
        findings.warn(
            format!(
                "uses {count} C++ functions of TensorFlow's, which differ from release to release"
            ),
            "use only the C interface: then one file works in all releases",
        );
    }
    if artefact.needs_tensorflow() {
        let names: Vec<&str> = artefact
            .needed
            .iter()
            .map(String::as_str)
            .filter(|name| is_tensorflow_library(name))
            .collect();
        findings.warn(
            format!("needs {}, so no tool that repairs wheels can fix it", names.join(", ")),
            "look up TensorFlow's functions at run time with `dlsym`, and do not link against it",
        );
    } else if let Some(first) = artefact.c_imports.first() {
        let count = artefact.c_imports.len();
        let what = format!(
            "imports {count} of TensorFlow's C functions, such as {first}, and names no library for them: \
             TensorFlow 2.12 to 2.18, and 2.22, show none to plugins (`undefined symbol`)"
        );
        // A user who names releases wants to know about these.
        let hidden = tensorflow.iter().any(|release| release.hides_functions());
        let severity = if hidden { Severity::Error } else { Severity::Warning };
        findings.add(
            severity,
            what,
            "look them up at run time with `dlsym`: in `libtensorflow_framework.so.2` opened with RTLD_NOLOAD, then \
             with RTLD_DEFAULT",
        );
    }
    if artefact.executable_stack {
        findings.warn(
            "requests an executable stack, which newer systems refuse to a library",
            "link it with `-z noexecstack`",
        );
    }
    if artefact.text_relocations {
        findings.warn(
            "has text relocations, which hardened systems refuse",
            "compile all of it with `-fPIC`",
        );
    }
    if artefact.notes.iter().any(|note| note.panic == Panic::Abort) {
        findings.warn(
            "is built with `panic = \"abort\"`: a panic ends the Python process",
            "remove `panic = \"abort\"` from the profile in Cargo.toml; panics then become errors",
        );
    }
}

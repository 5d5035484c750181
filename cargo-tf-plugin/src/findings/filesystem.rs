//! Findings about schemes and their tables.

use crate::findings::Findings;
use crate::probe::Scheme;
use crate::tables;

pub(crate) fn look_at_scheme(scheme: &Scheme, findings: &mut Findings) {
    if let Some(refusal) = tables::refusal(scheme) {
        let fix = if refusal.contains("`nullptr`") {
            "set `scheme` to a string of the plugin's allocator".to_owned()
        } else if refusal.contains("ABI") {
            "set the version numbers with `TF_SetFilesystemVersionMetadata`".to_owned()
        } else if refusal.contains("allows creation") {
            "give the table of the files' operations, or leave the operation out that opens them"
                .to_owned()
        } else {
            "fill it in".to_owned()
        };
        findings.error(format!("is refused by TensorFlow: {refusal}"), fix);
    }
    let name = scheme.scheme.clone().unwrap_or_default();
    if ["", "file", "ram", "gs"].contains(&name.as_str()) && scheme.scheme.is_some() {
        findings.error(
            format!("registers the scheme \"{name}\", which is TensorFlow's own: File system for {name} already registered"),
            "take another scheme",
        );
    } else if !is_scheme(&name) && scheme.scheme.is_some() {
        findings.error(
            format!("registers the scheme \"{name}\", which TensorFlow never finds: {name}:// is a local path to it"),
            "take letters, digits and `.`, with a letter first, and leave `://` out",
        );
    }
}

/// Checks what is the same for all `names`, whose tables are those of `scheme`.
pub(crate) fn look_at_tables(scheme: &Scheme, names: &[String], findings: &mut Findings) {
    let name = match names {
        [one] => format!("{one}://"),
        [one, others @ ..] => format!("{one}:// (as {}://)", others.join("://, ")),
        [] => return,
    };
    for table in scheme.tables.iter().filter(|table| table.present) {
        let full = 8 * table.slots.len() as u64;
        if table.size < full && table.abi == Some(0) {
            let demanded = ["cleanup", "init"];
            let cut = table.slots.iter().skip((table.size / 8) as usize);
            let cut = cut.map(|slot| slot.name.as_str()).collect::<Vec<_>>();
            let text = format!(
                "says that {} has {} bytes, and the operations from {} on are cut off",
                table.name, table.size, cut[0]
            );
            let fix = format!("set the size to {full}, or use `TF_SetFilesystemVersionMetadata`");
            if cut.iter().any(|cut| demanded.contains(cut)) {
                findings.error(format!("{text}; TensorFlow calls a null pointer"), fix);
            } else {
                findings.warn(text, fix);
            }
        }
        if let Some(api) = table.api.filter(|api| *api != 0) {
            findings.note(
                format!("says API {api} for {}; TensorFlow logs that and goes on", table.name),
                "set the version numbers with `TF_SetFilesystemVersionMetadata`",
            );
        }
    }
    findings.look_at_places(&scheme.tables);
    let [filesystem, reader, writer, _] = scheme.tables.as_slice() else { return };
    if tables::refusal(scheme).is_some() {
        return;
    }
    for (table, operation, why) in [
        (reader, "read", "no file can be read"),
        (writer, "append", "nothing can be written"),
        (writer, "close", "no file that is written can be closed"),
    ] {
        if table.present && !table.has(operation) {
            findings.warn(
                format!("{name} has no `{operation}` in {}: {why} (UNIMPLEMENTED)", table.name),
                "fill it in",
            );
        }
    }
    if !filesystem.has("translate_name") {
        findings.warn(
            format!(
                "{name} has no `translate_name`: TensorFlow's default takes scheme and host away, and the same path of \
                 two hosts is one file"
            ),
            "implement it, and keep the whole URI",
        );
    }
    if !filesystem.has("stat") && !filesystem.has("path_exists") {
        findings.warn(
            format!("{name} has neither `stat` nor `path_exists`: most of TensorFlow's file functions fail"),
            "implement `stat`",
        );
    }
    if !filesystem.has("recursively_create_dir") && filesystem.has("create_dir") {
        findings.warn(
            format!(
                "{name} has no `recursively_create_dir`: TensorFlow's default never ends if the root is \
                 reported as NOT_FOUND"
            ),
            "implement it, or let `stat` return that the root is a directory",
        );
    }
    if !filesystem.has("copy_file") && filesystem.has("new_writable_file") {
        findings.note(
            format!(
                "{name} has no `copy_file`: TensorFlow reads and appends 128 KiB at a time, and never ends if \
                 `read` returns OK with 0 bytes at the end of a file"
            ),
            "implement it, and return OUT_OF_RANGE at the end of a file",
        );
    }
}

/// Returns whether TensorFlow reaches a scheme: a name that begins with one letter and `://` is a local path.
pub(crate) fn is_scheme(text: &str) -> bool {
    text.len() > 1
        && text.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '.')
}

//! Findings about a device and its functions.

use crate::findings::Findings;
use crate::probe::{Platform, Table};
use crate::tables::{self, Need};

/// Checks a platform. If `is_noted`, the plugin has a note of the SDK's macros.
pub(crate) fn look_at_platform(platform: &Platform, is_noted: bool, findings: &mut Findings) {
    let abort = "TensorFlow aborts the process";
    for (what, text) in [("name", &platform.name), ("type", &platform.device_type)] {
        match text.as_deref() {
            None => findings.error(
                format!("'{what}' field in SP_Platform must be set; {abort}"),
                "set it to a static string",
            ),
            Some(text) if !is_identifier(text) => findings.error(
                format!("Device name/type '{text}' must match [A-Z][A-Z_]*; {abort}"),
                "take capital letters and `_` alone",
            ),
            Some(_) => {}
        }
    }
    match platform.device_type.as_deref() {
        Some(of @ ("CPU" | "DEFAULT")) => findings.error(
            format!("the device type {of} is TensorFlow's own"),
            "choose a unique type, such as MY_DEVICE",
        ),
        // The SDK checks first whether TensorFlow has that type.
        Some("GPU") if is_noted => {}
        Some("GPU") => findings.warn(
            "the device type GPU is taken in TensorFlow for CUDA: there every op fails with `Multiple OpKernel \
             registrations match`",
            "choose a unique type, such as MY_GPU",
        ),
        _ => {}
    }
    if platform.name.as_deref() == Some("HOST") {
        findings
            .error("the platform name HOST is taken in every TensorFlow", "choose a unique name");
    } else if platform.name.as_deref() == Some("CUDA") {
        findings
            .warn("the platform name CUDA is taken in TensorFlow for CUDA", "choose a unique name");
    }
    look_at_size("SP_Platform", platform.size, findings);
    look_at_destroy(
        "SE_PlatformRegistrationParams",
        [("destroy_platform", platform.destroy[0]), ("destroy_platform_fns", platform.destroy[1])],
        findings,
    );
}

pub(crate) fn look_at_destroy(record: &str, functions: [(&str, bool); 2], findings: &mut Findings) {
    for (function, is_set) in functions {
        if !is_set {
            findings.error(
                format!(
                    "'{function}' field in {record} must be set; TensorFlow aborts the process"
                ),
                "set it, to a function that does nothing if there is nothing to do",
            );
        }
    }
}

pub(crate) fn look_at_type(function: &str, device_type: Option<&str>, findings: &mut Findings) {
    if device_type.is_none_or(|device_type| !is_identifier(device_type)) {
        findings.error(
            format!(
                "`{function}` names the device type {}; TensorFlow aborts the process",
                device_type.map_or_else(|| "null".to_owned(), |name| format!("'{name}'"))
            ),
            "name the type that `SE_InitPlugin` names",
        );
    }
}

/// Checks that `struct_size` was set, as TensorFlow does: any value but 0 is accepted.
fn look_at_size(record: &str, size: u64, findings: &mut Findings) {
    if size != 0 {
        return;
    }
    // `SP_PlatformFns` has SP_PLATFORM_FNS_STRUCT_SIZE.
    let mut constant = String::new();
    for (at, letter) in record.char_indices() {
        let inner = at > 0 && letter.is_ascii_uppercase();
        if inner && record[..at].ends_with(|before: char| before.is_ascii_lowercase()) {
            constant.push('_');
        }
        constant.push(letter.to_ascii_uppercase());
    }
    constant.push_str("_STRUCT_SIZE");
    let what = if record.starts_with("TP_Optimizer") {
        format!("struct_size field in {record} must be set to {constant}")
    } else {
        format!(
            "Expected initialized `{record}` structure with `struct_size` field set to {constant}. Found \
             `struct_size` = 0"
        )
    };
    findings.error(format!("{what}; TensorFlow aborts the process"), "set it");
}

pub(crate) fn look_at_functions(table: &Table, has_unified_memory: bool, findings: &mut Findings) {
    look_at_size(&table.name, table.size, findings);
    for slot in table.slots.iter().filter(|slot| !slot.filled) {
        let field = format!("'{}' field in {}", slot.name, table.name);
        match tables::need(&table.name, &slot.name) {
            Need::Always => findings.error(
                format!("{field} must be set; TensorFlow aborts the process"),
                "fill it in, with a function that fails if there is nothing better",
            ),
            Need::UpTo213 => findings.warn(
                format!("{field} must be set for TensorFlow 2.12 and 2.13, which abort the process; newer ones do not use it"),
                "fill it in, or name 2.14 as the oldest release",
            ),
            Need::Unchecked(effect) => findings.error(
                format!("{field} is null, and TensorFlow calls it without looking: {effect}"),
                "fill it in, with a function that fails if there is nothing better",
            ),
            Need::Optional(_) => {}
        }
    }
    if has_unified_memory && table.name == "SP_StreamExecutor" {
        for name in ["unified_memory_allocate", "unified_memory_deallocate"] {
            if !table.has(name) {
                findings.error(
                    format!("'{name}' field in SP_StreamExecutor must be set, as `supports_unified_memory` is; TensorFlow aborts the process"),
                    "set `supports_unified_memory` to 0: nothing uses it",
                );
            }
        }
    }
    findings.look_at_places(std::slice::from_ref(table));
}

/// Returns whether TensorFlow accepts a text as the name or the type of a device.
pub(crate) fn is_identifier(text: &str) -> bool {
    text.starts_with(|letter: char| letter.is_ascii_uppercase())
        && text.chars().all(|letter| letter.is_ascii_uppercase() || letter == '_')
}

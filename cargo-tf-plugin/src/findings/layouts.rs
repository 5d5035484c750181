//! What TensorFlow 2.22 does with a filesystem's table: it has removed the operations of
//! transactions from the middle, and kept the ABI number.

use crate::findings::Findings;
use crate::probe::{Scheme, Table};
use crate::tables;

/// Returns the size of the table that the plugin gives to TensorFlow 2.22.
pub(crate) fn newer_size(scheme: &Scheme, newer: &[Scheme]) -> Option<u64> {
    Some(operations(newer.iter().find(|newer| newer.scheme == scheme.scheme)?)?.size)
}

fn operations(scheme: &Scheme) -> Option<&Table> {
    scheme.tables.first().filter(|table| table.present)
}

/// Finds what goes wrong with the table of a scheme in one of the releases. `newer` are the schemes
/// as the plugin offers them to TensorFlow 2.22, if it requests the release.
pub(crate) fn look(scheme: &Scheme, newer: &[Scheme], findings: &mut Findings) {
    let Some(table) = operations(scheme) else { return };
    let adapted = newer.iter().find(|newer| newer.scheme == scheme.scheme).and_then(operations);
    let older = tables::FILESYSTEM.1.len();
    let is_newer = |table: &Table| table.slots.len() < older;
    let name = scheme.scheme.as_deref().unwrap_or_default();
    let filled = |table: &Table| -> Vec<String> {
        let behind = table.slots.iter().skip_while(|slot| slot.name != "flush_caches").skip(1);
        behind.filter(|slot| slot.filled).map(|slot| slot.name.clone()).collect()
    };
    let filled = filled(table);
    let Some(first) = filled.first() else { return };
    let fix = "ask `TF_Version` for the release and give it the table that it reads, as the Rust SDK does; or leave \
               the operations behind `flush_caches` null, which TensorFlow does not call from Python";
    let what = if is_newer(table) {
        format!(
            "{name}:// has the table of TensorFlow 2.22: older releases, which have the operations of transactions \
             in its middle, do not find `{first}`"
        )
    } else if adapted.is_none_or(|adapted| !is_newer(adapted)) {
        let taken = filled.iter().find_map(|name| Some((name, tables::taken_for_in_2_22(name)?)));
        let then = match taken {
            Some((name, other)) => format!("takes `{name}` for `{other}`"),
            None => format!("does not find `{first}`"),
        };
        format!(
            "{name}:// has the table of TensorFlow up to 2.21: 2.22, which has no transactions in its middle, {then}"
        )
    } else {
        return;
    };
    findings.warn(what, fix);
}

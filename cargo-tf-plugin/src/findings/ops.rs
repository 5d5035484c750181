//! What is wrong with the ops of a library.

use crate::artefact::Artefact;
use crate::elf_notes::NoteOf;
use crate::findings::Findings;
use crate::ops::Description;

/// The ops of all TensorFlow releases that the project is tested with.
const TENSORFLOW_OPS: &str = include_str!("../ops/tensorflow_ops.txt");

/// Looks at the file: its notes say which ops it has.
pub(crate) fn look_at_file(artefact: &Artefact, findings: &mut Findings) {
    let ops = artefact.noted(NoteOf::Op);
    let ([first, ..], false) = (ops.as_slice(), artefact.describes_ops) else { return };
    let count = ops.len();
    let what = if count == 1 { "an op".to_owned() } else { format!("{count} ops") };
    let what = format!("has {what}, such as {first}, and does not export");
    // A device, for instance, whose ops are registered with it.
    let is_loaded = ["SE_InitPlugin", "TF_InitKernel"];
    if artefact.entry_points.iter().any(|name| is_loaded.contains(name)) {
        findings.note(
            format!("{what} their description: the wheel has no Python functions for them"),
            "write `tf_op_plugin::op_plugin!(autoload = false);` once in the crate, if users are to call them",
        );
    } else {
        findings.error(
            format!(
                "{what} them: TensorFlow does not load it on import, and there is no Python module for it"
            ),
            "write `tf_op_plugin::op_plugin!();` once in the crate",
        );
    }
}

/// Looks at the ops, of which those in `registered` were registered.
pub(crate) fn look(description: &Description, registered: &[String], findings: &mut Findings) {
    for op in &description.ops {
        let (name, place) = (&op.name, &op.place);
        if TENSORFLOW_OPS.split_whitespace().any(|own| own == name) {
            findings.error(
                format!("{name} ({place}) is the name of an op of TensorFlow's, which stays: this op is not registered"),
                "begin the name with that of the library",
            );
        } else if !registered.contains(name) {
            let why = op.error.as_deref().unwrap_or("the plugin's messages say why");
            findings.error(
                format!("{name} ({place}) is not registered: {why}"),
                "correct its definition",
            );
        }
        if op.doc.trim().is_empty() {
            findings.warn(
                format!("{name} ({place}) has no documentation: `help()` shows only its types"),
                "write a doc comment on the struct",
            );
        }
        if let Some((problem, advice)) = description.wrong_gradient(op) {
            findings.error(problem, advice);
        }
    }
}

//! Comparing `tf-fs-sys` with the headers.

use std::collections::BTreeSet;
use std::path::Path;

use cargo_tf_plugin::TensorFlow;

use crate::declarations::{Aliases, Declarations, Reader, common_integers};
use crate::header;
use crate::lists::{DECLARED, OPAQUE, WITHOUT};

/// The result of a comparison.
pub(crate) struct Comparison {
    /// One text for each difference; none if both sides agree.
    pub(crate) problems: Vec<String>,
    /// Names of `tf-fs-sys` that no header has and that need not be there, sorted.
    pub(crate) absent: BTreeSet<String>,
}

/// Compares the declarations in `source`, measured as `numbers`, with those of TensorFlow's headers; those in
/// the first of `include_dirs` count.
///
/// # Panics
/// When a header is missing or one side cannot be read.
pub(crate) fn compare(
    tensorflow: &TensorFlow,
    include_dirs: &[&Path],
    source: &syn::File,
    numbers: impl IntoIterator<Item = (String, i128)>,
) -> Comparison {
    let aliases = Aliases::of(source);
    let nothing = BTreeSet::new();
    let rust = Reader::read(source, &aliases, &nothing);
    let names = rust.kinds.keys().filter(|name| !name.contains([':', ' '])).cloned().collect();
    let types = aliases.names();
    let headers = header::read(tensorflow, include_dirs, &names, types);

    let header_aliases = Aliases::of(&headers.file);
    let integers = common_integers(&aliases, &header_aliases);
    let mut rust = Reader::read(source, &aliases, &integers);
    rust.numbers.extend(numbers);
    let mut header = Reader::read(&headers.file, &header_aliases, &integers);
    for (name, body) in &headers.inline {
        header.assignments(name, body);
    }
    wrapped(&mut header);

    // The type of a function that plugins export has the function's name with `Fn`.
    for name in types.iter().filter_map(|name| name.strip_suffix("Fn")) {
        if header.kinds.contains_key(name)
            && let Some(kind) = rust.kinds.remove(&format!("{name}Fn"))
        {
            rust.kinds.insert(name.to_owned(), kind);
        }
    }

    let mut result = Comparison { problems: Vec::new(), absent: BTreeSet::new() };
    for (name, kind) in &rust.kinds {
        let Some(theirs) = header.kinds.get(name) else {
            // A shorthand of tf-fs-sys; what mentions it is compared with the header.
            let is_of_field = || rust.kinds.iter().any(|(of, other)| of != name && other == kind);
            let shorthand = kind.starts_with("fn(") && (aliases.is_used(name) || is_of_field());
            let host = rust.host.get(name);
            let declared = DECLARED.iter().any(|(names, _)| names.split(' ').any(|it| it == name));
            if host == Some(&true) {
                result.problems.push(format!(
                    "`{name}`: only tf-fs-sys has this required function; remove it, or make it \
                     optional if other releases have it"
                ));
            } else if declared || host.is_some() {
                result.absent.insert(name.clone());
            } else if !shorthand {
                result.problems.push(format!("`{name}`: only tf-fs-sys has `{kind}`; remove it"));
            }
            continue;
        };
        let opaque = kind == "opaque" && OPAQUE.contains(&name.as_str());
        // A macro has the type that its user wants.
        let number = headers.macros.contains(name) && kind.starts_with("constant ");
        if kind != theirs && !opaque && !number {
            result.problems.push(format!(
                "`{name}`: it is `{theirs}` in the header and `{kind}` in tf-fs-sys; correct tf-fs-sys"
            ));
        }
    }
    for (name, kind) in &header.kinds {
        let known = rust.kinds.contains_key(name)
            || OPAQUE.iter().any(|opaque| name.starts_with(opaque))
            || WITHOUT.contains(&name.as_str());
        if !known {
            result
                .problems
                .push(format!("`{name}`: only the header has `{kind}`; declare it in tf-fs-sys"));
        }
    }
    for (name, number) in &rust.numbers {
        let item = name.rsplit(' ').next().unwrap_or_default();
        let theirs = header.numbers.get(name);
        let expected = header.kinds.get(item).is_some_and(|kind| kind != "opaque");
        if theirs != Some(number) && (expected || theirs.is_some()) {
            let theirs = theirs.map_or_else(|| "unknown".into(), ToString::to_string);
            result.problems.push(format!(
                "`{item}`: {name} is {theirs} in the header and {number} in tf-fs-sys; correct tf-fs-sys"
            ));
        }
    }
    result
}

/// Takes out what the header of status codes renames: each of its constants must have a name of TensorFlow's.
fn wrapped(header: &mut Declarations) {
    let names: BTreeSet<String> = header.kinds.keys().cloned().collect();
    header.kinds.retain(|name, kind| match name.strip_prefix("TSL_") {
        Some(rest) => kind == "constant TF_Code" && !names.contains(&format!("TF_{rest}")),
        // bindgen's own name of an enum without one.
        None => !name.starts_with('_'),
    });
}

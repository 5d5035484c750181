//! The operations of the trait `Filesystem`.

use proc_macro2::Ident;
use quote::format_ident;
use syn::ext::IdentExt as _;

/// The associated types that are injected when they are left out.
pub(crate) const TYPES: [&str; 4] = ["Reader", "Writer", "Region", "Transaction"];

/// The methods of the trait that are operations (`new` is none), with the associated type that each
/// needs.
const OPERATIONS: [(&str, Option<&str>); 31] = [
    ("new_random_access_file", Some("Reader")),
    ("new_writable_file", Some("Writer")),
    ("new_appendable_file", Some("Writer")),
    ("new_read_only_memory_region_from_file", Some("Region")),
    ("create_dir", None),
    ("recursively_create_dir", None),
    ("delete_file", None),
    ("delete_dir", None),
    ("delete_recursively", None),
    ("rename_file", None),
    ("copy_file", None),
    ("path_exists", None),
    ("paths_exist", None),
    ("stat", None),
    ("is_directory", None),
    ("get_file_size", None),
    ("translate_name", None),
    ("get_children", None),
    ("get_matching_paths", None),
    ("flush_caches", None),
    ("start_transaction", Some("Transaction")),
    ("end_transaction", Some("Transaction")),
    ("add_to_transaction", Some("Transaction")),
    ("get_transaction_for_path", Some("Transaction")),
    ("get_or_start_transaction_for_path", Some("Transaction")),
    ("decode_transaction_token", Some("Transaction")),
    ("get_filesystem_configuration", None),
    ("set_filesystem_configuration", None),
    ("get_filesystem_configuration_option", None),
    ("set_filesystem_configuration_option", None),
    ("get_filesystem_configuration_keys", None),
];

/// The name of the constant in `Ops` for the operation that a method implements. `None` for another
/// method, also for a misspelt one: the compiler itself then names the similar operation.
pub(crate) fn flag(method: &Ident) -> Option<Ident> {
    let (name, _) = find(method)?;
    Some(format_ident!("{}", name.to_ascii_uppercase()))
}

/// The associated type in a method's signature.
pub(crate) fn needed_type(method: &Ident) -> Option<&'static str> {
    find(method)?.1
}

fn find(method: &Ident) -> Option<(&'static str, Option<&'static str>)> {
    let name = method.unraw();
    OPERATIONS.iter().copied().find(|(known, _)| name == known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_those_of_the_runtime() {
        let theirs: Vec<_> = tf_fs_plugin::Ops::NAMES.iter().map(|(name, _)| *name).collect();
        assert_eq!(OPERATIONS.map(|(name, _)| name).as_slice(), theirs);
    }

    #[test]
    fn flags_are_for_operations_only() {
        assert_eq!(flag(&format_ident!("stat")).unwrap(), "STAT");
        assert_eq!(flag(&format_ident!("r#stat")).unwrap(), "STAT");
        assert_eq!(flag(&format_ident!("new")), None);
        assert_eq!(flag(&format_ident!("renmae_file")), None);
    }

    #[test]
    fn needed_types_are_injected_types() {
        for (name, needed) in OPERATIONS {
            assert!(needed.is_none_or(|needed| TYPES.contains(&needed)), "{name}");
        }
        assert_eq!(needed_type(&format_ident!("new_appendable_file")), Some("Writer"));
    }
}

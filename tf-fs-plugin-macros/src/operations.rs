//! The operations of the trait `Filesystem`.

use proc_macro2::Ident;
use quote::format_ident;
use syn::ext::IdentExt as _;

/// The associated types that are injected when they are left out.
pub(crate) const TYPES: [&str; 4] = ["Reader", "Writer", "Region", "Transaction"];

/// Returns the name of the constant in `Operations` for the operation that a method implements. `None` for
/// another method, also for a misspelt one: the compiler itself then names the similar operation.
pub(crate) fn flag(method: &Ident) -> Option<Ident> {
    Some(format_ident!("{}", find(method)?.to_ascii_uppercase()))
}

/// Returns the associated type in a method's signature.
pub(crate) fn needed_type(method: &Ident) -> Option<&'static str> {
    match find(method)? {
        "new_random_access_file" => Some("Reader"),
        "new_writable_file" | "new_appendable_file" => Some("Writer"),
        "new_read_only_memory_region_from_file" => Some("Region"),
        name => name.contains("transaction").then_some("Transaction"),
    }
}

/// Returns the operation of a method's name; the methods `new` and `drop` implement the first two.
fn find(method: &Ident) -> Option<&'static str> {
    let name = method.unraw();
    tf_fs_sys::OPERATIONS[2..].iter().copied().find(|known| name == known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_for_operations_only() {
        assert_eq!(flag(&format_ident!("stat")).unwrap(), "STAT");
        assert_eq!(flag(&format_ident!("r#stat")).unwrap(), "STAT");
        assert_eq!(flag(&format_ident!("new")), None);
        assert_eq!(flag(&format_ident!("cleanup")), None);
        assert_eq!(flag(&format_ident!("renmae_file")), None);
    }

    #[test]
    fn needed_types_are_injected_types() {
        for name in tf_fs_sys::OPERATIONS {
            let needed = needed_type(&format_ident!("{name}"));
            assert!(needed.is_none_or(|needed| TYPES.contains(&needed)), "{name}");
        }
        for (name, needed) in [
            ("new_appendable_file", Some("Writer")),
            ("decode_transaction_token", Some("Transaction")),
            ("stat", None),
        ] {
            assert_eq!(needed_type(&format_ident!("{name}")), needed, "{name}");
        }
    }
}

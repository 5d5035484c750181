//! Which slots are filled for which methods.

use crate::abi::raw;
use crate::full::Full;
use crate::partial::Tree;
use crate::support::fails;
use std::collections::BTreeSet;
use tf_fs_plugin::{Code, Operations};
use tf_fs_sys::{TF_FilesystemOps, for_each_operation};
use tf_plugin_testing::filesystem::{Host, Plugin};

/// Returns the names of the slots that are filled.
fn filled(ops: &TF_FilesystemOps) -> BTreeSet<&'static str> {
    macro_rules! names {
        ({ $($demanded:ident $_demanded:ident;)* } { $($other:ident $_other:ident;)* }) => {
            [
                $((stringify!($demanded), ops.$demanded.is_some()),)*
                $((stringify!($other), ops.$other.is_some()),)*
            ]
        };
    }
    let slots = for_each_operation!(names);
    slots.into_iter().filter(|(_, is_filled)| *is_filled).map(|(name, _)| name).collect()
}

/// Slots that are never null, because TensorFlow needs them or its default does harm.
const ALWAYS: &str = "init cleanup recursively_create_dir rename_file copy_file translate_name \
    get_matching_paths";

/// Returns the slots that are filled too, because they follow from a method.
fn implied(op: &str) -> &'static [&'static str] {
    match op {
        "stat" => &["path_exists"],
        "start_transaction" | "get_transaction_for_path" | "get_or_start_transaction_for_path" => {
            &["decode_transaction_token"]
        }
        "get_filesystem_configuration" => {
            &["get_filesystem_configuration_option", "get_filesystem_configuration_keys"]
        }
        "set_filesystem_configuration_option" => &["set_filesystem_configuration"],
        _ => &[],
    }
}

#[track_caller]
fn check<P: Plugin>(scheme: &str, written: &[&'static str]) {
    let host = Host::load::<P>().expect("loaded");
    let tables = host.filesystem(scheme).expect("there").tables();
    let mut expected: BTreeSet<&str> = ALWAYS.split(' ').chain(written.iter().copied()).collect();
    expected.extend(written.iter().flat_map(|op| implied(op)));
    assert_eq!(filled(&tables.filesystem), expected, "{written:?}");
    let writes = |ops: &[&str]| written.iter().any(|op| ops.contains(op));
    let reader = tables.random_access_file;
    assert_eq!(reader.cleanup.is_some(), writes(&["new_random_access_file"]));
    assert_eq!(reader.read.is_some(), reader.cleanup.is_some());
    let writer = tables.writable_file;
    assert_eq!(
        [
            writer.cleanup.is_some(),
            writer.append.is_some(),
            writer.tell.is_some(),
            writer.flush.is_some(),
            writer.sync.is_some(),
            writer.close.is_some()
        ],
        [writes(&["new_writable_file", "new_appendable_file"]); 6]
    );
    let region = tables.read_only_memory_region;
    assert_eq!(
        [region.cleanup.is_some(), region.data.is_some(), region.length.is_some()],
        [writes(&["new_read_only_memory_region_from_file"]); 3]
    );
}

#[test]
fn all_operations() {
    let all: Vec<&str> = Operations::NAMES.iter().map(|(op, _)| *op).collect();
    check::<Full>("full", &all);
}

/// Defines one filesystem per operation, which declares only that operation.
macro_rules! only {
    ({ $($always:tt)* } { $($name:ident $op:ident;)* }) => {
        #[test]
        fn each_operation_alone() {
            let mut tested = BTreeSet::new();
            $({
                #[derive(Debug)]
                struct Only;
                impl tf_fs_plugin::OperationTable for Only {
                    const PROVIDED: Operations = Operations::$op;
                }
                export!(Only: "only" => Only);
                impl tf_fs_plugin::Filesystem for Only {
                    type Reader = crate::full::Reader;
                    type Writer = crate::full::Writer;
                    type Region = crate::full::Region;
                    type Transaction = ();
                    fn new(_: &str) -> tf_fs_plugin::Result<Self> {
                        Ok(Self)
                    }
                }
                check::<Only>("only", &[stringify!($name)]);
                tested.insert(stringify!($name));
            })*
            assert_eq!(tested, Operations::NAMES.iter().map(|(op, _)| *op).collect());
        }
    };
}
for_each_operation!(only);

#[test]
fn three_transaction_methods_give_a_fourth() {
    check::<Tree>(
        "tree",
        &[
            "stat",
            "get_children",
            "start_transaction",
            "add_to_transaction",
            "get_transaction_for_path",
            "get_or_start_transaction_for_path",
        ],
    );
}

#[test]
fn slots_can_be_taken_out() {
    let host = Host::new();
    for (op, flag) in Operations::NAMES {
        let other = Host::new();
        other.register_without::<Full>(*flag).expect("loaded");
        let ops = other.filesystem("full").expect("there").tables().filesystem;
        let all = filled(&ops);
        assert!(!all.contains(op) && all.len() == 32, "{op}");
    }
    host.register_without::<Full>(Operations::NONE).expect("loaded");
    assert_eq!(filled(&host.filesystem("full").expect("there").tables().filesystem).len(), 33);
}

mod again {
    //! A plugin that is only registered in the test below, which relies on that.
    use tf_fs_plugin::*;

    #[derive(Debug)]
    pub(super) struct Again;
    export!(Again: "again" => Again, "asecond" => Again);

    #[filesystem]
    impl Filesystem for Again {
        fn new(scheme: &str) -> Result<Self> {
            if scheme == "again" {
                crate::trips::trip("again")?;
            }
            Ok(Self)
        }
    }
}

#[test]
fn registering_a_plugin_twice_is_not_an_error() {
    use again::Again;
    let host = Host::new();
    crate::trips::arm("again", crate::trips::Trip::Fail(Code::Unavailable), 0);
    fails(raw::register_exported::<Again>(&host), Code::Unavailable, "again was told");
    assert_eq!(host.schemes(), ["asecond"]);
    raw::register_exported::<Again>(&host).expect("only the one that failed is offered again");
    assert_eq!(host.schemes(), ["again", "asecond"]);
    raw::register_exported::<Again>(&host).expect("nothing is offered");
    raw::init_plugin_without_info::<Again>();
    // Without that check it would be an error.
    fails(
        host.register::<Again>(),
        Code::AlreadyExists,
        "File system for again already registered",
    );
    raw::register_exported::<Again>(&host)
        .expect("the filesystems that were cleaned up do not count");
    let other = Host::new();
    raw::register_exported::<Again>(&other).expect("one process, one host: nothing is offered");
    assert!(other.schemes().is_empty());
    drop(host);
    raw::register_exported::<Again>(&other).expect("the scheme is free again");
    assert_eq!(other.schemes(), ["again", "asecond"]);
}

//! The tables of TensorFlow's plugin interfaces: the names in order, what TensorFlow requires, and
//! what it does if a function is missing.

use crate::probe::{Scheme, Table};
use tf_fs_sys::{
    Record, SP_StreamExecutor, SP_StreamExecutorWithStreamOptions,
    TF_FilesystemOpsWithoutTransactions,
};

/// The name of a struct with those of its functions.
pub type Names = (&'static str, &'static [&'static str]);

/// The filesystem's operations in TensorFlow up to 2.21.
pub const FILESYSTEM: Names = ("TF_FilesystemOps", &tf_fs_sys::OPERATIONS);

/// Returns the filesystem's operations since TensorFlow 2.22: without transactions, under the same ABI number.
fn filesystem_2_22() -> impl Iterator<Item = &'static str> {
    FILESYSTEM.1.iter().copied().filter(|name| !name.contains("transaction"))
}

/// Returns the names of a filesystem's operations in a table of `size` bytes: only the size shows which layout it has.
pub fn filesystem(size: usize) -> Vec<&'static str> {
    if size == size_of::<TF_FilesystemOpsWithoutTransactions>() {
        filesystem_2_22().collect()
    } else {
        FILESYSTEM.1.to_vec()
    }
}

/// Returns the operation that TensorFlow 2.22 finds at the place of an operation in the table of
/// older releases, if it is a different one.
pub fn taken_for_in_2_22(operation: &str) -> Option<&'static str> {
    let at = FILESYSTEM.1.iter().position(|name| *name == operation)?;
    filesystem_2_22().nth(at).filter(|name| *name != operation)
}

/// Returns the name of a struct and those of its functions. A stream executor of TensorFlow 2.22 is
/// that of older releases with one function more, and has the same name.
pub fn names<T: Record>() -> Names {
    let whole = T::NAME == SP_StreamExecutorWithStreamOptions::NAME;
    if whole { STREAM_EXECUTOR } else { (T::NAME, T::FUNCTIONS) }
}

/// Memory, streams, events and copies; the last function is called since TensorFlow 2.22.
pub const STREAM_EXECUTOR: Names = (SP_StreamExecutor::NAME, &WITH_STREAM_OPTIONS);

const WITH_STREAM_OPTIONS: [&str; SP_StreamExecutor::FUNCTIONS.len() + 1] = {
    const OLDER: &[&str] = SP_StreamExecutor::FUNCTIONS;
    let mut names = [SP_StreamExecutorWithStreamOptions::FUNCTIONS[0]; OLDER.len() + 1];
    names.split_at_mut(OLDER.len()).0.copy_from_slice(OLDER);
    names
};

impl Table {
    /// Returns whether the function `name` is set.
    pub fn has(&self, name: &str) -> bool {
        self.slots.iter().any(|slot| slot.name == name && slot.filled)
    }

    /// Returns whether TensorFlow sees that `name` is missing. It checks before it cuts the table to its size.
    fn lacks(&self, name: &str) -> bool {
        let at = self.slots.iter().position(|slot| slot.name == name);
        at.is_some_and(|at| !self.slots[at].filled && self.size >= 8 * (at as u64 + 1))
    }
}

/// Returns why TensorFlow does not register a scheme, with its text; the first reason, in its order.
pub fn refusal(scheme: &Scheme) -> Option<String> {
    const KINDS: [&str; 4] =
        ["filesystem", "random access file", "writable file", "read only memory region"];
    if scheme.scheme.is_none() {
        return Some("Attempted to register filesystem with `nullptr` URI scheme".to_owned());
    }
    for (table, kind) in scheme.tables.iter().zip(KINDS) {
        if let Some(abi) = table.abi.filter(|abi| table.present && *abi != 0) {
            return Some(format!(
                "Plugin ABI ({abi}) for {kind} operations doesn't match expected core ABI (0). Plugin cannot be loaded."
            ));
        }
    }
    let [filesystem, reader, writer, region] = scheme.tables.as_slice() else { return None };
    if !filesystem.present {
        return Some("Trying to register filesystem without operations".to_owned());
    }
    for operation in ["init", "cleanup"] {
        if filesystem.lacks(operation) {
            return Some(format!("Trying to register filesystem without `{operation}` operation"));
        }
    }
    for (table, operation, of) in [
        (reader, "cleanup", "random access files"),
        (writer, "cleanup", "writable files"),
        (region, "cleanup", "read only memory regions"),
        (region, "data", "read only memory regions"),
        (region, "length", "read only memory regions"),
    ] {
        if table.present && table.lacks(operation) {
            return Some(format!(
                "Trying to register filesystem without `{operation}` operation on {of}"
            ));
        }
    }
    for (operations, table, what) in [
        (&["new_random_access_file"][..], reader, "random access files"),
        (&["new_writable_file", "new_appendable_file"], writer, "writable files"),
        (&["new_read_only_memory_region_from_file"], region, "readonly memory regions"),
    ] {
        if operations.iter().any(|operation| filesystem.has(operation)) && !table.present {
            return Some(format!(
                "Filesystem allows creation of {what} but no operations on them have been supplied."
            ));
        }
    }
    None
}

/// Who does the work of an operation that a plugin does not implement, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// TensorFlow has a default, which does this.
    Default(&'static str),
    Unimplemented,
    /// TensorFlow never calls the operation, whether it is set or not.
    NeverCalled,
    /// TensorFlow does not load the plugin.
    Refused,
}

/// Returns what TensorFlow does for an operation of a filesystem or of its files that is a null pointer.
pub fn missing(table: &str, operation: &str) -> Missing {
    use Missing::{Default, NeverCalled, Refused, Unimplemented};
    match (table, operation) {
        (_, "init" | "cleanup" | "data" | "length") => Refused,
        ("TF_FilesystemOps", "paths_exist") => Default("calls path_exists for each"),
        ("TF_FilesystemOps", "get_file_size") => Default("calls stat"),
        ("TF_FilesystemOps", "rename_file") => Default("copies the file, then deletes the source"),
        ("TF_FilesystemOps", "copy_file") => Default("reads and appends 128 KiB at a time"),
        ("TF_FilesystemOps", "is_directory") => Default("calls path_exists, then stat"),
        ("TF_FilesystemOps", "recursively_create_dir") => {
            Default("stat and create_dir for each part")
        }
        ("TF_FilesystemOps", "delete_recursively") => Default("lists and deletes one by one"),
        ("TF_FilesystemOps", "get_matching_paths") => Default("lists directory by directory"),
        ("TF_FilesystemOps", "translate_name") => Default("takes scheme and host away"),
        ("TF_FilesystemOps", "flush_caches") => Default("does nothing"),
        ("TF_WritableFileOps", "flush") => Default("does nothing"),
        ("TF_WritableFileOps", "sync") => Default("calls flush"),
        ("TF_FilesystemOps", operation) if is_never_called(operation) => NeverCalled,
        _ => Unimplemented,
    }
}

/// Returns whether TensorFlow never calls it: transactions, and configuration that is not for `FileSystem::SetOption`.
fn is_never_called(operation: &str) -> bool {
    operation.contains("transaction")
        || operation.contains("configuration") && operation != "set_filesystem_configuration"
}

/// Returns what the SDK's default does, if the author of a plugin has not implemented the operation
/// and TensorFlow's default would hang, crash or return wrong results.
pub fn sdk_default(operation: &str) -> &'static str {
    match operation {
        "recursively_create_dir" => "create_dir, from the nearest existing directory",
        "rename_file" => "copies the file, then deletes the source",
        "copy_file" => "reads and appends 1 MiB at a time",
        "path_exists" => "calls stat",
        "translate_name" => "the canonical form, with scheme and host",
        "get_matching_paths" => "lists directory by directory",
        "set_filesystem_configuration" => "sets option by option",
        _ => "made of the other operations",
    }
}

/// A function of a device that TensorFlow requires, or calls without checking that it is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// A null pointer aborts the process that loads the plugin.
    Always,
    /// The same, but only in TensorFlow 2.12 and 2.13; later releases do not call it.
    UpTo213,
    /// TensorFlow calls the null pointer.
    Unchecked(&'static str),
    /// A null pointer is allowed, and means this.
    Optional(&'static str),
}

/// Returns how TensorFlow needs a function of a device plugin.
pub fn need(table: &str, function: &str) -> Need {
    use Need::{Always, Optional, Unchecked, UpTo213};
    match (table, function) {
        ("SP_PlatformFns", "get_device_count") => Unchecked("crashes on load"),
        ("SP_PlatformFns", "create_timer_fns" | "destroy_timer_fns") => UpTo213,
        ("SP_DeviceFns", "get_numa_node") => Optional("no NUMA node is known"),
        ("SP_DeviceFns", _) => Optional("unknown; nothing depends on it"),
        ("SP_StreamExecutor", "unified_memory_allocate" | "unified_memory_deallocate") => {
            Optional("fine while supports_unified_memory is 0")
        }
        ("SP_StreamExecutor", "create_timer" | "destroy_timer" | "start_timer" | "stop_timer")
        | ("SP_TimerFns", _) => UpTo213,
        ("SP_StreamExecutor", "memcpy_dtod") => {
            Unchecked("crashes at copies between devices and in TensorList ops")
        }
        ("SP_StreamExecutor", "sync_memcpy_dtod") => Optional("nothing in 2.21 calls it"),
        ("SP_StreamExecutor", "create_stream_with_options") => {
            Optional("TensorFlow 2.22 calls create_stream")
        }
        ("SP_StreamExecutor", "block_host_until_done") => {
            Optional("an event is recorded and waited for")
        }
        ("TP_Optimizer", "create_func" | "destroy_func") => Optional("no state is kept"),
        _ => Always,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_2_22_are_those_without_transactions() {
        assert_eq!(filesystem(264), FILESYSTEM.1);
        let names = filesystem(216);
        assert_eq!(names.len(), 27);
        assert_eq!(names[21..23], ["flush_caches", "get_filesystem_configuration"]);
        assert_eq!(taken_for_in_2_22("end_transaction"), Some("set_filesystem_configuration"));
        assert_eq!(taken_for_in_2_22("flush_caches"), None);
        assert_eq!(taken_for_in_2_22("set_filesystem_configuration"), None);
    }
}

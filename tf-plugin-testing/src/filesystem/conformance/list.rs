//! All cases: the one list that the tests of authors, [`Conformance`](super::Conformance) and the
//! documentation are made of.

use super::case::{Case, Group};
use super::conditions::Is;
use super::run::CONTENT;
use super::{
    consumers, content, directories, extras, files, hosts, names, queries, random, replaced,
    threads, times, tree,
};
use tf_plugin_core::Code;

const END: Option<Code> = Some(Code::OutOfRange);

case_list! {
    ($) filesystem __filesystem_conformance_tests
    Opening "Opening files" {
        new_random_access_file_of_missing = |run| run.operation(&files::NEW_RANDOM_ACCESS_FILE, Is::Missing),
            "`new_random_access_file` of a path that is missing returns NOT_FOUND, and nothing changes",
            "TensorFlow tells a missing checkpoint from a broken disk by NOT_FOUND";
        new_random_access_file_of_missing_parent = |run| run.operation(&files::NEW_RANDOM_ACCESS_FILE, Is::ParentMissing),
            "`new_random_access_file` of a path whose parent is missing returns NOT_FOUND, and nothing changes",
            "TensorFlow tells a missing checkpoint from a broken disk by NOT_FOUND";
        new_random_access_file_of_file = |run| run.operation(&files::NEW_RANDOM_ACCESS_FILE, Is::File),
            "`new_random_access_file` of a file returns OK",
            "TensorFlow tells a missing checkpoint from a broken disk by NOT_FOUND";
        new_random_access_file_of_empty_dir = |run| run.operation(&files::NEW_RANDOM_ACCESS_FILE, Is::EmptyDir),
            "`new_random_access_file` of an empty directory returns FAILED_PRECONDITION, and nothing changes",
            "TensorFlow tells a missing checkpoint from a broken disk by NOT_FOUND";
        new_random_access_file_of_full_dir = |run| run.operation(&files::NEW_RANDOM_ACCESS_FILE, Is::FullDir),
            "`new_random_access_file` of a directory with a file in it returns FAILED_PRECONDITION, and nothing changes",
            "TensorFlow tells a missing checkpoint from a broken disk by NOT_FOUND";
        new_random_access_file_of_below_file = |run| run.operation(&files::NEW_RANDOM_ACCESS_FILE, Is::BelowFile),
            "`new_random_access_file` of a path directly below a file returns FAILED_PRECONDITION, and nothing changes",
            "TensorFlow tells a missing checkpoint from a broken disk by NOT_FOUND";
        new_random_access_file_of_far_below_file = |run| run.operation(&files::NEW_RANDOM_ACCESS_FILE, Is::FarBelowFile),
            "`new_random_access_file` of a path two levels below a file returns FAILED_PRECONDITION, and nothing changes",
            "TensorFlow tells a missing checkpoint from a broken disk by NOT_FOUND";
        new_random_access_file_of_malformed = |run| run.operation(&files::NEW_RANDOM_ACCESS_FILE, Is::Malformed),
            "`new_random_access_file` of a name that can never be one returns FAILED_PRECONDITION or INVALID_ARGUMENT, and nothing changes",
            "TensorFlow tells a missing checkpoint from a broken disk by NOT_FOUND";
        new_writable_file_of_missing = |run| run.operation(&files::NEW_WRITABLE_FILE, Is::Missing),
            "`new_writable_file` of a path that is missing returns OK, and an empty file is there",
            "a save that cannot be written must fail when it is opened, not at its end";
        new_writable_file_of_missing_parent = |run| run.operation(&files::NEW_WRITABLE_FILE, Is::ParentMissing),
            "`new_writable_file` of a path whose parent is missing returns NOT_FOUND, and nothing changes",
            "a save that cannot be written must fail when it is opened, not at its end";
        new_writable_file_of_file = |run| run.operation(&files::NEW_WRITABLE_FILE, Is::File),
            "`new_writable_file` of a file returns OK, and it is empty",
            "a save that cannot be written must fail when it is opened, not at its end";
        new_writable_file_of_empty_dir = |run| run.operation(&files::NEW_WRITABLE_FILE, Is::EmptyDir),
            "`new_writable_file` of an empty directory returns FAILED_PRECONDITION, and nothing changes",
            "a save that cannot be written must fail when it is opened, not at its end";
        new_writable_file_of_full_dir = |run| run.operation(&files::NEW_WRITABLE_FILE, Is::FullDir),
            "`new_writable_file` of a directory with a file in it returns FAILED_PRECONDITION, and nothing changes",
            "a save that cannot be written must fail when it is opened, not at its end";
        new_writable_file_of_below_file = |run| run.operation(&files::NEW_WRITABLE_FILE, Is::BelowFile),
            "`new_writable_file` of a path directly below a file returns FAILED_PRECONDITION, and nothing changes",
            "a save that cannot be written must fail when it is opened, not at its end";
        new_writable_file_of_far_below_file = |run| run.operation(&files::NEW_WRITABLE_FILE, Is::FarBelowFile),
            "`new_writable_file` of a path two levels below a file returns FAILED_PRECONDITION, and nothing changes",
            "a save that cannot be written must fail when it is opened, not at its end";
        new_writable_file_of_malformed = |run| run.operation(&files::NEW_WRITABLE_FILE, Is::Malformed),
            "`new_writable_file` of a name that can never be one returns FAILED_PRECONDITION or INVALID_ARGUMENT, and nothing changes",
            "a save that cannot be written must fail when it is opened, not at its end";
        new_appendable_file_of_missing = |run| run.operation(&files::NEW_APPENDABLE_FILE, Is::Missing),
            "`new_appendable_file` of a path that is missing returns OK, and an empty file is there",
            "Dataset.save and snapshots open new files with it, GFile(..., 'a') old ones";
        new_appendable_file_of_missing_parent = |run| run.operation(&files::NEW_APPENDABLE_FILE, Is::ParentMissing),
            "`new_appendable_file` of a path whose parent is missing returns NOT_FOUND, and nothing changes",
            "Dataset.save and snapshots open new files with it, GFile(..., 'a') old ones";
        new_appendable_file_of_file = |run| run.operation(&files::NEW_APPENDABLE_FILE, Is::File),
            "`new_appendable_file` of a file returns OK, and its content is kept",
            "Dataset.save and snapshots open new files with it, GFile(..., 'a') old ones";
        new_appendable_file_of_empty_dir = |run| run.operation(&files::NEW_APPENDABLE_FILE, Is::EmptyDir),
            "`new_appendable_file` of an empty directory returns FAILED_PRECONDITION, and nothing changes",
            "Dataset.save and snapshots open new files with it, GFile(..., 'a') old ones";
        new_appendable_file_of_full_dir = |run| run.operation(&files::NEW_APPENDABLE_FILE, Is::FullDir),
            "`new_appendable_file` of a directory with a file in it returns FAILED_PRECONDITION, and nothing changes",
            "Dataset.save and snapshots open new files with it, GFile(..., 'a') old ones";
        new_appendable_file_of_below_file = |run| run.operation(&files::NEW_APPENDABLE_FILE, Is::BelowFile),
            "`new_appendable_file` of a path directly below a file returns FAILED_PRECONDITION, and nothing changes",
            "Dataset.save and snapshots open new files with it, GFile(..., 'a') old ones";
        new_appendable_file_of_far_below_file = |run| run.operation(&files::NEW_APPENDABLE_FILE, Is::FarBelowFile),
            "`new_appendable_file` of a path two levels below a file returns FAILED_PRECONDITION, and nothing changes",
            "Dataset.save and snapshots open new files with it, GFile(..., 'a') old ones";
        new_appendable_file_of_malformed = |run| run.operation(&files::NEW_APPENDABLE_FILE, Is::Malformed),
            "`new_appendable_file` of a name that can never be one returns FAILED_PRECONDITION or INVALID_ARGUMENT, and nothing changes",
            "Dataset.save and snapshots open new files with it, GFile(..., 'a') old ones";
        new_read_only_memory_region_from_file_of_missing = |run| run.operation(&files::NEW_REGION, Is::Missing),
            "`new_read_only_memory_region_from_file` of a path that is missing returns NOT_FOUND, and nothing changes",
            "TensorFlow maps memory-mapped models and constants";
        new_read_only_memory_region_from_file_of_missing_parent = |run| run.operation(&files::NEW_REGION, Is::ParentMissing),
            "`new_read_only_memory_region_from_file` of a path whose parent is missing returns NOT_FOUND, and nothing changes",
            "TensorFlow maps memory-mapped models and constants";
        new_read_only_memory_region_from_file_of_file = |run| run.operation(&files::NEW_REGION, Is::File),
            "`new_read_only_memory_region_from_file` of a file returns OK, and the region is its content",
            "TensorFlow maps memory-mapped models and constants";
        new_read_only_memory_region_from_file_of_empty_dir = |run| run.operation(&files::NEW_REGION, Is::EmptyDir),
            "`new_read_only_memory_region_from_file` of an empty directory returns FAILED_PRECONDITION, and nothing changes",
            "TensorFlow maps memory-mapped models and constants";
        new_read_only_memory_region_from_file_of_full_dir = |run| run.operation(&files::NEW_REGION, Is::FullDir),
            "`new_read_only_memory_region_from_file` of a directory with a file in it returns FAILED_PRECONDITION, and nothing changes",
            "TensorFlow maps memory-mapped models and constants";
        new_read_only_memory_region_from_file_of_below_file = |run| run.operation(&files::NEW_REGION, Is::BelowFile),
            "`new_read_only_memory_region_from_file` of a path directly below a file returns FAILED_PRECONDITION, and nothing changes",
            "TensorFlow maps memory-mapped models and constants";
        new_read_only_memory_region_from_file_of_far_below_file = |run| run.operation(&files::NEW_REGION, Is::FarBelowFile),
            "`new_read_only_memory_region_from_file` of a path two levels below a file returns FAILED_PRECONDITION, and nothing changes",
            "TensorFlow maps memory-mapped models and constants";
        new_read_only_memory_region_from_file_of_malformed = |run| run.operation(&files::NEW_REGION, Is::Malformed),
            "`new_read_only_memory_region_from_file` of a name that can never be one returns FAILED_PRECONDITION or INVALID_ARGUMENT, and nothing changes",
            "TensorFlow maps memory-mapped models and constants";
        new_read_only_memory_region_from_file_of_empty_file = files::region_of_empty_file,
            "a region of an empty file returns INVALID_ARGUMENT",
            "TensorFlow would use a null pointer as content";
    }
    OpenFiles "Files that are open, and files that were dropped" {
        path_exists_of_open_file = |run| files::look(run, &files::PATH_EXISTS, true),
            "`path_exists` of a new file that is open for writing returns OK",
            "a path exists from the moment that it is opened for writing; TensorFlow drops some files without closing them";
        path_exists_of_dropped_file = |run| files::look(run, &files::PATH_EXISTS, false),
            "`path_exists` of a new file that was dropped without a close returns OK",
            "a path exists from the moment that it is opened for writing; TensorFlow drops some files without closing them";
        stat_of_open_file = |run| files::look(run, &files::STAT, true),
            "`stat` of a new file that is open for writing returns OK",
            "a path exists from the moment that it is opened for writing; TensorFlow drops some files without closing them";
        stat_of_dropped_file = |run| files::look(run, &files::STAT, false),
            "`stat` of a new file that was dropped without a close returns OK",
            "a path exists from the moment that it is opened for writing; TensorFlow drops some files without closing them";
        is_directory_of_open_file = |run| files::look(run, &files::IS_DIRECTORY, true),
            "`is_directory` of a new file that is open for writing returns FAILED_PRECONDITION",
            "a path exists from the moment that it is opened for writing; TensorFlow drops some files without closing them";
        is_directory_of_dropped_file = |run| files::look(run, &files::IS_DIRECTORY, false),
            "`is_directory` of a new file that was dropped without a close returns FAILED_PRECONDITION",
            "a path exists from the moment that it is opened for writing; TensorFlow drops some files without closing them";
        get_file_size_of_open_file = |run| files::look(run, &files::GET_FILE_SIZE, true),
            "`get_file_size` of a new file that is open for writing returns OK",
            "a path exists from the moment that it is opened for writing; TensorFlow drops some files without closing them";
        get_file_size_of_dropped_file = |run| files::look(run, &files::GET_FILE_SIZE, false),
            "`get_file_size` of a new file that was dropped without a close returns OK",
            "a path exists from the moment that it is opened for writing; TensorFlow drops some files without closing them";
        new_random_access_file_of_open_file = |run| files::look(run, &files::OPEN_FOR_READING, true),
            "`new_random_access_file` of a new file that is open for writing returns OK",
            "a path exists from the moment that it is opened for writing; TensorFlow drops some files without closing them";
        new_random_access_file_of_dropped_file = |run| files::look(run, &files::OPEN_FOR_READING, false),
            "`new_random_access_file` of a new file that was dropped without a close returns OK",
            "a path exists from the moment that it is opened for writing; TensorFlow drops some files without closing them";
        new_appendable_file_of_open_file = |run| files::look(run, &files::OPEN_FOR_APPENDING, true),
            "`new_appendable_file` of a new file that is open for writing returns OK",
            "a path exists from the moment that it is opened for writing; TensorFlow drops some files without closing them";
        new_appendable_file_of_dropped_file = |run| files::look(run, &files::OPEN_FOR_APPENDING, false),
            "`new_appendable_file` of a new file that was dropped without a close returns OK",
            "a path exists from the moment that it is opened for writing; TensorFlow drops some files without closing them";
        create_dir_of_open_file = |run| files::look(run, &files::CREATE_DIR, true),
            "`create_dir` of a new file that is open for writing returns ALREADY_EXISTS",
            "a path exists from the moment that it is opened for writing; TensorFlow drops some files without closing them";
        create_dir_of_dropped_file = |run| files::look(run, &files::CREATE_DIR, false),
            "`create_dir` of a new file that was dropped without a close returns ALREADY_EXISTS",
            "a path exists from the moment that it is opened for writing; TensorFlow drops some files without closing them";
        get_children_of_open_file = |run| files::look(run, &files::GET_CHILDREN, true),
            "`get_children` lists a new file that is open for writing",
            "a path exists from the moment that it is opened for writing; TensorFlow drops some files without closing them";
        get_children_of_dropped_file = |run| files::look(run, &files::GET_CHILDREN, false),
            "`get_children` lists a new file that was dropped without a close",
            "a path exists from the moment that it is opened for writing; TensorFlow drops some files without closing them";
        copy_file_of_open_file = |run| files::look(run, &files::COPY_FILE, true),
            "`copy_file` of a new file that is open for writing returns OK",
            "a path exists from the moment that it is opened for writing; TensorFlow drops some files without closing them";
        copy_file_of_dropped_file = |run| files::look(run, &files::COPY_FILE, false),
            "`copy_file` of a new file that was dropped without a close returns OK",
            "a path exists from the moment that it is opened for writing; TensorFlow drops some files without closing them";
        rename_file_of_open_file = |run| files::look(run, &files::RENAME_FILE, true),
            "`rename_file` of a new file that is open for writing returns OK",
            "a path exists from the moment that it is opened for writing; TensorFlow drops some files without closing them";
        rename_file_of_dropped_file = |run| files::look(run, &files::RENAME_FILE, false),
            "`rename_file` of a new file that was dropped without a close returns OK",
            "a path exists from the moment that it is opened for writing; TensorFlow drops some files without closing them";
        delete_file_of_open_file = |run| files::look(run, &files::DELETE_FILE, true),
            "`delete_file` of a new file that is open for writing returns OK",
            "a path exists from the moment that it is opened for writing; TensorFlow drops some files without closing them";
        delete_file_of_dropped_file = |run| files::look(run, &files::DELETE_FILE, false),
            "`delete_file` of a new file that was dropped without a close returns OK",
            "a path exists from the moment that it is opened for writing; TensorFlow drops some files without closing them";
        read_all = |run| files::read(run, 0, 7, CONTENT, None),
            "reading all of a file returns OK",
            "OUT_OF_RANGE with fewer bytes is the only sign of a file's end; OK with none makes copies run forever";
        read_up_to_the_end = |run| files::read(run, 3, 4, b"tent", None),
            "reading a part up to the end returns OK",
            "OUT_OF_RANGE with fewer bytes is the only sign of a file's end; OK with none makes copies run forever";
        read_nothing_at_the_start = |run| files::read(run, 0, 0, b"", None),
            "reading no bytes at the start returns OK",
            "OUT_OF_RANGE with fewer bytes is the only sign of a file's end; OK with none makes copies run forever";
        read_nothing_at_the_end = |run| files::read(run, 7, 0, b"", None),
            "reading no bytes at the end returns OK",
            "OUT_OF_RANGE with fewer bytes is the only sign of a file's end; OK with none makes copies run forever";
        read_nothing_past_the_end = |run| files::read(run, 100, 0, b"", None),
            "reading no bytes past the end returns OK",
            "OUT_OF_RANGE with fewer bytes is the only sign of a file's end; OK with none makes copies run forever";
        read_across_the_end = |run| files::read(run, 3, 100, b"tent", END),
            "reading a part across the end returns OUT_OF_RANGE with the bytes there are",
            "OUT_OF_RANGE with fewer bytes is the only sign of a file's end; OK with none makes copies run forever";
        read_at_the_end = |run| files::read(run, 7, 1, b"", END),
            "reading a byte at the end returns OUT_OF_RANGE with the bytes there are",
            "OUT_OF_RANGE with fewer bytes is the only sign of a file's end; OK with none makes copies run forever";
        read_past_the_end = |run| files::read(run, 100, 1, b"", END),
            "reading a byte past the end returns OUT_OF_RANGE with the bytes there are",
            "OUT_OF_RANGE with fewer bytes is the only sign of a file's end; OK with none makes copies run forever";
        write_append_replace = files::write_append_replace,
            "append, tell, flush, sync, close twice, append to what is there, replace it",
            "this is the life of most of TensorFlow's files";
    }
    Directories "Making directories" {
        create_dir_of_missing = |run| run.operation(&directories::CREATE_DIR, Is::Missing),
            "`create_dir` of a path that is missing returns OK, and it is there",
            "TensorFlow makes directories level by level and tolerates ALREADY_EXISTS only";
        create_dir_of_missing_parent = |run| run.operation(&directories::CREATE_DIR, Is::ParentMissing),
            "`create_dir` of a path whose parent is missing returns NOT_FOUND, and nothing changes",
            "TensorFlow makes directories level by level and tolerates ALREADY_EXISTS only";
        create_dir_of_file = |run| run.operation(&directories::CREATE_DIR, Is::File),
            "`create_dir` of a file returns ALREADY_EXISTS, and nothing changes",
            "TensorFlow makes directories level by level and tolerates ALREADY_EXISTS only";
        create_dir_of_empty_dir = |run| run.operation(&directories::CREATE_DIR, Is::EmptyDir),
            "`create_dir` of an empty directory returns ALREADY_EXISTS, and nothing changes",
            "TensorFlow makes directories level by level and tolerates ALREADY_EXISTS only";
        create_dir_of_full_dir = |run| run.operation(&directories::CREATE_DIR, Is::FullDir),
            "`create_dir` of a directory with a file in it returns ALREADY_EXISTS, and nothing changes",
            "TensorFlow makes directories level by level and tolerates ALREADY_EXISTS only";
        create_dir_of_below_file = |run| run.operation(&directories::CREATE_DIR, Is::BelowFile),
            "`create_dir` of a path directly below a file returns FAILED_PRECONDITION, and nothing changes",
            "TensorFlow makes directories level by level and tolerates ALREADY_EXISTS only";
        create_dir_of_far_below_file = |run| run.operation(&directories::CREATE_DIR, Is::FarBelowFile),
            "`create_dir` of a path two levels below a file returns FAILED_PRECONDITION, and nothing changes",
            "TensorFlow makes directories level by level and tolerates ALREADY_EXISTS only";
        create_dir_of_malformed = |run| run.operation(&directories::CREATE_DIR, Is::Malformed),
            "`create_dir` of a name that can never be one returns FAILED_PRECONDITION or INVALID_ARGUMENT, and nothing changes",
            "TensorFlow makes directories level by level and tolerates ALREADY_EXISTS only";
        recursively_create_dir_of_missing = |run| run.operation(&directories::RECURSIVELY_CREATE_DIR, Is::Missing),
            "`recursively_create_dir` of a path that is missing returns OK, and it is there",
            "tf.io.write_file, SavedModel and snapshots make their directories with it";
        recursively_create_dir_of_missing_parent = |run| run.operation(&directories::RECURSIVELY_CREATE_DIR, Is::ParentMissing),
            "`recursively_create_dir` of a path whose parent is missing returns OK, and it is there",
            "tf.io.write_file, SavedModel and snapshots make their directories with it";
        recursively_create_dir_of_file = |run| run.operation(&directories::RECURSIVELY_CREATE_DIR, Is::File),
            "`recursively_create_dir` of a file returns FAILED_PRECONDITION, and nothing changes",
            "tf.io.write_file, SavedModel and snapshots make their directories with it";
        recursively_create_dir_of_empty_dir = |run| run.operation(&directories::RECURSIVELY_CREATE_DIR, Is::EmptyDir),
            "`recursively_create_dir` of an empty directory returns OK",
            "tf.io.write_file, SavedModel and snapshots make their directories with it";
        recursively_create_dir_of_full_dir = |run| run.operation(&directories::RECURSIVELY_CREATE_DIR, Is::FullDir),
            "`recursively_create_dir` of a directory with a file in it returns OK",
            "tf.io.write_file, SavedModel and snapshots make their directories with it";
        recursively_create_dir_of_below_file = |run| run.operation(&directories::RECURSIVELY_CREATE_DIR, Is::BelowFile),
            "`recursively_create_dir` of a path directly below a file returns FAILED_PRECONDITION, and nothing changes",
            "tf.io.write_file, SavedModel and snapshots make their directories with it";
        recursively_create_dir_of_far_below_file = |run| run.operation(&directories::RECURSIVELY_CREATE_DIR, Is::FarBelowFile),
            "`recursively_create_dir` of a path two levels below a file returns FAILED_PRECONDITION, and nothing changes",
            "tf.io.write_file, SavedModel and snapshots make their directories with it";
        recursively_create_dir_of_malformed = |run| run.operation(&directories::RECURSIVELY_CREATE_DIR, Is::Malformed),
            "`recursively_create_dir` of a name that can never be one returns FAILED_PRECONDITION or INVALID_ARGUMENT, and nothing changes",
            "tf.io.write_file, SavedModel and snapshots make their directories with it";
        recursively_create_dir_of_the_root = directories::recursively_create_the_root,
            "`recursively_create_dir` of the root returns OK",
            "TensorFlow's default never ends if the root is NOT_FOUND";
    }
    Deleting "Deleting" {
        delete_file_of_missing = |run| run.operation(&directories::DELETE_FILE, Is::Missing),
            "`delete_file` of a path that is missing returns NOT_FOUND, and nothing changes",
            "checkpoint managers delete old checkpoints and take NOT_FOUND for done";
        delete_file_of_missing_parent = |run| run.operation(&directories::DELETE_FILE, Is::ParentMissing),
            "`delete_file` of a path whose parent is missing returns NOT_FOUND, and nothing changes",
            "checkpoint managers delete old checkpoints and take NOT_FOUND for done";
        delete_file_of_file = |run| run.operation(&directories::DELETE_FILE, Is::File),
            "`delete_file` of a file returns OK, and it is gone and its parent is there",
            "checkpoint managers delete old checkpoints and take NOT_FOUND for done";
        delete_file_of_empty_dir = |run| run.operation(&directories::DELETE_FILE, Is::EmptyDir),
            "`delete_file` of an empty directory returns FAILED_PRECONDITION, and nothing changes",
            "checkpoint managers delete old checkpoints and take NOT_FOUND for done";
        delete_file_of_full_dir = |run| run.operation(&directories::DELETE_FILE, Is::FullDir),
            "`delete_file` of a directory with a file in it returns FAILED_PRECONDITION, and nothing changes",
            "checkpoint managers delete old checkpoints and take NOT_FOUND for done";
        delete_file_of_below_file = |run| run.operation(&directories::DELETE_FILE, Is::BelowFile),
            "`delete_file` of a path directly below a file returns FAILED_PRECONDITION, and nothing changes",
            "checkpoint managers delete old checkpoints and take NOT_FOUND for done";
        delete_file_of_far_below_file = |run| run.operation(&directories::DELETE_FILE, Is::FarBelowFile),
            "`delete_file` of a path two levels below a file returns FAILED_PRECONDITION, and nothing changes",
            "checkpoint managers delete old checkpoints and take NOT_FOUND for done";
        delete_file_of_malformed = |run| run.operation(&directories::DELETE_FILE, Is::Malformed),
            "`delete_file` of a name that can never be one returns FAILED_PRECONDITION or INVALID_ARGUMENT, and nothing changes",
            "checkpoint managers delete old checkpoints and take NOT_FOUND for done";
        delete_dir_of_missing = |run| run.operation(&directories::DELETE_DIR, Is::Missing),
            "`delete_dir` of a path that is missing returns NOT_FOUND, and nothing changes",
            "a directory that still holds files must not be lost";
        delete_dir_of_missing_parent = |run| run.operation(&directories::DELETE_DIR, Is::ParentMissing),
            "`delete_dir` of a path whose parent is missing returns NOT_FOUND, and nothing changes",
            "a directory that still holds files must not be lost";
        delete_dir_of_file = |run| run.operation(&directories::DELETE_DIR, Is::File),
            "`delete_dir` of a file returns FAILED_PRECONDITION, and nothing changes",
            "a directory that still holds files must not be lost";
        delete_dir_of_empty_dir = |run| run.operation(&directories::DELETE_DIR, Is::EmptyDir),
            "`delete_dir` of an empty directory returns OK, and it is gone and its parent is there",
            "a directory that still holds files must not be lost";
        delete_dir_of_full_dir = |run| run.operation(&directories::DELETE_DIR, Is::FullDir),
            "`delete_dir` of a directory with a file in it returns FAILED_PRECONDITION, and nothing changes",
            "a directory that still holds files must not be lost";
        delete_dir_of_below_file = |run| run.operation(&directories::DELETE_DIR, Is::BelowFile),
            "`delete_dir` of a path directly below a file returns FAILED_PRECONDITION, and nothing changes",
            "a directory that still holds files must not be lost";
        delete_dir_of_far_below_file = |run| run.operation(&directories::DELETE_DIR, Is::FarBelowFile),
            "`delete_dir` of a path two levels below a file returns FAILED_PRECONDITION, and nothing changes",
            "a directory that still holds files must not be lost";
        delete_dir_of_malformed = |run| run.operation(&directories::DELETE_DIR, Is::Malformed),
            "`delete_dir` of a name that can never be one returns FAILED_PRECONDITION or INVALID_ARGUMENT, and nothing changes",
            "a directory that still holds files must not be lost";
        counters_of_delete_recursively_of_missing = |run| directories::counters(run, Is::Missing),
            "`delete_recursively` of a path that is missing, if it fails, leaves 0 files and 1 directory",
            "TensorFlow reads both counters whatever the status, and Python raises by them";
        counters_of_delete_recursively_of_missing_parent = |run| directories::counters(run, Is::ParentMissing),
            "`delete_recursively` of a path whose parent is missing, if it fails, leaves 0 files and 1 directory",
            "TensorFlow reads both counters whatever the status, and Python raises by them";
        counters_of_delete_recursively_of_file = |run| directories::counters(run, Is::File),
            "`delete_recursively` of a file, if it fails, leaves 0 files and 1 directory",
            "TensorFlow reads both counters whatever the status, and Python raises by them";
        counters_of_delete_recursively_of_empty_dir = |run| directories::counters(run, Is::EmptyDir),
            "`delete_recursively` of an empty directory, if it fails, leaves 0 files and 1 directory",
            "TensorFlow reads both counters whatever the status, and Python raises by them";
        counters_of_delete_recursively_of_full_dir = |run| directories::counters(run, Is::FullDir),
            "`delete_recursively` of a directory with a file in it, if it fails, leaves 0 files and 1 directory",
            "TensorFlow reads both counters whatever the status, and Python raises by them";
        counters_of_delete_recursively_of_below_file = |run| directories::counters(run, Is::BelowFile),
            "`delete_recursively` of a path directly below a file, if it fails, leaves 0 files and 1 directory",
            "TensorFlow reads both counters whatever the status, and Python raises by them";
        counters_of_delete_recursively_of_far_below_file = |run| directories::counters(run, Is::FarBelowFile),
            "`delete_recursively` of a path two levels below a file, if it fails, leaves 0 files and 1 directory",
            "TensorFlow reads both counters whatever the status, and Python raises by them";
        counters_of_delete_recursively_of_malformed = |run| directories::counters(run, Is::Malformed),
            "`delete_recursively` of a name that can never be one, if it fails, leaves 0 files and 1 directory",
            "TensorFlow reads both counters whatever the status, and Python raises by them";
        delete_recursively_of_missing = |run| run.operation(&directories::DELETE_RECURSIVELY, Is::Missing),
            "`delete_recursively` of a path that is missing returns NOT_FOUND, and nothing changes",
            "gfile.rmtree is one call of it";
        delete_recursively_of_missing_parent = |run| run.operation(&directories::DELETE_RECURSIVELY, Is::ParentMissing),
            "`delete_recursively` of a path whose parent is missing returns NOT_FOUND, and nothing changes",
            "gfile.rmtree is one call of it";
        delete_recursively_of_file = |run| run.operation(&directories::DELETE_RECURSIVELY, Is::File),
            "`delete_recursively` of a file returns OK, and it is gone and its parent is there",
            "gfile.rmtree is one call of it";
        delete_recursively_of_empty_dir = |run| run.operation(&directories::DELETE_RECURSIVELY, Is::EmptyDir),
            "`delete_recursively` of an empty directory returns OK, and it is gone and its parent is there",
            "gfile.rmtree is one call of it";
        delete_recursively_of_full_dir = |run| run.operation(&directories::DELETE_RECURSIVELY, Is::FullDir),
            "`delete_recursively` of a directory with a file in it returns OK, and it is gone and its parent is there",
            "gfile.rmtree is one call of it";
        delete_recursively_of_below_file = |run| run.operation(&directories::DELETE_RECURSIVELY, Is::BelowFile),
            "`delete_recursively` of a path directly below a file returns FAILED_PRECONDITION, and nothing changes",
            "gfile.rmtree is one call of it";
        delete_recursively_of_far_below_file = |run| run.operation(&directories::DELETE_RECURSIVELY, Is::FarBelowFile),
            "`delete_recursively` of a path two levels below a file returns FAILED_PRECONDITION, and nothing changes",
            "gfile.rmtree is one call of it";
        delete_recursively_of_malformed = |run| run.operation(&directories::DELETE_RECURSIVELY, Is::Malformed),
            "`delete_recursively` of a name that can never be one returns FAILED_PRECONDITION or INVALID_ARGUMENT, and nothing changes",
            "gfile.rmtree is one call of it";
    }
    Transfers "Renaming and copying" {
        rename_file_from_missing = |run| directories::from(run, &directories::RENAME_FILE, Is::Missing),
            "`rename_file` from a path that is missing to a new name returns NOT_FOUND, and both names stay as they are",
            "every checkpoint is written under another name and renamed";
        rename_file_from_missing_parent = |run| directories::from(run, &directories::RENAME_FILE, Is::ParentMissing),
            "`rename_file` from a path whose parent is missing to a new name returns NOT_FOUND, and both names stay as they are",
            "every checkpoint is written under another name and renamed";
        rename_file_from_file = |run| directories::from(run, &directories::RENAME_FILE, Is::File),
            "`rename_file` from a file to a new name returns OK, and the content is at the new name",
            "every checkpoint is written under another name and renamed";
        rename_file_from_empty_dir = |run| directories::from(run, &directories::RENAME_FILE, Is::EmptyDir),
            "`rename_file` from an empty directory to a new name returns FAILED_PRECONDITION, and both names stay as they are",
            "every checkpoint is written under another name and renamed";
        rename_file_from_full_dir = |run| directories::from(run, &directories::RENAME_FILE, Is::FullDir),
            "`rename_file` from a directory with a file in it to a new name returns FAILED_PRECONDITION, and both names stay as they are",
            "every checkpoint is written under another name and renamed";
        rename_file_from_below_file = |run| directories::from(run, &directories::RENAME_FILE, Is::BelowFile),
            "`rename_file` from a path directly below a file to a new name returns FAILED_PRECONDITION, and both names stay as they are",
            "every checkpoint is written under another name and renamed";
        rename_file_from_far_below_file = |run| directories::from(run, &directories::RENAME_FILE, Is::FarBelowFile),
            "`rename_file` from a path two levels below a file to a new name returns FAILED_PRECONDITION, and both names stay as they are",
            "every checkpoint is written under another name and renamed";
        rename_file_from_malformed = |run| directories::from(run, &directories::RENAME_FILE, Is::Malformed),
            "`rename_file` from a name that can never be one to a new name returns FAILED_PRECONDITION or INVALID_ARGUMENT, and both names stay as they are",
            "every checkpoint is written under another name and renamed";
        rename_file_to_missing = |run| directories::to(run, &directories::RENAME_FILE, Is::Missing),
            "`rename_file` from a file to a path that is missing returns OK, and the content is there",
            "every checkpoint is written under another name and renamed";
        rename_file_to_missing_parent = |run| directories::to(run, &directories::RENAME_FILE, Is::ParentMissing),
            "`rename_file` from a file to a path whose parent is missing returns NOT_FOUND, and both names stay as they are",
            "every checkpoint is written under another name and renamed";
        rename_file_to_empty_dir = |run| directories::to(run, &directories::RENAME_FILE, Is::EmptyDir),
            "`rename_file` from a file to an empty directory returns FAILED_PRECONDITION, and both names stay as they are",
            "every checkpoint is written under another name and renamed";
        rename_file_to_full_dir = |run| directories::to(run, &directories::RENAME_FILE, Is::FullDir),
            "`rename_file` from a file to a directory with a file in it returns FAILED_PRECONDITION, and both names stay as they are",
            "every checkpoint is written under another name and renamed";
        rename_file_to_below_file = |run| directories::to(run, &directories::RENAME_FILE, Is::BelowFile),
            "`rename_file` from a file to a path directly below a file returns FAILED_PRECONDITION, and both names stay as they are",
            "every checkpoint is written under another name and renamed";
        rename_file_to_far_below_file = |run| directories::to(run, &directories::RENAME_FILE, Is::FarBelowFile),
            "`rename_file` from a file to a path two levels below a file returns FAILED_PRECONDITION, and both names stay as they are",
            "every checkpoint is written under another name and renamed";
        rename_file_to_malformed = |run| directories::to(run, &directories::RENAME_FILE, Is::Malformed),
            "`rename_file` from a file to a name that can never be one returns FAILED_PRECONDITION or INVALID_ARGUMENT, and both names stay as they are",
            "every checkpoint is written under another name and renamed";
        rename_file_to_existing_file = |run| directories::to_existing(run, &directories::RENAME_FILE),
            "`rename_file` replaces a file",
            "every checkpoint is written under another name and renamed";
        rename_file_of_empty_file_to_existing_file = |run| directories::empty_to_existing(run, &directories::RENAME_FILE),
            "`rename_file` of an empty file replaces a file",
            "every checkpoint is written under another name and renamed";
        rename_file_to_itself = |run| directories::to_itself(run, &directories::RENAME_FILE),
            "`rename_file` of a file to its own name returns OK and keeps it",
            "TensorFlow's default loses the file";
        copy_file_from_missing = |run| directories::from(run, &directories::COPY_FILE, Is::Missing),
            "`copy_file` from a path that is missing to a new name returns NOT_FOUND, and both names stay as they are",
            "gfile.copy within a scheme is one call of it";
        copy_file_from_missing_parent = |run| directories::from(run, &directories::COPY_FILE, Is::ParentMissing),
            "`copy_file` from a path whose parent is missing to a new name returns NOT_FOUND, and both names stay as they are",
            "gfile.copy within a scheme is one call of it";
        copy_file_from_file = |run| directories::from(run, &directories::COPY_FILE, Is::File),
            "`copy_file` from a file to a new name returns OK, and the content is at the new name",
            "gfile.copy within a scheme is one call of it";
        copy_file_from_empty_dir = |run| directories::from(run, &directories::COPY_FILE, Is::EmptyDir),
            "`copy_file` from an empty directory to a new name returns FAILED_PRECONDITION, and both names stay as they are",
            "gfile.copy within a scheme is one call of it";
        copy_file_from_full_dir = |run| directories::from(run, &directories::COPY_FILE, Is::FullDir),
            "`copy_file` from a directory with a file in it to a new name returns FAILED_PRECONDITION, and both names stay as they are",
            "gfile.copy within a scheme is one call of it";
        copy_file_from_below_file = |run| directories::from(run, &directories::COPY_FILE, Is::BelowFile),
            "`copy_file` from a path directly below a file to a new name returns FAILED_PRECONDITION, and both names stay as they are",
            "gfile.copy within a scheme is one call of it";
        copy_file_from_far_below_file = |run| directories::from(run, &directories::COPY_FILE, Is::FarBelowFile),
            "`copy_file` from a path two levels below a file to a new name returns FAILED_PRECONDITION, and both names stay as they are",
            "gfile.copy within a scheme is one call of it";
        copy_file_from_malformed = |run| directories::from(run, &directories::COPY_FILE, Is::Malformed),
            "`copy_file` from a name that can never be one to a new name returns FAILED_PRECONDITION or INVALID_ARGUMENT, and both names stay as they are",
            "gfile.copy within a scheme is one call of it";
        copy_file_to_missing = |run| directories::to(run, &directories::COPY_FILE, Is::Missing),
            "`copy_file` from a file to a path that is missing returns OK, and the content is there",
            "gfile.copy within a scheme is one call of it";
        copy_file_to_missing_parent = |run| directories::to(run, &directories::COPY_FILE, Is::ParentMissing),
            "`copy_file` from a file to a path whose parent is missing returns NOT_FOUND, and both names stay as they are",
            "gfile.copy within a scheme is one call of it";
        copy_file_to_empty_dir = |run| directories::to(run, &directories::COPY_FILE, Is::EmptyDir),
            "`copy_file` from a file to an empty directory returns FAILED_PRECONDITION, and both names stay as they are",
            "gfile.copy within a scheme is one call of it";
        copy_file_to_full_dir = |run| directories::to(run, &directories::COPY_FILE, Is::FullDir),
            "`copy_file` from a file to a directory with a file in it returns FAILED_PRECONDITION, and both names stay as they are",
            "gfile.copy within a scheme is one call of it";
        copy_file_to_below_file = |run| directories::to(run, &directories::COPY_FILE, Is::BelowFile),
            "`copy_file` from a file to a path directly below a file returns FAILED_PRECONDITION, and both names stay as they are",
            "gfile.copy within a scheme is one call of it";
        copy_file_to_far_below_file = |run| directories::to(run, &directories::COPY_FILE, Is::FarBelowFile),
            "`copy_file` from a file to a path two levels below a file returns FAILED_PRECONDITION, and both names stay as they are",
            "gfile.copy within a scheme is one call of it";
        copy_file_to_malformed = |run| directories::to(run, &directories::COPY_FILE, Is::Malformed),
            "`copy_file` from a file to a name that can never be one returns FAILED_PRECONDITION or INVALID_ARGUMENT, and both names stay as they are",
            "gfile.copy within a scheme is one call of it";
        copy_file_to_existing_file = |run| directories::to_existing(run, &directories::COPY_FILE),
            "`copy_file` replaces a file",
            "gfile.copy within a scheme is one call of it";
        copy_file_of_empty_file_to_existing_file = |run| directories::empty_to_existing(run, &directories::COPY_FILE),
            "`copy_file` of an empty file replaces a file",
            "gfile.copy within a scheme is one call of it";
        copy_file_to_itself = |run| directories::to_itself(run, &directories::COPY_FILE),
            "`copy_file` of a file to its own name returns OK and keeps it",
            "TensorFlow's default loses the file";
    }
    Queries "Questions about paths" {
        path_exists_of_missing = |run| run.operation(&queries::PATH_EXISTS, Is::Missing),
            "`path_exists` of a path that is missing returns NOT_FOUND, and nothing changes",
            "gfile.copy with overwrite=False takes an error for \"absent\" and overwrites";
        path_exists_of_missing_parent = |run| run.operation(&queries::PATH_EXISTS, Is::ParentMissing),
            "`path_exists` of a path whose parent is missing returns NOT_FOUND, and nothing changes",
            "gfile.copy with overwrite=False takes an error for \"absent\" and overwrites";
        path_exists_of_file = |run| run.operation(&queries::PATH_EXISTS, Is::File),
            "`path_exists` of a file returns OK",
            "gfile.copy with overwrite=False takes an error for \"absent\" and overwrites";
        path_exists_of_empty_dir = |run| run.operation(&queries::PATH_EXISTS, Is::EmptyDir),
            "`path_exists` of an empty directory returns OK",
            "gfile.copy with overwrite=False takes an error for \"absent\" and overwrites";
        path_exists_of_full_dir = |run| run.operation(&queries::PATH_EXISTS, Is::FullDir),
            "`path_exists` of a directory with a file in it returns OK",
            "gfile.copy with overwrite=False takes an error for \"absent\" and overwrites";
        path_exists_of_below_file = |run| run.operation(&queries::PATH_EXISTS, Is::BelowFile),
            "`path_exists` of a path directly below a file returns FAILED_PRECONDITION, and nothing changes",
            "gfile.copy with overwrite=False takes an error for \"absent\" and overwrites";
        path_exists_of_far_below_file = |run| run.operation(&queries::PATH_EXISTS, Is::FarBelowFile),
            "`path_exists` of a path two levels below a file returns FAILED_PRECONDITION, and nothing changes",
            "gfile.copy with overwrite=False takes an error for \"absent\" and overwrites";
        path_exists_of_malformed = |run| run.operation(&queries::PATH_EXISTS, Is::Malformed),
            "`path_exists` of a name that can never be one returns FAILED_PRECONDITION or INVALID_ARGUMENT, and nothing changes",
            "gfile.copy with overwrite=False takes an error for \"absent\" and overwrites";
        stat_of_missing = |run| run.operation(&queries::STAT, Is::Missing),
            "`stat` of a path that is missing returns NOT_FOUND, and nothing changes",
            "GFile.read queries the size with it, much of TensorFlow the kind";
        stat_of_missing_parent = |run| run.operation(&queries::STAT, Is::ParentMissing),
            "`stat` of a path whose parent is missing returns NOT_FOUND, and nothing changes",
            "GFile.read queries the size with it, much of TensorFlow the kind";
        stat_of_file = |run| run.operation(&queries::STAT, Is::File),
            "`stat` of a file returns OK, and kind and length are right",
            "GFile.read queries the size with it, much of TensorFlow the kind";
        stat_of_empty_dir = |run| run.operation(&queries::STAT, Is::EmptyDir),
            "`stat` of an empty directory returns OK, and it is a directory",
            "GFile.read queries the size with it, much of TensorFlow the kind";
        stat_of_full_dir = |run| run.operation(&queries::STAT, Is::FullDir),
            "`stat` of a directory with a file in it returns OK, and it is a directory",
            "GFile.read queries the size with it, much of TensorFlow the kind";
        stat_of_below_file = |run| run.operation(&queries::STAT, Is::BelowFile),
            "`stat` of a path directly below a file returns FAILED_PRECONDITION, and nothing changes",
            "GFile.read queries the size with it, much of TensorFlow the kind";
        stat_of_far_below_file = |run| run.operation(&queries::STAT, Is::FarBelowFile),
            "`stat` of a path two levels below a file returns FAILED_PRECONDITION, and nothing changes",
            "GFile.read queries the size with it, much of TensorFlow the kind";
        stat_of_malformed = |run| run.operation(&queries::STAT, Is::Malformed),
            "`stat` of a name that can never be one returns FAILED_PRECONDITION or INVALID_ARGUMENT, and nothing changes",
            "GFile.read queries the size with it, much of TensorFlow the kind";
        is_directory_of_missing = |run| run.operation(&queries::IS_DIRECTORY, Is::Missing),
            "`is_directory` of a path that is missing returns NOT_FOUND, and nothing changes",
            "TensorFlow looks at the status only: OK for a file makes every file a directory";
        is_directory_of_missing_parent = |run| run.operation(&queries::IS_DIRECTORY, Is::ParentMissing),
            "`is_directory` of a path whose parent is missing returns NOT_FOUND, and nothing changes",
            "TensorFlow looks at the status only: OK for a file makes every file a directory";
        is_directory_of_file = |run| run.operation(&queries::IS_DIRECTORY, Is::File),
            "`is_directory` of a file returns FAILED_PRECONDITION, and nothing changes",
            "TensorFlow looks at the status only: OK for a file makes every file a directory";
        is_directory_of_empty_dir = |run| run.operation(&queries::IS_DIRECTORY, Is::EmptyDir),
            "`is_directory` of an empty directory returns OK",
            "TensorFlow looks at the status only: OK for a file makes every file a directory";
        is_directory_of_full_dir = |run| run.operation(&queries::IS_DIRECTORY, Is::FullDir),
            "`is_directory` of a directory with a file in it returns OK",
            "TensorFlow looks at the status only: OK for a file makes every file a directory";
        is_directory_of_below_file = |run| run.operation(&queries::IS_DIRECTORY, Is::BelowFile),
            "`is_directory` of a path directly below a file returns FAILED_PRECONDITION, and nothing changes",
            "TensorFlow looks at the status only: OK for a file makes every file a directory";
        is_directory_of_far_below_file = |run| run.operation(&queries::IS_DIRECTORY, Is::FarBelowFile),
            "`is_directory` of a path two levels below a file returns FAILED_PRECONDITION, and nothing changes",
            "TensorFlow looks at the status only: OK for a file makes every file a directory";
        is_directory_of_malformed = |run| run.operation(&queries::IS_DIRECTORY, Is::Malformed),
            "`is_directory` of a name that can never be one returns FAILED_PRECONDITION or INVALID_ARGUMENT, and nothing changes",
            "TensorFlow looks at the status only: OK for a file makes every file a directory";
        get_file_size_of_missing = |run| run.operation(&queries::GET_FILE_SIZE, Is::Missing),
            "`get_file_size` of a path that is missing returns NOT_FOUND, and nothing changes",
            "TensorFlow allocates as much as it says";
        get_file_size_of_missing_parent = |run| run.operation(&queries::GET_FILE_SIZE, Is::ParentMissing),
            "`get_file_size` of a path whose parent is missing returns NOT_FOUND, and nothing changes",
            "TensorFlow allocates as much as it says";
        get_file_size_of_file = |run| run.operation(&queries::GET_FILE_SIZE, Is::File),
            "`get_file_size` of a file returns OK, and it is the file's length",
            "TensorFlow allocates as much as it says";
        get_file_size_of_empty_dir = |run| run.operation(&queries::GET_FILE_SIZE, Is::EmptyDir),
            "`get_file_size` of an empty directory returns FAILED_PRECONDITION, and nothing changes",
            "TensorFlow allocates as much as it says";
        get_file_size_of_full_dir = |run| run.operation(&queries::GET_FILE_SIZE, Is::FullDir),
            "`get_file_size` of a directory with a file in it returns FAILED_PRECONDITION, and nothing changes",
            "TensorFlow allocates as much as it says";
        get_file_size_of_below_file = |run| run.operation(&queries::GET_FILE_SIZE, Is::BelowFile),
            "`get_file_size` of a path directly below a file returns FAILED_PRECONDITION, and nothing changes",
            "TensorFlow allocates as much as it says";
        get_file_size_of_far_below_file = |run| run.operation(&queries::GET_FILE_SIZE, Is::FarBelowFile),
            "`get_file_size` of a path two levels below a file returns FAILED_PRECONDITION, and nothing changes",
            "TensorFlow allocates as much as it says";
        get_file_size_of_malformed = |run| run.operation(&queries::GET_FILE_SIZE, Is::Malformed),
            "`get_file_size` of a name that can never be one returns FAILED_PRECONDITION or INVALID_ARGUMENT, and nothing changes",
            "TensorFlow allocates as much as it says";
        stat_length = queries::stat_length,
            "`stat` says the length of an empty file and of a full one",
            "GFile.read reads as much as it says";
        root_is_a_directory = queries::root_is_a_directory,
            "the root is a directory",
            "TensorFlow's default of recursively_create_dir never ends otherwise";
        paths_exist = queries::paths_exist,
            "`paths_exist` answers for each path as `path_exists`",
            "checkpoints query all their shards at once";
        paths_exist_without_statuses = queries::paths_exist_without_statuses,
            "`paths_exist` without room for statuses says whether all exist; none is all",
            "TensorFlow passes a null pointer for the statuses";
    }
    Listing "Listing and patterns of the header" {
        get_children_of_missing = |run| run.operation(&queries::GET_CHILDREN, Is::Missing),
            "`get_children` of a path that is missing returns NOT_FOUND, and nothing changes",
            "gfile.listdir, walk and globs are made of it";
        get_children_of_missing_parent = |run| run.operation(&queries::GET_CHILDREN, Is::ParentMissing),
            "`get_children` of a path whose parent is missing returns NOT_FOUND, and nothing changes",
            "gfile.listdir, walk and globs are made of it";
        get_children_of_file = |run| run.operation(&queries::GET_CHILDREN, Is::File),
            "`get_children` of a file returns FAILED_PRECONDITION, and nothing changes",
            "gfile.listdir, walk and globs are made of it";
        get_children_of_empty_dir = |run| run.operation(&queries::GET_CHILDREN, Is::EmptyDir),
            "`get_children` of an empty directory returns OK, and lists nothing",
            "gfile.listdir, walk and globs are made of it";
        get_children_of_full_dir = |run| run.operation(&queries::GET_CHILDREN, Is::FullDir),
            "`get_children` of a directory with a file in it returns OK, and lists the file",
            "gfile.listdir, walk and globs are made of it";
        get_children_of_below_file = |run| run.operation(&queries::GET_CHILDREN, Is::BelowFile),
            "`get_children` of a path directly below a file returns FAILED_PRECONDITION, and nothing changes",
            "gfile.listdir, walk and globs are made of it";
        get_children_of_far_below_file = |run| run.operation(&queries::GET_CHILDREN, Is::FarBelowFile),
            "`get_children` of a path two levels below a file returns FAILED_PRECONDITION, and nothing changes",
            "gfile.listdir, walk and globs are made of it";
        get_children_of_malformed = |run| run.operation(&queries::GET_CHILDREN, Is::Malformed),
            "`get_children` of a name that can never be one returns FAILED_PRECONDITION or INVALID_ARGUMENT, and nothing changes",
            "gfile.listdir, walk and globs are made of it";
        get_children_of_files_and_directories = queries::children_of_all_kinds,
            "`get_children` lists files and directories, each once",
            "gfile.walk visits what is listed";
        glob_star = |run| queries::glob(run, "part-*", &["part-0", "part-1", "part-x"]),
            "`get_matching_paths` of `part-*` is `part-0` and `part-1` and `part-x`",
            "file patterns of input pipelines are given to the plugin as they are";
        glob_question_mark = |run| queries::glob(run, "part-?", &["part-0", "part-1", "part-x"]),
            "`get_matching_paths` of `part-?` is `part-0` and `part-1` and `part-x`",
            "file patterns of input pipelines are given to the plugin as they are";
        glob_list = |run| queries::glob(run, "part-[01]", &["part-0", "part-1"]),
            "`get_matching_paths` of `part-[01]` is `part-0` and `part-1`",
            "file patterns of input pipelines are given to the plugin as they are";
        glob_range = |run| queries::glob(run, "part-[0-9]", &["part-0", "part-1"]),
            "`get_matching_paths` of `part-[0-9]` is `part-0` and `part-1`",
            "file patterns of input pipelines are given to the plugin as they are";
        glob_negated_list = |run| queries::glob(run, "part-[^0]", &["part-1", "part-x"]),
            "`get_matching_paths` of `part-[^0]` is `part-1` and `part-x`",
            "file patterns of input pipelines are given to the plugin as they are";
        glob_escaped_letter = |run| queries::glob(run, r"part-\x", &["part-x"]),
            "`get_matching_paths` of `part-\\x` is `part-x`",
            "file patterns of input pipelines are given to the plugin as they are";
        glob_escaped_star = |run| queries::glob(run, r"part-\*", &[]),
            "`get_matching_paths` of `part-\\*` is empty, and no error",
            "file patterns of input pipelines are given to the plugin as they are";
        glob_beginning_only = |run| queries::glob(run, "part", &[]),
            "`get_matching_paths` of `part` is empty, and no error",
            "file patterns of input pipelines are given to the plugin as they are";
        glob_star_for_a_directory = |run| queries::glob(run, "*/part-0", &["full/part-0"]),
            "`get_matching_paths` of `*/part-0` is `full/part-0`",
            "file patterns of input pipelines are given to the plugin as they are";
        glob_two_stars = |run| queries::glob(run, "*/*", &["full/file", "full/part-0"]),
            "`get_matching_paths` of `*/*` is `full/file` and `full/part-0`",
            "file patterns of input pipelines are given to the plugin as they are";
        glob_files_and_directories = |run| queries::glob(run, "f*", &["file", "full"]),
            "`get_matching_paths` of `f*` is `file` and `full`",
            "file patterns of input pipelines are given to the plugin as they are";
        glob_star_stops_at_slash = |run| queries::glob(run, "f*t-0", &[]),
            "`get_matching_paths` of `f*t-0` is empty, and no error",
            "file patterns of input pipelines are given to the plugin as they are";
        glob_plain_file = |run| queries::glob(run, "file", &["file"]),
            "`get_matching_paths` of `file` is `file`",
            "file patterns of input pipelines are given to the plugin as they are";
        glob_plain_directory = |run| queries::glob(run, "empty", &["empty"]),
            "`get_matching_paths` of `empty` is `empty`",
            "file patterns of input pipelines are given to the plugin as they are";
        glob_plain_missing = |run| queries::glob(run, "missing", &[]),
            "`get_matching_paths` of `missing` is empty, and no error",
            "file patterns of input pipelines are given to the plugin as they are";
        glob_below_missing = |run| queries::glob(run, "missing/*", &[]),
            "`get_matching_paths` of `missing/*` is empty, and no error",
            "file patterns of input pipelines are given to the plugin as they are";
        glob_below_file = |run| queries::glob(run, "file/*", &[]),
            "`get_matching_paths` of `file/*` is empty, and no error",
            "file patterns of input pipelines are given to the plugin as they are";
        glob_below_empty_directory = |run| queries::glob(run, "empty/*", &[]),
            "`get_matching_paths` of `empty/*` is empty, and no error",
            "file patterns of input pipelines are given to the plugin as they are";
    }
    Canonical "Names in canonical form" {
        translate_name_of_roots = queries::roots_are_slashes,
            "`translate_name` makes `/` of a root without a host",
            "TensorFlow uses that name for the root";
        translate_name_cleans = queries::names_become_canonical,
            "`translate_name` resolves `.`, `..` and repeated slashes",
            "every operation but get_matching_paths gets what it returns";
        untidy_names = queries::untidy_names_are_the_same_file,
            "a name that is not in canonical form names the same file",
            "users join paths with slashes too many";
    }
    Extras "Transactions and configuration" {
        transactions = extras::transactions,
            "transactions start, know their paths and end once",
            "the C interface promises them, though no TensorFlow up to 2.21 calls them";
        configuration = extras::configuration,
            "options, their keys and each single one agree; an unknown key is NOT_FOUND",
            "the C interface promises it";
    }
    Content "What is written is what is read" {
        read_an_empty_file = content::read_an_empty_file,
            "an empty file is read: no bytes, and OUT_OF_RANGE unless none were wanted",
            "ReadFileToString reads 0 bytes of an empty file";
        read_at_a_huge_offset = content::read_at_a_huge_offset,
            "reading at 2 GiB, 4 GiB, 1 TiB and the largest offset returns OUT_OF_RANGE",
            "an offset cut to 32 bits gives the bytes of the file's start";
        read_backwards = content::read_backwards,
            "a file is read from its end to its start in pieces that overlap",
            "restores read the index from its end";
        read_here_and_there = content::read_here_and_there,
            "100 pieces at random places of a file of 66,000 bytes",
            "readahead and caches must not mix pieces up";
        read_byte_by_byte = content::read_byte_by_byte,
            "300 reads of one byte",
            "GFile.seek reads one byte";
        read_in_pieces_of_tensorflow = content::read_in_pieces_of_tensorflow,
            "reads of 1, 12, 48 bytes and of 128 KiB to 1 MiB",
            "these are the sizes that TensorFlow requests";
        read_around_the_end = content::read_around_the_end,
            "every piece around the end of a file of 4,096 bytes",
            "the last block is the one that gets lost";
        all_bytes_are_kept = content::all_bytes_are_kept,
            "all 256 values of a byte are kept",
            "records are binary";
        line_ends_are_kept = content::line_ends_are_kept,
            "line ends, NUL and Ctrl-Z are kept",
            "a text mode would break records";
        two_readers_of_one_file = content::two_readers_of_one_file,
            "two readers of one file have positions of their own",
            "tf.data opens a file several times";
        many_small_appends = content::many_small_appends,
            "3,000 appends of 3 bytes are all there, in order",
            "TFRecordWriter appends 4 to 12 bytes at a time";
        appends_of_all_sizes = content::appends_of_all_sizes,
            "appends of 0 to 131,072 bytes, around the sizes of blocks, are all there",
            "the last partial block is the one that gets lost";
        a_block_and_one_byte = content::a_block_and_one_byte,
            "one byte after a full block of 64 KiB is there",
            "the last partial block is the one that gets lost";
        eight_mebibytes = content::eight_mebibytes,
            "8 MiB in pieces of 1 MiB are all there",
            "shards of checkpoints are large";
        one_large_append = content::one_large_append,
            "one append of 3 MiB and 17 bytes is all there",
            "Keras appends a whole archive at once";
        a_shorter_file_replaces_a_longer_one = content::a_shorter_file_replaces_a_longer_one,
            "a shorter file replaces a longer one whole",
            "the file `checkpoint` is replaced at each save";
        an_empty_file_replaces_a_full_one = content::an_empty_file_replaces_a_full_one,
            "an empty file replaces a full one",
            "a reader must not see the old content";
        appending_keeps_what_is_there = content::appending_keeps_what_is_there,
            "five appends to a file of 70,000 bytes, each opened again, are all there",
            "logs are continued over restarts";
        appending_nothing_keeps_the_file = content::appending_nothing_keeps_the_file,
            "a file that is opened for appending and closed keeps its content",
            "Dataset.save opens files this way";
        appending_creates_a_missing_file = content::appending_creates_a_missing_file,
            "`new_appendable_file` creates a missing file",
            "Dataset.save opens new files this way";
        appending_is_declared_right = content::appending_is_declared_right,
            "a filesystem that is declared not to append refuses to, and keeps the file",
            "an answer of OK would lose what was there";
        flush_makes_visible = content::flush_makes_visible,
            "what was flushed is read by others, and stat knows its length",
            "TensorBoard reads event files while they grow";
        sync_makes_visible = content::sync_makes_visible,
            "what was synced is read by others, and stat knows its length",
            "event files are synced after each flush";
        visibility_is_declared_right = content::visibility_is_declared_right,
            "where files are declared to be visible at flush or at close, nothing of them is seen before; where they are declared to be written in place, an open reader sees the new content",
            "a reader would train on half a file";
        changes_are_refused = content::changes_are_refused,
            "where files are declared to be provided, what would change them returns UNIMPLEMENTED, PERMISSION_DENIED or FAILED_PRECONDITION, and nothing changes",
            "a save that seems to succeed is lost";
        close_makes_visible = content::close_makes_visible,
            "a closed file can be read and listed before it is dropped",
            "TensorFlow renames before it drops the writer";
        close_writes_what_was_not_flushed = content::close_writes_what_was_not_flushed,
            "what was appended after a flush is there after close",
            "the end of a log is the part that matters";
        close_repeats_nothing = content::close_repeats_nothing,
            "flush, sync and close after close are OK and change nothing",
            "checkpoint writers close twice";
        a_late_close_does_not_bring_a_file_back = content::a_late_close_does_not_bring_a_file_back,
            "a second close after the file was deleted does not bring it back",
            "checkpoint writers close twice, the second time when they are dropped";
        append_after_close_is_not_lost_silently = content::append_after_close_is_not_lost_silently,
            "an append after close fails, or its bytes are there",
            "Python may write to a file whose close failed";
        a_dropped_file_can_be_written_anew = content::a_dropped_file_can_be_written_anew,
            "a file that was dropped without a close can be written again",
            "a save that failed is tried again";
        a_dropped_append_keeps_what_was_there = content::a_dropped_append_keeps_what_was_there,
            "an append that was dropped without a close keeps what was there",
            "a job that is killed must not lose its log";
        two_writers_of_different_files = content::two_writers_of_different_files,
            "two files are written at a time",
            "shards are written side by side";
        a_writer_moves_between_threads = content::a_writer_moves_between_threads,
            "one file is written from four threads, one after the other",
            "TensorFlow's thread pools hand files on";
        a_deleted_file_is_written_anew = content::a_deleted_file_is_written_anew,
            "a deleted file is NOT_FOUND, and can be written again",
            "checkpoints reuse names";
        caches_can_be_flushed = content::caches_can_be_flushed,
            "`flush_caches` loses nothing",
            "users call it when others changed files";
        a_failed_open_leaves_no_name = content::a_failed_open_leaves_no_name,
            "looking for a missing file does not create it",
            "the next listing would have a file too many";
        region_of_one_byte = content::region_of_one_byte,
            "a region of one byte",
            "constants may be tiny";
        region_of_a_large_file = content::region_of_a_large_file,
            "a region of 1 MiB and 3 bytes",
            "memory-mapped models are large";
        region_of_a_replaced_file = content::region_of_a_replaced_file,
            "a region of a file that was replaced has the new content",
            "a model is exported again under its name";
        region_outlives_its_name = content::region_outlives_its_name,
            "a region keeps its content when the file is deleted",
            "TensorFlow keeps regions as long as the model";
        tell_begins_at_zero = content::tell_begins_at_zero,
            "`tell` is 0 in a file that replaces another",
            "writers of archives compute offsets with it";
        tell_survives_flush = content::tell_survives_flush,
            "`tell` goes on counting after flush and sync",
            "writers of archives compute offsets with it";
        stat_follows_every_change = content::stat_follows_every_change,
            "`stat` and `get_file_size` know the length of what was last written",
            "GFile.read reads as much as they say";
        modified_moves_on_append = times::moves_on_append,
            "the time of modification that `stat` says is later after an append; 0 is not a time, and is skipped",
            "caches and watchers read a file again when it moves";
        modified_moves_on_overwrite = times::moves_on_overwrite,
            "the time of modification that `stat` says is later after the file was written again; 0 is not a time, and is skipped",
            "caches and watchers read a file again when it moves";
        modified_stays = times::stays,
            "the time of modification that `stat` says stays when the file is only read; 0 is not a time, and is skipped",
            "caches would never be of use";
    }
    Replaced "Files that are replaced or deleted while they are open" {
        reader_of_a_file_that_is_written_again = replaced::written_again,
            "an open reader of a file that is written again reads the old content to its end, or gets an error; skipped where files are declared to be written in place",
            "a silent end or a mix of two contents is taken for data";
        reader_of_a_file_that_is_renamed_over = replaced::renamed_over,
            "an open reader of a file that another is renamed to reads the old content to its end, or gets an error",
            "checkpoints replace their state file so while others read it";
        reader_of_a_file_that_is_copied_over = replaced::copied_over,
            "an open reader of a file that another is copied to reads the old content to its end, or gets an error; skipped where files are declared to be written in place",
            "a silent end or a mix of two contents is taken for data";
        reader_of_a_file_that_is_deleted = replaced::deleted,
            "an open reader of a file that is deleted reads the content to its end, or gets an error",
            "old checkpoints are deleted while an evaluator reads them";
        reader_of_a_file_that_is_renamed = replaced::renamed,
            "an open reader of a file that gets another name reads the content to its end, or gets an error",
            "checkpoints are renamed when they are complete";
        two_writers_of_one_file = replaced::two_writers,
            "two writers of one file leave all of the one or all of the other; skipped where files are declared to be written in place",
            "two workers that save the same checkpoint must not leave a mix";
        writer_of_a_file_that_is_renamed_over = replaced::renamed_over_while_it_is_written,
            "a file that another is renamed to while it is written is the other one, or all that was written",
            "a mix of two contents is taken for data";
        writer_of_a_file_that_is_deleted = replaced::deleted_while_it_is_appended_to,
            "a file that is deleted while it is appended to is gone, or is complete",
            "a file of its last lines alone is taken for all of them";
    }
    Names "Names that are easily mistaken" {
        name_with_space = |run| names::name(run, "with a space.txt"),
            "a file with a name with spaces is written, found, listed, renamed and deleted",
            "TensorFlow passes names as they are, without any encoding";
        name_with_percent = |run| names::name(run, "100%25.txt"),
            "a file with a name with `%25` is written, found, listed, renamed and deleted",
            "a name that is decoded once too often is another name";
        name_with_hash = |run| names::name(run, "a#b"),
            "a file with a name with `#` is written, found, listed, renamed and deleted",
            "parsers of URLs cut there";
        name_with_question_mark = |run| names::name(run, "a?b=c"),
            "a file with a name with `?` is written, found, listed, renamed and deleted",
            "parsers of URLs cut there";
        name_with_plus_and_ampersand = |run| names::name(run, "a+b&c"),
            "a file with a name with `+` and `&` is written, found, listed, renamed and deleted",
            "TensorFlow passes names as they are, without any encoding";
        name_with_equals = |run| names::name(run, "step=10"),
            "a file with a name with `=` is written, found, listed, renamed and deleted",
            "TensorFlow passes names as they are, without any encoding";
        name_with_unicode = |run| names::name(run, "naïve-日本語-🦀"),
            "a file with a name beyond ASCII is written, found, listed, renamed and deleted",
            "TensorFlow passes names as they are, without any encoding";
        name_with_brackets = |run| names::name(run, "[a]"),
            "a file with a name with `[` and `]` is written, found, listed, renamed and deleted",
            "only patterns have lists";
        name_with_star = |run| names::name(run, "a*b"),
            "a file with a name with `*` is written, found, listed, renamed and deleted",
            "only patterns have wildcards";
        name_with_backslash = |run| names::name(run, r"a\b"),
            "a file with a name with a backslash is written, found, listed, renamed and deleted",
            "TensorFlow passes names as they are, without any encoding";
        name_with_quotes = |run| names::name(run, "it's \"quoted\""),
            "a file with a name with quotes is written, found, listed, renamed and deleted",
            "TensorFlow passes names as they are, without any encoding";
        name_with_leading_dot = |run| names::name(run, ".hidden"),
            "a file with a name with a dot in front is written, found, listed, renamed and deleted",
            "TensorFlow passes names as they are, without any encoding";
        name_with_leading_dash = |run| names::name(run, "-rf"),
            "a file with a name with a dash in front is written, found, listed, renamed and deleted",
            "TensorFlow passes names as they are, without any encoding";
        name_tilde = |run| names::name(run, "~"),
            "a file with a name that is `~` is written, found, listed, renamed and deleted",
            "TensorFlow passes names as they are, without any encoding";
        name_three_dots = |run| names::name(run, "..."),
            "a file with a name that is `...` is written, found, listed, renamed and deleted",
            "TensorFlow passes names as they are, without any encoding";
        name_with_trailing_dot = |run| names::name(run, "a."),
            "a file with a name with a dot at the end is written, found, listed, renamed and deleted",
            "TensorFlow passes names as they are, without any encoding";
        name_with_colon = |run| names::name(run, "12:30"),
            "a file with a name with `:` is written, found, listed, renamed and deleted",
            "TensorFlow passes names as they are, without any encoding";
        name_with_comma_and_at = |run| names::name(run, "model@2,part"),
            "a file with a name with `@` and `,` is written, found, listed, renamed and deleted",
            "TensorFlow passes names as they are, without any encoding";
        name_tempstate = |run| names::name(run, "x.tempstate1234567890"),
            "a file with a name as checkpoint writers make them is written, found, listed, renamed and deleted",
            "every checkpoint is written under such a name";
        name_with_trailing_space = |run| names::name(run, "end "),
            "a file with a name with a space at the end is written, found, listed, renamed and deleted",
            "TensorFlow passes names as they are, without any encoding";
        name_with_control = |run| names::name(run, "tab\there"),
            "a file with a name with a tab is written, found, listed, renamed and deleted",
            "TensorFlow passes names as they are, without any encoding";
        name_long = names::long_name,
            "a name of 200 bytes",
            "names of checkpoints carry metrics";
        name_deep = names::deep_name,
            "a file 24 directories deep",
            "there is no limit in TensorFlow";
        names_by_case = |run| names::distinct(run, &["case", "Case", "CASE"]),
            "names that differ in case are distinct",
            "variables' names do";
        names_by_prefix = |run| names::distinct(run, &["a", "ab", "a.b", "a-b", "a0", "a b"]),
            "names that begin with one another are distinct",
            "a store that looks up by prefix finds too much";
        names_of_checkpoints = |run| names::distinct(run, &["ckpt-1", "ckpt-10", "ckpt-100", "ckpt-1.index"]),
            "`ckpt-1`, `ckpt-10` and `ckpt-100` are distinct",
            "deleting checkpoint 1 must not delete checkpoint 10";
        names_by_normal_form = |run| names::distinct(run, &["\u{e9}", "e\u{301}"]),
            "names that only look alike are distinct",
            "TensorFlow compares bytes";
        names_by_encoding = |run| names::distinct(run, &["a b", "a%20b", "a+b"]),
            "a name and its encoded forms are distinct",
            "TensorFlow passes names as they are";
        prefix_is_no_path = names::prefix_is_no_path,
            "a part of a name is NOT_FOUND for every operation",
            "a store that looks up by prefix finds what is not there";
        same_name_as_file_and_in_directory = names::same_name_as_file_and_in_directory,
            "the same name in two directories is two files",
            "last components alone are not keys";
        translate_name_of_canonical_names = names::canonical_names_stay,
            "`translate_name` leaves a canonical name as it is",
            "TensorFlow translates names more than once";
        translate_name_keeps_the_host = names::translated_names_are_complete,
            "what `translate_name` returns still has the host and names the file",
            "TensorFlow's default loses the bucket";
        slash_at_the_end = names::a_slash_at_the_end_of_a_directory,
            "a directory is found and listed with a slash at its end",
            "Keras and users write it";
    }
    Trees "Directories, listings and deleting at large" {
        listing_is_names_only = tree::listing_is_names_only,
            "`get_children` gives last components",
            "gfile.walk joins them to the directory";
        listing_is_one_level = tree::listing_is_one_level,
            "`get_children` gives one level",
            "gfile.walk would visit files twice";
        listing_of_prefix_siblings = tree::listing_of_prefix_siblings,
            "`a`, `ab`, `a.b` and `a-b` list what is theirs",
            "a store that lists by prefix lists too much";
        listing_of_many_files = tree::listing_of_many_files,
            "300 files are listed, each once",
            "pages of listings get lost";
        listing_follows_changes = tree::listing_follows_changes,
            "a listing knows at once what was written, renamed, copied and deleted",
            "the checkpoint manager looks right after it saved";
        listing_without_a_deleted_directory = tree::listing_without_a_deleted_directory,
            "a deleted directory is no longer listed",
            "gfile.walk would fail on it";
        root_lists_its_entries = tree::root_lists_its_entries,
            "the root lists what was put there",
            "users begin there";
        glob_matches_hidden_files = |run| tree::glob_among(run, &[".hidden", "shown"], "*", &[".hidden", "shown"]),
            "`get_matching_paths`: `*` matches names with a dot in front",
            "the header's `*` is any run of characters but `/`";
        glob_of_shards = |run| tree::glob_among(run, &["train-00000-of-00002", "train-00001-of-00002", "eval-00000-of-00001"], "train-*-of-?????", &["train-00000-of-00002", "train-00001-of-00002"]),
            "`get_matching_paths`: `train-*-of-?????` finds the shards of train",
            "this is how shards are named";
        glob_in_several_directories = |run| tree::glob_among(run, &["a/x.txt", "b/x.txt", "b/y.txt", "c.txt"], "*/x.txt", &["a/x.txt", "b/x.txt"]),
            "`get_matching_paths`: `*/x.txt` finds a file in several directories",
            "datasets have a directory a class";
        glob_three_levels = |run| tree::glob_among(run, &["a/b/c", "a/d/c", "e/b/c"], "a/*/c", &["a/b/c", "a/d/c"]),
            "`get_matching_paths`: a wildcard in the middle of three levels",
            "datasets have a directory a class";
        glob_whole_names = |run| tree::glob_among(run, &["ab", "abc", "xab"], "ab", &["ab"]),
            "`get_matching_paths`: a pattern without wildcards is one whole name",
            "a search by prefix finds too much";
        glob_star_matches_nothing = |run| tree::glob_among(run, &["ab", "aXb"], "a*b", &["ab", "aXb"]),
            "`get_matching_paths`: `*` also matches no characters",
            "fnmatch does";
        glob_list_with_dash = |run| tree::glob_among(run, &["a-", "ab", "ac"], "a[b-]", &["a-", "ab"]),
            "`get_matching_paths`: `-` at the end of a list is a character",
            "fnmatch does";
        glob_of_unicode = |run| tree::glob_among(run, &["été", "ete"], "été*", &["été"]),
            "`get_matching_paths`: letters beyond ASCII in a pattern",
            "patterns are bytes";
        glob_with_percent = |run| tree::glob_among(run, &["a%20b", "a b"], "a%20*", &["a%20b"]),
            "`get_matching_paths`: `%20` in a pattern is not a space",
            "patterns are passed as they are";
        glob_with_escaped_brackets = |run| tree::glob_among(run, &["[a]", "a"], r"\[a\]", &["[a]"]),
            "`get_matching_paths`: an escaped bracket is a character",
            "names with brackets are found by escaping";
        glob_of_nothing = tree::glob_of_nothing,
            "`get_matching_paths` of an empty pattern is empty",
            "an empty flag must not list everything";
        nested_directories = tree::nested_directories,
            "`recursively_create_dir` makes five levels, and does nothing the second time",
            "training jobs make their directory when they restart";
        recursively_create_keeps_content = tree::recursively_create_keeps_content,
            "`recursively_create_dir` of a directory keeps what is in it",
            "training jobs make their directory when they restart";
        a_new_directory_is_empty = tree::a_new_directory_is_empty,
            "a new directory lists nothing and is a directory",
            "Keras looks whether the target is empty";
        a_directory_comes_again = tree::a_directory_comes_again,
            "a directory is deleted and made again",
            "temporary directories of checkpoints reuse names";
        a_file_becomes_a_directory = tree::a_file_becomes_a_directory,
            "a directory can be made where a file was",
            "names are reused";
        a_directory_becomes_a_file = tree::a_directory_becomes_a_file,
            "a file can be written where a directory was",
            "names are reused";
        create_dir_twice = tree::create_dir_twice,
            "`create_dir` a second time is ALREADY_EXISTS and keeps the content",
            "two workers make the same directory";
        deleting_a_file_keeps_prefix_siblings = tree::deleting_a_file_keeps_prefix_siblings,
            "deleting `ckpt-1` keeps `ckpt-10` and `ckpt-1.index`",
            "a store that deletes by prefix loses checkpoints";
        deleting_a_tree_keeps_prefix_siblings = tree::deleting_a_tree_keeps_prefix_siblings,
            "deleting the tree `run` keeps `run1` and `run.old`",
            "a store that deletes by prefix loses experiments";
        deleting_a_deep_tree = tree::deleting_a_deep_tree,
            "`delete_recursively` deletes all levels and says that nothing is left",
            "gfile.rmtree is one call";
        deleting_twice = tree::deleting_twice,
            "deleting a second time is NOT_FOUND",
            "two workers clean up";
        a_directory_of_directories_is_not_empty = tree::a_directory_of_directories_is_not_empty,
            "`delete_dir` keeps a directory that holds only a directory",
            "data would be lost";
        a_deleted_file_leaves_its_directory = tree::a_deleted_file_leaves_its_directory,
            "a directory stays when its last file is deleted",
            "TensorFlow writes the next file into it";
        a_file_is_deleted_while_it_is_written = tree::a_file_is_deleted_while_it_is_written,
            "a file that is deleted while it is written stays deleted",
            "Dataset.cache deletes its lock file";
        rename_file_prefix_siblings_stay = |run| tree::prefix_siblings_stay(run, &directories::RENAME_FILE),
            "`rename_file` from `ckpt-1` to `moved` touches neither `ckpt-10` nor `moved1`",
            "a store that works by prefix moves too much";
        rename_file_large_files = |run| tree::large_files(run, &directories::RENAME_FILE),
            "`rename_file` of 128 KiB to 1 MiB and some bytes, whole",
            "copies work in pieces, whose last one is empty or partial";
        rename_file_into_another_directory = |run| tree::into_another_directory(run, &directories::RENAME_FILE),
            "`rename_file` into another directory",
            "checkpoints move out of a temporary directory";
        rename_file_missing_source_keeps_the_target = |run| tree::missing_source_keeps_the_target(run, &directories::RENAME_FILE),
            "`rename_file` from a missing path keeps the target",
            "the target must not be emptied first";
        rename_file_replacing_a_longer_file = |run| tree::replacing_a_longer_file(run, &directories::RENAME_FILE),
            "`rename_file` over a longer file leaves nothing of it",
            "the file `checkpoint` is replaced so";
        copy_file_prefix_siblings_stay = |run| tree::prefix_siblings_stay(run, &directories::COPY_FILE),
            "`copy_file` from `ckpt-1` to `moved` touches neither `ckpt-10` nor `moved1`",
            "a store that works by prefix moves too much";
        copy_file_large_files = |run| tree::large_files(run, &directories::COPY_FILE),
            "`copy_file` of 128 KiB to 1 MiB and some bytes, whole",
            "copies work in pieces, whose last one is empty or partial";
        copy_file_into_another_directory = |run| tree::into_another_directory(run, &directories::COPY_FILE),
            "`copy_file` into another directory",
            "checkpoints move out of a temporary directory";
        copy_file_missing_source_keeps_the_target = |run| tree::missing_source_keeps_the_target(run, &directories::COPY_FILE),
            "`copy_file` from a missing path keeps the target",
            "the target must not be emptied first";
        copy_file_replacing_a_longer_file = |run| tree::replacing_a_longer_file(run, &directories::COPY_FILE),
            "`copy_file` over a longer file leaves nothing of it",
            "the file `checkpoint` is replaced so";
        rename_file_to_another_host = |run| hosts::to_another_host(run, &directories::RENAME_FILE),
            "`rename_file` to the same path on another host, which has a file there, and back; or UNIMPLEMENTED, and both stay",
            "a bucket is a host: TensorFlow leaves every rename within a scheme to the plugin";
        copy_file_to_another_host = |run| hosts::to_another_host(run, &directories::COPY_FILE),
            "`copy_file` to the same path on another host, which has a file there, and back; or UNIMPLEMENTED, and both stay",
            "a bucket is a host: TensorFlow leaves every copy within a scheme to the plugin";
        renaming_around = tree::renaming_around,
            "two files exchange their names over a third",
            "caches of names must follow";
        a_renamed_name_is_free = tree::a_renamed_name_is_free,
            "a name is free after `rename_file`, and what is written there is another file",
            "checkpoints reuse temporary names";
        a_copy_is_a_file_of_its_own = tree::a_copy_is_a_file_of_its_own,
            "a copy does not change with its source",
            "copies are backups";
        renaming_before_the_writer_is_dropped = tree::renaming_before_the_writer_is_dropped,
            "`rename_file` between close and the end of the writer",
            "checkpoint writers do it at each save";
        many_paths_exist = tree::many_paths_exist,
            "`paths_exist` of 200 paths answers for each",
            "shards are looked for together";
    }
    Consumers "What TensorFlow's own code does" {
        checkpoint = consumers::checkpoint,
            "three checkpoints are saved as BundleWriter does (.tempstate, two renames a file, flush and close twice), restored, and one deleted",
            "tf.train.Checkpoint";
        tf_records = consumers::tf_records,
            "500 records in 1,500 appends are read in pieces of 256 KiB until OUT_OF_RANGE",
            "TFRecordWriter and TFRecordDataset";
        cache_lock_file = consumers::cache_lock_file,
            "a lock file is dropped without a close and then deleted",
            "Dataset.cache(path) fails otherwise";
        event_file = consumers::event_file,
            "50 events, flushed and synced one by one, are all there",
            "tf.summary";
        event_file_is_read_while_it_grows = consumers::event_file_is_read_while_it_grows,
            "an event file that grows is opened again and read from where the reader stopped",
            "TensorBoard";
        dataset_save = consumers::dataset_save,
            "200 elements are appended to a new file and read 8 bytes at a time",
            "Dataset.save and load";
        write_file_makes_its_directory = consumers::write_file_makes_its_directory,
            "a missing directory is made before its file",
            "tf.io.write_file";
        seek_reads_one_byte = consumers::seek_reads_one_byte,
            "the byte before a position is read, and none at the end",
            "GFile.seek";
        gfile_appends = consumers::gfile_appends,
            "a line is appended to a file",
            "GFile(..., 'a')";
        saved_model = consumers::saved_model,
            "a SavedModel is written, polled for by a server, copied and deleted",
            "tf.saved_model.save, TensorFlow Serving";
        walk = consumers::walk,
            "all directories are listed and each entry asked whether it is one",
            "gfile.walk";
    }
    Threads "Several threads at a time" {
        readers_of_one_file = threads::readers_of_one_file,
            "eight threads read one open file",
            "tf.data shares a file between threads";
        each_opens_the_same_file = threads::each_opens_the_same_file,
            "eight threads open and read one file",
            "parallel_interleave opens files on many threads";
        writers_of_different_files = threads::writers_of_different_files,
            "eight threads write a file each",
            "sharded checkpoints";
        listing_during_writes = threads::listing_during_writes,
            "a directory is listed while others write into it",
            "an evaluator watches the directory of a trainer";
        one_creates_a_directory = threads::one_creates_a_directory,
            "of eight threads one makes a directory, and the others hear ALREADY_EXISTS",
            "workers start together";
        all_create_a_path = threads::all_create_a_path,
            "eight threads make the same path",
            "workers start together";
        each_renames_its_file = threads::each_renames_its_file,
            "eight threads write and rename",
            "workers save together";
        each_deletes_its_file = threads::each_deletes_its_file,
            "eight threads write and delete",
            "workers clean up together";
        readers_of_a_growing_file = threads::readers_of_a_growing_file,
            "seven threads read what one appends: always a beginning of it",
            "TensorBoard reads event files while they grow";
        forked_children = threads::forked_children,
            "a child that is forked while four threads make calls reads and writes, or hears FAILED_PRECONDITION; it does not hang",
            "multiprocessing and data loaders fork a process with threads";
    }
    Random "Random operations" {
        random_operations = random::operations,
            "64 random sequences of up to 79 operations, each answer and the end state held against a model; the shortest sequence that fails is printed",
            "what no other case thought of";
    }
}

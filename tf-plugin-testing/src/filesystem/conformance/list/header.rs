//! Cases for what `filesystem_interface.h` says of each operation.

use crate::filesystem::conformance::case::{Case, Group};
use crate::filesystem::conformance::conditions::{
    END, EXISTS as ALREADY_EXISTS, FP as FAILED_PRECONDITION, Is, NOT_FOUND, OK,
};
use crate::filesystem::conformance::directories::{COPY_FILE, RENAME_FILE, Transfer};
use crate::filesystem::conformance::files::look;
use crate::filesystem::conformance::run::{Operation, Run, Step};
use crate::filesystem::conformance::{directories, extras, files, queries};

filesystem_cases! {
    ($) __filesystem_header_tests
    Opening {
        conditions {
            new_random_access_file, "TensorFlow tells a missing checkpoint from a broken disk by NOT_FOUND":
                new_random_access_file_of_missing NOT_FOUND, new_random_access_file_of_missing_parent NOT_FOUND,
                new_random_access_file_of_file OK, new_random_access_file_of_empty_dir FAILED_PRECONDITION,
                new_random_access_file_of_full_dir FAILED_PRECONDITION,
                new_random_access_file_of_below_file, new_random_access_file_of_far_below_file, new_random_access_file_of_malformed;
            new_writable_file = files::new_writable_file, then files::is_empty, "a save that cannot be written must fail when it is opened, not at its end":
                new_writable_file_of_missing OK "an empty file exists", new_writable_file_of_missing_parent NOT_FOUND,
                new_writable_file_of_file OK "it is empty", new_writable_file_of_empty_dir FAILED_PRECONDITION,
                new_writable_file_of_full_dir FAILED_PRECONDITION,
                new_writable_file_of_below_file, new_writable_file_of_far_below_file, new_writable_file_of_malformed;
            new_appendable_file = files::new_appendable_file, then files::is_kept, "Dataset.save and snapshots open new files with it, GFile(..., 'a') old ones":
                new_appendable_file_of_missing OK "an empty file exists",
                new_appendable_file_of_missing_parent NOT_FOUND, new_appendable_file_of_file OK "its content is kept",
                new_appendable_file_of_empty_dir FAILED_PRECONDITION,
                new_appendable_file_of_full_dir FAILED_PRECONDITION,
                new_appendable_file_of_below_file, new_appendable_file_of_far_below_file, new_appendable_file_of_malformed;
            new_read_only_memory_region_from_file = files::new_read_only_memory_region_from_file, "TensorFlow maps memory-mapped models and constants":
                new_read_only_memory_region_from_file_of_missing NOT_FOUND,
                new_read_only_memory_region_from_file_of_missing_parent NOT_FOUND,
                new_read_only_memory_region_from_file_of_file OK "the region is its content",
                new_read_only_memory_region_from_file_of_empty_dir FAILED_PRECONDITION,
                new_read_only_memory_region_from_file_of_full_dir FAILED_PRECONDITION,
                new_read_only_memory_region_from_file_of_below_file, new_read_only_memory_region_from_file_of_far_below_file, new_read_only_memory_region_from_file_of_malformed;
        }
        of files {
            new_read_only_memory_region_from_file_of_empty_file "a region of an empty file returns INVALID_ARGUMENT",
                "TensorFlow would use a null pointer as content";
        }
    }
    OpenFiles {
        open_files "a path exists from the moment that it is opened for writing; TensorFlow drops some files without closing them" {
            path_exists_of_open_file path_exists_of_dropped_file
                path_exists OK "of" " returns OK" = |fs, path| fs.path_exists(path);
            stat_of_open_file stat_of_dropped_file
                stat OK "of" " returns OK" = |fs, path| fs.stat(path).map(drop);
            is_directory_of_open_file is_directory_of_dropped_file
                is_directory FAILED_PRECONDITION "of" " returns FAILED_PRECONDITION" = |fs, path| fs.is_directory(path);
            get_file_size_of_open_file get_file_size_of_dropped_file
                get_file_size OK "of" " returns OK" = |fs, path| fs.get_file_size(path).map(drop);
            new_random_access_file_of_open_file new_random_access_file_of_dropped_file
                new_random_access_file OK "of" " returns OK" = |fs, path| fs.new_random_access_file(path).map(drop);
            new_appendable_file_of_open_file new_appendable_file_of_dropped_file
                new_appendable_file OK "of" " returns OK" = |fs, path| fs.new_appendable_file(path).map(drop);
            create_dir_of_open_file create_dir_of_dropped_file
                create_dir ALREADY_EXISTS "of" " returns ALREADY_EXISTS" = |fs, path| fs.create_dir(path);
            get_children_of_open_file get_children_of_dropped_file
                get_children OK "lists" "" = files::is_listed;
            copy_file_of_open_file copy_file_of_dropped_file
                copy_file OK "of" " returns OK" = |fs, path| fs.copy_file(path, format!("{path}2"));
            rename_file_of_open_file rename_file_of_dropped_file
                rename_file OK "of" " returns OK" = |fs, path| fs.rename_file(path, format!("{path}3"));
            delete_file_of_open_file delete_file_of_dropped_file
                delete_file OK "of" " returns OK" = |fs, path| fs.delete_file(path);
        }
        reads "OUT_OF_RANGE with fewer bytes is the only sign of a file's end; OK with none makes copies run forever" {
            read_all 0 7 b"content" OK "reading all of a file returns OK";
            read_up_to_the_end 3 4 b"tent" OK "reading a part up to the end returns OK";
            read_nothing_at_the_start 0 0 b"" OK "reading no bytes at the start returns OK";
            read_nothing_at_the_end 7 0 b"" OK "reading no bytes at the end returns OK";
            read_nothing_past_the_end 100 0 b"" OK "reading no bytes past the end returns OK";
            read_across_the_end 3 100 b"tent" END "reading a part across the end returns OUT_OF_RANGE with the bytes there are";
            read_at_the_end 7 1 b"" END "reading a byte at the end returns OUT_OF_RANGE with the bytes there are";
            read_past_the_end 100 1 b"" END "reading a byte past the end returns OUT_OF_RANGE with the bytes there are";
        }
        of files {
            write_append_replace "append, tell, flush, sync, close twice, append to the content, replace it",
                "this is the life of most of TensorFlow's files";
        }
    }
    Directories {
        conditions {
            create_dir, then directories::is_there, "TensorFlow makes directories level by level and tolerates ALREADY_EXISTS only":
                create_dir_of_missing OK "it exists", create_dir_of_missing_parent NOT_FOUND,
                create_dir_of_file ALREADY_EXISTS, create_dir_of_empty_dir ALREADY_EXISTS,
                create_dir_of_full_dir ALREADY_EXISTS,
                create_dir_of_below_file, create_dir_of_far_below_file, create_dir_of_malformed;
            recursively_create_dir, then directories::is_there, "tf.io.write_file, SavedModel and snapshots make their directories with it":
                recursively_create_dir_of_missing OK "it exists",
                recursively_create_dir_of_missing_parent OK "it exists",
                recursively_create_dir_of_file FAILED_PRECONDITION, recursively_create_dir_of_empty_dir OK,
                recursively_create_dir_of_full_dir OK,
                recursively_create_dir_of_below_file, recursively_create_dir_of_far_below_file, recursively_create_dir_of_malformed;
        }
        of directories {
            recursively_create_dir_of_the_root "`recursively_create_dir` of the root returns OK",
                "TensorFlow's default never ends if the root is NOT_FOUND";
        }
    }
    Deleting {
        conditions {
            delete_file, then directories::is_gone, "checkpoint managers delete old checkpoints and take NOT_FOUND for done":
                delete_file_of_missing NOT_FOUND, delete_file_of_missing_parent NOT_FOUND,
                delete_file_of_file OK "it is gone and its parent exists",
                delete_file_of_empty_dir FAILED_PRECONDITION, delete_file_of_full_dir FAILED_PRECONDITION,
                delete_file_of_below_file, delete_file_of_far_below_file, delete_file_of_malformed;
            delete_dir, then directories::is_gone, "a directory that still holds files must not be lost":
                delete_dir_of_missing NOT_FOUND, delete_dir_of_missing_parent NOT_FOUND,
                delete_dir_of_file FAILED_PRECONDITION, delete_dir_of_empty_dir OK "it is gone and its parent exists",
                delete_dir_of_full_dir FAILED_PRECONDITION,
                delete_dir_of_below_file, delete_dir_of_far_below_file, delete_dir_of_malformed;
            delete_recursively = directories::delete_recursively, then directories::is_gone, "gfile.rmtree is one call of it, and reads both counters whatever the status":
                delete_recursively_of_missing NOT_FOUND, delete_recursively_of_missing_parent NOT_FOUND,
                delete_recursively_of_file OK "it is gone and its parent exists",
                delete_recursively_of_empty_dir OK "it is gone and its parent exists",
                delete_recursively_of_full_dir OK "it is gone and its parent exists",
                delete_recursively_of_below_file, delete_recursively_of_far_below_file, delete_recursively_of_malformed;
        }
    }
    Transfers {
        transfers ("every checkpoint is written under another name and renamed" "gfile.copy within a scheme is one call of it") {
            rename_file_from_missing copy_file_from_missing = |run, op| directories::from(run, op, Is::Missing),
                "from a path that is missing to a new name returns NOT_FOUND, and both names stay as they are";
            rename_file_from_missing_parent copy_file_from_missing_parent = |run, op| directories::from(run, op, Is::ParentMissing),
                "from a path whose parent is missing to a new name returns NOT_FOUND, and both names stay as they are";
            rename_file_from_file copy_file_from_file = |run, op| directories::from(run, op, Is::File),
                "from a file to a new name returns OK, and the content is at the new name";
            rename_file_from_empty_dir copy_file_from_empty_dir = |run, op| directories::from(run, op, Is::EmptyDir),
                "from an empty directory to a new name returns FAILED_PRECONDITION, and both names stay as they are";
            rename_file_from_full_dir copy_file_from_full_dir = |run, op| directories::from(run, op, Is::FullDir),
                "from a directory with a file in it to a new name returns FAILED_PRECONDITION, and both names stay as they are";
            rename_file_from_below_file copy_file_from_below_file = |run, op| directories::from(run, op, Is::BelowFile),
                "from a path directly below a file to a new name returns FAILED_PRECONDITION, and both names stay as they are";
            rename_file_from_far_below_file copy_file_from_far_below_file = |run, op| directories::from(run, op, Is::FarBelowFile),
                "from a path two levels below a file to a new name returns FAILED_PRECONDITION, and both names stay as they are";
            rename_file_from_malformed copy_file_from_malformed = |run, op| directories::from(run, op, Is::Malformed),
                "from a name that can never be one to a new name returns FAILED_PRECONDITION or INVALID_ARGUMENT, and both names stay as they are";
            rename_file_to_missing copy_file_to_missing = |run, op| directories::to(run, op, Is::Missing),
                "from a file to a path that is missing returns OK, and the content is the same";
            rename_file_to_missing_parent copy_file_to_missing_parent = |run, op| directories::to(run, op, Is::ParentMissing),
                "from a file to a path whose parent is missing returns NOT_FOUND, and both names stay as they are";
            rename_file_to_empty_dir copy_file_to_empty_dir = |run, op| directories::to(run, op, Is::EmptyDir),
                "from a file to an empty directory returns FAILED_PRECONDITION, and both names stay as they are";
            rename_file_to_full_dir copy_file_to_full_dir = |run, op| directories::to(run, op, Is::FullDir),
                "from a file to a directory with a file in it returns FAILED_PRECONDITION, and both names stay as they are";
            rename_file_to_below_file copy_file_to_below_file = |run, op| directories::to(run, op, Is::BelowFile),
                "from a file to a path directly below a file returns FAILED_PRECONDITION, and both names stay as they are";
            rename_file_to_far_below_file copy_file_to_far_below_file = |run, op| directories::to(run, op, Is::FarBelowFile),
                "from a file to a path two levels below a file returns FAILED_PRECONDITION, and both names stay as they are";
            rename_file_to_malformed copy_file_to_malformed = |run, op| directories::to(run, op, Is::Malformed),
                "from a file to a name that can never be one returns FAILED_PRECONDITION or INVALID_ARGUMENT, and both names stay as they are";
            rename_file_to_existing_file copy_file_to_existing_file = directories::to_existing,
                "replaces a file";
            rename_file_of_empty_file_to_existing_file copy_file_of_empty_file_to_existing_file = directories::empty_to_existing,
                "of an empty file replaces a file";
        }
        transfers "TensorFlow's default loses the file" {
            rename_file_to_itself copy_file_to_itself = directories::to_itself,
                "of a file to its own name returns OK and keeps it";
        }
    }
    Queries {
        conditions {
            path_exists, "gfile.copy with overwrite=False takes an error for \"absent\" and overwrites":
                path_exists_of_missing NOT_FOUND, path_exists_of_missing_parent NOT_FOUND,
                path_exists_of_file OK, path_exists_of_empty_dir OK,
                path_exists_of_full_dir OK,
                path_exists_of_below_file, path_exists_of_far_below_file, path_exists_of_malformed;
            stat, then queries::kind_and_length, "GFile.read queries the size with it, much of TensorFlow the kind":
                stat_of_missing NOT_FOUND, stat_of_missing_parent NOT_FOUND,
                stat_of_file OK "kind and length are right", stat_of_empty_dir OK "it is a directory",
                stat_of_full_dir OK "it is a directory",
                stat_of_below_file, stat_of_far_below_file, stat_of_malformed;
            is_directory, "TensorFlow looks at the status only: OK for a file makes every file a directory":
                is_directory_of_missing NOT_FOUND, is_directory_of_missing_parent NOT_FOUND,
                is_directory_of_file FAILED_PRECONDITION, is_directory_of_empty_dir OK,
                is_directory_of_full_dir OK,
                is_directory_of_below_file, is_directory_of_far_below_file, is_directory_of_malformed;
            get_file_size, then queries::length, "TensorFlow allocates as much as it says":
                get_file_size_of_missing NOT_FOUND, get_file_size_of_missing_parent NOT_FOUND,
                get_file_size_of_file OK "it is the file's length", get_file_size_of_empty_dir FAILED_PRECONDITION,
                get_file_size_of_full_dir FAILED_PRECONDITION,
                get_file_size_of_below_file, get_file_size_of_far_below_file, get_file_size_of_malformed;
        }
        of queries {
            root_is_a_directory "the root is a directory",
                "TensorFlow's default of recursively_create_dir never ends otherwise";
            paths_exist "`paths_exist` returns for each path what `path_exists` returns",
                "checkpoints query all their shards at once";
            paths_exist_without_statuses "`paths_exist` without room for statuses says whether all exist; none is all",
                "TensorFlow passes a null pointer for the statuses";
        }
    }
    Listing {
        conditions {
            get_children, then queries::entries, "gfile.listdir, walk and globs are made of it":
                get_children_of_missing NOT_FOUND, get_children_of_missing_parent NOT_FOUND,
                get_children_of_file FAILED_PRECONDITION, get_children_of_empty_dir OK "lists nothing",
                get_children_of_full_dir OK "lists the file",
                get_children_of_below_file, get_children_of_far_below_file, get_children_of_malformed;
        }
        patterns "file patterns of input pipelines are given to the plugin as they are" {
            glob_star "part-*" ["part-0" "part-1" "part-x"];
            glob_question_mark "part-?" ["part-0" "part-1" "part-x"];
            glob_list "part-[01]" ["part-0" "part-1"];
            glob_range "part-[0-9]" ["part-0" "part-1"];
            glob_negated_list "part-[^0]" ["part-1" "part-x"];
            glob_escaped_letter r"part-\x" ["part-x"];
            glob_escaped_star r"part-\*" [];
            glob_beginning_only "part" [];
            glob_star_for_a_directory "*/part-0" ["full/part-0"];
            glob_two_stars "*/*" ["full/file" "full/part-0"];
            glob_files_and_directories "f*" ["file" "full"];
            glob_star_stops_at_slash "f*t-0" [];
            glob_plain_file "file" ["file"];
            glob_plain_directory "empty" ["empty"];
            glob_plain_missing "missing" [];
            glob_below_missing "missing/*" [];
            glob_below_file "file/*" [];
            glob_below_empty_directory "empty/*" [];
        }
        of queries {
            get_children_of_files_and_directories "`get_children` lists files and directories, each once",
                "gfile.walk visits what is listed";
        }
    }
    Canonical {
        of queries {
            translate_name_of_roots "`translate_name` makes `/` of a root without a host",
                "TensorFlow uses that name for the root";
            translate_name_cleans "`translate_name` resolves `.`, `..` and repeated slashes",
                "every operation but get_matching_paths gets what it returns";
            untidy_names "a name that is not in canonical form names the same file",
                "users join paths with slashes too many";
        }
    }
    Extras {
        of extras {
            transactions "transactions start, know their paths and end once",
                "the C interface promises them, though no TensorFlow up to 2.21 calls them";
            configuration "options, their keys and each single one agree; an unknown key is NOT_FOUND",
                "the C interface promises it";
        }
    }
}

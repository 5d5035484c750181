//! Cases for larger scenarios: trees, TensorFlow's own use, threads and random operations.

use crate::filesystem::conformance::case::{Case, Group};
use crate::filesystem::conformance::directories::{COPY_FILE, RENAME_FILE, Transfer};
use crate::filesystem::conformance::run::{Run, Step};
use crate::filesystem::conformance::{consumers, directories, random, threads, tree};

filesystem_cases! {
    ($) __filesystem_large_tests
    Trees {
        transfers "a store that works by prefix moves too much" {
            rename_file_prefix_siblings_stay copy_file_prefix_siblings_stay = tree::prefix_siblings_stay,
                "from `ckpt-1` to `moved` touches neither `ckpt-10` nor `moved1`";
        }
        transfers "copies work in pieces, whose last one is empty or partial" {
            rename_file_large_files copy_file_large_files = tree::large_files,
                "of 128 KiB to 1 MiB and some bytes, whole";
        }
        transfers "checkpoints move out of a temporary directory" {
            rename_file_into_another_directory copy_file_into_another_directory = tree::into_another_directory,
                "into another directory";
        }
        transfers "the target must not be emptied first" {
            rename_file_missing_source_keeps_the_target copy_file_missing_source_keeps_the_target = tree::missing_source_keeps_the_target,
                "from a missing path keeps the target";
        }
        transfers "the file `checkpoint` is replaced so" {
            rename_file_replacing_a_longer_file copy_file_replacing_a_longer_file = tree::replacing_a_longer_file,
                "over a longer file leaves nothing of it";
        }
        transfers ("a bucket is a host: TensorFlow leaves every rename within a scheme to the plugin" "a bucket is a host: TensorFlow leaves every copy within a scheme to the plugin") {
            rename_file_to_another_host copy_file_to_another_host = directories::to_another_host,
                "to the same path on another host, which has a file there, and back; or UNIMPLEMENTED, and both stay";
        }
        of tree {
            listing_is_one_level "`get_children` gives one level",
                "gfile.walk would visit files twice";
            listing_of_prefix_siblings "`a`, `ab`, `a.b` and `a-b` list what is theirs",
                "a store that lists by prefix lists too much";
            listing_of_many_files "300 files are listed, each once",
                "pages of listings get lost";
            listing_follows_changes "a listing knows at once what was written, renamed, copied and deleted",
                "the checkpoint manager looks right after it saved";
            root_lists_its_entries "the root lists what was put there",
                "users begin there";
            glob_of_nothing "`get_matching_paths` of an empty pattern is empty",
                "an empty flag must not list everything";
            recursively_create_keeps_content "`recursively_create_dir` of a directory keeps what is in it",
                "training jobs make their directory when they restart";
            a_file_becomes_a_directory "a directory can be made where a file was",
                "names are reused";
            a_directory_becomes_a_file "a file can be written where a directory was",
                "names are reused";
            deleting_a_tree_keeps_prefix_siblings "deleting the tree `run` keeps `run1` and `run.old`",
                "a store that deletes by prefix loses experiments";
            deleting_a_deep_tree "`delete_recursively` deletes all levels and says that nothing is left",
                "gfile.rmtree is one call";
            a_directory_of_directories_is_not_empty "`delete_dir` keeps a directory that holds only a directory",
                "data would be lost";
            a_deleted_file_leaves_its_directory "a directory stays when its last file is deleted",
                "TensorFlow writes the next file into it";
            a_file_is_deleted_while_it_is_written "a file that is deleted while it is written stays deleted",
                "Dataset.cache deletes its lock file";
            renaming_around "two files exchange their names over a third",
                "caches of names must follow";
            a_copy_is_a_separate_file "a copy does not change with its source",
                "copies are backups";
            renaming_before_the_writer_is_dropped "`rename_file` between close and the end of the writer",
                "checkpoint writers do it at each save";
            many_paths_exist "`paths_exist` of 200 paths returns a result for each",
                "shards are looked for together";
        }
        cases {
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
        }
    }
    Consumers {
        of consumers {
            checkpoint "three checkpoints are saved as BundleWriter does (.tempstate, two renames a file, flush and close twice), restored, and one deleted",
                "tf.train.Checkpoint";
            cache_lock_file "a lock file is dropped without a close and then deleted",
                "Dataset.cache(path) fails otherwise";
            event_file_is_read_while_it_grows "an event file that grows is opened again and read from where the reader stopped",
                "TensorBoard";
            saved_model "a SavedModel is written, polled for by a server, copied and deleted",
                "tf.saved_model.save, TensorFlow Serving";
            walk "all directories are listed, and `is_directory` is called for each entry",
                "gfile.walk";
        }
    }
    Threads {
        of threads {
            readers_of_one_file "eight threads read one open file",
                "tf.data shares a file between threads";
            each_opens_the_same_file "eight threads open and read one file",
                "parallel_interleave opens files on many threads";
            writers_of_different_files "eight threads write a file each",
                "sharded checkpoints";
            listing_during_writes "a directory is listed while others write into it",
                "an evaluator watches the directory of a trainer";
            one_creates_a_directory "of eight threads one makes a directory, and the others hear ALREADY_EXISTS",
                "workers start together";
            all_create_a_path "eight threads make the same path",
                "workers start together";
            each_renames_its_file "eight threads write and rename",
                "workers save together";
            each_deletes_its_file "eight threads write and delete",
                "workers clean up together";
            readers_of_a_growing_file "seven threads read what one appends: always a beginning of it",
                "TensorBoard reads event files while they grow";
            forked_children "a child that is forked while four threads make calls reads and writes, or hears FAILED_PRECONDITION; it does not hang",
                "multiprocessing and data loaders fork a process with threads";
        }
    }
    Random {
        of random {
            random_operations "64 random sequences of up to 79 operations, each result and the end state compared with a model; the shortest sequence that fails is printed",
                "what no other case thought of";
        }
    }
}

//! The cases for filesystems in TensorFlow; `python/` and `in_c.rs` have each under the same name.

use super::in_c::{self, Files};

tensorflow_cases! {
    from_python ["common", "files", "codes", "directories", "renaming", "questions", "listings", "names", "uses", "threads"] {
        "Whole files" {
            python_write_file_and_read_file
                "`tf.io.read_file` gives what `tf.io.write_file` wrote: nothing, a byte, 3 MB", "input pipelines read so";
            python_write_file_makes_directories [recursively_create_dir_of_missing_parent]
                "`tf.io.write_file` into a directory that is missing makes it", "exports are written so";
            python_text
                "Lines, `readline`, `read` and `seek` of a text file with letters beyond ASCII", "vocabularies are read so";
            python_seek_and_tell [read_byte_by_byte]
                "`seek` from the start, the end and the position, and `tell`", "`GFile` reads a byte for each `seek`";
            python_tell_while_writing [tell_begins_at_zero, tell_survives_flush]
                "`tell` is the number of bytes written so far", "writers of indexes note offsets";
            python_all_byte_values [all_bytes_are_kept, line_ends_are_kept]
                "All values of a byte, NUL and line ends among them, are kept", "checkpoints are binary";
            python_many_small_writes [many_small_appends]
                "4,000 writes of 0 to 40 bytes", "a record is three small appends";
            python_one_large_write [one_large_append]
                "16 MiB in one write, read at once, in pieces and from the middle", "a tensor is one append";
            python_replaced_by_a_shorter_one [a_shorter_file_replaces_a_longer_one, an_empty_file_replaces_a_full_one]
                "A file that is written again has nothing of the old one", "the state file of checkpoints shrinks";
            python_append [appending_keeps_what_is_there]
                "`GFile(..., 'ab')` appends to the content", "logs are written in this way";
            python_append_to_nothing [appending_creates_a_missing_file]
                "`GFile(..., 'ab')` makes a file that is missing", "`Dataset.save` opens its files so";
            python_empty_file [new_writable_file_of_missing]
                "An empty file exists, is read as nothing by each reader, and is copied", "marker files are empty";
            python_open_file_is_there [path_exists_of_open_file, get_children_of_open_file]
                "A file that is open for writing exists and is listed", "TensorFlow polls for files that grow";
            python_flushed_is_read [flush_makes_visible]
                "What was flushed is read by others", "TensorBoard reads while a trainer writes";
            python_half_a_file_is_never_seen [visibility_is_declared_right]
                "Before a file is closed, or flushed where that publishes it, others read what was there before or are refused", "readers would take half a file for a whole one";
            python_closed_twice
                "`close` twice", "the buffered writer of checkpoints closes twice";
            python_dropped_file [a_dropped_file_can_be_written_again]
                "A writer that is dropped without a close blocks nothing", "so ends each exception";
            python_two_writers [two_writers_of_different_files]
                "Two files that are written in turn", "sharded writers keep many open";
            python_new_content_is_read
                "Content and length of a file that was written again are the new ones", "the state file of checkpoints changes";
        }
        "Errors" {
            python_read_missing
                "Reading a missing file, or below a missing directory, raises `NotFoundError`", "TensorFlow begins again without a checkpoint, and only then";
            python_read_directory [new_random_access_file_of_full_dir, new_random_access_file_of_empty_dir]
                "Reading a directory raises `FailedPreconditionError`", "the error names the mistake";
            python_read_below_file [new_random_access_file_of_below_file]
                "Reading below a file raises `FailedPreconditionError`", "the error names the mistake";
            python_write_missing_parent [new_writable_file_of_missing_parent]
                "Writing below a missing directory raises `NotFoundError` and makes nothing", "a typing error would make a tree";
            python_write_onto_directory [new_writable_file_of_full_dir, new_writable_file_of_empty_dir]
                "Writing onto a directory raises `FailedPreconditionError` and changes nothing; where directories are implied it may create a file of that name", "the directory would be lost";
            python_write_below_file [new_writable_file_of_below_file]
                "Writing below a file raises `FailedPreconditionError` and changes nothing", "the file would be lost";
            python_append_codes [new_appendable_file_of_missing_parent, new_appendable_file_of_full_dir, new_appendable_file_of_below_file]
                "Appending below a missing directory, below a file, or to a directory raises what writing raises", "the error names the mistake";
            python_malformed [new_random_access_file_of_malformed, new_writable_file_of_malformed]
                "A name that can never be one raises `FailedPreconditionError` or `InvalidArgumentError` everywhere", "it is not a missing file";
        }
        "Directories" {
            python_mkdir
                "`mkdir` makes an empty directory, and a second one keeps what is in it", "TensorFlow makes directories without looking";
            python_mkdir_codes [create_dir_of_missing_parent, create_dir_of_below_file, create_dir_of_file]
                "`mkdir` below nothing raises `NotFoundError`, below a file `FailedPreconditionError`", "the error names the mistake";
            python_makedirs [recursively_create_dir_of_missing_parent]
                "`makedirs` makes each level, and does it again without an error", "workers make one tree together";
            python_makedirs_codes [recursively_create_dir_of_file, recursively_create_dir_of_below_file]
                "`makedirs` of a file, below it and far below raises `FailedPreconditionError`", "TensorFlow would write into a file";
            python_remove [names_of_checkpoints]
                "`remove` takes the file, not its neighbours of similar names nor its directory", "old checkpoints are removed next to new ones";
            python_remove_codes [delete_file_of_full_dir, delete_file_of_empty_dir, delete_file_of_below_file]
                "`remove` of nothing raises `NotFoundError`, of a directory `FailedPreconditionError`", "the directory would be lost";
            python_rmtree [deleting_a_tree_keeps_prefix_siblings, deleting_a_deep_tree]
                "`rmtree` removes the whole tree and nothing else", "`run` is removed next to `run1`";
            python_rmtree_codes [delete_recursively_of_file, delete_recursively_of_below_file]
                "`rmtree` of nothing raises `NotFoundError`; of a file it takes the file", "TensorFlow turns left-overs into `PermissionDeniedError`";
        }
        "Renaming and copying" {
            python_rename
                "`rename` moves one file; `ckpt-10` stays when `ckpt-1` is moved", "each checkpoint is five renames";
            python_rename_onto_a_file [rename_file_to_existing_file]
                "`rename` replaces a file with `overwrite=True`, and raises `AlreadyExistsError` without", "the state file is replaced so";
            python_rename_codes [rename_file_from_full_dir, rename_file_to_empty_dir, rename_file_to_missing_parent, rename_file_to_below_file]
                "A `rename` that cannot be raises `NotFoundError` or `FailedPreconditionError`, and both names keep what they had", "data would be lost";
            python_copy
                "`copy` of 0 bytes to 400 kB, around the steps of TensorFlow's own copy", "assets are copied";
            python_copy_is_its_own_file [a_copy_is_a_separate_file]
                "A copy stays when its source changes", "copies are backups";
            python_copy_onto_a_file [copy_file_to_existing_file]
                "`copy` replaces a file with `overwrite=True`, and raises `AlreadyExistsError` without", "the old file would be lost";
            python_copy_codes [copy_file_from_full_dir, copy_file_to_full_dir, copy_file_to_missing_parent, copy_file_to_below_file]
                "A `copy` that cannot be raises `NotFoundError` or `FailedPreconditionError`, and both names keep what they had", "data would be lost";
            python_copy_between_filesystems
                "`copy` from `file://` and back, of 0 bytes to 1 MB", "data sets are staged so";
            python_rename_between_filesystems
                "`rename` from `file://` raises `UnimplementedError` and moves nothing", "TensorFlow's own refusal must not cost a file";
        }
        "Questions" {
            python_exists [path_exists_of_below_file]
                "`exists` of files, directories, nothing, beginnings of names and below a file", "TensorFlow looks for checkpoints so";
            python_isdir [is_directory_of_file]
                "`isdir` is true for directories alone", "TensorFlow takes any success of `is_directory` for true";
            python_stat [stat_of_empty_dir]
                "`stat` has the length, the kind, and a time that is now or 0", "caches compare it";
            python_stat_codes [stat_of_below_file]
                "`stat` of nothing raises `NotFoundError`, below a file `FailedPreconditionError`", "the error names the mistake";
            python_size
                "`GFile.size` of nothing, a byte and 100 kB", "`read` requests as much";
        }
        "Listings" {
            python_listdir [get_children_of_files_and_directories]
                "`listdir` has each file and directory once, hidden ones too, one level deep", "shards are found so";
            python_listdir_codes
                "`listdir` of nothing and of a file raises `NotFoundError`", "TensorFlow calls `is_directory` first";
            python_listdir_of_many [listing_of_many_files]
                "`listdir` of 300 files, made by eight threads", "object stores list in pages";
            python_listing_follows_changes [listing_follows_changes]
                "`listdir` and `glob` see what was written and removed just now", "a listing that is remembered hides checkpoints";
            python_walk [walk]
                "`walk` from the top and from the bottom sees each directory once", "exports are walked";
            python_glob_star [glob_star]
                "`glob` with `*`", "file patterns of data sets";
            python_glob_in_directories [glob_in_several_directories, glob_star_stops_at_slash]
                "`glob` with `*` for directories, below nothing and below a file", "file patterns of data sets";
            python_glob_question_mark [glob_question_mark]
                "`glob` with `?`", "file patterns of data sets";
            python_glob_list [glob_list, glob_range, glob_negated_list]
                "`glob` with `[ab]`, `[a-c]` and `[^b]`", "file patterns of data sets";
            python_glob_without_wildcard [glob_plain_file, glob_plain_directory, glob_plain_missing]
                "`glob` of a plain name finds it if it exists", "TensorFlow looks for single files in this way";
            python_glob_escapes [glob_escaped_star, glob_with_escaped_brackets]
                "`glob` with `\\\\*`, `\\\\?`, `\\\\[` and `\\\\\\\\`", "names with such signs cannot be found otherwise";
            python_matching_files
                "`tf.io.matching_files` of one pattern and of two, in order", "the operator behind `list_files`";
        }
        "Names" {
            python_names_with_spaces [name_with_space, name_with_trailing_space]
                "Names with spaces, as files and as directories", "users have them";
            python_names_beyond_ascii [name_with_unicode, names_by_normal_form]
                "Names in several scripts, and two that only look the same", "users have them";
            python_names_with_wildcards [name_with_star, name_with_brackets, name_with_question_mark, name_with_backslash]
                "Names with the signs of patterns", "a path is not a pattern";
            python_names_of_uris [name_with_percent, name_with_hash, name_with_plus_and_ampersand, name_with_equals, name_with_colon, names_by_encoding]
                "Names with the signs of URIs, `%41` among them, mean themselves", "TensorFlow encodes nothing";
            python_names_with_signs [name_with_quotes, name_with_leading_dash, name_with_leading_dot, name_tilde, name_three_dots, name_with_comma_and_at]
                "Names with quotes, `~`, `$`, a leading dash or dot, and `...`", "a path is not a command";
            python_names_differ_in_case [names_by_case]
                "`name`, `Name` and `NAME` are three files", "checkpoints of two runs would mix";
            python_long_names [name_long]
                "Names of 199 and 200 bytes", "file names hold hyperparameters";
            python_deep_directories [name_deep]
                "40 directories in each other", "exports are nested";
            python_untidy_names [untidy_names, translate_name_cleans]
                "`..`, `.`, `//` and a `/` at the end lead to the tidy name", "programs join paths carelessly";
        }
        "What uses files" {
            python_tfrecord [read_in_pieces_of_tensorflow]
                "1,002 records of `TFRecordWriter` in `TFRecordDataset`, twice", "the format of data sets";
            python_tfrecord_compressed [read_in_pieces_of_tensorflow]
                "Records with GZIP and ZLIB", "the format of data sets";
            python_tfrecord_cut
                "A file that lacks its end raises `DataLossError` after the records before", "a plugin that pads hides a broken upload";
            python_many_record_files [glob_of_shards]
                "16 files of records by `list_files`, read by eight threads", "data sets are sharded";
            python_text_lines
                "`TextLineDataset`, with a long line, a small buffer, and compressed", "text corpora";
            python_fixed_length_records
                "`FixedLengthRecordDataset` with a header and a footer", "it queries the length of the file";
            python_parallel_reads
                "32 files by `tf.io.read_file` on 16 threads", "pictures are read so";
            python_dataset_save [appending_creates_a_missing_file]
                "`Dataset.save` and `Dataset.load`", "it appends to new files and reads 12 bytes at a time";
            python_dataset_cache [cache_lock_file]
                "`Dataset.cache` with a file, used again and by another pipeline", "it drops a lock file and deletes it";
            python_dataset_snapshot
                "`Dataset.snapshot`, used again", "it renames its metadata";
            python_checkpoint [checkpoint]
                "`tf.train.Checkpoint` saves and restores, and leaves no temporary file", "training continues from it";
            python_checkpoint_manager [checkpoint]
                "`CheckpointManager` keeps two of four, and restores the latest", "training continues from it";
            python_saved_model [saved_model]
                "`tf.saved_model` saves and loads a model with an asset", "serving";
            python_event_file [event_file_is_read_while_it_grows]
                "20 events of `tf.summary`", "TensorBoard";
            python_event_file_grows [event_file_is_read_while_it_grows]
                "Each event is read after its flush, while the writer continues", "TensorBoard during training";
            python_lookup_table
                "A lookup table from a file", "vocabularies";
            python_memory_region [new_read_only_memory_region_from_file_of_file, new_read_only_memory_region_from_file_of_empty_file]
                "`ImmutableConst` maps a file, and the errors of a missing and an empty one", "weights are mapped so";
            python_numpy_files
                "`numpy.save` and `pickle` by way of `GFile`", "preprocessing keeps its state so";
            python_session
                "A session reads and writes, again after an error, and in eight threads", "serving runs graphs so";
        }
        "Threads" {
            python_threads_read_one_file [each_opens_the_same_file]
                "Eight threads read pieces of one file", "`tf.data` reads in parallel";
            python_threads_with_files_of_their_own [each_renames_its_file, each_deletes_its_file]
                "Eight threads write, read, rename, copy, remove and list", "workers save together";
            python_threads_rename_onto_one_file
                "Eight threads rename onto one name; one of the files remains, and not a mixture", "workers replace one state file";
            python_threads_make_one_tree [all_create_a_path]
                "Eight threads make directories of one tree", "workers start together";
        }
    }
    in_c Files {
        "Files" {
            c_registered_twice
                "`TF_RegisterFilesystemPlugin` once more, and in eight threads, is OK or `ALREADY_EXISTS`, and the first registration stays; of no library, and of one that is not a plugin, it is `NOT_FOUND`", "libraries of one program each do it";
            c_write_and_read
                "`ReadFile` gives what `TF_AppendWritableFile` wrote: nothing, a byte, 3 MB, and less than before; `TF_FileStat` says as much", "serving reads models so";
            c_flushed_is_read [flush_makes_visible]
                "What `TF_FlushWritableFile` passes on and `TF_SyncWritableFile` makes durable is read by others", "TensorBoard reads while a trainer writes";
            c_writer_moves_between_threads
                "A file is appended to and closed by threads that did not open it", "the runtime's work is done by whichever thread is free";
            c_files_and_directories [get_children_of_files_and_directories, deleting_a_tree_keeps_prefix_siblings]
                "`TF_CreateDir`, `TF_GetChildren`, `MatchingFiles`, `TF_DeleteFile`, `TF_DeleteDir` and `TF_DeleteRecursively` on a tree", "checkpoints are found and removed so";
            c_codes [new_random_access_file_of_full_dir, stat_of_below_file]
                "Each function of `env.h` of nothing, of a file and of a directory where it takes the other: `NOT_FOUND`, `FAILED_PRECONDITION` or `ALREADY_EXISTS`, and nothing changes", "the code names the mistake";
            c_save_and_restore [checkpoint]
                "`SaveV2` and `RestoreV2` of 1 MiB, twice", "checkpoints are these operations";
        }
        "Provided files" {
            c_provided_files
                "With `files: provided` all of `samples` exist: length, kind and content", "a read-only filesystem is not tested otherwise";
        }
    }
}

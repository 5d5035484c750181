//! Cases for files and names: contents, replacing and naming.

use crate::filesystem::TestWritableFile;
use crate::filesystem::conformance::case::{Case, Group};
use crate::filesystem::conformance::steps::pattern;
use crate::filesystem::conformance::{names, reading, replaced, times, visibility, writing};

filesystem_cases! {
    ($) __filesystem_file_tests
    Content {
        of reading {
            read_at_a_huge_offset "reading at 2 GiB, 4 GiB, 1 TiB and the largest offset returns OUT_OF_RANGE",
                "an offset cut to 32 bits gives the bytes of the file's start";
            read_backwards "a file is read from its end to its start in pieces that overlap",
                "restores read the index from its end";
            read_here_and_there "100 pieces at random places of a file of 66,000 bytes",
                "readahead and caches must not mix pieces up";
            read_byte_by_byte "300 reads of one byte",
                "GFile.seek reads one byte";
            read_in_pieces_of_tensorflow "reads of 1, 12, 48 bytes and of 128 KiB to 1 MiB",
                "these are the sizes that TensorFlow requests";
            read_around_the_end "every piece around the end of a file of 4,096 bytes",
                "the last block is the one that gets lost";
            all_bytes_are_kept "all 256 values of a byte are kept",
                "records are binary";
            two_readers_of_one_file "two readers of one file have positions of their own",
                "tf.data opens a file several times";
            region_of_a_replaced_file "a region of a file that was replaced has the new content",
                "a model is exported again under its name";
            region_outlives_its_name "a region keeps its content when the file is deleted",
                "TensorFlow keeps regions as long as the model";
        }
        of writing {
            appends_of_all_sizes "appends of 0 to 131,072 bytes, around the sizes of blocks, are all there",
                "the last partial block is the one that gets lost";
            a_shorter_file_replaces_a_longer_one "a shorter file replaces a longer one whole",
                "the file `checkpoint` is replaced at each save";
            an_empty_file_replaces_a_full_one "an empty file replaces a full one",
                "a reader must not see the old content";
            appending_keeps_what_is_there "five appends to a file of 70,000 bytes, each opened again, are all there",
                "logs are continued over restarts";
            appending_nothing_keeps_the_file "a file that is opened for appending and closed keeps its content",
                "Dataset.save opens files this way";
            appending_creates_a_missing_file "`new_appendable_file` creates a missing file",
                "Dataset.save opens new files this way";
            appending_is_declared_right "a filesystem that is declared not to append refuses to, and keeps the file",
                "OK would lose the old content";
            close_makes_visible "a closed file can be read and listed before it is dropped",
                "TensorFlow renames before it drops the writer";
            close_writes_what_was_not_flushed "bytes that were appended after a flush are kept by close",
                "the end of a log is the part that matters";
            close_repeats_nothing "flush, sync and close after close are OK and change nothing",
                "checkpoint writers close twice";
            a_late_close_does_not_bring_a_file_back "a second close after the file was deleted does not bring it back",
                "checkpoint writers close twice, the second time when they are dropped";
            append_after_close_is_not_lost_silently "an append after close fails, or its bytes are kept",
                "Python may write to a file whose close failed";
            a_dropped_file_can_be_written_again "a file that was dropped without a close can be written again",
                "a save that failed is tried again";
            a_dropped_append_keeps_what_was_there "an append that was dropped without a close keeps what was there",
                "a job that is killed must not lose its log";
            two_writers_of_different_files "two files are written at a time",
                "shards are written side by side";
            a_writer_moves_between_threads "one file is written from four threads, one after the other",
                "TensorFlow's thread pools hand files on";
            a_deleted_file_is_written_again "a deleted file is NOT_FOUND, and can be written again",
                "checkpoints reuse names";
            caches_can_be_flushed "`flush_caches` loses nothing",
                "users call it when others changed files";
            tell_begins_at_zero "`tell` is 0 in a file that replaces another",
                "writers of archives compute offsets with it";
            tell_survives_flush "`tell` continues to count after flush and sync",
                "writers of archives compute offsets with it";
            stat_follows_every_change "`stat` and `get_file_size` know the length of what was last written",
                "GFile.read reads as much as they say";
        }
        of visibility {
            visibility_is_declared_right "where files are declared to be visible at flush or at close, nothing of them is seen before; where they are declared to be written in place, an open reader sees the new content",
                "a reader would train on half a file";
            changes_are_refused "where files are declared to be provided, what would change them returns UNIMPLEMENTED, PERMISSION_DENIED or FAILED_PRECONDITION, and nothing changes",
                "a save that seems to succeed is lost";
        }
        of times {
            modified_moves_on_append "the time of modification that `stat` says is later after an append; 0 is not a time, and is skipped",
                "caches and watchers read a file again when it moves";
            modified_moves_on_overwrite "the time of modification that `stat` says is later after the file was written again; 0 is not a time, and is skipped",
                "caches and watchers read a file again when it moves";
            modified_stays "the time of modification that `stat` says stays when the file is only read; 0 is not a time, and is skipped",
                "caches would never be of use";
        }
        cases {
            read_an_empty_file = |run| reading::reads(run, b"", &[(0, 0), (0, 1), (0, 1 << 20), (5, 1)]),
                "an empty file is read: no bytes, and OUT_OF_RANGE unless none were requested",
                "ReadFileToString reads 0 bytes of an empty file";
            line_ends_are_kept = |run| reading::reads(run, b"a\nb\r\nc\rd\x1a\0\n\n", &[(0, 100)]),
                "line ends, NUL and Ctrl-Z are kept",
                "a text mode would break records";
            region_of_one_byte = |run| reading::maps(run, b"x"),
                "a region of one byte",
                "constants may be tiny";
            region_of_a_large_file = |run| reading::maps(run, &pattern((1 << 20) + 3)),
                "a region of 1 MiB and 3 bytes",
                "memory-mapped models are large";
            many_small_appends = |run| writing::writes(run, pattern(9000).chunks(3)),
                "3,000 appends of 3 bytes are all there, in order",
                "TFRecordWriter appends 4 to 12 bytes at a time";
            a_block_and_one_byte = |run| writing::writes(run, pattern((1 << 16) + 1).chunks(1 << 16)),
                "one byte after a full block of 64 KiB is kept",
                "the last partial block is the one that gets lost";
            eight_mebibytes = |run| writing::writes(run, pattern(8 << 20).chunks(1 << 20)),
                "8 MiB in pieces of 1 MiB are all there",
                "shards of checkpoints are large";
            one_large_append = |run| writing::writes(run, std::iter::once(&pattern((3 << 20) + 17)[..])),
                "one append of 3 MiB and 17 bytes is all there",
                "Keras appends a whole archive at once";
            flush_makes_visible = |run| visibility::visible_after(run, "flush", TestWritableFile::flush),
                "what was flushed is read by others, and stat knows its length",
                "TensorBoard reads event files while they grow";
            sync_makes_visible = |run| visibility::visible_after(run, "sync", TestWritableFile::sync),
                "what was synced is read by others, and stat knows its length",
                "event files are synced after each flush";
        }
    }
    Replaced {
        of replaced {
            reader_of_a_file_that_is_written_again "an open reader of a file that is written again reads the old content to its end, or gets an error; skipped where files are declared to be written in place",
                "a silent end or a mix of two contents is taken for data";
            reader_of_a_file_that_is_renamed_over "an open reader of a file that another is renamed to reads the old content to its end, or gets an error",
                "checkpoints replace their state file so while others read it";
            reader_of_a_file_that_is_copied_over "an open reader of a file that another is copied to reads the old content to its end, or gets an error; skipped where files are declared to be written in place",
                "a silent end or a mix of two contents is taken for data";
            reader_of_a_file_that_is_deleted "an open reader of a file that is deleted reads the content to its end, or gets an error",
                "old checkpoints are deleted while an evaluator reads them";
            reader_of_a_file_that_is_renamed "an open reader of a file that gets another name reads the content to its end, or gets an error",
                "checkpoints are renamed when they are complete";
            two_writers_of_one_file "two writers of one file leave all of the one or all of the other; skipped where files are declared to be written in place",
                "two workers that save the same checkpoint must not leave a mix";
            writer_of_a_file_that_is_renamed_over "a file that another is renamed to while it is written is the other one, or all that was written",
                "a mix of two contents is taken for data";
            writer_of_a_file_that_is_deleted "a file that is deleted while it is appended to is gone, or is complete",
                "a file of its last lines alone is taken for all of them";
        }
    }
    Names {
        names "TensorFlow passes names as they are, without any encoding" {
            name_with_space "with a space.txt" "with spaces";
            name_with_plus_and_ampersand "a+b&c" "with `+` and `&`";
            name_with_equals "step=10" "with `=`";
            name_with_unicode "naïve-日本語-🦀" "beyond ASCII";
            name_with_backslash r"a\b" "with a backslash";
            name_with_quotes "it's \"quoted\"" "with quotes";
            name_with_leading_dot ".hidden" "with a dot in front";
            name_with_leading_dash "-rf" "with a dash in front";
            name_tilde "~" "that is `~`";
            name_three_dots "..." "that is `...`";
            name_with_trailing_dot "a." "with a dot at the end";
            name_with_colon "12:30" "with `:`";
            name_with_comma_and_at "model@2,part" "with `@` and `,`";
            name_with_trailing_space "end " "with a space at the end";
            name_with_control "tab\there" "with a tab";
        }
        names "a name that is decoded once too often is another name" {
            name_with_percent "100%25.txt" "with `%25`";
        }
        names "parsers of URLs cut there" {
            name_with_hash "a#b" "with `#`";
            name_with_question_mark "a?b=c" "with `?`";
        }
        names "only patterns have lists" {
            name_with_brackets "[a]" "with `[` and `]`";
        }
        names "only patterns have wildcards" {
            name_with_star "a*b" "with `*`";
        }
        names "every checkpoint is written under such a name" {
            name_tempstate "x.tempstate1234567890" "as checkpoint writers make them";
        }
        of names {
            name_deep "a file 24 directories deep",
                "TensorFlow has no limit";
            prefix_is_not_a_path "a part of a name is NOT_FOUND for every operation",
                "a store that looks up by prefix finds missing names";
            same_name_as_file_and_in_directory "the same name in two directories is two files",
                "last components alone are not keys";
            translate_name_of_canonical_names "`translate_name` does not change a canonical name",
                "TensorFlow translates names more than once";
            translate_name_keeps_the_host "what `translate_name` returns still has the host and names the file",
                "TensorFlow's default loses the bucket";
            slash_at_the_end "a directory is found and listed with a slash at its end",
                "Keras and users write it";
        }
        cases {
            name_long = |run| names::name(run, &"long".repeat(50)),
                "a name of 200 bytes",
                "names of checkpoints carry metrics";
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
        }
    }
}

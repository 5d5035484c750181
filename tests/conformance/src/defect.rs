//! The defects of filesystems.

/// Makes the type and its list of a row for each defect: its name and what is wrong.
macro_rules! defects {
    ($($defect:ident $what:literal;)*) => {
        /// The defect of a [`Broken`](crate::Broken).
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Defect {
            /// Nothing.
            NoDefect,
            $(#[doc = $what] $defect,)*
        }

        impl Defect {
            /// All but [`NoDefect`](Self::NoDefect), each with what it is.
            pub const ALL: &'static [(Self, &'static str)] = &[$((Self::$defect, $what),)*];
        }
    };
}

defects! {
    ReadIgnoresOffset "a read always starts at the beginning";
    ReadCutsOffset "offsets are cut to 32 bits";
    ReadEndsAt64KiB "a read gives at most 64 KiB and calls that the end of the file";
    ReadEndsAtBlock "the last partial block of 4,096 bytes is not read if there is a full one";
    ReadPastEndFails "an offset past the end is INVALID_ARGUMENT";
    ReadOfNothingFails "a read of an empty file is INVALID_ARGUMENT";
    ReadEndsAtNul "a NUL ends the file";
    ReaderKeepsAPosition "a reader goes on where it stopped, whatever the offset";
    ReaderSharesItsPosition "threads that read one file share a position, without a lock";
    ReadIsCached "the content of a name is cached and never looked at again";
    OpenCreates "opening a missing file for reading creates it";
    OpenFails "opening a file for reading is PERMISSION_DENIED";
    LastByteIsNotRead "the last byte of a file is not read";
    OpensDirectories "a directory opens as an empty file";
    HighBitIsLost "bytes above 127 lose their highest bit";
    LineEndsAreTranslated "CR LF becomes LF";
    LastPartialBlockIsLost "close writes full blocks of 4,096 bytes only";
    UnflushedIsLost "close loses what was appended since the last flush";
    FlushWritesTwice "flush writes the last byte of the one before once more";
    EmptyAppendFails "an append of no bytes is INVALID_ARGUMENT";
    SmallAppendsAreLost "appends of less than 4 bytes are lost";
    LargeAppendsAreCut "an append takes at most 1 MiB";
    TellForgetsFlushed "tell counts from the last flush";
    TellGoesOn "tell in a replaced file begins at its old length";
    TellIsZero "tell is always 0";
    SyncDoesNothing "what is appended is handed on by flush and close, not by sync";
    FlushDoesNothing "what is appended is handed on by sync and close, not by flush";
    OldTailStays "a file that replaces a longer one keeps its tail";
    AppendTruncates "a file opened for appending is emptied";
    AppendStartsOver "what is appended overwrites the start";
    AppendNeedsFile "appending to a missing file is NOT_FOUND";
    VisibleAtClose "a file is there when it was closed, not before";
    WritesWhenDropped "what is appended is in the file when the writer is dropped, not when it is closed";
    DroppedFilesVanish "a file that was dropped without a close is gone";
    DroppedFilesStayLocked "a file that was dropped without a close can be neither deleted nor written again";
    DropPublishesAgain "dropping a writer writes its file again";
    WritersShareABuffer "two open writers have one buffer";
    LocksOpenFiles "a file that is open for writing cannot be opened for appending";
    WriterHasAThread "a writer takes appends from the thread that made it only";
    CreatesParents "a missing parent directory is made when a file is written";
    ReplacesDirectories "writing a file replaces an empty directory of that name";
    CreateDirIsRecursive "create_dir makes missing parents";
    CreateDirTwice "create_dir of what is there is OK";
    CreateDirEmpties "create_dir of a directory that is there empties it";
    CreateDirRaces "create_dir looks first and makes it later, without a lock";
    MakeTreeFailsIfThere "recursively_create_dir of what is there is ALREADY_EXISTS";
    MakeTreeNeedsParent "recursively_create_dir makes one level only";
    MakeTreeOverFiles "recursively_create_dir of a file is OK";
    MakeTreeOfRootFails "recursively_create_dir of a root is NOT_FOUND";
    MakeTreeRaces "recursively_create_dir fails if another thread was faster";
    DeleteMissingIsOk "deleting a missing file is OK";
    DeleteByPrefix "delete_file deletes all whose names begin with it";
    DeleteFileTakesDirs "delete_file deletes empty directories";
    DeleteLeavesFile "delete_file returns OK and does nothing";
    DeleteTakesParent "the last file of a directory takes it along";
    DeleteDirIsRecursive "delete_dir deletes what is in it";
    DeleteDirOverlooksDirs "delete_dir takes a directory that holds only directories for empty";
    DeleteDirTakesFiles "delete_dir deletes files";
    DeleteDirLeavesIt "delete_dir returns OK and does nothing";
    DeleteTreeByPrefix "delete_recursively of `run` deletes `run1` too";
    DeleteTreeLeavesTop "delete_recursively leaves the directory itself";
    DeleteTreeLeavesDeep "delete_recursively goes two levels deep";
    DeleteTreeRefusesFiles "delete_recursively of a file fails";
    DeleteTreeMissingIsOk "delete_recursively of a missing path is OK";
    DeleteTreeFails "delete_recursively always fails, and says that 1 file and 0 directories are left";
    DeleteTreeCounts "delete_recursively says 1 file and 0 directories are left when it could not start";
    RenameByPrefix "rename_file moves all whose names begin with the source";
    RenameKeepsSource "rename_file leaves the source";
    RenameMissingIsOk "rename_file of a missing source is OK";
    RenameRefusesExisting "rename_file onto a file is ALREADY_EXISTS";
    RenameToItselfLoses "rename_file to its own name deletes the file";
    RenameTakesDirs "rename_file of a directory is OK and does nothing";
    RenameMakesParents "rename_file makes missing parents of its target";
    RenameFollowsOpenFile "a writer that is dropped after rename_file writes the old name again";
    CopyMissingIsOk "copy_file of a missing source is OK";
    CopyTakesDirs "copy_file of a directory is OK and does nothing";
    CopyIntoDirectory "copy_file to a directory copies into it";
    CopyToItselfLoses "copy_file to its own name empties the file";
    CopyLosesLastChunk "copy_file loses what comes after the last full 128 KiB";
    CopyEmptiesTarget "copy_file empties the target before it looks for the source";
    CopyDeletesSource "copy_file deletes the source";
    CopyKeepsTail "copy_file onto a longer file keeps its tail";
    CopyMakesParents "copy_file makes missing parents of its target";
    CopyIsALink "a copy changes with its source";
    IsDirectoryOfFiles "is_directory is true for files";
    IsDirectoryNever "is_directory is false for directories with files in them";
    IsDirectoryIfFull "is_directory is false for directories without entries";
    IsDirectoryOfNothing "is_directory of a missing path is true";
    StatOffByOne "stat says one byte too many";
    StatOfDirsIsFile "stat says that directories are files";
    StatIsCached "stat remembers the first length of a name";
    StatMissingIsEmpty "stat of a missing path is an empty file";
    ExistsByPrefix "path_exists is true for the beginning of a name";
    ExistsAlways "path_exists is always true";
    ExistsDirsOnly "path_exists of a file is NOT_FOUND";
    ExistsFilesOnly "path_exists of a directory is NOT_FOUND";
    SizeOffByOne "get_file_size says one byte too many";
    SizeOfDirs "get_file_size of a directory is 0";
    SizeIsStale "get_file_size is 0 until the file was closed";
    SizeMissingIsZero "get_file_size of a missing file is 0";
    PathsExistReversed "paths_exist answers in reverse order";
    PathsExistFirstOnly "paths_exist answers all as the first";
    PathsExistAtMost100 "paths_exist returns OK from the 100th path on";
    BelowFileIsMissing "a path below a file is NOT_FOUND";
    RootIsMissing "the root of a host does not exist";
    UnknownCodes "every error is UNKNOWN";
    MalformedIsMissing "a name that can never be one is NOT_FOUND";
    ListsAllLevels "get_children lists all levels, by their last components";
    ListsByPrefix "get_children of `a` also lists what is in `ab`";
    ListsAtMost100 "get_children lists the first 100 entries";
    ListsTwice "get_children lists files twice";
    ListsNoDirectories "get_children leaves directories out";
    ListsHiddenNot "get_children leaves names with a dot in front out";
    ListingIsCached "get_children remembers the first listing of a directory";
    ListsItself "get_children of an empty directory lists its own name";
    ListsFiles "get_children of a file is an empty list";
    ListsMissing "get_children of a missing path is an empty list";
    ListsOpenNot "get_children leaves files that are open for writing out";
    RootListsNothing "get_children of a root is empty";
    GlobStarTakesSlash "`*` in a pattern matches `/`";
    GlobByPrefix "a pattern matches the beginning of names";
    GlobKnowsNoEscape "a backslash in a pattern is a backslash";
    GlobKnowsNoNegation "`[^...]` is `[...]`";
    GlobKnowsNoQuestionMark "`?` in a pattern is a character";
    GlobKnowsNoList "`[...]` in a pattern are characters";
    GlobGivesNames "get_matching_paths gives last components";
    GlobOfNothingFails "a pattern that matches nothing is NOT_FOUND";
    GlobSkipsDirs "get_matching_paths leaves directories out";
    GlobOfOneDirectory "wildcards are known in the last component only";
    GlobDecodes "`%20` in a pattern is a space";
    GlobEmptyIsAll "an empty pattern lists a root";
    GlobKnowsAscii "patterns with letters beyond ASCII match nothing";
    DecodesPercent "`%20` in a name becomes a space, and so on";
    CutsAtHash "a name ends before `#`";
    CutsAtQuestionMark "a name ends before `?`";
    IgnoresCase "names are kept in lower case";
    Composes "names are kept in composed normal form";
    ShortNames "components of more than 128 bytes are INVALID_ARGUMENT";
    ShallowNames "paths of more than 16 components are INVALID_ARGUMENT";
    TrimsSpaces "spaces at the ends of names are cut";
    TrimsDots "dots at the end of names are cut";
    PlusIsSpace "`+` in a name is a space";
    BackslashIsSlash "a backslash in a name is a `/`";
    RefusesColons "`:` in a name is INVALID_ARGUMENT";
    RefusesControls "control characters in names are INVALID_ARGUMENT";
    RefusesQuotes "quotes in names are INVALID_ARGUMENT";
    RefusesStars "`*` in a name is INVALID_ARGUMENT";
    RefusesBrackets "`[` in a name is INVALID_ARGUMENT";
    RefusesDashes "a dash in front is INVALID_ARGUMENT";
    RefusesTildes "`~` as a name is INVALID_ARGUMENT";
    RefusesCommas "`,` in a name is INVALID_ARGUMENT";
    RefusesEquals "`=` in a name is INVALID_ARGUMENT";
    RefusesTempstate "names with `.tempstate` are not listed";
    KeysAreLastComponents "a file is found by its last component in any directory";
    TranslateKeepsDots "translate_name resolves nothing";
    TranslateDropsHost "translate_name drops the host";
    TranslateEncodes "translate_name encodes `%`, each time";
    TranslateRootWhole "translate_name of a root without a host is the whole URI";
    TrailingSlashIsAName "a slash at the end makes another name";
    ReaderFollowsTheName "each read opens the name again, whatever file it is then";
    ReaderEndsWhenDeleted "an open file ends, without an error, once its name is deleted";
    LateWriterMixes "a writer whose file was replaced writes over the beginning of the other";
    LateWriterLeavesATail "a writer whose file was deleted makes one of what was appended alone";
    RenameForgetsHost "rename_file stays on the host of its source";
    CopyForgetsHost "copy_file stays on the host of its source";
    ModifiedStaysOnAppend "the time of modification stays when a file is appended to";
    ModifiedStaysOnOverwrite "the time of modification stays when a file is written again";
    ModifiedIsNow "the time of modification is the time of the question";
    RegionIsCut "a region has at most 64 KiB";
    RegionIsCached "a region of a name is made once";
    RegionOfDirs "a region of a directory has one byte";
    RegionLacksFirst "a region starts with the second byte";
    RefusesASecondCall "while one call is made, another is RESOURCE_EXHAUSTED";
    LockHangsInAFork "a lock of `std` is held during each call, and forever in a child forked meanwhile";
    FlushCachesLoses "flush_caches forgets what is in files";
    TransactionsForget "a transaction forgets its paths";
    TransactionsNeverEnd "an ended transaction is not forgotten";
    KeysDiffer "the keys of options are not those of the options";
    UnknownOptionIsOk "an unknown option is one without values";
    RawForgetsOutOfRange "C: a read that met the end of the file is OK";
    RawEndWithAllBytes "C: a read that gave all bytes is OUT_OF_RANGE";
    RawReadOfNothingEnds "C: a read of 0 bytes is OUT_OF_RANGE";
    RawLeaksOnFailedOpen "C: an open that fails leaves a state behind, which nobody frees";
    RawOpensNothing "C: opening a missing file is OK, without a file";
    RawSecondCloseFails "C: a second close is FAILED_PRECONDITION";
    RawFlushAfterCloseFails "C: flush after close is FAILED_PRECONDITION";
    RawNoClose "C: files have no close";
    RawIsDirectoryReturns "C: is_directory returns false for a file, with OK";
    RawCountersUnset "C: delete_recursively fails and leaves the counters as they were";
    RawSizeMinusOne "C: get_file_size of a directory is -1 with OK";
    RawCodeOutOfRange "C: an error has the code 17";
    RawListsTooMany "C: get_children fails but returns 0 entries instead of -1";
    RawEmptyRegionFails "C: a region of an empty file is UNAVAILABLE";
    RawNoTranslateName "C: translate_name is null: TensorFlow's default drops the host";
    RawNoCopyFile "C: copy_file is null: TensorFlow's default copies into directories";
    RawNoRenameFile "C: rename_file is null: TensorFlow's default copies and deletes";
}

/// Names the defect of a filesystem that somebody else makes: TensorFlow, of a plugin.
pub const DEFECT_VARIABLE: &str = "BROKENFS_DEFECT";

impl Defect {
    /// The one that [`DEFECT_VARIABLE`] names.
    pub fn of_environment() -> Self {
        let Ok(name) = std::env::var(DEFECT_VARIABLE) else { return Self::NoDefect };
        let found = Self::ALL.iter().find(|(defect, _)| format!("{defect:?}") == name);
        found.unwrap_or_else(|| panic!("there is no defect {name}")).0
    }

    /// Whether it is in the C functions of a plugin, not in its Rust.
    pub fn is_raw(self) -> bool {
        (self as usize) >= (Self::RawForgetsOutOfRange as usize)
    }
}

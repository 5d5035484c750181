//! Properties of paths.

use crate::name::LocalPath;
use crate::root::is_directory;
use std::time::{Duration, SystemTime};
use tf_fs_plugin::{Code, Error, FileStatistics, Result};

pub(crate) fn path_exists(place: &LocalPath<'_>) -> Result<bool> {
    match place.metadata() {
        Ok(_) => Ok(true),
        Err(error) if error.code() == Code::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

pub(crate) fn stat(place: &LocalPath<'_>) -> Result<FileStatistics> {
    let stat = place.metadata()?;
    let statistics = if is_directory(&stat) {
        FileStatistics::directory()
    } else {
        FileStatistics::file(u64::try_from(stat.st_size).unwrap_or(0))
    };
    Ok(statistics.with_modified(time(stat.st_mtime, stat.st_mtime_nsec)))
}

pub(crate) fn get_file_size(place: &LocalPath<'_>) -> Result<u64> {
    let statistics = stat(place)?;
    if statistics.is_directory {
        return Err(Error::expected_file(place.uri));
    }
    Ok(statistics.length)
}

/// Converts a time of the system: nanoseconds count forwards, also before the epoch.
fn time(seconds: i64, nanos: impl TryInto<u32>) -> SystemTime {
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let part = Duration::from_nanos(nanos.try_into().unwrap_or(0).into());
    let base = if seconds < 0 {
        SystemTime::UNIX_EPOCH.checked_sub(whole)
    } else {
        SystemTime::UNIX_EPOCH.checked_add(whole)
    };
    base.and_then(|base| base.checked_add(part)).unwrap_or(SystemTime::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_before_and_after_the_epoch() {
        let nanos = |seconds, part: u32| {
            FileStatistics::file(0).with_modified(time(seconds, part)).modified_nanos()
        };
        assert_eq!(nanos(3, 5), 3_000_000_005);
        assert_eq!(nanos(-1, 999_999_999), -1);
        assert_eq!(nanos(-2, 1), -1_999_999_999);
    }
}
